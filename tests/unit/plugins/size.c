/* A struct that ends before its ops. */
#define SIZE offsetof(struct kern_plugin, ops)
#include "good.h"
