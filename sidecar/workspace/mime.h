/* mime.h: media types from a name's extension, else from a file's first bytes. */
#pragma once

#include <stddef.h>

#define KS_MIME_PEEK 512u /* bytes that ks_mime_by_content wants to see */

/* Static strings; NULL when unknown. */
const char *ks_mime_by_name(const char *name, size_t len);
const char *ks_mime_by_content(const unsigned char *data, size_t len);
