/* Checkpoints as the hub notes them: how often they may come, and when they are forgotten. */
#include "server/holdings_internal.h"
#include "server/hub_fixture_internal.h"

/* The default of the fixture's job. */
enum { INTERVAL_MS = 30000, AT_ONCE = 3 };

static void hold(struct fixture *fixture, const struct blob_hash *hash)
{
    struct holdings *holdings = fixture->server.holdings;
    if (!holdings)
        return;
    holdings_add(holdings, (struct holder){fixture->borrower, fixture->job}, hash, 1, NULL, NULL);
    while (holdings->fresh.count > 0)
        step(fixture, 1);
}

/* Of one chunk that no other has; its manifest's hash. */
static struct blob_hash leave(struct fixture *fixture, int number)
{
    struct error error;
    char bytes[24];
    snprintf(bytes, sizeof(bytes), "%d", number);
    struct manifest_chunk chunk = {.size_bytes = strlen(bytes)};
    ASSERT_OK(blob_store_put(fixture->server.blobs, NULL, text_of(bytes), &chunk.hash, &error));
    const struct manifest manifest = {.size_bytes = chunk.size_bytes, .chunks = {&chunk, 1}};
    struct blob_hash hash;
    ASSERT_OK(manifest_put(fixture->server.blobs, &manifest, &hash, &error));
    hold(fixture, &chunk.hash);
    hold(fixture, &hash);
    struct artifact_message message = {.lease = fixture->leases[0].id,
                                       .fence = fixture->leases[0].fence,
                                       .name = TEXT(LEASE_CHECKPOINT_NAME),
                                       .size_bytes = chunk.size_bytes};
    memcpy(message.manifest, hash.bytes, sizeof(message.manifest));
    tick_artifact(hub_machine(fixture->hub, fixture->machines[0]), &message);
    return hash;
}

static bool is_taken(struct fixture *fixture, int number)
{
    const struct blob_hash hash = leave(fixture, number);
    struct native_checkpoint found[2]; /* the newest first */
    return checkpoints_find(fixture->hub, fixture->job, CHECKPOINT_SLOT_JOB, found) > 0 &&
           memcmp(found->manifest, hash.bytes, sizeof(found->manifest)) == 0;
}

TEST(checkpoints_beyond_two_in_the_jobs_interval_are_refused)
{
    struct fixture *fixture = *state;
    int number = 0;
    for (int i = 0; i < AT_ONCE; i++)
        assert_true(is_taken(fixture, number++));
    for (int i = 0; i < AT_ONCE; i++) {
        assert_false(is_taken(fixture, number++));
        advance(fixture, INTERVAL_MS / 2 - 1);
        assert_false(is_taken(fixture, number++));
        advance(fixture, 1);
        assert_true(is_taken(fixture, number++));
    }
    /* As parameter servers leave them, with one more at a hand-over. */
    for (int i = 0; i < 20; i++) {
        advance(fixture, INTERVAL_MS * 2 / 3);
        assert_true(is_taken(fixture, number++));
    }
    assert_true(is_taken(fixture, number++));
}

TEST(what_was_sent_for_a_refused_one_goes_but_not_again_and_again)
{
    struct fixture *fixture = *state;
    struct blob_store *blobs = fixture->server.blobs;
    struct error error;
    fixture->server.holdings = holdings_new(&fixture->server);
    struct blob_hash left[AT_ONCE + 3];
    for (int i = 0; i < AT_ONCE + 3; i++) {
        if (i == AT_ONCE + 2)
            advance(fixture, INTERVAL_MS / 8);
        left[i] = leave(fixture, i);
    }
    while (blob_store_has(blobs, &left[AT_ONCE]) || blob_store_has(blobs, &left[AT_ONCE + 2]))
        step(fixture, 1);
    assert_true(blob_store_has(blobs, &left[AT_ONCE - 1]));
    assert_true(blob_store_has(blobs, &left[AT_ONCE - 2]));
    assert_true(blob_store_has(blobs, &left[AT_ONCE + 1])); /* too soon: for the retention */
    int64_t bytes;
    ASSERT_OK(holdings_bytes(fixture->server.holdings, fixture->borrower, &bytes, &error));
    assert_int_equal(bytes, 3 * 2); /* the newest, the one before and the one too soon */
    while (fixture->server.holdings->fresh.count > 0)
        step(fixture, 1);
    holdings_free(fixture->server.holdings);
    fixture->server.holdings = NULL;
}

/* The core knows of it, the hub not yet. */
static void end_behind_the_hub(struct fixture *fixture, int index)
{
    struct error error;
    struct ask end = {.request = {.loop = fixture->server.loop,
                                  .has_command = true,
                                  .command = {.kind = COMMAND_END_LEASE,
                                              .end_lease = {.lease = fixture->leases[index].id,
                                                            .fence = fixture->leases[index].fence,
                                                            .outcome = LEASE_OUTCOME_SUCCEEDED}}}};
    submit(fixture, &end);
    while (!end.is_done)
        ASSERT_OK(loop_step(fixture->server.loop, 1000, &error));
    assert_false(end.is_failed);
}

TEST(a_checkpoint_left_as_its_job_ends_is_forgotten_with_the_job)
{
    struct fixture *fixture = *state;
    struct native_checkpoint found[2];
    end_behind_the_hub(fixture, 1);
    end_behind_the_hub(fixture, 0);
    assert_true(is_taken(fixture, 0));
    const struct ask seen = look(fixture, fixture->leases[0].id);
    assert_int_equal(seen.job_seen.state, JOB_STATE_SUCCEEDED);
    assert_int_equal(checkpoints_find(fixture->hub, fixture->job, CHECKPOINT_SLOT_JOB, found), 0);
    assert_int_equal(fixture->hub->checkpoints.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(checkpoints_beyond_two_in_the_jobs_interval_are_refused,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            what_was_sent_for_a_refused_one_goes_but_not_again_and_again, setup, teardown),
        cmocka_unit_test_setup_teardown(a_checkpoint_left_as_its_job_ends_is_forgotten_with_the_job,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
