/* souk offer list, offer show: what is offered, on which terms. */
#include "cli/connect.h"
#include "cli/offer_view.h"
#include "cli/output.h"
#include "client/api.h"

#include <inttypes.h>

struct list_options {
    bool is_all;
    uint64_t limit;
};

static const struct option list_options[] = {
    {"all", OPTION_FLAG, offsetof(struct list_options, is_all),
     .help = "Those of all lenders, not only this account's."},
    {"limit", OPTION_U64, offsetof(struct list_options, limit), "COUNT", "1000",
     "Show at most so many.", .minimum = 1, .maximum = 100000},
};

static int run_list(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct list_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct json_array offers;
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_list(cli, client, wanted->is_all ? "/v1/offers" : "/v1/offers?mine=true",
                 &api_offer_page_schema, wanted->limit, &offers, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    offer_view_list(cli, &offers);
    if (offers.count == 0)
        output_note(cli, "Nothing is offered; \"souk offer make MACHINE\" makes an offer.");
    return 0;
}

const struct command command_offer_list = {
    .name = "offer list",
    .summary = "Lists what this account's machines offer.",
    .example = "souk offer list",
    COMMAND_OPTIONS(list_options, list_options),
    .run = run_list,
};

struct show_options {
    uint64_t id;
};

static const struct option show_options[] = {
    {"id", OPTION_U64, offsetof(struct show_options, id), "OFFER",
     .help = "The offer's number: souk offer list shows it.", .minimum = 1, .maximum = INT64_MAX,
     .is_positional = true, .is_required = true},
};

static int run_show(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct show_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_offer offer = {0};
    const char *path = arena_format(cli->arena, "/v1/offers/%" PRIu64, wanted->id);
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_get(cli, client, path, &api_offer_schema, &offer, &is_done, error) < 0)
        return -1;
    if (!is_done)
        offer_view_print(cli, &offer);
    return 0;
}

const struct command command_offer_show = {
    .name = "offer show",
    .summary = "Shows an offer with all its terms.",
    .example = "souk offer show 12",
    COMMAND_OPTIONS(show_options, show_options),
    .run = run_show,
};
