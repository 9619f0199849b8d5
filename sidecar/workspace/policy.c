#include "policy.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "private.h"

enum { AT = 1, BELOW = 2, ABOVE = 4 };

/* Besides the places themselves: what lies above one contains it. /etc goes with all that is in it - keys, password
 * hashes, service secrets, and nothing that is a project; certificates and time zones are in every box anyway.
 * /root and /home only themselves: the workspace of a job that runs as root may well be /root/project. */
static const struct {
	const char *path;
	int refused;
	const char *why;
} sources[] = {
	{ "/", AT, "it is the host's whole file system" },
	{ "/etc", AT | BELOW, "it holds the host's configuration and keys" },
	{ "/root", AT, "it is root's home, with its credentials" },
	{ "/home", AT, "it holds every user's credentials" },
	{ "/boot", AT | BELOW, "it belongs to the host's kernel" },
	{ "/proc", AT | BELOW, "it is the host's process table" },
	{ "/sys", AT | BELOW, "it is the host's device tree" },
	{ "/dev", AT | BELOW, "it holds the host's devices" },
	{ "/run", AT, "it holds the sockets of the host's services" },
	{ "/run/user", AT, "it holds the sockets of users' services" },
	{ "/run/secrets", AT | BELOW, "it holds credentials" },
	{ "/run/dbus", AT | BELOW, "it controls the host's services" },
	{ "/run/systemd", AT | BELOW, "it controls the host's services" },
	{ "/run/docker", AT | BELOW, "it controls a container engine" },
	{ "/run/docker.sock", AT | BELOW, "it controls a container engine" },
	{ "/run/podman", AT | BELOW, "it controls a container engine" },
	{ "/run/containerd", AT | BELOW, "it controls a container engine" },
	{ "/run/crio", AT | BELOW, "it controls a container engine" },
	{ "/run/buildkit", AT | BELOW, "it controls a container engine" },
	{ "/var/lib/docker", AT | BELOW, "it is a container engine's state" },
	{ "/var/lib/containers", AT | BELOW, "it is a container engine's state" },
	{ "/var/lib/containerd", AT | BELOW, "it is a container engine's state" },
	{ "/var/lib/kubelet", AT | BELOW, "it holds credentials" },
};

/* Whatever directory they lie in. */
static const char *const secrets[] = {
	".ssh",	    ".aws",	 ".gnupg",	     ".kube",  ".docker", ".azure",	     ".oci", ".terraform.d",
	".password-store", ".netrc", ".git-credentials", ".pypirc", ".npmrc", ".databrickscfg", ".boto", ".s3cfg",
	".rclone.conf",
};
static const char *const config_secrets[] = { "gcloud", "gh", "doctl", "rclone" };

/* Where `path` lies relative to `place`: AT, BELOW, ABOVE or 0. Both absolute and normalised. */
static int relation(const char *path, const char *place)
{
	size_t a = strcmp(path, "/") == 0 ? 0 : strlen(path);
	size_t b = strcmp(place, "/") == 0 ? 0 : strlen(place);

	if (strncmp(path, place, a < b ? a : b) != 0)
		return 0;
	if (a == b)
		return AT;
	if (a > b)
		return path[b] == '/' ? BELOW : 0;
	return place[a] == '/' ? ABOVE : 0;
}

/* Absolute, no empty, "." or ".." component, no slash at the end. */
static bool normalised(const char *path)
{
	if (path[0] != '/' || strlen(path) >= PATH_MAX)
		return false;
	for (const char *name = path + 1; path[1] != '\0'; name++) {
		size_t len = strcspn(name, "/");
		if (len == 0 || len > NAME_MAX || (len <= 2 && strncmp(name, "..", len) == 0))
			return false;
		name += len;
		if (*name == '\0')
			break;
	}
	return true;
}

static int refuse(const char *path, const char *why, struct ks_error *err)
{
	ks_fail(err, KS_E_MOUNT_REFUSED, "\"%.150s\" may not be put into a box: %s", path, why);
	return ks_error_hint(err, "name a directory that holds only what the code is to see, a project for example");
}

static int refuse_above(const char *path, const char *inside, struct ks_error *err)
{
	ks_fail(err, KS_E_MOUNT_REFUSED, "\"%.120s\" may not be put into a box: it contains %.120s", path, inside);
	return ks_error_hint(err, "name a directory that holds only what the code is to see, a project for example");
}

/* Bind mounts give a place a second name, not a second identity. */
static bool is_place(const struct stat *st, const char *place)
{
	struct stat other;

	return st && stat(place, &other) == 0 && st->st_dev == other.st_dev && st->st_ino == other.st_ino;
}

static int check_place(const char *path, const struct stat *st, const char *place, int refused, const char *why,
		       struct ks_error *err)
{
	int where = relation(path, place);

	if ((where & refused) || is_place(st, place))
		return refuse(path, why, err);
	return where == ABOVE ? refuse_above(path, place, err) : 0;
}

static int check_env(const char *path, const struct stat *st, const char *variable, struct ks_error *err)
{
	const char *value = getenv(variable);
	char why[64];
	char place[PATH_MAX];

	if (!value || !realpath(value, place))
		return 0;
	(void)strcpy(why, "it is ");
	(void)strncat(strcat(why, "$"), variable, 32);
	return check_place(path, st, place, AT, why, err);
}

static int check_secrets(const char *path, struct ks_error *err)
{
	bool config = false;

	for (const char *name = path + 1; *name;) {
		size_t len = strcspn(name, "/");
		for (size_t i = 0; i < KS_COUNT(secrets); i++)
			if (strlen(secrets[i]) == len && memcmp(secrets[i], name, len) == 0)
				return refuse(path, "it holds credentials", err);
		for (size_t i = 0; config && i < KS_COUNT(config_secrets); i++)
			if (strlen(config_secrets[i]) == len && memcmp(config_secrets[i], name, len) == 0)
				return refuse(path, "it holds credentials", err);
		config = len == 7 && memcmp(name, ".config", 7) == 0;
		name += len + (name[len] == '/');
	}
	return 0;
}

static int check_state(const char *path, const struct stat *st, const struct ks_state *state, struct ks_error *err)
{
	char place[PATH_MAX];
	dev_t dev;
	ino_t ino;

	ks_state_identity(state, &dev, &ino);
	(void)strncpy(place, ks_state_path(state), sizeof(place) - 1);
	place[sizeof(place) - 1] = '\0';
	*strrchr(place, '/') = '\0'; /* .../kern-sidecar-<uid> */
	int where = relation(path, place);
	if (where == 0 && !(st && st->st_dev == dev && st->st_ino == ino))
		return 0;
	ks_fail(err, KS_E_MOUNT_REFUSED, "\"%.120s\" may not be put into a box: it %s the sidecar's own state", path,
		where == ABOVE ? "contains" : "is");
	return ks_error_hint(err, "name another directory, or set KERN_STATE_DIR to move the state (%.150s)", place);
}

int ks_source_check(int fd, const char *canonical, const struct ks_state *state, struct ks_error *err)
{
	const char *path = canonical;
	struct stat room;
	const struct stat *st = NULL;

	if (!normalised(path))
		return ks_fail(err, KS_E_MOUNT_REFUSED, "\"%.150s\" is not an absolute path without links", path);
	if (strncmp(path, "/var/run", 8) == 0 && (path[8] == '/' || path[8] == '\0'))
		path += 4; /* the same place by its old name: FHS 3.0, 5.13 */
	if (fd >= 0) {
		if (fstat(fd, &room) < 0)
			return ks_fail(err, KS_E_MOUNT_REFUSED, "\"%.150s\" cannot be looked at", canonical);
		st = &room;
		if (!S_ISDIR(room.st_mode) && !S_ISREG(room.st_mode))
			return refuse(canonical, S_ISSOCK(room.st_mode) ? "it is a socket of a service of the host" :
									    "it is neither a directory nor a regular file",
				      err);
	}
	for (size_t i = 0; i < KS_COUNT(sources); i++)
		if (check_place(path, st, sources[i].path, sources[i].refused, sources[i].why, err) < 0)
			return -1;
	if (check_env(path, st, "HOME", err) < 0 || check_env(path, st, "XDG_RUNTIME_DIR", err) < 0 ||
	    check_secrets(path, err) < 0)
		return -1;
	return state ? check_state(canonical, st, state, err) : 0;
}

int ks_target_check(const char *target, struct ks_error *err)
{
	static const char *const reserved[] = { "/proc", "/sys", "/dev", "/run/kern", "/run/code" };

	if (!normalised(target)) {
		ks_fail(err, KS_E_MOUNT_REFUSED, "\"%.150s\" is no place in a box", target);
		return ks_error_hint(err, "use an absolute path without \"//\", \".\", \"..\" or a slash at its end, "
					  "for example /workspace");
	}
	if (strcmp(target, "/") == 0) {
		ks_fail(err, KS_E_MOUNT_REFUSED, "the root of a box cannot be replaced by a mount");
		return ks_error_hint(err, "use a directory, for example /workspace; a root file system is an image");
	}
	for (size_t i = 0; i < KS_COUNT(reserved); i++) {
		if (!relation(target, reserved[i]))
			continue;
		ks_fail(err, KS_E_MOUNT_REFUSED, "\"%.150s\" would cover or enter %s, which the box needs itself",
			target, reserved[i]);
		return ks_error_hint(err, "use another directory, for example /workspace");
	}
	return 0;
}
