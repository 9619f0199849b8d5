/* A name that would break a line of the log. */
#define NAME "te\nst"
#include "good.h"
