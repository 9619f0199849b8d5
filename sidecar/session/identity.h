/* identity.h: who the code is in the box and outside, and what power it keeps: user, id maps, capabilities, security profile. */
#pragma once

#include "session/session.h"

/* `user`, `capDrop`, `securityProfile`, `apparmor`, `network`: what a request weakens or strengthens by name. Needs the image. */
int ks_session_take_identity(struct ks_session *session, const struct ks_session_params *params, struct ks_error *err);
/* Which host ids the box's user is, and which mounts need an id map. Needs the workspace and the mounts. */
int ks_session_choose_owner(struct ks_session *session, bool map_owner, struct ks_error *err);
/* Docker's default 14, as a bit mask (capabilities(7)). */
uint64_t ks_docker_capabilities(void);
