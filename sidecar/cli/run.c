#include "run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/completion.h"
#include "cli/flags.h"
#include "cli/local.h"
#include "cli/plan.h"
#include "cli/report.h"
#include "cli/run_words.h"
#include "cli/terminal.h"
#include "rpc/channel.h"
#include "session/outcome_json.h"

#define NOT_RUN 125
#define READ_BYTES ((size_t)64 << 10)
#define TICK_MS 100
#define QUIET_US 2000000 /* of silence, then a terminal is told that it still runs */

struct visit {
	struct ks_local local;
	struct ks_run_words words;
	struct ks_call *call;
	struct ks_channel input;
	uv_poll_t input_poll;
	uv_timer_t tick;
	uv_signal_t signals[3];
	int handles;
	struct ks_terminal terminals[2];
	bool out_is_terminal[2], colour, done, watching_input, status_shown, interrupted;
	bool input_over;
	bool line_open; /* the last line on a terminal has no LF */
	int ended_by;	/* a signal that we got, or SIGPIPE when nobody reads */
	int64_t began_us, last_us, told_us;
	struct ks_error error; /* reason set: nothing has run */
	int status;
};

/* ---- output ---- */

static void hide_status(struct visit *visit)
{
	if (visit->status_shown)
		(void)!write(STDERR_FILENO, "\r\x1b[K", 4);
	visit->status_shown = false;
}

static void write_all(struct visit *visit, int fd, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) { /* somebody made it so; the box waits with us */
			(void)poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
			continue;
		}
		if (n < 0 && !visit->ended_by && visit->call && !visit->done) { /* nobody reads: as if the code itself had tried */
			visit->ended_by = SIGPIPE;
			ks_call_cancel(visit->call);
		}
		if (n < 0)
			return;
		data += n;
		len -= (size_t)n;
	}
}

static void on_output(void *arg, enum ks_output which, const void *data, size_t len)
{
	struct visit *visit = arg;
	KS_AUTOBUF struct ks_buf shown = { 0 };

	if (visit->words.json || len == 0)
		return;
	hide_status(visit);
	visit->last_us = ks_now_us();
	if (!visit->out_is_terminal[which]) {
		write_all(visit, which == KS_STDOUT ? STDOUT_FILENO : STDERR_FILENO, data, len);
		return;
	}
	ks_terminal_feed(&visit->terminals[which], data, len, &shown);
	if (shown.len > 0)
		visit->line_open = shown.data[shown.len - 1] != '\n';
	write_all(visit, which == KS_STDOUT ? STDOUT_FILENO : STDERR_FILENO, shown.data, shown.len);
}

static void on_event(void *arg, enum ks_result_op op, const struct ks_result *result, bool wait, uint64_t seq)
{
	struct visit *visit = arg;
	KS_AUTOBUF struct ks_buf text = { 0 };

	(void)wait;
	(void)seq;
	if (visit->words.json || op == KS_RESULT_CLEAR || op == KS_RESULT_UPDATE)
		return;
	ks_report_result(result, &text);
	hide_status(visit);
	visit->last_us = ks_now_us();
	write_all(visit, STDOUT_FILENO, text.len ? text.data : "", text.len);
}

static size_t on_room(void *arg)
{
	(void)arg;
	return SIZE_MAX;
}

/* ---- the end ---- */

static void print_json(struct visit *visit)
{
	KS_AUTOBUF struct ks_buf json = { 0 };
	struct ks_error err;

	if (ks_outcome_write(visit->call, (size_t)1 << 31, &json, &err) < 0) {
		(void)fprintf(stderr, "kern-sidecar: %s\n", err.text);
		return;
	}
	ks_buf_char(&json, '\n');
	write_all(visit, STDOUT_FILENO, json.data, json.len);
}

static void on_done(void *arg)
{
	struct visit *visit = arg;
	struct ks_call *call = visit->call;

	visit->done = true;
	hide_status(visit);
	if (visit->line_open && call->outcome.fault != KS_FAULT_NONE)
		(void)fputc('\n', stderr);
	if (visit->words.json)
		print_json(visit);
	else
		ks_report_figures(call, visit->colour);
	if (!visit->words.json && visit->ended_by != SIGPIPE)
		ks_report_end(call, !visit->words.session.workspace, visit->colour);
	visit->status = visit->ended_by ? 128 + visit->ended_by : ks_report_status(&call->outcome);
	ks_call_finish(call);
	ks_local_stop(&visit->local);
}

static void on_failed(void *arg, const struct ks_error *err)
{
	struct visit *visit = arg;

	hide_status(visit);
	visit->done = true;
	visit->error = *err;
	ks_local_stop(&visit->local);
}

/* ---- stdin ---- */

static void stop_input(struct visit *visit)
{
	if (visit->watching_input)
		(void)uv_poll_stop(&visit->input_poll);
	visit->watching_input = false;
}

static void end_input(struct visit *visit)
{
	struct ks_error ignored;

	stop_input(visit);
	visit->input_over = true;
	(void)ks_call_stdin(visit->call, "", 0, true, &ignored);
}

static void on_readable(uv_poll_t *poll, int status, int events);

/* As much as the box takes; the tick looks again when it was full. */
static void read_input(struct visit *visit)
{
	char data[READ_BYTES];
	struct ks_error err;

	while (visit->call->state == KS_CALL_RUNNING && !visit->input_over) {
		if (visit->call->in_queue.len - visit->call->in_done + sizeof(data) > KS_STDIN_QUEUE) {
			stop_input(visit);
			return;
		}
		ssize_t n = ks_channel_read(&visit->input, data, sizeof(data));
		if (n == -EAGAIN) {
			if (!visit->watching_input && visit->input.ready_fd >= 0 &&
			    uv_poll_start(&visit->input_poll, UV_READABLE, on_readable) == 0)
				visit->watching_input = true;
			return;
		}
		if (n <= 0 || ks_call_stdin(visit->call, data, (size_t)n, false, &err) < 0) {
			end_input(visit);
			return;
		}
	}
	stop_input(visit);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	read_input(poll->data);
}

static void on_tick(uv_timer_t *timer);

static void on_started(void *arg)
{
	struct visit *visit = arg;

	visit->last_us = visit->began_us = ks_now_us();
	(void)uv_timer_start(&visit->tick, on_tick, 0, TICK_MS); /* stdin, at once */
}

static const struct ks_call_ops ops = { .started = on_started, .output = on_output, .room = on_room, .done = on_done, .failed = on_failed };

/* ---- time and signals ---- */

static void on_tick(uv_timer_t *timer)
{
	struct visit *visit = timer->data;
	const int64_t now = ks_now_us();

	if (visit->done || !visit->call || visit->call->state != KS_CALL_RUNNING)
		return;
	if (!visit->watching_input)
		read_input(visit);
	if (!visit->out_is_terminal[1] || visit->line_open || now - visit->last_us < QUIET_US || now - visit->told_us < 1000000)
		return;
	visit->told_us = now;
	(void)fprintf(stderr, "\r%srunning, %lld s (Ctrl-C interrupts)%s\x1b[K", ks_dim(visit->colour),
		      (long long)(now - visit->began_us) / 1000000, ks_plain(visit->colour));
	visit->status_shown = true;
}

/* The first Ctrl-C is the code's; what comes next ends the box. */
static void on_signal(uv_signal_t *handle, int number)
{
	struct visit *visit = handle->data;
	struct ks_error err;

	if (visit->done || !visit->call)
		return;
	if (number == SIGINT && !visit->interrupted && ks_call_signal(visit->call, SIGINT, &err) == 0) {
		visit->interrupted = true;
		return;
	}
	visit->ended_by = number;
	ks_call_cancel(visit->call);
}

static const int ending_signals[] = { SIGINT, SIGTERM, SIGHUP };

/* ---- all together ---- */

static void init_handles(struct visit *visit)
{
	struct ks_error ignored;

	(void)uv_timer_init(&visit->local.loop, &visit->tick);
	visit->tick.data = visit;
	(void)uv_timer_start(&visit->tick, on_tick, 0, TICK_MS);
	for (size_t i = 0; i < KS_COUNT(visit->signals); i++) {
		(void)uv_signal_init(&visit->local.loop, &visit->signals[i]);
		visit->signals[i].data = visit;
		(void)uv_signal_start(&visit->signals[i], on_signal, ending_signals[i]);
	}
	if (ks_channel_open(&visit->input, dup(STDIN_FILENO), false, &ignored) < 0 || visit->input.ready_fd < 0)
		return;
	if (uv_poll_init(&visit->local.loop, &visit->input_poll, visit->input.ready_fd) == 0)
		visit->input_poll.data = visit;
}

static void close_handles(struct visit *visit)
{
	uv_close((uv_handle_t *)&visit->tick, NULL);
	for (size_t i = 0; i < KS_COUNT(visit->signals); i++)
		uv_close((uv_handle_t *)&visit->signals[i], NULL);
	if (visit->input_poll.data)
		uv_close((uv_handle_t *)&visit->input_poll, NULL);
	ks_channel_close(&visit->input);
}

static int start(struct visit *visit, bool is_argv, struct ks_error *err)
{
	struct ks_run_words *words = &visit->words;

	if (ks_call_new(visit->local.core, NULL, &words->params, is_argv, words->code ? words->code : "", words->code_len, "", 0, &ops,
			visit, &visit->call, err) < 0)
		return -1;
	visit->call->results.event = on_event;
	visit->call->results.event_arg = visit;
	ks_calls_start_queued(visit->local.core);
	return 0;
}

static int complain(const struct ks_error *err)
{
	ks_cli_complain(err);
	return NOT_RUN;
}

int ks_cli_call(int argc, char **argv, char *arguments, size_t arguments_len, const char *const *plugin_dirs, const char *worker_program)
{
	static struct visit visit = { .input = { .fd = -1, .ready_fd = -1, .flags = -1 } };
	struct ks_error err;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		(void)printf("%s\n\nflags:\n", strcmp(argv[0], "exec") == 0 ? "kern-sidecar exec [FLAGS] -- PROGRAM [ARGUMENTS]"
									    : "kern-sidecar run [FLAGS] FILE | - | -c CODE [-- ARGUMENTS]");
		ks_cli_print_flags();
		return fflush(stdout) != 0;
	}
	if (ks_run_words_parse(argc, argv, &visit.words, &err) < 0)
		return argc > 1 && strcmp(argv[1], "--plan") == 0 ? (complain(&err), 2) : complain(&err);
	if (visit.words.plan)
		return ks_cli_plan(&visit.words.session);
	visit.input_over = !visit.words.params.interactive;
	visit.out_is_terminal[0] = isatty(STDOUT_FILENO);
	visit.out_is_terminal[1] = isatty(STDERR_FILENO);
	visit.colour = ks_terminal_colour(STDERR_FILENO);
	if (ks_local_open(&visit.local, arguments, arguments_len, plugin_dirs, worker_program, &err) < 0)
		return complain(&err);
	init_handles(&visit);
	if (start(&visit, strcmp(argv[0], "exec") == 0, &err) < 0)
		on_failed(&visit, &err);
	if (!visit.done)
		ks_local_run(&visit.local);
	if (!visit.done) {
		(void)ks_fail(&err, KS_E_INTERNAL, "the launcher died");
		on_failed(&visit, &err);
	}
	close_handles(&visit);
	ks_local_close(&visit.local);
	ks_run_words_free(&visit.words);
	return visit.error.reason ? complain(&visit.error) : visit.status;
}
