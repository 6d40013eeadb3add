/* Plan, question, upload, submission. */
#include "cli/submit.h"

#include "base/clock.h"
#include "base/units.h"
#include "cli/bring.h"
#include "cli/connect.h"
#include "cli/job_view.h"
#include "cli/output.h"
#include "cli/upload.h"
#include "runtime/job_model.h"
#include "source/place.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static void append_amounts(struct buffer *plan, struct arena *arena, const struct job_spec *spec)
{
    const struct job_resources *resources = &spec->resources;
    char accelerators[JOB_WISH_TEXT_SIZE] = "";
    if (resources->accelerators.count_milli > 0)
        job_accelerators_format(&resources->accelerators, accelerators);
    const bool is_any =
        resources->accelerators.model.size == 0 && resources->accelerators.memory_bytes == 0;
    buffer_append_format(
        plan, "  machines  %s x %s%s core%s, %s%s memory%s%s%s%s%s\n",
        output_workers(arena, spec->num_nodes, spec->num_nodes_max),
        output_cores(arena, resources->cpus_milli.value),
        resources->cpus_milli.is_at_least ? "+" : "",
        resources->cpus_milli.value == 1000 && !resources->cpus_milli.is_at_least ? "" : "s",
        output_bytes(arena, resources->memory_bytes.value),
        resources->memory_bytes.is_at_least ? "+" : "", accelerators[0] ? ", " : "", accelerators,
        !accelerators[0] || !is_any                   ? ""
        : resources->accelerators.count_milli == 1000 ? " GPU"
                                                      : " GPUs",
        job_spec_is_command(spec) ? "" : "; ",
        job_spec_is_command(spec) ? "" : job_view_servers(arena, &spec->sync));
}

/* What is held, what it costs where it would run, and the most it can ever cost. */
static void append_price(struct buffer *plan, const struct cli *cli, const struct job_spec *spec,
                         const struct api_quote *quote)
{
    struct arena *arena = cli->arena;
    const char *run = output_duration(arena, quote->max_run_ms);
    if (spec->market.spare) {
        buffer_append_string(plan, "  price     nothing: spare time is free\n");
        return;
    }
    if (quote->placed_micro > 0)
        buffer_append_format(plan,
                             "  price     %s for %s on the machines free now (%s an hour);\n"
                             "            likely %s\n",
                             output_amount(cli, quote->placed_micro), run,
                             output_credits(arena, quote->placed_hourly_micro),
                             output_credits(arena, quote->expected_micro));
    else
        buffer_append_format(plan,
                             "  price     %s are held for %s of the least it asks for; "
                             "more, up to the most, once its machines are known\n",
                             output_amount(cli, quote->wish_micro), run);
    if (spec->market.max_total_cost_micro > 0)
        buffer_append_format(plan, "  at most   %s (max_total_cost); you have %s\n",
                             output_amount(cli, spec->market.max_total_cost_micro),
                             output_credits(arena, quote->available_micro));
    else
        buffer_append_format(plan, "  at most   the %s you have: it names no max_total_cost\n",
                             output_amount(cli, quote->available_micro));
}

/* `may_wait`: it is sent although it cannot start now. */
static void append_start(struct buffer *plan, struct arena *arena, const struct job_spec *spec,
                         const struct api_quote *quote, bool may_wait)
{
    char wish[JOB_WISH_TEXT_SIZE];
    buffer_append_format(plan, "  start     %s%s\n", job_start_format(&spec->market.start, wish),
                         spec->market.rush    ? ", ahead of a queue for double the first hour"
                         : spec->market.spare ? ", on spare time: for nothing, until somebody pays"
                                              : "");
    if (quote->can_start)
        return;
    struct text rest = quote->reason, line;
    for (bool has_more = true, is_first = true; has_more; is_first = false) {
        has_more = text_cut(rest, '\n', &line, &rest);
        buffer_append_format(plan, "            %s%s\n",
                             !is_first  ? ""
                             : may_wait ? "but it has to wait: "
                                        : "but it cannot: ",
                             output_text(arena, line));
    }
    if (quote->nearest.size > 0)
        buffer_append_format(plan, "            nearest: %s\n", output_text(arena, quote->nearest));
    if (quote->expected_start_ms > 0)
        buffer_append_format(
            plan, "            expected to start: %s, if all before it run as long as they may\n",
            output_instant(arena, quote->expected_start_ms));
    if (quote->is_lacking)
        buffer_append_format(plan, "  Warning   too few machines here could ever serve it%s\n",
                             may_wait ? ": it waits until others come. \"start: by 2d\" under "
                                        "market in the job file ends the wait"
                                      : ", free or not");
}

/* What several servers and a replica are for, where the machines free now do not give it. */
static void append_servers(struct buffer *plan, const struct job_spec *spec,
                           const struct api_quote *quote)
{
    if (!quote->can_start || job_spec_is_command(spec))
        return;
    if (spec->sync.servers > 1 && quote->server_machines == 1)
        buffer_append_format(plan,
                             "  Warning   its %" PRIu64 " parameter servers would share one "
                             "machine, and its line: no other has room now\n",
                             spec->sync.servers);
    if (spec->sync.replica && !quote->has_replica_room)
        buffer_append_string(plan, "  Warning   no machine besides the parameter server's has room "
                                   "for the replica now: it begins without one\n");
}

enum { SHOWN_SCRIPT_SIZE = 60 };

/* The first line of what runs, or what is trained. */
static void append_work(struct buffer *plan, struct arena *arena, const struct job_spec *spec)
{
    if (!job_spec_is_command(spec)) {
        char place[PLACE_NAME_SIZE];
        const struct text data = place_is_address(spec->train.data)
                                     ? text_of(place_describe(spec->train.data, place))
                                     : spec->train.data;
        buffer_append_format(plan, "  training  %.*s on %.*s, policy %.*s\n",
                             TEXT_ARGS(spec->train.model), TEXT_ARGS(data),
                             TEXT_ARGS(spec->sync.policy));
        return;
    }
    struct text line = spec->run.size ? spec->run : TEXT("what the image says"), rest = {0};
    const bool has_more = text_cut(line, '\n', &line, &rest) && text_trim(rest).size > 0;
    const bool is_cut = line.size > SHOWN_SCRIPT_SIZE;
    line.size = is_cut ? SHOWN_SCRIPT_SIZE : line.size;
    buffer_append_format(plan, "  runs      %s%s\n", output_text(arena, line),
                         is_cut || has_more ? " ..." : "");
    if (spec->resources.image_id.size)
        buffer_append_format(plan, "  image     %s\n",
                             output_text(arena, spec->resources.image_id));
    char place[PLACE_NAME_SIZE];
    if (spec->workdir.size)
        buffer_append_format(plan, "  files     of %s, on every rank\n",
                             place_is_address(spec->workdir) ? place_describe(spec->workdir, place)
                                                             : output_text(arena, spec->workdir));
}

/* Without folders: the market has the files, not their places here. */
static int write_spec(const struct job_spec *spec, struct buffer *json, struct error *error)
{
    struct job_spec told = *spec;
    told.workdir = (struct text){0};
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
    buffer_clear(json);
    job_spec_write(&told, json);
    return buffer_check(json, error);
}

enum { SAME_MS = 60000, SAME_LOOKS = 4 };

/* Whether a job was submitted from the same job file, whatever its data were. */
static bool is_same(const struct cli *cli, const struct job_spec *spec, const struct api_job *job)
{
    struct error error;
    struct job_spec theirs, ours = *spec;
    struct buffer left AUTO_BUFFER, right AUTO_BUFFER;
    buffer_init(&left, JOB_SPEC_SIZE_MAX);
    buffer_init(&right, JOB_SPEC_SIZE_MAX);
    if (job_spec_read(cli->arena, job->spec, &theirs, &error) < 0)
        return false; /* of another version of this program */
    ours.input_count = theirs.input_count = 0;
    const struct dataset_shape unknown = {0}; /* ours is not read yet */
    job_train_set_shape(&ours.train, &unknown);
    job_train_set_shape(&theirs.train, &unknown);
    ours.train.mean = theirs.train.mean = 0;
    ours.train.deviation = theirs.train.deviation = 0;
    ours.train.target_deviation = theirs.train.target_deviation = 0;
    return write_spec(&ours, &left, &error) == 0 && write_spec(&theirs, &right, &error) == 0 &&
           text_equal(buffer_text(&left), buffer_text(&right));
}

/* A job of this account just like it that goes on and is a minute old at most, for one who submits
 * twice by mistake; *out_id is 0 without one. */
static int find_same(const struct cli *cli, struct client *client, const struct job_spec *spec,
                     uint64_t *out_id, int64_t *out_age_ms, struct error *error)
{
    struct json_array jobs;
    struct text json;
    *out_id = 0;
    if (client_list(client, cli->arena, "/v1/jobs", &api_job_page_schema, SAME_LOOKS, &jobs, &json,
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
        const char *path = arena_format(cli->arena, "/v1/jobs/%" PRIu64, listed->id);
        if (client_get(client, cli->arena, path, &answer, error) < 0)
            return -1;
        if (!is_same(cli, spec, &job))
            continue;
        *out_id = job.id;
        *out_age_ms = age_ms > 0 ? age_ms : 0;
        return 0;
    }
    return 0;
}

static int append_same(struct buffer *plan, const struct cli *cli, struct client *client,
                       const struct job_spec *spec, struct error *error)
{
    uint64_t id;
    int64_t age_ms = 0;
    if (find_same(cli, client, spec, &id, &age_ms, error) < 0)
        return -1;
    if (id)
        buffer_append_format(plan,
                             "  Warning   job %" PRIu64 ", submitted %s ago, is the same: this "
                             "would be one more\n",
                             id, output_duration(cli->arena, age_ms - age_ms % 1000));
    return 0;
}

/* NULL with *error. */
static const char *write_plan(const struct cli *cli, struct client *client,
                              const struct job_spec *spec, const struct submit_wish *wanted,
                              const struct api_quote *quote, struct error *error)
{
    struct arena *arena = cli->arena;
    struct buffer plan AUTO_BUFFER, terms AUTO_BUFFER;
    buffer_init(&plan, 8192);
    buffer_init(&terms, 8192);
    buffer_append_format(&plan, "Plan for \"%.*s\" at %s\n", TEXT_ARGS(spec->name),
                         client_server(client));
    append_work(&plan, arena, spec);
    append_amounts(&plan, arena, spec);
    append_price(&terms, cli, spec, quote);
    append_start(&terms, arena, spec, quote, !wanted->expects_room);
    append_servers(&terms, spec, quote);
    if (wanted->command)
        options_name_advice(wanted->command, buffer_text(&terms), &plan);
    else
        buffer_append_text(&plan, buffer_text(&terms));
    if (append_same(&plan, cli, client, spec, error) < 0)
        return NULL;
    return arena_copy_string(arena, buffer_text(&plan));
}

static void note_part(const struct cli *cli, const struct bundle_part *part)
{
    char size[UNITS_TEXT_SIZE], sent[UNITS_TEXT_SIZE];
    units_format_bytes((int64_t)part->bytes.size, size);
    if (part->sent_bytes == 0)
        output_note(cli, "%s: %s, in the market already", part->name, size);
    else
        output_note(cli, "%s: %s, sent %s", part->name, size,
                    units_format_bytes((int64_t)part->sent_bytes, sent));
}

static void note_reading(void *context, const char *what)
{
    output_note(context, "%s", what);
}

/* What the market would refuse anyway, before any data is sent. */
static int check_money(const struct cli *cli, const struct job_spec *spec,
                       const struct api_quote *quote, struct error *error)
{
    struct arena *arena = cli->arena;
    const struct job_market *limits = &spec->market;
    const bool is_placed = quote->placed_micro > 0;
    const int64_t total_micro = is_placed ? quote->placed_micro : quote->wish_micro;
    const int64_t hourly_micro = is_placed ? quote->placed_hourly_micro : quote->wish_hourly_micro;
    if (limits->max_total_cost_micro > 0 && total_micro > limits->max_total_cost_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it may cost %s over its longest run of %s, more than its "
                         "max_total_cost of %s; nothing was sent",
                         output_amount(cli, total_micro), output_duration(arena, quote->max_run_ms),
                         output_credits(arena, limits->max_total_cost_micro));
    if (limits->max_hourly_cost_micro > 0 && hourly_micro > limits->max_hourly_cost_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it would cost %s an hour, more than its max_hourly_cost of %s; "
                         "nothing was sent",
                         output_amount(cli, hourly_micro),
                         output_credits(arena, limits->max_hourly_cost_micro));
    if (total_micro > quote->available_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "it may cost %s over its longest run of %s, and you have %s; "
                         "nothing was sent",
                         output_amount(cli, total_micro), output_duration(arena, quote->max_run_ms),
                         output_credits(arena, quote->available_micro));
    return 0;
}

static int check_room(const struct cli *cli, const struct submit_wish *wanted,
                      const struct api_quote *quote, struct error *error)
{
    if (!wanted->expects_room || quote->can_start)
        return 0;
    return error_set(error, ERROR_UNAVAILABLE, "it could not start now: %s; nothing was sent",
                     output_text(cli->arena, quote->reason));
}

enum { MEASURING_FIRST_MS = 50, MEASURING_MAX_MS = 3000 };

/* While machines are tried with one another it asks again. */
static int ask_quote(struct cli *cli, struct client *client, struct text json,
                     struct api_quote *out_quote, struct error *error)
{
    int64_t waited_ms = 0;
    for (int64_t pause_ms = MEASURING_FIRST_MS;; pause_ms *= 2) {
        *out_quote = (struct api_quote){.has_replica_room = true}; /* an older market is silent */
        struct client_answer answer = {&api_quote_schema, out_quote, {0}};
        if (client_post(client, cli->arena, "/v1/quotes", json, &answer, error) < 0)
            return -1;
        if (!out_quote->is_measuring || out_quote->can_start || waited_ms >= MEASURING_MAX_MS)
            return 0;
        const struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
        (void)nanosleep(&pause, NULL); /* cut short it only asks sooner */
        waited_ms += pause_ms;
    }
}

/* 0 to go ahead; CLI_EXIT_DECLINED when the person said no. */
static int confirm(struct cli *cli, struct client *client, const struct job_spec *spec,
                   const struct submit_wish *wanted, struct buffer *json, struct error *error)
{
    struct api_quote quote;
    if (write_spec(spec, json, error) < 0 ||
        ask_quote(cli, client, buffer_text(json), &quote, error) < 0 ||
        cli_learn_unit(cli, client, error) < 0)
        return -1;
    const char *plan = write_plan(cli, client, spec, wanted, &quote, error);
    if (!plan)
        return -1;
    if (check_money(cli, spec, &quote, error) < 0 || check_room(cli, wanted, &quote, error) < 0) {
        if (!cli->common.quiet)
            output_plan(cli, plan);
        return -1;
    }
    return output_confirm(cli, wanted->is_yes, plan, wanted->question, error);
}

/* Before anything is asked for. */
static int check_folder(struct arena *arena, const struct job_spec *spec, struct error *error)
{
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

/* They are used here or nowhere. */
static int check_secrets(const struct job_spec *spec, struct error *error)
{
    if (!spec->secret_count || place_is_address(spec->train.data) ||
        place_is_address(spec->train.test) || place_is_address(spec->workdir))
        return 0;
    return error_set(error, ERROR_INVALID,
                     "secrets: are to read data and files by an address (s3://, hdfs://), and "
                     "nothing here has one; ranks do not get them yet");
}

static int gather(struct cli *cli, struct bundle *bundle, struct job_spec *spec,
                  const struct submit_wish *wanted, struct error *error)
{
    const struct upload_options upload = {.bundle = bundle,
                                          .folder = wanted->dataset_dir,
                                          .on_reading = note_reading,
                                          .context = cli};
    if (spec->workdir.size && upload_files(cli->arena, &upload, spec, error) < 0)
        return error_wrap(error, "workdir");
    if (spec->resources.image_id.size && !job_spec_image(spec) &&
        upload_image(cli->arena, &upload, spec, error) < 0)
        return error_wrap(error, "image");
    if (!job_spec_is_command(spec) && spec->input_count == 0 &&
        upload_data(cli->arena, &upload, spec, error) < 0)
        return -1;
    if (wanted->resume && upload_checkpoint(cli->arena, &upload, wanted->resume, spec, error) < 0)
        return error_wrap(error, "resume");
    return 0;
}

enum { SOURCE_WAIT_MS = 100 };

/* It is known by the time the job is whether leases can be sent here. */
static int upload_all(struct cli *cli, struct client *client, struct job_spec *spec,
                      const struct submit_wish *wanted, struct submit_result *result,
                      struct error *error)
{
    result->bundle = bundle_new();
    if (gather(cli, result->bundle, spec, wanted, error) < 0)
        return -1;
    if (wanted->is_serving && spec->input_count > 0)
        result->source = source_start(client, result->bundle, spec->inputs[0].manifest);
    if (bundle_send(result->bundle, client, error) < 0)
        return -1;
    for (size_t i = 0; i < bundle_part_count(result->bundle); i++)
        note_part(cli, bundle_part(result->bundle, i));
    if (result->source)
        source_wait(result->source, SOURCE_WAIT_MS);
    return 0;
}

void submit_result_done(struct submit_result *result)
{
    source_free(TAKE(result->source));
    bundle_free(TAKE(result->bundle));
}

int submit_job(struct cli *cli, struct client *client, struct job_spec *spec,
               const struct submit_wish *wanted, struct submit_result *out_result,
               struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, JOB_SPEC_SIZE_MAX);
    *out_result = (struct submit_result){0};
    if (check_secrets(spec, error) < 0 || check_folder(cli->arena, spec, error) < 0 ||
        (spec->resources.image_id.size && !job_spec_image(spec) &&
         upload_check_image(spec->resources.image_id, error) < 0))
        return -1;
    const int confirmed = confirm(cli, client, spec, wanted, &json, error);
    if (confirmed != 0)
        return confirmed;
    struct api_job job = api_job_unknown();
    struct client_answer answer = {&api_job_schema, &job, {0}};
    if (upload_all(cli, client, spec, wanted, out_result, error) < 0 ||
        write_spec(spec, &json, error) < 0 ||
        client_post(client, cli->arena, "/v1/jobs", buffer_text(&json), &answer, error) < 0)
        return -1;
    output_note(cli, "Submitted job %" PRIu64 ".", job.id);
    out_result->job = job.id;
    out_result->json = answer.json;
    return 0;
}
