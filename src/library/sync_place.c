/* Sync place: which rank of how many this is, and where rank 0 is found. */
#include "base/file.h"
#include "library/sync_internal.h"
#include "runtime/ports.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOIN_MS = 120000, LOST_MS = 10000, DONE_FILE_MAX = 64 << 10 };

static const char *variable(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): read at the start only */
    return value && *value ? value : NULL;
}

static int find_number(const char *name, uint64_t maximum, uint64_t *value, struct error *error)
{
    const char *text = variable(name);
    if (!text)
        return 0;
    if (text_parse_u64(text_of(text), value, error) < 0)
        return error_wrap(error, "%s", name);
    if (*value > maximum)
        return error_set(error, ERROR_INVALID, "%s must be at most %" PRIu64, name, maximum);
    return 0;
}

static int find_rank(const struct souk_sync_options *options, struct sync_place *out,
                     struct error *error)
{
    uint64_t rank = 0, world = 1;
    if (options->world_size > 0) {
        rank = options->rank < 0 ? UINT32_MAX : (uint64_t)options->rank;
        world = (uint64_t)options->world_size;
    } else if (find_number("SOUK_RANK", SYNC_WORLD_MAX, &rank, error) < 0 ||
               find_number("SOUK_WORLD_SIZE", SYNC_WORLD_MAX, &world, error) < 0) {
        return -1;
    }
    if (world == 0 || world > SYNC_WORLD_MAX || rank >= world)
        return error_set(error, ERROR_INVALID, "rank %" PRIu64 " of %" PRIu64 " cannot be", rank,
                         world);
    out->rank = (uint32_t)rank;
    out->world = (uint32_t)world;
    return 0;
}

/* The first of a list; in a job rank 0's address is torch's MASTER_ADDR as well. */
static int find_host(const struct souk_sync_options *options, struct sync_place *out,
                     struct error *error)
{
    const char *peers = options->peers ? options->peers : variable("SOUK_PEERS");
    if (!peers)
        peers = variable("MASTER_ADDR");
    if (!peers)
        return error_set(error, ERROR_INVALID,
                         "SOUK_PEERS is not set: rank 0 cannot be found (in a job file, "
                         "`resources: {network: job}` sets it)");
    const struct text first = {peers, strcspn(peers, ",\n")};
    if (memchr(first.data, ':', first.size))
        return host_port_parse(first, &out->host, error);
    out->host.port = PORT_SYNC;
    return text_copy(first, out->host.host, sizeof out->host.host, error);
}

static void find_key(const struct souk_sync_options *options, struct sync_place *out)
{
    const char *secret = options->key ? options->key : variable("SOUK_SYNC_KEY");
    const char *job = variable("SOUK_JOB");
    char text[512];
    const int size = snprintf(text, sizeof text, "souk sync %s", secret ? secret : job ? job : "");
    const size_t used = size < 0 ? 0 : (size_t)size >= sizeof text ? sizeof text - 1 : (size_t)size;
    crypto_generichash(out->key, LINK_KEY_SIZE, (const unsigned char *)text, used, NULL, 0);
    sodium_memzero(text, sizeof text);
}

int sync_place_find(const struct souk_sync_options *options, struct sync_place *out,
                    struct error *error)
{
    uint64_t join_ms = JOIN_MS, lost_ms = LOST_MS;
    *out = (struct sync_place){0};
    if (find_rank(options, out, error) < 0 ||
        (out->world > 1 && find_host(options, out, error) < 0))
        return -1;
    if (find_number("SOUK_SYNC_JOIN_MS", UINT32_MAX, &join_ms, error) < 0 ||
        find_number("SOUK_SYNC_LOST_MS", UINT32_MAX, &lost_ms, error) < 0)
        return -1;
    find_key(options, out);
    out->done_file = variable("SOUK_DONE_FILE");
    out->join_ms = options->join_ms > 0 ? options->join_ms : (int64_t)join_ms;
    out->lost_ms = options->lost_ms > 0 ? options->lost_ms : (int64_t)lost_ms;
    return 0;
}

bool sync_place_is_over(const struct sync_place *place)
{
    struct error ignored; /* no file: nobody is done yet */
    struct buffer text AUTO_BUFFER;
    buffer_init(&text, DONE_FILE_MAX);
    if (place->rank == 0 || !place->done_file || file_read(place->done_file, &text, &ignored) < 0)
        return false;
    struct text line, rest = buffer_text(&text);
    while (text_cut(rest, '\n', &line, &rest))
        if (text_is(line, "0"))
            return true;
    return false;
}
