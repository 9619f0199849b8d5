#include "diff.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "digest.h"
#include "siphash.h"
#include "tree.h"

#define NONE UINT32_MAX
#define UNKNOWN (UINT32_MAX - 1) /* lies in a directory that the first walk could not read */
#define CHECK_EVERY 64u

enum phase { INDEX, COMPARE, DELETED, SORT, DIGEST, DONE };
enum fate { GONE, STAYED, HIDDEN };

struct ks_diff {
	int root_fd;
	const struct ks_tree *before, *after;
	enum phase phase;
	size_t next; /* the phase's position */
	unsigned char key[16];
	uint32_t *table; /* of before's entries by (directory, name), open addressing, 0 = free */
	size_t mask;
	uint32_t *twin; /* after's directories -> before's */
	unsigned char *fate; /* of before's entries, an enum fate */
	struct ks_changes found; /* until SORT a heap, the largest path on top */
	size_t room;		 /* items that it has memory for */
	size_t max, path_bytes, hashed;
};

static size_t slot_of(const struct ks_diff *diff, uint32_t dir, const char *name, size_t len)
{
	return (size_t)ks_siphash(diff->key, dir, name, len) & diff->mask;
}

static void index_entry(struct ks_diff *diff, uint32_t i)
{
	const struct ks_tree_entry *e = &diff->before->entries[i];
	size_t slot = slot_of(diff, e->dir, ks_tree_name(diff->before, i), e->name_len);

	while (diff->table[slot])
		slot = (slot + 1) & diff->mask;
	diff->table[slot] = i; /* never 0: that is the root */
}

static uint32_t find_before(const struct ks_diff *diff, uint32_t dir, const char *name, size_t len)
{
	for (size_t slot = slot_of(diff, dir, name, len); diff->table[slot]; slot = (slot + 1) & diff->mask) {
		uint32_t i = diff->table[slot];
		const struct ks_tree_entry *e = &diff->before->entries[i];
		if (e->dir == dir && e->name_len == len && memcmp(ks_tree_name(diff->before, i), name, len) == 0)
			return i;
	}
	return NONE;
}

static int compare_paths(const void *a, const void *b)
{
	const struct ks_change *x = a, *y = b;
	size_t len = x->path_len < y->path_len ? x->path_len : y->path_len;
	int order = memcmp(x->path, y->path, len);

	return order ? order : (x->path_len > y->path_len) - (x->path_len < y->path_len);
}

static void swap(struct ks_change *a, struct ks_change *b)
{
	struct ks_change c = *a;

	*a = *b;
	*b = c;
}

static void sift_down(struct ks_changes *heap)
{
	for (size_t i = 0;;) {
		size_t child = 2 * i + 1;
		if (child >= heap->count)
			return;
		if (child + 1 < heap->count && compare_paths(&heap->items[child + 1], &heap->items[child]) > 0)
			child++;
		if (compare_paths(&heap->items[child], &heap->items[i]) <= 0)
			return;
		swap(&heap->items[i], &heap->items[child]);
		i = child;
	}
}

static void drop_largest(struct ks_diff *diff)
{
	struct ks_changes *heap = &diff->found;

	diff->path_bytes -= heap->items[0].path_len;
	free(heap->items[0].path);
	heap->items[0] = heap->items[--heap->count];
	sift_down(heap);
}

static int make_room(struct ks_diff *diff)
{
	size_t room = diff->room ? 2 * diff->room : 16;
	struct ks_change *items = realloc(diff->found.items, room * sizeof(*items));

	if (!items)
		return -1;
	diff->found.items = items;
	diff->room = room;
	return 0;
}

/* Keeps the `max` smallest paths. When they take too much room `max` itself shrinks, so that what is kept is always
 * a head of the sorted list. */
static int add_change(struct ks_diff *diff, const struct ks_tree *tree, uint32_t i, enum ks_change_kind kind,
		      struct ks_error *err)
{
	const struct ks_tree_entry *e = &tree->entries[i];
	struct ks_changes *heap = &diff->found;
	struct ks_change c = {
		.change = kind,
		.size = e->size,
		.mime = e->type == KS_TREE_LINK ? "inode/symlink" : NULL,
	};

	heap->total++;
	errno = 0;
	c.path = ks_tree_path(tree, i, KS_DIFF_MAX_PATH, &c.path_len);
	if (!c.path)
		return errno == ENOMEM ? ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot list the changes") : 0;
	if (heap->count >= diff->max) {
		if (heap->count == 0 || compare_paths(&c, &heap->items[0]) > 0) {
			free(c.path);
			return 0;
		}
		drop_largest(diff);
	}
	if (heap->count == diff->room && make_room(diff) < 0) {
		free(c.path);
		return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot list the changes");
	}
	size_t at = heap->count++;
	heap->items[at] = c;
	diff->path_bytes += c.path_len;
	for (; at > 0 && compare_paths(&heap->items[at], &heap->items[(at - 1) / 2]) > 0; at = (at - 1) / 2)
		swap(&heap->items[at], &heap->items[(at - 1) / 2]);
	while (diff->path_bytes > KS_DIFF_MAX_PATH_BYTES) {
		drop_largest(diff);
		diff->max = heap->count;
	}
	return 0;
}

/* The first walk found that a write may hide behind the same ctime. */
static bool bytes_differ(struct ks_diff *diff, uint32_t before, uint32_t after)
{
	const struct ks_tree *tree = diff->before;
	struct ks_digest digest;
	size_t len;
	KS_AUTOFREE char *path = ks_tree_path(diff->after, after, KS_DIFF_MAX_PATH, &len);

	if (!path || ks_digest_file(diff->root_fd, path, KS_HASH_MAX_FILE, &digest) < 0)
		return false;
	return memcmp(tree->hashes[tree->entries[before].hash - 1], digest.sha256, sizeof(digest.sha256)) != 0;
}

static int compare_entry(struct ks_diff *diff, uint32_t i, bool *ret_slow, struct ks_error *err)
{
	const struct ks_tree_entry *a = &diff->after->entries[i];
	uint32_t dir = diff->twin[a->dir], j = NONE;

	if (dir == UNKNOWN || (dir != NONE && diff->before->entries[dir].unread))
		j = UNKNOWN;
	else if (dir != NONE)
		j = find_before(diff, dir, ks_tree_name(diff->after, i), a->name_len);
	if (a->type == KS_TREE_DIR) {
		bool known = j != NONE && j != UNKNOWN && diff->before->entries[j].type == KS_TREE_DIR;
		diff->twin[i] = known || j == UNKNOWN ? j : NONE;
		if (known)
			diff->fate[j] = a->unread ? HIDDEN : STAYED;
		return 0;
	}
	if (j == UNKNOWN)
		return 0;
	if (j == NONE || diff->before->entries[j].type == KS_TREE_DIR)
		return add_change(diff, diff->after, i, KS_CREATED, err);
	const struct ks_tree_entry *b = &diff->before->entries[j];
	diff->fate[j] = STAYED;
	if (a->ino == b->ino && a->type == b->type && a->size == b->size && a->mtime_ns == b->mtime_ns &&
	    a->ctime_ns == b->ctime_ns) {
		if (!b->hash)
			return 0;
		*ret_slow = true;
		if (!bytes_differ(diff, j, i))
			return 0;
	}
	return add_change(diff, diff->after, i, KS_MODIFIED, err);
}

/* What lies in a directory that cannot be read any more is not known to be gone. */
static int check_deleted(struct ks_diff *diff, uint32_t j, struct ks_error *err)
{
	const struct ks_tree_entry *b = &diff->before->entries[j];

	if (diff->fate[b->dir] == HIDDEN)
		diff->fate[j] = HIDDEN;
	if (b->type == KS_TREE_DIR || diff->fate[j] != GONE)
		return 0;
	return add_change(diff, diff->before, j, KS_DELETED, err);
}

static void digest_change(struct ks_diff *diff, struct ks_change *c)
{
	struct ks_digest digest;

	if (c->change == KS_DELETED || c->mime) /* a link has its type already */
		return;
	const char *base = memrchr(c->path, '/', c->path_len);
	base = base ? base + 1 : c->path;
	c->mime = ks_mime_by_name(base, c->path_len - (size_t)(base - c->path));
	bool hash = c->size <= (int64_t)KS_HASH_MAX_FILE && diff->hashed + (size_t)c->size <= KS_DIFF_MAX_HASH_BYTES;
	if (!hash && c->mime)
		return;
	int rc = ks_digest_file(diff->root_fd, c->path, hash ? (size_t)c->size : 0, &digest);
	if (rc < 0 && rc != -EFBIG)
		return;
	if (!c->mime)
		c->mime = ks_mime_by_content(digest.head, digest.head_len);
	/* Written to since the walk: `size` and a hash must speak of the same bytes. */
	if (!hash || rc < 0 || digest.size != (uint64_t)c->size)
		return;
	diff->hashed += (size_t)c->size;
	memcpy(c->sha256, digest.sha256, sizeof(c->sha256));
	c->has_sha256 = true;
}

static size_t phase_size(const struct ks_diff *diff)
{
	switch (diff->phase) {
	case INDEX:
	case DELETED:
		return diff->before->count;
	case COMPARE:
		return diff->after->count;
	case DIGEST:
		return diff->found.count;
	case SORT:
	case DONE:
		break;
	}
	return 1;
}

static int step(struct ks_diff *diff, bool *ret_slow, struct ks_error *err)
{
	uint32_t i = (uint32_t)diff->next++;

	switch (diff->phase) {
	case INDEX:
		if (i > 0)
			index_entry(diff, i);
		return 0;
	case COMPARE:
		return i > 0 ? compare_entry(diff, i, ret_slow, err) : 0;
	case DELETED:
		return i > 0 ? check_deleted(diff, i, err) : 0;
	case SORT:
		if (diff->found.count)
			qsort(diff->found.items, diff->found.count, sizeof(*diff->found.items), compare_paths);
		diff->found.truncated = diff->found.count < diff->found.total;
		return 0;
	case DIGEST:
		digest_change(diff, &diff->found.items[i]);
		*ret_slow = true;
		return 0;
	case DONE:
		break;
	}
	return 0;
}

int ks_diff_step(struct ks_diff *diff, int64_t budget_us, struct ks_error *err)
{
	int64_t end = ks_now_us() + budget_us;

	for (unsigned n = 1; diff->phase != DONE; n++) {
		bool slow = false;
		if (diff->next >= phase_size(diff)) {
			diff->phase++;
			diff->next = 0;
			continue;
		}
		if (step(diff, &slow, err) < 0)
			return -1;
		if ((slow || n % CHECK_EVERY == 0) && ks_now_us() >= end)
			return 0;
	}
	return 1;
}

int ks_diff_start(int root_fd, const struct ks_tree *before, const struct ks_tree *after, size_t max_changes,
		  struct ks_diff **ret, struct ks_error *err)
{
	size_t slots = 64;

	if (max_changes > KS_DIFF_MAX_CHANGES)
		return ks_fail(err, KS_E_INTERNAL, "more than %u changes asked for", KS_DIFF_MAX_CHANGES);
	struct ks_diff *diff = calloc(1, sizeof(*diff));
	if (!diff)
		return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot compare the workspace's files");
	while (slots < before->count * 2)
		slots *= 2;
	diff->root_fd = root_fd;
	diff->before = before;
	diff->after = after;
	diff->max = max_changes;
	diff->mask = slots - 1;
	diff->table = calloc(slots, sizeof(*diff->table));
	diff->twin = calloc(after->count, sizeof(*diff->twin)); /* root to root */
	diff->fate = calloc(before->count, 1);
	if (!diff->table || !diff->twin || !diff->fate ||
	    getrandom(diff->key, sizeof(diff->key), 0) != sizeof(diff->key)) {
		ks_diff_free(diff);
		return ks_fail_errno(err, KS_E_INTERNAL, ENOMEM, "cannot compare the workspace's files");
	}
	diff->fate[0] = after->entries[0].unread ? HIDDEN : STAYED;
	*ret = diff;
	return 0;
}

size_t ks_diff_bytes(const struct ks_diff *diff)
{
	return sizeof(*diff) + (diff->mask + 1) * sizeof(*diff->table) + diff->after->count * sizeof(*diff->twin) +
	       diff->before->count * sizeof(*diff->fate);
}

struct ks_changes ks_diff_take(struct ks_diff *diff)
{
	struct ks_changes found = KS_TAKE(diff->found, (struct ks_changes){ 0 });

	ks_diff_free(diff);
	return found;
}

void ks_diff_free(struct ks_diff *diff)
{
	if (!diff)
		return;
	ks_changes_free(&diff->found);
	free(diff->table);
	free(diff->twin);
	free(diff->fate);
	free(diff);
}

void ks_changes_free(struct ks_changes *changes)
{
	for (size_t i = 0; i < changes->count; i++)
		free(changes->items[i].path);
	free(changes->items);
	*changes = (struct ks_changes){ 0 };
}

const char *ks_change_name(enum ks_change_kind kind)
{
	switch (kind) {
	case KS_CREATED:
		return "created";
	case KS_MODIFIED:
		return "modified";
	case KS_DELETED:
		return "deleted";
	}
	return "modified";
}
