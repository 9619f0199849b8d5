/* fuzz_claim.c: a claim as it comes out of a box's socket: the head, then the body. What is accepted lies inside the
 * body and is, packed again, the same claim to the byte; what is refused says why. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "box/claim.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void must_be_inside(const char *word, const char *body, size_t len)
{
	must(word >= body && word < body + len && memchr(word, '\0', (size_t)(body + len - word)));
}

#define FILES 256

static void check_accepted(const struct ks_claim *head, const char *body, struct ks_claim_view *view)
{
	static struct ks_command_file files[FILES];
	struct ks_claim again = { 0 };
	struct ks_error err;
	KS_AUTOBUF struct ks_buf packed = { 0 };
	size_t nfiles = 0, words = (size_t)head->argc + head->envc + 2;

	must_be_inside(view->cwd, body, head->length);
	for (size_t i = 0; i < words; i++)
		if (i == head->argc || i == words - 1)
			must(view->words[i] == NULL);
		else
			must_be_inside(view->words[i], body, head->length);
	while (nfiles < FILES && ks_claim_next_file(view, &files[nfiles])) {
		const struct ks_command_file *file = &files[nfiles++];
		must_be_inside(file->name, body, head->length);
		must(file->name[0] && strlen(file->name) <= KS_CLAIM_NAME && !strchr(file->name, '/'));
		must(strcmp(file->name, ".") != 0 && strcmp(file->name, "..") != 0);
		const char *content = file->data;
		must(content >= body && content + file->len <= body + head->length);
	}
	if (nfiles == FILES)
		return;
	must(nfiles == head->nfiles);
	const struct ks_command_spec spec = { .cwd = view->cwd, .argv = view->words,
					      .env = view->words + head->argc + 1, .files = files, .nfiles = nfiles };
	must(ks_claim_pack(&spec, &again, &packed, &err) == 0);
	must(again.argc == head->argc && again.envc == head->envc);
	must(again.nfiles == head->nfiles && again.length == head->length);
	must(packed.len == head->length && memcmp(packed.data, body, packed.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ks_claim_view view;
	struct ks_claim head;

	if (size < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	/* the one thing that was compared with the message before (command.c) */
	if (head.length <= KS_CLAIM_MAX || head.length % 2)
		head.length = (uint32_t)(size - sizeof(head));
	const size_t len = head.length <= KS_CLAIM_MAX ? head.length : 0;
	char *body = malloc(len ? len : 1);
	must(body != NULL);
	memcpy(body, data + sizeof(head), len);
	const char *damage = ks_claim_read(&head, body, &view);
	if (damage)
		must(damage[0] != '\0');
	else
		check_accepted(&head, body, &view);
	free(body);
	return 0;
}
