/*
 * List: intrusive and doubly linked. A zeroed node is in no list.
 */
#pragma once

#include "base/assert.h"

#include <stdbool.h>
#include <stddef.h>

struct list_node {
    struct list_node *next;
    struct list_node *previous;
};

struct list {
    struct list_node head;
};

#define LIST_ITEM(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/* NOLINTBEGIN(bugprone-macro-parentheses): `node` is a name, not an expression */
#define LIST_EACH(list, node)                                                                      \
    for (struct list_node *node = (list)->head.next, *node##_next = node->next;                    \
         node != &(list)->head; node = node##_next, node##_next = node->next)
/* NOLINTEND(bugprone-macro-parentheses) */

static inline void list_init(struct list *list)
{
    list->head.next = list->head.previous = &list->head;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->head.next == &list->head;
}

static inline bool list_contains(const struct list_node *node)
{
    return node->next != NULL;
}

static inline void list_append(struct list *list, struct list_node *node)
{
    ASSERT(!list_contains(node));
    node->previous = list->head.previous;
    node->next = &list->head;
    list->head.previous->next = node;
    list->head.previous = node;
}

static inline void list_prepend(struct list *list, struct list_node *node)
{
    ASSERT(!list_contains(node));
    node->next = list->head.next;
    node->previous = &list->head;
    list->head.next->previous = node;
    list->head.next = node;
}

/* Removing a node that is in no list does nothing. */
static inline void list_remove(struct list_node *node)
{
    if (!list_contains(node))
        return;
    node->previous->next = node->next;
    node->next->previous = node->previous;
    node->next = node->previous = NULL;
}

/* NULL when empty. */
static inline struct list_node *list_take_first(struct list *list)
{
    if (list_is_empty(list))
        return NULL;
    struct list_node *node = list->head.next;
    /* Not by list_remove: so the analyzer sees that the head no longer leads to the node. */
    list->head.next = node->next;
    node->next->previous = &list->head;
    node->next = node->previous = NULL;
    return node;
}
