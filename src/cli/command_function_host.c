/*
 * souk function host: functions on this machine, called as Lambda's are.
 */
#include "base/json.h"
#include "cli/function_here.h"
#include "cli/function_token.h"
#include "cli/listen.h"
#include "cli/output.h"
#include "function/invoke_server.h"
#include "source/remote.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

struct host_command {
    const char *listen, *tls_cert, *tls_key, *name, *store, *state_dir, *token_file;
    bool is_behind_proxy, has_network;
    uint64_t memory_mb, concurrency;
    int64_t time_ms, cpu_milli, keep_warm_ms;
};

#define HOST(member) offsetof(struct host_command, member)
static const struct option host_options[] = {
    {"listen", OPTION_TEXT, HOST(listen), "ADDRESS", "127.0.0.1:9001",
     "Where to listen; other than loopback only with TLS."},
    {"tls_cert", OPTION_PATH, HOST(tls_cert), "FILE", .help = "Certificate (PEM) for HTTPS."},
    {"tls_key", OPTION_PATH, HOST(tls_key), "FILE", .help = "Its key (PEM)."},
    {"behind_proxy", OPTION_FLAG, HOST(is_behind_proxy),
     .help = "A proxy in front ends TLS: take plain HTTP on any address."},
    {"name", OPTION_TEXT, HOST(name), "NAME", "souk-train", "What the function is called."},
    {"store", OPTION_PATH, HOST(store), "DIR", "{state}/function/store",
     "Folder of the object store that functions see."},
    {"network", OPTION_FLAG, HOST(has_network),
     .help = "Functions may use the network, and the AWS_* variables set here: for jobs whose "
             "store is s3://, or that of the market of --server."},
    {"memory", OPTION_U64, HOST(memory_mb), "MB", "256",
     "Memory of an instance; it has MB / 1769 of a core.", .minimum = HOST_MEMORY_MB_MIN,
     .maximum = HOST_MEMORY_MB_MAX},
    {"timeout", OPTION_DURATION, HOST(time_ms), "DURATION", "60s", "What a call may take.",
     .minimum = 100, .maximum = HOST_TIME_MS_MAX},
    {"concurrency", OPTION_U64, HOST(concurrency), "COUNT", "150",
     "Calls at a time; more are answered by TooManyRequestsException.", .minimum = 1,
     .maximum = HOST_CONCURRENCY_MAX},
    {"cpus", OPTION_CORES, HOST(cpu_milli), "CORES",
     .help = "The most an instance has of a core, whatever its memory."},
    {"keep_warm", OPTION_DURATION, HOST(keep_warm_ms), "DURATION", "5m",
     "How long an instance without calls is kept.", .minimum = 1, .maximum = 86400000},
    {"state_dir", OPTION_PATH, HOST(state_dir), "DIR", "{state}/function/host",
     "Folder for notes of what runs; of one host at a time."},
    {"token_file", OPTION_PATH, HOST(token_file), "FILE", "{state}/function/token",
     "File with the token that callers give; made if it is not there."},
};

static void on_signal(void *context)
{
    loop_stop(context);
}

static int check_name(const char *name, struct error *error)
{
    const size_t size = strlen(name);
    const char *allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    return size > 0 && size <= 64 && strspn(name, allowed) == size
               ? 0
               : error_set(error, ERROR_INVALID,
                           "--name: must be 1 to 64 letters, digits, '-' and '_'");
}

static void show(const struct cli *cli, const struct host_command *wanted, const char *url)
{
    if (!cli->common.json) {
        output_note(cli, "%s: %" PRIu64 " MB, %" PRIu64 " calls at a time", wanted->name,
                    wanted->memory_mb, wanted->concurrency);
        output_note(cli, "  listens %s", url);
        output_note(cli, "  store   %s", wanted->store);
        output_note(cli, "  token   in %s", wanted->token_file);
        return;
    }
    struct buffer line AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&line, 1 << 14);
    json_writer_init(&writer, &line);
    json_object_begin(&writer);
    json_field_bool(&writer, "ready", true);
    json_field_string(&writer, "url", url);
    json_field_string(&writer, "name", wanted->name);
    json_field_string(&writer, "store", wanted->store);
    json_field_string(&writer, "token_file", wanted->token_file);
    json_object_end(&writer);
    output_json(buffer_text(&line));
    fflush(stdout);
}

static int serve(const struct cli *cli, const struct host_command *wanted, struct loop *loop,
                 struct error *error)
{
    AUTO(function_here) struct function_here *here = NULL;
    AUTO(invoke_server) struct invoke_server *server = NULL;
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    struct tls_certificate certificate AUTO_TLS_CERTIFICATE;
    tls_certificate_init(&certificate);
    const struct listen_options listen = {wanted->listen, wanted->tls_cert, wanted->tls_key,
                                          wanted->is_behind_proxy};
    struct invoke_server_options options = {.loop = loop, .name = wanted->name};
    if (listen_find(&listen, &options.listen, &certificate, error) < 0 ||
        function_token_make(cli->arena, wanted->token_file, &options.token, error) < 0 ||
        (wanted->has_network && remote_credentials_take_environment(&credentials, error) < 0))
        return -1;
    if (wanted->tls_cert) {
        options.certificate_pem = buffer_string(&certificate.certificate_pem);
        options.key_pem = buffer_string(&certificate.key_pem);
    }
    const struct function_here_options place = {
        .state_dir = wanted->state_dir,
        .store = wanted->store,
        .host = {.loop = loop,
                 .memory_mb = (uint32_t)wanted->memory_mb,
                 .time_ms = wanted->time_ms,
                 .concurrency = (uint32_t)wanted->concurrency,
                 .cpu_max_milli = wanted->cpu_milli,
                 .keep_warm_ms = wanted->keep_warm_ms,
                 .has_network = wanted->has_network,
                 .credentials = &credentials,
                 .market_server = cli->common.server,
                 .market_fingerprint = cli->common.fingerprint,
                 .log_fd = STDERR_FILENO},
    };
    if (function_here_open(&place, &here, error) < 0)
        return -1;
    options.host = here->host;
    if (invoke_server_open(&options, &server, error) < 0)
        return -1;
    char url[LISTEN_URL_SIZE];
    listen_url(&listen, &options.listen, invoke_server_port(server), url);
    show(cli, wanted, url);
    return loop_run(loop, error);
}

static int run_host(void *context, const void *options, struct error *error)
{
    const struct host_command *wanted = options;
    AUTO(loop) struct loop *loop = NULL;
    struct loop_signal *term = NULL, *interrupt = NULL;
    if (check_name(wanted->name, error) < 0 || loop_open(&clock_system, &loop, error) < 0)
        return -1;
    int result = loop_signal_open(loop, SIGTERM, on_signal, loop, &term, error);
    if (result == 0)
        result = loop_signal_open(loop, SIGINT, on_signal, loop, &interrupt, error);
    if (result == 0)
        result = serve(context, wanted, loop, error);
    loop_signal_free(term);
    loop_signal_free(interrupt);
    return result;
}

const struct command command_function_host = {
    .name = "function host",
    .summary = "Runs functions that train on this machine, called as AWS Lambda's are.",
    .details =
        "POST /2015-03-31/functions/NAME/invocations takes one request (docs/functions.md) and "
        "answers when it is done; GET and PUT .../configuration tell and change memory and "
        "timeout. Each call has a sandbox of its own, which stays warm for the next. Calls carry "
        "the token as \"Authorization: Bearer TOKEN\". With --json one line with the address is "
        "printed once calls are taken.",
    .example = "souk function host --memory 512 --concurrency 16",
    COMMAND_OPTIONS(host_options, host_command),
    .run = run_host,
};
