#include "server/import_fetch.h"

#include "base/arena.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/scope.h"
#include "sandbox/confine.h"
#include "server/import_runner.h"
#include "source/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    REQUEST_SIZE_MAX = 64 << 10,
    CREDENTIALS_MAX = 16,
    VALUE_SIZE_MAX = 4096,
    MAIL_PORT = 25,
    DESCRIPTORS_MAX = 256
};

#define MEMORY_BYTES (INT64_C(512) << 20)

static const struct json_field request_fields[] = {
    {"address", JSON_TEXT, offsetof(struct import_fetch_request, address), .is_required = true,
     .size_max = PLACE_SIZE_MAX},
    {"size_max", JSON_U64, offsetof(struct import_fetch_request, size_max), .is_required = true},
    {"is_private_allowed", JSON_BOOL, offsetof(struct import_fetch_request, is_private_allowed),
     .is_required = true},
    {"is_folder", JSON_BOOL, offsetof(struct import_fetch_request, is_folder), .is_required = true},
    {"names", JSON_TEXTS, offsetof(struct import_fetch_request, names), .is_required = true,
     .size_max = CREDENTIALS_MAX},
    {"values", JSON_TEXTS, offsetof(struct import_fetch_request, values), .is_required = true,
     .size_max = CREDENTIALS_MAX, .maximum = VALUE_SIZE_MAX},
};
const struct json_schema import_fetch_schema =
    JSON_SCHEMA("fetch", request_fields, struct import_fetch_request);

/* ---- Fetching -------------------------------------------------------------------------------- */

struct fetch {
    int64_t started_ns;
    bool is_late, is_full;
    bool is_inside; /* a name stood for an address that is not dialled */
};

/* Nor is mail sent, as by jobs with the Internet. */
static bool may_dial(void *context, const struct address *address)
{
    struct fetch *fetch = context;
    const bool may = address_is_public(address) && address_port(address) != MAIL_PORT;
    fetch->is_inside |= !may;
    return may;
}

static bool is_stopped(void *context)
{
    struct fetch *fetch = context;
    struct statvfs disk;
    const int64_t passed_ms = (clock_monotonic_ns(&clock_system) - fetch->started_ns) / 1000000;
    fetch->is_late = passed_ms > IMPORT_FETCH_MS;
    fetch->is_full = fstatvfs(IMPORT_FETCH_FILE_FD, &disk) == 0 &&
                     (int64_t)(disk.f_bavail * disk.f_frsize) < IMPORT_DISK_FREE_BYTES;
    return fetch->is_late || fetch->is_full;
}

static void note_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    const struct import_fetch_progress progress = {done_bytes, total_bytes};
    (void)context;
    /* It is only shown: the next one writes it over. */
    const ssize_t ignored = pwrite(IMPORT_FETCH_PROGRESS_FD, &progress, sizeof(progress), 0);
    (void)ignored;
}

static int read_request(struct arena *arena, struct import_fetch_request *out_request,
                        struct error *error)
{
    struct buffer json AUTO_BUFFER;
    char piece[4096];
    off_t offset = 0;
    buffer_init(&json, REQUEST_SIZE_MAX);
    for (ssize_t size; (size = pread(STDIN_FILENO, piece, sizeof(piece), offset)) > 0;
         offset += size)
        buffer_append(&json, piece, (size_t)size);
    if (buffer_check(&json, error) < 0)
        return -1;
    return json_read(arena, buffer_text(&json), &import_fetch_schema, out_request, error);
}

static int read_credentials(const struct import_fetch_request *request,
                            struct remote_credentials *credentials, struct error *error)
{
    for (size_t i = 0; i < request->names.count && i < request->values.count; i++)
        if (remote_credentials_set(credentials, ((const struct text *)request->names.items)[i],
                                   ((const struct text *)request->values.items)[i], error) < 0)
            return -1;
    return 0;
}

static int fetch_file(struct arena *arena, const struct import_fetch_request *request,
                      struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    struct fetch fetch = {.started_ns = clock_monotonic_ns(&clock_system)};
    if (read_credentials(request, &credentials, error) < 0)
        return -1;
    const struct remote_options options = {
        .address = arena_copy_string(arena, request->address),
        .size_max = request->size_max,
        .seed = (uint64_t)getpid(),
        .credentials = &credentials,
        .may_dial = request->is_private_allowed ? NULL : may_dial,
        .is_stopped = is_stopped,
        .on_progress = note_progress,
        .context = &fetch,
    };
    if (remote_open(&options, &remote, error) == 0 &&
        (request->is_folder ? remote_fetch_folder(remote, ".", IMPORT_FILES_MAX, error)
                            : remote_fetch(remote, IMPORT_FETCH_FILE_FD, error)) == 0)
        return 0;
    if (fetch.is_full)
        return error_set(error, ERROR_UNAVAILABLE,
                         "the market's disk is nearly full; try again later");
    if (fetch.is_late)
        return error_set(error, ERROR_EXHAUSTED, "fetching it takes longer than an hour");
    /* Not which address: what names stand for inside is nobody's business outside. */
    char name[PLACE_NAME_SIZE];
    if (fetch.is_inside)
        return error_set(error, ERROR_REFUSED,
                         "%s: it lies where this market does not fetch from: it does so only from "
                         "hosts of the Internet",
                         place_describe(request->address, name));
    return -1;
}

/* One byte more than is taken, so that what is larger is told from what is cut off. */
static int confine(const struct import_fetch_request *request, struct error *error)
{
    const struct confine_options options = {.descriptor_max = DESCRIPTORS_MAX,
                                            .data_bytes = MEMORY_BYTES,
                                            .file_bytes = (int64_t)request->size_max + 1,
                                            .writes_here = request->is_folder};
    if (request->is_folder && fchdir(IMPORT_FETCH_FILE_FD) < 0)
        return error_set_errno(error, errno, "enter the folder");
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    return confine_to_network(&options, error);
}

/* Not by returning: a sanitizer that looks for leaks at the end may not look at this process. */
_Noreturn static void leave(int status)
{
    fflush(stdout);
    _exit(status);
}

int import_fetch_main(int argc, char **argv)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct import_fetch_request request = {0};
    struct error error;
    uint64_t parent;
    if (argc != 2 || text_parse_u64(text_of(argv[1]), &parent, &error) < 0) {
        puts("not for people: the market starts it");
        return IMPORT_RUNNER_UNAVAILABLE;
    }
    if (read_request(arena, &request, &error) < 0 || confine(&request, &error) < 0) {
        puts(error.message);
        leave(IMPORT_RUNNER_UNAVAILABLE);
    }
    if ((uint64_t)getppid() != parent)
        leave(IMPORT_RUNNER_UNAVAILABLE); /* it was gone before this ended with it */
    if (fetch_file(arena, &request, &error) == 0)
        leave(IMPORT_RUNNER_DONE);
    puts(error.message);
    leave(IMPORT_RUNNER_REFUSED);
}
