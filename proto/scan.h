/* scan.h: is this line JSON that we are willing to read? One strict pass in front of json-c, which by itself
 * accepts duplicate keys, NUL in keys (and cuts them there), overlong UTF-8, raw control bytes, NaN, single quotes
 * and integers beyond its range. Nothing else in the program may call a json-c parser. */
#pragma once

#include <stddef.h>

#include "base/error.h"

struct json_object;

#define KS_SCAN_DEPTH 32     /* containers inside each other */
#define KS_SCAN_VALUES 65536 /* values of any kind, containers included */
#define KS_SCAN_DEPTH_MAX 64

struct ks_scan_limits {
	unsigned depth; /* 1..KS_SCAN_DEPTH_MAX */
	size_t values;
};

/* RFC 8259 grammar, valid UTF-8, no NUL in keys, surrogate escapes in pairs, numbers within +-2^53, no key twice in
 * one object (compared after unescaping). `limits` NULL: the two above. Fails with KS_E_PARSE (not JSON) or
 * KS_E_INVALID_REQUEST (JSON that breaks our rules); the text names the byte, counted from 0. Linear in len. */
int ks_json_scan(const char *line, size_t len, const struct ks_scan_limits *limits, struct ks_error *err);

/* Scan, then parse. Any JSON value may stand at the top. NULL and *err on failure (JSON null at the top, too, is
 * refused: KS_E_INVALID_REQUEST). The caller owns the value: json_object_put(). */
struct json_object *ks_json_parse(const char *line, size_t len, struct ks_error *err);
/* The same for what this program has written itself: any number of values. */
struct json_object *ks_json_parse_own(const char *text, size_t len, struct ks_error *err);
