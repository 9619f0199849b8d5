/* content.c: results of methods as blocks of content: texts that a model can read, and images. */
#include <string.h>

#include <json-c/json_object.h>
#include <json-c/linkhash.h>

#include "mcp_private.h"
#include "proto/write.h"
#include "render/glyph.h"
#include "render/render.h"
#include "session/blob.h"

static struct json_object *member(struct json_object *object, const char *name)
{
	struct json_object *value = NULL;

	(void)json_object_object_get_ex(object, name, &value);
	return value;
}

static int64_t number(struct json_object *object, const char *name)
{
	return json_object_get_int64(member(object, name));
}

static const char *text_of(struct json_object *value, size_t *ret_len)
{
	const bool is_text = json_object_is_type(value, json_type_string);

	*ret_len = is_text ? (size_t)json_object_get_string_len(value) : 0;
	return is_text ? json_object_get_string(value) : NULL;
}

void ks_mcp_block(struct ks_buf *blocks, const char *text, size_t len)
{
	ks_write_open(blocks, '{');
	ks_write_key_string(blocks, "type", "text");
	ks_write_key(blocks, "text");
	ks_write_utf8_lossy(blocks, text, len);
	ks_write_close(blocks, '}');
}

static void block_of(struct ks_buf *blocks, const struct ks_buf *text)
{
	ks_mcp_block(blocks, text->len ? text->data : "", text->len);
	blocks->failed |= text->failed;
}

/* ---- images ---- */

static bool is_shown(const char *mime)
{
	static const char *const mimes[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };

	for (size_t i = 0; i < KS_COUNT(mimes); i++)
		if (strcmp(mime, mimes[i]) == 0)
			return true;
	return false;
}

/* Base64 as it came, or of a blob. False: there is no room, and nothing was written. */
static bool add_image(struct ks_mcp_call *call, struct ks_buf *blocks, const char *mime, struct json_object *data)
{
	struct json_object *reference = member(data, "blob");
	struct ks_blob *blob = NULL;
	struct ks_error err;
	size_t len;
	const char *base64 = text_of(data, &len);

	if (!base64 && reference &&
	    ks_blob_find(call->mcp->app->core->blobs, json_object_get_string(member(reference, "id")), &blob, &err) == 0)
		len = ks_json_base64_size(ks_blob_size(blob));
	if ((!base64 && !blob) || blocks->len + len > KS_MCP_RESULT_BYTES)
		return false;
	ks_write_open(blocks, '{');
	ks_write_key_string(blocks, "type", "image");
	ks_write_key(blocks, "data");
	if (base64)
		ks_write_utf8_lossy(blocks, base64, len);
	else
		ks_write_base64(blocks, ks_blob_data(blob), ks_blob_size(blob));
	ks_write_key_string(blocks, "mimeType", mime);
	ks_write_close(blocks, '}');
	return true;
}

/* The numbers are those of the text ([image 1: …]), which counts all of them. */
static void add_images(struct ks_mcp_call *call, struct json_object *results, struct ks_buf *blocks)
{
	KS_AUTOBUF struct ks_buf left_out = { 0 };
	const size_t count = json_object_is_type(results, json_type_array) ? json_object_array_length(results) : 0;
	int images = 0;

	for (size_t i = 0; i < count; i++) {
		struct json_object *data = member(json_object_array_get_idx(results, i), "data");
		if (!data)
			continue;
		json_object_object_foreach(data, mime, value)
		{
			if (strncmp(mime, "image/", 6) != 0)
				continue;
			images++;
			if (is_shown(mime) && !add_image(call, blocks, mime, value))
				ks_buf_printf(&left_out, "[image %d is too large to be shown; save a smaller one]\n", images);
			break;
		}
	}
	if (left_out.len > 0)
		block_of(blocks, &left_out);
}

/* ---- run_code ---- */

static void add_notes(struct json_object *notes, struct ks_buf *text)
{
	size_t len;

	for (size_t i = 0; json_object_is_type(notes, json_type_array) && i < json_object_array_length(notes); i++) {
		const char *message = text_of(member(json_object_array_get_idx(notes, i), "message"), &len);
		ks_buf_str(text, "[note: ");
		ks_render_word(text, message ? message : "", len, 500);
		ks_buf_str(text, "]\n");
	}
}

static void copy(struct ks_buf *facts, struct json_object *result, const char *name)
{
	struct json_object *value = member(result, name);

	if (!value)
		return;
	const char *json = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN);
	ks_write_key(facts, name);
	ks_write_raw(facts, json, strlen(json));
}

bool ks_mcp_content_run(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts)
{
	static const char *const told[] = {
		"exitCode", "signal", "success", "fault", "durationMs", "truncated", "cellStatus", "stateKept"
	};
	KS_AUTOBUF struct ks_buf text = { 0 };
	struct json_object *rendered = member(result, "rendered"), *status = member(result, "cellStatus");
	struct ks_blob *blob;
	struct ks_error err;
	size_t len;
	const char *string = text_of(rendered, &len);

	if (string)
		ks_buf_add(&text, string, len);
	else if (ks_blob_find(call->mcp->app->core->blobs, json_object_get_string(member(member(rendered, "blob"), "id")), &blob, &err) ==
		 0)
		ks_buf_add(&text, ks_blob_data(blob), ks_blob_size(blob));
	if (call->mcp->config->notes)
		add_notes(member(result, "runtimeNotes"), &text);
	block_of(blocks, &text);
	add_images(call, member(result, "results"), blocks);
	ks_write_open(facts, '{');
	for (size_t i = 0; i < KS_COUNT(told); i++)
		copy(facts, result, told[i]);
	ks_write_close(facts, '}');
	if (status && strcmp(json_object_get_string(status), "dead") == 0)
		ks_mcp_kernel_lost(call->mcp);
	return member(result, "fault") != NULL; /* an exception or an exit code is an answer: the tool did its work */
}

/* ---- files ---- */

static void add_name(struct ks_buf *text, const char *name)
{
	ks_render_word(text, name, strlen(name), 4096);
}

bool ks_mcp_content_write(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts)
{
	KS_AUTOBUF struct ks_buf text = { 0 };

	(void)facts;
	ks_buf_str(&text, json_object_get_boolean(member(result, "created")) ? "[created " : "[written ");
	add_name(&text, call->arguments.write.path);
	ks_buf_printf(&text, ", %lld bytes]\n", (long long)number(result, "size"));
	block_of(blocks, &text);
	return false;
}

bool ks_mcp_content_edit(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	struct json_object *counts = member(result, "replacements");
	const int64_t count = json_object_get_int64(json_object_array_get_idx(counts, 0));

	(void)facts;
	ks_buf_str(&text, "[edited ");
	add_name(&text, call->arguments.edit.path);
	ks_buf_printf(&text, ", %lld replacement%s]\n", (long long)count, count == 1 ? "" : "s");
	block_of(blocks, &text);
	return false;
}

static bool is_binary(struct json_object *result)
{
	size_t len;
	const char *encoding = text_of(member(result, "encoding"), &len);

	return encoding && strcmp(encoding, "binary") == 0;
}

bool ks_mcp_wants_whole(struct json_object *result)
{
	size_t len;
	const char *mime = text_of(member(result, "mime"), &len);

	return is_binary(result) && mime && is_shown(mime) && number(result, "size") <= KS_MCP_RESULT_BYTES / 4 * 3;
}

static void describe_binary(struct json_object *result, struct ks_buf *text)
{
	size_t len;
	const char *mime = text_of(member(result, "mime"), &len);

	ks_buf_str(text, "[binary file, ");
	ks_render_word(text, mime ? mime : "", len, 100);
	ks_buf_printf(text, "%s%lld bytes: look at it with run_code]\n", mime ? ", " : "", (long long)number(result, "size"));
}

static void add_range(struct ks_buf *note, int64_t start, int64_t end, int64_t total)
{
	ks_buf_printf(note, "[lines %lld to %lld", (long long)start, (long long)end);
	if (total >= 0)
		ks_buf_printf(note, " of %lld", (long long)total);
	ks_buf_printf(note, "; go on with offset %lld]\n", (long long)end + 1);
}

/* As many whole lines as there is room for, and what to ask for next. */
static void add_lines(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *all, bool escaped, struct ks_buf *blocks)
{
	KS_AUTOBUF struct ks_buf note = { 0 };
	const int64_t start = call->arguments.read.offset, total = member(result, "totalLines") ? number(result, "totalLines") : -1;
	size_t kept = ks_glyph_offset(all->data, all->len, KS_MCP_TEXT_CHARS);
	int64_t end = number(result, "endLine");
	const bool cut = kept < all->len;

	if (cut) {
		const char *lf = memrchr(all->data, '\n', kept);
		end = start;
		if (lf) {
			kept = (size_t)(lf - all->data) + 1;
			end = start - 1;
			for (size_t i = 0; i < kept; i++)
				end += all->data[i] == '\n';
		}
	}
	if (kept > 0)
		ks_mcp_block(blocks, all->data, kept);
	if (number(result, "size") == 0)
		ks_buf_str(&note, "[the file is empty]\n");
	else if (kept == 0)
		ks_buf_printf(&note, "[there is no line %lld: the file has %lld]\n", (long long)start, (long long)total);
	else if (cut && !memrchr(all->data, '\n', kept))
		ks_buf_printf(&note, "[line %lld is too long and is cut here; use run_code for the rest]\n", (long long)start);
	else if (cut || !json_object_get_boolean(member(result, "eof")))
		add_range(&note, start, end, total);
	if (escaped)
		ks_buf_str(&note, "[characters that cannot be seen are shown as \\u{…} or \\x…]\n");
	if (note.len > 0)
		block_of(blocks, &note);
}

bool ks_mcp_content_read(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	size_t len, mime_len;
	const char *content = text_of(member(result, "text"), &len);
	const char *mime = text_of(member(result, "mime"), &mime_len);

	(void)facts;
	if (call->asked_whole && mime && (member(result, "base64") || member(result, "blob"))) {
		struct json_object *base64 = member(result, "base64");
		if (add_image(call, blocks, mime, base64 ? base64 : result))
			return false;
	}
	if (!content || (is_binary(result) && memchr(content, '\0', len))) {
		if (member(result, "blob") && !is_binary(result))
			ks_buf_str(&text, "[these lines are too long: ask for fewer with limit, or use run_code]\n");
		else
			describe_binary(result, &text);
		block_of(blocks, &text);
		return false;
	}
	const bool escaped = ks_render_source(&text, content, len);
	add_lines(call, result, &text, escaped, blocks);
	return false;
}

bool ks_mcp_content_list(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts)
{
	KS_AUTOBUF struct ks_buf names = { 0 }, text = { 0 };
	struct json_object *entries = member(result, "entries");
	const size_t count = json_object_is_type(entries, json_type_array) ? json_object_array_length(entries) : 0;
	size_t len;

	(void)call;
	(void)facts;
	for (size_t i = 0; i < count; i++) {
		struct json_object *entry = json_object_array_get_idx(entries, i);
		const char *path = text_of(member(entry, "path"), &len), *type = json_object_get_string(member(entry, "type"));
		if (path)
			ks_render_word(&names, path, len, 4096);
		else
			ks_buf_str(&names, "(a name that is not UTF-8)");
		if (type && strcmp(type, "directory") == 0)
			ks_buf_str(&names, "/\n");
		else if (type && strcmp(type, "file") == 0)
			ks_buf_printf(&names, "  %lld bytes\n", (long long)number(entry, "size"));
		else
			ks_buf_printf(&names, "  %s\n", type ? type : "?");
	}
	ks_render_text(&text, names.len ? names.data : "", names.len, KS_MCP_TEXT_CHARS, KS_KEEP_HEAD);
	if (json_object_is_type(entries, json_type_object))
		ks_buf_str(&text, "[the names are too long to be shown: list a directory below this one]\n");
	else if (count == 0)
		ks_buf_str(&text, "[no files]\n");
	else if (member(result, "nextCursor"))
		ks_buf_printf(&text, "[only the first %zu are shown]\n", count);
	block_of(blocks, &text);
	return false;
}

bool ks_mcp_content_search(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts)
{
	KS_AUTOBUF struct ks_buf lines = { 0 }, text = { 0 };
	struct json_object *matches = member(result, "matches");
	const size_t count = json_object_is_type(matches, json_type_array) ? json_object_array_length(matches) : 0;
	size_t path_len, len;

	(void)call;
	(void)facts;
	for (size_t i = 0; i < count; i++) {
		struct json_object *match = json_object_array_get_idx(matches, i);
		const char *path = text_of(member(match, "path"), &path_len), *line = text_of(member(match, "text"), &len);
		ks_render_word(&lines, path ? path : "?", path ? path_len : 1, 4096);
		ks_buf_printf(&lines, ":%lld: ", (long long)number(match, "line"));
		ks_render_word(&lines, line ? line : "", line ? len : 0, 500);
		ks_buf_char(&lines, '\n');
	}
	ks_render_text(&text, lines.len ? lines.data : "", lines.len, KS_MCP_TEXT_CHARS, KS_KEEP_HEAD);
	if (json_object_is_type(matches, json_type_object))
		ks_buf_str(&text, "[the matches are too long to be shown: search in fewer files]\n");
	else if (count == 0)
		ks_buf_str(&text, "[no matches]\n");
	else if (json_object_get_boolean(member(result, "truncated")))
		ks_buf_printf(&text, "[only the first %zu matches are shown]\n", count);
	block_of(blocks, &text);
	return false;
}
