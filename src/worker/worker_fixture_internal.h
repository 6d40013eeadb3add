/*
 * Worker fixture, for tests: the processes of a job, played at by a daemon that hands streams over.
 */
#pragma once

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "base/scope.h"
#include "runtime/child_message.h"
#include "runtime/native.h"
#include "testing/testing.h"
#include "train/checkpoint.h"
#include "train/safetensors.h"
#include "worker/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORKERS = 3,
    SIDE = 28,
    CLASSES = 10,
    TRAIN = 900,
    TEST_RECORDS = 300,
    FENCE = 2,
    SERVER = WORKERS, /* index of the parameter server, the lead; others follow */
    SERVERS_MAX = 4,
    PROCESSES = WORKERS + SERVERS_MAX,
    STEPS_BEFORE = 1000000, /* more than a test makes */
};

struct process {
    pid_t pid;
    int control;
    char data[80], out[80];
    bool is_ready, is_done, is_ok;
    char message[256];
    int status; /* exit status */
    uint32_t reports, artifacts;
    struct worker_report worker;
    struct server_report server;
    struct server_report_worker workers[WORKERS]; /* by rank */
    uint64_t accepted[WORKERS];                   /* summed over all reports, by rank */
    int64_t first_step_ms;
};

struct work_job {
    bool is_resumed; /* from checkpoints of which the newest is torn */
    char folder[64];
    struct arena *arena;
    struct job_spec spec;
    struct process processes[PROCESSES];
    uint32_t server_count; /* with the replica */
    int64_t started_ms;
};

/* --- data: one bright block per class, under noise --- */

static inline void put_u32_big(struct buffer *buffer, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        buffer_append_byte(buffer, (uint8_t)(value >> shift));
}

static inline void file_write(const char *folder, const char *name, const struct buffer *bytes)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    AUTO_FILE FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes->data, 1, bytes->size, file), bytes->size);
}

static inline void data_write(const char *folder, const char *split, uint32_t count, uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    struct buffer images AUTO_BUFFER;
    struct buffer labels AUTO_BUFFER;
    buffer_init(&images, 16 + (size_t)count * SIDE * SIDE);
    buffer_init(&labels, 8 + count);
    put_u32_big(&images, 0x803);
    put_u32_big(&images, count);
    put_u32_big(&images, SIDE);
    put_u32_big(&images, SIDE);
    put_u32_big(&labels, 0x801);
    put_u32_big(&labels, count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t label = (uint32_t)random_below(&random, CLASSES);
        buffer_append_byte(&labels, (uint8_t)label);
        for (uint32_t pixel = 0; pixel < SIDE * SIDE; pixel++) {
            const bool is_bright =
                pixel / SIDE / 6 == label / 5 + 1 && pixel % SIDE / 5 == label % 5;
            buffer_append_byte(&images,
                               (uint8_t)((is_bright ? 70 : 0) + random_below(&random, 150)));
        }
    }
    char name[40];
    snprintf(name, sizeof name, "%s-images", split);
    file_write(folder, name, &images);
    snprintf(name, sizeof name, "%s-labels", split);
    file_write(folder, name, &labels);
}

/* --- the daemon's part --- */

static inline uint64_t lease_of(uint32_t index)
{
    return 10 + index;
}

/* Of a later server it is higher. */
static inline uint64_t fence_of(uint32_t index)
{
    return index > SERVER ? FENCE + index : FENCE;
}

static inline struct child_peer peer_of(uint32_t index)
{
    struct child_peer peer = {.lease = lease_of(index), .fence = fence_of(index), .rank = index};
    if (index >= SERVER) {
        peer.role = LEASE_ROLE_SERVER;
        peer.rank = index - SERVER;
    }
    memset(peer.key, (int)(index + 1), sizeof peer.key);
    return peer;
}

static inline pid_t process_fork(struct process *process, int child_fd)
{
    fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    char fd[16];
    snprintf(fd, sizeof fd, "%d", child_fd);
    char name[] = "worker", a[] = "--control-fd", b[] = "--data", c[] = "--out";
    char *argv[] = {name, a, fd, b, process->data, c, process->out, NULL};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* ends with the test, however that ends */
    _exit(worker_main(7, argv));
}

static inline void send_peer(struct work_job *job, uint32_t index, uint32_t peer)
{
    struct error error;
    const struct child_message message = {.kind = CHILD_PEER, .peer = peer_of(peer)};
    ASSERT_OK(child_message_send(job->processes[index].control, &message, 1000, &error));
}

static inline void send_config(struct work_job *job, uint32_t index, const struct job_spec *spec)
{
    struct error error;
    struct buffer json AUTO_BUFFER;
    buffer_init(&json, CHILD_LEASE_JSON_MAX);
    const bool is_server = index >= SERVER;
    const struct native_lease lease = {
        .lease = lease_of(index),
        .fence = fence_of(index),
        .job = 1,
        .machine = index + 1,
        .role = is_server ? LEASE_ROLE_SERVER : LEASE_ROLE_WORKER,
        .rank = peer_of(index).rank,
        .world = WORKERS,
        .cores_milli = 250,
        .ram_bytes = 256 << 20,
        .disk_bytes = 1 << 30,
        .expires_ms = 1900000000000,
    };
    ASSERT_OK(native_lease_write(spec, &lease, &json, &error));
    struct child_peer peers[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++)
        peers[i] = peer_of(i);
    /* A replica knows nobody before it leads. */
    const bool is_known = is_server && lease.rank < spec->sync.servers;
    struct child_message config = {.kind = CHILD_CONFIG};
    config.config.lease_json = buffer_text(&json);
    memcpy(config.config.key, peer_of(index).key, CHILD_KEY_SIZE);
    config.config.peers = peers;
    /* The last one is told later, by PEER. */
    config.config.peer_count = is_known ? WORKERS - 1 : 0;
    ASSERT_OK(child_message_send(job->processes[index].control, &config, 1000, &error));
    if (is_known)
        send_peer(job, index, WORKERS - 1);
    for (uint32_t i = SERVER + 1; index == SERVER && i < SERVER + job->server_count; i++)
        send_peer(job, index, i);
}

/* The newest is no checkpoint at all. */
static inline void checkpoints_leave(const char *folder)
{
    enum { COUNT = 7850 };
    static float zero[COUNT];
    struct error error;
    struct checkpoint checkpoint = {.step = STEPS_BEFORE,
                                    .samples = UINT64_C(16) * STEPS_BEFORE,
                                    .parameter_count = COUNT,
                                    .parameters = zero,
                                    .velocity = zero};
    model_spec_default(MODEL_LOGISTIC, &checkpoint.spec);
    char path[160];
    snprintf(path, sizeof path, "%s/" LEASE_CHECKPOINT_BEFORE_NAME, folder);
    ASSERT_OK(checkpoint_write(path, &checkpoint, &error));
    struct buffer torn AUTO_BUFFER;
    buffer_init(&torn, 64);
    buffer_append(&torn, "torn", 4);
    file_write(folder, LEASE_CHECKPOINT_NAME, &torn);
}

static inline void process_start(struct work_job *job, uint32_t index, const struct job_spec *spec)
{
    struct error error;
    struct process *process = &job->processes[index];
    int sockets[2];
    ASSERT_OK(child_socket_pair(sockets, &error));
    process->control = sockets[0];
    snprintf(process->data, sizeof process->data, "%s/data%u", job->folder, index);
    snprintf(process->out, sizeof process->out, "%s/out%u", job->folder, index);
    assert_int_equal(mkdir(process->data, 0700), 0);
    if (index >= SERVER)
        data_write(process->data, "test", TEST_RECORDS, 99);
    else
        data_write(process->data, "train", TRAIN / WORKERS, index);
    if (index == SERVER && job->is_resumed)
        checkpoints_leave(process->data);
    process->pid = process_fork(process, sockets[1]);
    close(sockets[1]);
    send_config(job, index, spec);
}

/* Between who dials and the server that is dialled, which has this rank. */
static inline void stream_hand_over(struct work_job *job, uint32_t dialler, uint32_t server,
                                    uint32_t rank)
{
    struct error error;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    AUTO_FD int near = ends[0];
    AUTO_FD int far = ends[1];
    struct child_message message = {.kind = CHILD_STREAM,
                                    .stream = {.peer_lease = lease_of(server),
                                               .peer_fence = fence_of(server),
                                               .peer_role = LEASE_ROLE_SERVER,
                                               .peer_rank = rank,
                                               .fd = near}};
    ASSERT_OK(child_message_send(job->processes[dialler].control, &message, 1000, &error));
    const struct child_peer peer = peer_of(dialler);
    message.stream = (struct child_stream){.peer_lease = peer.lease,
                                           .peer_fence = peer.fence,
                                           .peer_role = peer.role,
                                           .peer_rank = peer.rank,
                                           .fd = far};
    ASSERT_OK(child_message_send(job->processes[server].control, &message, 1000, &error));
}

static inline void report_take(struct work_job *job, struct process *process, struct text json)
{
    struct error error;
    process->reports++;
    if (process < &job->processes[SERVER]) {
        ASSERT_OK(json_read(job->arena, json, &worker_report_schema, &process->worker, &error));
        return;
    }
    assert_false(process->server.is_final); /* nothing comes after it */
    ASSERT_OK(json_read(job->arena, json, &server_report_schema, &process->server, &error));
    assert_in_range(process->server.workers.count, 0, WORKERS);
    const struct server_report_worker *items = process->server.workers.items;
    for (size_t i = 0; i < process->server.workers.count; i++) {
        assert_in_range(items[i].lease, lease_of(0), lease_of(WORKERS - 1));
        const uint64_t rank = items[i].lease - lease_of(0);
        process->workers[rank] = items[i];
        process->accepted[rank] += items[i].accepted_pushes;
    }
}

static inline void message_take(struct work_job *job, struct process *process,
                                const struct child_message *message)
{
    struct error error;
    switch (message->kind) {
    case CHILD_READY:
        process->is_ready = true;
        return;
    case CHILD_REPORT:
        report_take(job, process, message->report.json);
        return;
    case CHILD_ARTIFACT:
        process->artifacts++;
        return;
    case CHILD_DONE:
        process->is_done = true;
        process->is_ok = message->done.is_ok;
        ASSERT_OK(
            text_copy(message->done.message, process->message, sizeof process->message, &error));
        return;
    case CHILD_CALL: /* no lease of these has functions */
    case CHILD_CALLED:
    case CHILD_CONFIG:
    case CHILD_CHECKPOINTS:
    case CHILD_KEPT:
    case CHILD_WANTED:
    case CHILD_STREAM:
    case CHILD_PEER:
    case CHILD_STOP:
        break;
    }
    fail_msg("a message that such a worker does not send: %d", (int)message->kind);
}

/* One message of any process; a closed socket is waited for. */
static inline void job_turn(struct work_job *job)
{
    struct pollfd polls[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++)
        polls[i] = (struct pollfd){.fd = job->processes[i].control, .events = POLLIN};
    const int ready = poll(polls, PROCESSES, HUNG_MS);
    if (ready <= 0)
        fail_msg("nothing happened for %d ms", HUNG_MS);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        struct process *process = &job->processes[i];
        if (polls[i].revents == 0)
            continue;
        struct child_message message;
        struct error error;
        bool has_ended;
        if (child_message_receive(process->control, job->arena, &message, &has_ended, &error) ==
            0) {
            message_take(job, process, &message);
        } else if (has_ended) {
            int status;
            assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
            process->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            process->pid = 0;
            close(process->control);
            process->control = -1;
        }
    }
}

static inline bool is_all_over(const struct work_job *job)
{
    for (uint32_t i = 0; i < PROCESSES; i++)
        if (job->processes[i].pid > 0)
            return false;
    return true;
}

static inline struct work_job *job_start_from(const char *train, const char *sync, bool is_resumed)
{
    struct error error;
    struct work_job *job = calloc(1, sizeof *job);
    assert_non_null(job);
    job->is_resumed = is_resumed;
    job->arena = arena_new(0);
    snprintf(job->folder, sizeof job->folder, "/tmp/souk_worker_test_XXXXXX");
    assert_non_null(mkdtemp(job->folder));
    static const char hash[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const char *json = arena_format(
        job->arena,
        "{\"name\":\"t\",\"num_nodes\":3,\"train\":{\"data\":\"fashion-mnist\",%s},\"sync\":{%s},"
        "\"market\":{\"max_run_time\":\"60s\"},\"inputs\":["
        "{\"name\":\"train-images\",\"split\":\"train\",\"manifest\":\"%s\",\"records\":%d},"
        "{\"name\":\"test-images\",\"split\":\"test\",\"manifest\":\"%s\",\"records\":%d}]}",
        train, sync, hash, TRAIN, hash, TEST_RECORDS);
    ASSERT_OK(job_spec_read(job->arena, text_of(json), &job->spec, &error));
    job->started_ms = clock_utc_ms(&clock_system);
    for (uint32_t i = 0; i < PROCESSES; i++)
        job->processes[i].control = -1;
    job->server_count = (uint32_t)job->spec.sync.servers + job->spec.sync.replica;
    assert_in_range(job->server_count, 1, SERVERS_MAX);
    for (uint32_t i = 0; i < SERVER + job->server_count; i++)
        process_start(job, i, &job->spec);
    for (uint32_t i = 0; i < WORKERS; i++)
        for (uint32_t rank = 0; rank < job->spec.sync.servers; rank++)
            stream_hand_over(job, i, SERVER + rank, rank);
    for (uint32_t i = 1; i < job->server_count; i++)
        stream_hand_over(job, SERVER + i, SERVER, 0);
    return job;
}

static inline struct work_job *job_start(const char *train, const char *sync)
{
    return job_start_from(train, sync, /* is_resumed= */ false);
}

static inline void work_job_free(struct work_job *job)
{
    if (!job)
        return;
    for (uint32_t i = 0; i < PROCESSES; i++) {
        struct process *process = &job->processes[i];
        if (process->pid > 0) {
            kill(process->pid, SIGKILL);
            waitpid(process->pid, NULL, 0);
        }
        if (process->control >= 0)
            close(process->control);
        static const char *const names[] = {"train-images",
                                            "train-labels",
                                            "test-images",
                                            "test-labels",
                                            LEASE_CHECKPOINT_NAME,
                                            LEASE_CHECKPOINT_BEFORE_NAME,
                                            ""};
        static const char *const outs[] = {"model.safetensors", "card.json", "checkpoint", ""};
        char path[160];
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            snprintf(path, sizeof path, "%s/%s", process->data, names[k]);
            remove(path);
        }
        for (size_t k = 0; k < sizeof outs / sizeof *outs; k++) {
            snprintf(path, sizeof path, "%s/%s", process->out, outs[k]);
            remove(path);
        }
    }
    assert_int_equal(rmdir(job->folder), 0);
    arena_free(job->arena);
    free(job);
}
DEFINE_AUTO(work_job);

static inline void job_finish(struct work_job *job)
{
    while (!is_all_over(job))
        job_turn(job);
}
