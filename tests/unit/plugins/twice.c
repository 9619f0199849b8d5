/* The same language two times. */
#define LANGUAGES                                                                                                      \
	{                                                                                                              \
		&language, &language, NULL                                                                             \
	}
#include "good.h"
