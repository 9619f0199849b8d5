#include "session/deps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "session/mounts.h"
#include "session/posture.h"
#include "workspace/beneath.h"
#include "workspace/walk.h"

_Static_assert(sizeof(KS_DEPS_NAME) == sizeof(KS_SKIPPED_TOP_NAME), "the same directory");

static int look(const struct ks_session *session, const char *name, struct stat *ret)
{
	int fd = ks_open_beneath(session->workspace_fd, name, O_PATH | O_DIRECTORY, KS_BENEATH_STAY);

	if (fd < 0)
		return fd;
	int rc = fstat(fd, ret) < 0 ? -errno : 0;
	ks_close(&fd);
	return rc;
}

static void know(struct ks_session *session, const struct stat *st)
{
	session->deps.present = true;
	session->deps.identity = *st;
}

bool ks_deps_find(struct ks_session *session, struct ks_notes *notes)
{
	const struct ks_deps before = session->deps;
	struct stat st;
	int rc = look(session, KS_DEPS_NAME, &st);

	session->deps.present = false;
	if (rc == 0)
		know(session, &st);
	else if (rc != -ENOENT)
		ks_notes_add(notes, "deps_ignored", KS_DEPS_NAME " of the workspace is no plain directory: it is not used");
	return session->deps.present != before.present ||
	       (before.present && (before.identity.st_dev != st.st_dev || before.identity.st_ino != st.st_ino));
}

int ks_deps_changed(struct ks_session *session, const struct stat *tree, struct ks_error *err)
{
	struct stat st;
	int rc = look(session, KS_DEPS_NAME, &st);

	if (rc < 0 || st.st_dev != tree->st_dev || st.st_ino != tree->st_ino)
		return ks_fail(err, KS_E_SETUP_FAILED, "somebody else has exchanged " KS_DEPS_NAME " of the workspace meanwhile");
	know(session, &st);
	return 0;
}

int ks_deps_stage_open(const struct ks_session *session, struct ks_deps_stage *ret, struct ks_error *err)
{
	int rc = look(session, KS_STAGE_TOP_NAME "/tree", &ret->tree);

	if (rc == 0)
		rc = look(session, KS_STAGE_TOP_NAME "/tmp", &ret->tmp);
	if (rc == 0)
		rc = look(session, KS_STAGE_TOP_NAME "/home", &ret->home);
	return rc < 0 ? ks_fail_errno(err, KS_E_SETUP_FAILED, -rc, "cannot open " KS_STAGE_TOP_NAME) : 0;
}

static bool image_has(const struct ks_session *session, const char *name)
{
	for (size_t i = 0; i < session->image->count; i++)
		if (strcmp(session->image->entries[i].name, name) == 0)
			return true;
	return false;
}

/* Node looks for node_modules in every directory above a module, up to the root: there both require and import find it, from
 * anywhere in the box. NODE_PATH would serve require alone. */
static int plan_node_modules(const struct ks_session *session, struct ks_plan *plan, struct ks_error *err)
{
	char to[4200];

	if (image_has(session, "node_modules"))
		return 0;
	(void)snprintf(to, sizeof(to), "%s/" KS_DEPS_NAME "/node_modules", session->workspace_target);
	return ks_plan_symlink(plan, "/node_modules", to, err);
}

bool ks_deps_replaces(const struct ks_session *session, const char *target)
{
	if (!session->stage || (strcmp(target, "/tmp") != 0 && strcmp(target, "/home") != 0))
		return false;
	if (ks_path_within(session->workspace_target, target))
		return false;
	for (size_t i = 0; i < session->mount_count; i++)
		if (ks_path_within(session->mounts[i].target, target))
			return false;
	return true;
}

static int plan_stage(const struct ks_session *session, const char *workspace, struct ks_plan *plan, struct ks_error *err)
{
	const struct ks_deps_stage *stage = session->stage;
	const struct {
		const char *name, *target, *replaces;
		const struct stat *identity;
	} places[] = { { "tmp", "/tmp", "/tmp", &stage->tmp }, { "home", KS_HOME_DIR, "/home", &stage->home } };
	char source[4200], target[4200];

	for (size_t i = 0; i < KS_COUNT(places); i++) {
		(void)snprintf(source, sizeof(source), "%s/" KS_STAGE_TOP_NAME "/%s", workspace, places[i].name);
		if (ks_deps_replaces(session, places[i].replaces) &&
		    ks_plan_within(plan, source, places[i].identity, places[i].target, 0, err) < 0)
			return -1;
	}
	(void)snprintf(source, sizeof(source), "%s/" KS_STAGE_TOP_NAME "/tree", workspace);
	(void)snprintf(target, sizeof(target), "%s/" KS_DEPS_NAME, workspace);
	return ks_plan_within(plan, source, &stage->tree, target, 0, err);
}

int ks_deps_plan(const struct ks_session *session, const char *workspace, struct ks_plan *plan, struct ks_error *err)
{
	char path[4200];

	if (!session->stage && !session->deps.present)
		return 0;
	if (plan_node_modules(session, plan, err) < 0)
		return -1;
	if (session->stage)
		return plan_stage(session, workspace, plan, err);
	(void)snprintf(path, sizeof(path), "%s/" KS_DEPS_NAME, workspace);
	return session->deps.readonly ? ks_plan_within(plan, path, &session->deps.identity, path, KS_STEP_RDONLY, err) : 0;
}

static void add(struct ks_buf *out, const char *name, const char *before, const struct ks_session *session, const char *after)
{
	ks_buf_printf(out, "%s=%s%s/" KS_DEPS_NAME "%s", name, before, session->workspace_target, after);
	ks_buf_char(out, '\0');
}

static void add_words(struct ks_buf *out, const char *const *words)
{
	for (; *words; words++)
		ks_buf_add(out, *words, strlen(*words) + 1);
}

void ks_deps_environment(const struct ks_session *session, struct ks_buf *out)
{
	/* no questions, no talk of themselves, and no cache: HOME is gone when the setup ends */
	static const char *const quiet[] = { "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INPUT=1", "PIP_NO_CACHE_DIR=1",
					     "PIP_ROOT_USER_ACTION=ignore", "npm_config_audit=false", "npm_config_fund=false",
					     "npm_config_update_notifier=false", NULL };

	if (!session->stage && !session->deps.present)
		return;
	add(out, "KERN_DEPS", "", session, "");
	add(out, "PYTHONPATH", "", session, "");
	ks_buf_printf(out, "PATH=%s/" KS_DEPS_NAME "/bin:", session->workspace_target);
	ks_buf_printf(out, "%s/" KS_DEPS_NAME "/node_modules/.bin:" KS_BOX_PATH, session->workspace_target);
	ks_buf_char(out, '\0');
	if (session->stage)
		add_words(out, quiet);
}
