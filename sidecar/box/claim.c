#include "claim.h"

#include <string.h>

/* ---- packing ---- */

static uint32_t add_words(struct ks_buf *body, const char *const *words)
{
	uint32_t count = 0;

	for (; words[count] && count <= KS_CLAIM_WORDS; count++)
		ks_buf_add(body, words[count], strlen(words[count]) + 1);
	return count;
}

static void add_file(struct ks_buf *body, const struct ks_command_file *file)
{
	struct ks_claim_file record = { (uint32_t)strlen(file->name) + 1, file->mode, (uint32_t)file->len };

	ks_buf_add(body, &record, sizeof(record));
	ks_buf_add(body, file->name, record.name_len);
	ks_buf_add(body, file->data, file->len);
}

int ks_claim_pack(const struct ks_command_spec *spec, struct ks_claim *head, struct ks_buf *body, struct ks_error *err)
{
	const size_t begin = body->len;
	size_t nfiles = 0;

	ks_buf_add(body, spec->cwd, strlen(spec->cwd) + 1);
	const uint32_t argc = add_words(body, spec->argv), envc = add_words(body, spec->env);
	/* one that is too long by itself is not even copied */
	for (; nfiles < spec->nfiles && spec->files[nfiles].len <= KS_CLAIM_MAX; nfiles++)
		add_file(body, &spec->files[nfiles]);
	const size_t length = body->len - begin;
	if (body->failed || argc + envc > KS_CLAIM_WORDS || length > KS_CLAIM_MAX || nfiles < spec->nfiles) {
		body->len = begin;
		return ks_fail(err, KS_E_TOO_LARGE, "arguments, environment and code are too large together");
	}
	head->argc = argc;
	head->envc = envc;
	head->nfiles = (uint32_t)nfiles;
	head->length = (uint32_t)length;
	return 0;
}

/* ---- reading: everything is checked again, the cost is nothing ---- */

/* The word at *at, which moves behind it; NULL when it does not end. */
static const char *take_word(const char **at, const char *end)
{
	const char *word = *at, *nul = memchr(word, '\0', (size_t)(end - word));

	if (nul)
		*at = nul + 1;
	return nul ? word : NULL;
}

static bool take_words(const char **at, const char *end, uint32_t count, const char **words)
{
	for (uint32_t i = 0; i < count; i++) {
		words[i] = take_word(at, end);
		if (!words[i])
			return false;
	}
	words[count] = NULL;
	return true;
}

/* A plain name of the code directory. */
static bool is_name(const char *name, size_t len)
{
	return len > 0 && len <= KS_CLAIM_NAME && strnlen(name, len + 1) == len && !memchr(name, '/', len) &&
	       strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

static bool take_file(const char **at, const char *end, struct ks_command_file *ret)
{
	struct ks_claim_file record;

	if ((size_t)(end - *at) < sizeof(record))
		return false;
	memcpy(&record, *at, sizeof(record)); /* not aligned: it lies wherever the words end */
	const char *name = *at + sizeof(record);
	const size_t room = (size_t)(end - name);
	if (record.name_len == 0 || record.name_len > room || record.len > room - record.name_len ||
	    !is_name(name, record.name_len - 1))
		return false;
	*ret = (struct ks_command_file){ name, name + record.name_len, record.len, record.mode };
	*at = name + record.name_len + record.len;
	return true;
}

const char *ks_claim_read(const struct ks_claim *head, const char *body, struct ks_claim_view *ret)
{
	struct ks_command_file file;
	const char *at = body, *end = body + head->length;
	uint32_t nfiles = 0;

	if (head->length > KS_CLAIM_MAX)
		return "length";
	if (head->argc < 1 || head->argc > KS_CLAIM_WORDS || head->envc > KS_CLAIM_WORDS - head->argc)
		return "counts";
	ret->cwd = take_word(&at, end);
	if (!ret->cwd || !take_words(&at, end, head->argc, ret->words) ||
	    !take_words(&at, end, head->envc, ret->words + head->argc + 1))
		return "words";
	ret->files = at;
	ret->end = end;
	while (nfiles < head->nfiles && take_file(&at, end, &file))
		nfiles++;
	return nfiles == head->nfiles && at == end ? NULL : "files";
}

bool ks_claim_next_file(struct ks_claim_view *view, struct ks_command_file *ret)
{
	return take_file(&view->files, view->end, ret);
}
