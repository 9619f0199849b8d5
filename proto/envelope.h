/* envelope.h: one line from the client, taken apart: JSON-RPC 2.0 without batches. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/field.h"

#define KS_METHOD_BYTES 128

struct ks_envelope {
	struct json_object *root; /* owns the two below */
	const char *method;
	struct json_object *params; /* an object, or NULL when the line has none */
	bool has_id;		    /* false on success: a notification */
	char id[KS_ID_TEXT];	    /* as JSON text: 7 or "abc"; equal ids have equal texts */
};

/* Fills *ret also on failure, as far as the reply needs it: has_id and id, when the line was an object with a usable id
 * (else the reply's id is null). `root` is NULL then. KS_E_PARSE, KS_E_INVALID_REQUEST, KS_E_BATCH_UNSUPPORTED. */
int ks_envelope_parse(const char *line, size_t len, struct ks_envelope *ret, struct ks_error *err);
void ks_envelope_free(struct ks_envelope *envelope);
