/* still.c: is a tree still what a snapshot of it says? A name that comes or goes changes the ctime of its directory, and a file that is
 * written, replaced or linked elsewhere its own; neither can be set. So the same times as before mean the same tree, where they were not
 * so young that a change may hide behind them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "beneath.h"
#include "tree.h"

#define YOUNG_NS (20 * INT64_C(1000000))
#define SECOND_NS INT64_C(1000000000)
#define PATH_BYTES 4096u

static int64_t ns(struct timespec t)
{
	int64_t value;

	/* A file system may hand out any 64-bit time; all that counts is that equal stays equal. */
	if (__builtin_mul_overflow((int64_t)t.tv_sec, SECOND_NS, &value))
		return (int64_t)t.tv_sec;
	return value + t.tv_nsec;
}

void ks_tree_set_times(struct ks_tree_entry *entry, const struct stat *st)
{
	entry->ino = st->st_ino;
	entry->mtime_ns = ns(st->st_mtim);
	entry->ctime_ns = ns(st->st_ctim);
}

/* ext4 with small inodes keeps whole seconds: then a time without a fraction is young for longer. */
bool ks_tree_young(int64_t ctime_ns)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	return ns(now) - ctime_ns < YOUNG_NS + (ctime_ns % SECOND_NS == 0 ? SECOND_NS : 0);
}

bool ks_tree_hashable(const struct ks_tree_entry *entry)
{
	return entry->type == KS_TREE_FILE && entry->size > 0 && entry->size <= (int64_t)KS_HASH_MAX_FILE;
}

bool ks_tree_trusts(long fs_type)
{
	switch ((unsigned long)fs_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default: /* a server's, FUSE: what they say may be old */
		return false;
	}
}

bool ks_tree_is_steady(const struct ks_tree *tree)
{
	return tree->steady;
}

bool ks_tree_same_times(const struct ks_tree_entry *entry, const struct stat *st)
{
	struct ks_tree_entry now;

	ks_tree_set_times(&now, st);
	return entry->ino == now.ino && entry->mtime_ns == now.mtime_ns && entry->ctime_ns == now.ctime_ns;
}

static bool same_file(const struct ks_tree *tree, uint32_t i, int dir_fd, bool before)
{
	const struct ks_tree_entry *entry = &tree->entries[i];
	struct stat st;

	if (fstatat(dir_fd, ks_tree_name(tree, i), &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return false;
	if (!ks_tree_same_times(entry, &st) || entry->size != st.st_size ||
	    !(entry->type == KS_TREE_LINK ? S_ISLNK(st.st_mode) : S_ISREG(st.st_mode)))
		return false;
	return !before || !ks_tree_hashable(entry) || (!tree->in_memory && !ks_tree_young(entry->ctime_ns)); /* else a walk hashes it */
}

static int open_dir(const struct ks_tree *tree, uint32_t dir, int root_fd)
{
	size_t len;
	KS_AUTOFREE char *path = ks_tree_path(tree, dir, PATH_BYTES, &len);

	return path ? ks_open_beneath(root_fd, path, O_PATH | O_DIRECTORY, KS_BENEATH_STAY) : -ENAMETOOLONG;
}

/* The directory, and the files in it. */
static bool same_dir(const struct ks_tree *tree, uint32_t dir, int root_fd, bool before)
{
	KS_AUTOCLOSE int opened = dir == 0 ? -1 : open_dir(tree, dir, root_fd);
	const int fd = dir == 0 ? root_fd : opened;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !ks_tree_same_times(&tree->entries[dir], &st))
		return false;
	for (uint32_t i = 1; i < tree->count; i++)
		if (tree->entries[i].dir == dir && tree->entries[i].type != KS_TREE_DIR && !same_file(tree, i, fd, before))
			return false;
	return true;
}

bool ks_tree_still(const struct ks_tree *tree, int root_fd, bool before)
{
	if (!tree->steady)
		return false;
	for (uint32_t i = 0; i < tree->count; i++)
		if (tree->entries[i].type == KS_TREE_DIR && !same_dir(tree, i, root_fd, before))
			return false;
	return true;
}
