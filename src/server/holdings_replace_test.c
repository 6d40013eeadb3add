/* What an account holds, and checkpoints that later ones replace: what goes with them, and what
 * stays. */
#include "server/holdings_internal.h"
#include "server/hub_fixture_internal.h"

enum { CHUNK_SIZE = 3, OTHER_JOB = 1000 };

static struct fixture *begin(void **state)
{
    struct fixture *fixture = *state;
    fixture->server.holdings = holdings_new(&fixture->server);
    return fixture;
}

/* Once every row is on disk. */
static void end(struct fixture *fixture)
{
    while (fixture->server.holdings->fresh.count > 0)
        step(fixture, 1);
    holdings_free(fixture->server.holdings);
    fixture->server.holdings = NULL;
}

static void hold(struct fixture *fixture, uint64_t account, uint64_t job,
                 const struct blob_hash *hash)
{
    holdings_add(fixture->server.holdings, (struct holder){account, job}, hash, CHUNK_SIZE, NULL,
                 NULL);
}

/* Sent by the borrower, or a parameter server of `job`; on disk when it returns. */
static struct blob_hash hold_chunk(struct fixture *fixture, const char *bytes, uint64_t job)
{
    struct error error;
    struct blob_hash hash;
    ASSERT_OK(blob_store_put(fixture->server.blobs, NULL, text_of(bytes), &hash, &error));
    hold(fixture, fixture->borrower, job, &hash);
    while (fixture->server.holdings->fresh.count > 0)
        step(fixture, 1);
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
    hold(fixture, fixture->borrower, fixture->job, &hash);
    while (fixture->server.holdings->fresh.count > 0)
        step(fixture, 1);
    return hash;
}

static bool is_there(struct fixture *fixture, const struct blob_hash *hash)
{
    struct error error;
    bool is_held;
    ASSERT_OK(holdings_has(fixture->server.holdings, fixture->borrower, hash, &is_held, &error));
    return is_held;
}

static int64_t used_bytes(struct fixture *fixture)
{
    struct error error;
    int64_t bytes;
    ASSERT_OK(holdings_bytes(fixture->server.holdings, fixture->borrower, &bytes, &error));
    return bytes;
}

/* Of the chunks, left now, by two later ones of `later` alone. */
static struct holdings_replaced replaced_of(struct fixture *fixture, const struct blob_hash *chunks,
                                            size_t count, const struct blob_hash *later)
{
    const struct blob_hash twice[] = {*later, *later};
    return (struct holdings_replaced){
        .holder = {fixture->borrower, fixture->job},
        .left_ms = clock_utc_ms(fixture->server.clock),
        .old = hold_manifest(fixture, chunks, count),
        .later = {hold_manifest(fixture, twice, 1), hold_manifest(fixture, twice, 2)}};
}

static void wait_until_gone(struct fixture *fixture, const struct blob_hash *hash)
{
    while (blob_store_has(fixture->server.blobs, hash)) /* or the test runs into its time limit */
        step(fixture, 1);
}

TEST(a_checkpoint_takes_along_only_what_parameter_servers_of_its_job_sent)
{
    struct fixture *fixture = begin(state);
    const struct blob_hash data = hold_chunk(fixture, "abc", 0);
    const struct blob_hash twice = hold_chunk(fixture, "def", fixture->job);
    const struct blob_hash shared = hold_chunk(fixture, "ghi", fixture->job);
    const struct blob_hash artifact = hold_chunk(fixture, "jkl", OTHER_JOB);
    const struct blob_hash both = hold_chunk(fixture, "mno", fixture->job);
    hold(fixture, fixture->borrower, OTHER_JOB, &both);
    const struct blob_hash sent_first = hold_chunk(fixture, "pqr", 0);
    hold(fixture, fixture->borrower, fixture->job, &sent_first);
    /* As a machine may say it: its checkpoint is the borrower's data and another's model, too. */
    const struct holdings_replaced replaced = replaced_of(
        fixture, (struct blob_hash[]){data, twice, twice, shared, artifact, both, sent_first}, 7,
        &shared);
    const int64_t before = used_bytes(fixture);
    holdings_replace(fixture->server.holdings, &replaced);
    wait_until_gone(fixture, &replaced.old);
    assert_false(is_there(fixture, &replaced.old));
    assert_false(blob_store_has(fixture->server.blobs, &twice));
    assert_true(is_there(fixture, &data));
    assert_true(is_there(fixture, &shared));
    assert_true(is_there(fixture, &artifact));
    assert_true(is_there(fixture, &both));
    assert_true(is_there(fixture, &sent_first));
    assert_int_equal(before - used_bytes(fixture), 2 * CHUNK_SIZE);
    end(fixture);
}

/* Returns once the core's thread waits, with all before on disk and unanswered: what comes now is
 * on its way when those are answered. */
static void hold_up(struct fixture *fixture, struct ask *ask, sem_t *gate)
{
    struct error error;
    struct ask all_before = {.request = {.loop = fixture->hub->loop}};
    submit(fixture, &all_before);
    while (!all_before.is_done)
        ASSERT_OK(loop_step(fixture->hub->loop, 1000, &error));
    sem_init(gate, 0, 0);
    *ask = (struct ask){.request = {.loop = fixture->hub->loop}, .gate = gate};
    submit(fixture, ask);
}

static void let_go(struct fixture *fixture, struct ask *ask, sem_t *gate)
{
    sem_post(gate);
    while (!ask->is_done)
        step(fixture, 1);
    sem_destroy(gate);
}

TEST(a_chunk_that_another_account_is_sending_outlives_the_checkpoint_that_had_it)
{
    struct fixture *fixture = begin(state);
    struct ask ask;
    sem_t gate;
    const struct blob_hash chunk = hold_chunk(fixture, "abc", fixture->job);
    const struct blob_hash later = hold_chunk(fixture, "def", fixture->job);
    const struct holdings_replaced replaced = replaced_of(fixture, &chunk, 1, &later);
    holdings_replace(fixture->server.holdings, &replaced);
    hold_up(fixture, &ask, &gate);
    const uint64_t other = fixture->borrower + 1;
    hold(fixture, other, 0, &chunk);
    wait_until_gone(fixture, &replaced.old);
    const bool stays = blob_store_has(fixture->server.blobs, &chunk);
    let_go(fixture, &ask, &gate);
    assert_true(stays);
    assert_false(is_there(fixture, &chunk));
    end(fixture);
}

TEST(what_is_sent_again_while_its_row_is_dropped_is_held_and_counts_once)
{
    struct fixture *fixture = begin(state);
    struct error error;
    bool is_kept;
    const struct blob_hash chunk = hold_chunk(fixture, "abc", fixture->job);
    const struct blob_hash later = hold_chunk(fixture, "def", fixture->job);
    const struct holdings_replaced replaced = replaced_of(fixture, &chunk, 1, &later);
    const int64_t before = used_bytes(fixture);
    holdings_replace(fixture->server.holdings, &replaced);
    assert_false(is_there(fixture, &chunk));
    hold(fixture, fixture->borrower, fixture->job, &chunk);
    wait_until_gone(fixture, &replaced.old);
    assert_true(is_there(fixture, &chunk));
    assert_int_equal(before - used_bytes(fixture), CHUNK_SIZE);
    /* It may go with a later one: who has it must send it all the same. */
    ASSERT_OK(
        holdings_keeps(fixture->server.holdings, fixture->borrower, &chunk, &is_kept, &error));
    assert_false(is_kept);
    end(fixture);
}

TEST(what_was_sent_again_for_a_checkpoint_on_its_way_stays_and_so_does_a_jobs_input)
{
    struct fixture *fixture = begin(state);
    struct error error;
    bool has;
    const struct blob_hash again = hold_chunk(fixture, "abc", fixture->job);
    const struct blob_hash input = hold_chunk(fixture, "def", fixture->job);
    const struct blob_hash later = hold_chunk(fixture, "ghi", fixture->job);
    const struct holdings_replaced replaced =
        replaced_of(fixture, (struct blob_hash[]){again, input}, 2, &later);
    const int64_t before = used_bytes(fixture);
    ASSERT_OK(holdings_claim(fixture->server.holdings, fixture->borrower, &input, &has, &error));
    assert_true(has);
    advance(fixture, 1);
    hold_chunk(fixture, "abc", fixture->job);
    holdings_replace(fixture->server.holdings, &replaced);
    wait_until_gone(fixture, &replaced.old);
    assert_true(is_there(fixture, &again));
    assert_true(is_there(fixture, &input));
    assert_int_equal(before - used_bytes(fixture), CHUNK_SIZE);
    end(fixture);
}

static void note_held(void *context, const struct error *error)
{
    int *count = context;
    assert_null(error);
    ++*count;
}

TEST(several_are_held_together_and_one_that_is_among_them_twice_counts_once)
{
    struct fixture *fixture = begin(state);
    struct error error;
    const char *const bytes[] = {"abc", "def", "abc"};
    struct holdings_chunk chunks[3];
    int held_count = 0;
    for (size_t i = 0; i < 3; i++) {
        chunks[i].size_bytes = CHUNK_SIZE;
        ASSERT_OK(blob_store_put(fixture->server.blobs, NULL, text_of(bytes[i]), &chunks[i].hash,
                                 &error));
    }
    const int64_t before = used_bytes(fixture);
    holdings_add_all(fixture->server.holdings, (struct holder){.account = fixture->borrower},
                     chunks, 3, note_held, &held_count);
    while (!held_count) /* or the test runs into its time limit */
        step(fixture, 1);
    assert_true(is_there(fixture, &chunks[0].hash));
    assert_true(is_there(fixture, &chunks[1].hash));
    assert_int_equal(used_bytes(fixture) - before, 2 * CHUNK_SIZE);
    end(fixture);
    assert_int_equal(held_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_checkpoint_takes_along_only_what_parameter_servers_of_its_job_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_chunk_that_another_account_is_sending_outlives_the_checkpoint_that_had_it, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            what_is_sent_again_while_its_row_is_dropped_is_held_and_counts_once, setup, teardown),
        cmocka_unit_test_setup_teardown(
            what_was_sent_again_for_a_checkpoint_on_its_way_stays_and_so_does_a_jobs_input, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            several_are_held_together_and_one_that_is_among_them_twice_counts_once, setup,
            teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
