/* write.h: JSON text into a ks_buf, compact, fields in the order of the calls. Separators are put by themselves: a
 * comma goes in front of a value unless the last byte written is one of { [ : or a newline. Everything that could break
 * a line-based reader is escaped: C0, DEL, U+0085, U+2028, U+2029. Out of memory sets buf->failed (see base/buf.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/utf8.h"

void ks_write_open(struct ks_buf *buf, char bracket);  /* '{' or '[' */
void ks_write_close(struct ks_buf *buf, char bracket); /* '}' or ']' */
void ks_write_key(struct ks_buf *buf, const char *key);
void ks_write_int(struct ks_buf *buf, int64_t value);
void ks_write_bool(struct ks_buf *buf, bool value);
void ks_write_string(struct ks_buf *buf, const char *text); /* a C string; bytes as below */
/* Any bytes as a JSON string; each maximal invalid subpart becomes U+FFFD (Unicode 15, section 3.9; WHATWG). */
void ks_write_utf8_lossy(struct ks_buf *buf, const void *data, size_t len);
void ks_write_base64(struct ks_buf *buf, const void *data, size_t len); /* a JSON string */
void ks_write_raw(struct ks_buf *buf, const char *json, size_t len);	/* one ready JSON value */
/* {"base64":"…"} or "…", as a Text of the protocol: encoding is enum ks_encoding. */
void ks_write_text(struct ks_buf *buf, int encoding, const void *data, size_t len);

/* Key and value. A NULL string and KS_ABSENT write nothing: absent, never null. */
void ks_write_key_string(struct ks_buf *buf, const char *key, const char *text);
void ks_write_key_int(struct ks_buf *buf, const char *key, int64_t value);
void ks_write_key_bool(struct ks_buf *buf, const char *key, bool value);
/* The member "path", or "pathBase64" when it is not UTF-8. */
void ks_write_path(struct ks_buf *buf, const char *path, size_t len);

/* Bytes that ks_write_utf8_lossy() writes for this data, both quotes included (no comma). */
size_t ks_json_escaped_size(const void *data, size_t len);
/* Bytes that ks_write_base64() writes, both quotes included. */
size_t ks_json_base64_size(size_t len);

/* `json` (valid, compact) again with tabs and newlines, for a person. */
void ks_json_indent(struct ks_buf *buf, const char *json, size_t len);
