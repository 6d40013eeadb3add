/*
 * Timers: which of many things has its time next. A binary heap by time, then id; what is no longer
 * due is for the caller to skip.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timer {
    int64_t at_ms;
    uint64_t id;
};

/* Zeroed timers are empty. */
struct timers {
    struct timer *items;
    size_t count;
    size_t capacity;
};

void timers_done(struct timers *timers);
void timers_add(struct timers *timers, int64_t at_ms, uint64_t id);
/* False: there is none. */
bool timers_first(const struct timers *timers, struct timer *out_timer);
void timers_pop(struct timers *timers);
