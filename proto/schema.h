/* schema.h: the tables printed as one JSON Schema 2020-12 document: `$defs` by message, `x-methods`, `x-errors`. */
#pragma once

#include "base/buf.h"

#define KS_PROTOCOL_VERSION 1
#define KS_PROTOCOL_MINOR 0

/* Compact, one line, no newline at the end. ks_json_indent() makes it readable. */
void ks_schema_print(struct ks_buf *buf);
/* One table by itself, as the schema of an object without other properties. Its fields must not refer to other tables. */
struct ks_schema;
void ks_schema_write(struct ks_buf *buf, const struct ks_schema *schema);
