#include "session/posture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "box/idmap.h"
#include "box/init.h"
#include "session/deps.h"
#include "session/disk.h"
#include "session/identity.h"
#include "session/mounts.h"
#include "session/storage.h"

#define MIB ((uint64_t)1 << 20)

const char *const ks_posture_env[] = {
	"PATH=" KS_BOX_PATH,
	"HOME=" KS_HOME_DIR,
	"SHELL=/bin/sh",
	"LANG=C.UTF-8", /* en_US is often not installed, C makes programs refuse non-ASCII text */
	"TERM=dumb",
	"TMPDIR=/tmp",
	/* HOME is writable, and caches land there: npm, pip, go and matplotlib fail with misleading errors otherwise */
	"XDG_CACHE_HOME=" KS_HOME_DIR "/.cache",
	"XDG_CONFIG_HOME=" KS_HOME_DIR "/.config",
	"XDG_DATA_HOME=" KS_HOME_DIR "/.local/share",
	"XDG_STATE_HOME=" KS_HOME_DIR "/.local/state",
	"MPLCONFIGDIR=" KS_HOME_DIR "/.config/matplotlib",
	NULL,
};

/* Of the host's /etc, for programs of its /usr: nothing with a secret or a name of this machine in it. */
static const char *const host_etc[] = {
	"alternatives",	    "ca-certificates", "ca-certificates.conf", "crypto-policies", "fonts", "java-11-openjdk",
	"java-17-openjdk",  "java-21-openjdk", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",    "localtime", "magic",
	"magic.mime",	    "matplotlibrc",    "mime.types",  "perl",	    "pki/ca-trust",    "pki/tls/certs",
	"protocols",	    "python3",	       "python3.8",   "python3.9",  "python3.10",      "python3.11",
	"python3.12",	    "python3.13",      "python3.14",  "services",   "ssl/certs",       "ssl/openssl.cnf",
	"terminfo",	    "timezone",
};

/* Files of ours in every box's /etc. What they say depends on the session where `text` is NULL. */
static const struct {
	const char *path, *text;
} own_files[] = {
	{ "/etc/passwd", NULL },
	{ "/etc/group", NULL },
	{ "/etc/hosts", NULL },
	{ "/etc/hostname", "sandbox\n" },
	{ "/etc/resolv.conf", NULL },
	{ "/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "/etc/machine-id", "00000000000000000000000000000001\n" },
};

static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

static const struct {
	const char *path, *to;
} device_links[] = {
	{ "/dev/fd", "/proc/self/fd" },		{ "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" },	{ "/dev/stderr", "/proc/self/fd/2" },
	{ "/dev/ptmx", "pts/ptmx" },
};

/* World-readable, and about the host: names of its keys, keystroke and timer activity, its devices; and pressure, whose files take
 * triggers from everyone, each work for a thread of the kernel (Documentation/accounting/psi.rst). What only root may read needs no
 * mask: host root has no id in a box. */
static const char *const proc_masks[] = { "/proc/keys",	  "/proc/key-users", "/proc/interrupts", "/proc/timer_list",
					  "/proc/asound", "/proc/scsi",	     "/proc/acpi",	 "/proc/pressure" };

/* A small file of the host, as it is; empty when there is none. */
static void add_host_file(struct ks_buf *text, const char *path)
{
	KS_AUTOCLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char room[16384];
	ssize_t n = fd < 0 ? -1 : read(fd, room, sizeof(room));

	if (n > 0)
		ks_buf_add(text, room, (size_t)n);
}

static void write_own_file(const struct ks_session *session, const char *path, struct ks_buf *text)
{
	const bool other = session->box_uid != 0 && session->box_uid != KS_BOX_UID;

	if (strcmp(path, "/etc/passwd") == 0) {
		ks_buf_str(text, "root:x:0:0:root:" KS_HOME_DIR ":/bin/sh\nsandbox:x:1000:1000::" KS_HOME_DIR ":/bin/sh\n");
		if (other)
			ks_buf_printf(text, "%s:x:%u:%u::" KS_HOME_DIR ":/bin/sh\n", session->user_name, session->box_uid,
				      session->box_gid);
		ks_buf_str(text, "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n");
	} else if (strcmp(path, "/etc/group") == 0) {
		ks_buf_str(text, "root:x:0:\nsandbox:x:1000:\n");
		if (other && session->box_gid != 0 && session->box_gid != KS_BOX_UID)
			ks_buf_printf(text, "%s:x:%u:\n", session->user_name, session->box_gid);
		ks_buf_str(text, "nogroup:x:65534:\n");
	} else if (session->network || session->stage) {
		add_host_file(text, path); /* resolv.conf and hosts: names must mean there what they mean here */
	} else if (strcmp(path, "/etc/hosts") == 0) {
		ks_buf_str(text, "127.0.0.1 localhost sandbox\n::1 localhost\n");
	}
}

static int plan_own_file(const struct ks_session *session, struct ks_plan *plan, size_t index, const char *target,
			 struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf text = { 0 };

	if (own_files[index].text)
		return ks_plan_file(plan, target, own_files[index].text, err);
	write_own_file(session, own_files[index].path, &text);
	ks_buf_char(&text, '\0');
	return text.failed ? ks_fail(err, KS_E_INTERNAL, "out of memory") : ks_plan_file(plan, target, text.data, err);
}

static int plan_own_etc(const struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	for (size_t i = 0; i < KS_COUNT(own_files); i++)
		if (plan_own_file(session, plan, i, own_files[i].path, err) < 0)
			return -1;
	return 0;
}

static int bind_path(struct ks_plan *plan, int dirfd, const char *name, const char *source, const char *target, unsigned flags,
		     struct ks_error *err)
{
	KS_AUTOCLOSE int fd = openat(dirfd, name, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return ks_fail_errno(err, KS_E_START_FAILED, errno, "%s", source);
	return ks_plan_bind(plan, fd, source, target, flags, -1, err);
}

/* Where links on the way are followed: the name that /proc gives the pinned file is the one to look up again. */
static int bind_canonical(struct ks_plan *plan, int fd, const char *target, unsigned flags, struct ks_error *err)
{
	char link[64], path[4096];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return ks_fail_errno(err, KS_E_START_FAILED, errno, "cannot name the source of %s", target);
	path[n] = '\0';
	return ks_plan_bind(plan, fd, path, target, flags, -1, err);
}

static int plan_image(const struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	const struct ks_image *image = session->image;
	char target[300], source[4400];
	/* ours, or made per box */
	static const char *const skip[] = { "dev", "proc", "sys", "tmp", "run", "home", "workspace", "root", "mnt", "media" };

	for (size_t i = 0; i < image->count; i++) {
		const struct ks_image_entry *entry = &image->entries[i];
		bool ours = false;
		for (size_t k = 0; k < KS_COUNT(skip); k++)
			ours |= strcmp(entry->name, skip[k]) == 0;
		if (ours)
			continue;
		(void)snprintf(target, sizeof(target), "/%s", entry->name);
		(void)snprintf(source, sizeof(source), "%s/%s", strcmp(image->path, "/") ? image->path : "", entry->name);
		int rc = entry->is_link ? ks_plan_symlink(plan, target, entry->link_target, err) :
					  bind_path(plan, image->root_fd, entry->name, source, target, KS_STEP_RDONLY, err);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int plan_host_etc(const struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	char path[128];

	if (plan_own_etc(session, plan, err) < 0)
		return -1;
	for (size_t i = 0; i < KS_COUNT(host_etc); i++) {
		(void)snprintf(path, sizeof(path), "/etc/%s", host_etc[i]);
		KS_AUTOCLOSE int fd = open(path, O_PATH | O_CLOEXEC);
		if (fd >= 0 && bind_canonical(plan, fd, path, KS_STEP_RDONLY, err) < 0)
			return -1;
	}
	return 0;
}

static bool has_regular(int dirfd, const char *path)
{
	struct stat st;

	return fstatat(dirfd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* An image brings its own /etc, read-only; where it has one of these files, ours lies over it. */
static int plan_image_etc(struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	KS_AUTOCLOSE int etc = openat(session->image->root_fd, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char name[128];

	if (etc < 0 && errno == ENOENT)
		return plan_own_etc(session, plan, err);
	if (etc < 0) /* a link would lead our files away */
		return ks_fail_at(err, KS_E_IMAGE_INVALID, "/image", "the /etc of the image %.200s is no directory",
				  session->image->ref);
	for (size_t i = 0; i < KS_COUNT(own_files); i++) {
		if (!has_regular(etc, own_files[i].path + strlen("/etc/")))
			continue;
		(void)snprintf(name, sizeof(name), KS_RUNNER_DIR "/etc/%s", own_files[i].path + strlen("/etc/"));
		if (plan_own_file(session, plan, i, name, err) < 0 ||
		    ks_plan_cover(plan, name, own_files[i].path, err) < 0)
			return -1;
	}
	return 0;
}

static int plan_dev(struct ks_plan *plan, struct ks_error *err)
{
	char path[32];

	for (size_t i = 0; i < KS_COUNT(devices); i++) {
		(void)snprintf(path, sizeof(path), "/dev/%s", devices[i]);
		if (bind_path(plan, AT_FDCWD, path, path, path, KS_STEP_DEVICE, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < KS_COUNT(device_links); i++)
		if (ks_plan_symlink(plan, device_links[i].path, device_links[i].to, err) < 0)
			return -1;
	return ks_plan_dir(plan, "/dev/shm", 0755, err) < 0 ? -1 : ks_plan_dir(plan, "/dev/pts", 0755, err);
}

static int plan_runners(const struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	const struct ks_plugins *plugins = session->core->plugins;
	char target[128];

	for (struct ks_list *n = plugins ? plugins->loaded.next : NULL; n && n != &plugins->loaded; n = n->next) {
		const struct ks_plugin *plugin = KS_ENTRY(n, struct ks_plugin, node);
		if (!plugin->runner_dir)
			continue;
		(void)snprintf(target, sizeof(target), KS_RUNNER_DIR "/%s", plugin->api.name);
		KS_AUTOCLOSE int fd = open(plugin->runner_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return ks_fail_errno(err, KS_E_PLUGIN_ERROR, errno, "%s", plugin->runner_dir);
		if (bind_canonical(plan, fd, target, KS_STEP_RDONLY, err) < 0)
			return -1;
	}
	return 0;
}

/* Where the box will mount a file system of its own over what the template has. */
static bool is_covered(const struct ks_session *session, const char *target)
{
	if (ks_path_within(target, "/home") || ks_path_within(target, "/dev/shm"))
		return true;
	for (size_t i = 0; i < session->tmpfs_count; i++)
		if (ks_path_within(target, session->tmpfs[i].target))
			return true;
	return false;
}

static void hidden_place(size_t index, char place[64])
{
	(void)snprintf(place, 64, KS_RUNNER_DIR "/mounts/%zu", index);
}

/* Real root owns it, or somebody who is not the box's user: shown as the user's own. */
static int bind_mapped(struct ks_session *session, struct ks_plan *plan, int fd, const char *source, const char *target,
		       unsigned flags, uid_t from_uid, gid_t from_gid, struct ks_error *err)
{
	KS_AUTOCLOSE int idmap = ks_idmap_namespace(from_uid, from_gid, session->owner_uid, session->owner_gid, err);

	if (idmap < 0)
		return -1;
	if (ks_plan_bind(plan, fd, source, target, flags, idmap, err) == 0)
		return 0;
	err->reason = KS_E_MOUNT_REFUSED;
	return ks_error_hint(err, "root owns this directory and its file system knows no id-mapped mounts: give it to an ordinary user "
				  "(chown), or ask for mapOwner:true, which lets the code act as root on these files");
}

/* The first template mounts it; each further one gets a clone of that mount from the first. */
static int plan_memory(struct ks_session *session, struct ks_plan *plan, const char *target, struct ks_error *err)
{
	const uint64_t names = (uint64_t)session->workspace_max_mb * KS_DISK_FILES_PER_MB;
	int pair[2];

	if (!session->group)
		return ks_plan_memory(plan, target, (uint64_t)session->workspace_max_mb * MIB, names + 1, err); /* 1: its root */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return ks_fail_errno(err, KS_E_START_FAILED, errno, "cannot hand on the workspace");
	int rc = ks_plan_sent(plan, pair[0], target, err);
	if (rc == 0)
		ks_group_send_memory(session->group, pair[1]);
	ks_close_all(pair, 2);
	return rc;
}

static int plan_workspace_at(struct ks_session *session, struct ks_plan *plan, const char *target, struct ks_error *err)
{
	if (session->workspace_memory)
		return plan_memory(session, plan, target, err);
	if (!session->id_mapped)
		return ks_plan_bind(plan, session->workspace_fd, session->workspace, target, 0, -1, err);
	return bind_mapped(session, plan, session->workspace_fd, session->workspace, target, 0, 0, 0, err) < 0 ?
		       ks_error_at(err, "/workspace") : 0;
}

static int plan_workspace(struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	char hidden[64];

	hidden_place(0, hidden);
	const char *target = is_covered(session, session->workspace_target) ? hidden : session->workspace_target;
	return plan_workspace_at(session, plan, target, err) < 0 ? -1 : ks_deps_plan(session, target, plan, err);
}

static int plan_mount(struct ks_session *session, size_t index, struct ks_plan *plan, struct ks_error *err)
{
	const struct ks_session_mount *mount = &session->mounts[index];
	unsigned flags = mount->writable ? 0 : KS_STEP_RDONLY;
	char hidden[64];

	hidden_place(index + 1, hidden);
	const char *target = is_covered(session, mount->target) ? hidden : mount->target;
	if (!mount->id_mapped)
		return ks_plan_bind(plan, mount->fd, mount->source, target, flags, -1, err);
	if (bind_mapped(session, plan, mount->fd, mount->source, target, flags, mount->owner_uid, mount->owner_gid, err) == 0)
		return 0;
	if (mount->writable)
		return ks_error_at(err, "/mounts");
	/* to read what the world may read, no id map is needed */
	return ks_plan_bind(plan, mount->fd, mount->source, target, flags, -1, err);
}

/* What the box's own file systems have covered, once more. */
static int plan_covered(const struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	char hidden[64];

	hidden_place(0, hidden);
	if (is_covered(session, session->workspace_target) && ks_plan_again(plan, hidden, session->workspace_target, err) < 0)
		return -1;
	for (size_t i = 0; i < session->mount_count; i++) {
		hidden_place(i + 1, hidden);
		if (is_covered(session, session->mounts[i].target) && ks_plan_again(plan, hidden, session->mounts[i].target, err) < 0)
			return -1;
	}
	return 0;
}

static int plan_box_mounts(const struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	uint64_t half = (uint64_t)session->limits.memory_bytes / 2, home = half < 64 * MIB ? half : 64 * MIB;

	for (size_t i = 0; i < session->tmpfs_count; i++)
		if (!ks_deps_replaces(session, session->tmpfs[i].target) &&
		    ks_plan_tmpfs(plan, session->tmpfs[i].target, session->tmpfs[i].size, 65536, 01777, err) < 0)
			return -1;
	if (ks_plan_tmpfs(plan, "/dev/shm", session->shm_size, 16384, 01777, err) < 0 ||
	    (!ks_deps_replaces(session, "/home") && ks_plan_tmpfs(plan, "/home", home, 65536, 01777, err) < 0) ||
	    ks_plan_tmpfs(plan, KS_CODE_DIR, 24 * MIB, 64, 01777, err) < 0 || plan_covered(session, plan, err) < 0 ||
	    ks_plan_devpts(plan, err) < 0 || ks_plan_proc(plan, err) < 0)
		return -1;
	for (size_t i = 0; i < KS_COUNT(proc_masks); i++)
		if (ks_plan_mask(plan, proc_masks[i], err) < 0)
			return -1;
	return 0;
}

static int plan_all(struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	static const char *const dirs[] = { "/proc", "/tmp", "/home", "/run", "/run/kern", KS_EMPTY_DIR, KS_CODE_DIR };
	const bool host = session->image->kind == KS_IMAGE_HOST;

	ks_plan_map_ids(plan, session->box_uid, session->box_gid, session->owner_uid, session->owner_gid);
	plan->head.shares_network = session->network || session->stage;
	plan->head.keep_caps = session->keep_caps;
	plan->head.box_user_ns = session->core->engine && ks_engine_box_user_ns(session->core->engine);
	if (ks_plan_set_hostname(plan, "sandbox", err) < 0 ||
	    (session->apparmor && ks_plan_set_apparmor(plan, session->apparmor, err) < 0))
		return -1;
	for (size_t i = 0; i < KS_COUNT(dirs); i++)
		if (ks_plan_dir(plan, dirs[i], 0755, err) < 0)
			return -1;
	if (plan_image(session, plan, err) < 0 ||
	    (host ? plan_host_etc(session, plan, err) : plan_image_etc(session, plan, err)) < 0 || plan_dev(plan, err) < 0)
		return -1;
	if (host && (ks_plan_dir(plan, "/var", 0755, err) < 0 || ks_plan_symlink(plan, "/var/tmp", "/tmp", err) < 0))
		return -1;
	if (plan_runners(session, plan, err) < 0 || plan_workspace(session, plan, err) < 0)
		return -1;
	for (size_t i = 0; i < session->mount_count; i++)
		if (plan_mount(session, i, plan, err) < 0)
			return -1;
	for (size_t i = 0; i < session->tmpfs_count; i++)
		if (ks_plan_place(plan, session->tmpfs[i].target, err) < 0)
			return -1;
	return plan_box_mounts(session, plan, err);
}

int ks_posture_plan(struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	struct ks_engine *engine = session->core->engine;
	const struct ks_filter *filters = ks_engine_filters(engine, session->untrusted, err);

	ks_plan_init(plan, ks_engine_is_root(engine));
	if (!filters || ks_plan_set_filters(plan, filters, err) < 0 || ks_plan_set_fail_step(plan, ks_engine_fail_step(engine), err) < 0)
		return -1;
	return plan_all(session, plan, err);
}

/* ---- printing ---- */

static const char *const before_tree[] = {
	"launcher launcher namespaces", "launcher id map",	       "group    user namespace",
	"group    id map",		"group    group ids",	       "group    session pid namespace",
	"group    session init",	"template template namespaces", "template propagation",
	"template root",
};
static const char *const after_tree[] = {
	"template session proc",     "template pivot_root",   "template read-only root",
	"template user limits",	     "template no_new_privs", "template arguments filter",
	"template allowlist filter", "template bounding set", "box      box namespaces",
};

static int print_workspace(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	session->workspace_private = !params->workspace;
	session->deps.readonly = params->deps_readonly;
	session->workspace = strdup(params->workspace ? params->workspace : "(private)");
	session->workspace_fd = open(params->workspace ? params->workspace : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!session->workspace || session->workspace_fd < 0)
		return ks_fail_errno(err, KS_E_NOT_FOUND, errno, "%s", session->workspace);
	return 0;
}

int ks_posture_print(const struct ks_session_params *params, struct ks_buf *out, struct ks_error *err)
{
	int64_t memory = params->memory_mb == KS_ABSENT ? 512 : params->memory_mb;
	struct ks_core nothing = { 0 };
	struct ks_session session = { .core = &nothing, .workspace_fd = -1, .workspace_target = params->workspace_target,
				      .limits = { .memory_bytes = memory << 20, .enforce = true } };
	struct ks_plan *plan = malloc(sizeof(*plan));
	int rc = plan ? ks_image_open(params->image, &session.image, err) : ks_fail(err, KS_E_INTERNAL, "out of memory");

	if (rc == 0)
		rc = ks_session_take_storage(&session, params, err);
	if (rc == 0)
		rc = ks_session_take_identity(&session, params, err);
	if (rc == 0)
		rc = ks_session_take_mounts(&session, params, err);
	if (rc == 0)
		rc = print_workspace(&session, params, err);
	if (rc == 0 && !session.workspace_private)
		(void)ks_deps_find(&session, &session.notes);
	if (rc == 0) {
		ks_plan_init(plan, false); /* paths, not clones: nothing is made */
		rc = plan_all(&session, plan, err);
		for (size_t i = 0; i < KS_COUNT(before_tree); i++)
			ks_buf_printf(out, "%s\n", before_tree[i]);
		ks_plan_print(plan, KS_PLAN_TEMPLATE, out);
		for (size_t i = 0; i < KS_COUNT(after_tree); i++)
			ks_buf_printf(out, "%s\n", after_tree[i]);
		if (session.workspace_memory)
			ks_buf_str(out, "template memory workspace\n");
		ks_init_print_steps(plan, out);
		ks_plan_free(plan);
	}
	free(plan);
	ks_session_free_mounts(&session);
	free(session.apparmor);
	ks_image_free(session.image);
	ks_close(&session.workspace_fd);
	free(session.workspace);
	return rc;
}
