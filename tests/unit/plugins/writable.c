/* Good, but anybody may write it; the build gives it that mode. */
#include "good.h"
