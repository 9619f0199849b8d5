/* A program that is a path. */
#define PROGRAM "../bin/test"
#include "good.h"
