/* A name of a language that is not one. */
#define LANGUAGE "Test"
#include "good.h"
