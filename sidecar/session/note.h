/* note.h: what turned out differently than one might think, and is no error: of a session, a call or a restore. */
#pragma once

#include "base/base.h"
#include "base/buf.h"

#define KS_NOTES 6 /* as many as there are kinds that can meet; more are left out */

struct ks_note {
	char code[32]; /* stable, in lower snake_case */
	char message[256];
};

struct ks_notes {
	struct ks_note list[KS_NOTES];
	size_t count;
};

void ks_notes_add(struct ks_notes *notes, const char *code, const char *fmt, ...) KS_PRINTF(3, 4);
/* A list of Note of the protocol. */
void ks_notes_write(const struct ks_notes *notes, struct ks_buf *json);
