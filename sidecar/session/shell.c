/* shell.c: what is special about shells: which program it is, and what is done to one of mode pty. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fds.h"
#include "plugins/frames.h"
#include "session/kernel.h"
#include "session/posture.h"

#define PTY_WORDS 4 /* kern-pty, the channel's number, rows, cols */

static const struct ks_language *language_of(const struct ks_kernel *shell, const char *name)
{
	return ks_plugins_find_language(shell->core->plugins, name);
}

/* bash where the image has it, else sh. */
static int choose(struct ks_kernel *shell, struct ks_error *err)
{
	static const char *const names[] = { "bash", "sh" };

	for (size_t i = 0; i < KS_COUNT(names); i++) {
		const struct ks_language *language = language_of(shell, names[i]);
		const char *program = language ? ks_session_interpreter(shell->session, language) : NULL;
		if (!program)
			continue;
		shell->language = language;
		shell->program = strdup(program);
		return shell->program ? 0 : ks_fail(err, KS_E_INTERNAL, "out of memory");
	}
	(void)ks_fail_at(err, KS_E_START_FAILED, "/argv", "the image %.100s has neither bash nor sh", shell->session->image->ref);
	return ks_error_hint(err, "name the shell in argv, or use another image");
}

/* Whose end of a command is known: those that kern-cells can feed. */
static int choose_named(struct ks_kernel *shell, const struct ks_strings *argv, struct ks_error *err)
{
	static const char *const names[][2] = { { "bash", "bash" }, { "sh", "sh" }, { "dash", "sh" }, { "ash", "sh" } };
	const char *slash = strrchr(argv->items[0], '/'), *base = slash ? slash + 1 : argv->items[0];

	for (size_t i = 0; i < KS_COUNT(names) && argv->count == 1; i++)
		if (strcmp(base, names[i][0]) == 0)
			shell->language = language_of(shell, names[i][1]);
	if (!shell->language) {
		(void)ks_fail_at(err, KS_E_INVALID_VALUE, "/argv",
				 "a shell of mode pipes is one word: bash, sh, dash or ash, or a path to it");
		return ks_error_hint(err, "mode pty runs any program; options of the shell can be set by a first command");
	}
	shell->program = strdup(argv->items[0]);
	return shell->program ? 0 : ks_fail(err, KS_E_INTERNAL, "out of memory");
}

static int add(struct ks_strings *to, const char *word)
{
	to->items[to->count] = strdup(word);
	return to->items[to->count] ? (to->count++, 0) : -1;
}

static bool has_name(const struct ks_pairs *pairs, const char *name)
{
	for (size_t i = 0; i < pairs->count; i++)
		if (strcmp(pairs->names[i], name) == 0)
			return true;
	return false;
}

/* A terminal that can do what the client's can, as far as anybody knows. There is room: ks_pairs_copy() */
static int name_terminal(struct ks_kernel *shell)
{
	struct ks_pairs *env = &shell->params.env;

	if (has_name(env, "TERM") || has_name(&shell->session->env, "TERM"))
		return 0;
	env->names[env->count] = strdup("TERM");
	env->values[env->count] = strdup("xterm-256color");
	return env->names[env->count] && env->values[env->count] ? (env->count++, 0) : -1;
}

static int fill_pty(struct ks_kernel *shell, const struct ks_kernel_spec *spec, struct ks_error *err)
{
	struct ks_strings *argv = &shell->params.argv;
	char rows[24], cols[24];
	int rc = 0;

	shell->language = language_of(shell, "bash");
	if (!shell->language)
		return ks_fail_at(err, KS_E_UNKNOWN_LANGUAGE, "/mode", "the plugin of bash, which brings terminals, is not loaded");
	(void)snprintf(rows, sizeof(rows), "%lld", (long long)spec->rows);
	(void)snprintf(cols, sizeof(cols), "%lld", (long long)spec->cols);
	argv->items = calloc(PTY_WORDS + spec->argv->count + 2, sizeof(char *));
	if (!argv->items)
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	const char *const words[PTY_WORDS] = { KS_RUNNER_DIR "/bash/kern-pty", "3" /* KS_RESULT_FD */, rows, cols };
	for (size_t i = 0; i < PTY_WORDS; i++)
		rc |= add(argv, words[i]);
	for (size_t i = 0; i < spec->argv->count; i++)
		rc |= add(argv, spec->argv->items[i]);
	if (spec->argv->count == 0)
		rc |= add(argv, shell->program);
	shell->params.interactive = true;
	return rc < 0 || name_terminal(shell) < 0 ? ks_fail(err, KS_E_INTERNAL, "out of memory") : 0;
}

int ks_shell_fill(struct ks_kernel *shell, const struct ks_kernel_spec *spec, struct ks_error *err)
{
	const bool named = spec->argv->count > 0;

	shell->pty = spec->pty;
	if (!named && choose(shell, err) < 0)
		return -1;
	if (spec->pty)
		return fill_pty(shell, spec, err);
	return named ? choose_named(shell, spec->argv, err) : 0;
}

/* ---- while it lives ---- */

static int check(const struct ks_kernel *shell, bool pty, struct ks_error *err)
{
	if (!shell->host || shell->host->state != KS_CALL_RUNNING)
		return ks_kernel_fail_dead(shell, err);
	if (pty && !shell->pty)
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/shellId", "shell %s is of mode pipes and has no terminal; use shell/run",
				  shell->id);
	return 0;
}

int ks_shell_write(struct ks_kernel *shell, const void *data, size_t len, struct ks_error *err)
{
	return check(shell, true, err) < 0 ? -1 : ks_call_stdin(shell->host, data, len, false, err);
}

int ks_shell_resize(struct ks_kernel *shell, int64_t rows, int64_t cols, struct ks_error *err)
{
	char size[48];

	(void)snprintf(size, sizeof(size), "%lld %lld", (long long)rows, (long long)cols);
	return check(shell, true, err) < 0 ? -1 : ks_kernel_tell(shell, "size", size, err);
}

int ks_shell_signal(struct ks_kernel *shell, int signal_number, struct ks_error *err)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", signal_number);
	return check(shell, false, err) < 0 ? -1 : ks_kernel_tell(shell, "signal", number, err);
}

size_t ks_kernels_count(const struct ks_core *core, const struct ks_session *session, bool shells)
{
	size_t count = 0;

	for (struct ks_list *n = core->kernels.next; n != &core->kernels; n = n->next) {
		const struct ks_kernel *kernel = KS_ENTRY(n, struct ks_kernel, node);
		count += kernel->is_shell == shells && (!session || kernel->session == session);
	}
	return count;
}
