/* schema.c: the tables as JSON Schema 2020-12 (json-schema.org). Lengths of the tables count bytes, those of JSON
 * Schema code points: what the schema refuses, decoding refuses, and x-maxBytes has the exact limit. */
#include "schema.h"

#include <inttypes.h>
#include <string.h>

#include "proto/methods.h"
#include "proto/tables.h"
#include "proto/write.h"

#define MAX_DEFS 256

/* All schemas that the methods reach, in that order, each once. */
struct defs {
	const struct ks_schema *list[MAX_DEFS];
	bool closed[MAX_DEFS]; /* params of a client: other properties are refused */
	size_t count;
};

static void collect(struct defs *defs, const struct ks_schema *schema, bool closed)
{
	const struct ks_field *field;

	for (size_t i = 0; i < defs->count; i++)
		if (defs->list[i] == schema)
			return;
	if (defs->count == MAX_DEFS)
		return;
	defs->list[defs->count] = schema;
	defs->closed[defs->count++] = closed;
	for (size_t i = 0; (field = ks_schema_field(schema, i)); i++)
		if (field->sub)
			collect(defs, field->sub, closed);
}

static void key_text(struct ks_buf *buf, const char *key, const char *text)
{
	ks_write_key_string(buf, key, text);
}

static void write_ref(struct ks_buf *buf, const char *name)
{
	ks_write_key(buf, "$ref");
	KS_AUTOBUF struct ks_buf ref = { 0 };
	ks_buf_printf(&ref, "#/$defs/%s", name);
	ks_write_utf8_lossy(buf, ref.data, ref.len);
}

static void write_ref_object(struct ks_buf *buf, const char *key, const char *name)
{
	ks_write_key(buf, key);
	ks_write_open(buf, '{');
	write_ref(buf, name);
	ks_write_close(buf, '}');
}

static void write_words(struct ks_buf *buf, const char *key, const char *const *words, unsigned mask)
{
	ks_write_key(buf, key);
	ks_write_open(buf, '[');
	for (unsigned i = 0; words[i]; i++)
		if (mask >> i & 1)
			ks_write_string(buf, words[i]);
	ks_write_close(buf, ']');
}

/* Two numbers of which 0 and the table's "no limit" are left out. */
static void write_range(struct ks_buf *buf, const char *min_key, int64_t min, const char *max_key, int64_t max)
{
	if (min > 0)
		ks_write_key_int(buf, min_key, min);
	if (max > 0)
		ks_write_key_int(buf, max_key, max);
}

static void write_string(struct ks_buf *buf, const struct ks_field *field, int64_t min, int64_t max)
{
	key_text(buf, "type", "string");
	/* a string of min bytes has at least one code point and at most max of them */
	write_range(buf, "minLength", min > 0, "maxLength", max);
	if (max > 0)
		ks_write_key_int(buf, "x-maxBytes", max);
	key_text(buf, "pattern", ks_pattern_text(field->pattern));
	if (field->choices)
		write_words(buf, field->type == KS_T_WORD ? "examples" : "enum", field->choices, ~0u);
}

static void write_strings(struct ks_buf *buf, const struct ks_field *field)
{
	key_text(buf, "type", "array");
	write_range(buf, "minItems", field->min, "maxItems", field->max);
	ks_write_key(buf, "items");
	ks_write_open(buf, '{');
	write_string(buf, field, 0, field->item_max);
	ks_write_close(buf, '}');
}

static void write_pairs(struct ks_buf *buf, const struct ks_field *field)
{
	key_text(buf, "type", "object");
	write_range(buf, "minProperties", field->min, "maxProperties", field->max);
	ks_write_key(buf, "propertyNames");
	ks_write_open(buf, '{');
	write_range(buf, "minLength", 1, "maxLength", KS_KEY_BYTES);
	key_text(buf, "pattern", ks_pattern_text(field->key_pattern));
	ks_write_close(buf, '}');
	ks_write_key(buf, "additionalProperties");
	ks_write_open(buf, '{');
	write_string(buf, field, 0, field->item_max > 2 ? field->item_max - 2 : 0); /* "k=" counts, too */
	ks_write_close(buf, '}');
}

static void write_map(struct ks_buf *buf, const char *value_key, const char *value)
{
	key_text(buf, "type", "object");
	ks_write_key(buf, "additionalProperties");
	ks_write_open(buf, '{');
	key_text(buf, value_key, value);
	ks_write_close(buf, '}');
}

/* The members that say which values are valid. */
static void write_type(struct ks_buf *buf, const struct ks_field *field)
{
	switch (field->type) {
	case KS_T_BOOL:
	case KS_T_TRISTATE:
		key_text(buf, "type", "boolean");
		return;
	case KS_T_INT:
		key_text(buf, "type", "integer");
		if (field->min != 0 || field->max != 0) {
			ks_write_key_int(buf, "minimum", field->min);
			ks_write_key_int(buf, "maximum", field->max);
		}
		return;
	case KS_T_ID:
		ks_write_key(buf, "type");
		ks_write_raw(buf, "[\"integer\",\"string\"]", strlen("[\"integer\",\"string\"]"));
		ks_write_key_int(buf, "maxLength", KS_ID_BYTES);
		return;
	case KS_T_STRING:
	case KS_T_ENUM:
	case KS_T_WORD:
	case KS_T_UTF8:
		write_string(buf, field, field->min, field->max);
		return;
	case KS_T_BASE64:
		key_text(buf, "type", "string");
		key_text(buf, "contentEncoding", "base64");
		key_text(buf, "pattern", "^[A-Za-z0-9+/]*={0,2}$");
		if (field->max > 0)
			ks_write_key_int(buf, "x-maxBytes", field->max);
		return;
	case KS_T_TEXT:
		write_ref(buf, "Text");
		if (field->max > 0)
			ks_write_key_int(buf, "x-maxBytes", field->max);
		return;
	case KS_T_OBJECT:
		write_ref(buf, field->sub->name);
		return;
	case KS_T_STRINGS:
		write_strings(buf, field);
		return;
	case KS_T_PAIRS:
		write_pairs(buf, field);
		return;
	case KS_T_LIST:
		key_text(buf, "type", "array");
		write_range(buf, "minItems", field->min, "maxItems", field->max);
		write_ref_object(buf, "items", field->sub->name);
		return;
	case KS_T_MAP:
		write_map(buf, "type", "string");
		return;
	case KS_T_TEXTS:
		write_map(buf, "$ref", "#/$defs/Text");
		return;
	case KS_T_OPEN:
		key_text(buf, "type", "object");
		return;
	case KS_T_INTS:
		key_text(buf, "type", "array");
		ks_write_key(buf, "items");
		ks_write_raw(buf, "{\"type\":\"integer\"}", strlen("{\"type\":\"integer\"}"));
		return;
	case KS_T_ANY:
	default:
		return;
	}
}

/* memoryMb is --memory-mb */
static void write_field(struct ks_buf *buf, const struct ks_field *field)
{
	char flag[KS_FLAG_NAME];

	ks_write_key(buf, field->name);
	ks_write_open(buf, '{');
	key_text(buf, "description", field->text);
	if (field->flags & KS_F_MAY_BLOB) {
		ks_write_key(buf, "anyOf");
		ks_write_open(buf, '[');
		ks_write_open(buf, '{');
		write_type(buf, field);
		ks_write_close(buf, '}');
		ks_write_open(buf, '{');
		write_ref(buf, "BlobText");
		ks_write_close(buf, '}');
		ks_write_close(buf, ']');
	} else {
		write_type(buf, field);
	}
	if (field->fallback) {
		ks_write_key(buf, "default");
		ks_write_raw(buf, field->fallback, strlen(field->fallback));
	}
	key_text(buf, "x-unit", field->unit);
	if (field->flags & KS_F_UNSUPPORTED)
		ks_write_key_bool(buf, "x-unsupported", true);
	if (field->flags & KS_F_ONLY_DEFAULT)
		ks_write_key_bool(buf, "x-onlyDefault", true);
	if (field->unsupported_choices)
		write_words(buf, "x-unsupportedValues", field->choices, field->unsupported_choices);
	if (field->flags & KS_F_RELAXES)
		ks_write_key_bool(buf, "x-relaxes", true);
	if (field->flags & KS_F_CLI) {
		ks_flag_name(field, flag);
		key_text(buf, "x-flag", flag);
	}
	ks_write_close(buf, '}');
}

static void write_def(struct ks_buf *buf, const struct ks_schema *schema, bool closed)
{
	const struct ks_field *field;

	ks_write_open(buf, '{');
	key_text(buf, "description", schema->text);
	key_text(buf, "x-rule", schema->rule);
	key_text(buf, "type", "object");
	ks_write_key(buf, "properties");
	ks_write_open(buf, '{');
	for (size_t i = 0; (field = ks_schema_field(schema, i)); i++)
		write_field(buf, field);
	ks_write_close(buf, '}');
	ks_write_key(buf, "required");
	ks_write_open(buf, '[');
	for (size_t i = 0; (field = ks_schema_field(schema, i)); i++)
		if (field->flags & KS_F_REQUIRED)
			ks_write_string(buf, field->name);
	ks_write_close(buf, ']');
	if (closed)
		ks_write_key_bool(buf, "additionalProperties", false);
	ks_write_close(buf, '}');
}

/* The one type that is not a table: Text, in its three forms. */
static const char text_defs[] =
	"\"Text\":{\"description\":\"Bytes: a string, base64, or a blob to be read with blob/read.\",\"anyOf\":["
	"{\"type\":\"string\"},{\"$ref\":\"#/$defs/Base64Text\"},{\"$ref\":\"#/$defs/BlobText\"}]},"
	"\"Base64Text\":{\"description\":\"Bytes as base64 (RFC 4648, "
	"padded).\",\"type\":\"object\",\"properties\":{\"base64\":"
	"{\"type\":\"string\",\"contentEncoding\":\"base64\",\"pattern\":\"^[A-Za-z0-9+/]*={0,2}$\"}},"
	"\"required\":[\"base64\"],\"additionalProperties\":false},"
	"\"BlobText\":{\"description\":\"Bytes that the server keeps.\",\"type\":\"object\",\"properties\":{\"blob\":"
	"{\"type\":\"object\",\"properties\":{\"id\":{\"type\":\"string\",\"pattern\":\"^[A-Za-z0-9._-]{1,64}$\"},"
	"\"bytes\":{\"type\":\"integer\",\"minimum\":0},\"sha256\":{\"type\":\"string\",\"pattern\":\"^[0-9a-f]{64}$\"}"
	","
	"\"mime\":{\"type\":\"string\"}},\"required\":[\"id\"],\"additionalProperties\":false}},"
	"\"required\":[\"blob\"],\"additionalProperties\":false}";

static void write_method(struct ks_buf *buf, const struct ks_method *method)
{
	ks_write_open(buf, '{');
	key_text(buf, "name", method->name);
	key_text(buf, "description", method->text);
	key_text(buf, "kind", method->kind == KS_REQUEST ? "request" : "notification");
	key_text(buf, "from", method->side == KS_FROM_CLIENT ? "client" : "server");
	key_text(buf, "lane", method->lane == KS_METHOD_CONTROL ? "control" : "work");
	ks_write_key_bool(buf, "supported", method->supported);
	ks_write_key_bool(buf, "beforeInitialize", method->before_initialize);
	ks_write_key_int(buf, "since", method->since);
	write_ref_object(buf, "params", method->params->name);
	if (method->result)
		write_ref_object(buf, "result", method->result->name);
	ks_write_key(buf, "errors");
	ks_write_open(buf, '[');
	if (method->kind == KS_REQUEST) /* from the dispatcher, whatever the method */
		ks_write_string(buf, ks_reason_name(KS_E_OVERLOADED));
	for (const enum ks_reason *reason = method->errors; *reason != KS_E_NONE; reason++)
		ks_write_string(buf, ks_reason_name(*reason));
	ks_write_close(buf, ']');
	ks_write_close(buf, '}');
}

void ks_schema_print(struct ks_buf *buf)
{
	struct defs defs = { 0 };
	const struct ks_method *method;

	for (size_t i = 0; (method = ks_method_at(i)); i++) {
		collect(&defs, method->params, method->side == KS_FROM_CLIENT);
		if (method->result)
			collect(&defs, method->result, false);
	}
	collect(&defs, &ks_rpc_error, false);

	ks_write_open(buf, '{');
	key_text(buf, "$schema", "https://json-schema.org/draft/2020-12/schema");
	key_text(buf, "title", "The protocol of kern-sidecar");
	ks_write_key_int(buf, "x-protocolVersion", KS_PROTOCOL_VERSION);
	ks_write_key_int(buf, "x-protocolMinor", KS_PROTOCOL_MINOR);
	ks_write_key(buf, "$defs");
	ks_write_open(buf, '{');
	ks_write_raw(buf, text_defs, sizeof(text_defs) - 1);
	for (size_t i = 0; i < defs.count; i++) {
		ks_write_key(buf, defs.list[i]->name);
		write_def(buf, defs.list[i], defs.closed[i]);
	}
	ks_write_close(buf, '}');
	ks_write_key(buf, "x-methods");
	ks_write_open(buf, '[');
	for (size_t i = 0; (method = ks_method_at(i)); i++)
		write_method(buf, method);
	ks_write_close(buf, ']');
	ks_write_key(buf, "x-errors");
	ks_write_open(buf, '[');
	for (enum ks_reason reason = KS_E_NONE + 1; reason < KS_REASON_MAX; reason++) {
		ks_write_open(buf, '{');
		key_text(buf, "reason", ks_reason_name(reason));
		ks_write_key_int(buf, "code", ks_reason_number(reason));
		ks_write_key_bool(buf, "retryable", ks_reason_retryable(reason));
		ks_write_close(buf, '}');
	}
	ks_write_close(buf, ']');
	ks_write_close(buf, '}');
}

void ks_schema_write(struct ks_buf *buf, const struct ks_schema *schema)
{
	write_def(buf, schema, true);
}
