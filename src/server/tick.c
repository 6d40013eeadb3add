/*
 * Ticks: meter reports joined with accepted pushes into verified ticks; logs, reports and artifacts
 * passed on to the main thread.
 *
 * A lease is billed by the sum of its verified ticks, so a tick command that is lost to a store
 * that is away is made good by the next one, or by the command that ends the lease.
 */
#include "base/assert.h"
#include "base/log.h"
#include "blob/manifest.h"
#include "runtime/child_message.h"
#include "runtime/result_name.h"
#include "server/call.h"
#include "server/hub_internal.h"
#include "server/logs.h"
#include "server/tables.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    TICK_ARTIFACT_MAX = RESULT_FILES_MAX + RESULT_OWN_FILES_MAX,
    TICK_ARTIFACT_CHUNK_MAX = 4096, /* a daemon cuts the largest into 256 */
    ARTIFACT_NAME_SIZE = RESULT_NAME_SIZE_MAX + RESULT_PREFIX_SIZE_MAX + 1,
};

static void bill(struct hub *hub, struct hub_lease *lease, const struct verified_tick *ticks,
                 uint32_t count)
{
    if (!count)
        return;
    for (uint32_t i = 0; i < count; i++)
        lease->verified_ms += ticks[i].wall_ms;
    lease->verified_index = ticks[count - 1].index + 1;
    hub_command(hub,
                &(struct command){.kind = COMMAND_TICK_LEASE,
                                  .tick_lease = {.lease = lease->id,
                                                 .fence = lease->fence,
                                                 .tick_index = lease->verified_index,
                                                 .wall_ms = lease->verified_ms}},
                NULL);
}

static void note_use(struct hub *hub, const struct hub_lease *lease,
                     const struct meter_message *meter);

void tick_meter(struct hub_machine *machine, const struct meter_message *meter)
{
    struct hub *hub = machine->hub;
    struct hub_lease *lease = dispatch_find(machine, meter->lease, meter->fence);
    if (!lease)
        return; /* it ended meanwhile */
    uint8_t bytes[METER_SIGNED_SIZE];
    meter_message_signed(meter, bytes);
    if (!keys_verify(machine->public_key, (struct text){(const char *)bytes, sizeof(bytes)},
                     meter->signature)) {
        atomic_fetch_add(&hub->bad_meter_count, 1);
        log_event(LOG_WARN, "meter_refused",
                  "machine=%" PRIu64 " lease=%" PRIu64 " reason=\"wrong signature\"", machine->id,
                  meter->lease);
        return;
    }
    const struct verify_meter report = {
        .index = meter->tick_index,
        .wall_ms = meter->wall_ms > INT64_MAX ? INT64_MAX : (int64_t)meter->wall_ms,
        .cpu_ms = meter->cpu_ms > INT64_MAX ? INT64_MAX : (int64_t)meter->cpu_ms,
        .is_held = machine_yield_is_held(machine->yield),
    };
    struct verified_tick ticks[VERIFY_PENDING_MAX + 1];
    uint32_t count = 0;
    struct error error;
    if (verify_meter(&lease->verify, &report, clock_utc_ms(hub->server->clock), ticks, &count,
                     &error) < 0) {
        log_event(error.code == ERROR_CONFLICT ? LOG_DEBUG : LOG_WARN, "meter_refused",
                  "machine=%" PRIu64 " lease=%" PRIu64 " reason=\"%s\"", machine->id, meter->lease,
                  error.message);
        return;
    }
    note_use(hub, lease, meter);
    bill(hub, lease, ticks, count);
}

/* Others of its job computed what it sent anew: it ends, and another takes its rank. */
static void exclude(struct hub *hub, const struct hub_lease *accuser, struct hub_lease *lease,
                    const struct server_report_worker *found)
{
    if (lease->is_faulty)
        return;
    lease->is_faulty = true;
    lease->is_settling = false;
    log_event(LOG_WARN, "lease_faulty", "lease=%" PRIu64 " machine=%" PRIu64 " reason=\"%s\"",
              lease->id, lease->machine, found->fault);
    hub_command(
        hub,
        &(struct command){.kind = COMMAND_END_LEASE,
                          .end_lease = {.lease = lease->id,
                                        .fence = lease->fence,
                                        .outcome = LEASE_OUTCOME_FAULTY,
                                        .agreeing = {found->agreeing[0], found->agreeing[1]},
                                        .accuser = accuser->id}},
        found->fault);
}

/* The lead of a job that goes by a schedule wants another number of workers. */
static void resize(struct hub *hub, struct hub_lease *lead, uint64_t workers)
{
    if (workers == 0 || workers > JOB_NODES_MAX || workers == lead->workers_wanted)
        return;
    lead->workers_wanted = workers;
    hub_command(
        hub,
        &(struct command){
            .kind = COMMAND_RESIZE_JOB,
            .resize_job = {.lease = lead->id, .fence = lead->fence, .workers = (int64_t)workers}},
        NULL);
}

/* It waits at the barrier of an epoch that is over, to be let go: for it that is the training's
 * end. */
static bool is_let_go(struct hub *hub, struct hub_lease *lease, const struct server_report *report,
                      bool is_member)
{
    const bool was_let_go = lease->is_let_go;
    struct verified_tick ticks[VERIFY_PENDING_MAX + 1];
    lease->is_let_go =
        report->workers_wanted > 0 && lease->rank >= report->workers_wanted && !is_member;
    if (lease->is_let_go && !was_let_go)
        bill(hub, lease, ticks, verify_training_over(&lease->verify, ticks));
    return lease->is_let_go;
}

static void count_pushes(struct hub *hub, struct hub_lease *server_lease, struct arena *arena,
                         struct text json)
{
    struct server_report report = {0};
    struct error error;
    if (json_read(arena, json, &server_report_schema, &report, &error) < 0) {
        log_event(LOG_WARN, "report_refused", "lease=%" PRIu64 " error=\"%s\"", server_lease->id,
                  error.message);
        return;
    }
    resize(hub, server_lease, report.workers_wanted);
    const struct server_report_worker *workers = report.workers.items;
    for (size_t i = 0; i < report.workers.count; i++) {
        struct hub_lease *lease = map_get(&hub->leases, workers[i].lease);
        /* A parameter server vouches for the workers of its own job only. */
        if (!lease || lease->fence != workers[i].fence || lease->job != server_lease->job ||
            lease->role != LEASE_ROLE_WORKER)
            continue;
        if (workers[i].is_faulty) {
            exclude(hub, server_lease, lease, &workers[i]);
            continue;
        }
        struct verified_tick ticks[VERIFY_PENDING_MAX + 1];
        if (workers[i].accepted_pushes) {
            bill(hub, lease, ticks, verify_push(&lease->verify, ticks));
            suspect_pushed(hub, lease);
        }
        if (report.is_final)
            bill(hub, lease, ticks, verify_training_over(&lease->verify, ticks));
        if (is_let_go(hub, lease, &report, workers[i].is_member)) {
            dispatch_settle(hub, lease);
            continue;
        }
        if (report.is_final || !workers[i].is_member)
            dispatch_settle(hub, lease);
        /* One that was there and dropped out. */
        if (!report.is_final && !workers[i].is_member && lease->verified_index > 0 &&
            !lease->is_over)
            suspect_report(hub, lease);
    }
}

/* ---- To the main thread ---------------------------------------------------------------------- */

enum note_kind { NOTE_REPORT, NOTE_USE, NOTE_LOG, NOTE_LOG_END };

struct note {
    struct server *server;
    enum note_kind kind;
    struct live_source source;
    struct backlog *backlog; /* of the machine that said it; NULL: none did */
    struct log_message log;  /* of NOTE_LOG; its bytes are those below */
    struct live_use use;     /* of NOTE_USE */
    size_t size;
    char bytes[];
};

static struct note *note_new(struct hub *hub, enum note_kind kind, const struct hub_lease *lease,
                             struct text bytes)
{
    struct note *note = calloc(1, sizeof(*note) + bytes.size);
    ASSERT(note);
    note->server = hub->server;
    note->kind = kind;
    note->source = (struct live_source){
        .job = lease->job,
        .account = lease->account,
        .lease = lease->id,
        .role = lease->role,
        .rank = lease->rank,
        .is_replica = lease->is_replica,
        .machine = lease->machine,
    };
    note->size = bytes.size;
    if (bytes.size)
        memcpy(note->bytes, bytes.data, bytes.size);
    if (hub->speaking)
        note->backlog = backlog_add(hub->speaking, sizeof(*note) + bytes.size, 0);
    return note;
}

static void take_note(void *context)
{
    struct note *note = context;
    struct server *server = note->server;
    const struct text bytes = {note->bytes, note->size};
    struct error error;
    switch (note->kind) {
    case NOTE_REPORT:
        if (live_report(server->live, &note->source, bytes, &error) < 0)
            log_event(LOG_WARN, "report_refused", "lease=%" PRIu64 " error=\"%s\"",
                      note->source.lease, error.message);
        break;
    case NOTE_USE:
        live_use(server->live, &note->source, &note->use);
        break;
    case NOTE_LOG: {
        const struct logs_piece piece = {.lease = note->source.lease,
                                         .fence = note->log.fence,
                                         .machine = note->source.machine,
                                         .offset = note->log.offset,
                                         .is_resumed = note->log.is_resumed,
                                         .is_last = note->log.is_last,
                                         .bytes = bytes};
        uint64_t offset = 0;
        const struct text added = logs_append(server->logs, &piece, &offset);
        if (added.size)
            live_log(server->live, &note->source, offset, added);
        break;
    }
    case NOTE_LOG_END:
        logs_end(server->logs, note->source.lease);
        break;
    }
    backlog_arrived(note->backlog, sizeof(*note) + note->size, 0);
    free(note);
}

/* More than a machine can have used in a tick is cut: it is for people to look at. */
static int64_t used_ms(uint64_t ms)
{
    return ms < INT32_MAX ? (int64_t)ms : INT32_MAX;
}

static void note_use(struct hub *hub, const struct hub_lease *lease,
                     const struct meter_message *meter)
{
    struct note *note = note_new(hub, NOTE_USE, lease, (struct text){0});
    const uint64_t peak = meter->memory_peak_bytes;
    note->use = (struct live_use){.cpu_ms = used_ms(meter->cpu_ms),
                                  .gpu_ms = used_ms(meter->gpu_ms),
                                  .memory_peak_bytes = peak < INT64_MAX ? (int64_t)peak : 0};
    loop_post(hub->server->loop, take_note, note);
}

void tick_report(struct hub_machine *machine, struct arena *arena,
                 const struct report_message *report)
{
    struct hub *hub = machine->hub;
    struct hub_lease *lease = dispatch_find(machine, report->lease, report->fence);
    if (!lease)
        return;
    if (hub_has_lead(lease))
        return; /* the lead speaks for them all */
    if (lease->role == LEASE_ROLE_SERVER)
        count_pushes(hub, lease, arena, report->json);
    loop_post(hub->server->loop, take_note, note_new(hub, NOTE_REPORT, lease, report->json));
}

void tick_log(struct hub_machine *machine, const struct log_message *log)
{
    struct hub *hub = machine->hub;
    const struct hub_lease *lease = dispatch_find(machine, log->lease, log->fence);
    if (!lease) { /* it ended without the machine's word, which must not wait for this */
        const struct log_kept_message kept = {log->lease, log->fence, LEASE_LOG_ALL};
        hub_send(machine, &(struct lease_message){LEASE_MESSAGE_LOG_KEPT, .log_kept = kept});
        return;
    }
    struct note *note = note_new(hub, NOTE_LOG, lease, log->bytes);
    note->log = *log;
    loop_post(hub->server->loop, take_note, note);
}

void tick_lease_ended(struct hub *hub, uint64_t lease)
{
    const struct hub_lease ended = {.id = lease};
    loop_post(hub->server->loop, take_note, note_new(hub, NOTE_LOG_END, &ended, (struct text){0}));
}

struct artifact_row {
    uint64_t job, lease;
    char name[ARTIFACT_NAME_SIZE];
    struct blob_hash manifest;
    int64_t size_bytes;
    int64_t now_ms;
};

static void put_artifact(void *rows, struct store_batch *batch)
{
    const struct artifact_row *artifact = rows;
    const struct store_value row[ARTIFACTS_COLUMN_COUNT] = {
        [ARTIFACTS_JOB] = store_integer((int64_t)artifact->job),
        [ARTIFACTS_NAME] = store_text(text_of(artifact->name)),
        [ARTIFACTS_LEASE] = store_integer((int64_t)artifact->lease),
        [ARTIFACTS_MANIFEST] =
            store_blob(artifact->manifest.bytes, sizeof(artifact->manifest.bytes)),
        [ARTIFACTS_SIZE_BYTES] = store_integer(artifact->size_bytes),
        [ARTIFACTS_CREATED_MS] = store_integer(artifact->now_ms),
    };
    store_batch_put(batch, &tables[TABLE_ARTIFACTS], row, ARTIFACTS_COLUMN_COUNT);
}

/* All of it is here and it is as large as was said: whoever fetches it must find it whole. */
static int check_artifact(struct blob_store *blobs, const struct artifact_message *artifact,
                          struct error *error)
{
    const char *trouble = result_name_trouble(artifact->name);
    if (trouble)
        return error_set(error, ERROR_INVALID, "%s", trouble);
    if (artifact->size_bytes > RESULT_BYTES_MAX)
        return error_set(error, ERROR_EXHAUSTED, "it has %" PRIu64 " bytes, more than %" PRIu64,
                         artifact->size_bytes, RESULT_BYTES_MAX);
    AUTO(arena) struct arena *arena = arena_new(0);
    struct blob_hash hash;
    struct manifest manifest;
    memcpy(hash.bytes, artifact->manifest, sizeof(hash.bytes));
    if (manifest_get(arena, blobs, &hash, &manifest, error) < 0)
        return -1;
    if (manifest.size_bytes != artifact->size_bytes)
        return error_set(error, ERROR_INVALID, "its manifest has %" PRIu64 " bytes, not %" PRIu64,
                         manifest.size_bytes, artifact->size_bytes);
    if (manifest.chunks.count > TICK_ARTIFACT_CHUNK_MAX)
        return error_set(error, ERROR_EXHAUSTED, "it has %zu chunks, more than %d",
                         manifest.chunks.count, TICK_ARTIFACT_CHUNK_MAX);
    for (size_t i = 0; i < manifest.chunks.count; i++)
        if (!blob_store_has(blobs, &manifest_chunk(&manifest, i)->hash))
            return error_set(error, ERROR_NOT_FOUND, "its chunk %zu is not here", i);
    return 0;
}

static bool is_of_job(const struct artifact_message *artifact)
{
    return text_equal(artifact->name, TEXT(LEASE_JOB_CHECKPOINT_NAME));
}

static bool is_checkpoint(const struct hub_lease *lease, const struct artifact_message *artifact)
{
    if (!lease->is_command)
        return lease->role == LEASE_ROLE_SERVER &&
               text_equal(artifact->name, TEXT(LEASE_CHECKPOINT_NAME));
    return is_of_job(artifact) || text_equal(artifact->name, TEXT(LEASE_RANK_CHECKPOINT_NAME));
}

static struct checkpoint_left checkpoint_of(const struct hub *hub, const struct hub_lease *lease,
                                            const struct artifact_message *artifact)
{
    struct checkpoint_left left = {.job = lease->job,
                                   .account = lease->account,
                                   .slot = lease->is_command && !is_of_job(artifact)
                                               ? checkpoint_slot(lease->rank)
                                               : CHECKPOINT_SLOT_JOB,
                                   .size_bytes = artifact->size_bytes,
                                   .left_ms = clock_utc_ms(hub->server->clock)};
    memcpy(left.manifest.bytes, artifact->manifest, sizeof(left.manifest.bytes));
    return left;
}

/* The model is the lead's to leave: another's must not take its place. */
static int check_leaver(struct hub *hub, const struct hub_lease *lease,
                        const struct artifact_message *artifact, struct error *error)
{
    if (lease->dial_count > 0)
        return error_set(error, ERROR_REFUSED, "it is not the lead's, and the job has one");
    if (is_checkpoint(lease, artifact)) {
        if (lease->is_command && is_of_job(artifact) && lease->rank > 0)
            return error_set(error, ERROR_REFUSED, "the job's checkpoint is rank 0's to leave");
        const struct checkpoint_left left = checkpoint_of(hub, lease, artifact);
        return checkpoints_pace(hub, &left, lease->checkpoint_interval_ms, error);
    }
    if (lease->artifact_count == TICK_ARTIFACT_MAX)
        return error_set(error, ERROR_EXHAUSTED, "a lease leaves at most %d", TICK_ARTIFACT_MAX);
    return 0;
}

/* Ranks that leave files of the same name leave both. */
static void name_artifact(const struct hub_lease *lease, const struct artifact_message *artifact,
                          char out[ARTIFACT_NAME_SIZE])
{
    const struct text name = artifact->name;
    if (lease->is_command && is_checkpoint(lease, artifact))
        snprintf(out, ARTIFACT_NAME_SIZE, is_of_job(artifact) ? "%s" : "%s-rank%" PRIu64,
                 LEASE_CHECKPOINT_NAME, lease->rank);
    else if (lease->role == LEASE_ROLE_SERVER)
        snprintf(out, ARTIFACT_NAME_SIZE, TEXT_FORMAT, TEXT_ARGS(name));
    else
        snprintf(out, ARTIFACT_NAME_SIZE, "rank%" PRIu64 "-" TEXT_FORMAT, lease->rank,
                 TEXT_ARGS(name));
}

void tick_artifact(struct hub_machine *machine, const struct artifact_message *artifact)
{
    struct hub *hub = machine->hub;
    struct hub_lease *lease = dispatch_find(machine, artifact->lease, artifact->fence);
    if (!lease)
        return;
    struct error error;
    if (check_leaver(hub, lease, artifact, &error) < 0 ||
        check_artifact(hub->server->blobs, artifact, &error) < 0) {
        log_event(LOG_WARN, "artifact_refused",
                  "lease=%" PRIu64 " machine=%" PRIu64 " error=\"%s\"", lease->id, machine->id,
                  error.message);
        return;
    }
    struct artifact_row *row = calloc(1, sizeof(*row));
    ASSERT(row);
    *row = (struct artifact_row){.job = lease->job,
                                 .lease = lease->id,
                                 .size_bytes = (int64_t)artifact->size_bytes,
                                 .now_ms = clock_utc_ms(hub->server->clock)};
    name_artifact(lease, artifact, row->name);
    memcpy(row->manifest.bytes, artifact->manifest, sizeof(row->manifest.bytes));
    /* A checkpoint takes the place of the one before. */
    const struct checkpoint_left left = checkpoint_of(hub, lease, artifact);
    if (is_checkpoint(lease, artifact))
        checkpoints_note(hub, &left);
    else
        lease->artifact_count++;
    hub_rows_take(hub, put_artifact, row);
}
