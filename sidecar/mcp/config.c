#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TIMEOUT_S 50 /* many clients give up after 60 s: ours must come first, with what the code has printed so far */
#define MEMORY_MB 1024
#define TMPFS_MB 64

static const char *text(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

static int number(const char *name, int64_t min, int64_t max, int64_t fallback, int64_t *ret, struct ks_error *err)
{
	const char *value = text(name);
	char *end;

	*ret = fallback;
	if (!value)
		return 0;
	errno = 0;
	long long n = strtoll(value, &end, 10);
	if (errno != 0 || *end != '\0' || n < min || n > max)
		return ks_fail_at(err, KS_E_INVALID_VALUE, name, "takes a whole number from %lld to %lld, not \"%.40s\"", (long long)min,
				  (long long)max, value);
	*ret = n;
	return 0;
}

static int flag(const char *name, bool fallback, bool *ret, struct ks_error *err)
{
	const char *value = text(name);

	*ret = fallback;
	if (!value)
		return 0;
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return ks_fail_at(err, KS_E_INVALID_VALUE, name, "takes 0 or 1, not \"%.40s\"", value);
	*ret = value[0] == '1';
	return 0;
}

int ks_mcp_config_read(struct ks_mcp_config *ret, struct ks_error *err)
{
	bool quiet;

	ret->image = text("KERN_MCP_IMAGE");
	ret->setup = text("KERN_MCP_SETUP");
	ret->workspace = text("KERN_MCP_WORKSPACE");
	ret->profiles = text("KERN_MCP_PROFILES");
	if (number("KERN_MCP_MEMORY_MB", 0, 1 << 20, MEMORY_MB, &ret->memory_mb, err) < 0 ||
	    number("KERN_MCP_TIMEOUT", 1, 86400, TIMEOUT_S, &ret->timeout_s, err) < 0 ||
	    number("KERN_MCP_TMPFS_MB", 0, 1 << 20, TMPFS_MB, &ret->tmpfs_mb, err) < 0 ||
	    flag("KERN_MCP_KERNEL", false, &ret->kernel, err) < 0 || flag("KERN_MCP_QUIET", true, &quiet, err) < 0 ||
	    flag("KERN_MCP_STRUCTURED", false, &ret->structured, err) < 0)
		return -1;
	ret->notes = !quiet;
	if (ret->workspace && ret->workspace[0] != '/')
		return ks_fail_at(err, KS_E_INVALID_VALUE, "KERN_MCP_WORKSPACE", "takes an absolute path, not \"%.200s\"", ret->workspace);
	if (ret->workspace && mkdir(ret->workspace, 0755) < 0 && errno != EEXIST)
		return ks_fail_errno(err, KS_E_IO, errno, "KERN_MCP_WORKSPACE: cannot make %.200s", ret->workspace);
	return 0;
}
