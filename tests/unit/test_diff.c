/* Walks, diffs, digests, media types, and opening below a directory that changes meanwhile. */
#include "trees.h"

#include <dirent.h>
#include <sys/mman.h>
#include <time.h>

#include "workspace/beneath.h"
#include "workspace/digest.h"
#include "workspace/mime.h"
#include "workspace/siphash.h"
#include "workspace/tree.h"

#define RACES 20000u

/* What changed since `before`, which is freed. */
static struct ks_changes since(int root, struct ks_tree *before, size_t max)
{
	struct ks_tree *after = snapshot(root, false);
	struct ks_changes changes = compare(root, before, after, max);

	ks_tree_free(before);
	ks_tree_free(after);
	return changes;
}

/* One line a change, "C path size mime sha256-of-hello?". */
static void expect(struct ks_changes changes, const char *wanted)
{
	static char text[65536];
	size_t at = 0;

	for (size_t i = 0; i < changes.count; i++) {
		const struct ks_change *c = &changes.items[i];
		int n = snprintf(text + at, sizeof(text) - at, "%c %s %lld %s%s\n", "CMD"[c->change], c->path, (long long)c->size,
				 c->mime ? c->mime : "-", c->has_sha256 ? " sha" : "");
		assert_true(n > 0 && (size_t)n < sizeof(text) - at);
		assert_int_equal(strlen(c->path), c->path_len);
		at += (size_t)n;
	}
	text[at] = '\0';
	assert_string_equal(text, wanted);
	ks_changes_free(&changes);
}

static void test_changes(void **unused)
{
	struct scratch s;
	static const unsigned char hello[32] = {
		/* printf 'hello\n' | sha256sum */
		0x58, 0x91, 0xb5, 0xb5, 0x22, 0xd5, 0xdf, 0x08, 0x6d, 0x0f, 0xf0, 0xb1, 0x10, 0xfb, 0xd9, 0xd2,
		0x1b, 0xb4, 0xfc, 0x71, 0x63, 0xaf, 0x34, 0xd0, 0x82, 0x86, 0xa2, 0xe8, 0x46, 0xf6, 0xbe, 0x03,
	};

	(void)unused;
	scratch_open(&s);
	assert_int_equal(mkdirat(s.fd, "dir", 0755), 0);
	assert_int_equal(mkdirat(s.fd, "gone", 0755), 0);
	assert_int_equal(mkdirat(s.fd, "swap", 0755), 0);
	assert_int_equal(mkdirat(s.fd, ".deps", 0755), 0);
	put(s.fd, "a.txt", "one");
	put(s.fd, "same", "same");
	put(s.fd, "dir/old.bin", "12345");
	put(s.fd, "gone/x", "x");
	put(s.fd, "swap/inner", "inner");
	put(s.fd, "piped", "was a file");
	put(s.fd, "retyped", "file");
	assert_int_equal(symlinkat("a.txt", s.fd, "link"), 0);
	struct ks_tree *before = snapshot(s.fd, true);
	assert_int_equal(ks_tree_files(before), 8);
	assert_int_equal(ks_tree_unreadable(before), 0);

	put(s.fd, "a.txt", "three");
	put(s.fd, ".deps/new", "not ours");
	put(s.fd, "dir/.deps", "counts");
	put(s.fd, "dir/hi.py", "hello\n");
	put(s.fd, "empty", "");
	put_mode(s.fd, "dir/picture", "\x89PNG\r\n\x1a\n....", 12, 0644);
	assert_int_equal(unlinkat(s.fd, "dir/old.bin", 0), 0);
	assert_int_equal(unlinkat(s.fd, "gone/x", 0), 0);
	assert_int_equal(unlinkat(s.fd, "gone", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(s.fd, "swap/inner", 0), 0);
	assert_int_equal(unlinkat(s.fd, "swap", AT_REMOVEDIR), 0);
	put(s.fd, "swap", "now a file");
	assert_int_equal(unlinkat(s.fd, "piped", 0), 0);
	assert_int_equal(mkfifoat(s.fd, "piped", 0644), 0);
	assert_int_equal(unlinkat(s.fd, "link", 0), 0);
	assert_int_equal(symlinkat("elsewhere", s.fd, "link"), 0);
	assert_int_equal(unlinkat(s.fd, "retyped", 0), 0);
	assert_int_equal(symlinkat("a", s.fd, "retyped"), 0);
	assert_int_equal(mkdirat(s.fd, "new-empty-dir", 0755), 0);
	struct ks_changes changes = since(s.fd, before, 100);
	assert_int_equal(changes.total, 12);
	assert_false(changes.truncated);
	assert_string_equal(changes.items[2].path, "dir/hi.py");
	assert_memory_equal(changes.items[2].sha256, hello, 32);
	expect(changes, "M a.txt 5 text/plain sha\n"
			"C dir/.deps 6 text/plain sha\n"
			"C dir/hi.py 6 text/x-python sha\n"
			"D dir/old.bin 5 -\n"
			"C dir/picture 12 image/png sha\n"
			"C empty 0 - sha\n"
			"D gone/x 1 -\n"
			"M link 9 inode/symlink\n"
			"D piped 10 -\n"
			"M retyped 1 inode/symlink\n"
			"C swap 10 text/plain sha\n"
			"D swap/inner 5 -\n");
	expect(since(s.fd, snapshot(s.fd, true), 100), "");
	scratch_close(&s);
}

static void fake_times(int dir, const char *name, const struct stat *st)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	CHECK(utimensat(dir, name, times, 0) == 0);
}

static void test_faked_times(void **unused)
{
	struct scratch s;
	struct stat st;

	(void)unused;
	scratch_open(&s);
	put(s.fd, "f", "aaaa");
	put(s.fd, "renamed", "bbbb");
	assert_int_equal(fstatat(s.fd, "f", &st, 0), 0);
	(void)usleep(30000); /* too old to be hashed */
	struct ks_tree *before = snapshot(s.fd, true);
	put(s.fd, "f", "cccc");
	fake_times(s.fd, "f", &st);
	put(s.fd, "tmp", "bbbb");
	fake_times(s.fd, "tmp", &st);
	assert_int_equal(renameat(s.fd, "tmp", s.fd, "renamed"), 0); /* same bytes, another inode */
	expect(since(s.fd, before, 10), "M f 4 text/plain sha\nM renamed 4 text/plain sha\n");
	scratch_close(&s);
}

/* On tmpfs small files are hashed whatever their age, but not all. */
static void in_memory(struct scratch *s)
{
	char name[16];

	if (!own_mounts() || mount("none", s->path, "tmpfs", 0, NULL) < 0)
		_exit(77);
	int root = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(root >= 0);
	put(root, "empty", "");
	put_size(root, "over", KS_HASH_MAX_FILE + 1);
	put_size(root, "at", KS_HASH_MAX_FILE);
	CHECK(usleep(30000) == 0);
	struct ks_tree *tree = snapshot(root, true);
	CHECK(tree->files == 3 && tree->hash_count == 1);
	ks_tree_free(tree);
	for (unsigned i = 1; i <= KS_HASH_MAPPED_FILES; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		put(root, name, "x");
	}
	CHECK(usleep(30000) == 0);
	tree = snapshot(root, true);
	CHECK(tree->files == KS_HASH_MAPPED_FILES + 3 && tree->hash_count == KS_HASH_MAPPED_FILES);
	CHECK(tree->cap == tree->count && tree->names_cap == tree->names_len && tree->hash_cap == tree->hash_count);
	ks_tree_free(tree);
	tree = snapshot(root, false); /* nothing is compared with it later */
	CHECK(tree->hash_count == 0);
	ks_tree_free(tree);
}

static void test_in_memory(void **unused)
{
	(void)unused;
	scratch_child(in_memory);
}

/* ramfs has the coarse clock that all file systems had before Linux 6.13. */
static void same_tick(struct scratch *s)
{
	unsigned hidden = 0, caught = 0, missed = 0;

	if (!own_mounts() || mount("none", s->path, "ramfs", 0, NULL) < 0)
		_exit(77);
	int root = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(root >= 0);
	for (int i = 0; i < 60; i++) {
		struct stat st, now;
		off_t size = i % 4 < 2 ? 4 : KS_HASH_MAX_FILE;
		(void)unlinkat(root, "f", 0);
		put_size(root, "f", size);
		CHECK(fstatat(root, "f", &st, 0) == 0);
		struct ks_tree *before = snapshot(root, i % 2 == 0);
		int fd = openat(root, "f", O_WRONLY | O_CLOEXEC);
		CHECK(fd >= 0 && pwrite(fd, "bbbb", 4, size - 4) == 4 && close(fd) == 0);
		fake_times(root, "f", &st);
		CHECK(fstatat(root, "f", &now, 0) == 0);
		struct ks_changes changes = since(root, before, 10);
		if (now.st_ctim.tv_nsec == st.st_ctim.tv_nsec && now.st_ctim.tv_sec == st.st_ctim.tv_sec) {
			hidden++;
			*(i % 2 == 0 ? &caught : &missed) += (unsigned)changes.count;
			CHECK(i % 2 == 1 || changes.count == 1);
		}
		ks_changes_free(&changes);
	}
	print_message("%u of 60 rewrites hid in one clock tick, %u caught by their bytes\n", hidden, caught);
	if (hidden < 10)
		_exit(77); /* this kernel's ramfs does better */
	CHECK(caught > 0 && missed == 0); /* without the hash none would be seen: the test does test it */
}

static void test_same_tick(void **unused)
{
	(void)unused;
	scratch_child(same_tick);
}

static void test_names_and_order(void **unused)
{
	struct scratch s;
	char longest[256];

	(void)unused;
	scratch_open(&s);
	memset(longest, 'z', 255);
	longest[255] = '\0';
	struct ks_tree *before = snapshot(s.fd, true);
	assert_int_equal(mkdirat(s.fd, "a", 0755), 0);
	const char *const names[] = { "-rf", "a-b", "a.b", "a/b", "a0", "new\nline", longest, "\xe2\x80\xae" "rtl", "\xff\xfe" };
	for (size_t i = KS_COUNT(names); i--;)
		put(s.fd, names[i], "x");
	struct ks_changes changes = since(s.fd, before, 100);
	assert_int_equal(changes.count, KS_COUNT(names));
	for (size_t i = 0; i < KS_COUNT(names); i++)
		assert_string_equal(changes.items[i].path, names[i]);
	ks_changes_free(&changes);
	scratch_close(&s);
}

static void test_walk_limit(void **unused)
{
	struct scratch s;
	struct ks_error err;
	char name[16];

	(void)unused;
	scratch_open(&s);
	for (int i = 1; i <= 11; i++) {
		struct ks_walk *walk;
		int rc;
		(void)snprintf(name, sizeof(name), "%d", i);
		if (i % 3 == 0)
			assert_int_equal(mkfifoat(s.fd, name, 0600), 0); /* names of anything count */
		else
			put(s.fd, name, "");
		assert_int_equal(ks_walk_start(s.fd, true, &walk, &err), 0);
		ks_walk_limit(walk, 10);
		ks_walk_limit(walk, 1000000); /* only ever lowers it */
		while ((rc = ks_walk_step(walk, 0, &err)) == 0)
			;
		assert_int_equal(rc, i <= 10 ? 1 : -1);
		ks_walk_free(walk);
	}
	assert_int_equal(err.reason, KS_E_LIMIT);
	assert_string_equal(err.text, "too many files to track: more than 10 names");
	scratch_close(&s);
}

static void test_change_limit(void **unused)
{
	struct scratch s;
	struct ks_error err;
	struct ks_diff *diff;

	(void)unused;
	scratch_open(&s);
	struct ks_tree *before = snapshot(s.fd, true);
	put(s.fd, "d.log", "d");
	put(s.fd, "b.log", "b");
	for (size_t max = 0; max <= 3; max++) {
		struct ks_tree *after = snapshot(s.fd, false);
		struct ks_changes changes = compare(s.fd, before, after, max);
		assert_int_equal(changes.total, 2);
		assert_int_equal(changes.truncated, max < 2);
		expect(changes, max == 0 ? "" : max == 1 ? "C b.log 1 text/plain sha\n" :
							   "C b.log 1 text/plain sha\nC d.log 1 text/plain sha\n");
		ks_tree_free(after);
	}
	put(s.fd, "a.log", "a");
	put(s.fd, "c.log", "c");
	expect(since(s.fd, snapshot(s.fd, true), 3), "");
	struct ks_tree *after = snapshot(s.fd, false);
	expect(compare(s.fd, before, after, 3),
	       "C a.log 1 text/plain sha\nC b.log 1 text/plain sha\nC c.log 1 text/plain sha\n");
	assert_int_equal(ks_diff_start(s.fd, before, after, KS_DIFF_MAX_CHANGES, &diff, &err), 0);
	ks_diff_free(diff);
	assert_int_equal(ks_diff_start(s.fd, before, after, KS_DIFF_MAX_CHANGES + 1, &diff, &err), -1);
	ks_tree_free(before);
	ks_tree_free(after);
	scratch_close(&s);
}

static void test_path_limits(void **unused)
{
	struct scratch s;
	char name[256];

	(void)unused;
	scratch_open(&s);
	memset(name, 'n', sizeof(name));
	name[255] = '\0';
	int deep = dig(s.fd, name, 254); /* 254 * 256 = 65,024 bytes */
	name[200] = '\0';
	int last = dig(deep, name, 2); /* + 402 = 65,426 */
	struct ks_tree *before = snapshot(s.fd, true);
	for (size_t len = 109; len <= 111; len++) { /* 65,535, 65,536 and 65,537 in all */
		memset(name, 'f', len);
		name[len] = '\0';
		put(last, name, "x");
	}
	struct ks_tree *after = snapshot(s.fd, false);
	struct ks_changes changes = compare(s.fd, before, after, 10);
	assert_int_equal(changes.total, 3);
	assert_int_equal(changes.count, 2);
	assert_true(changes.truncated);
	assert_int_equal(changes.items[0].path_len, KS_DIFF_MAX_PATH - 1);
	assert_int_equal(changes.items[1].path_len, KS_DIFF_MAX_PATH);
	assert_true(changes.items[1].has_sha256);
	ks_changes_free(&changes);
	ks_tree_free(after);

	/* 64 paths of 65,535 bytes fit into 4 MiB, 65 do not. The two longer files come last in the order. */
	unsigned made = 1;
	for (unsigned want = 64; want <= 66; want++) {
		for (; made < want; made++) {
			memset(name, 'e', 109);
			name[0] = (char)('A' + made / 10);
			name[1] = (char)('0' + made % 10);
			name[109] = '\0';
			put(last, name, "x");
		}
		after = snapshot(s.fd, false);
		changes = compare(s.fd, before, after, 4096);
		assert_int_equal(changes.total, want + 2);
		assert_int_equal(changes.count, 64);
		const char *base = strrchr(changes.items[63].path, '/') + 1;
		assert_memory_equal(base, want == 64 ? "ff" : want == 65 ? "G4" : "G4", 2);
		ks_changes_free(&changes);
		ks_tree_free(after);
	}
	ks_tree_free(before);
	(void)close(deep);
	(void)close(last);
	scratch_close(&s);
}

static unsigned open_fds(void)
{
	unsigned n = 0;
	DIR *dir = opendir("/proc/self/fd");

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static void test_deep(void **unused)
{
	struct scratch s;
	struct ks_walk *walk;
	struct ks_error err;
	unsigned most = 0;
	size_t steps = 0;
	int rc;

	(void)unused;
	scratch_open(&s);
	struct ks_tree *before = snapshot(s.fd, true);
	int at = dup(s.fd);
	for (unsigned i = 0; i < 50; i++) {
		int next = dig(at, "d", 100);
		(void)close(at);
		at = next;
		put(at, "e", "x");	 /* read before the descent goes on */
		assert_int_equal(mkdirat(at, "side", 0755), 0); /* and one that is read on the way back, or before */
		put(at, "side/f", "x");
	}
	(void)close(at);
	unsigned base = open_fds();
	assert_int_equal(ks_walk_start(s.fd, true, &walk, &err), 0);
	while ((rc = ks_walk_step(walk, 0, &err)) == 0) {
		if (steps++ % 64 == 0 && open_fds() > most)
			most = open_fds();
	}
	assert_int_equal(rc, 1);
	assert_true(steps > 5000);
	assert_true(most > base && most <= base + 16);
	struct ks_tree *after = ks_walk_take(walk);
	assert_int_equal(open_fds(), base);
	assert_int_equal(ks_tree_files(after), 100);
	struct ks_changes changes = compare(s.fd, before, after, 200);
	assert_int_equal(changes.count, 100);
	size_t longest = 0;
	for (size_t i = 0; i < changes.count; i++) {
		assert_true(changes.items[i].has_sha256);
		longest = changes.items[i].path_len > longest ? changes.items[i].path_len : longest;
	}
	assert_int_equal(longest, 5000 * 2 + strlen("side/f"));
	ks_changes_free(&changes);
	ks_tree_free(before);
	ks_tree_free(after);
	scratch_close(&s);
}

/* A directory that cannot be read is neither an error nor a heap of deleted files. */
static void unreadable(struct scratch *s)
{
	become_user();
	CHECK(mkdirat(s->fd, "u", 0755) == 0 && mkdirat(s->fd, "u/d", 0755) == 0 && mkdirat(s->fd, "u/d/e", 0755) == 0);
	int root = open_dir_at(s->fd, "u");
	put(root, "d/f", "x");
	put(root, "d/e/g", "x");
	put(root, "h", "x");
	struct ks_tree *open_tree = snapshot(root, true);
	CHECK(ks_tree_files(open_tree) == 3 && ks_tree_unreadable(open_tree) == 0);
	CHECK(fchmodat(root, "d", 0, 0) == 0);
	put(root, "h", "xy");
	struct ks_tree *shut = snapshot(root, true);
	CHECK(ks_tree_files(shut) == 1 && ks_tree_unreadable(shut) == 1);
	struct ks_changes changes = compare(root, open_tree, shut, 10);
	CHECK(changes.count == 1 && strcmp(changes.items[0].path, "h") == 0 && changes.items[0].change == KS_MODIFIED);
	ks_changes_free(&changes);
	changes = compare(root, shut, open_tree, 10);
	CHECK(changes.count == 1 && strcmp(changes.items[0].path, "h") == 0);
	ks_changes_free(&changes);
	ks_tree_free(shut);
	ks_tree_free(open_tree);
	CHECK(fchmodat(root, "h", 0, 0) == 0 && fchmodat(root, "d", 0755, 0) == 0);
	/* A file that cannot be read is listed by what its name says. */
	struct ks_tree *none = snapshot(root, true);
	put_mode(root, "new.json", "{}", 2, 0);
	changes = since(root, none, 10);
	CHECK(changes.count == 1 && !changes.items[0].has_sha256 && strcmp(changes.items[0].mime, "application/json") == 0);
	ks_changes_free(&changes);
}

static void test_unreadable(void **unused)
{
	struct scratch s;

	(void)unused;
	scratch_open(&s);
	assert_int_equal(fchmod(s.fd, 0777), 0);
	assert_int_equal(in_child(unreadable, &s), 0);
	scratch_close(&s);
}

static void mounted(struct scratch *s)
{
	CHECK(mkdirat(s->fd, "m", 0755) == 0);
	if (!own_mounts())
		_exit(77);
	char path[PATH_MAX + 8];
	(void)snprintf(path, sizeof(path), "%s/m", s->path);
	if (mount("none", path, "ramfs", 0, NULL) < 0)
		_exit(77);
	int m = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(m, "inside", "x");
	int root = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* s->fd looks into the old namespace */
	for (int without = 0; without <= 1; without++) {
		ks_beneath_without_openat2(without);
		struct ks_tree *tree = snapshot(root, true);
		CHECK(ks_tree_files(tree) == 0 && ks_tree_unreadable(tree) == 1);
		ks_tree_free(tree);
		CHECK(ks_open_beneath(root, "m/inside", O_RDONLY, KS_BENEATH_STAY) == -EXDEV);
		int fd = ks_open_beneath(root, "m/inside", O_RDONLY, KS_BENEATH_XDEV);
		CHECK(fd >= 0 && close(fd) == 0);
	}
}

static void test_mount_point(void **unused)
{
	(void)unused;
	scratch_child(mounted);
}

static void test_hash_limits(void **unused)
{
	struct scratch s;
	struct ks_digest digest;

	(void)unused;
	scratch_open(&s);
	struct ks_tree *before = snapshot(s.fd, true);
	put_size(s.fd, "at", KS_HASH_MAX_FILE);
	put_size(s.fd, "below", KS_HASH_MAX_FILE - 1);
	put_size(s.fd, "huge.csv", (off_t)2 << 30);
	put_size(s.fd, "over", KS_HASH_MAX_FILE + 1);
	int fd = openat(s.fd, "over", O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "%PDF-1.7", 8, 0), 8);
	(void)close(fd);
	expect(since(s.fd, before, 10), "C at 65536 - sha\nC below 65535 - sha\nC huge.csv 2147483648 text/csv\n"
					"C over 65537 application/pdf\n");
	assert_int_equal(ks_digest_file(s.fd, "at", 65536, &digest), 0);
	assert_int_equal(digest.size, 65536);
	assert_int_equal(ks_digest_file(s.fd, "at", 65535, &digest), -EFBIG);
	assert_int_equal(digest.head_len, KS_MIME_PEEK);
	scratch_close(&s);
}

/* Between the second walk and the digest everything may change. */
static void test_changed_after_walk(void **unused)
{
	struct scratch s;

	(void)unused;
	scratch_open(&s);
	struct ks_tree *before = snapshot(s.fd, true);
	put(s.fd, "dir", "x");
	put(s.fd, "fifo", "x");
	put(s.fd, "gone", "x");
	put(s.fd, "grown", "x");
	put(s.fd, "link", "x");
	struct ks_tree *after = snapshot(s.fd, false);
	assert_int_equal(unlinkat(s.fd, "dir", 0) | unlinkat(s.fd, "fifo", 0) | unlinkat(s.fd, "gone", 0) |
				 unlinkat(s.fd, "link", 0), 0);
	assert_int_equal(mkdirat(s.fd, "dir", 0755) | mkfifoat(s.fd, "fifo", 0644) | symlinkat("grown", s.fd, "link"), 0);
	put(s.fd, "grown", "more");
	expect(compare(s.fd, before, after, 10), "C dir 1 -\nC fifo 1 -\nC gone 1 -\nC grown 1 text/plain\nC link 1 -\n");
	ks_tree_free(before);
	ks_tree_free(after);
	scratch_close(&s);
}

static volatile unsigned long *turns;

/* Swaps dir and file with links that lead outside, RACES times. */
static void swap_links(struct scratch *s)
{
	for (unsigned i = 0; i < RACES; i++) {
		CHECK(renameat2(s->fd, "in/dir", s->fd, "in/dir-link", RENAME_EXCHANGE) == 0);
		CHECK(renameat2(s->fd, "in/file", s->fd, "in/file-link", RENAME_EXCHANGE) == 0);
		++*turns;
	}
}

static void race(struct scratch *s, bool without_openat2)
{
	struct ks_digest digest;
	unsigned long rounds = 0, hits = 0, inside = 0;
	int status;

	ks_beneath_without_openat2(without_openat2);
	int in = open_dir_at(s->fd, "in");
	*turns = 0;
	pid_t pid = fork();
	if (pid == 0) {
		swap_links(s);
		_exit(0);
	}
	int nothing = open_dir_at(s->fd, "empty");
	struct ks_tree *empty = snapshot(nothing, true);
	(void)close(nothing);
	do {
		struct ks_tree *tree = snapshot(in, true);
		struct ks_changes changes = compare(in, empty, tree, 100);
		for (size_t i = 0; i < changes.count; i++)
			hits += strstr(changes.items[i].path, "outside") != NULL;
		ks_changes_free(&changes);
		ks_tree_free(tree);
		for (int i = 0; i < 200; i++) {
			const char *const paths[] = { "file", "dir/outside", "dir/mine" };
			if (ks_digest_file(in, paths[i % 3], 4096, &digest) < 0)
				continue;
			hits += digest.size == 7; /* "outside" */
			inside += digest.size == 4;
		}
		rounds++;
	} while (waitpid(pid, &status, WNOHANG) == 0);
	assert_int_equal(status, 0);
	ks_tree_free(empty);
	(void)close(in);
	print_message("%lu swaps, %lu walks, %lu reads inside, %lu hits outside\n", 2 * *turns, rounds, inside, hits);
	assert_int_equal(*turns, RACES);
	assert_true(rounds > 10 && inside > 100);
	assert_int_equal(hits, 0);
	ks_beneath_without_openat2(false);
}

static void test_race(void **unused)
{
	struct scratch s;

	(void)unused;
	scratch_open(&s);
	turns = mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(turns != MAP_FAILED);
	assert_int_equal(mkdirat(s.fd, "in", 0755) | mkdirat(s.fd, "in/dir", 0755) | mkdirat(s.fd, "out", 0755) |
				 mkdirat(s.fd, "empty", 0755), 0);
	put(s.fd, "in/file", "mine");
	put(s.fd, "in/dir/mine", "mine");
	put(s.fd, "out/outside", "outside");
	assert_int_equal(symlinkat("../out", s.fd, "in/dir-link"), 0);
	assert_int_equal(symlinkat("../out/outside", s.fd, "in/file-link"), 0);
	race(&s, false);
	race(&s, true);
	(void)munmap((void *)(uintptr_t)turns, sizeof(*turns));
	scratch_close(&s);
}

static void test_charset(void **unused)
{
	static const struct {
		const char *data;
		size_t len;
		bool cut;
		enum ks_charset charset;
	} cases[] = {
		{ "", 0, false, KS_CHARSET_UTF8 },
		{ "plain\x01", 6, false, KS_CHARSET_UTF8 },
		{ "\xef\xbb\xbfx", 4, false, KS_CHARSET_UTF8 },
		{ "caf\xc3", 4, true, KS_CHARSET_UTF8 },
		{ "caf\xc3", 4, false, KS_CHARSET_BINARY },
		{ "caf\xc3\xa9", 5, false, KS_CHARSET_UTF8 },
		{ "caf\xc3.", 5, true, KS_CHARSET_BINARY },
		{ "a\0b", 3, false, KS_CHARSET_BINARY },
		{ "\xff\xfe" "a\0", 4, false, KS_CHARSET_UTF16LE },
		{ "\xfe\xff\0a", 4, false, KS_CHARSET_UTF16BE },
		{ "\xff", 1, true, KS_CHARSET_BINARY },
	};

	(void)unused;
	for (size_t i = 0; i < KS_COUNT(cases); i++)
		assert_int_equal(ks_charset_of((const unsigned char *)cases[i].data, cases[i].len, cases[i].cut), cases[i].charset);
}

static void test_mime(void **unused)
{
	static const struct {
		const char *name, *mime;
	} names[] = {
		{ "a.png", "image/png" }, { "a.PNG", "image/png" }, { "a.tar.gz", "application/gzip" },
		{ "a.json", "application/json" }, { ".json", NULL }, { "png", NULL }, { "a.", NULL },
		{ "a.unknown", NULL }, { "", NULL }, { "a.txt", "text/plain" }, { "a.htm", "text/html" },
	};
	static const struct {
		const char *data;
		size_t len;
		const char *mime;
	} bytes[] = {
		{ "\x89PNG\r\n\x1a\n", 8, "image/png" },
		{ "\x89PNG\r\n\x1a", 7, NULL },
		{ "\xff\xd8\xff\xe0", 4, "image/jpeg" },
		{ "GIF89a..", 8, "image/gif" },
		{ "%PDF-1.4", 8, "application/pdf" },
		{ "PK\3\4", 4, "application/zip" },
		{ "\x1f\x8b\x08", 3, "application/gzip" },
		{ " {\"a\":1}", 8, "application/json" },
		{ "[1]", 3, "application/json" },
		{ "[section]", 9, "text/plain" },
		{ "{x}", 3, "text/plain" },
		{ "", 0, NULL },
		{ "a\0b", 3, NULL },
		{ "caf\xc3\xa9", 5, "text/plain" },
		{ "caf\xc3", 4, "text/plain" },
		{ "caf\xe9!", 5, NULL },
		{ "\xc0\x80", 2, NULL },
		{ "\xed\xa0\x80", 3, NULL },
		{ "\xf4\x90\x80\x80", 4, NULL },
		{ "\x7f"
		  "ELF",
		  4, "application/x-elf" },
		{ "RIFF\x10\0\0\0WEBP", 12, "image/webp" },
		{ "8 lettersWEBP", 13, "text/plain" },
		{ "BMW", 3, "text/plain" },
		{ "BM\0\0", 4, "image/bmp" },
		{ "BZh9\x31", 5, "text/plain" },
		{ "BZh9\x31\x01", 6, "application/x-bzip2" },
		{ "\0\0\0\x20"
		  "ftypisom",
		  12, "video/mp4" },
		{ "\xfd"
		  "7zXZ\0",
		  6, "application/x-xz" },
	};

	(void)unused;
	for (size_t i = 0; i < KS_COUNT(names); i++) {
		const char *mime = ks_mime_by_name(names[i].name, strlen(names[i].name));
		assert_string_equal(mime ? mime : "-", names[i].mime ? names[i].mime : "-");
	}
	for (size_t i = 0; i < KS_COUNT(bytes); i++) {
		const char *mime = ks_mime_by_content((const unsigned char *)bytes[i].data, bytes[i].len);
		assert_string_equal(mime ? mime : "-", bytes[i].mime ? bytes[i].mime : "-");
	}
}

static void test_siphash(void **unused)
{
	unsigned char key[16], data[15];

	(void)unused;
	for (unsigned char i = 0; i < 16; i++)
		key[i] = i;
	for (unsigned char i = 0; i < 15; i++)
		data[i] = i;
	/* The paper's appendix A; the first eight bytes go in as the salt. */
	assert_true(ks_siphash(key, UINT64_C(0x0706050403020100), data + 8, 7) == UINT64_C(0xa129ca6149be45e5));
}

static void test_slices(void **unused)
{
	struct scratch s;
	struct ks_walk *walk;
	struct ks_diff *diff;
	struct ks_error err;
	char name[16];
	unsigned walk_steps = 1, diff_steps = 1;
	int rc;

	(void)unused;
	scratch_open(&s);
	struct ks_tree *before = snapshot(s.fd, true);
	for (int i = 0; i < 3000; i++) {
		(void)snprintf(name, sizeof(name), "%04d", i);
		put(s.fd, name, "");
	}
	assert_int_equal(ks_walk_start(s.fd, false, &walk, &err), 0);
	while ((rc = ks_walk_step(walk, 0, &err)) == 0)
		walk_steps++;
	assert_int_equal(rc, 1);
	assert_int_equal(ks_walk_step(walk, 0, &err), 1); /* stays done */
	struct ks_tree *after = ks_walk_take(walk);
	assert_int_equal(ks_diff_start(s.fd, before, after, 1000, &diff, &err), 0);
	while ((rc = ks_diff_step(diff, 0, &err)) == 0)
		diff_steps++;
	struct ks_changes changes = ks_diff_take(diff);
	assert_true(walk_steps > 40 && diff_steps > 1000); /* an open file each */
	assert_int_equal(changes.total, 3000);
	assert_int_equal(changes.count, 1000);
	assert_string_equal(changes.items[0].path, "0000");
	assert_string_equal(changes.items[999].path, "0999");
	assert_true(ks_tree_bytes(after) < 3000 * 128);
	ks_changes_free(&changes);
	/* Given up half-way: nothing leaks. */
	assert_int_equal(ks_walk_start(s.fd, true, &walk, &err), 0);
	assert_int_equal(ks_walk_step(walk, 0, &err), 0);
	ks_walk_free(walk);
	assert_int_equal(ks_diff_start(s.fd, before, after, 10, &diff, &err), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(ks_diff_step(diff, 0, &err), 0);
	ks_diff_free(diff);
	ks_walk_free(NULL);
	ks_diff_free(NULL);
	ks_tree_free(NULL);
	ks_tree_free(before);
	ks_tree_free(after);
	scratch_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),	      cmocka_unit_test(test_faked_times),
		cmocka_unit_test(test_same_tick),     cmocka_unit_test(test_names_and_order),
		cmocka_unit_test(test_walk_limit),    cmocka_unit_test(test_change_limit),
		cmocka_unit_test(test_path_limits),   cmocka_unit_test(test_deep),
		cmocka_unit_test(test_unreadable),    cmocka_unit_test(test_mount_point),
		cmocka_unit_test(test_hash_limits),   cmocka_unit_test(test_changed_after_walk),
		cmocka_unit_test(test_race),	      cmocka_unit_test(test_charset),
		cmocka_unit_test(test_mime),	      cmocka_unit_test(test_siphash),
		cmocka_unit_test(test_slices),	      cmocka_unit_test(test_in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
