/* python: starts the interpreter on our runner (run/start.py), which makes the caller's file the real __main__. No -I
 * and no -E: every PYTHON* variable of the request works as in plain python. The runner survives whatever is
 * importable, because it imports nothing but what is built into the interpreter. */
#include "../common.h"

static int prepare(void *self, const struct kern_run *run, struct kern_host *host)
{
	char runner[KERN_PATH_MAX], path[KERN_PATH_MAX] = "", fd[16];

	(void)self;
	if (!run->runner_dir)
		return host->fail(host, NULL, "the run directory with start.py is missing");
	if (snprintf(runner, sizeof(runner), "%s/start.py", run->runner_dir) >= (int)sizeof(runner))
		return host->fail(host, NULL, "the path of the runner is too long");
	(void)snprintf(fd, sizeof(fd), "%d", run->result_fd);
	const int kernel = (run->flags & KERN_RUN_KERNEL) != 0, park = (run->flags & KERN_RUN_PARK) != 0;
	if (!kernel && !park && kern_place_code(run, host, "main.py", path) < 0)
		return -1;
	/* The box's locale says UTF-8 already; this says it to an interpreter that does not know the locale. */
	if (host->set_env(host, "PYTHONUTF8", "1") < 0)
		return -1;
	const char *const park_word = run->flags & KERN_RUN_ZYGOTE ? "zygote" : "park";
	const char *const words[] = { run->interpreter, runner, fd, park ? park_word : run->filename ? run->filename : path, path };
	for (size_t i = 0; i < (kernel ? 3 : park ? 4 : sizeof(words) / sizeof(words[0])); i++)
		if (host->add_arg(host, words[i]) < 0)
			return -1;
	for (size_t i = 0; park && i < run->preload_count; i++)
		if (host->add_arg(host, run->preload[i]) < 0)
			return -1;
	return kern_add_args(run, host);
}

static const char *const programs[] = { "python3", "python", NULL };
static const char *const aliases[] = { "python3", "py", NULL };
/* Its own, the locale's, those of the loader and the C library, the clock, and where site looks for the user's packages. */
static const char *const boot_env[] = { "PYTHON*", "KERN_*",	     "LANG",	"LANGUAGE", "LC_*",	   "LOC*", "LD_*",
					"MALLOC_*", "GLIBC_TUNABLES", "GCONV_PATH", "MUSL_*", "TZ*", "HOME", "OPENSSL_*", NULL };
static const struct kern_language python = {
	.size = sizeof(python),
	.flags = KERN_CAN_RICH | KERN_CAN_KERNEL | KERN_CAN_INTERRUPT | KERN_CAN_INPUT | KERN_CAN_ZYGOTE | KERN_CAN_FORK,
	.name = "python",
	.programs = programs,
	.file_name = "main.py",
	.aliases = aliases,
	.boot_env = boot_env,
};
static const struct kern_language *const languages[] = { &python, NULL };
static const struct kern_ops ops = { .size = sizeof(ops), .prepare = prepare };

const struct kern_plugin kern_plugin_v1 = {
	.abi = KERN_PLUGIN_ABI,
	.size = sizeof(kern_plugin_v1),
	.name = "python",
	.version = "1",
	.languages = languages,
	.ops = &ops,
};
