/* fuzz_archive.c: an archive of somebody else: the filters, the headers, the rules. Whatever is taken lies where it may, says each thing
 * once, and reads the same the second time. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "worker/jobs/links.h"
#include "worker/jobs/tar_header.h"
#include "worker/jobs/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	int64_t entries, content, in_entry;
};

static void must(int condition)
{
	if (!condition)
		abort();
}

static int on_entry(void *arg, const struct ks_tar_entry *entry, struct ks_error *err)
{
	struct seen *seen = arg;

	(void)err;
	seen->entries++;
	seen->in_entry = 0;
	must(strlen(entry->path) <= KS_ARCHIVE_PATH && entry->path[0] && entry->path[0] != '/');
	for (const char *name = entry->path; *name;) {
		const size_t len = strcspn(name, "/");
		must(len > 0 && len <= KS_ARCHIVE_NAME && !(len == 1 && name[0] == '.') && !(len == 2 && memcmp(name, "..", 2) == 0));
		name += len;
		must(*name == '\0' || name[1] != '\0');
		name += *name == '/';
	}
	must(strncmp(entry->path, KS_RESTORE_NAME "/", strlen(KS_RESTORE_NAME) + 1) != 0 && strcmp(entry->path, KS_RESTORE_NAME) != 0);
	must(entry->size >= 0 && entry->size <= KS_ARCHIVE_FILE && entry->content >= 0);
	must(entry->type == KS_TAR_FILE || entry->size == 0);
	must(entry->mtime.tv_nsec >= 0 && entry->mtime.tv_nsec < 1000000000);
	if (entry->type == KS_TAR_SYMLINK)
		must(ks_link_stays_inside(entry->path, entry->target));
	return 0;
}

static int on_content(void *arg, int64_t offset, const void *data, size_t len, struct ks_error *err)
{
	struct seen *seen = arg;

	(void)data;
	(void)err;
	must(offset >= 0 && len > 0 && offset + (int64_t)len <= KS_ARCHIVE_FILE);
	seen->content += (int64_t)len;
	seen->in_entry += (int64_t)len;
	return 0;
}

static int on_entry_end(void *arg, const struct ks_tar_entry *entry, struct ks_error *err)
{
	const struct seen *seen = arg;

	(void)err;
	must(seen->in_entry == entry->content);
	return 0;
}

/* A mutation breaks a checksum nearly always, and nothing behind it would be reached. */
static void mend(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + KS_TAR_BLOCK <= size; at += KS_TAR_BLOCK) {
		struct ks_tar_header header;
		memcpy(&header, data + at, sizeof(header));
		if (memcmp(header.magic, "ustar", 5) != 0)
			continue;
		(void)snprintf(header.checksum, sizeof(header.checksum), "%06o", ks_tar_checksum(&header) & 0777777);
		header.checksum[7] = ' ';
		memcpy(data + at, &header, sizeof(header));
	}
}

static void run(const uint8_t *data, size_t size)
{
	const struct ks_unpack_rules rules = { KS_LINKS_INSIDE, 64 << 20, 2000 };
	struct seen seen = { 0 };
	const struct ks_unpack_sink sink = { on_entry, on_content, on_entry_end, &seen };
	struct ks_unpack_facts first, second;
	struct ks_error err;
	const int fd = memfd_create("fuzz", 0);

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	const int rc = ks_unpack_archive(fd, &rules, &sink, NULL, NULL, &first, &err);
	if (rc == 0) {
		must(first.bytes == seen.content && first.entries >= seen.entries);
		must(ks_unpack_archive(fd, &rules, NULL, NULL, NULL, &second, &err) == 0);
		must(first.entries == second.entries && first.bytes == second.bytes && memcmp(first.digest, second.digest, 32) == 0);
	} else {
		must(err.reason == KS_E_ARCHIVE_REFUSED && err.text[0] && err.hint[0]);
	}
	(void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	run(data, size);
	uint8_t *mended = malloc(size ? size : 1);
	must(mended != NULL);
	memcpy(mended, data, size);
	mend(mended, size);
	if (memcmp(mended, data, size) != 0)
		run(mended, size);
	free(mended);
	return 0;
}
