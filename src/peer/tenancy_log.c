/* What a tenancy's process prints: read from its pipes into the logbook, and sent from there. */
#include "base/log.h"
#include "peer/tenancy_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

enum {
    READ_BYTES = 32 << 10, /* in one turn of the loop, from one pipe */
    PIECE_COST_BYTES = 4 << 10,
};

static void log_close(struct tenancy_log *log)
{
    loop_watch_free(TAKE(log->watch));
    if (log->fd >= 0)
        close(TAKE_FD(log->fd));
}

void tenancy_close_logs(struct tenancy *tenancy)
{
    for (size_t i = 0; i < TENANCY_LOG_COUNT; i++)
        log_close(&tenancy->logs[i]);
}

/* False when there is nothing to read now. */
static bool log_read(struct tenancy_log *log)
{
    char bytes[READ_BYTES];
    const ssize_t size = log->fd < 0 ? 0 : read(log->fd, bytes, sizeof(bytes));
    if (size > 0) {
        tenancy_count_talk(log->tenancy, (size_t)size + PIECE_COST_BYTES);
        logbook_add(&log->tenancy->logbook, (struct text){bytes, (size_t)size});
    }
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
        log_close(log);
    return size > 0;
}

static void log_on_events(void *context, uint32_t events)
{
    struct tenancy_log *log = context;
    (void)events;
    log_read(log);
    tenancy_pump_readers(log->tenancy);
    tenancy_send_logs(log->tenancy);
    tenancy_update_reading(log->tenancy);
}

int tenancy_open_log(struct tenancy *tenancy, enum tenancy_stream_name name, int *out_write_fd,
                     struct error *error)
{
    struct tenancy_log *log = &tenancy->logs[name];
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_set_errno(error, errno, "make a pipe");
    *out_write_fd = fds[1];
    log->tenancy = tenancy;
    log->fd = fds[0];
    if (fcntl(log->fd, F_SETFL, O_NONBLOCK) < 0)
        return error_set_errno(error, errno, "set up a pipe");
    return loop_watch_open(tenancy->host->loop, log->fd, LOOP_READ, log_on_events, log, &log->watch,
                           error);
}

/* A process that prints more than the market keeps waits for it, also while it is away. */
void tenancy_update_log_reading(struct tenancy *tenancy)
{
    const bool may_read = tenancy->talk_bytes >= 0 && logbook_has_room(&tenancy->logbook);
    for (size_t i = 0; i < TENANCY_LOG_COUNT; i++)
        if (tenancy->logs[i].watch)
            loop_watch_set(tenancy->logs[i].watch, may_read ? LOOP_READ : 0);
}

void tenancy_pause_logs(struct tenancy *tenancy)
{
    for (size_t i = 0; i < TENANCY_LOG_COUNT; i++)
        while (log_read(&tenancy->logs[i]))
            ;
    tenancy_close_logs(tenancy);
}

void tenancy_end_logs(struct tenancy *tenancy)
{
    tenancy_pause_logs(tenancy);
    logbook_end(&tenancy->logbook);
    tenancy_pump_readers(tenancy);
    tenancy_send_logs(tenancy);
}

void tenancy_send_logs(struct tenancy *tenancy)
{
    struct outbox *outbox = tenancy->host->outbox;
    struct lease_message message = {.type = LEASE_MESSAGE_LOG};
    while (outbox_is_attached(outbox) && outbox_has_room(outbox) &&
           logbook_next(&tenancy->logbook, &message.log)) {
        message.log.lease = tenancy->document.lease;
        message.log.fence = tenancy->document.fence;
        outbox_send(outbox, &message, tenancy_now_ns(tenancy));
    }
}

bool tenancy_has_settled_logs(struct tenancy *tenancy)
{
    if (tenancy->is_log_given_up || logbook_is_settled(&tenancy->logbook))
        return true;
    if (!tenancy->host->is_market_away && !loop_timer_is_running(tenancy->log_timer))
        loop_timer_start(tenancy->log_timer, TENANCY_LOG_KEPT_MS);
    return false;
}

void tenancy_give_up_logs(struct tenancy *tenancy, const char *reason)
{
    if (tenancy->is_log_given_up || logbook_is_settled(&tenancy->logbook))
        return;
    tenancy->is_log_given_up = true;
    log_event(LOG_WARN, "log_not_kept", "lease=%" PRIu64 " bytes=%zu reason=\"%s\"",
              tenancy->document.lease, tenancy->logbook.bytes.size, reason);
    tenancy_check_end(tenancy);
}

void tenancy_on_log_timer(void *context)
{
    struct tenancy *tenancy = context;
    if (!tenancy->host->is_market_away)
        tenancy_give_up_logs(tenancy, "the market did not say that it has them");
}

void tenancy_relinked(struct tenancy *tenancy)
{
    if (tenancy->has_ended)
        return;
    loop_timer_stop(tenancy->log_timer);
    logbook_rewind(&tenancy->logbook);
    tenancy_send_logs(tenancy);
    tenancy_check_end(tenancy);
}

void tenancy_log_kept(struct tenancy *tenancy, uint64_t offset)
{
    if (tenancy->has_ended)
        return;
    tenancy_pump_readers(tenancy); /* before it lets anything go */
    logbook_kept(&tenancy->logbook, offset);
    tenancy_send_logs(tenancy);
    tenancy_update_reading(tenancy);
    tenancy_check_end(tenancy);
}
