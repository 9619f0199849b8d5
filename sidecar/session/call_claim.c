/* call_claim.c: what a box is told to run: words, variables, files, descriptors. */
#include <stdio.h>
#include <string.h>

#include "session/call_parts.h"
#include "session/deps.h"
#include "session/kernel.h"
#include "session/posture.h"

static size_t add_words(const char **to, size_t at, char *const *words)
{
	for (; words && *words; words++)
		to[at++] = *words;
	return at;
}

/* Later ones win: ours, the plugin's, the session's, the call's. */
static int build_environment(struct ks_call *call, const struct ks_prepared *prepared, const char *cwd, const char ***ret,
			     struct ks_buf *room, struct ks_error *err)
{
	const struct ks_pairs *requested[] = { &call->session->env, &call->params->env };
	size_t max = 64 + prepared->env_count + requested[0]->count + requested[1]->count, count = 0;
	size_t *offsets = calloc(max, sizeof(*offsets));
	const char **list = calloc(max + 1, sizeof(*list));

	if (!offsets || !list)
		goto failed;
	for (const char *const *e = ks_posture_env; *e; e++) {
		offsets[count++] = room->len;
		ks_buf_add(room, *e, strlen(*e) + 1);
	}
	const char *const own[][2] = { { "PWD", cwd }, { "USER", call->session->user_name }, { "LOGNAME", call->session->user_name } };
	for (size_t i = 0; i < KS_COUNT(own); i++) {
		offsets[count++] = room->len;
		ks_buf_printf(room, "%s=%s", own[i][0], own[i][1]);
		ks_buf_char(room, '\0');
	}
	size_t at = room->len;
	ks_deps_environment(call->session, room);
	for (; at < room->len && !room->failed; at += strlen(room->data + at) + 1)
		offsets[count++] = at;
	for (size_t i = 0; i < prepared->env_count; i++) {
		offsets[count++] = room->len;
		ks_buf_add(room, prepared->env[i], strlen(prepared->env[i]) + 1);
	}
	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < requested[k]->count; i++) {
			offsets[count++] = room->len;
			ks_buf_printf(room, "%s=", requested[k]->names[i]);
			ks_buf_add(room, requested[k]->values[i], strlen(requested[k]->values[i]) + 1);
		}
	if (room->failed)
		goto failed;
	size_t kept = 0;
	for (size_t i = 0; i < count; i++) {
		const char *entry = room->data + offsets[i];
		size_t name = strcspn(entry, "=") + 1;
		bool later = false;
		for (size_t k = i + 1; k < count && !later; k++)
			later = strncmp(entry, room->data + offsets[k], name) == 0;
		if (!later)
			list[kept++] = entry;
	}
	free(offsets);
	*ret = list;
	return 0;
failed:
	free(offsets);
	free(list);
	return ks_fail(err, KS_E_INTERNAL, "out of memory");
}

int ks_call_prepare(struct ks_call *call, struct ks_prepared *prepared, struct ks_error *err)
{
	const struct ks_run_params *params = call->params;
	char runner_dir[128];

	if (!call->language)
		return 0;
	(void)snprintf(runner_dir, sizeof(runner_dir), KS_RUNNER_DIR "/%s", call->language->plugin->api.name);
	const char *interpreter = call->kernel && call->kernel->program ? call->kernel->program :
									     ks_session_interpreter(call->session, call->language);
	struct kern_run run = {
		.first_line = params->first_line == KS_ABSENT ? 1 : (uint32_t)params->first_line,
		/* missing: the box looks for the plain name, does not find it, and says so as exec_failed */
		.interpreter = interpreter ? interpreter : call->language->api.programs[0],
		.code = call->code,
		.code_len = call->code_len,
		.filename = params->filename,
		.args = (const char *const *)params->args.items,
		.arg_count = params->args.count,
		.runner_dir = call->language->plugin->runner_dir ? runner_dir : NULL,
		.code_dir = KS_CODE_DIR,
		.path = KS_BOX_PATH,
		.preload = (const char *const *)call->session->preload.items,
		.preload_count = call->session->preload.count,
		.result_fd = call->language->api.flags & KERN_CAN_RICH ? KS_RESULT_FD : -1,
		.flags = ks_call_is_host(call) ? KERN_RUN_KERNEL : call->parking ? ks_call_park_flags(call) : 0,
	};
	return ks_plugin_prepare(call->language, &run, prepared, err);
}

static int claim_with(struct ks_call *call, const struct ks_prepared *prepared, struct ks_error *err)
{
	struct ks_command_file files[KS_PLUGIN_FILES_MAX];
	struct ks_command_spec spec = { .files = files, .result_fd = -1, .stdio = { -1, -1, -1 }, .join_fd = ks_call_join_fd(call) };
	KS_AUTOBUF struct ks_buf room = { 0 };
	KS_AUTOFREE const char **env = NULL;
	KS_AUTOFREE const char **argv = NULL;
	KS_AUTOFREE char *cwd = ks_session_resolve_cwd(call->session, call->params->cwd, err);

	if (!cwd || build_environment(call, prepared, cwd, &env, &room, err) < 0)
		return -1;
	argv = calloc(prepared->argc + call->params->argv.count + 1, sizeof(*argv));
	if (!argv)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	(void)add_words(argv, add_words(argv, 0, prepared->argv), call->language ? NULL : call->params->argv.items);
	for (; spec.nfiles < prepared->file_count; spec.nfiles++) {
		const struct ks_prepared_file *file = &prepared->files[spec.nfiles];
		files[spec.nfiles] = (struct ks_command_file){ file->name, file->data, file->len, file->mode };
	}
	spec.cwd = cwd;
	spec.argv = argv;
	spec.env = env;
	int rc = ks_call_connect(call, spec.stdio, &spec.result_fd, err);
	if (rc == 0)
		rc = ks_box_claim(call->box, &spec, err);
	for (int i = 0; i < 3; i++)
		if (i != 2 || spec.stdio[2] != spec.stdio[1])
			ks_close(&spec.stdio[i]);
	ks_close(&spec.result_fd);
	return rc;
}

int ks_call_claim(struct ks_call *call, struct ks_error *err)
{
	struct ks_prepared prepared = { 0 };
	int rc = ks_call_prepare(call, &prepared, err);

	if (rc == 0)
		rc = claim_with(call, &prepared, err);
	ks_prepared_free(&prepared);
	return rc;
}
