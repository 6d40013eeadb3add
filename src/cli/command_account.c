/* souk account: opens an account at a market and remembers it; shows it. */
#include "base/json.h"
#include "cli/api.h"
#include "cli/connect.h"
#include "cli/output.h"

#include <string.h>

struct account_open_options {
    const char *name;
    bool is_replacing;
};

static const struct option open_options[] = {
    {"name", OPTION_TEXT, offsetof(struct account_open_options, name), "NAME",
     .help = "Open a new account of this name. Without, the account known already signs in to the "
             "page."},
    {"replace", OPTION_FLAG, offsetof(struct account_open_options, is_replacing),
     .help = "Forget the account known already and open another."},
};

static int remember(const struct cli *cli, struct text token, struct error *error)
{
    const struct option_setting settings[] = {
        {"server", cli->common.server},
        {"fingerprint", cli->common.fingerprint}, /* NULL: removes an old one */
    };
    const struct option_setting secret = {"token", arena_copy_string(cli->arena, token)};
    if (options_file_store(cli->common.config_dir, true, &secret, 1, error) < 0) {
        /* The market shows a token only once: it may not get lost with the message. */
        fprintf(stderr, "The account is open, but its token cannot be kept. It is: %s\n",
                secret.value);
        return -1;
    }
    return options_file_store(cli->common.config_dir, false, settings, 2, error);
}

static int create(const struct cli *cli, const char *name, struct api_account_created *created,
                  struct error *error)
{
    AUTO(client) struct client *client = NULL;
    const struct client_options options = {.server = cli->common.server,
                                           .fingerprint = cli->common.fingerprint};
    if (client_open(&options, &client, error) < 0)
        return -1;
    /* Before the account is opened: afterwards its token would have nowhere to go. Both files are
     * written again as they are. */
    if (options_file_store(cli->common.config_dir, true, NULL, 0, error) < 0 ||
        options_file_store(cli->common.config_dir, false, NULL, 0, error) < 0)
        return error_wrap(error, "no account was opened");
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 4096);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "name", name);
    json_object_end(&writer);
    if (buffer_check(&body, error) < 0)
        return error_wrap(error, "--name");
    struct client_answer answer = {&api_account_created_schema, created, {0}};
    if (client_post(client, cli->arena, "/v1/accounts", buffer_text(&body), &answer, error) < 0)
        return -1;
    return remember(cli, created->token, error);
}

static int make_page_code(struct cli *cli, struct api_page_code *code, struct error *error)
{
    AUTO(client) struct client *client = NULL;
    if (cli_connect(cli, true, &client, error) < 0)
        return -1;
    struct client_answer answer = {&api_page_code_schema, code, {0}};
    return client_post(client, cli->arena, "/v1/account/page-codes", (struct text){0}, &answer,
                       error);
}

static int run_open(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct account_open_options *wanted = options;
    struct api_account_created created = {0};
    if (wanted->name) {
        if (cli->common.token && !wanted->is_replacing)
            return error_set(error, ERROR_CONFLICT,
                             "an account is known already (souk account shows it); add --replace "
                             "to open another, or use another folder with --config-dir");
        if (create(cli, wanted->name, &created, error) < 0)
            return -1;
        cli->common.token = arena_copy_string(cli->arena, created.token);
        output_note(cli, "Opened account \"%s\" at %s; its token is kept in %s/secrets.",
                    output_text(cli->arena, created.account.name), cli->common.server,
                    cli->common.config_dir);
    }
    struct api_page_code code = {0};
    if (make_page_code(cli, &code, error) < 0)
        return -1;
    if (cli->common.json) {
        struct buffer json AUTO_BUFFER;
        buffer_init(&json, 1 << 16);
        struct json_writer writer;
        json_writer_init(&writer, &json);
        json_object_begin(&writer);
        json_field_string(&writer, "server", cli->common.server);
        if (created.account.id) {
            json_key(&writer, "account");
            json_write(&writer, &api_account_schema, &created.account);
        }
        json_field_text(&writer, "url", code.url);
        json_object_end(&writer);
        output_json(buffer_text(&json));
        return 0;
    }
    if (created.account.id)
        printf("Credits: %s\n", output_credits(cli->arena, created.account.available_micro));
    printf("Page: %s\n", output_text(cli->arena, code.url));
    output_note(cli, "The page's address works once, for 60 seconds.");
    return 0;
}

const struct command command_account_open = {
    .name = "account open",
    .summary = "Opens an account at a market, or signs in to its page.",
    .details = "The address, the server's fingerprint and the account's token are kept in the "
               "configuration folder, so that later commands need neither.",
    .example = "souk account open --server http://127.0.0.1:7600 --name ada",
    COMMAND_OPTIONS(open_options, account_open_options),
    .run = run_open,
};

static int run_show(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_account account = {0};
    bool is_done;
    if (cli_connect(cli, true, &client, error) < 0 ||
        cli_get(cli, client, "/v1/account", &api_account_schema, &account, &is_done, error) < 0)
        return -1;
    if (is_done)
        return 0;
    printf("Account:   %s (%s)\n", output_text(cli->arena, account.name),
           output_number(cli->arena, account.id));
    printf("Market:    %s\n", client_server(client));
    printf("Available: %s credits\n", output_credits(cli->arena, account.available_micro));
    printf("Held:      %s credits\n", output_credits(cli->arena, account.held_micro));
    printf("Earned:    %s credits\n", output_credits(cli->arena, account.earned_micro));
    printf("Spent:     %s credits\n", output_credits(cli->arena, account.spent_micro));
    return 0;
}

const struct command command_account_show = {
    .name = "account",
    .summary = "Shows the account this machine is signed in with.",
    .example = "souk account --json",
    .run = run_show,
};
