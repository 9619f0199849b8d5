/* schema.h: the tables printed as one JSON Schema 2020-12 document: `$defs` by message, `x-methods`, `x-errors`. */
#pragma once

#include "base/buf.h"

#define KS_PROTOCOL_VERSION 1
#define KS_PROTOCOL_MINOR 0

/* Compact, one line, no newline at the end. ks_json_indent() makes it readable. */
void ks_schema_print(struct ks_buf *buf);
