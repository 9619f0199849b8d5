/* A struct of an author who had no open and close yet: good. What lies behind it must not be read. */
#define SIZE offsetof(struct kern_plugin, open)
#define OPEN (int (*)(struct kern_host *, void **))(void *) 1
#define CLOSE (void (*)(void *))(void *) 1
#include "good.h"
