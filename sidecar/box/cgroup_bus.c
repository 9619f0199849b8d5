/* cgroup_bus.c: asks systemd for a scope of our own, once per sidecar (org.freedesktop.systemd1(5), StartTransientUnit;
 * sd-bus(3)). libsystemd is looked up when it is needed, by a child process that is gone afterwards: neither its
 * memory nor a bus that does not answer becomes ours. */
#include "box/cgroup_impl.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"

struct sd_bus;
struct sd_bus_message;

/* Laid out as sd_bus_error (sd_bus_error(3)). */
struct bus_error {
	const char *name, *message;
	int need_free;
};

struct bus_calls {
	int (*open_user)(struct sd_bus **ret);
	int (*open_system)(struct sd_bus **ret);
	int (*set_timeout)(struct sd_bus *bus, uint64_t us);
	int (*call_method)(struct sd_bus *bus, const char *destination, const char *path, const char *interface,
			   const char *member, struct bus_error *ret_error, struct sd_bus_message **reply,
			   const char *types, ...);
};

static bool find_calls(const char *library, struct bus_calls *ret)
{
	const struct {
		const char *name;
		void *to;
	} calls[] = {
		{ "sd_bus_open_user", &ret->open_user },
		{ "sd_bus_open_system", &ret->open_system },
		{ "sd_bus_set_method_call_timeout", &ret->set_timeout }, /* systemd 240 */
		{ "sd_bus_call_method", &ret->call_method },
	};
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; i < KS_COUNT(calls); i++) {
		void *symbol = handle ? dlsym(handle, calls[i].name) : NULL;

		if (!symbol)
			return false;
		memcpy(calls[i].to, &symbol, sizeof(symbol)); /* POSIX's way from an object to a function pointer */
	}
	return true;
}

/* Hosts often start us with an empty environment; pam_systemd(8) always uses this directory. */
static void point_to_user_bus(void)
{
	char dir[64];

	(void)snprintf(dir, sizeof(dir), "/run/user/%u", (unsigned)geteuid());
	(void)setenv("XDG_RUNTIME_DIR", dir, 0);
}

/* In the child. Leaves nothing in ret_reason when it worked. */
static void start_scope(const struct ks_cgroups_config *config, const char *unit, pid_t pid, char *ret_reason,
			size_t size)
{
	struct bus_calls calls;
	struct sd_bus *bus = NULL;
	struct bus_error error = { NULL, NULL, 0 };

	if (!find_calls(config->systemd_library, &calls)) {
		(void)snprintf(ret_reason, size, "%s (240 or later) is not installed", config->systemd_library);
		return;
	}
	if (geteuid() != 0)
		point_to_user_bus();
	int rc = geteuid() == 0 ? calls.open_system(&bus) : calls.open_user(&bus);
	if (rc < 0) {
		(void)snprintf(ret_reason, size, "no %s bus: %s", geteuid() == 0 ? "system" : "user", strerrordesc_np(-rc));
		return;
	}
	(void)calls.set_timeout(bus, (uint64_t)config->systemd_timeout_ms * 1000);
	rc = calls.call_method(bus, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
			       "org.freedesktop.systemd1.Manager", "StartTransientUnit", &error, NULL,
			       "ssa(sv)a(sa(sv))", unit, "fail", 7, /* */
			       "Description", "s", "kern-sidecar boxes", /* */
			       "PIDs", "au", 1, (uint32_t)pid, /* */
			       "Delegate", "b", 1, /* */
			       "MemoryAccounting", "b", 1, /* */
			       "TasksAccounting", "b", 1, /* */
			       "CPUAccounting", "b", 1, /* */
			       "CollectMode", "s", "inactive-or-failed", /* */
			       0);
	if (rc < 0)
		(void)snprintf(ret_reason, size, "%.150s", error.message ? error.message : strerrordesc_np(-rc));
}

/* How many bytes the child wrote before it ended; -1 when it took too long. */
static ssize_t hear_child(int fd, int64_t until_us, char *ret_text, size_t size)
{
	struct pollfd said = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len < size) {
		int64_t left_ms = (until_us - ks_now_us()) / 1000;

		if (left_ms <= 0 || poll(&said, 1, (int)left_ms) == 0)
			return -1;
		ssize_t n = read(fd, ret_text + len, size - len);
		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)len;
}

static bool ask_in_child(const struct ks_cgroups_config *config, const char *unit, int64_t until_us, char *ret_reason,
			 size_t size)
{
	KS_AUTOCLOSE int from = -1;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return snprintf(ret_reason, size, "no pipe: %s", strerrordesc_np(errno)) < 0;
	from = ends[0];
	pid_t self = getpid(), pid = fork();
	if (pid == 0) {
		char text[160] = "";

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		start_scope(config, unit, self, text, sizeof(text));
		/* with its NUL: a child that crashed says nothing at all */
		ssize_t n = write(ends[1], text, strlen(text) + 1);
		_exit(n < 0);
	}
	ks_close(&ends[1]);
	if (pid < 0)
		return snprintf(ret_reason, size, "no child process: %s", strerrordesc_np(errno)) < 0;
	char heard[160] = "";
	ssize_t len = hear_child(from, until_us, heard, sizeof(heard));
	(void)kill(pid, SIGKILL); /* our own child, not waited for yet: the number is still its */
	(void)waitpid(pid, NULL, 0);
	if (len > 0 && heard[0] == '\0')
		return true;
	heard[sizeof(heard) - 1] = '\0';
	(void)snprintf(ret_reason, size, "%s",
		       len > 0 ? heard : len < 0 ? "the bus did not answer in time" : "the child that asked it died");
	return false;
}

/* The reply only says that the job is queued; we are there when /proc says so. */
static bool wait_for_move(const struct ks_cgroups_config *config, const char *unit, int64_t until_us)
{
	char text[KS_CGROUP_TEXT];

	do {
		if (ks_cgroup_read_at(AT_FDCWD, config->proc_cgroup, text, sizeof(text)) > 0 && strstr(text, unit))
			return true;
		(void)poll(NULL, 0, 2);
	} while (ks_now_us() < until_us);
	return false;
}

bool ks_cgroup_ask_systemd(const struct ks_cgroups_config *config, char *ret_reason, size_t size)
{
	int64_t until_us = ks_now_us() + (int64_t)config->systemd_timeout_ms * 1000;
	char unit[64];

	if (!*config->systemd_library || access(config->systemd_booted, F_OK) < 0) {
		(void)snprintf(ret_reason, size, "not running here");
		return false;
	}
	/* process ids come again; a failed unit of that name may still be known */
	(void)snprintf(unit, sizeof(unit), KS_CGROUP_PREFIX "%d-%08x.scope", (int)getpid(), (unsigned)until_us);
	if (!ask_in_child(config, unit, until_us, ret_reason, size))
		return false;
	if (wait_for_move(config, unit, until_us))
		return true;
	(void)snprintf(ret_reason, size, "not moved into %s in time", unit);
	return false;
}
