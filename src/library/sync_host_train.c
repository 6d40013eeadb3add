/*
 * Sync host, training: the parameter server, and the model that a rank 0 which was started again
 * takes from who has trained most.
 */
#include "library/sync_host_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODEL_PATIENCE_MS = 30000 };
#define FOREVER_MS INT64_C(1000000000) /* eleven days: it is this library that ends training */

static void fail(struct sync_host *host, const char *why)
{
    host->has_failed = true;
    snprintf(host->failure, sizeof host->failure, "%s", why);
    host_changed(host);
}

const char *sync_host_failure(const struct sync_host *host)
{
    return host->has_failed ? host->failure : NULL;
}

/* ---- The loss -------------------------------------------------------------------------------- */

static void on_push(void *context, uint32_t rank, double loss)
{
    struct sync_host *host = context;
    if (rank >= SYNC_WORLD_MAX || !isfinite(loss))
        return;
    pthread_mutex_lock(&host->loss.mutex);
    host->loss.is_known[rank] = true;
    host->loss.losses[rank] = loss;
    pthread_cond_broadcast(&host->loss.changed);
    pthread_mutex_unlock(&host->loss.mutex);
}

/* Called with the mutex held. */
static bool mean_loss(const struct host_loss *loss, double *out_mean)
{
    double sum = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < SYNC_WORLD_MAX; i++)
        if (loss->is_known[i]) {
            sum += loss->losses[i];
            known++;
        }
    *out_mean = known > 0 ? sum / known : 0;
    return known > 0;
}

/* On the evaluator's thread. */
static int measure(void *context, struct evaluation_report *report, struct error *error)
{
    (void)error;
    struct host_loss *loss = context;
    pthread_mutex_lock(&loss->mutex);
    while (!mean_loss(loss, &report->loss) && !loss->is_closing)
        pthread_cond_wait(&loss->changed, &loss->mutex);
    pthread_mutex_unlock(&loss->mutex);
    return 0;
}

/* ---- The server ------------------------------------------------------------------------------ */

/* A worker's lease is its process: a successor of the same rank is another. */
static int find_peer(void *context, uint64_t lease, uint64_t fence, struct exchange_peer *out_peer)
{
    const struct sync_host *host = context;
    for (uint32_t i = 0; i < host->options.world && fence == 1; i++)
        if (host->ranks[i].process == lease && lease > 0) {
            out_peer->rank = i;
            memcpy(out_peer->key, host->options.key, LINK_KEY_SIZE);
            return 0;
        }
    return -1;
}

static void on_end(void *context, const struct exchange_outcome *outcome)
{
    fail(context, outcome->reason);
}

static void server_open(struct sync_host *host, const float *parameters)
{
    const struct sync_host_training *training = &host->training;
    const struct exchange_server_options options = {
        .loop = host->options.loop,
        .policy = training->policy,
        .sync = training->sync,
        .compress = training->compress,
        .parameter_count = training->parameter_count,
        .parameters = parameters,
        .term = host->term,
        .world = host->options.world,
        .evaluate_ms = FOREVER_MS,
        .silent_ms = host->options.lost_ms,
        .lonely_ms = FOREVER_MS,
        .join_ms = FOREVER_MS,
        .find_peer = find_peer,
        .measure = measure,
        .measure_context = &host->loss,
        .on_push = on_push,
        .on_end = on_end,
        .context = host,
    };
    struct error error;
    if (exchange_server_open(&options, &host->server, &error) < 0) {
        fail(host, error.message);
        return;
    }
    host->is_open = true;
    LIST_EACH(&host->links, node)
    host_train_tell(LIST_ITEM(node, struct host_link, node));
    host_changed(host);
}

void host_train_tell(struct host_link *link)
{
    const struct sync_host *host = link->host;
    if (host->is_open && link->has_said_hello)
        host_send(link, &(struct sync_message){.type = SYNC_OPENED,
                                               .opened = {host->term, host->exchange_port,
                                                          host->training.parameter_count}});
}

/* ---- The model of another rank --------------------------------------------------------------- */

static struct host_link *most_trained(struct sync_host *host)
{
    struct host_link *best = NULL;
    for (uint32_t i = 1; i < host->options.world; i++) {
        struct host_link *link = host->ranks[i].link;
        if (link && !host->was_asked[i] && link->hello.term > 0 && link->hello.steps > 0 &&
            (!best || link->hello.steps > best->hello.steps))
            best = link;
    }
    return best;
}

/* Asks who has trained most; opens the server when there is nobody to ask. */
static void ask_next(struct sync_host *host)
{
    struct host_link *link = most_trained(host);
    host->asked = link;
    if (!link) {
        server_open(host, host->training.parameters);
        return;
    }
    host->was_asked[link->hello.rank] = true;
    host->asked_ns = host_now_ns(host);
    host_send(link, &(struct sync_message){.type = SYNC_WANT_MODEL});
}

/* Greater than all that ranks knew, and than a former rank 0's that none of them tells of. */
static uint64_t next_term(const struct sync_host *host)
{
    const int64_t utc_ms = clock_utc_ms(loop_clock(host->options.loop));
    uint64_t term = utc_ms > 0 ? (uint64_t)utc_ms : 1;
    if (term <= host->term)
        term = host->term + 1;
    for (uint32_t i = 0; i < host->options.world; i++) {
        const struct host_link *link = host->ranks[i].link;
        if (link && link->hello.term >= term)
            term = link->hello.term + 1;
    }
    return term;
}

void sync_host_train(struct sync_host *host, const struct sync_host_training *training)
{
    const bool is_first = host->term == 0; /* who has trained did so under another rank 0 */
    host->training = *training;
    host->is_training = true;
    host->has_failed = false;
    host->term = next_term(host);
    if (is_first)
        ask_next(host);
    else
        server_open(host, training->parameters);
    host_sweep(host);
}

int host_model_take(struct host_link *link, const struct sync_model *model, struct error *error)
{
    struct sync_host *host = link->host;
    if (host->asked != link || link->is_sending_model || link->is_calling)
        return error_set(error, ERROR_CORRUPT, "a model that was not asked for");
    if (model->parameter_count != host->training.parameter_count) {
        if (model->parameter_count > 0)
            return error_set(error, ERROR_CONFLICT, "another model than rank 0's");
        ask_next(host);
        return 0;
    }
    if (!host->model)
        host->model = malloc(model->parameter_count * sizeof(float));
    if (!host->model)
        return error_set(error, ERROR_EXHAUSTED, "no memory for the model");
    host->model_received = 0;
    link->is_sending_model = true;
    return 0;
}

int host_model_data(struct host_link *link, struct text data, struct error *error)
{
    struct sync_host *host = link->host;
    const size_t size = host->training.parameter_count * sizeof(float);
    if (data.size > size - host->model_received)
        return error_set(error, ERROR_CORRUPT, "more of a model than there is");
    memcpy((uint8_t *)host->model + host->model_received, data.data, data.size);
    host->model_received += data.size;
    host->asked_ns = host_now_ns(host);
    if (host->model_received < size)
        return 0;
    link->is_sending_model = false;
    host->asked = NULL;
    if (codec_is_sane(host->model, host->training.parameter_count))
        server_open(host, host->model);
    else
        ask_next(host);
    free(host->model);
    host->model = NULL;
    return 0;
}

void host_model_lost(struct host_link *link)
{
    if (link->host->asked == link)
        link->host->asked = NULL; /* the next tick asks another */
}

void host_train_tick(struct sync_host *host)
{
    const bool is_late =
        host->asked && host_now_ns(host) - host->asked_ns > INT64_C(1000000) * MODEL_PATIENCE_MS;
    if (is_late)
        host->asked->must_drop = true;
    if (host->is_training && !host->is_open && !host->has_failed && (is_late || !host->asked))
        ask_next(host);
}

/* ---- Life ------------------------------------------------------------------------------------ */

bool sync_host_snapshot(const struct sync_host *host, float *out_parameters)
{
    if (!host->server)
        return false;
    float *momentum = malloc(host->training.parameter_count * sizeof(float));
    if (!momentum)
        return false;
    exchange_server_snapshot(host->server, out_parameters, momentum);
    free(momentum);
    return true;
}

void sync_host_train_end(struct sync_host *host)
{
    pthread_mutex_lock(&host->loss.mutex);
    host->loss.is_closing = true;
    pthread_cond_broadcast(&host->loss.changed);
    pthread_mutex_unlock(&host->loss.mutex);
    exchange_server_free(host->server);
    host->server = NULL;
    host->is_open = host->is_training = false;
    if (host->asked && host->asked->is_sending_model)
        host->asked->must_drop = true; /* the rest of its model is nobody's: the next tick does */
    host->asked = NULL;
    free(host->model);
    host->model = NULL;
    memset(host->loss.is_known, 0, sizeof host->loss.is_known);
    host->loss.is_closing = false;
}

int sync_host_attach_worker_take(struct sync_host *host, int fd, struct error *error)
{
    if (!host->server)
        return error_set(error, ERROR_UNAVAILABLE, "no parameter server");
    return exchange_server_attach_take(host->server, fd, error);
}

static void on_exchange(void *context, uint32_t events)
{
    (void)events;
    struct sync_host *host = context;
    struct address peer;
    struct error error;
    int fd;
    while (tcp_accept(host->exchange_fd, &fd, &peer, &error) == 1)
        if (!host->server || exchange_server_attach_take(host->server, fd, &error) < 0)
            close(fd);
}

int host_exchange_listen(struct sync_host *host, struct error *error)
{
    struct host_port free_port = host->options.address;
    struct address address;
    free_port.port = 0;
    if (address_resolve(&free_port, &address, error) < 0 ||
        tcp_listen(&address, "SOUK_PEERS", &host->exchange_fd, &host->exchange_port, error) < 0)
        return -1;
    return loop_watch_open(host->options.loop, host->exchange_fd, LOOP_READ, on_exchange, host,
                           &host->exchange_watch, error);
}
