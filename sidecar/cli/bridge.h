/* bridge.h: `kern-sidecar shell --bridge`: what LangChain's shell middleware writes to a shell, run as commands whose end is known.
 *
 * The middleware writes a command, then a line `printf '__LC_SHELL_DONE__<32 hex> %s\n' $?`, and reads until that marker. The bridge keeps
 * the line: the command runs in the box without knowing of it, and at its end, which the kernel of bash tells (session/kernel.h), the
 * marker and the true status are printed here, on a line of their own. The command's output is never read for anything. Text
 * without a marker runs when no more comes; `exit` alone, or the end of the input while a marked command runs, ends everything. */
#pragma once

#include "base/buf.h"
#include "cli/local.h"
#include "session/kernel.h"

struct ks_bridge {
	struct ks_local *local;
	struct ks_kernel *shell;
	void (*ended)(void *arg, int status);
	void *arg;
	/* private */
	uv_poll_t in;
	uv_timer_t idle, soon;
	struct ks_list items; /* of the input, in order: commands with their markers */
	struct ks_buf pending; /* input without a marker so far */
	size_t scanned; /* of it: whole lines that are none */
	struct ks_bridge_item *running;
	struct ks_call *call;
	struct ks_run_params params;
	int status; /* of the last command */
	bool eof, starting, over, midline; /* midline: stdout does not end with a newline */
};

/* The shell is open. `ended` is called once. */
void ks_bridge_start(struct ks_bridge *bridge);
