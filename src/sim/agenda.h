/*
 * Agenda: what is to happen at which instant of virtual time, first things first.
 *
 * Things of the same instant come out in the order in which they were put in.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agenda_item {
    int64_t at;     /* in the unit the caller counts time in */
    uint64_t order; /* set by agenda_put */
    int kind;       /* the caller's, as the next two */
    uint32_t index;
    uint64_t generation;
};

struct agenda {
    struct agenda_item *items; /* a binary heap */
    size_t count;
    size_t capacity;
    uint64_t put_count;
};

void agenda_init(struct agenda *agenda);
void agenda_done(struct agenda *agenda);
void agenda_put(struct agenda *agenda, const struct agenda_item *item);
/* The time of the first item; INT64_MAX when it is empty. */
int64_t agenda_next(const struct agenda *agenda);
/* False when it is empty. */
bool agenda_take(struct agenda *agenda, struct agenda_item *out_item);
