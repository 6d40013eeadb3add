/* souk wallet transfer: gives earned credits to another account. */
#include "base/json.h"
#include "cli/connect.h"
#include "cli/output.h"
#include "client/api.h"

struct transfer_options {
    const char *account;
    int64_t amount_micro;
    const char *memo;
    bool is_yes;
};

static const struct option transfer_options[] = {
    {"account", OPTION_TEXT, offsetof(struct transfer_options, account), "ACCOUNT",
     .help = "The name of the account that gets them.", .fields = "to", .is_positional = true,
     .is_required = true},
    {"amount", OPTION_CREDITS, offsetof(struct transfer_options, amount_micro), "AMOUNT",
     .help = "How many credits.", .is_positional = true, .is_required = true},
    {"memo", OPTION_TEXT, offsetof(struct transfer_options, memo), "TEXT",
     .help = "A few words for both statements."},
    {"yes", OPTION_FLAG, offsetof(struct transfer_options, is_yes), .help = "Do not ask.",
     .letter = 'y'},
};

/* Refused here, before anyone is asked. */
static int check_amount(const struct cli *cli, const struct transfer_options *wanted,
                        const struct api_account *account, struct error *error)
{
    if (wanted->amount_micro <= 0)
        return error_set(error, ERROR_INVALID, "AMOUNT must be more than 0");
    if (account->frozen.size)
        return error_set(error, ERROR_REFUSED,
                         "your account is frozen: %s; what it has stays, ask the operator",
                         output_text(cli->arena, account->frozen));
    if (wanted->amount_micro > account->transferable_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "%s are more than the %s that can be transferred: what was granted "
                         "or is withheld is for jobs",
                         output_amount(cli, wanted->amount_micro),
                         output_credits(cli->arena, account->transferable_micro));
    return 0;
}

static const char *write_plan(const struct cli *cli, const struct transfer_options *wanted,
                              const struct api_account *account)
{
    const struct text to = text_of(wanted->account);
    const int64_t left_micro = account->transferable_micro - wanted->amount_micro;
    return arena_format(cli->arena,
                        "Transfer:  %s from \"%s\" to \"%s\"\n"
                        "Left:      %s that can be transferred\n"
                        "Whether there is such an account the market says when you agree. It "
                        "cannot be taken back.\n",
                        output_amount(cli, wanted->amount_micro),
                        output_text(cli->arena, account->name), output_text(cli->arena, to),
                        output_amount(cli, left_micro));
}

static void write_body(const struct transfer_options *wanted, struct buffer *out)
{
    struct json_writer writer;
    json_writer_init(&writer, out);
    json_object_begin(&writer);
    json_field_string(&writer, "to", wanted->account);
    json_field_i64(&writer, "amount_microcredits", wanted->amount_micro);
    if (wanted->memo)
        json_field_string(&writer, "memo", wanted->memo);
    json_object_end(&writer);
}

static int run_transfer(void *context, const void *options, struct error *error)
{
    struct cli *cli = context;
    const struct transfer_options *wanted = options;
    AUTO(client) struct client *client = NULL;
    struct api_account account = {0};
    struct client_answer balance = {&api_account_schema, &account, {0}};
    if (cli_connect(cli, true, &client, error) < 0 ||
        client_get(client, cli->arena, "/v1/account", &balance, error) < 0 ||
        cli_learn_unit(cli, client, error) < 0 || check_amount(cli, wanted, &account, error) < 0)
        return -1;
    const int confirmed = output_confirm(cli, wanted->is_yes, write_plan(cli, wanted, &account),
                                         "Transfer them?", error);
    if (confirmed != 0)
        return confirmed;
    struct buffer body AUTO_BUFFER;
    buffer_init(&body, 4096);
    write_body(wanted, &body);
    if (buffer_check(&body, error) < 0)
        return error_wrap(error, "--memo");
    struct api_entry entry = {0};
    struct client_answer answer = {&api_entry_schema, &entry, {0}};
    if (client_post(client, cli->arena, "/v1/transfers", buffer_text(&body), &answer, error) < 0)
        return -1;
    if (cli->common.json)
        output_json(answer.json);
    else
        printf("Entry %s: %s to \"%s\"\n", output_number(cli->arena, entry.id),
               output_amount(cli, -entry.amount_micro),
               output_text(cli->arena, text_of(wanted->account)));
    return 0;
}

const struct command command_wallet_transfer = {
    .name = "wallet transfer",
    .summary = "Gives earned credits to another account.",
    .details = "Credits that were granted or are withheld cannot be transferred: they are for "
               "jobs. Shows what will happen and asks first.",
    .example = "souk wallet transfer bob 2.5 --memo \"for the GPU hour\"",
    COMMAND_OPTIONS(transfer_options, transfer_options),
    .run = run_transfer,
};
