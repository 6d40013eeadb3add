#include "server/page.h"
#include "testing/testing.h"

#include <string.h>

TEST(the_page_and_the_api_description_are_part_of_the_program)
{
    const struct page_file *index = page_find(TEXT("/"));
    assert_non_null(index);
    assert_string_equal(index->content_type, "text/html; charset=utf-8");
    assert_non_null(memmem(index->data.data, index->data.size, "Souk", 4));
    const struct page_file *openapi = page_find(TEXT("/openapi.json"));
    assert_non_null(openapi);
    assert_int_equal(openapi->data.data[0], '{');
}

TEST(a_path_the_page_resolves_itself_gives_the_index)
{
    assert_ptr_equal(page_find(TEXT("/jobs")), page_find(TEXT("/index.html")));
    assert_null(page_find(TEXT("/jobs/7")));
    assert_null(page_find(TEXT("/missing.js")));
    assert_null(page_find(TEXT("/../etc/passwd")));
    assert_null(page_find(TEXT("")));
}

TEST(an_etag_matches_itself_weak_or_in_a_list)
{
    const struct page_file file = {.path = "/assets/a-1.js", .etag = "\"abc\""};
    assert_true(page_etag_matches(file.etag, TEXT("\"abc\"")));
    assert_true(page_etag_matches(file.etag, TEXT("W/\"abc\"")));
    assert_true(page_etag_matches(file.etag, TEXT("\"x\", \"abc\"")));
    assert_true(page_etag_matches(file.etag, TEXT("*")));
    assert_false(page_etag_matches(file.etag, TEXT("\"abcd\"")));
    assert_false(page_etag_matches(file.etag, TEXT("")));
    assert_true(page_is_immutable(&file));
    assert_false(page_is_immutable(page_find(TEXT("/"))));
}

TEST(a_file_is_packed_for_who_takes_it_so)
{
    const struct page_file *openapi = page_find(TEXT("/openapi.json"));
    const struct page_form plain = page_form(openapi, TEXT(""));
    const struct page_form packed = page_form(openapi, TEXT("br, gzip;q=0.8"));
    assert_null(plain.coding);
    assert_ptr_equal(plain.data.data, openapi->data.data);
    assert_string_equal(packed.coding, "gzip");
    assert_memory_equal(packed.data.data, "\x1f\x8b", 2);
    assert_true(packed.data.size < plain.data.size / 2);
    assert_string_not_equal(packed.etag, plain.etag);
    assert_null(page_form(openapi, TEXT("gzip;q=0")).coding);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_and_the_api_description_are_part_of_the_program),
        cmocka_unit_test(a_path_the_page_resolves_itself_gives_the_index),
        cmocka_unit_test(a_file_is_packed_for_who_takes_it_so),
        cmocka_unit_test(an_etag_matches_itself_weak_or_in_a_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
