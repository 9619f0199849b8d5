#include "unpack.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "inflate.h"
#include "links.h"
#include "seen.h"

#define PIECE ((size_t)64 << 10)

struct pass {
	const struct ks_unpack_rules *rules;
	const struct ks_unpack_sink *sink;
	void (*tell)(void *arg, int64_t done, int64_t size);
	void *tell_arg;
	struct ks_inflate *inflate;
	struct ks_tar_reader reader;
	struct ks_seen seen;
	int64_t entries, bytes;
	char path[KS_ARCHIVE_PATH + 1], target[KS_ARCHIVE_PATH + 1];
	char piece[PIECE];
};

/* The name that the archive gives, as far as it fits; nothing that a terminal obeys. */
KS_PRINTF(4, 5)
static int refuse(const char *name, const char *hint, struct ks_error *err, const char *fmt, ...)
{
	char shown[110], why[190];
	va_list ap;

	(void)snprintf(shown, sizeof(shown), "%s", name[0] ? name : "(empty)");
	for (char *c = shown; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	(void)ks_fail(err, KS_E_ARCHIVE_REFUSED, "entry %s: %s", shown, why);
	return ks_error_hint(err, "%s", hint);
}

static const char again[] = "make the archive again from inside the directory, for example with tar -C DIRECTORY .";

/* ---- names ---- */

/* "." and empty parts go. The length; 0: it is the top itself; -1 with err. */
static int clean(const char *name, char *path, struct ks_error *err)
{
	size_t out = 0, depth = 0;

	if (name[0] == '\0')
		return refuse(name, again, err, "it has no name");
	if (name[0] == '/')
		return refuse(name, again, err, "its name is absolute");
	for (const char *in = name; *in;) {
		size_t len = strcspn(in, "/");
		if (len == 2 && memcmp(in, "..", 2) == 0)
			return refuse(name, again, err, "its name has a part \"..\"");
		if (len > KS_ARCHIVE_NAME || out + len + 1 > KS_ARCHIVE_PATH)
			return refuse(name, "give it a shorter name", err, "its name is longer than %d bytes, or a part of it than %d",
				      KS_ARCHIVE_PATH, KS_ARCHIVE_NAME);
		if (len > 0 && !(len == 1 && *in == '.')) {
			if (++depth > KS_ARCHIVE_DEPTH)
				return refuse(name, "pack a flatter tree", err, "it is more than %d directories deep", KS_ARCHIVE_DEPTH);
			if (out > 0)
				path[out++] = '/';
			memcpy(path + out, in, len);
			out += len;
		}
		in += len;
		in += *in == '/';
	}
	path[out] = '\0';
	return (int)out;
}

static int no_memory(struct ks_error *err)
{
	return ks_fail(err, KS_E_INTERNAL, "out of memory");
}

static int too_many(const struct pass *pass, const char *name, struct ks_error *err)
{
	return refuse(name, "pack fewer files, or open the session with a larger workspaceMaxMb where that is the limit", err,
		      "the archive has more than %zu names", pass->rules->max_entries);
}

static int add_name(struct pass *pass, const char *path, size_t len, enum ks_seen_kind kind, struct ks_error *err)
{
	if (pass->seen.count >= pass->rules->max_entries || pass->seen.names.len + len > KS_ARCHIVE_NAMES)
		return too_many(pass, path, err);
	return ks_seen_put(&pass->seen, path, len, kind) ? 0 : no_memory(err);
}

/* Everything above it is a directory, or becomes one. */
static int check_parents(struct pass *pass, const char *path, struct ks_error *err)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		const size_t len = (size_t)(slash - path);
		const enum ks_seen_kind kind = ks_seen_find(&pass->seen, path, len);
		if (kind == KS_SEEN_NOTHING && add_name(pass, path, len, KS_SEEN_IMPLIED, err) < 0)
			return -1;
		if (kind == KS_SEEN_FILE || kind == KS_SEEN_LINK)
			return refuse(path, "remove one of the two from the archive", err, "%.*s, in which it lies, is a %s there",
				      len > 80 ? 80 : (int)len, path, kind == KS_SEEN_FILE ? "file" : "symbolic link");
	}
	return 0;
}

static int take_name(struct pass *pass, const struct ks_tar_entry *entry, size_t len, struct ks_error *err)
{
	static const enum ks_seen_kind kinds[] = { [KS_TAR_FILE] = KS_SEEN_FILE, [KS_TAR_DIRECTORY] = KS_SEEN_DIRECTORY,
						   [KS_TAR_SYMLINK] = KS_SEEN_LINK, [KS_TAR_HARDLINK] = KS_SEEN_FILE };
	const enum ks_seen_kind before = ks_seen_find(&pass->seen, pass->path, len);
	const size_t reserved = strlen(KS_RESTORE_NAME);

	if (strncmp(pass->path, KS_RESTORE_NAME, reserved) == 0 && (pass->path[reserved] == '\0' || pass->path[reserved] == '/'))
		return refuse(pass->path, "remove it from the archive", err, "this name is reserved");
	if (before != KS_SEEN_NOTHING && !(before == KS_SEEN_IMPLIED && entry->type == KS_TAR_DIRECTORY))
		return refuse(pass->path, "remove all but one from the archive", err, "it is in the archive twice");
	if (check_parents(pass, pass->path, err) < 0)
		return -1;
	if (before == KS_SEEN_IMPLIED)
		return ks_seen_put(&pass->seen, pass->path, len, KS_SEEN_DIRECTORY) ? 0 : no_memory(err);
	return add_name(pass, pass->path, len, kinds[entry->type], err);
}

/* ---- links ---- */

static int check_hardlink(struct pass *pass, const struct ks_tar_entry *entry, struct ks_error *err)
{
	struct ks_error why;
	const int len = clean(entry->target, pass->target, &why);

	if (len <= 0 || ks_seen_find(&pass->seen, pass->target, (size_t)len) != KS_SEEN_FILE)
		return refuse(pass->path, "pack with tar --hard-dereference", err,
			      "it is a hard link to %.80s, which is no file that came before it", entry->target);
	return 0;
}

static int check_symlink(const struct pass *pass, const struct ks_tar_entry *entry, struct ks_error *err)
{
	if (pass->rules->links == KS_LINKS_REFUSE)
		return refuse(pass->path, "links: \"inside\" takes symbolic links that stay in the workspace", err,
			      "it is a symbolic link");
	if (strlen(entry->target) > KS_ARCHIVE_PATH || !ks_link_stays_inside(pass->path, entry->target))
		return refuse(pass->path, "remove it from the archive, or make its target relative, as in ../lib/x", err,
			      "it is a symbolic link to %.80s, which may be outside of the workspace", entry->target);
	return 0;
}

/* ---- entries ---- */

static int check_amounts(struct pass *pass, const struct ks_tar_entry *entry, struct ks_error *err)
{
	if (entry->size > KS_ARCHIVE_FILE)
		return refuse(pass->path, "leave it out", err, "its size is above %" PRId64 " GiB", KS_ARCHIVE_FILE >> 30);
	if (entry->content > pass->rules->max_bytes - pass->bytes)
		return refuse(pass->path, "pack less, or open the session with a larger workspaceMaxMb where that is the limit", err,
			      "with it the archive unpacks to more than %" PRId64 " MiB", pass->rules->max_bytes >> 20);
	pass->bytes += entry->content;
	return 0;
}

static int copy_content(struct pass *pass, const struct ks_tar_entry *entry, struct ks_error *err)
{
	for (;;) {
		int64_t offset = 0;
		ssize_t n = ks_tar_content(&pass->reader, entry, pass->piece, sizeof(pass->piece), &offset, err);
		if (n <= 0)
			return (int)n;
		if (pass->sink && pass->sink->content(pass->sink->arg, offset, pass->piece, (size_t)n, err) < 0)
			return -1;
		if (pass->tell)
			pass->tell(pass->tell_arg, ks_inflate_taken(pass->inflate), ks_inflate_size(pass->inflate));
	}
}

static int take_entry(struct pass *pass, struct ks_tar_entry *entry, struct ks_error *err)
{
	const int len = clean(entry->path, pass->path, err);

	if (len < 0)
		return -1;
	if (++pass->entries > (int64_t)pass->rules->max_entries)
		return too_many(pass, entry->path, err);
	if (len == 0) /* "./", of which a workspace has its own */
		return entry->type == KS_TAR_DIRECTORY ? 0 : refuse(entry->path, again, err, "only a directory can have this name");
	entry->path = pass->path;
	if ((entry->type == KS_TAR_SYMLINK && check_symlink(pass, entry, err) < 0) ||
	    (entry->type == KS_TAR_HARDLINK && check_hardlink(pass, entry, err) < 0) || take_name(pass, entry, (size_t)len, err) < 0 ||
	    check_amounts(pass, entry, err) < 0)
		return -1;
	if (entry->type == KS_TAR_HARDLINK)
		entry->target = pass->target;
	if (pass->sink && pass->sink->entry(pass->sink->arg, entry, err) < 0)
		return -1;
	if (entry->type == KS_TAR_FILE && copy_content(pass, entry, err) < 0)
		return -1;
	if (pass->tell)
		pass->tell(pass->tell_arg, ks_inflate_taken(pass->inflate), ks_inflate_size(pass->inflate));
	return pass->sink ? pass->sink->entry_end(pass->sink->arg, entry, err) : 0;
}

static int run(struct pass *pass, struct ks_error *err)
{
	struct ks_tar_entry entry;
	int rc;

	pass->reader.source = (struct ks_tar_source){ ks_inflate_read, pass->inflate };
	do {
		rc = ks_tar_next(&pass->reader, &entry, err);
		if (rc > 0 && take_entry(pass, &entry, err) < 0)
			rc = -1;
	} while (rc > 0);
	return rc;
}

int ks_unpack_archive(int fd, const struct ks_unpack_rules *rules, const struct ks_unpack_sink *sink,
		      void (*tell)(void *arg, int64_t done, int64_t size), void *tell_arg, struct ks_unpack_facts *ret,
		      struct ks_error *err)
{
	KS_AUTOFREE struct pass *pass = calloc(1, sizeof(*pass));

	if (!pass || ks_seen_init(&pass->seen) < 0)
		return no_memory(err);
	pass->rules = rules;
	pass->sink = sink;
	pass->tell = tell;
	pass->tell_arg = tell_arg;
	int rc = ks_inflate_new(fd, &pass->inflate, err);
	if (rc == 0)
		rc = run(pass, err);
	if (rc == 0) {
		*ret = (struct ks_unpack_facts){ .entries = pass->entries, .bytes = pass->bytes };
		ks_inflate_digest(pass->inflate, ret->digest);
	}
	ks_inflate_free(pass->inflate);
	ks_tar_reader_free(&pass->reader);
	ks_seen_free(&pass->seen);
	return rc;
}
