/* tar_read.c: bytes to entries. Every number is a number, every header is one of those that are known, nothing is said twice. */
#include "tar.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tar_header.h"

/* What an extended header says of the entry behind it. */
struct extended {
	bool has_path, has_target, has_size, has_mtime, has_major, has_real_size, sparse_name, gnu_path, gnu_target, any;
	int64_t size, major, minor, real_size;
	struct timespec mtime;
};

/* A name as it may stand in a message: what a terminal obeys does not. */
static void show(const struct ks_tar_reader *reader, const char *name, char *text, size_t size)
{
	size_t at = 0;

	for (; *name && at + 1 < size; name++)
		text[at++] = (unsigned char)*name < 0x20 || *name == 0x7f ? '?' : *name;
	text[at] = '\0';
	if (at == 0)
		(void)snprintf(text, size, "number %zu", reader->count);
}

KS_PRINTF(4, 5)
static int refuse(const struct ks_tar_reader *reader, const char *name, struct ks_error *err, const char *fmt, ...)
{
	char shown[100], why[160];
	va_list ap;

	show(reader, name, shown, sizeof(shown));
	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "entry %s: %s", shown, why);
	return ks_error_hint(err, "make the archive again, with session/snapshot, GNU tar --format=pax or Python's tarfile");
}

/* ---- bytes ---- */

static int read_all(struct ks_tar_reader *reader, void *buf, size_t len, struct ks_error *err)
{
	ssize_t n = reader->source.read(reader->source.arg, buf, len, err);

	if (n < 0)
		return -1;
	if ((size_t)n == len)
		return 0;
	(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "the archive ends in the middle, in or behind entry number %zu", reader->count);
	return ks_error_hint(err, "it was cut off: copy or make it again");
}

static int pass_over(struct ks_tar_reader *reader, int64_t len, struct ks_error *err)
{
	char buf[16384];

	while (len > 0) {
		size_t n = len < (int64_t)sizeof(buf) ? (size_t)len : sizeof(buf);
		if (read_all(reader, buf, n, err) < 0)
			return -1;
		len -= (int64_t)n;
	}
	return 0;
}

static bool all_zero(const char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i])
			return false;
	return true;
}

/* Behind the first block of zeros come zeros only, and not for ever. */
static int read_end(struct ks_tar_reader *reader, struct ks_error *err)
{
	char block[16384];
	int64_t total = 0;

	for (;;) {
		ssize_t n = reader->source.read(reader->source.arg, block, sizeof(block), err);
		if (n < 0)
			return -1;
		total += n;
		if (!all_zero(block, (size_t)n) || total > KS_ARCHIVE_PADDING) {
			(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "something stands behind the end of the archive, after %zu entries",
				      reader->count);
			return ks_error_hint(err, "archives that were put one behind the other have to be made one");
		}
		if ((size_t)n < sizeof(block))
			return 0;
	}
}

/* ---- extended headers ---- */

static int take_name(struct ks_tar_reader *reader, struct ks_buf *name, bool *has, const char *value, size_t len, struct ks_error *err)
{
	if (*has)
		return refuse(reader, "", err, "it has two names");
	if (len == 0 || memchr(value, '\0', len))
		return refuse(reader, "", err, "a name in its extended header %s", len ? "has a NUL" : "is empty");
	*has = true;
	ks_buf_clear(name);
	ks_buf_add(name, value, len);
	ks_buf_char(name, '\0');
	return 0;
}

static bool is(const char *key, size_t len, const char *word)
{
	return strlen(word) == len && memcmp(key, word, len) == 0;
}

/* What is not named here says nothing about what is restored: owners, other times, comments, extended attributes. */
static int take_record(struct ks_tar_reader *reader, struct extended *x, const char *key, size_t key_len, const char *value, size_t len,
		       struct ks_error *err)
{
	const struct {
		const char *key;
		bool *has;
		int64_t *value;
	} numbers[] = {
		{ "size", &x->has_size, &x->size },
		{ "GNU.sparse.major", &x->has_major, &x->major },
		{ "GNU.sparse.minor", NULL, &x->minor },
		{ "GNU.sparse.realsize", &x->has_real_size, &x->real_size },
	};

	if (is(key, key_len, "path") && !x->sparse_name)
		return take_name(reader, &reader->path, &x->has_path, value, len, err);
	if (is(key, key_len, "path"))
		return 0; /* of a file with holes this is where older programs put it */
	if (is(key, key_len, "linkpath"))
		return take_name(reader, &reader->target, &x->has_target, value, len, err);
	if (is(key, key_len, "GNU.sparse.name")) {
		bool again = x->sparse_name;
		x->has_path = x->sparse_name = true;
		return take_name(reader, &reader->path, &again, value, len, err);
	}
	if (is(key, key_len, "mtime")) {
		x->has_mtime = true;
		return ks_tar_time(value, len, &x->mtime) < 0 ? refuse(reader, "", err, "its mtime is not a time") : 0;
	}
	for (size_t i = 0; i < KS_COUNT(numbers); i++) {
		if (!is(key, key_len, numbers[i].key))
			continue;
		if ((numbers[i].has && *numbers[i].has) || ks_tar_decimal(value, value + len, numbers[i].value) < 0)
			return refuse(reader, "", err, "%s is not one number", numbers[i].key);
		if (numbers[i].has)
			*numbers[i].has = true;
		return 0;
	}
	if (key_len >= 11 && memcmp(key, "GNU.sparse.", 11) == 0)
		return refuse(reader, "", err, "its holes are in an old form (pack with tar --format=pax --sparse)");
	return 0;
}

/* `global`: a header for all entries that follow. Harmless ones pass: git archive puts a comment there. */
static int take_records(struct ks_tar_reader *reader, struct extended *x, bool global, struct ks_error *err)
{
	const char *at = reader->records.data, *end = at + reader->records.len;
	struct extended all = { 0 };

	while (at < end) {
		int64_t len;
		const char *blank = memchr(at, ' ', (size_t)(end - at));
		if (!blank || ks_tar_decimal(at, blank, &len) < 0 || len > end - at || at + len <= blank + 2 || at[len - 1] != '\n')
			return refuse(reader, "", err, "its extended header is damaged");
		const char *value = memchr(blank, '=', (size_t)(at + len - blank));
		if (!value || value == blank + 1)
			return refuse(reader, "", err, "its extended header is damaged");
		if (take_record(reader, global ? &all : x, blank + 1, (size_t)(value - blank - 1), value + 1,
				(size_t)(at + len - 1 - (value + 1)), err) < 0)
			return -1;
		at += len;
	}
	if (all.has_path || all.has_target || all.has_size || all.has_major || all.has_real_size)
		return refuse(reader, "", err, "a global header names or measures all entries");
	return 0;
}

static int read_records(struct ks_tar_reader *reader, int64_t size, int64_t max, struct ks_error *err)
{
	ks_buf_clear(&reader->records);
	if (size > max)
		return refuse(reader, "", err, "a header of %" PRId64 " bytes, more than %" PRId64, size, max);
	char *room = ks_buf_reserve(&reader->records, (size_t)size + 1);
	if (!room)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	if (read_all(reader, room, (size_t)size, err) < 0 || pass_over(reader, (int64_t)ks_tar_padding(size), err) < 0)
		return -1;
	reader->records.len = (size_t)size;
	return 0;
}

/* GNU's long name: the bytes of a name, with a NUL behind. */
static int read_gnu_name(struct ks_tar_reader *reader, struct ks_buf *name, bool *has, int64_t size, struct ks_error *err)
{
	if (read_records(reader, size, KS_ARCHIVE_PATH + 2, err) < 0)
		return -1;
	if (reader->records.len > 0 && reader->records.data[reader->records.len - 1] == '\0')
		reader->records.len--;
	return take_name(reader, name, has, reader->records.data, reader->records.len, err);
}

/* ---- headers ---- */

static int check_header(const struct ks_tar_reader *reader, const struct ks_tar_header *header, struct ks_error *err)
{
	static const char v7[sizeof(header->magic) + sizeof(header->version)];
	int64_t sum;

	if (ks_tar_number(header->checksum, sizeof(header->checksum), &sum) < 0 || sum != (int64_t)ks_tar_checksum(header)) {
		if (reader->count > 1)
			return refuse(reader, "", err, "its header has a wrong checksum");
		(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "this is no tar archive");
		return ks_error_hint(err, "archives are .tar, .tar.gz or .tar.zst");
	}
	if (memcmp(header->magic, "ustar", 5) != 0 && memcmp(header->magic, v7, sizeof(v7)) != 0)
		return refuse(reader, "", err, "its header is of an unknown format");
	return 0;
}

/* prefix/name; only POSIX headers have a prefix. */
static void header_name(const struct ks_tar_header *header, struct ks_buf *name)
{
	const bool posix = memcmp(header->magic, "ustar", 6) == 0;

	ks_buf_clear(name);
	if (posix && header->prefix[0]) {
		ks_buf_add(name, header->prefix, strnlen(header->prefix, sizeof(header->prefix)));
		ks_buf_char(name, '/');
	}
	ks_buf_add(name, header->name, strnlen(header->name, sizeof(header->name)));
	ks_buf_char(name, '\0');
}

static int entry_type(const struct ks_tar_reader *reader, const struct ks_tar_header *header, enum ks_tar_type *ret, struct ks_error *err)
{
	const char *path = reader->path.data;
	const size_t len = strlen(path);

	switch (header->type) {
	case '\0': /* before POSIX a directory was a name with a slash behind it */
	case '0':
	case '7':
		*ret = header->type == '\0' && len > 0 && path[len - 1] == '/' ? KS_TAR_DIRECTORY : KS_TAR_FILE;
		return 0;
	case '5':
		*ret = KS_TAR_DIRECTORY;
		return 0;
	case '2':
		*ret = KS_TAR_SYMLINK;
		return 0;
	case '1':
		*ret = KS_TAR_HARDLINK;
		return 0;
	case '3':
	case '4':
		return refuse(reader, path, err, "it is a device");
	case '6':
		return refuse(reader, path, err, "it is a FIFO");
	case 'S':
		return refuse(reader, path, err, "its holes are in an old form (pack with tar --format=pax --sparse)");
	case 'M':
		return refuse(reader, path, err, "it is a piece of a file from another volume");
	default:
		return refuse(reader, path, err, "its type (%d) is unknown", header->type);
	}
}

/* The map in front of the content: how many, then offset and length of each, a line each. */
static int map_number(struct ks_tar_reader *reader, char *block, size_t *at, int64_t *ret, struct ks_error *err)
{
	char digits[20];
	size_t n = 0;

	for (;; (*at)++) {
		if (*at == KS_TAR_BLOCK) {
			if (reader->left < KS_TAR_BLOCK)
				break;
			if (read_all(reader, block, KS_TAR_BLOCK, err) < 0)
				return -1;
			reader->left -= KS_TAR_BLOCK;
			*at = 0;
		}
		if (block[*at] == '\n' || n == sizeof(digits))
			break;
		digits[n++] = block[*at];
	}
	if (*at == KS_TAR_BLOCK || ks_tar_decimal(digits, digits + n, ret) < 0)
		return refuse(reader, reader->path.data, err, "the map of its holes is damaged");
	(*at)++;
	return 0;
}

static int read_map(struct ks_tar_reader *reader, int64_t real_size, struct ks_error *err)
{
	char block[KS_TAR_BLOCK];
	size_t at = KS_TAR_BLOCK;
	int64_t count, end = 0, content = 0;

	if (map_number(reader, block, &at, &count, err) < 0)
		return -1;
	if (count > KS_ARCHIVE_EXTENTS)
		return refuse(reader, reader->path.data, err, "it has more than %u pieces between holes", KS_ARCHIVE_EXTENTS);
	reader->extents = calloc((size_t)count + 1, sizeof(*reader->extents));
	if (!reader->extents)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	for (int64_t i = 0; i < count; i++) {
		struct ks_extent *e = &reader->extents[i];
		if (map_number(reader, block, &at, &e->offset, err) < 0 || map_number(reader, block, &at, &e->length, err) < 0)
			return -1;
		if (e->offset < end || e->length > real_size || e->offset > real_size - e->length)
			return refuse(reader, reader->path.data, err, "the map of its holes is damaged");
		end = e->offset + e->length;
		content += e->length;
	}
	if (content != reader->left)
		return refuse(reader, reader->path.data, err, "the map of its holes does not fit its content");
	return (int)count;
}

static int finish_entry(struct ks_tar_reader *reader, const struct ks_tar_header *header, const struct extended *x,
			struct ks_tar_entry *ret, struct ks_error *err)
{
	int64_t size, mode, mtime;

	if (!x->has_path)
		header_name(header, &reader->path);
	if (!x->has_target) {
		ks_buf_clear(&reader->target);
		ks_buf_add(&reader->target, header->linkname, strnlen(header->linkname, sizeof(header->linkname)));
		ks_buf_char(&reader->target, '\0');
	}
	if (reader->path.failed || reader->target.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	const char *path = reader->path.data;
	if (ks_tar_number(header->size, sizeof(header->size), &size) < 0 || size < 0)
		return refuse(reader, path, err, "its size is not a size");
	if (ks_tar_number(header->mode, sizeof(header->mode), &mode) < 0 || mode < 0 || mode > 07777777)
		return refuse(reader, path, err, "its mode is not a mode");
	if (ks_tar_number(header->mtime, sizeof(header->mtime), &mtime) < 0 || mtime > INT64_C(1) << 40 || mtime < -(INT64_C(1) << 40))
		return refuse(reader, path, err, "its mtime is not a time");
	*ret = (struct ks_tar_entry){ .path = path, .size = x->has_size ? x->size : size, .mode = (unsigned)mode & 07777,
				      .mtime = x->has_mtime ? x->mtime : (struct timespec){ .tv_sec = mtime } };
	if (entry_type(reader, header, &ret->type, err) < 0)
		return -1;
	if (ret->type != KS_TAR_FILE && ret->size > 0)
		return refuse(reader, path, err, "only a file has content, and it is none");
	if (ret->type == KS_TAR_SYMLINK || ret->type == KS_TAR_HARDLINK)
		ret->target = reader->target.data;
	reader->left = ret->size;
	reader->padding = (int64_t)ks_tar_padding(ret->size);
	reader->sparse = x->has_major || x->has_real_size || x->sparse_name;
	if (reader->sparse) {
		if (ret->type != KS_TAR_FILE || x->major != 1 || x->minor != 0 || !x->has_real_size)
			return refuse(reader, path, err, "its holes are in an old form (pack with tar --format=pax --sparse)");
		int count = read_map(reader, x->real_size, err);
		if (count < 0)
			return -1;
		ret->size = x->real_size;
		ret->extents = reader->extents;
		ret->extent_count = (size_t)count;
	}
	ret->content = reader->left;
	return 1;
}

static int begin_next(struct ks_tar_reader *reader, struct ks_error *err)
{
	if (pass_over(reader, reader->left, err) < 0 || pass_over(reader, reader->padding, err) < 0)
		return -1;
	reader->left = reader->padding = reader->extent_done = 0;
	reader->extent = 0;
	reader->count++;
	free(KS_TAKE_PTR(reader->extents));
	return 0;
}

int ks_tar_next(struct ks_tar_reader *reader, struct ks_tar_entry *ret, struct ks_error *err)
{
	struct ks_tar_header header;
	struct extended x = { 0 };

	if (begin_next(reader, err) < 0)
		return -1;
	for (int headers = 0; headers < 64; headers++) {
		int64_t size = 0;
		if (read_all(reader, &header, sizeof(header), err) < 0)
			return -1;
		if (all_zero((const char *)&header, sizeof(header))) {
			reader->count--;
			if (x.any)
				return refuse(reader, "", err, "an extended header belongs to no entry");
			return read_end(reader, err);
		}
		const bool extra = header.type && strchr("xgLK", header.type);
		if (check_header(reader, &header, err) < 0)
			return -1;
		if (!extra)
			return finish_entry(reader, &header, &x, ret, err);
		if (ks_tar_number(header.size, sizeof(header.size), &size) < 0 || size < 0)
			return refuse(reader, "", err, "the size of its extended header is not a size");
		int rc;
		if (header.type == 'L')
			rc = read_gnu_name(reader, &reader->path, &x.has_path, size, err);
		else if (header.type == 'K')
			rc = read_gnu_name(reader, &reader->target, &x.has_target, size, err);
		else if ((rc = read_records(reader, size, KS_ARCHIVE_RECORDS, err)) >= 0)
			rc = take_records(reader, &x, header.type == 'g', err);
		if (rc < 0)
			return -1;
		x.any |= header.type != 'g';
	}
	return refuse(reader, "", err, "more than 64 headers stand in front of it");
}

ssize_t ks_tar_content(struct ks_tar_reader *reader, const struct ks_tar_entry *entry, void *buf, size_t len, int64_t *ret_offset,
		       struct ks_error *err)
{
	while (entry->extents && reader->extent < entry->extent_count &&
	       reader->extent_done == entry->extents[reader->extent].length) {
		reader->extent++;
		reader->extent_done = 0;
	}
	const int64_t here = entry->extents && reader->extent < entry->extent_count ?
				     entry->extents[reader->extent].length - reader->extent_done :
				     reader->left;
	if (here < (int64_t)len)
		len = (size_t)here;
	if (len == 0)
		return 0;
	*ret_offset = entry->extents ? entry->extents[reader->extent].offset + reader->extent_done : entry->size - reader->left;
	if (read_all(reader, buf, len, err) < 0)
		return -1;
	reader->left -= (int64_t)len;
	reader->extent_done += (int64_t)len;
	return (ssize_t)len;
}

void ks_tar_reader_free(struct ks_tar_reader *reader)
{
	ks_buf_free(&reader->path);
	ks_buf_free(&reader->target);
	ks_buf_free(&reader->records);
	free(KS_TAKE_PTR(reader->extents));
}
