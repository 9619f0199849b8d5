/* Good, but anybody may write its directory; the build gives it that mode. */
#include "good.h"
