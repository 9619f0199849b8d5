#include "tools.h"

#include <string.h>

#include <json-c/json_object.h>

#include "mcp_private.h"
#include "proto/schema.h"
#include "proto/tables.h"
#include "proto/write.h"

/* ---- arguments ---- */

#define PATH(T)                                                                    \
	{ KS_STRING("path", T, path), KS_MUST, .min = 1, .max = KS_PATH_BYTES,     \
	  .text = "Relative to the workspace, or absolute as code sees it." }

static const struct ks_field run_fields[] = {
	{ KS_UTF8("code", struct ks_mcp_run, code), KS_MUST, .max = KS_CODE_BYTES,
	  .text = "The program. The value of a last expression is shown, and so are figures." },
	{ KS_STRING("language", struct ks_mcp_run, language), .min = 1, .max = 32, .pattern = KS_P_LANGUAGE, .fallback = "\"python\"",
	  .text = "python, bash, sh, node or typescript." },
	{ KS_INT("timeout_s", struct ks_mcp_run, timeout_s), .min = 1, .max = 86400,
	  .text = "Deadline in seconds; absent: the longest allowed." },
};
static KS_TABLE(run_arguments, "run_code", run_fields, .size = sizeof(struct ks_mcp_run));

static const struct ks_field write_fields[] = {
	PATH(struct ks_mcp_write),
	{ KS_UTF8("content", struct ks_mcp_write, content), KS_MUST, .max = KS_TEXT_BYTES, .text = "The whole new content." },
};
static KS_TABLE(write_arguments, "write_file", write_fields, .size = sizeof(struct ks_mcp_write));

static const struct ks_field read_fields[] = {
	PATH(struct ks_mcp_read),
	{ KS_INT("offset", struct ks_mcp_read, offset), .min = 1, .max = KS_EXACT, .fallback = "1", .text = "The first line, from 1." },
	{ KS_INT("limit", struct ks_mcp_read, limit), .min = 1, .max = KS_MCP_LINES, .fallback = "2000",
	  .text = "How many lines at most." },
};
static KS_TABLE(read_arguments, "read_file", read_fields, .size = sizeof(struct ks_mcp_read));

static const struct ks_field list_fields[] = {
	{ KS_STRING("path", struct ks_mcp_list_files, path), .min = 1, .max = KS_PATH_BYTES, .fallback = "\".\"",
	  .text = "A directory of the workspace." },
};
static KS_TABLE(list_arguments, "list_files", list_fields, .size = sizeof(struct ks_mcp_list_files));

static const struct ks_field edit_fields[] = {
	PATH(struct ks_mcp_edit),
	{ KS_UTF8("old_text", struct ks_mcp_edit, old_text), KS_MUST, .min = 1, .max = KS_TEXT_BYTES,
	  .text = "Must be in the file exactly once, unless all is true." },
	{ KS_UTF8("new_text", struct ks_mcp_edit, new_text), KS_MUST, .max = KS_TEXT_BYTES, .text = "What takes its place." },
	{ KS_BOOL("all", struct ks_mcp_edit, all), .fallback = "false", .text = "Replace it everywhere." },
};
static KS_TABLE(edit_arguments, "edit_file", edit_fields, .size = sizeof(struct ks_mcp_edit));

static const struct ks_field search_fields[] = {
	{ KS_STRING("pattern", struct ks_mcp_search, pattern), KS_MUST, .min = 1, .max = 4096, .text = "The text to find." },
	{ KS_STRING("path", struct ks_mcp_search, path), .min = 1, .max = KS_PATH_BYTES,
	  .text = "Below this directory, or in this file; absent: the workspace." },
	{ KS_STRING("glob", struct ks_mcp_search, glob), .min = 1, .max = 4096, .text = "Only in files whose name matches, such as *.py." },
	{ KS_BOOL("regex", struct ks_mcp_search, regex), .fallback = "false", .text = "pattern is a Perl-compatible regular expression." },
};
static KS_TABLE(search_arguments, "search_files", search_fields, .size = sizeof(struct ks_mcp_search));

/* ---- the methods behind them ---- */

static void add(struct json_object *params, const char *name, const char *value)
{
	if (value)
		json_object_object_add(params, name, json_object_new_string(value));
}

static void add_text(struct json_object *params, const char *name, const struct ks_text *text)
{
	json_object_object_add(params, name, json_object_new_string_len(text->len ? text->data : "", (int)text->len));
}

static void add_int(struct json_object *params, const char *name, int64_t value)
{
	json_object_object_add(params, name, json_object_new_int64(value));
}

static const char *run_request(const struct ks_mcp_call *call, struct json_object *params)
{
	const struct ks_mcp_run *run = &call->arguments.run;
	const bool cell = call->mcp->config->kernel && strcmp(run->language, "python") == 0;
	struct json_object *render = json_object_new_object();

	add_text(params, "code", &run->code);
	if (!cell)
		add(params, "language", run->language);
	if (run->timeout_s != KS_ABSENT)
		add_int(params, "timeoutMs", run->timeout_s * 1000);
	add_int(render, "maxChars", KS_MCP_TEXT_CHARS);
	json_object_object_add(params, "render", render);
	return cell ? "kernel/run" : "run/code";
}

static const char *write_request(const struct ks_mcp_call *call, struct json_object *params)
{
	add(params, "path", call->arguments.write.path);
	add_text(params, "content", &call->arguments.write.content);
	return "file/write";
}

static const char *read_request(const struct ks_mcp_call *call, struct json_object *params)
{
	const struct ks_mcp_read *read = &call->arguments.read;

	add(params, "path", read->path);
	if (!call->asked_whole) {
		struct json_object *lines = json_object_new_object();
		add_int(lines, "start", read->offset);
		add_int(lines, "count", read->limit);
		json_object_object_add(params, "lines", lines);
		add(params, "encoding", "utf8");
	} else {
		add_int(params, "length", KS_MCP_RESULT_BYTES / 4 * 3);
		add(params, "encoding", "base64");
	}
	return "file/read";
}

static const char *list_request(const struct ks_mcp_call *call, struct json_object *params)
{
	add(params, "path", call->arguments.list.path);
	add_int(params, "limit", KS_MCP_LIST);
	return "file/list";
}

static const char *edit_request(const struct ks_mcp_call *call, struct json_object *params)
{
	const struct ks_mcp_edit *edit = &call->arguments.edit;
	struct json_object *edits = json_object_new_array(), *one = json_object_new_object();

	add(params, "path", edit->path);
	add_text(one, "oldText", &edit->old_text);
	add_text(one, "newText", &edit->new_text);
	json_object_object_add(one, "all", json_object_new_boolean(edit->all));
	json_object_array_add(edits, one);
	json_object_object_add(params, "edits", edits);
	return "file/edit";
}

static const char *search_request(const struct ks_mcp_call *call, struct json_object *params)
{
	const struct ks_mcp_search *search = &call->arguments.search;

	add(params, "pattern", search->pattern);
	add(params, "path", search->path);
	add(params, "glob", search->glob);
	json_object_object_add(params, "regex", json_object_new_boolean(search->regex));
	add_int(params, "limit", KS_MCP_MATCHES);
	return "file/search";
}

/* ---- the list ---- */

#define READS "{\"readOnlyHint\":true,\"openWorldHint\":false}"
#define WRITES "{\"readOnlyHint\":false,\"destructiveHint\":true,\"idempotentHint\":true,\"openWorldHint\":false}"
#define RUNS "{\"readOnlyHint\":false,\"destructiveHint\":true,\"idempotentHint\":false,\"openWorldHint\":false}"

static const struct ks_mcp_tool tools[] = {
	{ .name = "run_code", .title = "Run code", .arguments = &run_arguments, .annotations = RUNS, .runs = true, .request = run_request,
	  .content = ks_mcp_content_run,
	  .text = "Runs code in a local sandbox and returns what it prints, the value of its last expression, and figures as images." },
	{ .name = "write_file", .title = "Write a file", .arguments = &write_arguments, .annotations = WRITES, .request = write_request,
	  .content = ks_mcp_content_write, .text = "Writes a text file of the workspace, whole. Missing directories are made." },
	{ .name = "read_file", .title = "Read a file", .arguments = &read_arguments, .annotations = READS, .request = read_request,
	  .content = ks_mcp_content_read, .text = "Reads a text file of the workspace by lines, or shows an image." },
	{ .name = "list_files", .title = "List files", .arguments = &list_arguments, .annotations = READS, .request = list_request,
	  .content = ks_mcp_content_list, .text = "Lists a directory of the workspace. Directories end with a slash." },
	{ .name = "edit_file", .title = "Edit a file", .arguments = &edit_arguments, .annotations = WRITES, .request = edit_request,
	  .content = ks_mcp_content_edit, .text = "Replaces a piece of text in a file of the workspace." },
	{ .name = "search_files", .title = "Search in files", .arguments = &search_arguments, .annotations = READS,
	  .request = search_request, .content = ks_mcp_content_search,
	  .text = "Finds lines in the files of the workspace. Files that .gitignore names are left out." },
};

const struct ks_mcp_tool *ks_mcp_tool_at(size_t i)
{
	return i < KS_COUNT(tools) ? &tools[i] : NULL;
}

const struct ks_mcp_tool *ks_mcp_tool_find(const char *name)
{
	for (size_t i = 0; i < KS_COUNT(tools); i++)
		if (strcmp(tools[i].name, name) == 0)
			return &tools[i];
	return NULL;
}

/* What a model must know about this very configuration. */
static void describe_run(const struct ks_mcp *mcp, struct ks_buf *text)
{
	const struct ks_mcp_config *config = mcp->config;

	if (config->kernel)
		ks_buf_str(
			text,
			" Python runs in one interpreter: variables and imports stay from call to call. Other languages have a fresh box "
			"each time.");
	else
		ks_buf_str(text, " Each call has a fresh box: variables and processes do not stay, files in the working directory do.");
	ks_buf_str(text, " There is no network.");
	if (config->setup)
		ks_buf_printf(text, " Installed beforehand: %.300s.", config->setup);
	ks_buf_printf(text, " Image: %s.", config->image ? config->image : "the host's own /usr");
	if (mcp->interpreters.len > 1)
		ks_buf_printf(text, " Interpreters there: %s.", mcp->interpreters.data);
	if (config->memory_mb > 0)
		ks_buf_printf(text, " Limits: %lld MiB of memory,", (long long)config->memory_mb);
	ks_buf_printf(text, "%s %lld s.", config->memory_mb > 0 ? "" : " Limit:", (long long)config->timeout_s);
}

void ks_mcp_tool_write(const struct ks_mcp *mcp, const struct ks_mcp_tool *tool, struct ks_buf *json)
{
	KS_AUTOBUF struct ks_buf text = { 0 };

	ks_buf_str(&text, tool->text);
	if (tool->runs)
		describe_run(mcp, &text);
	ks_write_open(json, '{');
	ks_write_key_string(json, "name", tool->name);
	ks_write_key_string(json, "title", tool->title);
	ks_write_key(json, "description");
	ks_write_utf8_lossy(json, text.data, text.len);
	ks_write_key(json, "inputSchema");
	ks_schema_write(json, tool->arguments);
	ks_write_key(json, "annotations");
	ks_write_raw(json, tool->annotations, strlen(tool->annotations));
	ks_write_close(json, '}');
}
