/*
 * Leases that outlive the daemon that started them, and keepers that do not.
 * covers keeper.c, keeper_order.c, holding.c, daemon_lease.c, daemon_start.c
 */
#include "peer/channel.h"
#include "peer/daemon_fixture_internal.h"
#include "peer/keeper_message.h"
#include "wire/wire.h"

#include <dirent.h>
#include <poll.h>

enum { LONG_RUN_MS = 3600000, FIRST_RUN_MS = 1000, TICKS_BEYOND = 3 };

static size_t read_proc(const char *pid, const char *name, char *out, size_t size)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd < 0 ? 0 : read(fd, out, size);
    return got > 0 ? (size_t)got : 0;
}

/* Of the keeper of the last lease; 0: there is none. Other tests' keepers have other folders. */
static pid_t find_keeper(const struct market *market)
{
    static char environment[64 << 10];
    char label[64], mark[96], line[256];
    const size_t label_size =
        1 + (size_t)snprintf(label, sizeof(label), "souk%ckeeper%c%" PRIu64 "-1", 0, 0,
                             market->next_lease);
    const size_t mark_size =
        1 + (size_t)snprintf(mark, sizeof(mark), "KEEPER_OF=%s", market->folder);
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;
    while ((entry = readdir(folder))) { // NOLINT(concurrency-mt-unsafe): the stream is not shared
        if (read_proc(entry->d_name, "cmdline", line, sizeof(line)) != label_size ||
            memcmp(line, label, label_size) != 0)
            continue;
        const size_t size = read_proc(entry->d_name, "environ", environment, sizeof(environment));
        if (memmem(environment, size, mark, mark_size))
            found = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    closedir(folder);
    return found;
}

static void assert_nothing_left(struct market *market)
{
    char path[160];
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    wait_for_no_folder(market);
    snprintf(path, sizeof(path), "%s/sandboxes/lease-%" PRIu64 "-1.sandbox", market->state_dir,
             market->next_lease);
    assert_int_not_equal(access(path, F_OK), 0);
    while (find_keeper(market) != 0) {
        assert_true(now_ms() < deadline_ms);
        turn(market);
    }
}

/* The lease has run for two ticks at least when the daemon goes by this signal. */
static void lose_daemon_of(struct market *market, int signal_number, int64_t run_ms)
{
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, run_ms);
    wait_for(market, LEASE_MESSAGE_STREAM_READY, -1);
    wait_for(market, LEASE_MESSAGE_METER, -1);
    wait_for(market, LEASE_MESSAGE_METER, -1);
    kill(market->daemon, signal_number);
    assert_int_equal(wait_for_daemon(market), signal_number == SIGKILL ? 128 + SIGKILL : 0);
    market->seen = market->count;
}

static void lose_daemon(struct market *market, int signal_number)
{
    lose_daemon_of(market, signal_number, 60000);
}

static void assert_ticks_go_on_from(struct market *market, uint64_t index)
{
    for (uint64_t i = index; i < index + 4; i++) {
        const struct meter_message *meter = &wait_for(market, LEASE_MESSAGE_METER, -1)->meter;
        assert_int_equal(meter->tick_index, i);
        assert_meter(market, meter);
    }
}

/* What the daemon that is gone may not have passed on comes again, from the first tick. */
static void assert_taken_up(struct market *market)
{
    const struct lease_message *hello = wait_for(market, LEASE_MESSAGE_HELLO, -1);
    assert_int_equal(hello->hello.running_count, 1);
    assert_int_equal(hello->hello.running[0].lease, market->next_lease);
    assert_ticks_go_on_from(market, 0);
    tell_worker(market, "done\n");
    assert_result(market, &wait_for(market, LEASE_MESSAGE_ARTIFACT, -1)->artifact);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_SUCCEEDED);
    assert_nothing_left(market);
}

static void killed_daemon_is_followed_by_one_that_takes_its_lease_up(void **state)
{
    struct market *market = *state;
    lose_daemon(market, SIGKILL);
    start_daemon(market, "good");
    assert_taken_up(market);
}

static void daemon_that_leaves_says_no_good_bye_and_stops_nothing(void **state)
{
    struct market *market = *state;
    lose_daemon(market, SIGUSR1);
    start_daemon(market, NULL);
    assert_taken_up(market);
}

static void lease_that_ends_without_a_daemon_is_told_by_the_next(void **state)
{
    struct market *market = *state;
    lose_daemon(market, SIGKILL);
    tell_worker(market, "crash\n");
    char path[160];
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    snprintf(path, sizeof(path), "%s/leases/%" PRIu64 "-1/lease", market->state_dir,
             market->next_lease);
    while (access(path, F_OK) == 0) { /* it goes before the last state is kept */
        assert_true(now_ms() < deadline_ms);
        turn(market);
    }
    assert_true(find_keeper(market) > 0);
    start_daemon(market, NULL);
    const struct lease_message *failed = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    assert_int_equal(failed->state.exit_code, 3);
    assert_nothing_left(market);
}

/* Its process has ended well, and there is nobody to take what it left. */
static void lease_whose_results_wait_ends_when_its_keeper_is_told_to(void **state)
{
    struct market *market = *state;
    char byte, path[160];
    lose_daemon_of(market, SIGKILL, LONG_RUN_MS);
    market->chunks = NOT_NOW;
    tell_worker(market, "done\n");
    while (recv(market->stream_fd, &byte, 1, 0) > 0)
        continue; /* until the process is gone */
    snprintf(path, sizeof(path), "%s/leases/%" PRIu64 "-1/lease", market->state_dir,
             market->next_lease);
    assert_int_equal(access(path, F_OK), 0);
    kill(find_keeper(market), SIGTERM);
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    while (access(path, F_OK) == 0) {
        assert_true(now_ms() < deadline_ms);
        turn(market);
    }
    market->chunks = HONEST;
    start_daemon(market, NULL);
    const struct lease_message *failed = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_FAILED);
    assert_non_null(strstr(failed->state.reason.data, "the results could not be sent"));
    assert_nothing_left(market);
}

/* What it would have told goes with it: the market learns from the next daemon that nothing runs.
 */
static void keeper_of_a_lease_that_has_ended_goes_when_it_is_told_to(void **state)
{
    struct market *market = *state;
    lose_daemon_of(market, SIGKILL, LONG_RUN_MS);
    tell_worker(market, "crash\n");
    char path[160];
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    snprintf(path, sizeof(path), "%s/leases/%" PRIu64 "-1/lease", market->state_dir,
             market->next_lease);
    while (access(path, F_OK) == 0) {
        assert_true(now_ms() < deadline_ms);
        turn(market);
    }
    const pid_t keeper = find_keeper(market);
    assert_true(keeper > 0);
    kill(keeper, SIGTERM);
    assert_nothing_left(market);
    start_daemon(market, NULL);
    assert_int_equal(wait_for(market, LEASE_MESSAGE_HELLO, -1)->hello.running_count, 0);
}

enum { GROUPS_MAX = 8, GROUP_SIZE = 300 };

/* Reads the control groups of the last lease's sandbox from its note. Finds none where the user
 * may not make any. */
static size_t read_groups(const struct market *market, char out[GROUPS_MAX][GROUP_SIZE])
{
    char path[160];
    size_t count = 0;
    snprintf(path, sizeof(path), "%s/sandboxes/lease-%" PRIu64 "-1.sandbox", market->state_dir,
             market->next_lease);
    FILE *note = fopen(path, "re");
    assert_non_null(note);
    for (char line[GROUP_SIZE]; fgets(line, sizeof(line), note);)
        if (count < GROUPS_MAX && sscanf(line, "cgroup %299s", out[count]) == 1)
            count++;
    fclose(note);
    return count;
}

static double number_in(const char *folder, const char *name, double *out_second)
{
    char path[GROUP_SIZE + 32];
    double first = 0;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%lf %lf", &first, out_second) < 1) // NOLINT(cert-err34-c): zero will do
        first = 0;
    fclose(file);
    return first;
}

/* Share of a core; 0: this group does not limit the CPU. */
static double share_of(const char *group)
{
    double period = 0, ignored = 0;
    double quota = number_in(group, "cpu.max", &period);
    if (quota == 0) {
        quota = number_in(group, "cpu.cfs_quota_us", &ignored);
        period = number_in(group, "cpu.cfs_period_us", &ignored);
    }
    return period > 0 ? quota / period : 0;
}

static void lease_has_the_cores_that_it_is_paid_for(void **state)
{
    struct market *market = *state;
    char groups[GROUPS_MAX][GROUP_SIZE];
    double share = 0;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    const size_t group_count = read_groups(market, groups);
    if (group_count == 0)
        SKIP("no control groups here");
    for (size_t i = 0; i < group_count && share == 0; i++)
        share = share_of(groups[i]);
    assert_true(share == 0.5);
}

/* Renewed at once; ticks are told beyond the end that it began with. */
static bool outlives(struct market *market, int64_t first_run_ms)
{
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    start_lease(market, first_run_ms);
    renew_lease(market, LONG_RUN_MS);
    const int64_t first_end_ms = clock_utc_ms(&clock_system) + first_run_ms;
    int ticks_beyond = 0;
    while (ticks_beyond < TICKS_BEYOND) {
        assert_true(now_ms() < deadline_ms);
        turn(market);
        for (; market->seen < market->count; market->seen++) {
            const struct lease_message *message = &market->messages[market->seen].message;
            if (message->type == LEASE_MESSAGE_STATE &&
                message->state.lease == market->next_lease &&
                message->state.state > LEASE_RUN_RUNNING)
                return false;
            ticks_beyond +=
                message->type == LEASE_MESSAGE_METER && clock_utc_ms(&clock_system) > first_end_ms;
        }
    }
    return true;
}

/* Where the machine is so busy that it comes to the renewal after the first end, that is later. */
static void lease_that_is_renewed_runs_past_its_first_end(void **state)
{
    struct market *market = *state;
    int64_t first_run_ms = FIRST_RUN_MS;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    while (!outlives(market, first_run_ms)) {
        first_run_ms *= 2;
        assert_true(first_run_ms < HUNG_MS / 2);
    }
    tell_worker(market, "done\n");
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_SUCCEEDED);
    assert_nothing_left(market);
}

static void lease_that_waits_for_its_image_goes_on_when_the_market_comes_back(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    market->has_image = true;
    market->chunks = NOT_NOW;
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_STARTING);
    link_free(TAKE(market->link));
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_STARTING);
    stop_lease(market, 1000);
    const struct lease_message *stopped = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_STOPPED);
    assert_int_equal(stopped->state.lease, market->next_lease);
    assert_nothing_left(market);
}

static void lease_is_lost_with_its_keeper(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    kill(find_keeper(market), SIGKILL);
    const struct lease_message *lost = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_LOST);
    assert_int_equal(lost->state.lease, market->next_lease);
    assert_nothing_left(market);
}

/* As after a power cut, but that the boot is the same. */
static void lease_whose_keeper_went_with_the_daemon_is_lost(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    const pid_t keeper = find_keeper(market);
    kill(market->daemon, SIGKILL);
    wait_for_daemon(market);
    kill(keeper, SIGKILL);
    start_daemon(market, NULL);
    assert_int_equal(wait_for(market, LEASE_MESSAGE_HELLO, -1)->hello.running_count, 0);
    const struct lease_message *lost = wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_LOST);
    assert_int_equal(lost->state.lease, market->next_lease);
    assert_nothing_left(market);
}

static void keeper_that_does_not_answer_is_replaced_by_word_of_its_loss(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    kill(market->daemon, SIGKILL);
    wait_for_daemon(market);
    kill(find_keeper(market), SIGSTOP);
    start_daemon(market, NULL);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_LOST);
    assert_nothing_left(market);
}

/* Speaks to the keeper as the next daemon would. */
static int take_keeper(const struct market *market)
{
    struct error error = {0};
    char folder[160];
    int fd = -1;
    pid_t pid = 0;
    snprintf(folder, sizeof(folder), "%s/leases/%" PRIu64 "-1", market->state_dir,
             market->next_lease);
    ASSERT_OK(channel_connect(folder, &fd, &pid, &error));
    assert_int_equal(pid, find_keeper(market));
    return fd;
}

static void tell_keeper(int fd, const struct keeper_message *message)
{
    struct buffer packet AUTO_BUFFER;
    buffer_init(&packet, LEASE_MESSAGE_SIZE_MAX);
    wire_put_u16(&packet, (uint16_t)message->type);
    keeper_message_encode(message, &packet);
    assert_int_equal(send(fd, packet.data, packet.size, 0), packet.size);
}

static void wait_for_keeper(int fd)
{
    char said[4096];
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, HUNG_MS), 1);
    assert_true(recv(fd, said, sizeof(said), 0) > 0);
}

/* Its end is renewed, and is past already by the market's clock: no machine is too busy to look at
 * the lease before. */
static void expire(struct market *market)
{
    const struct keeper_message take = {.type = KEEPER_MESSAGE_TAKE,
                                        .take = {KEEPER_VERSION, market->next_lease, 1}};
    struct buffer packet AUTO_BUFFER;
    AUTO_FD int fd = take_keeper(market);
    tell_keeper(fd, &take);
    wait_for_keeper(fd);
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_MARKET,
                                             .market = {.ahead_ms = INT64_C(3) * LONG_RUN_MS,
                                                        .server_url = TEXT("http://127.0.0.1:1"),
                                                        .link_address = TEXT("127.0.0.1:1")}});
    buffer_init(&packet, LEASE_MESSAGE_SIZE_MAX);
    wire_put_u16(&packet, LEASE_MESSAGE_RENEW);
    write_renewal(market, INT64_C(2) * LONG_RUN_MS, &packet);
    assert_int_equal(send(fd, packet.data, packet.size, 0), packet.size);
    tell_keeper(fd, &take); /* answered in the order sent */
    wait_for_keeper(fd);
}

static void lease_nobody_takes_up_ends_when_it_expires(void **state)
{
    struct market *market = *state;
    char groups[GROUPS_MAX][GROUP_SIZE];
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, LONG_RUN_MS);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    const size_t group_count = read_groups(market, groups);
    for (size_t i = 0; i < group_count; i++)
        assert_int_equal(access(groups[i], F_OK), 0);
    kill(market->daemon, SIGKILL);
    wait_for_daemon(market);
    assert_true(find_keeper(market) > 0);
    expire(market);
    assert_nothing_left(market);
    for (size_t i = 0; i < group_count; i++)
        assert_int_not_equal(access(groups[i], F_OK), 0);
    start_daemon(market, NULL); /* what only a daemon can clear away */
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
}

/* All that a daemon says to a keeper it has started. */
static void tell_beginning(struct market *market, int fd, const char *leases_dir)
{
    struct error error = {0};
    AUTO(sandbox_host) struct sandbox_host *host = NULL;
    struct buffer sandbox AUTO_BUFFER;
    struct buffer packet AUTO_BUFFER;
    char blobs_dir[160];
    buffer_init(&sandbox, KEEPER_SANDBOX_MAX);
    buffer_init(&packet, LEASE_MESSAGE_SIZE_MAX);
    snprintf(blobs_dir, sizeof(blobs_dir), "%s/orphans-blobs", market->folder);
    ASSERT_OK(sandbox_host_open(market->folder, NULL, &host, &error));
    sandbox_host_export(host, &sandbox);
    struct keeper_message setup = {.type = KEEPER_MESSAGE_SETUP,
                                   .setup = {.machine = MACHINE,
                                             .leases_dir = text_of(leases_dir),
                                             .blobs_dir = text_of(blobs_dir),
                                             .disk_bytes = 64 << 20,
                                             .cache_bytes = 64 << 20,
                                             .sandbox_host = buffer_text(&sandbox)}};
    memcpy(setup.setup.server_public_key, market->public_key, sizeof(market->public_key));
    tell_keeper(fd, &setup);
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_MARKET,
                                             .market = {.server_url = TEXT("http://127.0.0.1:1"),
                                                        .link_address = TEXT("127.0.0.1:1")}});
    wire_put_u16(&packet, LEASE_MESSAGE_START);
    write_start(market, 60000, &packet);
    assert_int_equal(send(fd, packet.data, packet.size, 0), packet.size);
}

/* Else it could run beside the one that the next daemon starts for the same START. */
static void keeper_whose_daemon_went_first_begins_nothing(void **state)
{
    struct market *market = *state;
    struct error error = {0};
    char leases_dir[128], folder[192];
    int pair[2];
    lose_daemon(market, SIGKILL);
    snprintf(leases_dir, sizeof(leases_dir), "%s/orphans", market->folder);
    ASSERT_OK(folder_make(leases_dir, 0700, &error));
    market->next_lease++;
    snprintf(folder, sizeof(folder), "%s/%" PRIu64 "-1", leases_dir, market->next_lease);
    ASSERT_OK(channel_pair(pair, &error));
    tell_beginning(market, pair[0], leases_dir);
    close(pair[0]);
    const pid_t keeper = fork();
    if (keeper == 0) {
        if (dup2(pair[1], KEEPER_CHANNEL_FD) == KEEPER_CHANNEL_FD)
            execl("/proc/self/exe", "souk", "keeper", "orphan", NULL);
        _exit(99);
    }
    close(pair[1]);
    int status = -1;
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    while (waitpid(keeper, &status, WNOHANG) == 0) {
        if (now_ms() > deadline_ms)
            kill(keeper, SIGTERM);
        turn(market);
    }
    assert_true(now_ms() <= deadline_ms);
    assert_int_equal(status, 0);
    assert_int_not_equal(access(folder, F_OK), 0);
    market->next_lease--;
    start_daemon(market, NULL);
    assert_taken_up(market);
}

/* The daemon kills a keeper that has hung up: on a busy machine, it could still be ending. */
static void keeper_hangs_up_when_its_process_has_ended(void **state)
{
    struct market *market = *state;
    char said[4096];
    lose_daemon(market, SIGKILL);
    AUTO_FD int fd = take_keeper(market);
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_TAKE,
                                             .take = {KEEPER_VERSION, market->next_lease, 1}});
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_RELEASE});
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    do {
        assert_int_equal(poll(&wait, 1, HUNG_MS), 1);
    } while (recv(fd, said, sizeof(said), 0) > 0);
    assert_int_equal(find_keeper(market), 0);
    start_daemon(market, NULL);
    assert_int_equal(wait_for(market, LEASE_MESSAGE_HELLO, -1)->hello.running_count, 0);
}

static void expect_echo(struct market *market, bool is_heard)
{
    char echo[8];
    struct pollfd wait = {.fd = market->stream_fd, .events = POLLIN};
    tell_worker(market, "echo\n");
    assert_int_equal(poll(&wait, 1, is_heard ? HUNG_MS : 300), is_heard); /* clock: tests silence */
    if (is_heard)
        assert_int_equal(recv(market->stream_fd, echo, 5, MSG_WAITALL), 5);
}

static void lease_yields_to_the_owner_and_comes_back(void **state)
{
    struct market *market = *state;
    lose_daemon(market, SIGKILL);
    AUTO_FD int fd = take_keeper(market);
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_TAKE,
                                             .take = {KEEPER_VERSION, market->next_lease, 1}});
    expect_echo(market, true);
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_YIELD, .yield = YIELD_FROZEN});
    /* In the order sent: once the second is answered the first is done. */
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_TAKE,
                                             .take = {KEEPER_VERSION, market->next_lease, 1}});
    char hello[4096];
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(poll(&wait, 1, HUNG_MS), 1);
        assert_true(recv(fd, hello, sizeof(hello), 0) > 0);
    }
    expect_echo(market, false);
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_YIELD, .yield = YIELD_LOW});
    char echo[8];
    assert_int_equal(recv(market->stream_fd, echo, 5, MSG_WAITALL), 5);
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_YIELD, .yield = YIELD_FULL});
    expect_echo(market, true);
    start_daemon(market, NULL);
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
}

static void daemon_of_another_version_or_lease_is_not_obeyed(void **state)
{
    struct market *market = *state;
    lose_daemon(market, SIGKILL);
    const struct keeper_take wrong[] = {{KEEPER_VERSION + 1, market->next_lease, 1},
                                        {KEEPER_VERSION, market->next_lease, 2},
                                        {KEEPER_VERSION, market->next_lease + 1, 1}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        AUTO_FD int fd = take_keeper(market);
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        char byte;
        tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_TAKE, .take = wrong[i]});
        assert_int_equal(poll(&wait, 1, HUNG_MS), 1);
        assert_int_equal(recv(fd, &byte, 1, 0), 0);
    }
    AUTO_FD int fd = take_keeper(market);
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    tell_keeper(fd, &(struct keeper_message){.type = KEEPER_MESSAGE_RELEASE}); /* without TAKE */
    assert_int_equal(poll(&wait, 1, HUNG_MS), 1);
    expect_echo(market, true);
    start_daemon(market, NULL);
    assert_taken_up(market);
}

static void keeper_is_small(void **state)
{
    struct market *market = *state;
    wait_for(market, LEASE_MESSAGE_HELLO, -1);
    turn(market);
    start_lease(market, 60000);
    wait_for(market, LEASE_MESSAGE_STATE, LEASE_RUN_RUNNING);
    const int64_t deadline_ms = now_ms() + HUNG_MS;
    int64_t own_kib = 0, resident_kib = 0;
    do { /* until the keeper has freed its start-up memory */
        turn(market);
        resident_kib = resident_kib_of(find_keeper(market), &own_kib);
    } while (resident_kib > RESIDENT_KIB_MAX && now_ms() < deadline_ms);
    print_message("keeper: %d KiB resident, %d of its own\n", (int)resident_kib, (int)own_kib);
    assert_in_range(resident_kib, 1, RESIDENT_KIB_MAX);
}

static int run(void)
{
    const struct CMUnitTest tests[] = {
        DAEMON_TEST(killed_daemon_is_followed_by_one_that_takes_its_lease_up),
        DAEMON_TEST(daemon_that_leaves_says_no_good_bye_and_stops_nothing),
        DAEMON_TEST(lease_that_ends_without_a_daemon_is_told_by_the_next),
        DAEMON_TEST(lease_whose_results_wait_ends_when_its_keeper_is_told_to),
        DAEMON_TEST(keeper_of_a_lease_that_has_ended_goes_when_it_is_told_to),
        DAEMON_TEST(lease_has_the_cores_that_it_is_paid_for),
        DAEMON_TEST(keeper_hangs_up_when_its_process_has_ended),
        DAEMON_TEST(lease_nobody_takes_up_ends_when_it_expires),
        DAEMON_TEST(lease_that_is_renewed_runs_past_its_first_end),
        DAEMON_TEST(lease_that_waits_for_its_image_goes_on_when_the_market_comes_back),
        DAEMON_TEST(lease_is_lost_with_its_keeper),
        DAEMON_TEST(lease_whose_keeper_went_with_the_daemon_is_lost),
        DAEMON_TEST(keeper_that_does_not_answer_is_replaced_by_word_of_its_loss),
        DAEMON_TEST(lease_yields_to_the_owner_and_comes_back),
        DAEMON_TEST(daemon_of_another_version_or_lease_is_not_obeyed),
        DAEMON_TEST(keeper_whose_daemon_went_first_begins_nothing),
        DAEMON_TEST(keeper_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    return daemon_fixture_main(argc, argv, run);
}
