/* The command table. To add a command: cli.h says how. */
#include "cli/cli.h"

#define STRINGIFY_(value) #value
#define STRINGIFY(value)  STRINGIFY_(value)

static const struct option common_options[] = {
    {"json", OPTION_FLAG, offsetof(struct cli_common, json),
     .help = "Print JSON on standard output and nothing else there."},
    {"quiet", OPTION_FLAG, offsetof(struct cli_common, quiet), .help = "No notes and no progress.",
     .letter = 'q'},
    {"no_color", OPTION_FLAG, offsetof(struct cli_common, no_color), .help = "No colours.",
     .environment = "NO_COLOR"},
    {"server", OPTION_TEXT, offsetof(struct cli_common, server), "URL",
     .help = "The market, like https://market.example:7600."},
    {"fingerprint", OPTION_TEXT, offsetof(struct cli_common, fingerprint), "HEX",
     .help = "SHA-256 of the market's public key; no other key is trusted then."},
    {"token", OPTION_TEXT, offsetof(struct cli_common, token), "TOKEN",
     .help = "The account's token.", .is_secret = true},
    {"config_dir", OPTION_PATH, offsetof(struct cli_common, config_dir), "DIR", "{config}",
     "Folder of the files config and secrets."},
};

/* clang-format off: one command a line */
static const struct command *const commands[] = {
    &command_demo,
    &command_serve,
    &command_lend,
    &command_job_submit,
    &command_job_validate,
    &command_job_list,
    &command_job_show,
    &command_job_wait,
    &command_job_explain,
    &command_job_logs,
    &command_job_cancel,
    &command_job_fetch,
    &command_job_schema,
    &command_account_show,
    &command_account_open,
    &command_wallet,
    &command_wallet_statement,
    &command_wallet_transfer,
    &command_prices,
    &command_health,
    &command_machines,
    &command_machines_add,
    &command_offer_list,
    &command_offer_make,
    &command_offer_change,
    &command_offer_pause,
    &command_offer_resume,
    &command_offer_withdraw,
    &command_model_inspect,
    &command_audit,
    &command_bench_ledger,
    &command_sim_market,
    &command_completion,
    &command_man,
    NULL,
};
/* clang-format on */

const struct program souk_program = {
    .name = "souk",
    .version = STRINGIFY(SOUK_VERSION),
    .summary = "An open market for training models on lent machines.",
    .common = common_options,
    .common_count = sizeof(common_options) / sizeof(*common_options),
    .commands = commands,
};
