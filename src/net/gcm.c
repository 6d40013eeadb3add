/* GCM: the choice, and OpenSSL's. */
#include "base/assert.h"
#include "net/gcm_internal.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

struct openssl_gcm {
    struct gcm gcm;
    EVP_CIPHER_CTX *cipher;
};

static EVP_CIPHER_CTX *cipher_of(struct gcm *gcm)
{
    return ((struct openssl_gcm *)gcm)->cipher;
}

/* OpenSSL's queue of errors is left as it was found. */
static int result_of(bool is_done)
{
    if (!is_done)
        ERR_clear_error();
    return is_done ? 0 : -1;
}

static struct gcm *openssl_make(void)
{
    struct openssl_gcm *own = calloc(1, sizeof(*own));
    ASSERT(own);
    own->cipher = EVP_CIPHER_CTX_new();
    ASSERT(own->cipher);
    return &own->gcm;
}

static void openssl_free(struct gcm *gcm)
{
    EVP_CIPHER_CTX_free(cipher_of(gcm));
    free(gcm);
}

static int openssl_set_key(struct gcm *gcm, const uint8_t key[GCM_KEY_SIZE])
{
    return result_of(EVP_CipherInit_ex(cipher_of(gcm), EVP_aes_128_gcm(), NULL, key, NULL,
                                       !gcm->is_opening) == 1);
}

static int openssl_begin(struct gcm *gcm, const uint8_t nonce[GCM_NONCE_SIZE], const uint8_t *head,
                         size_t head_size)
{
    int done = 0;
    return result_of(EVP_CipherInit_ex(cipher_of(gcm), NULL, NULL, NULL, nonce, -1) == 1 &&
                     EVP_CipherUpdate(cipher_of(gcm), NULL, &done, head, (int)head_size) == 1);
}

static int openssl_add(struct gcm *gcm, const uint8_t *part, size_t size, uint8_t *out)
{
    int done = 0;
    return result_of(EVP_CipherUpdate(cipher_of(gcm), out, &done, part, (int)size) == 1 &&
                     done == (int)size);
}

static int openssl_seal_end(struct gcm *gcm, uint8_t out_tag[GCM_TAG_SIZE])
{
    int done = 0;
    return result_of(
        EVP_CipherFinal_ex(cipher_of(gcm), out_tag, &done) == 1 &&
        EVP_CIPHER_CTX_ctrl(cipher_of(gcm), EVP_CTRL_AEAD_GET_TAG, GCM_TAG_SIZE, out_tag) == 1);
}

static int openssl_open_end(struct gcm *gcm, const uint8_t tag[GCM_TAG_SIZE])
{
    uint8_t expected[GCM_TAG_SIZE], none[GCM_TAG_SIZE];
    memcpy(expected, tag, GCM_TAG_SIZE);
    int done = 0;
    return result_of(
        EVP_CIPHER_CTX_ctrl(cipher_of(gcm), EVP_CTRL_AEAD_SET_TAG, GCM_TAG_SIZE, expected) == 1 &&
        EVP_CipherFinal_ex(cipher_of(gcm), none, &done) == 1);
}

const struct gcm_ops gcm_openssl = {
    .name = "openssl",
    .make = openssl_make,
    .free = openssl_free,
    .set_key = openssl_set_key,
    .begin = openssl_begin,
    .add = openssl_add,
    .seal_end = openssl_seal_end,
    .open_end = openssl_open_end,
};

struct gcm *gcm_new(const struct gcm_ops *ops, bool is_opening)
{
    static const struct gcm_ops *const by_speed[] = {&gcm_vaes, &gcm_openssl};
    for (size_t i = 0; i < sizeof(by_speed) / sizeof(*by_speed); i++) {
        if (ops && ops != by_speed[i])
            continue;
        struct gcm *gcm = by_speed[i]->make();
        if (!gcm)
            continue;
        gcm->ops = by_speed[i];
        gcm->is_opening = is_opening;
        return gcm;
    }
    return NULL;
}

void gcm_free(struct gcm *gcm)
{
    if (gcm)
        gcm->ops->free(gcm);
}
