/* souk account: opens an account at a market and remembers it; signs in and out; shows it. */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/account_notice.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "cli/secret.h"
#include "cli/sign_in.h"
#include "client/api.h"

#include <string.h>

enum { SECRETS_SIZE_MAX = 1 << 16 };

struct account_open_options {
    const char *name;
    const char *invite;
    bool has_password;
    bool is_replacing;
};

static const struct option open_options[] = {
    {"name", OPTION_TEXT, offsetof(struct account_open_options, name), "NAME",
     .help = "Open a new account of this name. Without, the account known already signs in to the "
             "page."},
    {"password", OPTION_FLAG, offsetof(struct account_open_options, has_password),
     .help = "Give the account a password, asked for at the terminal or taken from standard "
             "input; with it the account can be signed in to from anywhere."},
    {"invite", OPTION_TEXT, offsetof(struct account_open_options, invite), "CODE",
     .help = "An invitation from the market's operator."},
    {"replace", OPTION_FLAG, offsetof(struct account_open_options, is_replacing),
     .help = "Forget the account known already and open another."},
};

/* The folder takes what will be written: told before anything is made that would get lost. Both
 * files are written again as they are. */
static int check_folder(const struct cli *cli, struct error *error)
{
    if (options_file_store(cli->common.config_dir, true, NULL, 0, error) < 0 ||
        options_file_store(cli->common.config_dir, false, NULL, 0, error) < 0)
        return -1;
    return 0;
}

static int remember(const struct cli *cli, struct text token, struct error *error)
{
    const char *kept = arena_copy_string(cli->arena, token);
    if (sign_in_keep(cli, kept, error) == 0)
        return 0;
    /* The market shows a token only once: it may not get lost with the message. */
    fprintf(stderr, "The account is open, but its token cannot be kept. It is: %s\n", kept);
    return -1;
}

static int connect_as_nobody(const struct cli *cli, struct client **out_client, struct error *error)
{
    const struct client_options options = {.server = cli->common.server,
                                           .fingerprint = cli->common.fingerprint};
    return client_open(&options, out_client, error);
}

static int create(const struct cli *cli, const struct account_open_options *wanted,
                  struct api_account_created *created, struct error *error)
{
    AUTO(client) struct client *client = NULL;
    const char *password = NULL;
    if (connect_as_nobody(cli, &client, error) < 0)
        return -1;
    if (check_folder(cli, error) < 0)
        return error_wrap(error, "no account was opened");
    if (wanted->has_password && secret_read_new(cli, &password, error) < 0)
        return -1;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 4096);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "name", wanted->name);
    if (password)
        json_field_string(&writer, "password", password);
    if (wanted->invite)
        json_field_string(&writer, "invite", wanted->invite);
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
    if (cli_connect(cli, true, &client, error) < 0 || cli_learn_unit(cli, client, error) < 0)
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
        if (create(cli, wanted, &created, error) < 0)
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
        printf("%s: %s\n", output_unit(cli)->title,
               output_credits(cli->arena, created.account.available_micro));
    if (text_equal(created.account.grant, TEXT("waiting")))
        output_note(cli,
                    "Its first credits come on one of the next days: today's are given out, or "
                    "another account of this network got some.");
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

static void print_account(const struct cli *cli, const struct api_account *account,
                          const char *server, const char *money)
{
    struct arena *arena = cli->arena;
    const char *notice = account_notice(arena, account, clock_utc_ms(&clock_system));
    output_field(cli, "Account:   ", "%s (%s)", output_text(arena, account->name),
                 output_number(arena, account->id));
    output_field(cli, "Market:    ", "%s", server);
    output_field(cli, "Available: ", "%s %s", output_credits(arena, account->available_micro),
                 money);
    output_field(cli, "Held:      ", "%s %s", output_credits(arena, account->held_micro), money);
    output_field(cli, "Earned:    ", "%s %s", output_credits(arena, account->earned_micro), money);
    output_field(cli, "Spent:     ", "%s %s", output_credits(arena, account->spent_micro), money);
    if (account->to_earn_micro > 0)
        output_field(cli, "To earn:   ", "%s %s of the grant, released as lending earns as much",
                     output_credits(arena, account->to_earn_micro), money);
    if (text_equal(account->grant, TEXT("waiting")))
        output_field(cli, "Grant:     ", "waits for a day on which there is room");
    if (!account->has_password)
        output_field(cli, "Password:  ", "none; \"souk account password\" sets one");
    if (account->frozen.size)
        output_field(cli, "Frozen:    ", "%s", output_text(arena, account->frozen));
    if (notice)
        output_field(cli, "Notice:    ", "%s", notice);
}

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
    if (cli_learn_unit(cli, client, error) < 0)
        return -1;
    print_account(cli, &account, client_server(client), output_unit(cli)->name);
    return 0;
}

const struct command command_account_show = {
    .name = "account",
    .summary = "Shows the account this machine is signed in with.",
    .example = "souk account --json",
    .run = run_show,
};

/* ---- login, logout ----------------------------------------------------------------------------
 */

struct login_options {
    const char *name;
};

static const struct option login_options[] = {
    {"name", OPTION_TEXT, offsetof(struct login_options, name), "NAME",
     .help = "The account's name.", .is_required = true},
};

static int read_secrets(const struct cli *cli, struct buffer *out, struct error *error)
{
    const char *path = arena_format(cli->arena, "%s/secrets", cli->common.config_dir);
    if (cli->common.elsewhere) /* they are another market's, and stay that market's */
        return 0;
    return file_read(path, out, error) < 0 && error->code != ERROR_NOT_FOUND ? -1 : 0;
}

/* The token kept for this market so far may be the only one of another account: it is kept beside
 * the new one. */
static int keep_token_before(struct cli *cli, struct error *error)
{
    struct buffer secrets AUTO_BUFFER;
    buffer_init(&secrets, SECRETS_SIZE_MAX);
    const char *before = arena_format(cli->arena, "%s/secrets.before", cli->common.config_dir);
    const char *token;
    if (read_secrets(cli, &secrets, error) < 0)
        return -1;
    if (!strstr(buffer_string(&secrets), "token")) {
        if (sign_in_find_before(cli, &token, error) < 0)
            return -1;
        if (!token)
            return 0;
        buffer_clear(&secrets);
        buffer_append_format(&secrets, "token = %s\n", token);
        if (buffer_check(&secrets, error) < 0)
            return -1;
    }
    const struct text whole = buffer_text(&secrets);
    if (file_replace(before, &whole, 1, 0600, error) < 0)
        return error_wrap(error, "keep the token there was");
    output_note(cli, "The token that was kept here before is now in %s.", before);
    return 0;
}

static int run_login(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct login_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    const char *password;
    if (connect_as_nobody(cli, &client, error) < 0 || check_folder(cli, error) < 0 ||
        secret_read(cli, "Password", &password, error) < 0)
        return -1;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 8192);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "name", wanted->name);
    json_field_string(&writer, "password", password);
    json_field_bool(&writer, "cookie", false);
    json_object_end(&writer);
    struct api_session session = {0};
    struct client_answer answer = {&api_session_schema, &session, {0}};
    if (buffer_check(&body, error) < 0)
        return -1;
    if (client_send(client, cli->arena, "POST", "/v1/sessions", buffer_text(&body), &answer,
                    error) < 0) {
        if (error->code == ERROR_REFUSED)
            return error_set(error, ERROR_REFUSED, "the name or the password is wrong");
        return -1;
    }
    if (keep_token_before(cli, error) < 0 || remember(cli, session.token, error) < 0)
        return -1;
    if (cli->common.json) {
        struct buffer json AUTO_BUFFER;
        buffer_init(&json, 1 << 16);
        json_writer_init(&writer, &json);
        json_write(&writer, &api_account_schema, &session.account);
        output_json(buffer_text(&json));
    }
    output_note(cli, "Signed in as \"%s\" at %s until %s.",
                output_text(cli->arena, session.account.name), cli->common.server,
                output_instant(cli->arena, session.expires_ms));
    const char *notice = account_notice(cli->arena, &session.account, clock_utc_ms(&clock_system));
    if (notice)
        output_note(cli, "Notice: %s.", notice);
    return 0;
}

const struct command command_account_login = {
    .name = "account login",
    .summary = "Signs in to an account by its name and password, for 30 days.",
    .details =
        "The password is asked for at the terminal, or taken as a line of standard input. A "
        "token that was kept for this market goes to the file secrets.before beside it; those "
        "of other markets stay, and are used for them alone.",
    .example = "souk account login --server https://market.example --name ada",
    COMMAND_OPTIONS(login_options, login_options),
    .run = run_login,
};

static int find_own_token(const struct cli *cli, struct client *client, uint64_t *out_token,
                          struct error *error)
{
    struct json_array tokens;
    struct text json;
    if (client_list(client, cli->arena, "/v1/tokens", &api_token_page_schema, 1000, &tokens, &json,
                    error) < 0)
        return -1;
    *out_token = 0;
    for (size_t i = 0; i < tokens.count; i++) {
        const struct api_token *token = (const struct api_token *)tokens.items + i;
        if (token->is_current)
            *out_token = token->id;
    }
    return 0;
}

/* A session ends; a token of the account's own is revoked, unless it is the only way back in. */
static int end_access(const struct cli *cli, struct client *client,
                      const struct api_account *account, struct error *error)
{
    uint64_t token = 0;
    if (find_own_token(cli, client, &token, error) < 0)
        return -1;
    if (!token)
        return client_send(client, cli->arena, "DELETE", "/v1/sessions", (struct text){0}, NULL,
                           error);
    if (!account->has_password)
        return error_set(error, ERROR_CONFLICT,
                         "without a password there is no way back to \"%s\": set one first (souk "
                         "account password)",
                         output_text(cli->arena, account->name));
    const char *path = arena_format(cli->arena, "/v1/tokens/%s", output_number(cli->arena, token));
    return client_send(client, cli->arena, "DELETE", path, (struct text){0}, NULL, error);
}

static int run_logout(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_account account = {0};
    struct client_answer answer = {&api_account_schema, &account, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, "/v1/account", &answer, error) < 0 ||
        end_access(cli, client, &account, error) < 0 || sign_in_forget(cli, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    output_note(cli, "Signed out of \"%s\".", output_text(cli->arena, account.name));
    return 0;
}

const struct command command_account_logout = {
    .name = "account logout",
    .summary = "Signs out: the token kept here stops working.",
    .example = "souk account logout",
    .run = run_logout,
};

/* ---- password, delete -------------------------------------------------------------------------
 */

static int run_password(void *context, const void *options, struct error *error)
{
    (void)options;
    struct cli *cli = context;
    AUTO(client) struct client *client = NULL;
    struct api_account account = {0};
    struct client_answer shown = {&api_account_schema, &account, {0}};
    const char *old = NULL, *password;
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, "/v1/account", &shown, error) < 0 ||
        (account.has_password && secret_read(cli, "Old password", &old, error) < 0) ||
        secret_read_new(cli, &password, error) < 0)
        return -1;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 8192);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_string(&writer, "password", password);
    if (old)
        json_field_string(&writer, "old_password", old);
    json_object_end(&writer);
    if (buffer_check(&body, error) < 0 ||
        client_send(client, cli->arena, "PUT", "/v1/account/password", buffer_text(&body), NULL,
                    error) < 0 ||
        client_get(client, cli->arena, "/v1/account", &shown, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(shown.json);
    output_note(cli, "The password of \"%s\" is set; its other sessions have ended.",
                output_text(cli->arena, account.name));
    return 0;
}

const struct command command_account_password = {
    .name = "account password",
    .summary = "Sets or changes the account's password.",
    .details = "Asked for at the terminal, or taken as lines of standard input: the old one, if "
               "there is one, then the new one.",
    .example = "souk account password",
    .run = run_password,
};

struct delete_options {
    bool is_yes;
};

static const struct option delete_options[] = {
    {"yes", OPTION_FLAG, offsetof(struct delete_options, is_yes), .help = "Do not ask.",
     .letter = 'y'},
};

static int run_delete(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct delete_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_account account = {0};
    struct client_answer shown = {&api_account_schema, &account, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, "/v1/account", &shown, error) < 0)
        return -1;
    const char *name = output_text(cli->arena, account.name), *password = NULL;
    const char *plan = arena_format(cli->arena,
                                    "Delete:    the account \"%s\" at %s\n"
                                    "Credits:   %s go back to the market\n"
                                    "Its name is not used again. It cannot be undone.\n",
                                    name, client_server(client),
                                    output_credits(cli->arena, account.available_micro));
    const int confirmed = output_confirm(cli, wanted->is_yes, plan, "Delete it?", error);
    if (confirmed != 0)
        return confirmed;
    if (account.has_password && secret_read(cli, "Password", &password, error) < 0)
        return -1;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 8192);
    struct json_writer writer;
    json_writer_init(&writer, &body);
    json_object_begin(&writer);
    json_field_text(&writer, "name", account.name);
    if (password)
        json_field_string(&writer, "password", password);
    json_object_end(&writer);
    if (buffer_check(&body, error) < 0 ||
        client_send(client, cli->arena, "DELETE", "/v1/account", buffer_text(&body), NULL, error) <
            0 ||
        sign_in_forget(cli, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(shown.json);
    output_note(cli, "Deleted \"%s\".", name);
    return 0;
}

const struct command command_account_delete = {
    .name = "account delete",
    .summary = "Deletes the account; its credits go back to the market.",
    .details = "Refused while a job of it has not ended or a machine of it lends.",
    .example = "souk account delete",
    COMMAND_OPTIONS(delete_options, delete_options),
    .run = run_delete,
};
