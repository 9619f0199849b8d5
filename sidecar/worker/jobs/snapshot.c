/* snapshot.c: KS_JOB_SNAPSHOT: packs root 0 as .tar.gz, to fds[0], or without one in records. Request: links, most bytes of the archive.
 * Records (their first integer is an enum ks_snapshot_record): a piece of the archive; a path that was left out, and why. Result: bytes,
 * entries, SHA-256 of the archive, how many paths were left out without a record. */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "deflate.h"
#include "links.h"
#include "names.h"
#include "seen.h"
#include "survey.h"
#include "tar.h"

#define PIECE ((size_t)64 << 10)

struct snapshot {
	struct ks_run *run;
	int root;
	enum ks_links links;
	struct ks_survey survey;
	struct ks_deflate *deflate;
	struct ks_seen inodes; /* of files with several names */
	size_t *first;	       /* by index in inodes: the item that has it */
	struct ks_buf header;
	struct ks_extent *extents;
	int64_t entries, skipped, content, done;
	char piece[PIECE];
};

static void skip(void *arg, const char *path, const char *reason)
{
	struct snapshot *s = arg;

	if (++s->skipped > KS_ARCHIVE_SKIPPED)
		return;
	struct ks_buf *record = ks_run_record(s->run);
	ks_pack_int(record, KS_SNAPSHOT_SKIPPED);
	ks_pack_string(record, path);
	ks_pack_string(record, reason);
	ks_run_record_end(s->run);
}

static int write_out(void *arg, const void *data, size_t len, struct ks_error *err)
{
	struct snapshot *s = arg;

	if (s->run->fd_count == 0) {
		struct ks_buf *record = ks_run_record(s->run);
		ks_pack_int(record, KS_SNAPSHOT_PIECE);
		ks_pack_bytes(record, data, len);
		ks_run_record_end(s->run);
		return 0;
	}
	for (const char *at = data; len > 0;) {
		ssize_t n = write(s->run->fds[0], at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			const struct ks_name name = { .path = "the archive", .pointer = "/path" };
			return ks_name_fail(&name, errno, err);
		}
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int add_header(struct snapshot *s, const struct ks_tar_entry *entry, struct ks_error *err)
{
	ks_buf_clear(&s->header);
	ks_tar_write(&s->header, entry);
	if (s->header.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	s->entries++;
	return ks_deflate_add(s->deflate, s->header.data, s->header.len, err);
}

/* ---- files ---- */

/* Where the bytes are: SEEK_DATA and SEEK_HOLE, lseek(2). A file system that knows no holes says that all is data. 0: one piece, or too
 * many to be worth it, or it changes under us; then all of it is read. */
static size_t find_extents(struct snapshot *s, int fd, int64_t size)
{
	size_t count = 0;
	int64_t at = 0;

	while (at < size) {
		int64_t from = lseek(fd, at, SEEK_DATA);
		if (from < 0 && errno == ENXIO)
			break;
		int64_t to = from < at ? -1 : lseek(fd, from, SEEK_HOLE);
		if (to <= from || count + 1 == KS_ARCHIVE_EXTENTS)
			return 0;
		to = to < size ? to : size;
		if (from == 0 && to == size)
			return 0;
		if (from >= size)
			break;
		s->extents[count++] = (struct ks_extent){ from, to - from };
		at = to;
	}
	if (at < size) /* it ends with a hole: GNU tar finds the end by an empty piece there */
		s->extents[count++] = (struct ks_extent){ size, 0 };
	return count;
}

/* `length` bytes, whatever the file has now: what is missing is zeros. False: something was. */
static int copy(struct snapshot *s, int fd, struct ks_extent extent, bool *whole, struct ks_error *err)
{
	int64_t left = extent.length;

	while (left > 0) {
		const size_t want = left < (int64_t)PIECE ? (size_t)left : PIECE;
		ssize_t n = pread(fd, s->piece, want, extent.offset + extent.length - left);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			*whole = false;
			return ks_deflate_zeros(s->deflate, left, err);
		}
		if (ks_deflate_add(s->deflate, s->piece, (size_t)n, err) < 0)
			return -1;
		left -= n;
		ks_run_progress(s->run, s->done + extent.length - left, s->survey.bytes, false);
	}
	return 0;
}

static int add_content(struct snapshot *s, int fd, struct ks_tar_entry *entry, bool *whole, struct ks_error *err)
{
	const struct ks_extent all = { 0, entry->size };

	entry->extent_count = find_extents(s, fd, entry->size);
	entry->extents = entry->extent_count ? s->extents : NULL;
	entry->content = entry->extents ? 0 : entry->size;
	for (size_t i = 0; i < entry->extent_count; i++)
		entry->content += s->extents[i].length;
	s->content += entry->content;
	if (s->content > KS_ARCHIVE_BYTES) {
		(void)ks_fail(err, KS_E_TOO_LARGE, "the files of the workspace have more than %lld GiB",
			      (long long)(KS_ARCHIVE_BYTES >> 30));
		return ks_error_hint(err, "a snapshot that could not be restored is not made: remove what can be made again");
	}
	if (add_header(s, entry, err) < 0)
		return -1;
	if (!entry->extents && copy(s, fd, all, whole, err) < 0)
		return -1;
	for (size_t i = 0; i < entry->extent_count; i++)
		if (copy(s, fd, s->extents[i], whole, err) < 0)
			return -1;
	return ks_deflate_zeros(s->deflate, (int64_t)ks_tar_padding(entry->content), err);
}

/* The first name of a file becomes the file, the others hard links to it. The earlier one, or NULL: this is the first. */
static const char *first_name(struct snapshot *s, const struct stat *st, size_t item)
{
	const uint64_t key[2] = { st->st_dev, st->st_ino };
	const size_t index = ks_seen_index(&s->inodes, (const char *)key, sizeof(key));

	if (index < s->inodes.count)
		return s->survey.items[s->first[index]].path;
	if (!s->first && !(s->first = calloc(s->survey.count, sizeof(*s->first))))
		return NULL; /* out of memory: it is stored once more */
	if (ks_seen_put(&s->inodes, (const char *)key, sizeof(key), KS_SEEN_FILE))
		s->first[index] = item;
	return NULL;
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static int skip_errno(struct snapshot *s, const char *path, int error)
{
	skip(s, path, error == ENOENT || error == EINVAL || error == ELOOP || error == ENOTDIR ? "changed" : "unreadable");
	return 0;
}

static int add_file(struct snapshot *s, size_t item, struct ks_error *err)
{
	const char *path = s->survey.items[item].path;
	struct stat before, after;
	bool whole = true;
	KS_AUTOCLOSE int fd = ks_open_regular(s->root, path);

	if (fd < 0 || fstat(fd, &before) < 0)
		return skip_errno(s, path, fd < 0 ? -fd : errno);
	if (before.st_size > KS_ARCHIVE_FILE) {
		skip(s, path, "too_large");
		return 0;
	}
	struct ks_tar_entry entry = { .type = KS_TAR_FILE, .path = path, .size = before.st_size, .mode = before.st_mode & 0777,
				      .mtime = before.st_mtim };
	const char *first = before.st_nlink > 1 ? first_name(s, &before, item) : NULL;
	if (first) {
		entry.type = KS_TAR_HARDLINK;
		entry.target = first;
		entry.size = 0;
		return add_header(s, &entry, err);
	}
	if (add_content(s, fd, &entry, &whole, err) < 0)
		return -1;
	if (!whole || fstat(fd, &after) < 0 || !same(&before, &after))
		skip(s, path, "changed"); /* it is in the archive, as long as it was at first */
	return 0;
}

/* ---- the others ---- */

static int add_directory(struct snapshot *s, const char *path, struct ks_error *err)
{
	struct stat st;
	KS_AUTOCLOSE int fd = ks_open_beneath(s->root, path, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);

	if (fd < 0 || fstat(fd, &st) < 0) {
		if (fd != -EXDEV) /* a mount point: the survey has said so */
			(void)skip_errno(s, path, fd < 0 ? -fd : errno);
		return 0;
	}
	const struct ks_tar_entry entry = { .type = KS_TAR_DIRECTORY, .path = path, .mode = st.st_mode & 0777, .mtime = st.st_mtim };
	return add_header(s, &entry, err);
}

static int add_symlink(struct snapshot *s, const char *path, struct ks_error *err)
{
	char above[KS_ARCHIVE_PATH + 1] = ".", target[KS_ARCHIVE_PATH + 1];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct stat st;

	if (s->links == KS_LINKS_REFUSE) {
		skip(s, path, "symlink");
		return 0;
	}
	if (slash) {
		memcpy(above, path, (size_t)(slash - path));
		above[slash - path] = '\0';
	}
	KS_AUTOCLOSE int dir = ks_open_beneath(s->root, above, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
	if (dir < 0 || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return skip_errno(s, path, dir < 0 ? -dir : errno);
	ssize_t n = readlinkat(dir, name, target, sizeof(target));
	if (n < 0)
		return skip_errno(s, path, errno);
	if (n == (ssize_t)sizeof(target)) {
		skip(s, path, "name_too_long");
		return 0;
	}
	target[n] = '\0';
	if (!ks_link_stays_inside(path, target)) {
		skip(s, path, "symlink_outside");
		return 0;
	}
	const struct ks_tar_entry entry = { .type = KS_TAR_SYMLINK, .path = path, .target = target, .mode = 0777, .mtime = st.st_mtim };
	return add_header(s, &entry, err);
}

/* ---- the job ---- */

static int add_all(struct snapshot *s, struct ks_error *err)
{
	for (size_t i = 0; i < s->survey.count; i++) {
		const struct ks_surveyed *item = &s->survey.items[i];
		int rc = item->type == S_IFDIR ? add_directory(s, item->path, err) :
			 item->type == S_IFLNK ? add_symlink(s, item->path, err) : add_file(s, i, err);
		if (rc < 0)
			return -1;
		s->done += item->type == S_IFREG ? item->size : 0;
		ks_run_progress(s->run, s->done, s->survey.bytes, false);
	}
	return ks_deflate_zeros(s->deflate, KS_TAR_END, err);
}

static int finish(struct snapshot *s, struct ks_buf *result, struct ks_error *err)
{
	unsigned char digest[32];
	int64_t bytes;

	if (ks_deflate_end(s->deflate, &bytes, digest, err) < 0)
		return -1;
	const int64_t in = ks_deflate_in(s->deflate);
	if (in > KS_ARCHIVE_RATIO_FROM && in / KS_ARCHIVE_RATIO > bytes) {
		(void)ks_fail(err, KS_E_TOO_LARGE, "the workspace packs to less than 1/%d, which restore takes for a bomb",
			      KS_ARCHIVE_RATIO);
		return ks_error_hint(err, "make holes of its zeros first: fallocate --dig-holes");
	}
	if (s->run->fd_count == 1 && fsync(s->run->fds[0]) < 0) {
		const struct ks_name name = { .path = "the archive", .pointer = "/path" };
		return ks_name_fail(&name, errno, err);
	}
	ks_run_progress(s->run, s->done, s->survey.bytes, true);
	ks_pack_int(result, bytes);
	ks_pack_int(result, s->entries);
	ks_pack_bytes(result, digest, sizeof(digest));
	ks_pack_int(result, s->skipped > KS_ARCHIVE_SKIPPED ? s->skipped - KS_ARCHIVE_SKIPPED : 0);
	return 0;
}

static int pack(struct snapshot *s, int64_t max_bytes, struct ks_buf *result, struct ks_error *err)
{
	s->extents = calloc(KS_ARCHIVE_EXTENTS, sizeof(*s->extents));
	if (!s->extents || ks_seen_init(&s->inodes) < 0)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	if (ks_survey_tree(&s->survey, err) < 0 || ks_deflate_new(max_bytes, write_out, s, &s->deflate, err) < 0 || add_all(s, err) < 0)
		return -1;
	return finish(s, result, err);
}

int ks_job_snapshot(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTOFREE struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	s->run = run;
	s->links = ks_unpack_int(in) == KS_LINKS_INSIDE ? KS_LINKS_INSIDE : KS_LINKS_REFUSE;
	const int64_t max_bytes = ks_unpack_int(in);
	if (!ks_unpack_end(in) || run->fd_count > 1 || run->roots->count < 1)
		ks_run_damaged();
	s->root = run->roots->fds[0];
	s->survey = (struct ks_survey){ .root = s->root, .skip = skip, .arg = s };
	int rc = pack(s, max_bytes, ret_result, err);
	ks_deflate_free(s->deflate);
	ks_survey_free(&s->survey);
	ks_seen_free(&s->inodes);
	ks_buf_free(&s->header);
	free(s->extents);
	free(s->first);
	return rc;
}
