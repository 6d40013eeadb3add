/*
 * Lend, settings: what `souk lend` is told, and the same for another `souk lend`, by its file.
 */
#pragma once

#include "cli/lend_functions.h"
#include "cli/lend_guard.h"
#include "cli/lend_slurm.h"

struct lend_options {
    const char *state_dir;
    const char *code;
    const char *name;
    const char *cores;
    const char *memory;
    const char *disk;
    const char *cache;
    int64_t gpus_max;
    struct option_list roles;
    int network;
    struct option_list resolvers, closed_networks;
    const char *open_rate;
    int images; /* of no_or_yes */
    const char *install, *index_url;
    const char *when;
    const char *zone;
    struct option_list labels, hide_labels, data, software;
    bool is_new, is_same;
    int64_t return_ms, look_ms;
    bool is_direct;
    const char *system_root;
    const char *display;
    struct lend_guard_options guard;
    struct lend_function_options functions;
    struct lend_slurm_options slurm;
    int log_level;
    bool is_doctor;
    int64_t ready_fd;
    int64_t stop_fd;
};

/* The words of --network and --images, ended by NULL. */
extern const char *const lend_networks[]; /* enum offer_network */
extern const char *const lend_no_or_yes[];
extern const char *const lend_log_levels[];

enum { LEND_SETTING_MAX = 24 };

/* What the daemons of a partition's nodes are told of it; how many. Texts live in the arena.
 * INVALID for what is of one machine alone. */
MUST_CHECK int lend_settings_of_nodes(struct arena *arena, const struct lend_options *wanted,
                                      struct option_setting out[LEND_SETTING_MAX],
                                      size_t *out_count, struct error *error);
