/* Exchange client: the training thread's side, and the client's life. */
#include "exchange/client.h"

#include "base/assert.h"
#include "base/memory.h"
#include "exchange/client_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define LOSS_SMOOTHING 0.05 /* weight of the newest step */

static void wake_link(struct exchange_client *client)
{
    const uint64_t one = 1;
    const ssize_t written = write(client->wake_fd, &one, sizeof one);
    ASSERT(written == sizeof one || errno == EAGAIN); /* full means: it will wake anyway */
}

/* --- the training thread --- */

void exchange_client_begin(struct exchange_client *client, const float *parameters)
{
    memcpy(client->base, parameters, client->options.parameter_count * sizeof(float));
    client_lock(client);
    client->has_begun = true;
    client_unlock(client);
    wake_link(client);
}

/* Called with the mutex held; gives it up while it works on the vectors. */
static void answer_move(struct exchange_client *client, float *parameters)
{
    client_loan_end(client);
    client_swap(&client->answer, &client->taken);
    client_unlock(client);
    const float *restrict model = client->taken, *restrict base = client->base;
    if (client->options.is_exact) {
        client->steps_unsent = 0;
        client->samples_unsent = 0;
        client->loss_unsent = 0;
        client->compute_unsent_ns = 0;
    }
    if (client->steps_unsent == 0) /* L is B: the sum would be W but for its rounding */
        memcpy(parameters, model, client->options.parameter_count * sizeof(float));
    else
        for (size_t i = 0; i < client->options.parameter_count; i++)
            parameters[i] += model[i] - base[i];
    client_swap(&client->base, &client->taken);
    client_lock(client);
}

/* The same. */
static void take_answer(struct exchange_client *client, float *parameters)
{
    client->has_answer = false;
    if (client->is_answer_written) {
        client_swap(&client->answer, &client->base);
        client->lent = NULL;
        client->is_update_lent = client->is_answer_written = false;
    } else {
        answer_move(client, parameters);
    }
    if (!client->options.on_taken)
        return;
    client_unlock(client);
    client->options.on_taken(client->options.context);
    client_lock(client);
}

/* The server would refuse such an update, and drop who sends it. */
void client_give_up(struct exchange_client *client)
{
    client->has_diverged = client->is_stopped = true;
    snprintf(client->reason, sizeof client->reason, "its parameters are not finite any more");
    pthread_cond_broadcast(&client->changed);
}

/* From float `first` to `end`: U = L - B, B = L. Whether all of U is sane. */
static bool update_make(struct exchange_client *client, const float *parameters, size_t first,
                        size_t end)
{
    enum { BLOCK = 4096 }; /* is checked while it is in the cache */
    bool is_sane = true;
    for (size_t at = first; at < end; at += BLOCK) {
        const size_t size = end - at < BLOCK ? end - at : BLOCK;
        const float *restrict now = parameters + at;
        float *restrict update = client->update + at, *restrict base = client->base + at;
        for (size_t i = 0; i < size; i++) {
            update[i] = now[i] - base[i];
            base[i] = now[i];
        }
        is_sane = codec_is_sane(update, size) && is_sane;
    }
    return is_sane;
}

void client_loan_end(struct exchange_client *client)
{
    if (!client->lent)
        return;
    CLIENT_RANGES(client)
    {
        const struct range part = range->range;
        const size_t sent = client->is_update_lent ? range->lent_sent : part.count;
        if (client->is_update_lent) {
            if (!update_make(client, client->lent, part.first + sent, part.first + part.count))
                client_give_up(client);
            range->outgoing.values = client->update + part.first;
            range->outgoing.base = NULL;
        }
        memcpy(client->base + part.first, client->lent + part.first, sent * sizeof(float));
    }
    client->lent = NULL;
    client->is_update_lent = client->is_answer_written = false;
}

/* Called with the mutex held; gives it up while it works on the vectors. With `lent`, which are the
 * parameters, there is no such work: the caller waits. */
static void push_begin(struct exchange_client *client, const float *parameters, float *lent)
{
    ASSERT(client->is_joined && !client->is_in_flight && !client->has_answer && !client->lent);
    if (!lent) {
        client_unlock(client);
        const bool is_sane = update_make(client, parameters, 0, client->options.parameter_count);
        client_lock(client);
        if (!is_sane) {
            client_give_up(client);
            return;
        }
    }
    client->lent = lent;
    client->is_update_lent = lent != NULL;
    CLIENT_RANGES(client)
    range->lent_sent = 0;
    const uint32_t steps = client->steps_unsent;
    client->push = (struct exchange_push){
        .number = client->push.number + 1,
        .steps = steps,
        .samples = client->samples_unsent,
        .loss = steps > 0 ? client->loss_unsent / steps : 0,
        .compute_ns = client->compute_unsent_ns,
        .commit_ns = client->commit_ns,
        .first_step = client->first_step_unsent,
        .first_sample = client->first_sample_unsent,
    };
    client->sent_ns = client_now_ns(client);
    client->held_from_ns = client->held_until_ns = 0;
    client->late_ns = 0;
    if (client->settings.period_ns > 0 && client->due_ns > 0 && client->sent_ns > client->due_ns)
        client->late_ns = client->sent_ns - client->due_ns;
    if (client->late_ns > client->settings.period_ns)
        client->late_ns = client->settings.period_ns;
    /* A link may have broken while the update was made: then the update is lost, as one on its way
     * would be. Nobody would ever answer it, and a worker with a push in flight makes no other. */
    client->is_in_flight = client->has_push = client->is_joined;
    client->steps_unsent = 0;
    client->samples_unsent = 0;
    client->loss_unsent = 0;
    client->compute_unsent_ns = 0;
    wake_link(client);
}

/* It may not go on without telling the server, or the limit of epochs would be passed. */
static bool is_full(const struct exchange_client *client)
{
    return (client->samples_max > 0 && client->samples_unsent >= client->samples_max) ||
           (client->options.is_exact && client->steps_unsent >= CHECK_STEPS_MAX);
}

static bool is_due(struct exchange_client *client)
{
    if (client->steps_unsent == 0)
        return false; /* an answer took what there was: is_exact */
    if (is_full(client))
        return true;
    if (client->settings.local_steps > 0)
        return client->steps_unsent >= client->settings.local_steps;
    client->due_ns = client->answer_ns + client->settings.period_ns - client->late_ns;
    return client->settings.period_ns > 0 && client_now_ns(client) >= client->due_ns;
}

static bool must_wait(const struct exchange_client *client)
{
    const struct exchange_settings *settings = &client->settings;
    if (is_full(client))
        return true;
    if (client->is_in_flight)
        return client->steps_unsent >= settings->overlap;
    /* Without a server it may go ahead as far as with a slow one. */
    return settings->local_steps > 0 &&
           client->steps_unsent >= (uint64_t)settings->local_steps + settings->overlap;
}

static void count_step(struct exchange_client *client, const struct exchange_step *step)
{
    const uint32_t steps = step->steps ? step->steps : 1;
    client->loss += (step->loss - client->loss) * (client->steps == 0 ? 1 : LOSS_SMOOTHING);
    client->steps += steps;
    client->samples += step->samples;
    if (client->steps_unsent == 0) {
        client->first_step_unsent = step->first_step;
        client->first_sample_unsent = step->first_sample;
    }
    client->steps_unsent += steps;
    client->samples_unsent += step->samples;
    client->loss_unsent += step->loss * steps;
    client->compute_unsent_ns += step->ended_ns - step->started_ns;
}

/* How much of the time since `since_ns`, in which the training thread stood still for the push in
 * flight, something of it or its answer was under way. */
static int64_t transfer_since(const struct exchange_client *client, int64_t since_ns,
                              int64_t now_ns)
{
    const int64_t from_ns = client->held_from_ns > 0 ? client->held_from_ns : now_ns;
    const int64_t until_ns = client->held_until_ns > 0 ? client->held_until_ns : now_ns;
    const int64_t first_ns = from_ns > since_ns ? from_ns : since_ns;
    const int64_t held_ns = until_ns > first_ns ? until_ns - first_ns : 0;
    return now_ns - since_ns - held_ns;
}

/* Called with the mutex held; until something has changed. */
static void stand_still(struct exchange_client *client)
{
    const bool was_in_flight = client->is_in_flight;
    client->waiting_since_ns = client_now_ns(client);
    pthread_cond_wait(&client->changed, &client->mutex);
    const int64_t since_ns = client->waiting_since_ns, now_ns = client_now_ns(client);
    client->waiting_since_ns = 0;
    client->waiting_ns += now_ns - since_ns;
    if (was_in_flight && (client->is_in_flight || client->has_answer)) /* else the link broke */
        client->transfer_ns += transfer_since(client, since_ns, now_ns);
}

bool exchange_client_count(struct exchange_client *client, const struct exchange_step *step)
{
    client_lock(client);
    count_step(client, step);
    const bool is_wanted = client->is_stopped || client->has_answer ||
                           client->check.turn == CLIENT_CHECK_WANTED || must_wait(client) ||
                           (client->is_joined && !client->is_in_flight && is_due(client));
    client_unlock(client);
    return is_wanted;
}

bool exchange_client_exchange(struct exchange_client *client, float *parameters)
{
    client_lock(client);
    while (!client->is_stopped) {
        if (client->has_answer)
            take_answer(client, parameters);
        if (!client->is_in_flight)
            client_loan_end(client); /* the link broke: the push is given up */
        if (client->is_joined && !client->is_in_flight && !client->has_answer && is_due(client))
            push_begin(client, parameters, client->settings.overlap == 0 ? parameters : NULL);
        if (client->check.turn == CLIENT_CHECK_WANTED) {
            client_check_make(client);
            wake_link(client);
            continue;
        }
        if (client->has_answer)
            continue;
        if (client->is_stopped || !must_wait(client))
            break;
        stand_still(client);
    }
    client_loan_end(client);
    const bool goes_on = !client->is_stopped;
    client_unlock(client);
    return goes_on;
}

bool exchange_client_step(struct exchange_client *client, const struct exchange_step *step,
                          float *parameters)
{
    return !exchange_client_count(client, step) || exchange_client_exchange(client, parameters);
}

struct exchange_steps exchange_client_steps(struct exchange_client *client)
{
    client_lock(client);
    const struct exchange_steps steps = {client->settings.batch, client->settings.is_plain};
    client_unlock(client);
    return steps;
}

static struct timespec deadline_of(int64_t timeout_ms)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += timeout_ms / 1000;
    deadline.tv_nsec += timeout_ms % 1000 * 1000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    return deadline;
}

/* Called with the mutex held. False when the deadline passed first. */
static bool wait_answer(struct exchange_client *client, const struct timespec *deadline)
{
    while (client->is_in_flight)
        if (pthread_cond_timedwait(&client->changed, &client->mutex, deadline) == ETIMEDOUT)
            return !client->is_in_flight;
    return true;
}

/* Called with the mutex held. */
static void leave(struct exchange_client *client, const struct timespec *deadline)
{
    client->wants_leave = true;
    wake_link(client);
    while (!client->has_left)
        if (pthread_cond_timedwait(&client->changed, &client->mutex, deadline) == ETIMEDOUT)
            break;
}

/* The link may be about to come up; nobody waits for it who was told to stop. */
static void wait_joined(struct exchange_client *client, const struct timespec *deadline)
{
    while (!client->is_joined && !client->is_stopped)
        if (pthread_cond_timedwait(&client->changed, &client->mutex, deadline) == ETIMEDOUT)
            break;
}

void exchange_client_finish(struct exchange_client *client, const float *parameters,
                            int64_t timeout_ms)
{
    const struct timespec deadline = deadline_of(timeout_ms);
    client_lock(client);
    if (!client->has_diverged)
        wait_joined(client, &deadline);
    if (!client->has_diverged && wait_answer(client, &deadline) && client->is_joined &&
        client->steps_unsent > 0 && !(client->options.is_exact && client->has_answer)) {
        client->has_answer = false; /* L - B is the same with or without it */
        push_begin(client, parameters, NULL);
        wait_answer(client, &deadline);
    }
    leave(client, &deadline);
    client_unlock(client);
}

void exchange_client_diverged(struct exchange_client *client, int64_t timeout_ms)
{
    const struct timespec deadline = deadline_of(timeout_ms);
    client_lock(client);
    wait_joined(client, &deadline);
    client->has_diverged = true;
    leave(client, &deadline);
    client_unlock(client);
}

/* --- any thread --- */

void exchange_client_stop(struct exchange_client *client, const char *reason)
{
    client_lock(client);
    if (!client->is_stopped)
        snprintf(client->reason, sizeof client->reason, "%s", reason);
    client->is_stopped = true;
    pthread_cond_broadcast(&client->changed);
    client_unlock(client);
}

void exchange_client_status(struct exchange_client *client, struct exchange_client_status *out)
{
    client_lock(client);
    const int64_t now_ns = client_now_ns(client);
    const int64_t since_ns = client->waiting_since_ns > 0 ? client->waiting_since_ns : now_ns;
    const int64_t transfer_ns = client->is_in_flight ? transfer_since(client, since_ns, now_ns) : 0;
    *out = (struct exchange_client_status){
        .state = client->is_stopped  ? EXCHANGE_CLIENT_STOPPED
                 : client->is_joined ? EXCHANGE_CLIENT_TRAINING
                                     : EXCHANGE_CLIENT_CONNECTING,
        .steps = client->steps,
        .samples = client->samples,
        .commits = client->commits,
        .loss = client->loss,
        .steps_per_second = client->steps_per_second,
        .commit_ns = client->commit_ns,
        .waiting_ns = client->waiting_ns + now_ns - since_ns,
        .transfer_ns = client->transfer_ns + transfer_ns,
        .sent_bytes = client->sent_bytes,
        .received_bytes = client->received_bytes,
        .lost_since_ns = client->lost_since_ns,
        .has_left = client->has_left,
        .settings = client->settings,
    };
    memcpy(out->reason, client->reason, sizeof out->reason);
    client_unlock(client);
}

/* --- life --- */

static int client_allocate(struct exchange_client *client, struct error *error)
{
    const size_t count = client->options.parameter_count;
    float **vectors[] = {&client->base, &client->taken, &client->answer, &client->update,
                         &client->incoming};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (!(*vectors[i] = calloc(count, sizeof(float))))
            return error_set(error, ERROR_EXHAUSTED, "no memory for a model of %zu parameters",
                             count);
    for (uint32_t i = 0; i < client->range_count; i++) {
        struct client_range *range = &client->ranges[i];
        range->client = client;
        range->server = i;
        range->range = range_of(count, client->range_count, i);
        range->incoming.count = range->range.count;
    }
    client->scratch = malloc(sizeof(*client->scratch));
    ASSERT(client->scratch);
    return 0;
}

int exchange_client_open(const struct exchange_client_options *options,
                         struct exchange_client **out_client, struct error *error)
{
    if (options->parameter_count == 0 || options->parameter_count > EXCHANGE_PARAMETERS_MAX)
        return error_set(error, ERROR_INVALID, "a model must have 1 to %d parameters",
                         EXCHANGE_PARAMETERS_MAX);
    if (options->servers > EXCHANGE_SERVERS_MAX || options->servers > options->parameter_count)
        return error_set(error, ERROR_INVALID, "too many parameter servers");
    AUTO(exchange_client) struct exchange_client *client = memory_zeroed(1, sizeof *client);
    client->options = *options;
    client->range_count = options->servers > 1 ? options->servers : 1;
    client->wake_fd = -1;
    client->settings.local_steps = options->local_steps;
    client->samples_max = options->samples_max;
    client->settings.density = 1;
    pthread_mutex_init(&client->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&client->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    client->lost_since_ns = client->progress_ns = client_now_ns(client);
    if (client_allocate(client, error) < 0)
        return -1;
    client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (client->wake_fd < 0)
        return error_set_errno(error, errno, "open an eventfd");
    if (loop_watch_open(options->loop, client->wake_fd, LOOP_READ, client_on_wake, client,
                        &client->wake_watch, error) < 0)
        return -1;
    client->progress_timer = loop_timer_new(options->loop, client_on_progress, client);
    loop_timer_start(client->progress_timer, EXCHANGE_PROGRESS_MS);
    *out_client = TAKE(client);
    return 0;
}

void exchange_client_free(struct exchange_client *client)
{
    if (!client)
        return;
    CLIENT_RANGES(client)
    {
        link_free(range->link);
        free(range->shadow);
        compressor_free(range->compressor);
    }
    loop_watch_free(client->wake_watch);
    loop_timer_free(client->progress_timer);
    if (client->wake_fd >= 0)
        close(client->wake_fd);
    pthread_cond_destroy(&client->changed);
    pthread_mutex_destroy(&client->mutex);
    free(client->base);
    free(client->taken);
    free(client->answer);
    free(client->update);
    free(client->incoming);
    client_check_free(client);
    free(client->scratch);
    free(client);
}
