#include "source/remote.h"

#include "base/assert.h"
#include "base/memory.h"
#include "source/remote_internal.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_TIMEOUT_MS = 10000,
    BYTES_PER_S_MIN = 1024,
    SLOW_MS = 20000,
    ATTEMPTS_MAX = 5,
    CONNECTIONS = 4,
    PAUSE_MS = 500,
};

#define SIZE_MAX_DEFAULT ((uint64_t)64 << 30)

/* ---- Credentials ----------------------------------------------------------------------------- */

static const struct credential {
    const char *name;
    size_t offset, size;
} credential_names[] = {
#define CREDENTIAL(name, field)                                                                    \
    {                                                                                              \
        (name), offsetof(struct remote_credentials, field),                                        \
            sizeof(((struct remote_credentials *)0)->field)                                        \
    }
    CREDENTIAL("AWS_ACCESS_KEY_ID", access_key),
    CREDENTIAL("AWS_SECRET_ACCESS_KEY", secret_key),
    CREDENTIAL("AWS_SESSION_TOKEN", session_token),
    CREDENTIAL("AWS_DEFAULT_REGION", region),
    CREDENTIAL("AWS_REGION", region),
    CREDENTIAL("AWS_ENDPOINT_URL", endpoint_url),
    CREDENTIAL("AWS_ENDPOINT_URL_S3", endpoint_url),
    CREDENTIAL("HADOOP_USER_NAME", hdfs_user),
    CREDENTIAL("WEBHDFS_DELEGATION_TOKEN", hdfs_token),
#undef CREDENTIAL
};
enum { CREDENTIAL_COUNT = sizeof(credential_names) / sizeof(*credential_names) };

const char *remote_credential_name(size_t index)
{
    return index < CREDENTIAL_COUNT ? credential_names[index].name : NULL;
}

int remote_credentials_set(struct remote_credentials *credentials, struct text name,
                           struct text value, struct error *error)
{
    for (size_t i = 0; i < CREDENTIAL_COUNT; i++) {
        const struct credential *credential = &credential_names[i];
        if (!text_is(name, credential->name))
            continue;
        bool is_fine = value.size < credential->size;
        for (size_t at = 0; is_fine && at < value.size; at++)
            is_fine = value.data[at] > ' ' && value.data[at] < 0x7f;
        if (!is_fine)
            return error_set(error, ERROR_INVALID,
                             "%s must be at most %zu characters without spaces", credential->name,
                             credential->size - 1);
        char *out = (char *)credentials + credential->offset;
        memcpy(out, value.data ? value.data : "", value.size);
        out[value.size] = '\0';
        return 0;
    }
    return error_set(error, ERROR_INVALID, "\"" TEXT_FORMAT "\" is not used to read data",
                     TEXT_ARGS(name));
}

int remote_credentials_take_environment(struct remote_credentials *credentials, struct error *error)
{
    for (size_t i = 0; i < CREDENTIAL_COUNT; i++) {
        const char *name = credential_names[i].name;
        const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): nobody sets any */
        if (value && value[0] &&
            remote_credentials_set(credentials, text_of(name), text_of(value), error) < 0)
            return -1;
    }
    return 0;
}

void remote_credentials_wipe(struct remote_credentials *credentials)
{
    OPENSSL_cleanse(credentials, sizeof(*credentials));
}

/* ---- Opening --------------------------------------------------------------------------------- */

static const struct remote_scheme *const remote_schemes[PLACE_KIND_COUNT] = {
    [PLACE_HTTP] = &remote_http,
    [PLACE_S3] = &remote_s3,
    [PLACE_HDFS] = &remote_hdfs,
};

static void fill_defaults(struct remote_options *options)
{
    if (!options->size_max)
        options->size_max = SIZE_MAX_DEFAULT;
    if (!options->connect_timeout_ms)
        options->connect_timeout_ms = CONNECT_TIMEOUT_MS;
    if (!options->bytes_per_s_min)
        options->bytes_per_s_min = BYTES_PER_S_MIN;
    if (!options->slow_ms)
        options->slow_ms = SLOW_MS;
    if (!options->attempts_max)
        options->attempts_max = ATTEMPTS_MAX;
    if (!options->connections)
        options->connections = CONNECTIONS;
    if (options->connections > REMOTE_CONNECTIONS_MAX)
        options->connections = REMOTE_CONNECTIONS_MAX;
    if (!options->pause_ms)
        options->pause_ms = PAUSE_MS;
}

/* Both become part of a URL. */
static int check_endpoint(const struct remote *remote, struct error *error)
{
    const struct remote_credentials *credentials = &remote->credentials;
    struct place endpoint;
    for (const char *c = credentials->region; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '-')
            return error_set(error, ERROR_INVALID, "AWS_REGION \"%s\" is no region",
                             credentials->region);
    if (!credentials->endpoint_url[0])
        return 0;
    if (place_parse(text_of(credentials->endpoint_url), &endpoint, error) < 0)
        return error_wrap(error, "AWS_ENDPOINT_URL");
    if (endpoint.kind != PLACE_HTTP || endpoint.query.size || endpoint.has_hash)
        return error_set(error, ERROR_INVALID,
                         "AWS_ENDPOINT_URL must be http://HOST or https://HOST");
    return 0;
}

int remote_open(const struct remote_options *options, struct remote **out_remote,
                struct error *error)
{
    AUTO(remote) struct remote *remote = memory_zeroed(1, sizeof(*remote));
    remote->mutex = memory_zeroed(1, sizeof(pthread_mutex_t));
    pthread_mutex_init(remote->mutex, NULL);
    remote->options = *options;
    fill_defaults(&remote->options);
    if (options->credentials)
        remote->credentials = *options->credentials;
    remote->options.credentials = NULL;
    remote->address = strdup(options->address);
    ASSERT(remote->address);
    remote->options.address = remote->address;
    if (place_parse(text_of(remote->address), &remote->place, error) < 0) {
        char name[PLACE_NAME_SIZE];
        return error_wrap(error, "\"%s\"", place_describe(text_of(remote->address), name));
    }
    remote->scheme = remote_schemes[remote->place.kind];
    if (!remote->scheme)
        return error_set(error, ERROR_INVALID, "a file:// address is none of another machine");
    if (check_endpoint(remote, error) < 0)
        return -1;
    remote->session = options->session ? options->session : http_session_new();
    *out_remote = TAKE(remote);
    return 0;
}

void remote_free(struct remote *remote)
{
    if (!remote)
        return;
    if (!remote->options.session)
        http_session_free(remote->session);
    remote_credentials_wipe(&remote->credentials);
    pthread_mutex_destroy(remote->mutex);
    free(remote->mutex);
    free(remote->address);
    free(remote);
}

const char *remote_content_type(const struct remote *remote)
{
    return remote->content_type;
}

struct remote_reading remote_whole(struct remote *remote)
{
    struct remote_reading reading = {
        .remote = remote, .session = remote->session, .end = REMOTE_END};
    random_init(&reading.random, remote->options.seed);
    return reading;
}

/* ---- The size, and a part -------------------------------------------------------------------- */

static int discard(void *context __attribute__((unused)), uint64_t offset __attribute__((unused)),
                   struct text bytes __attribute__((unused)),
                   struct error *error __attribute__((unused)))
{
    return 0;
}

static int forget_nothing(void *context __attribute__((unused)),
                          struct error *error __attribute__((unused)))
{
    return 0;
}

/* By the head of a reading, because not everyone who lets a file be read answers to HEAD. */
int remote_check(struct remote *remote, struct error *error)
{
    struct remote_reading reading = remote_whole(remote);
    if (remote->identity.is_known)
        return 0;
    reading.end = 1;
    reading.is_enough = true;
    reading.sink = (struct remote_sink){.take = discard, .restart = forget_nothing};
    return remote_run(&reading, error);
}

int remote_size(struct remote *remote, uint64_t *out_size, struct error *error)
{
    char name[PLACE_NAME_SIZE];
    if (remote_check(remote, error) < 0)
        return -1;
    if (remote->identity.size == REMOTE_END)
        return error_set(error, ERROR_UNAVAILABLE, "%s: the server does not tell its size",
                         place_describe(text_of(remote->address), name));
    *out_size = remote->identity.size;
    return 0;
}

struct part {
    uint8_t *out;
    uint64_t first;
};

static int take_part(void *context, uint64_t offset, struct text bytes,
                     struct error *error __attribute__((unused)))
{
    const struct part *part = context;
    memcpy(part->out + (offset - part->first), bytes.data, bytes.size);
    return 0;
}

int remote_read(struct remote *remote, uint64_t offset, void *out, size_t size, struct error *error)
{
    if (size == 0)
        return 0;
    if (remote_check(remote, error) < 0)
        return -1;
    struct part part = {out, offset};
    struct remote_reading reading = remote_whole(remote);
    reading.first = offset;
    reading.end = offset + size;
    reading.sink = (struct remote_sink){.take = take_part, .context = &part};
    return remote_run(&reading, error);
}
