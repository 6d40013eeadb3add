#include "cli/lend_functions.h"
#include "cli/lend_settings.h"
#include "source/remote.h"
#include "testing/testing.h"

#include <stdlib.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef0123456789abcdef"

static struct lend_options eight(void)
{
    return (struct lend_options){
        .network = OFFER_NETWORK_JOB,
        .gpus_max = -1,
        .functions = {.count = 8, .memory_mb = 512, .time_ms = 60000, .keep_warm_ms = 1000}};
}

TEST(what_is_lent_is_that_of_all_functions_together)
{
    struct error error = {0};
    struct remote_credentials credentials = {0};
    struct peer_options peer;
    const struct lend_options wanted = eight();
    peer_options_init(&peer);
    ASSERT_OK(lend_functions_parse(NULL, &wanted, &credentials, &peer, &error));
    assert_int_equal(peer.functions.count, 8);
    assert_int_equal(peer.functions.memory_mb, 512);
    assert_int_equal(peer.functions.time_ms, 60000);
    assert_int_equal(peer.ram_bytes, INT64_C(5462)
                                         << 20); /* 8 x 512, and a quarter for a process */
    assert_int_equal(peer.cores_milli, 3088);    /* at 1769 MB each */
    assert_int_equal(peer.roles, PEER_ROLE_WORKER);
    assert_int_equal(peer.network, OFFER_NETWORK_NONE);
    assert_int_equal(peer.install, OFFER_INSTALL_NONE);
    assert_int_equal(peer.gpus_max, 0);
    assert_int_equal(peer.minimum_core_micro, 0);
}

TEST(a_least_price_is_split_as_the_market_s_first_prices_are)
{
    struct error error = {0};
    struct remote_credentials credentials = {0};
    struct peer_options peer;
    struct lend_options wanted = eight();
    wanted.functions.price = "0.06";
    peer_options_init(&peer);
    ASSERT_OK(lend_functions_parse(NULL, &wanted, &credentials, &peer, &error));
    const int64_t gib_micro = peer.minimum_core_micro * 1024 / 1769 + peer.minimum_ram_micro;
    assert_true(gib_micro >= 59999 && gib_micro <= 60001);
    wanted.functions.price = "-1";
    ASSERT_FAILS(lend_functions_parse(NULL, &wanted, &credentials, &peer, &error), ERROR_INVALID);
}

TEST(without_functions_nothing_is_changed)
{
    struct error error = {0};
    struct remote_credentials credentials = {0};
    struct peer_options peer;
    const struct lend_options wanted = {.cores = "2"};
    peer_options_init(&peer);
    ASSERT_OK(lend_functions_parse(NULL, &wanted, &credentials, &peer, &error));
    assert_int_equal(peer.functions.count, 0);
    assert_int_equal(peer.ram_bytes, 0);
    assert_int_equal(peer.network, OFFER_NETWORK_JOB);
}

TEST(what_functions_have_no_use_for_is_refused)
{
    struct error error = {0};
    struct remote_credentials credentials = {0};
    struct peer_options peer;
    static const char *one[] = {"a=b"};
    const struct option_list list = {one, 1};
    struct lend_options wrong[8];
    for (size_t i = 0; i < 8; i++)
        wrong[i] = eight();
    wrong[0].cores = "2";
    wrong[1].memory = "1GiB";
    wrong[2].roles = list;
    wrong[3].data = list;
    wrong[4].software = list;
    wrong[5].images = 1;
    wrong[6].gpus_max = 1;
    wrong[7].network = OFFER_NETWORK_OPEN;
    for (size_t i = 0; i < 8; i++) {
        peer_options_init(&peer);
        ASSERT_FAILS(lend_functions_parse(NULL, &wrong[i], &credentials, &peer, &error),
                     ERROR_INVALID);
        assert_non_null(strstr(error.message, "does not go with --functions"));
    }
}

TEST(memory_beside_functions_elsewhere_is_for_the_processes_of_their_leases)
{
    struct error error = {0};
    struct remote_credentials credentials = {0};
    struct peer_options peer;
    struct lend_options wanted = eight();
    AUTO(arena) struct arena *arena = arena_new(0);
    wanted.functions.url = "http://127.0.0.1:9001";
    wanted.functions.name = "souk-train";
    char path[] = "/tmp/souk-lend-functions-XXXXXX";
    AUTO_FD int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, TOKEN, strlen(TOKEN)) == (ssize_t)strlen(TOKEN));
    wanted.functions.token_file = path;
    wanted.functions.store = "/srv/store";
    wanted.memory = "1GiB";
    peer_options_init(&peer);
    peer.ram_bytes = INT64_C(1) << 30; /* as command_lend.c reads it */
    ASSERT_OK(lend_functions_parse(arena, &wanted, &credentials, &peer, &error));
    assert_int_equal(peer.functions.process_bytes, INT64_C(1) << 30);
    assert_int_equal(peer.ram_bytes, INT64_C(4096) << 20);
    wanted.memory = "25%";
    peer_options_init(&peer);
    peer.ram_share_milli = 250;
    ASSERT_OK(lend_functions_parse(arena, &wanted, &credentials, &peer, &error));
    assert_int_equal(peer.functions.process_share_milli, 250);
    assert_int_equal(peer.ram_share_milli, 0);
    assert_int_equal(peer.ram_bytes, INT64_C(4096) << 20);
    unlink(path);
}

TEST(functions_elsewhere_need_a_place_to_meet)
{
    struct error error = {0};
    struct remote_credentials credentials = {0};
    struct peer_options peer;
    struct lend_options wrong[4];
    for (size_t i = 0; i < 4; i++)
        wrong[i] = eight();
    wrong[0].functions.url = "http://127.0.0.1:9001";
    wrong[1].functions.is_lambda = true;
    wrong[1].functions.store = "/srv/store";
    wrong[2].functions.store = "/srv/store";
    wrong[3].functions.is_lambda = true;
    for (size_t i = 0; i < 4; i++) {
        peer_options_init(&peer);
        ASSERT_FAILS(lend_functions_parse(NULL, &wrong[i], &credentials, &peer, &error),
                     ERROR_INVALID);
        assert_null(peer.functions.name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_lent_is_that_of_all_functions_together),
        cmocka_unit_test(a_least_price_is_split_as_the_market_s_first_prices_are),
        cmocka_unit_test(without_functions_nothing_is_changed),
        cmocka_unit_test(what_functions_have_no_use_for_is_refused),
        cmocka_unit_test(memory_beside_functions_elsewhere_is_for_the_processes_of_their_leases),
        cmocka_unit_test(functions_elsewhere_need_a_place_to_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
