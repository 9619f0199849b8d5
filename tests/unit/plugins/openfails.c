/* open says no, and why. */
#include <stddef.h>

#include "plugins/kern_plugin.h"

static int open_it(struct kern_host *host, void **self)
{
	(void)self;
	return host->fail(host, NULL, "no licence today");
}
#define OPEN open_it
#include "good.h"
