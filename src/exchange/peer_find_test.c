#include "exchange/peer_find.h"
#include "testing/testing.h"

#include <string.h>

/* Lease 5 is worker 2, lease 7 server 1, lease 9 the lead, each with fence 3. */
static int find(void *context, uint64_t lease, uint64_t fence, struct exchange_peer *out_peer)
{
    (void)context;
    if (fence != 3 || (lease != 5 && lease != 7 && lease != 9))
        return -1;
    *out_peer = (struct exchange_peer){.is_server = lease != 5,
                                       .rank = lease == 5   ? 2
                                               : lease == 7 ? 1
                                                            : 0};
    memset(out_peer->key, (int)lease, LINK_KEY_SIZE);
    return 0;
}

static void assert_found(enum peer_kind kind, const char *identity, uint64_t lease, uint32_t rank)
{
    struct found_peer found;
    struct error error;
    ASSERT_OK(peer_find(find, NULL, kind, text_of(identity), &found, &error));
    assert_int_equal(found.lease, lease);
    assert_int_equal(found.fence, 3);
    assert_int_equal(found.rank, rank);
    assert_int_equal(found.key[LINK_KEY_SIZE - 1], lease);
}

static void assert_refused(enum peer_kind kind, const char *identity, enum error_code code)
{
    struct found_peer found;
    struct error error;
    ASSERT_FAILS(peer_find(find, NULL, kind, text_of(identity), &found, &error), code);
}

TEST(a_peer_is_found_as_what_it_is)
{
    assert_found(PEER_WORKER, "lease:5:3", 5, 2);
    assert_found(PEER_SERVER, "lease:7:3", 7, 1);
}

TEST(nobody_passes_for_another_kind_or_fence)
{
    assert_refused(PEER_WORKER, "lease:7:3", ERROR_REFUSED);
    assert_refused(PEER_SERVER, "lease:5:3", ERROR_REFUSED);
    assert_refused(PEER_SERVER, "lease:9:3", ERROR_REFUSED); /* the lead dials no lead */
    assert_refused(PEER_WORKER, "lease:5:2", ERROR_REFUSED);
    assert_refused(PEER_WORKER, "lease:6:3", ERROR_REFUSED);
    assert_refused(PEER_WORKER, "lease:5", ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_is_found_as_what_it_is),
        cmocka_unit_test(nobody_passes_for_another_kind_or_fence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
