/* pty.c: kern-pty RESULT_FD ROWS COLS PROGRAM ARGS...: the main process of a shell with a terminal. It takes a pseudo terminal of the
 * box's own devpts, starts PROGRAM as the leader of a session on it, and copies: stdin to the terminal, the terminal to stdout. The host
 * tells it by frames (plugins/README.md) of a new size and of signals for the job in front. It ends as PROGRAM has ended, with all that the
 * terminal holds then. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "end.h"
#include "frame.h"

struct pump {
	int from, to;
	size_t at, len;
	char data[65536];
};

static struct {
	int host, terminal, signals;
	pid_t child;
	struct pump in, out;
} pty;

__attribute__((noreturn)) static void die(const char *what)
{
	(void)fprintf(stderr, "kern-pty: %s: %s\n", what, strerror(errno));
	_exit(127);
}

static void resize(const char *size)
{
	struct winsize window = { 0 };

	if (sscanf(size, "%hu %hu", &window.ws_row, &window.ws_col) == 2)
		(void)ioctl(pty.terminal, TIOCSWINSZ, &window);
}

static void from_host(void)
{
	uint8_t frame[FRAME_HEADER + 256];
	char text[32];
	ssize_t n = recv(pty.host, frame, sizeof(frame), MSG_DONTWAIT);

	if (n == 0)
		_exit(0); /* nobody is there any more */
	if (n < FRAME_HEADER || frame[5] != FRAME_CELL)
		return;
	frame_text(frame, (size_t)n, "size", text, sizeof(text));
	resize(text);
	frame_text(frame, (size_t)n, "signal", text, sizeof(text));
	const pid_t front = tcgetpgrp(pty.terminal);
	if (atoi(text) > 0 && front > 0)
		(void)kill(-front, atoi(text));
}

static void say_ready(void)
{
	uint8_t frame[FRAME_HEADER + FRAME_KEY + 7];
	size_t n = frame_part(frame + FRAME_HEADER, "ready", 0);

	frame_header(frame, FRAME_STATE, 0, 1, (uint32_t)n, 0);
	(void)send(pty.host, frame, FRAME_HEADER + n, MSG_NOSIGNAL);
}

/* ---- the bytes ---- */

/* False: the source is at its end. */
static bool fill(struct pump *pump)
{
	ssize_t n = read(pump->from, pump->data, sizeof(pump->data));

	pump->at = 0;
	pump->len = n > 0 ? (size_t)n : 0;
	return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

static void empty(struct pump *pump)
{
	ssize_t n = write(pump->to, pump->data + pump->at, pump->len - pump->at);

	if (n > 0)
		pump->at += (size_t)n;
	else if (errno != EAGAIN && errno != EINTR)
		pump->at = pump->len; /* nobody takes it */
	if (pump->at == pump->len)
		pump->at = pump->len = 0;
}

/* ---- its life ---- */

static void end_as(int status)
{
	struct pollfd out = { .fd = pty.out.to, .events = POLLOUT };

	do {
		while (pty.out.len > 0) {
			(void)poll(&out, 1, -1);
			empty(&pty.out);
		}
	} while (fill(&pty.out) && pty.out.len > 0);
	end_with(status);
}

static void from_signals(void)
{
	struct signalfd_siginfo info;
	int status;

	if (read(pty.signals, &info, sizeof(info)) == sizeof(info) && waitpid(pty.child, &status, WNOHANG) == pty.child)
		end_as(status);
}

/* In the child; what fails is written to `report`, which closes when it does not. */
__attribute__((noreturn)) static void become(char **argv, const sigset_t *mask, int report)
{
	int slave = -1;

	if (setsid() >= 0)
		slave = ioctl(pty.terminal, TIOCGPTPEER, O_RDWR); /* by the master: whatever lies at /dev/pts */
	if (slave >= 0 && ioctl(slave, TIOCSCTTY, 0) == 0 && dup2(slave, 0) == 0 && dup2(slave, 1) == 1 && dup2(slave, 2) == 2) {
		if (slave > 2)
			(void)close(slave);
		(void)sigprocmask(SIG_SETMASK, mask, NULL);
		(void)execvp(argv[0], argv);
	}
	(void)!write(report, &errno, sizeof(errno));
	_exit(127);
}

static void start(char **argv, const char *size)
{
	int report[2], failed = 0, unlocked = 0;
	sigset_t set, old;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, &old) < 0 || (pty.signals = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
		die("signalfd");
	pty.terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (pty.terminal < 0 || ioctl(pty.terminal, TIOCSPTLCK, &unlocked) < 0)
		die("/dev/ptmx");
	resize(size);
	if (pipe2(report, O_CLOEXEC) < 0 || (pty.child = fork()) < 0)
		die("fork");
	if (pty.child == 0)
		become(argv, &old, report[1]);
	(void)close(report[1]);
	if (read(report[0], &failed, sizeof(failed)) == sizeof(failed)) {
		errno = failed;
		die(argv[0]);
	}
	(void)close(report[0]);
}

int main(int argc, char **argv)
{
	char size[32];

	if (argc < 5) {
		(void)fputs("usage: kern-pty RESULT_FD ROWS COLS PROGRAM ARGS...\n", stderr);
		return 2;
	}
	pty.host = atoi(argv[1]);
	if (fcntl(pty.host, F_SETFD, FD_CLOEXEC) < 0)
		die("the channel");
	(void)snprintf(size, sizeof(size), "%.8s %.8s", argv[2], argv[3]);
	start(argv + 4, size);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK);
	pty.in = (struct pump){ .from = STDIN_FILENO, .to = pty.terminal };
	pty.out = (struct pump){ .from = pty.terminal, .to = STDOUT_FILENO };
	say_ready();
	for (;;) {
		struct pollfd polls[] = {
			{ pty.signals, POLLIN, 0 },
			{ pty.host, POLLIN, 0 },
			{ pty.in.len ? pty.terminal : pty.in.from, pty.in.len ? POLLOUT : POLLIN, 0 },
			{ pty.out.len ? pty.out.to : pty.terminal, pty.out.len ? POLLOUT : POLLIN, 0 },
		};
		if (poll(polls, 4, -1) < 0 && errno != EINTR)
			die("poll");
		if (polls[3].revents && pty.out.len)
			empty(&pty.out);
		else if (polls[3].revents & (POLLIN | POLLHUP))
			(void)fill(&pty.out);
		if (polls[2].revents && pty.in.len)
			empty(&pty.in);
		else if (polls[2].revents && !fill(&pty.in))
			pty.in.from = -1; /* a poll of -1 never comes */
		if (polls[1].revents)
			from_host();
		if (polls[0].revents)
			from_signals();
	}
}
