/*
 * For the tests of links whose frames travel in records: two ends on one loop, and what came to
 * each.
 */
#pragma once

#include "base/buffer.h"
#include "net/link.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAYLOAD_MAX = 32 << 20, LARGE = 100000, BULK_SIZE = 20 << 20 };
enum { PLACED_TYPE = 7, PLACE_SIZE = LARGE - LINK_HEAD_SIZE };

static const uint8_t KEY[LINK_KEY_SIZE] = "0123456789abcdef0123456789abcde";

struct end {
    struct link *link;
    bool is_open, is_closed;
    struct error reason; /* code NONE: in good order */
    int frames;
    int drained;
    struct buffer received;
    uint8_t
        *place; /* of PLACE_SIZE bytes, for frames of PLACED_TYPE and LARGE; NULL: they have none */
    int placed;
};

struct fixture {
    struct loop *loop;
    struct end client, server;
    int client_side, server_side; /* what lies between; -1: nothing does */
};

static inline void on_open(struct link *link __attribute__((unused)),
                           struct text identity __attribute__((unused)), void *context)
{
    ((struct end *)context)->is_open = true;
}

static inline void on_frame(struct link *link __attribute__((unused)),
                            uint16_t type __attribute__((unused)), struct text payload,
                            void *context)
{
    struct end *end = context;
    end->frames++;
    buffer_append_text(&end->received, payload);
}

static inline void on_close(struct link *link, const struct error *reason, void *context)
{
    struct end *end = context;
    assert_false(end->is_closed);
    end->is_closed = true;
    if (reason)
        end->reason = *reason;
    link_free(link);
    end->link = NULL;
}

static inline void on_drained(struct link *link __attribute__((unused)), void *context)
{
    ((struct end *)context)->drained++;
}

static inline void *find_place(struct link *link __attribute__((unused)), uint16_t type,
                               size_t size, void *context)
{
    const struct end *end = context;
    return type == PLACED_TYPE && size == PLACE_SIZE ? end->place : NULL;
}

static inline void on_placed(struct link *link __attribute__((unused)), uint16_t type,
                             struct text head, struct text body, void *context)
{
    struct end *end = context;
    assert_int_equal(type, PLACED_TYPE);
    assert_int_equal(head.size, LINK_HEAD_SIZE);
    assert_ptr_equal(body.data, end->place);
    end->placed++;
    end->frames++;
    buffer_append_text(&end->received, head);
    buffer_append_text(&end->received, body);
}

static inline int find_key(void *context __attribute__((unused)),
                           struct text identity __attribute__((unused)),
                           uint8_t out_key[LINK_KEY_SIZE])
{
    memcpy(out_key, KEY, LINK_KEY_SIZE);
    return 0;
}

static inline struct link_options options_of(struct fixture *fixture, struct end *end)
{
    return (struct link_options){
        .loop = fixture->loop,
        .is_server = end == &fixture->server,
        .identity = "lease:7:1",
        .key = KEY,
        .find_key = find_key,
        .payload_max = PAYLOAD_MAX,
        .is_bulk = true,
        .callbacks = {on_open, on_frame, on_close, on_drained, find_place, on_placed},
        .context = end,
    };
}

static inline void fixture_open(struct fixture *fixture)
{
    struct error error;
    *fixture = (struct fixture){.client_side = -1, .server_side = -1};
    buffer_init(&fixture->client.received, 64 << 20);
    buffer_init(&fixture->server.received, 64 << 20);
    ASSERT_OK(loop_open(&clock_system, &fixture->loop, &error));
}

static inline void fixture_close(struct fixture *fixture)
{
    link_free(fixture->client.link);
    link_free(fixture->server.link);
    free(fixture->client.place);
    free(fixture->server.place);
    buffer_done(&fixture->client.received);
    buffer_done(&fixture->server.received);
    loop_free(fixture->loop);
    if (fixture->client_side >= 0)
        close(fixture->client_side);
    if (fixture->server_side >= 0)
        close(fixture->server_side);
}

static inline void step(struct fixture *fixture, int64_t wait_ms)
{
    struct error error;
    ASSERT_OK(loop_step(fixture->loop, wait_ms, &error));
}

/* Opens both ends and waits until they stand or fall. */
static inline void open_ends_on(struct fixture *fixture, const struct link_options *client,
                                const struct link_options *server, const int fds[2])
{
    struct error error;
    ASSERT_OK(link_open_take(client, fds[0], &fixture->client.link, &error));
    ASSERT_OK(link_open_take(server, fds[1], &fixture->server.link, &error));
    while ((!fixture->client.is_open && !fixture->client.is_closed) ||
           (!fixture->server.is_open && !fixture->server.is_closed))
        step(fixture, -1);
}

/* The same on one socket pair. */
static inline void open_ends(struct fixture *fixture, const struct link_options *client,
                             const struct link_options *server)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    open_ends_on(fixture, client, server, fds);
}

static inline void open_pair(struct fixture *fixture)
{
    fixture_open(fixture);
    const struct link_options client = options_of(fixture, &fixture->client);
    const struct link_options server = options_of(fixture, &fixture->server);
    open_ends(fixture, &client, &server);
}

static inline char *make_bulk(size_t size)
{
    char *bulk = malloc(size);
    assert_non_null(bulk);
    for (size_t i = 0; i < size; i++)
        bulk[i] = (char)(i * 2654435761U >> 13);
    return bulk;
}
