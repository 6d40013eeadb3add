#include "server/auth.h"

#include "market/account.h"
#include "market/lease.h"
#include "server/query.h"
#include "server/view.h"

#include <inttypes.h>
#include <stdio.h>

static int refuse(int status, int *out_status, struct error *error, const char *message)
{
    *out_status = status;
    return error_set(error, ERROR_REFUSED, "%s", message);
}

static struct text text_after(struct text text, size_t size)
{
    return (struct text){text.data + size, text.size - size};
}

bool auth_is_same_origin(struct text origin, struct text scheme, struct text host)
{
    const struct text colon = TEXT("://");
    if (!host.size || !text_starts_with(origin, scheme))
        return false;
    const struct text rest = text_after(origin, scheme.size);
    return text_starts_with(rest, colon) && text_equal(text_after(rest, colon.size), host);
}

bool auth_is_origin_of(struct text origin, struct text url)
{
    if (!origin.size || !text_starts_with(url, origin))
        return false;
    if (!text_starts_with(origin, TEXT("https://")) && !text_starts_with(origin, TEXT("http://")))
        return false;
    return url.size == origin.size || url.data[origin.size] == '/';
}

bool auth_is_own_page(const struct server *server, struct http_request *request)
{
    const struct text origin = http_request_header(request, "Origin");
    /* A proxy may change the Host header, and the scheme is the proxy's. */
    if (server->options.is_behind_proxy && server->options.public_url)
        return auth_is_origin_of(origin, text_of(server->options.public_url));
    const bool is_https = server->is_tls || server->options.is_behind_proxy;
    return auth_is_same_origin(origin, is_https ? TEXT("https") : TEXT("http"),
                               http_request_header(request, "Host"));
}

bool auth_is_secure(const struct server *server, const struct http_request *request)
{
    return http_request_is_secure(request) || server->options.is_behind_proxy;
}

const char *auth_cookie_name(const struct server *server, const struct http_request *request)
{
    return auth_is_secure(server, request) ? AUTH_COOKIE_SECURE : AUTH_COOKIE;
}

static int check_token(struct server *server, struct http_request *request, struct text token,
                       struct caller *out_caller, int *out_status, struct error *error)
{
    uint8_t hash[KEYS_HASH_SIZE];
    token_hash(token, hash);
    const struct store_value *row = NULL;
    if (query_one(server, http_request_arena(request), TABLE_TOKENS, "hash",
                  store_blob(hash, sizeof(hash)), &row, error) < 0)
        return -1;
    if (!row || row[TOKENS_IS_REVOKED].integer)
        return refuse(401, out_status, error,
                      "this token is not known here: sign up with `souk account open`, or check "
                      "that it belongs to this market");
    const int64_t expires_ms = row[TOKENS_EXPIRES_MS].integer;
    if (expires_ms && expires_ms <= clock_utc_ms(server->clock))
        return refuse(401, out_status, error, "this token has expired: sign in again");
    out_caller->account = (uint64_t)row[TOKENS_ACCOUNT].integer;
    out_caller->token = (uint64_t)row[TOKENS_ID].integer;
    out_caller->expires_ms = expires_ms;
    out_caller->scopes = (uint64_t)row[TOKENS_SCOPES].integer;
    out_caller->is_session = row[TOKENS_IS_SESSION].integer;
    if (out_caller->scopes & TOKEN_SCOPE_OBJECTS) {
        out_caller->is_function = true;
        return text_copy(row[TOKENS_LABEL].bytes, out_caller->objects_job,
                         sizeof(out_caller->objects_job), error);
    }
    return 0;
}

/* Whoever had a lease may take away the objects it put, when that is over, too. */
static bool clears_away(const struct http_request *request, const struct caller *caller)
{
    return route_of(request)->access == ROUTE_OBJECTS && !caller->is_function &&
           text_equal(http_request_method(request), TEXT("DELETE"));
}

/* By a lease's fetch token, or by the one of its functions. */
static int check_lease(struct server *server, struct http_request *request, struct text token,
                       struct caller *out_caller, int *out_status, struct error *error)
{
    uint64_t lease, fence;
    out_caller->is_function = keys_read_objects_token(server->keys, token, &lease, &fence);
    if (!out_caller->is_function && !keys_read_fetch_token(server->keys, token, &lease, &fence))
        return refuse(401, out_status, error, "this is not a fetch token of this market");
    struct arena *arena = http_request_arena(request);
    const struct store_value *row = NULL, *job = NULL;
    if (query_one(server, arena, TABLE_LEASES, "id", store_integer((int64_t)lease), &row, error) <
        0)
        return -1;
    const bool has_ended = row && row[LEASES_STATE].integer == LEASE_STATE_ENDED;
    if (!row || (uint64_t)row[LEASES_FENCE].integer != fence ||
        (has_ended && !clears_away(request, out_caller)))
        return refuse(401, out_status, error, "the lease of this fetch token has ended");
    if (query_id(server, arena, TABLE_JOBS, (uint64_t)row[LEASES_JOB].integer, "job", &job, error) <
        0)
        return -1;
    out_caller->account =
        (uint64_t)job[JOBS_ACCOUNT].integer; /* what it stores, the borrower has */
    out_caller->lease = lease;
    out_caller->job = (uint64_t)row[LEASES_JOB].integer;
    out_caller->fence = fence;
    /* As its keeper names it: peer/tenancy_function.c. */
    snprintf(out_caller->objects_job, sizeof(out_caller->objects_job), "lease-%" PRIu64 "-%" PRIu64,
             lease, fence);
    if (row[LEASES_ROLE].integer == LEASE_ROLE_SERVER && row[LEASES_RANK].integer == 0)
        out_caller->server_of = (uint64_t)row[LEASES_JOB].integer;
    return 0;
}

bool auth_may_last(const struct caller *caller, int64_t expires_ms)
{
    if (!caller->expires_ms || caller->is_session)
        return true;
    return expires_ms && expires_ms <= caller->expires_ms;
}

static bool is_of_lease(const struct route *route, struct text token)
{
    const bool has_fetched = text_starts_with(token, TEXT("souk_lease_"));
    return (route->access == ROUTE_CHUNKS && has_fetched) ||
           (route->access == ROUTE_OBJECTS &&
            (has_fetched || text_starts_with(token, TEXT("souk_objects_"))));
}

static bool changes_something(struct text method)
{
    return !text_equal(method, TEXT("GET")) && !text_equal(method, TEXT("HEAD"));
}

int auth_check(struct server *server, const struct route *route, struct http_request *request,
               struct caller *out_caller, int *out_status, struct error *error)
{
    *out_status = 0;
    *out_caller = (struct caller){0};
    if (route->access == ROUTE_PUBLIC)
        return 0;
    const struct text header = http_request_header(request, "Authorization");
    const struct text prefix = TEXT("Bearer ");
    const struct text cookie = http_request_cookie(request, auth_cookie_name(server, request));
    if (header.size) {
        if (!text_starts_with(header, prefix))
            return refuse(401, out_status, error,
                          "the Authorization header must be \"Bearer TOKEN\"");
        const struct text token =
            text_trim((struct text){header.data + prefix.size, header.size - prefix.size});
        if (is_of_lease(route, token))
            return check_lease(server, request, token, out_caller, out_status, error);
        if (check_token(server, request, token, out_caller, out_status, error) < 0)
            return -1;
        if (route->access == ROUTE_OBJECTS && out_caller->is_function)
            return 0;
    } else if (cookie.size) {
        if (changes_something(http_request_method(request)) && !auth_is_own_page(server, request))
            return refuse(403, out_status, error,
                          "a signed-in page may change things only from this server's own pages");
        if (check_token(server, request, cookie, out_caller, out_status, error) < 0)
            return -1;
    } else {
        return refuse(401, out_status, error,
                      "this needs a token: send \"Authorization: Bearer TOKEN\"; `souk account "
                      "open` makes one");
    }
    if ((out_caller->scopes & route->scope) != route->scope) {
        const char *lacking = view_scope_name(route->scope & ~out_caller->scopes);
        *out_status = 403;
        return error_set(error, ERROR_REFUSED,
                         "this token does not have the scope \"%s\", which this needs; make one "
                         "that has: souk token make LABEL --scopes %s",
                         lacking, lacking);
    }
    if (route->access == ROUTE_OPERATOR && out_caller->account != ACCOUNT_OPERATOR)
        return refuse(403, out_status, error,
                      "this is for the market's operator: use the token in keys/operator.token of "
                      "the market's folder");
    return 0;
}
