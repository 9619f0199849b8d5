/* The cgroup layer on fake v2 and hybrid trees, and the delegation by a fake systemd. */
#include "cgroup_fake.h"

static void test_v2(void **state)
{
	struct ks_cgroups *cgroups;
	char set[200];
	int fds[KS_LEAF_FDS];

	(void)state;
	make_v2();
	cgroups = open_fake();
	(void)snprintf(set, sizeof(set), "%s", cgroups->set);
	assert_status(cgroups, "v2", KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL);
	assert_true(ks_cgroups_status(cgroups)->clone_into);
	/* no internal processes: we went below first; the last controller written is what a plain file shows */
	assert_string_equal(got(path_of("job/%s/self/cgroup.procs", set)), "0");
	assert_string_equal(got(path_of("job/cgroup.subtree_control")), "+io");
	assert_string_equal(got(path_of("job/%s/cgroup.subtree_control", set)), "+io");
	struct ks_leaf *leaf = take(cgroups);
	assert_true(ks_leaf_dir_fd(leaf) >= 0);
	assert_int_equal(enter(leaf, 0, fds), 1);
	limit(leaf, 134217728, 64, 1500);
	assert_string_equal(got(leaf_path(leaf, "job", "memory.swap.max")), "0");
	assert_string_equal(got(leaf_path(leaf, "job", "pids.max")), "65");
	assert_string_equal(got(leaf_path(leaf, "job", "cpu.max")), "150000 100000");
	ks_leaf_kill(leaf);
	assert_string_equal(got(leaf_path(leaf, "job", "cgroup.kill")), "1");
	put(path_of("job/%s/self/cgroup.procs", set), ""); /* the kernel would take us out of it */
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
	assert_true(strncmp(got(path_of("job/cgroup.procs")), "0", 1) == 0); /* moved back */
	assert_string_equal(got(path_of("job/cgroup.subtree_control")), "-io");
}

/* A plain file does not round as the kernel does: the same written limit is then a mismatch. */
static void test_v2_rounding(void **state)
{
	struct ks_cgroups *cgroups;
	struct ks_error err;

	(void)state;
	make_v2();
	cgroups = open_fake();
	struct ks_leaf *leaf = take(cgroups);
	assert_int_equal(ks_leaf_limit(leaf, 1048577, 0, 0, &err), -1);
	assert_non_null(strstr(err.text, "memory.max, but it says 1048577"));
	limit(leaf, 1048576, 0, 0);
	put(path_of("job/%s/self/cgroup.procs", cgroups->set), "");
	ks_cgroups_close(cgroups);
}

static void put_events(struct ks_leaf *leaf, int max, int oom, int kill)
{
	char text[200];

	(void)snprintf(text, sizeof(text), "low 0\nhigh 0\nmax %d\noom %d\noom_kill %d\noom_group_kill 0\n", max, oom, kill);
	put(leaf_path(leaf, "job", "memory.events.local"), text);
}

static void test_v2_facts(void **state)
{
	struct ks_cgroups *cgroups;
	struct ks_leaf_facts facts;
	char big[KS_CGROUP_TEXT + 1];

	(void)state;
	make_v2();
	cgroups = open_fake();
	struct ks_leaf *leaf = take(cgroups);
	put_events(leaf, 1, 1, 1);
	put(leaf_path(leaf, "job", "memory.current"), "100000\n");
	put(leaf_path(leaf, "job", "cpu.stat"), "usage_usec 30\nuser_usec 10\nsystem_usec 20\n");
	put(leaf_path(leaf, "job", "io.stat"), "8:0 rbytes=5 wbytes=6 rios=1 wios=1 dbytes=0 dios=0\n");
	limit(leaf, 1048576, 4, 0);
	put_events(leaf, 1, 1, 2);
	put(leaf_path(leaf, "job", "memory.current"), "150000\n");
	put(leaf_path(leaf, "job", "memory.peak"), "190000\n");
	put(leaf_path(leaf, "job", "cpu.stat"), "usage_usec 90\nuser_usec 40\nsystem_usec 50\n");
	put(leaf_path(leaf, "job", "io.stat"), "8:0 rbytes=9 wbytes=6 rios=1\n8:16 rbytes=1 wbytes=2 rios=1\n");
	put(leaf_path(leaf, "job", "pids.events"), "max 2\n");
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.oom_kills, 1);
	assert_false(facts.oom_own_limit);
	assert_int_equal(facts.memory_peak_bytes, 90000);
	assert_true(facts.memory_peak_exact);
	assert_int_equal(facts.pids_refused, 2);
	assert_int_equal(facts.pids_peak, -1); /* no pids.peak here */
	assert_int_equal(facts.cpu_user_us, 30);
	assert_int_equal(facts.cpu_system_us, 30);
	assert_int_equal(facts.io_read_bytes, 5);
	assert_int_equal(facts.io_write_bytes, 2);
	put_events(leaf, 9, 2, 2);
	ks_leaf_facts(leaf, &facts);
	assert_true(facts.oom_own_limit);
	assert_int_equal(facts.memory_peak_bytes, 190000);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	put(leaf_path(leaf, "job", "io.stat"), big); /* as long as the buffer: maybe cut, so not told */
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.io_read_bytes, -1);
	big[sizeof(big) - 2] = '\0';
	memcpy(big, "8:0 rbytes=6 wbytes=7 ", 22);
	put(leaf_path(leaf, "job", "io.stat"), big); /* one less: whole */
	ks_leaf_facts(leaf, &facts);
	assert_int_equal(facts.io_read_bytes, 1);
	put(path_of("job/%s/self/cgroup.procs", cgroups->set), "");
	ks_cgroups_close(cgroups);
}

/* Before 6.12 memory.peak cannot be reset: it tells of a box only when it rose. */
static void test_v2_old_peak(void **state)
{
	struct ks_cgroups *cgroups;
	struct ks_leaf_facts facts;

	(void)state;
	make_v2();
	cgroups = open_fake();
	struct ks_leaf *leaf = take(cgroups);
	const char *peak = leaf_path(leaf, "job", "memory.peak");
	char kept[600];
	(void)snprintf(kept, sizeof(kept), "%s", peak);
	put(kept, "500000\n");
	int fd = open(kept, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	if (leaf->files[KS_F_MEMORY_PEAK] >= 0)
		close(leaf->files[KS_F_MEMORY_PEAK]);
	leaf->files[KS_F_MEMORY_PEAK] = fd;
	limit(leaf, 1048576, 4, 0);
	put(leaf_path(leaf, "job", "memory.current"), "300000\n");
	assert_int_equal(ks_leaf_memory_now(leaf), 300000);
	put(leaf_path(leaf, "job", "memory.current"), "100000\n");
	ks_leaf_facts(leaf, &facts);
	assert_false(facts.memory_peak_exact);
	assert_int_equal(facts.memory_peak_bytes, 300000);
	put(kept, "600000\n");
	ks_leaf_facts(leaf, &facts);
	assert_true(facts.memory_peak_exact);
	assert_int_equal(facts.memory_peak_bytes, 600000);
	/* and so the next box gets another leaf, and no directory more */
	char name[sizeof(leaf->name)];
	(void)snprintf(name, sizeof(name), "%s", leaf->name);
	const int made_before = made;
	ks_leaf_release(cgroups, leaf);
	assert_int_equal(made, made_before);
	assert_int_equal(cgroups->idle_count, 1);
	leaf = take(cgroups);
	assert_string_not_equal(leaf->name, name);
	assert_string_equal(got(leaf_path(leaf, "job", "memory.peak")), "0");
	/* one that can be reset is used again */
	limit(leaf, 1048576, 4, 0);
	(void)snprintf(name, sizeof(name), "%s", leaf->name);
	ks_leaf_release(cgroups, leaf);
	leaf = take(cgroups);
	assert_string_equal(leaf->name, name);
	put(path_of("job/%s/self/cgroup.procs", cgroups->set), "");
	ks_cgroups_close(cgroups);
}

static void assert_v2_refused(const char *reason)
{
	struct ks_cgroups *cgroups = open_fake();

	assert_status(cgroups, "none", KS_ENFORCED_POLLED, KS_ENFORCED_NONE, KS_ENFORCED_NONE);
	if (!strstr(ks_cgroups_status(cgroups)->reason[KS_LIMIT_MEMORY], reason))
		fail_msg("\"%s\" has no \"%s\"", ks_cgroups_status(cgroups)->reason[KS_LIMIT_MEMORY], reason);
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

static void test_v2_refused(void **state)
{
	(void)state;
	make_v2();
	put(path_of("job/cgroup.procs"), "1\n");
	assert_v2_refused("systemd: not running here; processes besides the sidecar in ");
	put(path_of("job/cgroup.procs"), "");
	put(path_of("job/cgroup.type"), "threaded\n");
	assert_v2_refused("a threaded cgroup: ");
	put(path_of("job/cgroup.type"), "domain\n");
	put(path_of("job/cgroup.controllers"), "hugetlb cpuset\n");
	assert_v2_refused("no controllers in ");
	put(path_of("job/cgroup.controllers"), v2_has);
	forbidden = "job/kern-sidecar-"; /* the second step fails: the first is undone */
	assert_v2_refused("cannot make a cgroup: Read-only file system: ");
	assert_int_equal(unlink(path_of("job/cgroup.subtree_control")), 0);
	assert_v2_refused("not delegated to uid ");
	put(path_of("proc"), "0::/gone\n");
	assert_v2_refused("No such file or directory: ");
	put(path_of("cgroup.controllers"), "");
	assert_v2_refused("no memory controller is mounted at");
}

static void test_v2_root_and_part(void **state)
{
	struct ks_cgroups *cgroups;

	(void)state;
	make_v2(); /* the root cgroup has no type and may hold processes */
	assert_int_equal(unlink(path_of("job/cgroup.type")), 0);
	put(path_of("job/cgroup.procs"), "1\n2\n");
	put(path_of("job/cgroup.controllers"), "memory\n");
	put(path_of("job/cgroup.subtree_control"), "memory\n");
	v2_has = "memory\n";
	cgroups = open_fake();
	assert_status(cgroups, "v2", KS_ENFORCED_KERNEL, KS_ENFORCED_NONE, KS_ENFORCED_NONE);
	assert_non_null(strstr(ks_cgroups_status(cgroups)->reason[KS_LIMIT_PIDS], "the controller is not available in "));
	assert_string_equal(got(path_of("job/%s/self/cgroup.procs", cgroups->set)), "(none)");
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
	assert_string_equal(got(path_of("job/cgroup.subtree_control")), "memory"); /* was on before us: stays */
	assert_string_equal(got(path_of("job/cgroup.procs")), "1");
}

static void test_hybrid(void **state)
{
	struct ks_cgroups *cgroups;
	FILE *f;

	(void)state;
	make_v1(v1_all);
	f = fopen(path_of("mountinfo"), "ae");
	mount_line(f, "/", "unified", "cgroup2", "nsdelegate");
	(void)fclose(f);
	f = fopen(path_of("proc"), "ae");
	(void)fputs("0::/job\n", f);
	(void)fclose(f);
	assert_int_equal(mkdir(path_of("unified"), 0755), 0);
	assert_int_equal(mkdir(path_of("unified/job"), 0755), 0);
	put(path_of("unified/cgroup.controllers"), "");
	cgroups = open_fake();
	assert_status(cgroups, "hybrid", KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL);
	assert_false(ks_cgroups_status(cgroups)->clone_into);
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

/* ---- systemd ---- */

static const char bus_source[] =
	"#include <stdarg.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include "
	"<string.h>\n#include <sys/xattr.h>\n#include <unistd.h>\n"
	"struct e { const char *name, *message; int f; };\n"
	"static FILE *out(const char *n) { char p[300]; snprintf(p, 300, \"%s/%s\", "
	"getenv(\"KS_FAKE_BUS\"), n); return fopen(p, \"w\"); }\n"
	"static int mode(const char *m) { return !strcmp(getenv(\"KS_FAKE_MODE\"), m); }\n"
	"static int o(void **b, const char *w) { FILE *f = out(\"which\"); fputs(w, f); fclose(f); *b = "
	"&stdout; return mode(\"nobus\") ? -111 : 0; }\n"
	"int sd_bus_open_user(void **b) { return o(b, \"user\"); }\nint sd_bus_open_system(void **b) { "
	"return o(b, \"system\"); }\n"
	"int sd_bus_set_method_call_timeout(void *b, uint64_t us) { (void)b; FILE *f = out(\"timeout\"); "
	"fprintf(f, \"%llu\", (unsigned long long)us); fclose(f); return 0; }\n"
	"int sd_bus_call_method(void *b, const char *d, const char *p, const char *i, const char *m, "
	"struct e *e, void **r, const char *t, ...) {\n"
	"  (void)b; (void)r; va_list a; va_start(a, t); const char *unit = va_arg(a, char *);\n"
	"  FILE *f = out(\"call\"); fprintf(f, \"%s %s %s %s %s %s\", d, p, i, m, t, va_arg(a, char *));\n"
	"  for (int n = va_arg(a, int); n > 0; n--) { const char *k = va_arg(a, char *), *s = va_arg(a, char *);\n"
	"    if (!strcmp(s, \"s\")) fprintf(f, \" %s=%s\", k, va_arg(a, char *)); else if (!strcmp(s, "
	"\"b\")) fprintf(f, \" %s=%d\", k, va_arg(a, int));\n"
	"    else { int c = va_arg(a, int); uint32_t v = va_arg(a, uint32_t); fprintf(f, \" %s=%d:%d\", k, "
	"c, v == (uint32_t)getppid()); } }\n"
	"  fprintf(f, \" %d\", va_arg(a, int)); fclose(f);\n"
	"  if (mode(\"hang\")) pause();\n  if (mode(\"crash\")) _exit(0);\n"
	"  if (mode(\"refuse\")) { e->message = \"Access denied\"; return -13; }\n  if (mode(\"still\")) "
	"return 1;\n"
	"  char c[600]; snprintf(c, 600, \"cp -r %s/template %s/%s\", getenv(\"KS_FAKE_BUS\"), "
	"getenv(\"KS_FAKE_BUS\"), unit); if (system(c)) return -5;\n"
	"  snprintf(c, 600, \"%s/%s\", getenv(\"KS_FAKE_BUS\"), unit);\n"
	"  if (!mode(\"undelegated\") && setxattr(c, \"user.delegate\", \"1\", 1, 0) && setxattr(c, "
	"\"trusted.delegate\", \"1\", 1, 0)) return -95;\n"
	"  f = out(\"proc\"); fprintf(f, \"0::/%s\\n\", unit); fclose(f); return 1; }\n";

static bool build_bus(void)
{
	put(path_of("bus.c"), bus_source);
	pid_t pid = fork();
	if (pid == 0) {
		(void)execlp("cc", "cc", "-shared", "-fPIC", "-o", path_of("bus.so"), path_of("bus.c"), (char *)NULL);
		_exit(127);
	}
	int status = -1;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

static struct ks_cgroups *open_systemd(const char *mode, int timeout_ms)
{
	static char library[100];

	(void)snprintf(library, sizeof(library), "%s/bus.so", top);
	assert_int_equal(setenv("KS_FAKE_BUS", top, 1), 0);
	assert_int_equal(setenv("KS_FAKE_MODE", mode, 1), 0);
	return open_with((struct ks_cgroups_config){
		.systemd_booted = top, .systemd_library = library, .systemd_timeout_ms = timeout_ms });
}

static void assert_bus_reason(const char *mode, int timeout_ms, const char *reason)
{
	struct ks_cgroups *cgroups = open_systemd(mode, timeout_ms);

	assert_status(cgroups, "none", KS_ENFORCED_POLLED, KS_ENFORCED_NONE, KS_ENFORCED_NONE);
	if (!strstr(ks_cgroups_status(cgroups)->reason[KS_LIMIT_CPU], reason))
		fail_msg("\"%s\" has no \"%s\"", ks_cgroups_status(cgroups)->reason[KS_LIMIT_CPU], reason);
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
}

static void test_systemd(void **state)
{
	static const char call[] = "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager "
				   "StartTransientUnit ssa(sv)a(sa(sv)) fail Description=kern-sidecar boxes PIDs=1:1 Delegate=1 "
				   "MemoryAccounting=1 TasksAccounting=1 CPUAccounting=1 CollectMode=inactive-or-failed 0";
	char line[512] = "";

	(void)state;
	make_v2();
	put(path_of("job/cgroup.procs"), "1\n"); /* our shell's, say */
	assert_bus_reason("none", 10000, "bus.so (240 or later) is not installed");
	if (!build_bus()) {
		print_message("SKIPPED in part: no cc to build a fake libsystemd\n");
		return;
	}
	assert_bus_reason("nobus", 10000,
			  geteuid() == 0 ? "no system bus: Connection refused" : "no user bus: Connection refused");
	assert_string_equal(got(path_of("which")), geteuid() == 0 ? "system" : "user");
	assert_bus_reason("refuse", 10000, "systemd: Access denied");
	FILE *f = fopen(path_of("call"), "re");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	(void)fclose(f);
	assert_string_equal(line, call);
	assert_string_equal(got(path_of("timeout")), "10000000");
	assert_bus_reason("crash", 10000, "systemd: the child that asked it died");
	int64_t start = ks_now_us();
	assert_bus_reason("hang", 200, "systemd: the bus did not answer in time");
	assert_bus_reason("still", 1500, ".scope in time");
	assert_true(ks_now_us() - start < 20000000);
}

static void test_systemd_scope(void **state)
{
	char pid[32], scope[200];

	(void)state;
	make_v2();
	put(path_of("job/cgroup.procs"), "1\n");
	if (!build_bus()) {
		print_message("SKIPPED: no cc to build a fake libsystemd\n");
		skip();
	}
	make_cgroup("template"); /* what systemd makes for the scope */
	(void)snprintf(pid, sizeof(pid), "%d\n", getpid());
	put(path_of("template/cgroup.procs"), pid);
	struct ks_cgroups *cgroups = open_systemd("ok", 10000);
	assert_status(cgroups, "v2", KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL, KS_ENFORCED_KERNEL);
	(void)snprintf(scope, sizeof(scope), "kern-sidecar-%d-", getpid());
	assert_ptr_equal(strstr(cgroups->places[0].path, scope), cgroups->places[0].path + strlen(top) + 1);
	(void)snprintf(scope, sizeof(scope), "%s", cgroups->places[0].path + strlen(top) + 1);
	assert_string_equal(scope + strlen(scope) - 6, ".scope");
	assert_string_equal(got(path_of("%s/%s/self/cgroup.procs", scope, cgroups->set)), "0");
	limit(take(cgroups), 1048576, 5, 500);
	assert_string_equal(got(path_of("job/cgroup.subtree_control")), ""); /* not ours: not touched */
	put(path_of("%s/%s/self/cgroup.procs", scope, cgroups->set), "");
	ks_cgroups_close(cgroups);
	assert_int_equal(made, 0);
	if (geteuid() == 0) { /* root can write it, but it is systemd's */
		put(path_of("proc"), "0::/job\n");
		assert_bus_reason("undelegated", 2000, "in our own systemd scope: ");
		put(path_of("proc"), "0::/job\n");
		put(path_of("job/cgroup.procs"), pid);
		assert_bus_reason("refuse", 10000, "systemd: Access denied; systemd's own (no Delegate=yes): ");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAKE(test_v2),
		FAKE(test_v2_rounding),
		FAKE(test_v2_facts),
		FAKE(test_v2_old_peak),
		FAKE(test_v2_refused),
		FAKE(test_v2_root_and_part),
		FAKE(test_hybrid),
		FAKE(test_systemd),
		FAKE(test_systemd_scope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
