#include "landlock.h"

#include <errno.h>
#include <fcntl.h>

static int allow(int ruleset, const char *path)
{
	KS_AUTOCLOSE int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : ks_landlock_allow(ruleset, fd, KS_LANDLOCK_WRITE);
}

static bool is_writable(const struct ks_step *step)
{
	return (step->kind == KS_STEP_BIND && !(step->flags & (KS_STEP_RDONLY | KS_STEP_DEVICE))) || step->kind == KS_STEP_TMPFS;
}

int ks_landlock_ruleset(const struct ks_plan_view *plan)
{
	static const char *const always[] = { "/dev", "/proc" };
	int rc = 0;

	if (ks_landlock_abi() == 0)
		return -ENOSYS;
	KS_AUTOCLOSE int ruleset = ks_landlock_new(KS_LANDLOCK_WRITE, true);
	if (ruleset < 0)
		return ruleset;
	for (size_t i = 0; rc == 0 && i < KS_COUNT(always); i++)
		rc = allow(ruleset, always[i]);
	for (uint32_t i = 0; rc == 0 && i < plan->head->step_count; i++)
		if (is_writable(&plan->steps[i]))
			rc = allow(ruleset, ks_plan_string(plan, plan->steps[i].target));
	return rc < 0 ? rc : KS_TAKE_FD(ruleset);
}
