#include "server/startup.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/scope.h"
#include "market/karma.h"
#include "server/hub.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READY_SIZE_MAX = 4 * SERVER_PATH_SIZE,
    WELCOME_SIZE_MAX = 8 * SERVER_TEXT_SIZE + SERVER_PATH_SIZE,
    HOST_PORT_SIZE = ADDRESS_HOST_SIZE + 16, /* brackets, colon and port */
};

static bool is_wildcard(const struct host_port *host_port)
{
    return !host_port->host[0] || !strcmp(host_port->host, "0.0.0.0") ||
           !strcmp(host_port->host, "::");
}

static int check_size(const char *option, const char *value, struct error *error)
{
    if (value && strlen(value) >= SERVER_TEXT_SIZE)
        return error_set(error, ERROR_INVALID, "%s: at most %d bytes", option,
                         SERVER_TEXT_SIZE - 1);
    return 0;
}

int startup_check_address(const struct server_options *options, struct startup_address *out_address,
                          struct error *error)
{
    struct host_port host_port;
    if (host_port_parse(text_of(options->listen), &host_port, error) < 0 ||
        address_resolve(&host_port, &out_address->listen, error) < 0)
        return error_wrap(error, "--listen");
    if (host_port_parse(text_of(options->link_listen), &out_address->link_listen, error) < 0)
        return error_wrap(error, "--link-listen");
    if (check_size("--public-url", options->public_url, error) < 0 ||
        check_size("--link-address", options->link_address, error) < 0)
        return -1;
    const bool is_loopback = address_is_loopback(&out_address->listen);
    out_address->is_wildcard = is_wildcard(&host_port);
    out_address->is_tls = !options->is_behind_proxy && (options->tls_cert || !is_loopback);
    if (options->is_behind_proxy && options->tls_cert)
        return error_set(error, ERROR_INVALID,
                         "--behind-proxy means that the proxy has the certificate: leave out "
                         "--tls-cert");
    if (!options->tls_cert != !options->tls_key)
        return error_set(error, ERROR_INVALID, "--tls-cert and --tls-key are given together");
    const char *url = options->public_url;
    if (url && !is_loopback && text_starts_with(text_of(url), TEXT("http://")))
        return error_set(
            error, ERROR_INVALID,
            "\"%.100s\" is plain HTTP, and tokens would cross the network in the clear: "
            "use https://",
            url);
    return 0;
}

/* "host:port", with brackets around IPv6. */
static void format_host_port(char out[HOST_PORT_SIZE], const char *host, uint16_t port)
{
    const bool has_colon = strchr(host, ':') != NULL;
    snprintf(out, HOST_PORT_SIZE, "%s%.*s%s:%u", has_colon ? "[" : "", ADDRESS_HOST_SIZE - 1, host,
             has_colon ? "]" : "", (unsigned)port);
}

/* This machine's address towards `target`: connecting a datagram socket only asks the routing
 * table, nothing is sent. */
static bool route_source(const char *target, char out[ADDRESS_TEXT_SIZE])
{
    struct error error;
    struct host_port host_port = {.port = 9};
    snprintf(host_port.host, sizeof(host_port.host), "%s", target);
    struct address address, own = {.size = sizeof(own.storage)};
    if (address_resolve(&host_port, &address, &error) < 0)
        return false;
    AUTO_FD int fd = socket(address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address.storage, address.size) < 0 ||
        getsockname(fd, (struct sockaddr *)&own.storage, &own.size) < 0 ||
        address_is_loopback(&own))
        return false;
    address_format_host(&own, out);
    return true;
}

/* How others reach a machine that listens on all its addresses. A bare host name is the last
 * resort, since other machines may not resolve it. The targets are reserved for documentation. */
static void name_this_machine(char out[ADDRESS_HOST_SIZE])
{
    char host[ADDRESS_TEXT_SIZE];
    if (route_source("192.0.2.1", host) || route_source("2001:db8::1", host))
        snprintf(out, ADDRESS_HOST_SIZE, "%s", host);
    else if (gethostname(out, ADDRESS_HOST_SIZE - 1) < 0)
        snprintf(out, ADDRESS_HOST_SIZE, "localhost");
    out[ADDRESS_HOST_SIZE - 1] = '\0';
}

void startup_name_addresses(struct server *server, const struct startup_address *address)
{
    const struct server_options *options = &server->options;
    const char *scheme = address->is_tls ? "https" : "http";
    const uint16_t port = http_server_port(server->http);
    const bool is_link_any = is_wildcard(&address->link_listen);
    char host[ADDRESS_TEXT_SIZE], name[ADDRESS_HOST_SIZE] = "", host_port[HOST_PORT_SIZE];
    address_format_host(&address->listen, host);
    if (address->is_wildcard || is_link_any)
        name_this_machine(name);
    server->is_tls = address->is_tls;
    server->is_address_guessed =
        (address->is_wildcard && !options->public_url) || (is_link_any && !options->link_address);

    format_host_port(host_port, address->is_wildcard ? name : host, port);
    if (options->public_url)
        snprintf(server->url, sizeof(server->url), "%s", options->public_url);
    else
        snprintf(server->url, sizeof(server->url), "%s://%s", scheme, host_port);
    format_host_port(host_port, address->is_wildcard ? "127.0.0.1" : host, port);
    snprintf(server->local_url, sizeof(server->local_url), "%s://%s", scheme, host_port);

    format_host_port(host_port, is_link_any ? name : address->link_listen.host,
                     hub_port(server->hub));
    snprintf(server->link_address, sizeof(server->link_address), "%s",
             options->link_address ? options->link_address : host_port);
}

/* ---- First changes --------------------------------------------------------------------------- */

struct first_change {
    struct engine_request request;
    struct server *server;
    bool is_announcement;
};

static void announce(struct server *server);

static void change_done(struct engine_request *request, const struct error *error)
{
    struct first_change *change = (struct first_change *)request;
    if (error)
        log_event(LOG_ERROR, "first_change_failed", "error=\"%s\"", error->message);
    else if (change->is_announcement)
        announce(change->server);
    free(change);
}

static struct first_change *change_new(struct server *server)
{
    struct first_change *change = calloc(1, sizeof(*change));
    ASSERT(change);
    change->server = server;
    change->request.loop = server->loop;
    change->request.on_done = change_done;
    return change;
}

static int submit(struct server *server, struct first_change *change, struct error *error)
{
    if (engine_submit(server->engine, &change->request, true, error) == 0)
        return 0;
    free(change);
    return -1;
}

/* Karma has its own first credits, no days to wait for them and nothing to reclaim. */
static int choose_economy(const struct server *server, struct core_settings *wanted,
                          struct error *error)
{
    const enum economy before = wanted->economy;
    if (server->options.economy == SERVER_ECONOMY_CREDITS)
        wanted->economy = ECONOMY_CREDITS;
    if (server->options.economy == SERVER_ECONOMY_KARMA)
        wanted->economy = ECONOMY_KARMA;
    if (wanted->economy == ECONOMY_KARMA && before != ECONOMY_KARMA) {
        wanted->grant_micro = KARMA_START_MICRO;
        wanted->grant_earned_micro = 0;
        wanted->grant_daily_micro = LEDGER_SUPPLY_MAX;
        wanted->dormant_basis_points = 0;
    }
    const struct core *core = engine_core(server->engine);
    if (wanted->economy != before && core_balance(core, ACCOUNT_MINT)->granted_micro != 0)
        return error_set(error, ERROR_CONFLICT,
                         "--economy is chosen for a new market; accounts of this one have credits "
                         "already: give it another --data");
    return 0;
}

static int change_settings(struct server *server, struct error *error)
{
    const struct core *core = engine_core(server->engine);
    const struct core_settings *now = core_settings(core);
    struct core_settings *wanted = &server->settings;
    *wanted = *now;
    if (choose_economy(server, wanted, error) < 0)
        return -1;
    if (server->options.grant_microcredits >= 0)
        wanted->grant_micro = server->options.grant_microcredits;
    if (server->options.fee_basis_points >= 0)
        wanted->fee_basis_points = server->options.fee_basis_points;
    if (server->options.has_slot_offset)
        wanted->slot_offset_ms = server->options.slot_offset_ms;
    if (wanted->slot_offset_ms != now->slot_offset_ms &&
        core_slots_are_fixed(core, clock_utc_ms(server->clock)))
        return error_set(error, ERROR_CONFLICT,
                         "--slot-offset: this market has set prices by another one already");
    if (wanted->slot_offset_ms < -SLOT_OFFSET_MS_MAX || wanted->slot_offset_ms > SLOT_OFFSET_MS_MAX)
        return error_set(error, ERROR_INVALID, "--slot-offset: at most 14 hours either way");
    if (wanted->grant_micro == now->grant_micro &&
        wanted->fee_basis_points == now->fee_basis_points && wanted->economy == now->economy &&
        wanted->slot_offset_ms == now->slot_offset_ms)
        return 0;
    struct first_change *change = change_new(server);
    change->request.has_command = true;
    change->request.command =
        (struct command){.kind = COMMAND_CHANGE_SETTINGS, .change_settings = *wanted};
    return submit(server, change, error);
}

static void token_path(const struct server *server, char out[SERVER_PATH_SIZE])
{
    snprintf(out, SERVER_PATH_SIZE, "%s/keys/operator.token", server->options.data_dir);
}

/* The operator's token is in a file only the operator can read; a lost file gets a new token. */
static int add_operator_token(struct server *server, struct error *error)
{
    char path[SERVER_PATH_SIZE];
    token_path(server, path);
    struct buffer stored AUTO_BUFFER;
    buffer_init(&stored, 1024);
    struct error reason;
    uint8_t hash[KEYS_HASH_SIZE];
    if (file_read(path, &stored, &reason) == 0) {
        token_hash(text_trim(buffer_text(&stored)), hash);
        const struct token *token = core_token_by_hash(engine_core(server->engine), hash);
        if (token && !token->is_revoked)
            return 0;
    } else if (reason.code != ERROR_NOT_FOUND) {
        *error = reason;
        return -1;
    }
    char token[KEYS_TOKEN_SIZE];
    token_new("operator", token);
    const struct text parts[] = {text_of(token), TEXT("\n")};
    if (file_replace(path, parts, 2, 0600, error) < 0)
        return -1;
    struct first_change *change = change_new(server);
    change->request.has_command = true;
    change->request.command = (struct command){
        .kind = COMMAND_ADD_TOKEN,
        .add_token = {.account = ACCOUNT_OPERATOR,
                      .scopes = TOKEN_SCOPE_ALL,
                      .label = TEXT("operator.token")},
    };
    token_hash(text_of(token), change->request.command.add_token.hash);
    return submit(server, change, error);
}

int startup_prepare(struct server *server, struct error *error)
{
    if (change_settings(server, error) < 0)
        return error_wrap(error, "settings");
    return add_operator_token(server, error);
}

/* ---- Ready ----------------------------------------------------------------------------------- */

static void write_ready(struct server *server, struct buffer *line)
{
    char path[SERVER_PATH_SIZE];
    token_path(server, path);
    struct json_writer writer;
    json_writer_init(&writer, line);
    json_object_begin(&writer);
    json_field_bool(&writer, "ready", true);
    json_field_string(&writer, "url", server->url);
    json_field_u64(&writer, "http_port", http_server_port(server->http));
    json_field_string(&writer, "link_address", server->link_address);
    json_field_u64(&writer, "link_port", hub_port(server->hub));
    json_field_string(&writer, "fingerprint", keys_fingerprint(server->keys));
    json_field_string(&writer, "operator_token_file", path);
    json_object_end(&writer);
    buffer_append_string(line, "\n");
}

/* For the person who started it; the log line beside it is for programs. */
static void welcome(const struct server *server)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, WELCOME_SIZE_MAX);
    const char *fingerprint = server->is_tls ? keys_fingerprint(server->keys) : NULL;
    buffer_append_format(&out, "\nThe market is open.\n  page and API  %s\n  links         %s\n",
                         server->url, server->link_address);
    if (fingerprint)
        buffer_append_format(&out, "  fingerprint   %s\n", fingerprint);
    char path[SERVER_PATH_SIZE];
    token_path(server, path);
    buffer_append_format(&out, "  operator      the token in %s\n", path);
    if (server->is_address_guessed)
        buffer_append_string(&out,
                             "  It listens on every address of this machine and tells others the "
                             "one above;\n  --public-url and --link-address change that.\n");
    buffer_append_format(&out,
                         "To go on, open an account:\n  souk account open --name NAME --server %s",
                         server->url);
    if (fingerprint)
        buffer_append_format(&out, " --fingerprint %s", fingerprint);
    buffer_append_string(&out, "\n\n");
    /* One write, so that lines of the log do not come between. */
    if (write(STDERR_FILENO, out.data, out.size) < 0)
        log_event(LOG_DEBUG, "welcome_not_shown", "errno=%d", errno);
}

static void announce(struct server *server)
{
    log_event(LOG_INFO, "ready", "url=%s link=%s", server->url, server->link_address);
    welcome(server);
    if (server->options.ready_fd < 0)
        return;
    struct buffer line AUTO_BUFFER;
    buffer_init(&line, READY_SIZE_MAX);
    write_ready(server, &line);
    /* Whoever waits may be gone; that is not the market's trouble. */
    if (write(server->options.ready_fd, line.data, line.size) != (ssize_t)line.size)
        log_event(LOG_WARN, "ready_not_told", "errno=%d", errno);
    close(server->options.ready_fd);
    server->options.ready_fd = -1;
}

void startup_announce(struct server *server)
{
    struct first_change *change = change_new(server);
    change->is_announcement = true; /* comes after the changes queued before it */
    struct error error;
    if (submit(server, change, &error) < 0)
        log_event(LOG_ERROR, "not_ready", "error=\"%s\"", error.message);
}
