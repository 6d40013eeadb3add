/*
 * Background: work that takes the loop too long, done one after the other on a thread of its own.
 *
 * Tasks are the caller's; `done` runs on the loop once `work` has run, or, when the market stops
 * before, without it (is_dropped).
 */
#pragma once

#include "base/error.h"
#include "base/list.h"
#include "base/scope.h"
#include "net/loop.h"

#include <stdbool.h>

struct background_task {
    void (*work)(struct background_task *task);
    void (*done)(struct background_task *task);
    bool is_dropped;
    struct list_node node; /* the thread's own */
};

struct background;

MUST_CHECK int background_open(struct loop *loop, size_t queue_max,
                               struct background **out_background, struct error *error);
void background_free(struct background *background); /* NULL is fine */
DEFINE_AUTO(background);

/* UNAVAILABLE, and nothing is called, when too many wait. */
MUST_CHECK int background_submit(struct background *background, struct background_task *task,
                                 struct error *error);
