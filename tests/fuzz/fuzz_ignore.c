/* fuzz_ignore.c: .gitignore files. All rules together must say what the last of those says that, alone, say anything. Input: a flag, the
 * path, a NUL, the rules. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "worker/jobs/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static enum ks_ignored ask(const char *rules, size_t len, const char *path, bool directory)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	struct ks_ignore *ignore;
	struct ks_error err;

	if (ks_ignore_new(rules, len, &ignore, &err) < 0) {
		must(err.reason == KS_E_LIMIT);
		return KS_IGNORE_SILENT;
	}
	const enum ks_ignored said = ks_ignore_match(ignore, path, strlen(path), name, strlen(name), directory);
	must(ks_ignore_bytes(ignore) > 0);
	ks_ignore_free(ignore);
	return said;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = (const char *)data + 1, *end = size > 1 ? memchr(path, '\0', size - 1) : NULL;
	const bool directory = size > 0 && (data[0] & 1);
	enum ks_ignored last = KS_IGNORE_SILENT;

	if (!end || size > 4096)
		return 0;
	const char *rules = end + 1;
	const size_t len = size - 2 - (size_t)(end - path);
	for (size_t at = 0, n; at < len; at += n + 1) {
		const char *feed = memchr(rules + at, '\n', len - at);
		n = feed ? (size_t)(feed - rules) - at : len - at;
		if (at > 0 && n >= 3 && memcmp(rules + at, "\xef\xbb\xbf", 3) == 0)
			return 0; /* a mark of the byte order is one only at the beginning */
		const enum ks_ignored said = ask(rules + at, n, path, directory);
		last = said == KS_IGNORE_SILENT ? last : said;
	}
	must(ask(rules, len, path, directory) == last);
	return 0;
}
