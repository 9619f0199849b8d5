/* cgroup_find.c: where our cgroups may be (proc(5), cgroups(7)), and taking what we may have of it. */
#include "box/cgroup_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>

#include "base/buf.h"

#define PROC_MAX (1u << 20) /* of /proc/self/mountinfo; a longer one is cut, and later mounts are not seen */
#define SELF "self"	    /* v2: the leaf that we move into */

/* A hierarchy that we are in. */
struct home {
	unsigned functions; /* v1: what it has; v2: 0 */
	bool v2;
	char path[KS_CGROUP_PATH];
	char mount[KS_CGROUP_PATH]; /* the highest that we see of it */
};

const char *ks_function_name(enum ks_function fn, bool v2)
{
	static const char *const v1_names[] = { "memory", "pids", "cpu", "cpuacct", "blkio" };

	if (v2 && fn == KS_FN_IO)
		return "io";
	return (unsigned)fn < KS_COUNT(v1_names) ? v1_names[fn] : "";
}

int ks_cgroup_read_at(int dirfd, const char *name, char *ret_text, size_t size)
{
	KS_AUTOCLOSE int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, ret_text, size) : -1;

	if (n < 0)
		return -errno;
	if ((size_t)n == size)
		return -E2BIG;
	ret_text[n] = '\0';
	return (int)n;
}

int ks_cgroup_write_at(int dirfd, const char *name, const char *text)
{
	KS_AUTOCLOSE int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -errno;
}

static void KS_PRINTF(3, 4) set_reason(struct ks_cgroups *cgroups, unsigned functions, const char *fmt, ...)
{
	char text[sizeof(cgroups->status.reason[0])];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	for (int kind = 0; kind < KS_LIMIT_KINDS; kind++)
		if (functions & KS_FN(kind))
			(void)snprintf(cgroups->status.reason[kind], sizeof(text), "%s", text);
}

static int read_proc(const char *path, struct ks_buf *ret)
{
	KS_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (n > 0 && ret->len < PROC_MAX) {
		char *room = ks_buf_reserve(ret, 4096);

		if (!room)
			return -ENOMEM;
		n = read(fd, room, 4096);
		if (n > 0)
			ret->len += (size_t)n;
	}
	ks_buf_char(ret, '\0');
	return ret->failed ? -ENOMEM : n < 0 ? -errno : 0;
}

/* mountinfo writes space, tab, newline and backslash as three octal digits. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *c = text; *c; to++) {
		if (c[0] == '\\' && c[1] >= '0' && c[1] <= '3' && c[2] >= '0' && c[2] <= '7' && c[3] >= '0' &&
		    c[3] <= '7') {
			*to = (char)((c[1] - '0') * 64 + (c[2] - '0') * 8 + (c[3] - '0'));
			c += 4;
		} else {
			*to = *c++;
		}
	}
	*to = '\0';
}

/* What is left of `path` below `above`, "" when they are one; NULL when it is not below. */
static const char *below(const char *path, const char *above)
{
	size_t len = strlen(above);

	while (len > 0 && above[len - 1] == '/')
		len--;
	if (strncmp(path, above, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return strcmp(path + len, "/") == 0 ? "" : path + len;
}

/* The directory of cgroup `cgroup` (as /proc/self/cgroup has it) where this line of mountinfo mounts its hierarchy.
 * Fields: id parent device root mount-point options … - type source super-options. `word`: a v1 controller. */
static bool mounted_at(const char *line, const char *root, const char *word, const char *cgroup, struct home *ret)
{
	char mount_root[KS_CGROUP_PATH], mount_point[KS_CGROUP_PATH], type[16];
	const char *rest = strstr(line, " - ");
	int at = 0;

	if (!rest || sscanf(line, "%*d %*d %*s %511s %511s ", mount_root, mount_point) != 2 ||
	    sscanf(rest, " - %15s %*s %n", type, &at) != 1 || at == 0)
		return false;
	if (strcmp(type, word ? "cgroup" : "cgroup2") != 0 || (word && !ks_cgroup_word(rest + at, ',', word)))
		return false;
	unescape(mount_root);
	unescape(mount_point);
	const char *inside = below(cgroup, mount_root);
	if (!inside || !below(mount_point, root) || strstr(cgroup, "/..")) /* "/..": outside our cgroup namespace */
		return false;
	(void)snprintf(ret->mount, sizeof(ret->mount), "%s", mount_point);
	int n = snprintf(ret->path, sizeof(ret->path), "%s%s", mount_point, inside);
	return n > 0 && (size_t)n < sizeof(ret->path);
}

static bool find_mount(const char *mountinfo, const char *root, const char *word, const char *cgroup, struct home *ret)
{
	for (const char *line = mountinfo; *line;) {
		size_t len = strcspn(line, "\n");
		char one[4096];

		if (len < sizeof(one)) {
			memcpy(one, line, len);
			one[len] = '\0';
			if (mounted_at(one, root, word, cgroup, ret))
				return true;
		}
		line += len + (line[len] == '\n');
	}
	return false;
}

/* "4:cpu,cpuacct:/path", "0::/path" */
static bool parse_home(char *line, const char *mountinfo, const char *root, struct home *ret)
{
	char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
	const char *word = NULL;

	if (!path)
		return false;
	*path++ = '\0';
	controllers++;
	*ret = (struct home){ .v2 = !*controllers };
	for (int fn = 0; fn < KS_FN_COUNT && !ret->v2; fn++)
		if (ks_cgroup_word(controllers, ',', ks_function_name((enum ks_function)fn, false))) {
			ret->functions |= KS_FN(fn);
			word = ks_function_name((enum ks_function)fn, false);
		}
	return (ret->v2 || word) && find_mount(mountinfo, root, word, path, ret);
}

static int find_homes(const struct ks_cgroups_config *config, struct home homes[KS_PLACES + 1])
{
	KS_AUTOBUF struct ks_buf own = { 0 }, mounts = { 0 };
	char *save = NULL;
	int count = 0;

	if (read_proc(config->proc_cgroup, &own) < 0 || read_proc(config->proc_mountinfo, &mounts) < 0)
		return 0;
	for (char *line = strtok_r(own.data, "\n", &save); line && count <= KS_PLACES; line = strtok_r(NULL, "\n", &save))
		if (parse_home(line, mounts.data, config->root, &homes[count]))
			count++;
	return count;
}

/* ---- v2 ---- */

static void switch_controllers(int dirfd, unsigned functions, char sign)
{
	for (int fn = 0; fn < KS_FN_COUNT; fn++) {
		char text[16];

		if (!(functions & KS_FN(fn)))
			continue;
		(void)snprintf(text, sizeof(text), "%c%s\n", sign, ks_function_name((enum ks_function)fn, true));
		(void)ks_cgroup_write_at(dirfd, "cgroup.subtree_control", text);
	}
}

/* The kernel refuses to switch a controller off that a neighbour's subtree uses (EBUSY), so no care is needed there. */
void ks_cgroup_give_back(struct ks_cgroups *cgroups, struct ks_place *place)
{
	if (place->set_fd >= 0) {
		if (place->ops == &ks_cgroup_v2) {
			switch_controllers(place->set_fd, place->functions, '-');
			switch_controllers(place->own_fd, place->switched_on, '-');
		}
		if (place->moved)
			(void)ks_cgroup_write_at(place->own_fd, "cgroup.procs", "0");
		ks_cgroup_remove_children(&cgroups->config, place->set_fd);
		(void)cgroups->config.remove_dir(place->own_fd, cgroups->set, AT_REMOVEDIR);
	}
	ks_close(&place->set_fd);
	ks_close(&place->own_fd);
}

/* Also when it cannot be told. */
static bool has_others(int dirfd)
{
	char text[KS_CGROUP_TEXT], *save = NULL;

	if (ks_cgroup_read_at(dirfd, "cgroup.procs", text, sizeof(text)) < 0)
		return true;
	for (const char *pid = strtok_r(text, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save))
		if (ks_cgroup_value(pid) != getpid())
			return true;
	return false;
}

/* systemd marks what it has given away (its CGROUP_DELEGATION document); what it has not, root can write, too, but
 * systemd would undo it. Without systemd what can be written is ours. */
static bool delegated(const struct ks_cgroups_config *config, int own)
{
	char mark[2];

	if (geteuid() != 0 || access(config->systemd_booted, F_OK) < 0)
		return true;
	return (fgetxattr(own, "trusted.delegate", mark, sizeof(mark)) == 1 && mark[0] == '1') ||
	       (fgetxattr(own, "user.delegate", mark, sizeof(mark)) == 1 && mark[0] == '1');
}

/* The root cgroup has no cgroup.type and may hold processes beside children with controllers. */
static int check_v2(const struct ks_cgroups_config *config, const struct ks_place *place, bool *ret_root,
		    char *ret_reason, size_t size)
{
	char text[64];
	int n = ks_cgroup_read_at(place->own_fd, "cgroup.type", text, sizeof(text));

	*ret_root = n == -ENOENT;
	if (!*ret_root && (n < 0 || !ks_cgroup_word(text, '\n', "domain")))
		return snprintf(ret_reason, size, "a threaded cgroup: %s", place->path);
	if (faccessat(place->own_fd, "cgroup.procs", W_OK, AT_EACCESS) < 0 ||
	    faccessat(place->own_fd, "cgroup.subtree_control", W_OK, AT_EACCESS) < 0)
		return snprintf(ret_reason, size, "not delegated to uid %u: %s", (unsigned)geteuid(), place->path);
	if (!delegated(config, place->own_fd))
		return snprintf(ret_reason, size, "systemd's own (no Delegate=yes): %s", place->path);
	if (!*ret_root && has_others(place->own_fd))
		return snprintf(ret_reason, size, "processes besides the sidecar in %s", place->path);
	return 0;
}

/* 0 and a place, or not 0 and a reason. */
static int take_v2(struct ks_cgroups *cgroups, const char *path, unsigned wanted, struct ks_place *ret,
		   char *ret_reason, size_t size)
{
	char available[KS_CGROUP_TEXT], active[KS_CGROUP_TEXT];
	bool root;
	int rc = ks_cgroup_open_own(&cgroups->config, path, ret);

	if (rc < 0)
		return snprintf(ret_reason, size, "%s: %s", strerrordesc_np(-rc), path);
	ret->ops = &ks_cgroup_v2;
	if (check_v2(&cgroups->config, ret, &root, ret_reason, size) != 0)
		return -1;
	if (ks_cgroup_read_at(ret->own_fd, "cgroup.controllers", available, sizeof(available)) < 0 ||
	    ks_cgroup_read_at(ret->own_fd, "cgroup.subtree_control", active, sizeof(active)) < 0)
		return snprintf(ret_reason, size, "controllers cannot be read: %s", path);
	for (int fn = 0; fn < KS_FN_COUNT; fn++) {
		const char *name = ks_function_name((enum ks_function)fn, true);

		if (!(wanted & KS_FN(fn)) || fn == KS_FN_ACCT || !ks_cgroup_word(available, ' ', name))
			continue;
		ret->functions |= KS_FN(fn);
		if (!ks_cgroup_word(active, ' ', name))
			ret->switched_on |= KS_FN(fn);
	}
	if (!(ret->functions & KS_FN_LIMITS))
		return snprintf(ret_reason, size, "no controllers in %s", path);
	rc = ks_cgroup_make_set(cgroups, ret);
	if (rc == 0 && !root) {
		rc = cgroups->config.make_dir(ret->set_fd, SELF, 0755) < 0 ?
			     -errno :
			     ks_cgroup_write_at(ret->set_fd, SELF "/cgroup.procs", "0");
		ret->moved = rc == 0;
	}
	if (rc < 0)
		return snprintf(ret_reason, size, "cannot make a cgroup: %s: %s", strerrordesc_np(-rc), path);
	switch_controllers(ret->own_fd, ret->switched_on, '+');
	switch_controllers(ret->set_fd, ret->functions, '+');
	if (wanted & KS_FN(KS_FN_ACCT)) /* cpu.stat needs no controller */
		ret->functions |= KS_FN(KS_FN_ACCT);
	return 0;
}

static bool has_controllers(const struct home *home, unsigned wanted)
{
	char path[KS_CGROUP_PATH + 32], text[KS_CGROUP_TEXT];

	(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", home->mount);
	if (ks_cgroup_read_at(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	for (int kind = 0; kind < KS_LIMIT_KINDS; kind++)
		if ((wanted & KS_FN(kind)) && ks_cgroup_word(text, ' ', ks_function_name((enum ks_function)kind, true)))
			return true;
	return false;
}

static const struct home *find_v2(const struct home *homes, int count)
{
	for (int i = 0; i < count; i++)
		if (homes[i].v2)
			return &homes[i];
	return NULL;
}

static void claim_v2(struct ks_cgroups *cgroups, const struct home *home, unsigned wanted)
{
	struct ks_place *place = &cgroups->places[cgroups->place_count];
	char why[160], systemd[160];

	if (!has_controllers(home, wanted)) /* the empty v2 mount of a hybrid host */
		return;
	if (take_v2(cgroups, home->path, wanted, place, why, sizeof(why)) != 0) {
		struct home homes[KS_PLACES + 1];

		ks_cgroup_give_back(cgroups, place);
		if (!ks_cgroup_ask_systemd(&cgroups->config, systemd, sizeof(systemd))) {
			set_reason(cgroups, wanted, "systemd: %.70s; %s", systemd, why);
			return;
		}
		const struct home *scope = find_v2(homes, find_homes(&cgroups->config, homes));
		if (!scope || take_v2(cgroups, scope->path, wanted, place, why, sizeof(why)) != 0) {
			set_reason(cgroups, wanted, "in our own systemd scope: %s", scope ? why : "it is not mounted");
			if (scope)
				ks_cgroup_give_back(cgroups, place);
			return;
		}
	}
	cgroups->place_count++;
	set_reason(cgroups, wanted & ~place->functions, "the controller is not available in %.100s", place->path);
}

/* ---- v1 ---- */

static void claim_v1(struct ks_cgroups *cgroups, const struct home *home)
{
	struct ks_place *place = &cgroups->places[cgroups->place_count];
	int rc = ks_cgroup_open_own(&cgroups->config, home->path, place);

	place->ops = &ks_cgroup_v1;
	place->functions = home->functions;
	if (rc == 0)
		rc = ks_cgroup_make_set(cgroups, place);
	if (rc == 0) {
		cgroups->place_count++;
		return;
	}
	set_reason(cgroups, home->functions, "cannot make a cgroup: %s: %s", strerrordesc_np(-rc), home->path);
	ks_cgroup_give_back(cgroups, place);
}

int ks_cgroup_claim(struct ks_cgroups *cgroups, bool *ret_v2_mounted, struct ks_error *err)
{
	struct home homes[KS_PLACES + 1];
	unsigned random, on_v1 = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return ks_fail_errno(err, KS_E_INTERNAL, errno, "no random name for the cgroups");
	(void)snprintf(cgroups->set, sizeof(cgroups->set), KS_CGROUP_PREFIX "%u-%08x", (unsigned)geteuid(), random);
	int count = find_homes(&cgroups->config, homes);
	const struct home *v2 = find_v2(homes, count);
	for (int i = 0; i < count; i++)
		on_v1 |= homes[i].functions;
	for (int kind = 0; kind < KS_LIMIT_KINDS; kind++)
		set_reason(cgroups, KS_FN(kind), "no %s controller is mounted at %.100s",
			   ks_function_name((enum ks_function)kind, false), cgroups->config.root);
	unsigned rest = ((1u << KS_FN_COUNT) - 1) & ~on_v1;
	if (v2 && (rest & KS_FN_LIMITS))
		claim_v2(cgroups, v2, rest);
	for (int i = 0; i < count; i++)
		if (!homes[i].v2 && cgroups->place_count < KS_PLACES)
			claim_v1(cgroups, &homes[i]);
	*ret_v2_mounted = v2 != NULL;
	return 0;
}
