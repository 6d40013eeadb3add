#include "client/bring.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/units.h"
#include "blob/archive.h"
#include "source/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    FILES_MAX = 30000,
    NOTE_MS = 10000,
    NAME_SIZE = 128,
    PATH_SIZE = 512,
    OPEN_FILES = 16,
    CHECK_ATTEMPTS = 3
};

#define UNPACKED_BYTES_MAX ((uint64_t)4 << 30)

struct bring {
    struct bring_options options;
    char *address;
    char folder[PATH_SIZE]; /* of ours, mode 0700; "": not made */
    char path[PATH_SIZE + NAME_SIZE];
    int fd; /* of a file; -1: none */
    uint64_t done_bytes;
    int64_t noted_ns;
};

/* Set by the signal that ends the command while something is fetched. */
static volatile sig_atomic_t has_signal;

static void on_signal(int signal __attribute__((unused)))
{
    has_signal = 1;
}

static bool is_stopped(void *context)
{
    const struct bring *bring = context;
    return has_signal != 0 || (bring->options.stop && *bring->options.stop != 0);
}

/* ---- What is told ---------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void tell(const struct bring *bring,
                                                       const char *format, ...)
{
    char line[512];
    va_list arguments;
    if (!bring->options.on_note)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    bring->options.on_note(bring->options.context, line);
}

static void on_progress(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    struct bring *bring = context;
    char done[UNITS_TEXT_SIZE], total[UNITS_TEXT_SIZE];
    const int64_t now_ns = clock_monotonic_ns(&clock_system);
    bring->done_bytes = done_bytes;
    if (now_ns - bring->noted_ns < NOTE_MS * INT64_C(1000000))
        return;
    bring->noted_ns = now_ns;
    units_format_bytes((int64_t)done_bytes, done);
    if (total_bytes)
        tell(bring, "Fetched %s of %s.", done, units_format_bytes((int64_t)total_bytes, total));
    else
        tell(bring, "Fetched %s.", done);
}

static void on_retry(void *context, const struct error *reason, int64_t pause_ms)
{
    tell(context, "Trying again in %.1f s: %s.", (double)pause_ms / 1000, reason->message);
}

void bring_rename(const struct bring *bring, struct error *error)
{
    char name[PLACE_NAME_SIZE], message[sizeof(error->message) + PLACE_NAME_SIZE];
    const char *found = strstr(error->message, bring->path);
    if (!found)
        return;
    snprintf(message, sizeof(message), "%.*s%s%s", (int)(found - error->message), error->message,
             place_describe(text_of(bring->address), name), found + strlen(bring->path));
    error_fill(error, error->code, "%s", message);
}

/* ---- Credentials ----------------------------------------------------------------------------- */

static bool is_credential(struct text name)
{
    for (size_t i = 0; remote_credential_name(i); i++)
        if (text_is(name, remote_credential_name(i)))
            return true;
    return false;
}

static int take_credentials(const struct job_spec *spec, struct remote_credentials *credentials,
                            struct error *error)
{
    if (remote_credentials_take_environment(credentials, error) < 0)
        return -1;
    for (size_t i = 0; i < spec->secret_count; i++) {
        const struct job_env *secret = &spec->secrets[i];
        if (job_spec_is_command(spec) && !is_credential(secret->name))
            continue; /* it is for the ranks */
        if (remote_credentials_set(credentials, secret->name, secret->value, error) < 0)
            return error_wrap(error, "secrets");
    }
    return 0;
}

/* ---- Fetching -------------------------------------------------------------------------------- */

static int open_remote(struct bring *bring, uint32_t attempts_max, struct remote **out_remote,
                       struct error *error)
{
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    if (take_credentials(bring->options.spec, &credentials, error) < 0)
        return -1;
    const struct remote_options options = {
        .address = bring->address,
        .attempts_max = attempts_max,
        .seed = (uint64_t)clock_monotonic_ns(&clock_system),
        .credentials = &credentials,
        .is_stopped = is_stopped,
        .on_progress = on_progress,
        .on_retry = on_retry,
        .context = bring,
    };
    return remote_open(&options, out_remote, error);
}

static struct bring *bring_new(const struct bring_options *options)
{
    struct bring *bring = memory_zeroed(1, sizeof(*bring));
    bring->options = *options;
    bring->address = strdup(options->address);
    ASSERT(bring->address);
    bring->fd = -1;
    return bring;
}

/* nftw(3) calls it for each file, and for a folder after what it holds. */
static int remove_one(const char *path, const struct stat *status __attribute__((unused)),
                      int kind __attribute__((unused)), struct FTW *walk __attribute__((unused)))
{
    return remove(path);
}

void bring_free(struct bring *bring)
{
    if (!bring)
        return;
    if (bring->fd >= 0)
        close(bring->fd);
    if (bring->folder[0])
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): the folder is no other thread's */
        (void)nftw(bring->folder, remove_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
    free(bring->address);
    free(bring);
}

const char *bring_path(const struct bring *bring)
{
    return bring->path;
}

static const char *scratch(void)
{
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    return folder && folder[0] ? folder : "/var/tmp";
}

static int make_folder(struct bring *bring, struct error *error)
{
    const int length = snprintf(bring->folder, sizeof(bring->folder), "%s/souk-XXXXXX", scratch());
    if (length < 0 || length >= (int)sizeof(bring->folder) || !mkdtemp(bring->folder)) {
        bring->folder[0] = '\0';
        return error_set_errno(error, errno, "make a folder in \"%.100s\"", scratch());
    }
    return 0;
}

/* What it is called tells its format; it must not lead anywhere. */
static void take_name(struct text found, char out[NAME_SIZE])
{
    if (found.size >= NAME_SIZE)
        found = (struct text){found.data + found.size - NAME_SIZE + 1, NAME_SIZE - 1};
    const bool is_fine = found.size && !text_is(found, ".") && !text_is(found, "..");
    snprintf(out, NAME_SIZE, TEXT_FORMAT, TEXT_ARGS(is_fine ? found : TEXT("data")));
}

static int fetch_file(struct bring *bring, struct remote *remote, const struct place *place,
                      struct error *error)
{
    char name[NAME_SIZE], target[64];
    take_name(place_file_name(place), name);
    bring->fd = open(scratch(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (bring->fd < 0)
        return error_set_errno(error, errno, "make a file in \"%.100s\"", scratch());
    if (remote_fetch(remote, bring->fd, error) < 0 || make_folder(bring, error) < 0)
        return -1;
    snprintf(bring->path, sizeof(bring->path), "%s/%s", bring->folder, name);
    snprintf(target, sizeof(target), "/proc/self/fd/%d", bring->fd);
    return symlink(target, bring->path) == 0
               ? 0
               : error_set_errno(error, errno, "name what was fetched");
}

static int fetch_folder(struct bring *bring, struct remote *remote, struct error *error)
{
    if (make_folder(bring, error) < 0)
        return -1;
    snprintf(bring->path, sizeof(bring->path), "%s", bring->folder);
    return remote_fetch_folder(remote, bring->path, FILES_MAX, error);
}

/* Ctrl-C and the like stop the fetching, so that what was fetched is removed. */
static int fetch(struct bring *bring, struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    char name[PLACE_NAME_SIZE], size[UNITS_TEXT_SIZE];
    struct place place;
    struct sigaction before[2];
    const struct sigaction stop = {.sa_handler = on_signal};
    if (open_remote(bring, /* attempts_max= */ 0, &remote, error) < 0 ||
        place_parse(text_of(bring->address), &place, error) < 0)
        return -1;
    if (!bring->options.leaves_signals) {
        sigaction(SIGINT, &stop, &before[0]);
        sigaction(SIGTERM, &stop, &before[1]);
    }
    tell(bring, "Fetching %s.", place_describe(text_of(bring->address), name));
    bring->noted_ns = clock_monotonic_ns(&clock_system);
    const int64_t start_ns = bring->noted_ns;
    const bool is_folder = place.kind != PLACE_HTTP && place_is_folder(&place);
    const int result =
        is_folder ? fetch_folder(bring, remote, error) : fetch_file(bring, remote, &place, error);
    if (!bring->options.leaves_signals) {
        sigaction(SIGINT, &before[0], NULL);
        sigaction(SIGTERM, &before[1], NULL);
    }
    if (result < 0)
        return -1;
    const double seconds = (double)(clock_monotonic_ns(&clock_system) - start_ns) / 1e9;
    tell(bring, "Fetched %s in %.1f s.", units_format_bytes((int64_t)bring->done_bytes, size),
         seconds);
    return 0;
}

/* ---- What is asked for ----------------------------------------------------------------------- */

int bring_check(const struct bring_options *options, struct error *error)
{
    AUTO(bring) struct bring *bring = bring_new(options);
    AUTO(remote) struct remote *remote = NULL;
    struct place place;
    if (open_remote(bring, CHECK_ATTEMPTS, &remote, error) < 0 ||
        place_parse(text_of(bring->address), &place, error) < 0)
        return -1;
    const bool is_folder = place.kind != PLACE_HTTP && place_is_folder(&place);
    return is_folder ? 0 : remote_check(remote, error);
}

int bring_open(const struct bring_options *options, struct bring **out_bring, struct error *error)
{
    AUTO(bring) struct bring *bring = bring_new(options);
    if (fetch(bring, error) < 0)
        return -1;
    *out_bring = TAKE(bring);
    return 0;
}

/* Into a folder of ours, from where the working folder was left and is returned to. */
static int unpack(struct bring *bring, struct error *error)
{
    static const struct archive_limits limits = {
        .bytes_max = UNPACKED_BYTES_MAX, .files_max = FILES_MAX, .takes_zip = true};
    char name[PLACE_NAME_SIZE];
    struct archive_summary summary;
    AUTO_FD int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(bring->path, sizeof(bring->path), "%s/files", bring->folder);
    if (before < 0 || mkdir(bring->path, 0700) < 0 || chdir(bring->path) < 0)
        return error_set_errno(error, errno, "go to \"%.100s\"", bring->path);
    const int result = archive_unpack(bring->fd, &limits, &summary, error);
    if (fchdir(before) < 0)
        return error_set_errno(error, errno, "go back to the working folder");
    return result == 0 ? 0
                       : error_wrap(error,
                                    "%s: it is no archive (.tar, .tar.gz, .tar.zst, .zip) of "
                                    "files",
                                    place_describe(text_of(bring->address), name));
}

int bring_open_folder(const struct bring_options *options, struct bring **out_bring,
                      struct error *error)
{
    AUTO(bring) struct bring *bring = bring_new(options);
    if (fetch(bring, error) < 0)
        return -1;
    if (bring->fd >= 0 && (lseek(bring->fd, 0, SEEK_SET) < 0 || unpack(bring, error) < 0))
        return -1;
    *out_bring = TAKE(bring);
    return 0;
}
