/* covers gcm.c, gcm_vaes.c */
#include "base/random.h"
#include "net/gcm_internal.h"
#include "testing/testing.h"

#include <string.h>

enum { SIZE_MAX_TRIED = 70000, HEAD_SIZE = 20 };

static const struct gcm_ops *const makers[] = {&gcm_openssl, &gcm_vaes};
enum { MAKER_COUNT = sizeof(makers) / sizeof(*makers) };

/* Test case 4 of the GCM specification (McGrew and Viega), as NIST took it over. */
static const uint8_t known_key[GCM_KEY_SIZE] = {0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c,
                                                0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08};
static const uint8_t known_nonce[GCM_NONCE_SIZE] = {0xca, 0xfe, 0xba, 0xbe, 0xfa, 0xce,
                                                    0xdb, 0xad, 0xde, 0xca, 0xf8, 0x88};
static const uint8_t known_head[HEAD_SIZE] = {0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad, 0xbe,
                                              0xef, 0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad,
                                              0xbe, 0xef, 0xab, 0xad, 0xda, 0xd2};
static const uint8_t known_content[60] = {
    0xd9, 0x31, 0x32, 0x25, 0xf8, 0x84, 0x06, 0xe5, 0xa5, 0x59, 0x09, 0xc5, 0xaf, 0xf5, 0x26,
    0x9a, 0x86, 0xa7, 0xa9, 0x53, 0x15, 0x34, 0xf7, 0xda, 0x2e, 0x4c, 0x30, 0x3d, 0x8a, 0x31,
    0x8a, 0x72, 0x1c, 0x3c, 0x0c, 0x95, 0x95, 0x68, 0x09, 0x53, 0x2f, 0xcf, 0x0e, 0x24, 0x49,
    0xa6, 0xb5, 0x25, 0xb1, 0x6a, 0xed, 0xf5, 0xaa, 0x0d, 0xe6, 0x57, 0xba, 0x63, 0x7b, 0x39};
static const uint8_t known_tag[GCM_TAG_SIZE] = {0x5b, 0xc9, 0x4f, 0xbc, 0x32, 0x21, 0xa5, 0xdb,
                                                0x94, 0xfa, 0xe9, 0x5a, 0xe7, 0x12, 0x1a, 0x47};

static struct gcm *begin(const struct gcm_ops *ops, bool is_opening, const uint8_t *key,
                         const uint8_t *nonce)
{
    struct gcm *gcm = gcm_new(ops, is_opening);
    if (gcm) {
        assert_int_equal(gcm->ops->set_key(gcm, key), 0);
        assert_int_equal(gcm->ops->begin(gcm, nonce, known_head, HEAD_SIZE), 0);
    }
    return gcm;
}

/* In parts of random sizes. */
static void add_all(struct gcm *gcm, const uint8_t *in, uint8_t *out, size_t size,
                    struct random *random)
{
    for (size_t done = 0; done < size;) {
        size_t part = 1 + random_below(random, random_below(random, 2) ? 40 : size);
        part = part < size - done ? part : size - done;
        assert_int_equal(gcm->ops->add(gcm, in + done, part, out + done), 0);
        done += part;
    }
}

TEST(each_seals_what_the_specification_says)
{
    uint8_t sealed[sizeof(known_content)], tag[GCM_TAG_SIZE];
    for (int i = 0; i < MAKER_COUNT; i++) {
        AUTO(gcm) struct gcm *gcm = begin(makers[i], false, known_key, known_nonce);
        if (!gcm)
            continue;
        assert_int_equal(gcm->ops->add(gcm, known_content, sizeof(known_content), sealed), 0);
        assert_int_equal(gcm->ops->seal_end(gcm, tag), 0);
        assert_memory_equal(tag, known_tag, sizeof(tag));
    }
}

TEST(each_opens_what_the_other_sealed)
{
    struct random random;
    random_init(&random, 1);
    static uint8_t content[SIZE_MAX_TRIED], sealed[SIZE_MAX_TRIED], opened[SIZE_MAX_TRIED];
    uint8_t tag[GCM_TAG_SIZE];
    for (size_t i = 0; i < sizeof(content); i++)
        content[i] = (uint8_t)random_u64(&random);
    for (int round = 0; round < 200; round++) {
        const size_t size = 1 + random_below(&random, round < 100 ? 300 : SIZE_MAX_TRIED);
        const struct gcm_ops *by = makers[round % 2], *with = makers[(round / 2) % 2];
        AUTO(gcm) struct gcm *sealing = begin(by, false, content + round, content + 200 + round);
        AUTO(gcm) struct gcm *opening = begin(with, true, content + round, content + 200 + round);
        if (!sealing || !opening)
            continue;
        add_all(sealing, content, sealed, size, &random);
        assert_int_equal(sealing->ops->seal_end(sealing, tag), 0);
        /* Elsewhere, or where it lies. */
        uint8_t *out = round % 3 ? opened : sealed;
        add_all(opening, sealed, out, size, &random);
        assert_int_equal(opening->ops->open_end(opening, tag), 0);
        assert_memory_equal(out, content, size);
    }
}

TEST(each_refuses_what_was_changed)
{
    uint8_t sealed[sizeof(known_content)], opened[sizeof(known_content)], tag[GCM_TAG_SIZE];
    for (int i = 0; i < MAKER_COUNT; i++)
        for (int bit = 0; bit < 8 * (int)(sizeof(sealed) + sizeof(tag)); bit++) {
            AUTO(gcm) struct gcm *sealing = begin(&gcm_openssl, false, known_key, known_nonce);
            AUTO(gcm) struct gcm *opening = begin(makers[i], true, known_key, known_nonce);
            if (!opening)
                continue;
            assert_int_equal(sealing->ops->add(sealing, known_content, sizeof(sealed), sealed), 0);
            assert_int_equal(sealing->ops->seal_end(sealing, tag), 0);
            const size_t at = (size_t)bit / 8;
            *(at < sizeof(sealed) ? sealed + at : tag + at - sizeof(sealed)) ^=
                (uint8_t)(1 << bit % 8);
            assert_int_equal(opening->ops->add(opening, sealed, sizeof(sealed), opened), 0);
            assert_int_equal(opening->ops->open_end(opening, tag), -1);
        }
}

TEST(one_key_serves_many_records_and_the_next_key_others)
{
    uint8_t sealed[sizeof(known_content)], tag[GCM_TAG_SIZE];
    for (int i = 0; i < MAKER_COUNT; i++) {
        AUTO(gcm) struct gcm *gcm = begin(makers[i], false, known_content, known_nonce);
        if (!gcm)
            continue;
        assert_int_equal(gcm->ops->set_key(gcm, known_key), 0);
        for (int record = 0; record < 3; record++) {
            assert_int_equal(gcm->ops->begin(gcm, known_nonce, known_head, HEAD_SIZE), 0);
            assert_int_equal(gcm->ops->add(gcm, known_content, sizeof(sealed), sealed), 0);
            assert_int_equal(gcm->ops->seal_end(gcm, tag), 0);
            assert_memory_equal(tag, known_tag, sizeof(tag));
        }
    }
}

TEST(there_is_always_one)
{
    AUTO(gcm) struct gcm *gcm = gcm_new(NULL, false);
    assert_non_null(gcm);
    AUTO(gcm) struct gcm *vaes = gcm_new(&gcm_vaes, false);
    assert_ptr_equal(gcm->ops, vaes ? &gcm_vaes : &gcm_openssl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_seals_what_the_specification_says),
        cmocka_unit_test(each_opens_what_the_other_sealed),
        cmocka_unit_test(each_refuses_what_was_changed),
        cmocka_unit_test(one_key_serves_many_records_and_the_next_key_others),
        cmocka_unit_test(there_is_always_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
