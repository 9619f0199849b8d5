/* cache.h: what setups have installed, to be had again by the same command: $XDG_CACHE_HOME (~/.cache) /kern-sidecar/deps-<uid>/<key>,
 * one directory for each host user that boxes act as. It is private to that user, no box ever has it, and only kern-worker writes it.
 *
 * The key is the SHA-256 of all that shapes the result and that we know of: image, interpreters, command, environment, where the
 * workspace is. What an index offers changes meanwhile: a cached result is what was installed then. */
#pragma once

#include "session/session.h"

#define KS_CACHE_KEY 65

/* The directory, made when it is not there; -1: none that can be trusted, or that boxes of the session could reach. */
int ks_cache_open(const struct ks_session *session);
/* False: what the session runs could have changed meanwhile without us knowing. */
bool ks_cache_key(struct ks_session *session, const char *command, char ret[KS_CACHE_KEY]);
