#include "cli/lend_functions.h"

#include "cli/lend_settings.h"

static int refuse_others(const struct lend_options *wanted, const struct peer_options *peer,
                         struct error *error)
{
    const struct {
        bool is_given;
        const char *flag;
    } others[] = {
        {wanted->cores != NULL, "--cores"},
        {wanted->memory != NULL, "--memory"},
        {wanted->roles.count > 0, "--roles"},
        {wanted->network > OFFER_NETWORK_JOB, "--network open"},
        {wanted->images == 1, "--images yes"},
        {peer->offers_install, "--install"},
        {wanted->data.count > 0, "--data"},
        {wanted->software.count > 0, "--software"},
        {wanted->gpus_max > 0, "--gpus"},
        {wanted->slurm.partition != NULL, "--slurm"},
    };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (others[i].is_given)
            return error_set(error, ERROR_INVALID,
                             "%s does not go with --functions: they train, and have the memory and "
                             "the share of a core that --function-memory says",
                             others[i].flag);
    return 0;
}

int lend_functions_parse(const struct lend_options *wanted, struct peer_options *peer,
                         struct error *error)
{
    const struct lend_function_options *functions = &wanted->functions;
    if (functions->count == 0)
        return 0;
    if (refuse_others(wanted, peer, error) < 0)
        return -1;
    const int64_t memory_mb = (int64_t)(functions->count * functions->memory_mb);
    peer->functions = (struct peer_functions){.count = (uint32_t)functions->count,
                                              .memory_mb = (uint32_t)functions->memory_mb,
                                              .time_ms = (uint32_t)functions->time_ms,
                                              .keep_warm_ms = (uint32_t)functions->keep_warm_ms};
    peer->ram_bytes = memory_mb << 20;
    peer->cores_milli = (memory_mb * 1000 + HOST_MB_PER_CORE - 1) / HOST_MB_PER_CORE;
    peer->gpus_max = 0;
    peer->roles = PEER_ROLE_WORKER;
    peer->network = OFFER_NETWORK_NONE;
    peer->install = OFFER_INSTALL_NONE;
    return 0;
}
