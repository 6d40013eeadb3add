#include "client/submission.h"

#include "base/clock.h"
#include "base/units.h"
#include "client/bring.h"
#include "client/mounts.h"
#include "client/upload.h"
#include "client/wheels.h"
#include "runtime/job_model.h"
#include "runtime/job_secrets.h"
#include "source/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

/* ---- What the market is told ------------------------------------------------------------------
 */

/* Without folders: the market has the files, not their places here. */
static struct job_spec without_places(struct arena *arena, const struct job_spec *spec)
{
    struct job_spec told = job_secrets_named(arena, spec);
    struct job_mount *mounts = arena_alloc(arena, (spec->file_mount_count + 1) * sizeof(*mounts));
    for (size_t i = 0; i < spec->file_mount_count; i++)
        mounts[i] = (struct job_mount){.target = spec->file_mounts[i].target,
                                       .shard = spec->file_mounts[i].shard};
    told.file_mounts = mounts;
    told.workdir = told.requirements = told.wheels = (struct text){0};
    if (job_train_peer(&told.train).size)
        told.train.test = upload_name(told.train.test);
    else if (job_train_is_file(&told.train))
        told.train.data = upload_name(told.train.data);
    /* Nor where its image lies. */
    struct text *image = &told.resources.image_id;
    while (image->size > 1 && image->data[image->size - 1] == '/')
        image->size--;
    for (size_t i = image->size; i-- > 0;)
        if (image->data[i] == '/' && i + 1 < image->size) {
            *image = (struct text){image->data + i + 1, image->size - i - 1};
            break;
        }
    return told;
}

int submission_write(const struct job_spec *spec, struct buffer *json, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    const struct job_spec told = without_places(arena, spec);
    buffer_clear(json);
    job_spec_write(&told, json);
    return buffer_check(json, error);
}

enum { SAME_MS = 60000, SAME_LOOKS = 4 };

/* Whether a job was submitted from the same job file, whatever its data were. */
static bool is_same(struct arena *arena, const struct job_spec *spec, const struct api_job *job)
{
    struct error error;
    struct job_spec theirs, ours = *spec;
    struct buffer left AUTO_BUFFER, right AUTO_BUFFER;
    buffer_init(&left, JOB_SPEC_SIZE_MAX);
    buffer_init(&right, JOB_SPEC_SIZE_MAX);
    if (job_spec_read(arena, job->spec, &theirs, &error) < 0)
        return false; /* of another version of this program */
    if ((spec->requirements.size || spec->wheels.size) != (job_spec_wheels(&theirs) != NULL))
        return false; /* which they are is not known before they are fetched */
    ours.input_count = theirs.input_count = 0;
    const struct dataset_shape unknown = {0}; /* ours is not read yet */
    job_train_set_shape(&ours.train, &unknown);
    job_train_set_shape(&theirs.train, &unknown);
    ours.train.mean = theirs.train.mean = 0;
    ours.train.deviation = theirs.train.deviation = 0;
    ours.train.target_deviation = theirs.train.target_deviation = 0;
    return submission_write(&ours, &left, &error) == 0 &&
           submission_write(&theirs, &right, &error) == 0 &&
           text_equal(buffer_text(&left), buffer_text(&right));
}

int submission_find_same(struct arena *arena, struct client *client, const struct job_spec *spec,
                         uint64_t *out_id, int64_t *out_age_ms, struct error *error)
{
    struct json_array jobs;
    struct text json;
    *out_id = 0;
    if (client_list(client, arena, "/v1/jobs", &api_job_page_schema, SAME_LOOKS, &jobs, &json,
                    error) < 0)
        return error->code == ERROR_REFUSED ? 0 : -1; /* the token may submit, but not look */
    for (size_t i = 0; i < jobs.count; i++) {
        const struct api_job *listed = (const struct api_job *)jobs.items + i;
        struct api_job job = api_job_unknown();
        struct client_answer answer = {&api_job_schema, &job, {0}};
        const int64_t age_ms = clock_utc_ms(&clock_system) - listed->created_ms;
        if (age_ms > SAME_MS || api_job_is_final(listed->state) ||
            !text_equal(listed->name, spec->name))
            continue;
        const char *path = arena_format(arena, "/v1/jobs/%" PRIu64, listed->id);
        if (client_get(client, arena, path, &answer, error) < 0)
            return -1;
        if (!is_same(arena, spec, &job))
            continue;
        *out_id = job.id;
        *out_age_ms = age_ms > 0 ? age_ms : 0;
        return 0;
    }
    return 0;
}

/* ---- What it may cost -------------------------------------------------------------------------
 */

enum { MEASURING_FIRST_MS = 50, MEASURING_MAX_MS = 3000 };

int submission_quote(struct arena *arena, struct client *client, const struct job_spec *spec,
                     struct api_quote *out_quote, struct text *out_json, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    if (submission_write(spec, &json, error) < 0)
        return -1;
    int64_t waited_ms = 0;
    for (int64_t pause_ms = MEASURING_FIRST_MS;; pause_ms *= 2) {
        *out_quote = (struct api_quote){.has_replica_room = true}; /* an older market is silent */
        struct client_answer answer = {&api_quote_schema, out_quote, {0}};
        if (client_post(client, arena, "/v1/quotes", buffer_text(&json), &answer, error) < 0)
            return -1;
        *out_json = answer.json;
        if (!out_quote->is_measuring || out_quote->can_start || waited_ms >= MEASURING_MAX_MS)
            return 0;
        const struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
        (void)nanosleep(&pause, NULL); /* cut short it only asks sooner */
        waited_ms += pause_ms;
    }
}

static void format_credits(int64_t micro, char out[UNITS_TEXT_SIZE])
{
    snprintf(out, UNITS_TEXT_SIZE, "%" PRId64 ".%06" PRId64, micro / 1000000, micro % 1000000);
}

int submission_check_money(const struct job_spec *spec, const struct api_quote *quote,
                           const char *unit, struct error *error)
{
    const struct job_market *limits = &spec->market;
    const bool is_placed = quote->placed_micro > 0;
    const int64_t total_micro = is_placed ? quote->placed_micro : quote->wish_micro;
    const int64_t hourly_micro = is_placed ? quote->placed_hourly_micro : quote->wish_hourly_micro;
    char cost[UNITS_TEXT_SIZE], limit[UNITS_TEXT_SIZE], run[UNITS_TEXT_SIZE];
    units_format_duration(quote->max_run_ms, run);
    format_credits(total_micro, cost);
    if (limits->max_total_cost_micro > 0 && total_micro > limits->max_total_cost_micro) {
        format_credits(limits->max_total_cost_micro, limit);
        return error_set(error, ERROR_EXHAUSTED,
                         "it may cost %s %s over its longest run of %s, more than its "
                         "max_total_cost of %s; nothing was sent",
                         cost, unit, run, limit);
    }
    if (limits->max_hourly_cost_micro > 0 && hourly_micro > limits->max_hourly_cost_micro) {
        format_credits(hourly_micro, cost);
        format_credits(limits->max_hourly_cost_micro, limit);
        return error_set(error, ERROR_EXHAUSTED,
                         "it would cost %s %s an hour, more than its max_hourly_cost of %s; "
                         "nothing was sent",
                         cost, unit, limit);
    }
    if (total_micro > quote->available_micro) {
        format_credits(quote->available_micro, limit);
        return error_set(error, ERROR_EXHAUSTED,
                         "it may cost %s %s over its longest run of %s, and you have %s; "
                         "nothing was sent",
                         cost, unit, run, limit);
    }
    return 0;
}

/* ---- What is there here -----------------------------------------------------------------------
 */

static int check_folder(const struct job_spec *spec, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct stat status;
    const struct text workdir = spec->workdir;
    const char *path = arena_copy_string(arena, workdir);
    const struct bring_options bringing = {.address = path, .spec = spec};
    if (place_is_address(workdir))
        return bring_check(&bringing, error) == 0 ? 0 : error_wrap(error, "workdir");
    if (workdir.size && stat(path, &status) < 0)
        return error_set_errno(error, errno, "workdir: \"%s\"", path);
    if (workdir.size && !S_ISDIR(status.st_mode))
        return error_set(error, ERROR_INVALID, "workdir: \"%s\" is not a folder", path);
    return 0;
}

/* Of a model of ours they are used here or nowhere. */
static int check_secrets(const struct job_spec *spec, struct error *error)
{
    if (!spec->secret_count || job_spec_is_command(spec) || place_is_address(spec->train.data) ||
        place_is_address(spec->train.test))
        return 0;
    return error_set(error, ERROR_INVALID,
                     "secrets: of runtime native are to read data by an address (s3://, hdfs://), "
                     "and train.data has none");
}

int submission_check_files(const struct job_spec *spec, struct error *error)
{
    const bool has_own_image = spec->resources.image_id.size && !job_spec_image(spec);
    if (check_folder(spec, error) < 0 || mounts_check(spec, error) < 0 ||
        wheels_check(spec, error) < 0)
        return -1;
    return has_own_image ? upload_check_image(spec->resources.image_id, error) : 0;
}

int submission_check(const struct job_spec *spec, struct error *error)
{
    return check_secrets(spec, error) < 0 ? -1 : submission_check_files(spec, error);
}

/* ---- Sending ----------------------------------------------------------------------------------
 */

static int gather(struct arena *arena, struct bundle *bundle, struct job_spec *spec,
                  const struct submission_options *options, struct error *error)
{
    const struct upload_options upload = {.bundle = bundle,
                                          .folder = options->dataset_dir,
                                          .on_reading = options->on_note,
                                          .context = options->context,
                                          .leaves_signals = options->leaves_signals,
                                          .stop = options->stop};
    if (spec->workdir.size && upload_files(arena, &upload, spec, error) < 0)
        return error_wrap(error, "workdir");
    if (mounts_upload(arena, &upload, spec, error) < 0)
        return -1;
    if (spec->resources.image_id.size && !job_spec_image(spec) &&
        upload_image(arena, &upload, spec, error) < 0)
        return error_wrap(error, "image");
    if ((spec->requirements.size || spec->wheels.size) &&
        upload_wheels(arena, &upload, spec, error) < 0)
        return -1;
    if (!job_spec_is_command(spec) && spec->input_count == 0 &&
        upload_data(arena, &upload, spec, error) < 0)
        return -1;
    if (options->resume && upload_checkpoint(arena, &upload, options->resume, spec, error) < 0)
        return error_wrap(error, "resume");
    return 0;
}

static void note_part(struct arena *arena, const struct submission_options *options,
                      const struct bundle_part *part)
{
    char size[UNITS_TEXT_SIZE], sent[UNITS_TEXT_SIZE];
    if (!options->on_note)
        return;
    units_format_bytes((int64_t)part->bytes.size, size);
    units_format_bytes((int64_t)part->sent_bytes, sent);
    options->on_note(options->context,
                     part->sent_bytes == 0
                         ? arena_format(arena, "%s: %s, in the market already", part->name, size)
                         : arena_format(arena, "%s: %s, sent %s", part->name, size, sent));
}

enum { SOURCE_WAIT_MS = 100 };

/* It is known by the time the job is whether leases can be sent here. */
static int upload_all(struct arena *arena, struct client *client, struct job_spec *spec,
                      const struct submission_options *options, struct submission *submission,
                      struct error *error)
{
    submission->bundle = bundle_new();
    if (gather(arena, submission->bundle, spec, options, error) < 0)
        return -1;
    if (options->is_serving && spec->input_count > 0)
        submission->source = source_start(client, submission->bundle, spec->inputs[0].manifest);
    if (bundle_send(submission->bundle, client, error) < 0)
        return -1;
    for (size_t i = 0; i < bundle_part_count(submission->bundle); i++)
        note_part(arena, options, bundle_part(submission->bundle, i));
    if (submission->source)
        source_wait(submission->source, SOURCE_WAIT_MS);
    return 0;
}

static int write_with_secrets(struct arena *arena, const struct job_spec *spec, struct buffer *json,
                              struct error *error)
{
    const struct job_spec told = without_places(arena, spec);
    return job_secrets_write_spec(&told, json, error);
}

int submission_send(struct arena *arena, struct client *client, struct job_spec *spec,
                    const struct submission_options *options, struct submission *out_submission,
                    struct error *error)
{
    struct buffer json AUTO_BUFFER;
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    *out_submission = (struct submission){0};
    if (upload_all(arena, client, spec, options, out_submission, error) < 0 ||
        write_with_secrets(arena, spec, &json, error) < 0 ||
        client_post(client, arena, "/v1/jobs", buffer_text(&json), &answer, error) < 0)
        return -1;
    out_submission->job = job.id;
    out_submission->json = answer.json;
    return 0;
}

void submission_done(struct submission *submission)
{
    source_free(TAKE(submission->source));
    bundle_free(TAKE(submission->bundle));
}
