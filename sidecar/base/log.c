#include "log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static enum ks_log_level max_level = KS_LOG_WARN;
static int log_fd = STDERR_FILENO;
static unsigned long dropped;
static void (*log_sink)(void *arg, enum ks_log_level level, const char *code, const char *text);
static void *log_sink_arg;

const char *ks_log_level_name(enum ks_log_level level)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };

	return (unsigned)level < KS_COUNT(names) ? names[level] : "error";
}

bool ks_log_wants(enum ks_log_level level)
{
	return level <= max_level;
}

void ks_log_set_level(enum ks_log_level level)
{
	max_level = level;
}

void ks_log_set_fd(int fd)
{
	log_fd = fd;
}

void ks_log_set_sink(void (*sink)(void *, enum ks_log_level, const char *, const char *), void *arg)
{
	log_sink = sink;
	log_sink_arg = arg;
}

unsigned long ks_log_dropped(void)
{
	return dropped;
}

/* Text from a box or a host may be in a message: no control byte, and no C1 in its UTF-8 form, reaches a terminal. */
static void neutralise(char *text)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++)
		if (*c < 0x20 || *c == 0x7f || (c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0))
			*c = '?';
}

/* At most PIPE_BUF bytes and only when there is room: poll(2) says writable when a write of that size
 * will not block, whatever O_NONBLOCK says about a descriptor that we share with others. */
static void write_line(const char *line, size_t len)
{
	struct pollfd ready = { .fd = log_fd, .events = POLLOUT };

	if (log_fd < 0 || poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT) || write(log_fd, line, len) < 0)
		dropped++;
}

void ks_log(enum ks_log_level level, const char *code, const char *fmt, ...)
{
	char line[1024], text[800];
	va_list ap;

	if (!ks_log_wants(level))
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	neutralise(text);
	int n = snprintf(line, sizeof(line), "kern-sidecar: %s: %s: %s\n", ks_log_level_name(level), code, text);
	if (n > 0)
		write_line(line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	if (log_sink)
		log_sink(log_sink_arg, level, code, text);
}
