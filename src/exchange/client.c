/*
 * Exchange client: a mailbox between the training thread and the link's thread.
 *
 * Vectors change hands, they are not shared: `update` belongs to the training thread while
 * is_in_flight is false and to the link's thread otherwise; an answer is gathered in `incoming`
 * (link's thread), swapped into `answer` (the mailbox) when it is whole, and swapped into `taken`
 * (training thread) when it is wanted. An eventfd tells the loop that the mailbox changed, a
 * condition tells the training thread.
 */
#include "exchange/client.h"

#include "base/assert.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_MS = 1000 };
#define LOSS_SMOOTHING 0.05 /* weight of the newest step */

struct exchange_client {
    struct exchange_client_options options;

    pthread_mutex_t mutex;
    pthread_cond_t changed;

    /* --- guarded by mutex --- */
    bool is_stopped;
    bool is_joined;    /* the server's first model came on this link */
    bool is_in_flight; /* a push is with the link's thread or the server */
    bool has_push;     /* ... and has yet to be sent */
    bool has_answer;   /* `answer` holds a model not yet taken over */
    bool wants_leave;  /* the training thread is done */
    bool has_left;     /* LEAVE is sent, or there is no link to send it on */
    struct exchange_settings settings;
    struct exchange_push push; /* of the update in flight, or the next one's number */
    float *answer;
    int64_t sent_ns;   /* of the push in flight */
    int64_t answer_ns; /* when the last answer came */
    int64_t late_ns;   /* what the last push was late by */
    int64_t due_ns;    /* of the push in flight, by period */
    int64_t commit_ns, waiting_ns, lost_since_ns;
    uint64_t steps, samples, commits;
    double loss; /* moving mean */
    double steps_per_second;
    char reason[256];

    /* --- the training thread's --- */
    float *base, *taken;
    uint32_t steps_unsent;
    uint64_t samples_unsent;
    double loss_unsent; /* sum over steps_unsent */
    int64_t compute_unsent_ns;

    float *update; /* see above */

    /* --- the link's thread's --- */
    struct link *link;
    int wake_fd;
    struct loop_watch *wake_watch;
    struct loop_timer *progress_timer;
    struct exchange_vector incoming, outgoing;
    bool is_receiving; /* MODEL came, its DATA not all */
    struct exchange_model incoming_model;
    uint64_t progress_steps; /* at progress_ns */
    int64_t progress_ns;
};

static int64_t now_ns(const struct exchange_client *client)
{
    return clock_monotonic_ns(loop_clock(client->options.loop));
}

static void lock(struct exchange_client *client)
{
    pthread_mutex_lock(&client->mutex);
}

static void unlock(struct exchange_client *client)
{
    pthread_mutex_unlock(&client->mutex);
}

static void wake_link(struct exchange_client *client)
{
    const uint64_t one = 1;
    const ssize_t written = write(client->wake_fd, &one, sizeof one);
    ASSERT(written == sizeof one || errno == EAGAIN); /* full means: it will wake anyway */
}

static void swap(float **left, float **right)
{
    float *kept = *left;
    *left = *right;
    *right = kept;
}

/* --- the training thread --- */

void exchange_client_begin(struct exchange_client *client, const float *parameters)
{
    memcpy(client->base, parameters, client->options.parameter_count * sizeof(float));
}

/* Called with the mutex held; gives it up while it works on the vectors. */
static void take_answer(struct exchange_client *client, float *parameters)
{
    client->has_answer = false;
    swap(&client->answer, &client->taken);
    unlock(client);
    const float *model = client->taken;
    for (size_t i = 0; i < client->options.parameter_count; i++)
        parameters[i] += model[i] - client->base[i];
    swap(&client->base, &client->taken);
    lock(client);
}

/* Called with the mutex held; gives it up while it works on the vectors. */
static void push_begin(struct exchange_client *client, const float *parameters)
{
    ASSERT(client->is_joined && !client->is_in_flight && !client->has_answer);
    unlock(client);
    for (size_t i = 0; i < client->options.parameter_count; i++)
        client->update[i] = parameters[i] - client->base[i];
    memcpy(client->base, parameters, client->options.parameter_count * sizeof(float));
    lock(client);
    const uint32_t steps = client->steps_unsent;
    client->push = (struct exchange_push){
        .number = client->push.number + 1,
        .steps = steps,
        .samples = client->samples_unsent,
        .loss = steps > 0 ? client->loss_unsent / steps : 0,
        .compute_ns = client->compute_unsent_ns,
        .commit_ns = client->commit_ns,
    };
    client->sent_ns = now_ns(client);
    client->late_ns = 0;
    if (client->settings.period_ns > 0 && client->due_ns > 0 && client->sent_ns > client->due_ns)
        client->late_ns = client->sent_ns - client->due_ns;
    if (client->late_ns > client->settings.period_ns)
        client->late_ns = client->settings.period_ns;
    client->is_in_flight = client->has_push = true;
    client->steps_unsent = 0;
    client->samples_unsent = 0;
    client->loss_unsent = 0;
    client->compute_unsent_ns = 0;
    wake_link(client);
}

static bool is_due(struct exchange_client *client)
{
    if (client->settings.local_steps > 0)
        return client->steps_unsent >= client->settings.local_steps;
    client->due_ns = client->answer_ns + client->settings.period_ns - client->late_ns;
    return client->settings.period_ns > 0 && now_ns(client) >= client->due_ns;
}

static bool must_wait(const struct exchange_client *client)
{
    const struct exchange_settings *settings = &client->settings;
    if (client->is_in_flight)
        return client->steps_unsent >= settings->overlap;
    /* Without a server it may go ahead as far as with a slow one. */
    return settings->local_steps > 0 &&
           client->steps_unsent >= (uint64_t)settings->local_steps + settings->overlap;
}

static void count_step(struct exchange_client *client, const struct exchange_step *step)
{
    client->steps++;
    client->samples += step->samples;
    client->loss += (step->loss - client->loss) * (client->steps == 1 ? 1 : LOSS_SMOOTHING);
    client->steps_unsent++;
    client->samples_unsent += step->samples;
    client->loss_unsent += step->loss;
    client->compute_unsent_ns += step->ended_ns - step->started_ns;
}

bool exchange_client_step(struct exchange_client *client, const struct exchange_step *step,
                          float *parameters)
{
    lock(client);
    count_step(client, step);
    while (!client->is_stopped) {
        if (client->has_answer)
            take_answer(client, parameters);
        if (client->is_joined && !client->is_in_flight && !client->has_answer && is_due(client))
            push_begin(client, parameters);
        if (client->has_answer)
            continue;
        if (!must_wait(client))
            break;
        const int64_t since_ns = now_ns(client);
        pthread_cond_wait(&client->changed, &client->mutex);
        client->waiting_ns += now_ns(client) - since_ns;
    }
    const bool goes_on = !client->is_stopped;
    unlock(client);
    return goes_on;
}

uint32_t exchange_client_batch(struct exchange_client *client)
{
    lock(client);
    const uint32_t batch = client->settings.batch;
    unlock(client);
    return batch;
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

void exchange_client_finish(struct exchange_client *client, const float *parameters,
                            int64_t timeout_ms)
{
    const struct timespec deadline = deadline_of(timeout_ms);
    lock(client);
    if (wait_answer(client, &deadline) && client->is_joined && client->steps_unsent > 0) {
        client->has_answer = false; /* L - B is the same with or without it */
        push_begin(client, parameters);
        wait_answer(client, &deadline);
    }
    client->wants_leave = true;
    wake_link(client);
    while (!client->has_left)
        if (pthread_cond_timedwait(&client->changed, &client->mutex, &deadline) == ETIMEDOUT)
            break;
    unlock(client);
}

/* --- the link's thread --- */

static void changed(struct exchange_client *client)
{
    if (client->options.on_change)
        client->options.on_change(client->options.context);
}

static void link_lost(struct exchange_client *client, const struct error *reason)
{
    link_free(TAKE(client->link));
    client->is_receiving = false;
    client->outgoing = (struct exchange_vector){0}; /* the update goes back to its owner */
    lock(client);
    client->is_joined = false;
    client->is_in_flight = client->has_push = false;
    client->has_left = client->has_left || client->wants_leave;
    if (client->lost_since_ns == 0)
        client->lost_since_ns = now_ns(client);
    if (reason && !client->is_stopped)
        snprintf(client->reason, sizeof client->reason, "%s", reason->message);
    pthread_cond_broadcast(&client->changed);
    unlock(client);
    changed(client);
}

static void message_send(struct exchange_client *client, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    if (client->link &&
        link_send_text(client->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        link_lost(client, &error);
}

static void update_pump(struct exchange_client *client)
{
    while (client->link && client->outgoing.done < client->outgoing.count) {
        if (link_queued_bytes(client->link) > EXCHANGE_QUEUE_FULL)
            return;
        struct exchange_chunk chunk;
        struct error error;
        exchange_vector_next(&client->outgoing, &chunk);
        const struct text parts[2] = {{(const char *)chunk.head, sizeof chunk.head}, chunk.floats};
        if (link_send(client->link, EXCHANGE_DATA, parts, 2, &error) < 0) {
            link_lost(client, &error);
            return;
        }
        client->outgoing.done += chunk.float_count;
    }
}

static void push_send(struct exchange_client *client, const struct exchange_push *push)
{
    client->outgoing = (struct exchange_vector){0};
    message_send(client, &(struct exchange_message){.type = EXCHANGE_PUSH, .push = *push});
    if (!client->link)
        return;
    client->outgoing.values = client->update;
    client->outgoing.count = client->options.parameter_count;
    update_pump(client);
}

static void leave_send(struct exchange_client *client)
{
    message_send(client, &(struct exchange_message){.type = EXCHANGE_LEAVE});
    if (client->link) {
        link_finish(client->link); /* on_close tells when it is gone */
        return;
    }
    lock(client);
    client->has_left = true;
    pthread_cond_broadcast(&client->changed);
    unlock(client);
}

static void on_wake(void *context, uint32_t events)
{
    (void)events;
    struct exchange_client *client = context;
    uint64_t count;
    if (read(client->wake_fd, &count, sizeof count) < 0)
        return;
    lock(client);
    const bool has_push = client->has_push;
    const bool wants_leave = client->wants_leave;
    const struct exchange_push push = client->push;
    client->has_push = false;
    unlock(client);
    if (has_push)
        push_send(client, &push);
    if (wants_leave)
        leave_send(client);
}

static void progress_due(void *context)
{
    struct exchange_client *client = context;
    const int64_t now = now_ns(client);
    lock(client);
    if (client->steps > client->progress_steps) {
        const double span_s = 1e-9 * (double)(now - client->progress_ns);
        client->steps_per_second = (double)(client->steps - client->progress_steps) / span_s;
        client->progress_steps = client->steps;
        client->progress_ns = now;
    }
    const struct exchange_message message = {
        .type = EXCHANGE_PROGRESS,
        .progress = {client->steps, client->samples, client->steps_per_second}};
    const bool is_joined = client->is_joined && !client->wants_leave;
    unlock(client);
    if (is_joined)
        message_send(client, &message);
    loop_timer_start(client->progress_timer, PROGRESS_MS);
}

/* The answer to the push in flight, or to the join. */
static void answer_came(struct exchange_client *client, uint64_t push, bool has_model)
{
    lock(client);
    const int64_t now = now_ns(client);
    if (push > 0) {
        client->commit_ns = now - client->sent_ns;
        client->commits++;
        client->is_in_flight = false;
    } else {
        client->is_joined = true;
        client->lost_since_ns = 0;
        client->late_ns = 0;
    }
    client->answer_ns = now;
    if (has_model) {
        swap(&client->answer, &client->incoming.values);
        client->has_answer = true;
    }
    pthread_cond_broadcast(&client->changed);
    unlock(client);
    changed(client);
}

/* Whether an answer to `push` is expected now. */
static int check_answer(struct exchange_client *client, uint64_t push, struct error *error)
{
    lock(client);
    const bool is_expected =
        push == 0 ? !client->is_joined
                  : client->is_in_flight && !client->has_push && push == client->push.number;
    unlock(client);
    if (!is_expected)
        return error_set(error, ERROR_CORRUPT, "an answer to push %" PRIu64 " out of turn", push);
    return 0;
}

static int take_data(struct exchange_client *client, struct text payload, struct error *error)
{
    if (!client->is_receiving)
        return error_set(error, ERROR_CORRUPT, "data without a model");
    if (exchange_vector_take(&client->incoming, payload, error) < 0)
        return -1;
    if (client->incoming.done == client->incoming.count) {
        client->is_receiving = false;
        answer_came(client, client->incoming_model.push, true);
    }
    return 0;
}

static int take_message(struct exchange_client *client, const struct exchange_message *message,
                        struct error *error)
{
    switch (message->type) {
    case EXCHANGE_MODEL:
        if (client->is_receiving || check_answer(client, message->model.push, error) < 0)
            return client->is_receiving ? error_set(error, ERROR_CORRUPT, "a model within a model")
                                        : -1;
        client->is_receiving = true;
        client->incoming_model = message->model;
        client->incoming.done = 0;
        return 0;
    case EXCHANGE_SETTINGS:
        lock(client);
        client->settings = message->settings;
        pthread_cond_broadcast(&client->changed);
        unlock(client);
        return 0;
    case EXCHANGE_ACCEPTED:
        if (check_answer(client, message->accepted_push, error) < 0)
            return -1;
        answer_came(client, message->accepted_push, false);
        return 0;
    case EXCHANGE_STOP: {
        char reason[EXCHANGE_REASON_MAX + 1];
        if (text_copy(message->stop_reason, reason, sizeof reason, error) < 0)
            return -1;
        exchange_client_stop(client, reason);
        changed(client);
        return 0;
    }
    case EXCHANGE_JOIN:
    case EXCHANGE_PUSH:
    case EXCHANGE_PROGRESS:
    case EXCHANGE_LEAVE:
    case EXCHANGE_DATA:
        break;
    }
    return error_set(error, ERROR_CORRUPT, "a message that only a worker sends");
}

static void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct exchange_client *client = context;
    struct error error;
    struct exchange_message message;
    int result;
    if (type == EXCHANGE_DATA)
        result = take_data(client, payload, &error);
    else if ((result = exchange_message_decode(type, payload, &message, &error)) == 0)
        result = take_message(client, &message, &error);
    if (result < 0)
        link_lost(client, &error);
}

static void on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    struct exchange_client *client = context;
    const struct exchange_client_options *options = &client->options;
    message_send(client,
                 &(struct exchange_message){.type = EXCHANGE_JOIN,
                                            .join = {.rank = options->rank,
                                                     .shard_samples = options->shard_samples,
                                                     .parameter_count = options->parameter_count}});
}

static void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct exchange_client *client = context;
    struct error gone;
    error_set(&gone, ERROR_UNAVAILABLE, "the parameter server closed the link");
    link_lost(client, reason ? reason : &gone);
}

static void on_drained(struct link *link, void *context)
{
    (void)link;
    update_pump(context);
}

int exchange_client_attach_take(struct exchange_client *client, int fd, struct error *error)
{
    char identity[EXCHANGE_IDENTITY_SIZE];
    exchange_identity_format(client->options.lease, client->options.fence, identity);
    const struct link_options options = {
        .loop = client->options.loop,
        .identity = identity,
        .key = client->options.key,
        .payload_max = EXCHANGE_PAYLOAD_MAX,
        .queue_max_bytes = EXCHANGE_QUEUE_MAX,
        .callbacks = {on_open, on_frame, on_close, on_drained},
        .context = client,
    };
    struct link *link = NULL;
    if (link_open_take(&options, fd, &link, error) < 0)
        return -1;
    if (client->link) {
        struct error replaced;
        error_set(&replaced, ERROR_UNAVAILABLE, "a new stream replaced the link");
        link_lost(client, &replaced);
    }
    client->link = link;
    return 0;
}

/* --- any thread --- */

void exchange_client_stop(struct exchange_client *client, const char *reason)
{
    lock(client);
    if (!client->is_stopped)
        snprintf(client->reason, sizeof client->reason, "%s", reason);
    client->is_stopped = true;
    pthread_cond_broadcast(&client->changed);
    unlock(client);
}

void exchange_client_status(struct exchange_client *client, struct exchange_client_status *out)
{
    lock(client);
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
        .waiting_ns = client->waiting_ns,
        .lost_since_ns = client->lost_since_ns,
        .settings = client->settings,
    };
    memcpy(out->reason, client->reason, sizeof out->reason);
    unlock(client);
}

/* --- life --- */

static int client_allocate(struct exchange_client *client, struct error *error)
{
    const size_t count = client->options.parameter_count;
    float **vectors[] = {&client->base, &client->taken, &client->answer, &client->update,
                         &client->incoming.values};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (!(*vectors[i] = calloc(count, sizeof(float))))
            return error_set(error, ERROR_EXHAUSTED, "no memory for a model of %zu parameters",
                             count);
    client->incoming.count = count;
    return 0;
}

int exchange_client_open(const struct exchange_client_options *options,
                         struct exchange_client **out_client, struct error *error)
{
    if (options->parameter_count == 0 || options->parameter_count > EXCHANGE_PARAMETERS_MAX)
        return error_set(error, ERROR_INVALID, "a model must have 1 to %d parameters",
                         EXCHANGE_PARAMETERS_MAX);
    AUTO(exchange_client) struct exchange_client *client = calloc(1, sizeof *client);
    ASSERT(client);
    client->options = *options;
    client->wake_fd = -1;
    client->settings.local_steps = options->local_steps;
    pthread_mutex_init(&client->mutex, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&client->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    client->lost_since_ns = client->progress_ns = now_ns(client);
    if (client_allocate(client, error) < 0)
        return -1;
    client->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (client->wake_fd < 0)
        return error_set_errno(error, errno, "open an eventfd");
    if (loop_watch_open(options->loop, client->wake_fd, LOOP_READ, on_wake, client,
                        &client->wake_watch, error) < 0)
        return -1;
    client->progress_timer = loop_timer_new(options->loop, progress_due, client);
    loop_timer_start(client->progress_timer, PROGRESS_MS);
    *out_client = TAKE(client);
    return 0;
}

void exchange_client_free(struct exchange_client *client)
{
    if (!client)
        return;
    link_free(client->link);
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
    free(client->incoming.values);
    free(client);
}
