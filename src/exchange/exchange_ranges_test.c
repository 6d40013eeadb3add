/*
 * A model split among servers: the lead and the servers of ranges on one loop, workers with threads
 * of their own, all over encrypted socket pairs.
 *
 * covers client_session.c, range_server.c, range_worker.c, replica.c, server_cut.c, server_ranges.c
 */
#include "exchange/exchange_trainer_internal.h"
#include "exchange/range_server.h"
#include "exchange/replica.h"

#include <inttypes.h>
#include <unistd.h>

enum { TERM = 3, RANGE_FENCE = 20, LEAVE_STEP = 24, MANY_STEPS = 48 };

struct cluster {
    struct bench *bench;
    uint32_t servers;
    struct range_server *others[EXCHANGE_SERVERS_MAX];
    uint32_t range_drops;
    uint32_t ends;
    struct loop_timer *timer, *gate_timer;
    bool (*may_end)(struct cluster *cluster);
    uint32_t lost; /* the server that the timer is about */
    bool is_dead;
    uint32_t deaths_left;
    struct replica *replica;
    bool has_replica;
    uint32_t replica_ends, replica_models;
    uint64_t term; /* of the lead */
    int lead_fd;   /* our copy of the stream between it and the lead */
};

static void on_range_drop(void *context, uint64_t lease, const struct error *reason)
{
    (void)lease, (void)reason;
    ((struct cluster *)context)->range_drops++;
}

static void on_range_end(void *context, const char *reason)
{
    (void)reason;
    ((struct cluster *)context)->ends++;
}

static int find_range_peer(void *context, uint64_t lease, uint64_t fence,
                           struct exchange_peer *out_peer)
{
    return find_peer(((struct cluster *)context)->bench, lease, fence, out_peer);
}

static void pair(int ends[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void lead_attach(struct cluster *cluster, uint32_t server)
{
    struct error error;
    int ends[2];
    pair(ends);
    if (cluster->lead_fd >= 0)
        close(cluster->lead_fd);
    cluster->lead_fd = dup(ends[0]);
    ASSERT_OK(exchange_server_attach_range_take(cluster->bench->server, ends[0], &error));
    ASSERT_OK(
        range_server_attach_lead_take(cluster->others[server], ends[1], cluster->term, &error));
}

static void range_open(struct cluster *cluster, uint32_t server,
                       const struct robust_options *robust)
{
    struct error error;
    struct bench *bench = cluster->bench;
    bench->server_fences[server]++;
    if (bench->server_fences[server] == 1)
        bench->server_fences[server] = RANGE_FENCE;
    struct range_server_options options = {
        .loop = bench->loop,
        .lease = lease_of_server(server),
        .fence = bench->server_fences[server],
        .server = server,
        .servers = cluster->servers,
        .parameter_count = FEATURES,
        .silent_ms = HUNG_MS,
        .robust = *robust,
        .find_peer = find_range_peer,
        .on_drop = on_range_drop,
        .on_end = on_range_end,
        .context = cluster,
    };
    key_of(options.lease, options.key);
    ASSERT_OK(range_server_open(&options, &cluster->others[server], &error));
    lead_attach(cluster, server);
}

/* A stream between a worker and one of the servers, on the worker's thread. */
struct attachment {
    struct worker *worker;
    uint32_t server;
    int fd;
    uint64_t term;
};

static void attach_posted(void *context)
{
    struct attachment *attachment = context;
    worker_attach_take(attachment->worker, attachment->server, attachment->fd, attachment->term);
    free(attachment);
}

static void worker_attach(struct cluster *cluster, struct worker *worker, uint32_t server)
{
    struct error error;
    int ends[2];
    pair(ends);
    struct attachment *attachment = calloc(1, sizeof *attachment);
    assert_non_null(attachment);
    *attachment = (struct attachment){worker, server, ends[1], cluster->term};
    if (server == 0) {
        ASSERT_OK(exchange_server_attach_take(cluster->bench->server, ends[0], &error));
    } else {
        attachment->term = cluster->bench->server_fences[server];
        ASSERT_OK(range_server_attach_take(cluster->others[server], ends[0], &error));
    }
    loop_post(worker->loop, attach_posted, attachment);
}

static void worker_begin(struct cluster *cluster, uint32_t rank,
                         const struct exchange_server_options *options)
{
    struct error error;
    struct bench *bench = cluster->bench;
    struct worker *worker = &bench->workers[rank];
    worker->rank = rank;
    worker->data = &bench->data;
    ASSERT_OK(loop_open(&clock_system, &worker->loop, &error));
    struct exchange_client_options client = {
        .loop = worker->loop,
        .lease = lease_of(rank),
        .fence = FENCE,
        .rank = rank,
        .shard_samples = SAMPLES / WORKERS,
        .samples_max = options->epochs * SAMPLES / WORKERS / EXCHANGE_SHARES,
        .parameter_count = FEATURES,
        .servers = cluster->servers,
        .local_steps = text_equal(options->policy, TEXT("adsp")) ? 0 : 1,
    };
    key_of(client.lease, client.key);
    ASSERT_OK(exchange_client_open(&client, &worker->client, &error));
    for (uint32_t server = 0; server < cluster->servers; server++)
        worker_attach(cluster, worker, server);
}

static struct cluster *cluster_new(uint32_t servers)
{
    struct cluster *cluster = calloc(1, sizeof *cluster);
    assert_non_null(cluster);
    cluster->bench = bench_new();
    cluster->servers = servers;
    cluster->term = TERM;
    cluster->lead_fd = -1;
    return cluster;
}

static void cluster_free(struct cluster *cluster)
{
    if (!cluster)
        return;
    for (uint32_t server = 1; server < EXCHANGE_SERVERS_MAX; server++)
        range_server_free(cluster->others[server]);
    replica_free(cluster->replica);
    loop_timer_free(cluster->timer);
    loop_timer_free(cluster->gate_timer);
    if (cluster->lead_fd >= 0)
        close(cluster->lead_fd);
    bench_free(cluster->bench);
    free(cluster);
}
DEFINE_AUTO(cluster);

static void on_replica_end(void *context, const char *reason)
{
    (void)reason;
    ((struct cluster *)context)->replica_ends++;
}

static void on_replica_model(void *context)
{
    ((struct cluster *)context)->replica_models++;
}

static void replica_attach(struct cluster *cluster)
{
    struct error error;
    int ends[2];
    pair(ends);
    ASSERT_OK(exchange_server_attach_range_take(cluster->bench->server, ends[0], &error));
    ASSERT_OK(replica_attach_take(cluster->replica, ends[1], TERM, &error));
}

static void replica_begin(struct cluster *cluster)
{
    struct error error;
    const uint32_t rank = cluster->servers;
    cluster->bench->server_fences[rank] = RANGE_FENCE;
    struct replica_options options = {
        .loop = cluster->bench->loop,
        .lease = lease_of_server(rank),
        .fence = RANGE_FENCE,
        .servers = cluster->servers,
        .parameter_count = FEATURES,
        .on_model = on_replica_model,
        .on_end = on_replica_end,
        .context = cluster,
    };
    key_of(options.lease, options.key);
    ASSERT_OK(replica_open(&options, &cluster->replica, &error));
}

static struct exchange_server_options cluster_options(struct cluster *cluster, const char *policy)
{
    struct exchange_server_options options = server_options(cluster->bench, policy);
    options.servers = cluster->servers;
    options.term = TERM;
    return options;
}

static void cluster_run(struct cluster *cluster, const struct exchange_server_options *options)
{
    struct error error;
    struct bench *bench = cluster->bench;
    ASSERT_OK(exchange_server_open(options, &bench->server, &error));
    for (uint32_t server = 1; server < cluster->servers; server++)
        range_open(cluster, server, &options->robust);
    if (cluster->has_replica) {
        replica_begin(cluster);
        replica_attach(cluster);
    }
    for (uint32_t i = 0; i < bench->worker_count; i++)
        worker_begin(cluster, i, options);
    bench_finish(bench);
}

static void assert_ended(const struct cluster *cluster, const char *end)
{
    if (strcmp(exchange_end_name(cluster->bench->outcome.end), end) != 0)
        fail_msg("ended with %s: %s", exchange_end_name(cluster->bench->outcome.end),
                 cluster->bench->reason);
}

static void assert_target_reached(struct cluster *cluster)
{
    struct bench *bench = cluster->bench;
    assert_ended(cluster, "target");
    struct evaluation_report again = {.parameters = bench->final};
    struct error error;
    ASSERT_OK(measure(bench, &again, &error));
    assert_true(again.accuracy == bench->outcome.test_accuracy); /* the very model measured */
}

static uint64_t steps_of(const struct cluster *cluster, uint32_t rank)
{
    for (uint32_t i = 0; i < cluster->bench->status.worker_count; i++)
        if (cluster->bench->worker_statuses[i].lease == lease_of(rank))
            return cluster->bench->worker_statuses[i].steps;
    return 0;
}

/* ---- Training -------------------------------------------------------------------------------- */

static void train_alone(uint32_t servers, const char *policy, enum codec codec,
                        float out_model[FEATURES])
{
    AUTO(cluster) struct cluster *cluster = cluster_new(servers);
    struct exchange_server_options options = cluster_options(cluster, policy);
    options.epochs = EPOCHS;
    options.world = 1;
    options.compress.codec = codec;
    cluster->bench->target_accuracy = 0;
    cluster->bench->worker_count = 1;
    cluster->bench->workers[0].step_us = 0;
    cluster_run(cluster, &options);
    assert_ended(cluster, "epochs");
    assert_int_equal(cluster->bench->drops, 0);
    assert_int_equal(steps_of(cluster, 0), cluster->bench->workers[0].status.steps);
    memcpy(out_model, cluster->bench->final, FEATURES * sizeof(float));
}

TEST(a_split_model_is_the_same_bit_for_bit)
{
    static const char *const policies[] = {"bsp", "diloco"};
    for (size_t i = 0; i < 2; i++) {
        float whole[FEATURES], split[FEATURES];
        train_alone(1, policies[i], CODEC_F32, whole);
        for (uint32_t servers = 2; servers <= EXCHANGE_SERVERS_MAX; servers++) {
            train_alone(servers, policies[i], CODEC_F32, split);
            assert_memory_equal(whole, split, sizeof whole);
        }
    }
}

TEST(every_policy_ends_after_its_epochs_with_three_servers)
{
    const char *policy;
    for (uint32_t i = 0; (policy = sync_policy_name_at(i)); i++) {
        AUTO(cluster) struct cluster *cluster = cluster_new(3);
        struct bench *bench = cluster->bench;
        struct exchange_server_options options = cluster_options(cluster, policy);
        options.sync.gamma_ms = 60000;
        options.epochs = EPOCHS;
        bench->target_accuracy = 0;
        cluster_run(cluster, &options);
        assert_ended(cluster, "epochs");
        assert_true(bench->status.epochs >= EPOCHS);
        assert_true(bench->outcome.has_accuracy);
        if (bench->outcome.test_accuracy < 0.7)
            fail_msg("%s: an accuracy of %.3f", policy, bench->outcome.test_accuracy);
        assert_int_equal(bench->drops, 0);
        for (uint32_t rank = 0; rank < WORKERS; rank++) /* who came after the end pushed nothing */
            assert_true(steps_of(cluster, rank) <= bench->workers[rank].status.steps);
    }
}

TEST(split_vectors_made_smaller_train_as_well)
{
    for (enum codec codec = CODEC_F16; codec < CODEC_COUNT; codec++) {
        AUTO(cluster) struct cluster *cluster = cluster_new(3);
        struct exchange_server_options options = cluster_options(cluster, "bsp");
        options.compress = (struct exchange_compress){.codec = codec, .density = 0.3};
        cluster_run(cluster, &options);
        assert_target_reached(cluster);
        assert_int_equal(cluster->bench->drops, 0);
    }
}

TEST(a_split_round_is_joined_robustly)
{
    for (enum robust_kind kind = ROBUST_NORM; kind < ROBUST_KIND_COUNT; kind++) {
        AUTO(cluster) struct cluster *cluster = cluster_new(2);
        struct exchange_server_options options = cluster_options(cluster, "bsp");
        options.robust.kind = kind;
        cluster_run(cluster, &options);
        assert_target_reached(cluster);
        assert_int_equal(cluster->bench->drops, 0);
    }
}

/* ---- Workers come and go --------------------------------------------------------------------- */

static void gate_look(void *context)
{
    struct cluster *cluster = context;
    if (cluster->may_end(cluster))
        pthread_mutex_unlock(&cluster->bench->gate);
    else
        loop_timer_start(cluster->gate_timer, 20); /* clock: poll interval */
}

/* Nothing is measured, so that nothing ends, until this says that it may. */
static void end_only_once(struct cluster *cluster, bool (*may_end)(struct cluster *cluster))
{
    pthread_mutex_lock(&cluster->bench->gate);
    cluster->may_end = may_end;
    cluster->gate_timer = loop_timer_new(cluster->bench->loop, gate_look, cluster);
    loop_timer_start(cluster->gate_timer, 20); /* clock: poll interval */
}

/* As the server counts them, while it runs. */
static uint64_t steps_now(const struct cluster *cluster, uint32_t rank)
{
    const struct exchange_status *status = exchange_server_status(cluster->bench->server);
    for (uint32_t i = 0; i < status->worker_count; i++)
        if (status->workers[i].lease == lease_of(rank))
            return status->workers[i].steps;
    return 0;
}

static bool has_third_left(struct cluster *cluster)
{
    return steps_now(cluster, 2) == LEAVE_STEP && steps_now(cluster, 0) > TURN_STEP;
}

TEST(a_worker_that_dies_or_leaves_stops_nobody)
{
    static const char *const policies[] = {"adsp", "tap", "bsp"};
    for (size_t i = 0; i < 3; i++) {
        AUTO(cluster) struct cluster *cluster = cluster_new(3);
        struct bench *bench = cluster->bench;
        struct exchange_server_options options = cluster_options(cluster, policies[i]);
        options.min_time_ms = 600;
        bench->workers[1].die_at_step = TURN_STEP;
        bench->workers[2].leave_at_step = LEAVE_STEP;
        end_only_once(cluster, has_third_left);
        cluster_run(cluster, &options);
        assert_target_reached(cluster);
        assert_true(bench->workers[0].status.steps > TURN_STEP);
        assert_int_equal(steps_of(cluster, 2), LEAVE_STEP);
    }
}

static void worker_stream_renew(void *context)
{
    struct cluster *cluster = context;
    worker_attach(cluster, &cluster->bench->workers[0], cluster->lost);
    if (--cluster->deaths_left > 0)
        loop_timer_start(cluster->timer, 120); /* clock: amid training */
}

static bool has_first_gone_on(struct cluster *cluster)
{
    return cluster->deaths_left == 0 && steps_now(cluster, 0) > MANY_STEPS;
}

static void a_new_stream_goes_on(const char *policy, uint32_t server)
{
    AUTO(cluster) struct cluster *cluster = cluster_new(3);
    struct bench *bench = cluster->bench;
    struct exchange_server_options options = cluster_options(cluster, policy);
    end_only_once(cluster, has_first_gone_on);
    cluster->lost = server;
    cluster->deaths_left = 4;
    cluster->timer = loop_timer_new(bench->loop, worker_stream_renew, cluster);
    loop_timer_start(cluster->timer, 200); /* clock: amid training */
    cluster_run(cluster, &options);
    assert_target_reached(cluster);
    assert_int_equal(bench->status.worker_count, WORKERS);
    const uint64_t pushed = steps_of(cluster, 0), made = bench->workers[0].status.steps;
    assert_true(pushed > MANY_STEPS && pushed <= made); /* nothing counts twice */
}

TEST(a_worker_with_a_new_stream_to_any_server_goes_on)
{
    a_new_stream_goes_on("bsp", 0);
    a_new_stream_goes_on("bsp", 1);
    a_new_stream_goes_on("tap", 2);
    a_new_stream_goes_on("adsp", 1);
}

/* ---- Servers come and go --------------------------------------------------------------------- */

/* In turn: the server is killed; its successor comes. */
static void server_turn(void *context)
{
    struct cluster *cluster = context;
    struct bench *bench = cluster->bench;
    const struct robust_options none = {0};
    if (!cluster->is_dead) {
        range_server_free(TAKE(cluster->others[cluster->lost]));
        cluster->is_dead = true;
        loop_timer_start(cluster->timer, 100); /* clock: the server stays away */
        return;
    }
    range_open(cluster, cluster->lost, &none);
    for (uint32_t i = 0; i < bench->worker_count; i++)
        worker_attach(cluster, &bench->workers[i], cluster->lost);
    cluster->is_dead = false;
    if (--cluster->deaths_left > 0)
        loop_timer_start(cluster->timer, 201); /* clock: amid training */
}

static bool have_all_gone_on(struct cluster *cluster)
{
    for (uint32_t rank = 0; rank < WORKERS; rank++)
        if (steps_now(cluster, rank) <= MANY_STEPS)
            return false;
    return cluster->deaths_left == 0;
}

static void a_lost_server_is_succeeded(const char *policy)
{
    AUTO(cluster) struct cluster *cluster = cluster_new(3);
    struct bench *bench = cluster->bench;
    struct exchange_server_options options = cluster_options(cluster, policy);
    end_only_once(cluster, have_all_gone_on);
    cluster->lost = 2;
    cluster->deaths_left = 3;
    cluster->timer = loop_timer_new(bench->loop, server_turn, cluster);
    loop_timer_start(cluster->timer, 150); /* clock: amid training */
    cluster_run(cluster, &options);
    assert_target_reached(cluster);
    assert_int_equal(cluster->deaths_left, 0);
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        const uint64_t pushed = steps_of(cluster, rank), made = bench->workers[rank].status.steps;
        assert_true(pushed > MANY_STEPS && pushed <= made);
    }
}

TEST(the_server_of_a_range_that_is_lost_is_succeeded)
{
    a_lost_server_is_succeeded("bsp");
    a_lost_server_is_succeeded("tap");
    a_lost_server_is_succeeded("pace");
    a_lost_server_is_succeeded("adsp");
}

static void lead_link_turn(void *context)
{
    struct cluster *cluster = context;
    if (!cluster->is_dead) {
        shutdown(cluster->lead_fd, SHUT_RDWR);
        cluster->is_dead = true;
        loop_timer_start(cluster->timer, 50); /* clock: the link stays down */
        return;
    }
    lead_attach(cluster, cluster->lost);
    cluster->is_dead = false;
    if (--cluster->deaths_left > 0)
        loop_timer_start(cluster->timer, 151); /* clock: amid training */
}

/* Asked while no worker can have ended. */
static bool have_all_committed(struct cluster *cluster)
{
    for (uint32_t rank = 0; rank < WORKERS; rank++) {
        struct exchange_client_status status;
        exchange_client_status(cluster->bench->workers[rank].client, &status);
        if (status.commits <= MANY_STEPS)
            return false;
    }
    return cluster->deaths_left == 0;
}

TEST(a_server_that_loses_only_the_lead_goes_on)
{
    AUTO(cluster) struct cluster *cluster = cluster_new(3);
    struct bench *bench = cluster->bench;
    struct exchange_server_options options = cluster_options(cluster, "bsp");
    end_only_once(cluster, have_all_committed);
    cluster->lost = 2; /* whose stream was made last */
    cluster->deaths_left = 3;
    cluster->timer = loop_timer_new(bench->loop, lead_link_turn, cluster);
    loop_timer_start(cluster->timer, 150); /* clock: amid training */
    cluster_run(cluster, &options);
    assert_target_reached(cluster);
    assert_int_equal(cluster->deaths_left, 0);
    for (uint32_t rank = 0; rank < WORKERS; rank++)
        assert_true(bench->workers[rank].status.commits > MANY_STEPS);
}

/* ---- A replica ------------------------------------------------------------------------------- */

/* The lead is killed; the replica becomes the lead of the same servers and workers. */
static void lead_turn(void *context)
{
    struct cluster *cluster = context;
    struct bench *bench = cluster->bench;
    struct error error;
    struct replica_model model;
    if (!replica_newest(cluster->replica, &model) || model.done.samples == 0) {
        loop_timer_start(cluster->timer, 50); /* clock: poll interval */
        return;
    }
    const struct exchange_status *status = exchange_server_status(bench->server);
    assert_int_equal(cluster->replica_models, 1);
    assert_true(model.done.samples <= status->samples);
    assert_true(model.done.elapsed_ms <= status->elapsed_ms);
    struct exchange_server_options options = cluster_options(cluster, "bsp");
    options.term = TERM + 1;
    options.parameters = model.parameters;
    options.momentum = model.momentum;
    options.done = model.done;
    exchange_server_free(TAKE(bench->server));
    end_only_once(cluster, have_all_committed); /* not before: the evaluator had to end */
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    replica_free(TAKE(cluster->replica));
    cluster->term = TERM + 1;
    for (uint32_t server = 1; server < cluster->servers; server++)
        lead_attach(cluster, server);
    for (uint32_t i = 0; i < bench->worker_count; i++)
        worker_attach(cluster, &bench->workers[i], 0);
    cluster->is_dead = true;
}

static void a_replica_takes_the_lead(uint32_t servers)
{
    AUTO(cluster) struct cluster *cluster = cluster_new(servers);
    struct bench *bench = cluster->bench;
    struct exchange_server_options options = cluster_options(cluster, "bsp");
    options.min_time_ms = 3600000; /* it does not live to see it */
    cluster->has_replica = true;
    cluster->timer = loop_timer_new(bench->loop, lead_turn, cluster);
    loop_timer_start(cluster->timer, 700); /* clock: amid training */
    cluster_run(cluster, &options);
    assert_target_reached(cluster);
    assert_true(cluster->is_dead);
    for (uint32_t rank = 0; rank < WORKERS; rank++)
        assert_true(bench->workers[rank].status.commits > MANY_STEPS);
}

TEST(a_replica_takes_the_lead_of_servers_and_workers)
{
    a_replica_takes_the_lead(1);
    a_replica_takes_the_lead(3);
}

TEST(a_replica_ends_with_the_lead)
{
    struct error error;
    AUTO(cluster) struct cluster *cluster = cluster_new(1);
    struct exchange_server_options options = cluster_options(cluster, "tap");
    cluster->has_replica = true;
    cluster_run(cluster, &options);
    while (cluster->replica_ends == 0)
        ASSERT_OK(loop_step(cluster->bench->loop, -1, &error));
    assert_int_equal(cluster->replica_models, 1);
}

/* More than the lead's own half: the other server tells of its bytes now and then. */
static bool are_all_bytes_counted(struct cluster *cluster)
{
    const struct exchange_status *status = exchange_server_status(cluster->bench->server);
    const uint64_t own = status->commits * FEATURES / 2 * sizeof(float);
    return own > 0 && status->received_bytes > own * 3 / 2 && status->sent_bytes > own * 3 / 2;
}

TEST(bytes_of_all_servers_are_counted)
{
    AUTO(cluster) struct cluster *cluster = cluster_new(2);
    struct exchange_server_options options = cluster_options(cluster, "tap");
    end_only_once(cluster, are_all_bytes_counted); /* or never */
    cluster_run(cluster, &options);
    assert_target_reached(cluster);
}

TEST(servers_of_ranges_end_with_the_lead)
{
    struct error error;
    AUTO(cluster) struct cluster *cluster = cluster_new(3);
    struct exchange_server_options options = cluster_options(cluster, "tap");
    cluster_run(cluster, &options);
    close(cluster->lead_fd); /* our copy of it */
    cluster->lead_fd = -1;
    while (cluster->ends < 2)
        ASSERT_OK(loop_step(cluster->bench->loop, -1, &error));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_model_is_the_same_bit_for_bit),
        cmocka_unit_test(every_policy_ends_after_its_epochs_with_three_servers),
        cmocka_unit_test(split_vectors_made_smaller_train_as_well),
        cmocka_unit_test(a_split_round_is_joined_robustly),
        cmocka_unit_test(a_worker_that_dies_or_leaves_stops_nobody),
        cmocka_unit_test(a_worker_with_a_new_stream_to_any_server_goes_on),
        cmocka_unit_test(the_server_of_a_range_that_is_lost_is_succeeded),
        cmocka_unit_test(a_server_that_loses_only_the_lead_goes_on),
        cmocka_unit_test(a_replica_takes_the_lead_of_servers_and_workers),
        cmocka_unit_test(a_replica_ends_with_the_lead),
        cmocka_unit_test(bytes_of_all_servers_are_counted),
        cmocka_unit_test(servers_of_ranges_end_with_the_lead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
