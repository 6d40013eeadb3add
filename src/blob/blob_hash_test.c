#include "blob/blob_store.h"
#include "testing/testing.h"

static const char empty_hash[] = "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8";

TEST(hash_is_unkeyed_blake2b_256)
{
    struct blob_hash hash;
    blob_hash_of("", 0, &hash);
    char text[BLOB_HASH_TEXT_SIZE];
    assert_string_equal(blob_hash_format(&hash, text), empty_hash);
}

TEST(hash_text_reads_back)
{
    struct error error;
    struct blob_hash hash;
    struct blob_hash expected;
    blob_hash_of("", 0, &expected);
    ASSERT_OK(blob_hash_parse(text_of(empty_hash), &hash, &error));
    assert_true(blob_hash_equal(&hash, &expected));
}

TEST(other_spellings_of_a_hash_are_refused)
{
    struct error error;
    struct blob_hash hash;
    char upper[BLOB_HASH_TEXT_SIZE];
    memcpy(upper, empty_hash, sizeof(upper));
    upper[1] = 'E';
    ASSERT_FAILS(blob_hash_parse(text_of(upper), &hash, &error), ERROR_INVALID);
    ASSERT_FAILS(blob_hash_parse(text_of("abcd"), &hash, &error), ERROR_INVALID);
    ASSERT_FAILS(blob_hash_parse(text_of("../../../etc/passwd"), &hash, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_unkeyed_blake2b_256),
        cmocka_unit_test(hash_text_reads_back),
        cmocka_unit_test(other_spellings_of_a_hash_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
