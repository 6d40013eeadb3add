/*
 * How each kind of event changes the state.
 *
 * Each function checks the event against the state first, because a replayed log is data from
 * outside: what does not follow from the state is CORRUPT and changes nothing.
 */
#include "core/core_internal.h"

#include <inttypes.h>

static int misfit(const struct event *event, const char *what, struct error *error)
{
    return error_set(error, ERROR_CORRUPT, "event %" PRIu64 " (%s): %s", event->sequence,
                     event_kind_name(event->kind), what);
}

/* A check of what the event carries, with the event named in the message. */
static int unfit(const struct event *event, struct error *error)
{
    error->code = ERROR_CORRUPT;
    return error_wrap(error, "event %" PRIu64 " (%s)", event->sequence,
                      event_kind_name(event->kind));
}

static bool is_next_id(const struct core *core, uint64_t id)
{
    return id == core->last_id + 1;
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);
    ASSERT(memory);
    return memory;
}

int apply_settings_changed(struct core *core, const struct event *event, struct error *error)
{
    if (core_settings_check(&event->settings_changed, error) < 0)
        return unfit(event, error);
    core->settings = event->settings_changed;
    return 0;
}

int apply_account_opened(struct core *core, const struct event *event, struct error *error)
{
    const struct text name = text_of(event->account_opened.name);
    if (name_check(name, "account", error) < 0)
        return unfit(event, error);
    if (!is_next_id(core, event->account_opened.account) || core_account_by_name(core, name))
        return misfit(event, "the id or the name is taken", error);
    if (ledger_open_account(core->ledger, event->account_opened.account, error) < 0)
        return unfit(event, error);
    struct account *account = allocate(sizeof(*account));
    account->id = core->last_id = event->account_opened.account;
    account->opened_ms = event->time_ms;
    snprintf(account->name, sizeof(account->name), "%s", event->account_opened.name);
    map_put(&core->accounts, account->id, account);
    map_put_text(&core->accounts_by_name, name, account);
    return 0;
}

int apply_token_added(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->token_added) *added = &event->token_added;
    if (!is_next_id(core, added->token) || core_token_by_hash(core, added->hash) ||
        !core_account(core, added->account))
        return misfit(event, "the id or the hash is taken, or there is no such account", error);
    struct token *token = allocate(sizeof(*token));
    *token = (struct token){.id = added->token,
                            .account = added->account,
                            .scopes = added->scopes,
                            .expires_ms = added->expires_ms,
                            .added_ms = event->time_ms};
    memcpy(token->hash, added->hash, sizeof(token->hash));
    memcpy(token->label, added->label, sizeof(token->label));
    core->last_id = token->id;
    map_put(&core->tokens, token->id, token);
    map_put_text(&core->tokens_by_hash, core_bytes(token->hash, sizeof(token->hash)), token);
    return 0;
}

int apply_token_revoked(struct core *core, const struct event *event, struct error *error)
{
    struct token *token = map_get(&core->tokens, event->token_revoked.token);
    if (!token || token->is_revoked)
        return misfit(event, "there is no such token to revoke", error);
    token->is_revoked = true;
    return 0;
}

int apply_code_added(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->code_added) *added = &event->code_added;
    if (!is_next_id(core, added->code) || core_code_by_hash(core, added->hash) ||
        !core_account(core, added->account))
        return misfit(event, "the id or the hash is taken, or there is no such account", error);
    struct code *code = allocate(sizeof(*code));
    *code = (struct code){.id = added->code,
                          .kind = added->code_kind,
                          .account = added->account,
                          .expires_ms = added->expires_ms};
    memcpy(code->hash, added->hash, sizeof(code->hash));
    core->last_id = code->id;
    map_put(&core->codes, code->id, code);
    id_list_add(&core->code_list, code->id, code);
    map_put_text(&core->codes_by_hash, core_bytes(code->hash, sizeof(code->hash)), code);
    return 0;
}

int apply_code_removed(struct core *core, const struct event *event, struct error *error)
{
    struct code *code = map_remove(&core->codes, event->code_removed.code);
    if (!code)
        return misfit(event, "there is no such code", error);
    id_list_remove(&core->code_list, code->id);
    map_remove_text(&core->codes_by_hash, core_bytes(code->hash, sizeof(code->hash)));
    free(code);
    return 0;
}

static int find_machine(const struct core *core, const struct event *event, uint64_t id,
                        struct machine **out_machine, struct error *error)
{
    *out_machine = map_get(&core->machines, id);
    return *out_machine ? 0 : misfit(event, "there is no such machine", error);
}

/* A new machine, or the one known that the event enrols again. */
static int find_enrolled(struct core *core, const struct event *event, struct machine **out_machine,
                         struct error *error)
{
    const __typeof__(event->machine_enrolled) *enrolled = &event->machine_enrolled;
    struct machine *known =
        map_get_text(&core->machines_by_key, core_bytes(enrolled->public_key, MACHINE_KEY_SIZE));
    const struct machine *namesake = core_machine_by_name(core, text_of(enrolled->name));
    if (namesake && namesake != known)
        return misfit(event, "the name is taken", error);
    if (known) {
        if (known->id != enrolled->machine || known->owner != enrolled->owner ||
            known->generation + 1 != enrolled->generation || known->lease_count > 0)
            return misfit(event, "it is not the machine that was known", error);
        *out_machine = known;
        return 0;
    }
    if (!is_next_id(core, enrolled->machine) || enrolled->generation != 1 ||
        !core_account(core, enrolled->owner))
        return misfit(event, "a new machine needs a new id and an owner", error);
    struct machine *machine = allocate(sizeof(*machine));
    machine->id = core->last_id = enrolled->machine;
    machine->owner = enrolled->owner;
    machine->enrolled_ms = event->time_ms;
    memcpy(machine->public_key, enrolled->public_key, MACHINE_KEY_SIZE);
    map_put(&core->machines, machine->id, machine);
    map_put_text(&core->machines_by_key, core_bytes(machine->public_key, MACHINE_KEY_SIZE),
                 machine);
    *out_machine = machine;
    return 0;
}

int apply_machine_enrolled(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->machine_enrolled) *enrolled = &event->machine_enrolled;
    if (name_check(text_of(enrolled->name), "machine", error) < 0 ||
        probe_check(&enrolled->probe, error) < 0 ||
        offer_check(&enrolled->offer, &enrolled->probe, error) < 0)
        return unfit(event, error);
    struct machine *machine = NULL;
    if (find_enrolled(core, event, &machine, error) < 0)
        return -1;
    if (machine->name[0])
        map_remove_text(&core->machines_by_name, text_of(machine->name));
    memcpy(machine->name, enrolled->name, sizeof(machine->name));
    map_put_text(&core->machines_by_name, text_of(machine->name), machine);
    machine->generation = enrolled->generation;
    machine->probe = enrolled->probe;
    machine->offer = enrolled->offer;
    machine->has_offer = true;
    machine->state = MACHINE_STATE_OFFLINE;
    machine->state_changed_ms = event->time_ms;
    core_index_machine(core, machine);
    return 0;
}

int apply_machine_probed(struct core *core, const struct event *event, struct error *error)
{
    struct machine *machine;
    if (find_machine(core, event, event->machine_probed.machine, &machine, error) < 0)
        return -1;
    if (probe_check(&event->machine_probed.probe, error) < 0 ||
        (machine->has_offer &&
         offer_check(&machine->offer, &event->machine_probed.probe, error) < 0))
        return unfit(event, error);
    machine->probe = event->machine_probed.probe;
    return 0;
}

int apply_machine_state_changed(struct core *core, const struct event *event, struct error *error)
{
    struct machine *machine;
    if (find_machine(core, event, event->machine_state_changed.machine, &machine, error) < 0)
        return -1;
    machine->state = event->machine_state_changed.state;
    machine->state_changed_ms = event->time_ms;
    core_index_machine(core, machine);
    return 0;
}

int apply_offer_set(struct core *core, const struct event *event, struct error *error)
{
    struct machine *machine;
    if (find_machine(core, event, event->offer_set.machine, &machine, error) < 0)
        return -1;
    if (offer_check(&event->offer_set.offer, &machine->probe, error) < 0)
        return unfit(event, error);
    machine->offer = event->offer_set.offer;
    machine->has_offer = true;
    return 0;
}

int apply_offer_withdrawn(struct core *core, const struct event *event, struct error *error)
{
    struct machine *machine;
    if (find_machine(core, event, event->offer_withdrawn.machine, &machine, error) < 0)
        return -1;
    if (!machine->has_offer)
        return misfit(event, "there is no offer to withdraw", error);
    machine->has_offer = false;
    machine->offer = (struct offer){0};
    return 0;
}

int apply_job_submitted(struct core *core, const struct event *event, struct error *error)
{
    const struct job_request *request = &event->job_submitted.request;
    if (job_request_check(request, error) < 0)
        return unfit(event, error);
    uint8_t key[CORE_JOB_KEY_SIZE];
    const bool has_key = core_job_key(request, key);
    if (!is_next_id(core, event->job_submitted.job) || !core_account(core, request->account) ||
        request->account == ACCOUNT_MINT)
        return misfit(event, "a job needs a new id and an account that can pay", error);
    if (has_key && map_get_text(&core->jobs_by_key, core_bytes(key, sizeof(key))))
        return misfit(event, "its idempotency key was used before", error);
    struct job *job = allocate(sizeof(*job));
    job->id = core->last_id = event->job_submitted.job;
    job->request = *request;
    char *spec = allocate(request->spec.size + 1);
    if (request->spec.size)
        memcpy(spec, request->spec.data, request->spec.size);
    job->request.spec.data = spec;
    job->quote_micro = event->job_submitted.quote_micro;
    job->submitted_ms = event->time_ms;
    map_put(&core->jobs, job->id, job);
    if (has_key)
        map_put_text(&core->jobs_by_key, core_bytes(key, sizeof(key)), job);
    core_index_job(core, job);
    return 0;
}

static size_t wanted_lease_count(const struct job *job)
{
    return (size_t)job->request.num_nodes + job_has_server(job);
}

static bool may_pass(const struct job *job, enum job_state to)
{
    switch (to) {
    case JOB_STATE_STARTING:
        return job->state == JOB_STATE_PENDING && job->lease_count == wanted_lease_count(job);
    case JOB_STATE_RUNNING:
        return job->state == JOB_STATE_STARTING;
    case JOB_STATE_STOPPING:
        return job->state == JOB_STATE_STARTING || job->state == JOB_STATE_RUNNING;
    case JOB_STATE_SUCCEEDED:
    case JOB_STATE_FAILED:
        return job_state_has_leases(job->state) && job_all_leases_ended(job);
    case JOB_STATE_CANCELLED:
        return !job_state_is_final(job->state) && job_all_leases_ended(job);
    case JOB_STATE_PENDING:
    case JOB_STATE_COUNT:
        break;
    }
    return false;
}

int apply_job_state_changed(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->job_state_changed) *changed = &event->job_state_changed;
    struct job *job = map_get(&core->jobs, changed->job);
    if (!job || !may_pass(job, changed->state))
        return misfit(event, "no such job is in a state before this one", error);
    if (changed->state == JOB_STATE_STOPPING ? !job_state_is_final(changed->outcome)
                                             : changed->outcome != changed->state)
        return misfit(event, "the outcome is not one", error);
    job->state = changed->state;
    job->outcome = changed->outcome;
    memcpy(job->reason, changed->reason, sizeof(job->reason));
    if (job->state == JOB_STATE_STARTING) {
        job->matched_ms = event->time_ms;
        job->quote_micro = 0;
        for (size_t i = 0; i < job->lease_count; i++)
            job->quote_micro = price_add_micro(job->quote_micro, job->leases[i]->quote_micro);
    }
    if (job->state == JOB_STATE_STOPPING)
        job->stopping_ms = event->time_ms;
    if (job_state_is_final(job->state))
        job->ended_ms = event->time_ms;
    core_index_job(core, job);
    return 0;
}

static bool is_expected_part(const struct job *job, enum lease_role role, uint64_t rank)
{
    const bool is_server = job_has_server(job) && job->lease_count == 0;
    return job->lease_count < wanted_lease_count(job) &&
           role == (is_server ? LEASE_ROLE_SERVER : LEASE_ROLE_WORKER) &&
           rank == (is_server ? 0 : job->lease_count - job_has_server(job));
}

int apply_lease_offered(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_offered) *offered = &event->lease_offered;
    struct machine *machine;
    if (find_machine(core, event, offered->machine, &machine, error) < 0)
        return -1;
    struct job *job = map_get(&core->jobs, offered->job);
    if (!job || job->state != JOB_STATE_PENDING ||
        !is_expected_part(job, offered->role, offered->rank))
        return misfit(event, "no such job waits for this part", error);
    if (!is_next_id(core, offered->lease) || offered->fence != core->last_fence + 1 ||
        offered->payee != machine->owner)
        return misfit(event, "the id, the fence or the payee is not the next one", error);
    if (!resources_are_valid(offered->resources) ||
        !resources_fit(offered->resources, machine_free(machine)))
        return misfit(event, "the machine has not that much free", error);
    struct lease *lease = allocate(sizeof(*lease));
    *lease = (struct lease){.id = offered->lease,
                            .job = job->id,
                            .machine = machine->id,
                            .payee = offered->payee,
                            .fence = offered->fence,
                            .role = offered->role,
                            .rank = offered->rank,
                            .resources = offered->resources,
                            .units = offered->units,
                            .price = offered->price,
                            .quote_micro = offered->quote_micro,
                            .offered_ms = event->time_ms};
    core->last_id = lease->id;
    core->last_fence = lease->fence;
    map_put(&core->leases, lease->id, lease);
    core_attach_lease(job, machine, lease);
    return 0;
}

static int find_lease(const struct core *core, const struct event *event, uint64_t id,
                      uint64_t fence, struct lease **out_lease, struct error *error)
{
    struct lease *lease = map_get(&core->leases, id);
    if (!lease || lease->fence != fence || !lease_is_open(lease))
        return misfit(event, "no such lease is open under that fence", error);
    *out_lease = lease;
    return 0;
}

int apply_lease_started(struct core *core, const struct event *event, struct error *error)
{
    struct lease *lease;
    if (find_lease(core, event, event->lease_started.lease, event->lease_started.fence, &lease,
                   error) < 0)
        return -1;
    if (lease->state != LEASE_STATE_OFFERED)
        return misfit(event, "it runs already", error);
    struct job *job = map_get(&core->jobs, lease->job);
    lease->state = LEASE_STATE_RUNNING;
    lease->started_ms = event->time_ms;
    if (job->started_ms == 0)
        job->started_ms = event->time_ms;
    return 0;
}

int apply_lease_ticked(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_ticked) *ticked = &event->lease_ticked;
    struct lease *lease;
    if (find_lease(core, event, ticked->lease, ticked->fence, &lease, error) < 0)
        return -1;
    struct job *job = map_get(&core->jobs, lease->job);
    if (ticked->job != job->id || lease->state != LEASE_STATE_RUNNING ||
        ticked->tick_index <= lease->tick_index || ticked->wall_ms < lease->wall_ms ||
        ticked->wall_ms > job->request.max_run_ms)
        return misfit(event, "the tick is not a later one of a running lease", error);
    if (ticked->bill_micro > lease->quote_micro ||
        ticked->amount_micro > job->quote_micro - job->posted_micro ||
        ticked->bill_micro - ticked->amount_micro != lease->posted_micro ||
        ticked->fee_micro > ticked->amount_micro)
        return misfit(event, "the bill does not follow from the one before, or passes the quote",
                      error);
    lease->tick_index = ticked->tick_index;
    lease->wall_ms = ticked->wall_ms;
    lease->posted_micro = ticked->bill_micro;
    lease->fee_micro += ticked->fee_micro;
    job->posted_micro += ticked->amount_micro;
    job->fee_micro += ticked->fee_micro;
    return 0;
}

int apply_lease_stop_wanted(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_stop_wanted) *wanted = &event->lease_stop_wanted;
    struct lease *lease;
    if (find_lease(core, event, wanted->lease, wanted->fence, &lease, error) < 0)
        return -1;
    if (lease->stop_wanted_ms > 0)
        return misfit(event, "it was asked to stop before", error);
    lease->stop_wanted_ms = event->time_ms;
    return 0;
}

int apply_lease_ended(struct core *core, const struct event *event, struct error *error)
{
    const __typeof__(event->lease_ended) *ended = &event->lease_ended;
    struct lease *lease;
    if (find_lease(core, event, ended->lease, ended->fence, &lease, error) < 0)
        return -1;
    const struct job *job = map_get(&core->jobs, lease->job);
    if (ended->outcome == LEASE_OUTCOME_NONE || !job_state_has_leases(job->state))
        return misfit(event, "it has no outcome, or its job none of its leases", error);
    core_detach_lease(map_get(&core->machines, lease->machine), lease);
    lease->state = LEASE_STATE_ENDED;
    lease->outcome = ended->outcome;
    lease->ended_ms = event->time_ms;
    memcpy(lease->reason, ended->reason, sizeof(lease->reason));
    return 0;
}

int apply_entry_posted(struct core *core, const struct event *event, struct error *error)
{
    if (ledger_commit(core->ledger, &event->entry_posted, error) < 0)
        return unfit(event, error);
    return 0;
}

int core_apply(struct core *core, const struct event *event, struct error *error)
{
    if (event->kind >= EVENT_KIND_COUNT)
        return error_set(error, ERROR_CORRUPT, "event %" PRIu64 " is of an unknown kind",
                         event->sequence);
    if (event->sequence != core->sequence + 1 || event->time_ms < core->time_ms ||
        event->time_ms <= 0)
        return misfit(event, "it does not follow the last one", error);
    if (event_apply_function(event->kind)(core, event, error) < 0)
        return -1;
    core->sequence = event->sequence;
    core->time_ms = event->time_ms;
    return 0;
}
