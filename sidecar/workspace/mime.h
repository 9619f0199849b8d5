/* mime.h: media types from a name's extension, else from a file's first bytes; and the encoding that those are in. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define KS_MIME_PEEK 512u /* bytes that ks_mime_by_content wants to see */

/* Static strings; NULL when unknown. */
const char *ks_mime_by_name(const char *name, size_t len);
const char *ks_mime_by_content(const unsigned char *data, size_t len);
/* By the name (or path), else by the content; NULL when unknown. */
const char *ks_mime_of(const char *path, const unsigned char *data, size_t len);

#define KS_CHARSET_PEEK ((size_t)64 << 10)

enum ks_charset { KS_CHARSET_UTF8, KS_CHARSET_UTF16LE, KS_CHARSET_UTF16BE, KS_CHARSET_BINARY };
/* UTF-16 by its byte order mark (Unicode 15, section 23.8); binary when there is a NUL, or something that is not UTF-8. With `cut`
 * there is more behind `data`, which may end in the middle of a character. */
enum ks_charset ks_charset_of(const unsigned char *data, size_t len, bool cut);
