/* Checkpoints that later ones replace: what goes with them, and what stays. */
#include "server/holdings_internal.h"
#include "server/hub_fixture_internal.h"

enum { CHUNK_SIZE = 3 };

/* The borrower holds it since `stored_ms`. */
static void hold(struct fixture *fixture, const struct blob_hash *hash, int64_t stored_ms)
{
    struct holdings *holdings = fixture->server.holdings;
    struct holdings_change *change = holdings_change_new();
    change->count = 1;
    change->rows[0].account = fixture->borrower;
    change->rows[0].hash = *hash;
    change->rows[0].size_bytes = CHUNK_SIZE;
    change->rows[0].stored_ms = stored_ms;
    holdings_change_usage(holdings, change, 0, CHUNK_SIZE);
    holdings_change_submit(holdings, change);
    struct ask all_before = {0};
    run_ask(fixture, &all_before);
}

static struct blob_hash hold_chunk(struct fixture *fixture, const char *bytes, int64_t stored_ms)
{
    struct error error;
    struct blob_hash hash;
    ASSERT_OK(blob_store_put(fixture->server.blobs, NULL, text_of(bytes), &hash, &error));
    hold(fixture, &hash, stored_ms);
    return hash;
}

static struct blob_hash hold_manifest(struct fixture *fixture, const struct blob_hash *chunks,
                                      size_t count)
{
    struct error error;
    struct manifest_chunk items[8];
    for (size_t i = 0; i < count; i++)
        items[i] = (struct manifest_chunk){.hash = chunks[i], .size_bytes = CHUNK_SIZE};
    const struct manifest manifest = {.size_bytes = CHUNK_SIZE * count, .chunks = {items, count}};
    struct blob_hash hash;
    ASSERT_OK(manifest_put(fixture->server.blobs, &manifest, &hash, &error));
    hold(fixture, &hash, clock_utc_ms(fixture->server.clock));
    return hash;
}

static bool is_there(struct fixture *fixture, const struct blob_hash *hash)
{
    struct error error;
    bool is_held;
    ASSERT_OK(holdings_has(fixture->server.holdings, fixture->borrower, hash, &is_held, &error));
    return is_held;
}

TEST(a_checkpoint_goes_but_for_what_its_borrower_had_before_the_job)
{
    struct fixture *fixture = *state;
    struct error error;
    fixture->server.holdings = holdings_new(&fixture->server);
    struct holdings *holdings = fixture->server.holdings;
    const int64_t now_ms = clock_utc_ms(fixture->server.clock);
    const struct blob_hash data = hold_chunk(fixture, "abc", NOW_MS);
    const struct blob_hash twice = hold_chunk(fixture, "def", now_ms);
    const struct blob_hash shared = hold_chunk(fixture, "ghi", now_ms);
    /* As a machine may say it: its checkpoint is the borrower's data, too. */
    const struct blob_hash old =
        hold_manifest(fixture, (struct blob_hash[]){data, twice, twice, shared}, 4);
    const struct holdings_replaced replaced = {
        .account = fixture->borrower,
        .job = fixture->job,
        .old = old,
        .later = {hold_manifest(fixture, &shared, 1),
                  hold_manifest(fixture, (struct blob_hash[]){shared, shared}, 2)}};
    int64_t before, after;
    ASSERT_OK(holdings_bytes(holdings, fixture->borrower, &before, &error));
    holdings_replace(holdings, &replaced);
    while (blob_store_has(fixture->server.blobs, &old)) /* or the test runs into its time limit */
        step(fixture, 1);
    assert_false(is_there(fixture, &old));
    assert_false(blob_store_has(fixture->server.blobs, &twice));
    assert_true(is_there(fixture, &data));
    assert_true(is_there(fixture, &shared));
    ASSERT_OK(holdings_bytes(holdings, fixture->borrower, &after, &error));
    assert_int_equal(before - after, 2 * CHUNK_SIZE);
    holdings_free(holdings);
    fixture->server.holdings = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_checkpoint_goes_but_for_what_its_borrower_had_before_the_job, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
