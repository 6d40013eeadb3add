/*
 * Bills: what ticks come to, and that a log with any other bill is refused.
 * covers apply_lease.c
 */
#include "core/testing_internal.h"

static void set_fee(struct market *market, int64_t basis_points)
{
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = *core_settings(market->core)};
    change.change_settings.fee_basis_points = basis_points;
    market_do(market, &change);
}

static const struct lease *run_first(struct market *market)
{
    const struct lease *lease = market_submit(market)->leases[1];
    market_run_lease(market, lease);
    return lease;
}

/* One after another, each of that length. */
static void tick_all(struct market *market, const struct lease *lease, int64_t tick_ms,
                     uint64_t count)
{
    for (uint64_t i = 1; i <= count; i++) {
        market->now_ms += tick_ms;
        const struct command tick =
            market_tick(lease, lease->tick_index + 1, lease->wall_ms + tick_ms);
        market_do(market, &tick);
    }
}

TEST(many_small_ticks_cost_the_fee_of_one)
{
    struct market market;
    market_init_demo(&market);
    set_fee(&market, 500);
    const struct lease *lease = run_first(&market);
    tick_all(&market, lease, 1000, 180);
    assert_int_equal(lease->posted_micro, 1025);
    assert_int_equal(lease->fee_micro, 51); /* floor of 51.25; tick by tick it would be 0 */
    assert_int_equal(core_balance(market.core, market.lender)->earned_total_micro, 974);
    assert_int_equal(core_balance(market.core, ACCOUNT_OPERATOR)->earned_total_micro, 51);
    market_done(&market);
}

TEST(a_lease_keeps_the_fee_it_was_made_with)
{
    struct market market;
    market_init_demo(&market);
    set_fee(&market, 500);
    const struct lease *lease = run_first(&market);
    tick_all(&market, lease, 90000, 1);
    set_fee(&market, 0);
    tick_all(&market, lease, 90000, 1);
    assert_int_equal(lease->fee_micro, 51);
    market_done(&market);
}

/* ---- Logs that say something else ------------------------------------------------------------ */

typedef void tamper(struct event *event);

/* Replays all events, the last of a kind tampered with: that one, and no other, is refused. */
static void assert_refused(const struct market *market, enum event_kind kind, tamper *function,
                           const char *why)
{
    struct error error = {0};
    AUTO(core) struct core *replayed = core_new();
    size_t last = market->events.count;
    while (last > 0 && market->events.items[last - 1].kind != kind)
        last--;
    assert_true(last > 0);
    for (size_t i = 0; i < last - 1; i++)
        ASSERT_OK(core_apply(replayed, &market->events.items[i], &error));
    struct event event = market->events.items[last - 1];
    function(&event);
    ASSERT_FAILS(core_apply(replayed, &event, &error), ERROR_CORRUPT);
    if (!strstr(error.message, why))
        fail_msg("%s", error.message);
    ASSERT_OK(core_apply(replayed, &market->events.items[last - 1], &error));
}

static void bill_more(struct event *event)
{
    event->lease_ticked.bill_micro++;
    event->lease_ticked.amount_micro++;
}

static void run_longer(struct event *event)
{
    event->lease_ticked.wall_ms += 60000;
}

static void raise_fee(struct event *event)
{
    event->lease_ticked.fee_micro++;
}

static void pay_another(struct event *event)
{
    event->entry_posted.to_account = ACCOUNT_OPERATOR;
}

static void pay_less(struct event *event)
{
    event->entry_posted.amount_micro--;
}

static void spare_granted(struct event *event)
{
    event->entry_posted.granted_micro = 0;
}

static void raise_price(struct event *event)
{
    event->lease_offered.lock.slots[0].core_micro++;
}

static void raise_quote(struct event *event)
{
    event->lease_offered.quote_micro++;
}

static void weigh_faster(struct event *event)
{
    event->lease_offered.units.core_milli *= 2;
}

static void pay_stranger(struct event *event)
{
    event->lease_offered.payee = ACCOUNT_OPERATOR;
}

TEST(a_log_with_another_bill_is_refused)
{
    struct market market;
    market_init_demo(&market);
    const struct lease *lease = run_first(&market);
    tick_all(&market, lease, 30000, 3);
    assert_refused(&market, EVENT_LEASE_TICKED, bill_more, "the bill is not");
    assert_refused(&market, EVENT_LEASE_TICKED, run_longer, "not a later one");
    assert_refused(&market, EVENT_LEASE_TICKED, raise_fee, "the bill is not");
    assert_refused(&market, EVENT_ENTRY_POSTED, pay_another, "not what the event before");
    assert_refused(&market, EVENT_ENTRY_POSTED, pay_less, "not what the event before");
    assert_refused(&market, EVENT_ENTRY_POSTED, spare_granted, "not what the event before");
    market_done(&market);
}

TEST(a_log_with_another_price_or_payee_of_a_lease_is_refused)
{
    struct market market;
    market_init_demo(&market);
    market_submit(&market);
    assert_refused(&market, EVENT_LEASE_OFFERED, raise_price, "its price does not follow");
    assert_refused(&market, EVENT_LEASE_OFFERED, raise_quote, "its price does not follow");
    assert_refused(&market, EVENT_LEASE_OFFERED, weigh_faster, "its price does not follow");
    assert_refused(&market, EVENT_LEASE_OFFERED, pay_stranger, "payee");
    market_done(&market);
}

TEST(a_log_without_the_entry_of_a_tick_is_refused)
{
    struct market market;
    struct error error = {0};
    market_init_demo(&market);
    const struct lease *lease = run_first(&market);
    tick_all(&market, lease, 30000, 1);
    const struct event *posted = &market.events.items[market.events.count - 1];
    assert_int_equal(posted->kind, EVENT_ENTRY_POSTED);
    AUTO(core) struct core *replayed = core_new();
    for (size_t i = 0; i < market.events.count - 1; i++)
        ASSERT_OK(core_apply(replayed, &market.events.items[i], &error));
    const struct event seen = {.kind = EVENT_ACCOUNT_SEEN,
                               .sequence = posted->sequence,
                               .time_ms = posted->time_ms,
                               .account_seen = {market.borrower}};
    ASSERT_FAILS(core_apply(replayed, &seen, &error), ERROR_CORRUPT);
    ASSERT_OK(core_apply(replayed, posted, &error));
    market_done(&market);
}

TEST(credits_out_of_nothing_are_refused)
{
    struct market market;
    struct error error = {0};
    market_init(&market);
    const struct event forged = {.kind = EVENT_ENTRY_POSTED,
                                 .sequence = core_sequence(market.core) + 1,
                                 .time_ms = market.now_ms,
                                 .entry_posted = {.sequence = 3,
                                                  .kind = LEDGER_ENTRY_GRANT,
                                                  .from_account = ACCOUNT_MINT,
                                                  .to_account = market.borrower,
                                                  .amount_micro = 1000,
                                                  .granted_micro = 1000}};
    ASSERT_FAILS(core_apply(market.core, &forged, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.message, "nothing that happened calls for it"));
    market_done(&market);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_small_ticks_cost_the_fee_of_one),
        cmocka_unit_test(a_lease_keeps_the_fee_it_was_made_with),
        cmocka_unit_test(a_log_with_another_bill_is_refused),
        cmocka_unit_test(a_log_with_another_price_or_payee_of_a_lease_is_refused),
        cmocka_unit_test(a_log_without_the_entry_of_a_tick_is_refused),
        cmocka_unit_test(credits_out_of_nothing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
