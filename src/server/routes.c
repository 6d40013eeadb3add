#include "server/routes.h"

#include "base/assert.h"
#include "base/log.h"
#include "blob/blob_store.h"
#include "market/account.h"
#include "runtime/job_spec.h"
#include "server/auth.h"
#include "server/gate.h"
#include "server/handlers.h"
#include "server/objects.h"
#include "server/server_internal.h"
#include "server/token_use.h"
#include "train/look.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    SMALL = 16 << 10,
    SPEC = JOB_SPEC_SIZE_MAX,
    LOOK = LOOK_BYTES_MAX,
    HASHES = 512 << 10,
    CHUNK = BLOB_BYTES_MAX,
    OBJECT = OBJECTS_PART_BYTES,
};

#define ANYONE   ROUTE_PUBLIC, 0
#define READER   ROUTE_ACCOUNT, TOKEN_SCOPE_READ
#define BORROWER ROUTE_ACCOUNT, TOKEN_SCOPE_BORROW
#define LENDER   ROUTE_ACCOUNT, TOKEN_SCOPE_LEND
#define OWNER    ROUTE_ACCOUNT, TOKEN_SCOPE_OPERATE
#define OPERATOR ROUTE_OPERATOR, TOKEN_SCOPE_OPERATE
#define CHUNKS   ROUTE_CHUNKS, TOKEN_SCOPE_BORROW
#define OBJECTS  ROUTE_OBJECTS, TOKEN_SCOPE_BORROW

/* method, path, who may, largest body, handler, repeatable, what it does */
const struct route routes[] = {
    {"POST", "/v1/accounts", ANYONE, SMALL, handle_account_create, true,
     "Opens an account, with a password or known by its token alone."},
    {"GET", "/v1/accounts", OPERATOR, 0, handle_account_list, false,
     "All accounts, those whose name begins with `q`, or the one of a `name`."},
    {"POST", "/v1/accounts/{id}/freeze", OPERATOR, SMALL, handle_account_freeze, true,
     "Freezes an account: it keeps every credit, what runs is settled, nothing new starts."},
    {"POST", "/v1/accounts/{id}/unfreeze", OPERATOR, SMALL, handle_account_unfreeze, true,
     "Lets a frozen account go on."},
    {"POST", "/v1/accounts/{id}/grant", OPERATOR, SMALL, handle_account_grant, true,
     "Gives an account that waits for its first credits these at once."},
    {"POST", "/v1/invites", OPERATOR, SMALL, handle_invite_create, true,
     "An invitation: opens one account with its grant at once. 30 days."},
    {"GET", "/v1/settings", OPERATOR, 0, handle_settings_get, false, "The market's settings."},
    {"PUT", "/v1/settings", OPERATOR, SMALL, handle_settings_put, false,
     "Changes the settings given; the others stay."},
    {"GET", "/v1/audits", OPERATOR, 0, handle_audit_get, false,
     "The last audit since the market started, or the one that runs."},
    {"POST", "/v1/audits", OPERATOR, SMALL, handle_audit_create, false,
     "Starts an audit of all books from their first entry, in a process of its own."},
    {"GET", "/v1/cloud", OPERATOR, 0, handle_cloud_get, false,
     "What was ordered from a cloud, and what became of it."},
    {"POST", "/v1/cloud/orders", OPERATOR, SMALL, handle_cloud_order, true,
     "Starts instances that lend, within the budget given and the cloud's limits. A repeat shows "
     "the order as long as the market runs, which its instances end with."},
    {"DELETE", "/v1/cloud/orders/{id}", OPERATOR, 0, handle_cloud_stop, false,
     "Ends the instances of an order."},
    {"DELETE", "/v1/cloud/orders", OPERATOR, 0, handle_cloud_stop_all, false,
     "Ends all instances."},
    {"POST", "/v1/cloud/sweep", OPERATOR, SMALL, handle_cloud_sweep, false,
     "Looks at the cloud's list now, and ends what of the market's was left running."},
    {"GET", "/v1/account", READER, 0, handle_account_get, false, "This token's account."},
    {"GET", "/v1/account/entries", READER, 0, handle_entries, false,
     "The account's statement, with its balance before and after."},
    {"POST", "/v1/transfers", OWNER, SMALL, handle_transfer_create, true,
     "Gives earned credits to another account, at once and for good."},
    {"PUT", "/v1/account/password", OWNER, SMALL, handle_password_put, false,
     "Sets or changes the password; other sessions end."},
    {"DELETE", "/v1/account", OWNER, SMALL, handle_account_delete, false,
     "Deletes the account: its credits go back to `mint`, its name is not used again."},
    {"GET", "/v1/account/profiles", READER, 0, handle_profiles_get, false,
     "Who learns from the account's runs, and how long their profiles stay."},
    {"PUT", "/v1/account/profiles", OWNER, SMALL, handle_profiles_put, false,
     "Says whether other accounts may learn from this account's runs, and it from theirs."},
    {"DELETE", "/v1/account/profiles", OWNER, 0, handle_profiles_delete, false,
     "Deletes all profiles and predictions of the account's jobs; those that run make new ones."},
    {"POST", "/v1/groups", OWNER, SMALL, handle_group_create, true,
     "Makes a group with this account as its owner."},
    {"GET", "/v1/account/group", READER, 0, handle_group_get, false,
     "The account's group and its members."},
    {"POST", "/v1/account/group", OWNER, SMALL, handle_group_join, true,
     "Joins the group that made the code."},
    {"DELETE", "/v1/account/group", OWNER, 0, handle_group_leave, false, "Leaves the group."},
    {"DELETE", "/v1/account/group/members/{id}", OWNER, 0, handle_group_remove, false,
     "Takes a member out of the group: its owner alone."},
    {"POST", "/v1/account/group/codes", OWNER, SMALL, handle_group_code_create, true,
     "A code that lets one other account join: 7 days."},
    {"POST", "/v1/account/page-codes", OWNER, SMALL, handle_page_code_create, false,
     "A code that signs a browser in: 60 s, once."},
    {"POST", "/v1/sessions", ANYONE, SMALL, handle_session_create, false,
     "Signs in by a page code, or by name and password: a cookie, or a token if asked for."},
    {"DELETE", "/v1/sessions", READER, 0, handle_session_delete, false,
     "Signs out: ends the session that asks."},
    {"GET", "/v1/sessions", OWNER, 0, handle_session_list, false, "The account's open sessions."},
    {"DELETE", "/v1/sessions/{id}", OWNER, 0, handle_session_end, false, "Ends another session."},
    {"POST", "/v1/tokens", OWNER, SMALL, handle_token_create, true,
     "Makes a token with the scopes given."},
    {"GET", "/v1/tokens", OWNER, 0, handle_token_list, false, "The account's tokens."},
    {"DELETE", "/v1/tokens/{id}", OWNER, 0, handle_token_delete, false, "Revokes a token at once."},
    {"POST", "/v1/machines/codes", LENDER, SMALL, handle_machine_code_create, false,
     "A one-time code that enrols a machine for this account: 15 min."},
    {"POST", "/v1/machines/codes/check", ANYONE, SMALL, handle_machine_code_check, false,
     "Whether such a code would enrol a machine now; it is not used up."},
    {"POST", "/v1/machines", ANYONE, SMALL, handle_machine_enrol, true,
     "Enrols a machine by its code."},
    {"GET", "/v1/machines", READER, 0, handle_machine_list, false, "The market's machines."},
    {"GET", "/v1/machines/{id}", READER, 0, handle_machine_get, false, "One machine."},
    {"GET", "/v1/machines/{id}/entries", READER, 0, handle_entries, false,
     "The machine's statement: its entries that touch this account, and their sums."},
    {"GET", "/v1/machines/{id}/leases", READER, 0, handle_machine_leases, false,
     "What runs and ran on a machine of this account, newest first."},
    {"GET", "/v1/machines/{id}/earnings", READER, 0, handle_machine_earnings, false,
     "What a machine of this account earned, by the hour or the day."},
    {"POST", "/v1/machines/{id}/estimate", LENDER, SMALL, handle_machine_estimate, false,
     "What an offer of the machine would earn in 30 days by past prices; changes nothing."},
    {"POST", "/v1/machines/{id}/reclaim", LENDER, SMALL, handle_machine_reclaim, true,
     "The owner takes the machine back: all its leases end; what was done is paid."},
    {"POST", "/v1/machines/{id}/pause", LENDER, SMALL, handle_machine_pause, false,
     "The owner's word to the machine: leases are held still, and there are no new ones."},
    {"POST", "/v1/machines/{id}/resume", LENDER, SMALL, handle_machine_resume, false,
     "Ends a pause that was said this way. 409: the machine was paused or drained at the machine "
     "itself, where it must be ended."},
    {"POST", "/v1/machines/{id}/reports", BORROWER, SMALL, handle_machine_report, false,
     "Says that a machine this account has a lease on is silent: the market asks it at once."},
    {"PUT", "/v1/machines/{id}/offer", LENDER, SMALL, handle_machine_put_offer, false,
     "Changes the terms given of the machine's first offer; the others stay."},
    {"GET", "/v1/machines/{id}/offers", READER, 0, handle_machine_offers, false,
     "What the machine lends, and on which terms."},
    {"POST", "/v1/machines/{id}/offers", LENDER, SMALL, handle_offer_create, true,
     "Makes an offer of the machine; what is left out is all it has, always, to anyone."},
    {"GET", "/v1/offers", READER, 0, handle_offer_list, false,
     "The market's offers; ?mine=true: this account's."},
    {"GET", "/v1/offers/{id}", READER, 0, handle_offer_get, false, "One offer."},
    {"PUT", "/v1/offers/{id}", LENDER, SMALL, handle_offer_put, false,
     "Replaces an offer's terms; running leases keep theirs."},
    {"PATCH", "/v1/offers/{id}", LENDER, SMALL, handle_offer_patch, false,
     "Changes the terms given and keeps the others; running leases keep theirs."},
    {"POST", "/v1/offers/{id}/pause", LENDER, SMALL, handle_offer_pause, true,
     "No new leases for a while, until a time, or until resumed; running ones go on."},
    {"POST", "/v1/offers/{id}/resume", LENDER, SMALL, handle_offer_resume, true, "Ends a pause."},
    {"DELETE", "/v1/offers/{id}", LENDER, 0, handle_offer_delete, false,
     "Withdraws an offer; running leases go on to their end."},
    {"GET", "/v1/prices", ANYONE, 0, handle_prices, false,
     "The running slot's prices, today's and those of the next 48 hours, and the 7-day average."},
    {"GET", "/v1/prices/{slot}", ANYONE, 0, handle_price_explain, false,
     "How a slot's prices came about: `18-24` of today, or `2026-11-14%2F18-24`."},
    {"POST", "/v1/quotes", BORROWER, SPEC, handle_quote_create, false,
     "What a job would cost, and whether it could start now; changes nothing."},
    {"POST", "/v1/recommendations", BORROWER, SPEC + SMALL, handle_recommendation_create, false,
     "Which machines for a job, how many, how long it will take and what it will cost; changes "
     "nothing."},
    {"GET", "/v1/datasets", ANYONE, 0, handle_datasets, false,
     "The built-in data sets, and which of them the market has itself."},
    {"GET", "/v1/models", ANYONE, 0, handle_models, false, "The built-in models, layer by layer."},
    {"GET", "/v1/schemas/job", ANYONE, 0, handle_job_schema, false,
     "The JSON Schema (2020-12) of a job file."},
    {"POST", "/v1/jobs/check", BORROWER, SPEC, handle_job_check, false,
     "Checks a job file, YAML or JSON: every mistake with its place, or what it would cost now and "
     "in each slot; changes nothing."},
    {"POST", "/v1/jobs", BORROWER, SPEC, handle_job_create, true,
     "Submits a job: holds its cost, then matches."},
    {"GET", "/v1/jobs", READER, 0, handle_job_list, false, "This account's jobs, newest first."},
    {"GET", "/v1/jobs/{id}", READER, 0, handle_job_get, false, "One job with its leases."},
    {"GET", "/v1/jobs/{id}/file", READER, 0, handle_job_file, false,
     "The job as a job file (YAML), to train again with changes."},
    {"POST", "/v1/jobs/{id}/cancel", BORROWER, SMALL, handle_job_cancel, true,
     "Stops a job; what was used is paid, the rest is given back."},
    {"POST", "/v1/jobs/{id}/extend", BORROWER, SMALL, handle_job_extend, true,
     "Gives a job that runs more time, if its lenders' terms and its credits allow."},
    {"POST", "/v1/leases/{id}/release", BORROWER, SMALL, handle_lease_release, true,
     "The borrower lets one worker go; the job goes on without it."},
    {"POST", "/v1/leases/{id}/end", LENDER, SMALL, handle_lease_end, true,
     "The owner takes one lease's part of the machine back; what was done is paid."},
    {"GET", "/v1/jobs/{id}/metrics", READER, 0, handle_job_metrics, false,
     "Latest metrics and the loss curve."},
    {"GET", "/v1/jobs/{id}/profile", READER, 0, handle_job_profile, false,
     "What the job's run showed, worker by worker, and how that compares with what was foretold."},
    {"PUT", "/v1/jobs/{id}/prediction", BORROWER, SMALL, handle_prediction_put, false,
     "Remembers what was foretold of a job that has not ended, to be compared with its end."},
    {"GET", "/v1/jobs/{id}/logs", READER, 0, handle_job_logs, false, "A part of one lease's log."},
    {"GET", "/v1/jobs/{id}/logs/lines", READER, 0, handle_job_log_search, false,
     "The lines of one lease's log that have a text in them."},
    {"GET", "/v1/jobs/{id}/tensorboard", READER, 0, handle_job_tensorboard, false,
     "The job's curve as an event file of TensorBoard."},
    {"POST", "/v1/jobs/{id}/direct", READER, SMALL, handle_job_direct, false,
     "Where what the job's leases print may be read from their machines, with a key for it."},
    {"POST", "/v1/sources", BORROWER, SMALL, handle_source_create, false,
     "Offers to send a job's data from where it is submitted; the market tries to reach it."},
    {"GET", "/v1/jobs/{id}/artifacts", READER, 0, handle_job_artifacts, false,
     "What the job left: the model, its card."},
    {"GET", "/v1/jobs/{id}/artifacts/{name}", READER, 0, handle_job_artifact, false,
     "An artifact's bytes. 429 with 8 of the account's downloads open."},
    {"GET", "/v1/jobs/{id}/bill", READER, 0, handle_job_bill, false,
     "What the job cost, lease by lease."},
    {"GET", "/v1/jobs/{id}/entries", READER, 0, handle_entries, false,
     "The job's statement: its entries that touch this account, and their sums."},
    {"GET", "/v1/jobs/{id}/explain", READER, 0, handle_job_explain, false,
     "Why the job is where it is."},
    {"GET", "/v1/jobs/{id}/events", READER, 0, handle_job_events, false,
     "What happens to one job, as server-sent events."},
    {"GET", "/v1/events", READER, 0, handle_events, false,
     "What happens to the machines, this account, its jobs and its leases, as server-sent events."},
    {"POST", "/v1/chunks", CHUNKS, CHUNK, handle_chunk_post, false,
     "Uploads a chunk of at most 4 MiB, plain, and says its name: for who cannot hash."},
    {"PUT", "/v1/chunks/{hash}", CHUNKS, CHUNK, handle_chunk_put, false,
     "Uploads a chunk of at most 4 MiB, plain or as one zstd frame."},
    {"GET", "/v1/chunks/{hash}", CHUNKS, 0, handle_chunk_get, false,
     "A chunk's bytes (HEAD: whether it is there)."},
    {"POST", "/v1/chunks/missing", CHUNKS, HASHES, handle_chunks_missing, false,
     "Which of these chunks are not there."},
    {"POST", "/v1/objects/tokens", CHUNKS, SMALL, handle_object_token_create, false,
     "A token for the functions of one job: it reads the job's objects and puts updates."},
    {"DELETE", "/v1/objects/tokens/{id}", BORROWER, 0, handle_object_token_delete, false,
     "Revokes such a token at once."},
    {"GET", "/v1/objects", BORROWER, 0, handle_object_list, false,
     "The account's objects whose name begins with `prefix`, by name."},
    {"PUT", "/v1/objects/{name...}", OBJECTS, OBJECT, handle_object_put, false,
     "Puts an object of at most 4,000,000 bytes; `If-None-Match: *`: once, 412 where there is one. "
     "`?parts=N&of=TAG`: of the N objects NAME.TAG.0, NAME.TAG.1, ..., which are gone then."},
    {"GET", "/v1/objects/{name...}", OBJECTS, 0, handle_object_get, false,
     "An object's bytes, or those of a `Range` (HEAD: whether it is there)."},
    {"DELETE", "/v1/objects/{name...}", OBJECTS, 0, handle_object_delete, false,
     "Deletes an object; one that is not there is fine."},
    {"POST", "/v1/imports", BORROWER, SPEC, handle_import_create, true,
     "Has the market read data for a job: what was sent before, by its manifest, or from an "
     "address."},
    {"POST", "/v1/imports/look", BORROWER, LOOK, handle_import_look, false,
     "What the first 256 KiB of a file look like: its format, columns and rows."},
    {"GET", "/v1/imports/{id}", READER, 0, handle_import_get, false,
     "How far an import is, and at its end the inputs of a job."},
    {"DELETE", "/v1/imports/{id}", BORROWER, 0, handle_import_delete, false,
     "Stops an import and forgets it."},
    {"GET", "/v1/market", ANYONE, 0, handle_market_health, false,
     "How many credits there are for how much trade, and who lends how much."},
    {"GET", "/v1/server", ANYONE, 0, handle_server, false, "Who this market is."},
    {"GET", "/healthz", ANYONE, 0, handle_healthz, false, "200 while the process runs."},
    {"GET", "/readyz", ANYONE, 0, handle_readyz, false, "200 while changes are taken."},
    {"GET", "/metrics", ANYONE, 0, handle_metrics, false, "Counters for Prometheus."},
    {"GET", "/openapi.json", ANYONE, 0, handle_page, false, "The API in OpenAPI 3.1."},
    {"GET", "/{path...}", ANYONE, 0, handle_page, false, "The web page."},
};
const size_t route_count = sizeof(routes) / sizeof(*routes);

const struct http_header routes_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
     "frame-ancestors 'none'"},
    {"Cache-Control", "no-store"}, /* what may be kept says so itself */
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
};
const size_t routes_header_count = sizeof(routes_headers) / sizeof(*routes_headers);

static const char *access_code(int status)
{
    return status == 401 ? "unauthorized" : "refused";
}

/* Whether the request may be made by whoever makes it; if not, it has been answered. */
static bool let_in(struct server *server, struct http_request *request, struct caller *out_caller)
{
    struct error error, lost;
    int status = 0;
    if (auth_check(server, route_of(request), request, out_caller, &status, &error) == 0)
        return true;
    if (status == 401 && !gate_pass_stranger(server, request))
        return false;
    if (status == 401 &&
        http_reply_header(request, "WWW-Authenticate", "Bearer realm=\"souk\"", &lost) < 0)
        log_event(LOG_WARN, "header_refused", "error=\"%s\"", lost.message);
    if (status)
        http_reply_problem(request, status, access_code(status), error.message);
    else
        http_reply_error(request, &error);
    return false;
}

static bool has_body(const struct http_request *request)
{
    return http_request_header(request, "Content-Length").data ||
           http_request_header(request, "Transfer-Encoding").data;
}

/* A body takes as long as its sender likes: whose token it was may have been shut out since. */
static void handle_route(struct http_request *request, void *context)
{
    struct caller now;
    if (!has_body(request) || let_in(context, request, &now))
        route_of(request)->handler(request, context);
}

struct http_route *routes_make(void)
{
    struct http_route *made = calloc(route_count, sizeof(*made));
    ASSERT(made);
    for (size_t i = 0; i < route_count; i++)
        made[i] = (struct http_route){
            .method = routes[i].method,
            .pattern = routes[i].pattern,
            .body_max = routes[i].body_max,
            .handler = handle_route,
            .flags = (uint32_t)i,
        };
    return made;
}

const struct route *route_of(const struct http_request *request)
{
    return &routes[http_request_route(request)->flags];
}

const struct caller *route_caller(const struct http_request *request)
{
    static const struct caller nobody;
    const struct caller *caller = http_request_user(request);
    return caller ? caller : &nobody;
}

int route_id(struct http_request *request, const char *whose, uint64_t *out_id)
{
    struct error error;
    if (text_parse_u64(http_request_parameter(request, "id"), out_id, &error) == 0 && *out_id)
        return 0;
    http_reply_problem(request, 404, "not_found",
                       arena_format(http_request_arena(request), "%s id is a number", whose));
    return -1;
}

void route_on_headers(struct http_request *request, void *context)
{
    struct server *server = context;
    struct error error;
    struct arena *arena = http_request_arena(request);
    const char *id = arena_format(arena, "%" PRIx64 "-%" PRIu64, (uint64_t)server->started_ms,
                                  http_request_id(request));
    if (http_reply_header(request, "Souk-Request", id, &error) < 0) {
        http_reply_error(request, &error);
        return;
    }
    struct caller *caller = arena_alloc(arena, sizeof(*caller));
    if (!let_in(server, request, caller))
        return;
    http_request_set_user(request, caller);
    if (!gate_pass(server, request, caller))
        return;
    token_uses_note(server->token_uses, caller);
    if (http_request_header(request, "Idempotency-Key").size > 128)
        http_reply_problem(request, 400, "invalid",
                           "an Idempotency-Key has at most 128 characters");
}

void route_on_done(const struct http_request *request, int status, void *context)
{
    struct server *server = context;
    server->counts.requests++;
    server->counts.client_errors += status >= 400 && status < 500;
    server->counts.server_errors += status >= 500;
    const int64_t spent_ns = clock_monotonic_ns(server->clock) - http_request_started_ns(request);
    server->counts.request_ns += (uint64_t)(spent_ns > 0 ? spent_ns : 0);
    const struct text method = http_request_method(request);
    const struct text path = http_request_path(request);
    log_event(status >= 500 ? LOG_WARN : LOG_DEBUG, "request",
              "id=%" PRIx64 "-%" PRIu64 " method=" TEXT_FORMAT " path=" TEXT_FORMAT
              " status=%d ms=%.3f account=%" PRIu64,
              (uint64_t)server->started_ms, http_request_id(request), TEXT_ARGS(method),
              TEXT_ARGS(path), status, (double)spent_ns / 1e6, route_caller(request)->account);
}

static const char *access_name(const struct route *route)
{
    if (route->access == ROUTE_PUBLIC)
        return "anyone";
    if (route->access == ROUTE_CHUNKS)
        return "scope borrow, or a lease's fetch token";
    if (route->access == ROUTE_OBJECTS)
        return "scope borrow; the token of a job's functions, or a lease's, within its job";
    if (route->access == ROUTE_OPERATOR)
        return "the operator, scope operate";
    switch ((enum token_scope)route->scope) {
    case TOKEN_SCOPE_READ:
        return "scope read";
    case TOKEN_SCOPE_LEND:
        return "scope lend";
    case TOKEN_SCOPE_BORROW:
        return "scope borrow";
    case TOKEN_SCOPE_OPERATE:
        return "scope operate";
    case TOKEN_SCOPE_OBJECTS:
        return "scope objects";
    case TOKEN_SCOPE_ALL:
    case TOKEN_SCOPE_ANY:
        return "every scope";
    }
    return "";
}

static const char introduction[] =
    "# The API\n"
    "\n"
    "Written by `souk serve --print-api` from `src/server/routes.c`; bodies and answers are in\n"
    "[openapi.json](openapi/openapi.json), which a running market serves at `/openapi.json`.\n"
    "\n"
    "- Amounts are signed 64-bit microcredits, instants UTC milliseconds, ids whole numbers.\n"
    "- Send `Authorization: Bearer TOKEN`. A token has scopes: `read`, `lend`, `borrow`, "
    "`operate`.\n"
    "- Refusals are RFC 9457 problems (`application/problem+json`) with `status`, `title`, "
    "`detail`\n"
    "  (one sentence that says what to do) and `code`, a stable word.\n"
    "- A POST marked *repeatable* takes an `Idempotency-Key` header (at most 128 characters). "
    "Within\n"
    "  24 hours the same key with the same body is done once and answered with what was made the\n"
    "  first time, also across a restart; with another body it is refused (409). The key that "
    "opens\n"
    "  an account is a secret of at least 32 random characters: a repeat is answered with the "
    "token.\n"
    "- Lists take `?limit=` (1 to 500, else 50) and `?cursor=`; they answer `{\"items\": [...],\n"
    "  \"next_cursor\": ...}`, where null means that this was the last page. With a filter a page "
    "may\n"
    "  have fewer items than asked for and another may follow it.\n"
    "- Many answers have an `ETag`: sent back in `If-None-Match` it is answered by 304 as long as\n"
    "  nothing has changed. What was acknowledged is in every answer after it.\n"
    "- Every answer has a `Souk-Request` header with the id under which the server logs it.\n"
    "- Too many requests are answered by 429 with `Retry-After` and the fields `RateLimit-Policy` "
    "and\n"
    "  `RateLimit` (draft-ietf-httpapi-ratelimit-headers), by account, by address block and for\n"
    "  passwords by name; [security.md](security.md) has the limits.\n"
    "\n"
    "| request | who may | what it does |\n"
    "|---|---|---|\n";

void routes_print(FILE *file)
{
    fputs(introduction, file);
    for (size_t i = 0; i < route_count; i++) {
        const struct route *route = &routes[i];
        fprintf(file, "| `%s %s` | %s | %s%s |\n", route->method, route->pattern,
                access_name(route), route->doc, route->is_repeatable ? " *Repeatable.*" : "");
    }
}
