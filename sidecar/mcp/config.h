/* config.h: the KERN_MCP_* variables. A host's configuration file has no other place for them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct ks_mcp_config {
	const char *image, *setup, *workspace, *profiles; /* NULL: not given; they live in the environment */
	int64_t memory_mb;				  /* 0: what the session has by itself */
	int64_t timeout_s, tmpfs_mb;
	bool kernel, notes, structured;
};

/* From the environment; an error names the variable in its pointer. A workspace that is not there is made, but not its parents. */
int ks_mcp_config_read(struct ks_mcp_config *ret, struct ks_error *err);
