/* fuzz_decode.c: one line from a hostile client, all the way: scan, parse, envelope, decoding by every method's table.
 * Whatever is accepted must be what the line says it is; whatever is refused must say why. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "proto/envelope.h"
#include "proto/methods.h"
#include "proto/scan.h"
#include "proto/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void check_error(const struct ks_error *err)
{
	must(err->reason > KS_E_NONE && err->reason < KS_REASON_MAX && err->text[0] != '\0');
	must(memchr(err->text, '\0', sizeof(err->text)) && memchr(err->pointer, '\0', sizeof(err->pointer)));
}

static void decode(const struct ks_method *method, struct json_object *params)
{
	struct ks_error err = { 0 };
	void *out = malloc(method->params->size + 1);

	must(out != NULL);
	if (ks_decode(method->params, params, out, &err) < 0)
		check_error(&err);
	else
		ks_params_free(method->params, out);
	free(out);
}

static void check_writer(const uint8_t *data, size_t size)
{
	KS_AUTOBUF struct ks_buf buf = { 0 };
	struct ks_error err;
	size_t prefix = ks_utf8_complete_prefix(data, size);

	ks_write_utf8_lossy(&buf, data, size);
	must(!buf.failed && buf.len == ks_json_escaped_size(data, size));
	must(ks_json_scan(buf.data, buf.len, NULL, &err) == 0);
	must(prefix <= size && size - prefix <= 3);
	must(!ks_utf8_valid(data, size) || prefix == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *line = (const char *)data;
	struct ks_envelope envelope;
	struct ks_error err = { 0 };
	const struct ks_method *method;
	bool scanned = ks_json_scan(line, size, NULL, &err) == 0;

	check_writer(data, size);
	if (!scanned)
		check_error(&err);
	must(!scanned || ks_utf8_valid(data, size));
	if (ks_envelope_parse(line, size, &envelope, &err) < 0) {
		check_error(&err);
		must(envelope.root == NULL);
		return 0;
	}
	must(scanned);
	/* The params of one line go through every table: the method's name is only a name. */
	for (size_t i = 0; (method = ks_method_at(i)); i++)
		decode(method, envelope.params);
	if (!ks_method_for_client(envelope.method, envelope.has_id, &err))
		check_error(&err);
	if (envelope.has_id)
		must(ks_json_scan(envelope.id, strlen(envelope.id), NULL, &err) == 0);
	ks_envelope_free(&envelope);
	return 0;
}
