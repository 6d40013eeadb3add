/* souk offer: make, change, pause, resume, withdraw. */
#include "base/clock.h"
#include "base/json.h"
#include "base/schedule.h"
#include "base/units.h"
#include "cli/connect.h"
#include "cli/machine_find.h"
#include "cli/offer_terms.h"
#include "cli/offer_view.h"
#include "cli/output.h"

#include <inttypes.h>

enum { BODY_SIZE_MAX = 16 << 10, PLAN_SIZE_MAX = 16 << 10 };

#define OFFER_ID_OPTION(struct_)                                                                   \
    {                                                                                              \
        "id", OPTION_U64, offsetof(struct struct_, id), "OFFER",                                   \
            .help = "The offer's number: souk offer list shows it.", .minimum = 1,                 \
            .maximum = INT64_MAX, .is_positional = true, .is_required = true                       \
    }
#define YES_OPTION(struct_)                                                                        \
    {                                                                                              \
        "yes", OPTION_FLAG, offsetof(struct struct_, is_yes), .help = "Do not ask.", .letter = 'y' \
    }

static const char *offer_path(const struct cli *cli, uint64_t id, const char *rest)
{
    return arena_format(cli->arena, "/v1/offers/%" PRIu64 "%s", id, rest);
}

static int show_offer(const struct cli *cli, const struct client_answer *answer, const char *done)
{
    const struct api_offer *offer = answer->value;
    if (cli->common.json)
        output_json(answer->json);
    else
        printf("%s offer %s of %s: %s\n", done, output_number(cli->arena, offer->id),
               output_text(cli->arena, offer->machine_name), offer_view_state(cli->arena, offer));
    return 0;
}

/* ---- make, change ---------------------------------------------------------------------------- */

struct make_options {
    const char *machine;
    uint64_t id;
    bool is_yes;
    struct offer_terms_options terms;
};

static const struct option make_options[] = {
    {"machine", OPTION_TEXT, offsetof(struct make_options, machine), "MACHINE",
     .help = "The machine's name or number.", .is_positional = true, .is_required = true},
    OFFER_TERMS_OPTIONS(make_options),
    YES_OPTION(make_options),
};

static const struct option change_options[] = {
    OFFER_ID_OPTION(make_options),
    OFFER_TERMS_OPTIONS(make_options),
    YES_OPTION(make_options),
};

static int plan_and_ask(const struct cli *cli, const struct make_options *wanted,
                        const struct api_machine *machine, const char *title, struct buffer *body,
                        struct error *error)
{
    struct buffer plan AUTO_BUFFER;
    buffer_init(&plan, PLAN_SIZE_MAX);
    buffer_append_format(&plan, "%s:\n", title);
    const size_t title_size = plan.size;
    if (offer_terms_write(cli->arena, &wanted->terms, machine, clock_utc_ms(&clock_system), body,
                          &plan, error) < 0)
        return -1;
    if (plan.size == title_size && wanted->id)
        return error_set(error, ERROR_INVALID, "nothing to change: give --cores, --when or others");
    if (!wanted->id)
        buffer_append_string(&plan, "  What is not named: all the machine lends, always, to "
                                    "anyone, at the market's price.\n");
    const struct text text = buffer_text(&plan);
    return output_confirm(cli, wanted->is_yes,
                          arena_copy_string(cli->arena, (struct text){text.data, text.size - 1}),
                          wanted->id ? "Change it?" : "Offer it?", error);
}

static int run_make(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct make_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_machine machine = {0};
    struct api_offer offer = {0};
    struct client_answer answer = {&api_offer_schema, &offer, {0}};
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, BODY_SIZE_MAX);
    if (cli_connect(cli, true, &client, error) < 0 ||
        machine_find(cli, client, wanted->machine, /* is_mine= */ true, &machine, error) < 0)
        return -1;
    const char *title =
        arena_format(cli->arena, "A new offer of %s", output_text(cli->arena, machine.name));
    const int confirmed = plan_and_ask(cli, wanted, &machine, title, &body, error);
    if (confirmed != 0)
        return confirmed;
    const char *path = arena_format(cli->arena, "/v1/machines/%" PRIu64 "/offers", machine.id);
    if (client_post(client, cli->arena, path, buffer_text(&body), &answer, error) < 0)
        return -1;
    return show_offer(cli, &answer, "Made");
}

const struct command command_offer_make = {
    .name = "offer make",
    .summary = "Offers a machine, or another part of it, on terms of its own.",
    .details =
        "What is not named is all the machine lends, always, to anyone, at the market's price. "
        "Offers may overlap: all leases together never take more than \"souk lend\" was told to "
        "lend.",
    .example = "souk offer make heron --cores 50% --when \"Mon-Fri 18:00-08:00\" --max-lease 8h\n"
               "  souk offer make kitchen --cores 2 --for alice,bob --min-price core=0.02\n"
               "  souk offer make lab --gpus 1 --gpu-model T4 --for group:vision --network job\n"
               "  souk offer make laptop --when \"2026-11-20 18:00 - 2026-11-21 08:00\" -y",
    COMMAND_OPTIONS(make_options, make_options),
    .run = run_make,
};

static int run_change(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct make_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_machine machine = {0};
    struct api_offer offer = {0};
    struct client_answer answer = {&api_offer_schema, &offer, {0}};
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, BODY_SIZE_MAX);
    const char *path = offer_path(cli, wanted->id, "");
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, path, &answer, error) < 0 ||
        machine_find(cli, client, output_text(cli->arena, offer.machine_name), true, &machine,
                     error) < 0)
        return -1;
    const char *title = arena_format(
        cli->arena, "Offer %" PRIu64 " of %s changes; leases that run keep their terms", offer.id,
        output_text(cli->arena, machine.name));
    const int confirmed = plan_and_ask(cli, wanted, &machine, title, &body, error);
    if (confirmed != 0)
        return confirmed;
    if (client_patch(client, cli->arena, path, buffer_text(&body), &answer, error) < 0)
        return -1;
    return show_offer(cli, &answer, "Changed");
}

const struct command command_offer_change = {
    .name = "offer change",
    .summary = "Changes the terms of an offer that are named, and keeps the others.",
    .details = "Holds at once, on the machine too. Leases that run keep the terms they were made "
               "under.",
    .example = "souk offer change 12 --cores 4 --when always --for anyone",
    COMMAND_OPTIONS(change_options, make_options),
    .run = run_change,
};

/* ---- pause, resume, withdraw ----------------------------------------------------------------- */

struct pause_options {
    uint64_t id;
    int64_t for_ms;
    const char *until;
    const char *zone;
    bool is_yes;
};

static const struct option pause_options[] = {
    OFFER_ID_OPTION(pause_options),
    {"for", OPTION_DURATION, offsetof(struct pause_options, for_ms), "TIME",
     .help = "For so long: 1h, 30m.", .minimum = 1000, .maximum = INT64_C(31622400000)},
    {"until", OPTION_TEXT, offsetof(struct pause_options, until), "TIME",
     .help = "Until then: \"2026-11-20 18:00\"."},
    {"zone", OPTION_TEXT, offsetof(struct pause_options, zone), "ZONE",
     .help = "The time zone of --until; this computer's by default."},
};

/* A single moment is read as the end of a span that begins long before it. */
static int parse_until(const struct cli *cli, const struct pause_options *wanted,
                       int64_t *out_until_ms, struct error *error)
{
    struct schedule schedule;
    AUTO(zone) struct zone *zone = NULL;
    const char *name = wanted->zone ? wanted->zone : options_time_zone(cli->arena, NULL, "/etc");
    const char *words = arena_format(cli->arena, "1970-01-01 00:00 - %s", wanted->until);
    if (schedule_parse(text_of(words), &schedule, error) < 0 || schedule.part_count != 1)
        return error_set(error, ERROR_INVALID,
                         "--until: \"%.40s\" is not a time; write it like \"2026-11-20 18:00\"",
                         wanted->until);
    if (zone_open(ZONE_FOLDER, text_of(name), &zone, error) < 0)
        return error_wrap(error, "--zone");
    *out_until_ms =
        zone_instant_s(zone, schedule.parts[0].until_wall_s, ZONE_PICK_LAST) * INT64_C(1000);
    return 0;
}

static int run_pause(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct pause_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_offer offer = {0};
    struct client_answer answer = {&api_offer_schema, &offer, {0}};
    struct buffer body AUTO_BUFFER;
    struct json_writer writer;
    int64_t until_ms = 0;
    buffer_init(&body, BODY_SIZE_MAX);
    if (wanted->for_ms && wanted->until)
        return error_set(error, ERROR_INVALID, "give --for or --until, not both");
    if (wanted->until && parse_until(cli, wanted, &until_ms, error) < 0)
        return -1;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    if (wanted->for_ms)
        json_field_i64(&writer, "for_ms", wanted->for_ms);
    if (wanted->until)
        json_field_i64(&writer, "until_ms", until_ms);
    json_object_end(&writer);
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_post(client, cli->arena, offer_path(cli, wanted->id, "/pause"), buffer_text(&body),
                    &answer, error) < 0)
        return -1;
    return show_offer(cli, &answer, "Paused");
}

const struct command command_offer_pause = {
    .name = "offer pause",
    .summary = "Takes no new leases for a while, until a time, or until resumed.",
    .details = "Leases that run go on. Without --for and --until it lasts until \"souk offer "
               "resume\".",
    .example = "souk offer pause 12 --for 1h",
    COMMAND_OPTIONS(pause_options, pause_options),
    .run = run_pause,
};

static const struct option resume_options[] = {OFFER_ID_OPTION(pause_options)};

static int run_resume(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct pause_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_offer offer = {0};
    struct client_answer answer = {&api_offer_schema, &offer, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_post(client, cli->arena, offer_path(cli, wanted->id, "/resume"), (struct text){0},
                    &answer, error) < 0)
        return -1;
    return show_offer(cli, &answer, "Resumed");
}

const struct command command_offer_resume = {
    .name = "offer resume",
    .summary = "Ends a pause.",
    .example = "souk offer resume 12",
    COMMAND_OPTIONS(resume_options, pause_options),
    .run = run_resume,
};

static const struct option withdraw_options[] = {
    OFFER_ID_OPTION(pause_options),
    YES_OPTION(pause_options),
};

static int run_withdraw(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct pause_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_offer offer = {0};
    struct client_answer answer = {&api_offer_schema, &offer, {0}};
    const char *path = offer_path(cli, wanted->id, "");
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, path, &answer, error) < 0)
        return -1;
    const char *plan = arena_format(
        cli->arena, "Offer %" PRIu64 " of %s will be withdrawn; %" PRIu64 " %s under it to %s end",
        offer.id, output_text(cli->arena, offer.machine_name), offer.lease_count,
        offer.lease_count == 1 ? "lease runs" : "leases run",
        offer.lease_count == 1 ? "its" : "their");
    const int confirmed = output_confirm(cli, wanted->is_yes, plan, "Withdraw it?", error);
    if (confirmed != 0)
        return confirmed;
    if (client_delete(client, path, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    else
        printf("Withdrew offer %" PRIu64 " of %s\n", offer.id,
               output_text(cli->arena, offer.machine_name));
    return 0;
}

const struct command command_offer_withdraw = {
    .name = "offer withdraw",
    .summary = "Takes an offer out of the market; leases that run go on to their end.",
    .example = "souk offer withdraw 12",
    COMMAND_OPTIONS(withdraw_options, pause_options),
    .run = run_withdraw,
};
