#include "deflate.h"

#include <archive.h>
#include <archive_entry.h>
#include <nettle/sha2.h>

struct ks_deflate {
	struct archive *archive;
	int64_t max_bytes, in, out;
	int (*write)(void *arg, const void *data, size_t len, struct ks_error *err);
	void *arg;
	struct ks_error error; /* of `write`: libarchive hands on that something failed, not what */
	struct sha256_ctx hash;
};

static la_ssize_t on_write(struct archive *archive, void *arg, const void *data, size_t len)
{
	struct ks_deflate *deflate = arg;

	(void)archive;
	if (deflate->out + (int64_t)len > deflate->max_bytes) {
		(void)ks_fail(&deflate->error, KS_E_TOO_LARGE, "the snapshot has more than %lld MiB, which is what a blob can hold",
			      (long long)deflate->max_bytes >> 20);
		(void)ks_error_hint(&deflate->error, "name a file of the host: path");
		return -1;
	}
	if (deflate->write(deflate->arg, data, len, &deflate->error) < 0)
		return -1;
	sha256_update(&deflate->hash, len, data);
	deflate->out += (int64_t)len;
	return (la_ssize_t)len;
}

static int fail(struct ks_deflate *deflate, struct ks_error *err)
{
	const char *why = archive_error_string(deflate->archive);

	if (deflate->error.reason) {
		*err = deflate->error;
		return -1;
	}
	return ks_fail(err, KS_E_INTERNAL, "the snapshot cannot be packed: %.150s", why ? why : "out of memory");
}

static int open_stream(struct archive *a, struct ks_deflate *deflate)
{
	struct archive_entry *entry = archive_entry_new();
	int rc = entry ? ARCHIVE_OK : ARCHIVE_FATAL;

	if (rc == ARCHIVE_OK)
		rc = archive_write_set_format_raw(a);
	if (rc == ARCHIVE_OK)
		rc = archive_write_add_filter_gzip(a);
	if (rc == ARCHIVE_OK)
		rc = archive_write_set_filter_option(a, "gzip", "timestamp", NULL);
	if (rc == ARCHIVE_OK) /* a snapshot is waited for: three times as fast for a tenth more bytes */
		rc = archive_write_set_filter_option(a, "gzip", "compression-level", "1");
	if (rc == ARCHIVE_OK)
		rc = archive_write_set_bytes_per_block(a, (int)KS_ARCHIVE_PIECE);
	if (rc == ARCHIVE_OK)
		rc = archive_write_set_bytes_in_last_block(a, 1); /* no padding behind the stream */
	if (rc == ARCHIVE_OK)
		rc = archive_write_open(a, deflate, NULL, on_write, NULL);
	if (rc == ARCHIVE_OK) {
		archive_entry_set_filetype(entry, AE_IFREG);
		rc = archive_write_header(a, entry);
	}
	archive_entry_free(entry);
	return rc;
}

int ks_deflate_new(int64_t max_bytes, int (*write)(void *arg, const void *data, size_t len, struct ks_error *err), void *arg,
		   struct ks_deflate **ret, struct ks_error *err)
{
	struct ks_deflate *deflate = calloc(1, sizeof(*deflate));

	if (!deflate || !(deflate->archive = archive_write_new())) {
		free(deflate);
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	}
	deflate->max_bytes = max_bytes;
	deflate->write = write;
	deflate->arg = arg;
	sha256_init(&deflate->hash);
	if (open_stream(deflate->archive, deflate) != ARCHIVE_OK) {
		(void)fail(deflate, err);
		ks_deflate_free(deflate);
		return -1;
	}
	*ret = deflate;
	return 0;
}

int ks_deflate_add(struct ks_deflate *deflate, const void *data, size_t len, struct ks_error *err)
{
	if (len == 0)
		return 0;
	deflate->in += (int64_t)len;
	return archive_write_data(deflate->archive, data, len) == (la_ssize_t)len ? 0 : fail(deflate, err);
}

int ks_deflate_zeros(struct ks_deflate *deflate, int64_t len, struct ks_error *err)
{
	static const char zeros[4096];

	while (len > 0) {
		size_t n = len < (int64_t)sizeof(zeros) ? (size_t)len : sizeof(zeros);
		if (ks_deflate_add(deflate, zeros, n, err) < 0)
			return -1;
		len -= (int64_t)n;
	}
	return 0;
}

int ks_deflate_end(struct ks_deflate *deflate, int64_t *ret_bytes, unsigned char ret_digest[32], struct ks_error *err)
{
	if (archive_write_close(deflate->archive) != ARCHIVE_OK)
		return fail(deflate, err);
	*ret_bytes = deflate->out;
	sha256_digest(&deflate->hash, SHA256_DIGEST_SIZE, ret_digest);
	return 0;
}

int64_t ks_deflate_in(const struct ks_deflate *deflate)
{
	return deflate->in;
}

void ks_deflate_free(struct ks_deflate *deflate)
{
	if (!deflate)
		return;
	deflate->write = NULL;
	deflate->max_bytes = -1; /* closing flushes, and nobody listens */
	(void)archive_write_free(deflate->archive);
	free(deflate);
}
