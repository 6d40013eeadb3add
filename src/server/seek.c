/*
 * Seek: jobs that look for machines near each other have the ones they could have tried (trial.c).
 *
 * Only then: idle machines are left in peace. On the core thread whatever was committed is followed
 * by a look at the jobs that seek (core.h), LOOK_MS apart, or LOOK_PRESSING_MS if a job is new; the
 * machines they could have come over to the hub's thread. A job waits meanwhile as any other that
 * has too few machines: nothing here keeps the core from deciding.
 */
#include "base/assert.h"
#include "server/hub_internal.h"

#include <sodium.h>
#include <stdlib.h>

#define MS_NS INT64_C(1000000)

enum {
    LOOK_MS = 250,
    LOOK_PRESSING_MS = 20, /* however many commits a second bring new jobs */
    LOOK_AGAIN_MS = 5000,  /* though nothing was committed: limits may have been in the way */
    SEEKERS_MAX = 4,       /* in one look */
    CANDIDATES_MAX = 64,   /* of one job */
};

struct sought {
    struct hub *hub;
    uint64_t fingerprint;
    int64_t max_rtt_us;
    size_t machine_count;
    uint64_t machines[CANDIDATES_MAX];
};

static struct hub_sought *find_sought(struct hub *hub, uint64_t fingerprint)
{
    for (size_t i = 0; i < HUB_SOUGHT_MAX && i < hub->sought_count; i++)
        if (hub->sought[i].fingerprint == fingerprint)
            return &hub->sought[i];
    return NULL;
}

static void take_sought(void *context)
{
    struct sought *sought = context;
    struct hub *hub = sought->hub;
    const bool is_running =
        trial_all(hub, sought->machines, sought->machine_count, sought->max_rtt_us);
    pthread_mutex_lock(&hub->live_mutex);
    struct hub_sought *found = find_sought(hub, sought->fingerprint);
    if (found)
        found->is_settled = !is_running;
    pthread_mutex_unlock(&hub->live_mutex);
    free(sought);
}

/* The nearest to the market, and where it has workers. */
static struct sought *sought_new(struct hub *hub, const struct core_seeker *seeker)
{
    struct sought *sought = calloc(1, sizeof(*sought));
    ASSERT(sought);
    sought->hub = hub;
    sought->max_rtt_us = seeker->max_rtt_us;
    const size_t free_count = seeker->machine_count - seeker->worker_count;
    const size_t kept =
        seeker->worker_count < CANDIDATES_MAX / 2 ? seeker->worker_count : CANDIDATES_MAX / 2;
    for (size_t i = 0; i < free_count && sought->machine_count < CANDIDATES_MAX - kept; i++)
        sought->machines[sought->machine_count++] = seeker->machines[i]->id;
    for (size_t i = 0; i < kept; i++)
        sought->machines[sought->machine_count++] = seeker->machines[free_count + i]->id;
    crypto_generichash((uint8_t *)&sought->fingerprint, sizeof(sought->fingerprint),
                       (const uint8_t *)sought->machines, sizeof(sought->machines), NULL, 0);
    sought->fingerprint ^= (uint64_t)sought->max_rtt_us;
    return sought;
}

static void pass_on(struct hub *hub, const struct core_seeker *seeker)
{
    loop_post(hub->loop, take_sought, sought_new(hub, seeker));
}

/* What was never sought is not settled; nor is what was, while a trial is under way. */
bool hub_seek(struct hub *hub, const struct core_seeker *seeker)
{
    if (seeker->machine_count < 2)
        return false;
    struct sought *sought = sought_new(hub, seeker);
    pthread_mutex_lock(&hub->live_mutex);
    struct hub_sought *found = find_sought(hub, sought->fingerprint);
    const bool is_settled = found && found->is_settled;
    if (!found)
        hub->sought[hub->sought_count++ % HUB_SOUGHT_MAX] =
            (struct hub_sought){.fingerprint = sought->fingerprint};
    pthread_mutex_unlock(&hub->live_mutex);
    loop_post(hub->loop, take_sought, sought);
    return !is_settled;
}

static void look(struct hub *hub, const struct core *core)
{
    const size_t count = core_seeker_count(core);
    atomic_store(&hub->has_seekers, count > 0);
    for (size_t i = 0; i < count && i < SEEKERS_MAX; i++) {
        struct core_seeker seeker;
        core_seeker(core, hub->seeker_turn++ % count, &seeker);
        if (seeker.machine_count > 1)
            pass_on(hub, &seeker);
    }
}

static bool is_pressing(const struct event *event)
{
    return event->kind == EVENT_JOB_SUBMITTED || event->kind == EVENT_JOB_DUE ||
           event->kind == EVENT_LEASE_ENDED ||
           (event->kind == EVENT_MACHINE_STATE_CHANGED &&
            event->machine_state_changed.state == MACHINE_STATE_ONLINE);
}

void seek_listen(struct hub *hub, const struct core *core, const struct event *events,
                 size_t event_count)
{
    if (core_seeker_count(core) == 0) {
        atomic_store(&hub->has_seekers, false);
        return;
    }
    const int64_t now_ns = hub_now_ns(hub);
    const int64_t since_ns = now_ns - hub->looked_ns;
    bool presses = atomic_load(&hub->is_look_pressing);
    for (size_t i = 0; i < event_count && !presses; i++)
        presses = is_pressing(&events[i]);
    if (since_ns < (presses ? LOOK_PRESSING_MS : LOOK_MS) * MS_NS) {
        atomic_store(&hub->is_look_pressing,
                     presses); /* with the next commit, or the next second */
        return;
    }
    hub->looked_ns = now_ns;
    atomic_store(&hub->is_look_pressing, false);
    look(hub, core);
}

/* ---- Time ------------------------------------------------------------------------------------ */

struct second_look {
    struct engine_request request;
    struct hub *hub;
};

static int look_again(struct engine_request *request, const struct core *core,
                      struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    look(((struct second_look *)request)->hub, core);
    return 0;
}

static void looked_again(struct engine_request *request, const struct error *error)
{
    (void)error; /* there will be another */
    free(request);
}

static void ask_to_look(struct hub *hub)
{
    struct second_look *again = calloc(1, sizeof(*again));
    struct error ignored; /* as above */
    ASSERT(again);
    again->hub = hub;
    again->request.loop = hub->loop;
    again->request.on_decided = look_again;
    again->request.on_done = looked_again;
    if (engine_submit(hub->server->engine, &again->request, /* is_internal= */ true, &ignored) < 0)
        free(again);
}

void seek_check(struct hub *hub)
{
    const int64_t now_ns = hub_now_ns(hub);
    const bool is_time = now_ns - hub->asked_to_look_ns > LOOK_AGAIN_MS * MS_NS;
    if (atomic_exchange(&hub->is_look_pressing, false) ||
        (atomic_load(&hub->has_seekers) && is_time)) {
        hub->asked_to_look_ns = now_ns;
        ask_to_look(hub);
    }
}
