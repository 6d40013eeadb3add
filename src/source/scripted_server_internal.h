/*
 * Scripted server, for tests: answers each connection with the next piece of its script, byte for
 * byte, and keeps what it was asked.
 */
#pragma once

#include "base/assert.h"
#include "base/text.h"
#include "net/address.h"
#include "testing/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SCRIPT_MAX = 16, ASKED_SIZE = 8192 };

enum scripted_end {
    SCRIPTED_CLOSES,
    SCRIPTED_RESETS, /* the connection, by RST */
    SCRIPTED_WAITS,  /* says nothing more until the client goes */
};

struct scripted_answer {
    const char *bytes;
    enum scripted_end end;
};

struct scripted_server {
    int listen_fd;
    uint16_t port;
    pthread_t thread;
    const struct scripted_answer *answers;
    size_t answer_count;
    atomic_size_t asked_count;
    char asked[SCRIPT_MAX][ASKED_SIZE]; /* the heads, one a connection */
};

static inline void scripted_answer_one(struct scripted_server *server, int fd, size_t index)
{
    char *asked = server->asked[index];
    size_t size = 0;
    while (size + 1 < ASKED_SIZE && !strstr(asked, "\r\n\r\n")) {
        const ssize_t got = recv(fd, asked + size, ASKED_SIZE - 1 - size, 0);
        if (got <= 0)
            break;
        size += (size_t)got;
        asked[size] = '\0';
    }
    const struct scripted_answer *answer = &server->answers[index];
    (void)!send(fd, answer->bytes, strlen(answer->bytes), MSG_NOSIGNAL);
    if (answer->end == SCRIPTED_RESETS) {
        const struct linger at_once = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    }
    char rest;
    if (answer->end == SCRIPTED_WAITS)
        (void)!recv(fd, &rest, 1, 0);
    close(fd);
}

static inline void *scripted_run(void *context)
{
    struct scripted_server *server = context;
    for (size_t i = 0; i < server->answer_count; i++) {
        const int fd = accept(server->listen_fd, NULL, NULL);
        if (fd < 0)
            break;
        scripted_answer_one(server, fd, i);
        atomic_fetch_add(&server->asked_count, 1);
    }
    return NULL;
}

static inline void scripted_start(struct scripted_server *server,
                                  const struct scripted_answer *answers, size_t count)
{
    memset(server, 0, sizeof(*server));
    ASSERT(count <= SCRIPT_MAX);
    server->answers = answers;
    server->answer_count = count;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    server->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT(server->listen_fd >= 0);
    ASSERT(bind(server->listen_fd, (struct sockaddr *)&address, size) == 0);
    ASSERT(listen(server->listen_fd, SCRIPT_MAX) == 0);
    ASSERT(getsockname(server->listen_fd, (struct sockaddr *)&address, &size) == 0);
    server->port = ntohs(address.sin_port);
    ASSERT(pthread_create(&server->thread, NULL, scripted_run, server) == 0);
}

/* Asserts that all of the script was played. */
static inline void scripted_stop(struct scripted_server *server)
{
    shutdown(server->listen_fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listen_fd);
    assert_int_equal(atomic_load(&server->asked_count), server->answer_count);
}
