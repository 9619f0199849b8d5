#include "cli/archive.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/flags.h"
#include "cli/local.h"
#include "proto/tables.h"
#include "session/archive.h"

struct archive_params {
	struct ks_session_params session; /* first: its table is used as it is */
	int links;
};

static const struct ks_field links_fields[] = {
	{ KS_ENUM("links", struct archive_params, links, ks_link_words), .flags = KS_F_CLI, .fallback = "\"refuse\"",
	  .text = "Symbolic links." },
};

struct visit {
	struct ks_local local;
	struct archive_params params;
	bool is_restore, done;
	char path[PATH_MAX];
	struct ks_snapshot snapshot;
	struct ks_restore restore;
	struct ks_error error; /* reason set: it failed */
};

static void finish(struct visit *visit, const struct ks_error *err)
{
	visit->done = true;
	if (err)
		visit->error = *err;
	ks_local_stop(&visit->local);
}

static void on_snapshot(struct ks_snapshot *snapshot, const struct ks_error *err)
{
	finish(snapshot->arg, err);
}

static void on_restore(struct ks_restore *restore, const struct ks_error *err)
{
	finish(restore->arg, err);
}

static void on_opened(void *arg, struct ks_session *session, const struct ks_error *err)
{
	struct visit *visit = arg;
	struct ks_error why;
	int rc;

	if (!session) {
		finish(visit, err);
		return;
	}
	visit->snapshot = (struct ks_snapshot){ .session = session, .path = visit->path, .links = (enum ks_links)visit->params.links,
						.done = on_snapshot, .arg = visit };
	visit->restore = (struct ks_restore){ .session = session, .path = visit->path, .links = (enum ks_links)visit->params.links,
					      .done = on_restore, .arg = visit };
	rc = visit->is_restore ? ks_restore_start(&visit->restore, &why) : ks_snapshot_start(&visit->snapshot, &why);
	if (rc < 0)
		finish(visit, &why);
}

static int start(struct visit *visit, char *arguments, size_t arguments_len, const char *worker_program, struct ks_error *err)
{
	static const char *const no_plugins[] = { NULL };
	struct ks_session *session;

	if (ks_local_open(&visit->local, arguments, arguments_len, no_plugins, worker_program, err) < 0)
		return -1;
	return ks_session_open(visit->local.core, &visit->params.session, false, on_opened, visit, &session, err);
}

/* ---- words in, words out ---- */

static int parse(struct visit *visit, int argc, char **argv, const struct ks_schema *schema, struct ks_error *err)
{
	int at = 1;

	if (ks_flags_parse(schema, argc, argv, &at, &visit->params, err) < 0)
		return -1;
	if (!visit->params.session.workspace)
		return ks_fail(err, KS_E_MISSING, "%s needs --workspace DIR", argv[0]);
	if (argc - at != 1)
		return ks_fail(err, KS_E_MISSING, "%s takes one archive: %s --workspace DIR FILE.tar.gz", argv[0], argv[0]);
	char cwd[PATH_MAX] = "";
	if (argv[at][0] != '/' && !getcwd(cwd, sizeof(cwd)))
		return ks_fail(err, KS_E_IO, "the working directory is not there any more");
	int n = snprintf(visit->path, sizeof(visit->path), "%s%s%s", cwd, cwd[0] ? "/" : "", argv[at]);
	return n < (int)sizeof(visit->path) ? 0 : ks_fail(err, KS_E_INVALID_PATH, "the path of the archive is too long");
}

static int report(const struct visit *visit)
{
	const struct ks_error *err = &visit->error;

	if (err->reason)
		(void)fprintf(stderr, "kern-sidecar: %s%s%s\n", err->text, err->hint[0] ? "; " : "", err->hint);
	else if (visit->is_restore)
		(void)printf("%lld entries, %lld bytes\n", (long long)visit->restore.entries, (long long)visit->restore.bytes);
	else
		(void)printf("%lld entries, %lld bytes, sha256 %s\n", (long long)visit->snapshot.entries, (long long)visit->snapshot.bytes,
			     visit->snapshot.sha256);
	if (!err->reason && visit->snapshot.skipped.len > 0) /* as JSON: names may hold what a terminal obeys */
		(void)printf("skipped: [%.*s]\n", (int)visit->snapshot.skipped.len, visit->snapshot.skipped.data);
	for (size_t i = 0; i < visit->restore.notes.count; i++)
		(void)printf("%s: %s\n", visit->restore.notes.list[i].code, visit->restore.notes.list[i].message);
	return err->reason || fflush(stdout) != 0;
}

int ks_cli_archive(int argc, char **argv, char *arguments, size_t arguments_len, const char *worker_program)
{
	static struct visit visit;
	struct ks_schema schema = ks_session_params;
	struct ks_error err;

	schema.size = sizeof(visit.params);
	schema.parts[1] = (struct ks_fields)KS_FIELDS(links_fields);
	visit.is_restore = strcmp(argv[0], "restore") == 0;
	if (parse(&visit, argc, argv, &schema, &err) < 0) {
		ks_cli_complain(&err);
		return 2;
	}
	if (start(&visit, arguments, arguments_len, worker_program, &err) < 0)
		finish(&visit, &err);
	if (!visit.done)
		ks_local_run(&visit.local);
	if (!visit.done) {
		(void)ks_fail(&err, KS_E_INTERNAL, "the launcher died");
		finish(&visit, &err);
	}
	ks_local_close(&visit.local);
	ks_params_free(&schema, &visit.params);
	int status = report(&visit);
	ks_snapshot_free(&visit.snapshot);
	return status;
}
