/* Members, machines and the hours: what surrounds the jobs of a replay. */
#include "base/assert.h"
#include "sim/replay_internal.h"

#include <inttypes.h>

static int open_accounts(struct replay *replay, struct error *error)
{
    struct command change = {.kind = COMMAND_CHANGE_SETTINGS,
                             .change_settings = core_default_settings()};
    if (replay->options.is_karma)
        change.change_settings.economy = ECONOMY_KARMA;
    /* Nobody runs out: what credits do to a market is the matter of the months' experiment. */
    change.change_settings.grant_micro = INT64_C(1000000000000);
    change.change_settings.grant_daily_micro = INT64_C(1000000000000000);
    change.change_settings.dormant_ms = INT64_C(366) * 24 * HOUR_MS;
    change.change_settings.grant_daily_micro = LEDGER_SUPPLY_MAX;
    change.change_settings.grant_earned_micro = 0;
    change.change_settings.dormant_basis_points = 0;
    change.change_settings.lost_ms = 100;
    if (replay_do(replay, &change, error) < 0)
        return -1;
    for (uint32_t i = 0; i < replay->workload->member_count; i++) {
        char name[MARKET_NAME_SIZE];
        snprintf(name, sizeof(name), "member-%" PRIu32, i);
        const struct command open = {.kind = COMMAND_OPEN_ACCOUNT,
                                     .open_account = {.name = text_of(name)}};
        if (replay_do(replay, &open, error) < 0)
            return -1;
        replay->accounts[i] = replay->events.subject;
    }
    return 0;
}

/* Stands in for hashes and keys: each is used once. */
static void next_key(struct replay *replay, uint8_t out_key[MARKET_HASH_SIZE])
{
    const uint64_t key = ++replay->next_key;
    for (size_t i = 0; i < MARKET_HASH_SIZE; i++)
        out_key[i] = (uint8_t)(key >> (8 * (i % 8)));
}

static struct price_vector cold_share(int64_t milli)
{
    const struct price_vector cold = price_cold_start();
    return (struct price_vector){.core_micro = cold.core_micro * milli / 1000,
                                 .ram_micro = cold.ram_micro * milli / 1000,
                                 .gpu_micro = cold.gpu_micro * milli / 1000};
}

static int enrol(struct replay *replay, size_t index, struct error *error)
{
    const struct sim_lender *lender = &replay->workload->lenders[index];
    struct command code = {.kind = COMMAND_ADD_CODE,
                           .add_code = {.kind = CODE_KIND_ENROL,
                                        .account = replay->accounts[lender->member],
                                        .expires_ms = replay->now_ms + 60000}};
    next_key(replay, code.add_code.hash);
    if (replay_do(replay, &code, error) < 0)
        return -1;
    char name[MARKET_NAME_SIZE];
    snprintf(name, sizeof(name), "machine-%zu", index);
    struct command command = {
        .kind = COMMAND_ENROL_MACHINE,
        .enrol_machine = {.name = text_of(name),
                          .probe = {.resources = lender->resources,
                                    .speed_weight_milli = 1000,
                                    .cpu_model = "reference"},
                          .offer = {.resources = lender->resources,
                                    .roles = MACHINE_ROLE_WORKER,
                                    .minimum = cold_share(lender->minimum_milli)}}};
    memcpy(command.enrol_machine.code_hash, code.add_code.hash, MARKET_HASH_SIZE);
    next_key(replay, command.enrol_machine.public_key);
    if (replay_do(replay, &command, error) < 0)
        return -1;
    replay->machines[index] = replay->events.subject;
    map_put(&replay->lender_index, replay->machines[index], &replay->workload->lenders[index]);
    return 0;
}

int replay_open(struct replay *replay, struct error *error)
{
    if (open_accounts(replay, error) < 0)
        return -1;
    for (size_t i = 0; i < replay->workload->lender_count; i++)
        if (enrol(replay, i, error) < 0)
            return -1;
    return 0;
}

static int tick_machine(struct replay *replay, const struct machine *machine, struct error *error)
{
    for (size_t i = 0; i < machine->lease_count; i++)
        if (machine->leases[i]->state == LEASE_STATE_RUNNING &&
            machine->leases[i]->stop_wanted_ms == 0 &&
            replay_tick(replay, machine->leases[i], error) < 0)
            return -1;
    return 0;
}

static int set_online(struct replay *replay, size_t index, bool is_online, struct error *error)
{
    const struct machine *machine = core_machine(replay->core, replay->machines[index]);
    if ((machine->state == MACHINE_STATE_ONLINE) == is_online)
        return 0;
    struct command command = {.kind = COMMAND_MACHINE_GONE,
                              .machine_gone = {.machine = machine->id}};
    if (is_online)
        command = (struct command){
            .kind = COMMAND_MACHINE_CONNECTED,
            .machine_connected = {.machine = machine->id, .generation = machine->generation}};
    return replay_do(replay, &command, error);
}

/* The name of a machine that only its own borrower asks for. */
static struct text wash_label(size_t index, char out[32])
{
    const int size = snprintf(out, 32, "wash-%zu", index);
    return (struct text){out, (size_t)size};
}

/* Takes the machine from everybody and rents it whole in the other name. */
static int begin_wash(struct replay *replay, size_t index, struct error *error)
{
    const struct sim_lender *lender = &replay->workload->lenders[index];
    const uint64_t puppet = replay->accounts[lender->washed_by];
    char label[32];
    struct offer_account only = {puppet};
    struct command offer = {.kind = COMMAND_SET_OFFER,
                            .set_offer = {.account = replay->accounts[lender->member],
                                          .machine = replay->machines[index],
                                          .is_first = true,
                                          .terms = {.resources = lender->resources,
                                                    .roles = MACHINE_ROLE_WORKER,
                                                    .minimum = cold_share(lender->minimum_milli),
                                                    .labels = wash_label(index, label),
                                                    .audience = OFFER_AUDIENCE_ACCOUNTS,
                                                    .accounts = {.items = &only, .count = 1}}}};
    if (set_online(replay, index, false, error) < 0 || replay_do(replay, &offer, error) < 0 ||
        set_online(replay, index, true, error) < 0)
        return -1;
    struct command rent = {.kind = COMMAND_SUBMIT_JOB,
                           .submit_job = {.account = puppet,
                                          .name = "wash",
                                          .spec = TEXT("{}"),
                                          .num_nodes = 1,
                                          .worker = lender->resources,
                                          .max_run_ms = 24 * HOUR_MS,
                                          .expected_run_ms = 24 * HOUR_MS,
                                          .tick_ms = HOUR_MS}};
    snprintf(rent.submit_job.wishes.labels, sizeof(rent.submit_job.wishes.labels), "%s", label);
    if (replay_do(replay, &rent, error) < 0)
        return -1;
    replay->washes[index] = replay->events.subject;
    return 0;
}

static int end_wash(struct replay *replay, size_t index, struct error *error)
{
    const struct sim_lender *lender = &replay->workload->lenders[index];
    const struct command cancel = {.kind = COMMAND_CANCEL_JOB,
                                   .cancel_job = {.account = replay->accounts[lender->washed_by],
                                                  .job = replay->washes[index]}};
    const struct command offer = {
        .kind = COMMAND_SET_OFFER,
        .set_offer = {.account = replay->accounts[lender->member],
                      .machine = replay->machines[index],
                      .is_first = true,
                      .terms = {.resources = lender->resources,
                                .roles = MACHINE_ROLE_WORKER,
                                .minimum = cold_share(lender->minimum_milli)}}};
    const struct job *job = core_job(replay->core, replay->washes[index]);
    replay->washes[index] = 0;
    if (job && !job_state_is_final(job->state) && job->state != JOB_STATE_STOPPING &&
        replay_do(replay, &cancel, error) < 0)
        return -1;
    return replay_do(replay, &offer, error);
}

/* The owner comes back or leaves: the machine goes or returns. */
static int follow_owner(struct replay *replay, size_t index, int64_t hour, struct error *error)
{
    const struct sim_lender *lender = &replay->workload->lenders[index];
    const bool is_washing = sim_lender_is_washing(lender, hour);
    if (replay->washes[index] != 0 && !is_washing && end_wash(replay, index, error) < 0)
        return -1;
    if (is_washing)
        return replay->washes[index] == 0 ? begin_wash(replay, index, error) : 0;
    return set_online(replay, index, sim_lender_is_online(lender, hour), error);
}

static void note_hour(struct replay *replay, int64_t hour)
{
    struct outcome *outcome = replay->outcome;
    if (hour % (SLOT_MS / HOUR_MS) == 0) {
        const bool has_gpus = replay->workload->kind == WORKLOAD_ALIBABA;
        const struct price_vector price = core_price(replay->core), cold = price_cold_start();
        outcome->slot_price[outcome->slot_count++] =
            has_gpus ? (double)price.gpu_micro / (double)cold.gpu_micro
                     : (double)price.core_micro / (double)cold.core_micro;
    }
    for (size_t i = 0; i < replay->workload->lender_count; i++) {
        const struct sim_lender *lender = &replay->workload->lenders[i];
        if (!sim_lender_is_online(lender, hour))
            continue;
        outcome->there_hours[0] += (double)lender->resources.cores_milli / 1000;
        outcome->there_hours[1] += (double)lender->resources.ram_bytes / (double)(INT64_C(1) << 30);
        outcome->there_hours[2] += (double)lender->resources.gpus_milli / 1000;
    }
}

int replay_pass_hour(struct replay *replay, struct error *error)
{
    const int64_t hour = (replay->now_ms - REPLAY_START) / HOUR_MS;
    note_hour(replay, hour);
    for (size_t i = 0; i < replay->workload->lender_count; i++)
        if (tick_machine(replay, core_machine(replay->core, replay->machines[i]), error) < 0)
            return -1;
    /* Those who leave first: what stays is then known to whoever has to move. */
    for (int is_online = 0; is_online < 2; is_online++)
        for (size_t i = 0; i < replay->workload->lender_count; i++)
            if (sim_lender_is_online(&replay->workload->lenders[i], hour) == (bool)is_online &&
                follow_owner(replay, i, hour, error) < 0)
                return -1;
    if (hour % (SLOT_MS / HOUR_MS) == 0 && replay_reconsider(replay, error) < 0)
        return -1;
    if (replay->options.progress && hour % 24 == 0)
        replay->options.progress(replay->options.context,
                                 (double)hour / (double)replay->workload->hour_count);
    if (hour + 1 < replay->workload->hour_count)
        replay_schedule(replay, replay->now_ms + HOUR_MS, REPLAY_HOUR, 0);
    return 0;
}
