/* glob.c: file/glob. Request: root, path, pattern, how many ignore patterns and these, hidden, gitignore, limit. A record: path from the
 * directory that was asked for, type. Result: truncated, unreadable. */
#include "jobs.h"

#include <stdio.h>
#include <string.h>

#include "names.h"
#include "pick.h"

#define ANSWER_BYTES ((size_t)16 << 20) /* of paths in the records */

struct glob {
	struct ks_wild pattern, ignore;
	struct ks_name name;
	bool hidden, gitignore;
	int64_t limit;
};

static int unpack(struct ks_run *run, struct ks_unpack *in, struct glob *glob, struct ks_error *err)
{
	char pointer[32];

	if (ks_name_unpack(run, in, "/path", false, false, &glob->name, err) < 0)
		return -1;
	const char *pattern = ks_unpack_bytes(in, NULL);
	int rc = ks_pattern_add(&glob->pattern, pattern, "/pattern", err);
	const int64_t count = ks_unpack_int(in);
	for (int64_t i = 0; i < count && !in->bad; i++) {
		(void)snprintf(pointer, sizeof(pointer), "/ignore/%d", (int)i);
		pattern = ks_unpack_bytes(in, NULL);
		if (rc == 0)
			rc = ks_pattern_add(&glob->ignore, pattern, pointer, err);
	}
	glob->hidden = ks_unpack_int(in) != 0;
	glob->gitignore = ks_unpack_int(in) != 0;
	glob->limit = ks_unpack_int(in);
	if (!ks_unpack_end(in))
		ks_run_damaged();
	return rc;
}

static int find(struct ks_run *run, struct glob *glob, struct ks_buf *ret_result, struct ks_error *err)
{
	const struct ks_pick_config config = { .root_fd = glob->name.root, .path = glob->name.path, .pattern = &glob->pattern,
					       .ignore = &glob->ignore, .hidden = glob->hidden, .gitignore = glob->gitignore };
	const size_t base = strcmp(glob->name.path, ".") == 0 ? 0 : strlen(glob->name.path) + 1;
	struct ks_pick *pick;
	struct ks_visit_item item;
	size_t bytes = 0;
	int64_t count = 0;
	int rc;

	if (ks_pick_start(&config, &pick, err) < 0)
		return -1;
	while ((rc = ks_pick_next(pick, &item, err)) > 0) {
		if (count == glob->limit || bytes > ANSWER_BYTES)
			break;
		struct ks_buf *record = ks_run_record(run);
		ks_pack_bytes(record, item.path + base, item.path_len - base);
		ks_pack_int(record, item.type);
		ks_run_record_end(run);
		bytes += item.path_len - base;
		count++;
	}
	ks_pack_int(ret_result, rc > 0);
	ks_pack_int(ret_result, (int64_t)ks_pick_unreadable(pick));
	ks_pick_free(pick);
	return rc < 0 ? -1 : 0;
}

int ks_job_glob(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	struct glob glob = { .pattern.flags = KS_WILD_BRACES, .ignore.flags = KS_WILD_BRACES };
	int rc = unpack(run, in, &glob, err);

	if (rc == 0)
		rc = find(run, &glob, ret_result, err);
	ks_wild_free(&glob.pattern);
	ks_wild_free(&glob.ignore);
	return rc;
}
