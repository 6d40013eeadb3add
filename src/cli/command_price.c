/* souk prices: what machines cost today and for the next 48 hours, and how it came about. */
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/table.h"
#include "client/api.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 78 };

struct prices_options {
    const char *explain;
};

static const struct option prices_options[] = {
    {"explain", OPTION_TEXT, offsetof(struct prices_options, explain), "SLOT",
     .help = "How a slot's prices came about, to be redone by hand: 18-24 of today, or "
             "2026-11-14/18-24."},
};

static const char *credits_or_dash(struct arena *arena, int64_t micro)
{
    return micro ? output_credits(arena, micro) : "-";
}

static void add_price(struct table *table, const char *day, const char *hours, const char *state,
                      const struct api_price *price)
{
    struct arena *arena = table->arena;
    TABLE_ROW(table, day, hours, state, credits_or_dash(arena, price->core_hour_micro),
              credits_or_dash(arena, price->gpu_hour_micro),
              credits_or_dash(arena, price->ram_gib_hour_micro),
              credits_or_dash(arena, price->disk_gib_hour_micro));
}

static const char *state_word(struct text state)
{
    if (text_equal(state, TEXT("running")))
        return "now";
    return text_equal(state, TEXT("forecast")) ? "forecast" : "";
}

static void add_slots(struct table *table, const struct api_prices *prices)
{
    struct text day_before = {0};
    for (size_t i = 0; i < prices->slots.count; i++) {
        const struct api_price_slot *slot = (const struct api_price_slot *)prices->slots.items + i;
        struct text day, hours;
        text_cut(slot->slot, '/', &day, &hours);
        add_price(table, text_equal(day, day_before) ? "" : output_text(table->arena, day),
                  output_text(table->arena, hours), state_word(slot->state), &slot->price);
        day_before = day;
    }
}

/* "UTC", "UTC+02:00". */
static const char *zone_text(struct arena *arena, int64_t offset_ms)
{
    if (offset_ms == 0)
        return "UTC";
    const int64_t minutes = llabs(offset_ms) / 60000;
    return arena_format(arena, "UTC%c%02" PRId64 ":%02" PRId64, offset_ms < 0 ? '-' : '+',
                        minutes / 60, minutes % 60);
}

/* Nothing moves them, so there is one row. */
static void print_karma(const struct cli *cli, const struct api_prices *prices)
{
    struct table table;
    struct arena *arena = cli->arena;
    table_init(&table, arena,
               (const char *const[]){">CORE", ">GPU", ">GiB MEMORY", ">GiB DISK", NULL});
    TABLE_ROW(&table, output_credits(arena, prices->price.core_hour_micro),
              output_credits(arena, prices->price.gpu_hour_micro),
              output_credits(arena, prices->price.ram_gib_hour_micro),
              output_credits(arena, prices->price.disk_gib_hour_micro));
    table_show(&table, cli);
    output_note(cli, "Karma per hour, at any time: whoever uses a machine spends it, whoever lends "
                     "it earns\nit. Who has most goes first. docs/karma.md says more.");
}

static int print_prices(const struct cli *cli, struct client *client, struct error *error)
{
    struct api_prices prices = {0};
    bool is_done;
    if (cli_get(cli, client, "/v1/prices", &api_prices_schema, &prices, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    bool has_karma = false;
    if (cli_has_karma(cli, client, &has_karma, error) < 0)
        return -1;
    if (has_karma) {
        print_karma(cli, &prices);
        return 0;
    }
    struct table table;
    table_init(&table, cli->arena,
               (const char *const[]){"DAY", "HOURS", "", ">CORE", ">GPU", ">GiB MEMORY",
                                     ">GiB DISK", NULL});
    if (prices.slots.count)
        add_slots(&table, &prices);
    else
        add_price(&table, "", "", "now", &prices.price);
    add_price(&table, "7 days", "", "average", &prices.week);
    table_show(&table, cli);
    output_note(cli,
                "Credits per hour, a core being one of the reference speed; hours are %s.\n"
                "What runs keeps its prices. The market keeps %g %% of what lenders are paid.\n"
                "\"souk prices --explain 18-24\" shows how a price came about.",
                zone_text(cli->arena, prices.slot_offset_ms),
                (double)prices.fee_basis_points / 100.0);
    return 0;
}

/* Breaks a long line between words; what follows is indented by two more than it was. */
static void print_wrapped(const char *line)
{
    if (output_width(line) <= LINE_WIDTH) {
        printf("%s\n", line);
        return;
    }
    const int indent = (int)strspn(line, " ");
    int column = 0;
    for (const char *word = line + indent; *word;) {
        const size_t size = strcspn(word, " ");
        const char *next = word + size + strspn(word + size, " ");
        if (column == 0)
            column = printf("%*s%.*s", indent, "", (int)size, word);
        else if (column + 1 + (int)size > LINE_WIDTH)
            column = printf("\n%*s%.*s", indent + 2, "", (int)size, word) - 1;
        else
            column += printf(" %.*s", (int)size, word);
        word = next;
    }
    printf("\n");
}

static int explain_prices(struct cli *cli, struct client *client, const char *slot,
                          struct error *error)
{
    struct api_price_story story = {0};
    bool is_done;
    const char *path =
        arena_format(cli->arena, "/v1/prices/%s", client_escape(cli->arena, text_of(slot)));
    if (cli_get(cli, client, path, &api_price_story_schema, &story, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    if (cli_learn_unit(cli, client, error) < 0)
        return -1;
    printf("%s, %s. %s per unit-hour.\n", output_text(cli->arena, story.slot),
           output_text(cli->arena, story.state), output_unit(cli)->title);
    for (size_t i = 0; i < story.resources.count; i++) {
        const struct api_price_part *part =
            (const struct api_price_part *)story.resources.items + i;
        struct text rest = part->explanation, line;
        printf("\n");
        while (rest.size) {
            text_cut(rest, '\n', &line, &rest);
            print_wrapped(output_text(cli->arena, line));
        }
    }
    return 0;
}

static int run_prices(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct prices_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    if (cli_connect(cli, false, &client, error) < 0)
        return -1;
    return wanted->explain ? explain_prices(cli, client, wanted->explain, error)
                           : print_prices(cli, client, error);
}

const struct command command_prices = {
    .name = "prices",
    .summary = "Shows what machines cost today and for the next 48 hours.",
    .details = "Four slots a day have a price each for a core, a GPU, a GiB of memory and of disk. "
               "The running slot's is final; later ones are forecasts. A lease keeps the prices it "
               "was signed at.",
    .example = "souk prices --explain 18-24",
    COMMAND_OPTIONS(prices_options, prices_options),
    .run = run_prices,
};
