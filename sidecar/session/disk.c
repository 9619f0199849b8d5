#include "session/disk.h"

#include "base/log.h"

#define WATCH_MS 250

static void judge(struct ks_disk *disk, const struct ks_tree *tree)
{
	uint64_t bytes = ks_tree_disk_bytes(tree), files = ks_tree_seen(tree), unreadable = ks_tree_unreadable(tree);

	if (!disk->based) {
		uint64_t max_files = (disk->limit_bytes >> 20) * KS_DISK_FILES_PER_MB;
		disk->based = true;
		disk->bytes = bytes > disk->limit_bytes ? bytes : disk->limit_bytes;
		disk->files = files > max_files ? files : max_files;
		disk->unreadable = unreadable;
		return;
	}
	/* a directory that nobody can look into may hold anything: one more of them is over the limit, too */
	disk->over |= bytes > disk->bytes || files > disk->files || unreadable > disk->unreadable;
}

static void finish(struct ks_disk *disk)
{
	bool waited = disk->waited;

	disk->busy = disk->waited = false;
	ks_list_remove(&disk->chore.node);
	if (waited)
		disk->measured(disk);
	else if (disk->over)
		disk->full(disk);
}

static void on_slice(struct ks_chore *chore)
{
	struct ks_disk *disk = KS_ENTRY(chore, struct ks_disk, chore);
	struct ks_error err;
	int rc = ks_walk_step(disk->walk, KS_SLICE_US, &err);

	if (rc == 0)
		return;
	if (rc > 0) {
		struct ks_tree *tree = ks_walk_take(KS_TAKE_PTR(disk->walk));
		judge(disk, tree);
		ks_tree_free(tree);
	} else {
		/* too many names to count is over every limit; so is what cannot be read */
		ks_log(KS_LOG_INFO, "disk_unmeasured", "%s", err.text);
		ks_walk_free(KS_TAKE_PTR(disk->walk));
		disk->over = disk->based = true;
	}
	finish(disk);
}

static void start(struct ks_disk *disk)
{
	struct ks_error err;

	if (ks_walk_start(disk->workspace_fd, false, &disk->walk, &err) < 0) {
		disk->over = true;
		ks_list_init(&disk->chore.node);
		finish(disk);
		return;
	}
	ks_walk_everything(disk->walk);
	disk->busy = true;
	disk->chore.step = on_slice;
	ks_core_add_chore(disk->core, &disk->chore);
	on_slice(&disk->chore); /* most trees are small */
}

void ks_disk_measure(struct ks_disk *disk)
{
	disk->waited = true;
	if (disk->busy) { /* a look of the watch is under way: it began too early to count */
		ks_walk_free(KS_TAKE_PTR(disk->walk));
		ks_list_remove(&disk->chore.node);
		disk->busy = false;
	}
	start(disk);
}

static void on_timer(uv_timer_t *timer)
{
	struct ks_disk *disk = timer->data;

	if (!disk->busy && !disk->over)
		start(disk);
}

void ks_disk_watch(struct ks_disk *disk)
{
	(void)uv_timer_init(disk->core->loop, &disk->timer);
	disk->timer.data = disk;
	disk->timer_open = true;
	(void)uv_timer_start(&disk->timer, on_timer, WATCH_MS, WATCH_MS);
}

bool ks_disk_stop(struct ks_disk *disk, uv_close_cb closed)
{
	if (disk->busy)
		ks_list_remove(&disk->chore.node);
	disk->busy = false;
	ks_walk_free(KS_TAKE_PTR(disk->walk));
	if (!disk->timer_open)
		return false;
	disk->timer_open = false;
	uv_close((uv_handle_t *)&disk->timer, closed);
	return true;
}
