#include "tree.h"

#include <string.h>

void ks_tree_free(struct ks_tree *tree)
{
	if (!tree)
		return;
	free(tree->entries);
	free(tree->names);
	free(tree->hashes);
	free(tree);
}

size_t ks_tree_files(const struct ks_tree *tree)
{
	return tree->files;
}

size_t ks_tree_seen(const struct ks_tree *tree)
{
	return tree->seen;
}

uint64_t ks_tree_disk_bytes(const struct ks_tree *tree)
{
	return tree->disk_bytes;
}

size_t ks_tree_unreadable(const struct ks_tree *tree)
{
	return tree->unreadable;
}

size_t ks_tree_bytes(const struct ks_tree *tree)
{
	return sizeof(*tree) + tree->cap * sizeof(*tree->entries) + tree->names_cap +
	       tree->hash_cap * sizeof(*tree->hashes);
}

char *ks_tree_path(const struct ks_tree *tree, uint32_t entry, size_t max, size_t *ret_len)
{
	size_t len = 0;

	for (uint32_t i = entry; i != 0; i = tree->entries[i].dir) {
		len += tree->entries[i].name_len + 1u;
		if (len > max + 1)
			return NULL;
	}
	char *path = malloc(len ? len : 1);
	if (!path)
		return NULL;
	*ret_len = len ? len - 1 : 0;
	char *at = path + *ret_len;
	*at = '\0';
	for (uint32_t i = entry; i != 0; i = tree->entries[i].dir) {
		at -= tree->entries[i].name_len;
		memcpy(at, ks_tree_name(tree, i), tree->entries[i].name_len);
		if (at > path)
			*--at = '/';
	}
	return path;
}
