/*
 * Fills a market's folder for bench/api.py: machines and jobs made by commands to the real engine,
 * in virtual time, with their leases, ticks and entries. Every job has ended, all but every
 * hundredth with success.
 *
 *     api_fill FOLDER JOBS MACHINES         prints {"account": ..., "token": ...}
 *     api_fill FOLDER JOBS MACHINES DAYS    spread over so many days up to the running price slot,
 *                                           more of them by day than by night, each for most of a
 *                                           slot from its start; the machines must have room for
 *                                           the busiest (MACHINES of 6, say)
 */
#include "base/assert.h"
#include "base/json.h"
#include "base/scope.h"
#include "runtime/job_spec.h"
#include "server/engine.h"
#include "server/keys.h"
#include "server/tables.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    WAVE = 256, /* jobs that run side by side, and machines enrolled at once */
    WORKERS_ONLINE = 192,
    NODES_MAX = 2,
    LEASES_MAX = NODES_MAX + 1,
    TICK_MS = 10000,
    JOB_MS = 25000, /* of virtual time per wave */
    LENDERS = 100,
    DAYS_MAX = 60,
    HOUR_MS = 3600000,
    SLOT_HOURS = 6,
    SLOTS_A_DAY = 4,
    SLOT_RUN_HOURS = 5, /* of a job in a slot */
};

/* For all of one account's jobs. */
#define GRANT_MICRO INT64_C(10000000000000)

static const char spec_json[] =
    "{\"name\":\"fashion-mnist\",\"num_nodes\":2,\"resources\":{\"cpus\":\"0.5\",\"memory\":\"1\"},"
    "\"train\":{\"model\":\"lenet5\",\"data\":\"fashion-mnist\",\"epochs\":5},"
    "\"sync\":{\"policy\":\"adsp\"},"
    "\"inputs\":[{\"name\":\"train-images\",\"split\":\"train\",\"manifest\":"
    "\"7f1c0d9a7f1c0d9a7f1c0d9a7f1c0d9a7f1c0d9a7f1c0d9a7f1c0d9a7f1c0d9a\",\"records\":60000},"
    "{\"name\":\"test-images\",\"split\":\"test\",\"manifest\":"
    "\"0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d\",\"records\":10000}]}";

struct filler {
    struct engine *engine;
    struct virtual_clock clock;
    pthread_mutex_t mutex;
    pthread_cond_t done;
    size_t waiting; /* guarded by mutex */
    struct text spec;
    int64_t max_run_ms; /* of a job */
};

struct fill_lease {
    uint64_t id, fence;
};

/* One command, and of a job that was submitted its leases. */
struct fill_request {
    struct engine_request request;
    struct filler *filler;
    struct fill_lease leases[LEASES_MAX];
    size_t lease_count;
    uint64_t job; /* whose figures to put, instead of a command */
};

static void must(int result, const struct error *error)
{
    if (result == 0)
        return;
    fprintf(stderr, "api_fill: %s\n", error->message);
    _exit(1);
}

static void on_done(struct engine_request *request, const struct error *error)
{
    struct filler *filler = ((struct fill_request *)request)->filler;
    if (error)
        must(-1, error);
    pthread_mutex_lock(&filler->mutex);
    if (--filler->waiting == 0)
        pthread_cond_signal(&filler->done);
    pthread_mutex_unlock(&filler->mutex);
}

static int note_leases(struct engine_request *engine_request, const struct core *core,
                       struct store_batch *batch, struct error *error)
{
    (void)batch;
    (void)error;
    struct fill_request *request = (struct fill_request *)engine_request;
    const struct job *job = core_job(core, engine_request->subject);
    ASSERT(job && job->lease_count > 0 && job->lease_count <= LEASES_MAX);
    request->lease_count = job->lease_count;
    for (size_t i = 0; i < job->lease_count; i++)
        request->leases[i] = (struct fill_lease){job->leases[i]->id, job->leases[i]->fence};
    return 0;
}

/* Returns once all are committed. */
static void run_all(struct filler *filler, struct fill_request *requests, size_t count)
{
    struct error error;
    filler->waiting = count;
    for (size_t i = 0; i < count; i++) {
        requests[i].filler = filler;
        requests[i].request.has_command = requests[i].job == 0;
        requests[i].request.on_done = on_done;
        must(engine_submit(filler->engine, &requests[i].request, true, &error), &error);
    }
    pthread_mutex_lock(&filler->mutex);
    while (filler->waiting)
        pthread_cond_wait(&filler->done, &filler->mutex);
    pthread_mutex_unlock(&filler->mutex);
}

static uint64_t run_one(struct filler *filler, const struct command *command)
{
    struct fill_request request = {.request = {.command = *command}};
    run_all(filler, &request, 1);
    return request.request.subject;
}

static void advance(struct filler *filler, int64_t span_ms)
{
    virtual_clock_advance(&filler->clock, span_ms * 1000000);
}

/* ---- Accounts and machines ------------------------------------------------------------------- */

static uint64_t open_account(struct filler *filler, const char *name)
{
    return run_one(filler, &(struct command){.kind = COMMAND_OPEN_ACCOUNT,
                                             .open_account = {.name = text_of(name)}});
}

static void number_hash(uint64_t kind, uint64_t number, uint8_t out[MARKET_HASH_SIZE])
{
    memset(out, 0, MARKET_HASH_SIZE);
    memcpy(out, &kind, sizeof(kind));
    memcpy(out + sizeof(kind), &number, sizeof(number));
}

static struct command enrolment(const char *name, uint64_t index)
{
    const struct resources resources = {.cores_milli = (int64_t)(1 + index % 8) * 1000,
                                        .ram_bytes = (int64_t)(2 + index % 30) << 30,
                                        .disk_bytes = INT64_C(50) << 30};
    struct command command = {
        .kind = COMMAND_ENROL_MACHINE,
        .enrol_machine = {
            .name = text_of(name),
            .probe = {.resources = resources,
                      .speed_weight_milli = 600 + (int64_t)(index % 900),
                      .cpu_model = "Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz",
                      .labels = "python3-torch"},
            .offer = {.resources = resources, .roles = MACHINE_ROLE_WORKER | MACHINE_ROLE_SERVER}}};
    number_hash(1, index, command.enrol_machine.code_hash);
    number_hash(2, index, command.enrol_machine.public_key);
    return command;
}

static void enrol(struct filler *filler, const uint64_t *lenders, uint64_t first, size_t count,
                  uint64_t *out_ids)
{
    char(*names)[32] = calloc(count, sizeof(*names));
    struct fill_request *requests = calloc(2 * count, sizeof(*requests));
    ASSERT(names && requests);
    for (size_t i = 0; i < count; i++) {
        const uint64_t index = first + i;
        snprintf(names[i], sizeof(names[i]), "machine-%" PRIu64, index);
        struct command *code = &requests[2 * i].request.command;
        *code = (struct command){
            .kind = COMMAND_ADD_CODE,
            .add_code = {.kind = CODE_KIND_ENROL,
                         .account = lenders[index % LENDERS],
                         .expires_ms = clock_utc_ms(&filler->clock.clock) + 60000}};
        number_hash(1, index, code->add_code.hash);
        requests[2 * i + 1].request.command = enrolment(names[i], index);
    }
    run_all(filler, requests, 2 * count);
    for (size_t i = 0; i < count; i++)
        out_ids[i] = requests[2 * i + 1].request.subject;
    free(requests);
    free(names);
}

static void fill_machines(struct filler *filler, uint64_t count, uint64_t *out_ids)
{
    uint64_t lenders[LENDERS];
    for (size_t i = 0; i < LENDERS; i++) {
        char name[32];
        snprintf(name, sizeof(name), "lender-%zu", i);
        lenders[i] = open_account(filler, name);
    }
    for (uint64_t i = 0; i < count; i += WAVE)
        enrol(filler, lenders, i, count - i < WAVE ? (size_t)(count - i) : WAVE, out_ids + i);
}

static void set_online(struct filler *filler, const uint64_t *machines, uint64_t count,
                       bool is_online)
{
    for (uint64_t i = 0; i < count; i++) {
        struct command command = {.kind =
                                      is_online ? COMMAND_MACHINE_CONNECTED : COMMAND_MACHINE_GONE};
        if (is_online) {
            command.machine_connected.machine = machines[i];
            command.machine_connected.generation = 1;
        } else {
            command.machine_gone.machine = machines[i];
        }
        run_one(filler, &command);
    }
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static struct command submission(const struct filler *filler, uint64_t account, uint64_t index)
{
    struct command command = {.kind = COMMAND_SUBMIT_JOB,
                              .submit_job = {.account = account,
                                             .spec = filler->spec,
                                             .num_nodes = NODES_MAX,
                                             .worker = {.cores_milli = 250,
                                                        .ram_bytes = INT64_C(256) << 20,
                                                        .disk_bytes = INT64_C(1) << 30},
                                             .server = {.cores_milli = 250,
                                                        .ram_bytes = INT64_C(256) << 20,
                                                        .disk_bytes = INT64_C(1) << 30},
                                             .max_run_ms = filler->max_run_ms,
                                             .expected_run_ms = (int64_t)2 * TICK_MS,
                                             .tick_ms = TICK_MS}};
    snprintf(command.submit_job.name, sizeof(command.submit_job.name), "fashion-mnist-%" PRIu64,
             index);
    return command;
}

static struct command lease_command(enum command_kind kind, const struct fill_lease *lease,
                                    bool is_failure)
{
    struct command command = {.kind = kind};
    if (kind == COMMAND_LEASE_RUNNING) {
        command.lease_running.lease = lease->id;
        command.lease_running.fence = lease->fence;
    } else if (kind == COMMAND_TICK_LEASE) {
        command.tick_lease.lease = lease->id;
        command.tick_lease.fence = lease->fence;
        command.tick_lease.tick_index = 1;
        command.tick_lease.wall_ms = TICK_MS;
    } else {
        command.end_lease.lease = lease->id;
        command.end_lease.fence = lease->fence;
        command.end_lease.outcome = is_failure ? LEASE_OUTCOME_FAILED : LEASE_OUTCOME_SUCCEEDED;
        command.end_lease.reason = is_failure ? TEXT("the program exited with 1") : TEXT("");
    }
    return command;
}

static void all_leases(struct filler *filler, const struct fill_request *jobs, size_t job_count,
                       enum command_kind kind, uint64_t first_index)
{
    struct fill_request *requests = calloc(job_count * LEASES_MAX, sizeof(*requests));
    ASSERT(requests);
    size_t count = 0;
    for (size_t i = 0; i < job_count; i++)
        for (size_t k = jobs[i].lease_count; k-- > 0;) /* the parameter server ends last */
            requests[count++].request.command =
                lease_command(kind, &jobs[i].leases[k], (first_index + i) % 100 == 0);
    run_all(filler, requests, count);
    free(requests);
}

static int put_figures(struct engine_request *engine_request, const struct core *core,
                       struct store_batch *batch, struct error *error)
{
    (void)error;
    const struct fill_request *request = (const struct fill_request *)engine_request;
    const struct job *job = core_job(core, request->job);
    ASSERT(job);
    char workers[640];
    snprintf(workers, sizeof(workers),
             "{\"workers\":[{\"lease\":%" PRIu64 ",\"role\":1,\"rank\":0,\"machine\":%" PRIu64
             ",\"at_ms\":%" PRId64 ",\"steps\":900,\"samples\":28800,\"commits\":40,"
             "\"has_loss\":true,\"loss\":0.31,\"steps_per_second\":90.5,\"share\":0.5}]}",
             job->leases[1]->id, job->leases[1]->machine, job->ended_ms);
    const struct store_value row[METRICS_COLUMN_COUNT] = {
        [METRICS_JOB] = store_integer((int64_t)job->id),
        [METRICS_ACCOUNT] = store_integer((int64_t)job->request.account),
        [METRICS_UPDATED_MS] = store_integer(job->ended_ms),
        [METRICS_FIRST_STEP_MS] = store_integer(job->started_ms),
        [METRICS_HAS_LOSS] = store_integer(1),
        [METRICS_LOSS] = store_real(0.3125),
        [METRICS_HAS_ACCURACY] = store_integer(1),
        [METRICS_TEST_ACCURACY] = store_real(0.8875),
        [METRICS_SAMPLES] = store_integer(57600),
        [METRICS_GAMMA_MS] = store_integer(3000),
        [METRICS_WORKERS] = store_text(text_of(workers)),
    };
    store_batch_put(batch, &tables[TABLE_METRICS], row, METRICS_COLUMN_COUNT);
    return 0;
}

/* What the parameter servers would have reported. */
static void all_figures(struct filler *filler, const struct fill_request *jobs, size_t job_count)
{
    struct fill_request *requests = calloc(job_count, sizeof(*requests));
    ASSERT(requests);
    for (size_t i = 0; i < job_count; i++) {
        requests[i].job = jobs[i].request.subject;
        requests[i].request.on_decided = put_figures;
    }
    run_all(filler, requests, job_count);
    free(requests);
}

/* Begins `wave` jobs. */
static void start_wave(struct filler *filler, uint64_t account, uint64_t index, size_t wave,
                       struct fill_request *jobs)
{
    memset(jobs, 0, WAVE * sizeof(*jobs));
    for (size_t i = 0; i < wave; i++) {
        jobs[i].request.command = submission(filler, account, index + i);
        jobs[i].request.on_decided = note_leases;
    }
    run_all(filler, jobs, wave);
    all_leases(filler, jobs, wave, COMMAND_LEASE_RUNNING, index);
    advance(filler, TICK_MS);
    all_leases(filler, jobs, wave, COMMAND_TICK_LEASE, index);
}

static void end_wave(struct filler *filler, uint64_t index, size_t wave,
                     const struct fill_request *jobs)
{
    all_leases(filler, jobs, wave, COMMAND_END_LEASE, index);
    all_figures(filler, jobs, wave);
}

static void fill_jobs(struct filler *filler, uint64_t account, uint64_t count)
{
    struct fill_request *jobs = calloc(WAVE, sizeof(*jobs));
    ASSERT(jobs);
    for (uint64_t index = 0; index < count; index += WAVE) {
        const size_t wave = count - index < WAVE ? (size_t)(count - index) : WAVE;
        start_wave(filler, account, index, wave, jobs);
        end_wave(filler, index, wave, jobs);
        advance(filler, JOB_MS - TICK_MS);
    }
    free(jobs);
}

/* As the market's own timer does it: slots end on the hour. */
static void pass_hours(struct filler *filler, int hours)
{
    for (int i = 0; i < hours; i++) {
        advance(filler, HOUR_MS - clock_utc_ms(&filler->clock.clock) % HOUR_MS);
        run_one(filler, &(struct command){.kind = COMMAND_TIME_PASSED});
    }
}

static void fill_days(struct filler *filler, uint64_t account, uint64_t count, uint64_t days)
{
    static const uint64_t tenths[SLOTS_A_DAY] = {1, 3, 4, 2};
    struct fill_request *jobs = calloc(WAVE, sizeof(*jobs));
    ASSERT(jobs);
    for (uint64_t slot = 0, index = 0; slot < days * SLOTS_A_DAY; slot++) {
        const int64_t hour = clock_utc_ms(&filler->clock.clock) / HOUR_MS;
        const uint64_t share = tenths[hour / SLOT_HOURS % SLOTS_A_DAY] * count / (10 * days);
        const size_t wave = share < WAVE ? (size_t)share : WAVE;
        start_wave(filler, account, index, wave, jobs);
        pass_hours(filler, SLOT_RUN_HOURS);
        end_wave(filler, index, wave, jobs);
        pass_hours(filler, SLOT_HOURS - SLOT_RUN_HOURS);
        index += wave;
    }
    free(jobs);
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void read_spec(struct filler *filler, struct arena *arena)
{
    struct error error;
    struct job_spec spec = {0};
    must(job_spec_read(arena, text_of(spec_json), &spec, &error), &error);
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    job_spec_write(&spec, &json);
    filler->spec = arena_copy_text(arena, buffer_text(&json));
}

static void print_result(uint64_t account, const char *token)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 4096);
    struct json_writer writer;
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    json_field_u64(&writer, "account", account);
    json_field_string(&writer, "token", token);
    json_object_end(&writer);
    puts(buffer_string(&out));
}

struct fill_size {
    uint64_t jobs, machines;
    uint64_t days; /* 0: one after the other */
};

static void fill(struct filler *filler, const struct fill_size *size)
{
    const uint64_t machine_count = size->machines;
    uint64_t *machines = calloc(machine_count, sizeof(*machines));
    ASSERT(machines);
    struct command settings = {.kind = COMMAND_CHANGE_SETTINGS,
                               .change_settings = core_default_settings()};
    settings.change_settings.grant_micro = GRANT_MICRO;
    settings.change_settings.grant_daily_micro = (int64_t)2 * LENDERS * GRANT_MICRO;
    run_one(filler, &settings);
    fill_machines(filler, machine_count, machines);
    const uint64_t account = open_account(filler, "borrower");
    char token[KEYS_TOKEN_SIZE];
    token_new("account", token);
    struct command add = {
        .kind = COMMAND_ADD_TOKEN,
        .add_token = {.account = account, .scopes = TOKEN_SCOPE_ALL, .label = TEXT("bench")}};
    token_hash(text_of(token), add.add_token.hash);
    run_one(filler, &add);
    const uint64_t online = machine_count < WORKERS_ONLINE ? machine_count : WORKERS_ONLINE;
    set_online(filler, machines, online, true);
    if (size->days)
        fill_days(filler, account, size->jobs, size->days);
    else
        fill_jobs(filler, account, size->jobs);
    set_online(filler, machines, online, false);
    print_result(account, token);
    free(machines);
}

static bool read_size(int argument_count, char **arguments, struct fill_size *out_size)
{
    struct error error;
    *out_size = (struct fill_size){0};
    if (argument_count != 4 && argument_count != 5)
        return false;
    if (text_parse_u64(text_of(arguments[2]), &out_size->jobs, &error) < 0 ||
        text_parse_u64(text_of(arguments[3]), &out_size->machines, &error) < 0 ||
        (argument_count == 5 && text_parse_u64(text_of(arguments[4]), &out_size->days, &error) < 0))
        return false;
    return out_size->jobs && out_size->machines && out_size->days <= DAYS_MAX;
}

/* Days go up to the slot that runs now, whatever the time of day; else the last thing happens about
 * an hour ago. */
static int64_t first_ms(const struct fill_size *size, int64_t now_ms)
{
    const int64_t slot_ms = (int64_t)SLOT_HOURS * HOUR_MS;
    if (size->days)
        return now_ms - now_ms % slot_ms - (int64_t)(size->days * SLOTS_A_DAY) * slot_ms;
    return now_ms - HOUR_MS - (int64_t)(size->jobs / WAVE + 1) * JOB_MS;
}

int main(int argument_count, char **arguments)
{
    struct error error = {0};
    struct fill_size size;
    if (!read_size(argument_count, arguments, &size)) {
        fprintf(stderr, "usage: api_fill FOLDER JOBS MACHINES [DAYS]\n");
        return 2;
    }
    char path[4096];
    snprintf(path, sizeof(path), "%.4000s/market.db", arguments[1]);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct filler filler = {.mutex = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    filler.max_run_ms = (size.days ? SLOT_HOURS : 1) * (int64_t)HOUR_MS;
    virtual_clock_init(&filler.clock, first_ms(&size, clock_utc_ms(&clock_system)));
    read_spec(&filler, arena);
    must(engine_open(&(struct engine_options){.store = {.location = path, .schema = &tables_schema},
                                              .clock = &filler.clock.clock,
                                              .snapshot_event_count = 1 << 30},
                     &filler.engine, &error),
         &error);
    must(engine_start(filler.engine, &error), &error);
    fill(&filler, &size);
    engine_free(filler.engine);
    return 0;
}
