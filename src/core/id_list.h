/*
 * Id list: pointers in the order of their ids, so that walking them depends on nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_list_item {
    uint64_t id;
    void *value;
};

/* A zeroed list is empty. */
struct id_list {
    struct id_list_item *items;
    size_t count;
    size_t capacity;
};

void id_list_done(struct id_list *list);
/* Adding an id that is there does nothing; so does removing one that is not. */
void id_list_add(struct id_list *list, uint64_t id, void *value);
void id_list_remove(struct id_list *list, uint64_t id);
/* Where the id is, or where it would go. */
size_t id_list_find(const struct id_list *list, uint64_t id);
bool id_list_contains(const struct id_list *list, uint64_t id);
