#include "function/work.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JOB(member)     offsetof(struct work_job, member)
#define REQUEST(member) offsetof(struct work_request, member)
#define ANSWER(member)  offsetof(struct work_answer, member)
#define UPDATE(member)  offsetof(struct work_update, member)

enum { BATCHES_MAX = 1 << 30, STORE_MAX = 1024, TOKEN_MAX = 256 };
#define TIME_US_MAX INT64_C(86400000000) /* a day */

static const struct json_field job_fields[] = {
    {"name", JSON_CHARS, JOB(name), .is_required = true, .size_max = WORK_JOB_SIZE},
    {"work", JSON_ANY, JOB(work), .is_required = true, .size_max = WORK_JSON_MAX},
    {"mean", JSON_DOUBLE, JOB(mean)},
    {"deviation", JSON_DOUBLE, JOB(deviation)},
    {"records", JSON_U64, JOB(records), .is_required = true, .minimum = 1, .maximum = UINT32_MAX},
    {"images_header", JSON_CHARS, JOB(images_header), .is_required = true,
     .size_max = sizeof(((struct work_job *)0)->images_header)},
    {"labels_header", JSON_CHARS, JOB(labels_header), /* sequences bring their own targets */
     .size_max = sizeof(((struct work_job *)0)->labels_header)},
};
const struct json_schema work_job_schema = JSON_SCHEMA("job", job_fields, struct work_job);

static const struct json_field request_fields[] = {
    {"job", JSON_CHARS, REQUEST(job), .is_required = true, .size_max = WORK_JOB_SIZE},
    {"store", JSON_TEXT, REQUEST(store), .size_max = STORE_MAX},
    {"token", JSON_TEXT, REQUEST(token), .size_max = TOKEN_MAX},
    {"epoch", JSON_U64, REQUEST(epoch), .is_required = true, .maximum = BATCHES_MAX},
    {"run", JSON_U64, REQUEST(run), .is_required = true, .maximum = INT64_MAX},
    {"first_batch", JSON_U64, REQUEST(first_batch), .is_required = true, .maximum = BATCHES_MAX},
    {"batch_count", JSON_U64, REQUEST(batch_count), .is_required = true, .minimum = 1,
     .maximum = BATCHES_MAX},
    {"version", JSON_U64, REQUEST(version), .is_required = true, .maximum = INT64_MAX},
};
const struct json_schema work_request_schema =
    JSON_SCHEMA("request", request_fields, struct work_request);

const char *const work_end_names[] = {"done", "time", NULL};

static const struct json_field answer_fields[] = {
    {"job", JSON_CHARS, ANSWER(job), .is_required = true, .size_max = WORK_JOB_SIZE},
    {"epoch", JSON_U64, ANSWER(epoch), .is_required = true, .maximum = BATCHES_MAX},
    {"run", JSON_U64, ANSWER(run), .is_required = true, .maximum = INT64_MAX},
    {"first_batch", JSON_U64, ANSWER(first_batch), .is_required = true, .maximum = BATCHES_MAX},
    {"batches_done", JSON_U64, ANSWER(batches_done), .is_required = true, .maximum = BATCHES_MAX},
    {"samples", JSON_U64, ANSWER(samples), .is_required = true, .maximum = INT64_MAX},
    {"loss", JSON_DOUBLE, ANSWER(loss)},
    {"is_repeated", JSON_BOOL, ANSWER(is_repeated)},
    {"end", JSON_CHOICE, ANSWER(end), .is_required = true, .choices = work_end_names},
    {"fetch_us", JSON_I64, ANSWER(fetch_us), .maximum = TIME_US_MAX},
    {"compute_us", JSON_I64, ANSWER(compute_us), .maximum = TIME_US_MAX},
    {"update_us", JSON_I64, ANSWER(update_us), .maximum = TIME_US_MAX},
    {"memory_bytes", JSON_I64, ANSWER(memory_bytes), .maximum = INT64_MAX},
};
const struct json_schema work_answer_schema =
    JSON_SCHEMA("answer", answer_fields, struct work_answer);

static const struct json_field update_fields[] = {
    {"epoch", JSON_U64, UPDATE(epoch), .is_required = true, .maximum = BATCHES_MAX},
    {"run", JSON_U64, UPDATE(run), .is_required = true, .maximum = INT64_MAX},
    {"first_batch", JSON_U64, UPDATE(first_batch), .is_required = true, .maximum = BATCHES_MAX},
    {"batches", JSON_U64, UPDATE(batches), .is_required = true, .minimum = 1,
     .maximum = BATCHES_MAX},
    {"samples", JSON_U64, UPDATE(samples), .is_required = true, .maximum = INT64_MAX},
    {"version", JSON_U64, UPDATE(version), .is_required = true, .maximum = INT64_MAX},
    {"loss", JSON_DOUBLE, UPDATE(loss)},
};
const struct json_schema work_update_schema =
    JSON_SCHEMA("update", update_fields, struct work_update);

int work_check_job_name(const char *name, struct error *error)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
            return error_set(error, ERROR_INVALID,
                             "job: letters, digits, '-' and '_' only, not \"%.60s\"", name);
    return name[0] && strlen(name) < WORK_JOB_SIZE
               ? 0
               : error_set(error, ERROR_INVALID, "job: must be 1 to %d characters",
                           WORK_JOB_SIZE - 1);
}

int work_request_read(struct arena *arena, struct text json, struct work_request *out_request,
                      struct error *error)
{
    struct work_request request = {0};
    if (json.size > WORK_JSON_MAX)
        return error_set(error, ERROR_INVALID, "the request is too long");
    if (json_read(arena, json, &work_request_schema, &request, error) < 0 ||
        work_check_job_name(request.job, error) < 0)
        return -1;
    *out_request = request;
    return 0;
}

void work_job_key(const char *job, char out[OBJECT_KEY_SIZE])
{
    snprintf(out, OBJECT_KEY_SIZE, "jobs/%s", job);
}

void work_data_key(const char *job, const char *part, char out[OBJECT_KEY_SIZE])
{
    snprintf(out, OBJECT_KEY_SIZE, "data/%s/%s", job, part);
}

void work_model_key(const char *job, uint64_t version, char out[OBJECT_KEY_SIZE])
{
    snprintf(out, OBJECT_KEY_SIZE, "models/%s/%" PRIu64, job, version);
}

void work_update_key(const struct work_request *request, char out[OBJECT_KEY_SIZE])
{
    snprintf(out, OBJECT_KEY_SIZE, "updates/%s/%" PRIu64 "-%" PRIu64 "-%" PRIu64, request->job,
             request->epoch, request->run, request->first_batch);
}
