#include "caps.h"

#include <errno.h>
#include <sys/capability.h>

int ks_drop_bounding_set(void)
{
	for (cap_value_t c = 0; CAP_IS_SUPPORTED(c); c++)
		if (cap_drop_bound(c) < 0)
			return -errno;
	return 0;
}

int ks_drop_capabilities(void)
{
	cap_t none = cap_init();
	int rc = none ? 0 : -ENOMEM;

	if (rc == 0 && (cap_reset_ambient() < 0 || cap_set_proc(none) < 0))
		rc = -errno;
	(void)cap_free(none);
	return rc;
}
