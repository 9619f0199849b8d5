/* decode.c: JSON objects into the structs of messages.h, driven by the tables: names, defaults, what is missing, what
 * this build does not have. Single values are value.c's. */
#include "decoder.h"

#include <string.h>

#include <json-c/json_object.h>
#include <json-c/linkhash.h>

#include "proto/scan.h"

void ks_free_fields(const struct ks_schema *schema, char *base)
{
	const struct ks_field *field;

	for (size_t i = 0; (field = ks_schema_field(schema, i)); i++)
		if (field->slot)
			ks_free_value(field, base + field->slot - 1);
}

void ks_params_free(const struct ks_schema *schema, void *params)
{
	if (schema->size == 0)
		return;
	ks_free_fields(schema, params);
	memset(params, 0, schema->size);
}

static int decode_default(struct ks_decoder *d, const struct ks_field *field, void *at)
{
	struct json_object *value = ks_json_parse(field->fallback, strlen(field->fallback), d->err);

	if (!value)
		return -1;
	int result = ks_decode_value(d, field, value, at);
	json_object_put(value);
	return result;
}

/* The member (zeros so far) of a field that the request does not have: its default or "absent". Spelled out for the
 * common types: a call has some forty of these, and parsing each would cost more than the request itself. */
static int fill_absent(struct ks_decoder *d, const struct ks_field *field, char *base)
{
	const struct ks_field *inner;
	void *at;

	if (!base || !field->slot)
		return 0;
	at = base + field->slot - 1;
	switch (field->type) {
	case KS_T_BOOL:
		*(bool *)at = field->fallback && field->fallback[0] == 't';
		return 0;
	case KS_T_TRISTATE:
		*(int *)at = field->fallback ? field->fallback[0] == 't' : -1;
		return 0;
	case KS_T_INT:
		*(int64_t *)at = field->fallback ? strtoll(field->fallback, NULL, 10) : KS_ABSENT;
		return 0;
	case KS_T_ENUM: /* the default is the word in quotes */
		*(int *)at =
			field->fallback ? ks_find_choice(field, field->fallback + 1, strlen(field->fallback) - 2) : -1;
		return 0;
	case KS_T_OBJECT:
		for (size_t i = 0; (inner = ks_schema_field(field->sub, i)); i++)
			if (fill_absent(d, inner, at) < 0)
				return -1;
		return 0;
	case KS_T_STRING:
	case KS_T_ID:
	case KS_T_TEXT:
	case KS_T_UTF8:
	case KS_T_BASE64:
	case KS_T_STRINGS:
	case KS_T_PAIRS:
	case KS_T_LIST:
	case KS_T_WORD:
	case KS_T_MAP:
	case KS_T_OPEN:
	case KS_T_TEXTS:
	case KS_T_INTS:
	case KS_T_ANY:
	default:
		return field->fallback ? decode_default(d, field, at) : 0;
	}
}

static int check_only_default(struct ks_decoder *d, const struct ks_field *field, struct json_object *value)
{
	struct json_object *only = ks_json_parse(field->fallback, strlen(field->fallback), d->err);

	if (!only)
		return -1;
	bool same = json_object_equal(only, value);
	json_object_put(only);
	return same ? 0
		    : KS_FAIL(d, KS_E_UNSUPPORTED_OPTION, "%s other than %s is not in this build", field->name,
			      field->fallback);
}

/* The value of a field that is there. */
static int decode_field(struct ks_decoder *d, const struct ks_field *field, struct json_object *value, char *base)
{
	union ks_value nowhere = { 0 };
	void *at = base && field->slot ? base + field->slot - 1 : NULL;

	if (field->flags & KS_F_UNSUPPORTED)
		return KS_FAIL(d, KS_E_UNSUPPORTED_OPTION, "%s is not in this build", field->name);
	if (json_object_is_type(value, json_type_null))
		return KS_FAIL(d, KS_E_INVALID_TYPE, "%s is null; leave it out instead", field->name);
	if (base && field->present)
		*(bool *)(void *)(base + field->present - 1) = true;
	if (field->type == KS_T_OBJECT)
		return ks_decode_object(d, field->sub, value, at);
	if (field->type == KS_T_LIST)
		return ks_decode_list(d, field, value, at);
	if (at && (field->type == KS_T_UTF8 || field->type == KS_T_BASE64) && ((struct ks_text *)at)->present)
		return KS_FAIL(d, KS_E_INVALID_VALUE, "text and base64 cannot both be given");

	int result = ks_decode_value(d, field, value, at ? at : &nowhere);
	if (!at)
		ks_free_value(field, &nowhere);
	if (result == 0 && (field->flags & KS_F_ONLY_DEFAULT))
		return check_only_default(d, field, value);
	return result;
}

static const char *field_name_at(const void *schema, size_t i)
{
	const struct ks_field *field = ks_schema_field(schema, i);

	return field ? field->name : NULL;
}

static int check_names(struct ks_decoder *d, const struct ks_schema *schema, struct json_object *in)
{
	json_object_object_foreach(in, name, value)
	{
		(void)value;
		if (ks_schema_find(schema, name))
			continue;
		(void)ks_pointer_push(d, name);
		(void)KS_FAIL(d, KS_E_UNKNOWN_OPTION, "there is no field \"%.*s\" here", KS_SHOWN, name);
		const char *guess = ks_did_you_mean(name, field_name_at, schema);
		return guess ? ks_error_hint(d->err, "did you mean \"%s\"?", guess) : -1;
	}
	return 0;
}

int ks_decode_object(struct ks_decoder *d, const struct ks_schema *schema, struct json_object *in, void *base)
{
	const struct ks_field *field;

	if (!json_object_is_type(in, json_type_object))
		return KS_FAIL(d, KS_E_INVALID_TYPE, "must be an object");
	if (check_names(d, schema, in) < 0)
		return -1;
	for (size_t i = 0; (field = ks_schema_field(schema, i)); i++) {
		struct json_object *value;
		size_t old = ks_pointer_push(d, field->name);
		int result;
		if (json_object_object_get_ex(in, field->name, &value))
			result = decode_field(d, field, value, base);
		else if (field->flags & KS_F_REQUIRED)
			result = KS_FAIL(d, KS_E_MISSING, "%s is required", field->name);
		else
			result = fill_absent(d, field, base);
		if (result < 0)
			return -1;
		ks_pointer_pop(d, old);
	}
	if (!schema->check || !base || schema->check(base, d->err) == 0)
		return 0;
	/* The check names the field as this object sees it. */
	if (d->err->pointer[0] == '/')
		(void)ks_pointer_push(d, d->err->pointer + 1);
	return ks_error_at(d->err, d->pointer);
}

int ks_decode(const struct ks_schema *schema, struct json_object *in, void *out, struct ks_error *err)
{
	struct ks_decoder d = { .err = err };
	struct json_object *empty = in ? NULL : json_object_new_object();
	void *base = schema->size ? out : NULL;

	if (!in && !empty)
		return ks_no_memory(&d);
	if (base)
		memset(base, 0, schema->size);
	int result = ks_decode_object(&d, schema, in ? in : empty, base);
	json_object_put(empty);
	if (result < 0)
		ks_params_free(schema, out);
	return result;
}
