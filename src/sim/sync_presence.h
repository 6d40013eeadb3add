/*
 * Sync presence: when each machine of a simulated training is there.
 *
 * Either always, or by stays and absences drawn from the seed, or as the availability traces of a
 * folder tell it: machine i follows file i mod files from a place drawn from the seed, and begins
 * anew at the file's end.
 */
#pragma once

#include "base/error.h"
#include "base/scope.h"

#include <stdbool.h>
#include <stdint.h>

struct sync_presence_options {
    uint32_t machine_count;
    uint64_t seed;
    int64_t end_ns;     /* nothing is asked beyond */
    int64_t stay_ms;    /* mean of a stay; 0: none drawn */
    int64_t absence_ms; /* mean of an absence */
    const char *folder; /* of traces; NULL: none */
    int64_t trace_speed;
};

struct sync_presence;

MUST_CHECK int sync_presence_open(const struct sync_presence_options *options,
                                  struct sync_presence **out_presence, struct error *error);
void sync_presence_free(struct sync_presence *presence); /* NULL is fine */
DEFINE_AUTO(sync_presence);

/* Whether it is there at time 0. */
bool sync_presence_at_start(const struct sync_presence *presence, uint32_t machine);
/* The index-th time at which it goes or comes; INT64_MAX past the last. */
int64_t sync_presence_change_ns(const struct sync_presence *presence, uint32_t machine,
                                uint32_t index);
/* One more change, after those there are. */
void sync_presence_add_change(struct sync_presence *presence, uint32_t machine, int64_t at_ns);
