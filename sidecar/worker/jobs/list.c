/* list.c: file/list. Request: name, followLinks, recursive, limit, cursor, bytes that the sidecar puts in front of each path. Records: path
 * below the directory, type, size, mtime in ms. Result: cursor of the next page ("" none), directories that were skipped.
 *
 * A page is made of the smallest paths behind the cursor: each directory on the way keeps its next names (page.h), and when those are
 * more than memory is meant for, the upper directories forget theirs and are read again. */
#include "jobs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "names.h"
#include "page.h"

#define PAGE_BYTES ((size_t)4 << 20) /* of paths */
#define HELD_MAX ((size_t)32 << 20)  /* names that wait; what one directory keeps may be more */

struct frame {
	struct ks_page page;
	size_t at;	 /* in page */
	bool known;	 /* page holds what comes next; else it is read, from behind `after` */
	size_t path_len; /* of its path in listing->path, with the slash */
};

struct listing {
	struct ks_run *run;
	const struct ks_name *name;
	int dir;
	bool recursive;
	size_t limit, path_most;
	char path[PATH_MAX]; /* of the innermost frame, below dir */
	char after[NAME_MAX + 2];
	struct frame *frames;
	size_t depth, cap, held;
	/* the result */
	size_t emitted, bytes, skipped;
	char last[PATH_MAX]; /* path of the last record */
};

static int no_memory(struct ks_error *err)
{
	return ks_fail(err, KS_E_INTERNAL, "out of memory");
}

static void forget(struct listing *l, struct frame *frame)
{
	l->held -= frame->page.bytes;
	ks_page_free(&frame->page);
	frame->known = false;
}

static int push(struct listing *l, const char *key, struct ks_error *err)
{
	if (l->depth == l->cap) {
		const size_t cap = l->cap ? 2 * l->cap : 16;
		struct frame *more = realloc(l->frames, cap * sizeof(*more));
		if (!more)
			return no_memory(err);
		l->frames = more;
		l->cap = cap;
	}
	const size_t at = l->depth ? l->frames[l->depth - 1].path_len : 0;
	(void)snprintf(l->path + at, sizeof(l->path) - at, "%s", key);
	l->frames[l->depth++] = (struct frame){ .path_len = at + strlen(key) };
	l->after[0] = '\0';
	for (size_t i = 0; l->held > HELD_MAX && i + 2 < l->depth; i++)
		forget(l, &l->frames[i]);
	return 0;
}

/* What is behind the directory that ends here, in the one above it. */
static void pop(struct listing *l)
{
	struct frame *frame = &l->frames[--l->depth];

	forget(l, frame);
	if (l->depth == 0)
		return;
	const size_t at = l->frames[l->depth - 1].path_len;
	(void)snprintf(l->after, sizeof(l->after), "%.*s", (int)(frame->path_len - at), l->path + at);
	l->path[at] = '\0';
}

static void look_at_entries(struct ks_page *page, int dir)
{
	struct stat st;

	for (size_t i = 0; i < page->count; i++) {
		struct ks_page_entry *entry = &page->entries[i];
		if (strchr(entry->key, '/') || fstatat(dir, entry->key, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue; /* it has gone: type stays -1 */
		entry->type = ks_file_type(st.st_mode);
		entry->size = st.st_size;
		entry->mtime_ms = st.st_mtim.tv_sec * 1000LL + st.st_mtim.tv_nsec / 1000000;
	}
}

static bool is_dir(int dir, const struct dirent *d)
{
	struct stat st;

	if (d->d_type != DT_UNKNOWN)
		return d->d_type == DT_DIR;
	return fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* The next names of the innermost directory, behind l->after. 0 or -errno. */
static int read_frame(struct listing *l)
{
	struct frame *frame = &l->frames[l->depth - 1];
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%.*s", frame->path_len ? (int)frame->path_len - 1 : 1, frame->path_len ? l->path : ".");
	KS_AUTOCLOSE int fd = ks_open_beneath(l->dir, path, O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	if (fd < 0)
		return fd;
	KS_CLEANUP(close_dir) DIR *dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)KS_TAKE_FD(fd);
	ks_page_begin(&frame->page, l->after, l->limit - l->emitted + 1); /* one more, to know that there is more */
	const struct dirent *d;
	while (errno = 0, (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		ks_page_add(&frame->page, d->d_name, false);
		if (l->recursive && is_dir(dirfd(dir), d))
			ks_page_add(&frame->page, d->d_name, true);
	}
	int rc = errno ? -errno : frame->page.failed ? -ENOMEM : 0;
	ks_page_end(&frame->page);
	look_at_entries(&frame->page, dirfd(dir));
	frame->known = true;
	frame->at = 0;
	l->held += frame->page.bytes;
	return rc;
}

/* The listed directory itself must be there; others may go at any time, or be closed to the box's user. */
static int read_frame_or_leave(struct listing *l, struct ks_error *err)
{
	int rc = read_frame(l);

	if (rc == 0)
		return 0;
	if (rc == -ENOMEM)
		return no_memory(err);
	if (l->depth == 1)
		return ks_name_fail(l->name, -rc, err);
	if (rc != -ENOENT && rc != -ENOTDIR && rc != -ELOOP)
		l->skipped++;
	pop(l);
	return 0;
}

/* False: the page is full. */
static bool emit(struct listing *l, const struct ks_page_entry *entry)
{
	const size_t at = l->frames[l->depth - 1].path_len, len = at + strlen(entry->key);

	if (l->emitted == l->limit || l->bytes + len > PAGE_BYTES)
		return false;
	struct ks_buf *record = ks_run_record(l->run);
	(void)snprintf(l->last, sizeof(l->last), "%.*s%s", (int)at, l->path, entry->key);
	ks_pack_bytes(record, l->last, len);
	ks_pack_int(record, entry->type);
	ks_pack_int(record, entry->size);
	ks_pack_int(record, entry->mtime_ms);
	ks_run_record_end(l->run);
	l->emitted++;
	l->bytes += len;
	return true;
}

/* *ret_full: the page ends before everything was told. */
static int walk(struct listing *l, bool *ret_full, struct ks_error *err)
{
	int rc = 0;

	while (rc == 0 && l->depth > 0) {
		struct frame *frame = &l->frames[l->depth - 1];
		if (!frame->known) {
			rc = read_frame_or_leave(l, err);
			continue;
		}
		if (frame->at == frame->page.count) {
			if (frame->page.more && frame->page.count > 0) {
				(void)snprintf(l->after, sizeof(l->after), "%s", frame->page.entries[frame->at - 1].key);
				forget(l, frame);
			} else {
				pop(l);
			}
			continue;
		}
		const struct ks_page_entry *entry = &frame->page.entries[frame->at];
		const bool below = strchr(entry->key, '/');
		if (frame->path_len + strlen(entry->key) - below > l->path_most) {
			l->skipped += !below; /* no request could name it */
		} else if (below) {
			frame->at++;
			rc = push(l, entry->key, err);
			continue;
		} else if (entry->type >= 0 && !emit(l, entry)) {
			*ret_full = true;
			return 0;
		}
		frame->at++;
	}
	return rc;
}

/* The directories above the cursor, which are read when the one below ends; and in the innermost: behind its last name. */
static int resume(struct listing *l, const char *cursor, struct ks_error *err)
{
	int rc = push(l, "", err);

	for (const char *slash; rc == 0 && (slash = strchr(cursor, '/')); cursor = slash + 1) {
		char key[NAME_MAX + 2];
		(void)snprintf(key, sizeof(key), "%.*s", (int)(slash + 1 - cursor), cursor);
		rc = push(l, key, err);
	}
	(void)snprintf(l->after, sizeof(l->after), "%s", cursor);
	return rc;
}

static void free_listing(struct listing *l)
{
	while (l->depth > 0)
		forget(l, &l->frames[--l->depth]);
	free(l->frames);
}

static int list(struct listing *l, struct ks_name *name, const char *cursor, struct ks_buf *ret_result, struct ks_error *err)
{
	bool full = false;

	if (ks_name_follow(name, false, err) < 0)
		return -1;
	KS_AUTOCLOSE int dir = ks_name_open(name, O_PATH | O_DIRECTORY, err);
	if (dir < 0)
		return -1;
	l->name = name;
	l->dir = dir;
	if (resume(l, cursor, err) < 0 || walk(l, &full, err) < 0)
		return -1;
	ks_pack_int(ret_result, full ? (l->recursive ? 'r' : 'd') : 0);
	ks_pack_string(ret_result, full ? l->last : "");
	ks_pack_int(ret_result, (int64_t)l->skipped);
	return 0;
}

int ks_job_list(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTONAME struct ks_name name = { 0 };
	KS_AUTOFREE struct listing *l = calloc(1, sizeof(*l));
	size_t cursor_len;

	if (!l)
		return no_memory(err);
	if (ks_name_unpack(run, in, "/path", true, false, &name, err) < 0)
		return -1;
	l->run = run;
	l->recursive = ks_unpack_int(in) != 0;
	const int64_t limit = ks_unpack_int(in);
	const char *cursor = ks_unpack_bytes(in, &cursor_len);
	const int64_t in_front = ks_unpack_int(in);
	if (!ks_unpack_end(in) || limit < 1 || in_front < 0 || in_front >= PATH_MAX)
		ks_run_damaged();
	l->limit = (size_t)limit;
	l->path_most = (size_t)(PATH_MAX - 1 - in_front);
	if (cursor_len > 0 && !(cursor = ks_cursor_path(cursor, cursor_len, l->recursive)))
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/cursor", "this is no nextCursor of such a list");
	int rc = list(l, &name, cursor, ret_result, err);
	free_listing(l);
	return rc;
}
