/* run_words.h: the words of `run` and `exec` as the params of a call. */
#pragma once

#include "proto/messages.h"
#include "proto/tables.h"

struct ks_run_words {
	struct ks_session_params session; /* first: its table is used as it is */
	char *language;
	bool json, plan;
	/* what comes behind the flags */
	struct ks_run_params params; /* what is above, and the program */
	char *code;		     /* malloc'ed */
	size_t code_len;
	bool stdin_taken; /* the program was read from it */
};

/* The flags, one after the other; NULL behind the last. */
const struct ks_field *ks_run_words_field(size_t i);
/* argv[0] is "run" or "exec". */
int ks_run_words_parse(int argc, char **argv, struct ks_run_words *words, struct ks_error *err);
void ks_run_words_free(struct ks_run_words *words);
