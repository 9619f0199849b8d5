#include "session/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

#include "session/identity.h"
#include "session/mounts.h"
#include "session/posture.h"

/* ---- the directory ---- */

/* `name` in `dir`, of that user and closed to all others. */
static int open_private(int dir, const char *name, uid_t uid, gid_t gid)
{
	const bool made = mkdirat(dir, name, 0700) == 0;
	KS_AUTOCLOSE int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || (made && uid != geteuid() && fchown(fd, uid, gid) < 0))
		return -1;
	return fstat(fd, &st) < 0 || st.st_uid != uid || st.st_mode & 077 ? -1 : KS_TAKE_FD(fd);
}

static bool is_reachable(const struct ks_session *session, int fd)
{
	char link[64], path[4096];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0)
		return true;
	path[n] = '\0';
	if (!session->workspace_private && ks_path_within(path, session->workspace))
		return true;
	for (size_t i = 0; i < session->mount_count; i++)
		if (ks_path_within(path, session->mounts[i].source))
			return true;
	return false;
}

int ks_cache_open(const struct ks_session *session)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char path[4096], name[32];

	if (cache && cache[0] == '/')
		(void)snprintf(path, sizeof(path), "%s", cache);
	else if (home && home[0] == '/')
		(void)snprintf(path, sizeof(path), "%s/.cache", home);
	else
		return -1;
	(void)mkdir(path, 0700);
	KS_AUTOCLOSE int base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	KS_AUTOCLOSE int own = base < 0 ? -1 : open_private(base, "kern-sidecar", geteuid(), getegid());
	(void)snprintf(name, sizeof(name), "deps-%u", session->owner_uid);
	KS_AUTOCLOSE int dir = own < 0 ? -1 : open_private(own, name, session->owner_uid, session->owner_gid);
	return dir < 0 || is_reachable(session, dir) ? -1 : KS_TAKE_FD(dir);
}

/* ---- the key ---- */

static void add(struct sha256_ctx *hash, const char *text)
{
	sha256_update(hash, strlen(text) + 1, (const uint8_t *)text);
}

static bool add_interpreter(struct sha256_ctx *hash, struct ks_session *session, const char *name)
{
	const struct ks_language *language = ks_plugins_find_language(session->core->plugins, name);
	const char *path = language ? ks_session_interpreter(session, language) : NULL;
	struct stat st;
	char text[160];

	add(hash, path ? path : "");
	if (!path)
		return true;
	if (fstatat(session->image->root_fd, path + 1, &st, 0) < 0)
		return false;
	(void)snprintf(text, sizeof(text), "%llu %llu %lld %lld.%09ld", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
		       (long long)st.st_size, (long long)st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
	add(hash, text);
	return true;
}

/* One that the request gave may lie where code writes. */
static bool was_given(const struct ks_session *session)
{
	for (struct ks_list *n = session->interpreters.next; n != &session->interpreters; n = n->next)
		if (KS_ENTRY(n, struct ks_interpreter, node)->given)
			return true;
	return false;
}

bool ks_cache_key(struct ks_session *session, const char *command, char ret[KS_CACHE_KEY])
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx hash;

	if (was_given(session))
		return false;
	sha256_init(&hash);
	add(&hash, "1");
	add(&hash, session->image->ref);
	add(&hash, session->image->path);
	if (!add_interpreter(&hash, session, "python") || !add_interpreter(&hash, session, "node"))
		return false;
	add(&hash, command);
	add(&hash, session->workspace_target);
	add(&hash, session->deps.readonly ? "readonly" : "writable");
	for (size_t i = 0; i < session->env.count; i++) {
		add(&hash, session->env.names[i]);
		add(&hash, session->env.values[i]);
	}
	sha256_digest(&hash, sizeof(digest), digest);
	base16_encode_update(ret, sizeof(digest), digest);
	ret[KS_CACHE_KEY - 1] = '\0';
	return true;
}
