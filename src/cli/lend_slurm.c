#include "cli/lend_slurm.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/connect.h"
#include "cli/lend_slurm_beat.h"
#include "cli/lend_slurm_market.h"
#include "cli/lend_slurm_node.h"
#include "cli/output.h"
#include "sandbox/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/signalfd.h>

enum {
    LOOK_MS = 2000,
    STOP_LOOK_MS = 500,
    STOP_MS = 90000, /* for the nodes' jobs; Slurm ends them then */
};

struct head {
    const struct cli *cli;
    struct lend_slurm_place place;
    struct client *client;
    struct slurm_cluster *cluster;
    struct slurm_memory memory;
    struct lend_slurm_market *market;
    struct lend_slurm_beat *beat;
    struct map leased; /* machines of ours with leases, by name, as the market said last */
    int64_t machines_wanted;
    int lock_fd, signal_fd;
    bool is_slurm_away; /* which is said once */
    const char *last_words;
    size_t failed_count;
};

/* ---- The daemon's folder --------------------------------------------------------------------- */

static int lock_folder(struct head *head, struct error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/lock", head->place.folder);
    head->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (head->lock_fd < 0)
        return error_set_errno(error, errno, "open \"%s\"", path);
    if (flock(head->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(error, ERROR_CONFLICT,
                         "another daemon lends a partition from \"%s\"; give this one its own "
                         "--state-dir",
                         head->place.folder);
    return 0;
}

/* The one kept, or a new one. */
static int read_tag(const struct head *head, char out[SLURM_TAG_SIZE], struct error *error)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/tag", head->place.folder);
    struct buffer kept AUTO_BUFFER;
    buffer_init(&kept, SLURM_TAG_SIZE);
    if (file_read(path, &kept, error) == 0)
        return text_copy(text_trim(buffer_text(&kept)), out, SLURM_TAG_SIZE, error);
    if (error->code != ERROR_NOT_FOUND)
        return -1;
    uint64_t number;
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        return error_set_errno(error, errno, "choose a tag");
    snprintf(out, SLURM_TAG_SIZE, "%016" PRIx64, number);
    const struct text text = text_of(out);
    return file_replace(path, &text, 1, 0600, error);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static bool start_node(struct head *head, struct arena *arena, const char *node, int64_t limit_ms)
{
    struct error error = {0};
    struct lend_slurm_code code;
    struct slurm_start start;
    uint32_t job = 0;
    /* Without a code the market is away or slow; the next look tries again. */
    if (lend_slurm_market_take_code(head->market, &code, &error) < 0) {
        log_event(LOG_DEBUG, "no_code", "node=%s reason=\"%s\"", node, error.message);
        return false;
    }
    if (lend_slurm_prepare(&head->place, &code, arena, node, limit_ms, &start, &error) < 0 ||
        slurm_cluster_start(head->cluster, &start, &job, &error) < 0) {
        log_event(LOG_WARN, "node_not_started", "node=%s reason=\"%s\"", node, error.message);
        slurm_memory_fail(&head->memory, node, clock_utc_ms(&clock_system));
        return true;
    }
    slurm_memory_start(&head->memory, job, node, clock_utc_ms(&clock_system));
    log_event(LOG_INFO, "node_started", "node=%s slurm_job=%" PRIu32 " limit_s=%" PRId64, node, job,
              limit_ms / 1000);
    return true;
}

/* False when no more can be started now. */
static bool do_step(struct head *head, struct arena *arena, const struct slurm_state *state,
                    const struct slurm_step *step)
{
    const char *node = state->nodes[step->node].name;
    if (step->kind == SLURM_STEP_START)
        return start_node(head, arena, node, step->limit_ms);
    const bool is_kill = step->kind == SLURM_STEP_KILL;
    struct error error = {0};
    if (slurm_cluster_end(head->cluster, step->job, is_kill, &error) < 0)
        log_event(LOG_WARN, "node_not_ended", "node=%s slurm_job=%" PRIu32 " reason=\"%s\"", node,
                  step->job, error.message);
    else
        log_event(LOG_INFO, is_kill ? "node_killed" : "node_yielded",
                  "node=%s slurm_job=%" PRIu32 " why=%s waiting_job=%" PRIu32, node, step->job,
                  slurm_reason_name(step->reason), step->waiting_job);
    return true;
}

/* ---- A look ---------------------------------------------------------------------------------- */

static bool is_leased(const struct head *head, struct arena *arena, const char *node)
{
    const char *name = lend_slurm_node_name(head->place.lend, arena, node);
    return map_get_text(&head->leased, text_of(name)) != NULL;
}

/* Why nothing is lent, when nothing is; said when it changes. */
static void say_standing(struct head *head, const struct slurm_state *state,
                         const struct slurm_wish *wish)
{
    size_t lent = 0, idle = 0;
    for (size_t i = 0; i < state->node_count; i++) {
        lent += state->nodes[i].is_lent;
        idle += state->nodes[i].is_lent && state->nodes[i].is_idle;
    }
    const char *words = "lending";
    if (!slurm_cluster_is_up(head->cluster))
        words = "the partition is not up";
    else if (state->agent_count == 0 && idle == 0)
        words = "no node of the partition is idle";
    else if (state->agent_count == 0 && wish->machines_wanted == 0 && wish->standby == 0)
        words = "no job of the market's waits";
    if (head->last_words == words)
        return;
    head->last_words = words;
    log_event(LOG_INFO, "partition", "name=%s nodes=%zu idle=%zu lending=%zu state=\"%s\"",
              head->place.lend->options->partition, lent, idle, state->agent_count, words);
}

static void say_failures(struct head *head)
{
    if (head->memory.failed_count != head->failed_count)
        log_event(LOG_WARN, "node_failed", "node=%s reason=\"%s/%s/lend.log says why\"",
                  head->memory.failed_node, head->place.folder, head->memory.failed_node);
    head->failed_count = head->memory.failed_count;
}

static struct slurm_wish make_wish(const struct head *head, bool is_stopping)
{
    const struct lend_slurm_options *options = head->place.lend->options;
    const int64_t most_ms = slurm_cluster_limit_ms(head->cluster);
    const bool is_up = slurm_cluster_is_up(head->cluster);
    return (struct slurm_wish){
        .machines_wanted =
            is_up ? (uint32_t)(head->machines_wanted < UINT32_MAX ? head->machines_wanted
                                                                  : UINT32_MAX)
                  : 0,
        .standby = is_up ? (uint32_t)options->standby : 0,
        .node_max = options->node_max ? (uint32_t)options->node_max : UINT32_MAX,
        .limit_ms = options->limit_ms < most_ms ? options->limit_ms : most_ms,
        .is_stopping = is_stopping};
}

/* Returns how many agents there were; -1 while Slurm does not answer. */
static int look(struct head *head, bool is_stopping, size_t *out_agents, struct error *error)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct slurm_state state;
    struct slurm_agent *agents = NULL;
    if (slurm_cluster_look(head->cluster, &state, &agents, error) < 0)
        return -1;
    const bool is_heard =
        lend_slurm_market_read(head->market, &head->machines_wanted, &head->leased);
    for (size_t i = 0; i < state.agent_count; i++)
        agents[i].is_leased = !is_heard || is_leased(head, arena, state.nodes[agents[i].node].name);
    const struct slurm_wish wish = make_wish(head, is_stopping);
    if (!is_stopping)
        say_standing(head, &state, &wish);
    struct slurm_step *steps = memory_zeroed(state.node_count + state.agent_count, sizeof(*steps));
    const size_t count =
        slurm_plan(&state, &wish, clock_utc_ms(&clock_system), &head->memory, steps);
    say_failures(head);
    for (size_t i = 0; i < count && do_step(head, arena, &state, &steps[i]); i++)
        ;
    free(steps);
    *out_agents = state.agent_count;
    return 0;
}

/* After the first look Slurm may be away for a while, and the partition too. */
static void look_again(struct head *head, bool is_stopping, size_t *out_agents)
{
    struct error error = {0};
    if (look(head, is_stopping, out_agents, &error) < 0) {
        if (!head->is_slurm_away)
            log_event(LOG_WARN, "slurm_away", "reason=\"%s\"", error.message);
        head->is_slurm_away = true;
        return;
    }
    if (head->is_slurm_away)
        log_event(LOG_INFO, "slurm_back", "partition=%s", head->place.lend->options->partition);
    head->is_slurm_away = false;
}

/* ---- From start to end ----------------------------------------------------------------------- */

static int open_signals(struct head *head, struct error *error)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    head->signal_fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (head->signal_fd < 0)
        return error_set_errno(error, errno, "wait for signals");
    return 0;
}

/* Whether it was asked to stop meanwhile. */
static bool wait_for_signal(const struct head *head, int timeout_ms)
{
    struct pollfd polled = {.fd = head->signal_fd, .events = POLLIN};
    struct signalfd_siginfo information;
    return poll(&polled, 1, timeout_ms) > 0 &&
           read(head->signal_fd, &information, sizeof(information)) > 0;
}

static int stop(struct head *head, size_t agents, struct error *error)
{
    log_event(LOG_INFO, "stopping", "nodes=%zu", agents);
    const int64_t until_ns = clock_monotonic_ns(&clock_system) + INT64_C(1000000) * STOP_MS;
    look_again(head, /* is_stopping= */ true, &agents);
    while (agents > 0 || head->is_slurm_away) {
        if (clock_monotonic_ns(&clock_system) > until_ns)
            return error_set(error, ERROR_UNAVAILABLE,
                             "jobs of Slurm's are left, which end by themselves within a minute: "
                             "squeue --name " SLURM_AGENT_NAME);
        wait_for_signal(head, STOP_LOOK_MS);
        look_again(head, /* is_stopping= */ true, &agents);
    }
    return 0;
}

static int run_head(struct head *head, struct error *error)
{
    size_t agents = 0;
    if (look(head, /* is_stopping= */ false, &agents, error) < 0)
        return -1;
    if (head->cli->common.json)
        output_json(TEXT("{\"ready\":true}"));
    while (!wait_for_signal(head, LOOK_MS))
        look_again(head, /* is_stopping= */ false, &agents);
    return stop(head, agents, error);
}

static int open_head(struct head *head, char program[PATH_MAX], char tag[SLURM_TAG_SIZE],
                     struct error *error)
{
    const struct lend_slurm_options *options = head->place.lend->options;
    const ssize_t size = readlink("/proc/self/exe", program, PATH_MAX - 1);
    if (size < 0)
        return error_set_errno(error, errno, "find this program");
    program[size] = '\0';
    head->place.program = program;
    if (cli_connect(head->cli, /* needs_token= */ true, &head->client, error) < 0 ||
        file_make_folders(head->place.lend->state_dir, 0700, error) < 0 ||
        folder_make(head->place.folder, 0700, error) < 0 || lock_folder(head, error) < 0 ||
        read_tag(head, tag, error) < 0)
        return -1;
    const struct slurm_cluster_options cluster = {
        .configuration = options->configuration, .partition = options->partition, .tag = tag};
    /* Signals are blocked before there are threads. */
    if (open_signals(head, error) < 0 || slurm_cluster_open(&cluster, &head->cluster, error) < 0 ||
        lend_slurm_market_open(head->client, &head->market, error) < 0)
        return -1;
    return lend_slurm_beat_open(arena_format(head->cli->arena, "%s/beat", head->place.folder),
                                &head->beat, error);
}

int lend_slurm_run(const struct cli *cli, const struct lend_slurm *lend, struct error *error)
{
    char program[PATH_MAX], tag[SLURM_TAG_SIZE];
    struct head head = {
        .cli = cli,
        .place = {.cli = cli,
                  .lend = lend,
                  .folder = arena_format(cli->arena, "%s/slurm", lend->state_dir)},
        .lock_fd = -1,
        .signal_fd = -1,
    };
    slurm_memory_init(&head.memory);
    map_init(&head.leased);
    int result = open_head(&head, program, tag, error);
    if (result == 0)
        result = run_head(&head, error);
    lend_slurm_beat_free(head.beat);
    lend_slurm_market_free(head.market);
    slurm_cluster_free(head.cluster);
    client_free(head.client);
    slurm_memory_done(&head.memory);
    map_done(&head.leased);
    if (head.signal_fd >= 0)
        close(head.signal_fd);
    if (head.lock_fd >= 0)
        close(head.lock_fd);
    return result;
}
