#include "visit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/dents.h"
#include "base/grow.h"
#include "workspace/beneath.h"

#include "names.h"

#define OPEN_DIRS 16u /* directories kept open, by depth: a return of that many levels needs no path */
#define READ_NAMES ((size_t)64 << 10)

/* A directory is there twice: as a name, and with a slash behind it as the place for what is in it. */
struct entry {
	uint64_t key; /* the first bytes, so that most comparisons need no look at the name */
	uint32_t name; /* in names: a byte that says whether it is entered, then the name and a NUL */
	uint16_t len;
	uint8_t type;
	bool place;
};

struct frame { /* a directory on the way; its entries are the last ones, or those below the next frame's */
	size_t first, next, end;
	size_t names;
	size_t path_len; /* with the slash */
	uint64_t serial;
};

struct ks_visit {
	int root_fd;
	struct frame *frames;
	size_t depth, frame_cap; /* how many frames */
	struct entry *entries, *scratch;
	size_t entry_count, entry_cap, scratch_cap;
	char *names;
	size_t names_len, names_cap;
	struct {
		uint64_t serial; /* of the frame; 0 none */
		int fd;
	} open[OPEN_DIRS];
	uint64_t serial, unreadable;
	char *last;	   /* the flag byte of the name that was just handed out, if it is a directory's */
	bool begun;
	char path[KS_VISIT_PATH + 1];
	_Alignas(struct ks_dent) char buf[READ_NAMES];
};

static int no_memory(struct ks_error *err)
{
	return ks_fail(err, KS_E_INTERNAL, "out of memory");
}

/* ---- the order of names ---- */

static uint64_t sort_key(const char *name, size_t len, bool place)
{
	unsigned char head[sizeof(uint64_t)] = { 0 };
	uint64_t key = 0;

	memcpy(head, name, len < sizeof(head) ? len : sizeof(head));
	if (place && len < sizeof(head))
		head[len] = '/';
	for (size_t i = 0; i < sizeof(head); i++)
		key = key << 8 | head[i];
	return key;
}

static int byte_at(const char *name, const struct entry *entry, size_t at)
{
	return at < entry->len ? (unsigned char)name[at] : at == entry->len && entry->place ? '/' : -1;
}

static bool after(const struct ks_visit *visit, const struct entry *a, const struct entry *b)
{
	if (a->key != b->key)
		return a->key > b->key;
	const char *one = visit->names + a->name + 1, *two = visit->names + b->name + 1;
	const size_t common = a->len < b->len ? a->len : b->len;
	const int order = memcmp(one, two, common);
	return order ? order > 0 : byte_at(one, a, common) > byte_at(two, b, common);
}

/* By merging: n log n whatever the names are. qsort(3) asks the system for its memory, which the list of system calls does not have. */
static int sort(struct ks_visit *visit, size_t first, size_t count, struct ks_error *err)
{
	if (!ks_grow(&visit->scratch, &visit->scratch_cap, count, sizeof(*visit->scratch)))
		return no_memory(err);
	struct entry *from = visit->entries + first, *to = visit->scratch;
	for (size_t run = 1; run < count; run *= 2) {
		for (size_t at = 0; at < count; at += 2 * run) {
			const size_t middle = at + run < count ? at + run : count, end = at + 2 * run < count ? at + 2 * run : count;
			size_t left = at, right = middle;
			for (size_t out = at; out < end; out++)
				to[out] = left < middle && (right == end || !after(visit, &from[left], &from[right])) ? from[left++] :
															from[right++];
		}
		struct entry *other = from;
		from = to;
		to = other;
	}
	if (count > 0 && from == visit->scratch)
		memcpy(to, from, count * sizeof(*from));
	return 0;
}

/* ---- reading directories ---- */

static int add_entry(struct ks_visit *visit, uint32_t name, size_t len, int type, bool place, struct ks_error *err)
{
	if (visit->entry_count >= KS_VISIT_NAMES)
		return ks_fail(err, KS_E_LIMIT, "more than %u names in %s and the directories above it", KS_VISIT_NAMES,
			       visit->path[0] ? visit->path : ".");
	if (!ks_grow(&visit->entries, &visit->entry_cap, visit->entry_count + 1, sizeof(*visit->entries)))
		return no_memory(err);
	visit->entries[visit->entry_count++] =
		(struct entry){ .key = sort_key(visit->names + name + 1, len, place), .name = name, .len = (uint16_t)len,
				.type = (uint8_t)type, .place = place };
	return 0;
}

static int add_name(struct ks_visit *visit, const char *name, int type, struct ks_error *err)
{
	const size_t len = strlen(name);
	const uint32_t at = (uint32_t)visit->names_len;

	if (visit->names_len + len + 2 > KS_VISIT_NAME_BYTES)
		return ks_fail(err, KS_E_LIMIT, "the names in %s and the directories above it are too many", visit->path);
	if (!ks_grow(&visit->names, &visit->names_cap, visit->names_len + len + 2, 1))
		return no_memory(err);
	visit->names[at] = 0;
	memcpy(visit->names + at + 1, name, len + 1);
	visit->names_len += len + 2;
	if (add_entry(visit, at, len, type, false, err) < 0)
		return -1;
	return type == KS_TYPE_DIRECTORY ? add_entry(visit, at, len, type, true, err) : 0;
}

/* -1 for a name that is gone again. */
static int type_of(int dir_fd, const struct ks_dent *d)
{
	static const mode_t modes[] = { [DT_REG] = S_IFREG,   [DT_DIR] = S_IFDIR,   [DT_LNK] = S_IFLNK, [DT_FIFO] = S_IFIFO,
					[DT_SOCK] = S_IFSOCK, [DT_CHR] = S_IFCHR, [DT_BLK] = S_IFBLK };
	struct stat st;

	if (d->d_type < KS_COUNT(modes) && modes[d->d_type])
		return ks_file_type(modes[d->d_type]);
	if (fstatat(dir_fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return -1;
	return ks_file_type(st.st_mode);
}

/* What was read stays when the rest cannot be: the directory counts as unreadable then. */
static int read_names(struct ks_visit *visit, int fd, struct ks_error *err)
{
	for (;;) {
		const long n = ks_getdents(fd, visit->buf, sizeof(visit->buf));
		if (n < 0)
			visit->unreadable++;
		if (n <= 0)
			return 0;
		for (long at = 0; at < n;) {
			const struct ks_dent *d = (const void *)(visit->buf + at);
			at += d->d_reclen;
			if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
				continue;
			const int type = type_of(fd, d);
			if (type >= 0 && add_name(visit, d->d_name, type, err) < 0)
				return -1;
		}
	}
}

/* Takes the descriptor; path[0..path_len) is the directory's, with a slash unless it is the root's. */
static int push_directory(struct ks_visit *visit, int fd, size_t path_len, struct ks_error *err)
{
	const size_t slot = visit->depth % OPEN_DIRS;

	if (visit->open[slot].serial)
		ks_close(&visit->open[slot].fd);
	visit->open[slot].serial = ++visit->serial;
	visit->open[slot].fd = fd;
	if (!ks_grow(&visit->frames, &visit->frame_cap, visit->depth + 1, sizeof(*visit->frames)))
		return no_memory(err);
	struct frame *frame = &visit->frames[visit->depth++];
	*frame = (struct frame){ .first = visit->entry_count, .next = visit->entry_count, .names = visit->names_len,
				 .path_len = path_len, .serial = visit->serial };
	visit->path[path_len] = '\0';
	if (read_names(visit, fd, err) < 0)
		return -1;
	frame->end = visit->entry_count;
	return sort(visit, frame->first, frame->end - frame->first, err);
}

static void pop_directory(struct ks_visit *visit)
{
	const struct frame *frame = &visit->frames[--visit->depth];
	const size_t slot = visit->depth % OPEN_DIRS;

	visit->entry_count = frame->first;
	visit->names_len = frame->names;
	if (visit->open[slot].serial == frame->serial) {
		visit->open[slot].serial = 0;
		ks_close(&visit->open[slot].fd);
	}
}

/* The directory of the last frame: kept open, or opened again by its path. -errno. */
static int directory_fd(struct ks_visit *visit)
{
	const struct frame *frame = &visit->frames[visit->depth - 1];
	const size_t slot = (visit->depth - 1) % OPEN_DIRS;

	if (visit->open[slot].serial == frame->serial)
		return visit->open[slot].fd;
	int fd;
	if (frame->path_len == 0) {
		fd = ks_open_beneath(visit->root_fd, ".", O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
	} else {
		visit->path[frame->path_len - 1] = '\0';
		fd = ks_open_beneath(visit->root_fd, visit->path, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);
		visit->path[frame->path_len - 1] = '/';
	}
	if (fd < 0)
		return fd;
	if (visit->open[slot].serial)
		ks_close(&visit->open[slot].fd);
	visit->open[slot].serial = frame->serial;
	visit->open[slot].fd = fd;
	return fd;
}

/* ---- the way through ---- */

/* Is the failure ours, so that going on would be a lie? Else the directory is passed over: gone, or not to be read. */
static int miss(struct ks_visit *visit, int error, struct ks_error *err)
{
	if (error == EMFILE || error == ENFILE || error == ENOMEM)
		return ks_fail_errno(err, KS_E_IO, error, "cannot read the directory %s", visit->path);
	if (error != ENOENT && error != ENOTDIR && error != ELOOP)
		visit->unreadable++;
	return 0;
}

static void fill(struct ks_visit_item *item, enum ks_visit_what what, const struct ks_visit *visit, size_t path_len)
{
	*item = (struct ks_visit_item){ .what = what, .path = visit->path, .path_len = path_len, .depth = visit->depth - 1,
					.dir_fd = visit->open[(visit->depth - 1) % OPEN_DIRS].fd, .type = KS_TYPE_DIRECTORY,
					.name = "" };
}

/* 1 it is begun, 0 passed over. */
static int enter(struct ks_visit *visit, const struct entry *entry, struct ks_visit_item *ret, struct ks_error *err)
{
	const struct frame *frame = &visit->frames[visit->depth - 1];
	const char *name = visit->names + entry->name + 1;
	const size_t len = entry->len, path_len = frame->path_len + len + 1;

	if (path_len >= KS_VISIT_PATH) {
		visit->unreadable++;
		return 0;
	}
	const int parent = directory_fd(visit);
	if (parent < 0)
		return miss(visit, -parent, err);
	memcpy(visit->path + frame->path_len, name, len);
	memcpy(visit->path + path_len - 1, "/", 2);
	const int fd = ks_open_beneath(parent, name, O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	if (fd < 0)
		return miss(visit, -fd, err);
	if (push_directory(visit, fd, path_len, err) < 0)
		return -1;
	fill(ret, KS_VISIT_DIRECTORY, visit, path_len);
	ret->name = visit->path + path_len - 1 - len;
	ret->name_len = len;
	return 1;
}

/* 1 it is one, 0 passed over. */
static int take_name(struct ks_visit *visit, const struct entry *entry, struct ks_visit_item *ret, struct ks_error *err)
{
	const size_t at = visit->frames[visit->depth - 1].path_len;

	if (at + entry->len > KS_VISIT_PATH) {
		visit->unreadable++;
		return 0;
	}
	const int fd = directory_fd(visit);
	if (fd < 0)
		return miss(visit, -fd, err);
	memcpy(visit->path + at, visit->names + entry->name + 1, entry->len + 1u);
	fill(ret, KS_VISIT_NAME, visit, at + entry->len);
	ret->name = visit->path + at;
	ret->name_len = entry->len;
	ret->type = entry->type;
	visit->last = entry->type == KS_TYPE_DIRECTORY ? visit->names + entry->name : NULL;
	return 1;
}

int ks_visit_next(struct ks_visit *visit, struct ks_visit_item *ret, struct ks_error *err)
{
	int rc = 0;

	if (!visit->begun) {
		visit->begun = true;
		fill(ret, KS_VISIT_DIRECTORY, visit, visit->frames[0].path_len);
		return 0;
	}
	visit->last = NULL;
	while (rc == 0) {
		if (visit->depth == 0) {
			*ret = (struct ks_visit_item){ .what = KS_VISIT_END, .path = "", .name = "", .dir_fd = -1 };
			return 0;
		}
		struct frame *frame = &visit->frames[visit->depth - 1];
		if (frame->next == frame->end) {
			pop_directory(visit);
			continue;
		}
		const struct entry *entry = &visit->entries[frame->next++];
		if (!entry->place)
			rc = take_name(visit, entry, ret, err);
		else if (visit->names[entry->name])
			rc = enter(visit, entry, ret, err);
	}
	return rc < 0 ? -1 : 0;
}

void ks_visit_enter(struct ks_visit *visit)
{
	if (visit->last)
		*visit->last = 1;
}

bool ks_visit_has(const struct ks_visit *visit, const char *name)
{
	const struct frame *frame = &visit->frames[visit->depth - 1];
	const size_t len = strlen(name);
	size_t low = frame->first, high = frame->end;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct entry *entry = &visit->entries[middle];
		const char *here = visit->names + entry->name + 1;
		const size_t common = entry->len < len ? entry->len : len;
		int order = memcmp(here, name, common);
		if (order == 0)
			order = byte_at(here, entry, common) - (common < len ? (unsigned char)name[common] : -1);
		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

uint64_t ks_visit_unreadable(const struct ks_visit *visit)
{
	return visit->unreadable;
}

int ks_visit_start(int root_fd, const char *path, struct ks_visit **ret, struct ks_error *err)
{
	const bool root = strcmp(path, ".") == 0;
	const size_t len = root ? 0 : strlen(path);
	const struct ks_name name = { .root = root_fd, .path = path, .pointer = "/path" };

	if (len + 1 > KS_VISIT_PATH)
		return ks_name_fail(&name, ENAMETOOLONG, err);
	KS_AUTOCLOSE int place = ks_name_open(&name, O_PATH, err); /* which says of a link that it is one; O_DIRECTORY does not */
	if (place < 0)
		return -1;
	KS_AUTOCLOSE int fd = ks_open_beneath(place, ".", O_RDONLY | O_DIRECTORY, KS_BENEATH_STAY);
	if (fd < 0)
		return ks_name_fail(&name, -fd, err);
	struct ks_visit *visit = malloc(sizeof(*visit)); /* not calloc: no need to clear the buffers */
	if (!visit)
		return no_memory(err);
	memset(visit, 0, offsetof(struct ks_visit, path));
	visit->root_fd = root_fd;
	memcpy(visit->path, path, len);
	if (!root)
		visit->path[len] = '/';
	if (push_directory(visit, KS_TAKE_FD(fd), root ? 0 : len + 1, err) < 0) {
		ks_visit_free(visit);
		return -1;
	}
	*ret = visit;
	return 0;
}

void ks_visit_free(struct ks_visit *visit)
{
	if (!visit)
		return;
	for (size_t i = 0; i < OPEN_DIRS; i++)
		if (visit->open[i].serial)
			ks_close(&visit->open[i].fd);
	free(visit->frames);
	free(visit->entries);
	free(visit->scratch);
	free(visit->names);
	free(visit);
}
