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

int ks_drop_capabilities(uint64_t keep)
{
	cap_t set = cap_init();
	int rc = set ? 0 : -ENOMEM;

	for (cap_value_t c = 0; rc == 0 && c < 64; c++)
		if (keep >> c & 1 && (cap_set_flag(set, CAP_PERMITTED, 1, &c, CAP_SET) < 0 ||
				      cap_set_flag(set, CAP_EFFECTIVE, 1, &c, CAP_SET) < 0))
			rc = -errno;
	if (rc == 0 && (cap_reset_ambient() < 0 || cap_set_proc(set) < 0))
		rc = -errno;
	(void)cap_free(set);
	return rc;
}
