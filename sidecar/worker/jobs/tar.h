/* tar.h: the tar format (POSIX.1-2017 pax, ustar, and the long names of GNU): entries to bytes and back. Strict where others guess: a
 * header that can be read in two ways is refused. libarchive's own reader of tar is not used, because it turns decomposed names into
 * composed ones, and passes in silence over headers that have to be refused by name. Checks the format only; where an entry may lie is
 * unpack.h. */
#pragma once

#include <sys/stat.h>

#include "base/buf.h"
#include "base/error.h"
#include "worker/archive.h"

#define KS_TAR_BLOCK 512

enum ks_tar_type { KS_TAR_FILE, KS_TAR_DIRECTORY, KS_TAR_SYMLINK, KS_TAR_HARDLINK };

struct ks_extent {
	int64_t offset, length;
};

struct ks_tar_entry {
	enum ks_tar_type type;
	const char *path, *target; /* target: of links, else NULL */
	int64_t size;		   /* of a file, holes included */
	int64_t content;	   /* bytes that the archive has of it */
	unsigned mode;
	struct timespec mtime;
	const struct ks_extent *extents; /* in order; NULL: one, all of it */
	size_t extent_count;
};

/* ---- writing ---- */

/* The headers of an entry, and the map of its holes: a multiple of KS_TAR_BLOCK. The content follows, then ks_tar_padding() zeros; at
 * the end of all, KS_TAR_END zeros. Equal entries have equal bytes. */
void ks_tar_write(struct ks_buf *out, const struct ks_tar_entry *entry);
size_t ks_tar_padding(int64_t content);
#define KS_TAR_END ((size_t)2 * KS_TAR_BLOCK)

/* ---- reading ---- */

struct ks_tar_source {
	/* All of `len` bytes, less only at the end; -1 with err. */
	ssize_t (*read)(void *arg, void *buf, size_t len, struct ks_error *err);
	void *arg;
};

struct ks_tar_reader {
	struct ks_tar_source source;
	struct ks_buf path, target, records; /* of the entry */
	struct ks_extent *extents;
	int64_t left, padding; /* of its content */
	size_t extent;
	int64_t extent_done;
	bool sparse;
	size_t count;
};

/* 1 an entry (valid until the next call), 0 the end, and nothing but zeros behind it; -1 with err. Content that was not read is passed
 * over. */
int ks_tar_next(struct ks_tar_reader *reader, struct ks_tar_entry *ret, struct ks_error *err);
/* The next piece of its content: bytes read into buf and where in the file they belong. 0 at its end, -1 with err. */
ssize_t ks_tar_content(struct ks_tar_reader *reader, const struct ks_tar_entry *entry, void *buf, size_t len, int64_t *ret_offset,
		       struct ks_error *err);
void ks_tar_reader_free(struct ks_tar_reader *reader);
