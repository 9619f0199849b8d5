/* messages_base.c: tables of the life cycle, blobs, images, the host and what any request may carry. */
#include "proto/tables.h"

const struct ks_field ks_request_fields[1] = {
	{ .name = "progressToken",
	  .type = KS_T_ID,
	  .text = "Integer or string; $/progress notifications then carry it." },
};

const char *const ks_encoding_words[] = { "utf8", "auto", "base64", NULL };
const char *const ks_stream_words[] = { "off", "live", "lossless", NULL };
const char *const ks_output_words[] = { "stdout", "stderr", NULL };

const struct ks_schema ks_no_params = { .name = "NoParams",
					.text = "Nothing of its own.",
					.parts = { KS_FIELDS(ks_request_fields) } };
const struct ks_schema ks_no_fields = { .name = "NoFields", .text = "An empty object." };
const struct ks_schema ks_nothing = { .name = "Nothing", .text = "Nothing to tell." };

static const struct ks_field error_data_fields[] = {
	KS_DOC(STRING, "reason", KS_MUST, .text = "What clients switch on; x-errors has all of them."),
	KS_DOC(STRING, "path", .text = "JSON pointer (RFC 6901) into the params."),
	KS_DOC(ANY, "errno", .text = "The kernel's error."),
	KS_DOC(STRING, "step", .text = "The set-up step that failed."),
	KS_DOC(STRING, "hint", .text = "What to do about it."),
	KS_DOC(BOOL, "retryable", KS_MUST, .text = "The same request may work later."),
	KS_DOC(OPEN, "details", .text = "More, by reason."),
};
static KS_TABLE(error_data, "ErrorData", error_data_fields, .text = "Why.");
static const struct ks_field rpc_error_fields[] = {
	KS_DOC(INT, "code", KS_MUST, .text = "The number of the reason."),
	KS_DOC(STRING, "message", KS_MUST, .text = "For a person."),
	KS_DOC(OBJECT, "data", KS_MUST, .sub = &error_data, .text = "For a program."),
};
KS_TABLE(ks_rpc_error, "Error", rpc_error_fields, .text = "The request had no effect.");

/* ---- initialize ---- */

#define T struct ks_initialize_params

static const struct ks_field client_fields[] = {
	{ KS_STRING("name", T, client_name), KS_MUST, .min = 1, .max = 256, .text = "The client program." },
	{ KS_STRING("version", T, client_version), KS_MUST, .max = 256, .text = "Its version." },
};
static KS_TABLE(client, "Client", client_fields, .text = "Who is calling.");

static const struct ks_field client_capability_fields[] = {
	{ KS_INT("maxLineBytes", T, max_line_bytes), .min = 4096, .max = 16 << 20, .fallback = "32768", .unit = "bytes",
	  .text = "The longest line that the client can read." },
	{ KS_BOOL("credits", T, credits), .fallback = "false",
	  .text = "The client sends run/credit for lossless streams." },
};
static KS_TABLE(client_capabilities, "ClientCapabilities", client_capability_fields, .text = "What the client can do.");

static const struct ks_field client_limit_fields[] = {
	{ KS_INT("runs", T, runs), .min = 1, .max = 256, .fallback = "64", .text = "Runs at the same time." },
	{ KS_INT("queued", T, queued), .min = 0, .max = 65536, .fallback = "1024",
	  .text = "Runs that may wait for a place." },
	{ KS_INT("memoryMb", T, fleet_memory_mb), .min = 16, .max = KS_MAX_MEMORY_MB, .unit = "MiB",
	  .text = "Memory of all boxes together, beside the cap of each; the largest process is killed at it. Refused where the kernel cannot hold it." },
	{ KS_INT("pids", T, fleet_pids), .min = 8, .max = KS_MAX_PIDS, .text = "Processes of all boxes together." },
};
static KS_TABLE(client_limits, "ClientLimits", client_limit_fields, .text = "Limits that the client chooses.");

static const struct ks_field initialize_fields[] = {
	{ KS_INT("protocolVersion", T, protocol_version), KS_MUST, .min = 0, .max = INT32_MAX,
	  .text = "The major version; this page is 1." },
	{ KS_FLAT("client", &client), KS_MUST, .text = "Who is calling." },
	{ KS_INT("processId", T, process_id), .min = 1, .max = KS_MAX_PIDS,
	  .text = "A process whose end also ends the sidecar, with everything in it." },
	{ KS_FLAT("capabilities", &client_capabilities), .text = "What the client can do." },
	{ KS_FLAT("limits", &client_limits), .text = "Limits that the client chooses." },
};
KS_PARAMS(ks_initialize_params, "InitializeParams", initialize_fields, .text = "The first request.", .size = sizeof(T));
#undef T

static const struct ks_field server_fields[] = {
	KS_DOC(STRING, "name", KS_MUST, .text = "kern-sidecar."),
	KS_DOC(STRING, "version", KS_MUST, .text = "Its version."),
	KS_DOC(INT, "pid", KS_MUST, .text = "Its process id."),
};
static KS_TABLE(server, "Server", server_fields, .text = "Who answers.");

static const struct ks_field language_fields[] = {
	KS_DOC(STRING, "name", KS_MUST, .text = "As in run/code's language."),
	KS_DOC(BOOL, "rich", .text = "Gives results and errors beside its output."),
	KS_DOC(BOOL, "kernel", .text = "Can be a kernel."),
	KS_DOC(BOOL, "zygote", .text = "Can start from a booted interpreter."),
	KS_DOC(BOOL, "interrupt", .text = "A kernel of it can be interrupted without losing its state."),
	KS_DOC(BOOL, "input", .text = "A kernel of it takes allowInput."),
};
static KS_TABLE(language, "Language", language_fields, .text = "A language that a plugin brings.");

static const struct ks_field capability_fields[] = {
	KS_DOC(STRINGS, "features", KS_MUST, .text = "Names of parts that this build has."),
	KS_DOC(BOOL, "localPaths", KS_MUST, .text = "Host paths in results are paths of the client's machine."),
	KS_DOC(LIST, "languages", KS_MUST, .sub = &language, .text = "In the order of their names."),
};
static KS_TABLE(server_capabilities, "ServerCapabilities", capability_fields, .text = "What the server can do.");

static const struct ks_field server_limit_fields[] = {
	KS_DOC(INT, "maxLineInBytes", KS_MUST, .unit = "bytes", .text = "The longest line that the server reads."),
	KS_DOC(INT, "maxLineBytes", KS_MUST, .unit = "bytes", .text = "The longest line that it sends."),
	KS_DOC(INT, "runs", KS_MUST, .text = "Runs at the same time."),
	KS_DOC(INT, "queued", KS_MUST, .text = "Runs that may wait."),
	KS_DOC(INT, "blobBytes", KS_MUST, .unit = "bytes",
	       .text = "Blobs and kept output together, before the oldest go."),
};
static KS_TABLE(server_limits, "ServerLimits", server_limit_fields, .text = "The limits in force.");

static const struct ks_field initialize_result_fields[] = {
	KS_DOC(INT, "protocolVersion", KS_MUST, .text = "1."),
	KS_DOC(INT, "protocolMinor", KS_MUST, .text = "Grows with each addition."),
	KS_DOC(OBJECT, "server", KS_MUST, .sub = &server, .text = "Who answers."),
	KS_DOC(OBJECT, "capabilities", KS_MUST, .sub = &server_capabilities, .text = "What the server can do."),
	KS_DOC(OBJECT, "limits", KS_MUST, .sub = &server_limits, .text = "The limits in force."),
	KS_DOC(OPEN, "host", .text = "A short report on the host; host/doctor has the long one."),
};
KS_TABLE(ks_initialize_result, "InitializeResult", initialize_result_fields, .text = "The server's side.");

/* ---- shutdown, rpc/schema, $/cancel, $/progress, $/log ---- */

static const char *const shutdown_words[] = { "drain", "kill", NULL };
static const struct ks_field shutdown_fields[] = {
	{ KS_ENUM("mode", struct ks_shutdown_params, mode, shutdown_words), .fallback = "\"kill\"",
	  .text = "drain lets the running calls end; kill ends them now." },
};
KS_PARAMS(ks_shutdown_params, "ShutdownParams", shutdown_fields, .text = "How to end.",
	  .size = sizeof(struct ks_shutdown_params));

static const char *const format_words[] = { "jsonschema", NULL };
static const struct ks_field schema_fields[] = {
	{ KS_STRING("format", struct ks_schema_params, format), .min = 1, .max = 32, .choices = format_words,
	  .fallback = "\"jsonschema\"", .text = "JSON Schema 2020-12 with x-methods and x-errors." },
};
KS_PARAMS(ks_schema_params, "SchemaParams", schema_fields, .text = "Which form.",
	  .size = sizeof(struct ks_schema_params));
static const struct ks_field schema_result_fields[] = {
	KS_DOC(ANY, "schema", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .text = "The document."),
};
KS_TABLE(ks_schema_result, "SchemaResult", schema_result_fields, .text = "The schema of this very build.");

static const struct ks_field cancel_fields[] = {
	{ KS_ID("id", struct ks_cancel_params, id), KS_MUST, .text = "The id of the request to cancel." },
};
KS_TABLE(ks_cancel_params, "CancelParams", cancel_fields, .size = sizeof(struct ks_cancel_params),
	 .text = "What to cancel; unknown and finished ids are ignored.");

static const struct ks_field progress_fields[] = {
	KS_DOC(ID, "token", KS_MUST, .text = "The request's progressToken."),
	KS_DOC(STRING, "phase", KS_MUST, .text = "What is being done."),
	KS_DOC(INT, "done", KS_MUST, .text = "Never falls."),
	KS_DOC(INT, "total", .text = "When it is known."),
	KS_DOC(STRING, "message", .text = "For a person."),
};
KS_TABLE(ks_progress, "Progress", progress_fields, .text = "At most 10 times a second; the last one at the end.");

static const char *const level_words[] = { "error", "warn", "info", "debug", NULL };
static const struct ks_field log_fields[] = {
	KS_DOC(WORD, "level", KS_MUST, .choices = level_words, .text = "How bad."),
	KS_DOC(STRING, "code", KS_MUST, .text = "Stable, in lower snake_case."),
	KS_DOC(STRING, "message", KS_MUST, .text = "For a person."),
	KS_DOC(ID, "parent", .text = "The id of the request or run that it belongs to."),
};
KS_TABLE(ks_log_params, "Log", log_fields, .text = "One line of the log.");

/* ---- blobs ---- */

#define T struct ks_blob_read_params
static const struct ks_field blob_read_fields[] = {
	{ KS_STRING("id", T, id), KS_MUST, KS_HANDLE_RULE, .text = "The blob." },
	{ KS_INT("offset", T, offset), .min = 0, .max = KS_EXACT, .fallback = "0", .unit = "bytes",
	  .text = "Where to start." },
	{ KS_INT("length", T, length), .min = 1, .max = KS_MAX_OUTPUT_BYTES, .unit = "bytes",
	  .text = "How much at most; absent: as much as a line takes." },
};
#undef T
KS_PARAMS(ks_blob_read_params, "BlobReadParams", blob_read_fields, .text = "A part of a blob.",
	  .size = sizeof(struct ks_blob_read_params));
static const struct ks_field blob_read_result_fields[] = {
	KS_DOC(STRING, "text", .text = "The bytes, when they are UTF-8."),
	KS_DOC(BASE64, "base64", .text = "The bytes otherwise."),
	KS_DOC(INT, "nextOffset", KS_MUST, .unit = "bytes", .text = "Where to go on."),
	KS_DOC(BOOL, "eof", KS_MUST, .text = "That was the end."),
};
KS_TABLE(ks_blob_read_result, "BlobReadResult", blob_read_result_fields, .text = "text or base64.");

/* Failing calls name the field as the object sees it. */
static int check_blob_write(const void *params, struct ks_error *err)
{
	const struct ks_blob_write_params *write = params;

	return write->text.present ? 0 : ks_fail_at(err, KS_E_MISSING, "/text", "text or base64 is required");
}

#define T struct ks_blob_write_params
static const struct ks_field blob_write_fields[] = {
	{ KS_STRING("id", T, id), KS_HANDLE_RULE, .text = "The blob to append to; absent: a new one." },
	{ KS_UTF8("text", T, text), .max = KS_TEXT_BYTES, .text = "What to append." },
	{ KS_BASE64("base64", T, text), .max = KS_TEXT_BYTES, .text = "What to append, as bytes." },
};
#undef T
KS_PARAMS(ks_blob_write_params, "BlobWriteParams", blob_write_fields, .text = "Makes a blob or appends to one.",
	  .size = sizeof(struct ks_blob_write_params), .check = check_blob_write,
	  .rule = "Exactly one of text and base64.");
static const struct ks_field blob_write_result_fields[] = {
	KS_DOC(STRING, "id", KS_MUST, .text = "The blob."),
	KS_DOC(INT, "bytes", KS_MUST, .unit = "bytes", .text = "Its size now."),
};
KS_TABLE(ks_blob_write_result, "BlobWriteResult", blob_write_result_fields, .text = "The blob so far.");

static const struct ks_field blob_free_fields[] = {
	{ KS_STRING("id", struct ks_blob_free_params, id), KS_MUST, KS_HANDLE_RULE, .text = "The blob." },
};
KS_PARAMS(ks_blob_free_params, "BlobFreeParams", blob_free_fields, .text = "Which blob.",
	  .size = sizeof(struct ks_blob_free_params));

/* ---- images, host, plugins ---- */

static const struct ks_field image_fields[] = {
	KS_DOC(STRING, "ref", KS_MUST, .text = "As session/open takes it."),
	KS_DOC(STRING, "digest", .text = "sha256:…"),
	KS_DOC(INT, "bytes", .unit = "bytes", .text = "On disk."),
};
KS_TABLE(ks_image_result, "Image", image_fields, .text = "One image of the store.");
static const struct ks_field images_fields[] = {
	KS_DOC(LIST, "images", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &ks_image_result, .text = "By ref."),
};
KS_TABLE(ks_images_result, "ImageListResult", images_fields, .text = "The images of the store.");

#define IMAGE_REF KS_DOC(STRING, "ref", KS_MUST, .min = 1, .max = KS_PATH_BYTES, .text = "A registry reference.")
static const struct ks_field image_ref_fields[] = { IMAGE_REF };
KS_PARAMS(ks_image_ref_params, "ImageRefParams", image_ref_fields, .text = "Which image.");
static const struct ks_field image_import_fields[] = {
	KS_DOC(STRING, "path", KS_MUST, .min = 1, .max = KS_PATH_BYTES, .pattern = KS_P_ABSOLUTE,
	       .text = "An OCI layout or an archive on the host."),
	IMAGE_REF,
};
KS_PARAMS(ks_image_import_params, "ImageImportParams", image_import_fields, .text = "What to import, and as what.");

static const char *const status_words[] = { "ok", "warn", "fail", NULL };
static const struct ks_field check_fields[] = {
	KS_DOC(STRING, "id", KS_MUST, .text = "Stable."),
	KS_DOC(WORD, "status", KS_MUST, .choices = status_words, .text = "fail: boxes do not start."),
	KS_DOC(STRING, "found", KS_MUST, .text = "What is."),
	KS_DOC(STRING, "wanted", .text = "What should be."),
	KS_DOC(STRING, "fix", .text = "What to do about it."),
};
static KS_TABLE(check, "Check", check_fields, .text = "One thing that was looked at.");
static const struct ks_field doctor_fields[] = {
	KS_DOC(BOOL, "ok", KS_MUST, .text = "No check failed."),
	KS_DOC(LIST, "checks", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &check, .text = "In a fixed order."),
};
KS_TABLE(ks_doctor_result, "DoctorResult", doctor_fields, .text = "Can this host run boxes, and how well?");

static const char *const plugin_words[] = { "ok", "refused", NULL };
static const struct ks_field plugin_fields[] = {
	KS_DOC(STRING, "name", KS_MUST, .text = "The plugin, or the file name of one that was refused."),
	KS_DOC(WORD, "status", KS_MUST, .choices = plugin_words, .text = "Loaded or not."),
	KS_DOC(STRING, "version", .text = "Its own version."),
	KS_DOC(STRING, "path", .text = "Where it was found."),
	KS_DOC(STRINGS, "languages", .text = "What it runs."),
	KS_DOC(STRING, "reason", .text = "Why it was refused."),
};
static KS_TABLE(plugin, "Plugin", plugin_fields, .text = "A runner plugin.");
static const struct ks_field plugins_fields[] = {
	KS_DOC(LIST, "plugins", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &plugin, .text = "By name."),
};
KS_TABLE(ks_plugins_result, "PluginListResult", plugins_fields, .text = "All plugins that were found.");

static const struct ks_field profile_fields[] = {
	KS_DOC(STRING, "name", KS_MUST, .text = "As session/open's profiles take it."),
	KS_DOC(STRING, "text", .text = "What it is for."),
};
static KS_TABLE(profile, "Profile", profile_fields, .text = "A named set of session options.");
static const struct ks_field profiles_fields[] = {
	KS_DOC(LIST, "profiles", .flags = KS_F_REQUIRED | KS_F_MAY_BLOB, .sub = &profile, .text = "By name."),
};
KS_TABLE(ks_profiles_result, "ProfileListResult", profiles_fields, .text = "The profiles.");

static const struct ks_field stats_fields[] = {
	KS_DOC(INT, "uptimeMs", .unit = "ms", .text = "Since the server started."),
	KS_DOC(INT, "sessions", .text = "Open ones."),
	KS_DOC(INT, "runs", .text = "Running ones."),
	KS_DOC(INT, "queued", .text = "Runs that wait."),
	KS_DOC(INT, "kernels", .text = "Open ones."),
	KS_DOC(INT, "shells", .text = "Open ones."),
	KS_DOC(INT, "runsTotal", .text = "Runs so far."),
	KS_DOC(INT, "blobs", .text = "Blobs that live."),
	KS_DOC(INT, "blobBytes", .unit = "bytes", .text = "Together."),
	KS_DOC(INT, "logLinesDropped", .text = "Because nobody read them."),
	KS_DOC(INT, "workspaceWalks", .text = "For `files` of results: one serves all calls that wait for it."),
	KS_DOC(INT, "snapshotBytes", .unit = "bytes", .text = "Held for calls that run."),
};
KS_TABLE(ks_stats_result, "StatsResult", stats_fields, .text = "Counters; more may come.");

static const struct ks_field render_fields[] = {
	{ KS_TEXT("text", struct ks_render_params, text), KS_MUST, .max = KS_TEXT_BYTES, .text = "Output of a run." },
	{ KS_INT("maxChars", struct ks_render_params, max_chars), KS_MUST, .min = KS_MIN_RENDER_CHARS, .max = KS_MAX_RENDER_CHARS,
	  .text = "How many characters the answer may have; head and tail stay." },
};
KS_PARAMS(ks_render_params, "RenderParams", render_fields, .size = sizeof(struct ks_render_params), .text = "What to render.");
static const struct ks_field render_result_fields[] = {
	KS_DOC(TEXT, "rendered", KS_MUST, .text = "Text that is safe to show a model."),
};
KS_TABLE(ks_render_result, "RenderResult", render_result_fields, .text = "The rendered text.");
