/*
 * Out of credits: what can be done about it, with today's numbers. Lend; wait for a cheaper slot;
 * ask for fewer workers; and where lenders give it away, take spare time.
 */
#include "base/units.h"
#include "core/core_internal.h"

#include <inttypes.h>

#define HOUR_MS INT64_C(3600000)

/* What a machine earns an hour when all of it is leased, the operator's fee taken off. */
static int64_t earned_hourly_micro(const struct core *core, struct resources lent,
                                   int64_t speed_milli)
{
    const int64_t hourly_micro = price_hourly_micro(price_units(lent, speed_milli), core->price);
    return hourly_micro - price_part_micro(hourly_micro, core->settings.fee_basis_points);
}

/* The account's own machine that earns most; NULL: it has none that lends. */
static const struct machine *find_own(const struct core *core, uint64_t account,
                                      int64_t *out_hourly_micro)
{
    const struct machine *best = NULL;
    for (size_t i = 0; i < core->machine_list.count; i++) {
        const struct machine *machine = core->machine_list.items[i].value;
        if (machine->owner != account || machine->offer_count == 0)
            continue;
        const int64_t hourly_micro =
            earned_hourly_micro(core, machine_offered(machine), machine_speed_milli(machine));
        if (best && hourly_micro <= *out_hourly_micro)
            continue;
        best = machine;
        *out_hourly_micro = hourly_micro;
    }
    return best;
}

static void say_lend(const struct core *core, uint64_t account, int64_t missing_micro,
                     struct buffer *out)
{
    static const struct resources plain = {.cores_milli = 1000, .ram_bytes = INT64_C(1) << 30};
    char missing[UNITS_TEXT_SIZE], hourly[UNITS_TEXT_SIZE];
    int64_t hourly_micro = 0;
    const struct machine *own = find_own(core, account, &hourly_micro);
    if (!own)
        hourly_micro = earned_hourly_micro(core, plain, 1000);
    if (hourly_micro <= 0)
        return;
    const int64_t hours = (missing_micro + hourly_micro - 1) / hourly_micro;
    buffer_append_format(out,
                         "\n- lend %s%s%s for %" PRId64
                         " hours: leased in full at today's prices it earns %s an hour, and "
                         "%s are missing",
                         own ? "\"" : "a plain machine of one core and 1 GiB", own ? own->name : "",
                         own ? "\"" : "", hours, units_format_credits(hourly_micro, hourly),
                         units_format_credits(missing_micro, missing));
}

static void say_cheapest(const struct core *core, const struct job_request *request,
                         int64_t available_micro, struct buffer *out)
{
    const int64_t offset_ms = core->settings.slot_offset_ms;
    const int64_t first = slot_index(core->time_ms, offset_ms);
    int64_t best = first, best_micro = INT64_MAX, now_micro = 0;
    for (int64_t slot = first; slot < first + PRICE_LOCK_SLOTS; slot++) {
        const int64_t start_ms = slot == first ? core->time_ms : slot_start_ms(slot, offset_ms);
        if (request->deadline_ms > 0 && start_ms > request->deadline_ms)
            break;
        const struct match_wish wish = core_wish(core, request, 0, start_ms);
        const int64_t cost_micro = match_quote_wish(&wish).total_micro;
        now_micro = slot == first ? cost_micro : now_micro;
        if (cost_micro < best_micro) {
            best_micro = cost_micro;
            best = slot;
        }
    }
    char words[SLOT_TEXT_SIZE], cost[UNITS_TEXT_SIZE];
    const char *until = request->deadline_ms > 0 ? "before its deadline" : "within two days";
    if (best_micro >= now_micro) {
        buffer_append_format(out, "\n- no slot %s is cheaper than this one, %s", until,
                             units_format_credits(now_micro, cost));
        return;
    }
    buffer_append_format(out, "\n- the cheapest slot %s, %s, costs %s, which is %s", until,
                         slot_format(best, words), units_format_credits(best_micro, cost),
                         best_micro <= available_micro
                             ? "within what you have: \"start: cheapest before 2d\" under market"
                             : "still more than you have");
}

static void say_fewer(const struct core *core, const struct job_request *request,
                      int64_t available_micro, struct buffer *out)
{
    struct job_request fewer = *request;
    int64_t workers = 0;
    for (fewer.num_nodes = 1; fewer.num_nodes < request->num_nodes; fewer.num_nodes++) {
        const struct match_wish wish = core_wish(core, &fewer, 0, core->time_ms);
        if (match_quote_wish(&wish).total_micro > available_micro)
            break;
        workers = fewer.num_nodes;
    }
    char available[UNITS_TEXT_SIZE];
    units_format_credits(available_micro, available);
    if (workers > 0)
        buffer_append_format(out,
                             "\n- %s pay for %" PRId64 " worker%s on machines of the "
                             "reference speed: \"num_nodes: %" PRId64 "\"",
                             available, workers, workers > 1 ? "s" : "", workers);
    else
        buffer_append_format(out,
                             "\n- %s pay for no fewer workers either; a shorter max_run_time "
                             "costs less",
                             available);
}

static void say_spare(const struct core *core, const struct job_request *request,
                      struct buffer *out)
{
    size_t count = 0;
    for (size_t i = 0; i < core->offers.count; i++) {
        const struct offer *offer = core->offers.entries[i].value;
        count += offer->terms.is_spare && offer->listing_number != 0;
    }
    if (count == 0 || !core_may_have_spare(core, request->account))
        return;
    buffer_append_format(out,
                         "\n- %zu offer%s give%s unsold time away to members with less than 1 "
                         "credit: \"spare: true\" under market",
                         count, count > 1 ? "s" : "", count > 1 ? "" : "s");
}

/* What it would cost if the account had it: where it would be placed, else at its wish. */
static int64_t cost_micro(const struct core *core, const struct job_request *request)
{
    struct match_wish wish = core_wish(core, request, 0, core->time_ms);
    struct match_placement placement;
    wish.budget_micro = request->max_total_micro > 0 ? request->max_total_micro : PRICE_MICRO_MAX;
    return match_place(core->matcher, &wish, NULL, &placement) == MATCH_PLACED
               ? placement.quote_micro
               : match_quote_wish(&wish).total_micro;
}

void core_append_ways_out(const struct core *core, const struct job_request *request,
                          int64_t held_micro, struct buffer *out)
{
    const struct ledger_account *balance = core_balance(core, request->account);
    if (!balance || core->settings.economy == ECONOMY_KARMA)
        return;
    const int64_t available_micro = held_micro + ledger_holdable_micro(balance);
    const int64_t missing_micro = cost_micro(core, request) - available_micro;
    if (missing_micro <= 0)
        return;
    say_lend(core, request->account, missing_micro, out);
    say_cheapest(core, request, available_micro, out);
    say_fewer(core, request, available_micro, out);
    say_spare(core, request, out);
}
