/* disk.h: workspaceMaxMb, a watched limit: the workspace is measured at the start and the end of a call and every quarter of a second
 * between, and a call that has made it larger than the limit is ended with the fault `disk`. What was too large before the call began
 * may stay so, but not grow. Not seen: files that are open and have no name any more; each of those is held by RLIMIT_FSIZE. */
#pragma once

#include <uv.h>

#include "session/core.h"
#include "workspace/walk.h"

#define KS_DISK_FILES_PER_MB 256 /* names that may be there for each MiB of the limit */

struct ks_disk {
	uint64_t limit_bytes; /* 0: no limit, nothing is done */
	struct ks_core *core;
	int workspace_fd;
	void (*measured)(struct ks_disk *disk); /* after ks_disk_measure() */
	void (*full)(struct ks_disk *disk);	/* from the watch: over the limit */
	uint64_t bytes, files, unreadable;	/* that may be there: the limit, or what was there at first */
	bool based, over, waited, timer_open, busy;
	uv_timer_t timer;
	struct ks_chore chore;
	struct ks_walk *walk;
};

/* The first time takes the baseline; later ones judge: then `over` is set. `measured` follows, perhaps at once. */
void ks_disk_measure(struct ks_disk *disk);
/* Starts looking now and then. `closed` is the close callback of its timer, which the caller counts. */
void ks_disk_watch(struct ks_disk *disk);
/* No more callbacks but uv's. True when the timer is being closed and `closed` will come. */
bool ks_disk_stop(struct ks_disk *disk, uv_close_cb closed);
