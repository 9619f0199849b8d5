#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fds.h"
#include "cli/terminal.h"
#include "render/render.h"
#include "session/outcome_json.h"

#define RESULT_CHARS 100000
#define FIGURES_MAX 1000 /* names that are tried */

/* ---- results ---- */

static bool is_figure(const char *mime)
{
	return strncmp(mime, "image/", 6) == 0;
}

static const struct ks_result_data *find(const struct ks_result_content *content, const char *mime)
{
	for (size_t i = 0; i < content->data_count; i++)
		if (strcmp(content->data[i].mime, mime) == 0 && !content->data[i].dropped)
			return &content->data[i];
	return NULL;
}

/* What becomes a file: an image, or a document that nothing says in text. */
static const struct ks_result_data *file_of(const struct ks_result_content *content)
{
	for (size_t i = 0; i < content->data_count; i++)
		if (is_figure(content->data[i].mime) && !content->data[i].dropped)
			return &content->data[i];
	return find(content, "text/plain") || find(content, "text/markdown") ? NULL : find(content, "text/html");
}

void ks_report_result(const struct ks_result *result, struct ks_buf *out)
{
	const struct ks_result_content *content = result->content;
	const struct ks_result_data *text = find(content, "text/plain");

	if (!text)
		text = find(content, "text/markdown");
	if (!text || file_of(content))
		return;
	ks_render_text(out, text->data, text->len, RESULT_CHARS, KS_KEEP_HEAD);
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		ks_buf_char(out, '\n');
}

static const char *extension_of(const char *mime)
{
	static const char *const known[][2] = { { "image/png", "png" },	 { "image/jpeg", "jpg" },    { "image/gif", "gif" },
						{ "image/webp", "webp" }, { "image/svg+xml", "svg" }, { "text/html", "html" } };

	for (size_t i = 0; i < KS_COUNT(known); i++)
		if (strcmp(mime, known[i][0]) == 0)
			return known[i][1];
	return "bin";
}

/* The first name that is free. Never through a link, never over a file. */
static int make_file(const char *extension, int *number, char name[64])
{
	int fd = -1;

	for (; fd < 0 && *number <= FIGURES_MAX; (*number)++) {
		(void)snprintf(name, 64, "figure-%d.%s", *number, extension);
		fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd;
}

void ks_report_figures(const struct ks_call *call, bool colour)
{
	int number = 1;
	char name[64];

	for (struct ks_list *n = call->results.list.next; n != &call->results.list; n = n->next) {
		const struct ks_result_data *data = file_of(KS_ENTRY(n, struct ks_result, node)->content);
		if (!data)
			continue;
		KS_AUTOCLOSE int fd = make_file(extension_of(data->mime), &number, name);
		size_t done = 0;
		for (ssize_t some = 1; fd >= 0 && some > 0 && done < data->len; done += some > 0 ? (size_t)some : 0)
			some = write(fd, data->data + done, data->len - done);
		if (fd >= 0 && done == data->len)
			(void)fprintf(stderr, "%sfigure: %s%s (%s, %zu bytes)\n", ks_green(colour), name, ks_plain(colour), data->mime,
				      data->len);
		else
			(void)fprintf(stderr, "%sfigure: cannot be written to %s: %s%s\n", ks_yellow(colour), name, strerror(errno),
				      ks_plain(colour));
	}
}

/* ---- the end ---- */

static const char *const cures[] = {
	[KS_FAULT_TIMEOUT] = "more time: --timeout-ms",
	[KS_FAULT_OOM] = "more memory: --memory-mb",
	[KS_FAULT_ESCAPE_BLOCKED] = "code in a box may not change mounts, namespaces, other processes or the kernel; no flag allows it",
	[KS_FAULT_EXEC_FAILED] = "is it installed on this host, or in the image? --image dir:/path takes another one",
	[KS_FAULT_DISK] = "more room: --workspace-max-mb",
	[KS_FAULT_KILLED] = "no limit of the box did this: perhaps the host has no memory left",
	[KS_FAULT_CANCELLED] = NULL,
};

static void tell_fault(const struct ks_outcome *o, bool colour)
{
	KS_AUTOBUF struct ks_buf message = { 0 };
	const char *cure = (size_t)o->fault < KS_COUNT(cures) ? cures[o->fault] : NULL;

	ks_render_word(&message, o->message, strlen(o->message), 400); /* it may hold a name from the box */
	(void)fprintf(stderr, "%skern-sidecar: %s:%s %.*s\n", ks_red(colour), ks_fault_name(o->fault), ks_plain(colour), (int)message.len,
		      message.data);
	if (cure)
		(void)fprintf(stderr, "  %s%s%s\n", ks_dim(colour), cure, ks_plain(colour));
}

void ks_report_end(const struct ks_call *call, bool private_workspace, bool colour)
{
	const struct ks_outcome *o = &call->outcome;
	char room[8];

	for (size_t i = 0; i < call->notes.count; i++)
		(void)fprintf(stderr, "%snote: %s%s\n", ks_dim(colour), call->notes.list[i].message, ks_plain(colour));
	if (o->truncated)
		(void)fprintf(stderr, "%snote: --json would have kept the first %lld bytes of output only (--max-output-bytes)%s\n",
			      ks_dim(colour), (long long)call->max_output_bytes, ks_plain(colour));
	if (private_workspace && call->changes.count > 0)
		(void)fprintf(stderr,
			      "%snote: the files that it wrote are gone with its private workspace; keep them with --workspace DIR%s\n",
			      ks_dim(colour), ks_plain(colour));
	if (o->fault != KS_FAULT_NONE)
		tell_fault(o, colour);
	else if (o->signal)
		(void)fprintf(stderr, "%skern-sidecar: ended by SIG%s%s\n", ks_red(colour), ks_signal_name(o->signal, room),
			      ks_plain(colour));
}

int ks_report_status(const struct ks_outcome *outcome)
{
	return outcome->fault == KS_FAULT_TIMEOUT ? 124 : outcome->exit_code;
}
