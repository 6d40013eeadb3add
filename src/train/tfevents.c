#include "train/tfevents.h"

#include "base/assert.h"
#include "base/memory.h"
#include "tfevents.pb-c.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCALARS_MAX = 64, RECORD_FRAME = 16, HOST_SIZE = 65, RECORDS_MAX = 64 << 10 };

struct tfevents {
    int fd;
    char path[PATH_MAX];
};

/* ---- records ----------------------------------------------------------------------------------
 */

/* Castagnoli's polynomial, reflected. */
static uint32_t crc32c(const uint8_t *bytes, size_t size)
{
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
    }
    return ~crc;
}

uint32_t tfevents_crc(const void *bytes, size_t size)
{
    const uint32_t crc = crc32c(bytes, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void put(uint8_t *out, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        out[i] = (uint8_t)(value >> (8 * i));
}

static void append_record(struct buffer *out, const Tfevents__Event *event)
{
    const size_t size = tfevents__event__get_packed_size(event);
    uint8_t *record = malloc(size + RECORD_FRAME);
    ASSERT(record != NULL);
    put(record, size, 8);
    put(record + 8, tfevents_crc(record, 8), 4);
    tfevents__event__pack(event, record + 12);
    put(record + 12 + size, tfevents_crc(record + 12, size), 4);
    buffer_append(out, record, size + RECORD_FRAME);
    free(record);
}

void tfevents_append_version(struct buffer *out, int64_t utc_ms)
{
    char version[] = "brain.Event:2";
    Tfevents__Event event = TFEVENTS__EVENT__INIT;
    event.wall_time = 1e-3 * (double)utc_ms;
    event.file_version = version;
    append_record(out, &event);
}

void tfevents_append(struct buffer *out, int64_t utc_ms, uint64_t step,
                     const struct tfevents_scalar *scalars, size_t count)
{
    Tfevents__Summary__Value values[SCALARS_MAX], *items[SCALARS_MAX];
    char tags[SCALARS_MAX][64];
    Tfevents__Summary summary = TFEVENTS__SUMMARY__INIT;
    Tfevents__Event event = TFEVENTS__EVENT__INIT;
    ASSERT(count <= SCALARS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(scalars[i].value))
            continue;
        const size_t at = summary.n_value++;
        tfevents__summary__value__init(&values[at]);
        snprintf(tags[at], sizeof(tags[at]), "%s", scalars[i].tag);
        values[at].tag = tags[at];
        values[at].has_simple_value = true;
        values[at].simple_value = (float)scalars[i].value;
        items[at] = &values[at];
    }
    if (summary.n_value == 0)
        return;
    summary.value = items;
    event.wall_time = 1e-3 * (double)utc_ms;
    event.has_step = true;
    event.step = (int64_t)step;
    event.summary = &summary;
    append_record(out, &event);
}

/* In one call, at the end of the file: a reader never sees a part of it. */
static int write_records(struct tfevents *events, const struct buffer *records, struct error *error)
{
    if (buffer_check(records, error) < 0)
        return -1;
    const ssize_t written = write(events->fd, records->data, records->size);
    const int reason = written < 0 ? errno : ENOSPC;
    if (written == (ssize_t)records->size)
        return 0;
    return error_set_errno(error, reason, "write \"%.150s\"", events->path);
}

/* ---- the file ---------------------------------------------------------------------------------
 */

static int make_folders(const char *folder, struct error *error)
{
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof(path), "%s/", folder);
    if (size <= 1 || size >= PATH_MAX)
        return error_set(error, ERROR_INVALID, "the folder's path is empty or too long");
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return error_set_errno(error, errno, "make the folder \"%.150s\"", path);
        *slash = '/';
    }
    return 0;
}

static int make_file(struct tfevents *events, const char *folder, int64_t utc_ms,
                     struct error *error)
{
    char host[HOST_SIZE] = "";
    if (gethostname(host, sizeof(host) - 1) < 0 || host[0] == '\0')
        snprintf(host, sizeof(host), "localhost");
    for (int attempt = 0;; attempt++) {
        const int size = snprintf(events->path, sizeof(events->path),
                                  "%s/events.out.tfevents.%" PRId64 ".%s.%d.%d", folder,
                                  utc_ms / 1000, host, (int)getpid(), attempt);
        if (size >= PATH_MAX)
            return error_set(error, ERROR_INVALID, "the folder's path is too long");
        events->fd = open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (events->fd >= 0)
            return 0;
        if (errno != EEXIST)
            return error_set_errno(error, errno, "make \"%.150s\"", events->path);
    }
}

int tfevents_open(const char *folder, int64_t utc_ms, struct tfevents **out_events,
                  struct error *error)
{
    AUTO(tfevents) struct tfevents *events = memory_zeroed(1, sizeof(*events));
    events->fd = -1;
    if (make_folders(folder, error) < 0 || make_file(events, folder, utc_ms, error) < 0)
        return -1;
    struct buffer records AUTO_BUFFER;
    buffer_init(&records, RECORDS_MAX);
    tfevents_append_version(&records, utc_ms);
    if (write_records(events, &records, error) < 0)
        return -1;
    *out_events = TAKE(events);
    return 0;
}

void tfevents_free(struct tfevents *events)
{
    if (!events)
        return;
    if (events->fd >= 0)
        close(events->fd);
    free(events);
}

const char *tfevents_path(const struct tfevents *events)
{
    return events->path;
}

int tfevents_write(struct tfevents *events, int64_t utc_ms, uint64_t step,
                   const struct tfevents_scalar *scalars, size_t count, struct error *error)
{
    struct buffer records AUTO_BUFFER;
    buffer_init(&records, RECORDS_MAX);
    tfevents_append(&records, utc_ms, step, scalars, count);
    return records.size ? write_records(events, &records, error) : 0;
}
