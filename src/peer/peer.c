#include "peer/peer.h"

#include "base/assert.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "net/tun.h"
#include "peer/cache.h"
#include "peer/daemon.h"
#include "peer/enlist.h"
#include "peer/function_share.h"
#include "peer/identity.h"
#include "peer/open_network.h"
#include "peer/peer_internal.h"
#include "peer/sdk.h"
#include "sandbox/folder.h"
#include "source/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define DISK_BYTES_DEFAULT_MAX (INT64_C(20) << 30)

enum { PATH_SIZE = PATH_MAX - 300 };

void peer_options_init(struct peer_options *options)
{
    *options = (struct peer_options){.network = OFFER_NETWORK_JOB,
                                     .install = OFFER_INSTALL_WHEELS,
                                     .index_url = "",
                                     .gpus_max = -1,
                                     .ready_fd = -1,
                                     .stop_fd = -1};
    open_terms_init(&options->open);
    guard_wishes_init(&options->owner);
}

int peer_make_path(const char *path, struct error *error)
{
    char part[PATH_SIZE];
    if (text_copy(text_of(path), part, sizeof(part), error) < 0)
        return error_wrap(error, "the state folder's name");
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (folder_make(part, 0755, error) < 0)
            return -1;
        *slash = '/';
    }
    return folder_make(part, 0700, error);
}

const char *peer_root(const struct peer_options *options)
{
    return options->root ? options->root : "";
}

struct probe_options peer_probe_options(const struct peer_options *options)
{
    return (struct probe_options){.root = peer_root(options),
                                  .state_dir = options->state_dir,
                                  .labels = options->labels,
                                  .label_count = options->label_count,
                                  .hidden = options->hidden_labels,
                                  .hidden_count = options->hidden_label_count};
}

static int lock_state(const char *state_dir, int *out_fd, struct error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/lock", state_dir);
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(error, ERROR_CONFLICT,
                         "another lender's daemon uses \"%s\"; give this one its own --state-dir",
                         state_dir);
    *out_fd = TAKE_FD(fd);
    return 0;
}

static int open_sandboxes(const struct peer_options *options, struct sandbox_host **out_host,
                          struct error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/sandboxes", options->state_dir);
    if (folder_make(path, 0700, error) < 0)
        return -1;
    return sandbox_host_open(path, options->program, out_host, error);
}

static int64_t share_of(int64_t whole, int64_t share_milli, int64_t otherwise)
{
    return share_milli > 0 ? whole * share_milli / 1000 : otherwise;
}

/* Amounts in the place of shares, now that the machine is known. */
static void resolve_shares(struct peer_options *options, const struct machine_probe *probe)
{
    options->cores_milli =
        share_of(probe->cores_milli, options->cores_share_milli, options->cores_milli);
    options->ram_bytes = share_of(probe->ram_bytes, options->ram_share_milli, options->ram_bytes);
    options->disk_bytes =
        share_of(probe->disk_bytes, options->disk_share_milli, options->disk_bytes);
    struct peer_functions *functions = &options->functions;
    functions->process_bytes =
        share_of(probe->ram_bytes, functions->process_share_milli, functions->process_bytes);
    if (functions->name && functions->process_bytes == 0)
        functions->process_bytes = probe->ram_bytes / 2;
}

/* The lowest `count` of them; negative: all. */
static uint32_t first_bits(uint32_t bits, int64_t count)
{
    uint32_t first = 0;
    for (; count > 0 && bits; count--) {
        first |= bits & -bits;
        bits &= bits - 1;
    }
    return count < 0 ? bits : first;
}

/* What is lent: as the options say, cut to what the machine has; what functions elsewhere have is
 * not this machine's. */
static int read_limits(const struct peer_options *options, const struct machine_probe *probe,
                       struct lease_limits *out_limits, struct error *error)
{
    const bool is_elsewhere = options->functions.name != NULL;
    if (options->cores_milli < 0 || options->ram_bytes < 0 || options->disk_bytes < 0)
        return error_set(error, ERROR_INVALID, "what is lent cannot be negative");
    struct lease_limits limits = {
        .cores_milli = options->cores_milli ? options->cores_milli : probe->cores_milli,
        .ram_bytes = options->ram_bytes ? options->ram_bytes : probe->ram_bytes / 2,
        .disk_bytes = options->disk_bytes ? options->disk_bytes : probe->disk_bytes / 2,
    };
    if (!options->disk_bytes && limits.disk_bytes > DISK_BYTES_DEFAULT_MAX)
        limits.disk_bytes = DISK_BYTES_DEFAULT_MAX;
    limits.network = options->network;
    limits.has_images = options->has_images;
    limits.install = options->install;
    limits.forbids_programs = options->functions.count > 0;
    const struct gpu_group gpus = gpus_probe_largest(&probe->gpus);
    if (options->gpus_max > (int64_t)gpus.count)
        return error_set(error, ERROR_INVALID,
                         "this machine has %zu GPUs of one model, not %" PRId64, gpus.count,
                         options->gpus_max);
    limits.gpus = first_bits(gpus.minors, options->gpus_max);
    const uint32_t roles = options->roles ? options->roles : PEER_ROLE_ALL;
    if (roles & PEER_ROLE_WORKER)
        limits.roles |= 1u << LEASE_ROLE_WORKER;
    if (roles & PEER_ROLE_SERVER)
        limits.roles |= 1u << LEASE_ROLE_SERVER;
    char has[UNITS_TEXT_SIZE], wants[UNITS_TEXT_SIZE];
    if (limits.cores_milli > probe->cores_milli && !is_elsewhere)
        return error_set(error, ERROR_INVALID, "this machine has %" PRId64 " cores, not %g",
                         probe->cores_milli / 1000, (double)limits.cores_milli / 1000);
    if (limits.ram_bytes > probe->ram_bytes && !is_elsewhere)
        return error_set(error, ERROR_INVALID, "this machine has %s of memory, not %s",
                         units_format_bytes(probe->ram_bytes, has),
                         units_format_bytes(limits.ram_bytes, wants));
    if (limits.disk_bytes > probe->disk_bytes)
        return error_set(error, ERROR_INVALID, "the disk has %s free, not %s",
                         units_format_bytes(probe->disk_bytes, has),
                         units_format_bytes(limits.disk_bytes, wants));
    limits.process_bytes = is_elsewhere ? options->functions.process_bytes : 0;
    if (is_elsewhere && limits.process_bytes < function_share_least_bytes())
        return error_set(error, ERROR_INVALID,
                         "%s of this machine do not hold the process of one lease, which has %s",
                         units_format_bytes(limits.process_bytes, has),
                         units_format_bytes(function_share_least_bytes(), wants));
    if (limits.process_bytes > probe->ram_bytes)
        return error_set(error, ERROR_INVALID, "this machine has %s of memory, not %s",
                         units_format_bytes(probe->ram_bytes, has),
                         units_format_bytes(limits.process_bytes, wants));
    *out_limits = limits;
    return 0;
}

/* Under the name it was given; where that is taken, under one that somebody chooses. */
static int enlist_by_name(const struct peer_options *options, struct identity *identity,
                          struct enlist_request *request, struct error *error)
{
    for (;;) {
        *request->out_is_name_taken = false;
        if (enlist(identity, request, error) == 0)
            return 0;
        if (!*request->out_is_name_taken || !options->on_name_taken)
            return -1;
        const char *name = options->on_name_taken(options->context, request->name);
        if (!name)
            return -1;
        request->name = name;
    }
}

static int enlist_with_code(const struct peer_options *options, struct identity *identity,
                            const struct machine_probe *probe, const struct lease_limits *limits,
                            struct error *error)
{
    const struct enrolment *former = identity_enrolment(identity);
    char host_name[HOST_NAME_MAX + 1] = "machine", url[IDENTITY_URL_SIZE];
    if (gethostname(host_name, sizeof(host_name) - 1) < 0)
        return error_set_errno(error, errno, "read the host's name");
    const char *server = options->server_count ? options->servers[0] : former->server_url;
    struct text trimmed = text_of(server);
    while (text_ends_with(trimmed, TEXT("/")))
        trimmed.size--;
    if (trimmed.size == 0)
        return error_set(error, ERROR_INVALID, "which market? give its address with --server");
    if (text_copy(trimmed, url, sizeof(url), error) < 0)
        return error_wrap(error, "the market's address");
    bool is_taken = false;
    struct enlist_request request = {
        .server_url = url,
        .fingerprint = options->fingerprint,
        .code = options->code,
        .name = options->name ? options->name : host_name,
        .probe = probe,
        .cores_milli = limits->cores_milli,
        .ram_bytes = limits->ram_bytes,
        .disk_bytes = limits->disk_bytes,
        .network = limits->network,
        .has_images = limits->has_images,
        .install = options->offers_install ? limits->install : OFFER_INSTALL_NONE,
        .install_max = limits->install,
        .forbids_programs = limits->forbids_programs,
        .roles = options->roles ? options->roles : PEER_ROLE_ALL,
        .minimum_core_micro = options->minimum_core_micro,
        .minimum_ram_micro = options->minimum_ram_micro,
        .when = options->when,
        .zone = options->zone,
        .out_is_name_taken = &is_taken,
    };
    const bool was_here = former->machine != 0 && strcmp(former->server_url, url) == 0;
    if (enlist_by_name(options, identity, &request, error) == 0) {
        log_event(LOG_INFO, "enlisted", "machine=%" PRIu64 " name=%s market=%s",
                  identity_enrolment(identity)->machine, request.name, url);
        return options->on_enlisted ? options->on_enlisted(options->context, error) : 0;
    }
    /* The same command again after a restart: its code is used up, and not needed; nor is a market
     * that is away just now. */
    if (!was_here || (error->code != ERROR_REFUSED && error->code != ERROR_UNAVAILABLE))
        return -1;
    log_event(LOG_INFO, "enlisted_before", "machine=%" PRIu64 " market=%s", former->machine, url);
    return 0;
}

static bool differs(int64_t wanted, int64_t enlisted)
{
    return wanted != 0 && enlisted != 0 && wanted != enlisted;
}

/* A restart lends what was enlisted, so that the market and the machine speak of the same. What the
 * options say now still bounds what runs here: nobody lends more than they ask to. */
static void keep_enlisted(const struct peer_options *options, const struct enrolment *enrolment,
                          struct peer_options *out_options)
{
    *out_options = *options;
    if (!options->cores_milli)
        out_options->cores_milli = enrolment->cores_milli;
    if (!options->ram_bytes)
        out_options->ram_bytes = enrolment->ram_bytes;
    if (!options->disk_bytes)
        out_options->disk_bytes = enrolment->disk_bytes;
    if (!options->roles)
        out_options->roles = (uint32_t)enrolment->roles;
}

static void warn_of_difference(const struct peer_options *options,
                               const struct enrolment *enrolment)
{
    if (!differs(options->cores_milli, enrolment->cores_milli) &&
        !differs(options->ram_bytes, enrolment->ram_bytes) &&
        !differs(options->disk_bytes, enrolment->disk_bytes) &&
        !differs(options->roles, (int64_t)enrolment->roles))
        return;
    log_event(LOG_WARN, "offer_kept",
              "enlisted_cores_milli=%" PRId64 " enlisted_ram_bytes=%" PRId64
              " enlisted_disk_bytes=%" PRId64
              " reason=\"the flags given are the most that is lent; to offer more than was "
              "enlisted: souk offer change\"",
              enrolment->cores_milli, enrolment->ram_bytes, enrolment->disk_bytes);
}

static int check_enlisted(const struct enrolment *enrolment, struct error *error)
{
    if (enrolment->machine == 0)
        return error_set(error, ERROR_INVALID,
                         "this machine is not enlisted: give --server URL --code CODE (\"souk "
                         "machines add\" and the market's page show the whole command), or run "
                         "\"souk lend\" at a terminal to be asked");
    return 0;
}

static int open_identity(const struct peer_options *options, struct identity **out_identity,
                         struct error *error)
{
    if (options->is_new && !options->code)
        return error_set(error, ERROR_INVALID,
                         "--new-identity needs --code: \"souk machines add\" gives one");
    if (options->is_new && identity_forget(options->state_dir, error) < 0)
        return -1;
    AUTO(identity) struct identity *identity = NULL;
    if (identity_open(options->state_dir, &identity, error) < 0 ||
        identity_bind(identity, peer_root(options), options->is_same, error) < 0)
        return -1;
    *out_identity = TAKE(identity);
    return 0;
}

bool peer_is_enlisted(const char *state_dir)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/enrolment.json", state_dir);
    return access(path, F_OK) == 0;
}

/* The file that was started, or what an upgrade has put in its place since. */
static int find_program(char out[PATH_MAX], struct error *error)
{
    const ssize_t size = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (size < 0)
        return error_set_errno(error, errno, "read \"/proc/self/exe\"");
    out[size] = '\0';
    return 0;
}

enum { ARGUMENTS_SIZE_MAX = 1 << 20 };

/* Signals stay blocked: what comes meanwhile is for the daemon that is started. */
static int start_again(const char *program, struct error *error)
{
    struct buffer arguments AUTO_BUFFER;
    buffer_init(&arguments, ARGUMENTS_SIZE_MAX);
    if (file_read("/proc/self/cmdline", &arguments, error) < 0)
        return error_wrap(error, "start again");
    size_t count = 0;
    for (size_t i = 0; i < arguments.size; i++)
        count += arguments.data[i] == '\0';
    char **argv = calloc(count + 1, sizeof(*argv));
    ASSERT(argv);
    char *at = (char *)arguments.data;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(at, "--new-identity") != 0) /* once is enough */
            argv[kept++] = at;
        at += strlen(at) + 1;
    }
    log_event(LOG_INFO, "starting_again", "program=\"%s\"", program);
    execv(program, argv);
    error_set_errno(error, errno, "start \"%s\" again", program);
    free(argv);
    return -1;
}

/* Before the loop can take them they must not end us: a restart asked for early is made later. */
static void block_restart_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static struct keeper_functions keeper_functions(const struct peer_functions *functions)
{
    const struct remote_credentials *credentials = functions->credentials;
    struct keeper_functions told = {.memory_mb = functions->count ? functions->memory_mb : 0,
                                    .time_ms = functions->time_ms,
                                    .keep_warm_ms = functions->keep_warm_ms,
                                    .process_bytes = (uint64_t)functions->process_bytes,
                                    .name = text_of(functions->name),
                                    .url = text_of(functions->url),
                                    .token = text_of(functions->token),
                                    .store = text_of(functions->store)};
    if (!credentials)
        return told;
    told.keys[KEEPER_KEY_ACCESS] = text_of(credentials->access_key);
    told.keys[KEEPER_KEY_SECRET] = text_of(credentials->secret_key);
    told.keys[KEEPER_KEY_SESSION] = text_of(credentials->session_token);
    told.keys[KEEPER_KEY_REGION] = text_of(credentials->region);
    told.keys[KEEPER_KEY_ENDPOINT] = text_of(credentials->endpoint_url);
    return told;
}

/* Leases with a network would be sent here, and fail. Whoever asked for the Internet is told at
 * once. */
static int resolve_network(struct peer_options *options, struct error *error)
{
    if (options->network == OFFER_NETWORK_OPEN)
        return open_network_check(error) < 0 ? error_wrap(error, "--network open") : 0;
    struct error missing;
    if (options->network == OFFER_NETWORK_JOB && tun_check(&missing) < 0) {
        log_event(LOG_WARN, "no_job_network", "reason=\"%s\"", missing.message);
        options->network = OFFER_NETWORK_NONE;
    }
    return 0;
}

static int run(const struct peer_options *given, bool *out_wants_restart, struct error *error)
{
    struct peer_options resolved = *given;
    const struct peer_options *options = &resolved;
    AUTO_FD int lock_fd = -1;
    AUTO_FD int ready_fd = options->ready_fd;
    AUTO(identity) struct identity *identity = NULL;
    AUTO(sandbox_host) struct sandbox_host *sandboxes = NULL;
    const struct probe_options probing = peer_probe_options(options);
    struct machine_probe probe;
    struct lease_limits limits;
    char sdk_folder[PATH_MAX] = "";
    signal(SIGPIPE, SIG_IGN);
    if (resolve_network(&resolved, error) < 0 || peer_make_path(options->state_dir, error) < 0 ||
        lock_state(options->state_dir, &lock_fd, error) < 0 ||
        open_identity(options, &identity, error) < 0 ||
        machine_probe_read(&probing, &probe, error) < 0)
        return -1;
    resolve_shares(&resolved, &probe);
    struct peer_options kept = *options;
    /* A code enlists anew, with what the options say; when it turns out to be used up by this very
     * machine, what it was enlisted with counts. */
    if (!options->code)
        keep_enlisted(options, identity_enrolment(identity), &kept);
    if (read_limits(&kept, &probe, &limits, error) < 0 ||
        open_sandboxes(options, &sandboxes, error) < 0 ||
        (options->sdk && sdk_lay_out(options->sdk, options->state_dir, sdk_folder, error) < 0))
        return -1;
    if (options->code && enlist_with_code(options, identity, &probe, &limits, error) < 0)
        return -1;
    if (check_enlisted(identity_enrolment(identity), error) < 0)
        return -1;
    keep_enlisted(options, identity_enrolment(identity), &kept);
    if (read_limits(&kept, &probe, &limits, error) < 0)
        return -1;
    warn_of_difference(options, identity_enrolment(identity));
    log_event(LOG_INFO, "lending", "cores_milli=%" PRId64 " ram_bytes=%" PRId64 " sandbox=\"%s\"",
              limits.cores_milli, limits.ram_bytes, sandbox_describe(sandboxes));
    struct guard_limits guard;
    guard_limits_wish(&guard, &options->owner, probe.cores_milli, probe.ram_bytes);
    const struct daemon_options daemon = {
        .state_dir = options->state_dir,
        .identity = identity,
        .sandboxes = sandboxes,
        .limits = limits,
        .cache_bytes =
            options->cache_bytes ? options->cache_bytes : cache_bytes_default(limits.disk_bytes),
        .probe = probing,
        .found = &probe,
        .servers = options->servers,
        .server_count = options->server_count,
        .return_ms = options->return_ms,
        .is_direct = options->is_direct,
        .open = options->open,
        .data = options->data,
        .data_count = options->data_count,
        .software = options->software,
        .software_count = options->software_count,
        .sdk_folder = sdk_folder,
        .index_url = options->index_url,
        .functions = keeper_functions(&options->functions),
        .look_ms = options->look_ms,
        .guard = guard,
        .is_blind = options->is_blind,
        .is_metered = options->is_metered,
        .root = peer_root(options),
        .display = options->display,
        .ready_fd = TAKE_FD(ready_fd),
        .stop_fd = options->stop_fd};
    return daemon_run(&daemon, out_wants_restart, error);
}

int peer_run(const struct peer_options *options, struct error *error)
{
    char program[PATH_MAX];
    bool wants_restart = false;
    block_restart_signals();
    if (find_program(program, error) < 0 || run(options, &wants_restart, error) < 0)
        return -1;
    return wants_restart ? start_again(program, error) : 0;
}
