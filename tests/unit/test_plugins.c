/* The plugin loader: plugins that are good, plugins that are broken in every way and the reason each is refused with,
 * and what prepare and result may do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/log.h"
#include "plugins/loader.h"

#define BROKEN KS_BUILD_DIR "/tests/plugins/"

static struct ks_plugins *load(const char *one, const char *two)
{
	const char *const dirs[] = { one, two, NULL };
	struct ks_plugins *plugins = NULL;
	struct ks_error err;

	assert_int_equal(ks_plugins_load(dirs, &plugins, &err), 0);
	return plugins;
}

static const struct ks_refused *first_refused(const struct ks_plugins *plugins)
{
	assert_false(ks_list_empty(&plugins->refused));
	return KS_ENTRY(plugins->refused.next, struct ks_refused, node);
}

static void test_the_languages(void **state)
{
	(void)state;
	static const struct {
		const char *name, *program, *file_name;
		const char *plugin;
	} want[] = {
		{ "bash", "bash", "main.sh", "bash" },	       { "node", "node", "main.js", "node" },
		{ "typescript", "node", "main.ts", "node" },   { "python", "python3", "main.py", "python" },
		{ "sh", "sh", "main.sh", "sh" },
	};
	struct ks_plugins *plugins = load(KS_BUILD_DIR "/languages", NULL);
	const struct ks_language *language = NULL;
	char path[4096];

	assert_true(ks_list_empty(&plugins->refused));
	for (size_t i = 0; i < KS_COUNT(want); i++) {
		language = ks_plugins_next_language(plugins, language);
		assert_non_null(language);
		assert_string_equal(language->api.name, want[i].name);
		assert_string_equal(language->api.programs[0], want[i].program);
		assert_string_equal(language->api.file_name, want[i].file_name);
		assert_true(language->api.flags & KERN_CAN_RICH);
		(void)snprintf(path, sizeof(path), "%s/languages/%s/run", KS_BUILD_DIR, want[i].plugin);
		assert_string_equal(language->plugin->runner_dir, path);
		assert_ptr_equal(ks_plugins_find_language(plugins, want[i].name), language);
	}
	assert_null(ks_plugins_next_language(plugins, language));
	assert_ptr_equal(ks_plugins_find_language(plugins, "js"), ks_plugins_find_language(plugins, "node"));
	assert_ptr_equal(ks_plugins_find_language(plugins, "py"), ks_plugins_find_language(plugins, "python"));
	assert_null(ks_plugins_find_language(plugins, "perl"));
	assert_null(ks_plugins_find_language(plugins, ""));
	ks_plugins_free(plugins);
}

static void test_broken(void **state)
{
	(void)state;
	static const struct {
		const char *name, *reason;
	} broken[] = {
		{ "abi", "it is made for plugin ABI 2; this sidecar speaks 1" },
		{ "size", "its struct kern_plugin has 32 bytes; at least 40 are needed" },
		{ "symbol", "it exports no kern_plugin_v1" },
		{ "ops", "it has no ops" },
		{ "prepare", "it has no prepare function" },
		{ "none", "it offers no language" },
		{ "name", "\"Test\" is no name for a language: [a-z][a-z0-9_+-]{0,31}" },
		{ "twice", "language test is offered twice" },
		{ "program", "language test: \"../bin/test\" is no name of a program" },
		{ "filename", "language test has no valid file name" },
		{ "bootenv", "language test names more than 32 variables" },
		{ "bootname", "language test: \"\" is no name of a variable" },
		{ "label", "its name and version must have 1 to 64 printable ASCII characters" },
		{ "openfails", "open failed: plugin test: no licence today" },
		{ "openmute", "open failed without a reason" },
		{ "prints", "it wrote to standard output while it was loaded; a plugin must not print" },
		{ "writable", "it is writable by group or others; chmod go-w it" },
		{ "writabledir", "its directory is writable by group or others; chmod go-w it" },
	};

	for (size_t i = 0; i < KS_COUNT(broken); i++) {
		char dir[4096], path[8192];
		(void)snprintf(dir, sizeof(dir), "%s%s", BROKEN, broken[i].name);
		(void)snprintf(path, sizeof(path), "%s/%s/%s.so", dir, broken[i].name, broken[i].name);
		struct ks_plugins *plugins = load(dir, NULL);
		assert_true(ks_list_empty(&plugins->loaded));
		assert_string_equal(first_refused(plugins)->path, path);
		assert_string_equal(first_refused(plugins)->reason, broken[i].reason);
		assert_ptr_equal(plugins->refused.next->next, &plugins->refused);
		assert_null(ks_plugins_find_language(plugins, "test"));
		ks_plugins_free(plugins);
	}
}

static void test_undefined_symbol(void **state)
{
	(void)state;
	struct ks_plugins *plugins = load(BROKEN "undefined", NULL);

	assert_true(ks_list_empty(&plugins->loaded));
	assert_non_null(strstr(first_refused(plugins)->reason, "undefined symbol: kern_no_such_function"));
	ks_plugins_free(plugins);
}

static void test_older_author(void **state)
{
	(void)state;
	struct ks_plugins *plugins = load(BROKEN "older", NULL);

	assert_true(ks_list_empty(&plugins->refused));
	assert_non_null(ks_plugins_find_language(plugins, "test"));
	ks_plugins_free(plugins); /* the close behind its size is not called */
}

static void test_second_offer_of_a_language(void **state)
{
	(void)state;
	struct ks_plugins *plugins = load(BROKEN "older", BROKEN "misuse");
	const char *reason = "language test is already offered by " BROKEN "older/older/older.so";

	assert_string_equal(first_refused(plugins)->path, BROKEN "misuse/misuse/misuse.so");
	assert_string_equal(first_refused(plugins)->reason, reason);
	assert_string_equal(ks_plugins_find_language(plugins, "test")->plugin->path, BROKEN "older/older/older.so");
	ks_plugins_free(plugins);
}

static void test_directories(void **state)
{
	(void)state;
	char dir[] = "/tmp/ks-plugins-XXXXXX", inner[64], link[128];
	struct ks_plugins *plugins = load("/no/such/directory", NULL);

	assert_true(ks_list_empty(&plugins->refused));
	ks_plugins_free(plugins);
	plugins = load("languages", NULL);
	assert_string_equal(first_refused(plugins)->reason, "a plugin directory must be an absolute path");
	ks_plugins_free(plugins);
	plugins = load("/etc/passwd", NULL);
	assert_string_equal(first_refused(plugins)->reason, "Not a directory");
	ks_plugins_free(plugins);

	assert_non_null(mkdtemp(dir));
	(void)snprintf(inner, sizeof(inner), "%s/older", dir);
	(void)snprintf(link, sizeof(link), "%s/older.so", inner);
	assert_int_equal(mkdir(inner, 0755), 0);
	plugins = load(dir, NULL); /* no plugin in it: nobody's fault */
	assert_true(ks_list_empty(&plugins->refused));
	ks_plugins_free(plugins);
	assert_int_equal(symlink(BROKEN "older/older/older.so", link), 0);
	plugins = load(dir, NULL);
	assert_string_equal(first_refused(plugins)->reason, "it is not a regular file");
	ks_plugins_free(plugins);
	assert_int_equal(chmod(dir, 0777), 0);
	plugins = load(dir, NULL);
	assert_string_equal(first_refused(plugins)->reason,
			    "this directory of plugins is writable by group or others; chmod go-w it");
	ks_plugins_free(plugins);
	if (geteuid() == 0) {
		assert_int_equal(chmod(dir, 0755), 0);
		assert_int_equal(chown(dir, 4242, 0), 0);
		plugins = load(dir, NULL);
		assert_string_equal(
			first_refused(plugins)->reason,
			"this directory of plugins belongs to user 4242, neither root nor the one that runs this");
		ks_plugins_free(plugins);
	}
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void test_standard_output_is_kept(void **state)
{
	(void)state;
	int before = dup(STDOUT_FILENO);
	struct stat a, b;

	assert_true(before >= 0);
	ks_plugins_free(load(BROKEN "prints", NULL));
	assert_int_equal(fstat(before, &a), 0);
	assert_int_equal(fstat(STDOUT_FILENO, &b), 0);
	assert_true(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
	assert_int_equal(close(before), 0);
}

/* ---- prepare ---- */

static struct kern_run call_of(const char *code)
{
	return (struct kern_run){ .first_line = 1,
				  .interpreter = "/usr/bin/x",
				  .code = code,
				  .code_len = strlen(code),
				  .runner_dir = "/run/kern/x",
				  .code_dir = "/run/code",
				  .result_fd = 3 };
}

/* argv, env and files as one text, words separated by blanks. */
static void assert_prepared(const struct ks_prepared *p, const char *argv, const char *env, const char *file,
			    const char *data)
{
	char text[2048] = "";

	for (size_t i = 0; i < p->argc; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "", p->argv[i]);
	assert_null(p->argv[p->argc]);
	assert_string_equal(text, argv);
	text[0] = '\0';
	for (size_t i = 0; i < p->env_count; i++)
		(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "", p->env[i]);
	assert_null(p->env[p->env_count]);
	assert_string_equal(text, env);
	assert_int_equal(p->file_count, 1);
	assert_string_equal(p->files[0].name, file);
	assert_int_equal(p->files[0].len, strlen(data));
	assert_memory_equal(p->files[0].data, data, strlen(data));
	assert_int_equal(p->files[0].mode, 0644);
}

static void test_prepare_languages(void **state)
{
	(void)state;
	struct ks_plugins *plugins = load(KS_BUILD_DIR "/languages", KS_BUILD_DIR "/plugins/template");
	static const char *const args[] = { "-x", "b" };
	struct ks_prepared p;
	struct ks_error err;
	struct kern_run run = call_of("print(1)\n");

	run.args = args;
	run.arg_count = 2;
	assert_int_equal(ks_plugin_prepare(ks_plugins_find_language(plugins, "python"), &run, &p, &err), 0);
	assert_prepared(&p, "/usr/bin/x /run/kern/x/start.py 3 /run/code/main.py /run/code/main.py -x b",
			"PYTHONUTF8=1", "main.py", "print(1)\n");
	ks_prepared_free(&p);
	run.filename = "src/a.py";
	run.first_line = 3;
	run.result_fd = -1;
	assert_int_equal(ks_plugin_prepare(ks_plugins_find_language(plugins, "python"), &run, &p, &err), 0);
	assert_prepared(&p, "/usr/bin/x /run/kern/x/start.py -1 src/a.py /run/code/main.py -x b", "PYTHONUTF8=1",
			"main.py", "\n\nprint(1)\n");
	ks_prepared_free(&p);
	run.filename = "src/a.mjs";
	assert_int_equal(ks_plugin_prepare(ks_plugins_find_language(plugins, "node"), &run, &p, &err), 0);
	assert_prepared(&p, "/usr/bin/x /run/kern/x/runner.cjs -1 src/a.mjs /run/code/main.mjs -x b", "", "main.mjs",
			"\n\nprint(1)\n");
	ks_prepared_free(&p);
	run.filename = "dir/deploy.sh";
	assert_int_equal(ks_plugin_prepare(ks_plugins_find_language(plugins, "bash"), &run, &p, &err), 0);
	assert_prepared(&p, "/usr/bin/x /run/code/deploy.sh -x b", "", "deploy.sh", "\n\nprint(1)\n");
	ks_prepared_free(&p);
	run.filename = "dir/..";
	run.code = "\xef\xbb\xbfx";
	run.code_len = 4;
	run.first_line = 1;
	assert_int_equal(ks_plugin_prepare(ks_plugins_find_language(plugins, "sh"), &run, &p, &err), 0);
	assert_prepared(&p, "/usr/bin/x /run/code/main.sh -x b", "", "main.sh", "x");
	ks_prepared_free(&p);
	assert_int_equal(ks_plugin_prepare(ks_plugins_find_language(plugins, "lua"), &run, &p, &err), 0);
	assert_prepared(&p, "/usr/bin/x /run/code/main.lua -x b", "", "main.lua", "x");
	ks_prepared_free(&p);
	run.runner_dir = NULL;
	assert_int_equal(ks_plugin_prepare(ks_plugins_find_language(plugins, "python"), &run, &p, &err), -1);
	assert_int_equal(err.reason, KS_E_PLUGIN_ERROR);
	assert_string_equal(err.text, "plugin python: the run directory with start.py is missing");
	ks_plugins_free(plugins);
}

static void test_prepare_request(void **state)
{
	(void)state;
	struct ks_plugins *plugins = load(KS_BUILD_DIR "/languages", NULL);
	const struct ks_language *sh = ks_plugins_find_language(plugins, "sh");
	KS_AUTOFREE char *large = calloc(1, KERN_CODE_MAX + 2);
	char name[1026];
	const char *args[KS_RUN_ARGS_MAX + 1];
	struct ks_prepared p = { 0 };
	struct ks_error err;
	struct kern_run run = call_of("");

	memset(large, 'x', KERN_CODE_MAX + 1);
	run.code = large;
	run.code_len = KERN_CODE_MAX;
	run.first_line = KS_FIRST_LINE_MAX;
	assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), 0);
	assert_int_equal(p.files[0].len, KERN_CODE_MAX + KS_FIRST_LINE_MAX - 1);
	ks_prepared_free(&p);
	run.code_len++;
	assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), -1);
	assert_int_equal(err.reason, KS_E_OUT_OF_RANGE);
	assert_string_equal(err.pointer, "/code");
	run.code_len = 1;
	for (int i = 0; i < 2; i++) {
		run.first_line = i ? 0 : KS_FIRST_LINE_MAX + 1;
		assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), -1);
		assert_string_equal(err.pointer, "/firstLine");
	}
	run.first_line = 1;
	for (size_t i = 0; i <= KS_RUN_ARGS_MAX; i++)
		args[i] = "a";
	run.args = args;
	run.arg_count = KS_RUN_ARGS_MAX;
	assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), 0);
	assert_int_equal(p.argc, KS_RUN_ARGS_MAX + 2);
	ks_prepared_free(&p);
	run.arg_count++;
	assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), -1);
	assert_string_equal(err.pointer, "/args");
	run.arg_count = 2;
	large[KS_WORD_MAX] = '\0';
	args[1] = large;
	assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), 0);
	ks_prepared_free(&p);
	large[KS_WORD_MAX] = 'x';
	large[KS_WORD_MAX + 1] = '\0';
	assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), -1);
	assert_string_equal(err.pointer, "/args/1");
	run.arg_count = 0;
	memset(name, 'n', sizeof(name));
	name[1025] = '\0';
	run.filename = name;
	assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), -1);
	assert_string_equal(err.pointer, "/filename");
	name[1024] = '\0';
	assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), 0);
	ks_prepared_free(&p);
	for (int i = 0; i < 3; i++) {
		run.filename = i == 0 ? "" : i == 1 ? "a\nb" : "a\x7f";
		assert_int_equal(ks_plugin_prepare(sh, &run, &p, &err), -1);
		assert_string_equal(err.pointer, "/filename");
	}
	assert_int_equal(p.argc, 0);
	ks_plugins_free(plugins);
}

static void test_prepare_services(void **state)
{
	(void)state;
	static const struct {
		const char *code, *text; /* text NULL: good */
		const char *pointer;
	} cases[] = {
		{ "fine", NULL, "" },
		{ "args 63", NULL, "" },
		{ "args 64", "plugin test: more than 64 words besides the caller's", "" },
		{ "env 64", NULL, "" },
		{ "env 65", "plugin test: more than 64 variables", "" },
		{ "files 16", NULL, "" },
		{ "files 17", "plugin test: more than 16 files", "" },
		{ "file 16777216", NULL, "" },
		{ "file 16777217", "plugin test: files of more than 16 MiB", "" },
		{ "word 131071", NULL, "" },
		{ "word 131072", "plugin test: a word of 131072 bytes; the kernel takes at most 131071", "" },
		{ "words 65535", "plugin test: words and variables of more than 1 MiB", "" },
		{ "words 65534", NULL, "" },
		{ "envname", "plugin test: \"1A\" is no name of a variable", "" },
		{ "envtwice", "plugin test: the variable A is set twice", "" },
		{ "filename", "plugin test: \"../up\" is no name for a file", "" },
		{ "filetwice", "plugin test: the file a is added twice", "" },
		{ "mode 511", NULL, "" },
		{ "mode 512", "plugin test: mode 01000 of the file a is more than 0777", "" },
		{ "emit", "plugin test: emit_clear is for result only", "" },
		{ "mute", "plugin test refused the call without a reason", "" },
		{ "nothing", "plugin test: the first word is not the interpreter", "" },
		{ "other", "plugin test: the first word is not the interpreter", "" },
		{ "field", "not this code", "/code" },
	};
	struct ks_plugins *plugins = load(BROKEN "misuse", NULL);
	const struct ks_language *language = ks_plugins_find_language(plugins, "test");

	assert_non_null(language);
	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		struct ks_prepared p = { 0 };
		struct ks_error err = { 0 };
		struct kern_run run = call_of(cases[i].code);
		int rc = ks_plugin_prepare(language, &run, &p, &err);
		assert_string_equal(err.text, cases[i].text ? cases[i].text : "");
		assert_int_equal(rc, cases[i].text ? -1 : 0);
		assert_string_equal(err.pointer, cases[i].pointer);
		if (cases[i].text)
			assert_int_equal(err.reason, cases[i].pointer[0] ? KS_E_INVALID_VALUE : KS_E_PLUGIN_ERROR);
		ks_prepared_free(&p);
	}
	ks_plugins_free(plugins);
}

static void test_result_function(void **state)
{
	(void)state;
	struct ks_plugins *plugins = load(BROKEN "misuse", NULL);
	const struct ks_language *language = ks_plugins_find_language(plugins, "test");
	struct kern_part part = { "hello", "", 0 };
	struct kern_frame frame = { sizeof(frame), KERN_FRAME_DISPLAY, 0, 1, &part, 1 };
	struct ks_results results;
	struct ks_error err;

	ks_results_init(&results);
	assert_int_equal(ks_plugin_result(language, &frame, &results, &err), 0);
	assert_int_equal(results.count, 1);
	const struct ks_result *result = KS_ENTRY(results.list.next, struct ks_result, node);
	assert_string_equal(result->content->data[0].data, "hello");
	part.key = "error";
	assert_int_equal(ks_plugin_result(language, &frame, &results, &err), 0);
	assert_string_equal(results.error.name, "Oops");
	part.key = "clear";
	assert_int_equal(ks_plugin_result(language, &frame, &results, &err), 0);
	assert_true(results.clear_pending);
	part.key = "arg";
	assert_int_equal(ks_plugin_result(language, &frame, &results, &err), -1);
	assert_string_equal(err.text, "plugin test: add_arg is for prepare only");
	frame.part_count = 0;
	assert_int_equal(ks_plugin_result(language, &frame, &results, &err), -1);
	assert_string_equal(err.text, "plugin test cannot read a frame of type 1");
	ks_results_free(&results);
	ks_plugins_free(plugins);
}

static void test_standard_result(void **state)
{
	(void)state;
	struct ks_plugins *plugins = load(KS_BUILD_DIR "/languages", NULL);
	const struct ks_language *python = ks_plugins_find_language(plugins, "python");
	struct kern_part part = { "text/plain", "2", 1 };
	struct kern_frame frame = { sizeof(frame), KERN_FRAME_VALUE, 0, 1, &part, 1 };
	struct ks_results results;
	struct ks_error err;

	ks_results_init(&results);
	assert_int_equal(ks_plugin_result(python, &frame, &results, &err), 0);
	assert_int_equal(results.count, 1);
	part.key = "text/pl(ain";
	assert_int_equal(ks_plugin_result(python, &frame, &results, &err), -1);
	assert_string_equal(err.text, "a frame of type 5 makes no sense");
	ks_results_free(&results);
	ks_plugins_free(plugins);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_languages),
		cmocka_unit_test(test_broken),
		cmocka_unit_test(test_undefined_symbol),
		cmocka_unit_test(test_older_author),
		cmocka_unit_test(test_second_offer_of_a_language),
		cmocka_unit_test(test_directories),
		cmocka_unit_test(test_standard_output_is_kept),
		cmocka_unit_test(test_prepare_languages),
		cmocka_unit_test(test_prepare_request),
		cmocka_unit_test(test_prepare_services),
		cmocka_unit_test(test_result_function),
		cmocka_unit_test(test_standard_result),
	};

	ks_log_set_fd(-1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
