/* A file name that leaves its directory. */
#define FILE_NAME "../main"
#include "good.h"
