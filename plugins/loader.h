/* loader.h: finds language plugins, checks them, keeps those that pass and the reasons of those that do not, and runs
 * their prepare and result functions. A directory of plugins holds NAME/NAME.so and, for what the box is shown,
 * NAME/run/. */
#pragma once

#include "base/error.h"
#include "base/list.h"
#include "plugins/kern_plugin.h"
#include "plugins/results.h"

#define KS_PLUGIN_ARGS_MAX 64 /* words of a plugin, besides the caller's args */
#define KS_PLUGIN_ENV_MAX 64
#define KS_PLUGIN_FILES_MAX 16
#define KS_PLUGIN_FILE_BYTES ((size_t)16 << 20) /* all files of one call */
#define KS_PLUGIN_TEXT_BYTES ((size_t)1 << 20)	/* all words and variables of one call */
#define KS_RUN_ARGS_MAX 1024			/* the caller's args */
#define KS_WORD_MAX 131071 /* bytes in one word or variable: MAX_ARG_STRLEN of the kernel's binfmts.h without the NUL  \
			    */
#define KS_FIRST_LINE_MAX 1000000

struct ks_plugin {
	struct ks_list node;
	char *path;		/* of the shared object, absolute */
	char *runner_dir;	/* NAME/run on the host, or NULL */
	struct kern_plugin api; /* a full copy: members that the plugin does not have are NULL */
	struct kern_ops ops;	/* likewise */
	void *self;
	struct ks_list languages; /* of struct ks_language */
};

struct ks_language {
	struct ks_list node;
	struct ks_plugin *plugin;
	struct kern_language api; /* a full copy; api.name, api.programs, api.file_name, api.aliases, api.flags */
};

struct ks_refused {
	struct ks_list node;
	char *path;
	char *reason;
};

struct ks_plugins {
	struct ks_list loaded;	/* of struct ks_plugin, in the order of loading: directories as given, names sorted */
	struct ks_list refused; /* of struct ks_refused */
};

/* Loads from `dirs` (NULL-terminated, absolute). A plugin that is not good is refused, which is no error; a directory
 * that does not exist is skipped. Fails only when memory is out. */
int ks_plugins_load(const char *const *dirs, struct ks_plugins **ret, struct ks_error *err);
void ks_plugins_free(struct ks_plugins *plugins);
/* By name or alias; NULL when no plugin has it. */
const struct ks_language *ks_plugins_find_language(const struct ks_plugins *plugins, const char *name);
/* Iteration over every language: start with NULL; NULL at the end. */
const struct ks_language *ks_plugins_next_language(const struct ks_plugins *plugins, const struct ks_language *after);

struct ks_prepared_file {
	char *name;
	char *data;
	size_t len;
	unsigned mode;
};

/* What a plugin asked for, checked and copied. */
struct ks_prepared {
	char **argv; /* NULL-terminated */
	size_t argc;
	char *env[KS_PLUGIN_ENV_MAX + 1]; /* "NAME=value", NULL-terminated; defaults: the request's env wins */
	size_t env_count;
	struct ks_prepared_file files[KS_PLUGIN_FILES_MAX];
	size_t file_count;
};

/* Describes one call. The caller fills `run` except size and language; code and first_line are the request's own (the
 * byte order mark and the empty lines in front are dealt with here). */
int ks_plugin_prepare(const struct ks_language *language, const struct kern_run *run, struct ks_prepared *ret,
		      struct ks_error *err);
void ks_prepared_free(struct ks_prepared *prepared); /* an empty one is fine */

/* Reads one complete frame into `results`, through the plugin or, when it has no result function, in the standard form.
 * -1: the frame makes no sense, the channel is corrupt. */
int ks_plugin_result(const struct ks_language *language, const struct kern_frame *frame, struct ks_results *results,
		     struct ks_error *err);
