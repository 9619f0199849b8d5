/* Ops without a prepare function. */
#define PREPARE NULL
#include "good.h"
