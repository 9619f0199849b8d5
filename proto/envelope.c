/* envelope.c: JSON-RPC 2.0, section 4, strictly: one object a line, ids are integers or strings. */
#include "envelope.h"

#include <string.h>

#include <json-c/json_object.h>
#include <json-c/linkhash.h>

#include "proto/scan.h"

void ks_envelope_free(struct ks_envelope *envelope)
{
	json_object_put(envelope->root);
	*envelope = (struct ks_envelope){ 0 };
}

static int bad(struct ks_error *err, const char *what)
{
	return ks_fail(err, KS_E_INVALID_REQUEST, "%s", what);
}

static int check_members(struct json_object *root, struct ks_error *err)
{
	json_object_object_foreach(root, name, value)
	{
		(void)value;
		if (strcmp(name, "result") == 0 || strcmp(name, "error") == 0)
			return bad(err, "a reply came in, but the server sends no requests");
		if (strcmp(name, "jsonrpc") != 0 && strcmp(name, "id") != 0 && strcmp(name, "method") != 0 &&
		    strcmp(name, "params") != 0)
			return ks_fail(err, KS_E_INVALID_REQUEST, "a request has no member \"%.40s\"", name);
	}
	return 0;
}

static int read_members(struct json_object *root, struct ks_envelope *envelope, struct ks_error *err)
{
	struct json_object *value;

	/* The id first, so that every other mistake can be answered under it. */
	if (json_object_object_get_ex(root, "id", &value)) {
		envelope->has_id = ks_id_text(value, envelope->id, sizeof(envelope->id)) == 0;
		if (!envelope->has_id)
			return bad(err, "id must be an integer or a string of at most 128 bytes");
	}
	if (!json_object_object_get_ex(root, "jsonrpc", &value) || !json_object_is_type(value, json_type_string) ||
	    strcmp(json_object_get_string(value), "2.0") != 0 || json_object_get_string_len(value) != 3)
		return bad(err, "jsonrpc must be \"2.0\"");
	if (check_members(root, err) < 0)
		return -1;
	if (!json_object_object_get_ex(root, "method", &value) || !json_object_is_type(value, json_type_string))
		return bad(err, "method must be a string");
	envelope->method = json_object_get_string(value);
	size_t len = (size_t)json_object_get_string_len(value);
	if (len == 0 || len > KS_METHOD_BYTES || strlen(envelope->method) != len)
		return bad(err, "method must have from 1 to 128 bytes and no NUL");
	if (json_object_object_get_ex(root, "params", &envelope->params) &&
	    !json_object_is_type(envelope->params, json_type_object))
		return bad(err, "params must be an object; leave it out when there are none");
	return 0;
}

int ks_envelope_parse(const char *line, size_t len, struct ks_envelope *ret, struct ks_error *err)
{
	*ret = (struct ks_envelope){ 0 };
	ret->root = ks_json_parse(line, len, err);
	if (!ret->root)
		return -1;

	int result = -1;
	if (json_object_is_type(ret->root, json_type_array))
		(void)ks_fail(err, KS_E_BATCH_UNSUPPORTED, "batches are not supported; send one request a line");
	else if (!json_object_is_type(ret->root, json_type_object))
		(void)bad(err, "a request is a JSON object");
	else
		result = read_members(ret->root, ret, err);
	if (result < 0) {
		json_object_put(KS_TAKE_PTR(ret->root));
		ret->method = NULL;
		ret->params = NULL;
	}
	return result;
}
