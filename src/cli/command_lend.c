/* souk lend: the lender's daemon. */
#include "base/json.h"
#include "base/log.h"
#include "base/schedule.h"
#include "base/units.h"
#include "cli/lend_function_price.h"
#include "cli/lend_install.h"
#include "cli/lend_questions.h"
#include "cli/lend_settings.h"
#include "cli/output.h"
#include "cli/sdk_files.h"
#include "peer/cache.h"
#include "peer/own_data.h"
#include "peer/peer.h"
#include "peer/probe.h"
#include "peer/probe_package.h"
#include "peer/software.h"
#include "runtime/job_spec.h"
#include "source/remote.h"

#include <string.h>
#include <unistd.h>

static const struct option lend_options[] = {
    {"code", OPTION_TEXT, offsetof(struct lend_options, code), "CODE",
     .help = "The one-time code of \"souk machines add\"; only needed the first time.",
     .is_secret = true},
    {"name", OPTION_TEXT, offsetof(struct lend_options, name), "NAME",
     .help = "What the market calls this machine; its host name by default."},
    {"cores", OPTION_TEXT, offsetof(struct lend_options, cores), "CORES",
     .help = "The most CPU to lend: 2, 0.5, or 50% of the machine; all of it by default."},
    {"memory", OPTION_TEXT, offsetof(struct lend_options, memory), "SIZE",
     .help = "The most memory to lend: 8GiB, or 50%, which is the default. With functions "
             "elsewhere: what their leases' own processes have of this machine, all together."},
    {"disk", OPTION_TEXT, offsetof(struct lend_options, disk), "SIZE",
     .help = "The most disk for data and results: 20GiB, or 50% of what is free; by default that, "
             "at most 20 GiB."},
    {"cache", OPTION_TEXT, offsetof(struct lend_options, cache), "SIZE",
     .help = "The most disk for data that jobs have used and may use again, besides --disk: 5GiB; "
             "by default a quarter of --disk, at most 16 GiB. At least 64MiB."},
    {"gpus", OPTION_I64, offsetof(struct lend_options, gpus_max), "COUNT", "-1",
     "The most GPUs to lend; 0: none; -1: all of one model, which is the default.", .minimum = -1,
     .maximum = 16},
    {"roles", OPTION_LIST, offsetof(struct lend_options, roles), "ROLE",
     .help = "What may run here: worker, server (a job's parameter server); both by default."},
    {"network", OPTION_CHOICE, offsetof(struct lend_options, network), "REACH", "job",
     "The most that a lease may reach: none; job, the job's other machines and nothing of yours; "
     "open, the public Internet as well, and nothing of yours.",
     .choices = lend_networks},
    {"resolver", OPTION_LIST, offsetof(struct lend_options, resolvers), "ADDRESS",
     .help = "Who resolves names for leases with --network open: public addresses, at most three; "
             "9.9.9.9,1.1.1.1 by default. Never your router."},
    {"closed_networks", OPTION_LIST, offsetof(struct lend_options, closed_networks), "NETWORK",
     .help =
         "What no lease with --network open reaches, besides private addresses and the networks "
         "found here: 130.75.0.0/16."},
    {"open_rate", OPTION_TEXT, offsetof(struct lend_options, open_rate), "RATE", "100Mbit",
     "The most that a lease with --network open sends and receives in a second."},
    {"images", OPTION_CHOICE, offsetof(struct lend_options, images), "WORD", "no",
     "yes: jobs may bring an OCI image to run in, in the same sandbox.", .choices = lend_no_or_yes},
    {"install", OPTION_TEXT, offsetof(struct lend_options, install), "WHAT",
     .help =
         "What may be installed for a job's program: none; wheels, those that it brings, "
         "offline and in the sandbox; index, also those that it names, fetched from "
         "--index-url. By default what this machine's offers say (souk offer change --install), "
         "but for index; none holds whatever they say, the others are in the first offer."},
    {"index_url", OPTION_TEXT, offsetof(struct lend_options, index_url), "URL",
     .help = "The package index of --install index: https, or http on this machine. By default "
             "the one that this machine's pip takes by itself."},
    {"when", OPTION_TEXT, offsetof(struct lend_options, when), "WORDS",
     .help =
         "When: always; \"Mon-Fri 18:00-08:00; Sat-Sun 0-24\". For enlisting; later: souk offer "
         "change."},
    {"zone", OPTION_TEXT, offsetof(struct lend_options, zone), "ZONE",
     .help = "The time zone of --when, like Europe/Berlin; this computer's by default."},
    {"labels", OPTION_LIST, offsetof(struct lend_options, labels), "LABEL",
     .help = "Show these labels besides those found (--doctor lists them)."},
    {"data", OPTION_LIST, offsetof(struct lend_options, data), "LABEL=PATH",
     .help =
         "Let jobs learn from data that lie here, as peer://LABEL: a file or folder, read-only in "
         "the lease's sandbox. The market is told the label, never the path; the data stay here, "
         "what is learnt from them leaves."},
    {"software", OPTION_LIST, offsetof(struct lend_options, software), "LABEL=DIR",
     .help =
         "Let jobs that ask for the label use a folder of this machine: a venv, a JDK, a Spark. "
         "They see it read-only at the same path, with its bin first in PATH. At most 8."},
    {"hide_labels", OPTION_LIST, offsetof(struct lend_options, hide_labels), "LABEL",
     .help = "Never show these."},
    {"new_identity", OPTION_FLAG, offsetof(struct lend_options, is_new),
     .help = "Forget this machine's key and enlist as a new machine, with --code: for a copied "
             "disk."},
    {"same_machine", OPTION_FLAG, offsetof(struct lend_options, is_same),
     .help = "It is the same machine with new parts, and no copied disk."},
    {"return_after", OPTION_DURATION, offsetof(struct lend_options, return_ms), "TIME", "5m",
     "Of several --server, how often to try the first again while linked to another.",
     .minimum = 100, .maximum = 86400000},
    {"look_every", OPTION_DURATION, offsetof(struct lend_options, look_ms), "TIME", "1m",
     "How often to look whether the machine has changed: processors, GPUs, packages.",
     .minimum = 100, .maximum = 86400000},
    {"direct", OPTION_FLAG, offsetof(struct lend_options, is_direct), NULL, "true",
     "Let the machines of a job connect to one another where they reach each other, for its "
     "network "
     "and for data that they have; --no-direct leaves both to the market and dials no other "
     "machine."},
    {"system_root", OPTION_TEXT, offsetof(struct lend_options, system_root), "DIR",
     .help = "Look for the system's files below this folder.", .is_hidden = true},
    {"display", OPTION_TEXT, offsetof(struct lend_options, display), "DISPLAY",
     .help = "The X display that is asked when somebody was last active; that of the session by "
             "default.",
     .environment = "DISPLAY"},
    LEND_GUARD_OPTIONS(lend_options),
    LEND_FUNCTION_OPTIONS(lend_options),
    LEND_SLURM_OPTIONS(lend_options),
    {"state_dir", OPTION_PATH, offsetof(struct lend_options, state_dir), "DIR", "{state}/lend",
     "Where the machine's key, its enrolment and fetched data lie."},
    {"doctor", OPTION_FLAG, offsetof(struct lend_options, is_doctor),
     .help = "Say what this machine is and which limits it can enforce, and end."},
    {"log_level", OPTION_CHOICE, offsetof(struct lend_options, log_level), "LEVEL", "info",
     "How much to log.", .choices = lend_log_levels},
    {"ready_fd", OPTION_I64, offsetof(struct lend_options, ready_fd), "FD", "-1",
     "Write a line of JSON here once the market has welcomed the machine.", .minimum = -1,
     .maximum = 65535, .is_hidden = true},
    {"stop_fd", OPTION_I64, offsetof(struct lend_options, stop_fd), "FD", "-1",
     "Stop when this descriptor can be read or ends.", .minimum = -1, .maximum = 65535,
     .is_hidden = true},
};

static int parse_roles(const struct option_list *list, uint32_t *out_roles, struct error *error)
{
    uint32_t roles = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (!strcmp(list->items[i], "worker"))
            roles |= PEER_ROLE_WORKER;
        else if (!strcmp(list->items[i], "server"))
            roles |= PEER_ROLE_SERVER;
        else
            return error_set(error, ERROR_INVALID, "--roles: \"%.40s\" is not worker or server",
                             list->items[i]);
    }
    *out_roles = roles;
    return 0;
}

typedef int parse_amount(struct text text, int64_t *out_amount, struct error *error);

/* An amount, or with "%" a share of the machine. */
static int parse_part(const char *option, const char *text, parse_amount *parse,
                      int64_t *out_amount, int64_t *out_share_milli, struct error *error)
{
    if (!text)
        return 0;
    const bool is_share = text_ends_with(text_trim(text_of(text)), TEXT("%"));
    const int result = is_share ? units_parse_share(text_of(text), out_share_milli, error)
                                : parse(text_of(text), out_amount, error);
    if (result < 0)
        return error_wrap(error, "--%s", option);
    if (*out_amount == 0 && *out_share_milli == 0)
        return error_set(error, ERROR_INVALID, "--%s: lend some, or do not give it", option);
    return 0;
}

static int parse_parts(const struct lend_options *wanted, struct peer_options *peer,
                       struct error *error)
{
    if (parse_part("cores", wanted->cores, units_parse_cores, &peer->cores_milli,
                   &peer->cores_share_milli, error) < 0 ||
        parse_part("memory", wanted->memory, units_parse_bytes, &peer->ram_bytes,
                   &peer->ram_share_milli, error) < 0)
        return -1;
    if (parse_part("disk", wanted->disk, units_parse_bytes, &peer->disk_bytes,
                   &peer->disk_share_milli, error) < 0)
        return -1;
    if (wanted->cache && units_parse_bytes(text_of(wanted->cache), &peer->cache_bytes, error) < 0)
        return error_wrap(error, "--cache");
    if (wanted->cache && peer->cache_bytes < CACHE_BYTES_MIN)
        return error_set(error, ERROR_INVALID, "--cache: at least 64MiB");
    return 0;
}

static int parse_open(const struct lend_options *wanted, struct open_terms *terms,
                      struct error *error)
{
    open_terms_init(terms);
    if (units_parse_bandwidth(text_of(wanted->open_rate), &terms->kbit_per_s, error) < 0)
        return error_wrap(error, "--open-rate");
    if (terms->kbit_per_s < 1 || terms->kbit_per_s > OPEN_KBIT_MAX)
        return error_set(error, ERROR_INVALID, "--open-rate: from 1kbit to 100Gbit");
    if (wanted->resolvers.count > 0 && open_terms_set_resolvers(terms, wanted->resolvers.items,
                                                                wanted->resolvers.count, error) < 0)
        return -1;
    return open_terms_set_closed(terms, wanted->closed_networks.items,
                                 wanted->closed_networks.count, error);
}

/* {"machine": "...", "sandbox": "ok, ..."}: the findings' lines, each by its name. */
static int print_doctor_json(struct text findings, struct error *error)
{
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, 1 << 17);
    struct json_writer writer;
    json_writer_init(&writer, &json);
    json_object_begin(&writer);
    struct text line, name, value;
    bool has_more = findings.size > 0;
    while (has_more) {
        has_more = text_cut(findings, '\n', &line, &findings);
        if (!text_cut(line, ':', &name, &value))
            continue;
        char key[64];
        snprintf(key, sizeof(key), "%.*s", (int)name.size, name.data);
        for (char *at = key; *at; at++)
            if (*at == ' ')
                *at = '_';
        json_field_text(&writer, key, text_trim(value));
    }
    json_object_end(&writer);
    if (buffer_check(&json, error) < 0)
        return -1;
    output_json(buffer_text(&json));
    return 0;
}

static int run_doctor(const struct peer_options *options, bool is_json, struct error *error)
{
    struct buffer out AUTO_BUFFER;
    buffer_init(&out, 1 << 16);
    if (peer_doctor(options, &out, error) < 0 || buffer_check(&out, error) < 0)
        return -1;
    if (is_json)
        return print_doctor_json(buffer_text(&out), error);
    fwrite(out.data, 1, out.size, stdout);
    return 0;
}

/* ---- Asking -----------------------------------------------------------------------------------
 */

/* Told nothing at all, at a terminal, by a machine that nobody knows yet. */
static bool should_ask(const struct cli *cli, const struct lend_options *wanted)
{
    return !wanted->code && !wanted->cores && !wanted->memory && !wanted->disk && !wanted->when &&
           !wanted->is_new && !wanted->functions.count && !cli->common.json &&
           isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && !peer_is_enlisted(wanted->state_dir);
}

static int look_at_machine(const struct cli *cli, const struct lend_options *wanted,
                           struct lend_machine *out_machine, struct error *error)
{
    static const struct machine_probe no_speeds;
    static const char *const reaches[OFFER_NETWORK_COUNT] = {
        [OFFER_NETWORK_NONE] = "nothing",
        [OFFER_NETWORK_JOB] = "its own other machines, and nothing of yours",
        [OFFER_NETWORK_OPEN] = "its own other machines and the Internet, and nothing of yours",
    };
    const struct probe_options options = {.root = wanted->system_root ? wanted->system_root : "",
                                          .state_dir = "/",
                                          .known = &no_speeds};
    struct machine_probe probe;
    if (machine_probe_read(&options, &probe, error) < 0)
        return -1;
    const struct gpu_group gpus = gpus_probe_largest(&probe.gpus);
    const char *graphics =
        gpus.count ? arena_format(cli->arena, "%zu x %s", gpus.count, gpus.model) : "no GPU";
    *out_machine = (struct lend_machine){
        .words = arena_format(cli->arena, "%s, %s of memory, %s",
                              output_core_count(cli->arena, probe.cores_milli),
                              output_bytes(cli->arena, probe.ram_bytes), graphics),
        .cores_milli = probe.cores_milli,
        .ram_bytes = probe.ram_bytes,
        .reaches = reaches[wanted->network]};
    return 0;
}

struct answered {
    const struct cli *cli;
    struct lend_answers answers;
    const char *zone;
    const char *name; /* chosen as the host's was taken; NULL: none */
};

/* Only now that the market took it: a wrong code leaves no file behind. */
static int keep_answers(void *context, struct error *error)
{
    const struct answered *answered = context;
    const struct lend_answers *answers = &answered->answers;
    const char *config_dir = answered->cli->common.config_dir;
    const bool is_always = !strcmp(answers->when, "always");
    const struct option_setting settings[] = {
        {"server", answers->server}, {"fingerprint", answers->fingerprint},
        {"cores", answers->cores},   {"memory", answers->share},
        {"when", answers->when},     {"zone", is_always ? NULL : answered->zone},
        {"name", answered->name},
    };
    const size_t count = sizeof(settings) / sizeof(*settings) - (answered->name ? 0 : 1);
    if (options_file_store_command(config_dir, "lend", settings, count, error) < 0)
        return error_wrap(error, "keep the answers");
    output_note(answered->cli,
                "Kept in %s/config; from now on \"souk lend\" is enough. Ctrl-C stops lending.",
                config_dir);
    return 0;
}

static const char *choose_name(void *context, const char *taken)
{
    struct answered *answered = context;
    answered->name = lend_questions_ask_name(answered->cli, taken);
    return answered->name;
}

static int ask(const struct cli *cli, struct lend_options *wanted, struct peer_options *peer,
               struct answered *answered, struct error *error)
{
    struct lend_machine machine;
    if (look_at_machine(cli, wanted, &machine, error) < 0)
        return -1;
    const int result = lend_questions_ask(cli, &machine, &answered->answers, error);
    if (result != 0)
        return result;
    answered->cli = cli;
    wanted->code = answered->answers.code;
    wanted->cores = answered->answers.cores;
    wanted->memory = answered->answers.share;
    wanted->when = answered->answers.when;
    peer->servers = &answered->answers.server;
    peer->server_count = 1;
    peer->fingerprint = answered->answers.fingerprint;
    peer->on_enlisted = keep_answers;
    peer->on_name_taken = choose_name;
    peer->context = answered;
    return 0;
}

/* A schedule's times are those of this computer's clock unless they say otherwise; "always" has
 * none. */
static int choose_zone(const struct cli *cli, struct lend_options *wanted, struct error *error)
{
    struct schedule schedule;
    if (!wanted->when)
        return wanted->zone ? error_set(error, ERROR_INVALID, "--zone: give --when too") : 0;
    if (schedule_parse(text_of(wanted->when), &schedule, error) < 0)
        return error_wrap(error, "--when");
    if (schedule.part_count == 0)
        wanted->zone = NULL;
    else if (!wanted->zone && !schedule.zone[0])
        wanted->zone = options_time_zone(cli->arena, NULL, "/etc");
    return 0;
}

static int check_labels(const char *flag, const struct option_list *labels, struct error *error)
{
    for (size_t i = 0; i < labels->count; i++)
        if (!labels_probe_is_word(text_of(labels->items[i])))
            return error_set(error, ERROR_INVALID,
                             "%s: \"%.40s\" is no label: letters, digits and . _ + - alone", flag,
                             labels->items[i]);
    return 0;
}

/* Those named, and one for each of the data and the software that are offered. */
static void fill_labels(struct arena *arena, const struct lend_options *wanted,
                        struct peer_options *peer)
{
    const size_t most = wanted->labels.count + wanted->data.count + wanted->software.count + 1;
    const char **labels = arena_alloc(arena, most * sizeof(*labels));
    size_t count = 0;
    if (wanted->functions.count > 0)
        labels[count++] = LEND_FUNCTIONS_LABEL;
    for (size_t i = 0; i < wanted->data.count; i++)
        labels[count++] = arena_format(arena, JOB_PEER_PREFIX TEXT_FORMAT,
                                       TEXT_ARGS(own_data_label(wanted->data.items[i])));
    for (size_t i = 0; i < wanted->software.count; i++)
        labels[count++] = arena_copy_string(arena, own_data_label(wanted->software.items[i]));
    for (size_t i = 0; i < wanted->labels.count; i++)
        labels[count++] = wanted->labels.items[i];
    peer->labels = labels;
    peer->label_count = count;
}

static void fill_peer(const struct cli *cli, const struct lend_options *wanted,
                      struct peer_options *peer)
{
    peer->state_dir = wanted->state_dir;
    peer->code = wanted->code;
    peer->name = wanted->name;
    peer->when = wanted->when;
    peer->zone = wanted->zone;
    peer->has_images = wanted->images == 1;
    fill_labels(cli->arena, wanted, peer);
    peer->data = wanted->data.items;
    peer->data_count = wanted->data.count;
    peer->software = wanted->software.items;
    peer->software_count = wanted->software.count;
    peer->sdk = &sdk_files;
    peer->hidden_labels = wanted->hide_labels.items;
    peer->hidden_label_count = wanted->hide_labels.count;
    peer->is_new = wanted->is_new;
    peer->is_same = wanted->is_same;
    peer->return_ms = wanted->return_ms;
    peer->is_direct = wanted->is_direct;
    peer->look_ms = wanted->look_ms;
    peer->root = wanted->system_root;
    peer->display = wanted->display && wanted->display[0] ? wanted->display : NULL;
    peer->ready_fd =
        wanted->ready_fd < 0 && cli->common.json ? dup(STDOUT_FILENO) : (int)wanted->ready_fd;
    peer->stop_fd = (int)wanted->stop_fd;
}

static int run_slurm(const struct cli *cli, const struct lend_options *wanted, struct error *error)
{
    struct option_setting settings[LEND_SETTING_MAX];
    struct lend_slurm lend = {.options = &wanted->slurm,
                              .state_dir = wanted->state_dir,
                              .name = wanted->name,
                              .settings = settings};
    if (lend_settings_of_nodes(cli->arena, wanted, settings, &lend.setting_count, error) < 0)
        return -1;
    log_set_level((enum log_level)wanted->log_level);
    return lend_slurm_run(cli, &lend, error);
}

static int run_lend(void *context, const void *options, struct error *error)
{
    const struct cli *cli = context;
    struct lend_options wanted = *(const struct lend_options *)options;
    struct answered answered = {0};
    bool is_arm64 = false;
    struct remote_credentials credentials AUTO_CREDENTIALS = {0};
    struct peer_options peer;
    peer_options_init(&peer);
    peer.servers = cli->common.servers.items;
    peer.server_count = cli->common.servers.count;
    peer.fingerprint = cli->common.fingerprint;
    if (parse_open(&wanted, &peer.open, error) < 0)
        return -1;
    if (own_data_check(wanted.data.items, wanted.data.count, error) < 0)
        return error_wrap(error, "--data");
    if (software_check(wanted.software.items, wanted.software.count, wanted.state_dir, error) < 0)
        return error_wrap(error, "--software");
    if (check_labels("--labels", &wanted.labels, error) < 0 ||
        check_labels("--hide-labels", &wanted.hide_labels, error) < 0 ||
        parse_roles(&wanted.roles, &peer.roles, error) < 0 ||
        lend_install_parse(wanted.install, wanted.index_url, &peer, error) < 0)
        return -1;
    peer.network = (enum offer_network)wanted.network;
    peer.gpus_max = wanted.gpus_max;
    if (wanted.slurm.partition && wanted.functions.count == 0)
        return run_slurm(cli, &wanted, error);
    log_set_level((enum log_level)wanted.log_level);
    if (!wanted.is_doctor && should_ask(cli, &wanted)) {
        const int result = ask(cli, &wanted, &peer, &answered, error);
        if (result != 0)
            return result;
    }
    if (choose_zone(cli, &wanted, error) < 0 || parse_parts(&wanted, &peer, error) < 0 ||
        lend_guard_parse(&wanted.guard, &peer, error) < 0 ||
        lend_functions_parse(cli->arena, &wanted, &credentials, &peer, error) < 0 ||
        (!wanted.is_doctor &&
         (lend_functions_configure(&peer.functions, &is_arm64, error) < 0 ||
          lend_function_price_choose(cli, is_arm64, &wanted, &peer, error) < 0)))
        return -1;
    answered.zone = wanted.zone;
    fill_peer(cli, &wanted, &peer);
    return wanted.is_doctor ? run_doctor(&peer, cli->common.json, error) : peer_run(&peer, error);
}

const struct command command_lend = {
    .name = "lend",
    .summary = "Lends this machine: enlists it, runs leases in a sandbox, earns credits.",
    .details =
        "Told nothing, it asks three questions the first time: which market, how much, when; "
        "after that \"souk lend\" is enough. --cores, --memory and --disk are the most that is "
        "ever lent of this "
        "machine; below that, \"souk offer\" says what is offered when, to whom and for how "
        "much. It dials out only, and ends running leases in good order on SIGTERM or "
        "Ctrl-C; on SIGUSR2 it starts itself again and the leases go on. With --json one line "
        "is printed once the market knows the machine.",
    .example = "souk lend --server http://127.0.0.1:7600 --code CODE --cores 50%",
    COMMAND_OPTIONS(lend_options, lend_options),
    .run = run_lend,
};
