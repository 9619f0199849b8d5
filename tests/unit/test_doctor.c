/* The doctor's checks on hosts that are made of files: a good one, and one for each finding. */
#include "doctor_findings.h"

#include <json-c/json.h>

#include "proto/scan.h"

/* ---- one finding each ---- */

static void apply(struct host *host, const struct finding *finding)
{
	host->facts.uid = finding->uid;
	for (size_t i = 0; i < KS_COUNT(finding->files) && finding->files[i].path; i++) {
		const char *path = finding->files[i].path;
		bool dir = path[strlen(path) - 1] == '/';
		if (dir)
			assert_int_equal(unlinkat(host->scratch.fd, path + 1, AT_REMOVEDIR), 0);
		else if (strcmp(finding->files[i].text, NO_FILE) == 0)
			remove_at(host, path);
		else
			write_at(host, path, finding->files[i].text);
	}
	if (finding->step)
		fail_probe(host, finding->step, finding->sys_errno);
}

static void test_findings(void **state)
{
	(void)state;
	for (size_t i = 0; i < KS_COUNT(findings); i++) {
		const struct finding *finding = &findings[i];
		void *made;
		set_up(&made);
		struct host *host = made;
		apply(host, finding);
		examine(host);
		const struct ks_check *check = find(host, finding->id);
		const char *first = host->checks.items[0].id;
		if (check->status != finding->status || strcmp(check->found, finding->found) != 0 ||
		    (finding->fix && !strstr(check->fix, finding->fix)) ||
		    strcmp(first, finding->step && !finding->behind ? finding->id : "box") != 0)
			fail_msg("%s: %s is %d, \"%s\" (fix: %s); first is %s", finding->name, check->id,
				 (int)check->status, check->found, check->fix, first);
		assert_int_equal(ks_checks_ok(&host->checks), !finding->step);
		tear_down(&made);
	}
}

/* ---- the whole report ---- */

static void test_good_host(void **state)
{
	struct host *host = *state;

	examine(host);
	for (size_t i = 0; i < host->checks.count; i++)
		if (host->checks.items[i].status != KS_CHECK_OK)
			fail_msg("%s: %s", host->checks.items[i].id, host->checks.items[i].found);
	assert_string_equal(host->checks.items[0].found, "started in 2500 us, with every layer");
	assert_string_equal(find(host, "limit_memory")->found, "kernel (cgroup v2)");
	assert_true(ks_checks_ok(&host->checks));
}

/* The order is documented, and every check is. */
static void test_documented(void **state)
{
	struct host *host = *state;
	char line[2048], id[64];
	size_t at = 0;
	FILE *page = fopen(KS_SOURCE_DIR "/sidecar/session/DOCTOR.md", "re");

	assert_non_null(page);
	examine(host);
	while (at < host->checks.count && fgets(line, sizeof(line), page))
		if (sscanf(line, "| `%63[a-z_]` |", id) == 1)
			assert_string_equal(id, host->checks.items[at++].id);
	assert_int_equal(at, host->checks.count);
	(void)fclose(page);
}

static void test_json(void **state)
{
	struct host *host = *state;
	KS_AUTOBUF struct ks_buf json = { 0 };
	struct json_object *value;
	struct ks_error err;

	remove_at(host, "/etc/ssl/certs/ca-certificates.crt");
	examine(host);
	ks_checks_write(&host->checks, &json);
	struct json_object *list = ks_json_parse(json.data, json.len, &err);
	assert_non_null(list);
	assert_int_equal(json_object_array_length(list), host->checks.count);
	for (size_t i = 0; i < host->checks.count; i++) {
		struct json_object *check = json_object_array_get_idx(list, i);
		bool fine = host->checks.items[i].status == KS_CHECK_OK;
		assert_true(json_object_object_get_ex(check, "status", &value));
		assert_string_equal(json_object_get_string(value), fine ? "ok" : "warn");
		assert_int_equal(json_object_object_get_ex(check, "fix", &value), !fine);
		assert_int_equal(json_object_object_get_ex(check, "wanted", &value), !fine);
	}
	json_object_put(list);
}

/* Any step with any errno: a report whose first check has failed, the cause named or none claimed. */
static void test_every_failure(void **state)
{
	static const char *const steps[] = {
		"launcher namespaces",
		"user namespace",
		"id map",
		"group ids",
		"session pid namespace",
		"session init",
		"template",
		"template namespaces",
		"propagation",
		"root",
		"dir /proc",
		"file /etc/passwd",
		"symlink /bin",
		"bind /usr",
		"bind /dev/null",
		"session proc",
		"pivot_root",
		"read-only root",
		"no_new_privs",
		"allowlist filter",
		"bounding set",
		"box namespaces",
		"network",
		"cgroup",
		"hostname",
		"tmpfs /tmp",
		"proc /proc",
		"devpts /dev/pts",
		"mask /proc/keys",
		"identity",
		"box user namespace",
		"home",
		"protect init",
		"escape filter",
		"code files",
		"stdio",
		"limits",
		"working directory",
		"exec",
		"run",
		"",
	};
	struct host *host = *state;
	size_t explained = 0;

	for (size_t s = 0; s < KS_COUNT(steps); s++)
		for (int number = 0; number < 134; number++) {
			fail_probe(host, steps[s], number);
			examine(host);
			assert_int_equal(host->checks.items[0].status, KS_CHECK_FAIL);
			assert_false(ks_checks_ok(&host->checks));
			explained += strcmp(host->checks.items[0].id, "box") != 0;
		}
	/* on a good host only what step and errno tell by themselves: EAGAIN, EMFILE, ENFILE everywhere, 7 * 2 of used
	 * up, 2 of propagation, 2 of lo, EBUSY, 2 * 2 of a chroot */
	assert_int_equal(explained, KS_COUNT(steps) * 3 + 23);
}

static void test_unexplained(void **state)
{
	struct host *host = *state;

	fail_probe(host, "home", EROFS);
	examine(host);
	assert_string_equal(host->checks.items[0].found, "step 'home': cannot do it: Read-only file system");
	assert_non_null(strstr(host->checks.items[0].fix, "strace -f -o trace.txt kern-sidecar doctor"));
	write_at(host, "/.dockerenv", "");
	fail_probe(host, "hostname", EPERM);
	examine(host);
	assert_string_equal(host->checks.items[0].id, "box");
	assert_non_null(strstr(host->checks.items[0].fix, "--security-opt systempaths=unconfined"));
	(void)ks_error_hint(&host->probe, "do this");
	examine(host);
	assert_string_equal(host->checks.items[0].fix, "do this");
}

/* No rule knows the step; what would stop every box still explains it. */
static void test_blocker_explains(void **state)
{
	struct host *host = *state;

	write_at(host, OSRELEASE, "4.19.0\n");
	fail_probe(host, "home", EROFS);
	examine(host);
	assert_string_equal(host->checks.items[0].id, "kernel");
	assert_string_equal(host->checks.items[1].fix, "see kernel");
}

/* A sidecar that is too busy for a probe says nothing about its host. */
static void test_busy(void **state)
{
	struct host *host = *state;

	(void)ks_fail(&host->probe, KS_E_OVERLOADED, "too many runs");
	host->facts.probe = &host->probe;
	examine(host);
	assert_int_equal(host->checks.items[0].status, KS_CHECK_WARN);
	assert_string_equal(host->checks.items[0].found, "not tried: too many runs");
	assert_true(ks_checks_ok(&host->checks));
}

/* ---- cgroups ---- */

static void test_limits(void **state)
{
	(void)state;
	for (size_t i = 0; i < KS_COUNT(limit_cases); i++) {
		static const char *const ids[] = { "limit_memory", "limit_pids", "limit_cpu" };
		const struct limit_case *c = &limit_cases[i];
		char found[256];
		void *made;
		set_up(&made);
		struct host *host = made;
		host->facts.uid = c->uid;
		host->facts.runtime_dir = c->runtime_dir;
		write_at(host, MOUNTINFO, c->mounts);
		if (c->path)
			write_at(host, c->path, c->text);
		if (c->no_systemd)
			assert_int_equal(
				renameat(host->scratch.fd, "run/systemd/system", host->scratch.fd, "run/systemd/off"),
				0);
		if (c->no_bus)
			remove_at(host, "/run/user/1000/bus");
		host->limits.backend = c->backend;
		host->limits.enforced[c->kind] = c->kind == KS_LIMIT_MEMORY ? KS_ENFORCED_POLLED : KS_ENFORCED_NONE;
		(void)snprintf(host->limits.reason[c->kind], sizeof(host->limits.reason[0]), "%s", c->reason);
		examine(host);
		const struct ks_check *limit = find(host, ids[c->kind]);
		(void)snprintf(found, sizeof(found), "%s (cgroup %s): %s",
			       c->kind == KS_LIMIT_MEMORY ? "polled" : "none", c->backend, c->reason);
		assert_string_equal(limit->found, found);
		if (limit->status != KS_CHECK_WARN || !strstr(limit->fix, c->cure))
			fail_msg("%s: %d, fix: %s", c->name, (int)limit->status, limit->fix);
		if (c->id) {
			assert_int_equal(find(host, c->id)->status, KS_CHECK_WARN);
			assert_string_equal(find(host, c->id)->found, c->found);
			assert_non_null(strstr(find(host, c->id)->fix, c->fix));
		}
		assert_true(ks_checks_ok(&host->checks)); /* boxes run */
		tear_down(&made);
	}
}

static void test_limits_unknown(void **state)
{
	struct host *host = *state;

	host->facts.limits = NULL;
	fail_probe(host, "launcher namespaces", EPERM);
	examine(host);
	assert_int_equal(find(host, "limit_cpu")->status, KS_CHECK_WARN);
	assert_string_equal(find(host, "limit_cpu")->found, "not known: no box can be made");
}

/* ---- the state directory ---- */

static void test_state_directory(void **state)
{
	struct host *host = *state;
	struct ks_error err;

	host->facts.state_free = (UINT64_C(64) << 20) - 1;
	examine(host);
	assert_int_equal(find(host, "state_directory")->status, KS_CHECK_WARN);
	assert_string_equal(find(host, "state_directory")->found, "/tmp/kern-sidecar-1000/01234567: 63 MiB free");
	host->facts.state_free++;
	examine(host);
	assert_int_equal(find(host, "state_directory")->status, KS_CHECK_OK);

	/* the program could not open its core because of it */
	(void)ks_fail_errno(&err, KS_E_NO_SPACE, ENOSPC, "the sidecar's state directory cannot be used at \"/tmp\"");
	(void)ks_error_hint(&err, "set KERN_STATE_DIR to a directory of yours on a disk with room");
	host->facts.state_error = host->facts.probe = &err;
	host->facts.state_path = NULL;
	examine(host);
	assert_string_equal(host->checks.items[0].id, "state_directory");
	assert_string_equal(host->checks.items[0].found,
			    "the sidecar's state directory cannot be used at \"/tmp\": No space left on device");
	assert_non_null(strstr(host->checks.items[0].fix, "export KERN_STATE_DIR=~/.cache/kern"));
}

/* ---- hostile files ---- */

/* The path of the program ends up in a line for a shell. */
static void test_program_path(void **state)
{
	static const char *const odd[] = { "/tmp/$(reboot)/kern", "/tmp/a b/kern", "/tmp/'/kern", "relative", NULL };
	struct host *host = *state;

	write_at(host, APPARMOR, "1\n");
	fail_probe(host, "id map", EPERM);
	for (size_t i = 0; i < KS_COUNT(odd); i++) {
		host->facts.program = odd[i];
		examine(host);
		assert_non_null(strstr(host->checks.items[0].fix, "profile kern-sidecar /usr/bin/kern-sidecar flags"));
	}
}

static void test_nothing_there(void **state)
{
	struct host *host = *state;

	host->facts.root = "/nonexistent/root";
	fail_probe(host, "session proc", EPERM);
	examine(host);
	assert_string_equal(host->checks.items[0].id, "proc_masked");
	assert_string_equal(host->checks.items[0].found, "/proc/self/mountinfo cannot be read: is /proc mounted?");
}

static void test_long_files(void **state)
{
	struct host *host = *state;
	struct ks_facts_mount mount;
	const size_t size = KS_DOCTOR_FILE_MAX + 8192;
	char *text = malloc(size + 1), line[600], name[300];

	assert_non_null(text);
	memset(text, 'a', size);
	text[size] = '\0';
	write_at(host, MOUNTINFO, text); /* one line without end */
	write_at(host, SELF_STATUS, text);
	write_at(host, "/proc/version", text);
	write_at(host, OSRELEASE, text);
	write_at(host, "/proc/self/uid_map", text);
	write_at(host, "/proc/self/attr/current", text);
	examine(host);
	host->facts.uid = 0;
	examine(host);
	free(text);

	/* a mount point of one byte less than what is kept, and one of as many: that is cut, and not believed */
	for (size_t len = 254; len <= 255; len++) {
		memset(name, 'n', len);
		name[0] = '/';
		name[len] = '\0';
		(void)snprintf(line, sizeof(line), TOP "33 22 0:70 / %s rw - tmpfs tmpfs rw\n", name);
		write_at(host, MOUNTINFO, line);
		assert_true(ks_facts_mount_of(&host->facts, name, &mount));
		assert_string_equal(mount.type, len == 254 ? "tmpfs" : "ext4");
	}
}

static void test_mounts(void **state)
{
	struct host *host = *state;
	struct ks_facts_mount mount;

	write_at(host, MOUNTINFO,
		 TOP "30 22 0:1 / /a\\040b rw,nodev shared:3 - xfs /dev/a rw\n"
		     "31 22 0:2 / /a\\040b ro - tmpfs t rw\n"
		     "32 22 0:3 / /ab rw - btrfs /dev/b ro,space_cache\n"
		     "not a line\n33 22 0:4 / /short\n");
	assert_true(ks_facts_mount_of(&host->facts, "/a b/c", &mount)); /* the later one covers */
	assert_string_equal(mount.type, "tmpfs");
	assert_string_equal(mount.point, "/a b");
	assert_true(ks_facts_has_option(mount.options, "ro"));
	assert_true(ks_facts_mount_of(&host->facts, "/ab", &mount));
	assert_true(ks_facts_has_option(mount.options, "ro")); /* of the file system */
	assert_true(ks_facts_has_option(mount.options, "rw"));
	assert_true(ks_facts_mount_of(&host->facts, "/abc", &mount));
	assert_string_equal(mount.point, "/");
	assert_false(ks_facts_has_option("noexec,nodevice", "nodev"));
	assert_false(ks_facts_has_option("", "nodev"));
	assert_true(ks_facts_has_option("a,nodev,b", "nodev"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_findings),
		cmocka_unit_test_setup_teardown(test_good_host, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_documented, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_json, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_every_failure, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unexplained, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_blocker_explains, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_busy, set_up, tear_down),
		cmocka_unit_test(test_limits),
		cmocka_unit_test_setup_teardown(test_limits_unknown, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_state_directory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_program_path, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_long_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_mounts, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
