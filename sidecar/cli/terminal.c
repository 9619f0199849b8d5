#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ESC 0x1b

static void put_plain(struct ks_buf *out, unsigned char c)
{
	if (c >= 0x20 ? c != 0x7f : c == '\t' || c == '\n' || c == '\r' || c == '\b')
		ks_buf_char(out, (char)c);
	else
		ks_buf_printf(out, "^%c", c ^ 0x40);
}

/* It was no colour: shown, from its beginning. */
static void show_held(struct ks_terminal *terminal, struct ks_buf *out)
{
	for (size_t i = 0; i < terminal->held_len; i++)
		put_plain(out, (unsigned char)terminal->held[i]);
	terminal->held_len = 0;
}

/* Whether the byte went into what is held. */
static bool in_sequence(struct ks_terminal *terminal, char c, struct ks_buf *out)
{
	const size_t len = terminal->held_len;

	if (len == 0 && c != ESC)
		return false;
	if (len > 0 && c == ESC)
		show_held(terminal, out);
	else if (len > 0 && !(len == 1 ? c == '[' : (c >= '0' && c <= '9') || c == ';' || c == 'm')) {
		show_held(terminal, out);
		return false;
	}
	if (terminal->held_len == sizeof(terminal->held)) {
		show_held(terminal, out);
		return false;
	}
	terminal->held[terminal->held_len++] = c;
	if (c == 'm') {
		ks_buf_add(out, terminal->held, terminal->held_len);
		terminal->held_len = 0;
	}
	return true;
}

void ks_terminal_feed(struct ks_terminal *terminal, const char *data, size_t len, struct ks_buf *out)
{
	for (size_t i = 0; i < len; i++) {
		const unsigned char c = (unsigned char)data[i];
		if (terminal->c2) {
			terminal->c2 = false;
			if (c >= 0x80 && c <= 0x9f)
				continue;
			ks_buf_char(out, (char)0xc2);
		}
		if (in_sequence(terminal, data[i], out))
			continue;
		if (c == 0xc2)
			terminal->c2 = true;
		else
			put_plain(out, c);
	}
}

bool ks_terminal_colour(int fd)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fd) && !(no && no[0]) && !(term && strcmp(term, "dumb") == 0);
}

const char *ks_red(bool on)
{
	return on ? "\x1b[31m" : "";
}

const char *ks_green(bool on)
{
	return on ? "\x1b[32m" : "";
}

const char *ks_yellow(bool on)
{
	return on ? "\x1b[33m" : "";
}

const char *ks_dim(bool on)
{
	return on ? "\x1b[2m" : "";
}

const char *ks_plain(bool on)
{
	return on ? "\x1b[0m" : "";
}
