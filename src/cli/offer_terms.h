/*
 * Offer terms: what `souk offer make` and `souk offer change` are told, as the API takes it and as
 * people read it.
 */
#pragma once

#include "cli/cli.h"
#include "client/api.h"

/* Every text is NULL when the option was not given. */
struct offer_terms_options {
    const char *cores;
    const char *ram;
    const char *gpus;
    const char *gpu_model;
    const char *gpu_ram;
    const char *disk;
    const char *bandwidth;
    struct option_list roles;
    const char *when;
    const char *zone;
    const char *max_lease;
    const char *spare;
    struct option_list min_price;
    struct option_list audience;
    const char *network;
    const char *install;
    const char *labels;
};

/* The options of both commands; `struct_` has a member `terms` of the struct above. */
#define OFFER_TERMS_OPTION(name_, kind_, struct_, member_, value_, help_, ...)                     \
    {                                                                                              \
        (name_), (kind_), offsetof(struct struct_, terms.member_), (value_), .help = (help_),      \
                                                                             ##__VA_ARGS__         \
    }
#define OFFER_TERMS_OPTIONS(struct_)                                                               \
    OFFER_TERMS_OPTION("cores", OPTION_TEXT, struct_, cores, "CORES",                              \
                       "How much CPU: 4, 0.5, or 50% of what the machine lends."),                 \
        OFFER_TERMS_OPTION("memory", OPTION_TEXT, struct_, ram, "SIZE",                            \
                           "How much memory: 8GiB, or 50%.",                                       \
                           .fields = "ram ram_bytes ram_share_milli"),                             \
        OFFER_TERMS_OPTION("ram", OPTION_TEXT, struct_, ram, "SIZE",                               \
                           "The older name of --memory.", .is_hidden = true),                      \
        OFFER_TERMS_OPTION("gpus", OPTION_TEXT, struct_, gpus, "GPUS",                             \
                           "How many GPUs: 1, or 50%."),                                           \
        OFFER_TERMS_OPTION("gpu_model", OPTION_TEXT, struct_, gpu_model, "MODEL",                  \
                           "Which GPUs, like T4."),                                                \
        OFFER_TERMS_OPTION("gpu_ram", OPTION_TEXT, struct_, gpu_ram, "SIZE",                       \
                           "Memory of each GPU, like 16GiB."),                                     \
        OFFER_TERMS_OPTION("disk", OPTION_TEXT, struct_, disk, "SIZE",                             \
                           "How much disk: 20GiB, or 50%."),                                       \
        OFFER_TERMS_OPTION("bandwidth", OPTION_TEXT, struct_, bandwidth, "RATE",                   \
                           "How much of the network: 20Mbit, 1Gbit."),                             \
        OFFER_TERMS_OPTION("roles", OPTION_LIST, struct_, roles, "ROLE",                           \
                           "What may run: worker, server (a job's parameter server)."),            \
        OFFER_TERMS_OPTION(                                                                        \
            "when", OPTION_TEXT, struct_, when, "WORDS",                                           \
            "always; \"Mon-Fri 18:00-08:00; Sat-Sun 0-24\"; or \"2026-11-20 18:00 - "              \
            "2026-11-21 08:00\"."),                                                                \
        OFFER_TERMS_OPTION("zone", OPTION_TEXT, struct_, zone, "ZONE",                             \
                           "The time zone of --when, like Europe/Berlin; this computer's by "      \
                           "default."),                                                            \
        OFFER_TERMS_OPTION("max_lease", OPTION_TEXT, struct_, max_lease, "TIME",                   \
                           "The longest lease it takes: 8h, or any."),                             \
        OFFER_TERMS_OPTION("min_price", OPTION_LIST, struct_, min_price, "PRICE",                  \
                           "The least it is lent for, in credits an hour: core=0.02,ram=0.001 "    \
                           "(per GiB), gpu=0.2, disk=0.0001 (per GiB); or auto.",                  \
                           .fields = "minimum"),                                                   \
        OFFER_TERMS_OPTION("spare", OPTION_TEXT, struct_, spare, "ON",                             \
                           "on: what is not sold is free for members with less than 1 credit, "    \
                           "until somebody pays for it; off by default."),                         \
        OFFER_TERMS_OPTION("for", OPTION_LIST, struct_, audience, "WHO",                           \
                           "Who may use it: anyone, accounts by name, or group:NAME.",             \
                           .fields = "audience accounts group"),                                   \
        OFFER_TERMS_OPTION(                                                                        \
            "network", OPTION_TEXT, struct_, network, "REACH",                                     \
            "What a lease may reach: none, job (the job's other machines), open (on no "           \
            "machine yet)."),                                                                      \
        OFFER_TERMS_OPTION("install", OPTION_TEXT, struct_, install, "WHAT",                       \
                           "What may be installed for a job: none, wheels, index."),               \
        OFFER_TERMS_OPTION("labels", OPTION_TEXT, struct_, labels, "LABELS",                       \
                           "Packages the machine has: python3-torch,cuda-12.")

/*
 * Writes the body of the request, and what it means, line by line, to `plan`. `machine` is what
 * shares are of. INVALID names the option.
 */
MUST_CHECK int offer_terms_write(struct arena *arena, const struct offer_terms_options *options,
                                 const struct api_machine *machine, int64_t now_ms,
                                 struct buffer *body, struct buffer *plan, struct error *error);
