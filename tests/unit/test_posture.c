/* test_posture.c: from a session's fields to the plan of its boxes: images with every oddity, clamps, users and their
 * ids. */
#include "scratch.h"

#include <json-c/json_object.h>

#include "box/engine_impl.h"
#include "proto/scan.h"
#include "proto/tables.h"
#include "session/identity.h"
#include "session/mounts.h"
#include "session/posture.h"

#define ETC "template file    /etc/passwd 140 bytes\n"     \
	    "template file    /etc/group 43 bytes\n"       \
	    "template file    /etc/hosts 42 bytes\n"       \
	    "template file    /etc/hostname 8 bytes\n"     \
	    "template file    /etc/resolv.conf 0 bytes\n"  \
	    "template file    /etc/nsswitch.conf 44 bytes\n" \
	    "template file    /etc/machine-id 33 bytes\n"

static struct scratch scratch;
static struct ks_session_params params;

static int set_up(void **state)
{
	(void)state;
	scratch_open(&scratch);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	scratch_close(&scratch);
	return 0;
}

static void decode(const char *json)
{
	struct ks_error err;
	struct json_object *object = ks_json_parse(json, strlen(json), &err);

	assert_non_null(object);
	assert_int_equal(ks_decode(&ks_session_params, object, &params, &err), 0);
	json_object_put(object);
}

/* The printed plan of a session in the scratch directory's image, with further fields. Free it. */
static char *plan_text(const char *fields, struct ks_error *err)
{
	struct ks_buf whole = { 0 }, out = { 0 };

	ks_buf_printf(&whole, "{\"image\":\"dir:%s\"%s", scratch.path, fields);
	ks_buf_char(&whole, '\0');
	decode(whole.data);
	ks_buf_free(&whole);
	const int rc = ks_posture_print(&params, &out, err);
	ks_params_free(&ks_session_params, &params);
	ks_buf_char(&out, '\0');
	if (rc < 0)
		ks_buf_free(&out);
	return out.data;
}

/* What the image brings, between our own directories and our own /dev; @ in `want` is the scratch directory. */
static void check_image(const char *want)
{
	static const char first[] = "template dir     /run/code mode=755\n", last[] = "template bind    /dev/null";
	struct ks_error err;
	char *text = plan_text("}", &err), wanted[8192];
	size_t at = 0;

	assert_non_null(text);
	char *from = strstr(text, first), *to = strstr(text, last);
	assert_true(from && to);
	from += strlen(first);
	*to = '\0';
	for (const char *c = want; *c; c++) {
		if (*c == '@')
			at += (size_t)snprintf(wanted + at, sizeof(wanted) - at, "%s", scratch.path);
		else
			wanted[at++] = *c;
	}
	wanted[at] = '\0';
	assert_string_equal(from, wanted);
	free(text);
}

static void make_dirs(const char *const *names)
{
	for (; *names; names++)
		assert_int_equal(mkdirat(scratch.fd, *names, 0755), 0);
}

/* ---- images ---- */

static void test_smallest_image(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", NULL });
	check_image("template bind    /usr <- @/usr ro\n" ETC);
}

static void test_merged_usr(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", NULL });
	assert_int_equal(symlinkat("usr/bin", scratch.fd, "bin"), 0);
	assert_int_equal(symlinkat("/usr/lib", scratch.fd, "lib"), 0);
	assert_int_equal(symlinkat("../../../../etc/shadow", scratch.fd, "zz"), 0);
	assert_int_equal(symlinkat("nowhere", scratch.fd, "sbin"), 0);
	check_image("template symlink /bin -> usr/bin\n"
		    "template symlink /lib -> /usr/lib\n" /* links are followed in the box only */
		    "template symlink /sbin -> nowhere\n"
		    "template bind    /usr <- @/usr ro\n"
		    "template symlink /zz -> ../../../../etc/shadow\n" ETC);
}

/* Ours stay ours, whatever the image has there. */
static void test_names_of_ours(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "bin", "dev", "proc", "sys", "tmp", "home", "root", "mnt", "media", NULL });
	assert_int_equal(symlinkat("/", scratch.fd, "run"), 0);
	put(scratch.fd, "workspace", "a file");
	check_image("template bind    /bin <- @/bin ro\n" ETC);
}

static void test_extra_names(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", "opt", "home2", "\xff\xfe", "a b", NULL });
	put(scratch.fd, ".dockerenv", "");
	put_mode(scratch.fd, "secret", "x", 1, 0000);
	/* what is neither file, directory nor link is not part of a root file system's top */
	assert_int_equal(mkfifoat(scratch.fd, "fifo", 0600), 0);
	assert_int_equal(mknodat(scratch.fd, "sock", S_IFSOCK | 0600, 0), 0);
	check_image("template bind    /.dockerenv <- @/.dockerenv ro\n"
		    "template bind    /a b <- @/a b ro\n"
		    "template bind    /home2 <- @/home2 ro\n"
		    "template bind    /opt <- @/opt ro\n"
		    "template bind    /secret <- @/secret ro\n"
		    "template bind    /usr <- @/usr ro\n"
		    "template bind    /\xff\xfe <- @/\xff\xfe ro\n" ETC);
}

/* ---- its /etc ---- */

static void test_etc_without_ours(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", "etc", NULL });
	check_image("template bind    /etc <- @/etc ro\n"
		    "template bind    /usr <- @/usr ro\n");
}

/* Regular files are covered; a link, a directory and what is missing stay as they are. */
static void test_etc_with_some(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", "etc", "etc/hosts", NULL });
	put(scratch.fd, "etc/passwd", "root:x:0:0::/root:/bin/sh\n");
	put(scratch.fd, "etc/machine-id", "");
	put(scratch.fd, "etc/shadow", "root:!:::::::\n");
	assert_int_equal(symlinkat("/run/systemd/resolv.conf", scratch.fd, "etc/resolv.conf"), 0);
	assert_int_equal(symlinkat("passwd", scratch.fd, "etc/group"), 0);
	check_image("template bind    /etc <- @/etc ro\n"
		    "template bind    /usr <- @/usr ro\n"
		    "template file    /run/kern/etc/passwd 140 bytes\n"
		    "template bind    /etc/passwd <- /run/kern/etc/passwd ro\n"
		    "template file    /run/kern/etc/machine-id 33 bytes\n"
		    "template bind    /etc/machine-id <- /run/kern/etc/machine-id ro\n");
}

static void check_bad_etc(void)
{
	struct ks_error err = { 0 };
	char want[320];

	assert_null(plan_text("}", &err));
	assert_int_equal(err.reason, KS_E_IMAGE_INVALID);
	assert_string_equal(err.pointer, "/image");
	(void)snprintf(want, sizeof(want), "the /etc of the image dir:%.200s is no directory", scratch.path);
	assert_string_equal(err.text, want);
}

/* Files of ours would be made behind the link. */
static void test_etc_is_a_link(void **state)
{
	(void)state;
	static const char *const targets[] = { "usr", "/tmp", "missing", "etc", "/proc/self/root/tmp" };

	make_dirs((const char *const[]){ "usr", NULL });
	for (size_t i = 0; i < KS_COUNT(targets); i++) {
		assert_int_equal(symlinkat(targets[i], scratch.fd, "etc"), 0);
		check_bad_etc();
		assert_int_equal(unlinkat(scratch.fd, "etc", 0), 0);
	}
	put(scratch.fd, "etc", "a file");
	check_bad_etc();
}

/* ---- how many names an image may have ---- */

static void fill(unsigned from, unsigned to)
{
	char name[16];

	for (unsigned i = from; i < to; i++) {
		(void)snprintf(name, sizeof(name), "d%u", i);
		assert_int_equal(symlinkat("usr", scratch.fd, name), 0);
	}
}

static void test_steps_cap(void **state)
{
	(void)state;
	struct ks_error err = { 0 };
	/* 7 directories, usr, 7 files, 6 devices, 5 links, 2 directories, the workspace, /tmp, and in the box 4 file
	 * systems, devpts, proc, 8 masks */
	const unsigned others = 7 + 1 + 7 + 6 + 5 + 2 + 1 + 1 + 4 + 1 + 1 + 8, most = 512 - others;

	make_dirs((const char *const[]){ "usr", NULL });
	fill(0, most);
	char *text = plan_text("}", &err);
	assert_non_null(text);
	free(text);
	fill(most, most + 1);
	assert_null(plan_text("}", &err));
	assert_int_equal(err.reason, KS_E_LIMIT);
	assert_string_equal(err.text, "a session may have at most 512 mounts and files");
}

/* ---- memory file systems ---- */

static void check_sizes(const char *fields, const char *want)
{
	struct ks_error err;
	char *text = plan_text(fields, &err), got[2048] = "";

	assert_non_null(text);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (strncmp(line, "box      tmpfs", 14) == 0 || strncmp(line, "box      bind", 13) == 0 ||
		    strstr(line, "(private)")) {
			strcat(got, line);
			strcat(got, "\n");
		}
	free(text);
	assert_string_equal(got, want);
}

#define TMP(size) "box      tmpfs   /tmp size=" #size " inodes=65536 mode=1777\n"
#define SHM(size) "box      tmpfs   /dev/shm size=" #size " inodes=16384 mode=1777\n"
#define HOME(size) "box      tmpfs   /home size=" #size " inodes=65536 mode=1777\n"
#define CODE "box      tmpfs   /run/code size=25165824 inodes=64 mode=1777\n"
#define DEFAULTS TMP(67108864) SHM(67108864) HOME(67108864) CODE
#define PLACE "template bind    /workspace <- (private) rw\n"

/* 64 MiB, but never more than half of what the box may hold. */
static void test_clamps(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", NULL });
	check_sizes("}", PLACE DEFAULTS);
	check_sizes(",\"memoryMb\":129}", PLACE DEFAULTS);
	check_sizes(",\"memoryMb\":128}", PLACE DEFAULTS);
	check_sizes(",\"memoryMb\":127}", PLACE TMP(66584576) SHM(66584576) HOME(66584576) CODE);
	check_sizes(",\"memoryMb\":16}", PLACE TMP(8388608) SHM(8388608) HOME(8388608) CODE);
	check_sizes(",\"memoryMb\":4}", PLACE TMP(2097152) SHM(2097152) HOME(2097152) CODE);
}

static void test_sizes_of_a_request(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", NULL });
	check_sizes(",\"memoryMb\":64,\"shmSize\":\"64m\"}", PLACE TMP(33554432) SHM(67108864) HOME(33554432) CODE);
	check_sizes(",\"tmpfs\":{\"/tmp\":\"4k\"}}", PLACE TMP(4096) SHM(67108864) HOME(67108864) CODE);
	check_sizes(",\"tmpfs\":{}}", PLACE SHM(67108864) HOME(67108864) CODE);
}

static void check_refused_size(const char *fields, const char *pointer)
{
	struct ks_error err = { 0 };

	assert_null(plan_text(fields, &err));
	assert_int_equal(err.reason, KS_E_MOUNT_REFUSED);
	assert_string_equal(err.pointer, pointer);
	assert_string_equal(err.text, "the size must be from 4k to the memory cap of 64M, because what lies in "
				      "it is memory");
}

static void test_sizes_that_are_refused(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", NULL });
	check_refused_size(",\"memoryMb\":64,\"shmSize\":\"65537k\"}", "/shmSize");
	check_refused_size(",\"memoryMb\":64,\"shmSize\":\"3k\"}", "/shmSize");
	check_refused_size(",\"memoryMb\":64,\"shmSize\":\"17179869184g\"}", "/shmSize"); /* 2^64 */
	check_refused_size(",\"memoryMb\":64,\"tmpfs\":{\"/x\":\"1g\"}}", "/tmpfs");
}

/* A workspace below one of the box's own file systems is mounted twice: hidden by the template, in its place by the
 * box. */
static void test_covered_workspace(void **state)
{
	(void)state;
	static const char *const covered[] = { "/tmp/w", "/home/me", "/home/sandbox/a/b", "/dev/shm/w" };
	static const char *const open_ones[] = { "/tmpw", "/homes/w", "/opt/tmp/w" };
	char fields[128], want[1024];

	make_dirs((const char *const[]){ "usr", NULL });
	for (size_t i = 0; i < KS_COUNT(covered); i++) {
		(void)snprintf(fields, sizeof(fields), ",\"workspaceTarget\":\"%s\"}", covered[i]);
		(void)snprintf(want, sizeof(want),
			       "template bind    /run/kern/mounts/0 <- (private) rw\n" DEFAULTS
			       "box      bind    %s <- /run/kern/mounts/0 rw\n", covered[i]);
		check_sizes(fields, want);
	}
	for (size_t i = 0; i < KS_COUNT(open_ones); i++) {
		(void)snprintf(fields, sizeof(fields), ",\"workspaceTarget\":\"%s\"}", open_ones[i]);
		(void)snprintf(want, sizeof(want), "template bind    %s <- (private) rw\n" DEFAULTS, open_ones[i]);
		check_sizes(fields, want);
	}
}

/* ---- users ---- */

/* The text of a file of ours over the image's, for `user`. */
static void check_file(const char *user, const char *path, const char *want)
{
	struct sock_filter code = { 0x06, 0, 0, 0x7fff0000 }; /* any program: compiling the real one asks the kernel */
	struct ks_engine engine = { .filters[0] = { { &code, 1 }, { &code, 1 } } };
	struct ks_core core = { .engine = &engine };
	struct ks_session session = { .core = &core, .limits = { .memory_bytes = 1 << 30, .enforce = true } };
	struct ks_plan *plan = malloc(sizeof(*plan));
	struct ks_error err;
	char json[PATH_MAX + 100], at[64];
	bool seen = false;

	assert_non_null(plan);
	(void)snprintf(json, sizeof(json), "{\"image\":\"dir:%s\",\"user\":\"%s\"}", scratch.path, user);
	decode(json);
	session.workspace_target = params.workspace_target;
	session.workspace = scratch.path;
	session.workspace_fd = scratch.fd;
	assert_int_equal(ks_image_open(params.image, &session.image, &err), 0);
	assert_int_equal(ks_session_take_identity(&session, &params, &err), 0);
	assert_int_equal(ks_session_take_mounts(&session, &params, &err), 0);
	assert_int_equal(ks_posture_plan(&session, plan, &err), 0);
	(void)snprintf(at, sizeof(at), "/run/kern%s", path);
	for (uint32_t i = 0; i < plan->head.step_count; i++) {
		const struct ks_step *step = &plan->steps[i];
		if (step->kind != KS_STEP_FILE || strcmp(plan->strings.data + step->target, at) != 0)
			continue;
		assert_string_equal(plan->strings.data + step->text, want);
		assert_int_equal(step->text_len, strlen(want));
		seen = true;
	}
	assert_true(seen);
	ks_plan_free(plan);
	free(plan);
	ks_session_free_mounts(&session);
	ks_image_free(session.image);
	ks_params_free(&ks_session_params, &params);
}

#define ROOT "root:x:0:0:root:/home/sandbox:/bin/sh\n"
#define SANDBOX "sandbox:x:1000:1000::/home/sandbox:/bin/sh\n"
#define NOBODY "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"

static void test_users(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", "etc", NULL });
	put(scratch.fd, "etc/passwd", "root:x:0:0::/root:/bin/sh\npostgres:x:70:71::/var:/bin/sh\n"
				      "web:x:33:1000::/:/bin/sh\n");
	put(scratch.fd, "etc/group", "root:x:0:\n");
	check_file("sandbox", "/etc/passwd", ROOT SANDBOX NOBODY);
	check_file("1000", "/etc/passwd", ROOT SANDBOX NOBODY);
	check_file("root", "/etc/passwd", ROOT SANDBOX NOBODY);
	check_file("0", "/etc/passwd", ROOT SANDBOX NOBODY);
	check_file("65535", "/etc/passwd", ROOT SANDBOX "user65535:x:65535:65535::/home/sandbox:/bin/sh\n" NOBODY);
	check_file("postgres", "/etc/passwd", ROOT SANDBOX "postgres:x:70:71::/home/sandbox:/bin/sh\n" NOBODY);
	check_file("postgres", "/etc/group", "root:x:0:\nsandbox:x:1000:\npostgres:x:71:\nnogroup:x:65534:\n");
	check_file("web", "/etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n");
}

static void check_identity(const char *user, uid_t uid, gid_t gid, const char *name)
{
	struct ks_session session = { 0 };
	struct ks_error err;
	char json[PATH_MAX + 100];

	(void)snprintf(json, sizeof(json), "{\"image\":\"dir:%s\",\"user\":\"%s\"}", scratch.path, user);
	decode(json);
	assert_int_equal(ks_image_open(params.image, &session.image, &err), 0);
	int rc = ks_session_take_identity(&session, &params, &err);
	if (name) {
		assert_int_equal(rc, 0);
		assert_int_equal(session.box_uid, uid);
		assert_int_equal(session.box_gid, gid);
		assert_string_equal(session.user_name, name);
	} else {
		assert_int_equal(rc, -1);
		assert_int_equal(err.reason, KS_E_INVALID_VALUE);
		assert_string_equal(err.pointer, "/user");
		assert_true(err.hint[0] != '\0');
	}
	ks_image_free(session.image);
	ks_params_free(&ks_session_params, &params);
}

static void test_identity(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", "etc", NULL });
	put(scratch.fd, "etc/passwd", "a:x:5:6::/:/\nhigh:x:65536:6::/:/\nhigh2:x:5:65536::/:/\n"
				      "last:x:65535:65535::/:/\n");
	check_identity("sandbox", 1000, 1000, "sandbox");
	check_identity("root", 0, 0, "root");
	check_identity("0", 0, 0, "root");
	check_identity("7", 7, 7, "user7");
	check_identity("65535", 65535, 65535, "user65535");
	check_identity("a", 5, 6, "a");
	check_identity("last", 65535, 65535, "last");
	check_identity("65536", 0, 0, NULL);
	check_identity("99999999999999999999", 0, 0, NULL);
	check_identity("7x", 0, 0, NULL);
	check_identity("high", 0, 0, NULL);
	check_identity("high2", 0, 0, NULL);
	check_identity("nobody", 0, 0, NULL);
}

/* The image's file is hostile: not through a link, not from a device or a FIFO, not without end. */
static void test_passwd_of_the_image(void **state)
{
	(void)state;
	make_dirs((const char *const[]){ "usr", "etc", NULL });
	put(scratch.fd, "passwd", "a:x:5:6::/:/\n");
	check_identity("a", 0, 0, NULL); /* none */
	assert_int_equal(symlinkat("../passwd", scratch.fd, "etc/passwd"), 0);
	check_identity("a", 0, 0, NULL);
	assert_int_equal(unlinkat(scratch.fd, "etc/passwd", 0), 0);
	assert_int_equal(mkfifoat(scratch.fd, "etc/passwd", 0666), 0);
	check_identity("a", 0, 0, NULL);
	assert_int_equal(unlinkat(scratch.fd, "etc/passwd", 0), 0);
	put(scratch.fd, "etc/passwd", "a:x:5:6::/:/\n");
	check_identity("a", 5, 6, "a");
	KS_AUTOCLOSE int fd = openat(scratch.fd, "etc/passwd", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	check_identity("a", 5, 6, "a");
	assert_int_equal(ftruncate(fd, (1 << 20) + 1), 0);
	check_identity("a", 0, 0, NULL);
}

/* ---- who that is outside ---- */

struct owner {
	uid_t uid;
	gid_t gid;
	bool id_mapped;
	size_t notes;
};

static struct owner choose(bool is_root, bool is_private, bool map_owner, uid_t uid, gid_t gid)
{
	struct ks_engine engine = { .is_root = is_root };
	struct ks_core core = { .engine = &engine };
	struct ks_session session = { .core = &core, .workspace = scratch.path, .workspace_fd = scratch.fd,
				      .workspace_private = is_private, .box_uid = 1000, .box_gid = 100 };
	struct ks_error err;

	if (geteuid() == 0)
		assert_int_equal(fchown(scratch.fd, uid, gid), 0);
	assert_int_equal(ks_session_choose_owner(&session, map_owner, &err), 0);
	return (struct owner){ session.owner_uid, session.owner_gid, session.id_mapped, session.notes.count };
}

static void assert_owner(struct owner got, uid_t uid, gid_t gid, bool id_mapped, size_t notes)
{
	assert_int_equal(got.uid, uid);
	assert_int_equal(got.gid, gid);
	assert_int_equal(got.id_mapped, id_mapped);
	assert_int_equal(got.notes, notes);
}

static void test_owner_of_a_user(void **state)
{
	(void)state;
	assert_owner(choose(false, true, false, 0, 0), geteuid(), getegid(), false, 0);
	assert_owner(choose(false, false, false, 5, 5), geteuid(), getegid(), false, 0);
	assert_owner(choose(false, false, true, 0, 0), geteuid(), getegid(), false, 0);
}

/* The code never is root of the host, unless that was asked for by name, and then it is noted. */
static void test_owner_of_root(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_owner(choose(true, true, false, 0, 0), 2000001000, 2000000100, false, 0);
	assert_owner(choose(true, true, true, 0, 0), 2000001000, 2000000100, false, 0);
	assert_owner(choose(true, false, false, 54321, 12345), 54321, 12345, false, 0);
	assert_owner(choose(true, false, false, 54321, 0), 54321, 2000000100, false, 0);
	assert_owner(choose(true, false, false, 0, 0), 2000001000, 2000000100, true, 0);
	assert_owner(choose(true, false, false, 0, 50), 2000001000, 2000000100, true, 0);
	assert_owner(choose(true, false, true, 0, 0), 0, 0, false, 1);
	assert_owner(choose(true, false, true, 54321, 0), 54321, 0, false, 0);
}

#define POSTURE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		POSTURE(test_smallest_image), POSTURE(test_merged_usr),	   POSTURE(test_names_of_ours),
		POSTURE(test_extra_names),    POSTURE(test_etc_without_ours), POSTURE(test_etc_with_some),
		POSTURE(test_etc_is_a_link),  POSTURE(test_steps_cap),	   POSTURE(test_clamps),
		POSTURE(test_sizes_of_a_request), POSTURE(test_sizes_that_are_refused), POSTURE(test_covered_workspace),
		POSTURE(test_users),	      POSTURE(test_identity),	   POSTURE(test_passwd_of_the_image),
		POSTURE(test_owner_of_a_user), POSTURE(test_owner_of_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
