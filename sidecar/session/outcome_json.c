#include "session/outcome_json.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "proto/write.h"
#include "session/kernel.h"
#include "session/outcome_render.h"
#include "session/text.h"

const char *ks_signal_name(int signal_number, char room[8])
{
	const char *name = sigabbrev_np(signal_number);

	if (name)
		return name;
	(void)snprintf(room, 8, "RT%d", signal_number - SIGRTMIN);
	return room;
}

int ks_signal_number(const char *name)
{
	for (int s = 1; s < NSIG; s++) {
		const char *known = sigabbrev_np(s);
		if (known && strcmp(known, name) == 0)
			return s;
	}
	return 0;
}

#define SMALL_DATA ((size_t)1 << 10) /* what never becomes a blob */

/* ---- the parts that can be large ---- */

static void write_files(const struct ks_call *call, struct ks_buf *json)
{
	ks_write_open(json, '[');
	for (size_t i = 0; i < call->changes.count; i++) {
		const struct ks_change *change = &call->changes.items[i];
		char hex[65];
		ks_write_open(json, '{');
		ks_write_path(json, change->path, change->path_len);
		ks_write_key_string(json, "change", ks_change_name(change->change));
		if (change->change != KS_DELETED)
			ks_write_key_int(json, "size", change->size);
		ks_write_key_string(json, "mime", change->mime);
		if (change->has_sha256) {
			for (size_t k = 0; k < 32; k++)
				(void)snprintf(hex + 2 * k, 3, "%02x", change->sha256[k]);
			ks_write_key_string(json, "sha256", hex);
		}
		ks_write_close(json, '}');
	}
	ks_write_close(json, ']');
}

static bool is_binary_mime(const char *mime)
{
	return strncmp(mime, "image/", 6) == 0 && strcmp(mime, "image/svg+xml") != 0;
}

/* Image data is base64, everything else text; pieces above `inline_max` become blobs. */
static int write_data(struct ks_call *call, struct ks_result_data *data, size_t inline_max, struct ks_buf *json,
		      struct ks_error *err)
{
	struct ks_text_item item = { .data = data->data, .len = data->len, .mime = data->mime,
				     .encoding = is_binary_mime(data->mime) ? KS_ENCODING_BASE64 : KS_ENCODING_UTF8 };

	ks_write_key(json, data->mime);
	if (data->len <= inline_max) {
		if (is_binary_mime(data->mime))
			ks_write_base64(json, data->data, data->len);
		else
			ks_write_utf8_lossy(json, data->data, data->len);
		return 0;
	}
	(void)ks_text_plan(&item, 1, 0);
	memcpy(item.blob, data->blob, sizeof(item.blob));
	if (ks_text_write(json, &item, call->core->blobs, call->session, err) < 0)
		return -1;
	memcpy(data->blob, item.blob, sizeof(data->blob));
	return 0;
}

/* data, metadata, displayId. */
static int write_content(struct ks_call *call, const struct ks_result *result, size_t inline_max, struct ks_buf *json,
			 size_t *ret_dropped, struct ks_error *err)
{
	struct ks_result_content *content = result->content;
	size_t dropped = 0;

	ks_write_key(json, "data");
	ks_write_open(json, '{');
	for (size_t i = 0; i < content->data_count; i++) {
		if (content->data[i].dropped)
			dropped++;
		else if (write_data(call, &content->data[i], inline_max, json, err) < 0)
			return -1;
	}
	ks_write_close(json, '}');
	if (content->metadata) {
		ks_write_key(json, "metadata");
		ks_write_raw(json, content->metadata, content->metadata_len);
	}
	if (result->id) {
		ks_write_key(json, "displayId");
		ks_write_utf8_lossy(json, result->id, result->id_len);
	}
	*ret_dropped = dropped;
	return 0;
}

static int write_one_result(struct ks_call *call, const struct ks_result *result, size_t inline_max, struct ks_buf *json,
			    struct ks_error *err)
{
	const struct ks_result_content *content = result->content;
	size_t dropped = 0;

	ks_write_open(json, '{');
	ks_write_key_string(json, "kind",
			    result->kind == KERN_VALUE ? "value" : result->kind == KERN_FIGURE ? "figure" : "display");
	if (write_content(call, result, inline_max, json, &dropped, err) < 0)
		return -1;
	ks_write_key_int(json, "seq", (int64_t)result->seq);
	ks_write_key(json, "at");
	ks_write_open(json, '{');
	ks_write_key_int(json, "stdout", (int64_t)result->at_stdout);
	ks_write_key_int(json, "stderr", (int64_t)result->at_stderr);
	ks_write_close(json, '}');
	if (dropped > 0) {
		ks_write_key(json, "dropped");
		ks_write_open(json, '[');
		for (size_t i = 0; i < content->data_count; i++) {
			if (!content->data[i].dropped)
				continue;
			ks_write_open(json, '{');
			ks_write_key_string(json, "mime", content->data[i].mime);
			ks_write_key_string(json, "reason", content->data[i].dropped);
			ks_write_close(json, '}');
		}
		ks_write_close(json, ']');
	}
	ks_write_close(json, '}');
	return 0;
}

/* First with everything inline; when that is too much for a line, again with every larger piece in a blob of its own. */
static int write_results(struct ks_call *call, size_t room, struct ks_buf *json, struct ks_error *err)
{
	size_t inline_max = call->results.bytes < room / 2 ? SIZE_MAX : SMALL_DATA;

	ks_write_open(json, '[');
	for (struct ks_list *n = call->results.list.next; n != &call->results.list; n = n->next)
		if (write_one_result(call, KS_ENTRY(n, struct ks_result, node), inline_max, json, err) < 0)
			return -1;
	ks_write_close(json, ']');
	return 0;
}

int ks_outcome_write_display(struct ks_call *call, enum ks_result_op op, const struct ks_result *result, bool wait, size_t room,
			     struct ks_buf *json, struct ks_error *err)
{
	static const char *const words[] = { [KS_RESULT_DISPLAY] = "display", [KS_RESULT_UPDATE] = "update",
					     [KS_RESULT_CLEAR] = "clear", [KS_RESULT_VALUE] = "value" };
	size_t bytes = 0, dropped;

	ks_write_key_string(json, "op", words[op]);
	if (op == KS_RESULT_CLEAR) {
		ks_write_key_bool(json, "wait", wait);
		return 0;
	}
	for (size_t i = 0; i < result->content->data_count; i++)
		bytes += result->content->data[i].len;
	/* escapes and base64 may double it */
	return write_content(call, result, 2 * bytes + result->content->metadata_len < room ? SIZE_MAX : SMALL_DATA, json, &dropped, err);
}

static void write_error(const struct ks_result_error *error, struct ks_buf *json)
{
	ks_write_open(json, '{');
	ks_write_key_string(json, "name", error->name ? error->name : "");
	ks_write_key_string(json, "message", error->message ? error->message : "");
	ks_write_key_string(json, "phase", error->phase ? error->phase : "run");
	ks_write_key(json, "frames");
	ks_write_open(json, '[');
	for (size_t i = 0; i < error->frame_count; i++) {
		const struct ks_error_frame *frame = &error->frames[i];
		ks_write_open(json, '{');
		ks_write_key_string(json, "file", frame->file ? frame->file : "");
		ks_write_key_int(json, "line", frame->line);
		if (frame->column)
			ks_write_key_int(json, "column", frame->column);
		ks_write_key_string(json, "function", frame->function ? frame->function : "");
		ks_write_key_string(json, "source", frame->source);
		ks_write_close(json, '}');
	}
	ks_write_close(json, ']');
	ks_write_key_string(json, "traceback", error->traceback ? error->traceback : "");
	if (error->cause) { /* no deeper than KS_ERROR_CAUSES */
		ks_write_key(json, "cause");
		write_error(error->cause, json);
	}
	ks_write_close(json, '}');
}

/* ---- the parts that are small ---- */

void ks_outcome_write_fault(const struct ks_outcome *o, struct ks_buf *json)
{
	if (o->fault == KS_FAULT_NONE)
		return;
	ks_write_key(json, "fault");
	ks_write_open(json, '{');
	ks_write_key_string(json, "type", ks_fault_name(o->fault));
	ks_write_key_string(json, "message", o->message);
	if (o->fault == KS_FAULT_ESCAPE_BLOCKED) {
		ks_write_key_string(json, "syscall", o->syscall);
		ks_write_key_string(json, "process", o->process);
	}
	if (o->limit[0])
		ks_write_key_string(json, "limit", o->limit);
	ks_write_close(json, '}');
}

static void write_facts(const struct ks_call *call, struct ks_buf *json)
{
	const struct ks_outcome *o = &call->outcome;
	char room[8];

	ks_write_key_int(json, "exitCode", o->exit_code);
	if (o->signal)
		ks_write_key_string(json, "signal", ks_signal_name(o->signal, room));
	ks_write_key_int(json, "durationMs", (o->duration_us + 500) / 1000);
	ks_write_key_bool(json, "success", o->exit_code == 0 && o->fault == KS_FAULT_NONE);
	ks_outcome_write_fault(o, json);
	ks_write_key(json, "runtimeNotes");
	ks_notes_write(&call->notes, json);
	ks_write_key_bool(json, "truncated", o->truncated);
	ks_write_key_int(json, "stdoutBytes", (int64_t)call->log[0].total);
	ks_write_key_int(json, "stderrBytes", (int64_t)call->log[1].total);
}

static void write_known(struct ks_buf *json, const char *key, int64_t value)
{
	if (value >= 0)
		ks_write_key_int(json, key, value);
}

static int64_t first_known(int64_t a, int64_t b)
{
	return a >= 0 ? a : b;
}

static void write_usage(const struct ks_call *call, struct ks_buf *json)
{
	const struct ks_box_end *end = &call->outcome.end;
	const struct ks_leaf_facts *leaf = &end->leaf;
	const struct ks_escape *escape = &call->escape;

	ks_write_key(json, "usage");
	ks_write_open(json, '{');
	ks_write_key_int(json, "wallUs", call->outcome.duration_us);
	/* the box's own count sees only what was reaped; the kernel's, where it has one, sees all */
	ks_write_key_int(json, "cpuUserUs", leaf->cpu_user_us > end->user_us ? leaf->cpu_user_us : end->user_us);
	ks_write_key_int(json, "cpuSystemUs", leaf->cpu_system_us > end->system_us ? leaf->cpu_system_us : end->system_us);
	ks_write_key_int(json, "memoryPeakBytes", first_known(leaf->memory_peak_bytes, end->max_rss_bytes));
	write_known(json, "processesPeak", leaf->pids_peak);
	write_known(json, "pidsRefused", leaf->pids_refused);
	if (escape->count > 0)
		ks_write_key_int(json, "syscallsRefused", (int64_t)escape->count);
	write_known(json, "oomKills", leaf->oom_kills);
	write_known(json, "ioReadBytes", leaf->io_read_bytes);
	write_known(json, "ioWriteBytes", leaf->io_write_bytes);
	ks_write_close(json, '}');
	ks_write_key(json, "start");
	ks_write_open(json, '{');
	ks_write_key_string(json, "kind", call->outcome.start_kind);
	ks_write_key_int(json, "us", call->outcome.start_us);
	ks_write_close(json, '}');
}

static void write_cell(const struct ks_call *call, struct ks_buf *json)
{
	static const char *const words[] = { [KS_CELL_DEAD] = "dead", [KS_CELL_OK] = "ok", [KS_CELL_ERROR] = "error",
					     [KS_CELL_INTERRUPTED] = "interrupted" };

	if (!call->kernel->is_shell) {
		ks_write_key_string(json, "cellStatus", words[call->cell_status]);
		ks_write_key_int(json, "executionCount", call->execution);
	}
	ks_write_key_bool(json, "stateKept", call->cell_status != KS_CELL_DEAD);
}

/* ---- together ---- */

enum { ITEM_STDOUT, ITEM_STDERR, ITEM_FILES, ITEM_RESULTS, ITEM_RENDERED, ITEM_ERROR, ITEM_COUNT };

static void take_output(struct ks_call *call, int which, struct ks_text_item *item)
{
	struct ks_output_log *log = &call->log[which];

	*item = (struct ks_text_item){
		.data = log->kept.data, .len = log->kept.len, .encoding = call->params->encoding, .digest = &log->digest,
	};
}

/* What became a blob is kept there only; output/read finds it by its id. */
static int write_output(struct ks_call *call, int which, const char *key, struct ks_text_item *item, struct ks_buf *json,
			struct ks_error *err)
{
	struct ks_output_log *log = &call->log[which];

	ks_write_key(json, key);
	if (item->form == KS_FORM_BLOB) {
		item->owned = true;
		log->kept = (struct ks_buf){ 0 };
	}
	if (ks_text_write(json, item, call->core->blobs, call->session, err) < 0)
		return -1;
	memcpy(log->blob, item->blob, sizeof(log->blob));
	return 0;
}

static void take_json(struct ks_buf *buf, struct ks_text_item *item)
{
	*item = (struct ks_text_item){ .data = buf->data, .len = buf->len, .json = true };
}

static int write_item(struct ks_call *call, const char *key, struct ks_text_item *item, struct ks_buf *json, struct ks_error *err)
{
	ks_write_key(json, key);
	return ks_text_write(json, item, call->core->blobs, call->session, err);
}

int ks_outcome_write(struct ks_call *call, size_t room, struct ks_buf *json, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf files = { 0 }, results = { 0 }, error = { 0 }, facts = { 0 }, usage = { 0 }, rendered = { 0 };
	struct ks_text_item items[ITEM_COUNT] = { 0 };
	size_t count = call->results.has_error ? ITEM_COUNT : ITEM_ERROR;

	write_files(call, &files);
	if (write_results(call, room, &results, err) < 0)
		return -1;
	if (call->results.has_error)
		write_error(&call->results.error, &error);
	write_facts(call, &facts);
	write_usage(call, &usage);
	if (call->params->has_render)
		ks_outcome_render(call, (size_t)call->params->render_max_chars, &rendered);
	take_output(call, 0, &items[ITEM_STDOUT]);
	take_output(call, 1, &items[ITEM_STDERR]);
	take_json(&files, &items[ITEM_FILES]);
	take_json(&results, &items[ITEM_RESULTS]);
	items[ITEM_RENDERED] = (struct ks_text_item){ .data = rendered.data, .len = rendered.len };
	take_json(&error, &items[ITEM_ERROR]);
	/* runId, keys, filesTruncated, resultChannel, what a cell has, rendered, braces */
	size_t fixed = facts.len + usage.len + 440;
	(void)ks_text_plan(items, count, room > fixed ? room - fixed : 0);

	ks_write_open(json, '{');
	ks_write_key_string(json, "runId", call->id);
	if (write_output(call, 0, "stdout", &items[ITEM_STDOUT], json, err) < 0 ||
	    write_output(call, 1, "stderr", &items[ITEM_STDERR], json, err) < 0)
		return -1;
	ks_buf_char(json, ',');
	ks_buf_add(json, facts.data, facts.len);
	if (write_item(call, "files", &items[ITEM_FILES], json, err) < 0)
		return -1;
	if (call->changes.truncated)
		ks_write_key_bool(json, "filesTruncated", true);
	if (write_item(call, "results", &items[ITEM_RESULTS], json, err) < 0)
		return -1;
	ks_write_key_string(json, "resultChannel", call->outcome.channel);
	if (call->results.has_error && write_item(call, "error", &items[ITEM_ERROR], json, err) < 0)
		return -1;
	ks_buf_char(json, ',');
	ks_buf_add(json, usage.data, usage.len);
	if (call->cell)
		write_cell(call, json);
	if (call->params->has_render && write_item(call, "rendered", &items[ITEM_RENDERED], json, err) < 0)
		return -1;
	ks_write_close(json, '}');
	if (call->throwaway)
		ks_blobs_expire_owner(call->core->blobs, call->session, KS_BLOB_THROWAWAY_MS);
	if (json->failed || facts.failed || usage.failed || files.failed || results.failed || error.failed || rendered.failed)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	return 0;
}

int ks_output_write(struct ks_call *call, enum ks_output which, int64_t offset, int64_t max_bytes, size_t room, struct ks_buf *json,
		    struct ks_error *err)
{
	const struct ks_output_log *log = &call->log[which];
	const bool ended = call->state == KS_CALL_DONE || call->decided;
	const char *kept = log->kept.data;
	size_t kept_len = log->kept.len;
	struct ks_blob *blob;

	if (log->blob[0]) {
		if (ks_blob_find(call->core->blobs, log->blob, &blob, err) < 0)
			return ks_error_at(err, "/runId");
		kept = ks_blob_data(blob);
		kept_len = ks_blob_size(blob);
	}
	if ((uint64_t)offset > log->total)
		return ks_fail_at(err, KS_E_OUT_OF_RANGE, "/offset", "the stream has %llu bytes so far", (unsigned long long)log->total);
	size_t at = (uint64_t)offset > kept_len ? kept_len : (size_t)offset, len = kept_len - at;
	uint64_t next = (uint64_t)offset, dropped = 0;
	if (max_bytes != KS_ABSENT && (uint64_t)max_bytes < len)
		len = (size_t)max_bytes;
	ks_write_open(json, '{');
	next += ks_text_write_slice(json, len ? kept + at : "", len, room > 256 ? room - 256 : 16);
	if (at == kept_len) { /* behind what was kept: the rest is gone */
		dropped = log->total - (uint64_t)offset;
		next = log->total;
	}
	ks_write_key_int(json, "nextOffset", (int64_t)next);
	ks_write_key_bool(json, "eof", ended && next >= log->total);
	ks_write_key_int(json, "droppedBefore", (int64_t)dropped);
	ks_write_close(json, '}');
	return 0;
}
