/* covers snapshot_account.c, snapshot_job.c, snapshot_machine.c */
#include "core/core_internal.h"
#include "core/testing_internal.h"

enum { SNAPSHOT_MAX = 1 << 24 };

/* A market with something of every kind. */
static void fill_market(struct market *market)
{
    market_init_demo(market);
    struct command add = {.kind = COMMAND_ADD_TOKEN,
                          .add_token = {.account = market->borrower, .scopes = TOKEN_SCOPE_ALL}};
    market_hash(market, add.add_token.hash);
    market_do(market, &add);
    struct command code = {.kind = COMMAND_ADD_CODE,
                           .add_code = {.kind = CODE_KIND_PAGE,
                                        .account = market->borrower,
                                        .expires_ms = market->now_ms + 60000}};
    market_hash(market, code.add_code.hash);
    market_do(market, &code);
    const struct job *job = market_submit(market);
    for (size_t i = 0; i < job->lease_count; i++)
        market_run_lease(market, job->leases[i]);
    market->now_ms += 3000;
    const struct command tick = market_tick(job->leases[1], 1, 3000);
    market_do(market, &tick);
    market_do(market, &(struct command){.kind = COMMAND_END_LEASE,
                                        .end_lease = {.lease = job->leases[3]->id,
                                                      .fence = job->leases[3]->fence,
                                                      .outcome = LEASE_OUTCOME_FAILED,
                                                      .exit_code = 139,
                                                      .reason = TEXT("crashed")}});
    market_submit(market);
    market_do(market, &(struct command){.kind = COMMAND_MACHINE_SILENT,
                                        .machine_silent = {job->leases[2]->machine}});
}

TEST(a_snapshot_read_back_writes_the_same_bytes)
{
    struct market market;
    struct error error = {0};
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, SNAPSHOT_MAX);
    buffer_init(&second, SNAPSHOT_MAX);
    fill_market(&market);
    core_snapshot_write(market.core, &first);
    assert_true(core_snapshot_is_ours(buffer_text(&first)));
    assert_false(core_snapshot_is_ours(TEXT("{\"core\":{\"version\":1,\"sequence\":0}}\n")));
    AUTO(core) struct core *core = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&first), &core, &error));
    core_snapshot_write(core, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
    assert_int_equal(core_sequence(core), core_sequence(market.core));
    /* Somebody waits, whom it has not tried yet. */
    assert_true(core_next_wake_ms(core) <= core_next_wake_ms(market.core));
    market_done(&market);
}

TEST(a_restored_market_decides_as_the_first_would)
{
    struct market market;
    struct error error = {0};
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, SNAPSHOT_MAX);
    buffer_init(&second, SNAPSHOT_MAX);
    fill_market(&market);
    core_snapshot_write(market.core, &first);
    AUTO(core) struct core *core = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&first), &core, &error));
    struct event_list events;
    event_list_init(&events);
    for (int i = 0; i < 8; i++) {
        market_pass_time(&market, 40000);
        const struct command command = {.kind = COMMAND_TIME_PASSED};
        ASSERT_OK(core_decide(core, &command, market.now_ms, &events, &error));
    }
    buffer_clear(&first);
    core_snapshot_write(market.core, &first);
    core_snapshot_write(core, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
    event_list_done(&events);
    market_done(&market);
}

TEST(a_snapshot_that_was_cut_is_corrupt)
{
    struct market market;
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, SNAPSHOT_MAX);
    fill_market(&market);
    core_snapshot_write(market.core, &out);
    struct core *core = NULL;
    for (size_t size = 0; size < out.size; size += 1 + size / 50)
        ASSERT_FAILS(core_snapshot_read((struct text){(char *)out.data, size}, &core, &error),
                     ERROR_CORRUPT);
    ASSERT_FAILS(core_snapshot_read((struct text){(char *)out.data, out.size - 1}, &core, &error),
                 ERROR_CORRUPT);
    assert_null(core);
    market_done(&market);
}

/* Every digit changed in turn: never a crash, and what is taken hangs together. */
TEST(a_snapshot_with_a_changed_digit_is_refused_or_sound)
{
    struct market market;
    struct error error = {0};
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, SNAPSHOT_MAX);
    fill_market(&market);
    core_snapshot_write(market.core, &out);
    size_t refused = 0, taken = 0;
    for (size_t i = 0; i < out.size; i++) {
        if (out.data[i] < '0' || out.data[i] > '8')
            continue;
        out.data[i]++;
        AUTO(core) struct core *core = NULL;
        if (core_snapshot_read(buffer_text(&out), &core, &error) < 0) {
            assert_int_equal(error.code, ERROR_CORRUPT);
            refused++;
        } else {
            ASSERT_OK(core_check(core, &error));
            taken++;
        }
        out.data[i]--;
    }
    print_message("%zu refused, %zu taken\n", refused, taken);
    assert_true(refused > 200 && taken > 0);
    market_done(&market);
}

TEST(a_snapshot_keeps_what_the_operator_spent)
{
    struct market market;
    struct error error = {0};
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, SNAPSHOT_MAX);
    buffer_init(&second, SNAPSHOT_MAX);
    fill_market(&market);
    core_snapshot_write(market.core, &first);
    static const char *const fields[] = {"\"spent_mark_2_micro\":0", "\"karma_spent_micro\":0"};
    for (size_t i = 0; i < 2; i++) {
        char *own = strstr((char *)first.data, "\"name\":\"operator\"");
        assert_non_null(own);
        char *field = strstr(own, fields[i]);
        assert_non_null(field);
        field[strlen(fields[i]) - 1] = '7';
    }
    AUTO(core) struct core *core = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&first), &core, &error));
    core_snapshot_write(core, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
    market_done(&market);
}

/* One core of the borrower's for ten minutes. */
static const struct job *submit_one(struct market *market, int64_t max_hourly_micro)
{
    struct command submit = {.kind = COMMAND_SUBMIT_JOB,
                             .submit_job = {.account = market->borrower,
                                            .name = "job",
                                            .spec = TEXT("{}"),
                                            .num_nodes = 1,
                                            .worker = {.cores_milli = 1000},
                                            .max_run_ms = 600000,
                                            .max_hourly_micro = max_hourly_micro,
                                            .tick_ms = 1000}};
    return core_job(market->core, market_do(market, &submit));
}

TEST(what_jobs_wait_for_is_known_after_a_restart)
{
    struct market market;
    struct error error = {0};
    struct buffer snapshot AUTO_BUFFER;
    buffer_init(&snapshot, SNAPSHOT_MAX);
    market_init(&market);
    market_set_proving(&market, 0);
    const uint64_t machine = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct command report = {
        .kind = COMMAND_REPORT_PROBE,
        .report_probe = {.machine = machine, .probe = core_machine(market.core, machine)->probe}};
    report.report_probe.probe.speed_weight_milli = 2000;
    market_do(&market, &report);
    const struct job *dear = submit_one(&market, 25000); /* at twice the speed it costs 40000 */
    const struct job *running = submit_one(&market, 0);
    const struct job *waiting = submit_one(&market, 0);
    assert_int_equal(running->state, JOB_STATE_STARTING);
    assert_true(dear->is_short && dear->line_place == 0);
    assert_true(!waiting->is_short && waiting->line_place != 0);
    core_snapshot_write(market.core, &snapshot);

    AUTO(core) struct core *restored = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&snapshot), &restored, &error));
    assert_true(core_job(restored, dear->id)->is_short);
    assert_false(core_job(restored, waiting->id)->is_short);
    assert_int_equal(restored->line.count, 1);
    assert_int_equal(core_account(restored, market.borrower)->short_count, 1);

    AUTO(core) struct core *replayed = core_new();
    for (size_t i = 0; i < market.events.count; i++)
        ASSERT_OK(core_apply(replayed, &market.events.items[i], &error));
    assert_true(core_job(replayed, dear->id)->is_short);
    assert_int_equal(replayed->line.count, 1);
    market_done(&market);
}

TEST(leases_end_when_they_would_have_after_a_restart)
{
    struct market market;
    struct error error = {0};
    struct buffer snapshot AUTO_BUFFER;
    buffer_init(&snapshot, SNAPSHOT_MAX);
    market_init_demo(&market);
    const struct job *job = market_submit(&market);
    market_run_lease(&market, job->leases[0]);
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = *core_settings(market.core)};
    change.change_settings.grace_ms *= 2;
    market_do(&market, &change);
    core_snapshot_write(market.core, &snapshot);

    AUTO(core) struct core *restored = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&snapshot), &restored, &error));
    for (size_t i = 0; i < job->lease_count; i++)
        assert_int_equal(core_lease(restored, job->leases[i]->id)->ends_ms,
                         job->leases[i]->ends_ms);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_read_back_writes_the_same_bytes),
        cmocka_unit_test(a_restored_market_decides_as_the_first_would),
        cmocka_unit_test(a_snapshot_that_was_cut_is_corrupt),
        cmocka_unit_test(a_snapshot_with_a_changed_digit_is_refused_or_sound),
        cmocka_unit_test(a_snapshot_keeps_what_the_operator_spent),
        cmocka_unit_test(what_jobs_wait_for_is_known_after_a_restart),
        cmocka_unit_test(leases_end_when_they_would_have_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
