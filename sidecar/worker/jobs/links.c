#include "links.h"

#include <string.h>

bool ks_link_stays_inside(const char *path, const char *target)
{
	int depth = 0;
	bool down = false;

	if (target[0] == '/' || target[0] == '\0')
		return false;
	for (const char *c = path; *c; c++)
		depth += *c == '/';
	for (const char *in = target; *in;) {
		size_t len = strcspn(in, "/");
		const bool up = len == 2 && memcmp(in, "..", 2) == 0;
		if (up && (down || --depth < 0))
			return false;
		down |= !up && len > 0 && !(len == 1 && *in == '.');
		in += len;
		in += *in == '/';
	}
	return true;
}
