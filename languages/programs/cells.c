/* cells.c: kern-cells RESULT_FD PROGRAM ARGS...: the main process of a kernel whose interpreter cannot receive descriptors.
 * It starts the interpreter and stands between it and the host:
 *
 *   host  --- cells, with their descriptors; answers ------>  kern-cells  --- words, on 251; answers, on 250 --->  PROGRAM
 *         <-- frames, numbered anew; states --------------               <-- words, on 251; frames, on 250 ------
 *
 * The interpreter is told paths, /proc/PID/fd/N, that it can open. Words are lines: "cell NUMBER STDOUT STDERR CODE NAME" to
 * it; "ready", "begin", "pause" and "done STATUS [EXIT]" from it. Between "begin" and "pause" an interrupt reaches its process
 * group, one; at other times it waits for the next "begin" of the cell. "pause" is answered on 250, by an ack of frame 0 whose
 * offset counts the interrupts since "begin": so it can wait for one that is still on its way, and none hits it when it is not
 * prepared, nor a later cell. It ends as the interpreter has ended. */
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

#include "frame.h"

#define CHILD_RESULTS 250
#define CHILD_WORDS 251
#define LINE_MAX_BYTES 256
#define NAME_BYTES 1024

static struct {
	int host, results, words, signals;
	pid_t child;
	int cell_fds[3];
	uint32_t cell;
	enum { NO_CELL, SENT, BEGUN, HIT, PAUSED } state;
	bool interrupted; /* at another time */
	uint32_t id, child_id; /* of the newest frame: as the host, and as the interpreter counts */
	char line[LINE_MAX_BYTES];
	size_t line_len;
} cells = { .cell_fds = { -1, -1, -1 } };

static uint8_t datagram[FRAME_HEADER + FRAME_PIECE + 1];

__attribute__((noreturn)) static void die(const char *what)
{
	(void)fprintf(stderr, "kern-cells: %s: %s\n", what, strerror(errno));
	_exit(127);
}

static void close_cell(void)
{
	for (int i = 0; i < 3; i++) {
		if (cells.cell_fds[i] >= 0)
			(void)close(cells.cell_fds[i]);
		cells.cell_fds[i] = -1;
	}
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

static void tell(const char *state, const char *status, const char *asked)
{
	uint8_t frame[FRAME_HEADER + 3 * (FRAME_KEY + 7) + LINE_MAX_BYTES];
	const char *const parts[][2] = { { state, "" }, { "status", status }, { "exit", asked } };
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

/* A frame of the interpreter, or of what runs in it. A state is for us alone to tell. False: there is none now. */
static bool pass_frame(void)
{
	ssize_t n = recv(cells.results, datagram, sizeof(datagram), MSG_DONTWAIT);

	if (n < 0 && errno == EINTR)
		return true;
	if (n <= 0)
		return false;
	if (n >= FRAME_HEADER) {
		if (datagram[5] == FRAME_STATE)
			return true;
		if (get32(datagram + 20) == 0)
			cells.id++;
		cells.child_id = get32(datagram + 12);
		put32(datagram + 12, cells.id);
	}
	to_host(datagram, (size_t)n);
	return true;
}

/* ---- to the interpreter ---- */

static void interrupt(void)
{
	cells.interrupted = false;
	cells.state = HIT;
	(void)kill(-cells.child, SIGINT);
}

static void send_word(const char *line, size_t len)
{
	while (len > 0) {
		ssize_t n = send(cells.words, line, len, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return; /* it is dying: its end follows */
		line += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static void start_cell(const uint8_t *frame, size_t len, const int fds[3])
{
	char line[NAME_BYTES + LINE_MAX_BYTES], name[NAME_BYTES + 1] = "";
	const int me = getpid();

	for (size_t at = FRAME_HEADER; at + 6 <= len;) {
		size_t key_len = frame[at], data_len = get32(frame + at + 2);
		const char *key = (const char *)frame + at + 6;
		if (key_len == 0 || key_len > len - at - 6 || data_len > len - at - 6 - key_len)
			break;
		if (key[key_len - 1] == '\0' && strcmp(key, "name") == 0 && data_len <= NAME_BYTES) {
			memcpy(name, key + key_len, data_len);
			name[data_len] = '\0';
		}
		at += 6 + key_len + data_len;
	}
	memcpy(cells.cell_fds, fds, sizeof(cells.cell_fds));
	cells.cell = get32(frame + 8);
	cells.state = SENT;
	cells.interrupted = false;
	int n = snprintf(line, sizeof(line), "cell %u /proc/%d/fd/%d /proc/%d/fd/%d /proc/%d/fd/%d %s\n", cells.cell, me, fds[0], me, fds[1],
			 me, fds[2], name);
	send_word(line, (size_t)n);
}

static void from_host(void)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(3 * sizeof(int))];
	} control;
	struct iovec iov = { datagram, sizeof(datagram) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(cells.host, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		_exit(0);
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	if (n >= FRAME_HEADER && datagram[5] == FRAME_CELL && head && head->cmsg_len == CMSG_LEN(3 * sizeof(int))) {
		int fds[3];
		memcpy(fds, CMSG_DATA(head), sizeof(fds));
		start_cell(datagram, (size_t)n, fds);
	} else if (n == FRAME_HEADER && datagram[5] == FRAME_ACK && get32(datagram + 12) == cells.id) {
		put32(datagram + 12, cells.child_id);
		(void)send(cells.results, datagram, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

static void take_word(char *line)
{
	char *word = strtok(line, " ");

	if (!word)
		return;
	if (strcmp(word, "ready") == 0) {
		tell("ready", NULL, NULL);
	} else if (strcmp(word, "begin") == 0 && cells.state != NO_CELL) {
		close_cell(); /* it has opened them */
		cells.state = BEGUN;
		if (cells.interrupted)
			interrupt();
	} else if (strcmp(word, "pause") == 0) {
		uint8_t answer[FRAME_HEADER];
		frame_header(answer, FRAME_ACK, cells.cell, 0, 0, cells.state == HIT);
		if (cells.state != NO_CELL)
			cells.state = PAUSED;
		(void)send(cells.results, answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
	} else if (strcmp(word, "done") == 0 && cells.state != NO_CELL && cells.state != BEGUN) {
		const char *status = strtok(NULL, " ");
		while (pass_frame())
			;
		close_cell();
		cells.state = NO_CELL;
		tell("done", status ? status : "error", strtok(NULL, " "));
	}
}

/* False: it has closed its end. */
static bool from_words(void)
{
	char buffer[LINE_MAX_BYTES];
	ssize_t n = recv(cells.words, buffer, sizeof(buffer), MSG_DONTWAIT);

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
	if (WIFSIGNALED(status)) {
		sigset_t all;
		(void)sigemptyset(&all);
		(void)signal(WTERMSIG(status), SIG_DFL);
		(void)sigprocmask(SIG_SETMASK, &all, NULL);
		(void)kill(getpid(), WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void from_signals(void)
{
	struct signalfd_siginfo info;
	int status;

	if (read(cells.signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGINT && cells.state == BEGUN)
		interrupt();
	else if (info.ssi_signo == SIGINT)
		cells.interrupted = cells.state == SENT || cells.state == PAUSED;
	else if (waitpid(cells.child, &status, WNOHANG) == cells.child)
		end_as(status);
}

static void start(char **argv)
{
	int results[2], words[2];
	sigset_t set, old;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, &old) < 0 || (cells.signals = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
		die("signalfd");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, results) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, words) < 0)
		die("socketpair");
	cells.child = fork();
	if (cells.child < 0)
		die("fork");
	if (cells.child == 0) {
		(void)setpgid(0, 0);
		(void)sigprocmask(SIG_SETMASK, &old, NULL);
		if (dup2(results[1], CHILD_RESULTS) < 0 || dup2(words[1], CHILD_WORDS) < 0)
			die("dup2");
		(void)execvp(argv[0], argv);
		die(argv[0]);
	}
	(void)close(results[1]);
	(void)close(words[1]);
	cells.results = results[0];
	cells.words = words[0];
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		(void)fputs("usage: kern-cells RESULT_FD PROGRAM ARGS...\n", stderr);
		return 2;
	}
	cells.host = atoi(argv[1]);
	if (fcntl(cells.host, F_SETFD, FD_CLOEXEC) < 0)
		die("the result channel");
	start(argv + 2);
	struct pollfd polls[] = { { cells.results, POLLIN, 0 }, { cells.words, POLLIN, 0 }, { cells.signals, POLLIN, 0 }, { cells.host, POLLIN, 0 } };
	for (;;) {
		if (poll(polls, 4, -1) < 0 && errno != EINTR)
			die("poll");
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
