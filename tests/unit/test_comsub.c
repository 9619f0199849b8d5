/* test_comsub.c: comsub_all_plain knows the substitutions that people write, and says so of none that bash itself finds wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "languages/programs/comsub.h"

#define PIECES 3000

static const char *const plain[] = {
	"",
	"(ls; case a in a) f;; esac) # ( )",
	"echo $(date) ')'",
	"x=$(cat f | grep \"a b\" | awk '{print $1}' 2>/dev/null)",
	"for f in $(ls *.txt [ab]*); do echo \"$(basename \"$f\" .txt)\"; done",
	"n=$((n + 1)) m=$(( $n * 2 ))",
	"diff <(sort -u < a) <(sort \"b c\" || true;) | tee >(wc -l >&2)",
	"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)",
	"v=$(git rev-parse ${ref:-HEAD} 2>&1 >>log); w=$([ -f x ] && echo \\))",
	"$($($($(a))))",
};
/* bash finds the first ones wrong; the rest is beyond us. */
static const char *const other[] = {
	"$(",		"$(ls",	   "$(ls # )",	    "$(ls ')'",	  "$(ls \")\"",	 "$(ls \\)",  "# )\n$(ls",
	"<(ls '",	">(ls;;)", "$(ls |)",	    "$(ls &&)",	  "$(if)",	 "$(ls; fi)", "$(})",
	"$(! x; done)", "$(a[)",   "$(ls <)",	    "$(ls >>&2)", "$(>2>&1)",	 "$(ls ${)",  "$(case x in x) ls)",
	"$((1",		"$((1)",   "$( ) )",	    "$(ls `)",	  "$(<<E)",	 "$(x$'\\')", "$()",
	"$(ls\n)",	"$(ls &)", "$((1 << (2)))", "$(ls `a`)",  "$(\xc3\xa9)",
};

static void test_tables(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (!comsub_all_plain(plain[i]))
			fail_msg("not known: %s", plain[i]);
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		if (comsub_all_plain(other[i]))
			fail_msg("taken for plain: %s", other[i]);
}

static void test_depth(void **state)
{
	char text[3 * 40 + 1] = "";

	(void)state;
	for (int n = 1; n <= 39; n++) {
		memset(text, 0, sizeof(text));
		for (int i = 0; i < n; i++)
			memcpy(text + 2 * i, "$(", 2);
		text[2 * n] = 'a';
		memset(text + 2 * n + 1, ')', (size_t)n - (n == 39 ? 1 : 0));
		assert_int_equal(comsub_all_plain(text), n < COMSUB_DEPTH);
	}
}

/* What we know of random pieces, bash knows as well, in each of its modes. */
static void test_bash_agrees(void **state)
{
	static const char *const tokens[] = { "$(",   "<(",  ")",	 "(",	 "$((",	   "))",   "'",	     "\"", "\\",      " ",
					      " ",    " ",   "|",	 "||",	 "&&",	   ";",	   "&",	     "<",  ">",	      ">>",
					      "2>&1", ">&2", "[",	 "]",	 "a",	   "ls",   "if",     "fi", "then",    "done",
					      "x=1",  "x",   "{",	 "}",	 "$x",	   "${x}", "${x#a}", "${", "${a[0]}", "${x:-",
					      "$",    "`",   "#",	 "!",	 "case",   "in",   "1",	     "*",  "?",	      "@",
					      "+",    "=",   "a[",	 "time", "coproc", "~",	   "^",	     "%",  ":",	      ",",
					      "[[",   "]]",  "function", "<<",	 "$#",	   "\n",   "for",    "/" };
	static const char *const modes[] = { "-n", "-n -O extglob", "-n -o posix" };
	char file[] = "/tmp/ks-comsub-XXXXXX", text[256], command[128];
	const int fd = mkstemp(file);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");

	(void)state;
	assert_non_null(out);
	srandom(20);
	for (int found = 0; found < PIECES;) {
		(void)snprintf(text, sizeof(text), ": %s", random() % 4 ? "$(" : "<(");
		for (long n = 1 + random() % 9; n > 0; n--)
			strcat(text, tokens[(size_t)random() % (sizeof(tokens) / sizeof(tokens[0]))]);
		strcat(text, ")");
		const char *end = text[2] == '$' ? comsub_dollar(text + 2, COMSUB_DEPTH) : comsub_commands(text + 4, COMSUB_DEPTH);
		if (!end || !comsub_all_plain(text))
			continue;
		(void)fprintf(out, "%.*s\n", (int)(end - text), text);
		found++;
	}
	assert_int_equal(fclose(out), 0);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		(void)snprintf(command, sizeof(command), "bash %s %s", modes[i], file);
		assert_int_equal(system(command), 0);
	}
	(void)unlink(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_tables), cmocka_unit_test(test_depth),
					    cmocka_unit_test(test_bash_agrees) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
