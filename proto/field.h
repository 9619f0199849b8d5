/* field.h: one table per message. The table decodes JSON into a struct of messages.h, is printed as JSON Schema,
 * becomes command-line flags and the reference page. Tables are constant data; they own nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "proto/messages.h"

struct json_object;

enum ks_type {
	KS_T_BOOL,     /* bool */
	KS_T_TRISTATE, /* int: -1 absent, 0, 1 */
	KS_T_INT,      /* int64_t, min..max */
	KS_T_STRING,   /* char *, min..max bytes, no NUL; with choices: one of them */
	KS_T_ENUM,     /* int, index into choices */
	KS_T_ID,       /* char *, an integer or a string, kept as JSON text (ks_id_text) */
	KS_T_TEXT,     /* struct ks_text: "string" | {base64} | {blob:{id}}, min..max bytes */
	KS_T_UTF8,     /* struct ks_text from a string that may hold NUL */
	KS_T_BASE64,   /* struct ks_text from a base64 string; min..max decoded bytes */
	KS_T_OBJECT,   /* a struct in place, sub */
	KS_T_STRINGS,  /* struct ks_strings, min..max items of 0..item_max bytes */
	KS_T_PAIRS,    /* struct ks_pairs, at most max pairs, keys of 1..KS_KEY_BYTES; "key=value" at most item_max */
	KS_T_LIST,     /* { T *items; size_t count; }, min..max items, sub */
	/* Only in tables that are printed and never decoded into C: */
	KS_T_WORD,  /* an open enum: a string, choices are today's values */
	KS_T_MAP,   /* object with free keys and strings */
	KS_T_OPEN,  /* object with anything in it */
	KS_T_TEXTS, /* object with free keys; values are Texts */
	KS_T_INTS,  /* array of integers */
	KS_T_ANY,   /* any JSON */
};

enum ks_field_flag {
	KS_F_REQUIRED = 1u << 0,
	KS_F_CLI = 1u << 1,	     /* also a command-line flag: memoryMb is --memory-mb */
	KS_F_RELAXES = 1u << 2,	     /* can weaken the isolation; the reference page says so */
	KS_F_UNSUPPORTED = 1u << 3,  /* this build answers unsupported_option to any value */
	KS_F_ONLY_DEFAULT = 1u << 4, /* this build answers unsupported_option to any value but the default */
	KS_F_MAY_BLOB = 1u << 5,     /* in results: a blob of application/json when it does not fit a line */
};

/* String rules that a range cannot say. Their regular expressions are in ks_pattern_text(). */
enum ks_pattern {
	KS_P_NONE,
	KS_P_HANDLE,   /* [A-Za-z0-9._-]{1,64} */
	KS_P_SIZE,     /* 64m */
	KS_P_ABSOLUTE, /* a path that starts with / */
	KS_P_ENV_NAME, /* [A-Za-z_][A-Za-z0-9_]* */
	KS_P_ONE_LINE, /* no newline */
	KS_P_LANGUAGE, /* python, c++, .. */
	KS_P_SIGNAL,   /* KILL, TERM, RTMIN+1: no SIG in front */
	KS_PATTERN_MAX
};

#define KS_KEY_BYTES 256

struct ks_schema;

struct ks_field {
	const char *name; /* on the wire */
	const char *text; /* one sentence: --help and the docs */
	enum ks_type type;
	unsigned flags;
	size_t slot;	/* offset in the struct plus 1; 0: checked, not stored */
	size_t present; /* the same for a bool that says whether the field was there; 0: none */
	int64_t min, max, item_max;
	enum ks_pattern pattern, key_pattern; /* of the string, the items or the values; of the keys of PAIRS */
	const char *const *choices;	      /* NULL-terminated */
	unsigned unsupported_choices;	      /* bit per choice that this build does not have */
	const struct ks_schema *sub;
	const char *fallback; /* default, spelled as JSON; NULL: absent */
	const char *unit;     /* "ms", "bytes", "MiB": for the docs */
};

struct ks_fields {
	const struct ks_field *list;
	size_t count;
};

#define KS_SCHEMA_PARTS 4

struct ks_schema {
	const char *name; /* its key in $defs */
	const char *text;
	size_t size;				 /* of the struct; 0: none, nothing is stored */
	struct ks_fields parts[KS_SCHEMA_PARTS]; /* read as one table; shared runs of fields are parts of their own */
	/* A rule over several fields, after all of them are decoded. May be NULL; `rule` says it in a sentence. */
	int (*check)(const void *params, struct ks_error *err);
	const char *rule;
};

/* The i-th field over all parts, NULL behind the last one. */
const struct ks_field *ks_schema_field(const struct ks_schema *schema, size_t i);
const struct ks_field *ks_schema_find(const struct ks_schema *schema, const char *name);
/* memoryMb is --memory-mb. */
#define KS_FLAG_NAME 64
void ks_flag_name(const struct ks_field *field, char flag[KS_FLAG_NAME]);
const char *ks_pattern_text(enum ks_pattern pattern); /* a regular expression, NULL for KS_P_NONE */
bool ks_pattern_match(enum ks_pattern pattern, const char *text, size_t len);
/* The word of candidate(arg, 0..) (NULL ends) that a person who typed `name` probably meant, or NULL. */
const char *ks_did_you_mean(const char *name, const char *(*candidate)(const void *arg, size_t i), const void *arg);

/* Makes *out (schema->size bytes) from `in`; NULL means no params, that is {}. The JSON is only read. Failure: the
 * error has the reason, a pointer ("/session/memoryMb") and a sentence; *out then holds nothing that needs freeing. */
KS_MUST_CHECK int ks_decode(const struct ks_schema *schema, struct json_object *in, void *out, struct ks_error *err);
/* Frees what decoding allocated, and empties *params. Fine for {0} and twice. */
void ks_params_free(const struct ks_schema *schema, void *params);
/* An integer or string value as the JSON text that ids are compared by; cap includes the NUL. -1: not an id, too long.
 */
int ks_id_text(struct json_object *value, char *text, size_t cap);
#define KS_ID_BYTES 128			     /* of a string id, before escaping */
#define KS_ID_TEXT (6 * KS_ID_BYTES + 2 + 1) /* room for its JSON text */

/* The member's C type is checked against the field type at compile time. Used as
 *	{ KS_INT("memoryMb", struct ks_session_params, memory_mb), .min = 4, .max = 1 << 20, .text = "…" }, */
#define KS_SLOT(T, m, want) (1 + offsetof(T, m) + 0 * sizeof(char[_Generic(((T *)0)->m, want : 1, default : -1)]))
#define KS_BOOL(wire, T, m) .name = (wire), .type = KS_T_BOOL, .slot = KS_SLOT(T, m, bool)
#define KS_TRISTATE(wire, T, m) .name = (wire), .type = KS_T_TRISTATE, .slot = KS_SLOT(T, m, int)
#define KS_INT(wire, T, m) .name = (wire), .type = KS_T_INT, .slot = KS_SLOT(T, m, int64_t)
#define KS_STRING(wire, T, m) .name = (wire), .type = KS_T_STRING, .slot = KS_SLOT(T, m, char *)
#define KS_ENUM(wire, T, m, words) .name = (wire), .type = KS_T_ENUM, .slot = KS_SLOT(T, m, int), .choices = (words)
#define KS_ID(wire, T, m) .name = (wire), .type = KS_T_ID, .slot = KS_SLOT(T, m, char *)
#define KS_TEXT(wire, T, m) .name = (wire), .type = KS_T_TEXT, .slot = KS_SLOT(T, m, struct ks_text)
#define KS_UTF8(wire, T, m) .name = (wire), .type = KS_T_UTF8, .slot = KS_SLOT(T, m, struct ks_text)
#define KS_BASE64(wire, T, m) .name = (wire), .type = KS_T_BASE64, .slot = KS_SLOT(T, m, struct ks_text)
#define KS_STRINGS(wire, T, m) .name = (wire), .type = KS_T_STRINGS, .slot = KS_SLOT(T, m, struct ks_strings)
#define KS_PAIRS(wire, T, m) .name = (wire), .type = KS_T_PAIRS, .slot = KS_SLOT(T, m, struct ks_pairs)
/* `m` is a struct of type M in place */
#define KS_OBJECT(wire, T, m, M, schema) .name = (wire), .type = KS_T_OBJECT, .slot = KS_SLOT(T, m, M), .sub = (schema)
/* the object's fields are members of the enclosing struct itself */
#define KS_FLAT(wire, schema) .name = (wire), .type = KS_T_OBJECT, .slot = 1, .sub = (schema)
/* `m` is a struct L of { E *items; size_t count; } */
#define KS_LIST(wire, T, m, L, schema) .name = (wire), .type = KS_T_LIST, .slot = KS_SLOT(T, m, L), .sub = (schema)
#define KS_PRESENT(T, m) .present = KS_SLOT(T, m, bool)
#define KS_FIELDS(table)                                                                                               \
	{                                                                                                              \
		(table), sizeof(table) / sizeof((table)[0])                                                            \
	}
