#include "seen.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "workspace/siphash.h"

int ks_seen_init(struct ks_seen *seen)
{
	*seen = (struct ks_seen){ 0 };
	return getrandom(seen->key, sizeof(seen->key), 0) == (ssize_t)sizeof(seen->key) ? 0 : -EIO;
}

/* The slot that holds the name, or the free one where it belongs. */
static uint32_t *slot_of(const struct ks_seen *seen, const char *name, size_t len)
{
	size_t i = ks_siphash(seen->key, 0, name, len) & (seen->slot_count - 1);

	for (;; i = (i + 1) & (seen->slot_count - 1)) {
		uint32_t *slot = &seen->slots[i];
		if (*slot == 0)
			return slot;
		const struct ks_seen_name *item = &seen->items[*slot - 1];
		if (item->len == len && memcmp(seen->names.data + item->at, name, len) == 0)
			return slot;
	}
}

/* Half of the slots stay free. */
static bool grow(struct ks_seen *seen)
{
	const size_t cap = seen->cap ? 2 * seen->cap : 512;
	struct ks_seen_name *items = realloc(seen->items, cap * sizeof(*items));

	if (!items)
		return false;
	seen->items = items;
	uint32_t *slots = calloc(2 * cap, sizeof(*slots));
	if (!slots)
		return false;
	free(seen->slots);
	seen->slots = slots;
	seen->slot_count = 2 * cap;
	seen->cap = cap;
	for (size_t i = 0; i < seen->count; i++)
		*slot_of(seen, seen->names.data + items[i].at, items[i].len) = (uint32_t)i + 1;
	return true;
}

size_t ks_seen_index(const struct ks_seen *seen, const char *name, size_t len)
{
	const uint32_t *slot = seen->slots ? slot_of(seen, name, len) : NULL;

	return slot && *slot ? *slot - 1 : seen->count;
}

enum ks_seen_kind ks_seen_find(const struct ks_seen *seen, const char *name, size_t len)
{
	const size_t index = ks_seen_index(seen, name, len);

	return index < seen->count ? (enum ks_seen_kind)seen->items[index].kind : KS_SEEN_NOTHING;
}

bool ks_seen_put(struct ks_seen *seen, const char *name, size_t len, enum ks_seen_kind kind)
{
	if (seen->count == seen->cap && !grow(seen))
		return false;
	uint32_t *slot = slot_of(seen, name, len);
	if (*slot == 0) {
		seen->items[seen->count] = (struct ks_seen_name){ .at = (uint32_t)seen->names.len, .len = (uint32_t)len };
		ks_buf_add(&seen->names, name, len);
		if (seen->names.failed)
			return false;
		*slot = (uint32_t)++seen->count;
	}
	seen->items[*slot - 1].kind = (uint8_t)kind;
	return true;
}

void ks_seen_free(struct ks_seen *seen)
{
	free(seen->items);
	free(seen->slots);
	ks_buf_free(&seen->names);
	*seen = (struct ks_seen){ 0 };
}
