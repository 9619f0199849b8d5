/* ref.c: ks_image_parse of image.h, the grammar of image references. Registry references are those of the OCI
 * distribution specification 1.1 ("Pulling manifests") with the optional host that docker and podman put in front. */
#include <string.h>

#include "image.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define DIGIT "0123456789"
#define ALNUM LOWER DIGIT "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define MAX_NAME 255u
#define MAX_TAG 128u
#define EXAMPLES                                                                            \
	"use \"host\", \"dir:/path/to/rootfs\", \"oci:/path:tag\", \"docker-archive:/path.tar\" " \
	"or \"python:3.12-slim\""

static size_t run(const char *p, size_t len, const char *set)
{
	size_t n = 0;

	while (n < len && p[n] != '\0' && strchr(set, p[n]))
		n++;
	return n;
}

/* [a-z0-9]+((\.|_|__|-+)[a-z0-9]+)* */
static bool is_name_component(const char *p, size_t len)
{
	for (;;) {
		size_t n = run(p, len, LOWER DIGIT);
		if (n == 0)
			return false;
		p += n;
		len -= n;
		if (len == 0)
			return true;
		n = *p == '-' ? run(p, len, "-") : *p == '_' ? run(p, len, "_") : *p == '.' ? 1 : 0;
		if (n == 0 || (*p == '_' && n > 2))
			return false;
		p += n;
		len -= n;
	}
}

/* A host name or address with an optional port: what makes it no name component is a dot, a port, or "localhost". */
static bool is_host(const char *p, size_t len)
{
	const char *colon = memchr(p, ':', len);
	size_t host = colon ? (size_t)(colon - p) : len;
	bool local = host == 9 && memcmp(p, "localhost", 9) == 0;

	if (host == 0 || !(colon || local || memchr(p, '.', host)))
		return false;
	if (run(p, host, ALNUM ".-") != host || !strchr(ALNUM, p[0]) || !strchr(ALNUM, p[host - 1]))
		return false;
	if (!colon)
		return true;
	size_t port = len - host - 1;
	return port >= 1 && port <= 5 && run(colon + 1, port, DIGIT) == port;
}

static bool is_tag(const char *p, size_t len)
{
	return len >= 1 && len <= MAX_TAG && *p != '.' && *p != '-' && run(p, len, ALNUM "_.-") == len;
}

static bool is_digest(const char *p, size_t len)
{
	size_t hex = len > 7 ? len - 7 : 0;

	return (hex == 64 || hex == 128) && memcmp(p, hex == 64 ? "sha256:" : "sha512:", 7) == 0 &&
	       run(p + 7, hex, DIGIT "abcdef") == hex;
}

static bool is_registry(const char *ref)
{
	size_t len = strlen(ref);
	const char *at = strchr(ref, '@');

	if (at) {
		if (!is_digest(at + 1, len - (size_t)(at + 1 - ref)))
			return false;
		len = (size_t)(at - ref);
	}
	const char *last = memrchr(ref, '/', len);
	last = last ? last + 1 : ref;
	const char *colon = memchr(last, ':', len - (size_t)(last - ref));
	if (colon) {
		if (!is_tag(colon + 1, len - (size_t)(colon + 1 - ref)))
			return false;
		len = (size_t)(colon - ref);
	}
	const char *slash = memchr(ref, '/', len);
	if (slash && is_host(ref, (size_t)(slash - ref))) {
		len -= (size_t)(slash + 1 - ref);
		ref = slash + 1;
	}
	if (len > MAX_NAME)
		return false;
	for (;;) {
		slash = memchr(ref, '/', len);
		size_t n = slash ? (size_t)(slash - ref) : len;
		if (!is_name_component(ref, n))
			return false;
		if (!slash)
			return true;
		ref += n + 1;
		len -= n + 1;
	}
}

/* "oci:/path[:tag]": the tag follows the last colon behind the last slash. */
static bool is_path_with_tag(const char *path)
{
	const char *colon = strchr(strrchr(path, '/'), ':');

	return !colon || (colon > strrchr(path, '/') + 1 && is_tag(colon + 1, strlen(colon + 1)));
}

static int bad(const char *ref, const char *why, struct ks_error *err)
{
	ks_fail_at(err, KS_E_INVALID_VALUE, "/image", "\"%.150s\" is no image reference: %s", ref, why);
	return ks_error_hint(err, EXAMPLES);
}

int ks_image_parse(const char *ref, enum ks_image_kind *ret, struct ks_error *err)
{
	static const struct {
		const char *prefix;
		enum ks_image_kind kind;
	} kinds[] = {
		{ "dir:", KS_IMAGE_DIR },
		{ "oci:", KS_IMAGE_OCI },
		{ "docker-archive:", KS_IMAGE_ARCHIVE },
	};

	if (!ref || !*ref || strcmp(ref, "host") == 0) {
		*ret = KS_IMAGE_HOST;
		return 0;
	}
	if (strlen(ref) > KS_IMAGE_MAX_REF)
		return bad(ref, "it is longer than 4096 bytes", err);
	for (size_t i = 0; i < KS_COUNT(kinds); i++) {
		size_t len = strlen(kinds[i].prefix);
		if (strncmp(ref, kinds[i].prefix, len) != 0)
			continue;
		if (ref[len] != '/')
			return bad(ref, "an absolute path must follow its prefix", err);
		if (kinds[i].kind == KS_IMAGE_OCI && !is_path_with_tag(ref + len))
			return bad(ref, "what follows the last colon is no tag", err);
		*ret = kinds[i].kind;
		return 0;
	}
	if (!is_registry(ref))
		return bad(ref, "names are lower case, [host/]name[:tag][@sha256:digest]", err);
	*ret = KS_IMAGE_REGISTRY;
	return 0;
}
