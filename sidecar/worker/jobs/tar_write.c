/* tar_write.c: entries to bytes. What a ustar header can hold stands there, the rest in an extended header in front of it: names that are
 * long or not ASCII, large sizes, fractions of seconds, holes (GNU's format 1.0, which GNU tar and Python read). No ids and no user
 * names: a snapshot belongs to whoever restores it. */
#include "tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#include "tar_header.h"

#define OCTAL_MAX INT64_C(077777777777) /* eleven digits */

/* "len key=value\n", where len counts itself. */
static void add_record(struct ks_buf *out, const char *key, const char *value)
{
	const size_t rest = strlen(key) + strlen(value) + 3;
	size_t len = rest;

	for (int digits = 1; snprintf(NULL, 0, "%zu", len) + (int)rest != (int)len; digits++)
		len = rest + (size_t)digits;
	ks_buf_printf(out, "%zu %s=%s\n", len, key, value);
}

static void add_number(struct ks_buf *out, const char *key, int64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRId64, value);
	add_record(out, key, text);
}

static void add_time(struct ks_buf *out, struct timespec t)
{
	char text[40];
	const bool below = t.tv_sec < 0 && t.tv_nsec > 0; /* -1.5 is -2 s and 0.5 s */
	const int64_t whole = below ? t.tv_sec + 1 : t.tv_sec;

	(void)snprintf(text, sizeof(text), "%s%" PRId64 ".%09ld", below && whole == 0 ? "-" : "", whole,
		       below ? 1000000000 - t.tv_nsec : t.tv_nsec);
	add_record(out, "mtime", text);
}

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x80)
			return false;
	return true;
}

/* Path and link target: of a file with holes the path has a key of its own. */
static void add_names(struct ks_buf *out, const struct ks_tar_entry *entry)
{
	const bool path = strlen(entry->path) >= sizeof(((struct ks_tar_header *)0)->name) || !is_ascii(entry->path);
	const bool target = entry->target && (strlen(entry->target) > sizeof(((struct ks_tar_header *)0)->linkname) ||
					      !is_ascii(entry->target));
	const bool binary = !ks_utf8_valid(entry->path, strlen(entry->path)) ||
			    (entry->target && !ks_utf8_valid(entry->target, strlen(entry->target)));

	if (binary)
		add_record(out, "hdrcharset", "BINARY");
	if (entry->extents)
		add_record(out, "GNU.sparse.name", entry->path);
	else if (path)
		add_record(out, "path", entry->path);
	if (target)
		add_record(out, "linkpath", entry->target);
}

static void put_octal(char *field, size_t size, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%0*" PRIo64, (int)size - 1, value);
	memcpy(field, text, size);
}

static void add_header(struct ks_buf *out, char type, const char *name, const char *target, int64_t size, unsigned mode, int64_t mtime)
{
	struct ks_tar_header header = { .type = type, .magic = "ustar", .version = { '0', '0' } };

	memcpy(header.name, name, strnlen(name, sizeof(header.name)));
	if (target)
		memcpy(header.linkname, target, strnlen(target, sizeof(header.linkname)));
	put_octal(header.mode, sizeof(header.mode), mode);
	put_octal(header.uid, sizeof(header.uid), 0);
	put_octal(header.gid, sizeof(header.gid), 0);
	put_octal(header.size, sizeof(header.size), size > OCTAL_MAX ? 0 : (uint64_t)size);
	put_octal(header.mtime, sizeof(header.mtime), mtime < 0 || mtime > OCTAL_MAX ? 0 : (uint64_t)mtime);
	put_octal(header.checksum, sizeof(header.checksum) - 1, ks_tar_checksum(&header));
	header.checksum[7] = ' ';
	ks_buf_add(out, &header, sizeof(header));
}

static void pad(struct ks_buf *out, size_t len)
{
	static const char zeros[KS_TAR_BLOCK];

	ks_buf_add(out, zeros, ks_tar_padding((int64_t)len));
}

size_t ks_tar_padding(int64_t content)
{
	return (size_t)(-(uint64_t)content & (KS_TAR_BLOCK - 1));
}

static void make_map(struct ks_buf *map, const struct ks_tar_entry *entry)
{
	ks_buf_printf(map, "%zu\n", entry->extent_count);
	for (size_t i = 0; i < entry->extent_count; i++)
		ks_buf_printf(map, "%" PRId64 "\n%" PRId64 "\n", entry->extents[i].offset, entry->extents[i].length);
	pad(map, map->len);
}

void ks_tar_write(struct ks_buf *out, const struct ks_tar_entry *entry)
{
	static const char types[] = { [KS_TAR_FILE] = '0', [KS_TAR_DIRECTORY] = '5', [KS_TAR_SYMLINK] = '2', [KS_TAR_HARDLINK] = '1' };
	KS_AUTOBUF struct ks_buf records = { 0 }, map = { 0 };

	add_names(&records, entry);
	if (entry->mtime.tv_nsec || entry->mtime.tv_sec < 0 || entry->mtime.tv_sec > OCTAL_MAX)
		add_time(&records, entry->mtime);
	if (entry->extents) {
		make_map(&map, entry);
		add_record(&records, "GNU.sparse.major", "1");
		add_record(&records, "GNU.sparse.minor", "0");
		add_number(&records, "GNU.sparse.realsize", entry->size);
	}
	const int64_t size = entry->content + (int64_t)map.len;
	if (size > OCTAL_MAX)
		add_number(&records, "size", size);
	if (records.len > 0) {
		add_header(out, 'x', "pax", NULL, (int64_t)records.len, 0644, 0);
		ks_buf_add(out, records.data, records.len);
		pad(out, records.len);
	}
	add_header(out, types[entry->type], entry->path, entry->target, size, entry->mode, entry->mtime.tv_sec);
	ks_buf_add(out, map.data, map.len);
	out->failed |= records.failed || map.failed;
}
