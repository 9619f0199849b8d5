/* restore.c: KS_JOB_RESTORE: verifies an archive (fds[0]) whole, then extracts it into KS_RESTORE_NAME/new of root 0, where nobody looks.
 * Request: links, most bytes, most names, JSON pointer. Result: entries, bytes. KS_JOB_SWAP puts it in place, KS_JOB_SWEEP away. */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "names.h"
#include "staging.h"
#include "unpack.h"

struct directory {
	size_t at; /* in names */
	unsigned mode;
	struct timespec mtime;
};

struct extraction {
	struct ks_run *run;
	int top; /* KS_RESTORE_NAME/new */
	int parent, file;
	char parent_path[KS_ARCHIVE_PATH + 1];
	struct ks_buf names;
	struct directory *directories; /* their modes and times come last: what is put into them changes both */
	size_t count, cap;
	int64_t step; /* of two passes */
	int64_t size; /* of the archive */
};

static int fail(const char *path, int error, struct ks_error *err)
{
	const struct ks_name name = { .path = path, .pointer = "" };

	return ks_name_fail(&name, error, err);
}

/* ---- parents ---- */

/* Those that have no entry of their own: as mkdir makes them. */
static int make_parents(int top, char *path, struct ks_error *err)
{
	for (char *slash = strchr(path, '/');; slash = strchr(slash + 1, '/')) {
		if (slash)
			*slash = '\0';
		char *last = strrchr(path, '/');
		if (last)
			*last = '\0';
		KS_AUTOCLOSE int dir = last ? ks_open_beneath(top, path, O_PATH | O_DIRECTORY, KS_BENEATH_STAY) : dup(top);
		if (last)
			*last = '/';
		int rc = dir < 0 ? dir : mkdirat(dir, last ? last + 1 : path, 0755) < 0 && errno != EEXIST ? -errno : 0;
		if (rc < 0)
			return fail(path, -rc, err);
		if (!slash)
			return 0;
		*slash = '/';
	}
}

/* The directory that holds the entry, and its last name. */
static int open_parent(struct extraction *x, const char *path, const char **ret_name, struct ks_error *err)
{
	const char *slash = strrchr(path, '/');
	const size_t len = slash ? (size_t)(slash - path) : 0;

	*ret_name = slash ? slash + 1 : path;
	if (len == 0)
		return x->top;
	if (x->parent >= 0 && strlen(x->parent_path) == len && memcmp(x->parent_path, path, len) == 0)
		return x->parent;
	ks_close(&x->parent);
	memcpy(x->parent_path, path, len);
	x->parent_path[len] = '\0';
	int fd = ks_open_beneath(x->top, x->parent_path, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
	if (fd == -ENOENT) {
		if (make_parents(x->top, x->parent_path, err) < 0)
			return -1;
		fd = ks_open_beneath(x->top, x->parent_path, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
	}
	if (fd < 0)
		return fail(path, -fd, err);
	x->parent = fd;
	return fd;
}

/* ---- entries ---- */

static int remember_directory(struct extraction *x, const struct ks_tar_entry *entry, struct ks_error *err)
{
	if (x->count == x->cap) {
		const size_t cap = x->cap ? 2 * x->cap : 256;
		struct directory *more = realloc(x->directories, cap * sizeof(*more));
		if (!more)
			return ks_fail(err, KS_E_INTERNAL, "out of memory");
		x->directories = more;
		x->cap = cap;
	}
	x->directories[x->count++] = (struct directory){ x->names.len, entry->mode, entry->mtime };
	ks_buf_add(&x->names, entry->path, strlen(entry->path) + 1);
	return x->names.failed ? ks_fail(err, KS_E_INTERNAL, "out of memory") : 0;
}

static int make_directory(struct extraction *x, int parent, const char *name, const struct ks_tar_entry *entry, struct ks_error *err)
{
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST) /* it may have been made for what came before it */
		return fail(entry->path, errno, err);
	return remember_directory(x, entry, err);
}

static int make_hardlink(const struct extraction *x, int parent, const char *name, const struct ks_tar_entry *entry, struct ks_error *err)
{
	const char *slash = strrchr(entry->target, '/');
	char path[KS_ARCHIVE_PATH + 1] = ".";

	if (slash) {
		memcpy(path, entry->target, (size_t)(slash - entry->target));
		path[slash - entry->target] = '\0';
	}
	KS_AUTOCLOSE int from = ks_open_beneath(x->top, path, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
	if (from < 0)
		return fail(entry->path, -from, err);
	return linkat(from, slash ? slash + 1 : entry->target, parent, name, 0) < 0 ? fail(entry->path, errno, err) : 0;
}

static int on_entry(void *arg, const struct ks_tar_entry *entry, struct ks_error *err)
{
	struct extraction *x = arg;
	const char *name;
	const int parent = open_parent(x, entry->path, &name, err);

	if (parent < 0)
		return -1;
	switch (entry->type) {
	case KS_TAR_DIRECTORY:
		return make_directory(x, parent, name, entry, err);
	case KS_TAR_HARDLINK:
		return make_hardlink(x, parent, name, entry, err);
	case KS_TAR_SYMLINK: {
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, entry->mtime };
		if (symlinkat(entry->target, parent, name) < 0 || utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0)
			return fail(entry->path, errno, err);
		return 0;
	}
	case KS_TAR_FILE:
		break;
	}
	x->file = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	return x->file < 0 ? fail(entry->path, errno, err) : 0;
}

static int on_content(void *arg, int64_t offset, const void *data, size_t len, struct ks_error *err)
{
	const struct extraction *x = arg;

	for (const char *at = data; len > 0;) {
		ssize_t n = pwrite(x->file, at, len, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(KS_RESTORE_NAME, errno, err);
		at += n;
		offset += n;
		len -= (size_t)n;
	}
	return 0;
}

/* No set-id and sticky bits; the owner can read his files, and look into, change and remove his directories. */
static int on_entry_end(void *arg, const struct ks_tar_entry *entry, struct ks_error *err)
{
	struct extraction *x = arg;
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, entry->mtime };

	if (entry->type != KS_TAR_FILE)
		return 0;
	KS_AUTOCLOSE int file = KS_TAKE_FD(x->file);
	if (ftruncate(file, entry->size) < 0 || fchmod(file, (entry->mode & 0777) | 0400) < 0 || futimens(file, times) < 0)
		return fail(entry->path, errno, err);
	return 0;
}

static int finish_directories(struct extraction *x, struct ks_error *err)
{
	for (size_t i = x->count; i-- > 0;) {
		const struct directory *d = &x->directories[i];
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, d->mtime };
		KS_AUTOCLOSE int fd = ks_open_beneath(x->top, x->names.data + d->at, O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
		if (fd < 0)
			return fail(x->names.data + d->at, -fd, err);
		if (fchmod(fd, (d->mode & 0777) | 0700) < 0 || futimens(fd, times) < 0)
			return fail(x->names.data + d->at, errno, err);
	}
	return 0;
}

/* ---- the job ---- */

static void on_progress(void *arg, int64_t done, int64_t size)
{
	struct extraction *x = arg;

	x->size = size;
	ks_run_progress(x->run, x->step * size + done, 2 * size, false);
}

static int extract(struct extraction *x, const struct ks_unpack_rules *rules, struct ks_unpack_facts *facts, struct ks_error *err)
{
	const struct ks_unpack_sink sink = { on_entry, on_content, on_entry_end, x };
	struct ks_unpack_facts first;

	if (ks_unpack_archive(x->run->fds[0], rules, NULL, on_progress, x, &first, err) < 0)
		return -1;
	x->step = 1;
	x->top = ks_staging_make(x->run->roots->fds[0], err);
	if (x->top < 0 || ks_unpack_archive(x->run->fds[0], rules, &sink, on_progress, x, facts, err) < 0 ||
	    finish_directories(x, err) < 0)
		return -1;
	ks_run_progress(x->run, 2 * x->size, 2 * x->size, true);
	if (memcmp(first.digest, facts->digest, sizeof(first.digest)) == 0)
		return 0;
	(void)ks_fail(err, KS_E_CHANGED, "the archive changed while it was read");
	return ks_error_hint(err, "restore a file that nobody writes to");
}

int ks_job_restore(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	struct extraction x = { .run = run, .top = -1, .parent = -1, .file = -1 };
	struct ks_unpack_rules rules;
	struct ks_unpack_facts facts;

	rules.links = ks_unpack_int(in) == KS_LINKS_INSIDE ? KS_LINKS_INSIDE : KS_LINKS_REFUSE;
	rules.max_bytes = ks_unpack_int(in);
	rules.max_entries = (size_t)ks_unpack_int(in);
	const char *pointer = ks_unpack_bytes(in, NULL);
	if (!ks_unpack_end(in) || run->fd_count != 1 || run->roots->count < 1)
		ks_run_damaged();
	int rc = extract(&x, &rules, &facts, err);
	ks_close(&x.top);
	ks_close(&x.parent);
	ks_close(&x.file);
	ks_buf_free(&x.names);
	free(x.directories);
	if (rc < 0)
		return err->reason == KS_E_ARCHIVE_REFUSED || err->reason == KS_E_CHANGED ? ks_error_at(err, pointer) : -1;
	ks_pack_int(ret_result, facts.entries);
	ks_pack_int(ret_result, facts.bytes);
	return 0;
}
