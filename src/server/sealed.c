#include "server/sealed.h"

#include "base/assert.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    VERSION = 1,
    NONCE_SIZE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG_SIZE = crypto_aead_xchacha20poly1305_ietf_ABYTES,
    HEADER_SIZE = 1 + NONCE_SIZE,
    FILE_SIZE_MAX = HEADER_SIZE + SEALED_BYTES_MAX + TAG_SIZE,
};
_Static_assert((int)crypto_aead_xchacha20poly1305_ietf_KEYBYTES == (int)KEYS_SECRET_SIZE,
               "a derived key is the cipher's");

struct sealed {
    char folder[PATH_MAX];
    const struct keys *keys;
};

int sealed_open(const char *data_dir, const struct keys *keys, struct sealed **out_sealed,
                struct error *error)
{
    AUTO(sealed) struct sealed *sealed = calloc(1, sizeof(*sealed));
    ASSERT(sealed);
    sealed->keys = keys;
    if (snprintf(sealed->folder, sizeof(sealed->folder), "%s/secrets", data_dir) >=
        (int)sizeof(sealed->folder) - SEALED_NAME_SIZE)
        return error_set(error, ERROR_INVALID, "the path of the data folder is too long");
    if (mkdir(sealed->folder, 0700) < 0 && errno != EEXIST)
        return error_set_errno(error, errno, "make \"%.200s\"", sealed->folder);
    *out_sealed = TAKE(sealed);
    return 0;
}

void sealed_free(struct sealed *sealed)
{
    free(sealed);
}

static bool has_name(struct text file)
{
    for (size_t i = 0; i < SEALED_NAME_SIZE - 1; i++)
        if (i == file.size || !file.data[i] || !strchr("0123456789abcdef", file.data[i]))
            return false;
    return true;
}

/* A name comes from a job's spec: it must not lead elsewhere. */
static int find_path(const struct sealed *sealed, struct text name, char out[PATH_MAX],
                     struct error *error)
{
    if (name.size != SEALED_NAME_SIZE - 1 || !has_name(name))
        return error_set(error, ERROR_INVALID, "no name of sealed secrets");
    ASSERT(snprintf(out, PATH_MAX, "%s/" TEXT_FORMAT, sealed->folder, TEXT_ARGS(name)) < PATH_MAX);
    return 0;
}

int sealed_put(const struct sealed *sealed, uint64_t account, struct text bytes,
               char out_name[SEALED_NAME_SIZE], struct error *error)
{
    uint8_t random[(SEALED_NAME_SIZE - 1) / 2], key[KEYS_SECRET_SIZE], header[HEADER_SIZE];
    char name[SEALED_NAME_SIZE], path[PATH_MAX];
    if (bytes.size > SEALED_BYTES_MAX)
        return error_set(error, ERROR_INVALID, "secrets: longer than %d bytes together",
                         SEALED_BYTES_MAX);
    randombytes_buf(random, sizeof(random));
    text_hex_encode(random, sizeof(random), name);
    if (find_path(sealed, text_of(name), path, error) < 0)
        return -1;
    header[0] = VERSION;
    randombytes_buf(header + 1, NONCE_SIZE);
    uint8_t *box = malloc(bytes.size + TAG_SIZE);
    ASSERT(box);
    keys_job_secrets(sealed->keys, account, key);
    ASSERT(crypto_aead_xchacha20poly1305_ietf_encrypt(
               box, NULL, (const uint8_t *)bytes.data, bytes.size, (const uint8_t *)name,
               SEALED_NAME_SIZE - 1, NULL, header + 1, key) == 0);
    sodium_memzero(key, sizeof(key));
    const struct text parts[] = {{(const char *)header, sizeof(header)},
                                 {(const char *)box, bytes.size + TAG_SIZE}};
    const int result = file_replace(path, parts, 2, 0600, error);
    free(box);
    if (result < 0)
        return error_wrap(error, "seal the secrets");
    memcpy(out_name, name, sizeof(name));
    return 0;
}

int sealed_get(const struct sealed *sealed, uint64_t account, struct text name,
               struct buffer *bytes, struct error *error)
{
    char path[PATH_MAX];
    uint8_t key[KEYS_SECRET_SIZE];
    struct buffer file AUTO_BUFFER;
    buffer_init(&file, FILE_SIZE_MAX);
    if (find_path(sealed, name, path, error) < 0)
        return -1;
    if (file_read(path, &file, error) < 0)
        return error->code == ERROR_NOT_FOUND
                   ? error_set(error, ERROR_NOT_FOUND, "the job's secrets are gone")
                   : error_wrap(error, "the job's secrets");
    if (file.size < HEADER_SIZE + TAG_SIZE || file.data[0] != VERSION)
        return error_set(error, ERROR_CORRUPT, "the job's secrets are damaged");
    const size_t size = file.size - HEADER_SIZE - TAG_SIZE;
    uint8_t *out = buffer_reserve(bytes, size + 1);
    if (!out)
        return error_set(error, ERROR_EXHAUSTED, "the job's secrets are too long");
    keys_job_secrets(sealed->keys, account, key);
    const int opened = crypto_aead_xchacha20poly1305_ietf_decrypt(
        out, NULL, NULL, file.data + HEADER_SIZE, file.size - HEADER_SIZE,
        (const uint8_t *)name.data, name.size, file.data + 1, key);
    sodium_memzero(key, sizeof(key));
    if (opened < 0)
        return error_set(error, ERROR_CORRUPT, "the job's secrets are damaged");
    buffer_advance(bytes, size);
    return 0;
}

int sealed_remove(const struct sealed *sealed, struct text name, struct error *error)
{
    char path[PATH_MAX];
    if (find_path(sealed, name, path, error) < 0)
        return -1;
    if (unlink(path) < 0 && errno != ENOENT)
        return error_set_errno(error, errno, "remove a job's secrets");
    return 0;
}

int sealed_sweep(const struct sealed *sealed, bool (*is_needed)(void *context, struct text name),
                 void *context, struct error *error)
{
    DIR *folder = opendir(sealed->folder);
    if (!folder)
        return error_set_errno(error, errno, "open \"%.200s\"", sealed->folder);
    int result = 0;
    const struct dirent *item;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else has this folder */
    while (result == 0 && (item = readdir(folder))) {
        const struct text name = text_of(item->d_name);
        if (!has_name(name) || is_needed(context, name))
            continue; /* not of this module, or needed; one that was not written to its end is not
                       */
        if (unlinkat(dirfd(folder), item->d_name, 0) < 0)
            result = error_set_errno(error, errno, "remove secrets of a job that is over");
    }
    closedir(folder);
    return result;
}
