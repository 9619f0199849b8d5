#include "session/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "workspace/policy.h"

#define MIB ((uint64_t)1 << 20)
#define TMP_DEFAULT (64 * MIB)

bool ks_path_within(const char *path, const char *place)
{
	size_t len = strlen(place);

	return strncmp(path, place, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

uint64_t ks_size_bytes(const char *text)
{
	char *end;
	uint64_t value = strtoull(text, &end, 10);
	unsigned shift = *end == 'g' ? 30 : *end == 'm' ? 20 : 10;

	return value > (UINT64_MAX >> 2) >> shift ? 0 : value << shift;
}

/* ---- paths of the host ---- */

static int take_mount(struct ks_session *session, const struct ks_mount_params *params, size_t index, struct ks_error *err)
{
	struct ks_session_mount *mount = &session->mounts[session->mount_count];
	char pointer[48];

	(void)snprintf(pointer, sizeof(pointer), "/mounts/%zu/target", index);
	if (ks_target_check(params->target, err) < 0)
		return ks_error_at(err, pointer);
	if (strcmp(params->target, session->workspace_target) == 0)
		return ks_fail_at(err, KS_E_MOUNT_REFUSED, pointer, "%s is the workspace", params->target);
	for (size_t i = 0; i < session->mount_count; i++)
		if (strcmp(params->target, session->mounts[i].target) == 0)
			return ks_fail_at(err, KS_E_MOUNT_REFUSED, pointer, "two mounts have the target %s", params->target);
	(void)snprintf(pointer, sizeof(pointer), "/mounts/%zu/source", index);
	*mount = (struct ks_session_mount){ .fd = -1, .writable = params->mode == KS_MOUNT_RW };
	if (ks_source_open(params->source, session->core->state, &mount->source, &mount->fd, err) < 0)
		return ks_error_at(err, pointer);
	session->mount_count++; /* from here on ks_session_free_mounts() knows it */
	mount->target = strdup(params->target);
	return mount->target ? 0 : ks_fail(err, KS_E_INTERNAL, "out of memory");
}

static int by_target(const void *a, const void *b)
{
	return strcmp(((const struct ks_session_mount *)a)->target, ((const struct ks_session_mount *)b)->target);
}

static int take_mounts(struct ks_session *session, const struct ks_mounts *mounts, struct ks_error *err)
{
	session->mounts = calloc(mounts->count + 1, sizeof(*session->mounts));
	if (!session->mounts)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	for (size_t i = 0; i < mounts->count; i++)
		if (take_mount(session, &mounts->items[i], i, err) < 0)
			return -1;
	/* what lies inside another comes after it */
	qsort(session->mounts, session->mount_count, sizeof(*session->mounts), by_target);
	return 0;
}

/* ---- memory file systems ---- */

static int check_size(const struct ks_session *session, uint64_t size, const char *pointer, struct ks_error *err)
{
	uint64_t memory = (uint64_t)session->limits.memory_bytes;

	if (size >= 4096 && (!session->limits.enforce || size <= memory))
		return 0;
	(void)ks_fail_at(err, KS_E_MOUNT_REFUSED, pointer,
			 "the size must be from 4k to the memory cap of %lluM, because what lies in it is memory",
			 (unsigned long long)(memory >> 20));
	return ks_error_hint(err, "make it smaller, or raise memoryMb");
}

static int check_covers(const struct ks_session *session, const char *target, const char *pointer, struct ks_error *err)
{
	const char *covered = ks_path_within(session->workspace_target, target) ? session->workspace_target : NULL;

	for (size_t i = 0; i < session->mount_count; i++)
		if (ks_path_within(session->mounts[i].target, target))
			covered = session->mounts[i].target;
	if (!covered)
		return 0;
	(void)ks_fail_at(err, KS_E_MOUNT_REFUSED, pointer, "a memory file system at %s would cover %s", target, covered);
	return ks_error_hint(err, "put it beside or inside that mount");
}

static int add_tmpfs(struct ks_session *session, const char *target, uint64_t size, struct ks_error *err)
{
	struct ks_session_tmpfs *fs = &session->tmpfs[session->tmpfs_count++];

	fs->size = size;
	fs->target = strdup(target);
	return fs->target ? 0 : ks_fail(err, KS_E_INTERNAL, "out of memory");
}

static int take_tmpfs(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	const struct ks_pairs *wanted = &params->tmpfs;
	uint64_t half = (uint64_t)session->limits.memory_bytes / 2;
	bool tmp = false, tmp_is_bound = false;
	char pointer[128];

	session->tmpfs = calloc(wanted->count + 1, sizeof(*session->tmpfs));
	if (!session->tmpfs)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	for (size_t i = 0; i < wanted->count; i++) {
		const char *target = wanted->names[i];
		uint64_t size = ks_size_bytes(wanted->values[i]);
		(void)snprintf(pointer, sizeof(pointer), "/tmpfs");
		if (ks_target_check(target, err) < 0)
			return ks_error_at(err, pointer);
		if (check_size(session, size, pointer, err) < 0 || check_covers(session, target, pointer, err) < 0 ||
		    add_tmpfs(session, target, size, err) < 0)
			return -1;
		tmp |= strcmp(target, "/tmp") == 0;
	}
	for (size_t i = 0; i < session->mount_count; i++)
		tmp_is_bound |= strcmp(session->mounts[i].target, "/tmp") == 0;
	/* {} asks for none: /tmp is then as read-only as the rest of the root */
	if (tmp || tmp_is_bound || (params->has_tmpfs && wanted->count == 0))
		return 0;
	return add_tmpfs(session, "/tmp", half < TMP_DEFAULT ? half : TMP_DEFAULT, err);
}

static int tmpfs_by_target(const void *a, const void *b)
{
	return strcmp(((const struct ks_session_tmpfs *)a)->target, ((const struct ks_session_tmpfs *)b)->target);
}

int ks_session_take_mounts(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	uint64_t half = (uint64_t)session->limits.memory_bytes / 2;

	session->shm_size = half < TMP_DEFAULT ? half : TMP_DEFAULT;
	if (params->shm_size) {
		session->shm_size = ks_size_bytes(params->shm_size);
		if (check_size(session, session->shm_size, "/shmSize", err) < 0)
			return -1;
	}
	if (take_mounts(session, &params->mounts, err) < 0 || take_tmpfs(session, params, err) < 0)
		return -1;
	qsort(session->tmpfs, session->tmpfs_count, sizeof(*session->tmpfs), tmpfs_by_target);
	return 0;
}

void ks_session_free_mounts(struct ks_session *session)
{
	for (size_t i = 0; i < session->mount_count; i++) {
		free(session->mounts[i].source);
		free(session->mounts[i].target);
		ks_close(&session->mounts[i].fd);
	}
	for (size_t i = 0; i < session->tmpfs_count; i++)
		free(session->tmpfs[i].target);
	free(session->mounts);
	free(session->tmpfs);
}
