#include "session/note.h"

#include <stdarg.h>
#include <stdio.h>

#include "proto/write.h"

void ks_notes_add(struct ks_notes *notes, const char *code, const char *fmt, ...)
{
	va_list ap;

	if (notes->count == KS_NOTES)
		return;
	struct ks_note *note = &notes->list[notes->count++];
	(void)snprintf(note->code, sizeof(note->code), "%s", code);
	va_start(ap, fmt);
	(void)vsnprintf(note->message, sizeof(note->message), fmt, ap);
	va_end(ap);
}

void ks_notes_write(const struct ks_notes *notes, struct ks_buf *json)
{
	ks_write_open(json, '[');
	for (size_t i = 0; i < notes->count; i++) {
		ks_write_open(json, '{');
		ks_write_key_string(json, "code", notes->list[i].code);
		ks_write_key_string(json, "message", notes->list[i].message);
		ks_write_close(json, '}');
	}
	ks_write_close(json, ']');
}
