/* read.c: file/read. Request: name, followLinks, offset, length, first line, lines (-1: not asked for). Result: content, size, eof, etag,
 * mime (""), charset (enum ks_charset), first line, last line, lines of the file (-1: none). */
#include "jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "etag.h"
#include "line_range.h"
#include "names.h"
#include "workspace/mime.h"

#define PIECE ((size_t)256 << 10)
#define SCAN_MAX ((int64_t)256 << 20) /* of a file that is looked through for lines */

struct reading {
	struct ks_name name;
	int fd;
	int64_t offset, length, start, count;
	/* the result */
	int64_t size, end, total;
	bool eof;
};

static int fail_too_large(const struct reading *r, struct ks_error *err)
{
	(void)ks_fail_at(err, KS_E_TOO_LARGE, r->name.pointer, "that is more than %zu bytes of %.200s", KS_CONTENT_MAX, r->name.path);
	return ks_error_hint(err, "read it in parts, with offset and length");
}

/* What is read counts, not what stat says: files grow, and some say 0. */
static int read_range(struct reading *r, struct ks_buf *content, struct ks_error *err)
{
	const int64_t offset = r->offset < 0 ? 0 : r->offset;
	int64_t done = 0;

	for (;;) {
		/* one byte more than may be kept shows that there is more */
		const int64_t most = r->length < 0 ? INT64_MAX : r->length - done;
		size_t want = most < (int64_t)PIECE ? (size_t)most : PIECE;
		if (want == 0)
			break;
		void *room = ks_buf_reserve(content, want);
		if (!room)
			return ks_fail(err, KS_E_INTERNAL, "out of memory");
		ssize_t n = pread(r->fd, room, want, offset + done);
		if (n < 0)
			return ks_name_fail(&r->name, errno, err);
		if (n == 0) {
			r->eof = true;
			break;
		}
		content->len += (size_t)n;
		done += n;
		if (done > (int64_t)KS_CONTENT_MAX)
			return fail_too_large(r, err);
	}
	if (!r->eof) {
		char next;
		r->eof = pread(r->fd, &next, 1, offset + done) == 0;
	}
	if (r->eof && done > 0)
		r->size = offset + done;
	return 0;
}

static int read_lines(struct reading *r, struct ks_buf *content, struct ks_error *err)
{
	struct ks_line_range range = { .start = r->start, .count = r->count, .most = KS_CONTENT_MAX, .kept = content };
	KS_AUTOFREE char *piece = malloc(PIECE);
	int64_t at = 0;
	ssize_t n = 1;

	if (!piece)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	while (n > 0 && at < SCAN_MAX) {
		n = pread(r->fd, piece, PIECE, at);
		if (n < 0)
			return ks_name_fail(&r->name, errno, err);
		ks_line_range_feed(&range, piece, (size_t)n);
		at += n;
	}
	if (range.full)
		return fail_too_large(r, err);
	r->end = ks_line_range_end(&range);
	if (n > 0 && r->end - r->start + 1 < r->count) {
		(void)ks_fail_at(err, KS_E_TOO_LARGE, "/lines", "lines are looked for in the first %lld MiB of a file",
				 (long long)(SCAN_MAX >> 20));
		return ks_error_hint(err, "read it in parts, with offset and length");
	}
	r->total = n > 0 ? -1 : ks_line_range_seen(&range);
	r->eof = n == 0 && r->end >= r->total;
	if (n == 0)
		r->size = at;
	return 0;
}

static int describe(const struct reading *r, const struct ks_buf *whole, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTOFREE unsigned char *head = malloc(KS_CHARSET_PEEK);
	char etag[KS_ETAG_TEXT];
	ssize_t n = head ? pread(r->fd, head, KS_CHARSET_PEEK, 0) : -1;
	int rc = n < 0 ? -(head ? errno : ENOMEM) : 0;

	if (rc == 0 && whole && whole->len <= KS_ETAG_CONTENT)
		ks_etag_of_bytes(whole->data, whole->len, etag); /* of just what is in the reply */
	else if (rc == 0)
		rc = ks_etag_of_file(r->fd, etag);
	if (rc < 0)
		return ks_name_fail(&r->name, -rc, err);
	ks_pack_int(ret_result, r->size);
	ks_pack_int(ret_result, r->eof);
	ks_pack_string(ret_result, etag);
	ks_pack_string(ret_result, ks_mime_of(r->name.path, head, (size_t)n));
	ks_pack_int(ret_result, ks_charset_of(head, (size_t)n, n == (ssize_t)KS_CHARSET_PEEK));
	ks_pack_int(ret_result, r->start);
	ks_pack_int(ret_result, r->end);
	ks_pack_int(ret_result, r->total);
	return 0;
}

static int read_it(struct reading *r, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf content = { 0 };
	struct stat st;

	if (ks_name_follow(&r->name, false, err) < 0)
		return -1;
	KS_AUTOCLOSE int fd = ks_name_open_regular(&r->name, &st, err);
	if (fd < 0)
		return -1;
	r->fd = fd;
	r->size = st.st_size;
	if ((r->start < 0 ? read_range : read_lines)(r, &content, err) < 0)
		return -1;
	ks_pack_bytes(ret_result, content.data, content.len);
	return describe(r, r->start < 0 && r->offset <= 0 && r->eof ? &content : NULL, ret_result, err);
}

int ks_job_read(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	struct reading r = { .fd = -1, .end = -1, .total = -1 };

	if (ks_name_unpack(run, in, "/path", true, false, &r.name, err) < 0)
		return -1;
	r.offset = ks_unpack_int(in);
	r.length = ks_unpack_int(in);
	r.start = ks_unpack_int(in);
	r.count = ks_unpack_int(in);
	if (!ks_unpack_end(in))
		ks_run_damaged();
	int rc = read_it(&r, ret_result, err);
	ks_name_free(&r.name);
	return rc;
}
