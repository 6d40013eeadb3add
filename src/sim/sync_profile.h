/*
 * Sync profile: the machines a simulated training runs on: how long a step takes each, how long a
 * push and its answer, and when it is there.
 *
 * A profile is JSON, built in by name or read from a file:
 *
 *     {"name": "two", "heterogeneity": 2.0, "mean_step_ms": 1000, "machines": [
 *         {"kind": "laptop", "count": 1, "step_ms": 500, "commit_ms": 200, "mbit": 20},
 *         {"kind": "board", "count": 3, "step_ms": 2000, "commit_ms": 400}]}
 *
 * With `heterogeneity` H the speeds v_i are raised to the power that makes mean(v) / min(v) = H;
 * with `mean_step_ms` they are then scaled so that a machine of mean speed takes so long for a
 * step. `trace` names a folder of availability traces, `trace_speed` how much faster they run.
 *
 * A machine with `cores` below 1 lends that share of one, as cgroups do: within each `quota_ms`
 * (100 if not given) it computes at full speed until its share of them is used up. `step_ms` is
 * what a step takes it that never waits; who waits for answers meanwhile loses nothing until then.
 *
 * To add one: a row in sync_profile.c.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdint.h>

enum { SYNC_MACHINES_MAX = 1024 };

struct sync_machine {
    char kind[32];
    int64_t step_ns;     /* one step of a batch of the size asked for */
    int64_t commit_ns;   /* a push and its answer, without the bytes */
    int64_t bytes_per_s; /* each way; 0: they take no time */
    double cores;        /* the share of one that it lends; 0: whole ones */
    int64_t quota_ns;    /* the time in which it may use up its share */
};

struct sync_profile {
    char name[64];
    uint32_t machine_count;
    struct sync_machine *machines;
    char trace[64]; /* below spot-traces/availability; "": everybody is always there */
    int64_t trace_speed;
};

/* By its built-in name, or from the file of that path. What it holds lives in the arena. */
MUST_CHECK int sync_profile_find(struct arena *arena, const char *name,
                                 struct sync_profile *out_profile, struct error *error);
MUST_CHECK int sync_profile_read(struct arena *arena, struct text json,
                                 struct sync_profile *out_profile, struct error *error);

/* Changes the speeds so that mean(v) / min(v) = wanted, the mean staying as it is. INVALID when
 * it is below 1, or above 1 where all are equal. */
MUST_CHECK int sync_profile_spread(struct sync_profile *profile, double wanted,
                                   struct error *error);
double sync_profile_heterogeneity(const struct sync_profile *profile);
/* The step of a machine of mean speed. */
int64_t sync_profile_mean_step_ns(const struct sync_profile *profile);

/* The built-in ones, for help; NULL past the end. */
const char *sync_profile_name_at(uint32_t index);
