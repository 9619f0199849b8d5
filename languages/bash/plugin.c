/* bash: the code is a script file, never stdin and never wrapped, so that read, here-documents, $LINENO and exit codes
 * are what a script's author expects. bash reads no start-up file for a script unless the request itself sets BASH_ENV.
 * A kernel's cells are files that one bash sources (run/kernel.bash). */
#include "../common.h"

static int prepare(void *self, const struct kern_run *run, struct kern_host *host)
{
	(void)self;
	return kern_prepare_shell(run, host, "kernel.bash");
}

static const char *const programs[] = { "bash", NULL };
static const struct kern_language language = {
	.size = sizeof(language),
	.flags = KERN_CAN_RICH | KERN_CAN_KERNEL | KERN_CAN_INTERRUPT | KERN_CAN_HEAR,
	.name = "bash",
	.programs = programs,
	.file_name = "main.sh",
};
static const struct kern_language *const languages[] = { &language, NULL };
static const struct kern_ops ops = { .size = sizeof(ops), .prepare = prepare };

const struct kern_plugin kern_plugin_v1 = {
	.abi = KERN_PLUGIN_ABI,
	.size = sizeof(kern_plugin_v1),
	.name = "bash",
	.version = "1",
	.languages = languages,
	.ops = &ops,
};
