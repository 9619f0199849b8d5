#include "completion.h"

#include <stdio.h>
#include <string.h>

#include "cli/run_words.h"
#include "proto/field.h"

#define COMMANDS "run exec shell doctor snapshot restore completion"
#define OPTIONS "--stdio --mcp --print-schema --version --json --help --log-file --log-level --plugin-dir"

static bool is_flag(const struct ks_field *field)
{
	return (field->flags & KS_F_CLI) && !(field->flags & (KS_F_UNSUPPORTED | KS_F_ONLY_DEFAULT));
}

/* Of run and exec; the others are of everything that makes a session. */
static bool is_own(const struct ks_field *field)
{
	return !ks_schema_find(&ks_session_params, field->name);
}

/* Text of a table inside single quotes of a shell; `special` gets a backslash in front. */
static void print_quoted(const char *text, const char *special)
{
	for (; *text; text++) {
		if (*text == '\'')
			(void)fputs("'\\''", stdout);
		else
			(void)printf("%s%c", strchr(special, *text) ? "\\" : "", *text);
	}
}

/* ---- bash ---- */

static void print_bash_choices(void)
{
	const struct ks_field *field;
	char flag[KS_FLAG_NAME];

	for (size_t i = 0; (field = ks_run_words_field(i)); i++) {
		if (!is_flag(field) || !field->choices)
			continue;
		ks_flag_name(field, flag);
		(void)printf("\t%s) COMPREPLY=($(compgen -W '", flag);
		for (size_t k = 0; field->choices[k]; k++)
			(void)printf("%s%s", k ? " " : "", field->choices[k]);
		(void)printf("' -- \"$word\")); return ;;\n");
	}
}

static void print_bash_flags(const char *commands, bool own_too)
{
	const struct ks_field *field;
	char flag[KS_FLAG_NAME];

	(void)printf("\t%s) flags='", commands);
	for (size_t i = 0; (field = ks_run_words_field(i)); i++)
		if (is_flag(field) && (own_too || !is_own(field))) {
			ks_flag_name(field, flag);
			(void)printf("%s ", flag);
		}
	(void)printf("' ;;\n");
}

static void print_bash(void)
{
	(void)printf("# completion of kern-sidecar for bash; made by `kern-sidecar completion bash`\n"
		     "_kern_sidecar() {\n"
		     "\tlocal word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} flags\n"
		     "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
		     "\t\tCOMPREPLY=($(compgen -W '" COMMANDS " " OPTIONS "' -- \"$word\")); return\n"
		     "\tfi\n"
		     "\tcase $before in\n");
	print_bash_choices();
	(void)printf("\t--workspace) COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n"
		     "\t--language) COMPREPLY=($(compgen -W 'python bash sh node typescript' -- \"$word\")); return ;;\n"
		     "\tcompletion) COMPREPLY=($(compgen -W 'bash zsh fish' -- \"$word\")); return ;;\n"
		     "\tesac\n"
		     "\tcase ${COMP_WORDS[1]} in\n"
		     "\tdoctor) flags='--json' ;;\n");
	print_bash_flags("run|exec", true);
	print_bash_flags("shell|snapshot|restore", false);
	(void)printf("\tesac\n"
		     "\tcase $word in\n"
		     "\t-*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n"
		     "\t*) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
		     "\tesac\n"
		     "}\n"
		     "complete -o filenames -F _kern_sidecar kern-sidecar\n");
}

/* ---- zsh ---- */

static void print_zsh_flag(const struct ks_field *field)
{
	char flag[KS_FLAG_NAME];

	ks_flag_name(field, flag);
	(void)printf("\t\t'%s[", flag);
	print_quoted(field->text, "[]:"); /* these mean something to _arguments */
	(void)printf("]");
	if (field->choices) {
		(void)printf(":%s:(", flag + 2);
		for (size_t k = 0; field->choices[k]; k++)
			(void)printf("%s%s", k ? " " : "", field->choices[k]);
		(void)printf(")");
	} else if (field->type != KS_T_BOOL) {
		(void)printf(":%s:%s", flag + 2, strcmp(flag, "--workspace") == 0 ? "_directories" : "");
	}
	(void)printf("'\n");
}

static void print_zsh(void)
{
	const struct ks_field *field;

	(void)printf("#compdef kern-sidecar\n"
		     "# completion of kern-sidecar for zsh; made by `kern-sidecar completion zsh`\n"
		     "_kern_sidecar() {\n"
		     "\tlocal -a flags\n"
		     "\tif (( CURRENT == 2 )); then\n"
		     "\t\tcompadd -- " COMMANDS " " OPTIONS "\n"
		     "\t\treturn\n"
		     "\tfi\n"
		     "\tflags=(\n");
	for (size_t i = 0; (field = ks_run_words_field(i)); i++)
		if (is_flag(field) && !is_own(field))
			print_zsh_flag(field);
	(void)printf("\t)\n"
		     "\t[[ $words[2] != (run|exec) ]] || flags+=(\n");
	for (size_t i = 0; (field = ks_run_words_field(i)); i++)
		if (is_flag(field) && is_own(field))
			print_zsh_flag(field);
	(void)printf("\t)\n"
		     "\tcase $words[2] in\n"
		     "\trun|exec|shell|snapshot|restore) shift words; (( CURRENT-- )); _arguments $flags '*:file:_files' ;;\n"
		     "\tdoctor) compadd -- --json ;;\n"
		     "\tcompletion) compadd -- bash zsh fish ;;\n"
		     "\tesac\n"
		     "}\n"
		     "_kern_sidecar \"$@\"\n");
}

/* ---- fish ---- */

static void print_fish(void)
{
	const struct ks_field *field;
	char flag[KS_FLAG_NAME];

	(void)printf("# completion of kern-sidecar for fish; made by `kern-sidecar completion fish`\n"
		     "complete -c kern-sidecar -n __fish_use_subcommand -f -a '" COMMANDS " " OPTIONS "'\n"
		     "complete -c kern-sidecar -n '__fish_seen_subcommand_from doctor' -f -l json\n"
		     "complete -c kern-sidecar -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n");
	for (size_t i = 0; (field = ks_run_words_field(i)); i++) {
		if (!is_flag(field))
			continue;
		ks_flag_name(field, flag);
		(void)printf("complete -c kern-sidecar -n '__fish_seen_subcommand_from run exec%s' -l %s",
			     is_own(field) ? "" : " shell snapshot restore", flag + 2);
		if (field->choices) {
			(void)printf(" -x -a '");
			for (size_t k = 0; field->choices[k]; k++)
				(void)printf("%s%s", k ? " " : "", field->choices[k]);
			(void)printf("'");
		} else if (field->type != KS_T_BOOL) {
			(void)printf(" -r");
		}
		(void)printf(" -d '");
		print_quoted(field->text, "\\");
		(void)printf("'\n");
	}
}

int ks_cli_completion(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "bash") == 0)
		print_bash();
	else if (argc == 2 && strcmp(argv[1], "zsh") == 0)
		print_zsh();
	else if (argc == 2 && strcmp(argv[1], "fish") == 0)
		print_fish();
	else {
		(void)fprintf(stderr, "kern-sidecar: completion takes bash, zsh or fish\n");
		return 2;
	}
	return fflush(stdout) != 0;
}

void ks_cli_print_flags(void)
{
	const struct ks_field *field;
	char flag[KS_FLAG_NAME];

	for (size_t i = 0; (field = ks_run_words_field(i)); i++)
		if (is_flag(field)) {
			ks_flag_name(field, flag);
			(void)printf("  %-24s %s\n", flag, field->text);
		}
}
