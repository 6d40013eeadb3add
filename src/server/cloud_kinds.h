/*
 * Cloud kinds: what a catalogue of clouds has, as machine types beside the market's lenders.
 *
 * Prices are credits, by what a dollar is worth here. A figure that no catalogue has is guessed the
 * same for all: speed, way and start; measured runs correct the first.
 */
#pragma once

#include "base/arena.h"
#include "cloud/catalogue.h"
#include "recommend/candidate.h"

#include <stdbool.h>

struct cloud_kinds_wish {
    bool wants_on_demand, wants_spot, wants_functions;
    int64_t memory_bytes; /* of a worker */
    int64_t micro_per_usd;
    struct text region; /* "": the catalogue's first */
};

/* Those of the region, for jobs that train on CPUs: a GPU is not used. *out_candidates lives in the
 * arena, their names are the catalogue's. Returns how many. */
size_t cloud_kinds(struct arena *arena, const struct catalogue *catalogue,
                   const struct cloud_kinds_wish *wish, struct candidate **out_candidates);

/* True when a catalogue's GPU is of the wanted model, as "A100-80GB" is an "A100". An empty model
 * takes any GPU. */
bool cloud_kinds_is_gpu(const char *gpu, struct text model);

/* Microcredits: a core's hour at a cloud costs what one costs in a market that begins. */
int64_t cloud_kinds_micro_per_usd(void);
int64_t cloud_kinds_credits_micro(int64_t usd_micro, int64_t micro_per_usd);
