/*
 * Run spec: the flags of a command that leases machines and runs something on each become the job
 * file they stand for, and are read by its rules.
 */
#pragma once

#include "base/options.h"
#include "runtime/job_spec.h"

/* Of `souk run`, and of what runs as one. What is NULL or 0 is left out, but for those of which a
 * default is said. */
struct run_options {
    uint64_t nodes;
    const char *name;
    const char *files;
    const char *cpus, *memory, *disk, *gpus, *image;
    const char *network, *runtime; /* "none", "command" as a rule */
    struct option_list labels, envs, secrets;
    int64_t max_rtt_ms, max_run_time_ms;
    int64_t max_total_cost_micro, max_hourly_cost_micro;
    const char *start; /* "now" as a rule */
    bool is_spare, is_waiting, is_detached, is_yes, is_relayed;
    struct option_list command;
};

MUST_CHECK int run_spec_make(struct arena *arena, const struct run_options *wanted,
                             struct job_spec *out_spec, struct error *error);

/* As one word of a shell: 'it'\''s'. */
void run_spec_quote(struct buffer *script, const char *word);
