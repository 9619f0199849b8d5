/* list.h: an intrusive doubly linked ring. A head is a node that points to itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ks_list {
	struct ks_list *next, *prev;
};

#define KS_ENTRY(node, type, member) ((type *)(void *)((char *)(node) - offsetof(type, member)))

static inline void ks_list_init(struct ks_list *node)
{
	node->next = node->prev = node;
}

static inline bool ks_list_empty(const struct ks_list *head)
{
	return head->next == head;
}

static inline void ks_list_append(struct ks_list *head, struct ks_list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Fine to call twice. */
static inline void ks_list_remove(struct ks_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	ks_list_init(node);
}

/* To the end of `to`, in their order. */
static inline void ks_list_move_all(struct ks_list *from, struct ks_list *to)
{
	while (!ks_list_empty(from)) {
		struct ks_list *node = from->next;
		ks_list_remove(node);
		ks_list_append(to, node);
	}
}
