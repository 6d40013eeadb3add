#include "net/http_client.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/memory.h"
#include "net/http_exchange_internal.h"

#include <stdlib.h>

enum { CONCURRENT_MAX_DEFAULT = 4, WAITING_MAX_DEFAULT = 1000, QUIET_MS = 2000 };

struct http_transfer {
    struct http_client *client;
    struct list_node node; /* in waiting or running */
    bool is_running;
    CURL *easy;
    struct http_exchange exchange;
    struct http_response response;
    http_client_function *callback;
    void *context;
};

struct http_client {
    struct loop *loop;
    const struct curl_library *curl; /* NULL before the first request */
    CURLM *multi;
    struct loop_timer *timer;
    struct loop_timer *quiet; /* since the last transfer ended */
    struct list waiting;
    struct list running;
    uint32_t waiting_count, running_count;
    uint32_t concurrent_max, waiting_max;
    struct list sockets;
    bool is_in_curl; /* libcurl must not be called from its own callbacks */
    bool has_cancelled;
    int busy;
    bool is_freed;
};

/* A descriptor of libcurl's that we watch for it. */
struct socket_watch {
    struct list_node node;
    struct http_client *client;
    curl_socket_t fd;
    struct loop_watch *watch;
};

/* --- libcurl asks for events --- */

static void act(struct http_client *client, curl_socket_t fd, int events);

static void on_socket_ready(void *context, uint32_t events)
{
    struct socket_watch *socket = context;
    int what = 0;
    if (events & LOOP_READ)
        what |= CURL_CSELECT_IN;
    if (events & LOOP_WRITE)
        what |= CURL_CSELECT_OUT;
    if (events & LOOP_HANGUP)
        what |= CURL_CSELECT_ERR;
    act(socket->client, socket->fd, what);
}

/* libcurl and what it brings are large; a daemon that downloads now and then is idle mostly. */
static void on_quiet(void *context __attribute__((unused)))
{
    memory_trim();
}

static void on_timer(void *context)
{
    act(context, CURL_SOCKET_TIMEOUT, 0);
}

static void socket_watch_free(struct socket_watch *socket)
{
    loop_watch_free(socket->watch);
    list_remove(&socket->node);
    free(socket);
}

static int ask_socket(CURL *easy __attribute__((unused)), curl_socket_t fd, int what,
                      void *client_context, void *socket_context)
{
    struct http_client *client = client_context;
    struct socket_watch *socket = socket_context;
    if (what == CURL_POLL_REMOVE) {
        if (socket)
            socket_watch_free(socket);
        client->curl->curl_multi_assign(client->multi, fd, NULL);
        return 0;
    }
    const uint32_t interest =
        ((what & CURL_POLL_IN) ? LOOP_READ : 0U) | ((what & CURL_POLL_OUT) ? LOOP_WRITE : 0U);
    if (socket) {
        loop_watch_set(socket->watch, interest);
        return 0;
    }
    socket = calloc(1, sizeof(*socket));
    ASSERT(socket);
    socket->client = client;
    socket->fd = fd;
    struct error error;
    if (loop_watch_open(client->loop, fd, interest, on_socket_ready, socket, &socket->watch,
                        &error) < 0) {
        free(socket);
        return -1;
    }
    list_append(&client->sockets, &socket->node);
    client->curl->curl_multi_assign(client->multi, fd, socket);
    return 0;
}

static int ask_timer(CURLM *multi __attribute__((unused)), long timeout_ms, void *context)
{
    struct http_client *client = context;
    if (timeout_ms < 0)
        loop_timer_stop(client->timer);
    else
        loop_timer_start(client->timer, timeout_ms);
    return 0;
}

/* --- transfers --- */

static void transfer_free(struct http_transfer *transfer)
{
    struct http_client *client = transfer->client;
    struct sigpipe_guard guard;
    sigpipe_guard_begin(&guard);
    list_remove(&transfer->node);
    if (transfer->is_running) {
        client->curl->curl_multi_remove_handle(client->multi, transfer->easy);
        client->running_count--;
    } else {
        client->waiting_count--;
    }
    http_exchange_done(&transfer->exchange);
    client->curl->curl_easy_cleanup(transfer->easy);
    sigpipe_guard_end(&guard);
    http_response_done(&transfer->response);
    free(transfer);
}

static void finish(struct http_transfer *transfer, CURLcode code)
{
    struct error error;
    const int result = http_exchange_finish(&transfer->exchange, code, &error);
    http_client_function *callback = transfer->callback;
    void *context = transfer->context;
    /* Moved out first: the transfer is gone when the callback runs, so it may start the next. */
    struct http_response response AUTO_HTTP_RESPONSE = transfer->response;
    buffer_init(&transfer->response.body, 0);
    transfer_free(transfer);
    callback(context, result == 0 ? &response : NULL, result == 0 ? NULL : &error);
}

static void finish_done(struct http_client *client)
{
    int left;
    CURLMsg *message;
    while (!client->is_freed &&
           (message = client->curl->curl_multi_info_read(client->multi, &left))) {
        if (message->msg != CURLMSG_DONE)
            continue;
        char *private_pointer = NULL;
        client->curl->curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &private_pointer);
        finish((struct http_transfer *)(void *)private_pointer, message->data.result);
    }
}

static void start_waiting(struct http_client *client)
{
    while (!client->is_freed && !list_is_empty(&client->waiting) &&
           client->running_count < client->concurrent_max) {
        struct http_transfer *transfer =
            LIST_ITEM(list_take_first(&client->waiting), struct http_transfer, node);
        client->waiting_count--;
        loop_timer_stop(client->quiet);
        transfer->is_running = true;
        client->running_count++;
        list_append(&client->running, &transfer->node);
        ASSERT(client->curl->curl_multi_add_handle(client->multi, transfer->easy) == CURLM_OK);
    }
}

/* Those that were cancelled from inside libcurl's callbacks. */
static void free_cancelled(struct http_client *client)
{
    if (!client->has_cancelled)
        return;
    client->has_cancelled = false;
    LIST_EACH(&client->running, node)
    {
        struct http_transfer *transfer = LIST_ITEM(node, struct http_transfer, node);
        if (transfer->exchange.is_cancelled)
            transfer_free(transfer);
    }
}

static void release(struct http_client *client)
{
    LIST_EACH(&client->waiting, node)
    transfer_free(LIST_ITEM(node, struct http_transfer, node));
    LIST_EACH(&client->running, node)
    transfer_free(LIST_ITEM(node, struct http_transfer, node));
    if (client->multi) {
        struct sigpipe_guard guard;
        sigpipe_guard_begin(&guard);
        client->curl->curl_multi_cleanup(client->multi);
        sigpipe_guard_end(&guard);
    }
    LIST_EACH(&client->sockets, node)
    socket_watch_free(LIST_ITEM(node, struct socket_watch, node));
    loop_timer_free(client->timer);
    loop_timer_free(client->quiet);
    free(client);
}

static void act(struct http_client *client, curl_socket_t fd, int events)
{
    struct sigpipe_guard guard;
    int running;
    client->busy++;
    client->is_in_curl = true;
    sigpipe_guard_begin(&guard);
    client->curl->curl_multi_socket_action(client->multi, fd, events, &running);
    /* Not around the callbacks below: what they start would inherit the mask. */
    sigpipe_guard_end(&guard);
    client->is_in_curl = false;
    free_cancelled(client);
    finish_done(client);
    start_waiting(client);
    if (client->running_count == 0)
        loop_timer_start(client->quiet, QUIET_MS);
    if (--client->busy == 0 && client->is_freed)
        release(client);
}

/* --- what the owner calls --- */

struct http_client *http_client_new(const struct http_client_options *options)
{
    struct http_client *client = calloc(1, sizeof(*client));
    ASSERT(client);
    client->loop = options->loop;
    client->timer = loop_timer_new(options->loop, on_timer, client);
    client->quiet = loop_timer_new(options->loop, on_quiet, client);
    client->concurrent_max =
        options->concurrent_max ? options->concurrent_max : CONCURRENT_MAX_DEFAULT;
    client->waiting_max = options->waiting_max ? options->waiting_max : WAITING_MAX_DEFAULT;
    list_init(&client->waiting);
    list_init(&client->running);
    list_init(&client->sockets);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    client->is_freed = true;
    if (client->busy == 0)
        release(client);
}

static int set_up(struct http_client *client, struct error *error)
{
    if (client->multi)
        return 0;
    if (curl_library_load(&client->curl, error) < 0)
        return -1;
    client->multi = client->curl->curl_multi_init();
    if (!client->multi)
        return error_set(error, ERROR_EXHAUSTED, "no memory for HTTP requests");
    const struct curl_library *curl = client->curl;
    curl->curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, ask_socket);
    curl->curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl->curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, ask_timer);
    curl->curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    curl->curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)client->concurrent_max);
    return 0;
}

int http_client_start(struct http_client *client, const struct http_call_options *options,
                      http_client_function *callback, void *context,
                      struct http_transfer **out_transfer, struct error *error)
{
    ASSERT(!client->is_freed);
    if (set_up(client, error) < 0)
        return -1;
    if (client->waiting_count >= client->waiting_max)
        return error_set(error, ERROR_EXHAUSTED, "%u requests are waiting already",
                         client->waiting_count);
    struct http_transfer *transfer = calloc(1, sizeof(*transfer));
    ASSERT(transfer);
    transfer->client = client;
    transfer->callback = callback;
    transfer->context = context;
    http_response_init(&transfer->response);
    transfer->easy = client->curl->curl_easy_init();
    ASSERT(transfer->easy);
    list_append(&client->waiting, &transfer->node);
    client->waiting_count++;
    if (http_exchange_prepare(&transfer->exchange, transfer->easy, client->curl, options,
                              &transfer->response, error) < 0) {
        transfer_free(transfer);
        return -1;
    }
    client->curl->curl_easy_setopt(transfer->easy, CURLOPT_PRIVATE, transfer);
    if (out_transfer)
        *out_transfer = transfer;
    if (!client->is_in_curl)
        start_waiting(client);
    return 0;
}

void http_transfer_cancel(struct http_transfer *transfer)
{
    struct http_client *client = transfer->client;
    if (client->is_in_curl && transfer->is_running) {
        /* Inside a callback of libcurl it may not be removed, but soon after. */
        transfer->exchange.is_cancelled = true;
        client->has_cancelled = true;
        return;
    }
    transfer_free(transfer);
    if (!client->is_in_curl)
        start_waiting(client);
}
