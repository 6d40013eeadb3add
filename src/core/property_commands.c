/*
 * Random commands, most of them sensible, for whatever is tested with many of them.
 *
 * To add a command: a function below that fills it in, and its row in the table.
 */
#include "core/property_commands.h"

#include "core/property_random.h"
#include "core/testing_internal.h"

enum { NAME_COUNT = 12 };

static const char *const names[NAME_COUNT] = {"ann", "bob", "cat",  "dan",    "emu",  "fox",
                                              "gnu", "hen", "ibis", "market", "mint", "Eve!"};

static void enrol_machine(struct property_world *world, struct command *command)
{
    property_hash(world, command->enrol_machine.code_hash);
    for (size_t i = 0; i < 40; i++) { /* mostly a code that is there */
        if (core_code_by_hash(world->core, command->enrol_machine.code_hash))
            break;
        property_hash(world, command->enrol_machine.code_hash);
    }
    property_hash(world, command->enrol_machine.public_key);
    command->enrol_machine.name =
        below(world, 3) ? text_of(names[below(world, NAME_COUNT)]) : TEXT("");
    command->enrol_machine.probe = property_probe(world);
    command->enrol_machine.offer = property_offer(world);
}

/* Mostly of somebody who may have it, in small pieces. */
static void ask_for_spare(struct property_world *world, struct job_request *request)
{
    request->is_spare = true;
    for (size_t i = core_account_count(world->core); i-- > 0 && below(world, 20);) {
        const uint64_t account = core_account_at(world->core, i)->id;
        const struct ledger_account *balance = core_balance(world->core, account);
        if (account != ACCOUNT_MINT && ledger_available_micro(balance) < 1000000 && below(world, 3))
            request->account = account;
    }
    if (below(world, 10)) {
        request->start = JOB_START_NOW;
        request->deadline_ms = 0;
        request->is_rush = false;
        request->worker = (struct resources){.cores_milli = 1 + (int64_t)below(world, 400)};
    }
}

static void submit_job(struct property_world *world, struct command *command)
{
    static const char *const specs[] = {"{}", "{\"train\":1}", "\"\xff\""};
    struct job_request *request = &command->submit_job;
    *request = (struct job_request){
        .account = property_account(world),
        .name = "job",
        .spec = text_of(specs[below(world, 30) ? below(world, 2) : 2]),
        .num_nodes = (int64_t)below(world, 20) ? 1 + (int64_t)below(world, 3) : 0,
        .worker = property_resources(world, 500),
        .takes_more_cores = below(world, 2),
        .is_rush = below(world, 4) == 0,
        .max_run_ms = 1000 + (int64_t)below(world, 600000),
        .tick_ms = 1000,
        .replaces_lost = below(world, 2)};
    if (below(world, 3) == 0)
        request->num_nodes_max = 1 + (int64_t)below(world, 5);
    if (below(world, 4)) {
        request->server = property_resources(world, 500);
        if (below(world, 2) == 0)
            request->server_count = (int64_t)below(world, 5);
        request->has_replica = below(world, 3) > 0;
        if (below(world, 3) == 0) {
            request->num_nodes = 1;
            request->num_nodes_max = 5;
            request->workers_first = 1 + (int64_t)below(world, 5);
            request->takes_more_cores = false;
        }
    } else {
        request->is_gathered = below(world, 2) > 0;
    }
    if (below(world, 20) == 0)
        request->max_run_ms = 1000 + (int64_t)below(world, (uint64_t)PRICE_RUN_MS_MAX);
    const bool is_long = below(world, 4) == 0; /* longer than a price lock */
    if (is_long) {
        request->max_run_ms = 8 * SLOT_MS + (int64_t)below(world, 12 * SLOT_MS);
        request->worker = request->server = (struct resources){.cores_milli = 10};
        request->takes_more_cores = false;
    }
    if (below(world, 2))
        request->max_total_micro = (int64_t)below(world, is_long ? 100000 : 20000);
    if (below(world, 3) == 0)
        request->max_hourly_micro = (int64_t)below(world, 100000);
    if (below(world, 3) == 0)
        request->wishes.max_rtt_us = 1 + (int64_t)below(world, 40000);
    if (below(world, 3) == 0)
        property_hash(world, request->idempotency_hash);
    if (below(world, 2)) {
        request->start = (enum job_start)below(world, JOB_START_COUNT);
        request->deadline_ms = world->now_ms - 1000 + (int64_t)below(world, 3 * SLOT_MS);
    }
    if (below(world, 5) == 0)
        ask_for_spare(world, request);
}

/* ---- One function for each command ----------------------------------------------------------- */

static void lease_running(struct property_world *world, struct command *command)
{
    const struct lease *lease = property_lease(world);
    command->lease_running.lease = lease ? lease->id : property_id(world);
    command->lease_running.fence = property_fence(world, lease);
}

static void tick_lease(struct property_world *world, struct command *command)
{
    const struct lease *lease = property_lease(world);
    command->tick_lease.lease = lease ? lease->id : property_id(world);
    command->tick_lease.fence = property_fence(world, lease);
    command->tick_lease.tick_index = (lease ? lease->tick_index : 0) + below(world, 4);
    command->tick_lease.wall_ms =
        (lease ? lease->wall_ms : 0) + (int64_t)below(world, 20000) - 1000;
    if (world->quiet_steps > 0 || below(world, 20) == 0)
        command->tick_lease.wall_ms = INT64_MAX; /* all of it */
}

/* The lead of the lease's job, so that a replica takes its place; NULL: as often as not, and where
 * there is none. */
static const struct lease *followed_lead(struct property_world *world, const struct lease *lease)
{
    const struct job *job = lease ? core_job(world->core, lease->job) : NULL;
    return job && job->request.has_replica && below(world, 2) ? job_lead(job) : NULL;
}

static void end_lease(struct property_world *world, struct command *command)
{
    const struct lease *lease = property_lease(world);
    const struct lease *lost = followed_lead(world, lease);
    if (lost)
        lease = lost;
    command->end_lease.lease = lease ? lease->id : property_id(world);
    command->end_lease.fence = property_fence(world, lease);
    command->end_lease.outcome = LEASE_OUTCOME_SUCCEEDED;
    if (below(world, 3) == 0)
        command->end_lease.outcome = (enum lease_outcome)below(world, LEASE_OUTCOME_COUNT + 1);
    if (lost)
        command->end_lease.outcome = LEASE_OUTCOME_LOST;
    for (size_t i = 0; i < 2; i++) {
        const struct lease *agreeing = property_lease(world);
        command->end_lease.agreeing[i] = agreeing ? agreeing->id : property_id(world);
    }
    const struct lease *lead = lease ? job_lead(core_job(world->core, lease->job)) : NULL;
    command->end_lease.accuser = lead ? lead->id : 0;
    command->end_lease.exit_code = (int64_t)below(world, 4) * 100 - (below(world, 50) ? 0 : 1);
    command->end_lease.reason = below(world, 2) ? TEXT("bad \xff\x01 byte") : TEXT("");
}

static void open_account(struct property_world *world, struct command *command)
{
    command->open_account.name = property_name(world);
    command->open_account.address_block = below(world, 3) ? ACCOUNT_BLOCK_BIT | below(world, 6) : 0;
    command->open_account.has_invite = below(world, 5) == 0;
    property_hash(world, command->open_account.invite_hash);
}

static void set_password(struct property_world *world, struct command *command)
{
    command->set_password.account = property_account(world);
    command->set_password.password =
        below(world, 10) ? TEXT("$argon2id$v=19$m=65536,t=3,p=1$salt$hash") : TEXT("plain");
    command->set_password.token = property_id(world);
}

static void freeze_account(struct property_world *world, struct command *command)
{
    command->freeze_account.account = property_account(world);
    command->freeze_account.reason = below(world, 10) ? TEXT("a reason") : TEXT("");
}

static void unfreeze_account(struct property_world *world, struct command *command)
{
    command->unfreeze_account.account = property_account(world);
    for (size_t i = core_account_count(world->core); i-- > 0;)
        if (account_is_frozen(core_account_at(world->core, i)) && below(world, 2))
            command->unfreeze_account.account = core_account_at(world->core, i)->id;
}

static void give_grant(struct property_world *world, struct command *command)
{
    command->give_grant.account = property_account(world);
    for (size_t i = core_account_count(world->core); i-- > 0;)
        if (core_account_at(world->core, i)->grant == GRANT_STATE_WAITING && below(world, 2))
            command->give_grant.account = core_account_at(world->core, i)->id;
}

static void delete_account(struct property_world *world, struct command *command)
{
    command->delete_account.account = property_account(world);
}

static void see_account(struct property_world *world, struct command *command)
{
    command->see_account.account = property_account(world);
}

static void create_group(struct property_world *world, struct command *command)
{
    command->create_group.account = property_account(world);
    snprintf(world->name, sizeof(world->name), "group-%u",
             (unsigned)below(world, core_group_count(world->core) + 2));
    command->create_group.name = text_of(world->name);
}

static void join_group(struct property_world *world, struct command *command)
{
    command->join_group.account = property_account(world);
    property_hash(world, command->join_group.code_hash);
}

static void leave_group(struct property_world *world, struct command *command)
{
    command->leave_group.account = property_account(world);
    command->leave_group.member = below(world, 3) ? 0 : property_account(world);
}

static void add_token(struct property_world *world, struct command *command)
{
    command->add_token.account = property_account(world);
    command->add_token.scopes = below(world, 18);
    command->add_token.is_session = below(world, 2) == 0;
    command->add_token.expires_ms =
        below(world, 2) ? world->now_ms + (int64_t)below(world, 100000) : 0;
    property_hash(world, command->add_token.hash);
}

static void revoke_token(struct property_world *world, struct command *command)
{
    command->revoke_token.account = property_account(world);
    command->revoke_token.token = property_id(world);
}

static void change_settings(struct property_world *world, struct command *command)
{
    command->change_settings = core_default_settings();
    command->change_settings.fee_basis_points = (int64_t)below(world, 600);
    command->change_settings.grant_micro = (int64_t)below(world, 4) * 1000000;
    command->change_settings.grant_earned_micro = (int64_t)below(world, 3) * 1000;
    command->change_settings.proving_micro = (int64_t)below(world, 4) * 1000;
    command->change_settings.withheld_basis_points = (int64_t)below(world, 5) * 2500;
    command->change_settings.grace_ms = 20000 + (int64_t)below(world, 3) * 5000;
    command->change_settings.start_ms = 60000 + (int64_t)below(world, 3) * 300000;
    command->change_settings.lost_ms = INT64_C(1000) << below(world, 16);
    command->change_settings.slot_offset_ms = core_settings(world->core)->slot_offset_ms;
    if (below(world, 3) == 0) /* until a job comes */
        command->change_settings.slot_offset_ms = ((int64_t)below(world, 29) - 14) * 3600000;
    if (below(world, 6) == 0)
        command->change_settings.grant_daily_micro = (int64_t)below(world, 4) * 3000000;
    if (below(world, 3) == 0) {
        command->change_settings.dormant_ms = (int64_t)(1 + below(world, 3)) * 86400000;
        command->change_settings.dormant_step_ms = 86400000;
    }
}

static void use_code(struct property_world *world, struct command *command)
{
    command->use_code.kind = CODE_KIND_PAGE;
    property_hash(world, command->use_code.hash);
}

static void add_code(struct property_world *world, struct command *command)
{
    command->add_code.kind =
        below(world, 4) ? CODE_KIND_ENROL : (enum code_kind)below(world, CODE_KIND_COUNT + 1);
    command->add_code.account =
        command->add_code.kind == CODE_KIND_INVITE ? ACCOUNT_OPERATOR : property_account(world);
    command->add_code.expires_ms = world->now_ms + (int64_t)below(world, 200000) - 100;
    property_hash(world, command->add_code.hash);
}

static void set_offer(struct property_world *world, struct command *command)
{
    const struct machine *machine = property_machine(world);
    command->set_offer.account = property_owner(world, machine);
    command->set_offer.machine = machine ? machine->id : property_id(world);
    command->set_offer.offer = below(world, 2) ? property_offer_id(world, machine) : 0;
    command->set_offer.is_first = below(world, 4) == 0;
    command->set_offer.terms = property_offer(world);
}

static void pause_offer(struct property_world *world, struct command *command)
{
    const struct machine *machine = property_machine(world);
    command->pause_offer.account = property_owner(world, machine);
    command->pause_offer.offer = property_offer_id(world, machine);
    command->pause_offer.until_ms = world->now_ms + (int64_t)below(world, 9000) - 1000;
}

static void renew_offer(struct property_world *world, struct command *command)
{
    command->renew_offer.offer = property_offer_id(world, property_machine(world));
    command->renew_offer.spans = property_spans(world);
}

static void withdraw_offer(struct property_world *world, struct command *command)
{
    const struct machine *machine = property_machine(world);
    command->withdraw_offer.account = property_owner(world, machine);
    command->withdraw_offer.offer = property_offer_id(world, machine);
}

static void report_probe(struct property_world *world, struct command *command)
{
    command->report_probe.machine = property_machine_id(world);
    command->report_probe.probe = property_probe(world);
}

static void report_pair(struct property_world *world, struct command *command)
{
    const uint64_t a = property_machine_id(world), b = property_machine_id(world);
    command->report_pair.low = a < b || below(world, 20) == 0 ? a : b;
    command->report_pair.high = a < b ? b : a;
    const uint64_t farthest_us = below(world, 4) ? 4000 : 40000; /* most are neighbours */
    command->report_pair.rtt_us = below(world, 30) ? 1 + (int64_t)below(world, farthest_us) : 0;
}

static void machine_yields(struct property_world *world, struct command *command)
{
    command->machine_yields.machine = property_machine_id(world);
    command->machine_yields.yield = below(world, 3)
                                        ? MACHINE_YIELD_NONE
                                        : (enum machine_yield)below(world, MACHINE_YIELD_COUNT);
}

static void machine_silent(struct property_world *world, struct command *command)
{
    command->machine_silent.machine = property_machine_id(world);
}

static void machine_gone(struct property_world *world, struct command *command)
{
    command->machine_gone.machine = property_machine_id(world);
}

static void machine_connected(struct property_world *world, struct command *command)
{
    const struct machine *machine = property_machine(world);
    command->machine_connected.machine = machine ? machine->id : property_id(world);
    command->machine_connected.generation = machine ? machine->generation : 1;
}

/* Of the last ones, the one that waits for its slot and is nearest to it: a late cancel costs. */
static const struct job *booked_job(const struct property_world *world)
{
    const size_t count = core_job_count(world->core);
    const struct job *soonest = NULL;
    for (size_t i = 1; i <= 40 && i <= count; i++) {
        const struct job *job = core_job_at(world->core, count - i);
        if (job->state == JOB_STATE_PENDING && job->start_ms > world->now_ms &&
            (!soonest || job->start_ms < soonest->start_ms))
            soonest = job;
    }
    return soonest;
}

static void cancel_job(struct property_world *world, struct command *command)
{
    const size_t count = core_job_count(world->core);
    const size_t recent = count < 10 ? count : 10;
    const struct job *job = below(world, 5) ? booked_job(world) : NULL;
    if (!job && count)
        job = core_job_at(world->core, count - 1 - below(world, recent));
    command->cancel_job.job = job ? job->id : property_id(world);
    command->cancel_job.account = job ? job->request.account : property_account(world);
}

static void extend_job(struct property_world *world, struct command *command)
{
    const size_t count = core_job_count(world->core);
    const size_t recent = count < 10 ? count : 10;
    const struct job *job =
        count ? core_job_at(world->core, count - 1 - below(world, recent)) : NULL;
    command->extend_job.job = job ? job->id : property_id(world);
    command->extend_job.account =
        job && below(world, 10) ? job->request.account : property_account(world);
    command->extend_job.max_run_ms =
        (job ? job->request.max_run_ms : 0) + (int64_t)below(world, 600000);
}

/* The newest that goes by a schedule and whose lead runs; NULL: none. */
static const struct job *scheduled_job(const struct property_world *world)
{
    const size_t count = core_job_count(world->core);
    for (size_t i = 1; i <= count; i++) {
        const struct job *job = core_job_at(world->core, count - i);
        if (job->workers_wanted > 0 && job_state_has_leases(job->state) &&
            job_lead(job)->state == LEASE_STATE_RUNNING)
            return job;
    }
    return NULL;
}

static void resize_job(struct property_world *world, struct command *command)
{
    const struct job *job = below(world, 10) ? scheduled_job(world) : NULL;
    const struct lease *lease = job ? job_lead(job) : property_lease(world);
    command->resize_job.lease = lease ? lease->id : property_id(world);
    command->resize_job.fence = property_fence(world, lease);
    command->resize_job.workers = 1 + (int64_t)below(world, 5);
}

static void release_lease(struct property_world *world, struct command *command)
{
    const struct lease *lease = property_lease(world);
    const struct job *job = lease ? core_job(world->core, lease->job) : NULL;
    command->release_lease.lease = lease ? lease->id : property_id(world);
    command->release_lease.account =
        job && below(world, 10) ? job->request.account : property_account(world);
}

static void reclaim_leases(struct property_world *world, struct command *command)
{
    const struct lease *lease = property_lease(world);
    const struct machine *machine = lease ? core_machine(world->core, lease->machine) : NULL;
    command->reclaim_leases.account = property_owner(world, machine);
    if (below(world, 2))
        command->reclaim_leases.lease = lease ? lease->id : property_id(world);
    else if (below(world, 2))
        command->reclaim_leases.offer = lease ? lease->offer : property_id(world);
    else
        command->reclaim_leases.machine = machine ? machine->id : property_id(world);
}

static void bill_cost(struct property_world *world, struct command *command)
{
    const struct lease *lease = property_lease(world);
    const struct machine *machine = lease ? core_machine(world->core, lease->machine) : NULL;
    command->bill_cost.account = property_owner(world, machine);
    command->bill_cost.machine = machine && below(world, 4) ? machine->id : 0;
    command->bill_cost.usd_micro = (int64_t)below(world, 300) - 2;
    command->bill_cost.amount_micro = below(world, 20) ? (int64_t)below(world, 300) - 2 : INT64_MAX;
    command->bill_cost.bill = below(world, 10) ? TEXT("i-1 m5.large") : TEXT("bad \xff byte");
}

static void transfer(struct property_world *world, struct command *command)
{
    command->transfer.from = property_account(world);
    command->transfer.to = property_account(world);
    command->transfer.amount_micro = (int64_t)below(world, 300) - 2;
    if (below(world, 50) == 0)
        command->transfer.amount_micro = INT64_MAX;
    command->transfer.memo = below(world, 10) ? TEXT("thanks") : TEXT("bad \xff byte");
}

static void time_passed(struct property_world *world, struct command *command)
{
    (void)world;
    (void)command;
}

/* ---- The table ------------------------------------------------------------------------------- */

/* How often each is tried, against the sum of all. Every command is. */
static const struct generator {
    uint64_t weight;
    void (*fill)(struct property_world *world, struct command *command); /* all but the kind */
} generators[COMMAND_KIND_COUNT] = {
    [COMMAND_CHANGE_SETTINGS] = {10, change_settings},
    [COMMAND_OPEN_ACCOUNT] = {10, open_account},
    [COMMAND_SET_PASSWORD] = {4, set_password},
    [COMMAND_FREEZE_ACCOUNT] = {1, freeze_account},
    [COMMAND_UNFREEZE_ACCOUNT] = {12, unfreeze_account},
    [COMMAND_GIVE_GRANT] = {2, give_grant},
    [COMMAND_DELETE_ACCOUNT] = {3, delete_account},
    [COMMAND_SEE_ACCOUNT] = {4, see_account},
    [COMMAND_CREATE_GROUP] = {2, create_group},
    [COMMAND_JOIN_GROUP] = {8, join_group},
    [COMMAND_LEAVE_GROUP] = {3, leave_group},
    [COMMAND_ADD_TOKEN] = {10, add_token},
    [COMMAND_REVOKE_TOKEN] = {10, revoke_token},
    [COMMAND_ADD_CODE] = {30, add_code},
    [COMMAND_USE_CODE] = {10, use_code},
    [COMMAND_ENROL_MACHINE] = {60, enrol_machine},
    [COMMAND_SET_OFFER] = {12, set_offer},
    [COMMAND_PAUSE_OFFER] = {9, pause_offer},
    [COMMAND_RENEW_OFFER] = {9, renew_offer},
    [COMMAND_WITHDRAW_OFFER] = {9, withdraw_offer},
    [COMMAND_REPORT_PROBE] = {9, report_probe},
    [COMMAND_REPORT_PAIR] = {96, report_pair},
    [COMMAND_MACHINE_CONNECTED] = {135, machine_connected},
    [COMMAND_MACHINE_SILENT] = {9, machine_silent},
    [COMMAND_MACHINE_YIELDS] = {9, machine_yields},
    [COMMAND_MACHINE_GONE] = {9, machine_gone},
    [COMMAND_SUBMIT_JOB] = {160, submit_job},
    [COMMAND_LEASE_RUNNING] = {118, lease_running},
    [COMMAND_TICK_LEASE] = {314, tick_lease},
    [COMMAND_END_LEASE] = {39, end_lease},
    [COMMAND_CANCEL_JOB] = {20, cancel_job},
    [COMMAND_EXTEND_JOB] = {12, extend_job},
    [COMMAND_RELEASE_LEASE] = {6, release_lease},
    [COMMAND_RESIZE_JOB] = {30, resize_job},
    [COMMAND_RECLAIM_LEASES] = {6, reclaim_leases},
    [COMMAND_TRANSFER] = {40, transfer},
    [COMMAND_BILL_COST] = {12, bill_cost},
    [COMMAND_TIME_PASSED] = {30, time_passed},
};

struct command property_command(struct property_world *world)
{
    uint64_t total = 0;
    for (enum command_kind kind = 0; kind < COMMAND_KIND_COUNT; kind++) {
        assert_true(generators[kind].weight > 0); /* a new command needs a row */
        total += generators[kind].weight;
    }
    uint64_t dice = below(world, total);
    enum command_kind kind = 0;
    if (world->quiet_steps > 0 && below(world, 12))
        dice = 0, kind = COMMAND_TICK_LEASE;
    for (; dice >= generators[kind].weight; kind++)
        dice -= generators[kind].weight;
    struct command command;
    memset(&command, 0, sizeof(command));
    command.kind = kind;
    generators[kind].fill(world, &command);
    return command;
}

void property_pass_time(struct property_world *world)
{
    const int64_t wake_ms = core_next_wake_ms(world->core);
    if (below(world, 30) == 0 && wake_ms != INT64_MAX)
        world->now_ms = wake_ms > world->now_ms ? wake_ms : world->now_ms;
    else if (below(world, 50) == 0)
        world->now_ms -= (int64_t)below(world, 1000);
    else
        world->now_ms += (int64_t)below(world, 2000);
    if (below(world, 1000) == 0)
        world->now_ms += (int64_t)below(world, SLOT_MS); /* often into another slot */
    if (below(world, 300) == 0)
        world->quiet_steps = 36; /* past the end of price locks, a few ticks in each slot */
    if (world->quiet_steps > 0) {
        world->quiet_steps--;
        world->now_ms += SLOT_MS / 4;
    }
    if (below(world, 5000) == 0)
        world->now_ms += 86400000; /* a new day, and with a few of them dormant accounts */
}
