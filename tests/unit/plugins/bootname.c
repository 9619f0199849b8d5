/* A variable without a name. */
static const char *const variables[] = { "HOME", "", 0 };
#define BOOT_ENV variables
#include "good.h"
