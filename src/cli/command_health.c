/* souk market: whether the market has the right amount of credits, and who lends how much. */
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/table.h"
#include "client/api.h"

#include <inttypes.h>

static const char *milli(struct arena *arena, int64_t value)
{
    return arena_format(arena, "%" PRId64 ".%" PRId64, value / 1000, value % 1000 / 100);
}

static const char *percent(struct arena *arena, int64_t part, int64_t whole)
{
    return whole > 0 ? arena_format(arena, "%.1f %%", 100.0 * (double)part / (double)whole) : "-";
}

static const char *judge(bool is_known, bool is_healthy)
{
    if (!is_known)
        return "";
    return is_healthy ? "healthy" : "look at the grant";
}

static void print_credits(struct cli *cli, const struct api_health *health)
{
    struct arena *arena = cli->arena;
    const int64_t weeks = health->weeks_of_spend_milli;
    const bool has_members = health->active_count > 0;
    struct table table;
    table_init(&table, arena, (const char *const[]){"CREDITS", ">NOW", "HEALTHY", "", NULL});
    TABLE_ROW(&table, "given out", output_credits(arena, health->credits_micro), "", "");
    TABLE_ROW(&table, "members", output_number(arena, (uint64_t)health->member_count), "", "");
    TABLE_ROW(&table, "active in 28 days", output_number(arena, (uint64_t)health->active_count), "",
              "");
    TABLE_ROW(&table, "spent a week (median)", output_credits(arena, health->weekly_spend_micro),
              "", "");
    TABLE_ROW(&table, "weeks of spending", weeks ? milli(arena, weeks) : "-", "2 to 8",
              judge(weeks > 0, weeks >= 2000 && weeks <= 8000));
    TABLE_ROW(&table, "members under 1 credit",
              percent(arena, health->poor_count, health->active_count), "under 5 %",
              judge(has_members, health->poor_count * 20 < health->active_count));
    TABLE_ROW(&table, "core price, cold start 1", milli(arena, health->price_index_milli), "", "");
    table_show(&table, cli);
}

/* How much karma there is says nothing: what counts is who has more. */
static void print_karma(struct cli *cli, const struct api_health *health)
{
    struct table table;
    table_init(&table, cli->arena, (const char *const[]){"KARMA", ">NOW", NULL});
    TABLE_ROW(&table, "members", output_number(cli->arena, (uint64_t)health->member_count));
    TABLE_ROW(&table, "active in 28 days",
              output_number(cli->arena, (uint64_t)health->active_count));
    TABLE_ROW(&table, "spent a week (median)",
              output_credits(cli->arena, health->weekly_spend_micro));
    table_show(&table, cli);
}

static void print_resources(struct cli *cli, const struct api_health *health)
{
    struct arena *arena = cli->arena;
    struct table table;
    table_init(
        &table, arena,
        (const char *const[]){"RESOURCE", ">LENT", ">LEASED", ">IN USE", ">LARGEST LENDER", NULL});
    for (size_t i = 0; i < health->resources.count; i++) {
        const struct api_health_resource *resource =
            (const struct api_health_resource *)health->resources.items + i;
        TABLE_ROW(&table, output_text(arena, resource->resource),
                  milli(arena, resource->lent_milli), milli(arena, resource->leased_milli),
                  percent(arena, resource->leased_milli, resource->lent_milli),
                  resource->lent_milli
                      ? percent(arena, resource->largest_lender_basis_points, 10000)
                      : "-");
    }
    table_show(&table, cli);
}

static int run_health(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_health health = {0};
    bool is_done, has_karma = false;
    if (cli_connect(cli, false, &client, error) < 0 ||
        cli_get(cli, client, "/v1/market", &api_health_schema, &health, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    if (cli_has_karma(cli, client, &has_karma, error) < 0)
        return -1;
    if (has_karma)
        print_karma(cli, &health);
    else
        print_credits(cli, &health);
    putchar('\n');
    print_resources(cli, &health);
    if (health.waiting_machines > 0)
        output_field(cli, "Waiting:     ", "jobs lack %" PRId64 " machine%s",
                     health.waiting_machines, health.waiting_machines == 1 ? "" : "s");
    return 0;
}

const struct command command_health = {
    .name = "market",
    .summary = "Shows how many credits there are for how much trade, and who lends how much.",
    .details = "Units are weighed by speed: a core is one of the reference machine.",
    .example = "souk market",
    .run = run_health,
};
