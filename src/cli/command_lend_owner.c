/* souk lend status, pause, resume, drain, stop: the owner's word to the daemon that runs here. */
#include "base/clock.h"
#include "cli/output.h"
#include "cli/table.h"
#include "peer/owner_line.h"

#include <inttypes.h>
#include <string.h>

struct owner_options {
    const char *state_dir;
    int64_t for_ms;
};

#define STATE_DIR_OPTION                                                                           \
    {                                                                                              \
        "state_dir", OPTION_PATH, offsetof(struct owner_options, state_dir), "DIR",                \
            "{state}/lend", "That of the daemon.", .environment = "SOUK_LEND_STATE_DIR"            \
    }

static const struct option state_dir_options[] = {STATE_DIR_OPTION};
static const struct option pause_options[] = {
    {"for", OPTION_DURATION, offsetof(struct owner_options, for_ms), "TIME",
     .help = "30m, 2h; without it until \"souk lend resume\".", .minimum = 1000,
     .maximum = INT64_C(366) * 24 * 3600 * 1000, .is_positional = true},
    STATE_DIR_OPTION,
};

/* ---- The daemon's answer --------------------------------------------------------------------- */

struct status_lease {
    uint64_t lease, job;
    struct text name, role;
    int64_t cores_milli, ram_bytes;
};

struct status_change {
    int64_t at_ms;
    struct text level, reason;
};

struct status {
    uint64_t machine;
    struct text name, market, level, reason;
    struct text paused_from; /* "here", "market"; empty: it is not paused */
    bool is_linked, is_paused, is_draining, is_watching, is_stopping;
    int64_t paused_until_ms;
    int64_t cache_bytes, cache_bytes_max;
    int64_t earned_micro, earned_today_micro, withheld_micro, earned_told_ms;
    struct text desktop;
    struct json_array leases, changes;
};

static const struct json_field lease_fields[] = {
    {"lease", JSON_U64, offsetof(struct status_lease, lease)},
    {"job", JSON_U64, offsetof(struct status_lease, job)},
    {"name", JSON_TEXT, offsetof(struct status_lease, name)},
    {"role", JSON_TEXT, offsetof(struct status_lease, role)},
    {"cores_milli", JSON_I64, offsetof(struct status_lease, cores_milli)},
    {"ram_bytes", JSON_I64, offsetof(struct status_lease, ram_bytes)},
};
static const struct json_schema lease_schema =
    JSON_SCHEMA_LENIENT("lease", lease_fields, struct status_lease);

static const struct json_field change_fields[] = {
    {"at_ms", JSON_I64, offsetof(struct status_change, at_ms)},
    {"level", JSON_TEXT, offsetof(struct status_change, level)},
    {"reason", JSON_TEXT, offsetof(struct status_change, reason)},
};
static const struct json_schema change_schema =
    JSON_SCHEMA_LENIENT("change", change_fields, struct status_change);

static const struct json_field status_fields[] = {
    {"machine", JSON_U64, offsetof(struct status, machine)},
    {"name", JSON_TEXT, offsetof(struct status, name)},
    {"market", JSON_TEXT, offsetof(struct status, market), .size_max = 1024},
    {"linked", JSON_BOOL, offsetof(struct status, is_linked)},
    {"stopping", JSON_BOOL, offsetof(struct status, is_stopping)},
    {"level", JSON_TEXT, offsetof(struct status, level)},
    {"reason", JSON_TEXT, offsetof(struct status, reason)},
    {"paused", JSON_BOOL, offsetof(struct status, is_paused)},
    {"paused_from", JSON_TEXT, offsetof(struct status, paused_from)},
    {"paused_until_ms", JSON_I64, offsetof(struct status, paused_until_ms)},
    {"cache_bytes", JSON_I64, offsetof(struct status, cache_bytes)},
    {"cache_bytes_max", JSON_I64, offsetof(struct status, cache_bytes_max)},
    {"earned_microcredits", JSON_I64, offsetof(struct status, earned_micro)},
    {"earned_today_microcredits", JSON_I64, offsetof(struct status, earned_today_micro)},
    {"withheld_microcredits", JSON_I64, offsetof(struct status, withheld_micro)},
    {"earned_told_ms", JSON_I64, offsetof(struct status, earned_told_ms)},
    {"desktop", JSON_TEXT, offsetof(struct status, desktop)},
    {"draining", JSON_BOOL, offsetof(struct status, is_draining)},
    {"watching", JSON_BOOL, offsetof(struct status, is_watching)},
    {"leases", JSON_ARRAY, offsetof(struct status, leases), .schema = &lease_schema},
    {"changes", JSON_ARRAY, offsetof(struct status, changes), .schema = &change_schema},
};
static const struct json_schema status_schema =
    JSON_SCHEMA_LENIENT("status", status_fields, struct status);

/* Asks; with --json the answer is shown as it came, and *out_is_done is true. */
static int ask(const struct cli *cli, const char *state_dir, const struct owner_request *request,
               struct status *out_status, bool *out_is_done, struct error *error)
{
    struct buffer answer AUTO_BUFFER;
    buffer_init(&answer, OWNER_LINE_ANSWER_MAX);
    if (owner_line_call(state_dir, request, &answer, error) < 0)
        return -1;
    const struct text json = text_trim(buffer_text(&answer));
    *out_is_done = cli->common.json;
    if (cli->common.json)
        output_json(json);
    *out_status = (struct status){0};
    return json_read(cli->arena, json, &status_schema, out_status, error);
}

/* ---- status ---------------------------------------------------------------------------------- */

static const char *level_words(struct text level)
{
    if (text_is(level, "full"))
        return "leases get all that is lent";
    if (text_is(level, "low"))
        return "leases get what is left over";
    if (text_is(level, "released"))
        return "leases were given up";
    return "leases are held still";
}

static void show_earnings(const struct cli *cli, const struct status *status)
{
    struct arena *arena = cli->arena;
    if (status->earned_told_ms == 0) {
        output_field(cli, "Earned:   ", "not known: the market has not said yet");
        return;
    }
    const char *withheld =
        status->withheld_micro > 0
            ? arena_format(arena, " (%s withheld)", output_credits(arena, status->withheld_micro))
            : "";
    const char *told =
        status->is_linked
            ? ""
            : arena_format(arena, ", as of %s", output_instant(arena, status->earned_told_ms));
    output_field(cli, "Earned:   ", "%s credits today, %s in all%s%s",
                 output_credits(arena, status->earned_today_micro),
                 output_credits(arena, status->earned_micro), withheld, told);
}

/* What was said through the market may also be taken back there. */
static const char *paused_words(const struct status *status)
{
    return text_equal(status->paused_from, TEXT("market")) ? "from the page" : "here";
}

static void show_state(const struct cli *cli, const struct status *status)
{
    const char *reason = output_text(cli->arena, status->reason);
    const char *words = level_words(status->level);
    if (status->is_stopping)
        output_field(cli, "State:    ", "stopping");
    else if (status->is_paused && status->paused_until_ms > 0)
        output_field(cli, "State:    ", "paused %s until %s%s", paused_words(status),
                     output_instant(cli->arena, status->paused_until_ms),
                     status->is_draining ? ", then draining" : "");
    else if (status->is_paused)
        output_field(cli, "State:    ", "paused %s%s until: souk lend resume", paused_words(status),
                     status->is_draining ? ", and takes no new leases," : "");
    else if (reason[0])
        output_field(cli, "State:    ", "%s%s: %s", status->is_draining ? "draining; " : "", words,
                     reason);
    else
        output_field(cli, "State:    ", "%s%s", status->is_draining ? "draining; " : "", words);
    output_field(cli, "Machine:  ", "%" PRIu64 " %s, %s %s", status->machine,
                 output_text(cli->arena, status->name),
                 status->is_linked ? "linked to" : "cannot reach",
                 output_text(cli->arena, status->market));
    show_earnings(cli, status);
    output_field(cli, "Cache:    ", "%s of at most %s",
                 output_bytes(cli->arena, status->cache_bytes),
                 output_bytes(cli->arena, status->cache_bytes_max));
    if (!status->is_watching)
        output_field(cli, "Owner:    ", "not watched (--no-watch)");
    else
        output_field(cli, "Owner:    ", "watched; desktop services: %s",
                     output_text(cli->arena, status->desktop));
}

static void show_leases(const struct cli *cli, const struct status *status)
{
    if (status->leases.count == 0) {
        output_field(cli, "Leases:   ", "none");
        return;
    }
    struct table table;
    table_init(&table, cli->arena,
               (const char *const[]){">LEASE", ">JOB", "~NAME", "ROLE", ">CORES", ">MEMORY", NULL});
    const struct status_lease *leases = status->leases.items;
    for (size_t i = 0; i < status->leases.count; i++)
        TABLE_ROW(&table, output_number(cli->arena, leases[i].lease),
                  output_number(cli->arena, leases[i].job), output_text(cli->arena, leases[i].name),
                  output_text(cli->arena, leases[i].role),
                  output_cores(cli->arena, leases[i].cores_milli),
                  output_bytes(cli->arena, leases[i].ram_bytes));
    puts("");
    table_show(&table, cli);
}

static void show_changes(const struct cli *cli, const struct status *status)
{
    if (status->changes.count == 0)
        return;
    struct table table;
    table_init(&table, cli->arena, (const char *const[]){"WHEN", "LEASES", "+WHY", NULL});
    const struct status_change *changes = status->changes.items;
    for (size_t i = status->changes.count; i-- > 0;)
        TABLE_ROW(&table, output_instant(cli->arena, changes[i].at_ms),
                  output_text(cli->arena, changes[i].level),
                  output_text(cli->arena, changes[i].reason));
    puts("");
    table_show(&table, cli);
}

static int run_status(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    const struct owner_options *wanted = options;
    const struct owner_request request = {.verb = OWNER_STATUS};
    struct status status;
    bool is_done = false;
    if (ask(cli, wanted->state_dir, &request, &status, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    show_state(cli, &status);
    show_leases(cli, &status);
    show_changes(cli, &status);
    return 0;
}

const struct command command_lend_status = {
    .name = "lend status",
    .summary = "Shows what the daemon on this machine does, and what it yielded and why.",
    .example = "souk lend status",
    COMMAND_OPTIONS(state_dir_options, owner_options),
    .run = run_status,
};

/* ---- pause, resume, drain, stop -------------------------------------------------------------- */

static int run_word(struct cli *cli, const struct owner_options *wanted, enum owner_verb verb,
                    struct status *out_status, bool *out_is_done, struct error *error)
{
    const struct owner_request request = {.verb = verb, .for_ms = wanted->for_ms};
    return ask(cli, wanted->state_dir, &request, out_status, out_is_done, error);
}

/* "1 lease is", "2 leases are". */
static const char *leases_words(struct arena *arena, size_t count, const char *one,
                                const char *many)
{
    return arena_format(arena, "%zu %s", count, count == 1 ? one : many);
}

static int run_pause(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    struct status status;
    bool is_done = false;
    if (run_word(cli, options, OWNER_PAUSE, &status, &is_done, error) < 0)
        return -1;
    if (!is_done && status.paused_until_ms > 0)
        printf("Paused until %s; %s held still.\n",
               output_instant(cli->arena, status.paused_until_ms),
               leases_words(cli->arena, status.leases.count, "lease is", "leases are"));
    else if (!is_done)
        printf("Paused until \"souk lend resume\"; %s held still.\n",
               leases_words(cli->arena, status.leases.count, "lease is", "leases are"));
    return 0;
}

const struct command command_lend_pause = {
    .name = "lend pause",
    .summary = "Holds all leases on this machine still, now, and takes no new ones.",
    .details =
        "Works without the market, which is told as soon as it can be reached. Leases keep "
        "their memory; their jobs see a slow machine, and you are paid for nothing meanwhile.",
    .example = "souk lend pause 30m",
    COMMAND_OPTIONS(pause_options, owner_options),
    .run = run_pause,
};

static int run_resume(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    struct status status;
    bool is_done = false;
    if (run_word(cli, options, OWNER_RESUME, &status, &is_done, error) < 0)
        return -1;
    const char *reason = output_text(cli->arena, status.reason);
    if (!is_done)
        printf("Resumed; %s%s%s.\n", level_words(status.level), reason[0] ? ": " : "", reason);
    return 0;
}

const struct command command_lend_resume = {
    .name = "lend resume",
    .summary = "Ends a pause or a drain, and any waiting for the machine to be quiet.",
    .example = "souk lend resume",
    COMMAND_OPTIONS(state_dir_options, owner_options),
    .run = run_resume,
};

static int run_drain(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    struct status status;
    bool is_done = false;
    if (run_word(cli, options, OWNER_DRAIN, &status, &is_done, error) < 0)
        return -1;
    if (!is_done && status.is_paused)
        puts("No new leases; those here are paused, and run to the end after that. To lend again: "
             "souk lend resume");
    else if (!is_done)
        printf("No new leases; %s to the end. To lend again: souk lend resume\n",
               leases_words(cli->arena, status.leases.count, "runs", "run"));
    return 0;
}

const struct command command_lend_drain = {
    .name = "lend drain",
    .summary = "Takes no new leases, and lets those that run come to their end.",
    .example = "souk lend drain",
    COMMAND_OPTIONS(state_dir_options, owner_options),
    .run = run_drain,
};

static int run_stop(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    struct status status;
    bool is_done = false;
    if (run_word(cli, options, OWNER_STOP, &status, &is_done, error) < 0)
        return -1;
    if (!is_done)
        printf("Stopped; %s ended in good order.\n",
               leases_words(cli->arena, status.leases.count, "lease was", "leases were"));
    return 0;
}

const struct command command_lend_stop = {
    .name = "lend stop",
    .summary = "Ends the leases on this machine in good order, and the daemon.",
    .example = "souk lend stop",
    COMMAND_OPTIONS(state_dir_options, owner_options),
    .run = run_stop,
};
