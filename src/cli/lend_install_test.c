#include "cli/lend_install.h"
#include "testing/testing.h"

static void each_word_is_the_most_that_is_installed(void **state)
{
    (void)state;
    struct error error;
    struct peer_options peer;
    peer_options_init(&peer);
    ASSERT_OK(lend_install_parse(NULL, NULL, &peer, &error));
    assert_int_equal(peer.install, OFFER_INSTALL_WHEELS);
    assert_false(peer.offers_install);
    ASSERT_OK(lend_install_parse("index", "http://127.0.0.1:8/simple", &peer, &error));
    assert_int_equal(peer.install, OFFER_INSTALL_INDEX);
    assert_true(peer.offers_install);
    assert_string_equal(peer.index_url, "http://127.0.0.1:8/simple");
    ASSERT_OK(lend_install_parse("none", NULL, &peer, &error));
    assert_int_equal(peer.install, OFFER_INSTALL_NONE);
    ASSERT_FAILS(lend_install_parse("all", NULL, &peer, &error), ERROR_INVALID);
}

static void an_index_is_https_or_on_this_machine_and_has_no_password(void **state)
{
    (void)state;
    static const char *const right[] = {"https://index.example/simple",
                                        "http://localhost:3141/root",
                                        "http://[::1]:80/",
                                        "http://[::1]",
                                        "http://127.0.0.1",
                                        "http://127.8.0.1:80/"};
    static const char *const wrong[] = {"",
                                        "index.example/simple",
                                        "ftp://host/simple",
                                        "file:///srv/simple",
                                        "http://index.example/simple",
                                        "http://localhost.example/simple",
                                        "http://127.0.0.1.example/simple",
                                        "http://127.example:80/simple",
                                        "http://[::1].example/simple",
                                        "http://[::2]/simple",
                                        "http://[localhost]/simple",
                                        "https://me:word@index.example/simple",
                                        "https:///simple",
                                        "https://a b/simple",
                                        "https://host/\nx"};
    struct error error;
    struct peer_options peer;
    for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
        ASSERT_OK(lend_install_parse("index", right[i], &peer, &error));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        ASSERT_FAILS(lend_install_parse("index", wrong[i], &peer, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_is_the_most_that_is_installed),
        cmocka_unit_test(an_index_is_https_or_on_this_machine_and_has_no_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
