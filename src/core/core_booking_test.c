/*
 * Jobs for the cheapest slot: which they choose, what they are held to, what they pay.
 * covers decide_start.c
 */
#include "core/testing_queue_internal.h"

/* A day after a busy slot: the same slot has begun again and is dearer than those after it. Returns
 * a job for the cheapest of three. */
static struct command busy_day_and_booking(struct market *market)
{
    const int64_t offset_ms = core_settings(market->core)->slot_offset_ms;
    const int64_t yesterday = slot_index(market->now_ms, offset_ms);
    const int64_t today = yesterday + SLOT_PER_DAY;
    const struct command busy = some_job(market->borrower, 1, SLOT_MS);
    submit(market, &busy);
    work(market, SLOT_MS);
    pass_to(market, slot_start_ms(yesterday + 1, offset_ms));
    for (size_t i = 0; i < core_job_count(market->core); i++)
        for (size_t l = 0; l < core_job_at(market->core, i)->lease_count; l++)
            market_end_lease(market, core_job_at(market->core, i)->leases[l],
                             LEASE_OUTCOME_SUCCEEDED, "");
    pass_to(market, slot_start_ms(today, offset_ms));
    struct command command = some_job(market->borrower, 1, 60 * MINUTE);
    command.submit_job.start = JOB_START_CHEAPEST;
    command.submit_job.deadline_ms = slot_start_ms(today + 3, offset_ms) - 1;
    command.submit_job.worker.cores_milli = 100;
    return command;
}

TEST(the_cheapest_slot_before_the_deadline_is_waited_for)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    const struct command command = busy_day_and_booking(&market);
    const int64_t offset_ms = core_settings(market.core)->slot_offset_ms;
    const int64_t today = slot_index(market.now_ms, offset_ms);
    int64_t cheapest = today;
    for (int64_t slot = today; slot < today + 3; slot++)
        if (core_price_of_slot(market.core, slot).core_micro <
            core_price_of_slot(market.core, cheapest).core_micro)
            cheapest = slot;
    assert_true(cheapest > today);
    const struct job *job = submit(&market, &command);
    assert_int_equal(job->start_ms, slot_start_ms(cheapest, offset_ms));
    assert_int_equal(job->state, JOB_STATE_PENDING);
    assert_int_equal(job->waiting_numbers[0], 0);
    pass_to(&market, job->start_ms - 1);
    assert_int_equal(job->state, JOB_STATE_PENDING);
    pass_to(&market, job->start_ms);
    assert_int_equal(job->state, JOB_STATE_STARTING);
    market_done(&market);
}

static int64_t cancel(struct market *market, const struct job *job)
{
    const int64_t before_micro = market_balance(market, market->lender);
    market_do(market, &(struct command){.kind = COMMAND_CANCEL_JOB,
                                        .cancel_job = {job->request.account, job->id}});
    assert_int_equal(job->state, JOB_STATE_CANCELLED);
    assert_int_equal(core_held_micro(market->core, job->id), 0);
    return market_balance(market, market->lender) - before_micro;
}

TEST(a_booking_cancelled_late_pays_a_tenth_of_its_first_slot_to_those_who_kept_it_free)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    const struct command command = busy_day_and_booking(&market);
    const struct job *early = submit(&market, &command);
    assert_true(early->start_ms - market.now_ms >= SLOT_MS);
    assert_int_equal(cancel(&market, early), 0);
    assert_int_equal(early->posted_micro, 0);
    const struct job *late = submit(&market, &command);
    pass_to(&market, late->start_ms - 1);
    const int64_t quote_micro = late->quote_micro;
    const int64_t paid_micro = cancel(&market, late);
    assert_int_equal(late->posted_micro, paid_micro);
    assert_true(paid_micro > 0 && paid_micro <= quote_micro / 10);
    market_done(&market);
}

TEST(a_booked_price_is_not_passed_when_prices_rise)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    const struct command busy = some_job(market.lender, 1, 2 * SLOT_MS);
    market_run_lease(&market, submit(&market, &busy)->leases[0]);
    struct command command = some_job(market.borrower, 1, 60 * MINUTE);
    command.submit_job.start = JOB_START_CHEAPEST;
    command.submit_job.deadline_ms = market.now_ms + 4 * SLOT_MS;
    const struct job *job = submit(&market, &command); /* all slots cost the same: now */
    assert_int_equal(job->start_ms, 0);
    const int64_t shown_micro = job->quote_micro;
    assert_int_equal(core_held_micro(market.core, job->id), shown_micro);
    const struct command more = some_job(market_open_account(&market, "third"), 1, 60 * MINUTE);
    for (int i = 0; i < 4; i++)
        submit(&market, &more); /* wait as well, and lift the price */
    market_pass_time(&market, 2 * SLOT_MS);
    assert_true(core_price(market.core).core_micro > 20000);
    work(&market, 2 * SLOT_MS);
    assert_int_equal(job->lease_count, 1);
    assert_int_equal(job->leases[0]->lock.slots[0].core_micro, 20000);
    assert_true(job->quote_micro <= shown_micro);
    struct error error = {0};
    AUTO(core) struct core *replayed = core_new();
    for (size_t i = 0; i < market.events.count; i++)
        ASSERT_OK(core_apply(replayed, &market.events.items[i], &error));
    market_done(&market);
}

TEST(who_finds_no_room_in_its_slot_waits_for_one_that_costs_no_more)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    struct command command = busy_day_and_booking(&market);
    const int64_t offset_ms = core_settings(market.core)->slot_offset_ms;
    const int64_t today = slot_index(market.now_ms, offset_ms);
    command.submit_job.deadline_ms = slot_start_ms(today + 7, offset_ms);
    const struct job *job = submit(&market, &command);
    assert_true(job->start_ms > market.now_ms);
    const int64_t shown_micro = job->quote_micro;
    const int64_t dear = today + SLOT_PER_DAY; /* tomorrow at this time */
    const struct price_vector later = core_price_of_slot(market.core, dear);
    assert_true(later.core_micro > core_price_of_slot(market.core, dear - 1).core_micro);
    const int64_t until_ms = slot_start_ms(dear, offset_ms) + 60 * MINUTE;
    struct command busy = some_job(market.lender, 1, until_ms - market.now_ms);
    market_run_lease(&market, submit(&market, &busy)->leases[0]);
    pass_to(&market, until_ms - 1);
    assert_int_equal(job->waiting_numbers[0] != 0, true);
    pass_to(&market, until_ms);
    for (size_t i = 0; i < core_job_count(market.core); i++)
        for (size_t l = 0; l < core_job_at(market.core, i)->lease_count; l++)
            if (lease_is_open(core_job_at(market.core, i)->leases[l]))
                market_end_lease(&market, core_job_at(market.core, i)->leases[l],
                                 LEASE_OUTCOME_SUCCEEDED, "");
    assert_int_equal(job->state, JOB_STATE_PENDING);
    struct buffer why AUTO_BUFFER;
    buffer_init(&why, 256);
    core_explain(market.core, job, &why);
    assert_true(text_equal(buffer_text(&why),
                           TEXT("there is room, but for more than it booked in its slot")));
    pass_to(&market, slot_start_ms(dear + 1, offset_ms));
    assert_int_equal(job->state, JOB_STATE_STARTING);
    assert_true(job->quote_micro <= shown_micro);
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheapest_slot_before_the_deadline_is_waited_for),
        cmocka_unit_test(
            a_booking_cancelled_late_pays_a_tenth_of_its_first_slot_to_those_who_kept_it_free),
        cmocka_unit_test(a_booked_price_is_not_passed_when_prices_rise),
        cmocka_unit_test(who_finds_no_room_in_its_slot_waits_for_one_that_costs_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
