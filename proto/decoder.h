/* decoder.h: what decode.c (objects, defaults) and value.c (single values) share. Nobody else includes it. */
#pragma once

#include "proto/field.h"

#define KS_SHOWN 40 /* bytes of a hostile name that a message repeats */

struct ks_decoder {
	struct ks_error *err;
	char pointer[sizeof(((struct ks_error *)0)->pointer)]; /* where we are */
};

/* Any { T *items; size_t count; } of KS_T_LIST; copied in and out, since the true type differs in T. */
struct ks_any_list {
	void *items;
	size_t count;
};

/* One of each: where a value goes that no struct wants. */
union ks_value {
	bool truth;
	int word;
	int64_t number;
	char *string;
	struct ks_text text;
	struct ks_strings strings;
	struct ks_pairs pairs;
};

#define KS_FAIL(d, reason, ...) ks_fail_at((d)->err, (reason), (d)->pointer, __VA_ARGS__)
int ks_no_memory(struct ks_decoder *d);

/* Returns the length to go back to. */
size_t ks_pointer_push(struct ks_decoder *d, const char *name);
void ks_pointer_pop(struct ks_decoder *d, size_t old);

/* All types but OBJECT and LIST; `at` is empty. After a failure it may hold something to free. */
int ks_decode_value(struct ks_decoder *d, const struct ks_field *field, struct json_object *value, void *at);
/* `at` NULL: the items are checked and not kept. */
int ks_decode_list(struct ks_decoder *d, const struct ks_field *field, struct json_object *value, void *at);
/* `base` NULL likewise. */
int ks_decode_object(struct ks_decoder *d, const struct ks_schema *schema, struct json_object *in, void *base);
/* Index in field->choices, or -1. */
int ks_find_choice(const struct ks_field *field, const char *text, size_t len);
void ks_free_value(const struct ks_field *field, void *at);
void ks_free_fields(const struct ks_schema *schema, char *base);
