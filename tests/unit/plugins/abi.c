/* Made for another version of the ABI. */
#define ABI 2
#include "good.h"
