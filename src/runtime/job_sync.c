/* Job sync: whether the settings under `sync` fit each other and the policy. */
#include "runtime/job_reader_internal.h"
#include "runtime/job_spec.h"

#include <stdio.h>
#include <string.h>

int job_sync_taus(const struct job_sync *sync, uint32_t out_taus[JOB_TAUS_MAX])
{
    int count = 0;
    struct text rest = sync->taus;
    while (rest.size > 0) {
        struct text tau = rest;
        struct error error;
        uint64_t value;
        if (!text_cut(rest, ',', &tau, &rest))
            rest = (struct text){0};
        if (count == JOB_TAUS_MAX || text_parse_u64(tau, &value, &error) < 0 || value < 1 ||
            value > 1000000)
            return -1;
        out_taus[count++] = (uint32_t)value;
    }
    return count;
}

/* A setting that the policy does not have is a mistake: it would silently do nothing. */
static void check_policy(struct job_reader *reader, const struct job_node *root,
                         const struct job_sync *sync)
{
    const struct {
        const char *path;
        bool is_given;
        const char *policies; /* words between blanks */
    } rules[] = {
        {"sync.slack", sync->slack > 0, " ssp "},
        {"sync.backups", sync->backups > 0, " backup "},
        {"sync.staleness", sync->staleness > 0, " hsp "},
        {"sync.epoch_steps", sync->epoch_steps > 0, " hsp "},
        {"sync.schedule", sync->schedule.size > 0, " hsp "},
        {"sync.outer_rate", sync->outer_rate > 0, " adsp auto pace hsp diloco async-local "},
        {"sync.outer_momentum", sync->outer_momentum >= 0, " adsp auto pace diloco async-local "},
        {"sync.deadline", sync->deadline_ms > 0, " auto pace "},
        {"sync.overlap", !text_equal(sync->overlap, TEXT("auto")),
         " adsp auto pace tap async-local "},
        {"sync.taus", sync->taus.size > 0, " adacomm "},
    };
    char word[64], what[192];
    snprintf(word, sizeof word, " " TEXT_FORMAT " ", TEXT_ARGS(sync->policy));
    snprintf(what, sizeof what, "policy " TEXT_FORMAT " has no such setting",
             TEXT_ARGS(sync->policy));
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].is_given && !strstr(rules[i].policies, word))
            job_refuse_path(reader, root, rules[i].path, what);
}

static void check_bounds(struct job_reader *reader, const struct job_node *root,
                         const struct job_sync *sync)
{
    uint32_t taus[JOB_TAUS_MAX];
    const struct {
        const char *path;
        bool is_wrong;
        const char *what;
    } bounds[] = {
        {"sync.compress_momentum", sync->compress_momentum >= 1, "must be below 1"},
        {"sync.trim", !(sync->trim > 0 && sync->trim < 0.5), "must be above 0 and below 0.5"},
        {"sync.density", sync->density <= 0, "must be above 0"},
        {"sync.outer_momentum", sync->outer_momentum >= 1, "must be below 1"},
        {"sync.taus", job_sync_taus(sync, taus) < 0,
         "must be at most 16 whole numbers from 1 to 1000000"},
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].is_wrong)
            job_refuse_path(reader, root, bounds[i].path, bounds[i].what);
}

/* What keeps others from making a push again. */
static void check_verify(struct job_reader *reader, const struct job_node *root,
                         const struct job_spec *spec)
{
    const struct job_sync *sync = &spec->sync;
    const struct {
        bool is_wrong;
        const char *what;
    } needs[] = {
        {text_equal(sync->compress, TEXT("1bit")) || text_equal(sync->compress, TEXT("topk")),
         "needs pushes that arrive whole: compress them by f32, f16, bf16, int8 or auto"},
        {sync->local_steps > JOB_VERIFIED_STEPS_MAX,
         "needs local_steps of 32 at most: after more, machines differ by their rounding"},
        {job_train_peer(&spec->train).size > 0,
         "needs data that every worker has: these never leave their lender"},
        {spec->num_nodes < 3, "needs num_nodes of 3 at least: two that agree tell who is wrong"},
        {sync->servers > 1, "needs one parameter server: a push that is split among several "
                            "cannot be made again by others yet"},
    };
    if (sync->verify <= 0)
        return;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (needs[i].is_wrong)
            job_refuse_path(reader, root, "sync.verify", needs[i].what);
}

static void check_schedule(struct job_reader *reader, const struct job_node *root,
                           const struct job_spec *spec)
{
    if (spec->sync.schedule.size > 0 && spec->num_nodes_max <= spec->num_nodes)
        job_refuse_path(reader, root, "sync.schedule",
                        "needs a range of workers to go through: num_nodes: 1..8");
}

void job_sync_check(struct job_reader *reader, const struct job_node *root,
                    const struct job_spec *spec)
{
    check_policy(reader, root, &spec->sync);
    check_bounds(reader, root, &spec->sync);
    check_verify(reader, root, spec);
    check_schedule(reader, root, spec);
}
