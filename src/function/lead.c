#include "function/lead.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/memory.h"
#include "function/lesson.h"
#include "function/parcel.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS_MAX = 4096, UPDATES_MAX = 4096, NEWEST_MAX = 256 };
/* The head of a model. */
struct model_head {
    uint64_t version, epoch, samples;
    struct json_array spans; /* of struct batch_span */
};

static const struct json_field span_fields[] = {
    {"first", JSON_U64, offsetof(struct batch_span, first), .is_required = true,
     .maximum = INT64_MAX},
    {"count", JSON_U64, offsetof(struct batch_span, count), .is_required = true, .minimum = 1,
     .maximum = INT64_MAX},
};
static const struct json_schema span_schema = JSON_SCHEMA("span", span_fields, struct batch_span);

#define HEAD(member) offsetof(struct model_head, member)
static const struct json_field head_fields[] = {
    {"version", JSON_U64, HEAD(version), .is_required = true, .maximum = INT64_MAX},
    {"epoch", JSON_U64, HEAD(epoch), .is_required = true, .maximum = INT64_MAX},
    {"samples", JSON_U64, HEAD(samples), .is_required = true, .maximum = INT64_MAX},
    {"spans", JSON_ARRAY, HEAD(spans), .is_required = true, .size_max = LEAD_SPANS_MAX,
     .schema = &span_schema},
};
static const struct json_schema head_schema = JSON_SCHEMA("model", head_fields, struct model_head);

struct newest {
    uint64_t version; /* named before it is put */
    uint64_t before;  /* the newest as long as that one is not there */
    int64_t spent_micro;
};
static const struct json_field newest_fields[] = {
    {"version", JSON_U64, offsetof(struct newest, version), .is_required = true,
     .maximum = INT64_MAX},
    {"before", JSON_U64, offsetof(struct newest, before), .maximum = INT64_MAX},
    {"spent_micro", JSON_I64, offsetof(struct newest, spent_micro), .maximum = INT64_MAX},
};
static const struct json_schema newest_schema = JSON_SCHEMA("newest", newest_fields, struct newest);

struct lead {
    struct lead_options options;
    char job[WORK_JOB_SIZE];
    float *parameters;
    double rate;
    uint64_t version, published, epoch, samples;
    int64_t spent_micro;
    uint64_t named;    /* as the newest; whether it is there is not known until it is published */
    bool is_published; /* as it is */
    bool is_between;   /* the next epoch has begun, and its first model is not published yet */
    struct batch_span *covered; /* [LEAD_SPANS_MAX] */
    size_t covered_count;
    uint64_t models[MODELS_MAX]; /* that are in the store, the oldest first */
    size_t model_count;
    char (*updates)[OBJECT_KEY_SIZE]; /* [UPDATES_MAX] that are in the model; deleted once it is */
    size_t update_count;
    char *token; /* NULL: none */
};

static void newest_key(const char *job, char out[OBJECT_KEY_SIZE])
{
    snprintf(out, OBJECT_KEY_SIZE, "models/%s/newest", job);
}

/* ---- Publishing ------------------------------------------------------------------------------ */

static int put_model(struct lead *lead, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct buffer head AUTO_BUFFER;
    struct buffer bytes AUTO_BUFFER;
    struct json_writer writer;
    const struct model_head model = {
        lead->version, lead->epoch, lead->samples, {lead->covered, lead->covered_count}};
    buffer_init(&head, PARCEL_HEAD_MAX);
    buffer_init(&bytes, parcel_bytes_max(lead->options.parameter_count));
    json_writer_init(&writer, &head);
    json_write(&writer, &head_schema, &model);
    const struct parcel parcel = {buffer_text(&head), lead->parameters,
                                  lead->options.parameter_count};
    work_model_key(lead->job, lead->version, key);
    if (buffer_check(&head, error) < 0 || parcel_encode(&parcel, &bytes, error) < 0)
        return -1;
    if (object_store_put(lead->options.store, key, buffer_text(&bytes), true, error) == 0)
        return 0;
    if (error->code != ERROR_CONFLICT)
        return -1;
    /* Ours, if an answer got lost; else another lead's. */
    struct buffer there AUTO_BUFFER;
    buffer_init(&there, bytes.size); /* one that is longer is none of ours */
    if (object_store_read(lead->options.store, key, &there, error) < 0 &&
        error->code != ERROR_EXHAUSTED)
        return -1;
    return text_equal(buffer_text(&there), buffer_text(&bytes))
               ? 0
               : error_set(error, ERROR_CONFLICT, "another lead of job \"%s\" is at work",
                           lead->job);
}

static int read_newest(struct object_store *store, const char *job, struct newest *out_newest,
                       struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    char key[OBJECT_KEY_SIZE];
    struct buffer json AUTO_BUFFER;
    struct newest newest = {0};
    buffer_init(&json, NEWEST_MAX);
    newest_key(job, key);
    if (object_store_read(store, key, &json, error) < 0 ||
        json_read(arena, buffer_text(&json), &newest_schema, &newest, error) < 0)
        return -1;
    *out_newest = newest;
    return 0;
}

static int put_newest(struct lead *lead, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    const struct newest newest = {lead->named, lead->published, lead->spent_micro};
    buffer_init(&json, NEWEST_MAX);
    json_writer_init(&writer, &json);
    json_write(&writer, &newest_schema, &newest);
    newest_key(lead->job, key);
    return object_store_put(lead->options.store, key, buffer_text(&json), false, error);
}

/* Says which model comes next, so that whoever goes on finds it. One that was named before it and
 * may have been put after all would stand in the way of a lead that counts up to it. */
static int name_next(struct lead *lead, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct newest newest;
    if (read_newest(lead->options.store, lead->job, &newest, error) == 0) {
        if (newest.version != lead->published && newest.before != lead->published)
            return error_set(error, ERROR_CONFLICT, "another lead of job \"%s\" is at work",
                             lead->job);
    } else if (error->code != ERROR_NOT_FOUND) {
        return -1;
    }
    if (lead->named != lead->published && lead->named != lead->version) {
        work_model_key(lead->job, lead->named, key);
        if (object_store_delete(lead->options.store, key, error) < 0)
            return -1;
    }
    lead->named = lead->version;
    return put_newest(lead, error);
}

/* What is left behind costs room alone, so that it is no failure. */
static void forget(struct lead *lead, const char *key)
{
    struct error error;
    if (object_store_delete(lead->options.store, key, &error) < 0)
        log_event(LOG_DEBUG, "object_left", "key=%s reason=\"%s\"", key, error.message);
}

static void sweep(struct lead *lead, uint64_t oldest)
{
    char key[OBJECT_KEY_SIZE];
    size_t kept = 0;
    for (size_t i = 0; i < lead->model_count; i++) {
        if (lead->models[i] >= oldest || lead->models[i] == lead->published) {
            lead->models[kept++] = lead->models[i];
            continue;
        }
        work_model_key(lead->job, lead->models[i], key);
        forget(lead, key);
    }
    lead->model_count = kept;
    for (size_t i = 0; i < lead->update_count && !lead->options.keeps_updates; i++)
        forget(lead, lead->updates[i]);
    lead->update_count = 0;
}

static int publish(struct lead *lead, uint64_t oldest, struct error *error)
{
    if (name_next(lead, error) < 0 || put_model(lead, error) < 0)
        return error_wrap(error, "publish model %" PRIu64, lead->version);
    lead->published = lead->version;
    lead->is_published = true;
    if (lead->model_count < MODELS_MAX)
        lead->models[lead->model_count++] = lead->version;
    sweep(lead, oldest);
    return 0;
}

int lead_publish(struct lead *lead, const struct epoch_plan *plan, uint64_t oldest,
                 struct error *error)
{
    ASSERT(epoch_plan_version(plan) == lead->version);
    if (lead->is_published)
        return 0;
    const size_t count = epoch_plan_covered(plan, lead->covered, LEAD_SPANS_MAX);
    if (count > LEAD_SPANS_MAX)
        return error_set(error, ERROR_EXHAUSTED, "the epoch lies in more than %d pieces",
                         LEAD_SPANS_MAX);
    lead->covered_count = count;
    return publish(lead, oldest, error);
}

/* The same vector under the next number: what a version has of which epoch never changes. */
int lead_end_epoch(struct lead *lead, struct error *error)
{
    if (!lead->is_between) {
        lead->epoch++;
        lead->version++;
        lead->covered_count = 0;
        lead->is_published = false;
        lead->is_between = true;
    }
    if (publish(lead, lead->version, error) < 0)
        return -1;
    lead->is_between = false;
    return 0;
}

/* ---- Going on -------------------------------------------------------------------------------- */

/* Rising, apart from each other and within the epoch, as a plan writes them. */
static bool are_spans_sound(const struct lead *lead, const struct json_array *spans)
{
    const struct batch_span *items = spans->items;
    uint64_t end = 0;
    for (size_t i = 0; i < spans->count; i++) {
        if (items[i].first < end || items[i].first >= lead->options.batch_count ||
            items[i].count > lead->options.batch_count - items[i].first)
            return false;
        end = items[i].first + items[i].count;
    }
    return true;
}

static int read_model(struct lead *lead, uint64_t version, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    char key[OBJECT_KEY_SIZE];
    struct buffer bytes AUTO_BUFFER;
    struct parcel parcel;
    struct model_head head = {0};
    buffer_init(&bytes, parcel_bytes_max(lead->options.parameter_count));
    work_model_key(lead->job, version, key);
    if (object_store_read(lead->options.store, key, &bytes, error) < 0 ||
        parcel_decode(buffer_text(&bytes), &parcel, error) < 0 ||
        json_read(arena, parcel.head, &head_schema, &head, error) < 0)
        return error_wrap(error, "model %" PRIu64, version);
    if (parcel.count != lead->options.parameter_count || head.version != version)
        return error_set(error, ERROR_INVALID, "model %" PRIu64 " is of another job", version);
    if (!are_spans_sound(lead, &head.spans))
        return error_set(error, ERROR_CORRUPT,
                         "model %" PRIu64 " has batches that the epoch has not, or has them twice",
                         version);
    memcpy(lead->parameters, parcel.values, sizeof(float) * parcel.count);
    if (head.spans.count)
        memcpy(lead->covered, head.spans.items, head.spans.count * sizeof(*lead->covered));
    lead->covered_count = head.spans.count;
    lead->version = lead->published = version;
    lead->epoch = head.epoch;
    lead->samples = head.samples;
    lead->models[lead->model_count++] = version;
    lead->is_published = true;
    return 0;
}

static int go_on(struct lead *lead, struct error *error)
{
    struct newest newest;
    if (read_newest(lead->options.store, lead->job, &newest, error) < 0)
        return error->code == ERROR_NOT_FOUND ? publish(lead, 0, error)
                                              : error_wrap(error, "the newest model");
    lead->named = newest.version;
    lead->spent_micro = newest.spent_micro;
    if (read_model(lead, newest.version, error) == 0)
        return 0;
    if (error->code != ERROR_NOT_FOUND) /* else the lead was gone before it was there */
        return -1;
    return newest.version == 0 ? publish(lead, 0, error) : read_model(lead, newest.before, error);
}

int lead_open(const struct lead_options *options, struct lead **out_lead, struct error *error)
{
    AUTO(lead) struct lead *lead = memory_zeroed(1, sizeof(*lead));
    lead->options = *options;
    lead->rate = 1;
    memcpy(lead->job, options->job->name, sizeof(lead->job));
    lead->options.job = NULL;
    lead->options.token = NULL;
    lead_set_token(lead, options->token);
    lead->parameters = memory_zeroed(options->parameter_count, sizeof(float));
    memcpy(lead->parameters, options->parameters, sizeof(float) * options->parameter_count);
    lead->options.parameters = NULL;
    lead->covered = memory_zeroed(LEAD_SPANS_MAX, sizeof(*lead->covered));
    lead->updates = memory_zeroed(UPDATES_MAX, sizeof(*lead->updates));
    if (go_on(lead, error) < 0)
        return -1;
    *out_lead = TAKE(lead);
    return 0;
}

void lead_free(struct lead *lead)
{
    if (!lead)
        return;
    free(lead->parameters);
    free(lead->covered);
    free(lead->updates);
    lead_set_token(lead, NULL);
    free(lead);
}

void lead_set_token(struct lead *lead, const char *token)
{
    if (lead->token)
        sodium_memzero(lead->token, strlen(lead->token));
    free(lead->token);
    lead->token = token ? strdup(token) : NULL;
}

const float *lead_parameters(const struct lead *lead)
{
    return lead->parameters;
}

size_t lead_parameter_count(const struct lead *lead)
{
    return lead->options.parameter_count;
}

uint64_t lead_version(const struct lead *lead)
{
    return lead->version;
}

uint64_t lead_published(const struct lead *lead)
{
    return lead->published;
}

uint64_t lead_epoch(const struct lead *lead)
{
    return lead->epoch;
}

uint64_t lead_samples(const struct lead *lead)
{
    return lead->samples;
}

int64_t lead_spent(const struct lead *lead)
{
    return lead->spent_micro;
}

void lead_set_spent(struct lead *lead, int64_t spent_micro)
{
    lead->spent_micro = spent_micro;
}

int lead_note_spent(struct lead *lead, struct error *error)
{
    return put_newest(lead, error);
}

const struct batch_span *lead_covered(const struct lead *lead, size_t *out_count)
{
    *out_count = lead->covered_count;
    return lead->covered;
}

/* ---- Updates --------------------------------------------------------------------------------- */

struct work_request lead_request(const struct lead *lead, const struct plan_task *task)
{
    ASSERT(task->generation < LEAD_RUN_STEP);
    struct work_request request = {
        .epoch = lead->epoch,
        .run = lead->options.run + task->generation,
        .first_batch = task->span.first,
        .batch_count = task->span.count,
        .version = lead->published,
        .token = lead->token ? text_of(lead->token) : (struct text){0},
    };
    memcpy(request.job, lead->job, sizeof(request.job));
    return request;
}

static int check_update(const struct lead *lead, const struct work_request *request,
                        const struct parcel *parcel, struct work_update *out_update,
                        struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct work_update update = {0};
    if (json_read(arena, parcel->head, &work_update_schema, &update, error) < 0)
        return error_set(error, ERROR_CORRUPT, "the update has no head");
    if (update.epoch != request->epoch || update.run != request->run ||
        update.first_batch != request->first_batch || update.batches > request->batch_count ||
        update.version > lead->version || parcel->count != lead->options.parameter_count)
        return error_set(error, ERROR_CORRUPT, "the update is of another call");
    *out_update = update;
    return 0;
}

void lead_set_rate(struct lead *lead, double rate)
{
    lead->rate = rate;
}

int lead_fold(struct lead *lead, const struct work_request *request, struct work_update *out_update,
              struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct buffer bytes AUTO_BUFFER;
    struct parcel parcel;
    buffer_init(&bytes, parcel_bytes_max(lead->options.parameter_count));
    work_update_key(request, key);
    if (object_store_read(lead->options.store, key, &bytes, error) < 0)
        return error->code == ERROR_EXHAUSTED
                   ? error_set(error, ERROR_CORRUPT, "the update is longer than one of the model")
                   : -1;
    if (parcel_decode(buffer_text(&bytes), &parcel, error) < 0 ||
        check_update(lead, request, &parcel, out_update, error) < 0)
        return -1;
    const float rate = (float)lead->rate;
    for (size_t i = 0; i < parcel.count; i++)
        lead->parameters[i] += rate * parcel.values[i];
    lead->version++;
    lead->samples += out_update->samples;
    lead->is_published = false;
    if (lead->update_count < UPDATES_MAX)
        memcpy(lead->updates[lead->update_count++], key, sizeof(key));
    return 0;
}

/* ---- The end --------------------------------------------------------------------------------- */

/* Goes on where something stays; *out_left is the first of that. */
static void clear_key(struct object_store *store, const char *key, struct error *out_left)
{
    struct error error;
    if (object_store_delete(store, key, &error) < 0 && out_left->code == ERROR_NONE)
        *out_left = error;
}

static void clear_model(struct object_store *store, const char *job, uint64_t version,
                        struct error *out_left)
{
    char key[OBJECT_KEY_SIZE];
    work_model_key(job, version, key);
    clear_key(store, key, out_left);
}

/* What every job has. Its description goes last, and stays where anything does: who looks finds a
 * job that can be gone on with, or cleared. */
static int clear_job(struct object_store *store, const char *job, struct error *left,
                     struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    newest_key(job, key);
    clear_key(store, key, left);
    for (int i = 0; i < LESSON_PART_COUNT; i++) {
        work_data_key(job, lesson_part_names[i], key);
        clear_key(store, key, left);
    }
    work_job_key(job, key);
    if (left->code == ERROR_NONE)
        clear_key(store, key, left);
    if (left->code == ERROR_NONE)
        return 0;
    *error = *left;
    return -1;
}

int lead_clear(struct lead *lead, struct error *error)
{
    struct object_store *store = lead->options.store;
    struct error left = {0};
    for (size_t i = 0; i < lead->update_count; i++)
        clear_key(store, lead->updates[i], &left);
    for (size_t i = 0; i < lead->model_count; i++)
        clear_model(store, lead->job, lead->models[i], &left);
    if (lead->named != lead->published)
        clear_model(store, lead->job, lead->named, &left);
    return clear_job(store, lead->job, &left, error);
}

int lead_forget(struct object_store *store, const char *job, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct buffer json AUTO_BUFFER;
    struct newest newest;
    struct error left = {0};
    buffer_init(&json, WORK_JSON_MAX);
    work_job_key(job, key);
    if (work_check_job_name(job, error) < 0 || object_store_read(store, key, &json, error) < 0)
        return error_wrap(error, "job \"%.48s\"", job);
    if (read_newest(store, job, &newest, error) == 0) {
        clear_model(store, job, newest.version, &left);
        clear_model(store, job, newest.before, &left);
    } else if (error->code != ERROR_NOT_FOUND) {
        return -1;
    }
    return clear_job(store, job, &left, error);
}
