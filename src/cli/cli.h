/*
 * Command line: what every command is given, and the commands themselves.
 *
 * Data goes to standard output, everything else to standard error; with --json standard output has
 * one JSON value and nothing else.
 *
 * To add a command: a file command_NAME.c with its option table, struct and run function; a line
 * here and in program.c. Help, completion and manual follow from the table.
 */
#pragma once

#include "base/arena.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/options.h"

#include <stdbool.h>

/* Options of every command. */
struct cli_common {
    bool json;
    bool is_wide;
    bool quiet;
    bool no_color;
    const char *config_dir;     /* never NULL once a command runs */
    struct option_list servers; /* the market's URLs; the first is the one that commands use */
    const char *server;         /* that one; NULL: none known */
    const char *token;          /* for it alone: sign_in.h */
    const char *fingerprint;
    const char *elsewhere; /* the market that is signed in to instead; NULL: this, or none */
};

struct output_unit;

/* The `context` of every command's run function. */
struct cli {
    const struct program *program;
    struct arena *arena; /* lives as long as the command */
    struct cli_common common;
    const struct output_unit *unit; /* of the market's amounts, once cli_learn_unit knows; NULL */
};

extern const struct program souk_program;

/* Exit codes of a job or check that failed, and of a person who said no; wrong usage and errors are
 * base/error.h's. */
enum { CLI_EXIT_FAILED = 1, CLI_EXIT_DECLINED = 9 };

extern const struct command command_account_delete;
extern const struct command command_account_freeze;
extern const struct command command_account_invite;
extern const struct command command_account_login;
extern const struct command command_account_logout;
extern const struct command command_account_open;
extern const struct command command_account_password;
extern const struct command command_account_profiles;
extern const struct command command_account_show;
extern const struct command command_account_unfreeze;
extern const struct command command_account_grant;
extern const struct command command_audit;
extern const struct command command_bench_exchange;
extern const struct command command_bench_jobnet;
extern const struct command command_bench_ledger;
extern const struct command command_bench_lenders;
extern const struct command command_bench_market;
extern const struct command command_bench_recommend;
extern const struct command command_bench_wan;
extern const struct command command_cloud_catalogue;
extern const struct command command_cloud_list;
extern const struct command command_cloud_start;
extern const struct command command_cloud_stop;
extern const struct command command_cloud_sweep;
extern const struct command command_completion;
extern const struct command command_demo;
extern const struct command command_function_forget;
extern const struct command command_function_host;
extern const struct command command_function_serve;
extern const struct command command_function_train;
extern const struct command command_group_create;
extern const struct command command_group_invite;
extern const struct command command_group_join;
extern const struct command command_group_leave;
extern const struct command command_group_remove;
extern const struct command command_group_show;
extern const struct command command_job_cancel;
extern const struct command command_job_explain;
extern const struct command command_job_extend;
extern const struct command command_job_fetch;
extern const struct command command_job_list;
extern const struct command command_job_logs;
extern const struct command command_job_schema;
extern const struct command command_job_show;
extern const struct command command_job_submit;
extern const struct command command_run;
extern const struct command command_job_validate;
extern const struct command command_job_wait;
extern const struct command command_lend;
extern const struct command command_lend_drain;
extern const struct command command_lend_pause;
extern const struct command command_lend_resume;
extern const struct command command_lend_status;
extern const struct command command_lend_stop;
extern const struct command command_machines;
extern const struct command command_machines_add;
extern const struct command command_machines_reclaim;
extern const struct command command_machines_report;
extern const struct command command_machines_show;
extern const struct command command_man;
extern const struct command command_train;
extern const struct command command_model_inspect;
extern const struct command command_model_export;
extern const struct command command_model_predict;
extern const struct command command_model_serve;
extern const struct command command_offer_change;
extern const struct command command_offer_list;
extern const struct command command_offer_make;
extern const struct command command_offer_pause;
extern const struct command command_offer_resume;
extern const struct command command_offer_show;
extern const struct command command_offer_withdraw;
extern const struct command command_prices;
extern const struct command command_recommend;
extern const struct command command_health;
extern const struct command command_serve;
extern const struct command command_session_end;
extern const struct command command_session_list;
extern const struct command command_settings;
extern const struct command command_settings_set;
extern const struct command command_sim_market;
extern const struct command command_sim_recommend;
extern const struct command command_sim_siren;
extern const struct command command_sim_sync;
extern const struct command command_slurm_node;
extern const struct command command_token_list;
extern const struct command command_token_make;
extern const struct command command_token_revoke;
extern const struct command command_wallet;
extern const struct command command_wallet_statement;
extern const struct command command_wallet_transfer;
