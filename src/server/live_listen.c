/* What is told of the events that were committed, and of machines by themselves: made on the core
 * thread and the hub's, sent on the main one. */
#include "base/assert.h"
#include "base/log.h"
#include "server/hub.h"
#include "server/live_internal.h"
#include "server/profiles.h"

#include <stdlib.h>

enum { EVENT_SIZE_MAX = 8192 };

/* A committed event on its way to the main thread. */
struct message {
    struct message *next;
    struct live *live;
    uint64_t job;
    uint64_t account;
    uint64_t lender;
    const char *name;
    bool is_final;       /* the job's last */
    uint64_t revoked;    /* not 0: nothing to tell, this token's streams end */
    uint64_t closed;     /* not 0: nothing to tell, this account is no more */
    uint64_t lease_over; /* the job that a lease of has ended; 0: none */
    struct buffer data;
};

static void deliver(void *context)
{
    struct message *message = context;
    while (message) {
        struct live *live = message->live;
        if (message->revoked)
            live_end_token_streams(live, message->revoked);
        else if (message->closed)
            profiles_forget(live->server, message->closed);
        else
            live_send(live, &(struct live_event){.job = message->job,
                                                 .account = message->account,
                                                 .lender = message->lender,
                                                 .name = message->name,
                                                 .data = buffer_text(&message->data)});
        if (message->lease_over)
            live_lease_ended(live, message->lease_over);
        if (message->is_final) {
            live_finish(live, message->job);
            live_end_job_streams(live, message->job);
        }
        struct message *next = message->next;
        buffer_done(&message->data);
        free(message);
        message = next;
    }
}

static struct message *message_new(struct live *live, const struct core *core, uint64_t job,
                                   const char *name)
{
    struct message *message = calloc(1, sizeof(*message));
    ASSERT(message);
    const struct job *found = job ? core_job(core, job) : NULL;
    message->live = live;
    message->job = job;
    message->account = found ? found->request.account : 0;
    message->name = name;
    buffer_init(&message->data, EVENT_SIZE_MAX);
    return message;
}

struct state_event {
    uint64_t job, lease, machine;
    const char *state;
    const char *reason;
    int64_t at_ms;
};

static void write_state(struct buffer *out, const struct state_event *event)
{
    struct json_writer writer;
    json_writer_init(&writer, out);
    json_object_begin(&writer);
    json_field_u64(&writer, "job", event->job);
    json_field_u64(&writer, "lease", event->lease);
    json_field_u64(&writer, "machine", event->machine);
    json_field_string(&writer, "state", event->state);
    json_field_string(&writer, "reason", event->reason);
    json_field_i64(&writer, "at_ms", event->at_ms);
    json_object_end(&writer);
}

static struct message *state_message(struct live *live, const struct core *core,
                                     const struct state_event *event)
{
    struct message *message = message_new(live, core, event->job, "state");
    write_state(&message->data, event);
    return message;
}

int live_stream_end(struct http_request *request, const struct live_end *end, struct error *error)
{
    struct buffer data AUTO_BUFFER;
    buffer_init(&data, EVENT_SIZE_MAX);
    write_state(&data, &(struct state_event){.job = end->job,
                                             .state = end->state,
                                             .reason = end->reason,
                                             .at_ms = end->at_ms});
    struct http_stream *http;
    if (http_stream_open(request, NULL, NULL, &http, error) < 0)
        return -1;
    struct error lost;
    if (http_stream_send(http, TEXT("1"), TEXT("state"), buffer_text(&data), &lost) < 0)
        log_event(LOG_DEBUG, "stream_dropped", "error=\"%s\"", lost.message);
    http_stream_free(http);
    return 0;
}

static struct message *bill_message(struct live *live, const struct core *core,
                                    const struct event *event)
{
    const uint64_t id = event->lease_ticked.job;
    const struct job *job = core_job(core, id);
    struct message *message = message_new(live, core, id, "bill");
    struct json_writer writer;
    json_writer_init(&writer, &message->data);
    json_object_begin(&writer);
    json_field_u64(&writer, "job", id);
    json_field_u64(&writer, "lease", event->lease_ticked.lease);
    json_field_i64(&writer, "at_ms", event->time_ms);
    json_field_i64(&writer, "amount_microcredits", event->lease_ticked.amount_micro);
    json_field_i64(&writer, "spent_microcredits", job ? job->posted_micro : 0);
    json_field_i64(&writer, "held_microcredits", core_held_micro(core, id));
    json_object_end(&writer);
    return message;
}

static struct message *lease_message(struct live *live, const struct core *core, uint64_t id,
                                     const struct event *event)
{
    const struct lease *lease = core_lease(core, id);
    if (!lease)
        return NULL;
    const struct machine *machine = core_machine(core, lease->machine);
    struct message *message =
        state_message(live, core,
                      &(struct state_event){.job = lease->job,
                                            .lease = id,
                                            .machine = lease->machine,
                                            .state = lease_state_name(lease->state),
                                            .reason = lease_reason(lease),
                                            .at_ms = event->time_ms});
    message->lender = machine ? machine->owner : 0;
    return message;
}

/* The lender hears of a tick by its pay. Of one that pays nothing it is told that it was, for what
 * the lease uses. */
static struct message *tick_messages(struct live *live, const struct core *core,
                                     const struct event *event)
{
    struct message *first = bill_message(live, core, event);
    if (event->lease_ticked.amount_micro > event->lease_ticked.fee_micro)
        return first;
    first->next = lease_message(live, core, event->lease_ticked.lease, event);
    if (first->next) {
        first->next->job = 0; /* nothing changed for the borrower */
        first->next->account = first->next->lender;
    }
    return first;
}

static struct message *machine_message(struct live *live, const struct core *core, uint64_t id,
                                       const struct event *event)
{
    const struct machine *machine = core_machine(core, id);
    if (!machine)
        return NULL;
    return state_message(live, core,
                         &(struct state_event){.machine = id,
                                               .state = machine_state_name(machine->state),
                                               .reason = "",
                                               .at_ms = event->time_ms});
}

/* Whether it is something else to others than before. */
static bool note_yield(struct live *live, uint64_t machine, enum machine_yield yield)
{
    const bool is_paused = machine_yield_for_others(yield) == MACHINE_YIELD_PAUSED;
    if (is_paused == (map_get(&live->paused, machine) != NULL))
        return false;
    if (is_paused)
        map_put(&live->paused, machine, live);
    else
        map_remove(&live->paused, machine);
    return true;
}

void live_begin(struct live *live, const struct core *core)
{
    for (size_t i = 0; i < core_machine_count(core); i++) {
        const struct machine *machine = core_machine_at(core, i);
        note_yield(live, machine->id, machine->yield);
    }
}

/* Who works at a machine is told to its owner, and to the jobs whose leases get less; to everyone
 * only what everyone sees. */
static struct message *yield_messages(struct live *live, const struct core *core,
                                      const struct event *event)
{
    const struct machine *machine = core_machine(core, event->machine_yielded.machine);
    struct message *first = machine ? machine_message(live, core, machine->id, event) : NULL;
    if (!first)
        return NULL;
    if (!note_yield(live, machine->id, event->machine_yielded.yield))
        first->account = machine->owner;
    struct message *last = first;
    for (size_t i = 0; i < machine->lease_count; i++) {
        last->next = lease_message(live, core, machine->leases[i]->id, event);
        if (last->next)
            last = last->next;
    }
    return first;
}

static struct message *job_message(struct live *live, const struct core *core,
                                   const struct event *event)
{
    const enum job_state state = event->job_state_changed.state;
    struct message *message =
        state_message(live, core,
                      &(struct state_event){.job = event->job_state_changed.job,
                                            .state = job_state_name(state),
                                            .reason = event->job_state_changed.reason,
                                            .at_ms = event->time_ms});
    message->is_final = job_state_is_final(state);
    return message;
}

/* A job that is in the state it was in, but not as it was. */
static struct message *changed_message(struct live *live, const struct core *core, uint64_t id,
                                       const struct event *event)
{
    const struct job *job = core_job(core, id);
    if (!job)
        return NULL;
    return state_message(live, core,
                         &(struct state_event){.job = id,
                                               .state = job_state_name(job->state),
                                               .reason = job->reason,
                                               .at_ms = event->time_ms});
}

/* A pending job that could start, and costs more than there is for it. */
static struct message *short_message(struct live *live, const struct core *core,
                                     const struct event *event)
{
    const struct job *job = core_job(core, event->job_waits.job);
    if (!job || !event->job_waits.is_short)
        return NULL;
    struct buffer words AUTO_BUFFER;
    buffer_init(&words, EVENT_SIZE_MAX / 2);
    core_explain(core, job, &words);
    return state_message(live, core,
                         &(struct state_event){.job = job->id,
                                               .state = job_state_name(job->state),
                                               .reason = buffer_string(&words),
                                               .at_ms = event->time_ms});
}

/* To an account, of itself. */
struct account_event {
    uint64_t account;
    const char *change;
    int64_t amount_micro; /* signed: what it gained or lost */
    uint64_t lease;       /* 0: of none */
    int64_t at_ms;
};

static struct message *account_message(struct live *live, const struct core *core,
                                       const struct account_event *event)
{
    struct message *message = message_new(live, core, 0, "account");
    struct json_writer writer;
    message->account = event->account;
    json_writer_init(&writer, &message->data);
    json_object_begin(&writer);
    json_field_string(&writer, "change", event->change);
    json_field_i64(&writer, "amount_microcredits", event->amount_micro);
    json_field_u64(&writer, "lease", event->lease);
    json_field_i64(&writer, "at_ms", event->at_ms);
    json_object_end(&writer);
    return message;
}

/* Credits that came or went. What a job sets aside, pays and gets back its `state` and `bill` tell.
 */
static struct message *entry_messages(struct live *live, const struct core *core,
                                      const struct event *event)
{
    const struct ledger_entry *entry = &event->entry_posted;
    const bool is_of_a_job = entry->kind == LEDGER_ENTRY_HOLD || entry->kind == LEDGER_ENTRY_VOID ||
                             entry->kind == LEDGER_ENTRY_FEE;
    if (is_of_a_job)
        return NULL;
    struct account_event told = {.account = entry->to_account,
                                 .change = ledger_entry_kind_name(entry->kind),
                                 .amount_micro = entry->amount_micro,
                                 .lease = entry->lease,
                                 .at_ms = event->time_ms};
    struct message *first = account_message(live, core, &told);
    if (entry->kind == LEDGER_ENTRY_POST || entry->from_account == entry->to_account)
        return first;
    told.account = entry->from_account;
    told.amount_micro = -entry->amount_micro;
    first->next = account_message(live, core, &told);
    return first;
}

/* To the account itself and to the group's owner, who may have it on the screen. */
static struct message *group_messages(struct live *live, const struct core *core, uint64_t id,
                                      uint64_t account, int64_t at_ms)
{
    const struct group *group = core_group(core, id);
    const uint64_t owner = group ? group->owner : 0;
    struct account_event told = {.account = account, .change = "group", .at_ms = at_ms};
    struct message *first = account_message(live, core, &told);
    if (!owner || owner == account)
        return first;
    told.account = owner;
    first->next = account_message(live, core, &told);
    return first;
}

static struct message *frozen_message(struct live *live, const struct core *core, uint64_t account,
                                      const char *change, int64_t at_ms)
{
    return account_message(
        live, core, &(struct account_event){.account = account, .change = change, .at_ms = at_ms});
}

static struct message *revoked_message(struct live *live, const struct core *core,
                                       const struct event *event)
{
    struct message *message = message_new(live, core, 0, "");
    message->revoked = event->token_revoked.token;
    return message;
}

static struct message *closed_message(struct live *live, const struct core *core,
                                      const struct event *event)
{
    struct message *message = message_new(live, core, 0, "");
    message->closed = event->account_deleted.account;
    return message;
}

static struct message *ended_message(struct live *live, const struct core *core,
                                     const struct event *event)
{
    struct message *message = lease_message(live, core, event->lease_ended.lease, event);
    if (message)
        message->lease_over = message->job;
    return message;
}

/* What is told of an event, one after the other. */
static struct message *messages_of(struct live *live, const struct core *core,
                                   const struct event *event)
{
    switch (event->kind) {
    case EVENT_JOB_STATE_CHANGED:
        return job_message(live, core, event);
    case EVENT_JOB_SUBMITTED:
        return state_message(live, core,
                             &(struct state_event){.job = event->job_submitted.job,
                                                   .state = job_state_name(JOB_STATE_PENDING),
                                                   .reason = "",
                                                   .at_ms = event->time_ms});
    case EVENT_JOB_WAITS:
        return short_message(live, core, event);
    case EVENT_JOB_DUE:
        return changed_message(live, core, event->job_due.job, event);
    case EVENT_JOB_NOTED:
        return changed_message(live, core, event->job_noted.job, event);
    case EVENT_JOB_EXTENDED:
        return changed_message(live, core, event->job_extended.job, event);
    case EVENT_JOB_RESIZED:
        return changed_message(live, core, event->job_resized.job, event);
    case EVENT_LEASE_EXTENDED:
        return lease_message(live, core, event->lease_extended.lease, event);
    case EVENT_LEASE_RENEWED:
        return lease_message(live, core, event->lease_renewed.lease, event);
    case EVENT_LEASE_OFFERED:
        return lease_message(live, core, event->lease_offered.lease, event);
    case EVENT_LEASE_STARTED:
        return lease_message(live, core, event->lease_started.lease, event);
    case EVENT_LEASE_ENDED:
        return ended_message(live, core, event);
    case EVENT_LEASE_PROMOTED:
        return lease_message(live, core, event->lease_promoted.lease, event);
    case EVENT_LEASE_TICKED:
        return tick_messages(live, core, event);
    case EVENT_MACHINE_ENROLLED:
        return machine_message(live, core, event->machine_enrolled.machine, event);
    case EVENT_MACHINE_STATE_CHANGED:
        return machine_message(live, core, event->machine_state_changed.machine, event);
    case EVENT_MACHINE_YIELDED:
        return yield_messages(live, core, event);
    case EVENT_MACHINE_PROVEN:
        return machine_message(live, core, event->machine_proven.machine, event);
    case EVENT_OFFER_SET:
        return machine_message(live, core, event->offer_set.machine, event);
    case EVENT_OFFER_PAUSED:
        return machine_message(live, core, event->offer_paused.machine, event);
    case EVENT_OFFER_RENEWED:
        return machine_message(live, core, event->offer_renewed.machine, event);
    case EVENT_OFFER_TURNED:
        return machine_message(live, core, event->offer_turned.machine, event);
    case EVENT_OFFER_WITHDRAWN:
        return machine_message(live, core, event->offer_withdrawn.machine, event);
    case EVENT_TOKEN_REVOKED:
        return revoked_message(live, core, event);
    case EVENT_ENTRY_POSTED:
        return entry_messages(live, core, event);
    case EVENT_ACCOUNT_FROZEN:
        return frozen_message(live, core, event->account_frozen.account, "frozen", event->time_ms);
    case EVENT_ACCOUNT_UNFROZEN:
        return frozen_message(live, core, event->account_unfrozen.account, "unfrozen",
                              event->time_ms);
    case EVENT_GROUP_JOINED:
        return group_messages(live, core, event->group_joined.group, event->group_joined.account,
                              event->time_ms);
    case EVENT_GROUP_LEFT:
        return group_messages(live, core, event->group_left.group, event->group_left.account,
                              event->time_ms);
    case EVENT_ACCOUNT_DELETED:
        return closed_message(live, core, event);
    case EVENT_SETTINGS_CHANGED: /* nobody follows these */
    case EVENT_ACCOUNT_OPENED:
    case EVENT_ACCOUNT_SEEN:
    case EVENT_KARMA_SHARED:
    case EVENT_DAY_BEGAN:
    case EVENT_RULES_CHANGED:
    case EVENT_COST_BILLED: /* its entries say it */
    case EVENT_DORMANCY_ADVANCED:
    case EVENT_GRANT_GIVEN:
    case EVENT_GRANT_RELEASED:
    case EVENT_GROUP_CREATED:
    case EVENT_PASSWORD_SET:
    case EVENT_TOKEN_ADDED:
    case EVENT_CODE_ADDED:
    case EVENT_CODE_REMOVED:
    case EVENT_MACHINE_PROBED:
    case EVENT_PAIR_MEASURED:
    case EVENT_LEASE_STOP_WANTED:
    case EVENT_BOOKING_FORFEITED: /* the job's end, which follows, says it */
    case EVENT_SLOT_CLOSED:
    case EVENT_KIND_COUNT:
        return NULL;
    }
    return NULL;
}

void live_listen(void *context, const struct core *core, const struct event *events,
                 size_t event_count)
{
    struct live *live = context;
    struct message *first = NULL, **end = &first;
    for (size_t i = 0; i < event_count; i++) {
        *end = messages_of(live, core, &events[i]);
        while (*end)
            end = &(*end)->next;
    }
    if (first)
        loop_post(live->server->loop, deliver, first);
}

void live_heartbeat(struct live *live, const struct live_heartbeat *heartbeat)
{
    if (!live_is_followed(live, heartbeat->account))
        return;
    struct message *message = message_new(live, NULL, 0, "heartbeat");
    message->account = heartbeat->account;
    struct json_writer writer;
    json_writer_init(&writer, &message->data);
    json_object_begin(&writer);
    json_field_u64(&writer, "machine", heartbeat->machine);
    json_field_i64(&writer, "paused_until_ms", heartbeat->paused_until_ms);
    hub_live_write(&writer, heartbeat->live);
    json_object_end(&writer);
    loop_post(live->server->loop, deliver, message);
}
