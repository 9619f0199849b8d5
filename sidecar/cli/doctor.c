#include "cli/doctor.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/local.h"
#include "cli/terminal.h"
#include "proto/scan.h"
#include "session/doctor.h"

struct visit {
	struct ks_local local;
	struct ks_buf checks;
	bool done, ok;
};

static void on_checked(void *arg, bool ok, const struct ks_buf *checks)
{
	struct visit *visit = arg;

	visit->ok = ok;
	visit->done = true;
	ks_buf_add(&visit->checks, checks->data, checks->len);
	ks_local_stop(&visit->local);
}

/* ---- printing ---- */

/* Some of it comes from files of the host: nothing that a terminal obeys (C0, DEL, and C1 as UTF-8). */
static void print_text(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		bool c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;
		(void)putchar(*c < 0x20 || *c == 0x7f || c1 ? '?' : *c);
		c += c1;
	}
}

static const char *member(struct json_object *check, const char *name)
{
	struct json_object *value;

	return json_object_object_get_ex(check, name, &value) ? json_object_get_string(value) : NULL;
}

static void print_more(const char *name, const char *text)
{
	if (!text)
		return;
	(void)printf("      %s: ", name);
	print_text(text);
	(void)putchar('\n');
}

static const char *colour_of(const char *status, bool colour)
{
	return strcmp(status, "fail") == 0 ? ks_red(colour) : strcmp(status, "warn") == 0 ? ks_yellow(colour) : ks_green(colour);
}

/* One line a check; what to do about it below those that are not ok. */
static int print_for_people(const struct ks_buf *checks, struct ks_error *err)
{
	struct json_object *list = ks_json_parse(checks->data, checks->len, err);
	const bool colour = ks_terminal_colour(STDOUT_FILENO);
	int width = 0;

	if (!list)
		return -1;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		int len = (int)strlen(member(json_object_array_get_idx(list, i), "id"));
		width = len > width ? len : width;
	}
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		struct json_object *check = json_object_array_get_idx(list, i);
		const char *status = member(check, "status");
		(void)printf("%s%-4s%s  %-*s  ", colour_of(status, colour), strcmp(status, "fail") == 0 ? "FAIL" : status, ks_plain(colour),
			     width, member(check, "id"));
		print_text(member(check, "found"));
		(void)putchar('\n');
		print_more("wanted", member(check, "wanted"));
		print_more("fix", member(check, "fix"));
	}
	json_object_put(list);
	return 0;
}

static int report(const struct visit *visit, bool json, struct ks_error *err)
{
	if (visit->checks.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	if (json)
		(void)printf("{\"ok\":%s,\"checks\":%.*s}\n", visit->ok ? "true" : "false", (int)visit->checks.len,
			     visit->checks.data);
	else if (print_for_people(&visit->checks, err) < 0)
		return -1;
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : ks_fail(err, KS_E_IO, "cannot write to stdout");
}

int ks_cli_doctor(int argc, char **argv, char *arguments, size_t arguments_len, const char *const *plugin_dirs)
{
	static struct visit visit;
	bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
	struct ks_error err;

	if (argc > 1 && !json) {
		(void)fprintf(stderr, "kern-sidecar: doctor takes --json and nothing else\n");
		return 2;
	}
	/* a host where no box can be made still gets a report: that is what it is for */
	if (ks_local_open(&visit.local, arguments, arguments_len, plugin_dirs, NULL, &err) < 0) {
		visit.done = true;
		ks_doctor_without_core(&err, &visit.checks);
	} else {
		ks_doctor(visit.local.core, on_checked, &visit);
		if (!visit.done)
			ks_local_run(&visit.local);
	}
	ks_local_close(&visit.local);
	int rc = visit.done ? report(&visit, json, &err)
			    : ks_fail(&err, KS_E_INTERNAL, "the launcher died before the probe ended");
	if (rc < 0)
		(void)fprintf(stderr, "kern-sidecar: %s\n", err.text);
	ks_buf_free(&visit.checks);
	return rc < 0 || !visit.ok;
}
