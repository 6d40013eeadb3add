#include "peer/identity.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/json_schema.h"
#include "peer/host.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENROLMENT_SIZE_MAX = 8192 };

struct identity {
    uint8_t public_key[crypto_sign_PUBLICKEYBYTES];
    uint8_t secret_key[crypto_sign_SECRETKEYBYTES];
    struct enrolment enrolment;
    char state_dir[PATH_MAX - 64];
};
_Static_assert(crypto_sign_PUBLICKEYBYTES == IDENTITY_KEY_SIZE, "Ed25519");
_Static_assert(crypto_sign_SEEDBYTES == IDENTITY_KEY_SIZE, "Ed25519");
_Static_assert(crypto_sign_BYTES == IDENTITY_SIGNATURE_SIZE, "Ed25519");

static const struct json_field enrolment_fields[] = {
    {"machine", JSON_U64, offsetof(struct enrolment, machine), .is_required = true},
    {"generation", JSON_U64, offsetof(struct enrolment, generation), .is_required = true},
    {"link_key", JSON_HEX, offsetof(struct enrolment, link_key), .is_required = true,
     .size_max = IDENTITY_KEY_SIZE},
    {"server_public_key", JSON_HEX, offsetof(struct enrolment, server_public_key),
     .is_required = true, .size_max = IDENTITY_KEY_SIZE},
    {"server_url", JSON_CHARS, offsetof(struct enrolment, server_url), .is_required = true,
     .size_max = IDENTITY_URL_SIZE},
    {"fingerprint", JSON_CHARS, offsetof(struct enrolment, fingerprint), .is_required = true,
     .size_max = IDENTITY_FINGERPRINT_SIZE},
    {"link_address", JSON_CHARS, offsetof(struct enrolment, link_address), .is_required = true,
     .size_max = IDENTITY_ADDRESS_SIZE},
    {"name", JSON_CHARS, offsetof(struct enrolment, name), .is_required = true,
     .size_max = IDENTITY_NAME_SIZE},
    {"cores_milli", JSON_I64, offsetof(struct enrolment, cores_milli)},
    {"ram_bytes", JSON_I64, offsetof(struct enrolment, ram_bytes)},
    {"disk_bytes", JSON_I64, offsetof(struct enrolment, disk_bytes)},
    {"roles", JSON_U64, offsetof(struct enrolment, roles)},
};
static const struct json_schema enrolment_schema =
    JSON_SCHEMA("enrolment", enrolment_fields, struct enrolment);

static void identity_path(const struct identity *identity, const char *file, char out[PATH_MAX])
{
    const int size = snprintf(out, PATH_MAX, "%s/%s", identity->state_dir, file);
    ASSERT(size > 0 && size < PATH_MAX);
}

/* A secret that others can read is no secret any more: better to stop than to go on with it. */
static int check_private(const char *path, struct error *error)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return error_set_errno(error, errno, "look at \"%s\"", path);
    if (status.st_mode & 077)
        return error_set(error, ERROR_REFUSED, "\"%s\" can be read by others; chmod 600 it", path);
    return 0;
}

static int identity_open_key(struct identity *identity, struct error *error)
{
    char path[PATH_MAX];
    identity_path(identity, "machine.key", path);
    struct buffer seed AUTO_BUFFER;
    buffer_init(&seed, IDENTITY_KEY_SIZE + 1);
    if (file_read(path, &seed, error) < 0) {
        if (error->code != ERROR_NOT_FOUND)
            return -1;
        buffer_clear(&seed);
        uint8_t *fresh = buffer_reserve(&seed, IDENTITY_KEY_SIZE);
        ASSERT(fresh);
        randombytes_buf(fresh, IDENTITY_KEY_SIZE);
        buffer_advance(&seed, IDENTITY_KEY_SIZE);
        const struct text part = buffer_text(&seed);
        if (file_replace(path, &part, 1, 0600, error) < 0)
            return -1;
    } else if (check_private(path, error) < 0) {
        return -1;
    }
    if (seed.size != IDENTITY_KEY_SIZE)
        return error_set(error, ERROR_CORRUPT, "\"%s\" is not a machine's key", path);
    crypto_sign_seed_keypair(identity->public_key, identity->secret_key, seed.data);
    sodium_memzero(seed.data, seed.size);
    return 0;
}

static int identity_read_enrolment(struct identity *identity, struct error *error)
{
    char path[PATH_MAX];
    identity_path(identity, "enrolment.json", path);
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, ENROLMENT_SIZE_MAX);
    if (file_read(path, &json, error) < 0)
        return error->code == ERROR_NOT_FOUND ? 0 : -1;
    if (check_private(path, error) < 0)
        return -1;
    AUTO(arena) struct arena *arena = arena_new(0);
    const int result =
        json_read(arena, buffer_text(&json), &enrolment_schema, &identity->enrolment, error);
    sodium_memzero(json.data, json.size);
    if (result < 0) {
        error->code = ERROR_CORRUPT;
        return error_wrap(error, "read \"%s\"", path);
    }
    return 0;
}

int identity_open(const char *state_dir, struct identity **out_identity, struct error *error)
{
    if (sodium_init() < 0)
        return error_set(error, ERROR_UNAVAILABLE, "this system gives no randomness");
    struct identity *new_identity = calloc(1, sizeof(*new_identity));
    ASSERT(new_identity);
    AUTO(identity) struct identity *identity = new_identity;
    if (text_copy(text_of(state_dir), identity->state_dir, sizeof(identity->state_dir), error) < 0)
        return error_wrap(error, "the state folder's name");
    if (identity_open_key(identity, error) < 0 || identity_read_enrolment(identity, error) < 0)
        return -1;
    *out_identity = TAKE(identity);
    return 0;
}

/* What cannot be read now, because another user runs the daemon, stays as it was known. */
static struct host merge(const struct host *known, const struct host *now)
{
    struct host merged = *now;
    if (!now->installation[0])
        memcpy(merged.installation, known->installation, sizeof(merged.installation));
    if (!now->board[0])
        memcpy(merged.board, known->board, sizeof(merged.board));
    if (now->card_count == 0) {
        memcpy(merged.cards, known->cards, sizeof(merged.cards));
        merged.card_count = known->card_count;
    }
    return merged;
}

int identity_bind(struct identity *identity, const char *root, bool is_same, struct error *error)
{
    struct host known = {0}, now;
    host_read(root, identity->public_key, &now);
    const bool is_known = host_load(identity->state_dir, &known, error) == 0;
    if (!is_known && error->code != ERROR_NOT_FOUND)
        return -1;
    if (is_known && !is_same && host_compare(&known, &now, error) < 0)
        return -1;
    const struct host merged = is_same ? now : merge(&known, &now);
    if (is_known && host_equal(&merged, &known))
        return 0;
    return host_store(identity->state_dir, &merged, error);
}

int identity_forget(const char *state_dir, struct error *error)
{
    static const char *const files[] = {"enrolment.json", "host.json", "machine.key"};
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        char path[PATH_MAX];
        if (snprintf(path, PATH_MAX, "%s/%s", state_dir, files[i]) >= PATH_MAX)
            return error_set(error, ERROR_INVALID, "the state folder's name is too long");
        if (unlink(path) < 0 && errno != ENOENT)
            return error_set_errno(error, errno, "remove \"%s\"", path);
    }
    return 0;
}

void identity_free(struct identity *identity)
{
    if (!identity)
        return;
    sodium_memzero(identity, sizeof(*identity));
    free(identity);
}

const uint8_t *identity_public_key(const struct identity *identity)
{
    return identity->public_key;
}

void identity_sign(const struct identity *identity, const void *data, size_t size,
                   uint8_t out_signature[IDENTITY_SIGNATURE_SIZE])
{
    const int result = crypto_sign_detached(out_signature, NULL, data, size, identity->secret_key);
    ASSERT(result == 0);
}

const struct enrolment *identity_enrolment(const struct identity *identity)
{
    return &identity->enrolment;
}

int identity_set_enrolment(struct identity *identity, const struct enrolment *enrolment,
                           struct error *error)
{
    char path[PATH_MAX];
    identity_path(identity, "enrolment.json", path);
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, ENROLMENT_SIZE_MAX);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_write(&writer, &enrolment_schema, enrolment);
    if (buffer_check(&json, error) < 0)
        return -1;
    const struct text part = buffer_text(&json);
    const int result = file_replace(path, &part, 1, 0600, error);
    sodium_memzero(json.data, json.size);
    if (result < 0)
        return error_wrap(error, "keep the enrolment");
    identity->enrolment = *enrolment;
    return 0;
}
