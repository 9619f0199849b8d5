/* test_plan.c: a set-up as data: what the builder writes, what people see of it, what the reader refuses. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "box/plan.h"

static struct ks_plan *plan;

static int set_up(void **state)
{
	(void)state;
	plan = malloc(sizeof(*plan));
	if (!plan)
		return -1;
	ks_plan_init(plan, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ks_plan_free(plan);
	free(plan);
	return 0;
}

static void start_as_root(void)
{
	ks_plan_free(plan);
	ks_plan_init(plan, true);
}

/* ---- ids ---- */

static void assert_range(const struct ks_id_range *range, uint32_t inside, uint32_t outside, uint32_t count)
{
	assert_int_equal(range->inside, inside);
	assert_int_equal(range->outside, outside);
	assert_int_equal(range->count, count);
}

static void test_ids_of_a_root_sidecar(void **state)
{
	(void)state;
	start_as_root();
	ks_plan_map_ids(plan, 1000, 100, 54321, 12345);
	assert_int_equal(plan->head.map_count, 3);
	assert_int_equal(plan->head.box_uid, 1000);
	assert_int_equal(plan->head.box_gid, 100);
	assert_range(&plan->head.uid_map[0], 1000, 54321, 1);
	assert_range(&plan->head.uid_map[1], 0, 2000000000, 1000);
	assert_range(&plan->head.uid_map[2], 1001, 2000001001, 64535);
	assert_range(&plan->head.gid_map[0], 100, 12345, 1);
	assert_range(&plan->head.gid_map[1], 0, 2000000000, 100);
	assert_range(&plan->head.gid_map[2], 101, 2000000101, 65435);
}

/* The first and the last id: a part is empty. */
static void test_ids_at_the_ends(void **state)
{
	(void)state;
	start_as_root();
	ks_plan_map_ids(plan, 0, 65535, 2000000000, 7);
	assert_range(&plan->head.uid_map[0], 0, 2000000000, 1);
	assert_int_equal(plan->head.uid_map[1].count, 0);
	assert_range(&plan->head.uid_map[2], 1, 2000000001, 65535);
	assert_range(&plan->head.gid_map[0], 65535, 7, 1);
	assert_range(&plan->head.gid_map[1], 0, 2000000000, 65535);
	assert_int_equal(plan->head.gid_map[2].count, 0);
}

/* Whoever the owner is: nothing else of the host can be named, and id 0 least of all. */
static void test_ids_that_are_never_mapped(void **state)
{
	(void)state;
	static const uint32_t users[] = { 0, 1, 999, 1000, 1001, 65534, 65535 };

	for (size_t i = 0; i < KS_COUNT(users); i++) {
		uint64_t mapped = 0;
		start_as_root();
		ks_plan_map_ids(plan, users[i], users[i], KS_RANGE_START + users[i], 1000);
		for (uint32_t k = 0; k < plan->head.map_count; k++) {
			const struct ks_id_range *range = &plan->head.uid_map[k];
			mapped += range->count;
			if (range->count == 0)
				continue;
			assert_int_equal(range->outside - range->inside, KS_RANGE_START);
			assert_true(range->inside + range->count <= KS_RANGE_COUNT);
		}
		assert_int_equal(mapped, KS_RANGE_COUNT);
	}
}

static void test_ids_of_a_user(void **state)
{
	(void)state;
	ks_plan_map_ids(plan, 33, 44, 501, 502);
	assert_int_equal(plan->head.map_count, 1);
	assert_range(&plan->head.uid_map[0], 33, KS_BOX_UID, 1); /* 1000 of the launcher's namespace is the caller */
	assert_range(&plan->head.gid_map[0], 44, KS_BOX_UID, 1);
	assert_int_equal(plan->head.box_uid, 33);
	assert_int_equal(plan->head.box_gid, 44);
}

/* ---- steps ---- */

static int add_each(unsigned kind, struct ks_error *err)
{
	KS_AUTOCLOSE int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	switch (kind) {
	case 0:
		return ks_plan_dir(plan, "/d", 0755, err);
	case 1:
		return ks_plan_file(plan, "/f", "text", err);
	case 2:
		return ks_plan_symlink(plan, "/l", "to", err);
	case 3:
		return ks_plan_bind(plan, fd, "/", "/b", KS_STEP_RDONLY, -1, err);
	case 4:
		return ks_plan_cover(plan, "/f", "/etc/f", err);
	case 5:
		return ks_plan_again(plan, "/b", "/tmp/b", err);
	case 6:
		return ks_plan_tmpfs(plan, "/tmp", 1, 2, 01777, err);
	case 7:
		return ks_plan_proc(plan, err);
	case 8:
		return ks_plan_devpts(plan, err);
	case 9:
		return ks_plan_mask(plan, "/proc/keys", err);
	default:
		return ks_plan_place(plan, "/p", err);
	}
}

static void test_steps_cap(void **state)
{
	(void)state;
	struct ks_error err = { 0 };

	for (int i = 0; i < KS_PLAN_STEPS; i++)
		assert_int_equal(ks_plan_dir(plan, "/d", 0755, &err), 0);
	assert_int_equal(plan->head.step_count, 512);
	for (unsigned kind = 0; kind <= 10; kind++) {
		err.reason = KS_E_NONE;
		assert_int_equal(add_each(kind, &err), -1);
		assert_int_equal(err.reason, KS_E_LIMIT);
		assert_string_equal(err.text, "a session may have at most 512 mounts and files");
		assert_int_equal(plan->head.step_count, 512);
	}
	KS_AUTOCLOSE int fd = ks_plan_pack(plan, &err);
	assert_true(fd >= 0);
	struct ks_plan_view view;
	assert_int_equal(ks_plan_open(fd, &view, &err), 0);
	ks_plan_close(&view);
}

static void test_text_cap(void **state)
{
	(void)state;
	struct ks_error err = { 0 };
	const size_t half = (size_t)2 << 20;
	char *text = malloc(half + 1);

	assert_non_null(text);
	memset(text, 'x', half);
	/* "" and "/f" and a text make half a plan exactly; one more step is let in, the next is not */
	text[half - 5] = '\0';
	assert_int_equal(ks_plan_file(plan, "/f", text, &err), 0);
	assert_int_equal(plan->strings.len, half);
	assert_int_equal(ks_plan_dir(plan, "/", 0755, &err), 0);
	assert_int_equal(ks_plan_dir(plan, "/", 0755, &err), -1);
	assert_int_equal(err.reason, KS_E_LIMIT);
	free(text);
}

/* Paths only: a sidecar without power clones nothing, so it needs no descriptor either. */
static void test_binds_of_a_user(void **state)
{
	(void)state;
	struct ks_error err = { 0 };
	struct stat st;

	assert_int_equal(stat("/", &st), 0);
	for (int i = 0; i < KS_MSG_FDS + 1; i++)
		assert_int_equal(add_each(3, &err), 0);
	assert_int_equal(plan->nfds, 0);
	assert_int_equal(plan->steps[64].fd, -1);
	assert_int_equal(plan->steps[64].device, st.st_dev);
	assert_int_equal(plan->steps[64].inode, st.st_ino);
}

static void test_binds_of_root(void **state)
{
	(void)state;
	struct ks_error err = { 0 };

	start_as_root();
	if (geteuid() != 0 || add_each(3, &err) < 0)
		skip(); /* a root without power over mounts */
	for (int i = 1; i < KS_MSG_FDS - 1; i++)
		assert_int_equal(add_each(3, &err), 0);
	assert_int_equal(plan->nfds, 63);
	assert_int_equal(plan->steps[62].fd, 62);
	assert_int_equal(add_each(3, &err), -1);
	assert_int_equal(err.reason, KS_E_LIMIT);
	assert_string_equal(err.text, "a session may have at most 63 mounts");
	assert_int_equal(plan->nfds, 63);
	assert_int_equal(plan->head.step_count, 63);
	const int last = plan->fds[62];
	assert_int_equal(fcntl(last, F_GETFD), FD_CLOEXEC);
	ks_plan_free(plan);
	assert_int_equal(fcntl(last, F_GETFD), -1); /* they were the plan's */
}

/* The first template mounts the memory workspace, a further one is sent it: on a socket that the plan has a copy of. */
static void test_memory_workspace(void **state)
{
	(void)state;
	struct ks_plan_view view;
	struct ks_error err;
	KS_AUTOBUF struct ks_buf out = { 0 };
	KS_AUTOCLOSE int sock = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_int_equal(ks_plan_tmpfs(plan, "/tmp", 4096, 2, 01777, &err), 0);
	KS_AUTOCLOSE int none = ks_plan_pack(plan, &err);
	assert_int_equal(ks_plan_open(none, &view, &err), 0);
	assert_null(ks_plan_memory_target(&view)); /* what a box mounts is its own */
	ks_plan_close(&view);
	assert_int_equal(ks_plan_sent(plan, sock, "/workspace", &err), 0);
	assert_int_equal(plan->nfds, 1);
	assert_int_not_equal(plan->fds[0], sock);
	assert_int_equal(plan->steps[1].fd, 0);
	assert_int_equal(ks_plan_memory(plan, "/data", 1 << 20, 257, &err), 0);
	for (uint32_t first = 0; first < 2; first++) { /* a further template can hand it on as the first one can */
		plan->steps[1].flags ^= first ? KS_STEP_SENT : 0;
		KS_AUTOCLOSE int packed = ks_plan_pack(plan, &err);
		assert_int_equal(ks_plan_open(packed, &view, &err), 0);
		assert_string_equal(ks_plan_memory_target(&view), first ? "/data" : "/workspace");
		ks_plan_close(&view);
	}
	plan->steps[1].flags ^= KS_STEP_SENT;
	ks_plan_print(plan, KS_PLAN_TEMPLATE, &out);
	ks_buf_char(&out, '\0');
	assert_string_equal(out.data, "template bind    /workspace <- /workspace rw\n"
				      "template tmpfs   /data size=1048576 inodes=257 mode=700\n");
	assert_int_equal(ks_plan_sent(plan, -1, "/x", &err), -1);
	assert_int_equal(err.sys_errno, EBADF);
}

static void test_bind_of_nothing(void **state)
{
	(void)state;
	struct ks_error err = { 0 };

	assert_int_equal(ks_plan_bind(plan, -1, "/x", "/y", 0, -1, &err), -1);
	assert_int_equal(err.reason, KS_E_START_FAILED);
	assert_int_equal(err.sys_errno, EBADF);
	assert_int_equal(plan->head.step_count, 0);
}

/* ---- printing ---- */

static void add_all(void)
{
	struct ks_error err;

	for (unsigned kind = 0; kind <= 10; kind++)
		assert_int_equal(add_each(kind, &err), 0);
	KS_AUTOCLOSE int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(ks_plan_bind(plan, fd, "/dev/null", "/dev/null", KS_STEP_DEVICE, -1, &err), 0);
	assert_int_equal(ks_plan_bind(plan, fd, "/work", "/workspace", 0, -1, &err), 0);
}

static void test_print(void **state)
{
	(void)state;
	KS_AUTOBUF struct ks_buf out = { 0 };

	add_all();
	ks_plan_print(plan, KS_PLAN_TEMPLATE, &out);
	ks_buf_char(&out, '\0');
	assert_string_equal(out.data, "template dir     /d mode=755\n"
				      "template file    /f 4 bytes\n"
				      "template symlink /l -> to\n"
				      "template bind    /b <- / ro\n"
				      "template bind    /etc/f <- /f ro\n"
				      "template dir     /p mode=755\n"
				      "template bind    /dev/null <- /dev/null device\n"
				      "template bind    /workspace <- /work rw\n");
	ks_buf_clear(&out);
	ks_plan_print(plan, KS_PLAN_BOX, &out);
	ks_buf_char(&out, '\0');
	assert_string_equal(out.data, "box      bind    /tmp/b <- /b rw\n"
				      "box      tmpfs   /tmp size=1 inodes=2 mode=1777\n"
				      "box      proc    /proc\n"
				      "box      devpts  /dev/pts\n"
				      "box      mask    /proc/keys\n");
}

static void test_step_names(void **state)
{
	(void)state;
	assert_string_equal(ks_step_name(KS_STEP_DIR), "dir");
	assert_string_equal(ks_step_name(KS_STEP_MASK), "mask");
	assert_string_equal(ks_step_name(KS_STEP_MASK + 1), "?");
	assert_string_equal(ks_step_name(UINT32_MAX), "?");
}

/* ---- packed and read again ---- */

static void fill_head(void)
{
	static struct sock_filter code[] = { { 0x20, 0, 0, 4 }, { 0x06, 0, 0, 0x7fff0000 } };
	const struct ks_filter filters[2] = { { code, 2 }, { code, 1 } };
	struct ks_error err;

	ks_plan_map_ids(plan, 1000, 1000, 0, 0);
	assert_int_equal(ks_plan_set_hostname(plan, "sandbox", &err), 0);
	assert_int_equal(ks_plan_set_apparmor(plan, "profile", &err), 0);
	assert_int_equal(ks_plan_set_fail_step(plan, "tmpfs /tmp", &err), 0);
	assert_int_equal(ks_plan_set_filters(plan, filters, &err), 0);
}

static int pack(void)
{
	struct ks_error err;
	int fd;

	fill_head();
	add_all();
	fd = ks_plan_pack(plan, &err);
	assert_true(fd >= 0);
	return fd;
}

static void test_round_trip(void **state)
{
	(void)state;
	struct ks_plan_view view;
	struct ks_error err;
	KS_AUTOCLOSE int fd = pack();

	assert_int_equal(ks_plan_open(fd, &view, &err), 0);
	assert_int_equal(view.head->step_count, 13);
	assert_int_equal(view.head->strings_len, plan->strings.len);
	assert_memory_equal(view.steps, plan->steps, 13 * sizeof(struct ks_step));
	assert_memory_equal(view.strings, plan->strings.data, plan->strings.len);
	assert_string_equal(ks_plan_string(&view, 0), "");
	assert_string_equal(ks_plan_string(&view, view.head->hostname), "sandbox");
	assert_string_equal(ks_plan_string(&view, view.head->apparmor), "profile");
	assert_string_equal(ks_plan_string(&view, view.steps[4].target), "/etc/f");
	assert_string_equal(ks_plan_string(&view, view.steps[4].source), "/f");
	assert_int_equal(view.steps[1].text_len, 4);
	struct ks_filter filter = ks_plan_filter(&view, 0);
	assert_int_equal(filter.count, 2);
	assert_int_equal(filter.code[1].k, 0x7fff0000);
	filter = ks_plan_filter(&view, 1);
	assert_int_equal(filter.count, 1);
	assert_int_equal(filter.code[0].code, 0x20);
	assert_int_equal(ks_plan_fails(&view, "tmpfs /tmp"), KS_TEST_HOOKS);
	assert_false(ks_plan_fails(&view, "tmpfs"));
	assert_false(ks_plan_fails(&view, ""));
	ks_plan_close(&view);
	assert_null(view.head);
}

/* Nobody can change it between the reader's check and its use. */
static void test_sealed(void **state)
{
	(void)state;
	KS_AUTOCLOSE int fd = pack();

	assert_int_equal(fcntl(fd, F_GET_SEALS), F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 0), -1);
}

static void test_empty_plan(void **state)
{
	(void)state;
	struct ks_plan_view view;
	struct ks_error err;
	struct stat st;
	KS_AUTOCLOSE int fd = ks_plan_pack(plan, &err);

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, sizeof(struct ks_plan_head) + 1);
	assert_int_equal(ks_plan_open(fd, &view, &err), 0);
	assert_int_equal(view.head->step_count, 0);
	assert_int_equal(ks_plan_filter(&view, 0).count + ks_plan_filter(&view, 1).count, 0);
	ks_plan_close(&view);
}

/* ---- a damaged one: every field at its limit and one beyond ---- */

struct raw {
	struct ks_plan_head *head;
	struct ks_step *steps;
	char *strings;
	char *bytes;
	size_t size;
};

static struct raw raw_plan(void)
{
	KS_AUTOCLOSE int fd = pack();
	struct stat st;
	struct raw raw;

	assert_int_equal(fstat(fd, &st), 0);
	raw.size = (size_t)st.st_size;
	raw.bytes = malloc(raw.size + 64);
	assert_non_null(raw.bytes);
	assert_int_equal(pread(fd, raw.bytes, raw.size, 0), raw.size);
	raw.head = (void *)raw.bytes;
	raw.steps = (void *)(raw.bytes + sizeof(*raw.head));
	raw.strings = raw.bytes + sizeof(*raw.head) + raw.head->step_count * sizeof(struct ks_step);
	return raw;
}

static int open_bytes(const void *bytes, size_t size, struct ks_error *err)
{
	struct ks_plan_view view;
	KS_AUTOCLOSE int fd = memfd_create("plan", MFD_CLOEXEC);

	assert_int_equal(pwrite(fd, bytes, size, 0), size);
	int rc = ks_plan_open(fd, &view, err);
	if (rc == 0)
		ks_plan_close(&view);
	return rc;
}

static void assert_opens(const struct raw *raw, bool sound)
{
	struct ks_error err = { 0 };

	assert_int_equal(open_bytes(raw->bytes, raw->size, &err), sound ? 0 : -1);
	if (sound)
		return;
	assert_int_equal(err.reason, KS_E_INTERNAL);
	assert_string_equal(err.text, "the plan is damaged");
}

/* `field` is `good` in a sound plan and `bad` in none. */
#define CHECK_FIELD(raw, field, good, bad)                         \
	do {                                                       \
		__typeof__((raw).field) old_ = (raw).field;        \
		(raw).field = (__typeof__((raw).field))(good);     \
		assert_opens(&(raw), true);                        \
		(raw).field = (__typeof__((raw).field))(bad);      \
		assert_opens(&(raw), false);                       \
		(raw).field = old_;                                \
	} while (0)

static void test_damaged_head(void **state)
{
	(void)state;
	struct raw raw = raw_plan();
	const uint32_t len = raw.head->strings_len;

	assert_opens(&raw, true);
	CHECK_FIELD(raw, head->magic, KS_PLAN_MAGIC, KS_PLAN_MAGIC + 1);
	CHECK_FIELD(raw, head->step_count, 13, 12);
	CHECK_FIELD(raw, head->step_count, 13, 14);
	CHECK_FIELD(raw, head->step_count, 13, 513);
	CHECK_FIELD(raw, head->step_count, 13, UINT32_MAX);
	CHECK_FIELD(raw, head->strings_len, len, 0);
	CHECK_FIELD(raw, head->strings_len, len, len - 1);
	CHECK_FIELD(raw, head->strings_len, len, len + 1);
	CHECK_FIELD(raw, head->strings_len, len, UINT32_MAX);
	CHECK_FIELD(raw, head->map_count, 4, 5);
	CHECK_FIELD(raw, head->map_count, 0, UINT32_MAX);
	CHECK_FIELD(raw, head->hostname, len - 1, len);
	CHECK_FIELD(raw, head->hostname, 0, UINT32_MAX);
	CHECK_FIELD(raw, head->apparmor, len - 1, len);
	CHECK_FIELD(raw, head->fail_step, len - 1, len);
	CHECK_FIELD(raw, strings[len - 1], '\0', 'x');
	free(raw.bytes);
}

static void test_damaged_filter(void **state)
{
	(void)state;
	struct raw raw = raw_plan();

	for (int i = 0; i < 2; i++) {
		const uint32_t at = raw.head->filter[i], most = (raw.head->strings_len - at) / 8;
		assert_int_equal(at % 8, 0);
		CHECK_FIELD(raw, head->filter[i], at, at + 1);
		CHECK_FIELD(raw, head->filter[i], at, at + 4);
		CHECK_FIELD(raw, head->filter[i], 0, 0xfffffff8u);
		CHECK_FIELD(raw, head->filter_count[i], most, most + 1);
		CHECK_FIELD(raw, head->filter_count[i], 0, 4097);
		CHECK_FIELD(raw, head->filter_count[i], 0, UINT32_MAX);
		CHECK_FIELD(raw, head->filter_count[i], 0, 0x20000000u); /* times 8 it is 0 in 32 bits */
	}
	free(raw.bytes);
}

static void test_damaged_steps(void **state)
{
	(void)state;
	struct raw raw = raw_plan();
	const uint32_t len = raw.head->strings_len, text = raw.steps[1].text, target = raw.steps[0].target;

	CHECK_FIELD(raw, steps[0].target, target, len);
	CHECK_FIELD(raw, steps[0].target, target, UINT32_MAX);
	raw.strings[len - 2] = '/';
	CHECK_FIELD(raw, steps[12].source, len - 2, len);
	CHECK_FIELD(raw, steps[2].text, len - 1, len);
	CHECK_FIELD(raw, steps[1].text_len, len - text - 1, len - text);
	CHECK_FIELD(raw, steps[1].text_len, 0, UINT32_MAX);
	CHECK_FIELD(raw, steps[1].text_len, 0, UINT32_MAX - text + 1); /* the sum is 0 in 32 bits */
	CHECK_FIELD(raw, steps[0].kind, KS_STEP_DIR, KS_STEP_MASK + 1);
	CHECK_FIELD(raw, steps[0].kind, KS_STEP_FILE, UINT32_MAX);
	CHECK_FIELD(raw, steps[3].fd, -1, -2);
	CHECK_FIELD(raw, steps[3].fd, KS_MSG_FDS - 1, KS_MSG_FDS);
	CHECK_FIELD(raw, steps[3].fd, 0, INT32_MIN);
	free(raw.bytes);
}

/* The template takes what follows the first slash, so there has to be one. */
static void test_relative_paths(void **state)
{
	(void)state;
	struct raw raw = raw_plan();
	const uint32_t last = raw.head->strings_len - 1;

	CHECK_FIELD(raw, strings[raw.steps[0].target], '/', 'd');
	CHECK_FIELD(raw, steps[0].target, raw.steps[0].target, 0);
	CHECK_FIELD(raw, steps[0].target, raw.steps[0].target, last); /* what would follow lies behind the plan */
	CHECK_FIELD(raw, steps[4].source, raw.steps[4].source, 0);
	CHECK_FIELD(raw, steps[4].source, raw.steps[4].source, last);
	CHECK_FIELD(raw, steps[3].source, raw.steps[3].source, 0);
	/* a source among the template's mounts is for a box, which is the only one to see them */
	CHECK_FIELD(raw, steps[5].flags, KS_STEP_BOX | KS_STEP_AGAIN, KS_STEP_AGAIN);
	free(raw.bytes);
}

static void test_every_cut(void **state)
{
	(void)state;
	struct raw raw = raw_plan();
	struct ks_error err;

	for (size_t size = 1; size < raw.size; size++)
		assert_int_equal(open_bytes(raw.bytes, size, &err), -1);
	memset(raw.bytes + raw.size, 0, 64);
	for (size_t more = 1; more <= 64; more++)
		assert_int_equal(open_bytes(raw.bytes, raw.size + more, &err), -1);
	free(raw.bytes);
}

static void test_sizes(void **state)
{
	(void)state;
	struct ks_plan_view view;
	struct ks_error err = { 0 };
	const off_t head = (off_t)sizeof(struct ks_plan_head);
	static const struct {
		int more;
		const char *text;
	} cases[] = { { -1, "the plan has a wrong size" }, { 0, "the plan is damaged" } };
	KS_AUTOCLOSE int fd = memfd_create("plan", MFD_CLOEXEC);

	for (size_t i = 0; i < KS_COUNT(cases); i++) {
		assert_int_equal(ftruncate(fd, head + cases[i].more), 0);
		assert_int_equal(ks_plan_open(fd, &view, &err), -1);
		assert_string_equal(err.text, cases[i].text);
		assert_int_equal(ftruncate(fd, (off_t)KS_PLAN_MAX + 1 - (off_t)i), 0);
		assert_int_equal(ks_plan_open(fd, &view, &err), -1);
		assert_string_equal(err.text, cases[i].text);
	}
}

/* What cannot be mapped. */
static void test_no_file(void **state)
{
	(void)state;
	struct ks_plan_view view;
	struct ks_error err = { 0 };
	KS_AUTOCLOSE int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(ks_plan_open(-1, &view, &err), -1);
	assert_int_equal(ks_plan_open(ends[0], &view, &err), -1);
	assert_int_equal(ks_plan_open(dir, &view, &err), -1);
	assert_int_equal(err.reason, KS_E_INTERNAL);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

#define WITH_PLAN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_PLAN(test_ids_of_a_root_sidecar), WITH_PLAN(test_ids_at_the_ends),
		WITH_PLAN(test_ids_that_are_never_mapped), WITH_PLAN(test_ids_of_a_user),
		WITH_PLAN(test_steps_cap),	       WITH_PLAN(test_text_cap),
		WITH_PLAN(test_binds_of_a_user),       WITH_PLAN(test_binds_of_root),
		WITH_PLAN(test_memory_workspace),      WITH_PLAN(test_bind_of_nothing),
		WITH_PLAN(test_print),
		WITH_PLAN(test_step_names),	       WITH_PLAN(test_round_trip),
		WITH_PLAN(test_sealed),		       WITH_PLAN(test_empty_plan),
		WITH_PLAN(test_damaged_head),	       WITH_PLAN(test_damaged_filter),
		WITH_PLAN(test_damaged_steps),	       WITH_PLAN(test_relative_paths),
		WITH_PLAN(test_every_cut),	       WITH_PLAN(test_sizes),
		WITH_PLAN(test_no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
