/*
 * Measures how fast events and rows are committed and read; prints it, and checks that all came.
 *
 *     store_bench_test [batches [events per batch]]
 */
#include "base/clock.h"
#include "store/store_testing.h"

static uint64_t batch_count = 20;
static uint64_t batch_size = 500;

static int count_event(const struct store_event *event __attribute__((unused)), void *context,
                       struct error *error __attribute__((unused)))
{
    ++*(uint64_t *)context;
    return 0;
}

static double rate(uint64_t count, int64_t since_ns)
{
    return (double)count * 1e9 / (double)(clock_monotonic_ns(&clock_system) - since_ns);
}

TEST(committed_events_are_all_read)
{
    struct error error;
    struct place place;
    place_make(&place);
    struct store *store = place_open(&place);
    AUTO(store_batch) struct store_batch *batch = store_batch_new(0);
    int64_t start_ns = clock_monotonic_ns(&clock_system);
    for (uint64_t i = 0; i < batch_count; i++) {
        store_batch_clear(batch);
        const uint64_t first = store_head(store).sequence + 1;
        batch_add_events(batch, first, batch_size);
        for (uint64_t k = 0; k < batch_size; k++)
            batch_add_job(batch, (int64_t)(first + k), "ada", 1);
        ASSERT_OK(store_commit(store, batch, &error));
    }
    const uint64_t total = batch_count * batch_size;
    print_message("commit  %9.0f rows/s (an event and an indexed row each two), by %" PRIu64 "\n",
                  rate(2 * total, start_ns), batch_size);
    start_ns = clock_monotonic_ns(&clock_system);
    for (uint64_t i = 0; i < batch_count; i++)
        commit_events(store, 1);
    print_message("commit  %9.0f commits/s of one event\n", rate(batch_count, start_ns));
    AUTO(store_reader) struct store_reader *reader = place_read(&place);
    uint64_t count = 0;
    start_ns = clock_monotonic_ns(&clock_system);
    ASSERT_OK(store_read_events(reader, 1, count_event, &count, &error));
    print_message("read    %9.0f events/s, the chain checked\n", rate(count, start_ns));
    assert_int_equal(count, total + batch_count);
    store_free(store);
    place_remove(&place);
}

int main(int argc, char **argv)
{
    struct error error;
    if ((argc > 1 && text_parse_u64(text_of(argv[1]), &batch_count, &error) < 0) ||
        (argc > 2 && text_parse_u64(text_of(argv[2]), &batch_size, &error) < 0))
        return 2;
    const struct CMUnitTest tests[] = {cmocka_unit_test(committed_events_are_all_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
