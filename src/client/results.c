#include "client/results.h"

#include "base/clock.h"
#include "client/artifact.h"
#include "client/bring.h"
#include "source/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Set by the signal that ends the command while something is put. */
static volatile sig_atomic_t has_signal;

static void on_signal(int signal __attribute__((unused)))
{
    has_signal = 1;
}

static bool is_stopped(void *context __attribute__((unused)))
{
    return has_signal != 0;
}

static void on_retry(void *context, const struct error *reason, int64_t pause_ms)
{
    const struct results_target *target = context;
    char line[320];
    if (!target->on_note)
        return;
    snprintf(line, sizeof(line), "Trying again in %.1f s: %s.", (double)pause_ms / 1000,
             reason->message);
    target->on_note(target->context, line);
}

static const char *address_of(struct arena *arena, const struct results_target *target,
                              struct text name)
{
    struct text base = text_of(target->address);
    while (base.size > 1 && text_ends_with(base, TEXT("/")))
        base.size--;
    return arena_format(arena, TEXT_FORMAT "/" TEXT_FORMAT, TEXT_ARGS(base), TEXT_ARGS(name));
}

int results_check(const struct results_target *target, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct place place = {.kind = PLACE_FILE};
    if (!strchr(target->address, '#') &&
        place_parse(text_of(address_of(arena, target, TEXT("name"))), &place, error) < 0)
        return -1;
    if (place.kind != PLACE_S3 && place.kind != PLACE_HDFS)
        return error_set(error, ERROR_INVALID,
                         "results go into a folder here, to s3://bucket/... or to hdfs://...");
    return 0;
}

static int put(const struct results_target *target, const char *address, int fd,
               struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    struct results_target told = *target;
    struct sigaction before[2];
    const struct sigaction stop = {.sa_handler = on_signal};
    if (remote_credentials_take_environment(&credentials, error) < 0)
        return -1;
    const struct remote_options options = {
        .address = address,
        .seed = (uint64_t)clock_monotonic_ns(&clock_system),
        .credentials = &credentials,
        .is_stopped = is_stopped,
        .on_retry = on_retry,
        .context = &told,
    };
    if (remote_open(&options, &remote, error) < 0)
        return -1;
    sigaction(SIGINT, &stop, &before[0]);
    sigaction(SIGTERM, &stop, &before[1]);
    const int result = remote_put(remote, fd, error);
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    return result;
}

/* The file never has a name: whatever ends the command, nothing is left of it. */
static int fetch(struct arena *arena, struct client *client, uint64_t job,
                 const struct api_artifact *artifact, int *out_fd, struct error *error)
{
    const char *scratch = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    AUTO_FD int fd =
        open(scratch && scratch[0] ? scratch : "/var/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file for what is fetched");
    if (artifact_download(arena, client, job, artifact, fd, error) < 0)
        return -1;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return error_set_errno(error, errno, "read what was fetched");
    *out_fd = TAKE_FD(fd);
    return 0;
}

int results_put(struct arena *arena, struct client *client, uint64_t job,
                const struct api_artifact *artifact, const struct results_target *target,
                const char **out_address, struct error *error)
{
    AUTO_FD int fd = -1;
    if (fetch(arena, client, job, artifact, &fd, error) < 0)
        return -1;
    const char *address = address_of(arena, target, artifact->name);
    if (put(target, address, fd, error) < 0)
        return -1;
    *out_address = address;
    return 0;
}
