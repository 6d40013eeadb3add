/*
 * How each kind of event changes the state.
 *
 * Each function checks the event against the state first, because a replayed log is data from
 * outside: what does not follow from the state is CORRUPT and changes nothing.
 */
#include "core/core_internal.h"

#include <inttypes.h>
#include <string.h>

void apply_say_misfit(const struct event *event, const char *what, struct error *error)
{
    (void)error_set(error, ERROR_CORRUPT, "event %" PRIu64 " (%s): %s", event->sequence,
                    event_kind_name(event->kind), what);
}

/* A check of what the event carries, with the event named in the message. */
int apply_unfit(const struct event *event, struct error *error)
{
    error->code = ERROR_CORRUPT;
    return error_wrap(error, "event %" PRIu64 " (%s)", event->sequence,
                      event_kind_name(event->kind));
}

bool apply_is_next_id(const struct core *core, uint64_t id)
{
    return id == core->last_id + 1;
}

static bool entries_equal(const struct ledger_entry *left, const struct ledger_entry *right)
{
    return left->sequence == right->sequence && left->kind == right->kind &&
           left->from_account == right->from_account && left->to_account == right->to_account &&
           left->amount_micro == right->amount_micro &&
           left->granted_micro == right->granted_micro &&
           left->withheld_micro == right->withheld_micro && left->job == right->job &&
           left->lease == right->lease;
}

/* Only an event before it says that somebody is paid, credits are made or withheld ones released.
 */
static bool needs_cause(const struct core *core, const struct ledger_entry *entry)
{
    switch (entry->kind) {
    case LEDGER_ENTRY_GRANT:
        return core->settings.economy != ECONOMY_KARMA; /* an hour's dues come before its event */
    case LEDGER_ENTRY_POST:
    case LEDGER_ENTRY_FEE:
    case LEDGER_ENTRY_RELEASE:
    case LEDGER_ENTRY_REFUND:
    case LEDGER_ENTRY_FUND:
    case LEDGER_ENTRY_COST:
        return true;
    case LEDGER_ENTRY_HOLD:
    case LEDGER_ENTRY_VOID:
    case LEDGER_ENTRY_TRANSFER:
    case LEDGER_ENTRY_RECLAIM:
    case LEDGER_ENTRY_KIND_COUNT:
        break;
    }
    return false;
}

static int take_due(struct core *core, const struct event *event, struct error *error)
{
    struct ledger_plan *due = &core->due;
    if (due->entry_count == 0)
        return needs_cause(core, &event->entry_posted)
                   ? apply_misfit(event, "nothing that happened calls for it", error)
                   : 0;
    if (!entries_equal(&event->entry_posted, &due->entries[0]))
        return apply_misfit(event, "it is not what the event before it comes to", error);
    due->entry_count--;
    memmove(due->entries, due->entries + 1, due->entry_count * sizeof(*due->entries));
    return 0;
}

static void add_to_sums(struct job_sums *sums, const struct ledger_entry *entry)
{
    sums->held_micro += entry->kind == LEDGER_ENTRY_HOLD ? entry->amount_micro : 0;
    sums->posted_micro += entry->kind == LEDGER_ENTRY_POST ? entry->amount_micro : 0;
    sums->fee_micro += entry->kind == LEDGER_ENTRY_FEE ? entry->amount_micro : 0;
    sums->voided_micro += entry->kind == LEDGER_ENTRY_VOID ? entry->amount_micro : 0;
}

int apply_entry_posted(struct core *core, const struct event *event, struct error *error)
{
    if (take_due(core, event, error) < 0)
        return -1;
    if (ledger_commit(core->ledger, &event->entry_posted, error) < 0)
        return apply_unfit(event, error);
    const struct ledger_entry *entry = &event->entry_posted;
    const bool is_paid = entry->kind == LEDGER_ENTRY_POST || entry->kind == LEDGER_ENTRY_FEE;
    struct job *job = entry->job ? map_get(&core->jobs, entry->job) : NULL;
    if (job)
        add_to_sums(&job->sums, entry);
    /* What leases are paid is in their ticks; this is for a job that never had any. */
    if (job && is_paid && entry->lease == 0) {
        job->posted_micro += entry->amount_micro;
        job->cancel_fee_micro += entry->amount_micro;
    }
    return 0;
}

int apply_find_account(const struct core *core, const struct event *event, uint64_t id,
                       struct account **out_account, struct error *error)
{
    struct account *account = map_get(&core->accounts, id);
    if (!account || account->deleted_ms || id == ACCOUNT_MINT)
        return apply_misfit(event, "there is no such account", error);
    *out_account = account;
    return 0;
}

int core_apply(struct core *core, const struct event *event, struct error *error)
{
    if (event->kind >= EVENT_KIND_COUNT)
        return error_set(error, ERROR_CORRUPT, "event %" PRIu64 " is of an unknown kind",
                         event->sequence);
    if (event->sequence != core->sequence + 1 || event->time_ms < core->time_ms ||
        event->time_ms <= 0)
        return apply_misfit(event, "it does not follow the last one", error);
    if (core->sequence > 0 && event->kind != EVENT_SLOT_CLOSED &&
        event->time_ms >= core_slot_end_ms(core))
        return apply_misfit(event, "a slot ended before it", error);
    if (core->due.entry_count > 0 && event->kind != EVENT_ENTRY_POSTED)
        return apply_misfit(event, "an entry that the last one calls for is missing", error);
    if (event_apply_function(event->kind)(core, event, error) < 0)
        return -1;
    if (core->sequence == 0)
        core_prices_begin(core, event->time_ms);
    core->sequence = event->sequence;
    core->time_ms = event->time_ms;
    return 0;
}