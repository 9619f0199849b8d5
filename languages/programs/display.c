/* display.c: kern-display, with which a shell shows a file or its standard input as a rich result. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame.h"

#define DATA_MAX (FRAME_PAYLOAD - ((size_t)1 << 20)) /* with room for the small parts */
#define ID_MAX 128
#define FIELD_MAX 2048

static const char usage[] =
	"usage: kern-display [--mime TYPE | --json | --md | --html | --svg | --text] [--id ID [--update]] [FILE]\n"
	"Shows FILE, or standard input, as a result of the call. Without a type the first bytes tell: PNG, JPEG, GIF, WebP,\n"
	"PDF, SVG, or UTF-8 text. --update replaces what was shown with the same --id.\n"
	"       kern-display --failed STATUS LINE FILE FUNCTION COMMAND\n"
	"Reports a command that failed as the error of the call.\n";

struct options {
	const char *mime, *id, *file;
	bool update;
};

struct channel {
	int fd, lock;
	uint32_t call, id;
};

__attribute__((noreturn, format(printf, 2, 3))) static void die(int status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("kern-display: ", stderr);
	(void)vfprintf(stderr, format, args);
	(void)fputc('\n', stderr);
	va_end(args);
	exit(status);
}

/* ---- what is asked for ---- */

static bool mime_valid(const char *mime)
{
	size_t len = strlen(mime), slash = strcspn(mime, "/");

	if (len > FRAME_KEY || slash == 0 || slash + 1 >= len || strchr(mime + slash + 1, '/'))
		return false;
	for (size_t i = 0; i < len; i++)
		if (mime[i] <= ' ' || mime[i] > '~' || strchr(";,\"()<>@:\\[]?=", mime[i]))
			return false;
	return true;
}

static const char *word_behind(char **argv, int *at)
{
	if (!argv[*at + 1])
		die(2, "%s needs a word behind it\n%s", argv[*at], usage);
	return argv[++*at];
}

static bool short_type(const char *word, struct options *options)
{
	static const char *const types[][2] = { { "--json", "application/json" }, { "--md", "text/markdown" }, { "--html", "text/html" },
						{ "--svg", "image/svg+xml" },	  { "--text", "text/plain" } };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(word, types[i][0]) == 0) {
			options->mime = types[i][1];
			return true;
		}
	return false;
}

static struct options read_options(char **argv)
{
	struct options options = { 0 };
	bool ended = false;

	for (int i = 1; argv[i]; i++) {
		const char *word = argv[i];
		if (ended || word[0] != '-' || !word[1]) {
			if (options.file)
				die(2, "one file at a time, not %s and %s", options.file, word);
			options.file = word;
		} else if (strcmp(word, "--") == 0) {
			ended = true;
		} else if (strcmp(word, "--help") == 0) {
			(void)fputs(usage, stdout);
			exit(0);
		} else if (strcmp(word, "--mime") == 0) {
			options.mime = word_behind(argv, &i);
		} else if (strcmp(word, "--id") == 0) {
			options.id = word_behind(argv, &i);
		} else if (strcmp(word, "--update") == 0) {
			options.update = true;
		} else if (!short_type(word, &options)) {
			die(2, "unknown option %s\n%s", word, usage);
		}
	}
	if (options.mime && !mime_valid(options.mime))
		die(2, "%.200s is no mime type", options.mime);
	if (options.id && (!*options.id || strlen(options.id) > ID_MAX))
		die(2, "an id has 1 to %d bytes", ID_MAX);
	if (options.update && !options.id)
		die(2, "--update needs the --id of what it replaces");
	return options;
}

/* ---- the data ---- */

static uint8_t *read_all(const char *file, size_t *ret_len)
{
	int fd = file && strcmp(file, "-") != 0 ? open(file, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	size_t len = 0, room = 0;
	uint8_t *data = NULL;

	if (fd < 0)
		die(1, "%s: %s", file, strerror(errno));
	for (;;) {
		if (len == room) {
			room = room ? 2 * room : FRAME_PIECE;
			data = realloc(data, room);
			if (!data)
				die(1, "out of memory");
		}
		ssize_t n = read(fd, data + len, room - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			die(1, "%s: %s", file ? file : "standard input", strerror(errno));
		if (n == 0) {
			data[len] = 0; /* there is room: for type_of */
			break;
		}
		len += (size_t)n;
		if (len > DATA_MAX)
			die(1, "%s has more than %zu bytes, the most that can be shown", file ? file : "standard input", DATA_MAX);
	}
	*ret_len = len;
	return data;
}

/* The length of the UTF-8 sequence at p, at most `left` bytes; 0: it is none (RFC 3629), or a NUL. */
static size_t utf8_length(const uint8_t *p, size_t left)
{
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

	if (n == 0 || n > left || p[0] == 0)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
	    (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static bool starts(const uint8_t *data, size_t len, size_t at, const char *text)
{
	return len >= at + strlen(text) && memcmp(data + at, text, strlen(text)) == 0;
}

static bool is_svg(const uint8_t *data, size_t len)
{
	size_t at = strspn((const char *)data, " \t\r\n"); /* UTF-8 without NULs, and a NUL behind it */

	if (starts(data, len, at, "<?xml")) {
		const char *end = strstr((const char *)data + at, "?>");
		at = end ? (size_t)(end + 2 - (const char *)data) : len;
		at += strspn((const char *)data + at, " \t\r\n");
	}
	return starts(data, len, at, "<svg") && strchr(" \t\r\n>", data[at + 4]);
}

static const char *type_of(const uint8_t *data, size_t len)
{
	if (starts(data, len, 0, "\x89PNG\r\n\x1a\n"))
		return "image/png";
	if (starts(data, len, 0, "\xff\xd8\xff"))
		return "image/jpeg";
	if (starts(data, len, 0, "GIF87a") || starts(data, len, 0, "GIF89a"))
		return "image/gif";
	if (starts(data, len, 0, "RIFF") && starts(data, len, 8, "WEBP"))
		return "image/webp";
	if (starts(data, len, 0, "%PDF-"))
		return "application/pdf";
	for (size_t at = 0, n; at < len; at += n) {
		n = utf8_length(data + at, len - at);
		if (n == 0)
			die(1, "cannot tell what this is: no image, no PDF, and not UTF-8 from byte %zu on; --mime TYPE says it", at);
	}
	return is_svg(data, len) ? "image/svg+xml" : "text/plain";
}

/* ---- the channel ---- */

static uint32_t number_of(const char *name, uint32_t absent)
{
	const char *text = getenv(name);
	char *end;

	if (!text)
		return absent;
	errno = 0;
	unsigned long value = strtoul(text, &end, 10);
	return errno || *end || end == text || value > UINT32_MAX ? absent : (uint32_t)value;
}

/* Several may show at the same time: who holds the lock sends and waits for its answer. The file has the last number. */
static struct channel open_channel(void)
{
	struct channel channel = { .fd = (int)(number_of("KERN_RESULT_FD", UINT32_MAX) & 0x7fffffff),
				   .call = number_of("KERN_RESULT_CALL", 0) };
	const char *path = getenv("KERN_RESULT_LOCK");
	struct stat st;
	uint8_t last[4] = { 0 };

	if (!path || fstat(channel.fd, &st) < 0 || !S_ISSOCK(st.st_mode))
		die(1, "there is no result channel here: no call of a language, or its descriptor (KERN_RESULT_FD) is closed");
	channel.lock = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (channel.lock < 0 || fstat(channel.lock, &st) < 0 || !S_ISREG(st.st_mode))
		die(1, "%s (KERN_RESULT_LOCK): %s", path, channel.lock < 0 ? strerror(errno) : "not a file");
	while (flock(channel.lock, LOCK_EX) < 0)
		if (errno != EINTR)
			die(1, "%s: %s", path, strerror(errno));
	channel.id = pread(channel.lock, last, sizeof(last), 0) < 0 ? 0 : get32(last) + 1;
	put32(last, channel.id);
	if (channel.id == 0 || pwrite(channel.lock, last, sizeof(last), 0) != sizeof(last))
		die(1, "cannot number the result");
	return channel;
}

static void wait_for(const struct channel *channel, short events)
{
	struct pollfd poll_fd = { .fd = channel->fd, .events = events };

	(void)poll(&poll_fd, 1, -1);
}

static void send_frame(const struct channel *channel, uint8_t type, const uint8_t *payload, size_t len)
{
	static uint8_t datagram[FRAME_HEADER + FRAME_PIECE];

	for (size_t at = 0; at < len;) {
		size_t piece = len - at < FRAME_PIECE ? len - at : FRAME_PIECE;
		frame_header(datagram, type, channel->call, channel->id, (uint32_t)len, (uint32_t)at);
		memcpy(datagram + FRAME_HEADER, payload + at, piece);
		if (send(channel->fd, datagram, FRAME_HEADER + piece, MSG_NOSIGNAL) >= 0)
			at += piece;
		else if (errno == EAGAIN || errno == ENOBUFS)
			wait_for(channel, POLLOUT);
		else if (errno != EINTR)
			die(1, "the result channel is closed: %s", strerror(errno));
	}
}

/* When the host has it in its place, what is printed next comes behind it. */
static void await_ack(const struct channel *channel)
{
	uint8_t reply[FRAME_HEADER];

	for (;;) {
		ssize_t n = recv(channel->fd, reply, sizeof(reply), 0);
		if (n == sizeof(reply) && get32(reply + 12) == channel->id)
			return;
		if (n < 0 && errno == EAGAIN)
			wait_for(channel, POLLIN);
		else if (n == 0 || (n < 0 && errno != EINTR))
			die(1, "the host has closed the result channel");
	}
}

static size_t add_part(uint8_t *payload, const char *key, const void *data, size_t len)
{
	size_t head = frame_part(payload, key, len);

	memcpy(payload + head, data, len);
	return head + len;
}

static void show(uint8_t type, const uint8_t *payload, size_t len)
{
	const struct channel channel = open_channel();

	send_frame(&channel, type, payload, len);
	await_ack(&channel);
}

static void report_failed(char **words)
{
	static uint8_t payload[5 * FIELD_MAX];
	char message[FIELD_MAX], frame[4 * FIELD_MAX];
	const int source_max = FIELD_MAX - 64;

	(void)snprintf(message, sizeof(message), "exit status %.20s: %.*s", words[0], source_max, words[4]);
	/* the NULs between the fields are part of it */
	int len = snprintf(frame, sizeof(frame), "%.9s%c0%c%.1024s%c%.1024s%c%.*s", words[1], 0, 0, words[2], 0, words[3], 0, source_max,
			   words[4]);
	size_t at = add_part(payload, "name", "CommandFailed", strlen("CommandFailed"));
	at += add_part(payload + at, "message", message, strlen(message));
	at += add_part(payload + at, "phase", "run", strlen("run"));
	at += add_part(payload + at, "frame", frame, (size_t)len);
	show(FRAME_ERROR, payload, at);
}

int main(int argc, char **argv)
{
	if (argc == 7 && strcmp(argv[1], "--failed") == 0) {
		report_failed(argv + 2);
		return 0;
	}
	const struct options options = read_options(argv);
	size_t len, at = 0;
	uint8_t *data = read_all(options.file, &len);
	uint8_t *payload = malloc(len + 2 * (FRAME_KEY + 7) + ID_MAX);

	if (!payload)
		die(1, "out of memory");
	const char *mime = options.mime ? options.mime : type_of(data, len);
	if (options.id)
		at = add_part(payload, "id", options.id, strlen(options.id));
	at += add_part(payload + at, mime, data, len);
	show(options.update ? FRAME_UPDATE : FRAME_DISPLAY, payload, at);
	return 0;
}
