/* test_schema.c: the printed schema is complete, consistent and the committed one; the tables behind it are sane.
 * `test_schema --print` writes proto/kern.schema.json's content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json_object.h>
#include <json-c/linkhash.h>
#include <json-c/json_tokener.h>

#include "proto/methods.h"
#include "proto/scan.h"
#include "proto/schema.h"
#include "proto/tables.h"
#include "proto/write.h"

static struct json_object *printed;

static int setup(void **state)
{
	KS_AUTOBUF struct ks_buf buf = { 0 };
	const struct ks_scan_limits wide = { 32, 65536 };
	struct ks_error err;

	(void)state;
	ks_schema_print(&buf);
	if (buf.failed || ks_json_scan(buf.data, buf.len, &wide, &err) < 0)
		return -1;
	printed = ks_json_parse(buf.data, buf.len, &err);
	return printed ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	json_object_put(printed);
	return 0;
}

static struct json_object *get(struct json_object *from, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(from, key, &value))
		fail_msg("no %s", key);
	return value;
}

static void check_json(struct json_object *value, const char *want)
{
	assert_string_equal(
		json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE), want);
}

static struct json_object *property(const char *def, const char *name)
{
	return get(get(get(get(printed, "$defs"), def), "properties"), name);
}

static void test_fields(void **state)
{
	(void)state;
	check_json(property("SessionOpenParams", "memoryMb"),
		   "{\"description\":\"Memory cap of each call; absent: a profile's, else "
		   "512.\",\"type\":\"integer\",\"minimum\":4,"
		   "\"maximum\":1048576,\"x-unit\":\"MiB\",\"x-flag\":\"--memory-mb\"}");
	check_json(property("SessionOpenParams", "depsReadonly"),
		   "{\"description\":\"Installed packages are read only for the code.\",\"type\":\"boolean\",\"default\":true,"
		   "\"x-relaxes\":true,\"x-flag\":\"--deps-readonly\"}");
	check_json(property("SessionOpenParams", "box"),
		   "{\"description\":\"A box for each call, or one that stays.\",\"type\":\"string\",\"enum\":[\"fresh\","
		   "\"resident\"],\"default\":\"fresh\",\"x-unsupportedValues\":[\"resident\"],\"x-flag\":\"--box\"}");
	check_json(property("SessionOpenParams", "profiles"),
		   "{\"description\":\"Named sets of options, later ones win.\",\"type\":\"array\",\"maxItems\":16,"
		   "\"items\":{\"type\":\"string\",\"maxLength\":64,\"x-maxBytes\":64,\"pattern\":\"^[A-Za-z0-9._-]{1,64}$\"},"
		   "\"x-unsupported\":true,\"x-flag\":\"--profiles\"}");
	check_json(property("RunArgvParams", "argv"), "{\"description\":\"The program, searched in PATH when it has no "
						      "slash, and its arguments.\",\"type\":\"array\","
						      "\"minItems\":1,\"maxItems\":1024,\"items\":{\"type\":\"string\","
						      "\"maxLength\":131071,\"x-maxBytes\":131071}}");
	check_json(property("RunCodeParams", "code"),
		   "{\"description\":\"The program.\",\"$ref\":\"#/$defs/Text\",\"x-maxBytes\":4194304}");
	check_json(property("RunCodeParams", "session"),
		   "{\"description\":\"What the throw-away session is like.\",\"$ref\":\"#/$defs/SessionParams\"}");
	check_json(property("ExecutionResult", "files"), "{\"description\":\"Regular files and links that changed between start and "
							 "end, whoever changed them, bytewise by path. Empty with the note "
							 "files_untracked when there are more than 500,000 names, or too many "
							 "for all calls together.\",\"anyOf\":[{\"type\":\"array\",\"items\":{\"$ref\":"
							 "\"#/$defs/ChangedFile\"}},{\"$ref\":\"#/$defs/BlobText\"}]}");
	check_json(property("Fault", "type"),
		   "{\"description\":\"What happened; the first of this list that "
		   "did.\",\"type\":\"string\",\"examples\":[\"cancelled\","
		   "\"timeout\",\"oom\",\"escape_blocked\",\"exec_failed\",\"disk\",\"killed\"]}");
	check_json(get(get(get(printed, "$defs"), "RunCodeParams"), "required"), "[\"code\"]");
	check_json(get(get(get(printed, "$defs"), "RunCodeParams"), "additionalProperties"), "false");
	assert_false(
		json_object_object_get_ex(get(get(printed, "$defs"), "ExecutionResult"), "additionalProperties", NULL));
}

/* Every $ref has its definition, whatever it stands in. */
static size_t check_refs(struct json_object *value)
{
	size_t count = 0;

	if (json_object_is_type(value, json_type_array))
		for (size_t i = 0; i < json_object_array_length(value); i++)
			count += check_refs(json_object_array_get_idx(value, i));
	if (!json_object_is_type(value, json_type_object))
		return count;
	json_object_object_foreach(value, key, inner)
	{
		if (strcmp(key, "$ref") == 0) {
			const char *ref = json_object_get_string(inner);
			assert_int_equal(strncmp(ref, "#/$defs/", 8), 0);
			(void)get(get(printed, "$defs"), ref + 8);
			count++;
		} else {
			count += check_refs(inner);
		}
	}
	return count;
}

static void test_refs(void **state)
{
	(void)state;
	assert_true(check_refs(printed) > 200);
}

/* Names of the contract, so that none gets lost. */
static void test_methods_of_the_contract(void **state)
{
	static const char *const names[] = {
		"initialize", "initialized", "ping", "shutdown", "exit", "rpc/schema", "session/open",
		"session/close", "session/list", "run/code", "run/argv", "run/stdin", "run/signal", "run/credit",
		"$/cancel", "output/read", "blob/read", "blob/write", "blob/free", "stats/get", "plugin/list",
		"host/doctor", "run/started", "run/output", "$/log", "session/closed", "session/setup",
		"session/snapshot", "session/restore", "kernel/open", "kernel/run", "kernel/interrupt",
		"kernel/restart", "kernel/close", "kernel/list", "kernel/state", "kernel/output", "run/inputWanted",
		"run/display", "shell/open", "shell/run", "shell/write", "shell/resize", "shell/signal",
		"shell/close", "shell/output", "shell/exited", "file/read", "file/write", "file/stat", "file/list",
		"file/mkdir", "file/move", "file/remove", "file/edit", "file/glob", "file/search", "image/list",
		"image/pull", "image/import", "image/remove", "profiles/list", "render", "$/progress",
	};
	size_t count = 0;

	(void)state;
	for (size_t i = 0; i < KS_COUNT(names); i++)
		assert_non_null(ks_method_find(names[i]));
	while (ks_method_at(count))
		count++;
	assert_int_equal(count, KS_COUNT(names));
	assert_int_equal(json_object_array_length(get(printed, "x-methods")), count);
	check_json(json_object_array_get_idx(get(printed, "x-methods"), 2),
		   "{\"name\":\"ping\",\"description\":\"Are you "
		   "there?\",\"kind\":\"request\",\"from\":\"client\",\"lane\":\"control\","
		   "\"supported\":true,\"beforeInitialize\":true,\"since\":0,\"params\":{\"$ref\":\"#/$defs/"
		   "NoParams\"},\"result\":{\"$ref\":"
		   "\"#/$defs/Nothing\"},\"errors\":[\"overloaded\"]}");
}

static void test_errors(void **state)
{
	struct json_object *errors = get(printed, "x-errors");

	(void)state;
	assert_int_equal(json_object_array_length(errors), KS_REASON_MAX - 1);
	check_json(json_object_array_get_idx(errors, 0), "{\"reason\":\"parse\",\"code\":-32700,\"retryable\":false}");
	check_json(json_object_array_get_idx(errors, KS_E_OVERLOADED - 1),
		   "{\"reason\":\"overloaded\",\"code\":1003,\"retryable\":true}");
}

/* ---- the tables ---- */

/* Wide enough for any table's struct. */
union room {
	char bytes[4096];
	int64_t aligned;
	void *pointer;
};

static void check_field(const struct ks_schema *schema, const struct ks_field *field)
{
	bool words = field->type == KS_T_ENUM || field->type == KS_T_WORD;

	if (!field->text || !field->text[0])
		fail_msg("%s.%s has no text", schema->name, field->name);
	if (words && !field->choices)
		fail_msg("%s.%s has no choices", schema->name, field->name);
	if ((field->type == KS_T_OBJECT || field->type == KS_T_LIST) != (field->sub != NULL))
		fail_msg("%s.%s and its sub", schema->name, field->name);
	if ((field->flags & KS_F_ONLY_DEFAULT) && !field->fallback)
		fail_msg("%s.%s has no default to keep to", schema->name, field->name);
	if ((field->flags & KS_F_REQUIRED) && (field->fallback || (field->flags & KS_F_UNSUPPORTED)))
		fail_msg("%s.%s is required", schema->name, field->name);
	if (field->min > field->max && field->max != 0)
		fail_msg("%s.%s has min > max", schema->name, field->name);
	if (!field->slot)
		return;
	if (field->slot > schema->size && schema->size)
		fail_msg("%s.%s lies outside of its struct", schema->name, field->name);
	/* every amount has a cap */
	if (field->type != KS_T_BOOL && field->type != KS_T_TRISTATE && field->type != KS_T_ENUM &&
	    field->type != KS_T_ID && field->type != KS_T_OBJECT && field->max <= 0)
		fail_msg("%s.%s has no cap", schema->name, field->name);
	if ((field->type == KS_T_STRINGS || field->type == KS_T_PAIRS) && field->item_max <= 0)
		fail_msg("%s.%s has no item cap", schema->name, field->name);
}

/* The quick way to a default and the way of a request must lead to the same value. */
static void check_default(const struct ks_schema *schema, const struct ks_field *field)
{
	struct ks_field loose = *field;
	const struct ks_schema one = { .name = "one", .size = sizeof(union room), .parts = { { &loose, 1 } } };
	union room absent, given;
	struct ks_error err;
	char json[512];

	if (!field->slot || !field->fallback)
		return;
	loose.flags = 0;
	(void)snprintf(json, sizeof(json), "{\"%s\":%s}", field->name, field->fallback);
	struct json_object *in = ks_json_parse(json, strlen(json), &err);
	assert_non_null(in);
	loose.present = 0;
	if (ks_decode(&one, in, &given, &err) < 0 || ks_decode(&one, NULL, &absent, &err) < 0)
		fail_msg("%s.%s: %s", schema->name, field->name, err.text);
	if (field->type == KS_T_STRING)
		assert_string_equal(*(char **)(void *)(absent.bytes + field->slot - 1),
				    *(char **)(void *)(given.bytes + field->slot - 1));
	else if (field->type == KS_T_STRINGS)
		assert_int_equal(((struct ks_strings *)(void *)(absent.bytes + field->slot - 1))->count,
				 ((struct ks_strings *)(void *)(given.bytes + field->slot - 1))->count);
	else
		assert_memory_equal(&absent, &given, sizeof(absent));
	ks_params_free(&one, &absent);
	ks_params_free(&one, &given);
	json_object_put(in);
}

static const struct ks_schema *seen[256];
static size_t seen_count;

static void check_schema(const struct ks_schema *schema)
{
	const struct ks_field *field;

	for (size_t i = 0; i < seen_count; i++) {
		if (seen[i] == schema)
			return;
		if (strcmp(seen[i]->name, schema->name) == 0)
			fail_msg("two tables are called %s", schema->name);
	}
	assert_true(seen_count < KS_COUNT(seen));
	seen[seen_count++] = schema;
	(void)get(get(printed, "$defs"), schema->name);
	assert_true(schema->size <= sizeof(union room));
	for (size_t i = 0; (field = ks_schema_field(schema, i)); i++) {
		check_field(schema, field);
		check_default(schema, field);
		assert_ptr_equal(ks_schema_find(schema, field->name), field); /* no name twice */
		if (field->sub)
			check_schema(field->sub);
	}
}

static void test_tables(void **state)
{
	const struct ks_method *method;

	(void)state;
	for (size_t i = 0; (method = ks_method_at(i)); i++) {
		assert_ptr_equal(ks_method_find(method->name), method);
		assert_non_null(method->text);
		assert_non_null(method->errors);
		assert_true((method->result != NULL) == (method->kind == KS_REQUEST));
		check_schema(method->params);
		if (method->result)
			check_schema(method->result);
	}
}

static int print(struct ks_buf *pretty)
{
	KS_AUTOBUF struct ks_buf buf = { 0 };

	ks_schema_print(&buf);
	ks_json_indent(pretty, buf.data, buf.len);
	ks_buf_char(pretty, '\n');
	return buf.failed || pretty->failed ? -1 : 0;
}

static void test_committed(void **state)
{
	KS_AUTOBUF struct ks_buf pretty = { 0 }, file = { 0 };
	FILE *f = fopen(KS_SOURCE_DIR "/proto/kern.schema.json", "rbe");
	char *to;

	(void)state;
	assert_int_equal(print(&pretty), 0);
	if (!f)
		fail_msg("proto/kern.schema.json is missing: make it with kern-sidecar --print-schema");
	while ((to = ks_buf_reserve(&file, 65536))) {
		size_t len = fread(to, 1, 65536, f);
		file.len += len;
		if (len == 0)
			break;
	}
	(void)fclose(f);
	if (file.len != pretty.len || memcmp(file.data, pretty.data, file.len) != 0)
		fail_msg("proto/kern.schema.json is old: write it again with kern-sidecar --print-schema");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_refs),
		cmocka_unit_test(test_methods_of_the_contract),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_committed),
	};

	if (argc == 2 && strcmp(argv[1], "--print") == 0) {
		KS_AUTOBUF struct ks_buf pretty = { 0 };
		return print(&pretty) < 0 || fwrite(pretty.data, 1, pretty.len, stdout) != pretty.len;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
