/* Its code says what prepare does wrong: one service of the host after the other, at, below and above its caps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/kern_plugin.h"

static int many(struct kern_host *host, const char *what, int count)
{
	char name[32];

	for (int i = 0; i < count; i++) {
		(void)snprintf(name, sizeof(name), "N%d", i);
		if (strcmp(what, "args") == 0)
			(void)host->add_arg(host, name);
		else if (strcmp(what, "env") == 0)
			(void)host->set_env(host, name, "");
		else
			(void)host->add_file(host, name, "", 0, 0644);
	}
	return 0;
}

static int big(struct kern_host *host, const char *what, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return -1;
	memset(text, 120, size);
	text[size] = 0;
	if (strcmp(what, "word") == 0)
		(void)host->add_arg(host, text);
	else if (strcmp(what, "words") == 0)
		for (int i = 0; i < 16; i++)
			(void)host->add_arg(host, text);
	else if (strcmp(what, "file") == 0)
		(void)host->add_file(host, "big", text, size, 0600);
	free(text);
	return 0;
}

/* The code is "WHAT NUMBER" or "WHAT"; every -1 of the host is ignored here, which must not help. */
static int prepare_it(void *self, const struct kern_run *run, struct kern_host *host)
{
	char what[32] = "";
	unsigned long number = 0;

	(void)self;
	(void)sscanf(run->code, "%31s %lu", what, &number);
	if (strcmp(what, "mute") == 0)
		return -1;
	if (strcmp(what, "nothing") == 0)
		return 0;
	(void)host->add_arg(host, strcmp(what, "other") == 0 ? "/bin/other" : run->interpreter);
	host->log(host, KERN_LOG_DEBUG, "in prepare");
	if (strcmp(what, "args") == 0 || strcmp(what, "env") == 0 || strcmp(what, "files") == 0)
		return many(host, what, (int)number);
	if (strcmp(what, "word") == 0 || strcmp(what, "words") == 0 || strcmp(what, "file") == 0)
		return big(host, what, number);
	if (strcmp(what, "envname") == 0)
		(void)host->set_env(host, "1A", "");
	if (strcmp(what, "envtwice") == 0)
		(void)(host->set_env(host, "A", "1") + host->set_env(host, "A", "2"));
	if (strcmp(what, "filename") == 0)
		(void)host->add_file(host, "../up", "", 0, 0644);
	if (strcmp(what, "filetwice") == 0)
		(void)(host->add_file(host, "a", "", 0, 0644) + host->add_file(host, "a", "", 0, 0644));
	if (strcmp(what, "mode") == 0)
		(void)host->add_file(host, "a", "", 0, (uint32_t)number);
	if (strcmp(what, "emit") == 0)
		(void)host->emit_clear(host, 0);
	if (strcmp(what, "field") == 0)
		(void)host->fail(host, "/code", "not this code");
	return 0;
}

/* Reads a frame in a form of its own: a display whose text is the key of the first part. */
static int result_it(void *self, const struct kern_frame *frame, struct kern_host *host)
{
	(void)self;
	if (frame->part_count == 0)
		return -1;
	if (strcmp(frame->parts[0].key, "arg") == 0)
		return host->add_arg(host, "late");
	if (strcmp(frame->parts[0].key, "clear") == 0)
		return host->emit_clear(host, 1);
	if (strcmp(frame->parts[0].key, "error") == 0) {
		const struct kern_error error = { .size = sizeof(error), .name = "Oops", .name_len = 4 };
		return host->emit_error(host, &error);
	}
	const struct kern_part text = { "text/plain", frame->parts[0].key, strlen(frame->parts[0].key) };
	const struct kern_result result = {
		.size = sizeof(result), .kind = KERN_DISPLAY, .data = &text, .data_count = 1
	};
	return host->emit_result(host, &result);
}
#define PREPARE prepare_it
#define RESULT result_it
#include "good.h"
