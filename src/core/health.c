#include "core/health.h"

#include "core/core_internal.h"

#include <stdlib.h>

enum { BASIS_POINTS = 10000, CREDIT_MICRO = 1000000 };

static bool is_member(const struct account *account)
{
    return account->id != ACCOUNT_MINT && account->id != ACCOUNT_OPERATOR && !account->deleted_ms;
}

static bool is_active(const struct core *core, const struct account *account)
{
    return is_member(account) &&
           core->time_ms - account->seen_ms <= HEALTH_ACTIVE_DAYS * CORE_DAY_MS;
}

static int compare_amounts(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static void count_members(const struct core *core, struct core_health *out)
{
    int64_t *spends = calloc(core->accounts.count + 1, sizeof(*spends));
    ASSERT(spends);
    size_t spend_count = 0;
    int64_t owned_micro = 0;
    for (size_t i = 0; i < core->accounts.count; i++) {
        const struct account *account = core->accounts.entries[i].value;
        const struct ledger_account *balance = core_balance(core, account->id);
        out->member_count += is_member(account);
        if (!is_active(core, account))
            continue;
        out->active_count++;
        out->poor_count += ledger_available_micro(balance) < CREDIT_MICRO;
        owned_micro += ledger_balance_micro(balance);
        const int64_t spent_micro =
            balance->spent_total_micro - account->spent_marks_micro[ACCOUNT_SPENT_WEEKS - 1];
        if (spent_micro > 0)
            spends[spend_count++] = spent_micro / ACCOUNT_SPENT_WEEKS;
    }
    if (spend_count > 0) {
        qsort(spends, spend_count, sizeof(*spends), compare_amounts);
        out->weekly_spend_micro = spends[spend_count / 2];
    }
    if (out->weekly_spend_micro > 0)
        out->weeks_of_spend_milli =
            (int64_t)((__int128)owned_micro / out->active_count * 1000 / out->weekly_spend_micro);
    free(spends);
}

/* What one lender lends of each resource. */
struct lender {
    int64_t lent_milli[PRICE_RESOURCE_COUNT];
};

static struct lender *find_lender(const struct core *core, struct map *lenders, uint64_t owner)
{
    const uint64_t id = core_borrower(core, owner);
    struct lender *lender = map_get(lenders, id);
    if (!lender) {
        lender = calloc(1, sizeof(*lender));
        ASSERT(lender);
        map_put(lenders, id, lender);
    }
    return lender;
}

static void count_machine(const struct machine *machine, struct lender *lender,
                          struct core_health *out)
{
    struct resources lent = {0};
    for (size_t i = 0; i < machine->offer_count; i++)
        if (machine->offers[i]->is_open)
            lent = resources_larger(lent, machine->offers[i]->terms.resources);
    const struct price_units lent_units = price_units(lent, machine_speed_milli(machine));
    const struct price_units leased_units =
        price_units(machine->leased, machine_speed_milli(machine));
    for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
        const int64_t lent_milli = price_units_get(&lent_units, r);
        lender->lent_milli[r] += lent_milli;
        out->resources[r].lent_milli += lent_milli;
        out->resources[r].leased_milli += price_units_get(&leased_units, r);
    }
}

static void count_lenders(const struct core *core, struct core_health *out)
{
    struct map lenders;
    map_init(&lenders);
    for (size_t i = 0; i < core->machines.count; i++) {
        const struct machine *machine = core->machines.entries[i].value;
        if (machine->state == MACHINE_STATE_ONLINE)
            count_machine(machine, find_lender(core, &lenders, machine->owner), out);
    }
    for (size_t i = 0; i < lenders.count; i++) {
        struct lender *lender = lenders.entries[i].value;
        for (enum price_resource r = 0; r < PRICE_RESOURCE_COUNT; r++) {
            struct core_health_resource *resource = &out->resources[r];
            const int64_t part = resource->lent_milli
                                     ? (int64_t)((__int128)lender->lent_milli[r] * BASIS_POINTS /
                                                 resource->lent_milli)
                                     : 0;
            if (part > resource->largest_lender_basis_points)
                resource->largest_lender_basis_points = part;
        }
        free(lender);
    }
    map_done(&lenders);
}

/* Neither jobs that wait for a time or for lower prices nor those that do not pay. */
static int64_t count_waiting(const struct core *core)
{
    int64_t count = 0;
    for (size_t i = 0; i < core->pending.count; i++) {
        const struct job *job = core->pending.items[i].value;
        if (job->start_ms == 0 && !job->is_short && !job->request.is_spare)
            count += job->request.num_nodes;
    }
    for (size_t i = 0; i < core->short_handed.count; i++) {
        const struct job *job = core->short_handed.items[i].value;
        for (size_t rank = job_lost_rank(job, 0); rank < job->worker_count;
             rank = job_lost_rank(job, rank + 1))
            count++;
    }
    return count;
}

void core_health(const struct core *core, struct core_health *out)
{
    *out = (struct core_health){.credits_micro = -core_balance(core, ACCOUNT_MINT)->granted_micro};
    count_members(core, out);
    count_lenders(core, out);
    out->waiting_machines = count_waiting(core);
    int64_t day_micro = 0;
    for (int i = 0; i < SLOT_PER_DAY; i++)
        day_micro += core_price_of_slot(core, core_price_slot(core) + i).core_micro;
    out->price_index_milli = day_micro * 1000 / SLOT_PER_DAY / price_cold_start().core_micro;
}
