/* methods_base.c: initialize, initialized, ping, rpc/schema. */
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "proto/schema.h"
#include "proto/write.h"
#include "server_private.h"
#include "session/text.h"

void ks_server_set_welcome(struct ks_server *server, ks_welcome_fn *fn, void *arg)
{
	server->welcome = fn;
	server->welcome_arg = arg;
}

void ks_server_set_check(struct ks_server *server, ks_check_fn *fn, void *arg)
{
	server->check = fn;
	server->check_arg = arg;
}

static void welcome(const struct ks_server *server, enum ks_welcome part, struct ks_buf *json)
{
	if (server->welcome)
		server->welcome(server->welcome_arg, part, json);
}

static void write_welcome(const struct ks_server *server, struct ks_buf *json)
{
	ks_write_open(json, '{');
	ks_write_key_int(json, "protocolVersion", KS_PROTOCOL_VERSION);
	ks_write_key_int(json, "protocolMinor", KS_PROTOCOL_MINOR);
	ks_write_key(json, "server");
	ks_write_open(json, '{');
	ks_write_key_string(json, "name", "kern-sidecar");
	ks_write_key_string(json, "version", KS_VERSION);
	ks_write_key_int(json, "pid", getpid());
	ks_write_close(json, '}');
	ks_write_key(json, "capabilities");
	ks_write_open(json, '{');
	ks_write_key_bool(json, "localPaths", true);
	welcome(server, KS_WELCOME_CAPABILITIES, json);
	ks_write_close(json, '}');
	ks_write_key(json, "limits");
	ks_write_open(json, '{');
	ks_write_key_int(json, "maxLineInBytes", (int64_t)KS_LINE_IN_MAX);
	ks_write_key_int(json, "maxLineBytes", (int64_t)server->max_line);
	ks_write_key_int(json, "runs", server->limits.runs);
	ks_write_key_int(json, "queued", server->limits.queued);
	ks_write_key_int(json, "blobBytes", (int64_t)ks_blobs_max(server->blobs));
	welcome(server, KS_WELCOME_LIMITS, json);
	ks_write_close(json, '}');
	welcome(server, KS_WELCOME_TOP, json);
	ks_write_close(json, '}');
}

static void refuse_version(struct ks_request *request, int64_t wanted)
{
	struct ks_buf details = { 0 };
	struct ks_error err;

	(void)ks_fail_at(&err, KS_E_UNSUPPORTED_PROTOCOL, "/protocolVersion", "protocol version %lld is not supported",
			 (long long)wanted);
	(void)ks_error_hint(&err, "ask for version %d", KS_PROTOCOL_VERSION);
	ks_buf_printf(&details, "{\"supported\":[%d]}", KS_PROTOCOL_VERSION);
	ks_reply_error_details(request, &err, &details);
}

static void initialize(void *arg, struct ks_request *request, const void *params)
{
	struct ks_server *server = arg;
	const struct ks_initialize_params *wanted = params;
	struct ks_buf json = { 0 };
	struct ks_error err;

	if (wanted->protocol_version != KS_PROTOCOL_VERSION) {
		refuse_version(request, wanted->protocol_version);
		return;
	}
	if (server->check && server->check(server->check_arg, wanted, &err) < 0) {
		ks_reply_error(request, &err);
		return;
	}
	server->max_line = server->streams.max_line = (size_t)wanted->max_line_bytes;
	server->limits = (struct ks_limits){ .runs = wanted->runs, .queued = wanted->queued };
	server->phase = KS_PHASE_READY;
	write_welcome(server, &json);
	ks_reply(request, &json);
	ks_log(KS_LOG_INFO, "initialized", "client %s %s", wanted->client_name, wanted->client_version);
	if (wanted->process_id != KS_ABSENT)
		ks_server_watch_host(server, wanted->process_id);
}

static void initialized(void *arg, struct ks_request *request, const void *params)
{
	(void)arg; /* accepted and ignored: a habit of other protocols */
	(void)request;
	(void)params;
}

static void ping(void *arg, struct ks_request *request, const void *params)
{
	struct ks_buf json = { 0 };

	(void)arg;
	(void)params;
	ks_buf_str(&json, "{}");
	ks_reply(request, &json);
}

static void schema(void *arg, struct ks_request *request, const void *params)
{
	struct ks_server *server = arg;
	struct ks_buf document = { 0 }, json = { 0 };
	struct ks_error err;

	(void)params; /* one format so far; the table refuses others */
	ks_schema_print(&document);
	struct ks_text_item item = { .data = document.data, .len = document.len, .owned = true, .json = true };
	ks_write_open(&json, '{');
	ks_write_key(&json, "schema");
	(void)ks_text_plan(&item, 1, ks_request_room(request) - strlen("{\"schema\":}"));
	/* Nobody owns the document; as a blob it lives as long as what a throw-away call leaves. */
	int failed = document.failed ? ks_fail(&err, KS_E_INTERNAL, "out of memory while writing the schema") :
				       ks_text_write(&json, &item, server->blobs, server, &err);
	ks_blobs_expire_owner(server->blobs, server, KS_BLOB_THROWAWAY_MS);
	ks_text_item_free(&item);
	ks_write_close(&json, '}');
	if (failed) {
		ks_buf_free(&json);
		ks_reply_error(request, &err);
	} else {
		ks_reply(request, &json);
	}
}

void ks_methods_base(struct ks_server *server, struct ks_blobs *blobs)
{
	server->blobs = blobs;
	ks_server_handle(server, "initialize", initialize, server);
	ks_server_handle(server, "initialized", initialized, server);
	ks_server_handle(server, "ping", ping, server);
	ks_server_handle(server, "rpc/schema", schema, server);
}
