/* Large objects of S3, in parts on several connections. covers remote_fetch.c, remote_s3.c */
#include "base/assert.h"
#include "source/remote.h"
#include "testing/testing.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 64, HEAD_SIZE = 4096 };

#define OBJECT_SIZE ((uint64_t)(20 << 20) + 5)

/* An object whose every byte follows from its place and the object's version. */
struct store {
    int listen_fd;
    uint16_t port;
    pthread_t thread;
    pthread_t connections[CONNECTIONS_MAX];
    int fds[CONNECTIONS_MAX];
    size_t connection_count;
    atomic_uint version;
    atomic_uint parts;      /* that were asked for */
    unsigned changes_after; /* so many parts it becomes another; 0: never */
    unsigned fails_after;   /* so many parts nobody may read it; 0: never */
};

struct connection {
    struct store *store;
    int fd;
};

static uint8_t byte_at(uint64_t offset, unsigned version)
{
    return (uint8_t)((offset >> 8) * 31 + offset * 7 + version);
}

static bool read_head(int fd, char head[HEAD_SIZE])
{
    size_t size = 0;
    head[0] = '\0';
    while (size + 1 < HEAD_SIZE && !strstr(head, "\r\n\r\n")) {
        const ssize_t got = recv(fd, head + size, HEAD_SIZE - 1 - size, 0);
        if (got <= 0)
            return false;
        size += (size_t)got;
        head[size] = '\0';
    }
    return true;
}

static bool send_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t sent = send(fd, (const char *)bytes + done, size - done, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        done += (size_t)sent;
    }
    return true;
}

static bool refuse(int fd, const char *status)
{
    char head[128];
    const int size =
        snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status);
    return send_all(fd, head, (size_t)size);
}

static bool answer(struct store *store, int fd, const char *asked)
{
    const char *range = strstr(asked, "Range: bytes=");
    const char *match = strstr(asked, "If-Match: \"");
    char head[256];
    char *rest = NULL;
    ASSERT(range);
    const uint64_t first = strtoull(range + strlen("Range: bytes="), &rest, 10);
    ASSERT(*rest == '-');
    const uint64_t last = strtoull(rest + 1, NULL, 10);
    const unsigned parts = atomic_fetch_add(&store->parts, 1) + 1;
    if (store->fails_after && parts > store->fails_after)
        return refuse(fd, "403 Forbidden");
    if (store->changes_after && parts > store->changes_after)
        atomic_store(&store->version, 2);
    const unsigned version = atomic_load(&store->version);
    if (match && strtoul(match + 11, NULL, 10) != version)
        return refuse(fd, "412 Precondition Failed");
    const size_t size = (size_t)(last - first + 1);
    uint8_t *body = malloc(size);
    ASSERT(body);
    for (size_t i = 0; i < size; i++)
        body[i] = byte_at(first + i, version);
    const int length =
        snprintf(head, sizeof(head),
                 "HTTP/1.1 206 Partial Content\r\nETag: \"%u\"\r\nContent-Length: %zu\r\n"
                 "Content-Range: bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64 "\r\n\r\n",
                 version, size, first, last, OBJECT_SIZE);
    const bool is_sent = send_all(fd, head, (size_t)length) && send_all(fd, body, size);
    free(body);
    return is_sent;
}

static void *serve(void *context)
{
    struct connection connection = *(struct connection *)context;
    char head[HEAD_SIZE];
    free(context);
    while (read_head(connection.fd, head) && answer(connection.store, connection.fd, head))
        ;
    return NULL;
}

static void *accept_all(void *context)
{
    struct store *store = context;
    int fd;
    while ((fd = accept(store->listen_fd, NULL, NULL)) >= 0) {
        struct connection *connection = malloc(sizeof(*connection));
        ASSERT(connection && store->connection_count < CONNECTIONS_MAX);
        *connection = (struct connection){store, fd};
        store->fds[store->connection_count] = fd;
        ASSERT(pthread_create(&store->connections[store->connection_count++], NULL, serve,
                              connection) == 0);
    }
    return NULL;
}

static void store_open(struct store *store)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    *store = (struct store){.version = 1};
    store->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT(store->listen_fd >= 0 &&
           bind(store->listen_fd, (struct sockaddr *)&address, size) == 0 &&
           listen(store->listen_fd, CONNECTIONS_MAX) == 0 &&
           getsockname(store->listen_fd, (struct sockaddr *)&address, &size) == 0);
    store->port = ntohs(address.sin_port);
    ASSERT(pthread_create(&store->thread, NULL, accept_all, store) == 0);
}

static void store_close(struct store *store)
{
    shutdown(store->listen_fd, SHUT_RDWR);
    pthread_join(store->thread, NULL);
    close(store->listen_fd);
    for (size_t i = 0; i < store->connection_count; i++) {
        shutdown(store->fds[i], SHUT_RDWR);
        pthread_join(store->connections[i], NULL);
        close(store->fds[i]);
    }
}

/* ---- Fetching from it -------------------------------------------------------------------------
 */

struct progress {
    uint64_t done_bytes, total_bytes;
};

static void on_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    *(struct progress *)context = (struct progress){done_bytes, total_bytes};
}

static int fetch(const struct store *store, int fd, struct progress *progress, struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    struct remote_credentials credentials = {.access_key = "key", .secret_key = "secret"};
    snprintf(credentials.endpoint_url, sizeof(credentials.endpoint_url), "http://127.0.0.1:%u",
             store->port);
    const struct remote_options options = {.address = "s3://bucket/large",
                                           .pause_ms = 1,
                                           .credentials = &credentials,
                                           .on_progress = on_progress,
                                           .context = progress};
    return remote_open(&options, &remote, error) < 0 ? -1 : remote_fetch(remote, fd, error);
}

static void assert_object(int fd, unsigned version)
{
    assert_int_equal(lseek(fd, 0, SEEK_END), (off_t)OBJECT_SIZE);
    uint8_t *bytes = mmap(NULL, OBJECT_SIZE, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(bytes != MAP_FAILED);
    for (uint64_t i = 0; i < OBJECT_SIZE; i++)
        if (bytes[i] != byte_at(i, version))
            fail_msg("byte %" PRIu64 " is not of version %u", i, version);
    munmap(bytes, OBJECT_SIZE);
}

TEST(parts_are_put_together)
{
    struct error error = {0};
    struct store store;
    struct progress progress = {0};
    const int fd = memfd_create("large", MFD_CLOEXEC);
    store_open(&store);
    ASSERT_OK(fetch(&store, fd, &progress, &error));
    assert_object(fd, 1);
    assert_int_equal(progress.done_bytes, OBJECT_SIZE);
    assert_int_equal(progress.total_bytes, OBJECT_SIZE);
    assert_int_equal(atomic_load(&store.parts), 1 + 3); /* the first asks for its size */
    store_close(&store);
    close(fd);
}

TEST(an_object_that_changes_amid_its_parts_is_fetched_anew)
{
    struct error error = {0};
    struct store store;
    struct progress progress = {0};
    const int fd = memfd_create("large", MFD_CLOEXEC);
    store_open(&store);
    store.changes_after = 2;
    ASSERT_OK(fetch(&store, fd, &progress, &error));
    assert_object(fd, 2);
    store_close(&store);
    close(fd);
}

TEST(one_part_that_is_refused_ends_all)
{
    struct error error = {0};
    struct store store;
    struct progress progress = {0};
    const int fd = memfd_create("large", MFD_CLOEXEC);
    store_open(&store);
    store.fails_after = 2;
    ASSERT_FAILS(fetch(&store, fd, &progress, &error), ERROR_REFUSED);
    assert_string_equal(error.message,
                        "s3://bucket/large: the server does not let it be read (status 403)");
    store_close(&store);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_put_together),
        cmocka_unit_test(an_object_that_changes_amid_its_parts_is_fetched_anew),
        cmocka_unit_test(one_part_that_is_refused_ends_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
