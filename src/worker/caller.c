#include "worker/caller.h"

#include "base/assert.h"
#include "base/json.h"
#include "base/log.h"
#include "base/memory.h"
#include "function/parcel.h"
#include "function/work_put.h"
#include "train/idx_reader.h"

#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTEMPTS_MAX = 5 };

enum call_state { CALL_IDLE, CALL_UNDER_WAY, CALL_ANSWERED, CALL_FAILED };

struct call {
    enum call_state state; /* guarded by caller->mutex, as all that the link's thread writes */
    uint32_t number;
    int attempts;
    struct work_request request;
    struct work_answer answer;
    enum error_code failure;
    char reason[200];
};

/* Batches of an epoch that a call left undone. */
struct batches {
    uint64_t epoch, first, count;
};

struct caller {
    const struct work *work;
    struct object_store *store;
    struct work_job job;
    uint64_t batch_count; /* of an epoch of the shard */
    uint64_t version;
    struct batches next; /* what no call has taken yet of its epoch */
    struct batches *left;
    uint32_t left_count, left_max;
    uint32_t last_number;
    uint32_t count; /* of functions */
    struct call *calls;
    struct caller_counts counts;
    bool is_stopped;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
};

/* ---- What functions find --------------------------------------------------------------------- */

static int put_data(struct caller *caller, struct error *error)
{
    static const enum dataset_part parts[] = {DATASET_TRAIN_IMAGES, DATASET_TRAIN_LABELS};
    for (int i = 0; i < LESSON_PART_COUNT; i++) {
        char path[PATH_MAX];
        struct idx *idx = NULL;
        snprintf(path, sizeof(path), "%s/%s", caller->work->data_folder,
                 dataset_part_name(parts[i]));
        int result = idx_open(path, DATASET_SIZE_MAX, &idx, error);
        const bool is_missing = result < 0 && i == LESSON_LABELS && error->code == ERROR_NOT_FOUND;
        if (result == 0)
            result = work_put_part(caller->store, &caller->job, (enum lesson_part)i,
                                   (struct text){(const char *)idx->bytes, idx->size}, error);
        idx_free(idx);
        if (result < 0 && !is_missing) /* of some data what is told is in the inputs */
            return -1;
    }
    return 0;
}

/* A call begins without the momentum of those before it: on average a step with momentum m comes to
 * one without, 1 / (1 - m) as long. */
static struct job_spec function_spec(const struct work *work, uint64_t batch)
{
    struct job_spec spec = {
        .runtime = TEXT("native"), .train = work->lease.train, .sync = work->lease.sync};
    struct job_optimizer *optimizer = &spec.train.optimizer;
    spec.train.batch = batch;
    if (text_equal(optimizer->name, text_of(optimizer_kind_names[OPTIMIZER_SGD]))) {
        optimizer->lr /= 1 - optimizer->momentum;
        optimizer->momentum = 0;
        optimizer->nesterov = false;
    }
    return spec;
}

/* Of a shard that has less than a batch all records are one. */
static int put_job(struct caller *caller, struct error *error)
{
    const struct work *work = caller->work;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, WORK_JSON_MAX);
    snprintf(caller->job.name, sizeof(caller->job.name), "lease-%" PRIu64 "-%" PRIu64,
             work->lease.lease, work->lease.fence);
    if (put_data(caller, error) < 0)
        return -1;
    if (caller->job.records == 0)
        return error_set(error, ERROR_INVALID, "there are no records for functions");
    const uint64_t batch = caller->job.records < work->lease.train.batch ? caller->job.records
                                                                         : work->lease.train.batch;
    const struct job_spec spec = function_spec(work, batch);
    job_spec_write_work(&spec, &json);
    if (buffer_check(&json, error) < 0)
        return -1;
    caller->batch_count = caller->job.records / batch;
    caller->job.mean = work->data->mean;
    caller->job.deviation = work->data->deviation;
    caller->job.work = buffer_text(&json);
    const int result = work_put_job(caller->store, &caller->job, error);
    caller->job.work = (struct text){0};
    return result;
}

int caller_open(const struct work *work, struct caller **out_caller, struct error *error)
{
    const struct object_store_options store = {.place = work->store_folder};
    AUTO(caller) struct caller *caller = memory_zeroed(1, sizeof(*caller));
    caller->work = work;
    caller->count = work->function_count;
    caller->calls = memory_zeroed(caller->count, sizeof(*caller->calls));
    pthread_mutex_init(&caller->mutex, NULL);
    pthread_cond_init(&caller->changed, NULL);
    if (object_store_open(&store, &caller->store, error) < 0 || put_job(caller, error) < 0)
        return error_wrap(error, "functions");
    caller->next.count = caller->batch_count;
    *out_caller = TAKE(caller);
    return 0;
}

void caller_free(struct caller *caller)
{
    if (!caller)
        return;
    object_store_free(caller->store);
    pthread_mutex_destroy(&caller->mutex);
    pthread_cond_destroy(&caller->changed);
    free(caller->calls);
    free(caller->left);
    free(caller);
}

static int put_model(struct caller *caller, const float *parameters, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, parcel_bytes_max(caller->work->parameter_count));
    const struct parcel parcel = {TEXT("{}"), parameters, caller->work->parameter_count};
    work_model_key(caller->job.name, ++caller->version, key);
    if (parcel_encode(&parcel, &bytes, error) < 0)
        return -1;
    return object_store_put(caller->store, key, buffer_text(&bytes), /* is_once= */ true, error);
}

static int delete_model(struct caller *caller, struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    work_model_key(caller->job.name, caller->version, key);
    return object_store_delete(caller->store, key, error);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

struct failure {
    struct text type, message;
};
static const struct json_field failure_fields[] = {
    {"errorType", JSON_TEXT, offsetof(struct failure, type), .size_max = 200},
    {"errorMessage", JSON_TEXT, offsetof(struct failure, message), .size_max = WORK_JSON_MAX},
};
static const struct json_schema failure_schema =
    JSON_SCHEMA_LENIENT("failure", failure_fields, struct failure);

static enum error_code code_of(struct text type)
{
    static const enum error_code lasting[] = {ERROR_INVALID, ERROR_EXHAUSTED};
    for (size_t i = 0; i < sizeof(lasting) / sizeof(*lasting); i++)
        if (text_equal(type, text_of(error_code_name(lasting[i]))))
            return lasting[i];
    return ERROR_UNAVAILABLE;
}

static void call_fail(struct call *call, enum error_code code, struct text reason)
{
    const int size =
        reason.size < sizeof(call->reason) ? (int)reason.size : (int)sizeof(call->reason) - 1;
    call->state = CALL_FAILED;
    call->failure = code;
    snprintf(call->reason, sizeof(call->reason), "%.*s", size, reason.data);
}

static void call_end(struct call *call, bool is_ok, struct text json)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct error error;
    struct failure failure = {0};
    struct work_answer answer = {0};
    if (!is_ok && json_read(arena, json, &failure_schema, &failure, &error) == 0)
        call_fail(call, code_of(failure.type), failure.message);
    else if (!is_ok || json_read(arena, json, &work_answer_schema, &answer, &error) < 0)
        call_fail(call, ERROR_UNAVAILABLE, text_of(error.message));
    else if (answer.batches_done == 0)
        call_fail(call, ERROR_UNAVAILABLE, TEXT("its time is too short for one batch"));
    else if (answer.batches_done > call->request.batch_count || !(answer.loss == answer.loss) ||
             answer.samples > UINT32_MAX)
        call_fail(call, ERROR_UNAVAILABLE, TEXT("its answer makes no sense"));
    else
        call->state = CALL_ANSWERED;
    call->answer = answer;
}

void caller_on_called(struct caller *caller, const struct child_message *message)
{
    pthread_mutex_lock(&caller->mutex);
    for (uint32_t i = 0; i < caller->count; i++)
        if (caller->calls[i].state == CALL_UNDER_WAY &&
            caller->calls[i].number == message->called.number)
            call_end(&caller->calls[i], message->called.is_ok, message->called.json);
    pthread_cond_signal(&caller->changed);
    pthread_mutex_unlock(&caller->mutex);
}

void caller_stop(struct caller *caller)
{
    pthread_mutex_lock(&caller->mutex);
    caller->is_stopped = true;
    pthread_cond_signal(&caller->changed);
    pthread_mutex_unlock(&caller->mutex);
}

/* Called with the mutex held: the answer cannot come before the call is known to be under way. */
static int call_begin(struct caller *caller, struct call *call, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&json, CHILD_CALL_MAX);
    json_writer_init(&writer, &json);
    json_write(&writer, &work_request_schema, &call->request);
    if (buffer_check(&json, error) < 0)
        return -1;
    call->state = CALL_UNDER_WAY;
    call->number = ++caller->last_number;
    caller->counts.calls++;
    const struct child_message message = {
        .kind = CHILD_CALL, .call = {.number = call->number, .json = buffer_text(&json)}};
    return control_send(caller->work->control_fd, &message, error);
}

static void leave(struct caller *caller, struct batches span)
{
    if (caller->left_count == caller->left_max) {
        caller->left_max = caller->left_max ? 2 * caller->left_max : caller->count;
        caller->left = realloc(caller->left, caller->left_max * sizeof(*caller->left));
        ASSERT(caller->left);
    }
    caller->left[caller->left_count++] = span;
}

/* What calls left undone comes first, no more of it than of other batches. */
static struct batches take_span(struct caller *caller, uint32_t batches)
{
    if (caller->left_count > 0) {
        struct batches left = caller->left[--caller->left_count];
        if (left.count > batches) {
            leave(caller, (struct batches){left.epoch, left.first + batches, left.count - batches});
            left.count = batches;
        }
        return left;
    }
    struct batches span = caller->next;
    span.count = span.count < batches ? span.count : batches;
    caller->next.first += span.count;
    caller->next.count -= span.count;
    if (caller->next.count == 0)
        caller->next = (struct batches){span.epoch + 1, 0, caller->batch_count};
    return span;
}

static int begin_calls(struct caller *caller, uint32_t batches, struct error *error)
{
    for (uint32_t i = 0; i < caller->count; i++) {
        struct call *call = &caller->calls[i];
        const struct batches span = take_span(caller, batches);
        *call = (struct call){.request = {.epoch = span.epoch,
                                          .first_batch = span.first,
                                          .batch_count = span.count,
                                          .run = caller->version,
                                          .version = caller->version}};
        snprintf(call->request.job, sizeof(call->request.job), "%s", caller->job.name);
    }
    for (uint32_t i = 0; i < caller->count; i++)
        if (call_begin(caller, &caller->calls[i], error) < 0)
            return -1;
    return 0;
}

/* Called with the mutex held. Makes those again that failed; true when none is under way. */
static int look_at_calls(struct caller *caller, bool *out_is_over, bool *out_has_diverged,
                         struct error *error)
{
    *out_is_over = true;
    for (uint32_t i = 0; i < caller->count; i++) {
        struct call *call = &caller->calls[i];
        if (call->state == CALL_FAILED &&
            text_starts_with(text_of(call->reason), TEXT(LESSON_DIVERGED))) {
            *out_has_diverged = true;
            return 0;
        }
        if (call->state == CALL_FAILED &&
            (call->failure != ERROR_UNAVAILABLE || ++call->attempts == ATTEMPTS_MAX))
            return error_set(error, call->failure, "a function failed: %.180s", call->reason);
        if (call->state == CALL_FAILED) {
            log_event(LOG_WARN, "call_again", "first_batch=%" PRIu64 " reason=\"%s\"",
                      call->request.first_batch, call->reason);
            caller->counts.again++;
            if (call_begin(caller, call, error) < 0)
                return -1;
        }
        if (call->state != CALL_ANSWERED)
            *out_is_over = false;
    }
    return 0;
}

static int wait_for_calls(struct caller *caller, bool *out_has_diverged, struct error *error)
{
    bool is_over = false;
    int result = 0;
    while (result == 0 && !caller->is_stopped && !*out_has_diverged) {
        result = look_at_calls(caller, &is_over, out_has_diverged, error);
        if (result < 0 || is_over)
            break;
        if (!*out_has_diverged)
            pthread_cond_wait(&caller->changed, &caller->mutex);
    }
    return result;
}

/* ---- What they learnt ------------------------------------------------------------------------ */

static int add_update(struct caller *caller, const struct call *call, float *parameters,
                      struct error *error)
{
    char key[OBJECT_KEY_SIZE];
    struct parcel parcel;
    struct buffer bytes AUTO_BUFFER;
    buffer_init(&bytes, parcel_bytes_max(caller->work->parameter_count));
    work_update_key(&call->request, key);
    if (object_store_read(caller->store, key, &bytes, error) < 0 ||
        parcel_decode(buffer_text(&bytes), &parcel, error) < 0)
        return error_wrap(error, "an update");
    if (parcel.count != caller->work->parameter_count)
        return error_set(error, ERROR_CORRUPT, "an update of another model");
    const float share = 1.0f / (float)caller->count;
    for (size_t i = 0; i < parcel.count; i++)
        parameters[i] += share * parcel.values[i];
    return object_store_delete(caller->store, key, error);
}

static int add_updates(struct caller *caller, float *parameters, struct caller_round *round,
                       struct error *error)
{
    uint64_t batches = 0, samples = 0;
    double loss = 0;
    for (uint32_t i = 0; i < caller->count; i++) {
        const struct call *call = &caller->calls[i];
        const struct work_answer *answer = &call->answer;
        if (add_update(caller, call, parameters, error) < 0)
            return -1;
        caller->counts.cut += answer->batches_done < call->request.batch_count;
        if (answer->batches_done < call->request.batch_count)
            leave(caller, (struct batches){call->request.epoch,
                                           call->request.first_batch + answer->batches_done,
                                           call->request.batch_count - answer->batches_done});
        batches += answer->batches_done;
        samples += answer->samples;
        loss += answer->loss * (double)answer->batches_done;
        if (answer->batches_done > round->steps)
            round->steps = (uint32_t)answer->batches_done;
    }
    round->samples = (uint32_t)samples;
    round->loss = loss / (double)batches;
    return 0;
}

int caller_make_round(struct caller *caller, uint32_t batches, float *parameters,
                      struct caller_round *out_round, struct error *error)
{
    struct caller_round round = {0};
    ASSERT(batches > 0);
    if (put_model(caller, parameters, error) < 0)
        return -1;
    pthread_mutex_lock(&caller->mutex);
    int result = begin_calls(caller, batches, error);
    if (result == 0)
        result = wait_for_calls(caller, &round.has_diverged, error);
    const bool is_stopped = caller->is_stopped;
    pthread_mutex_unlock(&caller->mutex);
    if (result == 0 && !round.has_diverged && !is_stopped)
        result = add_updates(caller, parameters, &round, error);
    if (result < 0 || delete_model(caller, error) < 0)
        return -1;
    *out_round = round;
    return 0;
}

struct caller_counts caller_counts(const struct caller *caller)
{
    return caller->counts;
}
