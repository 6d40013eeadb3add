#include "function/handler.h"

#include "base/arena.h"
#include "base/memory.h"
#include "function/lesson.h"
#include "function/object_store.h"
#include "function/parcel.h"
#include "function/work.h"
#include "source/remote.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    PIECE_BYTES = 4 << 20,        /* of records, fetched at a time */
    PROCESS_BYTES = 20 << 20,     /* of the program and its libraries, beside the model */
    MARGIN_NS = 20 * 1000 * 1000, /* for the update to be put, at least */
    MARGIN_SHARE = 10,            /* or this part of the time there is */
};
#define PARCEL_BYTES_MAX ((size_t)1 << 31)

struct handler {
    const struct clock *clock;
    char *store_default;
    struct remote_credentials credentials;
    char *market_server, *market_fingerprint;
    char *place; /* of the store that is open */
    char *token; /* the same; "" */
    struct object_store *store;
    struct kernel_set *kernels;
    char job[WORK_JOB_SIZE]; /* of the lesson; "": none */
    struct lesson *lesson;
};

/* One call. */
struct call {
    struct handler *handler;
    struct arena *arena;
    const struct handler_limits *limits;
    struct work_request request;
    struct work_answer answer;
    struct buffer model; /* the parcel of the version it starts from */
    const float *base;   /* in it */
    int64_t margin_ns;
    double loss_sum;
};

struct handler *handler_new(const struct handler_options *options)
{
    struct handler *handler = memory_zeroed(1, sizeof(*handler));
    handler->clock = options->clock;
    handler->store_default = options->store ? strdup(options->store) : NULL;
    handler->market_server = options->market_server ? strdup(options->market_server) : NULL;
    handler->market_fingerprint =
        options->market_fingerprint ? strdup(options->market_fingerprint) : NULL;
    if (options->credentials)
        handler->credentials = *options->credentials;
    return handler;
}

static void forget_store(struct handler *handler)
{
    object_store_free(TAKE(handler->store));
    free(TAKE(handler->place));
    if (handler->token)
        sodium_memzero(handler->token, strlen(handler->token));
    free(TAKE(handler->token));
    handler->job[0] = '\0';
}

void handler_free(struct handler *handler)
{
    if (!handler)
        return;
    lesson_free(handler->lesson);
    kernel_set_free(handler->kernels);
    forget_store(handler);
    free(handler->market_server);
    free(handler->market_fingerprint);
    free(handler->store_default);
    remote_credentials_wipe(&handler->credentials);
    free(handler);
}

/* ---- What stays open ------------------------------------------------------------------------- */

static int find_store(struct call *call, struct error *error)
{
    struct handler *handler = call->handler;
    const struct text named = call->request.store;
    /* A folder is the host's to choose: a request names none on its machine. */
    if (named.size && !object_store_is_remote(named))
        return error_set(error, ERROR_REFUSED, "store: a request may name s3://... or market only");
    if (!named.size && !handler->store_default)
        return error_set(error, ERROR_INVALID, "store: missing");
    const char *place = named.size ? arena_copy_string(call->arena, named) : handler->store_default;
    const char *token = arena_copy_string(call->arena, call->request.token);
    if (handler->store && strcmp(handler->place, place) == 0 && strcmp(handler->token, token) == 0)
        return 0;
    const struct object_market market = {handler->market_server, handler->market_fingerprint,
                                         token};
    const struct object_store_options options = {
        .place = place, .credentials = &handler->credentials, .market = &market};
    forget_store(handler);
    if (object_store_open(&options, &handler->store, error) < 0)
        return -1;
    handler->place = strdup(place);
    handler->token = strdup(token);
    return 0;
}

/* A job's description never changes: it was put once. */
static int find_lesson(struct call *call, struct error *error)
{
    struct handler *handler = call->handler;
    struct work_job job = {0};
    char key[OBJECT_KEY_SIZE];
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, WORK_JSON_MAX);
    if (strcmp(handler->job, call->request.job) == 0)
        return 0;
    handler->job[0] = '\0';
    lesson_free(TAKE(handler->lesson));
    work_job_key(call->request.job, key);
    if (object_store_read(handler->store, key, &json, error) < 0 ||
        json_read(call->arena, buffer_text(&json), &work_job_schema, &job, error) < 0)
        return error_wrap(error, "the job");
    if (!handler->kernels && kernel_set_open(NULL, &handler->kernels, error) < 0)
        return -1;
    if (lesson_open(handler->kernels, &job, &handler->lesson, error) < 0)
        return -1;
    snprintf(handler->job, sizeof(handler->job), "%s", call->request.job);
    return 0;
}

static int check_range(const struct call *call, struct error *error)
{
    const uint64_t count = lesson_batch_count(call->handler->lesson);
    const struct work_request *request = &call->request;
    if (request->first_batch >= count || request->batch_count > count - request->first_batch)
        return error_set(error, ERROR_INVALID,
                         "batches %" PRIu64 " and %" PRIu64 " after it are not all below %" PRIu64,
                         request->first_batch, request->batch_count - 1, count);
    return 0;
}

/* ---- What is fetched ------------------------------------------------------------------------- */

static int fetch_model(struct call *call, struct error *error)
{
    struct handler *handler = call->handler;
    char key[OBJECT_KEY_SIZE];
    struct parcel parcel;
    const size_t count = lesson_parameter_count(handler->lesson);
    work_model_key(handler->job, call->request.version, key);
    call->model.size_max = parcel_bytes_max(count);
    if (object_store_read(handler->store, key, &call->model, error) < 0 ||
        parcel_decode(buffer_text(&call->model), &parcel, error) < 0)
        return error_wrap(error, "model %" PRIu64, call->request.version);
    if (parcel.count != count)
        return error_set(error, ERROR_CORRUPT, "model %" PRIu64 " has %zu parameters, not %zu",
                         call->request.version, parcel.count, count);
    call->base = parcel.values;
    memcpy(lesson_parameters(handler->lesson), parcel.values, sizeof(float) * count);
    return 0;
}

/* How many batches are held at a time; 0: there is no room for one. */
static uint64_t piece_batches(const struct call *call)
{
    const struct lesson *lesson = call->handler->lesson;
    const uint64_t each = lesson_batch_bytes(lesson);
    uint64_t room = PIECE_BYTES;
    if (call->limits->memory_bytes > 0) {
        const uint64_t limit = (uint64_t)call->limits->memory_bytes;
        const uint64_t taken = lesson_memory_bytes(lesson) + PROCESS_BYTES;
        if (limit < taken + each)
            return 0;
        room = limit - taken < room ? limit - taken : room;
    }
    return room > each ? room / each : 1;
}

static int fetch_piece(struct call *call, uint64_t first, uint64_t count,
                       struct dataset **out_dataset, struct error *error)
{
    const struct lesson *lesson = call->handler->lesson;
    const uint64_t records = count * lesson_batch(lesson);
    struct buffer parts[LESSON_PART_COUNT];
    const void *bytes[LESSON_PART_COUNT];
    int result = 0;
    for (int i = 0; i < LESSON_PART_COUNT; i++)
        buffer_init(&parts[i], PARCEL_BYTES_MAX);
    for (int i = 0; result == 0 && i < LESSON_PART_COUNT; i++) {
        const enum lesson_part part = (enum lesson_part)i;
        const size_t size = records * lesson_record_bytes(lesson, part);
        char key[OBJECT_KEY_SIZE];
        work_data_key(call->request.job, lesson_part_names[i], key);
        bytes[i] = buffer_reserve(&parts[i], size);
        if (!bytes[i])
            result = buffer_check(&parts[i], error);
        else if (size)
            result = object_store_read_part(
                call->handler->store, key,
                lesson_record_offset(lesson, part, first * lesson_batch(lesson)), parts[i].data,
                size, error);
    }
    if (result == 0)
        result = lesson_open_records(lesson, bytes, (uint32_t)records, out_dataset, error);
    for (int i = 0; i < LESSON_PART_COUNT; i++)
        buffer_done(&parts[i]);
    return result;
}

/* ---- What is computed ------------------------------------------------------------------------ */

static int64_t now_ns(const struct call *call)
{
    return clock_monotonic_ns(call->handler->clock);
}

/* Whether another batch, as long as those before it, leaves time to put the update. */
static bool has_time(const struct call *call)
{
    const struct work_answer *answer = &call->answer;
    const int64_t each_ns = answer->batches_done ? (answer->compute_us + answer->fetch_us) * 1000 /
                                                       (int64_t)answer->batches_done
                                                 : 0;
    return now_ns(call) + 2 * each_ns + call->margin_ns < call->limits->deadline_ns;
}

static int step_piece(struct call *call, const struct dataset *dataset, uint64_t count,
                      struct error *error)
{
    struct lesson *lesson = call->handler->lesson;
    struct work_answer *answer = &call->answer;
    const uint64_t epoch_first = call->request.epoch * lesson_batch_count(lesson);
    for (uint64_t i = 0; i < count && has_time(call); i++) {
        const int64_t started_ns = now_ns(call);
        const uint64_t number = epoch_first + call->request.first_batch + answer->batches_done;
        double loss;
        if (lesson_step(lesson, dataset, (uint32_t)(i * lesson_batch(lesson)), number, &loss,
                        error) < 0)
            return -1;
        call->loss_sum += loss;
        answer->batches_done++;
        answer->samples += lesson_batch(lesson);
        answer->compute_us += (now_ns(call) - started_ns) / 1000;
    }
    return 0;
}

static int compute(struct call *call, struct error *error)
{
    struct lesson *lesson = call->handler->lesson;
    const struct work_request *request = &call->request;
    struct work_answer *answer = &call->answer;
    const uint64_t piece = piece_batches(call);
    if (piece == 0)
        return error_set(
            error, ERROR_EXHAUSTED,
            "%" PRId64 " MiB are too little: the model and a batch take %" PRIu64,
            call->limits->memory_bytes >> 20,
            (lesson_memory_bytes(lesson) + lesson_batch_bytes(lesson) + PROCESS_BYTES) >> 20);
    lesson_begin(lesson, request->epoch * lesson_batch_count(lesson) + request->first_batch);
    while (answer->batches_done < request->batch_count && has_time(call)) {
        AUTO(dataset) struct dataset *dataset = NULL;
        const uint64_t left = request->batch_count - answer->batches_done;
        const uint64_t count = left < piece ? left : piece;
        const int64_t started_ns = now_ns(call);
        if (fetch_piece(call, request->first_batch + answer->batches_done, count, &dataset, error) <
            0)
            return error_wrap(error, "the data");
        answer->fetch_us += (now_ns(call) - started_ns) / 1000;
        if (step_piece(call, dataset, count, error) < 0)
            return -1;
    }
    answer->end = answer->batches_done < request->batch_count ? WORK_END_TIME : WORK_END_DONE;
    if (answer->batches_done)
        answer->loss = call->loss_sum / (double)answer->batches_done;
    return 0;
}

/* ---- What is left ---------------------------------------------------------------------------- */

/* Somebody was there before: a call that was given up, or this one's own first attempt. */
static int adopt(struct call *call, const char *key, struct error *error)
{
    struct work_update update = {0};
    struct parcel parcel;
    struct work_answer *answer = &call->answer;
    if (object_store_read(call->handler->store, key, &call->model, error) < 0 ||
        parcel_decode(buffer_text(&call->model), &parcel, error) < 0 ||
        json_read(call->arena, parcel.head, &work_update_schema, &update, error) < 0)
        return error_wrap(error, "the update that is there");
    answer->batches_done = update.batches;
    answer->samples = update.samples;
    answer->loss = update.loss;
    answer->is_repeated = true;
    answer->end = update.batches < call->request.batch_count ? WORK_END_TIME : WORK_END_DONE;
    return 0;
}

static int put_update(struct call *call, struct error *error)
{
    struct handler *handler = call->handler;
    const struct work_request *request = &call->request;
    const struct work_answer *answer = &call->answer;
    const struct work_update update = {request->epoch,       request->run,    request->first_batch,
                                       answer->batches_done, answer->samples, request->version,
                                       answer->loss};
    char key[OBJECT_KEY_SIZE];
    struct buffer head AUTO_BUFFER;
    struct buffer bytes AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&head, WORK_JSON_MAX);
    buffer_init(&bytes, PARCEL_BYTES_MAX);
    json_writer_init(&writer, &head);
    json_write(&writer, &work_update_schema, &update);
    float *values = lesson_parameters(handler->lesson);
    const size_t count = lesson_parameter_count(handler->lesson);
    for (size_t i = 0; i < count; i++)
        values[i] -= call->base[i];
    const struct parcel parcel = {buffer_text(&head), values, count};
    if (parcel_encode(&parcel, &bytes, error) < 0)
        return -1;
    work_update_key(request, key);
    if (object_store_put(handler->store, key, buffer_text(&bytes), /* is_once= */ true, error) == 0)
        return 0;
    return error->code == ERROR_CONFLICT ? adopt(call, key, error)
                                         : error_wrap(error, "the update");
}

static void write_answer(struct call *call, struct buffer *out)
{
    struct work_answer *answer = &call->answer;
    struct rusage usage;
    struct json_writer writer;
    getrusage(RUSAGE_SELF, &usage);
    answer->memory_bytes = (int64_t)usage.ru_maxrss * 1024;
    json_writer_init(&writer, out);
    json_write(&writer, &work_answer_schema, answer);
}

static int run(struct call *call, struct text request, struct error *error)
{
    struct work_answer *answer = &call->answer;
    const int64_t started_ns = now_ns(call);
    if (work_request_read(call->arena, request, &call->request, error) < 0 ||
        find_store(call, error) < 0 || find_lesson(call, error) < 0 || check_range(call, error) < 0)
        return -1;
    const int64_t opened_ns = now_ns(call);
    if (fetch_model(call, error) < 0)
        return -1;
    /* Putting takes about as long as fetching did, or some times that. */
    const int64_t fetched_ns = now_ns(call);
    const int64_t share_ns = (call->limits->deadline_ns - started_ns) / MARGIN_SHARE;
    call->margin_ns = MARGIN_NS + 4 * (fetched_ns - opened_ns);
    if (call->margin_ns < share_ns)
        call->margin_ns = share_ns;
    answer->fetch_us = (fetched_ns - started_ns) / 1000;
    memcpy(answer->job, call->request.job, sizeof(answer->job));
    answer->epoch = call->request.epoch;
    answer->run = call->request.run;
    answer->first_batch = call->request.first_batch;
    if (compute(call, error) < 0)
        return -1;
    const int64_t computed_ns = now_ns(call);
    if (answer->batches_done && put_update(call, error) < 0)
        return -1;
    answer->update_us = (now_ns(call) - computed_ns) / 1000;
    return 0;
}

int handler_call(struct handler *handler, struct text request, const struct handler_limits *limits,
                 struct buffer *answer, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new_secret(1 << 20);
    struct call call = {.handler = handler, .arena = arena, .limits = limits};
    buffer_init(&call.model, PARCEL_BYTES_MAX);
    const int result = run(&call, request, error);
    buffer_done(&call.model);
    if (result == 0)
        write_answer(&call, answer);
    return result;
}

void handler_write_error(const struct error *error, struct buffer *out)
{
    struct json_writer writer;
    json_writer_init(&writer, out);
    json_object_begin(&writer);
    json_field_string(&writer, "errorType", error_code_name(error->code));
    json_field_string(&writer, "errorMessage", error->message);
    json_object_end(&writer);
}
