#include "source/place.h"
#include "testing/testing.h"

#define HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

TEST(an_address_falls_into_its_parts)
{
    struct error error = {0};
    struct place place;
    ASSERT_OK(place_parse(TEXT("https://host.example:8443/a/rows.csv?key=1&x=2#sha256=" HASH),
                          &place, &error));
    assert_int_equal(place.kind, PLACE_HTTP);
    assert_true(place.is_secure);
    assert_true(text_equal(place.authority, TEXT("host.example:8443")));
    assert_true(text_equal(place.path, TEXT("/a/rows.csv")));
    assert_true(text_equal(place.query, TEXT("key=1&x=2")));
    assert_true(place.has_hash);
    assert_int_equal(place.hash[0], 0xba);
    assert_true(text_equal(place_file_name(&place), TEXT("rows.csv")));
    assert_false(place_is_folder(&place));

    ASSERT_OK(
        place_parse(TEXT("s3://my-bucket/some folder/größe#1.csv#sha256=" HASH), &place, &error));
    assert_int_equal(place.kind, PLACE_S3);
    assert_true(text_equal(place.authority, TEXT("my-bucket")));
    assert_true(text_equal(place.path, TEXT("/some folder/größe#1.csv")));
    assert_true(place.has_hash);

    ASSERT_OK(place_parse(TEXT("swebhdfs://[::1]:9871/user/me/"), &place, &error));
    assert_int_equal(place.kind, PLACE_HDFS);
    assert_true(place.is_secure);
    assert_true(place_is_folder(&place));
    assert_int_equal(place_file_name(&place).size, 0);

    ASSERT_OK(place_parse(TEXT("hdfs://namenode:8020/rows.csv"), &place, &error));
    assert_true(text_equal(place.authority, TEXT("namenode")));
    ASSERT_OK(place_parse(TEXT("hdfs://[::1]/rows.csv"), &place, &error));
    assert_true(text_equal(place.authority, TEXT("[::1]")));

    ASSERT_OK(place_parse(TEXT("HTTP://host"), &place, &error));
    assert_int_equal(place.path.size, 0);
    ASSERT_OK(place_parse(TEXT("file:///home/me/rows.csv"), &place, &error));
    assert_true(text_equal(place.path, TEXT("/home/me/rows.csv")));
}

TEST(what_is_no_address_is_refused_in_a_sentence)
{
    static const char *const wrong[] = {
        "",
        "rows.csv",
        "C://rows.csv",
        "ftp://host/rows.csv",
        "https://",
        "https:///rows.csv",
        "https://user:secret@host/rows.csv",
        "https://host/a b.csv",
        "https://host/\xff",
        "https://host/a\nb",
        "https://ho\\st/",
        "https://host/rows.csv#sha256=12",
        "https://host/rows.csv#part",
        "s3://UP/rows.csv",
        "s3://ab/rows.csv",
        "s3://a..b/rows.csv",
        "s3://-ab/rows.csv",
        "s3://bucket",
        "s3://bucket/",
        "hdfs:///user/me/rows.csv",
        "hdfs://user@host/rows.csv",
        "file://host/rows.csv",
        "file://",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct error error = {0};
        struct place place;
        ASSERT_FAILS(place_parse(text_of(wrong[i]), &place, &error), ERROR_INVALID);
        assert_null(strstr(error.message, "secret"));
    }
    char longest[PLACE_SIZE_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    memcpy(longest, "http://h/", 9);
    struct error error = {0};
    struct place place;
    ASSERT_OK(place_parse((struct text){longest, PLACE_SIZE_MAX}, &place, &error));
    ASSERT_FAILS(place_parse((struct text){longest, PLACE_SIZE_MAX + 1}, &place, &error),
                 ERROR_INVALID);
}

TEST(addresses_are_told_from_paths)
{
    assert_true(place_is_address(TEXT("https://host/x")));
    assert_true(place_is_address(TEXT("gopher://host/x")));
    assert_false(place_is_address(TEXT("peer://label")));
    assert_false(place_is_address(TEXT("./rows.csv")));
    assert_false(place_is_address(TEXT("://x")));
    assert_false(place_is_address(TEXT("")));
}

TEST(people_see_neither_query_nor_hash)
{
    char out[PLACE_NAME_SIZE];
    assert_string_equal(place_describe(TEXT("https://h/x.csv?X-Amz-Signature=1"), out),
                        "https://h/x.csv");
    assert_string_equal(place_describe(TEXT("s3://bucket/x#sha256=" HASH), out), "s3://bucket/x");
    char longest[500];
    memset(longest, 'a', sizeof(longest));
    memcpy(longest, "http://h/", 9);
    memcpy(longest + sizeof(longest) - 5, "z.csv", 5);
    place_describe((struct text){longest, sizeof(longest)}, out);
    assert_true(strlen(out) < PLACE_NAME_SIZE);
    assert_non_null(strstr(out, "http://h/a"));
    assert_non_null(strstr(out, "z.csv"));
    assert_string_equal(place_describe(TEXT("http://h/\x1b[2J"), out), "http://h/?[2J");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_falls_into_its_parts),
        cmocka_unit_test(what_is_no_address_is_refused_in_a_sentence),
        cmocka_unit_test(addresses_are_told_from_paths),
        cmocka_unit_test(people_see_neither_query_nor_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
