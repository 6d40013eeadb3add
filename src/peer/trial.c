#include "peer/trial.h"

#include "base/assert.h"
#include "base/list.h"
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    NONCE_SIZE = TRIAL_MESSAGE_SIZE - 1,
    QUESTION = 'Q',
    ANSWER = 'A',
    DIALS_MAX = 4, /* addresses of one machine */
    RETRY_FIRST_MS = 40,
    NAME_LIMIT_MS = 1000, /* for a visitor to name its ticket, and for us to hear of it */
    LINGER_MS = 1000,     /* after our own answers, for the other to get its */
    BACKLOG = 32,
};
_Static_assert(NONCE_SIZE == crypto_generichash_BYTES, "an answer is as long as a question");

struct trial {
    struct list_node node;
    struct trials *trials;
    uint64_t id;
    uint8_t key[LEASE_KEY_SIZE];
    uint8_t ticket[LEASE_TICKET_SIZE];
    struct host_port targets[DIALS_MAX];
    size_t target_count;
    int64_t retry_ms;
    struct loop_timer *retry;
    struct loop_timer *limit;
    bool is_told;
};

/* One connection; before its ticket is known it is nobody's. */
struct contact {
    struct list_node node;
    struct trials *trials;
    struct trial *trial; /* NULL: a visitor */
    struct tcp_connect *connect;
    size_t target; /* that is being dialled; of the trial's */
    int fd;
    struct address from;
    struct loop_watch *watch;
    struct loop_timer *limit; /* of a visitor */
    size_t expected;          /* bytes of what is being read */
    size_t size;
    char bytes[PATH_LINE_SIZE];
    uint8_t nonce[NONCE_SIZE];
    int64_t asked_ns;
    int asked, answered, served;
    int64_t least_ns;
};

struct trials {
    struct trials_options options;
    struct list running;
    size_t running_count;
    struct list contacts;
    size_t visitor_count;
    int listen_fd; /* bound; listens while `listen_watch` is there */
    uint16_t port;
    struct loop_watch *listen_watch;
};

static int64_t now_ns(const struct trials *trials)
{
    return clock_monotonic_ns(loop_clock(trials->options.loop));
}

/* ---- The port -------------------------------------------------------------------------------- */

static bool bind_port(struct trials *trials, uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    socklen_t size = sizeof(address);
    const int one = 1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, (struct sockaddr *)&address, size) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
        close(fd);
        return false;
    }
    trials->listen_fd = fd;
    trials->port = ntohs(address.sin_port);
    return true;
}

static void hold_port(struct trials *trials)
{
    if (!trials->options.is_direct || bind_port(trials, trials->port) || bind_port(trials, 0))
        return;
    trials->port = 0;
    log_event(LOG_WARN, "trials_closed", "reason=\"no port to be tried at\"");
}

/* A socket cannot stop to listen, so another holds the port. */
static void stop_listening(struct trials *trials)
{
    if (!trials->listen_watch)
        return;
    loop_watch_free(TAKE(trials->listen_watch));
    close(TAKE_FD(trials->listen_fd));
    hold_port(trials);
}

/* ---- Contacts -------------------------------------------------------------------------------- */

static void contact_free(struct contact *contact)
{
    list_remove(&contact->node);
    contact->trials->visitor_count -= contact->trial == NULL;
    tcp_connect_free(contact->connect);
    loop_watch_free(contact->watch);
    loop_timer_free(contact->limit);
    if (contact->fd >= 0)
        close(contact->fd);
    free(contact);
}

static void on_visitor_limit(void *context)
{
    contact_free(context);
}

static struct contact *contact_new(struct trials *trials, struct trial *trial)
{
    struct contact *contact = calloc(1, sizeof(*contact));
    ASSERT(contact);
    contact->trials = trials;
    contact->trial = trial;
    contact->fd = -1;
    contact->expected = trial ? TRIAL_MESSAGE_SIZE : PATH_LINE_SIZE;
    list_append(&trials->contacts, &contact->node);
    trials->visitor_count += trial == NULL;
    return contact;
}

static void tell(struct trial *trial, int64_t rtt_ns)
{
    const int64_t rtt_us = rtt_ns > 1000 ? rtt_ns / 1000 : rtt_ns > 0;
    const struct tried_message tried = {trial->id, (uint32_t)rtt_us};
    const struct trials_options *options = &trial->trials->options;
    trial->is_told = true;
    options->on_tried(options->context, &tried);
}

/* A fresh connection's buffer holds so little; if not, the connection is not worth waiting for. */
static bool say(const struct contact *contact, const void *bytes, size_t size)
{
    return send(contact->fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool ask(struct contact *contact)
{
    uint8_t message[TRIAL_MESSAGE_SIZE] = {QUESTION};
    randombytes_buf(contact->nonce, NONCE_SIZE);
    memcpy(message + 1, contact->nonce, NONCE_SIZE);
    contact->asked++;
    contact->asked_ns = now_ns(contact->trials);
    return say(contact, message, sizeof(message));
}

static void answer_of(const struct trial *trial, const uint8_t nonce[NONCE_SIZE],
                      uint8_t out[NONCE_SIZE])
{
    crypto_generichash(out, NONCE_SIZE, nonce, NONCE_SIZE, trial->key, sizeof(trial->key));
}

static bool serve_question(struct contact *contact)
{
    uint8_t message[TRIAL_MESSAGE_SIZE] = {ANSWER};
    if (contact->served == TRIAL_ROUNDS)
        return false;
    contact->served++;
    answer_of(contact->trial, (const uint8_t *)contact->bytes + 1, message + 1);
    return say(contact, message, sizeof(message));
}

static bool take_answer(struct contact *contact)
{
    const int64_t rtt_ns = now_ns(contact->trials) - contact->asked_ns;
    uint8_t expected[NONCE_SIZE];
    answer_of(contact->trial, contact->nonce, expected);
    if (contact->answered == contact->asked ||
        sodium_memcmp(expected, contact->bytes + 1, NONCE_SIZE) != 0)
        return false;
    contact->answered++;
    if (contact->least_ns == 0 || rtt_ns < contact->least_ns)
        contact->least_ns = rtt_ns > 0 ? rtt_ns : 1;
    if (contact->answered < TRIAL_ROUNDS)
        return ask(contact);
    struct trial *trial = contact->trial;
    if (!trial->is_told) {
        tell(trial, contact->least_ns);
        loop_timer_stop(trial->retry);
        loop_timer_start(trial->limit, LINGER_MS); /* the other may have questions yet */
    }
    return true;
}

static struct trial *find_ticket(const struct trials *trials, const char *line)
{
    static const char prefix[] = "SOUK-STREAM ";
    const size_t prefix_size = sizeof(prefix) - 1;
    const struct text digits = {line + prefix_size, 2 * (size_t)LEASE_TICKET_SIZE};
    uint8_t ticket[LEASE_TICKET_SIZE];
    struct error ignored;
    if (memcmp(line, prefix, prefix_size) != 0 || line[PATH_LINE_SIZE - 1] != '\n' ||
        text_hex_decode(digits, ticket, sizeof(ticket), &ignored) < 0)
        return NULL;
    LIST_EACH(&trials->running, node)
    {
        struct trial *trial = LIST_ITEM(node, struct trial, node);
        if (sodium_memcmp(trial->ticket, ticket, sizeof(ticket)) == 0)
            return trial;
    }
    return NULL;
}

/* A visitor whose ticket nobody has yet is hung up on: it dials again. */
static bool take_line(struct contact *contact)
{
    struct trial *trial = find_ticket(contact->trials, contact->bytes);
    if (!trial)
        return false;
    contact->trial = trial;
    contact->trials->visitor_count--;
    contact->expected = TRIAL_MESSAGE_SIZE;
    loop_timer_stop(contact->limit);
    return ask(contact);
}

static bool take_bytes(struct contact *contact)
{
    contact->size = 0;
    if (!contact->trial)
        return take_line(contact);
    if (contact->bytes[0] == QUESTION)
        return serve_question(contact);
    return contact->bytes[0] == ANSWER && take_answer(contact);
}

static void on_events(void *context, uint32_t events)
{
    struct contact *contact = context;
    (void)events;
    const ssize_t got =
        recv(contact->fd, contact->bytes + contact->size, contact->expected - contact->size, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        contact->size += (size_t)got;
    if (got <= 0 || (contact->size == contact->expected && !take_bytes(contact)))
        contact_free(contact);
}

static bool watch(struct contact *contact)
{
    struct error ignored;
    return loop_watch_open(contact->trials->options.loop, contact->fd, LOOP_READ, on_events,
                           contact, &contact->watch, &ignored) == 0;
}

/* ---- Visitors -------------------------------------------------------------------------------- */

static bool is_same_host(const struct address *a, const struct address *b)
{
    char left[ADDRESS_TEXT_SIZE], right[ADDRESS_TEXT_SIZE];
    return strcmp(address_format_host(a, left), address_format_host(b, right)) == 0;
}

static bool is_welcome(const struct trials *trials, const struct address *from)
{
    size_t of_one = 0;
    LIST_EACH(&trials->contacts, node)
    {
        const struct contact *contact = LIST_ITEM(node, struct contact, node);
        of_one += !contact->trial && is_same_host(&contact->from, from);
    }
    return trials->visitor_count < TRIAL_VISITORS_MAX && of_one < TRIAL_VISITORS_OF_ONE;
}

static void on_visit(void *context, uint32_t events)
{
    struct trials *trials = context;
    struct address from;
    struct error error;
    (void)events;
    int fd;
    int result;
    while ((result = tcp_accept(trials->listen_fd, &fd, &from, &error)) > 0) {
        if (!is_welcome(trials, &from)) {
            close(fd);
            continue;
        }
        struct contact *contact = contact_new(trials, /* trial= */ NULL);
        contact->fd = fd;
        contact->from = from;
        contact->limit = loop_timer_new(trials->options.loop, on_visitor_limit, contact);
        loop_timer_start(contact->limit, NAME_LIMIT_MS);
        if (!watch(contact))
            contact_free(contact);
    }
    if (result < 0) {
        log_event(LOG_WARN, "trials_closed", "reason=\"%s\"", error.message);
        stop_listening(trials);
    }
}

static void start_listening(struct trials *trials)
{
    struct error error;
    if (trials->listen_fd < 0 || trials->listen_watch)
        return;
    if (listen(trials->listen_fd, BACKLOG) < 0)
        error_set_errno(&error, errno, "listen");
    else if (loop_watch_open(trials->options.loop, trials->listen_fd, LOOP_READ, on_visit, trials,
                             &trials->listen_watch, &error) == 0)
        return;
    log_event(LOG_WARN, "trials_closed", "reason=\"%s\"", error.message);
}

/* ---- Dialling -------------------------------------------------------------------------------- */

static void on_connected(void *context, int fd, const struct error *reason)
{
    struct contact *contact = context;
    char ticket[2 * LEASE_TICKET_SIZE + 1], line[PATH_LINE_SIZE + 1];
    tcp_connect_free(TAKE(contact->connect));
    contact->fd = fd;
    text_hex_encode(contact->trial->ticket, LEASE_TICKET_SIZE, ticket);
    snprintf(line, sizeof(line), "SOUK-STREAM %s\n", ticket);
    if (reason || !watch(contact) || !say(contact, line, PATH_LINE_SIZE) || !ask(contact))
        contact_free(contact);
}

/* Connected to the other, or about to be by that address. */
static bool has_contact(const struct trial *trial, size_t target)
{
    LIST_EACH(&trial->trials->contacts, node)
    {
        const struct contact *contact = LIST_ITEM(node, struct contact, node);
        if (contact->trial == trial && (!contact->connect || contact->target == target))
            return true;
    }
    return false;
}

/* The other may hear of it later than we do: until then its port is closed. */
static void dial(void *context)
{
    struct trial *trial = context;
    for (size_t i = 0; i < trial->target_count; i++) {
        if (has_contact(trial, i))
            continue;
        struct contact *contact = contact_new(trial->trials, trial);
        contact->target = i;
        contact->connect = tcp_connect_start(trial->trials->options.loop, &trial->targets[i],
                                             LEASE_TRY_MS_MAX, on_connected, contact);
    }
    loop_timer_start(trial->retry, trial->retry_ms);
    trial->retry_ms *= 2;
}

/* ---- Trials ---------------------------------------------------------------------------------- */

static void trial_free(struct trial *trial)
{
    struct trials *trials = trial->trials;
    LIST_EACH(&trials->contacts, node)
    {
        struct contact *contact = LIST_ITEM(node, struct contact, node);
        if (contact->trial == trial)
            contact_free(contact);
    }
    list_remove(&trial->node);
    trials->running_count--;
    loop_timer_free(trial->retry);
    loop_timer_free(trial->limit);
    sodium_memzero(trial->key, sizeof(trial->key));
    free(trial);
    if (trials->running_count == 0)
        stop_listening(trials);
}

static void on_limit(void *context)
{
    struct trial *trial = context;
    if (!trial->is_told)
        tell(trial, 0);
    trial_free(trial);
}

/* It is not for another machine to choose what ours knocks at. */
static void set_targets(struct trial *trial, const struct try_message *message)
{
    struct host_port own[PATH_CANDIDATE_MAX];
    const size_t own_count = path_addresses(/* port= */ 1, own);
    const bool has_loopback_only = own_count == 1 && strcmp(own[0].host, "127.0.0.1") == 0;
    struct error ignored;
    for (uint32_t i = 0; i < message->address_count && trial->target_count < DIALS_MAX; i++) {
        struct host_port *target = &trial->targets[trial->target_count];
        if (host_port_parse(message->addresses[i], target, &ignored) == 0 &&
            address_may_dial(target, has_loopback_only))
            trial->target_count++;
    }
}

void trials_begin(struct trials *trials, const struct try_message *message)
{
    if (!trials->options.is_direct || trials->running_count == TRIALS_MAX) {
        const struct tried_message tried = {message->trial, 0};
        trials->options.on_tried(trials->options.context, &tried);
        return;
    }
    struct trial *trial = calloc(1, sizeof(*trial));
    ASSERT(trial);
    trial->trials = trials;
    trial->id = message->trial;
    memcpy(trial->key, message->key, sizeof(trial->key));
    memcpy(trial->ticket, message->ticket, sizeof(trial->ticket));
    set_targets(trial, message);
    trial->retry_ms = RETRY_FIRST_MS;
    trial->retry = loop_timer_new(trials->options.loop, dial, trial);
    trial->limit = loop_timer_new(trials->options.loop, on_limit, trial);
    list_append(&trials->running, &trial->node);
    trials->running_count++;
    start_listening(trials);
    loop_timer_start(trial->limit, message->limit_ms);
    dial(trial);
}

size_t trials_addresses(const struct trials *trials, struct host_port out[PATH_CANDIDATE_MAX])
{
    return trials->port ? path_addresses(trials->port, out) : 0;
}

struct trials *trials_new(const struct trials_options *options)
{
    struct trials *trials = calloc(1, sizeof(*trials));
    ASSERT(trials);
    trials->options = *options;
    trials->listen_fd = -1;
    list_init(&trials->running);
    list_init(&trials->contacts);
    hold_port(trials);
    return trials;
}

void trials_free(struct trials *trials)
{
    if (!trials)
        return;
    trials->options.is_direct = false; /* the port is let go */
    LIST_EACH(&trials->running, node)
    {
        trial_free(LIST_ITEM(node, struct trial, node));
    }
    LIST_EACH(&trials->contacts, node)
    {
        contact_free(LIST_ITEM(node, struct contact, node));
    }
    if (trials->listen_fd >= 0)
        close(trials->listen_fd);
    free(trials);
}
