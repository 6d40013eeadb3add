/* souk cloud catalog: what machines can be had from a cloud, and for how much, by the catalogue. */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cloud/catalogue.h"
#include "source/remote.h"
#include "train/data_stream.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define CATALOGUE_NAME "cloud-catalogue.csv"

static const char *catalogue_path(const struct cli *cli, const char *data_dir)
{
    return arena_format(cli->arena, "%s/" CATALOGUE_NAME, data_dir);
}

static void note_age(const struct cli *cli, const struct catalogue *catalogue, int64_t age_days_max)
{
    char notice[CATALOGUE_NOTICE_SIZE];
    catalogue_notice(catalogue, clock_utc_ms(&clock_system), age_days_max, notice);
    if (notice[0])
        output_problem(cli, "%s", notice);
}

static const char *dollars(struct arena *arena, int64_t usd_micro)
{
    if (!usd_micro)
        return "-";
    char *text =
        arena_format(arena, "%" PRId64 ".%06" PRId64, usd_micro / 1000000, usd_micro % 1000000);
    for (size_t end = strlen(text); end > 0 && text[end - 1] == '0' && text[end - 3] != '.'; end--)
        text[end - 1] = '\0';
    return text;
}

static const char *band(struct arena *arena, const struct catalogue_type *type)
{
    if (!type->interruption_percent_max)
        return "-";
    return type->interruption_percent_max == 100
               ? arena_format(arena, ">%" PRId64 " %%", type->interruption_percent_min)
               : arena_format(arena, "%" PRId64 "–%" PRId64 " %%", type->interruption_percent_min,
                              type->interruption_percent_max);
}

static const char *gpus(struct arena *arena, const struct catalogue_type *type)
{
    if (!type->gpu[0])
        return "-";
    return arena_format(arena, "%s × %s", output_cores(arena, type->gpu_milli), type->gpu);
}

static const char *bandwidth(struct arena *arena, const struct catalogue_type *type)
{
    return type->bandwidth_mbps ? arena_format(arena, "%g", (double)type->bandwidth_mbps / 1000)
                                : "-";
}

enum verb { VERB_LIST, VERB_SHOW, VERB_UPDATE };
static const char *const verbs[] = {"list", "show", "update", NULL};

struct catalogue_options {
    int verb; /* enum verb */
    const char *subject;
    const char *data_dir;
    const char *region;
    uint64_t age_days_max;
    bool has_gpu;
    bool is_listing_all;
    bool is_aws;
    const char *spot_advisor;
    const char *date;
    const char *source;
};

#define FIELD(member) offsetof(struct catalogue_options, member)

static const struct option catalogue_options[] = {
    {"verb", OPTION_CHOICE, FIELD(verb), "list|show|update", "list",
     "list: all there are; show: one type; update: read another catalogue for the market.",
     .choices = verbs, .is_positional = true},
    {"subject", OPTION_TEXT, FIELD(subject), "TYPE|FILE|URL",
     .help = "show: a type like m5.large. update: a catalogue, which is a file here or behind "
             "https://, s3:// or hdfs://; gzip is fine.",
     .is_positional = true},
    {"data", OPTION_PATH, FIELD(data_dir), "DIR", "{data}/market",
     "The market's folder, where the catalogue is kept.", .environment = "SOUK_MARKET_DATA"},
    {"region", OPTION_TEXT, FIELD(region), "REGION",
     .help = "Only this region's; of --from-aws-csv, whose prices they are: us-east-1 otherwise."},
    {"max_age_days", OPTION_U64, FIELD(age_days_max), "DAYS", "90",
     "From what age on the prices are called old.", .minimum = 0, .maximum = 36500},
    {"gpu", OPTION_FLAG, FIELD(has_gpu), .help = "list: only those with a GPU."},
    {"all", OPTION_FLAG, FIELD(is_listing_all),
     .help = "list: all, also when there are more than a hundred."},
    {"from_aws_csv", OPTION_FLAG, FIELD(is_aws),
     .help = "update: it is a table of AWS's types of one region, by the columns instance_type, "
             "vcpus, memory_gib, accelerator, accelerator_count, baseline_bandwidth_mbps, "
             "on_demand_usd_per_hour, spot_min_usd_per_hour and spot_max_usd_per_hour."},
    {"spot_advisor", OPTION_TEXT, FIELD(spot_advisor), "FILE|URL",
     .help = "With --from-aws-csv: the Spot Advisor's JSON, for how often spot instances are taken "
             "back."},
    {"date", OPTION_TEXT, FIELD(date), "DATE",
     .help = "With --from-aws-csv: the day the prices are of, like 2026-08-22."},
    {"source", OPTION_TEXT, FIELD(source), "TEXT",
     .help = "With --from-aws-csv: who published them; by default where they were read from."},
};

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_known(struct json_writer *writer, const char *key, int64_t value)
{
    json_key(writer, key);
    if (value)
        json_i64(writer, value);
    else
        json_null(writer);
}

static void write_type(struct json_writer *writer, const struct catalogue_type *type)
{
    json_object_begin(writer);
    json_field_string(writer, "type", type->name);
    json_field_string(writer, "region", type->region);
    json_field_string(writer, "architecture", cloud_architecture_name(type->architecture));
    json_field_i64(writer, "vcpus", type->vcpus);
    json_field_i64(writer, "memory_mib", type->memory_mib);
    json_field_string(writer, "gpu", type->gpu[0] ? type->gpu : NULL);
    json_field_i64(writer, "gpu_milli", type->gpu_milli);
    write_known(writer, "bandwidth_mbps", type->bandwidth_mbps);
    write_known(writer, "usd_micro_per_hour", type->usd_micro_per_hour);
    write_known(writer, "spot_usd_micro_per_hour_min", type->spot_usd_micro_per_hour_min);
    write_known(writer, "spot_usd_micro_per_hour_max", type->spot_usd_micro_per_hour_max);
    json_field_i64(writer, "interruption_percent_min", type->interruption_percent_min);
    write_known(writer, "interruption_percent_max", type->interruption_percent_max);
    json_object_end(writer);
}

static void write_function(struct json_writer *writer, const struct catalogue_function *function)
{
    json_object_begin(writer);
    json_field_string(writer, "function", function->name);
    json_field_string(writer, "region", function->region);
    json_field_string(writer, "architecture", cloud_architecture_name(function->architecture));
    json_field_i64(writer, "usd_micro_per_million_gib_s", function->usd_micro_per_million_gib_s);
    write_known(writer, "usd_micro_per_million_calls", function->usd_micro_per_million_calls);
    json_field_i64(writer, "memory_mib_min", function->memory_mib_min);
    json_field_i64(writer, "memory_mib_max", function->memory_mib_max);
    json_field_i64(writer, "memory_mib_per_vcpu", function->memory_mib_per_vcpu);
    json_object_end(writer);
}

static void write_origin(struct json_writer *writer, const struct catalogue *catalogue)
{
    json_field_string(writer, "date", catalogue_date(catalogue));
    json_field_i64(writer, "age_days", catalogue_age_days(catalogue, clock_utc_ms(&clock_system)));
    json_field_string(writer, "source", catalogue_source(catalogue));
}

/* ---- list ------------------------------------------------------------------------------------ */

enum { LISTED_MAX = 100 };

static bool is_listed(const struct catalogue_options *wanted, const struct catalogue_type *type)
{
    return (!wanted->region || strcmp(wanted->region, type->region) == 0) &&
           (!wanted->has_gpu || type->gpu[0]);
}

static int list_json(const struct catalogue_options *wanted, const struct catalogue *catalogue,
                     struct error *error)
{
    struct buffer out AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&out, (size_t)64 << 20);
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    write_origin(&writer, catalogue);
    json_key(&writer, "types");
    json_array_begin(&writer);
    for (size_t i = 0; i < catalogue_type_count(catalogue); i++)
        if (is_listed(wanted, catalogue_type_at(catalogue, i)))
            write_type(&writer, catalogue_type_at(catalogue, i));
    json_array_end(&writer);
    json_key(&writer, "functions");
    json_array_begin(&writer);
    for (size_t i = 0; i < catalogue_function_count(catalogue); i++)
        write_function(&writer, catalogue_function_at(catalogue, i));
    json_array_end(&writer);
    json_object_end(&writer);
    if (buffer_check(&out, error) < 0)
        return -1;
    output_json(buffer_text(&out));
    return 0;
}

static void add_row(struct table *table, const struct catalogue_type *type)
{
    struct arena *arena = table->arena;
    TABLE_ROW(table, type->name, output_number(arena, (uint64_t)type->vcpus),
              output_bytes(arena, type->memory_mib << 20), gpus(arena, type),
              bandwidth(arena, type), dollars(arena, type->usd_micro_per_hour),
              dollars(arena, type->spot_usd_micro_per_hour_max), band(arena, type), type->region,
              cloud_architecture_name(type->architecture));
}

static void list_table(const struct cli *cli, const struct catalogue_options *wanted,
                       const struct catalogue *catalogue)
{
    struct table table;
    size_t listed = 0, matching = 0;
    table_init(&table, cli->arena,
               (const char *const[]){"TYPE", ">VCPU", ">MEMORY", "GPU", ">/4GBIT/S", ">$/H",
                                     ">SPOT $/H", ">/3TAKEN BACK", "/2REGION", "/5PROCESSOR",
                                     NULL});
    for (size_t i = 0; i < catalogue_type_count(catalogue); i++) {
        const struct catalogue_type *type = catalogue_type_at(catalogue, i);
        if (!is_listed(wanted, type))
            continue;
        matching++;
        if (listed == LISTED_MAX && !wanted->is_listing_all)
            continue;
        add_row(&table, type);
        listed++;
    }
    table_show(&table, cli);
    output_note(cli, "%zu of %zu types; prices of %s (%s).", listed, matching,
                catalogue_date(catalogue), catalogue_source(catalogue));
}

static int run_list(const struct cli *cli, const struct catalogue_options *wanted,
                    struct error *error)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    if (catalogue_open(catalogue_path(cli, wanted->data_dir), &catalogue, error) < 0)
        return -1;
    note_age(cli, catalogue, (int64_t)wanted->age_days_max);
    if (cli->common.json)
        return list_json(wanted, catalogue, error);
    list_table(cli, wanted, catalogue);
    return 0;
}

/* ---- show ------------------------------------------------------------------------------------ */

static void show_type(const struct cli *cli, const struct catalogue *catalogue,
                      const struct catalogue_type *type)
{
    struct arena *arena = cli->arena;
    output_field(cli, "Type:       ", "%s in %s", type->name, type->region);
    output_field(cli, "Processor:  ", "%" PRId64 " vCPU (%s)", type->vcpus,
                 cloud_architecture_name(type->architecture));
    output_field(cli, "Memory:     ", "%s", output_bytes(arena, type->memory_mib << 20));
    output_field(cli, "GPU:        ", "%s", type->gpu[0] ? gpus(arena, type) : "none");
    output_field(cli, "Network:    ", "%s",
                 type->bandwidth_mbps ? arena_format(arena, "%s Gbit/s", bandwidth(arena, type))
                                      : "not known");
    output_field(cli, "Price:      ", "%s",
                 type->usd_micro_per_hour
                     ? arena_format(arena, "$%s an hour", dollars(arena, type->usd_micro_per_hour))
                     : "not known");
    if (type->spot_usd_micro_per_hour_max)
        output_field(cli, "Spot:       ", "$%s to $%s an hour by zone",
                     dollars(arena, type->spot_usd_micro_per_hour_min),
                     dollars(arena, type->spot_usd_micro_per_hour_max));
    if (type->interruption_percent_max)
        output_field(cli, "Taken back: ", "%s of spot instances within a month", band(arena, type));
    output_field(cli, "As of:      ", "%s (%s)", catalogue_date(catalogue),
                 catalogue_source(catalogue));
}

static void show_json(const struct catalogue *catalogue, const struct catalogue_type *type)
{
    struct buffer out AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&out, 1 << 16);
    json_writer_init(&writer, &out);
    json_object_begin(&writer);
    write_origin(&writer, catalogue);
    json_key(&writer, "type");
    write_type(&writer, type);
    json_object_end(&writer);
    output_json(buffer_text(&out));
}

static int run_show(const struct cli *cli, const struct catalogue_options *wanted,
                    struct error *error)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    const struct catalogue_type *type;
    if (catalogue_open(catalogue_path(cli, wanted->data_dir), &catalogue, error) < 0)
        return -1;
    note_age(cli, catalogue, (int64_t)wanted->age_days_max);
    if (catalogue_find(catalogue, text_of(wanted->subject), wanted->region, &type, error) < 0)
        return -1;
    if (cli->common.json)
        show_json(catalogue, type);
    else
        show_type(cli, catalogue, type);
    return 0;
}

/* ---- update ---------------------------------------------------------------------------------- */

/* Whatever is behind a descriptor, decompressed. */
static int read_all(const char *path, struct buffer *out, struct error *error)
{
    AUTO(data_stream) struct data_stream *stream = NULL;
    if (data_stream_open(path, CATALOGUE_SIZE_MAX, &stream, error) < 0)
        return -1;
    for (size_t read = 1; read > 0;) {
        uint8_t *room = buffer_reserve(out, 1 << 16);
        if (!room)
            return buffer_check(out, error);
        if (data_stream_read(stream, room, 1 << 16, &read, error) < 0)
            return -1;
        buffer_advance(out, read);
    }
    return 0;
}

static int fetch(const char *url, struct buffer *out, struct error *error)
{
    AUTO(remote) struct remote *remote = NULL;
    AUTO_FD int fd = memfd_create("catalogue", MFD_CLOEXEC);
    if (fd < 0)
        return error_set_errno(error, errno, "make a file in memory");
    const struct remote_options options = {.address = url, .size_max = CATALOGUE_SIZE_MAX};
    char path[32];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (remote_open(&options, &remote, error) < 0 || remote_fetch(remote, fd, error) < 0)
        return -1;
    return read_all(path, out, error);
}

static int bring(const char *from, struct buffer *out, struct error *error)
{
    buffer_init(out, CATALOGUE_SIZE_MAX + (1 << 16));
    if (strstr(from, "://"))
        return fetch(from, out, error);
    if (read_all(from, out, error) < 0)
        return error->code == ERROR_NOT_FOUND ? -1 : error_wrap(error, "%.100s", from);
    return 0;
}

static int read_aws(const struct catalogue_options *wanted, struct text csv,
                    struct catalogue **out_catalogue, struct error *error)
{
    struct buffer advisor AUTO_BUFFER = {0};
    if (!wanted->date)
        return error_set(error, ERROR_INVALID,
                         "--date: say which day the prices are of, like --date 2026-08-22");
    if (wanted->spot_advisor && bring(wanted->spot_advisor, &advisor, error) < 0)
        return -1;
    /* A file's name, and not where it lies here. */
    const char *name = strstr(wanted->subject, "://") ? NULL : strrchr(wanted->subject, '/');
    const char *origin = name ? name + 1 : wanted->subject;
    const struct catalogue_aws aws = {.csv = csv,
                                      .spot_advisor = buffer_text(&advisor),
                                      .region = wanted->region ? wanted->region : "us-east-1",
                                      .date = wanted->date,
                                      .source = wanted->source ? wanted->source : origin};
    return catalogue_read_aws(&aws, out_catalogue, error);
}

static int update(const struct catalogue_options *wanted, struct catalogue **out_catalogue,
                  struct error *error)
{
    struct buffer csv AUTO_BUFFER = {0};
    if (bring(wanted->subject, &csv, error) < 0)
        return -1;
    const int read = wanted->is_aws ? read_aws(wanted, buffer_text(&csv), out_catalogue, error)
                                    : catalogue_read(buffer_text(&csv), out_catalogue, error);
    return read < 0 ? error_wrap(error, "%.100s", wanted->subject) : 0;
}

static int run_update(const struct cli *cli, const struct catalogue_options *wanted,
                      struct error *error)
{
    AUTO(catalogue) struct catalogue *catalogue = NULL;
    struct buffer written AUTO_BUFFER;
    buffer_init(&written, CATALOGUE_SIZE_MAX);
    if (!wanted->is_aws && (wanted->date || wanted->source || wanted->spot_advisor))
        return error_set(error, ERROR_INVALID,
                         "--date, --source and --spot-advisor are for --from-aws-csv: a catalogue "
                         "has its own");
    if (update(wanted, &catalogue, error) < 0)
        return -1;
    catalogue_write(catalogue, &written);
    const struct text text = buffer_text(&written);
    const char *path = catalogue_path(cli, wanted->data_dir);
    if (buffer_check(&written, error) < 0)
        return -1;
    if (file_make_folders(wanted->data_dir, 0700, error) < 0 ||
        file_replace(path, &text, 1, 0644, error) < 0)
        return -1;
    note_age(cli, catalogue, (int64_t)wanted->age_days_max);
    output_note(cli, "%s: %zu types, prices of %s", path, catalogue_type_count(catalogue),
                catalogue_date(catalogue));
    return 0;
}

static int run_catalogue(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    const struct catalogue_options *wanted = options;
    switch ((enum verb)wanted->verb) {
    case VERB_LIST:
        break;
    case VERB_SHOW:
        return wanted->subject
                   ? run_show(cli, wanted, error)
                   : error_set(error, ERROR_INVALID, "show: say of which type, like m5.large");
    case VERB_UPDATE:
        return wanted->subject
                   ? run_update(cli, wanted, error)
                   : error_set(error, ERROR_INVALID, "update: say from which file or address");
    }
    if (wanted->subject)
        return error_set(
            error, ERROR_INVALID,
            "\"list\" takes no argument; \"souk cloud catalog show %.60s\" shows one type",
            wanted->subject);
    return run_list(cli, wanted, error);
}

const struct command command_cloud_catalogue = {
    .name = "cloud catalog",
    .summary = "Lists the machines that can be had from a cloud, with their prices.",
    .details = "The figures are those of the catalogue: the one that came with the program, or the "
               "one that was read last. \"Taken back\" says how many of a hundred spot instances "
               "were interrupted within a month. A new catalogue is checked whole before it takes "
               "the place of the one before; a running market uses it from the next question on.",
    .example = "souk cloud catalog show g4dn.xlarge",
    COMMAND_OPTIONS(catalogue_options, catalogue_options),
    .run = run_catalogue,
};
