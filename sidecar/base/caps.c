#include "caps.h"

#include <errno.h>
#include <sys/capability.h>

int ks_drop_bounding_set(uint64_t keep)
{
	for (cap_value_t c = 0; CAP_IS_SUPPORTED(c); c++)
		if (!(keep >> c & 1) && cap_drop_bound(c) < 0)
			return -errno;
	return 0;
}

static int set_flags(cap_t set, uint64_t caps, const cap_flag_t *flags, size_t count)
{
	for (cap_value_t c = 0; c < 64; c++)
		for (size_t i = 0; caps >> c & 1 && i < count; i++)
			if (cap_set_flag(set, flags[i], 1, &c, CAP_SET) < 0)
				return -errno;
	return 0;
}

int ks_drop_capabilities(uint64_t keep)
{
	static const cap_flag_t own[] = { CAP_PERMITTED, CAP_EFFECTIVE };
	cap_t set = cap_init();
	int rc = set ? set_flags(set, keep, own, 2) : -ENOMEM;

	if (rc == 0 && (cap_reset_ambient() < 0 || cap_set_proc(set) < 0))
		rc = -errno;
	(void)cap_free(set);
	return rc;
}

int ks_lend_capabilities(uint64_t lend)
{
	static const cap_flag_t lent[] = { CAP_INHERITABLE };
	cap_t set = cap_get_proc();
	int rc = set ? 0 : -errno;

	if (rc == 0 && cap_clear_flag(set, CAP_INHERITABLE) < 0)
		rc = -errno;
	rc = rc < 0 ? rc : set_flags(set, lend, lent, 1);
	if (rc == 0 && cap_set_proc(set) < 0)
		rc = -errno;
	(void)cap_free(set);
	return rc;
}

int ks_pass_capabilities(uint64_t pass)
{
	static const cap_flag_t all[] = { CAP_PERMITTED, CAP_EFFECTIVE, CAP_INHERITABLE };
	cap_t set = cap_init();
	int rc = set ? set_flags(set, pass, all, 3) : -ENOMEM;

	if (rc == 0 && cap_set_proc(set) < 0)
		rc = -errno;
	(void)cap_free(set);
	for (cap_value_t c = 0; rc == 0 && c < 64; c++)
		if (pass >> c & 1 && cap_set_ambient(c, CAP_SET) < 0)
			rc = -errno;
	return rc;
}
