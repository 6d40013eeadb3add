/*
 * Lend, Slurm: `souk lend --slurm PARTITION`, a daemon on a machine that submits to Slurm.
 *
 * Every two seconds it looks at nodes, queue and market, and does what cloud/slurm_plan.h says. A
 * node that lends runs `souk slurm-node` in a job: a lender of its own, with its key and its
 * settings in a folder below the daemon's, which the nodes see too:
 *
 *     slurm/tag               by which the daemon knows its jobs again
 *     slurm/beat              a number that changes while the daemon lives
 *     slurm/NODE/config       settings of the node's `souk lend`, secrets its one-time code
 *     slurm/NODE/state        what any lender keeps
 *     slurm/NODE/lend.log     what it says
 */
#pragma once

#include "cli/cli.h"
#include "cloud/slurm_cluster.h"

struct lend_slurm_options {
    const char *partition; /* NULL: this machine is lent, not a partition */
    const char *configuration;
    const char *account;
    const char *qos;
    uint64_t node_max; /* 0: all of the partition */
    uint64_t standby;
    int64_t limit_ms;
};

/* Rows of an option table whose struct has the field `slurm`. */
#define LEND_SLURM_OPTIONS(type)                                                                    \
    {"slurm", OPTION_TEXT, offsetof(struct type, slurm.partition), "PARTITION",                     \
     .help = "Lend the idle nodes of this Slurm partition instead of this machine: each in a job "  \
             "that makes way for others' within seconds. The nodes see --state-dir."},              \
        {"slurm_nodes",    OPTION_U64, offsetof(struct type, slurm.node_max),                       \
         "COUNT",          "0",        "Of a partition, the most nodes to lend at a time; 0: all.", \
         .maximum = 100000},                                                                        \
        {"slurm_standby",                                                                           \
         OPTION_U64,                                                                                \
         offsetof(struct type, slurm.standby),                                                      \
         "COUNT",                                                                                   \
         "1",                                                                                       \
         "Of a partition, idle nodes that lend although no job of the market's waits.",             \
         .maximum = 100000},                                                                        \
        {"slurm_time",                                                                              \
         OPTION_DURATION,                                                                           \
         offsetof(struct type, slurm.limit_ms),                                                     \
         "TIME",                                                                                    \
         "8h",                                                                                      \
         "The time limit of a node's job: leases are taken that end before.",                       \
         .minimum = SLURM_LIMIT_MIN_MS,                                                             \
         .maximum = INT64_C(30) * 24 * 3600 * 1000},                                                \
        {"slurm_account", OPTION_TEXT, offsetof(struct type, slurm.account), "ACCOUNT",             \
         .help = "Slurm's account for these jobs; the user's own by default."},                     \
        {"slurm_qos", OPTION_TEXT, offsetof(struct type, slurm.qos), "QOS",                         \
         .help = "Slurm's quality of service for them; the account's own by default."},             \
    {                                                                                               \
        "slurm_conf", OPTION_TEXT, offsetof(struct type, slurm.configuration), "FILE",              \
            "/etc/slurm/slurm.conf", "Slurm's configuration.", .environment = "SLURM_CONF"          \
    }

struct lend_slurm {
    const struct lend_slurm_options *options;
    const char *state_dir;
    const char *name; /* nodes are NAME-NODE in the market; NULL: NODE */
    /* Of each node's `souk lend`; a value of NULL leaves the default. */
    const struct option_setting *settings;
    size_t setting_count;
};

/* Until SIGTERM or SIGINT, which end all of the nodes' jobs. NOT_FOUND for an unknown partition,
 * UNAVAILABLE while Slurm does not answer at the start. */
MUST_CHECK int lend_slurm_run(const struct cli *cli, const struct lend_slurm *lend,
                              struct error *error);
