/* Offers no language. */
#define LANGUAGES                                                                                                      \
	{                                                                                                              \
		NULL, &language                                                                                        \
	}
#include "good.h"
