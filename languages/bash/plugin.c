/* bash: the code is a script file, never stdin and never wrapped, so that read, here-documents, $LINENO and exit codes
 * are what a script's author expects. bash reads no start-up file for a script unless the request itself sets BASH_ENV.
 */
#include "../common.h"

static int prepare(void *self, const struct kern_run *run, struct kern_host *host)
{
	char path[KERN_PATH_MAX];

	(void)self;
	if (kern_place_code(run, host, kern_file_name(run, "main.sh"), path) < 0 ||
	    host->add_arg(host, run->interpreter) < 0 || host->add_arg(host, path) < 0 || kern_lend_display(run, host) < 0)
		return -1;
	return kern_add_args(run, host);
}

static const char *const programs[] = { "bash", NULL };
static const struct kern_language language = {
	.size = sizeof(language),
	.flags = KERN_CAN_RICH,
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
