#include "walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/clock.h"
#include "base/dents.h"
#include "base/grow.h"
#include "beneath.h"
#include "digest.h"
#include "tree.h"

#define OPEN_DIRS 16u /* directories kept open, by depth: a descent or return of that many levels needs no path */
#define MAX_HASH_BYTES (16u << 20) /* read in one walk */
#define HASH_FILE_COST 4096u	   /* what an open counts against it */
#define MAX_PATH (2u << 20)	   /* of a directory that must be reopened */
#define CHECK_EVERY 64u		   /* entries between looks at the clock */

struct ks_walk {
	int root_fd;
	bool before, everything;
	size_t max_entries, seen, hash_bytes, mapped_files;
	struct ks_tree *tree;
	uint32_t *pending; /* directories not read yet, a stack */
	size_t pending_len, pending_cap;
	struct {
		uint32_t dir;
		int fd;
	} open[OPEN_DIRS];
	int fd; /* being read, -1 none; it belongs to open[] */
	uint32_t dir;
	size_t pos, len;
	_Alignas(struct ks_dent) char buf[8192]; /* tmpfs needs milliseconds for 32 KiB of a directory with 100,000 names */
};

/* A snapshot may be kept for as long as its call runs. */
static void shrink(void *array_ptr, size_t *cap, size_t count, size_t item)
{
	void **array = array_ptr;
	void *p = count ? realloc(*array, count * item) : NULL;

	if (!p)
		return;
	*array = p;
	*cap = count;
}

static int no_memory(struct ks_error *err)
{
	return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot record the workspace's files");
}

static int too_many(struct ks_error *err, const char *what, size_t limit)
{
	ks_fail(err, KS_E_LIMIT, "too many files to track: more than %zu %s", limit, what);
	return ks_error_hint(err, "set trackFiles to false, or keep large trees (caches, packages) out of the workspace");
}

/* The new entry's index in *ret. */
static int add_entry(struct ks_walk *walk, const char *name, size_t len, enum ks_tree_type type, uint32_t *ret,
		     struct ks_error *err)
{
	struct ks_tree *tree = walk->tree;

	if (len > UINT16_MAX)
		return ks_fail(err, KS_E_LIMIT, "a file name of %zu bytes", len);
	if (tree->names_len + len + 1 > KS_TREE_MAX_NAME_BYTES)
		return too_many(err, "bytes of names", KS_TREE_MAX_NAME_BYTES);
	if (!ks_grow(&tree->entries, &tree->cap, tree->count + 1, sizeof(*tree->entries)) ||
	    !ks_grow(&tree->names, &tree->names_cap, tree->names_len + len + 1, 1))
		return no_memory(err);
	tree->entries[tree->count] = (struct ks_tree_entry){
		.dir = walk->dir,
		.name = (uint32_t)tree->names_len,
		.name_len = (uint16_t)len,
		.type = (uint8_t)type,
	};
	memcpy(tree->names + tree->names_len, name, len);
	tree->names[tree->names_len + len] = '\0';
	tree->names_len += len + 1;
	*ret = (uint32_t)tree->count++;
	return 0;
}

static int add_dir(struct ks_walk *walk, const char *name, size_t len, struct ks_error *err)
{
	uint32_t dir;

	if (add_entry(walk, name, len, KS_TREE_DIR, &dir, err) < 0)
		return -1;
	struct ks_tree_entry *entry = &walk->tree->entries[dir];
	entry->size = dir == 0 ? 0 : walk->tree->entries[walk->dir].size + 1;
	if (!ks_grow(&walk->pending, &walk->pending_cap, walk->pending_len + 1, sizeof(*walk->pending)))
		return no_memory(err);
	walk->pending[walk->pending_len++] = dir;
	return 0;
}

/* May bytes change behind the times that were just read? */
static bool times_may_lie(struct ks_walk *walk, const struct ks_tree_entry *entry)
{
	if (!ks_tree_hashable(entry))
		return false;
	return ks_tree_young(entry->ctime_ns) || (walk->tree->in_memory && walk->mapped_files++ < KS_HASH_MAPPED_FILES);
}

/* Failing to read is no error: the file is then compared by its times alone. */
static int hash_file(struct ks_walk *walk, struct ks_tree_entry *entry, const char *name, struct ks_error *err)
{
	struct ks_tree *tree = walk->tree;
	struct ks_digest digest;

	if (walk->hash_bytes >= MAX_HASH_BYTES)
		return 0;
	walk->hash_bytes += (size_t)entry->size + HASH_FILE_COST;
	if (ks_digest_file(walk->fd, name, KS_HASH_MAX_FILE, &digest) < 0)
		return 0;
	if (!ks_grow(&tree->hashes, &tree->hash_cap, tree->hash_count + 1, sizeof(*tree->hashes)))
		return no_memory(err);
	memcpy(tree->hashes[tree->hash_count++], digest.sha256, sizeof(digest.sha256));
	entry->hash = (uint32_t)tree->hash_count;
	return 0;
}

static int add_file(struct ks_walk *walk, const char *name, size_t len, const struct stat *st, struct ks_error *err)
{
	uint32_t index;
	enum ks_tree_type type = S_ISLNK(st->st_mode) ? KS_TREE_LINK : KS_TREE_FILE;

	if (add_entry(walk, name, len, type, &index, err) < 0)
		return -1;
	struct ks_tree_entry *entry = &walk->tree->entries[index];
	entry->size = st->st_size;
	ks_tree_set_times(entry, st);
	walk->tree->files++;
	walk->tree->disk_bytes += (uint64_t)st->st_blocks * 512; /* stat(2): blocks of 512, whatever st_blksize says */
	if (walk->before && times_may_lie(walk, entry))
		return hash_file(walk, entry, name, err);
	return 0;
}

static bool is_skipped(const struct ks_walk *walk, const char *name)
{
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return true;
	return walk->dir == 0 && !walk->everything &&
	       (strcmp(name, KS_SKIPPED_TOP_NAME) == 0 || strcmp(name, KS_STAGE_TOP_NAME) == 0);
}

static int take_entry(struct ks_walk *walk, const struct ks_dent *d, struct ks_error *err)
{
	const char *name = d->d_name;
	struct stat st;

	if (is_skipped(walk, name))
		return 0;
	/* Passed over or not, every name costs time: all count. */
	if (++walk->seen > walk->max_entries)
		return too_many(err, "names", walk->max_entries);
	if (d->d_type == DT_DIR)
		return add_dir(walk, name, strlen(name), err);
	if (d->d_type != DT_REG && d->d_type != DT_LNK && d->d_type != DT_UNKNOWN)
		return 0;
	if (fstatat(walk->fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return 0; /* gone again */
	if (S_ISDIR(st.st_mode))
		return add_dir(walk, name, strlen(name), err);
	if (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode))
		return add_file(walk, name, strlen(name), &st, err);
	return 0;
}

/* The directory itself or, reopened, the same path; -errno. */
static int dir_fd(struct ks_walk *walk, uint32_t dir)
{
	size_t slot = (size_t)walk->tree->entries[dir].size % OPEN_DIRS;
	int fd;

	if (walk->open[slot].fd >= 0 && walk->open[slot].dir == dir)
		return walk->open[slot].fd;
	if (dir == 0) {
		fd = ks_open_beneath(walk->root_fd, ".", O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	} else {
		size_t len;
		KS_AUTOFREE char *path = ks_tree_path(walk->tree, dir, MAX_PATH, &len);
		if (!path)
			return -ENAMETOOLONG;
		fd = ks_open_beneath(walk->root_fd, path, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
	}
	if (fd < 0)
		return fd;
	ks_close(&walk->open[slot].fd);
	walk->open[slot].fd = fd;
	walk->open[slot].dir = dir;
	return fd;
}

static int open_dir(struct ks_walk *walk, uint32_t dir)
{
	const struct ks_tree_entry *entry = &walk->tree->entries[dir];

	if (dir == 0)
		return dir_fd(walk, 0);
	int parent = dir_fd(walk, entry->dir);
	if (parent < 0)
		return parent;
	int fd = ks_open_beneath(parent, ks_tree_name(walk->tree, dir), O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	if (fd < 0)
		return fd;
	size_t slot = (size_t)entry->size % OPEN_DIRS;
	ks_close(&walk->open[slot].fd);
	walk->open[slot].fd = fd;
	walk->open[slot].dir = dir;
	return fd;
}

/* Before it is read, so that what comes into it or goes meanwhile changes what is noted here. */
static void note_dir(struct ks_walk *walk)
{
	struct ks_tree *tree = walk->tree;
	struct stat st;

	if (!tree->steady)
		return;
	tree->steady = tree->count <= KS_STILL_MAX && fstat(walk->fd, &st) == 0;
	if (!tree->steady)
		return;
	ks_tree_set_times(&tree->entries[walk->dir], &st);
	tree->steady = !ks_tree_young(tree->entries[walk->dir].ctime_ns);
}

/* A directory that could not be opened or read. */
static int miss_dir(struct ks_walk *walk, int error, struct ks_error *err)
{
	walk->fd = -1;
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		return ks_fail_errno(err, KS_E_IO, error, "cannot read the workspace's directories");
	if (error == ENOENT || error == ENOTDIR || error == ELOOP)
		return 0; /* removed or replaced meanwhile */
	walk->tree->entries[walk->dir].unread = true;
	walk->tree->unreadable++;
	return 0;
}

/* One unit of work: an entry, a buffer of entries, or a directory. 1 done, 0 more, -1. */
static int step(struct ks_walk *walk, bool *ret_slow, struct ks_error *err)
{
	if (walk->fd >= 0 && walk->pos < walk->len) {
		const struct ks_dent *d = (const void *)(walk->buf + walk->pos);
		walk->pos += d->d_reclen;
		return take_entry(walk, d, err);
	}
	*ret_slow = true;
	if (walk->fd >= 0) {
		long n = ks_getdents(walk->fd, walk->buf, sizeof(walk->buf));
		if (n < 0)
			return miss_dir(walk, errno, err);
		walk->pos = 0;
		walk->len = (size_t)n;
		if (n == 0)
			walk->fd = -1;
		return 0;
	}
	if (walk->pending_len == 0)
		return 1;
	walk->dir = walk->pending[--walk->pending_len];
	walk->pos = walk->len = 0;
	walk->fd = open_dir(walk, walk->dir);
	if (walk->fd < 0)
		return miss_dir(walk, -walk->fd, err);
	note_dir(walk);
	return 0;
}

int ks_walk_step(struct ks_walk *walk, int64_t budget_us, struct ks_error *err)
{
	int64_t end = ks_now_us() + budget_us;

	for (unsigned n = 1;; n++) {
		bool slow = false;
		size_t hashed = walk->hash_bytes;
		int rc = step(walk, &slow, err);
		if (rc != 0)
			return rc;
		if ((slow || hashed != walk->hash_bytes || n % CHECK_EVERY == 0) && ks_now_us() >= end)
			return 0;
	}
}

static void look_at_fs(struct ks_walk *walk)
{
	struct statfs fs;

	if (fstatfs(walk->root_fd, &fs) < 0)
		return;
	walk->tree->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
	walk->tree->steady = ks_tree_trusts(fs.f_type);
}

int ks_walk_start(int root_fd, bool before, struct ks_walk **ret, struct ks_error *err)
{
	struct ks_walk *walk = malloc(sizeof(*walk)); /* not calloc: no need to clear the buffer */

	if (!walk)
		return no_memory(err);
	memset(walk, 0, offsetof(struct ks_walk, buf));
	walk->root_fd = root_fd;
	walk->before = before;
	walk->max_entries = KS_TREE_MAX_ENTRIES;
	walk->fd = -1;
	for (size_t i = 0; i < OPEN_DIRS; i++)
		walk->open[i].fd = -1;
	walk->tree = calloc(1, sizeof(*walk->tree));
	if (!walk->tree) {
		ks_walk_free(walk);
		return no_memory(err);
	}
	if (add_dir(walk, "", 0, err) < 0) {
		ks_walk_free(walk);
		return -1;
	}
	look_at_fs(walk);
	*ret = walk;
	return 0;
}

void ks_walk_everything(struct ks_walk *walk)
{
	walk->everything = true;
}

size_t ks_walk_bytes(const struct ks_walk *walk)
{
	return sizeof(*walk) + walk->pending_cap * sizeof(*walk->pending) + ks_tree_bytes(walk->tree);
}

void ks_walk_limit(struct ks_walk *walk, size_t max_entries)
{
	if (max_entries < walk->max_entries)
		walk->max_entries = max_entries;
}

struct ks_tree *ks_walk_take(struct ks_walk *walk)
{
	struct ks_tree *tree = KS_TAKE_PTR(walk->tree);

	tree->seen = walk->seen;
	tree->steady &= tree->count <= KS_STILL_MAX && tree->hash_count == 0 && tree->unreadable == 0;
	shrink(&tree->entries, &tree->cap, tree->count, sizeof(*tree->entries));
	shrink(&tree->names, &tree->names_cap, tree->names_len, 1);
	shrink(&tree->hashes, &tree->hash_cap, tree->hash_count, sizeof(*tree->hashes));
	ks_walk_free(walk);
	return tree;
}

void ks_walk_free(struct ks_walk *walk)
{
	if (!walk)
		return;
	for (size_t i = 0; i < OPEN_DIRS; i++)
		ks_close(&walk->open[i].fd);
	ks_tree_free(walk->tree);
	free(walk->pending);
	free(walk);
}
