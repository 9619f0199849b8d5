/* search.c: file/search. Request: root, path, pattern, regex, ignoreCase, glob ("" for none), before, after, hidden, gitignore, limit. Its
 * records are those of grep.h; the path in one is from the directory that was asked for, or empty when that is a file. Result: truncated,
 * binarySkipped, unreadable. */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "grep.h"
#include "names.h"
#include "pick.h"

struct search {
	struct ks_run *run;
	struct ks_name name;
	struct ks_wild glob, ignore; /* of the two one at most has a pattern */
	struct ks_needle *needle;
	struct ks_grep *grep;
	bool hidden, gitignore;
	size_t before, after;
	int64_t limit, binary, unreadable;
	bool truncated;
};

/* As the patterns of ripgrep's -g: with a ! what matches is left out. "dir/" is for what is in that directory: only files are searched. */
static int add_glob(struct search *search, const char *glob, struct ks_error *err)
{
	char below[KS_VISIT_PATH + 8];
	const size_t len = strlen(glob);

	if (glob[0] == '!')
		return ks_pattern_add(&search->ignore, glob + 1, "/glob", err);
	if (len > 0 && len < KS_VISIT_PATH && glob[len - 1] == '/') {
		const char *deep = memchr(glob, '/', len - 1) ? "" : "**/";
		(void)snprintf(below, sizeof(below), "%s%.*s**", deep, KS_VISIT_PATH, glob);
		return ks_pattern_add(&search->glob, below, "/glob", err);
	}
	return ks_pattern_add(&search->glob, glob, "/glob", err);
}

static int unpack(struct search *search, struct ks_unpack *in, struct ks_error *err)
{
	size_t len;

	if (ks_name_unpack(search->run, in, "/path", false, false, &search->name, err) < 0)
		return -1;
	const char *pattern = ks_unpack_bytes(in, &len);
	const bool regex = ks_unpack_int(in) != 0, ignore_case = ks_unpack_int(in) != 0;
	const char *glob = ks_unpack_bytes(in, NULL);
	search->before = (size_t)ks_unpack_int(in);
	search->after = (size_t)ks_unpack_int(in);
	search->hidden = ks_unpack_int(in) != 0;
	search->gitignore = ks_unpack_int(in) != 0;
	search->limit = ks_unpack_int(in);
	if (!ks_unpack_end(in) || search->before > KS_GREP_CONTEXT || search->after > KS_GREP_CONTEXT || len == 0)
		ks_run_damaged();
	if (glob[0] && add_glob(search, glob, err) < 0)
		return -1;
	if (ks_needle_new(pattern, len, regex, ignore_case, &search->needle, err) < 0)
		return -1;
	const struct ks_grep_config config = { .run = search->run, .needle = search->needle, .before = search->before,
					       .after = search->after, .limit = search->limit };
	return ks_grep_new(&config, &search->grep, err);
}

static int search_file(struct search *search, int fd, const char *path, size_t path_len, struct ks_error *err)
{
	const int rc = ks_grep_file(search->grep, fd, path, path_len, err);

	if (rc < 0) {
		struct ks_error why = *err;
		if (why.reason == KS_E_LIMIT)
			(void)ks_error_hint(err, "it happened in %.100s: %.120s", path_len ? path : search->name.path, why.hint);
		return -1;
	}
	search->binary += rc == KS_GREP_BINARY;
	search->unreadable += rc == KS_GREP_UNREADABLE;
	search->truncated = rc == KS_GREP_TRUNCATED;
	return 0;
}

/* A file that is gone or no regular file any more is passed over. */
static int search_item(struct search *search, const struct ks_visit_item *item, size_t base, struct ks_error *err)
{
	KS_AUTOCLOSE int fd = ks_open_beneath(item->dir_fd, item->name, O_RDONLY, KS_BENEATH_STAY);

	if (fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM)
		return ks_fail_errno(err, KS_E_IO, -fd, "cannot open %.200s", item->path);
	if (fd < 0) {
		search->unreadable += fd != -ENOENT && fd != -ELOOP && fd != -ENOTDIR;
		return 0;
	}
	return search_file(search, fd, item->path + base, item->path_len - base, err);
}

static int search_tree(struct search *search, struct ks_error *err)
{
	const struct ks_pick_config config = { .root_fd = search->name.root, .path = search->name.path, .pattern = &search->glob,
					       .ignore = &search->ignore, .hidden = search->hidden, .gitignore = search->gitignore };
	const size_t base = strcmp(search->name.path, ".") == 0 ? 0 : strlen(search->name.path) + 1;
	struct ks_pick *pick;
	struct ks_visit_item item;
	int rc = 0;

	if (ks_pick_start(&config, &pick, err) < 0)
		return -1;
	while (!search->truncated && (rc = ks_pick_next(pick, &item, err)) > 0)
		if (item.type == KS_TYPE_FILE && (rc = search_item(search, &item, base, err)) < 0)
			break;
	search->unreadable += (int64_t)ks_pick_unreadable(pick);
	ks_pick_free(pick);
	return rc < 0 ? -1 : 0;
}

/* What is named itself is searched whatever it is called. */
static int search_all(struct search *search, struct ks_error *err)
{
	struct stat st;
	KS_AUTOCLOSE int fd = ks_name_open(&search->name, O_PATH, err);

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return ks_name_fail(&search->name, errno, err);
	if (S_ISDIR(st.st_mode))
		return search_tree(search, err);
	if (!S_ISREG(st.st_mode))
		return ks_fail_at(err, KS_E_NOT_REGULAR, "/path", "%.200s is neither a directory nor a regular file", search->name.path);
	ks_close(&fd);
	fd = ks_name_open(&search->name, O_RDONLY, err);
	return fd < 0 ? -1 : search_file(search, fd, "", 0, err);
}

int ks_job_search(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	struct search search = { .run = run, .glob.flags = KS_WILD_BRACES, .ignore.flags = KS_WILD_BRACES };
	int rc = unpack(&search, in, err);

	if (rc == 0)
		rc = search_all(&search, err);
	ks_pack_int(ret_result, search.truncated);
	ks_pack_int(ret_result, search.binary);
	ks_pack_int(ret_result, search.unreadable);
	ks_grep_free(search.grep);
	ks_needle_free(search.needle);
	ks_wild_free(&search.glob);
	ks_wild_free(&search.ignore);
	return rc;
}
