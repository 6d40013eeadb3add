/*
 * Jobs for the cheapest slot: which they choose, what they are held to, what they pay.
 * covers decide_start.c forfeit.c
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

/* Three machines nobody has proven yet, and a booking for two cancelled just before its start. */
static const struct job *cancel_late(struct market *market)
{
    market_init(market);
    add_machines(market, 3);
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = *core_settings(market->core)};
    change.change_settings.fee_basis_points = 500;
    market_do(market, &change);
    struct command command = busy_day_and_booking(market);
    command.submit_job.num_nodes = 2;
    const struct job *job = submit(market, &command);
    pass_to(market, job->start_ms - 1);
    cancel(market, job);
    return job;
}

TEST(a_part_of_a_late_fee_is_withheld_of_machines_that_are_not_proven)
{
    struct market market;
    const struct job *job = cancel_late(&market);
    const struct ledger_account *lender = core_balance(market.core, market.lender);
    assert_int_equal(market_new_events(&market, EVENT_BOOKING_FORFEITED), 2);
    int64_t withheld_micro = 0, paid_micro = 0;
    for (size_t i = market.seen; i < market.events.count; i++) {
        const struct event *event = &market.events.items[i];
        if (event->kind != EVENT_BOOKING_FORFEITED)
            continue;
        const int64_t amount_micro = event->booking_forfeited.amount_micro;
        const int64_t part_micro = (amount_micro - amount_micro / 20) / 4;
        assert_int_equal(
            core_machine(market.core, event->booking_forfeited.machine)->withheld_micro,
            part_micro);
        withheld_micro += part_micro;
        paid_micro += amount_micro;
    }
    assert_true(withheld_micro > 0);
    assert_int_equal(lender->withheld_micro, withheld_micro);
    assert_int_equal(job->posted_micro, paid_micro);
    assert_int_equal(job->cancel_fee_micro, paid_micro);
    market_done(&market);
}

/* Applies all but `skipped` events from the first of a kind on, with that one changed; returns
 * whether the log was refused as corrupt. */
struct forgery {
    enum event_kind kind;
    size_t skipped;
    int64_t more_micro;
    uint64_t machine;
};

static bool is_refused(const struct market *market, const struct forgery *forgery)
{
    struct error error = {0};
    AUTO(core) struct core *replayed = core_new();
    size_t i = 0;
    for (; i < market->seen; i++)
        ASSERT_OK(core_apply(replayed, &market->events.items[i], &error));
    bool is_forged = false;
    for (; i < market->events.count; i++) {
        struct event event = market->events.items[i];
        if (!is_forged && event.kind == forgery->kind) {
            is_forged = true;
            i += forgery->skipped;
            event = market->events.items[i];
            if (event.kind == EVENT_BOOKING_FORFEITED) {
                event.booking_forfeited.amount_micro += forgery->more_micro;
                if (forgery->machine)
                    event.booking_forfeited.machine = forgery->machine;
            } else if (event.kind == EVENT_ENTRY_POSTED) {
                event.entry_posted.withheld_micro += forgery->more_micro;
            }
        }
        event.sequence = core_sequence(replayed) + 1;
        if (event.kind == EVENT_ENTRY_POSTED)
            event.entry_posted.sequence = ledger_entry_count(replayed->ledger) + 1;
        if (core_apply(replayed, &event, &error) < 0)
            return error.code == ERROR_CORRUPT;
    }
    return false;
}

TEST(a_log_whose_late_fee_is_another_is_refused)
{
    struct market market;
    cancel_late(&market);
    const struct event *first = &market.events.items[market.seen];
    assert_int_equal(first->kind, EVENT_BOOKING_FORFEITED);
    uint64_t other = 0; /* a machine that would not have had the job first */
    for (size_t i = market.seen + 1; i < market.events.count; i++)
        if (market.events.items[i].kind == EVENT_BOOKING_FORFEITED)
            other = market.events.items[i].booking_forfeited.machine;
    const struct forgery forgeries[] = {
        {.kind = EVENT_BOOKING_FORFEITED, .more_micro = 1},
        {.kind = EVENT_BOOKING_FORFEITED, .more_micro = -1},
        {.kind = EVENT_BOOKING_FORFEITED, .machine = other},
        {.kind = EVENT_BOOKING_FORFEITED, .skipped = 1}, /* paid without it */
        {.kind = EVENT_BOOKING_FORFEITED, .skipped = 3}, /* one part left out: post and fee too */
        {.kind = EVENT_BOOKING_FORFEITED, .skipped = 6}, /* all of it */
        {.kind = EVENT_BOOKING_FORFEITED, .skipped = 7}, /* and nothing given back */
        {.kind = EVENT_ENTRY_POSTED, .more_micro = -1},  /* less withheld */
    };
    for (size_t i = 0; i < sizeof(forgeries) / sizeof(*forgeries); i++)
        assert_true(is_refused(&market, &forgeries[i]));
    const struct forgery none = {.kind = EVENT_BOOKING_FORFEITED};
    assert_false(is_refused(&market, &none));
    market_done(&market);
}

TEST(a_late_cancel_that_nobody_kept_room_for_costs_nothing_and_says_so)
{
    struct market market;
    market_init(&market);
    add_machines(&market, 1);
    const struct command command = busy_day_and_booking(&market);
    const struct job *job = submit(&market, &command);
    pass_to(&market, job->start_ms - 1);
    const uint64_t machine = core_machine_at(market.core, 0)->id;
    market_do(&market, &(struct command){.kind = COMMAND_MACHINE_GONE, .machine_gone = {machine}});
    assert_int_equal(cancel(&market, job), 0);
    assert_int_equal(market_new_events(&market, EVENT_BOOKING_FORFEITED), 1);
    assert_int_equal(job->posted_micro, 0);
    const struct forgery without = {.kind = EVENT_BOOKING_FORFEITED, .skipped = 1};
    assert_true(is_refused(&market, &without));
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
    assert_int_equal(job->leases[0]->lock->slots[0].core_micro, 20000);
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
        cmocka_unit_test(a_part_of_a_late_fee_is_withheld_of_machines_that_are_not_proven),
        cmocka_unit_test(a_log_whose_late_fee_is_another_is_refused),
        cmocka_unit_test(a_late_cancel_that_nobody_kept_room_for_costs_nothing_and_says_so),
        cmocka_unit_test(a_booked_price_is_not_passed_when_prices_rise),
        cmocka_unit_test(who_finds_no_room_in_its_slot_waits_for_one_that_costs_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
