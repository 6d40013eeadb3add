#include "cli/lend_slurm_market.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "client/api.h"
#include "client/client.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { ASK_S = 2, CODE_WAIT_S = 1, MACHINES_MAX = 100000 };

struct lend_slurm_market {
    struct client *client; /* the thread's */
    volatile int32_t stop;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Guarded by the mutex. */
    int64_t wanted;
    struct map leased; /* by name; the value says nothing */
    bool is_heard;     /* once */
    bool wants_code, has_code;
    struct error code_error;
    struct lend_slurm_code code;
    bool is_away; /* the thread's */
};

static struct timespec seconds_from_now(int seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += seconds;
    return at;
}

static void lock(struct lend_slurm_market *market)
{
    ASSERT(pthread_mutex_lock(&market->mutex) == 0);
}

static void unlock(struct lend_slurm_market *market)
{
    ASSERT(pthread_mutex_unlock(&market->mutex) == 0);
}

static bool is_stopping(struct lend_slurm_market *market)
{
    lock(market);
    const bool is_stopping = market->stop != 0;
    unlock(market);
    return is_stopping;
}

/* ---- The thread ------------------------------------------------------------------------------ */

static void keep_answer(struct lend_slurm_market *market, int64_t wanted,
                        const struct json_array *machines)
{
    struct map leased;
    map_init(&leased);
    lock(market);
    for (size_t i = 0; i < machines->count; i++) {
        const struct api_machine *machine = (const struct api_machine *)machines->items + i;
        if (machine->lease_count == 0)
            continue;
        map_put_text(&leased, machine->name, market);
        /* The market counts who waits once a second: whom this one serves is in it still. */
        wanted -= map_get_text(&market->leased, machine->name) == NULL;
    }
    market->wanted = wanted > 0 ? wanted : 0;
    market->is_heard = true;
    map_done(&market->leased);
    market->leased = leased;
    unlock(market);
}

static int ask(struct lend_slurm_market *market, struct arena *arena, struct error *error)
{
    struct api_health health = {0};
    struct client_answer answer = {&api_health_schema, &health, {0}};
    struct json_array machines;
    struct text json;
    if (client_get(market->client, arena, "/v1/market", &answer, error) < 0 ||
        client_list(market->client, arena, "/v1/machines?mine=true", &api_machine_page_schema,
                    MACHINES_MAX, &machines, &json, error) < 0)
        return -1;
    keep_answer(market, health.waiting_machines, &machines);
    return 0;
}

static void hear(struct lend_slurm_market *market)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error = {0};
    const bool was_away = market->is_away;
    market->is_away = ask(market, arena, &error) < 0;
    if (!market->is_away) {
        if (was_away)
            log_event(LOG_INFO, "market_back", "market=%s", client_server(market->client));
        return;
    }
    lock(market);
    market->wanted = 0;
    unlock(market);
    if (!was_away && !is_stopping(market))
        log_event(LOG_WARN, "market_away", "reason=\"%s\"", error.message);
}

static void fetch_code(struct lend_slurm_market *market)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct api_machine_code fetched = {0};
    struct client_answer answer = {&api_machine_code_schema, &fetched, {0}};
    struct lend_slurm_code code = {0};
    struct error error = {0};
    const bool has_code =
        client_post(market->client, arena, "/v1/machines/codes", (struct text){0}, &answer,
                    &error) == 0 &&
        text_copy(fetched.code, code.code, sizeof(code.code), &error) == 0 &&
        text_copy(fetched.fingerprint, code.fingerprint, sizeof(code.fingerprint), &error) == 0;
    lock(market);
    market->wants_code = false;
    market->has_code = has_code;
    market->code = code;
    market->code_error = error;
    ASSERT(pthread_cond_broadcast(&market->changed) == 0);
    unlock(market);
}

/* Whether a code is wanted before `until`, or it ends. */
static bool wait_for_wish(struct lend_slurm_market *market, const struct timespec *until)
{
    lock(market);
    int result = 0;
    while (!market->wants_code && !market->stop && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&market->changed, &market->mutex, until);
    const bool wants_code = market->wants_code;
    unlock(market);
    return wants_code;
}

static void *run(void *context)
{
    struct lend_slurm_market *market = context;
    while (!is_stopping(market)) {
        hear(market);
        const struct timespec until = seconds_from_now(ASK_S);
        while (!is_stopping(market) && wait_for_wish(market, &until))
            fetch_code(market);
    }
    return NULL;
}

/* ---- Whoever owns it ------------------------------------------------------------------------- */

int lend_slurm_market_open(const struct client *client, struct lend_slurm_market **out_market,
                           struct error *error)
{
    struct lend_slurm_market *market = memory_zeroed(1, sizeof(*market));
    if (client_clone_stoppable(client, &market->stop, &market->client, error) < 0) {
        free(market);
        return -1;
    }
    map_init(&market->leased);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&market->mutex, NULL);
    pthread_cond_init(&market->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    ASSERT(pthread_create(&market->thread, NULL, run, market) == 0);
    *out_market = market;
    return 0;
}

void lend_slurm_market_free(struct lend_slurm_market *market)
{
    if (!market)
        return;
    lock(market);
    market->stop = 1;
    ASSERT(pthread_cond_broadcast(&market->changed) == 0);
    unlock(market);
    ASSERT(pthread_join(market->thread, NULL) == 0);
    pthread_cond_destroy(&market->changed);
    pthread_mutex_destroy(&market->mutex);
    client_free(market->client);
    map_done(&market->leased);
    explicit_bzero(&market->code, sizeof(market->code));
    free(market);
}

bool lend_slurm_market_read(struct lend_slurm_market *market, int64_t *out_wanted,
                            struct map *out_leased)
{
    lock(market);
    *out_wanted = market->wanted;
    map_clear(out_leased);
    for (size_t i = 0; i < market->leased.count; i++)
        map_put_text(out_leased, market->leased.names[i], market);
    const bool is_heard = market->is_heard;
    unlock(market);
    return is_heard;
}

int lend_slurm_market_take_code(struct lend_slurm_market *market, struct lend_slurm_code *out,
                                struct error *error)
{
    const struct timespec until = seconds_from_now(CODE_WAIT_S);
    lock(market);
    int result = 0;
    if (!market->has_code) {
        market->wants_code = true;
        ASSERT(pthread_cond_broadcast(&market->changed) == 0);
    }
    while (market->wants_code && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&market->changed, &market->mutex, &until);
    const bool has_code = market->has_code;
    if (has_code)
        *out = market->code;
    else if (market->wants_code)
        error_set(error, ERROR_UNAVAILABLE, "the market has not answered within a second");
    else
        *error = market->code_error;
    market->has_code = false;
    explicit_bzero(&market->code, sizeof(market->code));
    unlock(market);
    return has_code ? 0 : -1;
}
