/* Quotes, and why a job is where it is, in words. */
#include "core/match_rounds.h"

#include <inttypes.h>

int64_t core_budget_micro(const struct core *core, const struct job_request *request,
                          int64_t held_micro)
{
    int64_t budget_micro = PRICE_MICRO_MAX;
    const struct ledger_account *account = ledger_account(core->ledger, request->account);
    if (account)
        budget_micro = held_micro + ledger_holdable_micro(account);
    if (request->max_total_micro > 0 && request->max_total_micro < budget_micro)
        budget_micro = request->max_total_micro;
    return budget_micro;
}

struct match_wish core_wish(const struct core *core, const struct job_request *request,
                            int64_t held_micro, int64_t now_ms)
{
    const struct account *account = core_account(core, request->account);
    struct match_wish wish = {
        .request = request,
        .group = account ? account->group : 0,
        .now_ms = now_ms,
        .lock =
            core_price_lock(core, now_ms, now_ms + core->settings.start_ms + request->max_run_ms),
        .latest_start_ms = now_ms + core->settings.start_ms,
        .latest_end_ms =
            now_ms + core->settings.start_ms + request->max_run_ms + core->settings.grace_ms,
        .budget_micro = core_budget_micro(core, request, held_micro),
    };
    wish.lock.rush_ms = request->is_rush ? CORE_RUSH_MS : 0;
    if (request->is_spare)
        wish.lock = price_lock_flat((struct price_vector){0});
    return wish;
}

static size_t count_server_machines(const struct job_request *request,
                                    const struct match_placement *placement)
{
    size_t count = 0;
    for (size_t i = 0; i < job_request_servers(request); i++) {
        bool is_new = true;
        for (size_t k = 0; k < i; k++)
            is_new = is_new && placement->parts[k].machine != placement->parts[i].machine;
        count += is_new;
    }
    return count;
}

/* Whether there is a place for a replica of such a lead. */
static bool has_replica_room(const struct core *core, const struct match_wish *wish,
                             uint64_t lead_machine)
{
    struct job_request alone = *wish->request;
    struct match_wish apart = *wish;
    struct match_placement ignored = {0};
    alone.num_nodes = alone.num_nodes_max = alone.workers_first = alone.server_count = 0;
    alone.has_replica = false;
    apart.request = &alone;
    apart.apart_from = lead_machine;
    return match_place_server(core->matcher, &apart, NULL, &ignored) == MATCH_PLACED;
}

int core_quote(const struct core *core, const struct job_request *request,
               struct core_quote *out_quote, struct error *error)
{
    if (job_request_check(request, error) < 0)
        return -1;
    if (request->account != 0 && !core_account(core, request->account))
        return error_set(error, ERROR_NOT_FOUND, "account %" PRIu64 " does not exist",
                         request->account);
    const struct match_wish wish = core_wish(core, request, 0, core->time_ms);
    struct match_placement placement = {0};
    struct core_quote quote = {.wish = match_quote_wish(&wish)};
    quote.result = match_place(core->matcher, &wish, NULL, &placement);
    quote.placed = (struct match_quote){placement.quote_micro, placement.hourly_micro};
    if (quote.result == MATCH_PLACED) {
        const struct match_quote replica = match_quote_replica(&wish);
        quote.placed.total_micro = price_add_micro(quote.placed.total_micro, replica.total_micro);
        quote.placed.hourly_micro =
            price_add_micro(quote.placed.hourly_micro, replica.hourly_micro);
        quote.server_machines = count_server_machines(request, &placement);
        quote.has_replica_room =
            !request->has_replica || has_replica_room(core, &wish, placement.parts[0].machine->id);
    }
    *out_quote = quote;
    return 0;
}

static bool suits(const struct match_wish *wish, const struct machine *machine)
{
    for (size_t i = 0; i < machine->offer_count; i++)
        if (wish_suits(wish, MACHINE_ROLE_WORKER, machine->offers[i]))
            return true;
    return false;
}

struct core_suiting core_count_suiting(const struct core *core, const struct job_request *request,
                                       struct text label)
{
    struct job_request labelled = *request;
    char *words = labelled.wishes.labels;
    const size_t size = strlen(words), room = sizeof(labelled.wishes.labels) - size;
    struct core_suiting suiting = {0};
    if (label.size + 2 > room)
        return suiting; /* nothing can be said */
    snprintf(words + size, room, "%s" TEXT_FORMAT, size > 0 ? "," : "", TEXT_ARGS(label));
    const struct match_wish any = core_wish(core, request, 0, core->time_ms);
    const struct match_wish with = core_wish(core, &labelled, 0, core->time_ms);
    for (size_t i = 0; i < core->machine_list.count; i++) {
        const struct machine *machine = core->machine_list.items[i].value;
        suiting.machines += suits(&any, machine);
        suiting.labelled += suits(&with, machine);
    }
    return suiting;
}

struct match_quote core_quote_at(const struct core *core, const struct job_request *request,
                                 int64_t start_ms)
{
    const struct match_wish wish = core_wish(core, request, 0, start_ms);
    return match_quote_wish(&wish);
}

struct match_wish core_wish_of(const struct core *core, const struct job *job)
{
    struct match_wish wish =
        core_wish(core, &job->request, core_held_micro(core, job->id), core->time_ms);
    core_keep_booked(job, &wish.lock);
    if (!job_rushes(job))
        wish.lock.rush_ms = 0;
    return wish;
}

/* What a pending job finds, looked for once. */
struct wait {
    struct machine **machines;
    struct match_wish wish;
    enum match_result result;
};

static struct wait look_for_room(const struct core *core, const struct job *job,
                                 struct arena *arena)
{
    struct match_placement placement;
    struct wait wait = {.machines = core_machine_pointers(core, arena),
                        .wish = core_wish_of(core, job)};
    wait.result = match_place(core->matcher, &wait.wish, NULL, &placement);
    return wait;
}

static void say_spare_wait(const struct core *core, const struct job *job, const struct wait *wait,
                           struct buffer *out)
{
    const struct account *account = core_account(core, job->request.account);
    if (account_is_frozen(account))
        buffer_append_string(out, "the account is frozen");
    else if (!core_may_have_spare(core, account->id))
        buffer_append_string(out, "spare time is for members with less than 1 credit, and this "
                                  "account has more now: submit it without market.spare");
    else if (account->spare_active_count > 0)
        buffer_append_string(out, "another job of the account has spare time; each has it for one "
                                  "job at a time");
    else if (wait->result == MATCH_PLACED)
        buffer_append_string(out, "there is spare time, but it is reserved for a job that pays");
    else
        match_explain_words(wait->machines, core->machine_list.count, &wait->wish, wait->result,
                            out);
    if (job->reason[0])
        buffer_append_format(out, "; it %s", job->reason);
}

static void say_wait(const struct core *core, const struct job *job, const struct wait *wait,
                     struct buffer *out)
{
    if (job->request.is_spare)
        say_spare_wait(core, job, wait, out);
    else if (job->start_ms > 0)
        buffer_append_string(out, "waits for the cheapest slot before its deadline");
    else if (wait->result == MATCH_PLACED && core_passes_booking(job, &wait->wish))
        buffer_append_string(out, "there is room, but for more than it booked in its slot");
    else if (wait->result == MATCH_PLACED)
        buffer_append_string(out, "there is room, but it would put off a job that goes first");
    else
        match_explain_words(wait->machines, core->machine_list.count, &wait->wish, wait->result,
                            out);
    if (wait->result == MATCH_OVER_BUDGET)
        core_append_ways_out(core, &job->request, core_held_micro(core, job->id), out);
}

static void explain_pending(const struct core *core, const struct job *job, struct buffer *out)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct wait wait = look_for_room(core, job, arena);
    say_wait(core, job, &wait, out);
}

/* The reservation that the job must respect; NULL: none that is known. */
static const struct match_reservation *ahead_of(const struct core *core, const struct job *job)
{
    const struct match_rounds *rounds = core->rounds;
    const struct job *first = line_first(&core->line);
    const bool is_behind = rounds->has_ahead && first && rounds->ahead.job == first->id &&
                           (!job || line_is_before(first, job));
    return is_behind ? &rounds->ahead : NULL;
}

static bool is_too_dear(enum match_result result)
{
    return result == MATCH_OVER_BUDGET || result == MATCH_OVER_HOURLY;
}

static int64_t expected_start_ms(const struct core *core, const struct job *job,
                                 const struct wait *wait)
{
    if (job->start_ms > core->time_ms)
        return job->start_ms;
    if (job->request.is_spare || is_too_dear(wait->result) || core_passes_booking(job, &wait->wish))
        return 0;
    return core_expected_start_ms(core, job, &wait->wish);
}

bool core_explain_wait(const struct core *core, const struct job *job,
                       struct match_explanation *out_explanation, struct buffer *out_words)
{
    if (job->state != JOB_STATE_PENDING)
        return false;
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct wait wait = look_for_room(core, job, arena);
    match_explain(core->matcher, wait.machines, core->machine_list.count, &wait.wish,
                  ahead_of(core, job), wait.result, out_explanation);
    out_explanation->expected_start_ms = expected_start_ms(core, job, &wait);
    say_wait(core, job, &wait, out_words);
    return true;
}

void core_explain_request(const struct core *core, const struct job_request *request,
                          enum match_result result, struct match_explanation *out_explanation,
                          struct buffer *out_words)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct machine **machines = core_machine_pointers(core, arena);
    const struct match_wish wish = core_wish(core, request, 0, core->time_ms);
    match_explain(core->matcher, machines, core->machine_list.count, &wish, ahead_of(core, NULL),
                  result, out_explanation);
    if (!is_too_dear(result) && !request->is_spare)
        out_explanation->expected_start_ms = core_expected_start_ms(core, NULL, &wish);
    match_explain_words(machines, core->machine_list.count, &wish, result, out_words);
    if (result == MATCH_OVER_BUDGET)
        core_append_ways_out(core, request, 0, out_words);
}

static void explain_leases(const struct core *core, const struct job *job, enum lease_state state,
                           struct buffer *out)
{
    size_t count = 0;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (lease->state == state)
            buffer_append_format(
                out, "%s%s (%s%s)", count++ ? ", " : "", core_machine(core, lease->machine)->name,
                job_is_replica(job, lease) ? "replica" : lease_role_name(lease->role),
                core_lease_is_unreachable(core, lease) ? ", unreachable" : "");
    }
    if (count == 0)
        buffer_append_string(out, "no machine");
}

/* How many workers its schedule wants for this epoch. */
static void explain_schedule(const struct job *job, struct buffer *out)
{
    int64_t count = 0;
    for (size_t i = 0; i < job->worker_count; i++)
        count += lease_is_open(job->workers[i]) && job->workers[i]->stop_wanted_ms == 0;
    if (job->workers_wanted > 0)
        buffer_append_format(
            out, "; %" PRId64 " of %" PRId64 " workers wanted now (%" PRId64 " to %" PRId64 ")",
            count, job->workers_wanted, job->request.num_nodes,
            job_request_nodes_max(&job->request));
    if (job->workers_wanted > count)
        buffer_append_string(out, ", the others as soon as there is room for them");
}

void core_explain(const struct core *core, const struct job *job, struct buffer *out)
{
    switch (job->state) {
    case JOB_STATE_PENDING:
        explain_pending(core, job, out);
        return;
    case JOB_STATE_STARTING:
        buffer_append_string(out, "waiting for its leases to start at ");
        explain_leases(core, job, LEASE_STATE_OFFERED, out);
        return;
    case JOB_STATE_RUNNING:
        buffer_append_string(out, "running at ");
        explain_leases(core, job, LEASE_STATE_RUNNING, out);
        explain_schedule(job, out);
        if (job->reason[0])
            buffer_append_format(out, "; %s", job->reason);
        return;
    case JOB_STATE_STOPPING:
    case JOB_STATE_SUCCEEDED:
    case JOB_STATE_FAILED:
    case JOB_STATE_CANCELLED:
        buffer_append_string(out, job_state_name(job->state));
        if (job->reason[0])
            buffer_append_format(out, ": %s", job->reason);
        return;
    case JOB_STATE_COUNT:
        break;
    }
    UNREACHABLE("a job state without an explanation");
}
