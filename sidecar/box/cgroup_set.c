/* cgroup_set.c: our directory in a hierarchy, and those of dead owners.
 *
 * It is "kern-sidecar-<uid>-<random>" in the cgroup that we were started in. Its owner holds flock(2) on it: a lock
 * that is free means a dead owner, whatever happened to process ids since. */
#include "box/cgroup_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define SWEEP_TRIES 10 /* of 5 ms: boxes of an owner that died just now are still dying */

static bool is_our_set(const char *name)
{
	char prefix[40];
	int len = snprintf(prefix, sizeof(prefix), KS_CGROUP_PREFIX "%u-", (unsigned)geteuid());

	return strncmp(name, prefix, (size_t)len) == 0 && strlen(name + len) == 8 &&
	       strspn(name + len, "0123456789abcdef") == 8;
}

/* Removes what is below; what has processes stays (EBUSY). */
void ks_cgroup_remove_children(const struct ks_cgroups_config *config, int set)
{
	int fd = openat(set, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		ks_close(&fd);
		return;
	}
	for (struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.' && e->d_type == DT_DIR)
			(void)config->remove_dir(set, e->d_name, AT_REMOVEDIR);
	(void)closedir(dir);
}

/* False: it should go, but is not empty yet. */
static bool sweep_set(const struct ks_cgroups_config *config, int own, const char *name)
{
	KS_AUTOCLOSE int set = openat(own, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (set < 0 || flock(set, LOCK_EX | LOCK_NB) < 0)
		return true; /* gone, not ours, or its owner lives */
	ks_cgroup_remove_children(config, set);
	return config->remove_dir(own, name, AT_REMOVEDIR) == 0 || errno != EBUSY;
}

static void sweep(const struct ks_cgroups_config *config, int own)
{
	for (int tries = 0; tries < SWEEP_TRIES; tries++) {
		int fd = openat(own, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
		bool done = true;

		if (!dir) {
			ks_close(&fd);
			return;
		}
		for (struct dirent *e; (e = readdir(dir));)
			if (is_our_set(e->d_name))
				done &= sweep_set(config, own, e->d_name);
		(void)closedir(dir);
		if (done)
			return;
		(void)poll(NULL, 0, 5);
	}
}

int ks_cgroup_open_own(const struct ks_cgroups_config *config, const char *path, struct ks_place *ret)
{
	*ret = (struct ks_place){ .own_fd = -1, .set_fd = -1 };
	ret->own_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->own_fd < 0)
		return -errno;
	(void)snprintf(ret->path, sizeof(ret->path), "%s", path);
	if (faccessat(ret->own_fd, ".", W_OK | X_OK, AT_EACCESS) < 0) {
		int rc = -errno;

		ks_close(&ret->own_fd);
		return rc;
	}
	sweep(config, ret->own_fd);
	return 0;
}

static int limit_set(const struct ks_cgroups *cgroups, enum ks_limit_kind kind, enum ks_leaf_file file, int64_t value, struct ks_error *err)
{
	char text[32], found[64];
	const char *name = NULL;
	int rc = -ENOENT;

	(void)snprintf(text, sizeof(text), "%lld", (long long)value);
	for (int i = 0; i < cgroups->place_count; i++) {
		const struct ks_place *place = &cgroups->places[i];
		if (!(place->functions & KS_FN(kind)))
			continue;
		name = place->ops->files[file].name;
		rc = ks_cgroup_write_at(place->set_fd, name, text);
		if (rc == 0)
			rc = ks_cgroup_read_at(place->set_fd, name, found, sizeof(found));
		if (rc >= 0 && ks_cgroup_value(found) != value)
			rc = -EIO;
		/* where swap is accounted for, memory alone would be no limit; v2 has it in a file of its own, which is to say 0 */
		if (rc >= 0 && file == KS_F_MEMORY_MAX)
			(void)ks_cgroup_write_at(place->set_fd, place->ops->files[KS_F_MEMORY_SWAP].name,
						 place->ops == &ks_cgroup_v2 ? "0" : text);
	}
	if (rc >= 0)
		return 0;
	(void)ks_fail(err, KS_E_LIMITS_UNENFORCED, "the kernel does not hold a limit of all boxes together here: %s",
		      name ? strerrordesc_np(-rc) : cgroups->status.reason[kind]);
	return ks_error_hint(err, "host/doctor names the cure for this host; or limit each session");
}

int ks_cgroups_limit_all(struct ks_cgroups *cgroups, int64_t memory_bytes, int64_t pids, struct ks_error *err)
{
	if (memory_bytes > 0 && limit_set(cgroups, KS_LIMIT_MEMORY, KS_F_MEMORY_MAX, ks_memory_page_floor(memory_bytes), err) < 0)
		return ks_error_at(err, "/limits/memoryMb");
	if (pids > 0 && limit_set(cgroups, KS_LIMIT_PIDS, KS_F_PIDS_MAX, pids, err) < 0)
		return ks_error_at(err, "/limits/pids");
	return 0;
}

/* Between mkdir and flock a sweep of another sidecar may take it for a dead one's and remove it: then again. */
int ks_cgroup_make_set(struct ks_cgroups *cgroups, struct ks_place *place)
{
	const struct ks_cgroups_config *config = &cgroups->config;
	int rc = -EEXIST;

	for (int tries = 0; tries < 5; tries++) {
		struct stat linked, opened;

		if (config->make_dir(place->own_fd, cgroups->set, 0700) < 0 && errno != EEXIST)
			return -errno;
		KS_AUTOCLOSE int fd =
			openat(place->own_fd, cgroups->set, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &opened) == 0 &&
		    fstatat(place->own_fd, cgroups->set, &linked, AT_SYMLINK_NOFOLLOW) == 0 &&
		    linked.st_ino == opened.st_ino) {
			place->set_fd = KS_TAKE_FD(fd);
			return 0;
		}
		rc = -errno;
		(void)poll(NULL, 0, 1);
	}
	return rc;
}
