/* Entries as JSON and as CSV, seen from one of their accounts. */
#include "ledger/ledger.h"
#include "server/view.h"

struct side {
    bool is_inside, is_out;
    int64_t amount_micro; /* signed */
    const char *direction;
};

static struct side side_of(const struct ledger_entry *entry, uint64_t account)
{
    const bool is_inside = entry->from_account == entry->to_account;
    const bool is_out = !is_inside && entry->from_account == account;
    return (struct side){
        .is_inside = is_inside,
        .is_out = is_out,
        .amount_micro = is_out ? -entry->amount_micro : entry->amount_micro,
        .direction = is_inside ? "inside"
                     : is_out  ? "out"
                               : "in",
    };
}

uint64_t view_entry_other(const struct statement_entry *shown, uint64_t account)
{
    const struct ledger_entry *entry = &shown->entry;
    return side_of(entry, account).is_out ? entry->to_account : entry->from_account;
}

/* Of what the account was paid: what it cannot spend yet. */
static int64_t withheld_micro(const struct ledger_entry *entry, uint64_t account)
{
    return entry->kind == LEDGER_ENTRY_POST && entry->to_account == account ? entry->withheld_micro
                                                                            : 0;
}

void view_entry(struct json_writer *writer, const struct view_entry *view)
{
    const struct ledger_entry *entry = &view->shown->entry;
    const struct side side = side_of(entry, view->account);
    json_object_begin(writer);
    json_field_u64(writer, "id", entry->sequence);
    json_keyed_i64(writer, JSON_KEY("at_ms"), view->shown->time_ms);
    json_field_string(writer, "kind", ledger_entry_kind_name(entry->kind));
    json_keyed_i64(writer, JSON_KEY("amount_microcredits"), side.amount_micro);
    json_field_string(writer, "direction", side.direction);
    json_field_u64(writer, "job", entry->job);
    json_keyed_text(writer, JSON_KEY("job_name"), view->job_name);
    json_field_u64(writer, "lease", entry->lease);
    json_field_u64(writer, "machine", view->machine);
    json_keyed_text(writer, JSON_KEY("machine_name"), view->machine_name);
    json_field_u64(writer, "other_account", view_entry_other(view->shown, view->account));
    json_keyed_text(writer, JSON_KEY("other_account_name"), view->other_name);
    json_keyed_i64(writer, JSON_KEY("withheld_microcredits"), withheld_micro(entry, view->account));
    json_field_string(writer, "memo", entry->memo);
    json_object_end(writer);
}

struct entry_csv view_entry_csv(const struct view_entry *view)
{
    const struct ledger_entry *entry = &view->shown->entry;
    const struct side side = side_of(entry, view->account);
    return (struct entry_csv){
        .id = entry->sequence,
        .at_ms = view->shown->time_ms,
        .kind = text_of(ledger_entry_kind_name(entry->kind)),
        .amount_micro = side.amount_micro,
        .direction = text_of(side.direction),
        .job = entry->job,
        .job_name = view->job_name,
        .lease = entry->lease,
        .machine = view->machine,
        .machine_name = view->machine_name,
        .other_account = view_entry_other(view->shown, view->account),
        .other_account_name = view->other_name,
        .withheld_micro = withheld_micro(entry, view->account),
        .memo = text_of(entry->memo),
    };
}
