/*
 * Options of `souk lend` about the machine's owner: what is watched, and when work yields.
 */
#pragma once

#include "base/options.h"
#include "peer/peer.h"

struct lend_guard_options {
    bool is_watching;
    bool is_metered;
    int64_t yield_cpu_milli; /* shares, in thousandths */
    int64_t freeze_cpu_milli;
    int64_t yield_gpu_milli;
    const char *keep_memory;
    int64_t input_quiet_ms;
    int64_t max_temperature;
    int64_t resume_after_ms;
    int on_input, on_battery, on_lid, on_metered;
};

/* Choices of the options that say what to do: in the order of enum guard_level. */
extern const char *const lend_guard_choices[];

/* Rows of an option table whose struct has the field `guard`. */
#define LEND_GUARD_OPTIONS(type)                                                                   \
    {"watch", OPTION_FLAG, offsetof(struct type, guard.is_watching), .default_text = "true",       \
     .help = "Make way for whoever uses this machine; --no-watch: nobody does."},                  \
        {"yield_cpu",                                                                              \
         OPTION_SHARE,                                                                             \
         offsetof(struct type, guard.yield_cpu_milli),                                             \
         "SHARE",                                                                                  \
         "10%",                                                                                    \
         "Leases get what is left over once other programs use so much of the processors."},       \
        {"freeze_cpu",                                                                             \
         OPTION_SHARE,                                                                             \
         offsetof(struct type, guard.freeze_cpu_milli),                                            \
         "SHARE",                                                                                  \
         "25%",                                                                                    \
         "Leases are held still once other programs use so much of the processors."},              \
        {"keep_memory",                                                                            \
         OPTION_TEXT,                                                                              \
         offsetof(struct type, guard.keep_memory),                                                 \
         "SIZE",                                                                                   \
         NULL,                                                                                     \
         "Free memory that is the owner's: with less, leases are held still, and given up if "     \
         "that "                                                                                   \
         "does not help; 2GiB, or 10%, which is the default, at most 2 GiB."},                     \
        {"yield_gpu",                                                                              \
         OPTION_SHARE,                                                                             \
         offsetof(struct type, guard.yield_gpu_milli),                                             \
         "SHARE",                                                                                  \
         "20%",                                                                                    \
         "Leases are held still once other programs use so much of a GPU."},                       \
        {"on_input",                                                                               \
         OPTION_CHOICE,                                                                            \
         offsetof(struct type, guard.on_input),                                                    \
         "WHAT",                                                                                   \
         "low",                                                                                    \
         "What leases get while somebody is at the machine: full, low (what is left over) or "     \
         "frozen.",                                                                                \
         .choices = lend_guard_choices},                                                           \
        {"input_quiet",                                                                            \
         OPTION_DURATION,                                                                          \
         offsetof(struct type, guard.input_quiet_ms),                                              \
         "TIME",                                                                                   \
         "3m",                                                                                     \
         "Nobody is at the machine after so long without a key or the pointer."},                  \
        {"on_battery",                                                                             \
         OPTION_CHOICE,                                                                            \
         offsetof(struct type, guard.on_battery),                                                  \
         "WHAT",                                                                                   \
         "frozen",                                                                                 \
         "The same, while it runs on its battery.",                                                \
         .choices = lend_guard_choices},                                                           \
        {"on_lid",                                                                                 \
         OPTION_CHOICE,                                                                            \
         offsetof(struct type, guard.on_lid),                                                      \
         "WHAT",                                                                                   \
         "low",                                                                                    \
         "The same, while its lid is closed.",                                                     \
         .choices = lend_guard_choices},                                                           \
        {"on_metered",                                                                             \
         OPTION_CHOICE,                                                                            \
         offsetof(struct type, guard.on_metered),                                                  \
         "WHAT",                                                                                   \
         "frozen",                                                                                 \
         "The same, while its network is paid for by the byte.",                                   \
         .choices = lend_guard_choices},                                                           \
        {"metered", OPTION_FLAG, offsetof(struct type, guard.is_metered),                          \
         .help = "The network is paid for by the byte, whatever the machine thinks."},             \
        {"max_temperature",                                                                        \
         OPTION_I64,                                                                               \
         offsetof(struct type, guard.max_temperature),                                             \
         "DEGREES",                                                                                \
         "90",                                                                                     \
         "Leases are held still when a processor is hotter than so many degrees Celsius.",         \
         .minimum = 30,                                                                            \
         .maximum = 120},                                                                          \
    {                                                                                              \
        "resume_after", OPTION_DURATION, offsetof(struct type, guard.resume_after_ms), "TIME",     \
            "10s",                                                                                 \
            "How long it has to be quiet before work goes on; longer each time that was "          \
            "too early.",                                                                          \
            .minimum = 100, .maximum = 86400000                                                    \
    }

/* Fills the part of `peer` that is about the owner. */
MUST_CHECK int lend_guard_parse(const struct lend_guard_options *options, struct peer_options *peer,
                                struct error *error);
