/*
 * souk function serve: the function as AWS Lambda runs it, by its Runtime API.
 */
#include "cli/cli.h"
#include "function/host.h"
#include "function/runtime_client.h"
#include "source/remote.h"

struct serve_command {
    const char *runtime_api, *store;
    uint64_t memory_mb;
};

#define SERVE(member) offsetof(struct serve_command, member)
static const struct option serve_options[] = {
    {"runtime_api", OPTION_TEXT, SERVE(runtime_api), "HOST:PORT",
     .help = "Where Lambda's Runtime API is; Lambda sets it.", .is_required = true,
     .environment = "AWS_LAMBDA_RUNTIME_API"},
    {"memory", OPTION_U64, SERVE(memory_mb), "MB",
     .help = "Memory of the function; Lambda sets it.",
     .environment = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", .maximum = HOST_MEMORY_MB_MAX},
    {"store", OPTION_PATH, SERVE(store), "DIR",
     .help = "Folder of the object store for requests that name none: for trying it here."},
};

static int run_serve(void *context, const void *options, struct error *error)
{
    const struct serve_command *wanted = options;
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    const struct cli *cli = context;
    if (remote_credentials_take_environment(&credentials, error) < 0)
        return -1;
    AUTO(handler)
    struct handler *handler =
        handler_new(&(struct handler_options){.clock = &clock_system,
                                              .store = wanted->store,
                                              .credentials = &credentials,
                                              .market_server = cli->common.server,
                                              .market_fingerprint = cli->common.fingerprint});
    const struct runtime_client_options client = {
        .api = wanted->runtime_api,
        .handler = handler,
        .clock = &clock_system,
        .memory_bytes = (int64_t)wanted->memory_mb << 20,
    };
    return runtime_client_run(&client, error);
}

const struct command command_function_serve = {
    .name = "function serve",
    .summary = "Takes calls from AWS Lambda's Runtime API: what runs inside a Lambda function.",
    .details =
        "\"make lambda\" packs it as a custom runtime (provided.al2023). The function's role "
        "needs to read and put objects of the store's bucket; for jobs whose store is a market's, "
        "SOUK_SERVER and SOUK_FINGERPRINT say which. It ends when the API is gone.",
    .example = "AWS_LAMBDA_RUNTIME_API=127.0.0.1:9001 souk function serve",
    COMMAND_OPTIONS(serve_options, serve_command),
    .run = run_serve,
};
