/* souk machines, machines show: the market's table of machines. */
#include "base/units.h"
#include "cli/connect.h"
#include "cli/machine_find.h"
#include "cli/offer_view.h"
#include "cli/output.h"
#include "cli/table.h"
#include "client/api.h"

#include <inttypes.h>

/* ---- What both show -------------------------------------------------------------------------- */

/* Of one that takes no leases what keeps it from that, and until when. */
static const char *machine_state(struct arena *arena, const struct api_machine *machine)
{
    const bool is_known = machine->offer_state.size > 0; /* an older market says less */
    const struct text shown = machine->availability.size ? machine->availability : machine->state;
    const bool is_there = text_equal(machine->state, TEXT("online"));
    /* "low" is no state: it takes leases and runs them, if slowly. */
    if (is_there && machine->yield.size > 0 && !text_is(machine->yield, "none") &&
        !text_is(machine->yield, "low"))
        return text_is(machine->yield, "paused_remotely") ? "paused"
                                                          : output_text(arena, machine->yield);
    if (!is_there || !is_known || text_equal(machine->offer_state, TEXT("open")))
        return output_text(arena, shown);
    if (text_equal(machine->offer_state, TEXT("none")))
        return "no offer";
    return offer_view_state_words(arena, machine->offer_state, machine->offer_state_until_ms);
}

static const char *machine_rtt(struct arena *arena, const struct api_machine *machine)
{
    const int64_t rtt_us = machine->probe.rtt_us;
    return rtt_us ? arena_format(arena, "%.1f ms", (double)rtt_us / 1e3) : "-";
}

/* ---- machines -------------------------------------------------------------------------------- */

struct machines_options {
    bool is_mine, is_free;
    const char *state;
    const char *name;
    int64_t cores_milli, ram_bytes, gpus_milli, disk_bytes;
    struct option_list labels;
    int64_t max_rtt_ms;
    const char *min_reliability, *min_speed;
    int64_t max_price_micro;
    const char *sort;
    uint64_t limit;
};

#define MACHINES_OPTION(name_, kind_, member_, value_, help_, ...)                                 \
    {                                                                                              \
        (name_), (kind_), offsetof(struct machines_options, member_), (value_), .help = (help_),   \
                                                                                __VA_ARGS__        \
    }

static const struct option machines_options[] = {
    {"mine", OPTION_FLAG, offsetof(struct machines_options, is_mine),
     .help = "Only those this account lends."},
    {"free", OPTION_FLAG, offsetof(struct machines_options, is_free),
     .help = "Only those with room for a lease now: --state free."},
    MACHINES_OPTION("state", OPTION_TEXT, state, "STATE",
                    "Only those that are free, busy, paused, unreachable or offline.",
                    .fields = "availability"),
    MACHINES_OPTION("name", OPTION_TEXT, name, "NAME", "Only the one of this name."),
    MACHINES_OPTION("cpus", OPTION_CORES, cores_milli, "CORES", "At least so many cores free.",
                    .fields = "min_cores_milli"),
    MACHINES_OPTION("memory", OPTION_BYTES, ram_bytes, "SIZE", "At least so much memory free.",
                    .fields = "min_ram_bytes"),
    MACHINES_OPTION("gpus", OPTION_CORES, gpus_milli, "GPUS", "At least so many GPUs free.",
                    .fields = "min_gpus_milli"),
    MACHINES_OPTION("disk", OPTION_BYTES, disk_bytes, "SIZE", "At least so much disk free.",
                    .fields = "min_disk_bytes"),
    MACHINES_OPTION("label", OPTION_LIST, labels, "LABEL",
                    "With this label, found there or given by its owner; each of several.",
                    .fields = "labels"),
    MACHINES_OPTION("max_rtt", OPTION_DURATION, max_rtt_ms, "TIME",
                    "With a round trip to the market of at most this, like 50ms.",
                    .fields = "max_rtt_us", .minimum = 1, .maximum = 60000),
    MACHINES_OPTION("min_reliability", OPTION_TEXT, min_reliability, "SHARE",
                    "At least so reliable, from 0 to 1.", .fields = "min_reliability_milli"),
    MACHINES_OPTION("min_speed", OPTION_TEXT, min_speed, "FACTOR",
                    "With cores at least so fast against the reference.",
                    .fields = "min_speed_milli"),
    MACHINES_OPTION("max_price", OPTION_CREDITS, max_price_micro, "CREDITS",
                    "Whose owner asks at most this for a core-hour.", .fields = "max_core_micro"),
    MACHINES_OPTION("sort", OPTION_TEXT, sort, "ORDER",
                    "By free, speed or reliability, the most first; by price or rtt, the least "
                    "first."),
    {"limit", OPTION_U64, offsetof(struct machines_options, limit), "COUNT", "1000",
     "Show at most so many.", .minimum = 1, .maximum = 100000},
};

struct question {
    struct arena *arena;
    const char *path;
    bool has_parameter;
};

static void ask_text(struct question *question, const char *parameter, const char *value)
{
    if (!value)
        return;
    question->path = arena_format(question->arena, "%s%c%s=%s", question->path,
                                  question->has_parameter ? '&' : '?', parameter,
                                  client_escape(question->arena, text_of(value)));
    question->has_parameter = true;
}

static void ask_number(struct question *question, const char *parameter, int64_t value)
{
    if (value)
        ask_text(question, parameter, arena_format(question->arena, "%" PRId64, value));
}

static int ask_factor(struct question *question, const char *option, const char *parameter,
                      const char *value, struct error *error)
{
    int64_t milli = 0;
    if (!value)
        return 0;
    if (units_parse_factor(text_of(value), &milli, error) < 0)
        return error_wrap(error, "%s", option);
    ask_number(question, parameter, milli);
    return 0;
}

static void ask_labels(struct question *question, const struct option_list *labels)
{
    const char *joined = NULL;
    for (size_t i = 0; i < labels->count; i++)
        joined = joined ? arena_format(question->arena, "%s,%s", joined, labels->items[i])
                        : labels->items[i];
    ask_text(question, "labels", joined);
}

static int write_question(struct arena *arena, const struct machines_options *wanted,
                          const char **out_path, struct error *error)
{
    struct question question = {arena, "/v1/machines", false};
    if (wanted->is_free && wanted->state && !text_equal(text_of(wanted->state), TEXT("free")))
        return error_set(error, ERROR_INVALID, "--free is --state free: give one of the two");
    ask_text(&question, "mine", wanted->is_mine ? "true" : NULL);
    ask_text(&question, "availability", wanted->is_free ? "free" : wanted->state);
    ask_text(&question, "name", wanted->name);
    ask_number(&question, "min_cores_milli", wanted->cores_milli);
    ask_number(&question, "min_ram_bytes", wanted->ram_bytes);
    ask_number(&question, "min_gpus_milli", wanted->gpus_milli);
    ask_number(&question, "min_disk_bytes", wanted->disk_bytes);
    ask_labels(&question, &wanted->labels);
    ask_number(&question, "max_rtt_us", wanted->max_rtt_ms * 1000);
    ask_number(&question, "max_core_micro", wanted->max_price_micro);
    ask_text(&question, "sort", wanted->sort);
    if (ask_factor(&question, "--min-reliability", "min_reliability_milli", wanted->min_reliability,
                   error) < 0 ||
        ask_factor(&question, "--min-speed", "min_speed_milli", wanted->min_speed, error) < 0)
        return -1;
    *out_path = question.path;
    return 0;
}

/* What it lends now: an older market does not say whether any. */
static bool lends_now(const struct api_machine *machine)
{
    return machine->offer_state.size == 0 || text_equal(machine->offer_state, TEXT("open"));
}

static void add_machine(struct table *table, struct arena *arena, const struct api_machine *machine)
{
    const bool is_known = machine->availability.size > 0;
    const char *fresh = machine->fresh_s.size
                            ? arena_format(arena, "%s s", output_text(arena, machine->fresh_s))
                            : "-";
    TABLE_ROW(table, output_number(arena, machine->id), output_text(arena, machine->name),
              output_text(arena, machine->account_name), machine_state(arena, machine),
              lends_now(machine) ? output_cores(arena, machine->offer.cores_milli) : "-",
              is_known ? output_cores(arena, machine->free.cores_milli) : "-",
              is_known ? output_bytes(arena, machine->free.ram_bytes) : "-",
              is_known ? output_cores(arena, machine->free.gpus_milli) : "-",
              machine_rtt(arena, machine), output_cores(arena, machine->probe.speed_weight_milli),
              output_cores(arena, machine->reputation.reliability_milli), fresh,
              output_credits(arena, machine->earned_micro));
}

static int run_machines(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct machines_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct json_array machines;
    const char *path = NULL;
    bool is_done;
    if (write_question(cli->arena, wanted, &path, error) < 0 ||
        cli_connect(cli, true, &client, error) < 0 ||
        cli_list(cli, client, path, &api_machine_page_schema, wanted->limit, &machines, &is_done,
                 error) < 0)
        return -1;
    if (is_done)
        return 0;
    if (machines.count == 0) {
        output_note(cli,
                    text_equal(text_of(path), TEXT("/v1/machines"))
                        ? "No machine is lent yet; \"souk machines add\" shows how to lend one."
                        : "No machine is like that.");
        return 0;
    }
    struct table table;
    table_init(&table, cli->arena,
               (const char *const[]){">ID", "~NAME", "~LENDER", "STATE", ">CORES", ">FREE",
                                     ">/4MEMORY", ">/7GPUS", ">/5RTT", ">/6SPEED", ">/8RELIABLE",
                                     ">/3FRESH", ">/9EARNED", NULL});
    for (size_t i = 0; i < machines.count; i++)
        add_machine(&table, cli->arena, (const struct api_machine *)machines.items + i);
    table_show(&table, cli);
    return 0;
}

const struct command command_machines = {
    .name = "machines",
    .summary = "Lists the machines lent in the market, or those like what is asked for.",
    .details = "FREE and MEMORY are what is left of the open offers now, RTT the round trip to the "
               "market, RELIABLE how sure a lease there is to end as it should, FRESH how long ago "
               "the market heard of the machine.",
    .example = "souk machines --free --cpus 2 --memory 4GiB --max-rtt 50ms --sort price",
    COMMAND_OPTIONS(machines_options, machines_options),
    .run = run_machines,
};

/* ---- machines show --------------------------------------------------------------------------- */

struct show_options {
    const char *name;
};

static const struct option show_options[] = {
    {"name", OPTION_TEXT, offsetof(struct show_options, name), "NAME",
     .help = "The machine's name or number.", .is_positional = true, .is_required = true},
};

#define LABEL_NONE "             "

static void print_reputation(const struct cli *cli, const struct api_reputation *reputation)
{
    struct arena *arena = cli->arena;
    output_field(cli, "Leases:      ",
                 "%" PRId64 " completed, %" PRId64 " lost, %" PRId64 " ended by the owner, %" PRId64
                 " failed",
                 reputation->completed, reputation->lost, reputation->reclaimed,
                 reputation->failed);
    output_field(cli, "Delivered:   ", "%s verified of %s leased, %" PRId64 " ticks",
                 output_duration(arena, reputation->delivered_ms),
                 output_duration(arena, reputation->leased_ms), reputation->ticks);
    output_field(cli, "Reliability: ", "%s = (%s + 1) / (%s + 2 + 2 x %s + %s / 2)",
                 output_cores(arena, reputation->reliability_milli),
                 output_cores(arena, reputation->completed_milli),
                 output_cores(arena, reputation->completed_milli),
                 output_cores(arena, reputation->lost_milli),
                 output_cores(arena, reputation->reclaimed_milli));
    output_field(cli, LABEL_NONE,
                 "completed, lost and ended by the owner, each 1/64 less with every lease since");
}

static void print_proof(const struct cli *cli, const struct api_machine *machine,
                        const struct api_server *server)
{
    struct arena *arena = cli->arena;
    const struct api_reputation *reputation = &machine->reputation;
    if (reputation->is_proven) {
        output_field(cli, "Proven:      ", "yes; earned %s verified",
                     output_credits(arena, reputation->verified_micro));
        return;
    }
    const bool has_karma = text_equal(server->economy, TEXT("karma")); /* which nobody withholds */
    const char *withheld = has_karma
                               ? ""
                               : arena_format(arena, "; withheld %s, %.4g %% of it until then",
                                              output_credits(arena, reputation->withheld_micro),
                                              (double)server->withheld_basis_points / 100);
    output_field(cli, "Proven:      ", "not yet; earned %s of %s verified%s",
                 output_credits(arena, reputation->verified_micro),
                 output_credits(arena, server->proving_micro), withheld);
    if (machine->probe.speed_weight_milli > 1000)
        output_field(cli, LABEL_NONE, "its speed counts as 1 until then");
}

static const char *rate(struct arena *arena, int64_t kbit)
{
    return kbit >= 1000000 ? arena_format(arena, "%.3g Gbit/s", (double)kbit / 1e6)
                           : arena_format(arena, "%.3g Mbit/s", (double)kbit / 1e3);
}

/* With spaces, so that a line breaks between them. */
static const char *spaced_labels(struct arena *arena, struct text labels)
{
    const char *all = "";
    struct text label;
    for (bool has_more = labels.size > 0; has_more;) {
        has_more = text_cut(labels, ',', &label, &labels);
        all = arena_format(arena, "%s%s%s", all, all[0] ? ", " : "", output_text(arena, label));
    }
    return all;
}

static void print_probe(const struct cli *cli, const struct api_share *probe)
{
    struct arena *arena = cli->arena;
    output_field(cli, "Processor:   ", "%s, %s, %s of the reference (%.4g GFLOP/s a core)",
                 probe->cpu_model.size ? output_text(arena, probe->cpu_model) : "not known",
                 output_core_count(arena, probe->cores_milli),
                 output_cores(arena, probe->speed_weight_milli),
                 (double)probe->speed_weight_milli / 10);
    const char *copied = probe->ram_bytes_per_s
                             ? arena_format(arena, ", %.3g GB/s copied by a core",
                                            (double)probe->ram_bytes_per_s / 1e9)
                             : "";
    output_field(cli, "Memory:      ", "%s%s; disk %s", output_bytes(arena, probe->ram_bytes),
                 copied, output_bytes(arena, probe->disk_bytes));
    if (probe->gpus_milli)
        output_field(cli, "GPUs:        ", "%s x %s, %s each",
                     output_cores(arena, probe->gpus_milli), output_text(arena, probe->gpu_model),
                     output_bytes(arena, probe->gpu_ram_bytes));
    if (probe->rtt_us || probe->bandwidth_kbit)
        output_field(cli, "Network:     ", "%.3g ms to the market and back; sends %s",
                     (double)probe->rtt_us / 1e3,
                     probe->bandwidth_kbit ? rate(arena, probe->bandwidth_kbit)
                                           : "at a rate not measured yet");
    if (probe->network.size)
        output_field(cli, "Permits:     ", "network %s, %s", output_text(arena, probe->network),
                     probe->has_images ? "images" : "no images");
    if (probe->labels.size)
        output_field(cli, "Labels:      ", "%s", spaced_labels(arena, probe->labels));
}

static void print_live(const struct cli *cli, const struct api_live *live)
{
    struct arena *arena = cli->arena;
    if (!live->heard_ms || live->power.size == 0) /* of another's machine nobody is told */
        return;
    const char *battery = live->battery_percent
                              ? arena_format(arena, " (%" PRId64 " %%)", live->battery_percent)
                              : "";
    const char *heat =
        live->temperature_c ? arena_format(arena, ", %" PRId64 " °C", live->temperature_c) : "";
    output_field(cli, "Now:         ", "%s busy, %s of memory free, on %s%s%s",
                 output_core_count(arena, live->load_milli),
                 output_bytes(arena, live->free_ram_bytes), output_text(arena, live->power),
                 battery, heat);
}

static void print_near(const struct cli *cli, const struct json_array *near)
{
    const char *all = "";
    for (size_t i = 0; i < near->count; i++) {
        const struct api_near *peer = &((const struct api_near *)near->items)[i];
        all = arena_format(cli->arena, "%s%s%s %.3g ms", all, i ? ", " : "",
                           output_text(cli->arena, peer->machine_name), (double)peer->rtt_us / 1e3);
    }
    if (near->count > 0)
        output_field(cli, "Near:        ", "%s, directly and back", all);
}

static void print_room(const struct cli *cli, const struct api_machine *machine)
{
    struct arena *arena = cli->arena;
    output_field(cli, "Heard:       ", "%s",
                 machine->fresh_s.size
                     ? arena_format(arena, "%s s ago", output_text(arena, machine->fresh_s))
                     : "not since the market started");
    output_field(
        cli, "Free:        ", "%s, %s of memory, %s GPU%s, %s of disk",
        output_core_count(arena, machine->free.cores_milli),
        output_bytes(arena, machine->free.ram_bytes), output_cores(arena, machine->free.gpus_milli),
        machine->free.gpus_milli == 1000 ? "" : "s", output_bytes(arena, machine->free.disk_bytes));
    if (machine->offer_labels.size)
        output_field(cli, "Given:       ", "the labels %s",
                     spaced_labels(arena, machine->offer_labels));
}

static void print_owner(const struct cli *cli, struct text yield)
{
    const char *owner = text_is(yield, "low")      ? "works at it: leases get what is left over"
                        : text_is(yield, "frozen") ? "needs it: leases are held still"
                        : text_is(yield, "paused")
                            ? "has paused it at the machine itself: leases are held still until "
                              "\"souk lend resume\" there"
                        : text_is(yield, "paused_remotely")
                            ? "has paused it from the page: leases are held still"
                        : text_is(yield, "draining")
                            ? "takes no new leases, until \"souk lend resume\" at the machine"
                            : NULL;
    if (owner)
        output_field(cli, "Owner:       ", "%s", owner);
}

static int run_show(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct show_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_machine machine = {0};
    if (cli_connect(cli, true, &client, error) < 0 ||
        machine_find(cli, client, wanted->name, /* is_mine= */ false, &machine, error) < 0)
        return -1;
    /* By its number: what is found by name lacks what its last heartbeat said. */
    struct client_answer answer = {.schema = &api_machine_schema, .value = &machine};
    const char *path =
        arena_format(cli->arena, "/v1/machines/%s", output_number(cli->arena, machine.id));
    if (client_get(client, cli->arena, path, &answer, error) < 0)
        return -1;
    if (cli->common.json) {
        output_json(answer.json);
        return 0;
    }
    struct api_server server = {0};
    struct client_answer met = {.schema = &api_server_schema, .value = &server};
    if (client_get(client, cli->arena, "/v1/server", &met, error) < 0)
        return -1;
    output_field(cli, "Machine:     ", "%" PRIu64 " \"%s\", lent by %s, %s", machine.id,
                 output_text(cli->arena, machine.name),
                 output_text(cli->arena, machine.account_name),
                 machine_state(cli->arena, &machine));
    if (machine.is_mine)
        print_owner(cli, machine.yield);
    print_room(cli, &machine);
    print_probe(cli, &machine.probe);
    print_live(cli, &machine.live);
    print_near(cli, &machine.live.near);
    print_reputation(cli, &machine.reputation);
    print_proof(cli, &machine, &server);
    return 0;
}

const struct command command_machines_show = {
    .name = "machines show",
    .summary = "Shows a machine and its reputation, with the arithmetic.",
    .example = "souk machines show heron",
    COMMAND_OPTIONS(show_options, show_options),
    .run = run_show,
};
