/* mcp.h: the Model Context Protocol in front of the same methods (`kern-sidecar --mcp`). Translates; what a tool does is a method's. */
#pragma once

#include "mcp/config.h"
#include "rpc/app.h"

struct ks_mcp;

/* `config` and what it points to live on. Opens the session, and runs the setup, at once: the first call finds them. */
int ks_mcp_new(struct ks_app *app, const struct ks_mcp_config *config, struct ks_mcp **ret, struct ks_error *err);
/* Before the server is freed; calls without a reply get none. NULL is fine. */
void ks_mcp_free(struct ks_mcp *mcp);
