/* Sync host: the ranks' links, who is there and who is not, and the rounds. */
#include "library/sync_host.h"

#include "base/assert.h"
#include "base/memory.h"
#include "library/sync_host_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEPT_MAX_BYTES = 256 << 20,
    QUEUE_MAX_BYTES = 2 * SYNC_ROUND_MAX_BYTES + (1 << 20), /* a result always fits */
    TICK_MS_MAX = 500,
    TICK_MS_MIN = 20,
    STRANGERS_MAX = 16,
};

int64_t host_now_ns(const struct sync_host *host)
{
    return clock_monotonic_ns(loop_clock(host->options.loop));
}

void host_changed(struct sync_host *host)
{
    host->options.on_change(host->options.context);
}

void host_send(struct host_link *link, const struct sync_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, SYNC_PAYLOAD_MAX);
    sync_message_encode(&payload, message);
    if (!link->must_drop &&
        link_send_text(link->link, (uint16_t)message->type, buffer_text(&payload), &error) < 0)
        link->must_drop = true;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static void send_bytes(struct host_link *link, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size; at += SYNC_DATA_MAX_BYTES) {
        const size_t piece = size - at < SYNC_DATA_MAX_BYTES ? size - at : SYNC_DATA_MAX_BYTES;
        const struct text data = {(const char *)bytes + at, piece};
        host_send(link, &(struct sync_message){.type = SYNC_DATA, .data = data});
    }
}

static void refuse(struct host_link *link, uint64_t round, const struct error *why)
{
    struct text reason = text_of(why->message);
    if (reason.size > SYNC_REASON_MAX)
        reason.size = SYNC_REASON_MAX;
    host_send(link, &(struct sync_message){.type = SYNC_REFUSED, .refused = {round, reason}});
}

/* Tells the link of the round that it waits for, if that is done, or never will be. */
static void link_answer(struct host_link *link)
{
    struct sync_rounds *rounds = link->host->rounds;
    struct error why;
    if (link->waits_for == 0)
        return;
    if (sync_rounds_check(rounds, link->waits_for, &why) < 0) {
        refuse(link, link->waits_for, &why);
        link->waits_for = 0;
        return;
    }
    const struct sync_round *round = sync_rounds_result(rounds, link->waits_for);
    if (!round)
        return;
    const bool has_it =
        round->call.kind == SYNC_CALL_BROADCAST && round->call.root == link->hello.rank;
    if (has_it && sync_rounds_is_full(rounds))
        return; /* a root waits for those who are behind */
    const uint32_t size = has_it ? 0 : round->call.size;
    link->waits_for = 0;
    host_send(link,
              &(struct sync_message){.type = SYNC_RESULT,
                                     .result = {round->call.round, size, round->contributors}});
    send_bytes(link, round->bytes, size);
}

static void answer_all(struct sync_host *host)
{
    LIST_EACH(&host->links, node)
    link_answer(LIST_ITEM(node, struct host_link, node));
}

static void call_whole(struct host_link *link)
{
    link->is_calling = false;
    link->waits_for = link->call.round;
    sync_rounds_give(link->host->rounds, link->hello.rank, link->call.round,
                     link->is_wanted ? link->bytes : NULL);
    answer_all(link->host);
}

/* Whether bytes follow the call. */
static bool gives_bytes(const struct host_link *link, const struct sync_call *call)
{
    return call->kind == SYNC_CALL_ALLREDUCE ||
           (call->kind == SYNC_CALL_BROADCAST && call->root == link->hello.rank);
}

static int take_call(struct host_link *link, const struct sync_call *call, struct error *error)
{
    if (link->is_calling || link->waits_for > 0 || link->is_sending_model)
        return error_set(error, ERROR_CORRUPT, "a call within a call");
    link->call = *call;
    link->received = 0;
    struct error why;
    link->is_wanted = false;
    if (sync_rounds_call(link->host->rounds, link->hello.rank, call, &link->is_wanted, &why) < 0) {
        refuse(link, call->round, &why);
        link->call.round = 0; /* what follows is skipped */
    }
    if (!gives_bytes(link, call)) {
        if (link->call.round > 0)
            call_whole(link);
        return 0;
    }
    free(link->bytes);
    link->bytes = malloc(call->size);
    if (!link->bytes)
        return error_set(error, ERROR_EXHAUSTED, "no memory for a round");
    link->is_calling = true;
    return 0;
}

static int take_data(struct host_link *link, struct text data, struct error *error)
{
    if (link->is_sending_model)
        return host_model_data(link, data, error);
    if (!link->is_calling || data.size > link->call.size - link->received)
        return error_set(error, ERROR_CORRUPT, "data without a call");
    memcpy(link->bytes + link->received, data.data, data.size);
    link->received += data.size;
    if (link->received < link->call.size)
        return 0;
    if (link->call.round > 0)
        call_whole(link);
    link->is_calling = false;
    return 0;
}

/* ---- Who is there ---------------------------------------------------------------------------- */

static void link_free_all(struct host_link *link)
{
    link_free(link->link);
    free(link->bytes);
    free(link);
}

static void link_drop(struct host_link *link)
{
    struct sync_host *host = link->host;
    struct host_rank *rank = &host->ranks[link->hello.rank];
    host_model_lost(link);
    list_remove(&link->node);
    if (link->has_said_hello && rank->link == link) {
        rank->link = NULL;
        rank->away_ns = host_now_ns(host);
        rank->patience_ms = host->options.lost_ms;
    }
    link_free_all(link);
    host_changed(host);
}

static struct host_link *marked_link(struct sync_host *host)
{
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what was dropped is no longer in the list */
    LIST_EACH(&host->links, node)
    {
        struct host_link *link = LIST_ITEM(node, struct host_link, node);
        if (link->must_drop)
            return link;
    }
    return NULL;
}

void host_sweep(struct sync_host *host)
{
    for (struct host_link *link = marked_link(host); link; link = marked_link(host))
        link_drop(link);
}

static int take_hello(struct host_link *link, const struct sync_hello *hello, struct error *error)
{
    struct sync_host *host = link->host;
    if (link->has_said_hello || hello->world != host->options.world)
        return error_set(error, ERROR_REFUSED,
                         "rank %" PRIu32 " is of a world of %" PRIu32 ", not %" PRIu32, hello->rank,
                         hello->world, host->options.world);
    struct host_rank *rank = &host->ranks[hello->rank];
    if (rank->link)
        rank->link->must_drop = true; /* its successor, or itself on a new link */
    link->hello = *hello;
    link->has_said_hello = true;
    rank->link = link;
    rank->process = hello->process;
    rank->is_given_up = rank->has_left = false;
    sync_rounds_await(host->rounds, hello->rank, hello->done);
    host_send(link,
              &(struct sync_message){.type = SYNC_WELCOME, .welcome_host = host->options.process});
    if (host->ranks[0].has_left)
        host_send(link, &(struct sync_message){.type = SYNC_BYE});
    host_train_tell(link);
    host_changed(host);
    return 0;
}

static void take_bye(struct host_link *link)
{
    struct sync_host *host = link->host;
    struct host_rank *rank = &host->ranks[link->hello.rank];
    rank->has_left = rank->is_given_up = true;
    link->must_drop = true;
    LIST_EACH(&host->links, node)
    {
        struct host_link *other = LIST_ITEM(node, struct host_link, node);
        if (link->hello.rank == 0 && other != link && other->has_said_hello)
            host_send(other, &(struct sync_message){.type = SYNC_BYE});
    }
    sync_rounds_excuse(host->rounds, link->hello.rank);
    answer_all(host);
}

static int take_frame(struct host_link *link, uint16_t type, struct text payload,
                      struct error *error)
{
    struct sync_message message;
    if (sync_message_decode(type, payload, &message, error) < 0)
        return -1;
    if (!link->has_said_hello && message.type != SYNC_HELLO)
        return error_set(error, ERROR_CORRUPT, "a rank that did not say which");
    switch (message.type) {
    case SYNC_HELLO:
        return take_hello(link, &message.hello, error);
    case SYNC_CALL:
        return take_call(link, &message.call, error);
    case SYNC_DATA:
        return take_data(link, message.data, error);
    case SYNC_MODEL:
        return host_model_take(link, &message.model, error);
    case SYNC_BYE:
        take_bye(link);
        return 0;
    case SYNC_ALIVE:
        return 0;
    case SYNC_WELCOME:
    case SYNC_RESULT:
    case SYNC_REFUSED:
    case SYNC_OPENED:
    case SYNC_WANT_MODEL:
        break;
    }
    return error_set(error, ERROR_CORRUPT, "a message that only rank 0 sends");
}

static void on_frame(struct link *stream, uint16_t type, struct text payload, void *context)
{
    (void)stream;
    struct host_link *link = context;
    struct sync_host *host = link->host;
    struct error error;
    link->heard_ns = host_now_ns(host);
    if (!link->must_drop && take_frame(link, type, payload, &error) < 0) {
        refuse(link, 0, &error);
        link->must_drop = true;
    }
    host_sweep(host);
}

static void on_open(struct link *stream, struct text identity, void *context)
{
    (void)stream, (void)identity;
    struct host_link *link = context;
    link->heard_ns = host_now_ns(link->host);
}

static void on_close(struct link *stream, const struct error *reason, void *context)
{
    (void)stream, (void)reason;
    struct host_link *link = context;
    link->must_drop = true;
    host_sweep(link->host);
}

static int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)identity;
    const struct host_link *link = context;
    memcpy(out_key, link->host->options.key, LINK_KEY_SIZE);
    return 0;
}

int sync_host_attach_take(struct sync_host *host, int fd, struct error *error)
{
    struct host_link *link = memory_zeroed(1, sizeof *link);
    link->host = host;
    link->heard_ns = host_now_ns(host);
    const struct link_options options = {
        .loop = host->options.loop,
        .is_server = true,
        .find_key = find_key,
        .payload_max = SYNC_PAYLOAD_MAX,
        .queue_max_bytes = QUEUE_MAX_BYTES,
        .callbacks = {.on_open = on_open, .on_frame = on_frame, .on_close = on_close},
        .context = link,
    };
    if (link_open_take(&options, fd, &link->link, error) < 0) {
        free(link);
        return -1;
    }
    list_append(&host->links, &link->node);
    return 0;
}

/* Each rank may have a link and its successor's; of strangers there is a limit. */
static bool is_crowded(const struct sync_host *host)
{
    size_t count = 0;
    LIST_EACH(&host->links, node)
    count++;
    return count >= (size_t)2 * host->options.world + STRANGERS_MAX;
}

static void on_listen(void *context, uint32_t events)
{
    (void)events;
    struct sync_host *host = context;
    struct address peer;
    struct error error;
    int fd;
    while (tcp_accept(host->listen_fd, &fd, &peer, &error) == 1)
        if (is_crowded(host) || sync_host_attach_take(host, fd, &error) < 0)
            close(fd);
}

/* ---- Silence --------------------------------------------------------------------------------- */

static void tick_start(struct sync_host *host)
{
    int64_t wait_ms = host->options.lost_ms / 4;
    wait_ms = wait_ms > TICK_MS_MAX ? TICK_MS_MAX : wait_ms < TICK_MS_MIN ? TICK_MS_MIN : wait_ms;
    loop_timer_start(host->timer, wait_ms);
}

static void give_up(struct sync_host *host, uint32_t index)
{
    host->ranks[index].is_given_up = true;
    sync_rounds_excuse(host->rounds, index);
    answer_all(host);
    host_changed(host);
}

static void on_tick(void *context)
{
    struct sync_host *host = context;
    const int64_t now_ns = host_now_ns(host), lost_ns = host->options.lost_ms * 1000000;
    /* When this process itself stood still, nobody else was silent. */
    const bool was_asleep = now_ns - host->ticked_ns > lost_ns / 2;
    host->ticked_ns = now_ns;
    LIST_EACH(&host->links, node)
    {
        struct host_link *link = LIST_ITEM(node, struct host_link, node);
        if (was_asleep)
            link->heard_ns = now_ns;
        if (now_ns - link->heard_ns > lost_ns)
            link->must_drop = true;
        else if (link->has_said_hello)
            host_send(link, &(struct sync_message){.type = SYNC_ALIVE});
    }
    host_sweep(host);
    for (uint32_t i = 0; i < host->options.world; i++) {
        struct host_rank *rank = &host->ranks[i];
        if (was_asleep && !rank->link)
            rank->away_ns = now_ns;
        if (!rank->link && !rank->is_given_up &&
            now_ns - rank->away_ns > rank->patience_ms * 1000000)
            give_up(host, i);
    }
    host_train_tick(host);
    host_sweep(host);
    tick_start(host);
}

bool sync_host_is_complete(const struct sync_host *host)
{
    for (uint32_t i = 0; i < host->options.world; i++)
        if (!host->ranks[i].link && !host->ranks[i].is_given_up)
            return false;
    return true;
}

bool sync_host_is_left(const struct sync_host *host)
{
    for (uint32_t i = 1; i < host->options.world; i++)
        if (!host->ranks[i].is_given_up)
            return false;
    return true;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int host_listen(struct sync_host *host, struct error *error)
{
    struct address address;
    uint16_t port;
    if (host->options.world == 1)
        return 0;
    if (address_resolve(&host->options.address, &address, error) < 0 ||
        tcp_listen(&address, "SOUK_PEERS", &host->listen_fd, &port, error) < 0 ||
        loop_watch_open(host->options.loop, host->listen_fd, LOOP_READ, on_listen, host,
                        &host->listen_watch, error) < 0)
        return -1;
    return host_exchange_listen(host, error);
}

int sync_host_open(const struct sync_host_options *options, struct sync_host **out_host,
                   struct error *error)
{
    AUTO(sync_host) struct sync_host *host = memory_zeroed(1, sizeof *host);
    host->options = *options;
    host->listen_fd = host->exchange_fd = -1;
    list_init(&host->links);
    pthread_mutex_init(&host->loss.mutex, NULL);
    pthread_cond_init(&host->loss.changed, NULL);
    host->rounds = sync_rounds_new(options->world, KEPT_MAX_BYTES);
    host->ticked_ns = host_now_ns(host);
    for (uint32_t i = 0; i < options->world; i++) {
        sync_rounds_await(host->rounds, i, 0);
        host->ranks[i].away_ns = host->ticked_ns;
        host->ranks[i].patience_ms = options->join_ms;
    }
    host->timer = loop_timer_new(options->loop, on_tick, host);
    tick_start(host);
    if (host_listen(host, error) < 0)
        return -1;
    *out_host = TAKE(host);
    return 0;
}

void sync_host_free(struct sync_host *host)
{
    if (!host)
        return;
    sync_host_train_end(host);
    for (struct list_node *node; (node = list_take_first(&host->links));)
        link_free_all(LIST_ITEM(node, struct host_link, node));
    loop_watch_free(host->listen_watch);
    loop_watch_free(host->exchange_watch);
    loop_timer_free(host->timer);
    if (host->listen_fd >= 0)
        close(host->listen_fd);
    if (host->exchange_fd >= 0)
        close(host->exchange_fd);
    sync_rounds_free(host->rounds);
    pthread_cond_destroy(&host->loss.changed);
    pthread_mutex_destroy(&host->loss.mutex);
    free(host->model);
    free(host);
}
