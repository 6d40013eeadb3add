/* The two programs of a measurement, inside the sandboxes. */
#include "base/clock.h"
#include "base/scope.h"
#include "net/packet.h"
#include "peer/bench_jobnet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 5000, PINGS = 400, MIDDLE = PINGS / 2, PIECE_SIZE = 256 << 10, CONNECT_TRIES = 200 };

static struct sockaddr_in sink_address(void)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(PORT),
                                .sin_addr.s_addr = htonl(packet_address(0))};
}

static int read_all(int fd, void *out, size_t size, struct error *error)
{
    for (size_t done = 0; done < size;) {
        const ssize_t got = read(fd, (char *)out + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_errno(error, errno, "read");
        if (got == 0)
            return error_set(error, ERROR_UNAVAILABLE, "the other end closed");
        done += (size_t)got;
    }
    return 0;
}

static int write_all(int fd, const void *data, size_t size, struct error *error)
{
    for (size_t done = 0; done < size;) {
        const ssize_t put = write(fd, (const char *)data + done, size - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return error_set_errno(error, errno, "write");
        done += (size_t)put;
    }
    return 0;
}

static int run_sink(struct error *error)
{
    AUTO_FD int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct sockaddr_in address = sink_address();
    if (listener < 0 || bind(listener, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(listener, 1) < 0)
        return error_set_errno(error, errno, "listen");
    AUTO_FD int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    const int on = 1;
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
        return error_set_errno(error, errno, "accept");
    char byte;
    for (int i = 0; i < PINGS; i++)
        if (read_all(fd, &byte, 1, error) < 0 || write_all(fd, &byte, 1, error) < 0)
            return -1;
    char *piece = malloc(PIECE_SIZE);
    uint64_t total = 0;
    ssize_t got;
    while ((got = read(fd, piece, PIECE_SIZE)) > 0)
        total += (uint64_t)got;
    free(piece);
    if (got < 0)
        return error_set_errno(error, errno, "read");
    return write_all(fd, &total, sizeof(total), error);
}

/* The sink may not listen yet. */
static int dial(int *out_fd, struct error *error)
{
    const struct sockaddr_in address = sink_address();
    for (int i = 0; i < CONNECT_TRIES; i++) {
        AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return error_set_errno(error, errno, "socket");
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
            const int on = 1;
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
            *out_fd = TAKE_FD(fd);
            return 0;
        }
        if (errno != ECONNREFUSED)
            break;
        usleep(10000);
    }
    return error_set_errno(error, errno, "connect");
}

static int compare(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static int measure_rtt(int fd, double *out_us, struct error *error)
{
    int64_t times[PINGS];
    char byte = 'x';
    for (int i = 0; i < PINGS; i++) {
        const int64_t begin_ns = clock_monotonic_ns(&clock_system);
        if (write_all(fd, &byte, 1, error) < 0 || read_all(fd, &byte, 1, error) < 0)
            return -1;
        times[i] = clock_monotonic_ns(&clock_system) - begin_ns;
    }
    qsort(times, PINGS, sizeof(*times), compare);
    *out_us = (double)times[MIDDLE] / 1e3;
    return 0;
}

static int run_source(int64_t round_ms, struct error *error)
{
    AUTO_FD int fd = -1;
    double rtt_us;
    if (dial(&fd, error) < 0 || measure_rtt(fd, &rtt_us, error) < 0)
        return -1;
    char *piece = calloc(1, PIECE_SIZE);
    const int64_t begin_ns = clock_monotonic_ns(&clock_system);
    while (clock_monotonic_ns(&clock_system) - begin_ns < round_ms * 1000000)
        if (write_all(fd, piece, PIECE_SIZE, error) < 0) {
            free(piece);
            return -1;
        }
    free(piece);
    uint64_t total;
    if (shutdown(fd, SHUT_WR) < 0)
        return error_set_errno(error, errno, "shutdown");
    if (read_all(fd, &total, sizeof(total), error) < 0)
        return -1;
    const double seconds = (double)(clock_monotonic_ns(&clock_system) - begin_ns) / 1e9;
    printf("%.0f %.3f %.6f\n", (double)total, rtt_us, seconds);
    return fflush(stdout) == 0 ? 0 : error_set_errno(error, errno, "print");
}

int bench_jobnet_end(const char *which, int64_t round_ms, struct error *error)
{
    if (strcmp(which, "sink") == 0)
        return run_sink(error);
    if (strcmp(which, "source") == 0)
        return run_source(round_ms, error);
    return error_set(error, ERROR_INVALID, "\"%s\" is no end of a measurement", which);
}
