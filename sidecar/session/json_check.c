#include "session/json_check.h"

#include "proto/scan.h"

bool ks_json_valid(const char *text, size_t len, bool object)
{
	struct ks_error err;

	if (ks_json_scan(text, len, NULL, &err) < 0)
		return false;
	while (len > 0 && (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r'))
		text++, len--;
	return !object || (len > 0 && *text == '{');
}
