#include "ignore.h"

#include <fcntl.h>
#include <string.h>

#include "base/buf.h"
#include "base/grow.h"
#include "workspace/beneath.h"

#include "wildcard.h"

struct ks_ignore {
	struct ks_wild names, paths; /* rules without a slash, and with one; the number of a rule is its id */
	bool *negated;		     /* by number */
	size_t count, cap;
	struct ks_wild_states states; /* for one match */
};

static int no_memory(struct ks_error *err)
{
	return ks_fail(err, KS_E_INTERNAL, "out of memory");
}

/* Spaces at the end do not count, unless the last of them is behind a backslash. */
static size_t without_spaces(const char *line, size_t len)
{
	size_t end = 0;

	for (size_t at = 0; at < len; at++) {
		const bool space = line[at] == ' ';
		if (line[at] == '\\' && at + 1 < len)
			at++;
		if (!space)
			end = at + 1;
	}
	return end;
}

/* A rule that is not well-formed matches nothing, as for git. */
static int add_rule(struct ks_ignore *ignore, const char *line, size_t len, struct ks_error *err)
{
	size_t body = 0;

	if (len > 0 && line[len - 1] == '\r')
		len--;
	len = without_spaces(line, len);
	if (len == 0 || line[0] == '#')
		return 0;
	const bool negated = line[0] == '!';
	line += negated;
	len -= negated;
	body = len;
	if (body > 0 && line[body - 1] == '/')
		body--;
	if (!ks_grow(&ignore->negated, &ignore->cap, ignore->count + 1, sizeof(*ignore->negated)))
		return no_memory(err);
	ignore->negated[ignore->count] = negated;
	struct ks_wild *set = memchr(line, '/', body) ? &ignore->paths : &ignore->names;
	(void)ks_wild_add(set, line, len, (uint32_t)ignore->count++);
	if (set->failed)
		return ks_fail(err, KS_E_LIMIT, "its rules are too large");
	return 0;
}

int ks_ignore_new(const char *text, size_t len, struct ks_ignore **ret, struct ks_error *err)
{
	struct ks_ignore *ignore = calloc(1, sizeof(*ignore));
	int rc = 0;

	if (!ignore)
		return no_memory(err);
	ignore->names.flags = KS_WILD_BYTES | KS_WILD_NAMES;
	ignore->paths.flags = KS_WILD_BYTES;
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	}
	while (rc == 0 && len > 0) {
		const char *end = memchr(text, '\n', len);
		const size_t line = end ? (size_t)(end - text) : len;
		rc = add_rule(ignore, text, line, err);
		text += end ? line + 1 : line;
		len -= end ? line + 1 : line;
	}
	const size_t width = ks_wild_width(&ignore->names) + ks_wild_width(&ignore->paths);
	if (rc == 0) {
		ignore->states.list = calloc(width + 1, sizeof(*ignore->states.list));
		if (!ignore->states.list || !ks_wild_ready(&ignore->names) || !ks_wild_ready(&ignore->paths))
			rc = no_memory(err);
	}
	if (rc < 0)
		ks_ignore_free(ignore);
	else
		*ret = ignore;
	return rc;
}

int ks_ignore_read(int dir_fd, const char *name, const char *shown, struct ks_ignore **ret, struct ks_error *err)
{
	KS_AUTOBUF struct ks_buf text = { 0 };
	KS_AUTOCLOSE int fd = ks_open_regular(dir_fd, name);

	*ret = NULL;
	if (fd < 0)
		return 0;
	for (;;) {
		void *room = ks_buf_reserve(&text, (size_t)16 << 10);
		if (!room)
			return no_memory(err);
		const ssize_t n = read(fd, room, (size_t)16 << 10);
		if (n <= 0)
			break;
		text.len += (size_t)n;
		if (text.len > KS_IGNORE_FILE)
			return ks_fail(err, KS_E_LIMIT, "%s%s is larger than %zu bytes", shown, name, KS_IGNORE_FILE);
	}
	if (text.len == 0)
		return 0;
	if (ks_ignore_new(text.data, text.len, ret, err) < 0) {
		const struct ks_error why = *err;
		return ks_fail(err, why.reason, "%s%s: %s", shown, name, why.text);
	}
	return 0;
}

static int64_t last_rule(struct ks_ignore *ignore, struct ks_wild *set, const char *text, size_t len, bool directory)
{
	if (set->start_count == 0)
		return -1;
	ks_wild_begin(set, &ignore->states);
	ks_wild_step(set, &ignore->states, text, len, false, &ignore->states);
	return ignore->states.count > 0 ? ks_wild_match(set, &ignore->states, directory) : -1;
}

enum ks_ignored ks_ignore_match(struct ks_ignore *ignore, const char *path, size_t path_len, const char *name, size_t name_len,
				bool directory)
{
	const int64_t of_name = last_rule(ignore, &ignore->names, name, name_len, directory);
	const int64_t of_path = last_rule(ignore, &ignore->paths, path, path_len, directory);
	const int64_t last = of_name > of_path ? of_name : of_path;

	return last < 0 ? KS_IGNORE_SILENT : ignore->negated[last] ? KS_IGNORE_NO : KS_IGNORE_YES;
}

size_t ks_ignore_bytes(const struct ks_ignore *ignore)
{
	return sizeof(*ignore) + ks_wild_bytes(&ignore->names) + ks_wild_bytes(&ignore->paths) + ignore->cap +
	       (ks_wild_width(&ignore->names) + ks_wild_width(&ignore->paths)) * sizeof(*ignore->states.list);
}

void ks_ignore_free(struct ks_ignore *ignore)
{
	if (!ignore)
		return;
	ks_wild_free(&ignore->names);
	ks_wild_free(&ignore->paths);
	free(ignore->negated);
	free(ignore->states.list);
	free(ignore);
}
