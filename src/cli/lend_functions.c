#include "cli/lend_functions.h"

#include "cli/function_token.h"
#include "cli/lend_function_price.h"
#include "cli/lend_settings.h"
#include "function/invoker.h"
#include "function/object_store.h"
#include "peer/function_share.h"
#include "source/remote.h"

enum { MEMORY_MB_DEFAULT = 512 };

static int refuse_others(const struct lend_options *wanted, const struct peer_options *peer,
                         bool is_elsewhere, struct error *error)
{
    const struct {
        bool is_given;
        const char *flag;
    } others[] = {
        {wanted->cores != NULL, "--cores"},
        {wanted->memory != NULL && !is_elsewhere, "--memory"},
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

/* Those that are called over HTTP, and where they and leases meet. */
static int find_elsewhere(struct arena *arena, const struct lend_function_options *wanted,
                          struct remote_credentials *credentials, struct peer_functions *functions,
                          struct error *error)
{
    const bool is_remote = object_store_is_remote(text_of(wanted->store));
    if (!wanted->url && !wanted->is_lambda)
        return wanted->store ? error_set(error, ERROR_INVALID,
                                         "--function-store: give --function-url or "
                                         "--function-lambda, too")
                             : 0;
    if (!wanted->store || (wanted->is_lambda && !is_remote))
        return error_set(error, ERROR_INVALID,
                         "--function-store: the folder of the host, s3://... or market; Lambda's "
                         "need one of the latter");
    const bool is_s3 = is_remote && !object_store_is_market(text_of(wanted->store));
    if ((wanted->is_lambda || is_s3) && remote_credentials_take_environment(credentials, error) < 0)
        return -1;
    if (!wanted->is_lambda &&
        function_token_read(arena, wanted->token_file, &functions->token, error) < 0)
        return error_wrap(error, "--function-token-file");
    functions->name = wanted->name;
    functions->url = wanted->url;
    functions->store = wanted->store;
    functions->credentials = credentials;
    return 0;
}

int lend_functions_parse(struct arena *arena, const struct lend_options *wanted,
                         struct remote_credentials *credentials, struct peer_options *peer,
                         struct error *error)
{
    const struct lend_function_options *functions = &wanted->functions;
    if (functions->count == 0)
        return functions->url || functions->is_lambda || functions->store || functions->memory_mb
                   ? error_set(error, ERROR_INVALID, "--functions: how many at a time?")
                   : 0;
    struct lend_function_price price = {0};
    if (functions->price && lend_function_price_read(text_of(functions->price), &price, error) < 0)
        return -1;
    /* Functions here leave room for the process that calls them. */
    const bool is_elsewhere = functions->url || functions->is_lambda;
    if (refuse_others(wanted, peer, is_elsewhere, error) < 0)
        return -1;
    const uint64_t each_mb = functions->memory_mb ? functions->memory_mb : MEMORY_MB_DEFAULT;
    const int64_t memory_mb = is_elsewhere ? (int64_t)(functions->count * each_mb)
                                           : function_share_lent_mb(functions->count, each_mb);
    peer->functions = (struct peer_functions){.count = (uint32_t)functions->count,
                                              .memory_mb = (uint32_t)each_mb,
                                              .time_ms = (uint32_t)functions->time_ms,
                                              .keep_warm_ms = (uint32_t)functions->keep_warm_ms,
                                              .process_bytes = peer->ram_bytes,
                                              .process_share_milli = peer->ram_share_milli};
    peer->ram_share_milli = 0;
    peer->ram_bytes = memory_mb << 20;
    peer->cores_milli = (memory_mb * 1000 + HOST_MB_PER_CORE - 1) / HOST_MB_PER_CORE;
    lend_function_price_set(price.is_dollars ? 0 : price.micro, peer);
    peer->gpus_max = 0;
    peer->roles = PEER_ROLE_WORKER;
    peer->network = OFFER_NETWORK_NONE;
    peer->install = OFFER_INSTALL_NONE;
    return find_elsewhere(arena, functions, credentials, &peer->functions, error);
}

int lend_functions_configure(const struct peer_functions *functions, bool *out_is_arm64,
                             struct error *error)
{
    AUTO(loop) struct loop *loop = NULL;
    AUTO(invoker) struct invoker *invoker = NULL;
    if (!functions->name)
        return 0;
    if (loop_open(&clock_system, &loop, error) < 0)
        return -1;
    const struct invoker_http_options options = {.loop = loop,
                                                 .url = functions->url,
                                                 .name = functions->name,
                                                 .token = functions->token,
                                                 .credentials = functions->credentials,
                                                 .concurrent_max = 1};
    if (invoker_open_http(&options, &invoker, error) < 0)
        return -1;
    if (invoker_configure(invoker, functions->memory_mb, functions->time_ms, error) < 0)
        return -1;
    *out_is_arm64 = invoker->is_arm64;
    return 0;
}
