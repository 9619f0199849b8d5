#include "cli/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "cli/bridge.h"
#include "cli/flags.h"
#include "cli/local.h"
#include "proto/tables.h"

#define NO_SHELL 125
#define ENV_BYTES ((size_t)1 << 20)
#define ENV_COUNT 256

struct shell_params {
	struct ks_session_params session; /* first: its table is used as it is */
	bool bridge;
	int64_t env_fd;
};

static const struct ks_field shell_fields[] = {
	{ KS_BOOL("bridge", struct shell_params, bridge), .flags = KS_F_CLI, .fallback = "false",
	  .text = "For a program: commands on stdin, each with its marker." },
	{ KS_INT("envFd", struct shell_params, env_fd), .flags = KS_F_CLI, .min = 0, .max = 65535,
	  .text = "A descriptor with more of the shell's environment: NAME=value, each with a NUL behind it." },
};

static const int ending_signals[] = { SIGTERM, SIGHUP, SIGINT };

static struct visit {
	struct ks_local local;
	struct shell_params params;
	struct ks_pairs env;
	struct ks_strings argv;
	char *workspace; /* what argv has of it, made absolute */
	struct ks_kernel *shell;
	struct ks_bridge bridge;
	uv_poll_t in;
	uv_signal_t size, ending[3];
	struct termios saved;
	bool raw, done;
	int status;
	struct ks_error error; /* reason set: there is no shell */
} visit;

static void finish(int status)
{
	if (visit.done)
		return;
	visit.done = true;
	visit.status = status;
	ks_local_stop(&visit.local);
}

static void fail(const struct ks_error *err)
{
	visit.error = *err;
	finish(NO_SHELL);
}

/* ---- a person's terminal ---- */

static void restore_terminal(void)
{
	if (visit.raw)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &visit.saved);
	visit.raw = false;
}

/* Before the first of the shell's output, which may come before the word that it is open. */
static void make_raw(void)
{
	struct termios raw;

	if (visit.raw || visit.done || tcgetattr(STDIN_FILENO, &visit.saved) < 0)
		return;
	raw = visit.saved;
	cfmakeraw(&raw);
	visit.raw = tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0;
}

static struct winsize window(void)
{
	struct winsize size = { .ws_row = 24, .ws_col = 80 };

	(void)ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
	return (struct winsize){ .ws_row = size.ws_row ? size.ws_row : 24, .ws_col = size.ws_col ? size.ws_col : 80 };
}

static void on_size(uv_signal_t *handle, int number)
{
	const struct winsize size = window();
	struct ks_error ignored;

	(void)handle;
	(void)number;
	(void)ks_shell_resize(visit.shell, size.ws_row, size.ws_col, &ignored);
}

static void on_typed(uv_poll_t *poll, int status, int events)
{
	char buffer[4096];
	struct ks_error err;

	(void)status;
	(void)events;
	ssize_t n = read(STDIN_FILENO, buffer, sizeof(buffer));
	if (n > 0)
		(void)ks_shell_write(visit.shell, buffer, (size_t)n, &err); /* what nobody has read of a MiB is lost, as in any terminal */
	else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		(void)uv_poll_stop(poll);
		finish(128 + SIGHUP); /* the terminal is gone */
	}
}

static void on_output(void *arg, const struct ks_kernel *shell, enum ks_output which, const char *data, size_t len)
{
	(void)arg;
	(void)shell;
	if (visit.params.bridge)
		return; /* late output of a job, which is no command's */
	make_raw();
	while (len > 0) {
		ssize_t n = write(which == KS_STDERR ? STDERR_FILENO : STDOUT_FILENO, data, len);
		if (n < 0 && errno != EINTR)
			return;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static void on_state(void *arg, const struct ks_kernel *shell)
{
	(void)arg;
	if (shell->state == KS_KERNEL_DEAD && !visit.params.bridge)
		finish(shell->death.exit_code);
}

static void start_terminal(void)
{
	uv_loop_t *loop = &visit.local.loop;

	make_raw();
	if (uv_poll_init(loop, &visit.in, STDIN_FILENO) == 0)
		(void)uv_poll_start(&visit.in, UV_READABLE | UV_DISCONNECT, on_typed);
	(void)uv_signal_init(loop, &visit.size);
	(void)uv_signal_start(&visit.size, on_size, SIGWINCH);
}

/* ---- opening ---- */

static void on_bridge_ended(void *arg, int status)
{
	(void)arg;
	finish(status);
}

static void on_shell(void *arg, struct ks_kernel *shell, const struct ks_error *err)
{
	(void)arg;
	if (!shell) {
		fail(err);
		return;
	}
	visit.shell = shell;
	if (!visit.params.bridge) {
		start_terminal();
		return;
	}
	visit.bridge = (struct ks_bridge){ .local = &visit.local, .shell = shell, .ended = on_bridge_ended };
	ks_bridge_start(&visit.bridge);
}

static void on_session(void *arg, struct ks_session *session, const struct ks_error *err)
{
	const struct winsize size = window();
	struct ks_kernel_spec spec = { .env = &visit.env, .timeout_ms = KS_ABSENT, .memory_mb = KS_ABSENT, .is_shell = true,
				       .pty = !visit.params.bridge, .argv = &visit.argv, .rows = size.ws_row, .cols = size.ws_col };
	struct ks_error why;

	(void)arg;
	if (!session)
		fail(err);
	else if (ks_kernel_open(session, &spec, on_shell, NULL, &visit.shell, &why) < 0)
		fail(&why);
}

static void on_ending(uv_signal_t *handle, int number)
{
	(void)handle;
	finish(128 + number);
}

static int start(char *arguments, size_t arguments_len, const char *const *plugin_dirs, const char *worker_program, struct ks_error *err)
{
	struct ks_session *session;

	if (ks_local_open(&visit.local, arguments, arguments_len, plugin_dirs, worker_program, err) < 0)
		return -1;
	for (size_t i = 0; i < KS_COUNT(visit.ending); i++) {
		(void)uv_signal_init(&visit.local.loop, &visit.ending[i]);
		(void)uv_signal_start(&visit.ending[i], on_ending, ending_signals[i]);
	}
	visit.local.core->max_runs = visit.local.core->max_queued = 16;
	visit.local.core->kernel_output = on_output;
	visit.local.core->kernel_state = on_state;
	return ks_session_open(visit.local.core, &visit.params.session, false, on_session, NULL, &session, err);
}

/* ---- words and environment ---- */

static int add_variable(const char *name, size_t name_len, const char *value, struct ks_error *err)
{
	struct ks_pairs *env = &visit.env;
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

	if (name_len == 0 || strspn(name, letters) < name_len || (name[0] >= '0' && name[0] <= '9'))
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/envFd", "%.*s is no name of a variable", (int)(name_len < 64 ? name_len : 64),
				  name);
	if (strchr(value, '\n'))
		return ks_fail_at(err, KS_E_INVALID_VALUE, "/envFd", "the value of %.*s has a newline",
				  (int)(name_len < 64 ? name_len : 64), name);
	if (env->count == ENV_COUNT)
		return ks_fail_at(err, KS_E_OUT_OF_RANGE, "/envFd", "more than %d variables", ENV_COUNT);
	env->names[env->count] = strndup(name, name_len);
	env->values[env->count] = strdup(value);
	if (!env->names[env->count] || !env->values[env->count])
		return ks_fail(err, KS_E_INTERNAL, "out of memory");
	env->count++;
	return 0;
}

static int read_env(int fd, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	char buffer[4096];
	ssize_t n;

	while ((n = read(fd, buffer, sizeof(buffer))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return ks_fail_at(err, KS_E_INVALID_VALUE, "/envFd", "cannot read descriptor %d: %s", fd, strerror(errno));
		ks_buf_add(&text, buffer, (size_t)n);
		if (text.failed || text.len > ENV_BYTES)
			return ks_fail_at(err, KS_E_TOO_LARGE, "/envFd", "more than %zu bytes", ENV_BYTES);
	}
	ks_buf_char(&text, '\0');
	for (size_t at = 0; at + 1 < text.len; at += strlen(text.data + at) + 1) {
		const char *entry = text.data + at, *equals = strchr(entry, '=');
		if (!equals)
			return ks_fail_at(err, KS_E_INVALID_VALUE, "/envFd", "an entry without =");
		if (add_variable(entry, (size_t)(equals - entry), equals + 1, err) < 0)
			return -1;
	}
	return 0;
}

static int parse(int argc, char **argv, const struct ks_schema *schema, struct ks_error *err)
{
	static char *names[ENV_COUNT + 2], *values[ENV_COUNT + 2];
	int at = 1;

	visit.env = (struct ks_pairs){ names, values, 0 };
	if (ks_flags_workspace(argc, argv, &visit.workspace, err) < 0 || ks_flags_parse(schema, argc, argv, &at, &visit.params, err) < 0)
		return -1;
	if (at < argc && strcmp(argv[at], "--") == 0)
		at++;
	visit.argv = (struct ks_strings){ argv + at, (size_t)(argc - at) };
	if (visit.params.env_fd != KS_ABSENT) {
		if (read_env((int)visit.params.env_fd, err) < 0)
			return -1;
		(void)close((int)visit.params.env_fd);
	}
	if (visit.params.bridge)
		return 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		(void)ks_fail(err, KS_E_INVALID_VALUE, "shell is for a person at a terminal, and stdin or stdout is none");
		return ks_error_hint(err, "a program drives a shell with --bridge, or by shell/open of --stdio");
	}
	return getenv("TERM") ? add_variable("TERM", strlen("TERM"), getenv("TERM"), err) : 0;
}

int ks_cli_shell(int argc, char **argv, char *arguments, size_t arguments_len, const char *const *plugin_dirs, const char *worker_program)
{
	struct ks_schema schema = ks_session_params;
	struct ks_error err;

	schema.size = sizeof(visit.params);
	schema.parts[1] = (struct ks_fields)KS_FIELDS(shell_fields);
	if (parse(argc, argv, &schema, &err) < 0)
		return ks_cli_complain(&err), NO_SHELL;
	if (start(arguments, arguments_len, plugin_dirs, worker_program, &err) < 0)
		fail(&err);
	if (!visit.done)
		ks_local_run(&visit.local);
	if (!visit.done) {
		(void)ks_fail(&err, KS_E_INTERNAL, "the launcher died");
		fail(&err);
	}
	restore_terminal();
	ks_local_close(&visit.local);
	ks_params_free(&schema, &visit.params);
	free(visit.workspace);
	if (visit.error.reason)
		ks_cli_complain(&visit.error);
	return visit.status;
}
