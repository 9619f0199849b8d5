/* lua: the template. Copy it, change the names, and you have a plugin; ../README.md explains each step. */
#include <stdio.h>

#include <kern_plugin.h>

/* Describes the process of one call: here `lua5.4 CODE_DIR/main.lua ARGS...`. */
static int prepare(void *self, const struct kern_run *run, struct kern_host *host)
{
	char path[4096];

	(void)self;
	if (snprintf(path, sizeof(path), "%s/main.lua", run->code_dir) >= (int)sizeof(path))
		return host->fail(host, NULL, "the path of the code is too long");
	if (host->add_file(host, "main.lua", run->code, run->code_len, 0644) < 0 ||
	    host->add_arg(host, run->interpreter) < 0 || host->add_arg(host, path) < 0)
		return -1;
	for (size_t i = 0; i < run->arg_count; i++)
		if (host->add_arg(host, run->args[i]) < 0)
			return -1;
	return 0;
}

static const char *const programs[] = { "lua5.4", "lua", NULL };
static const struct kern_language lua = {
	.size = sizeof(lua),
	.name = "lua",
	.programs = programs,
	.file_name = "main.lua",
};
static const struct kern_language *const languages[] = { &lua, NULL };
static const struct kern_ops ops = { .size = sizeof(ops), .prepare = prepare };

const struct kern_plugin kern_plugin_v1 = {
	.abi = KERN_PLUGIN_ABI,
	.size = sizeof(kern_plugin_v1),
	.name = "lua",
	.version = "1",
	.languages = languages,
	.ops = &ops,
};
