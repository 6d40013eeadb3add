/*
 * Prices in a running market: when slots end, what follows, and that a replay checks them.
 *
 * covers apply_price.c, decide_price.c, price_view.c, snapshot_price.c
 */
#include "core/testing_price_internal.h"
#include "market/fixed.h"

TEST(a_market_begins_at_the_cold_prices_for_all_48_hours)
{
    struct market market;
    market_init(&market);
    const struct price_vector cold = price_cold_start();
    assert_int_equal(core_price_slot(market.core), TEST_NOW / SLOT_MS);
    for (int64_t i = -1; i <= CORE_PRICE_FORECASTS + 5; i++)
        assert_int_equal(
            core_price_of_slot(market.core, core_price_slot(market.core) + i).gpu_micro,
            cold.gpu_micro);
    struct price_vector average;
    assert_false(core_price_average(market.core, -1, &average));
    market_done(&market);
}

TEST(what_is_lent_and_not_wanted_falls_in_price)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    assert_int_equal(core_next_wake_ms(market.core), SLOT_ENDS_MS);
    pass_to(&market, SLOT_ENDS_MS - 1);
    assert_int_equal(market_new_events(&market, EVENT_SLOT_CLOSED), 0);
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(market_new_events(&market, EVENT_SLOT_CLOSED), 1);
    const struct price_inputs *inputs = last_inputs(&market);
    assert_int_equal(inputs[PRICE_CORE].offered_milli_s, 4 * HOUR_MS);
    assert_int_equal(inputs[PRICE_RAM].offered_milli_s, 16 * HOUR_MS);
    assert_int_equal(inputs[PRICE_DISK].offered_milli_s, 40 * HOUR_MS);
    assert_int_equal(inputs[PRICE_GPU].offered_milli_s, 0);
    assert_int_equal(inputs[PRICE_CORE].wanted_milli_s, 0);
    /* n = 1: the level falls by 0.6 x 2 / 11, the others of the day rise by 0.1 x 2 / 11 / 4:
     * 20000 x 2^-0.1045. A GPU was neither wanted nor lent. */
    assert_int_equal(core_price(market.core).core_micro, 18602);
    assert_int_equal(core_price(market.core).gpu_micro, 180000);
    assert_int_equal(core_next_wake_ms(market.core), SLOT_ENDS_MS + SLOT_MS);
    market_done(&market);
}

static uint64_t set_offer(struct market *market, uint64_t machine, int64_t minimum_micro,
                          struct span *span)
{
    struct command set = {
        .kind = COMMAND_SET_OFFER,
        .set_offer = {.account = market->lender,
                      .machine = machine,
                      .offer = core_machine(market->core, machine)->offers[0]->id,
                      .terms = offer_terms(core_machine(market->core, machine)->offers[0])}};
    set.set_offer.terms.minimum = (struct price_vector){.core_micro = minimum_micro};
    set.set_offer.terms.spans = (struct json_array){span, span ? 1 : 0};
    return market_do(market, &set);
}

TEST(an_offer_counts_within_its_window)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct span span = {TEST_NOW + HOUR_MS, SLOT_ENDS_MS + 2 * HOUR_MS};
    set_offer(&market, id, 0, &span);
    /* Nobody wakes in between: what is counted does not depend on when one looks. */
    pass_to(&market, SLOT_ENDS_MS + SLOT_MS);
    assert_int_equal(core_price_close_count(market.core), 2);
    assert_int_equal(core_price_close_at(market.core, 0)->inputs[PRICE_CORE].offered_milli_s,
                     3 * HOUR_MS);
    assert_int_equal(offered_core_ms(&market), 2 * HOUR_MS);
    market_done(&market);
}

TEST(a_lender_above_the_price_lends_nothing_and_sets_the_floor)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct span span = {TEST_NOW, SLOT_ENDS_MS + SLOT_MS};
    set_offer(&market, id, 50000, &span);
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(offered_core_ms(&market), 0);
    assert_int_equal(core_price(market.core).core_micro, 50000);
    /* The slot after it nobody lends: back to the rule. */
    const int64_t running = core_price_slot(market.core);
    assert_int_equal(core_price_of_slot(market.core, running + 1).core_micro, 20000);
    pass_to(&market, SLOT_ENDS_MS + SLOT_MS);
    assert_int_equal(offered_core_ms(&market), 6 * HOUR_MS);
    market_done(&market);
}

TEST(a_job_that_waits_for_a_willing_lender_starts_when_the_price_reaches_the_minimum)
{
    struct market market;
    market_init(&market);
    const uint64_t id = market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    set_offer(&market, id, 50000, NULL);
    const struct command command = one_core_job(market.borrower);
    const struct job *job = submit(&market, &command);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    pass_to(&market, SLOT_ENDS_MS);
    assert_int_equal(core_price(market.core).core_micro, 50000);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    market_done(&market);
}

TEST(missed_ends_are_made_up_for_one_by_one)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    pass_to(&market, SLOT_ENDS_MS + 3 * SLOT_MS + 5);
    assert_int_equal(market_new_events(&market, EVENT_SLOT_CLOSED), 4);
    assert_int_equal(core_price_slot(market.core), TEST_NOW / SLOT_MS + 4);
    assert_int_equal(offered_core_ms(&market), 6 * HOUR_MS);
    market_done(&market);
}

TEST(an_idle_market_sleeps_through_its_slots)
{
    struct market market;
    market_init(&market);
    assert_true(core_next_wake_ms(market.core) > SLOT_ENDS_MS);
    market.now_ms += 1000 * SLOT_MS;
    assert_int_equal(core_price_slot(market.core), TEST_NOW / SLOT_MS);
    assert_int_equal(core_price_slot_at(market.core, market.now_ms), TEST_NOW / SLOT_MS + 1000);
    market_open_account(&market, "newcomer");
    assert_int_equal(market_new_events(&market, EVENT_SLOT_CLOSED), 1);
    assert_int_equal(core_price_slot(market.core), TEST_NOW / SLOT_MS + 1000);
    assert_int_equal(core_price(market.core).core_micro, 20000);
    market_done(&market);
}

TEST(a_slot_ends_before_whatever_comes_after_it)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    market.now_ms = SLOT_ENDS_MS + 1234;
    assert_int_equal(core_price_slot_at(market.core, market.now_ms), TEST_NOW / SLOT_MS);
    const struct command command = one_core_job(market.borrower);
    submit(&market, &command);
    assert_int_equal(market.events.items[market.seen].kind, EVENT_SLOT_CLOSED);
    assert_int_equal(market_new_events(&market, EVENT_SLOT_CLOSED), 1);
    assert_int_equal(wanted_core_ms(&market), 0);
    /* A refusal ends nothing. */
    market.now_ms += SLOT_MS;
    const struct command unknown = one_core_job(999);
    market_refuses(&market, &unknown, ERROR_NOT_FOUND);
    market_done(&market);
}

/* A few days with something of everything. */
static void run_days(struct market *market)
{
    market_init_demo(market);
    for (int slot = 0; slot < 10; slot++) {
        pass_to(market, SLOT_ENDS_MS + slot * SLOT_MS + slot * INT64_C(60000));
        struct command command = one_core_job(slot % 2 ? market->borrower : market->lender);
        if (slot % 3 == 0) {
            command.submit_job.start = JOB_START_CHEAPEST;
            command.submit_job.deadline_ms = market->now_ms + 5 * SLOT_MS;
        }
        command.submit_job.worker.cores_milli = slot % 4 == 0 ? 4000 : 500;
        submit(market, &command);
    }
}

TEST(a_replay_finds_the_same_prices_and_a_forged_one)
{
    struct market market;
    run_days(&market);
    struct error error = {0};
    AUTO(core) struct core *replayed = core_new();
    size_t forged = 0;
    for (size_t i = 0; i < market.events.count; i++) {
        struct event event = market.events.items[i];
        if (event.kind == EVENT_SLOT_CLOSED) {
            int64_t *const lies[] = {&event.slot_closed.price.core_micro,
                                     &event.slot_closed.inputs[PRICE_RAM].wanted_milli_s,
                                     &event.slot_closed.board.curves[PRICE_GPU].level_q32,
                                     &event.slot_closed.next_slot};
            for (size_t l = 0; l < sizeof(lies) / sizeof(*lies); l++) {
                ++*lies[l];
                ASSERT_FAILS(core_apply(replayed, &event, &error), ERROR_CORRUPT);
                --*lies[l];
                forged++;
            }
        }
        ASSERT_OK(core_apply(replayed, &event, &error));
    }
    assert_true(forged >= 40);
    /* To leave a slot's end out is noticed as well. */
    struct event skipped = {.kind = EVENT_ACCOUNT_OPENED,
                            .sequence = core_sequence(replayed) + 1,
                            .time_ms = market.now_ms + SLOT_MS,
                            .account_opened = {market.events.items[0].sequence, "late"}};
    ASSERT_FAILS(core_apply(replayed, &skipped, &error), ERROR_CORRUPT);
    market_done(&market);
}

TEST(a_snapshot_keeps_what_was_counted)
{
    struct market market;
    run_days(&market);
    struct error error = {0};
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, 1 << 24);
    buffer_init(&second, 1 << 24);
    core_snapshot_write(market.core, &first);
    AUTO(core) struct core *restored = NULL;
    ASSERT_OK(core_snapshot_read(buffer_text(&first), &restored, &error));
    const size_t count = market.events.count;
    pass_to(&market, market.now_ms + 2 * SLOT_MS);
    for (size_t i = count; i < market.events.count; i++)
        ASSERT_OK(core_apply(restored, &market.events.items[i], &error));
    buffer_clear(&first);
    core_snapshot_write(market.core, &first);
    core_snapshot_write(restored, &second);
    assert_string_equal(buffer_string(&first), buffer_string(&second));
    market_done(&market);
}

TEST(seven_days_are_kept_and_averaged)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    pass_to(&market, SLOT_ENDS_MS + 40 * SLOT_MS);
    assert_int_equal(core_price_close_count(market.core), 41);
    assert_int_equal(core_price_close_kept(market.core), CORE_PRICE_CLOSES);
    int64_t sum = 0, evening_sum = 0;
    for (size_t i = 0; i < CORE_PRICE_CLOSES; i++) {
        const struct core_price_close *close = core_price_close_at(market.core, i);
        assert_int_equal(close->slot, core_price_slot(market.core) - CORE_PRICE_CLOSES + i);
        assert_ptr_equal(core_price_close_of(market.core, close->slot), close);
        sum += close->price.core_micro;
        if (slot_of_day(close->slot) == 3)
            evening_sum += close->price.core_micro;
    }
    struct price_vector average;
    assert_true(core_price_average(market.core, -1, &average));
    assert_int_equal(average.core_micro, (sum + 14) / 28);
    assert_true(core_price_average(market.core, 3, &average));
    assert_int_equal(average.core_micro, (evening_sum + 3) / 7);
    assert_null(core_price_close_of(market.core, core_price_slot(market.core)));
    market_done(&market);
}

TEST(a_lock_has_the_prices_of_the_slots_it_touches)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    pass_to(&market, SLOT_ENDS_MS);
    const int64_t running = core_price_slot(market.core), now_ms = market.now_ms;
    struct price_lock lock = core_price_lock(market.core, now_ms, now_ms);
    assert_int_equal(lock.slot_count, 1);
    assert_int_equal(lock.first_slot, running);
    assert_int_equal(lock.slots[0].core_micro, core_price(market.core).core_micro);
    lock = core_price_lock(market.core, now_ms, now_ms + SLOT_MS);
    assert_int_equal(lock.slot_count, 1);
    lock = core_price_lock(market.core, now_ms, now_ms + SLOT_MS + 1);
    assert_int_equal(lock.slot_count, 2);
    lock = core_price_lock(market.core, now_ms + 5, now_ms + 100 * SLOT_MS);
    assert_int_equal(lock.slot_count, PRICE_LOCK_SLOTS);
    for (int64_t i = 0; i < lock.slot_count; i++)
        assert_int_equal(lock.slots[i].core_micro,
                         core_price_of_slot(market.core, running + i).core_micro);
    /* One evening's fall has made it cheaper than the other times of day. */
    assert_true(lock.slots[3].core_micro < lock.slots[0].core_micro);
    market_done(&market);
}

TEST(a_lease_is_billed_at_the_prices_it_was_signed_at)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 4000, MACHINE_ROLE_WORKER);
    struct command command = one_core_job(market.borrower);
    command.submit_job.max_run_ms = 8 * HOUR_MS;
    const struct job *first = submit(&market, &command);
    market_run_lease(&market, first->leases[0]);
    pass_to(&market, SLOT_ENDS_MS);
    const int64_t cheaper = core_price(market.core).core_micro;
    assert_true(cheaper < 20000);
    const struct job *second = submit(&market, &command);
    market_run_lease(&market, second->leases[0]);
    market.now_ms += HOUR_MS;
    struct command tick = market_tick(first->leases[0], 1, 5 * HOUR_MS);
    market_do(&market, &tick);
    tick = market_tick(second->leases[0], 1, HOUR_MS);
    market_do(&market, &tick);
    assert_int_equal(first->posted_micro, 5 * 20000);
    assert_int_equal(second->posted_micro, cheaper);
    market_done(&market);
}

TEST(the_market_s_midnight_can_move_until_a_slot_has_ended)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = core_default_settings()};
    change.change_settings.slot_offset_ms = 5 * HOUR_MS;
    market_do(&market, &change);
    pass_to(&market, SLOT_ENDS_MS - 3 * HOUR_MS);
    assert_int_equal(core_price_close_count(market.core), 0);
    pass_to(&market, SLOT_ENDS_MS - 5 * HOUR_MS + SLOT_MS);
    assert_int_equal(core_price_close_count(market.core), 1);
    assert_int_equal(offered_core_ms(&market), 5 * HOUR_MS);
    change.change_settings.slot_offset_ms = 0;
    market_refuses(&market, &change, ERROR_CONFLICT);
    change.change_settings.slot_offset_ms = 5 * HOUR_MS;
    market_do(&market, &change);
    change.change_settings.slot_offset_ms = SLOT_OFFSET_MS_MAX + 1;
    market_refuses(&market, &change, ERROR_INVALID);
    market_done(&market);
}

TEST(the_market_s_midnight_stays_once_a_job_has_locked_prices)
{
    struct market market;
    market_init(&market);
    market_add_machine(&market, "heron", 1000, MACHINE_ROLE_WORKER);
    const struct command command = one_core_job(market.borrower);
    submit(&market, &command);
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = *core_settings(market.core)};
    change.change_settings.slot_offset_ms = 5 * HOUR_MS;
    market_refuses(&market, &change, ERROR_CONFLICT);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_market_begins_at_the_cold_prices_for_all_48_hours),
        cmocka_unit_test(what_is_lent_and_not_wanted_falls_in_price),
        cmocka_unit_test(an_offer_counts_within_its_window),
        cmocka_unit_test(a_lender_above_the_price_lends_nothing_and_sets_the_floor),
        cmocka_unit_test(
            a_job_that_waits_for_a_willing_lender_starts_when_the_price_reaches_the_minimum),
        cmocka_unit_test(missed_ends_are_made_up_for_one_by_one),
        cmocka_unit_test(an_idle_market_sleeps_through_its_slots),
        cmocka_unit_test(a_slot_ends_before_whatever_comes_after_it),
        cmocka_unit_test(a_replay_finds_the_same_prices_and_a_forged_one),
        cmocka_unit_test(a_snapshot_keeps_what_was_counted),
        cmocka_unit_test(seven_days_are_kept_and_averaged),
        cmocka_unit_test(a_lock_has_the_prices_of_the_slots_it_touches),
        cmocka_unit_test(a_lease_is_billed_at_the_prices_it_was_signed_at),
        cmocka_unit_test(the_market_s_midnight_can_move_until_a_slot_has_ended),
        cmocka_unit_test(the_market_s_midnight_stays_once_a_job_has_locked_prices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
