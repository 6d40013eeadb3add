#include "net/http_route_internal.h"
#include "testing/testing.h"

static const struct http_route ROUTES[] = {
    {.method = "GET", .pattern = "/"},
    {.method = "GET", .pattern = "/v1/jobs"},
    {.method = "POST", .pattern = "/v1/jobs"},
    {.method = "GET", .pattern = "/v1/jobs/{id}"},
    {.method = "GET", .pattern = "/v1/jobs/{id}/artifacts/{name}"},
    {.method = "PUT", .pattern = "/v1/chunks/{hash}"},
    {.method = "GET", .pattern = "/assets/{rest...}"},
};

enum { ROUTE_COUNT = sizeof(ROUTES) / sizeof(*ROUTES) };

struct found {
    struct http_match match;
    struct arena *arena;
};

static int route_index(struct found *found, const char *method, const char *path)
{
    struct error error = {0};
    if (!found->arena)
        found->arena = arena_new(0);
    ASSERT_OK(http_route_find(ROUTES, ROUTE_COUNT, text_of(method), text_of(path), found->arena,
                              &found->match, &error));
    return found->match.route ? (int)(found->match.route - ROUTES) : -1;
}

TEST(paths_find_their_routes)
{
    struct found found = {0};
    assert_int_equal(route_index(&found, "GET", "/"), 0);
    assert_int_equal(route_index(&found, "GET", "/v1/jobs"), 1);
    assert_int_equal(route_index(&found, "POST", "/v1/jobs"), 2);
    assert_int_equal(route_index(&found, "HEAD", "/v1/jobs"), 1);
    assert_int_equal(route_index(&found, "GET", "/v1/jobs/"), -1);
    assert_int_equal(route_index(&found, "GET", "/v1/job"), -1);
    assert_int_equal(route_index(&found, "GET", "/v1/jobs/7/artifacts"), -1);
    assert_int_equal(route_index(&found, "GET", "//"), -1);
    arena_free(found.arena);
}

TEST(names_in_braces_give_decoded_parameters)
{
    struct found found = {0};
    assert_int_equal(route_index(&found, "GET", "/v1/jobs/7/artifacts/a%2Fb"), 4);
    assert_int_equal(found.match.parameter_count, 2);
    assert_true(text_equal(found.match.parameters[0].name, TEXT("id")));
    assert_true(text_equal(found.match.parameters[0].value, TEXT("7")));
    assert_true(text_equal(found.match.parameters[1].value, TEXT("a/b")));
    arena_free(found.arena);
}

TEST(a_last_name_with_dots_takes_the_rest)
{
    struct found found = {0};
    assert_int_equal(route_index(&found, "GET", "/assets/js/a.js"), 6);
    assert_true(text_equal(found.match.parameters[0].value, TEXT("js/a.js")));
    assert_int_equal(route_index(&found, "GET", "/assets/"), 6);
    assert_int_equal(found.match.parameters[0].value.size, 0);
    assert_int_equal(route_index(&found, "GET", "/assets"), -1);
    arena_free(found.arena);
}

TEST(a_known_path_with_another_method_tells_what_is_allowed)
{
    struct found found = {0};
    assert_int_equal(route_index(&found, "DELETE", "/v1/jobs"), -1);
    assert_string_equal(found.match.allow, "GET, HEAD, POST");
    assert_int_equal(route_index(&found, "GET", "/v1/chunks/00"), -1);
    assert_string_equal(found.match.allow, "PUT");
    assert_int_equal(route_index(&found, "GET", "/nowhere"), -1);
    assert_string_equal(found.match.allow, "");
    arena_free(found.arena);
}

TEST(broken_paths_are_invalid)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(0);
    struct http_match match;
    const char *const broken[] = {"", "v1", "*", "http://host/", "/v1/jobs/%zz", "/v1/jobs/%00"};
    for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++)
        ASSERT_FAILS(http_route_find(ROUTES, ROUTE_COUNT, TEXT("GET"), text_of(broken[i]), arena,
                                     &match, &error),
                     ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_find_their_routes),
        cmocka_unit_test(names_in_braces_give_decoded_parameters),
        cmocka_unit_test(a_last_name_with_dots_takes_the_rest),
        cmocka_unit_test(a_known_path_with_another_method_tells_what_is_allowed),
        cmocka_unit_test(broken_paths_are_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
