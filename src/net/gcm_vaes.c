/*
 * GCM by Intel's multi-buffer library, loaded when the first record is to be sealed or opened.
 *
 * Its table of functions is filled once for the process, after a test of its own, and then only
 * read; what belongs to a key or a record lies with the caller.
 */
#include "net/gcm_internal.h"

#ifdef HAS_IPSEC_MB

#include "base/assert.h"
#include "base/library.h"

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#define IPSEC_FUNCTIONS(X)                                                                         \
    X(alloc_mb_mgr)                                                                                \
    X(init_mb_mgr_auto)

struct ipsec_library {
#define X(name) __typeof__(name) *name; /* NOLINT(bugprone-macro-parentheses) */
    IPSEC_FUNCTIONS(X)
#undef X
};

/* Filled once, then only read. */
static union {
    struct ipsec_library library;
    void *functions[sizeof(struct ipsec_library) / sizeof(void *)];
} loaded;
static IMB_MGR *table;

struct vaes_gcm {
    struct gcm gcm;
    struct gcm_key_data key __attribute__((aligned(64)));
    struct gcm_context_data record;
};

static bool is_fit(uint64_t features)
{
    /* Without VAES it is no faster than OpenSSL; with SAFE_DATA it leaves no keys behind in
     * registers and on the stack. */
    const uint64_t needed = IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ | IMB_FEATURE_AVX512_SKX |
                            IMB_FEATURE_SAFE_DATA | IMB_FEATURE_SELF_TEST_PASS;
    return (features & needed) == needed;
}

static int set_up(struct error *error)
{
    table = loaded.library.alloc_mb_mgr(0);
    if (!table)
        return error_set(error, ERROR_EXHAUSTED, "no memory for a cipher");
    loaded.library.init_mb_mgr_auto(table, NULL);
    if (!is_fit(table->features))
        return error_set(error, ERROR_UNAVAILABLE, "this processor has no VAES");
    return 0;
}

static struct gcm *vaes_make(void)
{
    static struct library_once once = LIBRARY_ONCE_INIT;
    static const char *const names[] = {
#define X(name) #name,
        IPSEC_FUNCTIONS(X)
#undef X
    };
    struct error ignored; /* then it is OpenSSL's */
    if (library_load_once(&once, "libIPSec_MB.so.1", names, sizeof(names) / sizeof(*names),
                          loaded.functions, set_up, &ignored) < 0)
        return NULL;
    struct vaes_gcm *own = aligned_alloc(_Alignof(struct vaes_gcm), sizeof(*own));
    ASSERT(own);
    memset(own, 0, sizeof(*own));
    return &own->gcm;
}

static struct vaes_gcm *own_of(struct gcm *gcm)
{
    return (struct vaes_gcm *)gcm;
}

static void vaes_free(struct gcm *gcm)
{
    OPENSSL_cleanse(gcm, sizeof(struct vaes_gcm));
    free(gcm);
}

static int vaes_set_key(struct gcm *gcm, const uint8_t key[GCM_KEY_SIZE])
{
    IMB_AES128_GCM_PRE(table, key, &own_of(gcm)->key);
    return 0;
}

static int vaes_begin(struct gcm *gcm, const uint8_t nonce[GCM_NONCE_SIZE], const uint8_t *head,
                      size_t head_size)
{
    struct vaes_gcm *own = own_of(gcm);
    IMB_AES128_GCM_INIT(table, &own->key, &own->record, nonce, head, head_size);
    return 0;
}

static int vaes_add(struct gcm *gcm, const uint8_t *part, size_t size, uint8_t *out)
{
    struct vaes_gcm *own = own_of(gcm);
    if (gcm->is_opening)
        IMB_AES128_GCM_DEC_UPDATE(table, &own->key, &own->record, out, part, size);
    else
        IMB_AES128_GCM_ENC_UPDATE(table, &own->key, &own->record, out, part, size);
    return 0;
}

static int vaes_seal_end(struct gcm *gcm, uint8_t out_tag[GCM_TAG_SIZE])
{
    struct vaes_gcm *own = own_of(gcm);
    IMB_AES128_GCM_ENC_FINALIZE(table, &own->key, &own->record, out_tag, GCM_TAG_SIZE);
    return 0;
}

static int vaes_open_end(struct gcm *gcm, const uint8_t tag[GCM_TAG_SIZE])
{
    struct vaes_gcm *own = own_of(gcm);
    uint8_t expected[GCM_TAG_SIZE];
    IMB_AES128_GCM_DEC_FINALIZE(table, &own->key, &own->record, expected, GCM_TAG_SIZE);
    return CRYPTO_memcmp(expected, tag, GCM_TAG_SIZE) == 0 ? 0 : -1;
}

const struct gcm_ops gcm_vaes = {
    .name = "vaes",
    .make = vaes_make,
    .free = vaes_free,
    .set_key = vaes_set_key,
    .begin = vaes_begin,
    .add = vaes_add,
    .seal_end = vaes_seal_end,
    .open_end = vaes_open_end,
};

#else

static struct gcm *vaes_make(void)
{
    return NULL;
}

const struct gcm_ops gcm_vaes = {.name = "vaes", .make = vaes_make};

#endif
