/* common.h: what the plugins of this directory share: the code's file and its path in the box. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "plugins/kern_plugin.h"

#define KERN_PATH_MAX 4096
#define KERN_CELLS_RESULT_FD "250" /* the channel of what kern-cells starts: programs/cells.c */

/* The last component of the file name that the caller gave when it can be a file's name, else `standard`: a shell shows
 * it in its messages and as $0. */
static inline const char *kern_file_name(const struct kern_run *run, const char *standard)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-";
	const char *name = run->filename, *slash = name ? strrchr(name, '/') : NULL;

	if (slash)
		name = slash + 1;
	if (!name || !*name || strlen(name) > 64 || name[0] == '.' || name[0] == '-' || name[strspn(name, letters)] ||
	    strncmp(name, "kern-", 5) == 0)
		return standard;
	return name;
}

/* Adds the code as `name`, and gives its path in the box. */
static inline int kern_place_code(const struct kern_run *run, struct kern_host *host, const char *name,
				  char ret_path[static KERN_PATH_MAX])
{
	if (snprintf(ret_path, KERN_PATH_MAX, "%s/%s", run->code_dir, name) >= KERN_PATH_MAX)
		return host->fail(host, NULL, "the path of the code is too long");
	return host->add_file(host, name, run->code, run->code_len, 0644);
}

static inline int kern_add_args(const struct kern_run *run, struct kern_host *host)
{
	for (size_t i = 0; i < run->arg_count; i++)
		if (host->add_arg(host, run->args[i]) < 0)
			return -1;
	return 0;
}

/* What kern-display in the plugin's run/ needs: to be found, the channel, and a file for its lock and its last number. */
static inline int kern_lend_display(const struct kern_run *run, struct kern_host *host)
{
	char text[KERN_PATH_MAX];

	if (!run->runner_dir || run->result_fd < 0)
		return 0;
	(void)snprintf(text, sizeof(text), "%d", run->result_fd);
	if (host->set_env(host, "KERN_RESULT_FD", run->flags & KERN_RUN_KERNEL ? KERN_CELLS_RESULT_FD : text) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%s:%s", run->path, run->runner_dir);
	if (host->set_env(host, "PATH", text) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%s/kern-frames", run->code_dir);
	return host->set_env(host, "KERN_RESULT_LOCK", text) < 0 ? -1 : host->add_file(host, "kern-frames", "", 0, 0600);
}

/* A kernel whose interpreter cannot receive descriptors: kern-cells in the plugin's run/ starts `words`; those of a shell are the
 * shell and the file that it sources. */
static inline int kern_add_cells(const struct kern_run *run, struct kern_host *host, int is_shell, const char *const *words, size_t count)
{
	char text[KERN_PATH_MAX];

	(void)snprintf(text, sizeof(text), "%s/kern-cells", run->runner_dir);
	if (host->add_arg(host, text) < 0)
		return -1;
	if (is_shell && (host->add_arg(host, "--shell") < 0 || host->add_arg(host, run->code_dir) < 0))
		return -1;
	(void)snprintf(text, sizeof(text), "%d", run->result_fd);
	if (host->add_arg(host, text) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (host->add_arg(host, words[i]) < 0)
			return -1;
	return 0;
}

/* The whole of a shell's plugin but its name: a script that is a file, or a kernel that sources `setup` of the plugin's run/. */
static inline int kern_prepare_shell(const struct kern_run *run, struct kern_host *host, const char *setup)
{
	char path[KERN_PATH_MAX];

	if (!(run->flags & KERN_RUN_KERNEL)) {
		if (kern_place_code(run, host, kern_file_name(run, "main.sh"), path) < 0 || host->add_arg(host, run->interpreter) < 0 ||
		    host->add_arg(host, path) < 0 || kern_lend_display(run, host) < 0)
			return -1;
		return kern_add_args(run, host);
	}
	if (!run->runner_dir)
		return host->fail(host, NULL, "the run directory with kern-cells is missing");
	if (snprintf(path, sizeof(path), "%s/%s", run->runner_dir, setup) >= (int)sizeof(path))
		return host->fail(host, NULL, "the path of the runner is too long");
	const char *const words[] = { run->interpreter, path };
	return kern_add_cells(run, host, 1, words, 2) < 0 ? -1 : kern_lend_display(run, host);
}
