/* edit.c: file/edit. Request: name, followLinks, ifMatch ("": none), number of edits, and of each: old text, new text, all.
 * Result: replacements of each, etag. */
#include "jobs.h"

#include <errno.h>

#include "edit_text.h"
#include "target.h"
#include "workspace/mime.h"

#define EDIT_FILE_MAX ((size_t)16 << 20)
#define EDITS_MAX 1024 /* as in proto/messages_file.c */

struct edits {
	struct ks_text_edit items[EDITS_MAX];
	int64_t done[EDITS_MAX];
	size_t count;
};

static int read_whole(const struct ks_target *target, int fd, struct ks_buf *text, struct ks_error *err)
{
	for (ssize_t n = 1; n > 0; text->len += (size_t)n) {
		void *room = ks_buf_reserve(text, 65536);
		if (!room)
			return ks_fail(err, KS_E_INTERNAL, "out of memory");
		n = read(fd, room, 65536);
		if (n < 0)
			return ks_name_fail(target->name, errno, err);
		if (text->len + (size_t)n > EDIT_FILE_MAX) {
			(void)ks_fail_at(err, KS_E_TOO_LARGE, target->name->pointer, "%.200s has more than %zu bytes", target->name->path,
					 EDIT_FILE_MAX);
			return ks_error_hint(err, "change it by a program in the box, or write it anew");
		}
	}
	return 0;
}

static int edit_text(struct ks_buf *text, struct edits *edits, struct ks_error *err)
{
	const enum ks_charset charset = ks_charset_of((const unsigned char *)text->data, text->len, false);
	int rc = ks_edit_text(text, edits->items, edits->count, EDIT_FILE_MAX, edits->done, err);

	if (rc < 0 && err->reason == KS_E_EDIT_NO_MATCH && (charset == KS_CHARSET_UTF16LE || charset == KS_CHARSET_UTF16BE))
		(void)ks_error_hint(err, "the file is UTF-16: read it as base64, and write it whole");
	return rc;
}

/* Between reading and renaming somebody else may write: must_be_same sees that. */
static int edit_file(struct ks_name *name, const char *if_match, struct edits *edits, char ret_etag[KS_ETAG_TEXT],
		     struct ks_error *err)
{
	KS_AUTOTARGET struct ks_target target = { .dir = -1 };
	KS_AUTOBUF struct ks_buf text = { 0 };

	if (ks_name_follow(name, false, err) < 0 || ks_target_look(name, &target, err) < 0)
		return -1;
	if (!target.exists)
		return ks_name_fail(name, ENOENT, err);
	if (ks_target_match(&target, if_match, err) < 0)
		return -1;
	KS_AUTOCLOSE int fd = ks_open_regular(target.dir, target.last);
	if (fd < 0)
		return ks_name_fail(name, -fd, err);
	if (!target.must_be_same && fstat(fd, &target.st) < 0)
		return ks_name_fail(name, errno, err);
	target.must_be_same = true;
	if (read_whole(&target, fd, &text, err) < 0 || edit_text(&text, edits, err) < 0)
		return -1;
	return ks_target_replace(&target, text.data, text.len, 0, false, ret_etag, err);
}

int ks_job_edit(struct ks_run *run, struct ks_unpack *in, struct ks_buf *ret_result, struct ks_error *err)
{
	KS_AUTOFREE struct edits *edits = calloc(1, sizeof(*edits));
	char etag[KS_ETAG_TEXT];
	KS_AUTONAME struct ks_name name = { 0 };

	if (!edits)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	if (ks_name_unpack(run, in, "/path", true, true, &name, err) < 0)
		return -1;
	const char *if_match = ks_unpack_bytes(in, NULL);
	const int64_t count = ks_unpack_int(in);
	if (count < 1 || count > EDITS_MAX)
		ks_run_damaged();
	for (; edits->count < (size_t)count; edits->count++) {
		struct ks_text_edit *edit = &edits->items[edits->count];
		edit->old_text = ks_unpack_bytes(in, &edit->old_len);
		edit->new_text = ks_unpack_bytes(in, &edit->new_len);
		edit->all = ks_unpack_int(in) != 0;
		if (edit->old_len == 0)
			ks_run_damaged();
	}
	if (!ks_unpack_end(in))
		ks_run_damaged();
	int rc = edit_file(&name, if_match, edits, etag, err);
	for (size_t i = 0; rc == 0 && i < edits->count; i++)
		ks_pack_int(ret_result, edits->done[i]);
	ks_pack_string(ret_result, rc == 0 ? etag : "");
	return rc;
}
