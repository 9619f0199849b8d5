/* One variable more than may be named. */
static const char *const variables[] = { "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A",
					 "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", "A", 0 };
#define BOOT_ENV variables
#include "good.h"
