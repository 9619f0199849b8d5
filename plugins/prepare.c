/* prepare.c: one call of a language: checks what the request says, lets the plugin describe the process, and reads the
 * frames that come back. */
#include <stdio.h>
#include <string.h>

#include "plugins/host.h"

#define FILENAME_BYTES 1024

void ks_prepared_free(struct ks_prepared *prepared)
{
	for (size_t i = 0; i < prepared->argc; i++)
		free(prepared->argv[i]);
	free(prepared->argv);
	for (size_t i = 0; i < prepared->env_count; i++)
		free(prepared->env[i]);
	for (size_t i = 0; i < prepared->file_count; i++) {
		free(prepared->files[i].name);
		free(prepared->files[i].data);
	}
	*prepared = (struct ks_prepared){ 0 };
}

static int check_filename(const char *name, struct ks_error *err)
{
	size_t len = strlen(name);

	if (len == 0 || len > FILENAME_BYTES)
		return ks_fail_at(err, KS_E_OUT_OF_RANGE, "/filename", "a file name has 1 to %d bytes, not %zu",
				  FILENAME_BYTES, len);
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		if (*c < ' ' || *c == 0x7f)
			return ks_fail_at(err, KS_E_INVALID_VALUE, "/filename", "control characters in the file name");
	return 0;
}

static int check_run(const struct kern_run *run, struct ks_error *err)
{
	char pointer[32];

	if (run->code_len > KERN_CODE_MAX)
		return ks_fail_at(err, KS_E_OUT_OF_RANGE, "/code", "code of %zu bytes; at most %zu", run->code_len,
				  KERN_CODE_MAX);
	if (run->first_line < 1 || run->first_line > KS_FIRST_LINE_MAX)
		return ks_fail_at(err, KS_E_OUT_OF_RANGE, "/firstLine", "must be 1 to %d, not %u", KS_FIRST_LINE_MAX,
				  run->first_line);
	if (run->arg_count > KS_RUN_ARGS_MAX)
		return ks_fail_at(err, KS_E_OUT_OF_RANGE, "/args", "%zu words; at most %d", run->arg_count,
				  KS_RUN_ARGS_MAX);
	for (size_t i = 0; i < run->arg_count; i++) {
		size_t len = strlen(run->args[i]);
		if (len <= KS_WORD_MAX)
			continue;
		(void)snprintf(pointer, sizeof(pointer), "/args/%zu", i);
		return ks_fail_at(err, KS_E_OUT_OF_RANGE, pointer, "%zu bytes; the kernel takes at most %d", len,
				  KS_WORD_MAX);
	}
	return run->filename ? check_filename(run->filename, err) : 0;
}

/* Empty lines in front are the one way to move line numbers that works for every interpreter, for re-imports by
 * multiprocessing, and for tools that read the file. A byte order mark would break a shell's first word. */
static char *place_code(const struct kern_run *run, size_t *ret_len)
{
	size_t skip = run->code_len >= 3 && memcmp(run->code, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
	size_t lines = run->first_line - 1, len = run->code_len - skip;
	char *code = malloc(lines + len + 1);

	if (!code)
		return NULL;
	memset(code, '\n', lines);
	if (len > 0)
		memcpy(code + lines, run->code + skip, len);
	code[lines + len] = '\0';
	*ret_len = lines + len;
	return code;
}

/* The interpreter; of a kernel also a program in the plugin's run/, which starts it. */
static bool may_come_first(const char *word, const struct kern_run *run)
{
	size_t len = run->runner_dir ? strlen(run->runner_dir) : 0;

	return strcmp(word, run->interpreter) == 0 ||
	       ((run->flags & KERN_RUN_KERNEL) && len > 0 && strncmp(word, run->runner_dir, len) == 0 && word[len] == '/');
}

int ks_plugin_prepare(const struct ks_language *language, const struct kern_run *run, struct ks_prepared *ret,
		      struct ks_error *err)
{
	KS_CLEANUP(ks_prepared_free) struct ks_prepared prepared = { 0 };
	KS_AUTOFREE char *code = NULL;
	const struct ks_plugin *plugin = language->plugin;
	struct kern_run call = *run;
	struct ks_plugin_host host;

	if (check_run(run, err) < 0)
		return -1;
	call.size = sizeof(call);
	call.language = language->api.name;
	call.code = code = place_code(run, &call.code_len);
	ks_plugin_host_init(&host, plugin->api.name, err);
	host.words_max = KS_PLUGIN_ARGS_MAX + run->arg_count;
	prepared.argv = calloc(host.words_max + 1, sizeof(*prepared.argv));
	if (!code || !prepared.argv)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	host.prepared = &prepared;
	int said = plugin->ops.prepare(plugin->self, &call, &host.api);
	if (host.failed)
		return -1;
	if (said < 0)
		return ks_fail(err, KS_E_PLUGIN_ERROR, "plugin %s refused the call without a reason", plugin->api.name);
	if (prepared.argc == 0 || !may_come_first(prepared.argv[0], &call))
		return ks_fail(err, KS_E_PLUGIN_ERROR, "plugin %s: the first word is not the interpreter",
			       plugin->api.name);
	*ret = prepared;
	prepared = (struct ks_prepared){ 0 };
	return 0;
}

int ks_plugin_result(const struct ks_language *language, const struct kern_frame *frame, struct ks_results *results,
		     struct ks_error *err)
{
	const struct ks_plugin *plugin = language->plugin;
	struct ks_plugin_host host;

	if (!plugin->ops.result) {
		if (ks_results_frame(results, frame) < 0)
			return ks_fail(err, KS_E_PLUGIN_ERROR, "a frame of type %u makes no sense", frame->type);
		return 0;
	}
	ks_plugin_host_init(&host, plugin->api.name, err);
	host.results = results;
	int said = plugin->ops.result(plugin->self, frame, &host.api);
	if (host.failed)
		return -1;
	if (said < 0)
		return ks_fail(err, KS_E_PLUGIN_ERROR, "plugin %s cannot read a frame of type %u", plugin->api.name,
			       frame->type);
	return 0;
}
