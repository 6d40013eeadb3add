/*
 * Lend, Slurm node: what the daemon prepares for a node before its job starts.
 */
#pragma once

#include "cli/lend_slurm.h"
#include "cli/lend_slurm_market.h"

struct lend_slurm_place {
    const struct cli *cli;
    const struct lend_slurm *lend;
    const char *folder;  /* the daemon's: .../slurm */
    const char *program; /* at the same path on the nodes */
};

/* What the market calls the node. */
const char *lend_slurm_node_name(const struct lend_slurm *lend, struct arena *arena,
                                 const char *node);

/* "2026-11-20 18:00 - 2026-11-21 02:00", in UTC: the whole minutes in between. */
const char *lend_slurm_when(struct arena *arena, int64_t from_ms, int64_t until_ms);

/* Writes the node's settings with a fresh one-time code and fills *out_start; texts live in the
 * arena. */
MUST_CHECK int lend_slurm_prepare(const struct lend_slurm_place *place,
                                  const struct lend_slurm_code *code, struct arena *arena,
                                  const char *node, int64_t limit_ms, struct slurm_start *out_start,
                                  struct error *error);
