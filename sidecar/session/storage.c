#include "session/storage.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "session/disk.h"
#include "workspace/quota.h"

#define WATCHED "watched: measured four times a second and at the end of each call"

int ks_session_take_storage(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	session->workspace_max_mb = params->workspace_max_mb == KS_ABSENT ? 0 : params->workspace_max_mb;
	session->workspace_memory = params->workspace_storage == KS_STORAGE_MEMORY;
	if (!session->workspace_memory)
		return 0;
	if (params->workspace) {
		(void)ks_fail_at(err, KS_E_INVALID_VALUE, "/workspaceStorage",
				 "a workspace in memory is private, it cannot be a directory of the host");
		return ks_error_hint(err, "drop workspace, or name a file system of the host's own that is no larger than workspaceMaxMb");
	}
	if (session->workspace_max_mb == 0) {
		(void)ks_fail_at(err, KS_E_MISSING, "/workspaceMaxMb", "a workspace in memory needs a size");
		return ks_error_hint(err, "add workspaceMaxMb");
	}
	return 0;
}

/* The root of a mount whose whole file system is within the limit. No blocks at all is no size but a file system without one. */
static bool is_small_enough(int fd, uint64_t limit, uint64_t *ret_bytes)
{
	struct statx st;
	struct statvfs fs;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
	       st.stx_attributes & STATX_ATTR_MOUNT_ROOT && fstatvfs(fd, &fs) == 0 && fs.f_blocks > 0 &&
	       !__builtin_mul_overflow((uint64_t)fs.f_blocks, (uint64_t)fs.f_frsize, ret_bytes) && *ret_bytes <= limit;
}

KS_PRINTF(2, 3) static void explain(struct ks_session *session, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(session->workspace_reason, sizeof(session->workspace_reason), fmt, ap);
	va_end(ap);
}

static void choose_keeper(struct ks_session *session)
{
	const uint64_t limit = (uint64_t)session->workspace_max_mb << 20;
	const uint64_t names = (uint64_t)session->workspace_max_mb * KS_DISK_FILES_PER_MB;
	const bool may_set_quota = session->workspace_private && ks_engine_is_root(session->core->engine);
	uint64_t bytes;
	struct ks_error why = { 0 };

	if (session->workspace_memory) {
		explain(session, "a memory file system of its own");
	} else if (!session->workspace_private && is_small_enough(session->workspace_fd, limit, &bytes)) {
		explain(session, "the workspace is a file system of its own, of %llu KiB", (unsigned long long)bytes >> 10);
	} else if (may_set_quota && ks_quota_hold(session->workspace_fd, limit, names, &session->workspace_project, &why) == 0) {
		explain(session, "a project quota of the file system, project %u", session->workspace_project);
	} else {
		session->workspace_watched = true;
		explain(session, WATCHED "%s%s", may_set_quota ? "; no project quota: " : "", why.text);
	}
}

int ks_session_open_workspace(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err)
{
	const uid_t uid = KS_RANGE_START + session->box_uid;
	const gid_t gid = KS_RANGE_START + session->box_gid;

	session->workspace_private = params->workspace == NULL;
	int rc = session->workspace_private ?
			 ks_private_workspace_new(session->core->state, uid, gid, &session->workspace, &session->workspace_fd, err) :
			 ks_workspace_open(params->workspace, session->core->state, &session->workspace, &session->workspace_fd, err);
	if (rc < 0 || session->workspace_max_mb == 0)
		return rc;
	choose_keeper(session);
	if (!params->require_limits || !session->workspace_watched)
		return 0;
	(void)ks_fail_at(err, KS_E_LIMITS_UNENFORCED, "/workspaceMaxMb", "the kernel does not enforce this limit here: %s",
			 session->workspace_reason);
	return ks_error_hint(err, "ask for workspaceStorage:\"memory\", name a file system of its own that is no larger as workspace, or "
				  "drop requireLimits");
}
