#include "status.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rest of the line that begins with `key`, or NULL. The kernel escapes line feeds of a process's name, so no name
 * can forge a line. */
static const char *field(const char *text, const char *key, size_t *ret_len)
{
	const size_t key_len = strlen(key);

	while (strncmp(text, key, key_len) != 0) {
		text = strchr(text, '\n');
		if (!text)
			return NULL;
		text++;
	}
	*ret_len = strcspn(text + key_len, "\n");
	return text + key_len;
}

/* The last number of a line; `otherwise` when there is none, or none that is a pid. */
static int last_number(const char *text, const char *key, int otherwise)
{
	size_t len = 0;
	const char *value = field(text, key, &len), *tab = value ? memrchr(value, '\t', len) : NULL;
	const unsigned long number = tab ? strtoul(tab + 1, NULL, 10) : 0;

	return number > 0 && number <= INT_MAX ? (int)number : otherwise;
}

/* Sixteen digits, or it has been cut off. */
static uint64_t signals(const char *text, const char *key)
{
	size_t len = 0;
	const char *value = field(text, key, &len);

	return value && len == 17 ? strtoull(value, NULL, 16) : UINT64_MAX;
}

int ks_status_parse(const char *text, struct ks_status *ret)
{
	const int tgid = last_number(text, "Tgid:", 0);
	size_t len = 0;
	const char *name = field(text, "Name:\t", &len);

	if (tgid == 0)
		return -1;
	*ret = (struct ks_status){ .tgid = tgid,
				     .inner_pid = last_number(text, "NSpid:", 1),
				     .threads = last_number(text, "Threads:", 0) };
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s", name ? (int)len : 0, name ? name : "");
	ret->deaf = signals(text, "SigBlk:") | signals(text, "SigIgn:") | signals(text, "SigCgt:");
	return 0;
}
