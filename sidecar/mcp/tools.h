/* tools.h: the tools: their names, texts, arguments, and which method each is. */
#pragma once

#include "base/buf.h"
#include "proto/field.h"

struct ks_mcp;
struct ks_mcp_call;
struct json_object;

struct ks_mcp_run { struct ks_text code; char *language; int64_t timeout_s; };
struct ks_mcp_write { char *path; struct ks_text content; };
struct ks_mcp_read { char *path; int64_t offset, limit; };
struct ks_mcp_list_files { char *path; };
struct ks_mcp_edit { char *path; struct ks_text old_text, new_text; bool all; };
struct ks_mcp_search { char *pattern, *path, *glob; bool regex; };

union ks_mcp_arguments {
	struct ks_mcp_run run;
	struct ks_mcp_write write;
	struct ks_mcp_read read;
	struct ks_mcp_list_files list;
	struct ks_mcp_edit edit;
	struct ks_mcp_search search;
};

struct ks_mcp_tool {
	const char *name, *title, *text;
	const struct ks_schema *arguments;
	const char *annotations; /* JSON */
	bool runs;		 /* needs the setup */
	/* The method and its params, without sessionId. */
	const char *(*request)(const struct ks_mcp_call *call, struct json_object *params);
	/* Appends blocks of content; `facts`: a JSON object for hosts. Returns whether the tool has failed. */
	bool (*content)(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts);
};

const struct ks_mcp_tool *ks_mcp_tool_at(size_t i); /* NULL behind the last */
const struct ks_mcp_tool *ks_mcp_tool_find(const char *name);
/* The element of tools/list. */
void ks_mcp_tool_write(const struct ks_mcp *mcp, const struct ks_mcp_tool *tool, struct ks_buf *json);

/* content.c */
bool ks_mcp_content_run(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts);
bool ks_mcp_content_write(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts);
bool ks_mcp_content_read(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts);
bool ks_mcp_content_list(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts);
bool ks_mcp_content_edit(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts);
bool ks_mcp_content_search(struct ks_mcp_call *call, struct json_object *result, struct ks_buf *blocks, struct ks_buf *facts);
/* Is this an image that is read by bytes? */
bool ks_mcp_wants_whole(struct json_object *result);
void ks_mcp_block(struct ks_buf *blocks, const char *text, size_t len);
