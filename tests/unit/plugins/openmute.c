/* open says no and nothing more. */
#include <stddef.h>

#include "plugins/kern_plugin.h"

static int open_it(struct kern_host *host, void **self)
{
	(void)host;
	(void)self;
	return -1;
}
#define OPEN open_it
#include "good.h"
