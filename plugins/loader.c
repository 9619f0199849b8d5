/* loader.c: from a directory to languages. A plugin is our own code running with our own power, so it is taken only
 * from files and directories that nobody but root and we can write, and checked as data before any of its functions
 * runs. */
#include "loader.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/log.h"
#include "plugins/host.h"

#define LANGUAGES_MAX 16
#define PROGRAMS_MAX 8
#define ALIASES_MAX 8
#define BOOT_ENV_MAX 32
#define END_OF(type, member) (offsetof(struct type, member) + sizeof(((struct type *)NULL)->member))

/* ---- checks; each returns false after saying why in `why` ---- */

struct why {
	char text[256];
};

static KS_PRINTF(2, 3) bool no(struct why *why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	return false;
}

static bool ours_alone(const struct stat *st, const char *what, struct why *why)
{
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return no(why, "%s is writable by group or others; chmod go-w it", what);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return no(why, "%s belongs to user %u, neither root nor the one that runs this", what, st->st_uid);
	return true;
}

/* Copies what the author's struct has and leaves the rest zero. `data` begins with its size, or (`at` 4) has it second.
 */
static bool copy_sized(void *to, size_t to_size, const void *from, size_t at, size_t least, const char *what,
		       struct why *why)
{
	uint32_t size;

	memcpy(&size, (const char *)from + at, sizeof(size));
	if (size < least)
		return no(why, "its struct %s has %u bytes; at least %zu are needed", what, size, least);
	memset(to, 0, to_size);
	memcpy(to, from, size < to_size ? size : to_size);
	return true;
}

static bool label_valid(const char *text)
{
	size_t len = text ? strnlen(text, 65) : 0;

	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return len >= 1 && len <= 64;
}

static bool language_name_valid(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_+-";

	return name && *name >= 'a' && *name <= 'z' && strnlen(name, 33) <= 32 && name[strspn(name, letters)] == '\0';
}

/* The number of strings before the NULL, or max + 1. */
static size_t count_strings(const char *const *list, size_t max)
{
	size_t n = 0;

	while (list && n <= max && list[n])
		n++;
	return n;
}

static bool program_valid(const char *name)
{
	return strlen(name) <= 64 && !strchr(name, '/') && label_valid(name) && name[0] != '-' && name[0] != '.';
}

static bool name_is_free(const struct ks_plugins *plugins, const struct ks_plugin *plugin, const char *name,
			 struct why *why)
{
	const struct ks_language *other = ks_plugins_find_language(plugins, name);

	if (other)
		return no(why, "language %s is already offered by %s", name, other->plugin->path);
	for (struct ks_list *n = plugin->languages.next; n != &plugin->languages; n = n->next) {
		const struct kern_language *own = &KS_ENTRY(n, struct ks_language, node)->api;
		bool same = strcmp(own->name, name) == 0;
		for (size_t i = 0; own->aliases && own->aliases[i]; i++)
			same = same || strcmp(own->aliases[i], name) == 0;
		if (same)
			return no(why, "language %s is offered twice", name);
	}
	return true;
}

static bool check_language(const struct ks_plugins *plugins, const struct ks_plugin *plugin,
			   const struct kern_language *api, struct why *why)
{
	size_t programs = count_strings(api->programs, PROGRAMS_MAX),
	       aliases = count_strings(api->aliases, ALIASES_MAX);

	if (!language_name_valid(api->name))
		return no(why, "\"%.64s\" is no name for a language: [a-z][a-z0-9_+-]{0,31}",
			  api->name ? api->name : "");
	if (programs < 1 || programs > PROGRAMS_MAX)
		return no(why, "language %s must name 1 to %d programs", api->name, PROGRAMS_MAX);
	for (size_t i = 0; i < programs; i++)
		if (!program_valid(api->programs[i]))
			return no(why, "language %s: \"%.64s\" is no name of a program", api->name, api->programs[i]);
	if (!api->file_name || !ks_plugin_file_name_valid(api->file_name))
		return no(why, "language %s has no valid file name", api->name);
	if (aliases > ALIASES_MAX)
		return no(why, "language %s has more than %d aliases", api->name, ALIASES_MAX);
	if (count_strings(api->boot_env, BOOT_ENV_MAX) > BOOT_ENV_MAX)
		return no(why, "language %s names more than %d variables", api->name, BOOT_ENV_MAX);
	for (size_t i = 0; api->boot_env && api->boot_env[i]; i++)
		if (!label_valid(api->boot_env[i]))
			return no(why, "language %s: \"%.64s\" is no name of a variable", api->name, api->boot_env[i]);
	for (size_t i = 0; i < aliases; i++)
		if (!language_name_valid(api->aliases[i]))
			return no(why, "\"%.64s\" is no name for a language: [a-z][a-z0-9_+-]{0,31}", api->aliases[i]);
	for (size_t i = 0; i < aliases; i++)
		if (!name_is_free(plugins, plugin, api->aliases[i], why))
			return false;
	return name_is_free(plugins, plugin, api->name, why);
}

/* ---- one plugin ---- */

static void plugin_free(struct ks_plugin *plugin)
{
	while (!ks_list_empty(&plugin->languages)) {
		struct ks_list *node = plugin->languages.next;
		ks_list_remove(node);
		free(KS_ENTRY(node, struct ks_language, node));
	}
	free(plugin->path);
	free(plugin->runner_dir);
	free(plugin);
}

static void plugin_freep(struct ks_plugin **plugin)
{
	if (*plugin)
		plugin_free(*plugin);
}

static bool add_languages(const struct ks_plugins *plugins, struct ks_plugin *plugin, struct why *why)
{
	const struct kern_language *const *list = plugin->api.languages;
	size_t count = 0;

	for (; list && list[count]; count++) {
		if (count == LANGUAGES_MAX)
			return no(why, "more than %d languages", LANGUAGES_MAX);
		struct kern_language api;
		if (!copy_sized(&api, sizeof(api), list[count], 0, END_OF(kern_language, file_name), "kern_language",
				why) ||
		    !check_language(plugins, plugin, &api, why))
			return false;
		struct ks_language *language = calloc(1, sizeof(*language));
		if (!language)
			return no(why, "out of memory");
		language->plugin = plugin;
		language->api = api;
		ks_list_append(&plugin->languages, &language->node);
	}
	return count > 0 || no(why, "it offers no language");
}

static bool check_symbol(const struct kern_plugin *symbol, struct ks_plugin *plugin, struct why *why)
{
	if (symbol->abi != KERN_PLUGIN_ABI)
		return no(why, "it is made for plugin ABI %u; this sidecar speaks %u", symbol->abi, KERN_PLUGIN_ABI);
	if (!copy_sized(&plugin->api, sizeof(plugin->api), symbol, offsetof(struct kern_plugin, size),
			END_OF(kern_plugin, ops), "kern_plugin", why))
		return false;
	if (!label_valid(plugin->api.name) || !label_valid(plugin->api.version))
		return no(why, "its name and version must have 1 to 64 printable ASCII characters");
	if (!plugin->api.ops)
		return no(why, "it has no ops");
	if (!copy_sized(&plugin->ops, sizeof(plugin->ops), plugin->api.ops, 0, END_OF(kern_ops, prepare), "kern_ops",
			why))
		return false;
	return plugin->ops.prepare || no(why, "it has no prepare function");
}

static bool call_open(struct ks_plugin *plugin, struct why *why)
{
	struct ks_error err = { 0 };
	struct ks_plugin_host host;

	if (!plugin->api.open)
		return true;
	ks_plugin_host_init(&host, plugin->api.name, &err);
	int said = plugin->api.open(&host.api, &plugin->self);
	if (host.failed)
		return no(why, "open failed: %s", err.text);
	return said >= 0 || no(why, "open failed without a reason");
}

/* What the plugin prints while it is loaded is caught here: fd 1 may be the protocol, and a plugin that prints once
 * will print again. Returns the fd that takes the place of 1, or -1. */
static int catch_stdout(int *ret_saved)
{
	int caught = memfd_create("plugin-stdout", MFD_CLOEXEC);

	(void)fflush(stdout);
	*ret_saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (caught >= 0 && dup2(caught, STDOUT_FILENO) < 0)
		ks_close(&caught);
	return caught;
}

static bool release_stdout(int caught, int saved)
{
	struct stat st = { 0 };

	(void)fflush(stdout);
	if (caught >= 0)
		(void)fstat(caught, &st);
	if (saved >= 0)
		(void)dup2(saved, STDOUT_FILENO);
	else
		(void)close(STDOUT_FILENO);
	ks_close(&caught);
	ks_close(&saved);
	return st.st_size == 0;
}

static bool load_object(const struct ks_plugins *plugins, struct ks_plugin *plugin, struct why *why)
{
	void *object = dlopen(plugin->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!object)
		return no(why, "%s", dlerror());
	const struct kern_plugin *symbol = dlsym(object, "kern_plugin_v1");
	bool good = symbol ? check_symbol(symbol, plugin, why) && add_languages(plugins, plugin, why) &&
				     call_open(plugin, why)
			   : no(why, "it exports no kern_plugin_v1");
	if (!good)
		(void)dlclose(object); /* stays mapped, RTLD_NODELETE; gives the handle back */
	return good;
}

static bool load_quietly(const struct ks_plugins *plugins, struct ks_plugin *plugin, struct why *why)
{
	int saved, caught = catch_stdout(&saved);
	bool good = load_object(plugins, plugin, why);

	if (release_stdout(caught, saved) || !good)
		return good;
	if (plugin->api.close)
		plugin->api.close(plugin->self);
	return no(why, "it wrote to standard output while it was loaded; a plugin must not print");
}

/* The files in DIR/NAME: 1 when there is NAME.so, 0 when there is not, -1 when it must not be used. */
static int check_files(int dir, const char *name, struct ks_plugin *plugin, struct why *why)
{
	char object[NAME_MAX + 4];
	struct stat st;
	KS_AUTOCLOSE int home = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	(void)snprintf(object, sizeof(object), "%s.so", name);
	if (home < 0 || fstatat(home, object, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (!S_ISREG(st.st_mode))
		return no(why, "it is not a regular file"), -1;
	if (!ours_alone(&st, "it", why))
		return -1;
	if (fstat(home, &st) < 0 || !ours_alone(&st, "its directory", why))
		return -1;
	if (fstatat(home, "run", &st, AT_SYMLINK_NOFOLLOW) < 0) {
		ks_freep(&plugin->runner_dir);
		plugin->runner_dir = NULL;
		return 1;
	}
	if (!S_ISDIR(st.st_mode))
		return no(why, "its run is not a directory"), -1;
	return ours_alone(&st, "its run directory", why) ? 1 : -1;
}

static int refuse(struct ks_plugins *plugins, const char *path, const char *reason, struct ks_error *err)
{
	struct ks_refused *refused = calloc(1, sizeof(*refused));

	if (refused) {
		refused->path = strdup(path);
		refused->reason = strdup(reason);
		ks_list_append(&plugins->refused, &refused->node);
	}
	if (!refused || !refused->path || !refused->reason)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	ks_log(KS_LOG_WARN, "plugin_refused", "%s: %s", path, reason);
	return 0;
}

static int load_one(struct ks_plugins *plugins, const char *path, int dir, const char *name, struct ks_error *err)
{
	struct why why = { "" };
	KS_CLEANUP(plugin_freep) struct ks_plugin *plugin = calloc(1, sizeof(*plugin));

	if (!plugin)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	ks_list_init(&plugin->languages);
	if (asprintf(&plugin->path, "%s/%s/%s.so", path, name, name) < 0)
		plugin->path = NULL;
	if (asprintf(&plugin->runner_dir, "%s/%s/run", path, name) < 0)
		plugin->runner_dir = NULL;
	if (!plugin->path || !plugin->runner_dir)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	int there = check_files(dir, name, plugin, &why);
	if (there == 0)
		return 0;
	if (there < 0 || !load_quietly(plugins, plugin, &why))
		return refuse(plugins, plugin->path, why.text, err);
	ks_list_append(&plugins->loaded, &plugin->node);
	plugin = NULL;
	return 0;
}

static int wanted(const struct dirent *entry)
{
	return language_name_valid(entry->d_name);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int load_dir(struct ks_plugins *plugins, const char *given, struct ks_error *err)
{
	KS_AUTOFREE char *path = realpath(given, NULL);
	KS_AUTOCLOSE int dir = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct dirent **names;
	struct why why = { "" };
	struct stat st;
	int ret = 0;

	if (given[0] != '/')
		return refuse(plugins, given, "a plugin directory must be an absolute path", err);
	if (dir < 0)
		return errno == ENOENT ? 0 : refuse(plugins, given, strerrordesc_np(errno), err);
	if (fstat(dir, &st) < 0 || !ours_alone(&st, "this directory of plugins", &why))
		return refuse(plugins, path, why.text, err);
	int count = scandirat(dir, ".", &names, wanted, by_bytes);
	if (count < 0)
		return refuse(plugins, path, strerrordesc_np(errno), err);
	for (int i = 0; i < count; i++) {
		if (ret == 0)
			ret = load_one(plugins, path, dir, names[i]->d_name, err);
		free(names[i]);
	}
	free(names);
	return ret;
}

/* ---- all of them ---- */

static void plugins_freep(struct ks_plugins **plugins)
{
	ks_plugins_free(*plugins);
}

int ks_plugins_load(const char *const *dirs, struct ks_plugins **ret, struct ks_error *err)
{
	KS_CLEANUP(plugins_freep) struct ks_plugins *plugins = calloc(1, sizeof(*plugins));

	if (!plugins)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	ks_list_init(&plugins->loaded);
	ks_list_init(&plugins->refused);
	for (; *dirs; dirs++)
		if (load_dir(plugins, *dirs, err) < 0)
			return -1;
	*ret = KS_TAKE_PTR(plugins);
	return 0;
}

void ks_plugins_free(struct ks_plugins *plugins)
{
	if (!plugins)
		return;
	while (!ks_list_empty(&plugins->loaded)) {
		struct ks_plugin *plugin = KS_ENTRY(plugins->loaded.next, struct ks_plugin, node);
		ks_list_remove(&plugin->node);
		if (plugin->api.close)
			plugin->api.close(plugin->self);
		plugin_free(plugin);
	}
	while (!ks_list_empty(&plugins->refused)) {
		struct ks_refused *refused = KS_ENTRY(plugins->refused.next, struct ks_refused, node);
		ks_list_remove(&refused->node);
		free(refused->path);
		free(refused->reason);
		free(refused);
	}
	free(plugins);
}

const struct ks_language *ks_plugins_next_language(const struct ks_plugins *plugins, const struct ks_language *after)
{
	struct ks_list *plugin = plugins->loaded.next;

	if (after) {
		if (after->node.next != &after->plugin->languages)
			return KS_ENTRY(after->node.next, struct ks_language, node);
		plugin = after->plugin->node.next;
	}
	/* Every loaded plugin has at least one language. */
	if (plugin == &plugins->loaded)
		return NULL;
	return KS_ENTRY(KS_ENTRY(plugin, struct ks_plugin, node)->languages.next, struct ks_language, node);
}

const struct ks_language *ks_plugins_find_language(const struct ks_plugins *plugins, const char *name)
{
	const struct ks_language *language = NULL;

	while ((language = ks_plugins_next_language(plugins, language))) {
		if (strcmp(language->api.name, name) == 0)
			return language;
		for (const char *const *alias = language->api.aliases; alias && *alias; alias++)
			if (strcmp(*alias, name) == 0)
				return language;
	}
	return NULL;
}
