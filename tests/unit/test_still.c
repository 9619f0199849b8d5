/* Is a tree still what a snapshot of it says, without a look into its directories? */
#include "trees.h"

#include <sys/mman.h>
#include <sys/vfs.h>
#include <time.h>

#include "workspace/tree.h"

#define ROUNDS 200u

/* As soon as nothing in it is young. */
static struct ks_tree *steady(int root)
{
	for (int i = 0; i < 1000; i++) {
		struct ks_tree *tree = snapshot(root, true);
		if (ks_tree_is_steady(tree))
			return tree;
		ks_tree_free(tree);
		(void)usleep(5000);
	}
	return NULL;
}

static void plant(int root)
{
	assert_int_equal(mkdirat(root, "dir", 0755) | mkdirat(root, "dir/deep", 0755) | mkdirat(root, "empty", 0755), 0);
	put(root, "a", "one");
	put(root, "dir/b", "two");
	put(root, "dir/deep/c", "three");
	put(root, "dir/deep/d", "fours");
	assert_int_equal(symlinkat("a", root, "link"), 0);
	assert_int_equal(mkfifoat(root, "fifo", 0644), 0);
}

static int create(int root) { return mkfifoat(root, "dir/deep/new", 0644); }
static int make_dir(int root) { return mkdirat(root, "empty/new", 0755); }
static int drop_file(int root) { return unlinkat(root, "dir/b", 0); }
static int drop_fifo(int root) { return unlinkat(root, "fifo", 0); }
static int drop_dir(int root) { return unlinkat(root, "empty", AT_REMOVEDIR); }
static int rename_file(int root) { return renameat(root, "a", root, "z"); }
static int swap_files(int root) { return renameat2(root, "dir/deep/c", root, "dir/deep/d", RENAME_EXCHANGE); }
static int move_dir(int root) { return renameat(root, "dir/deep", root, "empty/deep"); }
static int link_file(int root) { return linkat(root, "a", root, "dir/a", 0); }
static int change_mode(int root) { return fchmodat(root, "dir/deep/c", 0600, 0); }
static int change_dir_mode(int root) { return fchmodat(root, "empty", 0700, 0); }

static int retarget(int root)
{
	return unlinkat(root, "link", 0) | symlinkat("b", root, "link");
}

/* As many bytes, and the time of before. */
static int rewrite(int root)
{
	struct stat st;

	if (fstatat(root, "dir/b", &st, 0) < 0)
		return -1;
	put(root, "dir/b", "owt");
	return utimensat(root, "dir/b", (struct timespec[]){ st.st_atim, st.st_mtim }, 0);
}

static int store(int root)
{
	int fd = openat(root, "dir/deep/c", O_RDWR | O_CLOEXEC);
	char *data = mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (data == MAP_FAILED)
		return -1;
	data[0] = 'T';
	return munmap(data, 5) | close(fd);
}

/* A name in the root stays what it was, and leads elsewhere. */
static int replace_dir(int root)
{
	return renameat(root, "dir", root, "was") | symlinkat("was", root, "dir") | unlinkat(root, "was/b", 0);
}

static void test_each_change(void **unused)
{
	static int (*const changes[])(int root) = { create, make_dir, drop_file, drop_fifo, drop_dir, rename_file, swap_files, move_dir,
						    link_file, change_mode, change_dir_mode, retarget, rewrite, store, replace_dir };
	(void)unused;
	for (size_t i = 0; i < KS_COUNT(changes); i++) {
		struct scratch s;
		scratch_open(&s);
		plant(s.fd);
		struct ks_tree *tree = steady(s.fd);
		if (!tree) { /* a file system that is not trusted */
			struct statfs fs;
			assert_int_equal(fstatfs(s.fd, &fs), 0);
			assert_false(ks_tree_trusts(fs.f_type));
			scratch_close(&s);
			skip();
		}
		assert_true(ks_tree_still(tree, s.fd, true) || tree->in_memory);
		assert_true(ks_tree_still(tree, s.fd, false));
		assert_int_equal(changes[i](s.fd), 0);
		assert_false(ks_tree_still(tree, s.fd, true));
		assert_false(ks_tree_still(tree, s.fd, false));
		ks_tree_free(tree);
		scratch_close(&s);
	}
}

/* What is young may change again without a trace: a directory is not relied on then, and a file has to be hashed before a call. */
static void test_young(void **unused)
{
	struct scratch s;

	(void)unused;
	scratch_open(&s);
	struct ks_tree *tree = snapshot(s.fd, false);
	assert_false(ks_tree_is_steady(tree) || ks_tree_still(tree, s.fd, false));
	ks_tree_free(tree);
	put(s.fd, "a", "one");
	tree = steady(s.fd);
	if (!tree || tree->in_memory)
		skip();
	for (bool done = false; !done;) { /* until a machine in a hurry has looked while it was young */
		put(s.fd, "a", "two");
		ks_tree_free(tree);
		tree = snapshot(s.fd, false);
		const bool young = !ks_tree_still(tree, s.fd, true);
		done = young && ks_tree_young(tree->entries[1].ctime_ns);
		assert_true(ks_tree_is_steady(tree) && ks_tree_still(tree, s.fd, false));
	}
	while (ks_tree_young(tree->entries[1].ctime_ns))
		(void)usleep(5000);
	assert_true(ks_tree_still(tree, s.fd, true));
	ks_tree_free(tree);
	const time_t second = 1000000000;
	struct timespec now;
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	assert_true(ks_tree_young((int64_t)now.tv_sec * second)); /* of a file system without fractions, perhaps */
	assert_true(ks_tree_young(((int64_t)now.tv_sec + 60) * second)); /* a clock that was set back */
	assert_false(ks_tree_young(((int64_t)now.tv_sec - 2) * second));
	assert_false(ks_tree_young(((int64_t)now.tv_sec - 1) * second + 1));
	scratch_close(&s);
}

static void test_size(void **unused)
{
	struct scratch s;
	char name[16];

	(void)unused;
	scratch_open(&s);
	for (unsigned i = 1; i < KS_STILL_MAX; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		put(s.fd, name, "");
	}
	struct ks_tree *tree = steady(s.fd);
	if (!tree)
		skip();
	assert_int_equal(tree->count, KS_STILL_MAX);
	assert_true(ks_tree_still(tree, s.fd, true));
	put(s.fd, "one more", "");
	assert_false(ks_tree_still(tree, s.fd, false));
	ks_tree_free(tree);
	(void)usleep(100000);
	tree = snapshot(s.fd, true);
	assert_false(ks_tree_is_steady(tree) || ks_tree_still(tree, s.fd, true));
	ks_tree_free(tree);
	scratch_close(&s);
}

/* In memory stores leave no trace in small files, which have to be hashed; and what is mounted over a directory hides it. */
static void in_memory(struct scratch *s)
{
	if (!own_mounts() || mount("none", s->path, "tmpfs", 0, NULL) < 0)
		_exit(77);
	int root = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(root >= 0 && mkdirat(root, "dir", 0755) == 0);
	put(root, "empty", "");
	struct ks_tree *tree = steady(root);
	CHECK(tree && ks_tree_still(tree, root, true));
	put(root, "empty", "no more");
	ks_tree_free(tree);
	(void)usleep(50000);
	tree = snapshot(root, true);
	CHECK(!ks_tree_is_steady(tree)); /* has a hash */
	ks_tree_free(tree);
	tree = snapshot(root, false);
	CHECK(ks_tree_still(tree, root, false) && !ks_tree_still(tree, root, true));
	char path[PATH_MAX + 8];
	(void)snprintf(path, sizeof(path), "%s/dir", s->path);
	CHECK(mount("none", path, "tmpfs", 0, NULL) == 0);
	CHECK(!ks_tree_still(tree, root, false));
	ks_tree_free(tree);
	tree = snapshot(root, false);
	CHECK(!ks_tree_is_steady(tree));
	ks_tree_free(tree);
	_exit(0);
}

static void test_in_memory(void **unused)
{
	(void)unused;
	scratch_child(in_memory);
}

/* Whatever happens to a tree, and however soon: one that is still so has no changes. */
static void test_agrees_with_a_walk(void **unused)
{
	static const char *const places[] = { "a", "b", "dir/a", "dir/b", "dir/deep/a", "fifo" };
	struct scratch s;
	unsigned seed = 1, kept = 0;

	(void)unused;
	scratch_open(&s);
	plant(s.fd);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ks_tree *tree = snapshot(s.fd, true);
		const char *one = places[(unsigned)rand_r(&seed) % KS_COUNT(places)];
		const char *other = places[(unsigned)rand_r(&seed) % KS_COUNT(places)];
		switch (rand_r(&seed) % 6) {
		case 0:
			(void)unlinkat(s.fd, one, 0);
			put(s.fd, one, "new");
			break;
		case 1:
			(void)renameat(s.fd, one, s.fd, other);
			break;
		case 2:
			if (linkat(s.fd, one, s.fd, other, 0) < 0)
				put(s.fd, one, "again"); /* the other is there, or the one is not */
			break;
		case 3:
			(void)usleep(25000);
			break;
		default: /* nothing */
			break;
		}
		const bool still = ks_tree_still(tree, s.fd, false);
		kept += still;
		struct ks_tree *now = snapshot(s.fd, false);
		struct ks_changes changes = compare(s.fd, tree, now, 10);
		assert_false(still && changes.total > 0);
		ks_changes_free(&changes);
		ks_tree_free(now);
		ks_tree_free(tree);
	}
	print_message("%u of %u trees were still so\n", kept, ROUNDS);
	scratch_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_change), cmocka_unit_test(test_young),     cmocka_unit_test(test_size),
		cmocka_unit_test(test_in_memory),   cmocka_unit_test(test_agrees_with_a_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
