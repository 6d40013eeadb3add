/* souk cloud start, list, stop, sweep: the operator's instances at a cloud. */
#include "base/clock.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/table.h"
#include "client/api.h"

#include <inttypes.h>
#include <time.h>

enum { SWEEP_STEPS = 240, SWEEP_STEP_MS = 250 };

static const char *dollars(struct arena *arena, int64_t usd_micro)
{
    return arena_format(arena, "$%.4f", (double)usd_micro / 1e6);
}

static int ask_cloud(const struct cli *cli, struct client *client, struct api_cloud *cloud,
                     struct error *error)
{
    *cloud = (struct api_cloud){0};
    struct client_answer answer = {&api_cloud_schema, cloud, {0}};
    return client_get(client, cli->arena, "/v1/cloud", &answer, error);
}

static void note_prices(const struct cli *cli, const struct api_cloud *cloud)
{
    if (cloud->catalogue_notice.size)
        output_problem(cli, "%s", output_text(cli->arena, cloud->catalogue_notice));
    if (cloud->problem.size)
        output_problem(cli, "%s", output_text(cli->arena, cloud->problem));
}

/* ---- start ----------------------------------------------------------------------------------- */

struct start_options {
    struct option_list types;
    uint64_t count;
    bool is_spot;
    const char *budget;
    const char *max_cost;
    uint64_t job;
    bool is_yes;
};

static const struct option start_options[] = {
    {"types", OPTION_LIST, offsetof(struct start_options, types), "TYPE",
     .help = "What to start, like m5.large; the next ones where there is none of the first.",
     .is_positional = true, .is_required = true},
    {"count", OPTION_U64, offsetof(struct start_options, count), "NUMBER", "1", "How many.",
     .minimum = 1, .maximum = 256, .letter = 'n'},
    {"spot", OPTION_FLAG, offsetof(struct start_options, is_spot),
     .help = "Spot instances: cheaper, and the cloud may take them back."},
    {"budget", OPTION_TEXT, offsetof(struct start_options, budget), "AMOUNT",
     .help = "The most that all of them cost an hour: $2/h in dollars, 2/h in credits.",
     .fields = "usd_micro_per_hour_max"},
    {"max_cost", OPTION_TEXT, offsetof(struct start_options, max_cost), "AMOUNT",
     .help = "The most that they cost in all: $5 in dollars, 5 in credits; they end by then.",
     .fields = "usd_micro_max"},
    {"for", OPTION_U64, offsetof(struct start_options, job), "JOB",
     .help = "For this job's borrower alone, and until it ends.", .fields = "job"},
    {"yes", OPTION_FLAG, offsetof(struct start_options, is_yes), .help = "Do not ask.",
     .letter = 'y'},
};

/* "$2/h", or "2/h" of credits; `suffix` is "/h" or "". */
static int parse_usd(const char *text, const char *suffix, const struct api_cloud *cloud,
                     const char *flag, int64_t *out_micro, struct error *error)
{
    struct text amount = text_of(text);
    int64_t micro = 0;
    *out_micro = 0;
    if (!text)
        return 0;
    const bool is_usd = text_starts_with(amount, TEXT("$"));
    const bool is_ended = text_ends_with(amount, text_of(suffix));
    if (is_usd)
        amount = (struct text){amount.data + 1, amount.size - 1};
    if (is_ended && suffix[0])
        amount.size -= strlen(suffix);
    if (!is_ended || units_parse_credits(amount, &micro, error) < 0 || micro <= 0)
        return error_set(error, ERROR_INVALID, "%s: \"%.40s\" is not like $2%s, or 2%s in credits",
                         flag, text, suffix, suffix);
    if (!is_usd && !cloud->credits_micro_per_usd)
        return error_set(error, ERROR_INVALID,
                         "%s: the market does not say what a dollar is in "
                         "credits; say $2%s",
                         flag, suffix);
    *out_micro =
        is_usd ? micro : (int64_t)((__int128)micro * 1000000 / cloud->credits_micro_per_usd);
    return 0;
}

static const char *join(struct arena *arena, const struct option_list *types)
{
    const char *joined = "";
    for (size_t i = 0; i < types->count; i++)
        joined = arena_format(arena, "%s%s%s", joined, i ? ", else " : "", types->items[i]);
    return joined;
}

/* Without a limit of its own an order gets the price of what it names first. */
static const char *write_total(struct arena *arena, const struct start_options *wanted,
                               const struct api_cloud *cloud, int64_t total)
{
    if (total)
        return arena_format(arena, "%s in all", dollars(arena, total));
    return arena_format(arena, "in all the price of %" PRIu64 " × %s for %" PRId64 " hours",
                        wanted->count, wanted->types.items[0], cloud->hours_max);
}

static const char *write_plan(const struct cli *cli, const struct start_options *wanted,
                              const struct api_cloud *cloud, int64_t rate, int64_t total)
{
    struct arena *arena = cli->arena;
    return arena_format(arena,
                        "Start:   %" PRIu64 " × %s in %s%s\n"
                        "Budget:  %s an hour; %s\n"
                        "Until:   %s, idle, or at the budget\n"
                        "The cloud bills the account whose keys the market has.\n",
                        wanted->count, join(arena, &wanted->types),
                        output_text(arena, cloud->region), wanted->is_spot ? ", spot" : "",
                        dollars(arena, rate ? rate : cloud->usd_micro_per_hour_max),
                        write_total(arena, wanted, cloud, total),
                        wanted->job ? "the job ends" : "stopped");
}

static void write_body(const struct start_options *wanted, int64_t rate, int64_t total,
                       struct buffer *out)
{
    struct json_writer writer;
    buffer_init(out, 1 << 16);
    json_writer_init(&writer, out);
    json_object_begin(&writer);
    json_key(&writer, "types");
    json_array_begin(&writer);
    for (size_t i = 0; i < wanted->types.count; i++)
        json_string(&writer, wanted->types.items[i]);
    json_array_end(&writer);
    json_field_u64(&writer, "count", wanted->count);
    json_field_bool(&writer, "spot", wanted->is_spot);
    json_field_i64(&writer, "usd_micro_per_hour_max", rate);
    json_field_i64(&writer, "usd_micro_max", total);
    if (wanted->job)
        json_field_u64(&writer, "job", wanted->job);
    json_object_end(&writer);
}

static int run_start(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    const struct start_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_cloud cloud;
    struct api_cloud_order order = {0};
    struct client_answer answer = {&api_cloud_order_schema, &order, {0}};
    struct buffer body AUTO_BUFFER = {0};
    int64_t rate, total;
    if (cli_connect(cli, true, &client, error) < 0 || ask_cloud(cli, client, &cloud, error) < 0 ||
        parse_usd(wanted->budget, "/h", &cloud, "--budget", &rate, error) < 0 ||
        parse_usd(wanted->max_cost, "", &cloud, "--max-cost", &total, error) < 0)
        return -1;
    note_prices(cli, &cloud);
    const int confirmed = output_confirm(
        cli, wanted->is_yes, write_plan(cli, wanted, &cloud, rate, total), "Start them?", error);
    if (confirmed != 0)
        return confirmed;
    write_body(wanted, rate, total, &body);
    if (buffer_check(&body, error) < 0 ||
        client_post(client, cli->arena, "/v1/cloud/orders", buffer_text(&body), &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    else
        printf("Order %" PRIu64 ": \"souk cloud list\" shows what becomes of it.\n", order.id);
    return 0;
}

const struct command command_cloud_start = {
    .name = "cloud start",
    .summary = "Starts machines at a cloud that lend to this market.",
    .details =
        "The market has to have been started with --cloud FILE (docs/cloud.md). They lend at "
        "no less than they cost, and end when they are idle, when their job ends, or when "
        "the budget is used up, whichever is first. Shows what will happen and asks first.",
    .example = "souk cloud start c7i.xlarge -n 4 --spot --budget '$1/h' --max-cost '$3'",
    COMMAND_OPTIONS(start_options, start_options),
    .run = run_start,
};

/* ---- list ------------------------------------------------------------------------------------ */

struct cloud_list_options {
    bool is_listing_all;
};

static const struct option list_options[] = {
    {"all", OPTION_FLAG, offsetof(struct cloud_list_options, is_listing_all),
     .help = "Those that have ended, too."},
};

static void add_instances(struct table *table, const struct api_cloud_order *order, bool has_ended)
{
    struct arena *arena = table->arena;
    const struct api_cloud_instance *instances = order->instances.items;
    for (size_t i = 0; i < order->instances.count; i++) {
        const struct api_cloud_instance *instance = &instances[i];
        if (!has_ended && text_equal(instance->state, TEXT("gone")))
            continue;
        TABLE_ROW(table, output_number(arena, order->id),
                  instance->instance.size ? output_text(arena, instance->instance) : "-",
                  output_text(arena, instance->type), output_text(arena, instance->zone),
                  output_text(arena, instance->state),
                  instance->machine ? output_number(arena, instance->machine) : "-",
                  dollars(arena, instance->usd_micro_per_hour), dollars(arena, instance->usd_micro),
                  output_text(arena, instance->reason));
    }
}

static int run_list(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    const struct cloud_list_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_cloud cloud = {0};
    struct table table;
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_get(cli, client, "/v1/cloud", &api_cloud_schema, &cloud, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    note_prices(cli, &cloud);
    table_init(&table, cli->arena,
               (const char *const[]){">ORDER", "INSTANCE", "TYPE", "/3ZONE", "STATE", ">MACHINE",
                                     ">$/H", ">COST", "+/2WHY", NULL});
    const struct api_cloud_order *orders = cloud.orders.items;
    for (size_t i = 0; i < cloud.orders.count; i++)
        add_instances(&table, &orders[i], wanted->is_listing_all);
    table_show(&table, cli);
    for (size_t i = 0; i < cloud.orders.count; i++)
        if (orders[i].reason.size &&
            (wanted->is_listing_all || !text_equal(orders[i].state, TEXT("done"))))
            output_note(cli, "Order %" PRIu64 " (%s): %s", orders[i].id,
                        output_text(cli->arena, orders[i].state),
                        output_text(cli->arena, orders[i].reason));
    output_note(cli, "%s an hour of at most %s; a dollar is %s.",
                dollars(cli->arena, cloud.usd_micro_per_hour),
                dollars(cli->arena, cloud.usd_micro_per_hour_max),
                output_amount(cli, cloud.credits_micro_per_usd));
    return 0;
}

const struct command command_cloud_list = {
    .name = "cloud list",
    .summary = "Lists the machines started at a cloud, with what they cost so far.",
    .example = "souk cloud list --all",
    COMMAND_OPTIONS(list_options, cloud_list_options),
    .run = run_list,
};

/* ---- stop ------------------------------------------------------------------------------------ */

struct stop_options {
    const char *order;
};

static const struct option stop_options[] = {
    {"order", OPTION_TEXT, offsetof(struct stop_options, order), "ORDER|all",
     .help = "The order's number, or all.", .is_positional = true, .is_required = true},
};

static int run_stop(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    const struct stop_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_cloud cloud = {0};
    struct client_answer answer = {&api_cloud_schema, &cloud, {0}};
    const bool is_all = strcmp(wanted->order, "all") == 0;
    uint64_t order;
    if (!is_all && text_parse_u64(text_of(wanted->order), &order, error) < 0)
        return error_set(error, ERROR_INVALID, "\"%.40s\" is neither an order's number nor \"all\"",
                         wanted->order);
    const char *path = is_all ? "/v1/cloud/orders"
                              : arena_format(cli->arena, "/v1/cloud/orders/%s", wanted->order);
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_send(client, cli->arena, "DELETE", path, (struct text){0}, &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    else
        printf("They are being ended: \"souk cloud list\" shows how far that is.\n");
    return 0;
}

const struct command command_cloud_stop = {
    .name = "cloud stop",
    .summary = "Ends machines that were started at a cloud.",
    .example = "souk cloud stop all",
    COMMAND_OPTIONS(stop_options, stop_options),
    .run = run_stop,
};

/* ---- sweep ----------------------------------------------------------------------------------- */

struct sweep_options {
    bool is_unused;
};

/* Until the market has seen the cloud's list, or could not. */
static int wait_for_list(const struct cli *cli, struct client *client, int64_t before_ms,
                         struct api_cloud *cloud, struct error *error)
{
    for (int i = 0; i < SWEEP_STEPS; i++) {
        if (ask_cloud(cli, client, cloud, error) < 0)
            return -1;
        if (cloud->listed_ms > before_ms)
            return 0;
        if (cloud->problem.size)
            return error_set(error, ERROR_UNAVAILABLE, "%s",
                             output_text(cli->arena, cloud->problem));
        nanosleep(&(struct timespec){.tv_nsec = SWEEP_STEP_MS * 1000000L}, NULL);
    }
    return error_set(error, ERROR_UNAVAILABLE, "the cloud's list did not come in time");
}

static int run_sweep(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_cloud before = {0}, after = {0};
    struct client_answer answer = {&api_cloud_schema, &before, {0}};
    (void)options;
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_post(client, cli->arena, "/v1/cloud/sweep", TEXT("{}"), &answer, error) < 0 ||
        wait_for_list(cli, client, before.listed_ms, &after, error) < 0)
        return -1;
    if (cli->common.json)
        printf("{\"ended\":%" PRIu64 "}\n", after.strays - before.strays);
    else
        printf("%" PRIu64 " left running, and being ended now.\n", after.strays - before.strays);
    return 0;
}

const struct command command_cloud_sweep = {
    .name = "cloud sweep",
    .summary = "Ends what the market has left running at a cloud.",
    .details =
        "The market does that by itself when it starts and every half minute: by their tags, "
        "instances that are its own and that it knows nothing of any more are ended.",
    .example = "souk cloud sweep",
    .struct_size = sizeof(struct sweep_options),
    .run = run_sweep,
};
