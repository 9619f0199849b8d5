/* unpack.h: an archive that must not be trusted, from its first byte to its last: every rule about what may be in it is here. The same
 * pass verifies (no sink) and extracts, so that nothing is ever written that was not judged, whatever happened to the file between. */
#pragma once

#include "tar.h"

struct ks_unpack_rules {
	enum ks_links links;
	int64_t max_bytes;  /* of content */
	size_t max_entries; /* names */
};

/* entry.path: relative, no "." and no "..", its parents came before or are to be made. Each returns 0, or -1 with err. */
struct ks_unpack_sink {
	int (*entry)(void *arg, const struct ks_tar_entry *entry, struct ks_error *err);
	int (*content)(void *arg, int64_t offset, const void *data, size_t len, struct ks_error *err);
	int (*entry_end)(void *arg, const struct ks_tar_entry *entry, struct ks_error *err);
	void *arg;
};

struct ks_unpack_facts {
	int64_t entries, bytes; /* of content */
	unsigned char digest[32]; /* of the archive */
};

/* `sink` may be NULL. `tell` hears of bytes read, of how many. */
int ks_unpack_archive(int fd, const struct ks_unpack_rules *rules, const struct ks_unpack_sink *sink,
		      void (*tell)(void *arg, int64_t done, int64_t size), void *tell_arg, struct ks_unpack_facts *ret,
		      struct ks_error *err);
