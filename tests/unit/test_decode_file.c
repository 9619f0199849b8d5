/* Params of the file methods: defaults, caps at, below and above, and the rules over several fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "proto/scan.h"
#include "proto/tables.h"

static int decode(const struct ks_schema *schema, const char *json, void *out, struct ks_error *err)
{
	struct json_object *in = ks_json_parse(json, strlen(json), err);

	assert_non_null(in);
	int rc = ks_decode(schema, in, out, err);
	json_object_put(in);
	return rc;
}

static void test_defaults(void **unused)
{
	struct ks_file_read_params read;
	struct ks_file_write_params write;
	struct ks_file_list_params list;
	struct ks_file_edit_params edit;
	struct ks_file_move_params move;
	struct ks_error err;

	(void)unused;
	assert_int_equal(decode(&ks_file_read_params, "{\"sessionId\":\"s\",\"path\":\"p\"}", &read, &err), 0);
	assert_false(read.follow_links || read.has_lines || read.path_bytes.present);
	assert_int_equal(read.offset, KS_ABSENT);
	assert_int_equal(read.length, KS_ABSENT);
	assert_int_equal(read.encoding, KS_ENCODING_AUTO);
	ks_params_free(&ks_file_read_params, &read);

	assert_int_equal(decode(&ks_file_write_params, "{\"sessionId\":\"s\",\"path\":\"p\",\"content\":\"\"}", &write, &err), 0);
	assert_true(write.mkdirs && write.content.present);
	assert_int_equal(write.if_exists, KS_IF_EXISTS_REPLACE);
	assert_int_equal(write.mode, KS_ABSENT);
	assert_null(write.if_match);
	ks_params_free(&ks_file_write_params, &write);

	assert_int_equal(decode(&ks_file_list_params, "{\"sessionId\":\"s\"}", &list, &err), 0);
	assert_false(list.recursive || list.cursor.present || list.path_bytes.present);
	assert_null(list.path);
	assert_int_equal(list.limit, 1000);
	ks_params_free(&ks_file_list_params, &list);

	assert_int_equal(decode(&ks_file_move_params, "{\"sessionId\":\"s\",\"pathBase64\":\"/w==\",\"toBase64\":\"/g==\"}", &move, &err),
			 0);
	assert_false(move.replace || move.follow_links);
	assert_int_equal(move.to_bytes.len, 1);
	ks_params_free(&ks_file_move_params, &move);

	assert_int_equal(decode(&ks_file_edit_params,
				"{\"sessionId\":\"s\",\"path\":\"p\",\"edits\":[{\"oldText\":\"a\",\"newText\":\"\"},"
				"{\"oldText\":\"b\",\"newText\":\"c\",\"all\":true}]}", &edit, &err), 0);
	assert_int_equal(edit.edits.count, 2);
	assert_string_equal(edit.edits.items[0].new_text, "");
	assert_false(edit.edits.items[0].all);
	assert_true(edit.edits.items[1].all);
	ks_params_free(&ks_file_edit_params, &edit);
}

static void test_rules(void **unused)
{
	static const struct {
		const struct ks_schema *schema;
		const char *more; /* behind the session */
		enum ks_reason reason;
		const char *pointer;
	} cases[] = {
		{ &ks_file_read_params, "", KS_E_MISSING, "/path" },
		{ &ks_file_read_params, ",\"path\":\"a\",\"pathBase64\":\"YQ==\"", KS_E_INVALID_VALUE, "/pathBase64" },
		{ &ks_file_read_params, ",\"path\":\"a\",\"lines\":{\"start\":1,\"count\":1},\"length\":1", KS_E_INVALID_VALUE, "/lines" },
		{ &ks_file_read_params, ",\"path\":\"a\",\"length\":0", KS_E_OUT_OF_RANGE, "/length" },
		{ &ks_file_write_params, ",\"path\":\"a\"", KS_E_MISSING, "/content" },
		{ &ks_file_write_params, ",\"path\":\"a\",\"content\":\"\",\"mode\":512", KS_E_OUT_OF_RANGE, "/mode" },
		{ &ks_file_write_params, ",\"path\":\"a\",\"content\":\"\",\"ifMatch\":\"\"", KS_E_OUT_OF_RANGE, "/ifMatch" },
		{ &ks_file_write_params, ",\"path\":\"a\",\"content\":\"\",\"ifMatch\":\"b\",\"ifExists\":\"fail\"", KS_E_INVALID_VALUE,
		  "/ifMatch" },
		{ &ks_file_list_params, ",\"limit\":100001", KS_E_OUT_OF_RANGE, "/limit" },
		{ &ks_file_list_params, ",\"limit\":0", KS_E_OUT_OF_RANGE, "/limit" },
		{ &ks_file_list_params, ",\"cursor\":\"ZA==\"", KS_E_OUT_OF_RANGE, "/cursor" },
		{ &ks_file_list_params, ",\"cursor\":\"d\"", KS_E_INVALID_VALUE, "/cursor" },
		{ &ks_file_mkdir_params, ",\"path\":\"a\",\"recursive\":true", KS_E_UNKNOWN_OPTION, "/recursive" },
		{ &ks_file_move_params, ",\"path\":\"a\"", KS_E_MISSING, "/to" },
		{ &ks_file_move_params, ",\"path\":\"a\",\"to\":\"b\",\"toBase64\":\"YQ==\"", KS_E_INVALID_VALUE, "/toBase64" },
		{ &ks_file_edit_params, ",\"path\":\"a\",\"edits\":[]", KS_E_OUT_OF_RANGE, "/edits" },
		{ &ks_file_edit_params, ",\"path\":\"a\",\"edits\":[{\"oldText\":\"\",\"newText\":\"\"}]", KS_E_OUT_OF_RANGE,
		  "/edits/0/oldText" },
		{ &ks_file_edit_params, ",\"path\":\"a\",\"edits\":[{\"oldText\":\"a\\u0000\",\"newText\":\"\"}]", KS_E_INVALID_VALUE,
		  "/edits/0/oldText" },
	};

	(void)unused;
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		char json[512], out[512];
		struct ks_error err;
		(void)snprintf(json, sizeof(json), "{\"sessionId\":\"s\"%s}", cases[i].more);
		assert_true(cases[i].schema->size <= sizeof(out));
		assert_int_equal(decode(cases[i].schema, json, out, &err), -1);
		if (err.reason != cases[i].reason || strcmp(err.pointer, cases[i].pointer) != 0)
			fail_msg("%s: %s at %s: %s", json, ks_reason_name(err.reason), err.pointer, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_defaults), cmocka_unit_test(test_rules) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
