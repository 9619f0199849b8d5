/* posture.h: from a session's fields to a box plan: which mounts, which files of our own, which ids. The one place that knows what a
 * box looks like from the inside. */
#pragma once

#include "session/session.h"

#define KS_RUNNER_DIR "/run/kern"     /* one directory per language below it */
#define KS_BOX_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

int ks_posture_plan(struct ks_session *session, struct ks_plan *plan, struct ks_error *err);
/* Every step from launcher to command for such a session, a line each; nothing is made. Plugins' runner directories are left out. */
int ks_posture_print(const struct ks_session_params *params, struct ks_buf *out, struct ks_error *err);
/* The environment every command starts with, before what the plugin and the request add; NULL-terminated, NAME=VALUE. */
extern const char *const ks_posture_env[];
