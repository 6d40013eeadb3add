#include "peer/servers.h"

#include "base/assert.h"
#include "base/json_schema.h"
#include "base/log.h"
#include "peer/enlist.h"

#include <inttypes.h>
#include <stdlib.h>

enum { REPLY_SIZE_MAX = 65536, TIMEOUT_MS = 10000, RETURN_MS = 5 * 60000 };

struct servers {
    struct loop *loop;
    struct http_client *client;
    struct identity *identity;
    char urls[SERVERS_MAX][IDENTITY_URL_SIZE];
    size_t count;
    size_t at;     /* the one tried or linked now */
    bool is_known; /* `link_address` is its link port, as far as anybody knows */
    char link_address[IDENTITY_ADDRESS_SIZE];

    struct http_transfer *transfer;
    size_t asked; /* which the transfer asks */
    servers_function *callback;
    void *context;

    struct loop_timer *return_timer;
    int64_t return_ms;
    void (*on_better)(void *context);
    void *better_context;
};

/* ---- What a server says of itself --------------------------------------------------------------
 */

struct reply {
    uint8_t public_key[IDENTITY_KEY_SIZE];
    char link_address[IDENTITY_ADDRESS_SIZE];
};

static const struct json_field reply_fields[] = {
    {"public_key", JSON_HEX, offsetof(struct reply, public_key), .is_required = true,
     .size_max = IDENTITY_KEY_SIZE},
    {"link_address", JSON_CHARS, offsetof(struct reply, link_address), .is_required = true,
     .size_max = IDENTITY_ADDRESS_SIZE},
};
static const struct json_schema reply_schema =
    JSON_SCHEMA_LENIENT("the market's answer", reply_fields, struct reply);

static int read_reply(const struct servers *servers, const char *url,
                      const struct http_response *response, struct reply *out_reply,
                      struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(REPLY_SIZE_MAX);
    const struct enrolment *enrolment = identity_enrolment(servers->identity);
    struct host_port ignored;
    struct reply reply = {0};
    if (response->status != 200)
        return error_set(error, ERROR_UNAVAILABLE, "%.100s answers with status %d", url,
                         response->status);
    if (json_read(arena, buffer_text(&response->body), &reply_schema, &reply, error) < 0 ||
        host_port_parse(text_of(reply.link_address), &ignored, error) < 0)
        return error_wrap(error, "%.100s", url);
    if (memcmp(reply.public_key, enrolment->server_public_key, sizeof(reply.public_key)) != 0)
        return error_set(error, ERROR_REFUSED,
                         "%.100s is another market than the one this machine is enlisted at: its "
                         "key differs; to enlist there, give a code of it",
                         url);
    *out_reply = reply;
    return 0;
}

static int ask(struct servers *servers, size_t index, http_client_function *callback,
               struct error *error)
{
    char url[IDENTITY_URL_SIZE + 16];
    const struct enrolment *enrolment = identity_enrolment(servers->identity);
    snprintf(url, sizeof(url), "%s/v1/server", servers->urls[index]);
    const bool is_pinned =
        enrolment->fingerprint[0] && text_starts_with(text_of(url), TEXT("https"));
    const struct http_call_options options = {
        .url = url,
        .response_max = REPLY_SIZE_MAX,
        .timeout_ms = TIMEOUT_MS,
        .pinned_fingerprint = is_pinned ? enrolment->fingerprint : NULL,
    };
    servers->asked = index;
    return http_client_start(servers->client, &options, callback, servers, &servers->transfer,
                             error);
}

/* ---- Locating ----------------------------------------------------------------------------------
 */

static void located(struct servers *servers, const struct error *reason)
{
    servers_function *callback = TAKE(servers->callback);
    struct host_port target;
    struct error error;
    if (!callback)
        return;
    if (!reason && host_port_parse(text_of(servers->link_address), &target, &error) < 0)
        reason = &error;
    callback(servers->context, reason ? NULL : &target, reason);
}

static void on_answer(void *context, struct http_response *response, const struct error *reason)
{
    struct servers *servers = context;
    struct reply reply;
    struct error error;
    servers->transfer = NULL;
    if (!reason && read_reply(servers, servers->urls[servers->asked], response, &reply, &error) < 0)
        reason = &error;
    if (!reason) {
        memcpy(servers->link_address, reply.link_address, sizeof(servers->link_address));
        servers->is_known = true;
    }
    located(servers, reason);
}

void servers_locate(struct servers *servers, servers_function *callback, void *context)
{
    ASSERT(!servers->callback);
    struct error error;
    loop_timer_stop(servers->return_timer);
    if (servers->transfer)
        http_transfer_cancel(TAKE(servers->transfer));
    servers->callback = callback;
    servers->context = context;
    if (servers->is_known)
        located(servers, NULL);
    else if (ask(servers, servers->at, on_answer, &error) < 0)
        located(servers, &error);
}

void servers_failed(struct servers *servers)
{
    servers->is_known = false;
    servers->at = (servers->at + 1) % servers->count;
}

/* ---- Linked ------------------------------------------------------------------------------------
 */

static void keep(struct servers *servers)
{
    struct enrolment enrolment = *identity_enrolment(servers->identity);
    struct error error;
    if (!strcmp(enrolment.server_url, servers->urls[servers->at]) &&
        !strcmp(enrolment.link_address, servers->link_address))
        return;
    memcpy(enrolment.server_url, servers->urls[servers->at], sizeof(enrolment.server_url));
    memcpy(enrolment.link_address, servers->link_address, sizeof(enrolment.link_address));
    log_event(LOG_INFO, "market_moved", "market=%s link=%s", enrolment.server_url,
              enrolment.link_address);
    /* Not kept, it is found again after the next start. */
    if (identity_set_enrolment(servers->identity, &enrolment, &error) < 0)
        log_event(LOG_WARN, "market_not_kept", "error=\"%s\"", error.message);
}

void servers_welcomed(struct servers *servers, void (*on_better)(void *context), void *context)
{
    keep(servers);
    servers->on_better = on_better;
    servers->better_context = context;
    if (servers->at != 0)
        loop_timer_start(servers->return_timer, servers->return_ms);
}

void servers_lost(struct servers *servers)
{
    loop_timer_stop(servers->return_timer);
    servers->on_better = NULL;
}

static void on_first_answer(void *context, struct http_response *response,
                            const struct error *reason)
{
    struct servers *servers = context;
    struct reply reply;
    struct error error;
    servers->transfer = NULL;
    if (!reason && read_reply(servers, servers->urls[0], response, &reply, &error) < 0)
        reason = &error;
    if (!servers->on_better)
        return;
    if (reason) {
        log_event(LOG_DEBUG, "first_server_away", "reason=\"%s\"", reason->message);
        loop_timer_start(servers->return_timer, servers->return_ms);
        return;
    }
    void (*on_better)(void *) = TAKE(servers->on_better);
    memcpy(servers->link_address, reply.link_address, sizeof(servers->link_address));
    servers->at = 0;
    servers->is_known = true;
    on_better(servers->better_context);
}

static void look_at_first(void *context)
{
    struct servers *servers = context;
    struct error error;
    if (ask(servers, 0, on_first_answer, &error) < 0)
        loop_timer_start(servers->return_timer, servers->return_ms);
}

/* ---- Beginning ---------------------------------------------------------------------------------
 */

static int take_url(struct servers *servers, const char *given, struct error *error)
{
    const struct enrolment *enrolment = identity_enrolment(servers->identity);
    const size_t at = servers->count;
    struct text url = text_of(given);
    while (text_ends_with(url, TEXT("/")))
        url.size--;
    if (at == SERVERS_MAX)
        return error_set(error, ERROR_INVALID, "--server: at most %d servers", SERVERS_MAX);
    if (text_copy(url, servers->urls[at], sizeof(servers->urls[at]), error) < 0 ||
        enlist_check_url(servers->urls[at], error) < 0)
        return error_wrap(error, "--server");
    servers->count++;
    if (strcmp(servers->urls[at], enrolment->server_url) != 0)
        return 0;
    servers->at = at;
    servers->is_known = true;
    memcpy(servers->link_address, enrolment->link_address, sizeof(servers->link_address));
    return 0;
}

static int take_urls(struct servers *servers, const struct servers_options *options,
                     struct error *error)
{
    for (size_t i = 0; i < options->url_count; i++)
        if (take_url(servers, options->urls[i], error) < 0)
            return -1;
    if (servers->count == 0)
        return take_url(servers, identity_enrolment(options->identity)->server_url, error);
    return 0;
}

int servers_open(const struct servers_options *options, struct servers **out_servers,
                 struct error *error)
{
    struct servers *made = calloc(1, sizeof(*made));
    ASSERT(made);
    AUTO(servers) struct servers *servers = made;
    servers->loop = options->loop;
    servers->client = options->client;
    servers->identity = options->identity;
    servers->return_ms = options->return_ms ? options->return_ms : RETURN_MS;
    servers->return_timer = loop_timer_new(options->loop, look_at_first, servers);
    if (take_urls(servers, options, error) < 0)
        return -1;
    *out_servers = TAKE(servers);
    return 0;
}

void servers_free(struct servers *servers)
{
    if (!servers)
        return;
    if (servers->transfer)
        http_transfer_cancel(servers->transfer);
    loop_timer_free(servers->return_timer);
    free(servers);
}

const char *servers_url(const struct servers *servers)
{
    return servers->urls[servers->at];
}
