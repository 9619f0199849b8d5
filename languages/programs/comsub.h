/* comsub.h: is each "$(", "<(" and ">(" of a bash text well-formed for certain? That is known of plain ones: commands of ordinary words,
 * quotes, variables and redirections on one line, joined by | || && and ;. Each is looked at by itself, whatever stands around it: where
 * bash sees none, as in a comment, nothing is lost. Functions get a place in a text that ends with a NUL, and return the one behind what
 * they know, or NULL when they do not know. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define COMSUB_DEPTH 16
#define COMSUB_NAME "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

static inline const char *comsub_commands(const char *p, int depth);

/* Behind "$((": nothing that could be anything but arithmetic. */
static inline const char *comsub_arithmetic(const char *p)
{
	p += strspn(p, COMSUB_NAME " +-*/%=!?:,$");
	return p[0] == ')' && p[1] == ')' ? p + 2 : NULL;
}

static inline const char *comsub_dollar(const char *p, int depth)
{
	if (p[1] == '(')
		return p[2] == '(' ? comsub_arithmetic(p + 3) : comsub_commands(p + 2, depth - 1);
	if (p[1] == '{') {
		const size_t n = strspn(p + 2, COMSUB_NAME "#@*?[]:-+=/%.,^");
		return n > 0 && p[2 + n] == '}' ? p + n + 3 : NULL;
	}
	return p[1] && strchr(COMSUB_NAME "@*#?!-$", p[1]) ? p + 2 : NULL;
}

static inline const char *comsub_quoted(const char *p, int depth)
{
	const char quote = *p++;

	while (p && *p != quote) {
		if (!*p || *p == '\n' || (quote == '"' && *p == '`'))
			return NULL;
		if (quote == '"' && *p == '$')
			p = comsub_dollar(p, depth);
		else if (quote == '"' && *p == '\\')
			p = p[1] && p[1] != '\n' ? p + 2 : NULL;
		else
			p++;
	}
	return p ? p + 1 : NULL;
}

/* May be empty. A [ is taken at the front alone: behind a name it opens a subscript. */
static inline const char *comsub_word(const char *p, int depth)
{
	if (*p == '[')
		p++;
	for (;;) {
		p += strspn(p, COMSUB_NAME "./-+:,=@%*?]~^!{}");
		if (*p == '"' || *p == '\'')
			p = comsub_quoted(p, depth);
		else if (*p == '$')
			p = comsub_dollar(p, depth);
		else if (*p == '\\' && p[1] && p[1] != '\n')
			p += 2;
		else
			return *p == '[' ? NULL : p;
		if (!p)
			return NULL;
	}
}

static inline const char *comsub_redirection(const char *p, int depth)
{
	const char *word;

	if (p[1] == '&')
		return p[2] && strchr("0123456789-", p[2]) ? p + 3 : NULL;
	p += p[0] == '>' && p[1] == '>' ? 2 : 1;
	p += strspn(p, " \t");
	word = comsub_word(p, depth);
	return word && word > p && *word != '<' && *word != '>' ? word : NULL; /* no other operator, and no descriptor of the next one */
}

/* Words that are syntax where a command begins. */
static inline bool comsub_reserved(const char *p, size_t len)
{
	static const char *const words[] = { "if", "then", "else", "elif",     "fi",   "case",	 "esac", "for", "select", "while", "until",
					     "do", "done", "in",   "function", "time", "coproc", "{",	 "}",	"!",	  "[[",	   "]]" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == len && memcmp(words[i], p, len) == 0)
			return true;
	return false;
}

static inline const char *comsub_command(const char *p, int depth)
{
	const char *const begin = p + strspn(p, " \t");

	for (const char *at = p = begin; at; p = at) {
		p += strspn(p, " \t");
		at = *p == '<' || *p == '>' ? comsub_redirection(p, depth) : comsub_word(p, depth);
		if (at == p)
			return p > begin ? p : NULL;
		if (at && p == begin && comsub_reserved(p, (size_t)(at - p)))
			return NULL;
	}
	return NULL;
}

static inline const char *comsub_commands(const char *p, int depth)
{
	for (;;) {
		p = depth > 0 ? comsub_command(p, depth) : NULL;
		if (!p)
			return NULL;
		if (*p == ')')
			return p + 1;
		if (strncmp(p, "&&", 2) == 0 || strncmp(p, "||", 2) == 0)
			p += 2;
		else if (*p == '|' || *p == ';')
			p++;
		else
			return NULL;
		if (p[-1] == ';' && p[strspn(p, " \t")] == ')')
			return p + strspn(p, " \t") + 1;
	}
}

static inline bool comsub_all_plain(const char *text)
{
	for (const char *p = text; (p = strchr(p, '(')); p++) {
		if (p == text || !strchr("$<>", p[-1]))
			continue;
		if (!(p[-1] == '$' ? comsub_dollar(p - 1, COMSUB_DEPTH) : comsub_commands(p + 1, COMSUB_DEPTH)))
			return false;
	}
	return true;
}
