#include "inflate.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <nettle/sha2.h>
#include <string.h>
#include <sys/stat.h>

#define PIECE ((size_t)64 << 10)

struct ks_inflate {
	struct archive *archive;
	int fd;
	int64_t at, size, out;
	bool ended;
	int io_errno;
	struct sha256_ctx hash;
	char piece[PIECE];
};

static const char only[] = "archives are .tar, .tar.gz or .tar.zst";

/* The beginnings of files that are something else: a name says more than "not recognised". */
static const struct {
	const char *magic;
	size_t len;
	const char *name;
} others[] = {
	{ "PK\3\4", 4, "a zip archive" },	   { "PK\5\6", 4, "a zip archive" },
	{ "\3757zXZ\0", 6, "packed with xz" },	   { "BZh", 3, "packed with bzip2" },
	{ "7z\274\257\047\034", 6, "a 7z archive" }, { "Rar!\032\a", 6, "a RAR archive" },
	{ "\037\235", 2, "packed with compress" }, { "\004\"M\030", 4, "packed with lz4" },
	{ "LZIP", 4, "packed with lzip" },	   { "070701", 6, "a cpio archive" },
	{ "070707", 6, "a cpio archive" },	   { "!<arch>\n", 8, "an ar archive" },
};

static ssize_t read_piece(struct archive *archive, void *arg, const void **ret)
{
	struct ks_inflate *inflate = arg;
	ssize_t n;

	do
		n = pread(inflate->fd, inflate->piece, PIECE, inflate->at);
	while (n < 0 && errno == EINTR);
	if (n < 0) {
		inflate->io_errno = errno;
		archive_set_error(archive, errno, "cannot read");
		return -1;
	}
	sha256_update(&inflate->hash, (size_t)n, (const uint8_t *)inflate->piece);
	inflate->at += n;
	*ret = inflate->piece;
	return n;
}

static int refuse(struct ks_inflate *inflate, struct ks_error *err)
{
	const char *why = archive_error_string(inflate->archive);

	if (inflate->io_errno)
		return ks_fail_errno(err, KS_E_IO, inflate->io_errno, "the archive cannot be read");
	if (archive_errno(inflate->archive) == ENOMEM)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "the archive cannot be unpacked: %.150s", why ? why : "it is damaged");
	return ks_error_hint(err, "it was damaged or cut off: copy or make it again");
}

/* One filter, the one that the first bytes ask for: a stream that is packed twice is refused. */
static int choose_filter(struct ks_inflate *inflate, bool *ret_packed, struct ks_error *err)
{
	unsigned char magic[8] = { 0 };
	ssize_t n = pread(inflate->fd, magic, sizeof(magic), 0);

	if (n < 0)
		return ks_fail_errno(err, KS_E_IO, errno, "the archive cannot be read");
	if (n == 0) {
		(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "the archive is empty");
		return ks_error_hint(err, only);
	}
	for (size_t i = 0; i < KS_COUNT(others); i++)
		if ((size_t)n >= others[i].len && memcmp(magic, others[i].magic, others[i].len) == 0) {
			(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "the archive is %s", others[i].name);
			return ks_error_hint(err, only);
		}
	*ret_packed = true;
	if (memcmp(magic, "\037\213", 2) == 0)
		return archive_read_support_filter_gzip(inflate->archive) == ARCHIVE_OK ? 0 : refuse(inflate, err);
	if (memcmp(magic, "(\265/\375", 4) == 0)
		return archive_read_support_filter_zstd(inflate->archive) == ARCHIVE_OK ? 0 : refuse(inflate, err);
	*ret_packed = false;
	return 0;
}

static int open_stream(struct ks_inflate *inflate, struct ks_error *err)
{
	struct archive_entry *entry;
	bool packed;

	if (choose_filter(inflate, &packed, err) < 0)
		return -1;
	if (archive_read_support_format_raw(inflate->archive) != ARCHIVE_OK ||
	    archive_read_support_format_empty(inflate->archive) != ARCHIVE_OK ||
	    archive_read_open(inflate->archive, inflate, NULL, read_piece, NULL) != ARCHIVE_OK)
		return refuse(inflate, err);
	int rc = archive_read_next_header(inflate->archive, &entry);
	if (rc == ARCHIVE_EOF) /* nothing comes out: what reads tar says that something is missing */
		inflate->ended = true;
	else if (rc != ARCHIVE_OK)
		return refuse(inflate, err);
	if (archive_filter_count(inflate->archive) <= 1 + packed)
		return 0;
	(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "the archive is packed more than once");
	return ks_error_hint(err, only);
}

int ks_inflate_new(int fd, struct ks_inflate **ret, struct ks_error *err)
{
	struct stat st;
	struct ks_inflate *inflate = calloc(1, sizeof(*inflate));

	if (!inflate || !(inflate->archive = archive_read_new())) {
		free(inflate);
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	}
	inflate->fd = fd;
	sha256_init(&inflate->hash);
	int rc = fstat(fd, &st) < 0 ? ks_fail_errno(err, KS_E_IO, errno, "the archive cannot be read") : open_stream(inflate, err);
	if (rc < 0) {
		ks_inflate_free(inflate);
		return -1;
	}
	inflate->size = st.st_size;
	*ret = inflate;
	return 0;
}

/* A filter stops at the end of its stream and is silent about what stands behind. */
static int check_end(struct ks_inflate *inflate, struct ks_error *err)
{
	const int64_t used = archive_filter_bytes(inflate->archive, -1);
	char more;

	inflate->ended = true;
	if (used == inflate->at && pread(inflate->fd, &more, 1, inflate->at) == 0)
		return 0;
	(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "something stands behind the end of the packed archive");
	return ks_error_hint(err, "remove it, or make the archive again");
}

ssize_t ks_inflate_read(void *arg, void *buf, size_t len, struct ks_error *err)
{
	struct ks_inflate *inflate = arg;
	size_t done = 0;

	while (done < len && !inflate->ended) {
		la_ssize_t n = archive_read_data(inflate->archive, (char *)buf + done, len - done);
		if (n < 0)
			return refuse(inflate, err);
		if (n == 0 && check_end(inflate, err) < 0)
			return -1;
		done += (size_t)n;
		inflate->out += n;
	}
	if (inflate->out > KS_ARCHIVE_RATIO_FROM && inflate->out / KS_ARCHIVE_RATIO > inflate->at) {
		(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "the archive unpacks to more than %d times its size", KS_ARCHIVE_RATIO);
		return ks_error_hint(err, "pack it as .tar, or with holes instead of zeros (tar --format=pax --sparse)");
	}
	return (ssize_t)done;
}

int64_t ks_inflate_taken(const struct ks_inflate *inflate)
{
	return inflate->at;
}

int64_t ks_inflate_size(const struct ks_inflate *inflate)
{
	return inflate->size;
}

void ks_inflate_digest(struct ks_inflate *inflate, unsigned char ret[32])
{
	sha256_digest(&inflate->hash, SHA256_DIGEST_SIZE, ret);
}

void ks_inflate_free(struct ks_inflate *inflate)
{
	if (!inflate)
		return;
	(void)archive_read_free(inflate->archive);
	free(inflate);
}
