/* fuzz_notify.c: the status text of a process that made a refused call, with a name and numbers of its own choice.
 * Whatever is read out of it, a process is named, or none is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "box/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

/* What the kernel prints in front and behind stands, whatever the name is: it escapes line feeds and nothing else. */
static void check_name(const uint8_t *data, size_t size)
{
	static const char front[] = "Name:\t", behind[] = "\nTgid:\t42\nNSpid:\t42\t7\nThreads:\t2\n"
							  "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
							  "SigCgt:\t0000000040000000\n";
	char text[256];
	size_t len = strlen(front);
	struct ks_status status;

	memcpy(text, front, len);
	for (size_t i = 0; i < size && i < 15 && data[i]; i++) {
		if (data[i] == '\n' || data[i] == '\\')
			text[len++] = '\\';
		text[len++] = data[i] == '\n' ? 'n' : (char)data[i];
	}
	memcpy(text + len, behind, sizeof(behind));
	must(ks_status_parse(text, &status) == 0);
	must(status.tgid == 42 && status.inner_pid == 7 && status.threads == 2 && status.deaf == 0x40000000);
	len -= strlen(front);
	len = len < sizeof(status.name) ? len : sizeof(status.name) - 1;
	must(strncmp(status.name, text + strlen(front), len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ks_status status = { .tgid = -1 };
	char *text = malloc(size + 1); /* the kernel's text may hold a NUL; then it ends there */

	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	if (ks_status_parse(text, &status) == 0) {
		must(status.tgid > 0 && status.inner_pid > 0 && status.threads >= 0);
		must(memchr(status.name, '\0', sizeof(status.name)) && !strchr(status.name, '\n'));
	} else {
		must(status.tgid == -1);
	}
	free(text);
	check_name(data, size);
	return 0;
}
