#include "run_words.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fds.h"
#include "cli/flags.h"

#define T struct ks_run_words
static const struct ks_field own_fields[] = {
	{ KS_STRING("language", T, language), .flags = KS_F_CLI, .min = 1, .max = 32, .pattern = KS_P_LANGUAGE,
	  .text = "The language; absent: by the file's name, else python." },
	{ KS_BOOL("json", T, json), .flags = KS_F_CLI, .fallback = "false", .text = "Print the whole result as JSON instead." },
	{ KS_BOOL("plan", T, plan), .flags = KS_F_CLI, .fallback = "false", .text = "Print the steps of the set-up, and make no box." },
};
#undef T

static struct ks_schema schema_of_words(void)
{
	struct ks_schema schema = ks_session_params;

	schema.size = sizeof(struct ks_run_words);
	schema.parts[1] = (struct ks_fields)KS_FIELDS(own_fields);
	return schema;
}

const struct ks_field *ks_run_words_field(size_t i)
{
	const struct ks_schema schema = schema_of_words();

	return ks_schema_field(&schema, i);
}

/* ---- the program ---- */

static const char *language_of(const char *name)
{
	static const char *const known[][2] = { { ".py", "python" },	 { ".bash", "bash" },	   { ".sh", "sh" },
						{ ".js", "node" },	 { ".mjs", "node" },	   { ".cjs", "node" },
						{ ".ts", "typescript" }, { ".mts", "typescript" }, { ".cts", "typescript" } };
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < KS_COUNT(known); i++)
		if (strcmp(dot, known[i][0]) == 0)
			return known[i][1];
	return "python";
}

static int read_code(struct ks_run_words *words, int fd, const char *name, struct ks_error *err)
{
	ssize_t n = 1;

	words->code = malloc(KS_CODE_BYTES + 1);
	if (!words->code)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	while (n > 0 && words->code_len <= KS_CODE_BYTES) {
		n = read(fd, words->code + words->code_len, KS_CODE_BYTES + 1 - words->code_len);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			words->code_len += (size_t)n;
	}
	if (n < 0)
		return ks_fail_errno(err, KS_E_IO, errno, "cannot read %.200s", name);
	if (words->code_len > KS_CODE_BYTES)
		return ks_fail(err, KS_E_TOO_LARGE, "%.200s has more than %d bytes", name, KS_CODE_BYTES);
	return 0;
}

static int take_file(struct ks_run_words *words, char *name, struct ks_error *err)
{
	KS_AUTOCLOSE int fd = -1;

	if (strcmp(name, "-") == 0) {
		words->stdin_taken = true;
		return read_code(words, STDIN_FILENO, "the program on stdin", err);
	}
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return ks_fail_errno(err, KS_E_NOT_FOUND, errno, "cannot open %.200s", name);
	words->params.filename = name;
	return read_code(words, fd, name, err);
}

static int take_program(struct ks_run_words *words, int argc, char **argv, int at, struct ks_error *err)
{
	const char *name = "";

	if (at < argc && strcmp(argv[at], "-c") == 0) {
		if (at + 1 >= argc)
			return ks_fail(err, KS_E_MISSING, "-c takes the code");
		words->code_len = strlen(argv[at + 1]);
		words->code = strdup(argv[at + 1]);
		if (!words->code)
			return ks_fail(err, KS_E_INTERNAL, "out of memory");
		at++;
	} else if (at >= argc) {
		return ks_fail(err, KS_E_MISSING, "run takes a FILE, - for stdin, or -c CODE");
	} else if (take_file(words, argv[at], err) < 0) {
		return -1;
	} else {
		name = argv[at];
	}
	at++;
	if (at < argc && strcmp(argv[at], "--") != 0)
		return ks_fail(err, KS_E_UNKNOWN_OPTION, "unexpected %.100s: flags come before the program, its arguments behind --",
			       argv[at]);
	words->params.language = words->language ? words->language : strdup(language_of(name));
	words->language = words->params.language;
	words->params.args = (struct ks_strings){ .items = argv + at + 1, .count = at + 1 < argc ? (size_t)(argc - at - 1) : 0 };
	return words->language ? 0 : ks_fail(err, KS_E_INTERNAL, "out of memory");
}

static int take_argv(struct ks_run_words *words, int argc, char **argv, int at, struct ks_error *err)
{
	if (words->language)
		return ks_fail(err, KS_E_UNKNOWN_OPTION, "exec takes no --language: it runs a program, not code");
	at += at < argc && strcmp(argv[at], "--") == 0;
	if (at >= argc)
		return ks_fail(err, KS_E_MISSING, "exec takes a program: exec [FLAGS] -- PROGRAM [ARGUMENTS]");
	words->params.argv = (struct ks_strings){ .items = argv + at, .count = (size_t)(argc - at) };
	return 0;
}

int ks_run_words_parse(int argc, char **argv, struct ks_run_words *words, struct ks_error *err)
{
	const struct ks_schema schema = schema_of_words();
	KS_AUTOFREE char *workspace = NULL;
	int at = 1;

	if (ks_flags_workspace(argc, argv, &workspace, err) < 0 || ks_flags_parse(&schema, argc, argv, &at, words, err) < 0)
		return -1;
	words->params = (struct ks_run_params)KS_RUN_PARAMS_ABSENT;
	if (words->plan)
		return at < argc ? ks_fail(err, KS_E_UNKNOWN_OPTION, "unexpected argument %.100s", argv[at]) : 0;
	if ((strcmp(argv[0], "exec") == 0 ? take_argv : take_program)(words, argc, argv, at, err) < 0)
		return -1;
	words->params.has_session = true;
	words->params.session = words->session;
	words->params.interactive = !words->stdin_taken;
	return 0;
}

void ks_run_words_free(struct ks_run_words *words)
{
	const struct ks_schema schema = schema_of_words();

	free(words->code);
	ks_params_free(&schema, words); /* the params hold the same strings */
}
