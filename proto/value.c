/* value.c: one JSON value into one member, and freeing it. Types are checked before every json-c getter, because those
 * coerce ("12" -> 12, {} -> 0), and lengths are asked for, because strings may hold NUL. */
#include "decoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json_object.h>
#include <json-c/linkhash.h>
#include <nettle/base64.h>

#include "base/utf8.h"

/* RFC 6901: "~" is ~0 and "/" is ~1. A pointer that does not fit is cut, at a code point. Returns the length to go back
 * to. */
size_t ks_pointer_push(struct ks_decoder *d, const char *name)
{
	size_t old = strlen(d->pointer), at = old;

	d->pointer[at < sizeof(d->pointer) - 1 ? at++ : at] = '/';
	for (const char *c = name; *c && at < sizeof(d->pointer) - 2; c++) {
		if (*c == '~' || *c == '/') {
			d->pointer[at++] = '~';
			d->pointer[at++] = *c == '~' ? '0' : '1';
		} else {
			d->pointer[at++] = *c;
		}
	}
	at = at < sizeof(d->pointer) ? at : sizeof(d->pointer) - 1;
	d->pointer[ks_utf8_complete_prefix(d->pointer, at)] = '\0';
	return old;
}

static size_t push_index(struct ks_decoder *d, size_t i)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%zu", i);
	return ks_pointer_push(d, text);
}

void ks_pointer_pop(struct ks_decoder *d, size_t old)
{
	d->pointer[old] = '\0';
}

static int wrong_type(struct ks_decoder *d, const struct ks_field *field, const char *want)
{
	return KS_FAIL(d, KS_E_INVALID_TYPE, "%s must be %s", field->name, want);
}

int ks_no_memory(struct ks_decoder *d)
{
	return KS_FAIL(d, KS_E_INTERNAL, "out of memory");
}

static int check_length(struct ks_decoder *d, const struct ks_field *field, size_t len, int64_t min, int64_t max,
			const char *what)
{
	if ((int64_t)len >= min && (int64_t)len <= max)
		return 0;
	return KS_FAIL(d, KS_E_OUT_OF_RANGE, "%s must have from %" PRId64 " to %" PRId64 " %s, not %zu", field->name,
		       min, max, what, len);
}

int ks_find_choice(const struct ks_field *field, const char *text, size_t len)
{
	for (int i = 0; field->choices[i]; i++)
		if (strlen(field->choices[i]) == len && memcmp(field->choices[i], text, len) == 0)
			return i;
	return -1;
}

static const char *choice_at(const void *field, size_t i)
{
	return ((const struct ks_field *)field)->choices[i];
}

/* The index of the word in choices, or -1 and the error. */
static int decode_choice(struct ks_decoder *d, const struct ks_field *field, const char *text, size_t len)
{
	int choice = ks_find_choice(field, text, len);

	if (choice >= 0 && !(field->unsupported_choices >> choice & 1))
		return choice;
	if (choice >= 0)
		return KS_FAIL(d, KS_E_UNSUPPORTED_OPTION, "%s \"%s\" is not in this build", field->name, text);

	char words[192] = "";
	for (size_t i = 0, at = 0; field->choices[i] && at < sizeof(words); i++)
		at += (size_t)snprintf(words + at, sizeof(words) - at, "%s\"%s\"", i ? ", " : "", field->choices[i]);
	(void)KS_FAIL(d, KS_E_INVALID_VALUE, "%s must be one of %s", field->name, words);
	const char *guess = len <= KS_SHOWN && strlen(text) == len ? ks_did_you_mean(text, choice_at, field) : NULL;
	return guess ? ks_error_hint(d->err, "did you mean \"%s\"?", guess) : -1;
}

/* A copy of a value that becomes a C string, with every rule checked. `min`, `max` in bytes. */
static int copy_string(struct ks_decoder *d, const struct ks_field *field, struct json_object *value, int64_t min,
		       int64_t max, char **ret)
{
	if (!json_object_is_type(value, json_type_string))
		return wrong_type(d, field, "a string");
	const char *text = json_object_get_string(value);
	size_t len = (size_t)json_object_get_string_len(value);
	if (memchr(text, '\0', len))
		return KS_FAIL(d, KS_E_INVALID_VALUE, "%s must not hold a NUL character", field->name);
	if (check_length(d, field, len, min, max, "bytes") < 0)
		return -1;
	if (!ks_pattern_match(field->pattern, text, len))
		return KS_FAIL(d, KS_E_INVALID_VALUE, "%s must match %s", field->name, ks_pattern_text(field->pattern));
	if (field->type == KS_T_STRING && field->choices && decode_choice(d, field, text, len) < 0)
		return -1;
	char *copy = strdup(text);
	if (!copy)
		return ks_no_memory(d);
	*ret = copy;
	return 0;
}

/* RFC 4648, section 4, with padding; nettle would skip white space, so that is refused first. */
static int decode_base64(struct ks_decoder *d, const struct ks_field *field, struct json_object *value,
			 struct ks_text *text)
{
	if (!json_object_is_type(value, json_type_string))
		return wrong_type(d, field, "a base64 string");
	const char *from = json_object_get_string(value);
	size_t len = (size_t)json_object_get_string_len(value), done = 0;
	bool valid = len % 4 == 0;

	for (size_t i = 0; i < len && valid; i++)
		valid = from[i] > ' ';
	KS_AUTOFREE char *data = malloc(BASE64_DECODE_LENGTH(len) + 1);
	if (!data)
		return ks_no_memory(d);
	struct base64_decode_ctx ctx;
	base64_decode_init(&ctx);
	valid = valid && base64_decode_update(&ctx, &done, (uint8_t *)data, len, from) && base64_decode_final(&ctx);
	if (!valid)
		return KS_FAIL(d, KS_E_INVALID_VALUE, "%s is not strict base64 (RFC 4648, padded, no white space)",
			       field->name);
	if (check_length(d, field, done, field->min, field->max, "bytes") < 0)
		return -1;
	data[done] = '\0';
	*text = (struct ks_text){ .present = true, .data = KS_TAKE_PTR(data), .len = done };
	return 0;
}

static int decode_utf8(struct ks_decoder *d, const struct ks_field *field, struct json_object *value,
		       struct ks_text *text)
{
	if (!json_object_is_type(value, json_type_string))
		return wrong_type(d, field, "a string");
	size_t len = (size_t)json_object_get_string_len(value);
	if (check_length(d, field, len, field->min, field->max, "bytes") < 0)
		return -1;
	char *data = malloc(len + 1);
	if (!data)
		return ks_no_memory(d);
	memcpy(data, json_object_get_string(value), len);
	data[len] = '\0';
	*text = (struct ks_text){ .present = true, .data = data, .len = len };
	return 0;
}

/* What a blob reference may look like: the server's own, sent back. Only the id counts. */
static int decode_blob(struct ks_decoder *d, struct json_object *value, struct ks_text *text)
{
	static const struct ks_field fields[] = {
		{ .name = "id",
		  .type = KS_T_STRING,
		  .slot = 1,
		  .flags = KS_F_REQUIRED,
		  .min = 1,
		  .max = 64,
		  .pattern = KS_P_HANDLE },
		{ .name = "bytes", .type = KS_T_INT, .min = 0, .max = INT64_C(1) << 53 },
		{ .name = "sha256", .type = KS_T_STRING, .min = 64, .max = 64 },
		{ .name = "mime", .type = KS_T_STRING, .max = 256 },
	};
	static const struct ks_schema schema = { .name = "blob",
						 .size = sizeof(char *),
						 .parts = { KS_FIELDS(fields) } };
	char *id = NULL;

	if (ks_decode_object(d, &schema, value, &id) < 0) {
		free(id);
		return -1;
	}
	*text = (struct ks_text){ .present = true, .blob = id };
	return 0;
}

/* "string" | {"base64": "…"} | {"blob": {"id": "…"}} */
static int decode_text(struct ks_decoder *d, const struct ks_field *field, struct json_object *value,
		       struct ks_text *text)
{
	if (json_object_is_type(value, json_type_string))
		return decode_utf8(d, field, value, text);
	if (!json_object_is_type(value, json_type_object))
		return wrong_type(d, field, "a string, {\"base64\": …} or {\"blob\": {\"id\": …}}");
	if (json_object_object_length(value) != 1)
		return KS_FAIL(d, KS_E_INVALID_VALUE, "%s must have one member, base64 or blob", field->name);

	json_object_object_foreach(value, key, inner)
	{
		size_t old = ks_pointer_push(d, key);
		int result;
		if (strcmp(key, "base64") == 0)
			result = decode_base64(d, field, inner, text);
		else if (strcmp(key, "blob") == 0)
			result = decode_blob(d, inner, text);
		else
			result = KS_FAIL(d, KS_E_UNKNOWN_OPTION, "%s has base64 or blob, not \"%.*s\"", field->name,
					 KS_SHOWN, key);
		if (result < 0)
			return -1;
		ks_pointer_pop(d, old);
	}
	return 0;
}

static int decode_strings(struct ks_decoder *d, const struct ks_field *field, struct json_object *value,
			  struct ks_strings *strings)
{
	if (!json_object_is_type(value, json_type_array))
		return wrong_type(d, field, "an array of strings");
	size_t count = json_object_array_length(value);
	if (check_length(d, field, count, field->min, field->max, "items") < 0)
		return -1;
	strings->items = calloc(count + 1, sizeof(*strings->items));
	if (!strings->items)
		return ks_no_memory(d);
	for (size_t i = 0; i < count; i++) {
		size_t old = push_index(d, i);
		if (copy_string(d, field, json_object_array_get_idx(value, i), 0, field->item_max, &strings->items[i]) <
		    0)
			return -1;
		strings->count++;
		ks_pointer_pop(d, old);
	}
	return 0;
}

static int decode_pair(struct ks_decoder *d, const struct ks_field *field, const char *name, struct json_object *value,
		       struct ks_pairs *pairs)
{
	size_t len = strlen(name);

	if (len == 0 || len > KS_KEY_BYTES)
		return KS_FAIL(d, KS_E_OUT_OF_RANGE, "a name in %s must have from 1 to %d bytes, not %zu", field->name,
			       KS_KEY_BYTES, len);
	if (!ks_pattern_match(field->key_pattern, name, len))
		return KS_FAIL(d, KS_E_INVALID_VALUE, "the name \"%.*s\" in %s must match %s", KS_SHOWN, name,
			       field->name, ks_pattern_text(field->key_pattern));
	if (copy_string(d, field, value, 0, field->item_max - (int64_t)len - 1, &pairs->values[pairs->count]) < 0)
		return -1;
	pairs->names[pairs->count] = strdup(name);
	if (!pairs->names[pairs->count++])
		return ks_no_memory(d);
	return 0;
}

static int decode_pairs(struct ks_decoder *d, const struct ks_field *field, struct json_object *value,
			struct ks_pairs *pairs)
{
	if (!json_object_is_type(value, json_type_object))
		return wrong_type(d, field, "an object of strings");
	size_t count = (size_t)json_object_object_length(value);
	if (check_length(d, field, count, field->min, field->max, "members") < 0)
		return -1;
	pairs->names = calloc(count + 1, sizeof(*pairs->names));
	pairs->values = calloc(count + 1, sizeof(*pairs->values));
	if (!pairs->names || !pairs->values)
		return ks_no_memory(d);
	json_object_object_foreach(value, name, inner)
	{
		size_t old = ks_pointer_push(d, name);
		if (decode_pair(d, field, name, inner, pairs) < 0)
			return -1;
		ks_pointer_pop(d, old);
	}
	return 0;
}

int ks_decode_list(struct ks_decoder *d, const struct ks_field *field, struct json_object *value, void *at)
{
	if (!json_object_is_type(value, json_type_array))
		return wrong_type(d, field, "an array of objects");
	size_t count = json_object_array_length(value);
	if (check_length(d, field, count, field->min, field->max, "items") < 0)
		return -1;
	struct ks_any_list list = { .count = count };
	if (at && count) {
		list.items = calloc(count, field->sub->size);
		if (!list.items)
			return ks_no_memory(d);
		memcpy(at, &list, sizeof(list));
	}
	for (size_t i = 0; i < count; i++) {
		size_t old = push_index(d, i);
		void *item = list.items ? (char *)list.items + i * field->sub->size : NULL;
		if (ks_decode_object(d, field->sub, json_object_array_get_idx(value, i), item) < 0)
			return -1;
		ks_pointer_pop(d, old);
	}
	return 0;
}

static int decode_int(struct ks_decoder *d, const struct ks_field *field, struct json_object *value, int64_t *number)
{
	if (!json_object_is_type(value, json_type_int))
		return wrong_type(d, field, "an integer");
	*number = json_object_get_int64(value);
	if (*number >= field->min && *number <= field->max)
		return 0;
	return KS_FAIL(d, KS_E_OUT_OF_RANGE, "%s must be from %" PRId64 " to %" PRId64 "%s%s", field->name, field->min,
		       field->max, field->unit ? " " : "", field->unit ? field->unit : "");
}

static int decode_bool(struct ks_decoder *d, const struct ks_field *field, struct json_object *value, bool *truth)
{
	if (!json_object_is_type(value, json_type_boolean))
		return wrong_type(d, field, "true or false");
	*truth = json_object_get_boolean(value);
	return 0;
}

static int decode_id(struct ks_decoder *d, const struct ks_field *field, struct json_object *value, char **id)
{
	char text[KS_ID_TEXT];

	if (ks_id_text(value, text, sizeof(text)) < 0)
		return KS_FAIL(d, KS_E_INVALID_TYPE, "%s must be an integer or a string of at most %d bytes",
			       field->name, KS_ID_BYTES);
	*id = strdup(text);
	return *id ? 0 : ks_no_memory(d);
}

/* The types whose value is made at `at`; it is empty. */
int ks_decode_value(struct ks_decoder *d, const struct ks_field *field, struct json_object *value, void *at)
{
	bool truth = false;

	switch (field->type) {
	case KS_T_BOOL:
		return decode_bool(d, field, value, at);
	case KS_T_TRISTATE:
		if (decode_bool(d, field, value, &truth) < 0)
			return -1;
		*(int *)at = truth;
		return 0;
	case KS_T_INT:
		return decode_int(d, field, value, at);
	case KS_T_STRING:
		return copy_string(d, field, value, field->min, field->max, at);
	case KS_T_ENUM:
		if (!json_object_is_type(value, json_type_string))
			return wrong_type(d, field, "a string");
		*(int *)at = decode_choice(d, field, json_object_get_string(value),
					   (size_t)json_object_get_string_len(value));
		return *(int *)at < 0 ? -1 : 0;
	case KS_T_ID:
		return decode_id(d, field, value, at);
	case KS_T_TEXT:
		return decode_text(d, field, value, at);
	case KS_T_UTF8:
		return decode_utf8(d, field, value, at);
	case KS_T_BASE64:
		return decode_base64(d, field, value, at);
	case KS_T_STRINGS:
		return decode_strings(d, field, value, at);
	case KS_T_PAIRS:
		return decode_pairs(d, field, value, at);
	case KS_T_OBJECT:
	case KS_T_LIST:
	case KS_T_WORD:
	case KS_T_MAP:
	case KS_T_OPEN:
	case KS_T_TEXTS:
	case KS_T_INTS:
	case KS_T_ANY:
	default:
		return KS_FAIL(d, KS_E_INTERNAL, "%s has a type that is never decoded", field->name);
	}
}

static void free_strings(char **items, size_t count)
{
	for (size_t i = 0; items && i < count; i++)
		free(items[i]);
	free(items);
}

void ks_free_value(const struct ks_field *field, void *at)
{
	struct ks_text *text = at;
	struct ks_strings *strings = at;
	struct ks_pairs *pairs = at;
	struct ks_any_list list;

	switch (field->type) {
	case KS_T_STRING:
	case KS_T_ID:
		free(*(char **)at);
		*(char **)at = NULL;
		return;
	case KS_T_TEXT:
	case KS_T_UTF8:
	case KS_T_BASE64:
		free(text->data);
		free(text->blob);
		*text = (struct ks_text){ 0 };
		return;
	case KS_T_STRINGS:
		free_strings(strings->items, strings->count);
		*strings = (struct ks_strings){ 0 };
		return;
	case KS_T_PAIRS:
		/* A value without a name yet is left when decoding a pair failed half-way; its place behind it is NULL.
		 */
		free_strings(pairs->values, pairs->count + (pairs->values && pairs->values[pairs->count] ? 1 : 0));
		free_strings(pairs->names, pairs->count);
		*pairs = (struct ks_pairs){ 0 };
		return;
	case KS_T_OBJECT:
		ks_free_fields(field->sub, at);
		return;
	case KS_T_LIST:
		memcpy(&list, at, sizeof(list));
		for (size_t i = 0; i < list.count; i++)
			ks_free_fields(field->sub, (char *)list.items + i * field->sub->size);
		free(list.items);
		list = (struct ks_any_list){ 0 };
		memcpy(at, &list, sizeof(list));
		return;
	case KS_T_BOOL:
	case KS_T_TRISTATE:
	case KS_T_INT:
	case KS_T_ENUM:
	case KS_T_WORD:
	case KS_T_MAP:
	case KS_T_OPEN:
	case KS_T_TEXTS:
	case KS_T_INTS:
	case KS_T_ANY:
	default:
		return;
	}
}
