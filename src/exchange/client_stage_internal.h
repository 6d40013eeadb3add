/*
 * Client stage, for tests: one worker, whose server is played by hand in virtual time.
 */
#pragma once

#include "exchange/client_internal.h"
#include "testing/testing.h"

#include <string.h>
#include <sys/socket.h>

enum { COUNT = 20, LEASE = 100, FENCE = 4, TERM = 1 };
#define MS INT64_C(1000000)

static const float zero[COUNT];

struct stage {
    struct virtual_clock clock;
    struct loop *loop;
    struct link *link; /* the server's end */
    struct exchange_client *client;
    uint32_t joins, pushes, runs; /* that came to the server */
    pthread_t training;
    float parameters[COUNT];
};

static inline void key_of(uint8_t out_key[LINK_KEY_SIZE])
{
    memset(out_key, 7, LINK_KEY_SIZE);
}

static inline int find_key(void *context, struct text identity, uint8_t out_key[LINK_KEY_SIZE])
{
    (void)context, (void)identity;
    key_of(out_key);
    return 0;
}

static inline void on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity, (void)context;
}

static inline void on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link, (void)payload;
    struct stage *stage = context;
    stage->joins += type == EXCHANGE_JOIN;
    stage->pushes += type == EXCHANGE_PUSH;
    stage->runs += type == EXCHANGE_DATA;
}

static inline void on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link, (void)context;
    fail_msg("the worker closed the link: %s", reason ? reason->message : "in good order");
}

static inline void turn(struct stage *stage)
{
    struct error error;
    ASSERT_OK(loop_step(stage->loop, -1, &error));
}

#define RUN_UNTIL(stage, condition)                                                                \
    while (!(condition))                                                                           \
    turn(stage)

static inline struct exchange_client_status status_of(struct stage *stage)
{
    struct exchange_client_status status;
    exchange_client_status(stage->client, &status);
    return status;
}

static inline void send_message(struct stage *stage, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, EXCHANGE_PAYLOAD_MAX);
    exchange_message_encode(&payload, message);
    ASSERT_OK(link_send_text(stage->link, (uint16_t)message->type, buffer_text(&payload), &error));
}

/* The model's header; its data follow. The session is the last one that the worker joined in. */
static inline void send_model(struct stage *stage, uint64_t push, int64_t held_ns)
{
    const struct exchange_model model = {
        .term = TERM, .push = push, .session = stage->joins, .held_ns = held_ns};
    send_message(stage, &(struct exchange_message){.type = EXCHANGE_MODEL, .model = model});
}

static inline void send_data(struct stage *stage)
{
    static struct vector_scratch scratch;
    struct vector_sender sender = {0};
    struct vector_run run;
    struct error error;
    vector_send_begin(&sender, zero, COUNT, CODEC_F32, 1, &scratch);
    vector_send_next(&sender, &scratch, &run);
    const struct text parts[2] = {{(const char *)run.head, sizeof run.head}, run.body};
    ASSERT_OK(link_send(stage->link, EXCHANGE_DATA, parts, 2, &error));
}

static inline void stage_dial(struct stage *stage)
{
    struct error error;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const struct link_options server = {.loop = stage->loop,
                                        .is_server = true,
                                        .find_key = find_key,
                                        .payload_max = EXCHANGE_PAYLOAD_MAX,
                                        .is_bulk = true,
                                        .callbacks = {on_open, on_frame, on_close, NULL},
                                        .context = stage};
    ASSERT_OK(link_open_take(&server, ends[0], &stage->link, &error));
    ASSERT_OK(exchange_client_attach_take(stage->client, 0, ends[1], TERM, &error));
}

/* The worker's join of that number, counted from 1, comes and is answered. */
static inline void stage_join(struct stage *stage, uint32_t number)
{
    RUN_UNTIL(stage, stage->joins == number);
    send_model(stage, 0, 0);
    send_data(stage);
    RUN_UNTIL(stage, status_of(stage).state == EXCHANGE_CLIENT_TRAINING);
}

static inline void stage_open(struct stage *stage, const struct exchange_settings *settings)
{
    struct error error;
    *stage = (struct stage){0};
    virtual_clock_init(&stage->clock, 0);
    virtual_clock_advance(&stage->clock, 1000 * MS);
    ASSERT_OK(loop_open(&stage->clock.clock, &stage->loop, &error));
    struct exchange_client_options worker = {
        .loop = stage->loop, .lease = LEASE, .fence = FENCE, .parameter_count = COUNT};
    key_of(worker.key);
    ASSERT_OK(exchange_client_open(&worker, &stage->client, &error));
    exchange_client_begin(stage->client, zero);
    stage_dial(stage);
    RUN_UNTIL(stage, stage->joins == 1);
    send_message(stage,
                 &(struct exchange_message){.type = EXCHANGE_SETTINGS, .settings = *settings});
    stage_join(stage, 1);
}

static inline void stage_close(struct stage *stage)
{
    exchange_client_free(stage->client);
    link_free(stage->link);
    loop_free(stage->loop);
}
