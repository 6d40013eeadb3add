/*
 * Scripted server, for tests: answers each connection with the next piece of its script, byte for
 * byte, and keeps what it was asked.
 */
#pragma once

#include "testing/testing.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
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
    char asked[SCRIPT_MAX][ASKED_SIZE]; /* one a connection, with its body */
};

/* Head and body, as far as its Content-Length says. */
static inline bool scripted_is_whole(const char *asked, size_t size)
{
    const char *body = strstr(asked, "\r\n\r\n");
    const char *length = strcasestr(asked, "\r\nContent-Length: ");
    if (!body || !length || length > body)
        return body != NULL;
    const size_t body_size = strtoull(length + strlen("\r\nContent-Length: "), NULL, 10);
    return size >= (size_t)(body + 4 - asked) + body_size;
}

static inline void scripted_answer_one(struct scripted_server *server, int fd, size_t index)
{
    char *asked = server->asked[index];
    size_t size = 0;
    while (size + 1 < ASKED_SIZE && !scripted_is_whole(asked, size)) {
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
    assert_true(count <= SCRIPT_MAX);
    server->answers = answers;
    server->answer_count = count;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    server->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server->listen_fd >= 0);
    assert_true(bind(server->listen_fd, (struct sockaddr *)&address, size) == 0);
    assert_true(listen(server->listen_fd, SCRIPT_MAX) == 0);
    assert_true(getsockname(server->listen_fd, (struct sockaddr *)&address, &size) == 0);
    server->port = ntohs(address.sin_port);
    assert_true(pthread_create(&server->thread, NULL, scripted_run, server) == 0);
}

/* Asserts that all of the script was played. */
static inline void scripted_stop(struct scripted_server *server)
{
    shutdown(server->listen_fd, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listen_fd);
    assert_int_equal(atomic_load(&server->asked_count), server->answer_count);
}
