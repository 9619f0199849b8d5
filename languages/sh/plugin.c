/* sh: POSIX sh, whatever the image has as sh (dash, busybox, bash in posix mode). The code is a script file, never
 * stdin and never wrapped; a kernel's cells are files that one sh sources (run/kernel.sh). */
#include "../common.h"

static int prepare(void *self, const struct kern_run *run, struct kern_host *host)
{
	(void)self;
	return kern_prepare_shell(run, host, "kernel.sh");
}

static const char *const programs[] = { "sh", NULL };
static const struct kern_language language = {
	.size = sizeof(language),
	.flags = KERN_CAN_RICH | KERN_CAN_KERNEL | KERN_CAN_INTERRUPT | KERN_CAN_HEAR,
	.name = "sh",
	.programs = programs,
	.file_name = "main.sh",
};
static const struct kern_language *const languages[] = { &language, NULL };
static const struct kern_ops ops = { .size = sizeof(ops), .prepare = prepare };

const struct kern_plugin kern_plugin_v1 = {
	.abi = KERN_PLUGIN_ABI,
	.size = sizeof(kern_plugin_v1),
	.name = "sh",
	.version = "1",
	.languages = languages,
	.ops = &ops,
};
