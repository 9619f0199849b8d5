/* node: starts our runner (run/runner.cjs), which runs the caller's file as a CommonJS or an ES module whose imports
 * resolve from the working directory. */
#include "../common.h"

#ifndef KS_NODE_PARSER
#define KS_NODE_PARSER 0
#endif

static int ends_with(const char *text, const char *tail)
{
	size_t len = strlen(text), tail_len = strlen(tail);

	return len >= tail_len && strcmp(text + len - tail_len, tail) == 0;
}

/* The suffixes that decide how node reads a file; without one of them the runner finds out. */
static const char *file_name(const struct kern_run *run)
{
	static const char *const names[] = { "main.mjs", "main.cjs", "main.mts", "main.cts", "main.ts" };

	for (size_t i = 0; run->filename && i < sizeof(names) / sizeof(names[0]); i++)
		if (ends_with(run->filename, names[i] + strlen("main")))
			return names[i];
	return strcmp(run->language, "typescript") == 0 ? "main.ts" : "main.js";
}

static int prepare(void *self, const struct kern_run *run, struct kern_host *host)
{
	char runner[KERN_PATH_MAX], path[KERN_PATH_MAX], fd[16];
	const char *name = file_name(run);

	(void)self;
	if (!run->runner_dir)
		return host->fail(host, NULL, "the run directory with runner.cjs is missing");
	if (snprintf(runner, sizeof(runner), "%s/runner.cjs", run->runner_dir) >= (int)sizeof(runner))
		return host->fail(host, NULL, "the path of the runner is too long");
	(void)snprintf(fd, sizeof(fd), "%d", run->result_fd);
	if (run->flags & KERN_RUN_KERNEL) {
		const char *const words[] = { run->interpreter, runner, KERN_CELLS_RESULT_FD };
		return kern_add_cells(run, host, 0, words, sizeof(words) / sizeof(words[0]));
	}
	if (run->flags & KERN_RUN_PARK) {
		const char *const words[] = { run->interpreter, runner, fd, "park" };
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if (host->add_arg(host, words[i]) < 0)
				return -1;
		return 0;
	}
	if (kern_place_code(run, host, name, path) < 0)
		return -1;
	const char *const words[] = { run->interpreter, runner, fd, run->filename ? run->filename : "", path };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (host->add_arg(host, words[i]) < 0)
			return -1;
	return kern_add_args(run, host);
}

static const char *const programs[] = { "node", "nodejs", NULL };
static const char *const aliases[] = { "javascript", "js", NULL };
static const char *const typescript_aliases[] = { "ts", NULL };
/* Its own, those of its libraries, the locale's, the loader's, the clock, and those about colours, which a stream remembers. */
static const char *const boot_env[] = { "NODE_*",      "NODE", "UV_*",	    "SSL_*",	"OPENSSL_*",	  "ICU_*", "LANG", "LANGUAGE",
					"LC_*",	       "LD_*", "KERN_*",    "MALLOC_*", "GLIBC_TUNABLES", "TZ*",   "HOME", "NO_COLOR",
					"FORCE_COLOR", "TERM", "COLORTERM", NULL };
static const struct kern_language node = {
	.size = sizeof(node),
	/* a cell is taken apart by the parser */
	.flags = KERN_CAN_RICH | KERN_CAN_ZYGOTE |
		 (KS_NODE_PARSER ? KERN_CAN_KERNEL | KERN_CAN_INTERRUPT | KERN_CAN_HEAR | KERN_CAN_INPUT : 0),
	.name = "node",
	.programs = programs,
	.file_name = "main.js",
	.aliases = aliases,
	.boot_env = boot_env,
};
static const struct kern_language typescript = {
	.size = sizeof(typescript),
	.flags = KERN_CAN_RICH | KERN_CAN_ZYGOTE,
	.name = "typescript",
	.programs = programs,
	.file_name = "main.ts",
	.aliases = typescript_aliases,
	.boot_env = boot_env,
};
static const struct kern_language *const languages[] = { &node, &typescript, NULL };
static const struct kern_ops ops = { .size = sizeof(ops), .prepare = prepare };

const struct kern_plugin kern_plugin_v1 = {
	.abi = KERN_PLUGIN_ABI,
	.size = sizeof(kern_plugin_v1),
	.name = "node",
#if KS_NODE_PARSER
	.version = "1",
#else
	.version = "1, no values: npm could not bring the parser",
#endif
	.languages = languages,
	.ops = &ops,
};
