#include "page.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

void ks_page_begin(struct ks_page *page, const char *after, size_t most)
{
	*page = (struct ks_page){ .after = after, .most = most };
}

void ks_page_free(struct ks_page *page)
{
	for (size_t i = 0; i < page->count; i++)
		free(page->entries[i].key);
	free(page->entries);
	*page = (struct ks_page){ 0 };
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct ks_page_entry *)a)->key, ((const struct ks_page_entry *)b)->key);
}

static size_t cost(const struct ks_page_entry *entry)
{
	return sizeof(*entry) + strlen(entry->key) + 17; /* malloc's own, and the NUL */
}

/* Sorts, takes out what is there twice (a directory that changes while it is read may give a name again), and cuts off what is beyond
 * the page. */
static void settle(struct ks_page *page)
{
	size_t kept = 0;

	if (page->count > 0)
		qsort(page->entries, page->count, sizeof(page->entries[0]), by_key);
	for (size_t i = 0; i < page->count; i++) {
		const bool twice = kept > 0 && strcmp(page->entries[kept - 1].key, page->entries[i].key) == 0;
		if (twice || kept == page->most) {
			page->more |= !twice;
			page->bytes -= cost(&page->entries[i]);
			free(page->entries[i].key);
		} else {
			page->entries[kept++] = page->entries[i];
		}
	}
	page->count = kept;
}

void ks_page_add(struct ks_page *page, const char *name, bool below)
{
	const size_t len = strlen(name);
	char key[NAME_MAX + 2];

	if (len > NAME_MAX || page->failed)
		return;
	memcpy(key, name, len);
	memcpy(key + len, below ? "/" : "", below ? 2 : 1);
	if (strcmp(key, page->after) <= 0)
		return;
	/* after a cut the last one that was kept is a bound for all that come */
	if (page->more && page->count >= page->most && strcmp(key, page->entries[page->most - 1].key) >= 0)
		return;
	if (!ks_grow(&page->entries, &page->cap, page->count + 1, sizeof(*page->entries))) {
		page->failed = true;
		return;
	}
	struct ks_page_entry *entry = &page->entries[page->count];
	*entry = (struct ks_page_entry){ .key = strdup(key), .type = -1 };
	page->failed = !entry->key;
	if (page->failed)
		return;
	page->count++;
	page->bytes += cost(entry);
	if (page->count >= 2 * page->most)
		settle(page);
}

void ks_page_end(struct ks_page *page)
{
	settle(page);
}

const char *ks_cursor_path(const char *cursor, size_t len, bool recursive)
{
	const char *path = cursor + 1;

	if (len < 2 || len > PATH_MAX || cursor[0] != (recursive ? 'r' : 'd') || memchr(cursor, '\0', len) ||
	    (!recursive && strchr(path, '/')))
		return NULL;
	for (const char *part = path;; part++) {
		const size_t part_len = strcspn(part, "/");
		if (part_len == 0 || part_len > NAME_MAX || (part_len <= 2 && strspn(part, ".") >= part_len))
			return NULL;
		part += part_len;
		if (*part == '\0')
			return path;
	}
}
