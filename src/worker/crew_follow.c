/*
 * Crew, the other ranks: dial rank 0, do as it says, and dial its successor when it is lost.
 */
#include "base/assert.h"
#include "worker/crew_internal.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

enum { DIAL_MS = 3000, REDIAL_MS = 300 };

struct crew_follow {
    struct crew_options options;
    struct tcp_connect *attempt;
    struct line_link *link; /* NULL: not with rank 0 */
    struct loop_timer *dial, *tick;
    struct muster_rank *members; /* of the round */
    uint64_t round;
    uint64_t rounds; /* that it was in */
    bool is_running; /* its script */
    bool has_exited; /* and rank 0 is to know how */
    int status;
    int64_t heard_ms;
    bool has_complained; /* of rank 0's silence */
};

static int64_t now_ms(const struct crew_follow *follow)
{
    return crew_now_ms(&follow->options);
}

static void dial_later(struct crew_follow *follow)
{
    loop_timer_start(follow->dial, REDIAL_MS);
}

static void send_exit(struct crew_follow *follow)
{
    if (follow->link && follow->has_exited)
        line_link_send(follow->link, &(struct muster_message){.kind = MUSTER_MESSAGE_EXIT,
                                                              .round = follow->round,
                                                              .status = follow->status});
}

/* Without rank 0 there is no job: what runs is stopped, or goes on alone as the job wants it. */
static void lose(struct crew_follow *follow, const char *why)
{
    char text[MUSTER_TEXT_SIZE];
    const bool was_there = follow->link != NULL; /* else it may still be at its setup */
    line_link_free(TAKE(follow->link));
    snprintf(text, sizeof(text), "rank 0: %s; it is waited for", why);
    if (!follow->has_complained)
        crew_say(text);
    follow->has_complained = true;
    if (was_there)
        follow->options.callbacks.on_done(follow->options.context, NULL, 0); /* nobody knows */
    if (follow->options.muster.restart == MUSTER_RESTART_NEVER && was_there) {
        snprintf(text, sizeof(text), "rank 0: %s", why);
        follow->options.callbacks.on_end(follow->options.context, false, text);
        return;
    }
    if (follow->options.muster.restart == MUSTER_RESTART_JOB) {
        follow->has_exited = false;
        if (follow->is_running)
            follow->options.callbacks.on_stop(follow->options.context);
    }
    dial_later(follow);
}

static void take_start(struct crew_follow *follow, const struct muster_message *message)
{
    const size_t count = message->members.count;
    const struct crew_options *options = &follow->options;
    if (!muster_is_round(&options->muster, options->own.rank, message->members.items, count)) {
        lose(follow, "it names ranks that are no round of this one");
        return;
    }
    free(follow->members);
    follow->members = calloc(count, sizeof(*follow->members));
    ASSERT(follow->members);
    memcpy(follow->members, message->members.items, count * sizeof(*follow->members));
    follow->round = message->round;
    follow->rounds = message->round + 1;
    follow->is_running = true;
    follow->has_exited = false;
    follow->options.callbacks.on_start(follow->options.context, follow->round, follow->members,
                                       count);
}

static void on_message(void *context, const struct muster_message *message)
{
    struct crew_follow *follow = context;
    const struct crew_callbacks *callbacks = &follow->options.callbacks;
    follow->heard_ms = now_ms(follow);
    follow->has_complained = false;
    switch ((enum muster_message_kind)message->kind) {
    case MUSTER_MESSAGE_START:
        if (!follow->is_running)
            take_start(follow, message);
        return;
    case MUSTER_MESSAGE_STOP:
        if (follow->is_running)
            callbacks->on_stop(follow->options.context);
        return;
    case MUSTER_MESSAGE_END:
        callbacks->on_end(follow->options.context, message->is_ok, "");
        return;
    case MUSTER_MESSAGE_LAUNCH:
        callbacks->on_launch(follow->options.context, message->id, message->command);
        return;
    case MUSTER_MESSAGE_DONE:
        callbacks->on_done(follow->options.context, message->members.items, message->members.count);
        return;
    case MUSTER_MESSAGE_JOIN:
    case MUSTER_MESSAGE_ALIVE:
    case MUSTER_MESSAGE_EXIT:
    case MUSTER_MESSAGE_LAUNCHED:
        return;
    }
}

static void on_closed(void *context, const char *why)
{
    lose(context, why);
}

static void on_connected(void *context, int fd, const struct error *reason)
{
    struct crew_follow *follow = context;
    const struct line_link_callbacks callbacks = {on_message, on_closed};
    struct error error;
    (void)reason; /* it is not there yet: on_tick says so when that lasts */
    tcp_connect_free(TAKE(follow->attempt));
    if (fd < 0 || line_link_open_take(follow->options.loop, fd, &callbacks, follow, &follow->link,
                                      &error) < 0) {
        dial_later(follow);
        return;
    }
    follow->heard_ms = now_ms(follow);
    struct muster_message join = {.kind = MUSTER_MESSAGE_JOIN, .rank = follow->options.own};
    join.rank.rounds = follow->rounds;
    join.rank.is_running = follow->is_running || follow->has_exited;
    line_link_send(follow->link, &join);
    send_exit(follow);
}

static void on_dial(void *context)
{
    struct crew_follow *follow = context;
    const bool is_alone = follow->options.muster.restart != MUSTER_RESTART_JOB;
    if (follow->link || follow->attempt)
        return;
    if (follow->is_running && !is_alone) {
        dial_later(follow); /* it is being stopped */
        return;
    }
    struct host_port target = {.port = (uint16_t)follow->options.port};
    const struct in_addr address = {htonl(follow->options.address(0))};
    inet_ntop(AF_INET, &address, target.host, sizeof(target.host));
    follow->attempt =
        tcp_connect_start(follow->options.loop, &target, DIAL_MS, on_connected, follow);
}

static void on_tick(void *context)
{
    struct crew_follow *follow = context;
    loop_timer_start(follow->tick, CREW_ALIVE_MS);
    char why[64];
    snprintf(why, sizeof(why), "not heard for %d s", MUSTER_SILENCE_MS / 1000);
    const bool is_silent = now_ms(follow) - follow->heard_ms >= MUSTER_SILENCE_MS;
    if (is_silent && (follow->link || !follow->has_complained))
        lose(follow, why);
    else if (follow->link)
        line_link_send(follow->link, &(struct muster_message){.kind = MUSTER_MESSAGE_ALIVE});
}

struct crew_follow *crew_follow_new(const struct crew_options *options)
{
    struct crew_follow *follow = calloc(1, sizeof(*follow));
    ASSERT(follow);
    follow->options = *options;
    follow->heard_ms = now_ms(follow);
    follow->dial = loop_timer_new(options->loop, on_dial, follow);
    follow->tick = loop_timer_new(options->loop, on_tick, follow);
    loop_timer_start(follow->dial, 0);
    loop_timer_start(follow->tick, CREW_ALIVE_MS);
    return follow;
}

void crew_follow_free(struct crew_follow *follow)
{
    if (!follow)
        return;
    tcp_connect_free(follow->attempt);
    line_link_free(follow->link);
    loop_timer_free(follow->dial);
    loop_timer_free(follow->tick);
    free(follow->members);
    free(follow);
}

void crew_follow_exit(struct crew_follow *follow, int status)
{
    follow->is_running = false;
    follow->has_exited = true;
    follow->status = status;
    if (!follow->link && follow->options.muster.restart == MUSTER_RESTART_JOB)
        follow->has_exited = false; /* the round is over with the rank 0 that it had */
    send_exit(follow);
}

void crew_follow_launched(struct crew_follow *follow, uint64_t id, int status)
{
    if (follow->link)
        line_link_send(
            follow->link,
            &(struct muster_message){.kind = MUSTER_MESSAGE_LAUNCHED, .id = id, .status = status});
}
