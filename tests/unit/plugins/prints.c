/* Prints in open, where the sidecar's standard output may be the protocol. */
#include <stdio.h>

#include "plugins/kern_plugin.h"

static int open_it(struct kern_host *host, void **self)
{
	(void)host;
	(void)self;
	puts("hello from a plugin");
	return 0;
}
#define OPEN open_it
#include "good.h"
