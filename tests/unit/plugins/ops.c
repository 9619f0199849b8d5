/* No ops. */
#define OPS NULL
#include "good.h"
