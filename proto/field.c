/* field.c: looking up in tables, the string rules, and the guess at what a misspelt name meant. */
#include "field.h"

#include <inttypes.h>
#include <stdio.h>
#include <ctype.h>
#include <string.h>

#include <json-c/json_object.h>

#include "proto/write.h"

const struct ks_field *ks_schema_field(const struct ks_schema *schema, size_t i)
{
	for (size_t part = 0; part < KS_SCHEMA_PARTS; i -= schema->parts[part++].count)
		if (i < schema->parts[part].count)
			return &schema->parts[part].list[i];
	return NULL;
}

const struct ks_field *ks_schema_find(const struct ks_schema *schema, const char *name)
{
	const struct ks_field *field;

	for (size_t i = 0; (field = ks_schema_field(schema, i)); i++)
		if (strcmp(field->name, name) == 0)
			return field;
	return NULL;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* Every rule but two is: one byte of `first`, then min-1..max-1 bytes of `rest`. `text` is the same for people. */
static const struct {
	const char *text, *first, *rest;
	size_t max;
} patterns[KS_PATTERN_MAX] = {
	[KS_P_HANDLE] = { "^[A-Za-z0-9._-]{1,64}$", UPPER LOWER DIGITS "._-", UPPER LOWER DIGITS "._-", 64 },
	[KS_P_SIZE] = { "^[1-9][0-9]*[kmg]$", "123456789", DIGITS, SIZE_MAX },
	[KS_P_ABSOLUTE] = { "^/", NULL, NULL, 0 },
	[KS_P_ENV_NAME] = { "^[A-Za-z_][A-Za-z0-9_]*$", UPPER LOWER "_", UPPER LOWER DIGITS "_", SIZE_MAX },
	[KS_P_ONE_LINE] = { "^[^\\n]*$", NULL, NULL, 0 },
	[KS_P_LANGUAGE] = { "^[a-z][a-z0-9+._-]{0,31}$", LOWER, LOWER DIGITS "+._-", 32 },
	[KS_P_SIGNAL] = { "^[A-Z][A-Z0-9+]{0,15}$", UPPER, UPPER DIGITS "+", 16 },
};

const char *ks_pattern_text(enum ks_pattern pattern)
{
	return patterns[pattern].text;
}

bool ks_pattern_match(enum ks_pattern pattern, const char *text, size_t len)
{
	if (pattern == KS_P_NONE)
		return true;
	if (pattern == KS_P_ABSOLUTE)
		return len > 0 && text[0] == '/';
	if (pattern == KS_P_ONE_LINE)
		return memchr(text, '\n', len) == NULL;
	if (pattern == KS_P_SIZE && (len < 2 || !memchr("kmg", text[--len], 3))) /* the unit is checked and cut off */
		return false;
	if (len == 0 || len > patterns[pattern].max || text[0] == '\0' || !strchr(patterns[pattern].first, text[0]))
		return false;
	for (size_t i = 1; i < len; i++)
		if (text[i] == '\0' || !strchr(patterns[pattern].rest, text[i]))
			return false;
	return true;
}

int ks_id_text(struct json_object *value, char *text, size_t cap)
{
	KS_AUTOBUF struct ks_buf buf = { 0 };

	if (json_object_is_type(value, json_type_int)) {
		int len = snprintf(text, cap, "%" PRId64, json_object_get_int64(value));
		return len > 0 && (size_t)len < cap ? 0 : -1;
	}
	if (!json_object_is_type(value, json_type_string) || json_object_get_string_len(value) > KS_ID_BYTES)
		return -1;
	ks_write_utf8_lossy(&buf, json_object_get_string(value), (size_t)json_object_get_string_len(value));
	if (buf.failed || buf.len >= cap)
		return -1;
	memcpy(text, buf.data, buf.len);
	text[buf.len] = '\0';
	return 0;
}

#define GUESS_BYTES 40

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Levenshtein distance, two rows. Both at most GUESS_BYTES long. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[2][GUESS_BYTES + 1], a_len = strlen(a), b_len = strlen(b);

	for (size_t j = 0; j <= b_len; j++)
		rows[0][j] = j;
	for (size_t i = 1; i <= a_len; i++) {
		const size_t *above = rows[(i - 1) % 2];
		size_t *row = rows[i % 2];
		row[0] = i;
		for (size_t j = 1; j <= b_len; j++) {
			size_t change = above[j - 1] + (a[i - 1] != b[j - 1]);
			row[j] = smaller(change, smaller(above[j], row[j - 1]) + 1);
		}
	}
	return rows[a_len % 2][b_len];
}

const char *ks_did_you_mean(const char *name, const char *(*candidate)(const void *arg, size_t i), const void *arg)
{
	size_t len = strlen(name), best = len < 6 ? 2 : 4; /* at most 1 or 3 edits */
	const char *word, *guess = NULL;

	if (len > GUESS_BYTES)
		return NULL;
	for (size_t i = 0; (word = candidate(arg, i)); i++) {
		size_t edits = strlen(word) > GUESS_BYTES ? best : distance(name, word);
		if (edits < best && edits < len) {
			best = edits;
			guess = word;
		}
	}
	return guess;
}

void ks_flag_name(const struct ks_field *field, char flag[KS_FLAG_NAME])
{
	size_t at = 2;

	flag[0] = flag[1] = '-';
	for (const char *c = field->name; *c && at + 2 < KS_FLAG_NAME; c++) {
		if (isupper((unsigned char)*c))
			flag[at++] = '-';
		flag[at++] = (char)tolower((unsigned char)*c);
	}
	flag[at] = '\0';
}
