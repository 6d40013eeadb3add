/* souk serve: the market. */
#include "base/log.h"
#include "base/units.h"
#include "cli/output.h"
#include "server/server.h"

#include <unistd.h>

struct serve_options {
    struct server_options server;
    bool has_local_lender;
    const char *grant;
    int64_t ready_fd;
    int64_t stop_fd;
    uint64_t snapshot_events;
    int log_level;
    int economy;
    int profiles;
    bool is_printing_api;
    const char *slot_offset;
};

static const char *const economies[] = {"kept", "credits", "karma", NULL};
static const char *const profile_choices[] = {"own", "shared", NULL};
static const char *const log_levels[] = {"error", "warn", "info", "debug", NULL};

#define SERVER(member) offsetof(struct serve_options, server.member)

static const struct option serve_options[] = {
    {"data", OPTION_PATH, SERVER(data_dir), "DIR", "{data}/market",
     "The market's folder: database, blobs and keys.", .environment = "SOUK_MARKET_DATA"},
    {"listen", OPTION_TEXT, SERVER(listen), "ADDRESS", "127.0.0.1:7600",
     "Where the page and the REST API listen; other than loopback it is HTTPS."},
    {"link_listen", OPTION_TEXT, SERVER(link_listen), "ADDRESS", "127.0.0.1:7601",
     "Where lenders' links and relayed streams come in."},
    {"public_url", OPTION_TEXT, SERVER(public_url), "URL",
     .help = "The address others reach the page at, when it is not the listening one."},
    {"link_address", OPTION_TEXT, SERVER(link_address), "ADDRESS",
     .help = "The address lenders reach the links at, when it is not the listening one."},
    {"title", OPTION_TEXT, SERVER(name), "NAME", "souk", "The market's name on its page."},
    {"tls_cert", OPTION_PATH, SERVER(tls_cert), "FILE",
     .help = "Certificate (PEM); our own self-signed one by default."},
    {"tls_key", OPTION_PATH, SERVER(tls_key), "FILE", .help = "Its key (PEM)."},
    {"behind_proxy", OPTION_FLAG, SERVER(is_behind_proxy),
     .help = "A proxy in front ends TLS: take plain HTTP on any address, and clients' addresses "
             "from X-Forwarded-For."},
    {"proxy_count", OPTION_U64, SERVER(proxy_count), "NUMBER", "1",
     "With --behind-proxy: how many proxies append to X-Forwarded-For.", .minimum = 1,
     .maximum = 16},
    {"local_lender", OPTION_FLAG, offsetof(struct serve_options, has_local_lender), NULL, "true",
     "Lend one core of this machine for parameter servers; --no-local-lender: do not."},
    {"economy", OPTION_CHOICE, offsetof(struct serve_options, economy), "NAME", "kept",
     "Of a new market: credits, or karma for one without money; kept: as it is.",
     .choices = economies},
    {"grant", OPTION_TEXT, offsetof(struct serve_options, grant), "CREDITS",
     .help = "What a new account gets at once; without, as `souk settings` says, at first 10."},
    {"grant_v6_prefix", OPTION_I64, SERVER(grant_v6_prefix), "BITS", "64",
     "Of an IPv6 address: one first grant a day for each network of so many bits.", .minimum = 48,
     .maximum = 64},
    {"sign_ups_per_hour", OPTION_I64, SERVER(sign_ups_per_hour), "NUMBER", "20",
     "Accounts opened from one address block; 0: no limit.", .minimum = 0, .maximum = 1000000000},
    {"sign_ins_per_10_minutes", OPTION_I64, SERVER(sign_ins_per_10_minutes), "NUMBER", "20",
     "Wrong passwords from one address block, and for one name; 0: no limit.", .minimum = 0,
     .maximum = 1000000000},
    {"writes_per_minute", OPTION_I64, SERVER(writes_per_minute), "NUMBER", "1200",
     "Requests of one account that change something; 0: no limit.", .minimum = 0,
     .maximum = 1000000000},
    {"reads_per_minute", OPTION_I64, SERVER(reads_per_minute), "NUMBER", "6000",
     "Other requests of one account; 0: no limit.", .minimum = 0, .maximum = 1000000000},
    {"fee_basis_points", OPTION_I64, SERVER(fee_basis_points), "NUMBER", "-1",
     "The market's part of each payment, in hundredths of a percent; -1: the usual.", .minimum = -1,
     .maximum = 10000},
    {"slot_offset", OPTION_TEXT, offsetof(struct serve_options, slot_offset), "DURATION",
     .help = "How far the market's midnight, where price slots begin, is ahead of UTC: 2h, -5h30m; "
             "fixed from the first job or slot's end on."},
    {"cloud", OPTION_PATH, SERVER(cloud_file), "FILE",
     .help = "What may be started at a cloud, and with which limits (docs/cloud.md); without, "
             "nothing."},
    {"datasets", OPTION_PATH, SERVER(datasets_dir), "DIR",
     .help = "Folder with the built-in data sets that come with no package, each in DIR/NAME: jobs "
             "that name one need not upload it."},
    {"blob_quota", OPTION_BYTES, SERVER(blob_quota_bytes), "SIZE", "64GiB",
     "How much data all accounts together may store."},
    {"account_quota", OPTION_BYTES, SERVER(account_quota_bytes), "SIZE", "16GiB",
     "How much data one account may upload, objects of its functions among them."},
    {"import_max", OPTION_BYTES, SERVER(import_size_bytes), "SIZE", "4GiB",
     "How large a file or archive the market reads for somebody."},
    {"import_private", OPTION_FLAG, SERVER(is_import_private),
     .help = "Fetch what the market reads for somebody from private addresses, too: those of this "
             "machine and its network."},
    {"keep", OPTION_DURATION, SERVER(keep_ms), "TIME", "30d",
     "How long data, results and logs stay that nobody used.", .minimum = 1000,
     .maximum = INT64_C(36500) * 86400000},
    {"profile_keep", OPTION_DURATION, SERVER(profile_keep_ms), "TIME", "180d",
     "How long the profiles of runs stay, from which recommendations learn.", .minimum = 1000,
     .maximum = INT64_C(36500) * 86400000},
    {"profiles", OPTION_CHOICE, offsetof(struct serve_options, profiles), "WHOSE", "own",
     "Whose runs a recommendation learns from: own, those of the account that asks; shared, those "
     "of all accounts that said so, too.",
     .choices = profile_choices},
    {"answers_memory", OPTION_BYTES, SERVER(answers_bytes_max), "SIZE", "192MiB",
     "Memory for answers to reads that are kept until what they show changes; 0: keep none."},
    {"snapshot_events", OPTION_U64, offsetof(struct serve_options, snapshot_events), "COUNT",
     "10000", "Events between two snapshots.", .minimum = 1, .maximum = 100000000},
    {"log_level", OPTION_CHOICE, offsetof(struct serve_options, log_level), "LEVEL", "info",
     "How much to log.", .choices = log_levels},
    {"print_api", OPTION_FLAG, offsetof(struct serve_options, is_printing_api),
     .help = "Print docs/api.md from the table of routes, and end."},
    {"ready_fd", OPTION_I64, offsetof(struct serve_options, ready_fd), "FD", "-1",
     "Write a line of JSON here once requests are taken.", .minimum = -1, .maximum = 65535,
     .is_hidden = true},
    {"stop_fd", OPTION_I64, offsetof(struct serve_options, stop_fd), "FD", "-1",
     "Stop when this descriptor can be read or ends.", .minimum = -1, .maximum = 65535,
     .is_hidden = true},
};

static int read_slot_offset(const char *text, struct server_options *server, struct error *error)
{
    if (!text)
        return 0;
    if (units_parse_signed_duration(text_of(text), &server->slot_offset_ms, error) < 0)
        return error_wrap(error, "--slot-offset");
    server->has_slot_offset = true;
    return 0;
}

static int run_serve(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    const struct serve_options *wanted = options;
    if (wanted->is_printing_api) {
        server_print_api(stdout);
        return 0;
    }
    struct server_options server = wanted->server;
    server.has_no_local_lender = !wanted->has_local_lender;
    server.snapshot_event_count = (uint32_t)wanted->snapshot_events;
    server.economy = (enum server_economy)wanted->economy;
    server.has_shared_profiles = wanted->profiles == 1;
    server.ready_fd =
        wanted->ready_fd < 0 && cli->common.json ? dup(STDOUT_FILENO) : (int)wanted->ready_fd;
    server.stop_fd = (int)wanted->stop_fd;
    if (read_slot_offset(wanted->slot_offset, &server, error) < 0)
        return -1;
    server.grant_microcredits = -1;
    if (wanted->grant &&
        units_parse_credits(text_of(wanted->grant), &server.grant_microcredits, error) < 0)
        return error_wrap(error, "--grant");
    if (wanted->grant && server.grant_microcredits < 0)
        return error_set(error, ERROR_INVALID, "--grant: may not be negative");
    if (!server.tls_cert != !server.tls_key)
        return error_set(error, ERROR_INVALID, "--tls-cert and --tls-key belong together");
    log_set_level((enum log_level)wanted->log_level);
    return server_run(&server, error);
}

const struct command command_serve = {
    .name = "serve",
    .summary = "Runs a market: REST API, page, matching, ledger and links to lenders.",
    .details =
        "Everything lies in one folder. It ends on SIGTERM or Ctrl-C; killing it at any "
        "moment loses nothing that was acknowledged. With --json one line with its addresses is "
        "printed once it takes requests.",
    .example = "souk serve --data /var/lib/souk",
    COMMAND_OPTIONS(serve_options, serve_options),
    .run = run_serve,
};
