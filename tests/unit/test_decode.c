/* test_decode.c: JSON into structs by the tables: every type, every rule at, below and above its limit, and the exact
 * errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json_object.h>

#include "base/buf.h"
#include "proto/methods.h"
#include "proto/scan.h"
#include "proto/tables.h"

static struct json_object *parse(const char *json)
{
	struct ks_error err;
	struct json_object *value = ks_json_parse(json, strlen(json), &err);

	if (!value)
		fail_msg("%s: %s", json, err.text);
	return value;
}

static int decode(const struct ks_schema *schema, const char *json, void *out, struct ks_error *err)
{
	struct json_object *in = json ? parse(json) : NULL;

	memset(err, 0, sizeof(*err));
	int result = ks_decode(schema, in, out, err);
	json_object_put(in);
	return result;
}

static void refuse(const struct ks_schema *schema, const char *json, enum ks_reason reason, const char *pointer,
		   const char *says)
{
	union {
		struct ks_run_params run;
		struct ks_session_params session;
		struct ks_initialize_params initialize;
		char room[4096];
	} out, empty;
	struct ks_error err;

	memset(&out, 0xA5, sizeof(out));
	memset(&empty, 0, sizeof(empty));
	int result = decode(schema, json, &out, &err);
	if (result != -1 || err.reason != reason || strcmp(err.pointer, pointer) != 0 ||
	    (says && !strstr(err.text, says)))
		fail_msg("%s: %d %s at \"%s\": %s; want %s at \"%s\": %s", json, result, ks_reason_name(err.reason),
			 err.pointer, err.text, ks_reason_name(reason), pointer, says ? says : "");
	assert_memory_equal(&out, &empty, schema->size); /* nothing left that needs freeing */
}

static void accept(const struct ks_schema *schema, const char *json)
{
	char *out = malloc(schema->size + 1); /* exact, so that a write behind it is seen */
	struct ks_error err;

	assert_non_null(out);
	if (decode(schema, json, out, &err) < 0)
		fail_msg("%s: %s at %s", json, err.text, err.pointer);
	ks_params_free(schema, out);
	ks_params_free(schema, out);
	free(out);
}

static void test_session_defaults(void **state)
{
	struct ks_session_params s;
	struct ks_error err;

	(void)state;
	memset(&s, 0xA5, sizeof(s));
	assert_int_equal(decode(&ks_session_open_params, NULL, &s, &err), 0);
	assert_null(s.session_id);
	assert_string_equal(s.image, "host");
	assert_int_equal(s.pull, KS_PULL_MISSING);
	assert_null(s.workspace);
	assert_string_equal(s.workspace_target, "/workspace");
	assert_null(s.cwd);
	assert_true(s.memory_mb == KS_ABSENT && s.cpus_milli == KS_ABSENT && s.workspace_max_mb == KS_ABSENT);
	assert_int_equal(s.pids, 256);
	assert_int_equal(s.timeout_ms, 30000);
	assert_int_equal(s.max_output_bytes, 67108864);
	assert_int_equal(s.prewarm, 0);
	assert_false(s.network || s.map_owner || s.require_limits || s.has_cap_drop);
	assert_true(s.enforce_limits && s.deps_readonly && s.track_files);
	assert_int_equal(s.cap_drop.count, 1);
	assert_string_equal(s.cap_drop.items[0], "ALL");
	assert_null(s.cap_drop.items[1]);
	assert_int_equal(s.env.count + s.tmpfs.count + s.mounts.count + s.interpreters.count, 0);
	assert_int_equal(s.start, KS_START_AUTO);
	assert_int_equal(s.workspace_storage, KS_STORAGE_DISK);
	assert_int_equal(s.box, KS_BOX_FRESH);
	ks_params_free(&ks_session_open_params, &s);
	assert_null(s.image);
	ks_params_free(&ks_session_open_params, &s);
}

static void test_run_code(void **state)
{
	struct ks_run_params r;
	struct ks_error err;

	(void)state;
	assert_int_equal(
		decode(&ks_run_code_params,
		       "{\"runId\":\"r.1_-\",\"session\":{\"memoryMb\":64,\"env\":{\"A\":\"1\",\"_b2\":\"\"}},"
		       "\"language\":\"bash\",\"code\":\"x\\u0000y\",\"args\":[\"-v\",\"\"],\"timeoutMs\":86400000,"
		       "\"stdin\":{\"base64\":\"AAEC\"},\"trackFiles\":false,\"encoding\":\"auto\",\"stream\":"
		       "\"lossless\","
		       "\"merge\":true,\"progressToken\":7}",
		       &r, &err),
		0);
	assert_string_equal(r.run_id, "r.1_-");
	assert_null(r.session_id);
	assert_true(r.has_session);
	assert_int_equal(r.session.memory_mb, 64);
	assert_int_equal(r.session.pids, 256);
	assert_string_equal(r.session.workspace_target, "/workspace");
	assert_int_equal(r.session.env.count, 2);
	assert_string_equal(r.session.env.names[0], "A");
	assert_string_equal(r.session.env.values[0], "1");
	assert_string_equal(r.session.env.names[1], "_b2");
	assert_string_equal(r.session.env.values[1], "");
	assert_string_equal(r.language, "bash");
	assert_true(r.code.present && !r.code.blob && r.code.len == 3);
	assert_memory_equal(r.code.data, "x\0y\0", 4);
	assert_int_equal(r.args.count, 2);
	assert_string_equal(r.args.items[0], "-v");
	assert_string_equal(r.args.items[1], "");
	assert_null(r.args.items[2]);
	assert_int_equal(r.timeout_ms, 86400000);
	assert_int_equal(r.stdin_text.len, 3);
	assert_memory_equal(r.stdin_text.data, "\0\1\2", 4);
	assert_int_equal(r.track_files, 0);
	assert_int_equal(r.encoding, KS_ENCODING_AUTO);
	assert_int_equal(r.stream, KS_STREAM_LOSSLESS);
	assert_true(r.merge && !r.interactive && !r.has_render);
	assert_true(r.memory_mb == KS_ABSENT && r.first_line == KS_ABSENT && r.render_max_chars == KS_ABSENT);
	ks_params_free(&ks_run_code_params, &r);

	assert_int_equal(decode(&ks_run_code_params,
				"{\"code\":{\"blob\":{\"id\":\"b1\",\"bytes\":3,\"mime\":\"text/plain\"}}}", &r, &err),
			 0);
	assert_string_equal(r.language, "python");
	assert_true(r.code.present && !r.code.data && r.code.len == 0);
	assert_string_equal(r.code.blob, "b1");
	assert_false(r.has_session);
	assert_int_equal(r.session.timeout_ms, 30000); /* defaults also without the object */
	assert_string_equal(r.session.image, "host");
	assert_int_equal(r.track_files, -1);
	assert_int_equal(r.encoding, KS_ENCODING_UTF8);
	assert_int_equal(r.stream, KS_STREAM_OFF);
	ks_params_free(&ks_run_code_params, &r);
}

static void test_initialize(void **state)
{
	struct ks_initialize_params p;
	struct ks_error err;

	(void)state;
	assert_int_equal(decode(&ks_initialize_params,
				"{\"protocolVersion\":1,\"client\":{\"name\":\"t\",\"version\":\"\"}}", &p, &err),
			 0);
	assert_int_equal(p.protocol_version, 1);
	assert_string_equal(p.client_name, "t");
	assert_string_equal(p.client_version, "");
	assert_true(p.process_id == KS_ABSENT);
	assert_int_equal(p.max_line_bytes, 32768);
	assert_int_equal(p.runs, 64);
	assert_int_equal(p.queued, 1024);
	assert_false(p.credits);
	ks_params_free(&ks_initialize_params, &p);
	assert_int_equal(decode(&ks_initialize_params,
				"{\"protocolVersion\":2,\"client\":{\"name\":\"t\",\"version\":\"1\"},\"processId\":42,"
				"\"capabilities\":{\"maxLineBytes\":16777216,\"credits\":true},\"limits\":{\"runs\":"
				"256,\"queued\":0}}",
				&p, &err),
			 0);
	assert_int_equal(p.protocol_version, 2);
	assert_int_equal(p.process_id, 42);
	assert_int_equal(p.max_line_bytes, 16777216);
	assert_true(p.credits);
	assert_int_equal(p.runs, 256);
	assert_int_equal(p.queued, 0);
	ks_params_free(&ks_initialize_params, &p);
	refuse(&ks_initialize_params, "{\"protocolVersion\":1}", KS_E_MISSING, "/client", "client is required");
	refuse(&ks_initialize_params, "{\"protocolVersion\":1,\"client\":{\"name\":\"t\"}}", KS_E_MISSING,
	       "/client/version", "required");
	refuse(&ks_initialize_params,
	       "{\"protocolVersion\":1,\"client\":{\"name\":\"t\",\"version\":\"\"},\"capabilities\":{\"maxLineBytes\":"
	       "4095}}",
	       KS_E_OUT_OF_RANGE, "/capabilities/maxLineBytes", "from 4096 to 16777216 bytes");
}

static void test_small_ones(void **state)
{
	struct ks_cancel_params cancel;
	struct ks_run_stdin_params input;
	struct ks_shutdown_params shutdown;
	struct ks_output_read_params read;
	struct ks_error err;

	(void)state;
	assert_int_equal(decode(&ks_cancel_params, "{\"id\":7}", &cancel, &err), 0);
	assert_string_equal(cancel.id, "7");
	ks_params_free(&ks_cancel_params, &cancel);
	assert_int_equal(decode(&ks_cancel_params, "{\"id\":\"7\\n\"}", &cancel, &err), 0);
	assert_string_equal(cancel.id, "\"7\\n\"");
	ks_params_free(&ks_cancel_params, &cancel);
	refuse(&ks_cancel_params, "{\"id\":1.5}", KS_E_INVALID_TYPE, "/id", "integer or a string");
	refuse(&ks_cancel_params, "{}", KS_E_MISSING, "/id", NULL);

	assert_int_equal(decode(&ks_run_stdin_params, "{\"runId\":\"r\",\"base64\":\"\"}", &input, &err), 0);
	assert_true(input.text.present && input.text.len == 0 && input.text.data && !input.eof);
	ks_params_free(&ks_run_stdin_params, &input);
	assert_int_equal(decode(&ks_run_stdin_params, "{\"runId\":\"r\",\"eof\":true}", &input, &err), 0);
	assert_true(!input.text.present && input.eof);
	ks_params_free(&ks_run_stdin_params, &input);
	refuse(&ks_run_stdin_params, "{\"runId\":\"r\"}", KS_E_MISSING, "/text", "text, base64 or eof");
	refuse(&ks_run_stdin_params, "{\"runId\":\"r\",\"text\":\"a\",\"base64\":\"YQ==\"}", KS_E_INVALID_VALUE,
	       "/base64", "both");
	refuse(&ks_blob_write_params, "{}", KS_E_MISSING, "/text", NULL);

	assert_int_equal(decode(&ks_shutdown_params, NULL, &shutdown, &err), 0);
	assert_int_equal(shutdown.mode, KS_SHUTDOWN_KILL);
	assert_int_equal(decode(&ks_shutdown_params, "{\"mode\":\"drain\"}", &shutdown, &err), 0);
	assert_int_equal(shutdown.mode, KS_SHUTDOWN_DRAIN);

	assert_int_equal(decode(&ks_output_read_params, "{\"runId\":\"r\",\"stream\":\"stderr\"}", &read, &err), 0);
	assert_int_equal(read.stream, KS_STDERR);
	assert_int_equal(read.offset, 0);
	assert_true(read.max_bytes == KS_ABSENT);
	ks_params_free(&ks_output_read_params, &read);
	accept(&ks_schema_params, "{\"format\":\"jsonschema\"}");
	refuse(&ks_schema_params, "{\"format\":\"xml\"}", KS_E_INVALID_VALUE, "/format", "one of \"jsonschema\"");
	refuse(&ks_no_params, "{\"x\":1}", KS_E_UNKNOWN_OPTION, "/x", NULL);
	accept(&ks_no_params, "{\"progressToken\":\"t\"}");
}

static const struct {
	const char *json;
	enum ks_reason reason;
	const char *pointer, *says;
} refused[] = {
	{ "[]", KS_E_INVALID_TYPE, "", "must be an object" },
	{ "{\"code\":1}", KS_E_INVALID_TYPE, "/code", "a string, {\"base64\"" },
	{ "{}", KS_E_MISSING, "/code", "code is required" },
	{ "{\"code\":null}", KS_E_INVALID_TYPE, "/code", "leave it out" },
	{ "{\"code\":\"\",\"timeout\":5}", KS_E_UNKNOWN_OPTION, "/timeout", "no field \"timeout\"" },
	{ "{\"code\":\"\",\"a/b~c\":5}", KS_E_UNKNOWN_OPTION, "/a~1b~0c", NULL },
	{ "{\"code\":\"\",\"\":5}", KS_E_UNKNOWN_OPTION, "/", NULL },
	{ "{\"code\":\"\",\"session\":{\"netwrok\":true}}", KS_E_UNKNOWN_OPTION, "/session/netwrok", NULL },
	{ "{\"code\":\"\",\"session\":{\"progressToken\":1}}", KS_E_UNKNOWN_OPTION, "/session/progressToken", NULL },
	{ "{\"code\":\"\",\"session\":[]}", KS_E_INVALID_TYPE, "/session", "must be an object" },
	{ "{\"code\":\"\",\"session\":null}", KS_E_INVALID_TYPE, "/session", "leave it out" },
	{ "{\"code\":\"\",\"session\":{},\"sessionId\":\"s\"}", KS_E_INVALID_VALUE, "/session", "both" },
	{ "{\"code\":\"\",\"stdin\":\"\",\"interactive\":true}", KS_E_INVALID_VALUE, "/interactive", "both" },
	/* json-c would turn every one of these into a number or a truth value */
	{ "{\"code\":\"\",\"timeoutMs\":\"12\"}", KS_E_INVALID_TYPE, "/timeoutMs", "an integer" },
	{ "{\"code\":\"\",\"timeoutMs\":true}", KS_E_INVALID_TYPE, "/timeoutMs", "an integer" },
	{ "{\"code\":\"\",\"timeoutMs\":1.9}", KS_E_INVALID_TYPE, "/timeoutMs", "an integer" },
	{ "{\"code\":\"\",\"timeoutMs\":5.0}", KS_E_INVALID_TYPE, "/timeoutMs", "an integer" },
	{ "{\"code\":\"\",\"timeoutMs\":1e3}", KS_E_INVALID_TYPE, "/timeoutMs", "an integer" },
	{ "{\"code\":\"\",\"timeoutMs\":{}}", KS_E_INVALID_TYPE, "/timeoutMs", "an integer" },
	{ "{\"code\":\"\",\"merge\":1}", KS_E_INVALID_TYPE, "/merge", "true or false" },
	{ "{\"code\":\"\",\"merge\":\"true\"}", KS_E_INVALID_TYPE, "/merge", "true or false" },
	{ "{\"code\":\"\",\"trackFiles\":0}", KS_E_INVALID_TYPE, "/trackFiles", "true or false" },
	{ "{\"code\":\"\",\"cwd\":7}", KS_E_INVALID_TYPE, "/cwd", "a string" },
	{ "{\"code\":\"\",\"args\":\"x\"}", KS_E_INVALID_TYPE, "/args", "array of strings" },
	{ "{\"code\":\"\",\"args\":[\"x\",1]}", KS_E_INVALID_TYPE, "/args/1", "a string" },
	{ "{\"code\":\"\",\"args\":[null]}", KS_E_INVALID_TYPE, "/args/0", "a string" },
	{ "{\"code\":\"\",\"env\":[]}", KS_E_INVALID_TYPE, "/env", "object of strings" },
	{ "{\"code\":\"\",\"env\":{\"A\":1}}", KS_E_INVALID_TYPE, "/env/A", "a string" },
	/* ranges */
	{ "{\"code\":\"\",\"timeoutMs\":0}", KS_E_OUT_OF_RANGE, "/timeoutMs", "from 1 to 86400000 ms" },
	{ "{\"code\":\"\",\"timeoutMs\":86400001}", KS_E_OUT_OF_RANGE, "/timeoutMs", "from 1 to 86400000 ms" },
	{ "{\"code\":\"\",\"timeoutMs\":-1}", KS_E_OUT_OF_RANGE, "/timeoutMs", NULL },
	{ "{\"code\":\"\",\"memoryMb\":3}", KS_E_OUT_OF_RANGE, "/memoryMb", "from 4 to 1048576 MiB" },
	{ "{\"code\":\"\",\"memoryMb\":1048577}", KS_E_OUT_OF_RANGE, "/memoryMb", NULL },
	{ "{\"code\":\"\",\"cpusMilli\":9}", KS_E_OUT_OF_RANGE, "/cpusMilli", NULL },
	{ "{\"code\":\"\",\"cpusMilli\":1024001}", KS_E_OUT_OF_RANGE, "/cpusMilli", NULL },
	{ "{\"code\":\"\",\"pids\":0}", KS_E_OUT_OF_RANGE, "/pids", NULL },
	{ "{\"code\":\"\",\"pids\":4194305}", KS_E_OUT_OF_RANGE, "/pids", NULL },
	{ "{\"code\":\"\",\"maxOutputBytes\":0}", KS_E_OUT_OF_RANGE, "/maxOutputBytes", NULL },
	{ "{\"code\":\"\",\"maxOutputBytes\":1073741825}", KS_E_OUT_OF_RANGE, "/maxOutputBytes", NULL },
	{ "{\"code\":\"\",\"cwd\":\"\"}", KS_E_OUT_OF_RANGE, "/cwd", "from 1 to 4095 bytes, not 0" },
	/* string rules */
	{ "{\"code\":\"\",\"runId\":\"a b\"}", KS_E_INVALID_VALUE, "/runId", "must match ^[A-Za-z0-9._-]{1,64}$" },
	{ "{\"code\":\"\",\"runId\":\"\"}", KS_E_OUT_OF_RANGE, "/runId", NULL },
	{ "{\"code\":\"\",\"runId\":\"a\\u0000\"}", KS_E_INVALID_VALUE, "/runId", "NUL" },
	{ "{\"code\":\"\",\"cwd\":\"/a\\u0000b\"}", KS_E_INVALID_VALUE, "/cwd", "NUL" },
	{ "{\"code\":\"\",\"args\":[\"a\",\"b\\u0000\"]}", KS_E_INVALID_VALUE, "/args/1", "NUL" },
	{ "{\"code\":\"\",\"env\":{\"A\":\"b\\u0000\"}}", KS_E_INVALID_VALUE, "/env/A", "NUL" },
	{ "{\"code\":\"\",\"env\":{\"A\":\"b\\n\"}}", KS_E_INVALID_VALUE, "/env/A", "[^\\n]" },
	{ "{\"code\":\"\",\"env\":{\"A-B\":\"\"}}", KS_E_INVALID_VALUE, "/env/A-B", "\"A-B\" in env" },
	{ "{\"code\":\"\",\"env\":{\"1A\":\"\"}}", KS_E_INVALID_VALUE, "/env/1A", NULL },
	{ "{\"code\":\"\",\"env\":{\"\":\"\"}}", KS_E_OUT_OF_RANGE, "/env/", "from 1 to 256 bytes" },
	{ "{\"code\":\"\",\"language\":\"Python\"}", KS_E_INVALID_VALUE, "/language", NULL },
	{ "{\"code\":\"\",\"session\":{\"workspace\":\"rel\"}}", KS_E_INVALID_VALUE, "/session/workspace",
	  "must match ^/" },
	{ "{\"code\":\"\",\"session\":{\"interpreters\":{\"python\":\"python3\"}}}", KS_E_INVALID_VALUE,
	  "/session/interpreters/python", "must match ^/" },
	{ "{\"code\":\"\",\"encoding\":\"latin1\"}", KS_E_INVALID_VALUE, "/encoding",
	  "one of \"utf8\", \"auto\", \"base64\"" },
	{ "{\"code\":\"\",\"encoding\":\"utf8\\u0000\"}", KS_E_INVALID_VALUE, "/encoding", NULL },
	{ "{\"code\":\"\",\"stream\":3}", KS_E_INVALID_TYPE, "/stream", "a string" },
	/* texts */
	{ "{\"code\":{}}", KS_E_INVALID_VALUE, "/code", "one member" },
	{ "{\"code\":{\"base64\":\"\",\"blob\":{\"id\":\"b\"}}}", KS_E_INVALID_VALUE, "/code", "one member" },
	{ "{\"code\":{\"text\":\"\"}}", KS_E_UNKNOWN_OPTION, "/code/text", "base64 or blob" },
	{ "{\"code\":{\"base64\":1}}", KS_E_INVALID_TYPE, "/code/base64", "base64 string" },
	{ "{\"code\":{\"base64\":\"YQ\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"base64\":\"YQ=\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"base64\":\"YR==\"}}", KS_E_INVALID_VALUE, "/code/base64",
	  "strict base64" }, /* left-over bits */
	{ "{\"code\":{\"base64\":\"YQ==YQ==\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"base64\":\"YQ \\n\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"base64\":\"YWJj\\n\\n\\n\\n\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"base64\":\" YW Jj \\t\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"base64\":\"Y-_Q\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"base64\":\"\\u00e9YQ\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"base64\":\"=\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"base64\":\"====\"}}", KS_E_INVALID_VALUE, "/code/base64", "strict base64" },
	{ "{\"code\":{\"blob\":\"b\"}}", KS_E_INVALID_TYPE, "/code/blob", "must be an object" },
	{ "{\"code\":{\"blob\":{}}}", KS_E_MISSING, "/code/blob/id", "id is required" },
	{ "{\"code\":{\"blob\":{\"id\":\"b\",\"mime\":5}}}", KS_E_INVALID_TYPE, "/code/blob/mime", NULL },
	{ "{\"code\":{\"blob\":{\"id\":\"b\",\"x\":5}}}", KS_E_UNKNOWN_OPTION, "/code/blob/x", NULL },
	{ "{\"code\":\"\",\"progressToken\":null}", KS_E_INVALID_TYPE, "/progressToken", NULL },
	{ "{\"code\":\"\",\"progressToken\":[]}", KS_E_INVALID_TYPE, "/progressToken", NULL },
	/* not in this build: said before the value is looked at */
	{ "{\"code\":\"\",\"user\":7}", KS_E_UNSUPPORTED_OPTION, "/user", "not in this build" },
	{ "{\"code\":\"\",\"user\":null}", KS_E_UNSUPPORTED_OPTION, "/user", "not in this build" },
	{ "{\"code\":\"\",\"render\":{}}", KS_E_MISSING, "/render/maxChars", NULL },
	{ "{\"code\":\"\",\"render\":{\"maxChars\":499}}", KS_E_OUT_OF_RANGE, "/render/maxChars", NULL },
	{ "{\"code\":\"\",\"render\":{\"maxChars\":262145}}", KS_E_OUT_OF_RANGE, "/render/maxChars", NULL },
	{ "{\"code\":\"\",\"session\":{\"network\":1}}", KS_E_INVALID_TYPE, "/session/network", NULL },
	{ "{\"code\":\"\",\"session\":{\"prewarm\":65}}", KS_E_OUT_OF_RANGE, "/session/prewarm", NULL },
	{ "{\"code\":\"\",\"session\":{\"start\":\"warm\"}}", KS_E_INVALID_VALUE, "/session/start", "\"template\"" },
	{ "{\"code\":\"\",\"session\":{\"box\":\"resident\"}}", KS_E_UNSUPPORTED_OPTION, "/session/box",
	  "\"resident\"" },
	{ "{\"code\":\"\",\"session\":{\"profiles\":[]}}", KS_E_UNSUPPORTED_OPTION, "/session/profiles", NULL },
};

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < KS_COUNT(refused); i++)
		refuse(&ks_run_code_params, refused[i].json, refused[i].reason, refused[i].pointer, refused[i].says);
}

static void test_unsupported_session_fields(void **state)
{
	static const char *const names[] = { "egressAllow", "profiles" };

	(void)state;
	for (size_t i = 0; i < KS_COUNT(names); i++) {
		char json[64], pointer[64];
		(void)snprintf(json, sizeof(json), "{\"%s\":true}", names[i]);
		(void)snprintf(pointer, sizeof(pointer), "/%s", names[i]);
		refuse(&ks_session_open_params, json, KS_E_UNSUPPORTED_OPTION, pointer, "not in this build");
	}
	accept(&ks_session_open_params,
	       "{\"network\":false,\"prewarm\":0,\"depsReadonly\":true,\"box\":\"fresh\",\"start\":\"cold\","
	       "\"pull\":\"always\"}");
	accept(&ks_session_open_params,
	       "{\"start\":\"template\",\"image\":\"dir:/x\",\"mapOwner\":true,\"interpreters\":{\"c++\":\"/a\"}}");
}

static void test_hints(void **state)
{
	static const char *const cases[][2] = {
		{ "{\"timeout\":1}", "did you mean \"timeoutMs\"?" },
		{ "{\"timeout_ms\":1}", "did you mean \"timeoutMs\"?" },
		{ "{\"memory_mb\":1}", "did you mean \"memoryMb\"?" },
		{ "{\"netwrok\":false}", "did you mean \"network\"?" },
		{ "{\"requirelimits\":1}", "did you mean \"requireLimits\"?" },
		{ "{\"evn\":{}}", "" },
		{ "{\"something\":{}}", "" },
		{ "{\"pid\":1}", "did you mean \"pids\"?" },
		{ "{\"memoryMbmemoryMbmemoryMbmemoryMbmemoryMbmemoryMb\":1}", "" },
	};
	struct ks_session_params s;
	struct ks_error err;

	(void)state;
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		assert_int_equal(decode(&ks_session_open_params, cases[i][0], &s, &err), -1);
		assert_int_equal(err.reason, KS_E_UNKNOWN_OPTION);
		assert_string_equal(err.hint, cases[i][1]);
	}
	assert_int_equal(decode(&ks_session_open_params, "{\"start\":\"col\"}", &s, &err), -1);
	assert_string_equal(err.hint, "did you mean \"cold\"?");
}

static void repeat(struct ks_buf *buf, const char *text, size_t times)
{
	for (size_t i = 0; i < times; i++)
		ks_buf_str(buf, text);
}

/* before + unit x count + after: fine or refused with this reason */
static void check_cap(const struct ks_schema *schema, const char *before, const char *unit, size_t count,
		      const char *after, enum ks_reason reason, const char *pointer)
{
	KS_AUTOBUF struct ks_buf json = { 0 };

	ks_buf_str(&json, before);
	repeat(&json, unit, count);
	ks_buf_str(&json, after);
	ks_buf_char(&json, '\0');
	if (reason == KS_E_NONE)
		accept(schema, json.data);
	else
		refuse(schema, json.data, reason, pointer, NULL);
}

static void test_caps(void **state)
{
	const struct ks_schema *code = &ks_run_code_params, *argv = &ks_run_argv_params;
	const enum ks_reason fine = KS_E_NONE, range = KS_E_OUT_OF_RANGE;

	(void)state;
	check_cap(code, "{\"code\":\"", "0123456789abcdef", 262144, "\"}", fine, "");
	check_cap(code, "{\"code\":\"x", "0123456789abcdef", 262144, "\"}", range, "/code");
	check_cap(code, "{\"code\":{\"base64\":\"", "AAAA", 1398101, "\"}}", fine, ""); /* 4194303 bytes */
	check_cap(code, "{\"code\":{\"base64\":\"", "AAAA", 1398102, "\"}}", range, "/code/base64");
	check_cap(code, "{\"code\":\"\",\"runId\":\"", "a", 64, "\"}", fine, "");
	check_cap(code, "{\"code\":\"\",\"runId\":\"", "a", 65, "\"}", range, "/runId");
	check_cap(code, "{\"code\":\"\",\"cwd\":\"", "a", 4095, "\"}", fine, "");
	check_cap(code, "{\"code\":\"\",\"cwd\":\"", "a", 4096, "\"}", range, "/cwd");
	refuse(argv, "{}", KS_E_MISSING, "/argv", NULL);
	refuse(argv, "{\"argv\":[]}", range, "/argv", "from 1 to 1024 items, not 0");
	check_cap(argv, "{\"argv\":[\"a\"", ",\"b\"", 1023, "]}", fine, "");
	check_cap(argv, "{\"argv\":[\"a\"", ",\"b\"", 1024, "]}", range, "/argv");
	check_cap(argv, "{\"argv\":[\"", "a", 131071, "\"]}", fine, "");
	check_cap(argv, "{\"argv\":[\"", "a", 131072, "\"]}", range, "/argv/0");
	check_cap(argv, "{\"argv\":[\"a\"],\"env\":{\"ABC\":\"", "a", 131067, "\"}}", fine, ""); /* ABC=… */
	check_cap(argv, "{\"argv\":[\"a\"],\"env\":{\"ABC\":\"", "a", 131068, "\"}}", range, "/env/ABC");
	check_cap(argv, "{\"argv\":[\"a\"],\"env\":{\"", "a", 256, "\":\"\"}}", fine, "");
	check_cap(code, "{\"code\":\"\",\"progressToken\":\"", "t", 128, "\"}", fine, "");
	check_cap(code, "{\"code\":\"\",\"progressToken\":\"", "t", 129, "\"}", KS_E_INVALID_TYPE, "/progressToken");
	check_cap(&ks_run_stdin_params, "{\"runId\":\"r\",\"text\":\"", "aaaaaaaa", 131072, "\"}", fine, "");
	check_cap(&ks_run_stdin_params, "{\"runId\":\"r\",\"text\":\"a", "aaaaaaaa", 131072, "\"}", range, "/text");
}

static void test_env_count(void **state)
{
	(void)state;
	for (int count = 255; count <= 257; count++) {
		KS_AUTOBUF struct ks_buf json = { 0 };
		ks_buf_str(&json, "{\"argv\":[\"a\"],\"env\":{\"N0\":\"\"");
		for (int i = 1; i < count; i++)
			ks_buf_printf(&json, ",\"N%d\":\"\"", i);
		ks_buf_str(&json, "}}");
		ks_buf_char(&json, '\0');
		if (count <= 256)
			accept(&ks_run_argv_params, json.data);
		else
			refuse(&ks_run_argv_params, json.data, KS_E_OUT_OF_RANGE, "/env",
			       "from 0 to 256 members, not 257");
	}
}

/* A hostile name: the pointer is cut at a code point, the sentence repeats 40 bytes of it at most. */
static void test_long_names(void **state)
{
	struct ks_session_params s;
	struct ks_error err;
	KS_AUTOBUF struct ks_buf json = { 0 };

	(void)state;
	ks_buf_str(&json, "{\"x");
	repeat(&json, "\xE2\x82\xAC", 1000);
	ks_buf_str(&json, "\":1}");
	ks_buf_char(&json, '\0');
	assert_int_equal(decode(&ks_session_open_params, json.data, &s, &err), -1);
	assert_int_equal(err.reason, KS_E_UNKNOWN_OPTION);
	assert_int_equal(strlen(err.pointer), 2 + 3 * 41); /* "/x" and as many euros as 127 bytes take */
	assert_true(strlen(err.text) < 100);
}

/* ---- types that no supported message uses yet, by tables of this test ---- */

struct item {
	char *name;
	int64_t count;
};

struct items {
	struct item *items;
	size_t count;
};

struct all {
	struct items list;
	struct ks_mounts mounts;
	struct ks_pairs sizes;
	char *shm;
	int word;
	bool has_list;
	struct ks_text text;
};

static const struct ks_field item_fields[] = {
	{ KS_STRING("name", struct item, name), KS_MUST, .min = 1, .max = 8 },
	{ KS_INT("count", struct item, count), .max = 10, .fallback = "3" },
};
static KS_TABLE(item_schema, "Item", item_fields, .size = sizeof(struct item));
static const char *const words[] = { "one", "two", NULL };
static const struct ks_field all_fields[] = {
	{ KS_LIST("list", struct all, list, struct items, &item_schema), KS_PRESENT(struct all, has_list), .min = 1,
	  .max = 3 },
	{ KS_PAIRS("sizes", struct all, sizes), .max = 2, .item_max = 300, .key_pattern = KS_P_ABSOLUTE,
	  .pattern = KS_P_SIZE },
	{ KS_STRING("shm", struct all, shm), .min = 2, .max = 16, .pattern = KS_P_SIZE },
	{ KS_ENUM("word", struct all, word, words) },
	{ KS_TEXT("text", struct all, text), .max = 4, .fallback = "{\"base64\":\"AAE=\"}" },
	KS_DOC(LIST, "nowhere", .max = 2, .sub = &item_schema),
	KS_DOC(STRINGS, "words", .max = 2, .item_max = 4),
	KS_DOC(PAIRS, "pairs", .max = 2, .item_max = 9),
	KS_DOC(TEXT, "bytes", .max = 9),
	KS_DOC(OBJECT, "object", .sub = &item_schema),
};
static KS_TABLE(all_schema, "All", all_fields, .size = sizeof(struct all));

static void test_lists(void **state)
{
	struct all all;
	struct ks_error err;

	(void)state;
	assert_int_equal(decode(&all_schema,
				"{\"list\":[{\"name\":\"a\"},{\"name\":\"b\",\"count\":10}],\"sizes\":{\"/x\":\"64m\"},"
				"\"shm\":\"10g\",\"word\":\"two\"}",
				&all, &err),
			 0);
	assert_int_equal(all.list.count, 2);
	assert_string_equal(all.list.items[0].name, "a");
	assert_int_equal(all.list.items[0].count, 3);
	assert_string_equal(all.list.items[1].name, "b");
	assert_int_equal(all.list.items[1].count, 10);
	assert_true(all.has_list);
	assert_string_equal(all.sizes.names[0], "/x");
	assert_string_equal(all.sizes.values[0], "64m");
	assert_string_equal(all.shm, "10g");
	assert_int_equal(all.word, 1);
	assert_int_equal(all.text.len, 2);
	assert_memory_equal(all.text.data, "\0\1", 3);
	ks_params_free(&all_schema, &all);
	assert_null(all.list.items);

	assert_int_equal(decode(&all_schema, "{}", &all, &err), 0);
	assert_true(!all.has_list && all.list.count == 0 && all.word == -1);
	ks_params_free(&all_schema, &all);

	refuse(&all_schema, "{\"list\":[]}", KS_E_OUT_OF_RANGE, "/list", "from 1 to 3 items, not 0");
	refuse(&all_schema, "{\"list\":[{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"a\"}]}",
	       KS_E_OUT_OF_RANGE, "/list", NULL);
	refuse(&all_schema, "{\"list\":{}}", KS_E_INVALID_TYPE, "/list", "array of objects");
	refuse(&all_schema, "{\"list\":[1]}", KS_E_INVALID_TYPE, "/list/0", "must be an object");
	refuse(&all_schema, "{\"list\":[{\"name\":\"a\"},{}]}", KS_E_MISSING, "/list/1/name", NULL);
	refuse(&all_schema, "{\"list\":[{\"name\":\"a\"},{\"name\":\"b\",\"count\":11}]}", KS_E_OUT_OF_RANGE,
	       "/list/1/count", NULL);
	refuse(&all_schema, "{\"sizes\":{\"x\":\"1k\"}}", KS_E_INVALID_VALUE, "/sizes/x",
	       "\"x\" in sizes must match ^/");
	refuse(&all_schema, "{\"sizes\":{\"/a/b\":\"1\"}}", KS_E_INVALID_VALUE, "/sizes/~1a~1b", "must match ^[1-9]");
}

static void test_sizes(void **state)
{
	static const char *const good[] = { "1k", "9m", "64m", "1234567890g" }, *const bad[] = {
		"k", "0k", "064m", "64", "64M", "1t", "1mm", "-1m", "1 m", "m1"
	};

	(void)state;
	for (size_t i = 0; i < KS_COUNT(good); i++)
		assert_true(ks_pattern_match(KS_P_SIZE, good[i], strlen(good[i])));
	for (size_t i = 0; i < KS_COUNT(bad); i++)
		assert_false(ks_pattern_match(KS_P_SIZE, bad[i], strlen(bad[i])));
	assert_true(ks_pattern_match(KS_P_SIGNAL, "RTMIN+1", 7));
	assert_false(ks_pattern_match(KS_P_SIGNAL, "kill", 4));
	assert_false(ks_pattern_match(KS_P_SIGNAL, "9", 1));
	assert_false(ks_pattern_match(KS_P_ENV_NAME, "A\0", 2));
	assert_false(ks_pattern_match(KS_P_HANDLE, "\0", 1));
}

/* Fields without a place in the struct are checked all the same, and leave nothing behind (ASan, valgrind). */
static void test_not_stored(void **state)
{
	(void)state;
	accept(&all_schema, "{\"nowhere\":[{\"name\":\"a\"}],\"words\":[\"a\"],\"pairs\":{\"a\":\"b\"},\"bytes\":\"x\","
			    "\"object\":{\"name\":\"a\"}}");
	refuse(&all_schema, "{\"nowhere\":[{\"name\":\"a\",\"count\":11}]}", KS_E_OUT_OF_RANGE, "/nowhere/0/count",
	       NULL);
	refuse(&all_schema, "{\"words\":[\"a\",\"bcdef\"]}", KS_E_OUT_OF_RANGE, "/words/1", NULL);
	refuse(&all_schema, "{\"pairs\":{\"a\":\"b\",\"c\":7}}", KS_E_INVALID_TYPE, "/pairs/c", NULL);
	refuse(&all_schema, "{\"bytes\":{\"blob\":{\"id\":\"b\",\"x\":1}}}", KS_E_UNKNOWN_OPTION, "/bytes/blob/x",
	       NULL);
	refuse(&all_schema, "{\"object\":{}}", KS_E_MISSING, "/object/name", NULL);
}

/* A late failure frees what earlier fields allocated. */
static void test_half_decoded(void **state)
{
	(void)state;
	refuse(&ks_run_code_params,
	       "{\"runId\":\"r\",\"session\":{\"image\":\"dir:/"
	       "x\",\"env\":{\"A\":\"1\",\"B\":\"2\",\"C\":3}},\"code\":\"x\"}",
	       KS_E_INVALID_TYPE, "/session/env/C", NULL);
	refuse(&ks_run_code_params, "{\"runId\":\"r\",\"code\":\"x\",\"args\":[\"a\",\"b\",{}],\"stdin\":\"y\"}",
	       KS_E_INVALID_TYPE, "/args/2", NULL);
	refuse(&ks_run_code_params, "{\"code\":\"x\",\"stdin\":{\"base64\":\"AAAA\"},\"cwd\":5}", KS_E_INVALID_TYPE,
	       "/cwd", NULL);
}

static void test_methods(void **state)
{
	struct ks_error err;

	(void)state;
	assert_ptr_equal(ks_method_for_client("run/code", true, &err), ks_method_find("run/code"));
	assert_ptr_equal(ks_method_find("run/code")->params, &ks_run_code_params);
	assert_ptr_equal(ks_method_for_client("$/cancel", false, &err), ks_method_find("$/cancel"));
	assert_null(ks_method_for_client("run/code", false, &err));
	assert_int_equal(err.reason, KS_E_INVALID_REQUEST);
	assert_string_equal(err.text, "run/code needs an id");
	assert_null(ks_method_for_client("$/cancel", true, &err));
	assert_int_equal(err.reason, KS_E_INVALID_REQUEST);
	assert_null(ks_method_for_client("image/pull", true, &err));
	assert_int_equal(err.reason, KS_E_UNKNOWN_METHOD);
	assert_string_equal(err.text, "image/pull is not in this build");
	assert_null(ks_method_for_client("run/output", false, &err));
	assert_int_equal(err.reason, KS_E_UNKNOWN_METHOD);
	assert_non_null(strstr(err.text, "server only"));
	assert_null(ks_method_for_client("run/cod", true, &err));
	assert_int_equal(err.reason, KS_E_UNKNOWN_METHOD);
	assert_string_equal(err.hint, "did you mean \"run/code\"?");
	assert_null(ks_method_for_client("nothing like it", true, &err));
	assert_string_equal(err.hint, "");
	assert_null(ks_method_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session_defaults),
		cmocka_unit_test(test_run_code),
		cmocka_unit_test(test_initialize),
		cmocka_unit_test(test_small_ones),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_unsupported_session_fields),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_caps),
		cmocka_unit_test(test_env_count),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_not_stored),
		cmocka_unit_test(test_half_decoded),
		cmocka_unit_test(test_methods),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
