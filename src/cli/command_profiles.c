/* souk account profiles: who learns from the account's runs. */
#include "cli/connect.h"
#include "cli/output.h"
#include "client/api_profile.h"

#define PATH "/v1/account/profiles"

struct profiles_options {
    bool is_shared, is_own, is_deleted;
    bool is_yes;
};

static const struct option profiles_options[] = {
    {"share", OPTION_FLAG, offsetof(struct profiles_options, is_shared),
     .help = "Let accounts that share theirs learn from this account's runs, and learn from "
             "theirs."},
    {"own", OPTION_FLAG, offsetof(struct profiles_options, is_own),
     .help = "Share nothing: learn from this account's runs alone, as at first."},
    {"delete", OPTION_FLAG, offsetof(struct profiles_options, is_deleted),
     .help = "Delete all profiles of this account's jobs, and what was foretold of them."},
    {"yes", OPTION_FLAG, offsetof(struct profiles_options, is_yes), .help = "Do not ask.",
     .letter = 'y'},
};

static int delete_all(struct cli *cli, struct client *client, bool is_yes, struct error *error)
{
    const int confirmed = output_confirm(
        cli, is_yes,
        "Delete:    all profiles of this account's jobs, and what was foretold of them\n"
        "Recommendations begin with nothing again. It cannot be undone.\n",
        "Delete them?", error);
    if (confirmed != 0)
        return confirmed;
    if (client_delete(client, PATH, error) < 0)
        return -1;
    output_note(cli, "Deleted the profiles of all jobs; those that run make new ones.");
    return 0;
}

static int set_shared(struct cli *cli, struct client *client, bool is_shared, struct error *error)
{
    return client_send(client, cli->arena, "PUT", PATH,
                       is_shared ? TEXT("{\"shared\":true}") : TEXT("{\"shared\":false}"), NULL,
                       error);
}

static int show(struct cli *cli, struct client *client, struct error *error)
{
    struct api_sharing sharing = {0};
    bool is_done;
    if (cli_get(cli, client, PATH, &api_sharing_schema, &sharing, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    output_field(cli, "Shared:   ", "%s",
                 !sharing.is_shared ? "no; recommendations learn from this account's runs alone"
                 : sharing.does_market_share
                     ? "yes, with all accounts that share theirs"
                     : "yes, but the market's operator has not allowed it (souk serve --profiles)");
    output_field(cli, "Kept for: ", "%s", output_duration(cli->arena, sharing.keep_ms));
    return 0;
}

static int run_profiles(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct profiles_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    if (wanted->is_shared + wanted->is_own + wanted->is_deleted > 1)
        return error_set(error, ERROR_INVALID, "--share, --own and --delete: give one of them");
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    if (wanted->is_deleted)
        return delete_all(cli, client, wanted->is_yes, error);
    if ((wanted->is_shared || wanted->is_own) &&
        set_shared(cli, client, wanted->is_shared, error) < 0)
        return -1;
    return show(cli, client, error);
}

const struct command command_account_profiles = {
    .name = "account profiles",
    .summary = "Shows or says who learns from the account's runs, or deletes what they showed.",
    .details = "Every run leaves a profile (souk job show --profile), from which souk recommend "
               "learns. It belongs to the account.",
    .example = "souk account profiles --share",
    COMMAND_OPTIONS(profiles_options, profiles_options),
    .run = run_profiles,
};
