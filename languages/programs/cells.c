/* cells.c: kern-cells [--shell DIR] RESULT_FD PROGRAM ARGS...: the main process of a kernel whose interpreter cannot receive descriptors.
 * It starts the interpreter and stands between it and the host:
 *
 *   host  --- cells, with their descriptors; answers ------>  kern-cells  --- words; answers, on 250 --->  PROGRAM
 *         <-- frames, numbered anew; states --------------               <-- words; frames, on 250 ------
 *
 * The interpreter is told paths, /proc/PID/fd/N, that it can open. Words are lines on 251: "cell NUMBER STDIN STDOUT STDERR CODE NAME" to
 * it, where a stdin of - is none; "ready", "begin NUMBER", "pause NUMBER" and "done NUMBER STATUS [EXIT]" from it, which are of no effect
 * when that cell is over: code can say such words, too, and end its own cell before it ends. Between "begin" and "pause" an interrupt
 * reaches its process group, one, but for a shell each; at other times it waits for the next "begin" of the cell. "pause" is answered on
 * 250, by an ack of frame 0 whose offset counts the interrupts since "begin": so it can wait for one that is still on its way, and none
 * hits it when it is not prepared, nor a later cell. Other signals are passed on to the interpreter and to what the cell has started in its
 * process group, not to what earlier ones have left there. It ends as the interpreter has ended.
 *
 * --shell: PROGRAM is a POSIX shell. Its words to us are the same; what it is told is its script, which it reads from a pipe as we write
 * it: first ARGS, a file to source, with $__kern; then three lines a cell. It needs no descriptor but 250, no loop that a `break`
 * could leave, and goes on where it can behind any error. The code is a link of the cell's name in DIR, for messages. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comsub.h"
#include "end.h"
#include "frame.h"
#include "job.h"

/* "$__kern"0 to "$__kern"5 in a shell's lines */
enum { CELL_STDIN = 240, CELL_STDOUT, CELL_STDERR, CELL_CODE, SHELL_SCRIPT, SHELL_WORDS, CHILD_RESULTS = 250, CHILD_WORDS };

#define LINE_MAX_BYTES 256
#define NAME_BYTES 1024
#define PROMPT_BYTES 4096
#define CELL_FDS 4 /* stdout, stderr, code, and perhaps stdin */

static struct {
	int host, results, to, from, signals; /* to, from: words */
	const char *dir, *program; /* of a shell, else NULL: where links to its cells lie; itself */
	bool is_bash;
	char setup_dir[NAME_BYTES]; /* where the file that it sources first lies */
	pid_t child;
	int cell_fds[CELL_FDS];
	char link[LINE_MAX_BYTES];
	uint32_t cell;
	unsigned long long begun_ticks;
	enum { NO_CELL, SENT, BEGUN, HIT, PAUSED } state;
	bool interrupted; /* at another time */
	unsigned long long hit_ticks;
	size_t again; /* how many times what was new then has had another */
	uint32_t id;		     /* of what was last said to the host */
	uint32_t frame_id, child_id; /* of the interpreter's newest frame: as the host, and as the interpreter counts */
	char line[LINE_MAX_BYTES];
	size_t line_len;
} cells = { .cell_fds = { -1, -1, -1, -1 } };

static uint8_t datagram[FRAME_HEADER + FRAME_PIECE + 1];

__attribute__((noreturn)) static void die(const char *what)
{
	(void)fprintf(stderr, "kern-cells: %s: %s\n", what, strerror(errno));
	_exit(127);
}

static void close_fds(int from, int to)
{
	for (int i = from; i < to; i++) {
		if (cells.cell_fds[i] >= 0)
			(void)close(cells.cell_fds[i]);
		cells.cell_fds[i] = -1;
	}
}

/* Its pipes may serve the next one, too. */
static void close_cell(void)
{
	close_fds(2, CELL_FDS);
	if (cells.link[0])
		(void)unlink(cells.link);
	cells.link[0] = '\0';
}

/* ---- to the host ---- */

static void to_host(const void *data, size_t len)
{
	while (send(cells.host, data, len, MSG_NOSIGNAL) < 0) {
		struct pollfd out = { .fd = cells.host, .events = POLLOUT };
		if (errno == EAGAIN || errno == ENOBUFS)
			(void)poll(&out, 1, -1);
		else if (errno != EINTR)
			_exit(0); /* nobody is there any more */
	}
}

static void tell(const char *state, const char *text, const char *status, const char *code)
{
	uint8_t frame[FRAME_HEADER + 3 * (FRAME_KEY + 7) + LINE_MAX_BYTES + PROMPT_BYTES];
	const char *const parts[][2] = { { state, text }, { "status", status }, { cells.dir ? "code" : "exit", code } };
	size_t at = FRAME_HEADER;

	for (int i = 0; i < 3; i++) {
		if (!parts[i][1])
			continue;
		size_t len = strlen(parts[i][1]);
		at += frame_part(frame + at, parts[i][0], len);
		memcpy(frame + at, parts[i][1], len);
		at += len;
	}
	frame_header(frame, FRAME_STATE, cells.cell, ++cells.id, (uint32_t)(at - FRAME_HEADER), 0);
	to_host(frame, at);
}

/* Of the states one is not for us alone to tell: that the cell at work waits for a line of its stdin. */
static void pass_state(size_t len)
{
	char prompt[PROMPT_BYTES + 1];
	const uint8_t *key = datagram + FRAME_HEADER + 6;

	if (cells.dir || cells.state == NO_CELL || cells.cell_fds[3] < 0 || get32(datagram + 8) != cells.cell)
		return;
	if (len < FRAME_HEADER + 6 + sizeof("input") || memcmp(key, "input", sizeof("input")) != 0)
		return;
	frame_text(datagram, len, "input", prompt, sizeof(prompt));
	tell("input", prompt, NULL, NULL);
}

/* A frame of the interpreter, or of what runs in it. False: there is none now. */
static bool pass_frame(void)
{
	ssize_t n = recv(cells.results, datagram, sizeof(datagram), MSG_DONTWAIT);

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	if (n >= FRAME_HEADER) {
		if (datagram[5] == FRAME_STATE) {
			pass_state((size_t)n);
			return true;
		}
		if (get32(datagram + 20) == 0)
			cells.frame_id = ++cells.id;
		cells.child_id = get32(datagram + 12);
		put32(datagram + 12, cells.frame_id);
	}
	to_host(datagram, (size_t)n);
	return true;
}

/* ---- to the interpreter ---- */

static void interrupt(void)
{
	cells.interrupted = false;
	cells.state = HIT;
	cells.hit_ticks = job_now();
	cells.again = 0;
	(void)kill(-cells.child, SIGINT);
}

/* What a shell has just forked still has its trap, and loses the signal when it executes its program; then the shell waits for that. So
 * what was hardly there gets others, soon and later. */
static const int again_ms[] = { 20, 100, 400 };

static int until_again(void)
{
	return cells.dir && cells.state == HIT && cells.again < sizeof(again_ms) / sizeof(again_ms[0]) ? again_ms[cells.again] : -1;
}

static void interrupt_again(void)
{
	const unsigned long long young = cells.hit_ticks - 5; /* 50 ms */

	cells.again++;
	job_signal(cells.child, young > cells.begun_ticks ? young : cells.begun_ticks, SIGINT);
}

/* A shell's cell may need another one, behind the function that the first has ended. */
static void take_interrupt(void)
{
	if (cells.state == BEGUN || (cells.dir && cells.state == HIT))
		interrupt();
	else
		cells.interrupted = cells.state == SENT || cells.state == PAUSED;
}

static void send_word(const char *line, size_t len)
{
	while (len > 0) {
		ssize_t n = cells.dir ? write(cells.to, line, len) : send(cells.to, line, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return; /* it is dying: its end follows */
		line += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

/* Where a shell's lines expect it. */
static void place(int *fd, int at)
{
	int from = *fd >= 0 ? *fd : open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (from < 0 || (from != at && dup3(from, at, O_CLOEXEC) < 0))
		die("a descriptor of the cell");
	if (from != at)
		(void)close(from);
	*fd = at;
}

/* Whether it is known to be right: a text that is long is not. */
static bool is_plain(void)
{
	static char text[65536]; /* its pages stay */
	const ssize_t n = pread(CELL_CODE, text, sizeof(text), 0);

	if (n < 0 || n == sizeof(text))
		return false;
	text[n] = '\0';
	return strlen(text) == (size_t)n && comsub_all_plain(text);
}

/* bash 5.2 ends, or damages its own memory, when what it sources is wrong within "$(" (parse.y): such a cell ends in a child of it, with
 * the same words. Only bash can tell, so one that is not plain is first read by another bash, which runs nothing. */
static bool must_be_apart(void)
{
	int status = 0;

	if (is_plain())
		return false;
	const pid_t pid = fork();
	if (pid == 0) {
		const int null = open("/dev/null", O_WRONLY);
		if (null < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 || dup2(CELL_CODE, 0) < 0)
			_exit(0);
		(void)execlp(cells.program, cells.program, "-n", "-O", "extglob", "/dev/fd/0", (char *)NULL);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && status != 0;
}

/* The lines of a cell: short, as a shell reads them byte by byte; quoted, so that aliases and IFS of the code do not matter. */
static size_t shell_lines(const char *name, char *line, size_t size)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789.-[] ";
	const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
	char code[64];

	if (!*base || *base == '.' || *base == '-' || strlen(base) > 64 || base[strspn(base, letters)])
		base = "cell";
	place(&cells.cell_fds[0], CELL_STDOUT);
	place(&cells.cell_fds[1], CELL_STDERR);
	place(&cells.cell_fds[2], CELL_CODE);
	place(&cells.cell_fds[3], CELL_STDIN);
	(void)snprintf(cells.link, sizeof(cells.link), "%s/%.64s", cells.dir, base);
	(void)snprintf(code, sizeof(code), "/proc/%d/fd/%d", getpid(), CELL_CODE);
	if (symlink(code, cells.link) < 0) /* the name is taken */
		cells.link[0] = '\0';
	if (!cells.is_bash)
		return (size_t)snprintf(line, size,
					"\\__kern_begin %u '%s'\n"
					"\\. '%s/cell.sh'\n"
					"\\__kern_end \"$__kern_status\" %u\n",
					cells.cell, cells.link[0] ? cells.link : code, cells.setup_dir, cells.cell);
	const bool apart = must_be_apart();
	return (size_t)snprintf(line, size,
				"\\__kern_begin %u\n"
				"%s\\builtin . '%s'%s <\"$__kern\"0 >\"$__kern\"1 2>\"$__kern\"2\n"
				"\\__kern_end \"$?\" %u\n",
				cells.cell, apart ? "(" : "", cells.link[0] ? cells.link : code, apart ? ")" : "",
				cells.cell);
}

/* stdout and stderr, unless they are those of the last cell; the code; perhaps stdin. */
static void take_fds(const uint8_t *frame, size_t len, const int *fds, size_t fd_count)
{
	size_t at = 0;

	if (!frame_find(frame, len, "same", &(size_t){ 0 }))
		close_fds(0, 2);
	for (int i = 0; i < CELL_FDS; i++)
		if (cells.cell_fds[i] < 0 && at < fd_count)
			cells.cell_fds[i] = fds[at++];
}

static void start_cell(const uint8_t *frame, size_t len, const int *fds, size_t fd_count)
{
	char line[NAME_BYTES + 2 * LINE_MAX_BYTES], name[NAME_BYTES + 1], in[32] = "-";
	const int me = getpid();
	size_t n;

	close_cell(); /* none, if the words of the last one made sense */
	frame_text(frame, len, "name", name, sizeof(name));
	take_fds(frame, len, fds, fd_count);
	cells.cell = get32(frame + 8);
	cells.state = SENT;
	cells.begun_ticks = job_now();
	cells.interrupted = false;
	if (!cells.dir && cells.cell_fds[3] >= 0)
		(void)snprintf(in, sizeof(in), "/proc/%d/fd/%d", me, cells.cell_fds[3]);
	if (cells.dir)
		n = shell_lines(name, line, sizeof(line));
	else
		n = (size_t)snprintf(line, sizeof(line), "cell %u %s /proc/%d/fd/%d /proc/%d/fd/%d /proc/%d/fd/%d %s\n", cells.cell, in, me,
				     cells.cell_fds[0], me, cells.cell_fds[1], me, cells.cell_fds[2], name);
	send_word(line, n);
}

static void from_host(void)
{
	char number[16];

	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(CELL_FDS * sizeof(int))];
	} control;
	struct iovec iov = { datagram, sizeof(datagram) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(cells.host, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		_exit(0);
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	if (n >= FRAME_HEADER && datagram[5] == FRAME_CELL) {
		int fds[CELL_FDS];
		const size_t fd_bytes = head ? head->cmsg_len - CMSG_LEN(0) : 0;
		if (fd_bytes > 0)
			memcpy(fds, CMSG_DATA(head), fd_bytes);
		frame_text(datagram, (size_t)n, "signal", number, sizeof(number));
		if (atoi(number) == 0)
			start_cell(datagram, (size_t)n, fds, fd_bytes / sizeof(int));
		else if (atoi(number) != SIGINT)
			job_signal(cells.child, cells.begun_ticks, atoi(number)); /* never to a shell itself */
		else
			take_interrupt();
	} else if (n == FRAME_HEADER && datagram[5] == FRAME_ACK && get32(datagram + 12) == cells.frame_id) {
		put32(datagram + 12, cells.child_id);
		(void)send(cells.results, datagram, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

static void take_word(char *line)
{
	const char *word = strtok(line, " "), *number = word ? strtok(NULL, " ") : NULL;
	const bool of_cell = cells.state != NO_CELL && number && strtoul(number, NULL, 10) == cells.cell;

	if (!word)
		return;
	if (strcmp(word, "ready") == 0) {
		tell("ready", "", NULL, NULL);
	} else if (strcmp(word, "begin") == 0 && of_cell) {
		cells.state = BEGUN;
		if (cells.interrupted)
			interrupt();
	} else if (strcmp(word, "pause") == 0) {
		uint8_t answer[FRAME_HEADER];
		frame_header(answer, FRAME_ACK, cells.cell, 0, 0, cells.state == HIT);
		if (of_cell)
			cells.state = PAUSED;
		(void)send(cells.results, answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (strcmp(word, "done") == 0 && of_cell) {
		const char *status = strtok(NULL, " ");
		while (pass_frame())
			;
		close_cell();
		cells.state = NO_CELL;
		tell("done", "", status ? status : "error", strtok(NULL, " "));
	}
}

/* False: it has closed its end. */
static bool from_words(void)
{
	char buffer[LINE_MAX_BYTES];
	ssize_t n = read(cells.from, buffer, sizeof(buffer));

	if (n <= 0)
		return n < 0 && (errno == EINTR || errno == EAGAIN);
	for (ssize_t i = 0; i < n; i++) {
		if (buffer[i] != '\n') {
			if (cells.line_len < sizeof(cells.line) - 1)
				cells.line[cells.line_len++] = buffer[i];
			continue;
		}
		cells.line[cells.line_len] = '\0';
		cells.line_len = 0;
		take_word(cells.line);
	}
	return true;
}

/* ---- its life ---- */

static void end_as(int status)
{
	while (pass_frame())
		;
	end_with(status);
}

static void from_signals(void)
{
	struct signalfd_siginfo info;
	int status;

	if (read(cells.signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGINT)
		take_interrupt();
	else if (info.ssi_signo == SIGCHLD && waitpid(cells.child, &status, WNOHANG) == cells.child)
		end_as(status);
	else if (info.ssi_signo != SIGCHLD && cells.state != NO_CELL) {
		job_signal(cells.child, cells.begun_ticks, (int)info.ssi_signo);
		(void)kill(cells.child, (int)info.ssi_signo);
	}
}

/* Those that somebody sends: faults are ours, and a stop is for all of us. */
static void catch_signals(sigset_t *ret_old)
{
	static const int others[] = { SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGPIPE, SIGSYS, SIGTSTP, SIGTTIN, SIGTTOU };
	sigset_t set;

	(void)sigfillset(&set);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		(void)sigdelset(&set, others[i]);
	if (sigprocmask(SIG_BLOCK, &set, ret_old) < 0 || (cells.signals = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
		die("signalfd");
}

/* In the child: the words of a socket on 251, or as the paths of pipes in the script itself. */
static void become(char **argv, int results, int words)
{
	char script[64];

	if (dup2(results, CHILD_RESULTS) < 0 || (!cells.dir && dup2(words, CHILD_WORDS) < 0))
		die("dup2");
	if (cells.dir) {
		(void)snprintf(script, sizeof(script), "/proc/%d/fd/%d", getppid(), SHELL_SCRIPT);
		argv[1] = script;
	}
	(void)execvp(argv[0], argv);
	die(argv[0]);
}

/* The pipes of a shell: it opens its ends by their paths, so we keep them open as well. */
static void make_pipes(void)
{
	int script[2], words[2];

	if (pipe2(script, O_CLOEXEC) < 0 || pipe2(words, O_CLOEXEC) < 0)
		die("pipe2");
	place(&script[0], SHELL_SCRIPT);
	place(&words[1], SHELL_WORDS);
	cells.to = script[1];
	cells.from = words[0];
}

static void start(char **argv)
{
	int results[2], words[2] = { -1, -1 };
	const char *const setup = argv[1], *suffix = strrchr(setup, '.');
	char line[LINE_MAX_BYTES];
	sigset_t old;

	catch_signals(&old);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, results) < 0)
		die("socketpair");
	cells.is_bash = suffix && strcmp(suffix, ".bash") == 0;
	const char *slash = cells.dir ? strrchr(setup, '/') : NULL;
	if (slash)
		(void)snprintf(cells.setup_dir, sizeof(cells.setup_dir), "%.*s", (int)(slash - setup), setup);
	if (cells.dir)
		make_pipes();
	else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, words) < 0)
		die("socketpair");
	cells.program = argv[0];
	cells.child = fork();
	if (cells.child < 0)
		die("fork");
	if (cells.child == 0) {
		(void)setpgid(0, 0);
		(void)sigprocmask(SIG_SETMASK, &old, NULL);
		become(argv, results[1], words[1]);
	}
	(void)close(results[1]);
	cells.results = results[0];
	if (cells.dir) {
		send_word(line, (size_t)snprintf(line, sizeof(line), "__kern=/proc/%d/fd/24\n. '%s'\n", getpid(), setup));
		return;
	}
	(void)close(words[1]);
	cells.to = cells.from = words[0];
}

/* For a shell whose own printf cannot be had. */
static int say(const char *word, const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 || dprintf(fd, "%s\n", word) < 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--say") == 0)
		return say(argv[2], argv[3]);
	if (argc > 2 && strcmp(argv[1], "--shell") == 0) {
		cells.dir = argv[2];
		argv += 2;
		argc -= 2;
	}
	if (argc < (cells.dir ? 4 : 3)) {
		(void)fputs("usage: kern-cells [--shell DIR] RESULT_FD PROGRAM ARGS...\n", stderr);
		return 2;
	}
	cells.host = atoi(argv[1]);
	if (fcntl(cells.host, F_SETFD, FD_CLOEXEC) < 0)
		die("the result channel");
	start(argv + 2);
	struct pollfd polls[] = {
		{ cells.results, POLLIN, 0 }, { cells.from, POLLIN, 0 }, { cells.signals, POLLIN, 0 }, { cells.host, POLLIN, 0 }
	};
	for (;;) {
		const int count = poll(polls, 4, until_again());
		if (count < 0 && errno != EINTR)
			die("poll");
		if (count == 0)
			interrupt_again();
		/* In this order: what it shows before it is done, and its end before an interrupt that came too late. */
		if (polls[0].revents && !pass_frame() && (polls[0].revents & POLLHUP))
			polls[0].fd = -1;
		if (polls[1].revents && !from_words())
			polls[1].fd = -1;
		if (polls[2].revents)
			from_signals();
		if (polls[3].revents)
			from_host();
	}
}
