/* Removal, the state directory, private and named workspaces, and what may be mounted. */
#include "scratch.h"

#include <dirent.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "workspace/policy.h"
#include "workspace/private.h"

static bool there(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static unsigned names_in(int dir)
{
	unsigned n = 0;
	DIR *d = fdopendir(open_dir_at(dir, "."));

	CHECK(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 2;
}

/* ---- removal ---- */

static void build_nasty(int dir)
{
	static const char *const names[] = { "-rf", "new\nline", "\xff\xfe", " ", "*" };

	CHECK(mkdirat(dir, "t", 0755) == 0);
	int t = open_dir_at(dir, "t");
	for (size_t i = 0; i < KS_COUNT(names); i++)
		put(t, names[i], "x");
	CHECK(mkfifoat(t, "fifo", 0) == 0);
	CHECK(symlinkat("../keep", t, "out") == 0 && symlinkat("../keep/file", t, "out-file") == 0);
	CHECK(mkdirat(t, "shut", 0755) == 0 && mkdirat(t, "shut/in", 0755) == 0);
	put(t, "shut/in/f", "x");
	put_mode(t, "shut/g", "x", 1, 0);
	CHECK(fchmodat(t, "shut/in", 0, 0) == 0 && fchmodat(t, "shut", 0, 0) == 0);
	CHECK(mkdirat(t, "ro", 0755) == 0 && mkdirat(t, "ro/sub", 0755) == 0);
	put_mode(t, "ro/sub/f", "x", 1, 0444);
	CHECK(fchmodat(t, "ro/sub", 0555, 0) == 0 && fchmodat(t, "ro", 0555, 0) == 0);
	CHECK(mkdirat(t, "empty-shut", 0) == 0);
	(void)close(dig(t, "d", 300));
	(void)close(t);
}

/* 5 names, fifo, 2 links, shut in f g, ro sub f, empty-shut, 300 d, t itself */
#define NASTY (5 + 1 + 2 + 4 + 3 + 1 + 300 + 1)

static void remove_nasty(struct scratch *s)
{
	struct ks_remove *r;
	struct ks_error err;
	unsigned steps = 1;
	int rc;

	become_user();
	CHECK(mkdirat(s->fd, "mine", 0755) == 0);
	int dir = open_dir_at(s->fd, "mine");
	CHECK(mkdirat(dir, "keep", 0755) == 0);
	put(dir, "keep/file", "kept");
	build_nasty(dir);
	CHECK(ks_remove_start(dir, "t", &r, &err) == 0);
	CHECK(!there(dir, "t")); /* its name is free at once */
	while ((rc = ks_remove_step(r, 0, &err)) == 0)
		steps++;
	CHECK(rc == 1 && steps > 10);
	CHECK(ks_remove_removed(r) == NASTY && ks_remove_left(r) == 0);
	CHECK(ks_remove_step(r, 0, &err) == 1);
	ks_remove_free(r);
	CHECK(names_in(dir) == 1 && there(dir, "keep/file"));
	/* The same inside a directory, and given up half-way: another removal finishes it. */
	build_nasty(dir);
	CHECK(ks_remove_start(dir, NULL, &r, &err) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(ks_remove_step(r, 0, &err) == 0);
	ks_remove_free(r);
	CHECK(ks_remove_start(dir, NULL, &r, &err) == 0);
	CHECK(run_remove(r, &err) == 1);
	ks_remove_free(r);
	CHECK(names_in(dir) == 0);
}

static void test_remove(void **unused)
{
	struct scratch s;

	(void)unused;
	scratch_open(&s);
	assert_int_equal(fchmod(s.fd, 0777), 0);
	assert_int_equal(in_child(remove_nasty, &s), 0);
	scratch_close(&s);
}

static void test_remove_shapes(void **unused)
{
	struct scratch s;
	struct ks_remove *r;
	struct ks_error err;
	char name[16];

	(void)unused;
	scratch_open(&s);
	/* 5,000 deep */
	assert_int_equal(mkdirat(s.fd, "deep", 0755), 0);
	int t = open_dir_at(s.fd, "deep");
	int bottom = dig(t, "d", 5000);
	put(bottom, "f", "x");
	(void)close(bottom);
	(void)close(t);
	assert_int_equal(ks_remove_start(s.fd, "deep", &r, &err), 0);
	assert_int_equal(run_remove(r, &err), 1);
	assert_int_equal(ks_remove_removed(r), 5002);
	ks_remove_free(r);
	/* wide: files, empty directories, full directories */
	assert_int_equal(mkdirat(s.fd, "wide", 0755), 0);
	t = open_dir_at(s.fd, "wide");
	for (int i = 0; i < 3000; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		if (i % 3 == 0) {
			put(t, name, "");
			continue;
		}
		assert_int_equal(mkdirat(t, name, 0755), 0);
		(void)snprintf(name, sizeof(name), "%d/f", i);
		if (i % 3 == 1)
			put(t, name, "");
	}
	(void)close(t);
	assert_int_equal(ks_remove_start(s.fd, "wide", &r, &err), 0);
	assert_int_equal(run_remove(r, &err), 1);
	assert_int_equal(ks_remove_removed(r), 4001);
	ks_remove_free(r);
	/* a file, nothing, and what is no name */
	put(s.fd, "f", "x");
	assert_int_equal(ks_remove_start(s.fd, "f", &r, &err), 0);
	assert_int_equal(run_remove(r, &err), 1);
	ks_remove_free(r);
	assert_int_equal(ks_remove_start(s.fd, "missing", &r, &err), 0);
	assert_int_equal(run_remove(r, &err), 1);
	ks_remove_free(r);
	const char *const bad[] = { "", ".", "..", "a/b", "/" };
	for (size_t i = 0; i < KS_COUNT(bad); i++)
		assert_int_equal(ks_remove_start(s.fd, bad[i], &r, &err), -1);
	assert_int_equal(names_in(s.fd), 0);
	ks_remove_free(NULL);
	scratch_close(&s);
}

static bool set_immutable(int dir, const char *name, bool on)
{
	long flags = on ? FS_IMMUTABLE_FL : 0; /* declared as a long, read as an int: ioctl_iflags(2) */
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	bool done = fd >= 0 && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;

	(void)close(fd);
	return done;
}

static void test_remove_leftovers(void **unused)
{
	struct scratch s;
	struct ks_remove *r;
	struct ks_error err;

	(void)unused;
	scratch_open(&s);
	assert_int_equal(mkdirat(s.fd, "t", 0755) | mkdirat(s.fd, "t/sub", 0755), 0);
	put(s.fd, "t/sub/stuck", "x");
	put(s.fd, "t/sub/goes", "x");
	put(s.fd, "t/goes", "x");
	if (!set_immutable(s.fd, "t/sub/stuck", true)) {
		scratch_close(&s);
		skip(); /* needs root, and a file system that can */
	}
	int held = openat(s.fd, "t/sub/stuck", O_RDONLY | O_CLOEXEC);
	assert_int_equal(ks_remove_start(s.fd, "t", &r, &err), 0);
	int rc = run_remove(r, &err);
	long off = 0;
	assert_int_equal(ioctl(held, FS_IOC_SETFLAGS, &off), 0);
	(void)close(held);
	assert_int_equal(rc, -1);
	assert_int_equal(ks_remove_left(r), 1);
	assert_int_equal(ks_remove_removed(r), 3); /* two files and t */
	assert_int_equal(err.reason, KS_E_IO);
	assert_int_equal(err.sys_errno, EPERM);
	assert_string_equal(err.text, "1 files or directories could not be removed, \"stuck\" first: Operation not permitted");
	ks_remove_free(r);
	scratch_close(&s);
}

static void remove_mount(struct scratch *s)
{
	struct ks_remove *r;
	struct ks_error err;
	char path[PATH_MAX + 16];

	CHECK(mkdirat(s->fd, "t", 0755) == 0 && mkdirat(s->fd, "t/m", 0755) == 0);
	put(s->fd, "t/f", "x");
	(void)snprintf(path, sizeof(path), "%s/t/m", s->path);
	if (!own_mounts() || mount("none", path, "ramfs", 0, NULL) < 0)
		_exit(77);
	int m = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	put(m, "precious", "x");
	int root = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(ks_remove_start(root, NULL, &r, &err) == 0);
	CHECK(run_remove(r, &err) == -1 && ks_remove_left(r) == 1 && err.sys_errno == EBUSY);
	ks_remove_free(r);
	CHECK(there(m, "precious"));
}

static void test_remove_mount(void **unused)
{
	(void)unused;
	scratch_child(remove_mount);
}

static void swap_dir_and_link(struct scratch *s)
{
	for (unsigned i = 0; i < 20000; i++) {
		/* Fails once the removal has been here, then makes new ones. */
		if (renameat2(s->fd, "t/dir", s->fd, "t/link", RENAME_EXCHANGE) == 0)
			continue;
		(void)mkdirat(s->fd, "t", 0755);
		(void)mkdirat(s->fd, "t/dir", 0755);
		(void)mkdirat(s->fd, "t/dir/sub", 0755);
		if (symlinkat("../keep", s->fd, "t/link") < 0)
			continue;
	}
}

static void test_remove_race(void **unused)
{
	struct scratch s;
	struct ks_remove *r;
	struct ks_error err;
	unsigned long removed = 0, rounds = 0;
	int status;

	(void)unused;
	scratch_open(&s);
	assert_int_equal(mkdirat(s.fd, "keep", 0755) | mkdirat(s.fd, "keep/sub", 0755), 0);
	put(s.fd, "keep/file", "kept");
	put(s.fd, "keep/sub/file", "kept");
	pid_t pid = fork();
	if (pid == 0) {
		swap_dir_and_link(&s);
		_exit(0);
	}
	do {
		assert_int_equal(ks_remove_start(s.fd, "t", &r, &err), 0);
		(void)run_remove(r, &err);
		removed += ks_remove_removed(r);
		ks_remove_free(r);
		rounds++;
	} while (waitpid(pid, &status, WNOHANG) == 0);
	assert_int_equal(status, 0);
	print_message("20000 swaps, %lu removals of %lu entries\n", rounds, removed);
	assert_true(rounds > 10 && removed > rounds);
	assert_true(there(s.fd, "keep/file") && there(s.fd, "keep/sub/file"));
	int keep = open_dir_at(s.fd, "keep");
	assert_int_equal(names_in(keep), 2);
	(void)close(keep);
	scratch_close(&s);
}

/* ---- the state directory ---- */

static struct ks_state *open_state(void)
{
	struct ks_state *state;
	struct ks_error err;

	if (ks_state_open(&state, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		abort();
	}
	return state;
}

static void close_state(struct ks_state *state)
{
	struct ks_error err;
	int rc;

	while ((rc = ks_state_close_step(state, 0, &err)) == 0)
		;
	assert_int_equal(rc, 1);
	ks_state_free(state);
}

static int sweep(struct ks_state *state)
{
	struct ks_error err;
	int rc;

	while ((rc = ks_state_sweep(state, 0, &err)) == 0)
		;
	return rc;
}

/* A scratch directory as $KERN_STATE_DIR, and the name of what will be made in it. */
static void state_base(struct scratch *s, char parent[64])
{
	scratch_open(s);
	assert_int_equal(setenv("KERN_STATE_DIR", s->path, 1), 0);
	(void)snprintf(parent, 64, "kern-sidecar-%u", geteuid());
}

static void test_state(void **unused)
{
	struct scratch s;
	struct stat st;
	char parent[64], wanted[PATH_MAX + 80];

	(void)unused;
	state_base(&s, parent);
	struct ks_state *state = open_state();
	(void)snprintf(wanted, sizeof(wanted), "%s/%s/", s.path, parent);
	assert_memory_equal(ks_state_path(state), wanted, strlen(wanted));
	const char *name = ks_state_path(state) + strlen(wanted);
	assert_int_equal(strlen(name), 8);
	assert_int_equal(strspn(name, "0123456789abcdef"), 8);
	assert_int_equal(fstatat(s.fd, parent, &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	dev_t dev;
	ino_t ino;
	ks_state_identity(state, &dev, &ino);
	assert_true(dev == st.st_dev && ino == st.st_ino);
	assert_int_equal(lstat(ks_state_path(state), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_true(fcntl(ks_state_fd(state), F_GETFD) & FD_CLOEXEC);

	struct ks_state *other = open_state();
	assert_string_not_equal(ks_state_path(state), ks_state_path(other));
	assert_int_equal(sweep(other), 1); /* the living are left alone */
	assert_int_equal(lstat(ks_state_path(state), &st), 0);
	close_state(other);
	close_state(state);
	int p = open_dir_at(s.fd, parent);
	assert_int_equal(names_in(p), 0);
	(void)close(p);
	scratch_close(&s);
}

static void test_private_workspaces(void **unused)
{
	struct scratch s;
	struct stat st;
	struct ks_error err;
	struct ks_remove *r;
	char parent[64];
	char *one, *two;
	int fd1, fd2;
	uid_t uid = geteuid() == 0 ? SCRATCH_UID : geteuid();
	gid_t gid = geteuid() == 0 ? SCRATCH_UID + 1 : getegid();

	(void)unused;
	state_base(&s, parent);
	struct ks_state *state = open_state();
	assert_int_equal(ks_private_workspace_new(state, uid, gid, &one, &fd1, &err), 0);
	assert_int_equal(ks_private_workspace_new(state, uid, gid, &two, &fd2, &err), 0);
	size_t len = strlen(ks_state_path(state));
	assert_memory_equal(one, ks_state_path(state), len);
	assert_string_equal(one + len, "/ws-1");
	assert_string_equal(two + len, "/ws-2");
	assert_int_equal(fstat(fd1, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
	put(fd1, "f", "x");
	assert_int_equal(mkdirat(fd1, "d", 0), 0);
	assert_int_equal(ks_private_workspace_remove(state, one, &r, &err), 0);
	assert_int_equal(run_remove(r, &err), 1);
	assert_int_equal(ks_remove_removed(r), 3);
	ks_remove_free(r);
	assert_int_equal(access(one, F_OK), -1);
	assert_int_equal(access(two, F_OK), 0);
	assert_int_equal(ks_private_workspace_remove(state, s.path, &r, &err), -1);
	assert_int_equal(ks_private_workspace_remove(state, "/etc", &r, &err), -1);
	put(fd2, "left", "x");
	close_state(state); /* takes ws-2 with it */
	assert_int_equal(access(two, F_OK), -1);
	(void)close(fd1);
	(void)close(fd2);
	free(one);
	free(two);
	scratch_close(&s);
}

static void die_with_workspace(struct scratch *s)
{
	struct ks_error err;
	char *path;
	int fd;
	struct ks_state *state = open_state();

	(void)s;
	CHECK(ks_private_workspace_new(state, geteuid(), getegid(), &path, &fd, &err) == 0);
	build_nasty(fd);
	(void)raise(SIGKILL);
}

static void test_sweep(void **unused)
{
	struct scratch s;
	char parent[64];

	(void)unused;
	state_base(&s, parent);
	for (int i = 0; i < 3; i++)
		assert_int_equal(in_child(die_with_workspace, &s), 128 + SIGKILL);
	struct ks_state *state = open_state();
	int p = open_dir_at(s.fd, parent);
	assert_int_equal(mkdirat(p, "notours!", 0755), 0); /* no name of ours */
	assert_int_equal(symlinkat("/etc", p, "0123abcd"), 0); /* one, but a link */
	assert_int_equal(names_in(p), 6);
	assert_int_equal(sweep(state), 1);
	assert_int_equal(names_in(p), 3);
	assert_true(there(p, "notours!") && there(p, "0123abcd"));
	assert_int_equal(sweep(state), 1); /* stays done */
	close_state(state);
	(void)close(p);
	scratch_close(&s);
}

static void expect_state_error(enum ks_reason reason, const char *text)
{
	struct ks_state *state;
	struct ks_error err;

	CHECK(ks_state_open(&state, &err) == -1);
	CHECK(err.reason == reason);
	CHECK(strstr(err.text, text));
	CHECK(strstr(err.hint, "KERN_STATE_DIR") || strstr(err.hint, "0700") || strstr(err.hint, "existing directory"));
}

static void as_user_in_planted(struct scratch *s)
{
	char name[64];

	/* root made the directory that the user wants */
	(void)snprintf(name, sizeof(name), "kern-sidecar-%u", SCRATCH_UID);
	CHECK(mkdirat(s->fd, name, 0700) == 0 && fchmod(s->fd, 01777) == 0);
	become_user();
	expect_state_error(KS_E_PERMISSION_DENIED, "");
}

static void test_planted_state(void **unused)
{
	struct scratch s;
	char parent[64];

	(void)unused;
	state_base(&s, parent);
	assert_int_equal(symlinkat("/tmp", s.fd, parent), 0);
	expect_state_error(KS_E_NOT_A_DIRECTORY, "is a link or a file that somebody put there");
	assert_int_equal(unlinkat(s.fd, parent, 0), 0);
	put(s.fd, parent, "x");
	expect_state_error(KS_E_NOT_A_DIRECTORY, "is a link or a file that somebody put there");
	assert_int_equal(unlinkat(s.fd, parent, 0), 0);
	assert_int_equal(mkdirat(s.fd, parent, 0700) | fchmodat(s.fd, parent, 0750, 0), 0);
	expect_state_error(KS_E_PERMISSION_DENIED, "is open to others (mode 0750)");
	assert_int_equal(fchmodat(s.fd, parent, 0700, 0), 0);
	if (geteuid() == 0) {
		assert_int_equal(fchownat(s.fd, parent, SCRATCH_UID, SCRATCH_UID, 0), 0);
		expect_state_error(KS_E_PERMISSION_DENIED, "belongs to user 54321, not to user 0 who runs the sidecar");
		assert_int_equal(in_child(as_user_in_planted, &s), 0);
	}
	assert_int_equal(fchmod(s.fd, 0777), 0);
	expect_state_error(KS_E_PERMISSION_DENIED, "it has no sticky bit");
	(void)setenv("KERN_STATE_DIR", "relative", 1);
	expect_state_error(KS_E_INVALID_PATH, "not an absolute path");
	(void)setenv("KERN_STATE_DIR", "/nonexistent/dir", 1);
	expect_state_error(KS_E_NOT_FOUND, "/nonexistent/dir");
	scratch_close(&s);
}

/* $TMPDIR when it will do, else the next. */
static void base_choice(struct scratch *s)
{
	char path[PATH_MAX + 16];

	CHECK(unsetenv("KERN_STATE_DIR") == 0 && setenv("TMPDIR", s->path, 1) == 0);
	struct ks_state *state = open_state();
	CHECK(strncmp(ks_state_path(state), s->path, strlen(s->path)) == 0);
	close_state(state);
	CHECK(setenv("TMPDIR", "/nonexistent", 1) == 0);
	state = open_state();
	CHECK(strncmp(ks_state_path(state), "/tmp/kern-sidecar-", 18) == 0);
	close_state(state);
	CHECK(mkdirat(s->fd, "noexec", 0755) == 0 && mkdirat(s->fd, "small", 0755) == 0);
	if (!own_mounts())
		_exit(77);
	static const struct {
		const char *name, *options;
		unsigned long flags;
	} mounts[] = { { "noexec", "size=65m", MS_NOEXEC }, { "small", "size=63m", 0 } };
	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", s->path, mounts[i].name);
		CHECK(mount("none", path, "tmpfs", mounts[i].flags, mounts[i].options) == 0);
		CHECK(setenv("TMPDIR", path, 1) == 0);
		state = open_state();
		CHECK(strncmp(ks_state_path(state), path, strlen(path)) != 0);
		close_state(state);
		CHECK(setenv("KERN_STATE_DIR", path, 1) == 0); /* said so: taken as it is */
		state = open_state();
		CHECK(strncmp(ks_state_path(state), path, strlen(path)) == 0);
		close_state(state);
		CHECK(unsetenv("KERN_STATE_DIR") == 0);
	}
	CHECK(mount("none", path, "tmpfs", 0, "size=65m") == 0);
	state = open_state();
	CHECK(strncmp(ks_state_path(state), path, strlen(path)) == 0);
	close_state(state);
}

static void test_base_choice(void **unused)
{
	(void)unused;
	scratch_child(base_choice);
}

/* ---- named workspaces and the rules ---- */

static void test_named(void **unused)
{
	struct scratch s;
	struct stat st;
	struct ks_error err;
	char path[PATH_MAX + 64], wanted[PATH_MAX + 64];
	char *canonical;
	int fd;
	static const struct {
		const char *name;
		enum ks_reason reason;
	} bad[] = {
		{ "no/such", KS_E_NOT_FOUND },	    { "file", KS_E_NOT_A_DIRECTORY }, { "file/x", KS_E_NOT_A_DIRECTORY },
		{ "dangling", KS_E_NOT_A_DIRECTORY }, { "loop", KS_E_INVALID_PATH },    { "no/..", KS_E_NOT_FOUND },
		{ "no/.", KS_E_NOT_FOUND },	    { "to-etc", KS_E_MOUNT_REFUSED },   { "to-etc/ks-test-made", KS_E_MOUNT_REFUSED },
		{ ".ssh", KS_E_MOUNT_REFUSED },	    { ".ssh/keys", KS_E_NOT_FOUND },   { "fifo", KS_E_NOT_A_DIRECTORY },
	};

	(void)unused;
	scratch_open(&s);
	assert_int_equal(mkdirat(s.fd, "real", 0711), 0);
	assert_int_equal(symlinkat("real", s.fd, "link") | symlinkat("gone", s.fd, "dangling") |
				 symlinkat("loop", s.fd, "loop") | symlinkat("/etc", s.fd, "to-etc") | mkfifoat(s.fd, "fifo", 0600), 0);
	put(s.fd, "file", "x");
	static const struct {
		const char *name, *canonical;
	} good[] = { { "real", "real" }, { "link", "real" }, { "link/", "real" }, { "link/new", "real/new" },
		     { "real/../made//", "made" }, { "made/.", "made" } };
	for (size_t i = 0; i < KS_COUNT(good); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", s.path, good[i].name);
		(void)snprintf(wanted, sizeof(wanted), "%s/%s", s.path, good[i].canonical);
		assert_int_equal(ks_workspace_open(path, NULL, &canonical, &fd, &err), 0);
		assert_string_equal(canonical, wanted);
		struct stat same;
		assert_int_equal(stat(wanted, &st) | fstat(fd, &same), 0);
		assert_true(st.st_ino == same.st_ino && st.st_dev == same.st_dev);
		free(canonical);
		(void)close(fd);
	}
	assert_int_equal(fstatat(s.fd, "made", &st, AT_SYMLINK_NOFOLLOW), 0);
	mode_t mask = umask(0);
	(void)umask(mask);
	assert_int_equal(st.st_mode, S_IFDIR | (0755 & ~mask));
	for (size_t i = 0; i < KS_COUNT(bad); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", s.path, bad[i].name);
		memset(&err, 0, sizeof(err));
		assert_int_equal(ks_workspace_open(path, NULL, &canonical, &fd, &err), -1);
		if (err.reason != bad[i].reason)
			fail_msg("%s: %s", bad[i].name, err.text);
		assert_string_equal(err.pointer, "/workspace");
		assert_true(err.hint[0] != '\0');
	}
	assert_int_equal(access("/etc/ks-test-made", F_OK), -1); /* nothing is made in a refused place */
	assert_false(there(s.fd, ".ssh"));
	assert_int_equal(ks_workspace_open("relative", NULL, &canonical, &fd, &err), -1);
	assert_int_equal(err.reason, KS_E_INVALID_VALUE);
	memset(path, 'x', PATH_MAX);
	path[0] = '/';
	path[PATH_MAX] = '\0';
	assert_int_equal(ks_workspace_open(path, NULL, &canonical, &fd, &err), -1);
	assert_int_equal(err.reason, KS_E_INVALID_VALUE);
	scratch_close(&s);
}

static void test_source_names(void **unused)
{
	struct ks_error err;
	static const char *const refused[] = {
		"/", "/etc", "/etc/ssl/certs", "/root", "/home", "/boot", "/boot/efi", "/proc", "/proc/1/root", "/sys",
		"/sys/fs/cgroup", "/dev", "/dev/shm/x", "/run", "/var/run", "/run/user", "/run/docker.sock",
		"/var/run/docker.sock", "/run/podman/podman.sock", "/run/containerd", "/run/secrets/token", "/run/dbus",
		"/var", "/var/lib", "/var/lib/docker/volumes/x",
		"/opt/me/.ssh", "/srv/.ssh/id", "/srv/p/.aws", "/srv/.gnupg", "/srv/.kube/config", "/srv/.docker", "/srv/.azure",
		"/srv/.oci", "/srv/.terraform.d", "/srv/.password-store/x", "/srv/.netrc", "/srv/.git-credentials", "/srv/.pypirc",
		"/srv/.npmrc", "/srv/.databrickscfg", "/srv/.boto", "/srv/.s3cfg", "/srv/.rclone.conf", "/srv/.config/gcloud",
		"/srv/.config/gh/hosts.yml", "/srv/.config/doctl", "/srv/.config/rclone",
		"relative", "", "/srv/", "/srv//x", "/srv/./x", "/srv/../etc", "/..", "//",
	};
	static const char *const fine[] = {
		"/root/project", "/home/someone/project", "/opt/me/project", "/opt/other", "/srv", "/srv/etc", "/etcetera",
		"/device", "/var/lib/project", "/var/tmp", "/run/user/1000/x", "/run/project", "/srv/.config", "/srv/.config/x/gh",
		"/srv/gh", "/srv/.sshx", "/srv/x.ssh", "/srv/.cargo", "/srv/.m2", "/mnt/c/Users/me", "/srv/..x", "/srv/...",
	};

	(void)unused;
	char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
	struct scratch s;
	char me[PATH_MAX + 8];
	scratch_open(&s);
	(void)snprintf(me, sizeof(me), "%s/me", s.path);
	assert_int_equal(mkdir(me, 0755), 0);
	(void)setenv("HOME", me, 1);
	(void)unsetenv("XDG_RUNTIME_DIR");
	for (size_t i = 0; i < KS_COUNT(refused); i++) {
		memset(&err, 0, sizeof(err));
		if (ks_source_check(-1, refused[i], NULL, &err) != -1)
			fail_msg("%s is let through", refused[i]);
		assert_int_equal(err.reason, KS_E_MOUNT_REFUSED);
	}
	for (size_t i = 0; i < KS_COUNT(fine); i++)
		if (ks_source_check(-1, fine[i], NULL, &err) != 0)
			fail_msg("%s: %s", fine[i], err.text);
	/* $HOME itself and what is above it, not what is in it */
	assert_int_equal(ks_source_check(-1, me, NULL, &err), -1);
	assert_non_null(strstr(err.text, "it is $HOME"));
	assert_int_equal(ks_source_check(-1, s.path, NULL, &err), -1);
	assert_non_null(strstr(err.text, "it contains"));
	(void)strcat(me, "/p");
	assert_int_equal(ks_source_check(-1, me, NULL, &err), 0);
	if (home)
		(void)setenv("HOME", home, 1);
	else
		(void)unsetenv("HOME");
	free(home);
	scratch_close(&s);
}

static void bind_alias(struct scratch *s)
{
	struct ks_error err;
	char path[PATH_MAX + 8];

	CHECK(mkdirat(s->fd, "alias", 0755) == 0);
	(void)snprintf(path, sizeof(path), "%s/alias", s->path);
	if (!own_mounts() || mount("/etc", path, "none", MS_BIND | MS_REC, NULL) < 0)
		_exit(77);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0 && ks_source_check(-1, path, NULL, &err) == 0);
	CHECK(ks_source_check(fd, path, NULL, &err) == -1 && err.reason == KS_E_MOUNT_REFUSED);
}

static void test_source_objects(void **unused)
{
	struct scratch s;
	struct ks_error err;
	char parent[64], path[PATH_MAX + 128];
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	(void)unused;
	state_base(&s, parent);
	(void)snprintf(path, sizeof(path), "%s/x", s.path);
	put(s.fd, "file", "x");
	(void)mkfifoat(s.fd, "fifo", 0600);
	int sock = socket(AF_UNIX, SOCK_STREAM, 0);
	(void)snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d/sock", s.fd);
	assert_int_equal(bind(sock, (struct sockaddr *)&un, sizeof(un)), 0);
	static const struct {
		const char *name;
		const char *why; /* NULL: fine */
	} kinds[] = { { ".", NULL }, { "file", NULL }, { "fifo", "neither a directory nor" }, { "sock", "it is a socket" } };
	for (size_t i = 0; i < KS_COUNT(kinds); i++) {
		int fd = openat(s.fd, kinds[i].name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		assert_int_equal(ks_source_check(fd, path, NULL, &err), kinds[i].why ? -1 : 0);
		if (kinds[i].why)
			assert_non_null(strstr(err.text, kinds[i].why));
		(void)close(fd);
	}
	(void)close(sock);
	int rc = in_child(bind_alias, &s);
	assert_true(rc == 0 || rc == 77);

	/* our own state, what is in it, and what contains it; a neighbour is fine */
	struct ks_state *state = open_state();
	assert_int_equal(ks_source_check(-1, ks_state_path(state), state, &err), -1);
	assert_non_null(strstr(err.text, "it is the sidecar's own state"));
	(void)snprintf(path, sizeof(path), "%s/ws-1", ks_state_path(state));
	assert_int_equal(ks_source_check(-1, path, state, &err), -1);
	assert_int_equal(ks_source_check(-1, s.path, state, &err), -1);
	assert_non_null(strstr(err.text, "it contains the sidecar's own state"));
	(void)snprintf(path, sizeof(path), "%s/neighbour", s.path);
	assert_int_equal(ks_source_check(-1, path, state, &err), 0);
	int fd = openat(s.fd, parent, O_PATH | O_CLOEXEC);
	assert_int_equal(ks_source_check(fd, path, state, &err), -1); /* by identity */
	(void)close(fd);
	close_state(state);
	scratch_close(&s);
}

static void test_targets(void **unused)
{
	struct ks_error err;
	char name[PATH_MAX + 1];
	static const char *const refused[] = {
		"", "/", "workspace", "/a/", "/a//b", "/./a", "/a/..", "/../a", "//", "/proc", "/proc/1", "/sys", "/sys/fs",
		"/dev", "/dev/shm", "/run", "/run/kern", "/run/kern/x", "/run/code", "/run/code/x",
	};
	static const char *const fine[] = {
		"/workspace", "/a/b/c", "/home/me/project", "/run/x", "/run/kernel", "/processes", "/device", "/tmp", "/usr/share/x",
		"/...", "/..a", "/a b", "/\xff",
	};

	(void)unused;
	for (size_t i = 0; i < KS_COUNT(refused); i++) {
		memset(&err, 0, sizeof(err));
		if (ks_target_check(refused[i], &err) != -1)
			fail_msg("%s is let through", refused[i]);
		assert_int_equal(err.reason, KS_E_MOUNT_REFUSED);
		assert_true(err.hint[0] != '\0');
	}
	for (size_t i = 0; i < KS_COUNT(fine); i++)
		if (ks_target_check(fine[i], &err) != 0)
			fail_msg("%s: %s", fine[i], err.text);
	/* components of 255 and 256 bytes; paths of 4,095 and 4,096 */
	memset(name, 'x', sizeof(name));
	name[0] = '/';
	name[257] = '\0';
	assert_int_equal(ks_target_check(name, &err), -1);
	name[256] = '\0';
	assert_int_equal(ks_target_check(name, &err), 0);
	for (size_t len = PATH_MAX - 2; len <= PATH_MAX; len++) {
		memset(name, 'x', len);
		for (size_t i = 0; i < len; i += 200)
			name[i] = '/';
		name[len] = '\0';
		assert_int_equal(ks_target_check(name, &err), len < PATH_MAX ? 0 : -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_remove),		  cmocka_unit_test(test_remove_shapes),
		cmocka_unit_test(test_remove_leftovers),  cmocka_unit_test(test_remove_mount),
		cmocka_unit_test(test_remove_race),	  cmocka_unit_test(test_state),
		cmocka_unit_test(test_private_workspaces), cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_planted_state),	  cmocka_unit_test(test_base_choice),
		cmocka_unit_test(test_named),		  cmocka_unit_test(test_source_names),
		cmocka_unit_test(test_source_objects),	  cmocka_unit_test(test_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
