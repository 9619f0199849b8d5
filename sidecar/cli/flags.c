#include "cli/flags.h"

#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --memory-mb -> memoryMb */
static void field_name(const char *flag, char *name, size_t size)
{
	size_t n = 0;

	for (const char *c = flag + 2; *c && *c != '=' && n + 1 < size; c++) {
		if (*c == '-' && c[1])
			name[n++] = (char)toupper((unsigned char)*++c);
		else
			name[n++] = *c;
	}
	name[n] = '\0';
}

static struct json_object *integer(const char *text)
{
	char *end;

	errno = 0;
	long long value = strtoll(text, &end, 10);
	/* not a number stays a string: the decoder says invalid_type and names the field */
	return errno == 0 && end != text && *end == '\0' ? json_object_new_int64(value) : json_object_new_string(text);
}

static struct json_object *member(struct json_object *json, const char *name, struct json_object *(*make)(void))
{
	struct json_object *value = NULL;

	if (!json_object_object_get_ex(json, name, &value)) {
		value = make();
		json_object_object_add(json, name, value);
	}
	return value;
}

static int add_pair(struct json_object *json, const char *name, const char *text, struct ks_error *err)
{
	const char *equals = strchr(text, '=');

	if (!equals)
		return ks_fail(err, KS_E_INVALID_VALUE, "--%s takes NAME=VALUE, not %s", name, text);
	KS_AUTOFREE char *key = strndup(text, (size_t)(equals - text));
	if (!key)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	json_object_object_add(member(json, name, json_object_new_object), key, json_object_new_string(equals + 1));
	return 0;
}

/* An object of strings as its values with colons between them: --mounts /data:/data:ro. */
static int add_object(struct json_object *json, const struct ks_field *field, const char *text, struct ks_error *err)
{
	struct json_object *object = json_object_new_object();
	const struct ks_field *member_field;

	for (size_t i = 0; *text && (member_field = ks_schema_field(field->sub, i)); i++) {
		const size_t len = strcspn(text, ":");
		json_object_object_add(object, member_field->name, json_object_new_string_len(text, (int)len));
		text += len + (text[len] == ':');
	}
	json_object_array_add(member(json, field->name, json_object_new_array), object);
	return *text ? ks_fail(err, KS_E_INVALID_VALUE, "--%s: too many colons", field->name) : 0;
}

static int add_value(struct json_object *json, const struct ks_field *field, const char *text, struct ks_error *err)
{
	if (field->type == KS_T_INT)
		json_object_object_add(json, field->name, integer(text));
	else if (field->type == KS_T_STRINGS)
		json_object_array_add(member(json, field->name, json_object_new_array), json_object_new_string(text));
	else if (field->type == KS_T_PAIRS)
		return add_pair(json, field->name, text, err);
	else if (field->type == KS_T_LIST)
		return add_object(json, field, text, err);
	else if (field->type == KS_T_BOOL)
		json_object_object_add(json, field->name, json_object_new_boolean(strcmp(text, "false") != 0));
	else
		json_object_object_add(json, field->name, json_object_new_string(text));
	return 0;
}

static int parse_one(const struct ks_schema *schema, struct json_object *json, int argc, char **argv, int *at, struct ks_error *err)
{
	char name[64];
	const char *value = strchr(argv[*at], '=');

	field_name(argv[*at], name, sizeof(name));
	const struct ks_field *field = ks_schema_find(schema, name);
	if (!field || !(field->flags & KS_F_CLI))
		return ks_fail(err, KS_E_UNKNOWN_OPTION, "unknown flag %s", argv[*at]);
	(*at)++;
	if (value)
		return add_value(json, field, value + 1, err);
	if (field->type == KS_T_BOOL)
		return add_value(json, field, "true", err);
	if (*at >= argc)
		return ks_fail(err, KS_E_MISSING, "%s takes a value", argv[*at - 1]);
	return add_value(json, field, argv[(*at)++], err);
}

int ks_flags_parse(const struct ks_schema *schema, int argc, char **argv, int *at, void *out, struct ks_error *err)
{
	struct json_object *json = json_object_new_object();
	int rc = 0;

	while (rc == 0 && *at < argc && strncmp(argv[*at], "--", 2) == 0 && argv[*at][2])
		rc = parse_one(schema, json, argc, argv, at, err);
	if (rc == 0)
		rc = ks_decode(schema, json, out, err);
	json_object_put(json);
	return rc;
}

void ks_cli_complain(const struct ks_error *err)
{
	(void)fprintf(stderr, "kern-sidecar: %s%s%s%s%s\n", err->pointer, err->pointer[0] ? ": " : "", err->text, err->hint[0] ? "; " : "",
		      err->hint);
}

int ks_flags_workspace(int argc, char **argv, char **ret, struct ks_error *err)
{
	static const char flag[] = "--workspace";
	const size_t len = sizeof(flag) - 1;

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const bool joined = strncmp(argv[i], flag, len) == 0 && argv[i][len] == '=';
		if (!joined && (strcmp(argv[i], flag) != 0 || i + 1 >= argc))
			continue;
		const char *path = joined ? argv[i] + len + 1 : argv[i + 1];
		if (path[0] == '/')
			return 0;
		KS_AUTOFREE char *absolute = realpath(path, NULL);
		if (!absolute)
			return ks_fail_errno(err, KS_E_NOT_FOUND, errno, "--workspace: %.200s", path);
		if (asprintf(ret, "%s%s", joined ? "--workspace=" : "", absolute) < 0) {
			*ret = NULL;
			return ks_fail(err, KS_E_INTERNAL, "out of memory");
		}
		argv[joined ? i : i + 1] = *ret;
		return 0;
	}
	return 0;
}
