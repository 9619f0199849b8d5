/* main.c: from the command line to one of the program's faces. Moves the protocol's descriptors out of reach of stray prints, and
 * forks the launcher before anything else is in memory. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/program.h"
#include "box/engine.h"
#include "cli/archive.h"
#include "cli/completion.h"
#include "cli/doctor.h"
#include "cli/run.h"
#include "cli/shell.h"
#include "mcp/mcp.h"
#include "proto/schema.h"
#include "proto/write.h"
#include "rpc/app.h"
#include "rpc/methods.h"

#ifndef KS_PLUGIN_DIR
#define KS_PLUGIN_DIR ""
#endif

#ifndef KS_LIBEXEC_DIR
#define KS_LIBEXEC_DIR ""
#endif

#define EXIT_WAIT_MS 700 /* what running calls may take to answer `cancelled` when the host is gone */
#define PLUGIN_DIRS 16
#define DESCRIPTORS 65536

static const char usage[] =
	"kern-sidecar " KS_VERSION ": runs agent-written code in fresh, rootless Linux boxes\n"
	"\n"
	"  kern-sidecar --stdio              serve JSON-RPC 2.0 on stdin and stdout, one object a line\n"
	"  kern-sidecar --mcp                serve the Model Context Protocol on stdin and stdout; KERN_MCP_* configure it\n"
	"  kern-sidecar doctor [--json]      can this host run boxes, and if not, why and what to do\n"
	"  kern-sidecar run [FLAGS] FILE | - | -c CODE [-- ARGUMENTS]\n"
	"                                    run code in a box; run --help lists the flags\n"
	"  kern-sidecar exec [FLAGS] -- PROGRAM [ARGUMENTS]\n"
	"                                    run a program in a box\n"
	"  kern-sidecar shell [FLAGS] [-- SHELL ARGS...]\n"
	"                                    a terminal in a box\n"
	"  kern-sidecar shell --bridge [--env-fd N] [FLAGS] [-- SHELL]\n"
	"                                    the same for a program that writes commands and markers\n"
	"  kern-sidecar run --plan [FLAGS]   print the set-up of a box, step by step, and make none\n"
	"  kern-sidecar snapshot --workspace DIR [FLAGS] FILE.tar.gz\n"
	"                                    pack a workspace\n"
	"  kern-sidecar restore --workspace DIR [FLAGS] FILE\n"
	"                                    replace its content by a .tar, .tar.gz or .tar.zst\n"
	"  kern-sidecar completion SHELL     print completions for bash, zsh or fish\n"
	"  kern-sidecar --print-schema       print the protocol's JSON Schema\n"
	"  kern-sidecar --version [--json]\n"
	"\n"
	"with --stdio and --mcp:\n"
	"  --log-file FILE      log lines go there instead of stderr\n"
	"  --log-level LEVEL    error, warn, info or debug; default warn\n"
	"  --plugin-dir DIR     also load language plugins from there; may be repeated\n";

static struct options {
	bool stdio, mcp, schema, version, json, help;
	const char *log_file;
	enum ks_log_level log_level;
	const char *plugin_dirs[PLUGIN_DIRS + 2];
	size_t plugin_count;
} options = { .log_level = KS_LOG_WARN };

/* ---- descriptors and signals ---- */

/* 0, 1 and 2 are open after this, so that nothing of ours ever gets one of these numbers. *ret: was it open? */
static bool make_sure_open(int fd)
{
	if (fcntl(fd, F_GETFD) >= 0)
		return true;
	int null = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
	if (null >= 0 && null != fd) {
		(void)dup2(null, fd);
		(void)close(null);
	}
	return false;
}

/* The protocol moves to private numbers; fd 0 becomes /dev/null and fd 1 stderr. */
static void move_protocol(int *ret_in, int *ret_out)
{
	bool in = make_sure_open(0), out = make_sure_open(1);
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)make_sure_open(2);
	*ret_in = in ? fcntl(0, F_DUPFD_CLOEXEC, 10) : -1;
	*ret_out = out ? fcntl(1, F_DUPFD_CLOEXEC, 10) : -1;
	(void)dup2(null, 0);
	(void)dup2(2, 1);
	(void)close(null);
}

/* What a host left behind survives exec: blocked signals, an ignored SIGCHLD (then nobody could wait). */
static void reset_signals(void)
{
	sigset_t none;

	for (int s = 1; s < NSIG; s++)
		if (s != SIGKILL && s != SIGSTOP)
			(void)signal(s, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGPIPE, SIG_IGN); /* a reader that went away is an errno, not our end */
}

/* A run takes about twenty: the usual soft limit of 1024 would end at fifty. Boxes get a limit of their own. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max < DESCRIPTORS ? limit.rlim_max : DESCRIPTORS;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- --stdio ---- */

struct main_loop {
	uv_loop_t loop;
	struct ks_engine *engine;
	struct ks_app app;
	struct ks_mcp *mcp;
	uv_timer_t exit_timer;
	uv_signal_t signals[3];
	bool leaving;
	int status;
};

static void stop_loop(void *arg)
{
	struct main_loop *m = arg;

	uv_stop(&m->loop);
}

static void on_exit_timer(uv_timer_t *timer)
{
	stop_loop(timer->data);
}

/* Everything is killed; running calls may still say so to a host that listens. */
static void leave(struct main_loop *m)
{
	if (m->leaving)
		return;
	m->leaving = true;
	(void)uv_timer_start(&m->exit_timer, on_exit_timer, EXIT_WAIT_MS, 0);
	ks_core_close(m->app.core, stop_loop, m);
}

static void on_closed(void *arg)
{
	leave(arg);
}

static void on_signal(uv_signal_t *handle, int number)
{
	(void)number;
	leave(handle->data);
}

static const int ending_signals[] = { SIGTERM, SIGINT, SIGHUP };

static void on_engine_lost(void *arg)
{
	struct main_loop *m = arg;

	ks_log(KS_LOG_ERROR, "launcher_lost", "the launcher has died, and every box with it; leaving");
	m->status = 1;
	leave(m);
}

/* Beside the program in a build tree; else where `install` put them. */
static void add_default_plugin_dir(void)
{
	static char path[4096 + 32];
	const char *own = ks_program_path(), *slash = strrchr(own, '/');
	const int len = slash ? (int)(slash - own) : 0;
	struct stat st;

	(void)snprintf(path, sizeof(path), "%.*s/languages", len, own);
	if (stat(path, &st) < 0)
		(void)snprintf(path, sizeof(path), "%.*s/../" KS_PLUGIN_DIR, len, own);
	if (stat(path, &st) < 0)
		return;
	char *real = realpath(path, NULL); /* lives as long as the program */
	if (real)
		options.plugin_dirs[options.plugin_count++] = real;
}

/* The same for the second program. */
static const char *worker_program(void)
{
	static char path[4096 + 64];
	const char *own = ks_program_path(), *slash = strrchr(own, '/');
	const int len = slash ? (int)(slash - own) : 0;

	(void)snprintf(path, sizeof(path), "%.*s/kern-worker", len, own);
	if (access(path, X_OK) < 0)
		(void)snprintf(path, sizeof(path), "%.*s/../" KS_LIBEXEC_DIR "/kern-worker", len, own);
	return path;
}

static int open_all(struct main_loop *m, int fd_in, int fd_out, const struct ks_error *engine_error,
		    const struct ks_mcp_config *mcp, struct ks_error *err)
{
	struct ks_core_config core = { .loop = &m->loop, .engine = m->engine, .engine_error = engine_error,
				       .plugin_dirs = options.plugin_dirs, .worker_program = worker_program() };

	if (m->engine && ks_engine_attach(m->engine, &m->loop, on_engine_lost, m, err) < 0)
		return -1;
	if (ks_core_open(&core, &m->app.core, err) < 0 || ks_server_new(&m->loop, fd_in, fd_out, &m->app.server, err) < 0)
		return -1;
	m->app.started_us = ks_now_us();
	ks_methods_base(m->app.server, m->app.core->blobs);
	ks_methods_blob(m->app.server, m->app.core->blobs);
	ks_methods_render(m->app.server, m->app.core->blobs);
	ks_methods_session(&m->app);
	ks_methods_setup(&m->app);
	ks_methods_run(&m->app);
	ks_methods_kernel(&m->app);
	ks_methods_shell(&m->app);
	ks_methods_info(&m->app);
	ks_methods_file(&m->app);
	ks_methods_archive(&m->app);
	ks_methods_search(&m->app);
	if (mcp && ks_mcp_new(&m->app, mcp, &m->mcp, err) < 0)
		return -1;
	ks_server_on_closed(m->app.server, on_closed, m);
	(void)uv_timer_init(&m->loop, &m->exit_timer);
	m->exit_timer.data = m;
	for (size_t i = 0; i < KS_COUNT(m->signals); i++) {
		(void)uv_signal_init(&m->loop, &m->signals[i]);
		m->signals[i].data = m;
		(void)uv_signal_start(&m->signals[i], on_signal, ending_signals[i]);
	}
	return 0;
}

static void close_all(struct main_loop *m)
{
	if (m->engine)
		ks_engine_stop(m->engine);
	uv_close((uv_handle_t *)&m->exit_timer, NULL);
	for (size_t i = 0; i < KS_COUNT(m->signals); i++)
		uv_close((uv_handle_t *)&m->signals[i], NULL);
	ks_mcp_free(m->mcp);
	ks_server_free(m->app.server);
	ks_core_free(m->app.core);
	for (int i = 0; i < 16 && uv_run(&m->loop, UV_RUN_NOWAIT); i++)
		;
	free(m->app.core);
	if (m->engine)
		ks_engine_free(m->engine);
	(void)uv_loop_close(&m->loop);
}

/* `mcp` NULL: --stdio. */
static int serve(char *arguments, size_t arguments_len, const struct ks_mcp_config *mcp)
{
	static struct main_loop m;
	struct ks_error err, engine_error = { 0 };
	struct ks_engine_config engine = { .arguments = arguments, .arguments_len = arguments_len };
	int fd_in, fd_out;

	move_protocol(&fd_in, &fd_out);
#if KS_TEST_HOOKS
	engine.fail_step = getenv("KERN_TEST_FAIL_STEP");
#endif
	/* A host that cannot make boxes still gets its answers, and a doctor that says why. */
	if (ks_engine_start(&engine, &m.engine, &engine_error) < 0)
		ks_log(KS_LOG_ERROR, "no_boxes", "%s (%s)", engine_error.text, engine_error.hint);
	add_default_plugin_dir();
	if (uv_loop_init(&m.loop) < 0 || open_all(&m, fd_in, fd_out, &engine_error, mcp, &err) < 0) {
		ks_log(KS_LOG_ERROR, "start_failed", "%s", err.text);
		return 1;
	}
	(void)uv_run(&m.loop, UV_RUN_DEFAULT);
	close_all(&m);
	return m.status;
}

/* ---- the command line ---- */

static int usage_error(const char *what, const char *value)
{
	(void)fprintf(stderr, "kern-sidecar: %s%s; see kern-sidecar --help\n", what, value);
	return -1;
}

static int parse_level(const char *name)
{
	for (int level = KS_LOG_ERROR; level <= KS_LOG_DEBUG; level++)
		if (strcmp(ks_log_level_name((enum ks_log_level)level), name) == 0) {
			options.log_level = (enum ks_log_level)level;
			return 0;
		}
	return usage_error("--log-level takes error, warn, info or debug, not ", name);
}

static int add_plugin_dir(const char *path)
{
	char *real = realpath(path, NULL); /* lives as long as the program */

	if (!real || options.plugin_count == PLUGIN_DIRS)
		return usage_error("--plugin-dir: no such directory, or too many: ", path);
	options.plugin_dirs[options.plugin_count++] = real;
	return 0;
}

static int parse(int argc, char **argv)
{
	enum { STDIO = 256, MCP, SCHEMA, VERSION, JSON, HELP, LOG_FILE, LOG_LEVEL, PLUGIN_DIR };
	static const struct option known[] = {
		{ "mcp", 0, NULL, MCP },
		{ "stdio", 0, NULL, STDIO },	   { "print-schema", 0, NULL, SCHEMA }, { "version", 0, NULL, VERSION },
		{ "json", 0, NULL, JSON },	   { "help", 0, NULL, HELP },		{ "log-file", 1, NULL, LOG_FILE },
		{ "log-level", 1, NULL, LOG_LEVEL }, { "plugin-dir", 1, NULL, PLUGIN_DIR }, { NULL, 0, NULL, 0 },
	};
	int rc = 0;

	for (int c; rc == 0 && (c = getopt_long(argc, argv, "+", known, NULL)) != -1;) {
		options.stdio |= c == STDIO;
		options.mcp |= c == MCP;
		options.schema |= c == SCHEMA;
		options.version |= c == VERSION;
		options.json |= c == JSON;
		options.help |= c == HELP;
		if (c == LOG_FILE)
			options.log_file = optarg;
		else if (c == LOG_LEVEL)
			rc = parse_level(optarg);
		else if (c == PLUGIN_DIR)
			rc = add_plugin_dir(optarg);
		else if (c == '?')
			rc = -1;
	}
	if (rc == 0 && optind < argc)
		rc = usage_error("not a command of this build: ", argv[optind]);
	return rc;
}

static int open_log(void)
{
	ks_log_set_level(options.log_level);
	if (!options.log_file)
		return 0;
	int fd = open(options.log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
	if (fd < 0) {
		(void)fprintf(stderr, "kern-sidecar: cannot open %s: %s\n", options.log_file, strerror(errno));
		return -1;
	}
	ks_log_set_fd(fd);
	return 0;
}

static int read_mcp_config(struct ks_mcp_config *config)
{
	struct ks_error err;

	if (ks_mcp_config_read(config, &err) == 0)
		return 0;
	(void)fprintf(stderr, "kern-sidecar: %s%s%s\n", err.pointer, err.pointer[0] ? ": " : "", err.text);
	return -1;
}

static int print_schema(void)
{
	KS_AUTOBUF struct ks_buf text = { 0 };

	KS_AUTOBUF struct ks_buf compact = { 0 };

	ks_schema_print(&compact);
	ks_json_indent(&text, compact.data, compact.len);
	ks_buf_char(&text, '\n');
	return text.failed || fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0;
}

int main(int argc, char **argv)
{
	/* argv and the environment lie behind each other; the launcher wipes its copy of both */
	char *end = argv[argc - 1] + strlen(argv[argc - 1]);
	struct ks_mcp_config mcp;

	for (char **e = environ; *e; e++)
		if (*e == end + 1)
			end = *e + strlen(*e);
	reset_signals();
	raise_descriptor_limit();
	if (argc > 1 && strcmp(argv[1], "completion") == 0)
		return ks_cli_completion(argc - 1, argv + 1);
	if (argc > 1 && (strcmp(argv[1], "run") == 0 || strcmp(argv[1], "exec") == 0)) {
		ks_program_seal(argv);
		add_default_plugin_dir();
		return ks_cli_call(argc - 1, argv + 1, argv[0], (size_t)(end - argv[0]), options.plugin_dirs, worker_program());
	}
	if (argc > 1 && strcmp(argv[1], "doctor") == 0) {
		ks_program_seal(argv);
		add_default_plugin_dir();
		return ks_cli_doctor(argc - 1, argv + 1, argv[0], (size_t)(end - argv[0]), options.plugin_dirs);
	}
	if (argc > 1 && strcmp(argv[1], "shell") == 0) {
		ks_program_seal(argv);
		add_default_plugin_dir();
		return ks_cli_shell(argc - 1, argv + 1, argv[0], (size_t)(end - argv[0]), options.plugin_dirs, worker_program());
	}
	if (argc > 1 && (strcmp(argv[1], "snapshot") == 0 || strcmp(argv[1], "restore") == 0)) {
		ks_program_seal(argv);
		return ks_cli_archive(argc - 1, argv + 1, argv[0], (size_t)(end - argv[0]), worker_program());
	}
	if (parse(argc, argv) < 0)
		return 2;
	if (options.version)
		return options.json ? printf("{\"name\":\"kern-sidecar\",\"version\":\"" KS_VERSION "\",\"protocolVersion\":1}\n") < 0 :
				      printf("kern-sidecar " KS_VERSION "\n") < 0;
	if (options.schema)
		return print_schema();
	if (options.stdio == options.mcp || options.help) {
		(void)fputs(usage, options.help ? stdout : stderr);
		return options.help ? 0 : 2;
	}
	ks_program_seal(argv);
	if (open_log() < 0)
		return 2;
	if (options.mcp && read_mcp_config(&mcp) < 0)
		return 2;
	return serve(argv[0], (size_t)(end - argv[0]), options.mcp ? &mcp : NULL);
}
