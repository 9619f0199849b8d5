/* mcp_private.h: what the files of this folder share. */
#pragma once

#include <uv.h>

#include "base/list.h"
#include "mcp/mcp.h"
#include "mcp/tools.h"

struct json_object;

#define KS_MCP_TEXT_CHARS 30000	    /* of a tool's text: what clients pass on uncut */
#define KS_MCP_RESULT_BYTES 900000  /* of a whole result: a common client refuses more than 1 MiB */
#define KS_MCP_ANSWER_BYTES ((size_t)1 << 20) /* of a method's JSON: larger pieces are blobs */
#define KS_MCP_LIST 1000	    /* names of a list_files */
#define KS_MCP_LINES 2000	    /* of a read_file */
#define KS_MCP_MATCHES 200	    /* of a search_files */

/* What a call needs before it can start, in this order. */
enum ks_mcp_stage { KS_MCP_SESSION, KS_MCP_SETUP, KS_MCP_KERNEL, KS_MCP_STAGES };
enum ks_mcp_state { KS_MCP_ABSENT, KS_MCP_MAKING, KS_MCP_THERE };

struct ks_mcp {
	struct ks_app *app;
	const struct ks_mcp_config *config;
	struct ks_list calls; /* struct ks_mcp_call without a reply */
	struct ks_list lists; /* struct ks_mcp_list: tools/list that waits for the session */
	uv_timer_t tick, patience;
	int open_handles;
	enum ks_mcp_state stages[KS_MCP_STAGES];
	char session_id[65], kernel_id[65];
	struct ks_buf interpreters; /* "python, bash", once the session is there */
	bool told;		    /* the session has been tried */
};

/* One tools/call. */
struct ks_mcp_call {
	struct ks_list node;
	struct ks_mcp *mcp;
	char *id;    /* as JSON text */
	char *token; /* as JSON text: wants progress; or NULL */
	bool modern; /* 2026-07-28 */
	bool waiting, cancelled;
	bool asked_whole; /* read_file of an image: by bytes now */
	const struct ks_mcp_tool *tool;
	union ks_mcp_arguments arguments;
	uint64_t request; /* of the method, once it has started */
	int64_t began_us, told;
};

/* stages.c */
void ks_mcp_prepare(struct ks_mcp *mcp);	       /* session and setup, ahead of any call */
void ks_mcp_advance(struct ks_mcp_call *call);	       /* starts it, or what it waits for */
void ks_mcp_kernel_lost(struct ks_mcp *mcp);	       /* the next call opens another one */
/* calls.c */
void ks_mcp_call_begin(struct ks_mcp *mcp, const char *id, struct json_object *params, bool modern);
void ks_mcp_call_cancel(struct ks_mcp *mcp, const char *id);
void ks_mcp_call_free(struct ks_mcp_call *call);
void ks_mcp_call_start(struct ks_mcp_call *call); /* all it needs is there */
/* One block of text; frees the call. */
void ks_mcp_call_fail(struct ks_mcp_call *call, const struct ks_error *err);
void ks_mcp_call_fail_text(struct ks_mcp_call *call, const struct ks_buf *text);
/* mcp.c */
void ks_mcp_reply(struct ks_mcp *mcp, const char *id, struct ks_buf *result); /* its content is taken */
void ks_mcp_reply_error(struct ks_mcp *mcp, const char *id, int code, const char *message, const char *data);
/* A result that is complete: {"resultType":…,"_meta":… (modern) and then what follows. */
void ks_mcp_open_result(struct ks_buf *json, bool modern, const char *facts);
void ks_mcp_answer_lists(struct ks_mcp *mcp);
