/* Exports nothing by the right name. */
#define kern_plugin_v1 kern_plugin_v2
#include "good.h"
