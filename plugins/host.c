/* host.c: what a plugin may ask for: each service checks its caps, copies, and remembers the first failure, so that a
 * plugin which ignores a -1 cannot go on with half a process. */
#include "host.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static struct ks_plugin_host *self(struct kern_host *api)
{
	return (struct ks_plugin_host *)(void *)api;
}

static KS_PRINTF(2, 3) int refuse(struct ks_plugin_host *host, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (host->failed)
		return -1;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	host->failed = true;
	return ks_fail(host->err, KS_E_PLUGIN_ERROR, "plugin %s: %s", host->plugin_name, text);
}

static bool in_prepare(struct ks_plugin_host *host, const char *service)
{
	if (!host->prepared)
		(void)refuse(host, "%s is for prepare only", service);
	return host->prepared && !host->failed;
}

static bool in_result(struct ks_plugin_host *host, const char *service)
{
	if (!host->results)
		(void)refuse(host, "%s is for result only", service);
	return host->results && !host->failed;
}

static void host_log(struct kern_host *api, int level, const char *text)
{
	enum ks_log_level at = level <= KERN_LOG_ERROR	? KS_LOG_ERROR
			       : level == KERN_LOG_WARN ? KS_LOG_WARN
			       : level == KERN_LOG_INFO ? KS_LOG_INFO
							: KS_LOG_DEBUG;
	ks_log(at, "plugin", "%s: %s", self(api)->plugin_name, text);
}

static int host_fail(struct kern_host *api, const char *pointer, const char *text)
{
	struct ks_plugin_host *host = self(api);

	if (host->failed || !pointer)
		return refuse(host, "%s", text);
	host->failed = true;
	return ks_fail_at(host->err, KS_E_INVALID_VALUE, pointer, "%s", text);
}

/* Words and variables share one budget: the kernel refuses an exec whose strings are too large (execve(2), E2BIG). */
static int take_text(struct ks_plugin_host *host, size_t len)
{
	if (len > KS_WORD_MAX)
		return refuse(host, "a word of %zu bytes; the kernel takes at most %d", len, KS_WORD_MAX);
	if (len + 1 > KS_PLUGIN_TEXT_BYTES - host->text_bytes)
		return refuse(host, "words and variables of more than 1 MiB");
	host->text_bytes += len + 1;
	return 0;
}

static int host_add_arg(struct kern_host *api, const char *word)
{
	struct ks_plugin_host *host = self(api);
	struct ks_prepared *prepared = host->prepared;

	if (!in_prepare(host, "add_arg"))
		return -1;
	if (prepared->argc == host->words_max)
		return refuse(host, "more than %d words besides the caller's", KS_PLUGIN_ARGS_MAX);
	if (take_text(host, strlen(word)) < 0)
		return -1;
	prepared->argv[prepared->argc] = strdup(word);
	if (!prepared->argv[prepared->argc])
		return refuse(host, "out of memory");
	prepared->argc++;
	return 0;
}

static bool env_name_valid(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	return *name && !(*name >= '0' && *name <= '9') && name[strspn(name, letters)] == '\0';
}

static int host_set_env(struct kern_host *api, const char *name, const char *value)
{
	struct ks_plugin_host *host = self(api);
	struct ks_prepared *prepared = host->prepared;
	size_t name_len = strlen(name);

	if (!in_prepare(host, "set_env"))
		return -1;
	if (!env_name_valid(name))
		return refuse(host, "\"%.64s\" is no name of a variable", name);
	for (size_t i = 0; i < prepared->env_count; i++)
		if (strncmp(prepared->env[i], name, name_len) == 0 && prepared->env[i][name_len] == '=')
			return refuse(host, "the variable %.64s is set twice", name);
	if (prepared->env_count == KS_PLUGIN_ENV_MAX)
		return refuse(host, "more than %d variables", KS_PLUGIN_ENV_MAX);
	if (take_text(host, name_len + 1 + strlen(value)) < 0)
		return -1;
	if (asprintf(&prepared->env[prepared->env_count], "%s=%s", name, value) < 0) {
		prepared->env[prepared->env_count] = NULL;
		return refuse(host, "out of memory");
	}
	prepared->env_count++;
	return 0;
}

bool ks_plugin_file_name_valid(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-";
	size_t len = strspn(name, letters);

	return len > 0 && len <= 64 && name[len] == '\0' && name[0] != '.' && name[0] != '-';
}

static int host_add_file(struct kern_host *api, const char *name, const void *data, size_t len, uint32_t mode)
{
	struct ks_plugin_host *host = self(api);
	struct ks_prepared *prepared = host->prepared;

	if (!in_prepare(host, "add_file"))
		return -1;
	if (!ks_plugin_file_name_valid(name))
		return refuse(host, "\"%.64s\" is no name for a file", name);
	if (mode > 0777)
		return refuse(host, "mode %#o of the file %s is more than 0777", mode, name);
	for (size_t i = 0; i < prepared->file_count; i++)
		if (strcmp(prepared->files[i].name, name) == 0)
			return refuse(host, "the file %s is added twice", name);
	if (prepared->file_count == KS_PLUGIN_FILES_MAX)
		return refuse(host, "more than %d files", KS_PLUGIN_FILES_MAX);
	if (len > KS_PLUGIN_FILE_BYTES - host->file_bytes)
		return refuse(host, "files of more than 16 MiB");
	KS_AUTOFREE char *copy = malloc(len + 1);
	KS_AUTOFREE char *own_name = strdup(name);
	if (!copy || !own_name)
		return refuse(host, "out of memory");
	if (len > 0)
		memcpy(copy, data, len);
	copy[len] = '\0';
	host->file_bytes += len;
	prepared->files[prepared->file_count++] =
		(struct ks_prepared_file){ KS_TAKE_PTR(own_name), KS_TAKE_PTR(copy), len, mode };
	return 0;
}

static int kept(struct ks_plugin_host *host, int ret, const char *what)
{
	return ret < 0 ? refuse(host, "%s makes no sense", what) : 0;
}

static int host_emit_result(struct kern_host *api, const struct kern_result *result)
{
	struct ks_plugin_host *host = self(api);

	if (!in_result(host, "emit_result"))
		return -1;
	return kept(host, ks_results_emit(host->results, result), "a result");
}

static int host_emit_clear(struct kern_host *api, int wait)
{
	struct ks_plugin_host *host = self(api);

	if (!in_result(host, "emit_clear"))
		return -1;
	return ks_results_clear(host->results, wait != 0);
}

static int host_emit_error(struct kern_host *api, const struct kern_error *error)
{
	struct ks_plugin_host *host = self(api);

	if (!in_result(host, "emit_error"))
		return -1;
	return kept(host, ks_results_error(host->results, error), "an error");
}

void ks_plugin_host_init(struct ks_plugin_host *host, const char *plugin_name, struct ks_error *err)
{
	*host = (struct ks_plugin_host){
		.api = {
			.size = sizeof(struct kern_host),
			.log = host_log,
			.fail = host_fail,
			.add_arg = host_add_arg,
			.set_env = host_set_env,
			.add_file = host_add_file,
			.emit_result = host_emit_result,
			.emit_clear = host_emit_clear,
			.emit_error = host_emit_error,
		},
		.plugin_name = plugin_name,
		.err = err,
	};
}
