#include "server/gate.h"

#include "base/log.h"
#include "market/account.h"
#include "server/handlers.h"
#include "server/rate_limit.h"
#include "server/server_internal.h"

#include <inttypes.h>

struct client_address gate_client(const struct server *server, const struct http_request *request)
{
    const uint64_t proxy_count = server->options.is_behind_proxy ? server->options.proxy_count : 0;
    if (!proxy_count)
        return client_address_of(http_request_remote(request));
    return client_address_forwarded(http_request_remote(request),
                                    http_request_header_list(request, "X-Forwarded-For"),
                                    proxy_count);
}

uint64_t gate_address_block(const struct server *server, const struct http_request *request)
{
    const struct client_address client = gate_client(server, request);
    if (!client.is_public)
        return 0;
    return keys_address_block(server->keys,
                              client_address_block(&client, server->options.grant_v6_prefix)) |
           ACCOUNT_BLOCK_BIT;
}

/* Fields on every answer would cost more than they tell: reads get them when it becomes tight. */
static bool is_worth_telling(const struct rate_verdict *verdict, enum rate_class class)
{
    if (!verdict->limit)
        return false;
    return (class != RATE_READ && class != RATE_READ_ADDRESS) ||
           verdict->remaining < verdict->limit / 4;
}

static void add_header(struct http_request *request, const char *name, const char *value)
{
    struct error error;
    if (http_reply_header(request, name, value, &error) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", error.message);
}

static bool pass(struct server *server, struct http_request *request, enum rate_class class,
                 uint64_t key)
{
    const struct rate_verdict verdict = rate_limits_take(server->limits, class, key);
    char field[RATE_FIELD_SIZE];
    if (is_worth_telling(&verdict, class)) {
        rate_verdict_policy(&verdict, class, field);
        add_header(request, "RateLimit-Policy", field);
        rate_verdict_state(&verdict, class, field);
        add_header(request, "RateLimit", field);
    }
    if (verdict.is_allowed)
        return true;
    server->counts.limited++;
    const int64_t seconds = rate_verdict_retry_after_s(&verdict);
    snprintf(field, sizeof(field), "%" PRId64, seconds);
    add_header(request, "Retry-After", field);
    http_reply_problem(request, 429, "rate_limited",
                       arena_format(http_request_arena(request),
                                    "too many requests (%s: %" PRId64 " in %" PRId64
                                    " s): try again in %" PRId64 " s",
                                    rate_class_name(class), verdict.limit, verdict.window_ms / 1000,
                                    seconds));
    return false;
}

static bool pass_address(struct server *server, struct http_request *request, enum rate_class class)
{
    const struct client_address client = gate_client(server, request);
    return client.is_loopback || pass(server, request, class, client.block);
}

/* One home or rented machine has thousands of IPv6 blocks: what must stay rare is counted by all of
 * them together. */
static bool pass_site(struct server *server, struct http_request *request, enum rate_class class)
{
    const struct client_address client = gate_client(server, request);
    return client.is_loopback || pass(server, request, class, client.site);
}

static bool is_read(const struct http_request *request)
{
    const struct text method = http_request_method(request);
    return text_equal(method, TEXT("GET")) || text_equal(method, TEXT("HEAD"));
}

bool gate_pass(struct server *server, struct http_request *request, const struct caller *caller)
{
    const struct route *route = route_of(request);
    if (route->handler == handle_account_create)
        return pass_site(server, request, RATE_SIGN_UP);
    if (route->handler == handle_session_create)
        /* Those that succeed are given back; the second limit bounds them too. */
        return pass_site(server, request, RATE_SIGN_IN) &&
               pass_address(server, request, RATE_WRITE_ADDRESS);
    if (route->access == ROUTE_CHUNKS || route->access == ROUTE_OBJECTS ||
        !text_starts_with(text_of(route->pattern), TEXT("/v1/")))
        return true;
    if (caller->account)
        return pass(server, request, is_read(request) ? RATE_READ : RATE_WRITE, caller->account);
    return pass_address(server, request, is_read(request) ? RATE_READ_ADDRESS : RATE_WRITE_ADDRESS);
}

bool gate_pass_stranger(struct server *server, struct http_request *request)
{
    return pass_address(server, request, RATE_READ_ADDRESS);
}

static uint64_t name_key(struct text name)
{
    uint8_t hash[KEYS_HASH_SIZE];
    uint64_t key;
    token_hash(name, hash);
    memcpy(&key, hash, sizeof(key));
    return key;
}

bool gate_pass_name(struct server *server, struct http_request *request, struct text name)
{
    return pass(server, request, RATE_SIGN_IN_NAME, name_key(name));
}

void gate_forgive(struct server *server, const struct http_request *request)
{
    const struct client_address client = gate_client(server, request);
    rate_limits_give_back(server->limits, RATE_SIGN_IN, client.site);
}

void gate_forgive_name(struct server *server, const struct http_request *request, struct text name)
{
    gate_forgive(server, request);
    rate_limits_give_back(server->limits, RATE_SIGN_IN_NAME, name_key(name));
}
