#include "session/identity.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/stat.h>

#define CAP(name) (UINT64_C(1) << CAP_##name)

uint64_t ks_docker_capabilities(void)
{
	return CAP(CHOWN) | CAP(DAC_OVERRIDE) | CAP(FSETID) | CAP(FOWNER) | CAP(MKNOD) | CAP(NET_RAW) | CAP(SETGID) | CAP(SETUID) |
	       CAP(SETFCAP) | CAP(SETPCAP) | CAP(NET_BIND_SERVICE) | CAP(SYS_CHROOT) | CAP(KILL) | CAP(AUDIT_WRITE);
}

/* ---- who in the box ---- */

static int bad_user(struct ks_error *err, const char *user, const char *why)
{
	(void)ks_fail_at(err, KS_E_INVALID_VALUE, "/user", "%.64s: %s", user, why);
	return ks_error_hint(err, "use sandbox, root, a number from 0 to 65535, or a name of the image's /etc/passwd");
}

/* The image's own file is hostile: a regular file, read to a bound, without following a link. */
static int look_up_user(const struct ks_session *session, const char *name, uid_t *ret_uid, gid_t *ret_gid)
{
	struct stat st;
	struct passwd *entry;
	int dir = openat(session->image->root_fd, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = dir < 0 ? -1 : openat(dir, "passwd", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	FILE *file = fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > 1 << 20 ? NULL : fdopen(fd, "re");
	bool found = false;

	ks_close(&dir);
	if (!file) {
		ks_close(&fd);
		return -1;
	}
	while (!found && (entry = fgetpwent(file)))
		if (strcmp(entry->pw_name, name) == 0) {
			*ret_uid = entry->pw_uid;
			*ret_gid = entry->pw_gid;
			found = true;
		}
	(void)fclose(file);
	return found ? 0 : -1;
}

static int take_user(struct ks_session *session, const char *user, struct ks_error *err)
{
	char *end;

	session->box_uid = session->box_gid = KS_BOX_UID;
	(void)snprintf(session->user_name, sizeof(session->user_name), "sandbox");
	if (!user || strcmp(user, "sandbox") == 0 || strcmp(user, "1000") == 0)
		return 0;
	(void)snprintf(session->user_name, sizeof(session->user_name), "%s", user);
	if (strcmp(user, "root") == 0) {
		session->box_uid = session->box_gid = 0;
	} else if (isdigit((unsigned char)user[0])) {
		unsigned long id = strtoul(user, &end, 10);
		if (*end || id >= KS_RANGE_COUNT)
			return bad_user(err, user, "not a user id from 0 to 65535");
		session->box_uid = session->box_gid = (uid_t)id;
		(void)snprintf(session->user_name, sizeof(session->user_name), id == 0 ? "root" : "user%lu", id);
	} else if (session->image->kind != KS_IMAGE_DIR ||
		   look_up_user(session, user, &session->box_uid, &session->box_gid) < 0) {
		return bad_user(err, user, "no such user in the image");
	}
	if (session->box_uid >= KS_RANGE_COUNT || session->box_gid >= KS_RANGE_COUNT)
		return bad_user(err, user, "its ids are above 65535");
	return 0;
}

/* ---- what power it keeps ---- */

static int drop_one(uint64_t *keep, const char *name, size_t index, struct ks_error *err)
{
	char text[40], pointer[32];
	cap_value_t value;

	(void)snprintf(pointer, sizeof(pointer), "/capDrop/%zu", index);
	if (strcmp(name, "ALL") == 0) {
		*keep = 0;
		return 0;
	}
	(void)snprintf(text, sizeof(text), "%s%.32s", strncmp(name, "CAP_", 4) == 0 ? "" : "CAP_", name);
	if (cap_from_name(text, &value) < 0) {
		(void)ks_fail_at(err, KS_E_INVALID_VALUE, pointer, "%.40s is no capability", name);
		return ks_error_hint(err, "use names of capabilities(7), such as NET_RAW, or ALL");
	}
	*keep &= ~(UINT64_C(1) << value);
	return 0;
}

static int take_capabilities(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	if (!params->has_cap_drop)
		return 0;
	session->keep_caps = ks_docker_capabilities();
	for (size_t i = 0; i < params->cap_drop.count; i++)
		if (drop_one(&session->keep_caps, params->cap_drop.items[i], i, err) < 0)
			return -1;
	return 0;
}

static int contradicts(struct ks_error *err, const char *pointer, const char *what)
{
	(void)ks_fail_at(err, KS_E_INVALID_VALUE, pointer, "%s contradicts securityProfile untrusted", what);
	return ks_error_hint(err, "drop one of the two");
}

static int take_profile(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	if (!params->security_profile)
		return 0;
	if (strcmp(params->security_profile, "untrusted") != 0)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/securityProfile", "the only profile is untrusted, not %.64s",
				  params->security_profile);
	session->untrusted = true;
	if (params->network)
		return contradicts(err, "/network", "network:true");
	if (session->keep_caps)
		return contradicts(err, "/capDrop", "keeping capabilities");
	if (params->map_owner)
		return contradicts(err, "/mapOwner", "mapOwner:true");
	if (!params->enforce_limits)
		return contradicts(err, "/enforceLimits", "enforceLimits:false");
	if (!params->deps_readonly)
		return contradicts(err, "/depsReadonly", "depsReadonly:false");
	if (session->box_uid == 0)
		return contradicts(err, "/user", "user root");
	return 0;
}

/* Fails closed: a profile that cannot be put on stops the session, and once more every box (the step `apparmor`). */
static int take_apparmor(struct ks_session *session, const char *profile, struct ks_error *err)
{
	char enabled = 'N';

	if (!profile)
		return 0;
	for (const char *c = profile; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_.-/", *c))
			return ks_fail_at(err, KS_E_INVALID_VALUE, "/apparmor", "a profile's name has letters, digits, _ . - and / only");
	KS_AUTOCLOSE int fd = open("/sys/module/apparmor/parameters/enabled", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &enabled, 1) != 1 || enabled != 'Y') {
		(void)ks_fail_at(err, KS_E_HOST_UNSUPPORTED, "/apparmor", "AppArmor is not enabled on this host");
		return ks_error_hint(err, "boot with the AppArmor module, or drop the option");
	}
	session->apparmor = strdup(profile);
	return session->apparmor ? 0 : ks_fail(err, KS_E_INTERNAL, "out of memory");
}

int ks_session_take_identity(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	session->network = params->network;
	if (params->network)
		ks_notes_add(&session->notes, "network_is_the_hosts",
				    "network:true: the box shares the host's network, its 127.0.0.1 and its abstract sockets included");
	if (!params->deps_readonly)
		ks_notes_add(&session->notes, "deps_writable", "depsReadonly:false: what a call does to .deps is what later calls import");
	if (take_user(session, params->user, err) < 0 || take_capabilities(session, params, err) < 0 ||
	    take_profile(session, params, err) < 0 || take_apparmor(session, params->apparmor, err) < 0)
		return -1;
	if (session->keep_caps)
		ks_notes_add(&session->notes, "capabilities_kept",
			     "capDrop: code that runs as root in the box keeps some capabilities there");
	return 0;
}

/* ---- who outside ---- */

static uid_t range_uid(const struct ks_session *session)
{
	return KS_RANGE_START + session->box_uid;
}

/* A mount that belongs to another host id than the box's user: as if it were the user's, where the file system can do that. */
static int choose_mount_owner(struct ks_session *session, struct ks_session_mount *mount, struct ks_error *err)
{
	struct stat st;

	if (fstat(mount->fd, &st) < 0)
		return ks_fail_errno(err, KS_E_IO, errno, "%s", mount->source);
	mount->id_mapped = st.st_uid != session->owner_uid;
	mount->owner_uid = st.st_uid;
	mount->owner_gid = st.st_gid;
	return 0;
}

/* Files of the workspace belong to the caller, and host root is nobody in the box. */
int ks_session_choose_owner(struct ks_session *session, bool map_owner, struct ks_error *err)
{
	struct stat st;

	session->owner_uid = geteuid();
	session->owner_gid = getegid();
	if (!ks_engine_is_root(session->core->engine))
		return 0;
	session->owner_uid = range_uid(session);
	session->owner_gid = KS_RANGE_START + session->box_gid;
	if (!session->workspace_private) {
		if (fstat(session->workspace_fd, &st) < 0)
			return ks_fail_errno(err, KS_E_IO, errno, "%s", session->workspace);
		if (st.st_uid != 0 || map_owner) {
			session->owner_uid = st.st_uid;
			session->owner_gid = st.st_gid != 0 || map_owner ? st.st_gid : KS_RANGE_START + session->box_gid;
			if (st.st_uid == 0)
				ks_notes_add(&session->notes, "owner_is_root", "mapOwner: the code acts as root of this machine on "
									     "the files of the workspace");
		} else {
			session->id_mapped = true;
		}
	}
	for (size_t i = 0; i < session->mount_count; i++)
		if (choose_mount_owner(session, &session->mounts[i], err) < 0)
			return -1;
	return 0;
}
