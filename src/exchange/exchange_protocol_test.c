/* A parameter server, and one worker that is played by hand on its own loop: who breaks the
 * protocol, is cut off, is silent or comes back. */
#include "exchange/client_internal.h"
#include "exchange/exchange_fixture_internal.h"
#include "exchange/server_internal.h"

#include <unistd.h>

struct hand {
    struct link *link;
    bool is_open, is_closed;
    uint32_t models, offers;
    size_t data_bytes;
    struct error reason;
};

static void hand_on_open(struct link *link, struct text identity, void *context)
{
    (void)link, (void)identity;
    ((struct hand *)context)->is_open = true;
}

static void hand_on_frame(struct link *link, uint16_t type, struct text payload, void *context)
{
    (void)link;
    struct hand *hand = context;
    hand->models += type == EXCHANGE_MODEL;
    hand->offers += type == EXCHANGE_OFFER;
    if (type == EXCHANGE_DATA)
        hand->data_bytes += payload.size - 8;
}

static void hand_on_close(struct link *link, const struct error *reason, void *context)
{
    (void)link;
    struct hand *hand = context;
    hand->is_closed = true;
    if (reason)
        hand->reason = *reason;
}

static void hand_open(struct bench *bench, struct hand *hand, uint64_t key_lease)
{
    struct error error;
    uint8_t key[LINK_KEY_SIZE];
    key_of(key_lease, key);
    int fd;
    stream_open(bench, &fd);
    const struct link_options options = {
        .loop = bench->loop,
        .identity = "lease:100:4",
        .key = key,
        .callbacks = {hand_on_open, hand_on_frame, hand_on_close, NULL},
        .context = hand,
    };
    *hand = (struct hand){0};
    ASSERT_OK(link_open_take(&options, fd, &hand->link, &error));
}

static void hand_send(struct hand *hand, const struct exchange_message *message)
{
    struct error error;
    struct buffer payload AUTO_BUFFER;
    buffer_init(&payload, 4096);
    exchange_message_encode(&payload, message);
    ASSERT_OK(link_send_text(hand->link, (uint16_t)message->type, buffer_text(&payload), &error));
}

static void bench_turn(struct bench *bench)
{
    struct error error;
    ASSERT_OK(loop_step(bench->loop, -1, &error));
}

#define RUN_UNTIL(bench, condition)                                                                \
    while (!(condition))                                                                           \
    bench_turn(bench)

static struct bench *hand_bench(void)
{
    struct error error;
    struct bench *bench = bench_new();
    const struct exchange_server_options options = server_options(bench, "tap");
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    return bench;
}

static const struct exchange_message join = {
    .type = EXCHANGE_JOIN,
    .join = {.rank = 0, .shard_samples = 200, .parameter_count = FEATURES, .servers = 1}};

TEST(a_wrong_lease_key_is_refused)
{
    AUTO(bench) struct bench *bench = hand_bench();
    struct hand hand;
    hand_open(bench, &hand, 999);
    RUN_UNTIL(bench, hand.is_closed && bench->drops == 1);
    assert_false(hand.is_open);
    assert_int_equal(exchange_server_status(bench->server)->worker_count, 0);
    link_free(hand.link);
}

static void assert_dropped(struct bench *bench, const struct exchange_message *first,
                           const struct exchange_message *second, struct text data,
                           const char *reason)
{
    struct hand hand;
    struct error error;
    const uint32_t drops = bench->drops;
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    if (first)
        hand_send(&hand, first);
    if (second)
        hand_send(&hand, second);
    if (data.size > 0)
        ASSERT_OK(link_send_text(hand.link, EXCHANGE_DATA, data, &error));
    RUN_UNTIL(bench, hand.is_closed && bench->drops == drops + 1);
    if (!strstr(bench->drop_reason, reason))
        fail_msg("dropped with \"%s\", not \"%s\"", bench->drop_reason, reason);
    link_free(hand.link);
    assert_int_equal(exchange_server_status(bench->server)->member_count, 0);
}

/* A vector in which one float has these bits, and all others are 0. */
static struct text run_with(uint32_t bits)
{
    static char run[8 + FEATURES * sizeof(float)];
    memset(run, 0, sizeof run);
    memcpy(run + sizeof run - sizeof bits, &bits, sizeof bits);
    return (struct text){run, sizeof run};
}

TEST(who_breaks_the_protocol_is_dropped)
{
    AUTO(bench) struct bench *bench = hand_bench();
    const struct exchange_message push = {.type = EXCHANGE_PUSH, .push = {.number = 1, .steps = 1}};
    const struct exchange_message stop = {.type = EXCHANGE_STOP};
    const struct exchange_message want = {.type = EXCHANGE_WANT};
    struct exchange_message other_model = join;
    other_model.join.parameter_count = 7;
    const struct text nothing = {0};
    assert_dropped(bench, &push, NULL, nothing, "out of turn");
    assert_dropped(bench, &join, &join, nothing, "second join");
    assert_dropped(bench, &want, NULL, nothing, "not offered");
    assert_dropped(bench, &other_model, NULL, nothing, "7 parameters");
    assert_dropped(bench, &stop, NULL, nothing, "only a server sends");
    struct exchange_message other_rank = join, empty_push = push;
    other_rank.join.rank = 1;
    empty_push.push.steps = 0;
    assert_dropped(bench, &other_rank, NULL, nothing, "rank 1 is not its own");
    assert_dropped(bench, &join, &empty_push, nothing, "without a step");
    assert_dropped(bench, &join, &push, run_with(0x7e800000), "as good as");
    assert_dropped(bench, &join, NULL, TEXT("\0\0\0\0\0\0\0\0abcd"), "data without a push");
    assert_dropped(bench, &join, &push, TEXT("\1\0\0\0\0\0\0\0abcd"), "at 1 where 0");
    assert_dropped(bench, &join, &push, run_with(0x7f800000), "not finite");
    assert_dropped(bench, &join, &push, TEXT("\0\0\0"), "no run");
    struct exchange_message int8_push = push;
    int8_push.push.codec = CODEC_INT8;
    assert_dropped(bench, &join, &int8_push, run_with(0), "no run of 20 floats as int8");
    struct exchange_message other_push = push;
    other_push.push.term = 7;
    assert_dropped(bench, &join, &other_push, nothing, "for another parameter server");
    assert_int_equal(exchange_server_status(bench->server)->version, 0);
    /* Of them those with a value that is no number to speak of. */
    assert_int_equal(exchange_server_status(bench->server)->workers[0].refused, 2);
}

TEST(a_worker_of_a_later_server_is_refused_and_ends_nothing)
{
    struct error error;
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "tap");
    options.term = 6;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    struct exchange_message later = join;
    later.join.term = 7;
    assert_dropped(bench, &later, NULL, (struct text){0}, "a later parameter server");
    struct hand hand;
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &join);
    RUN_UNTIL(bench, exchange_server_status(bench->server)->worker_count == 1);
    assert_false(bench->has_ended);
    link_free(hand.link);
}

static void client_attach(struct bench *bench, struct exchange_client *client, uint64_t term)
{
    struct error error;
    int fd;
    stream_open(bench, &fd);
    ASSERT_OK(exchange_client_attach_take(client, 0, fd, term, &error));
}

TEST(a_server_that_names_a_false_term_keeps_no_worker_from_its_successor)
{
    static const float zero[FEATURES];
    struct error error;
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "tap");
    options.term = UINT64_MAX;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    struct exchange_client_options worker = {.loop = bench->loop,
                                             .lease = lease_of(0),
                                             .fence = FENCE,
                                             .shard_samples = SAMPLES / WORKERS,
                                             .parameter_count = FEATURES};
    key_of(worker.lease, worker.key);
    AUTO(exchange_client) struct exchange_client *client = NULL;
    ASSERT_OK(exchange_client_open(&worker, &client, &error));
    exchange_client_begin(client, zero);
    client_attach(bench, client, 4);
    struct exchange_client_status status = {0};
    while (!status.reason[0] && status.state != EXCHANGE_CLIENT_TRAINING) {
        bench_turn(bench);
        exchange_client_status(client, &status);
    }
    assert_int_equal(status.state, EXCHANGE_CLIENT_CONNECTING);
    assert_non_null(strstr(status.reason, "where the market named one of term 4"));
    exchange_server_free(TAKE(bench->server));
    options.term = 5;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    client_attach(bench, client, 5);
    while (status.state != EXCHANGE_CLIENT_TRAINING) {
        bench_turn(bench);
        exchange_client_status(client, &status);
    }
    /* A stream to the one before that comes up only now. */
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_FAILS(exchange_client_attach_take(client, 0, ends[1], 4, &error), ERROR_REFUSED);
    exchange_client_status(client, &status);
    assert_int_equal(status.state, EXCHANGE_CLIENT_TRAINING);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_successor_goes_on_from_what_was_done_before)
{
    struct error error;
    AUTO(bench) struct bench *bench = bench_new();
    static const float momentum[FEATURES] = {[3] = 0.5F};
    struct exchange_server_options options = server_options(bench, "tap");
    options.momentum = momentum;
    options.done = (struct exchange_progress_made){.steps = 40, .samples = 640, .elapsed_ms = 9000};
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    const struct exchange_status *status = exchange_server_status(bench->server);
    assert_int_equal(status->steps, 40);
    assert_int_equal(status->samples, 640);
    assert_int_equal(status->elapsed_ms, 9000);
    float parameters[FEATURES], kept[FEATURES];
    exchange_server_snapshot(bench->server, parameters, kept);
    assert_memory_equal(kept, momentum, sizeof kept);
}

TEST(a_stream_cut_within_a_push_changes_nothing)
{
    enum { COUNT = EXCHANGE_DATA_FLOATS + FEATURES };
    static const float zero[COUNT];
    static char first_run[8 + EXCHANGE_DATA_FLOATS * sizeof(float)]; /* of two */
    AUTO(bench) struct bench *bench = bench_new();
    struct hand hand;
    struct error error;
    struct exchange_server_options options = server_options(bench, "tap");
    struct exchange_message large_join = join;
    options.parameter_count = large_join.join.parameter_count = COUNT;
    options.parameters = zero;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &large_join);
    RUN_UNTIL(bench, hand.offers == 1);
    hand_send(&hand,
              &(struct exchange_message){.type = EXCHANGE_PUSH, .push = {.number = 1, .steps = 1}});
    memset(first_run + 8, 0x3e, sizeof first_run - 8); /* numbers above 0 */
    ASSERT_OK(link_send_text(hand.link, EXCHANGE_DATA, (struct text){first_run, sizeof first_run},
                             &error));
    RUN_UNTIL(bench, exchange_server_status(bench->server)->received_bytes == sizeof first_run);
    link_free(hand.link);
    RUN_UNTIL(bench, bench->drops == 1);
    assert_int_equal(exchange_server_status(bench->server)->version, 0);
    assert_int_equal(exchange_server_status(bench->server)->member_count, 0);
}

/* The model starts at nothing, so a first push may be as long as one for each parameter. */
TEST(a_push_that_is_far_too_long_is_shortened)
{
    static char run[8 + FEATURES * sizeof(float)];
    AUTO(bench) struct bench *bench = bench_new();
    struct error error;
    struct hand hand;
    struct exchange_server_options options = server_options(bench, "tap");
    options.robust.kind = ROBUST_NORM;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &join);
    RUN_UNTIL(bench, hand.offers == 1);
    const float large = 1000;
    for (size_t i = 0; i < FEATURES; i++)
        memcpy(run + 8 + i * sizeof large, &large, sizeof large);
    hand_send(&hand,
              &(struct exchange_message){.type = EXCHANGE_PUSH, .push = {.number = 1, .steps = 1}});
    ASSERT_OK(link_send_text(hand.link, EXCHANGE_DATA, (struct text){run, sizeof run}, &error));
    RUN_UNTIL(bench, hand.models == 1);
    const struct exchange_status *status = exchange_server_status(bench->server);
    assert_int_equal(status->workers[0].clipped, 1);
    assert_int_equal(status->workers[0].commits, 1);
    exchange_server_stop(bench->server, "enough", 200);
    RUN_UNTIL(bench, bench->has_ended);
    for (size_t i = 0; i < FEATURES; i++)
        assert_true(fabsf(bench->outcome.parameters[i] - 1) < 1e-5F);
    link_free(hand.link);
}

TEST(the_first_model_is_sent_to_who_wants_it_and_a_later_one_to_everybody)
{
    AUTO(bench) struct bench *bench = hand_bench();
    struct hand hand;
    struct error error;
    const struct exchange_message want = {.type = EXCHANGE_WANT};
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &join);
    RUN_UNTIL(bench, hand.offers == 1);
    assert_int_equal(hand.models, 0);
    hand_send(&hand, &want);
    const size_t none_kept = sizeof(uint32_t); /* it is nothing but zeros */
    RUN_UNTIL(bench, hand.data_bytes == none_kept);
    assert_int_equal(hand.models, 1);
    hand_send(&hand,
              &(struct exchange_message){.type = EXCHANGE_PUSH, .push = {.number = 1, .steps = 1}});
    ASSERT_OK(link_send_text(hand.link, EXCHANGE_DATA, run_with(0x3f800000), &error));
    const size_t one_kept = none_kept + sizeof(uint16_t) + sizeof(float);
    RUN_UNTIL(bench, hand.data_bytes == none_kept + one_kept);
    hand_send(&hand, &want);
    RUN_UNTIL(bench, hand.is_closed);
    link_free(hand.link);
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &join);
    RUN_UNTIL(bench, hand.data_bytes == one_kept);
    assert_int_equal(hand.offers, 0);
    link_free(hand.link);
}

TEST(a_worker_may_come_back_before_its_old_link_is_seen_to_be_dead)
{
    AUTO(bench) struct bench *bench = hand_bench();
    struct hand old, new;
    hand_open(bench, &old, lease_of(0));
    RUN_UNTIL(bench, old.is_open);
    hand_send(&old, &join);
    RUN_UNTIL(bench, old.offers == 1);
    hand_open(bench, &new, lease_of(0));
    RUN_UNTIL(bench, new.is_open);
    hand_send(&new, &join);
    RUN_UNTIL(bench, new.offers == 1 && old.is_closed);
    const struct exchange_status *status = exchange_server_status(bench->server);
    assert_int_equal(status->worker_count, 1);
    assert_int_equal(status->member_count, 1);
    link_free(old.link);
    link_free(new.link);
}

/* Whoever comes first would end the job for those that are still on their way. */
TEST(one_of_three_that_diverged_before_the_others_came_ends_nothing)
{
    AUTO(bench) struct bench *bench = hand_bench();
    const struct exchange_message leave = {.type = EXCHANGE_LEAVE, .has_diverged = true};
    struct hand hand;
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &join);
    RUN_UNTIL(bench, hand.offers == 1);
    hand_send(&hand, &leave);
    RUN_UNTIL(bench, hand.is_closed);
    link_free(hand.link);
    assert_true(exchange_server_status(bench->server)->workers[0].has_diverged);
    assert_false(bench->has_ended);
}

static struct exchange_client *client_join(struct bench *bench, uint32_t rank)
{
    static const float zero[FEATURES];
    struct error error;
    struct exchange_client_options worker = {.loop = bench->loop,
                                             .lease = lease_of(rank),
                                             .fence = FENCE,
                                             .rank = rank,
                                             .shard_samples = SAMPLES / WORKERS,
                                             .parameter_count = FEATURES};
    key_of(worker.lease, worker.key);
    struct exchange_client *client = NULL;
    ASSERT_OK(exchange_client_open(&worker, &client, &error));
    exchange_client_begin(client, zero);
    client_attach(bench, client, 0);
    return client;
}

static bool is_training(struct exchange_client *client)
{
    struct exchange_client_status status;
    exchange_client_status(client, &status);
    return status.state == EXCHANGE_CLIENT_TRAINING;
}

static uint32_t joining_count(const struct exchange_server *server)
{
    uint32_t count = 0;
    LIST_EACH(&server->connections, node)
    count += LIST_ITEM(node, struct connection, node)->is_joining;
    return count;
}

static struct bench *muster_bench(int64_t muster_ms)
{
    struct error error;
    struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "tap");
    options.muster_ms = muster_ms;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    return bench;
}

TEST(nobody_begins_before_every_shard_has_a_worker)
{
    AUTO(bench) struct bench *bench = muster_bench(3600000);
    AUTO(exchange_client) struct exchange_client *first = client_join(bench, 0);
    AUTO(exchange_client) struct exchange_client *second = client_join(bench, 1);
    RUN_UNTIL(bench, joining_count(bench->server) == 2);
    assert_int_equal(exchange_server_status(bench->server)->member_count, 0);
    AUTO(exchange_client) struct exchange_client *third = client_join(bench, 2);
    RUN_UNTIL(bench, is_training(first) && is_training(second) && is_training(third));
    assert_int_equal(exchange_server_status(bench->server)->member_count, 3);
    assert_int_equal(bench->drops, 0);
}

TEST(who_waited_long_enough_begins_and_others_come_later)
{
    AUTO(bench) struct bench *bench = muster_bench(20);
    AUTO(exchange_client) struct exchange_client *first = client_join(bench, 0);
    RUN_UNTIL(bench, is_training(first));
    assert_int_equal(exchange_server_status(bench->server)->member_count, 1);
    AUTO(exchange_client) struct exchange_client *second = client_join(bench, 1);
    RUN_UNTIL(bench, is_training(second));
    assert_int_equal(bench->drops, 0);
}

/* The training thread may wake the link's twice before the loop sends anything. */
TEST(who_is_woken_again_while_it_leaves_leaves_in_good_order)
{
    static const float zero[FEATURES];
    AUTO(bench) struct bench *bench = hand_bench();
    AUTO(exchange_client) struct exchange_client *client = client_join(bench, 0);
    RUN_UNTIL(bench, is_training(client));
    for (int i = 0; i < 2; i++) {
        exchange_client_finish(client, zero, 0);
        client_on_wake(client, LOOP_READ);
    }
    RUN_UNTIL(bench, exchange_server_status(bench->server)->member_count == 0);
    if (bench->drops > 0)
        fail_msg("dropped with \"%s\"", bench->drop_reason);
}

TEST(a_silent_worker_is_dropped)
{
    struct error error;
    AUTO(bench) struct bench *bench = bench_new();
    struct exchange_server_options options = server_options(bench, "bsp");
    options.silent_ms = 120;
    ASSERT_OK(exchange_server_open(&options, &bench->server, &error));
    struct hand hand;
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &join);
    RUN_UNTIL(bench, hand.is_closed);
    assert_non_null(strstr(bench->drop_reason, "silent"));
    link_free(hand.link);
}

TEST(a_stop_does_not_wait_for_a_slow_measurement)
{
    AUTO(bench) struct bench *bench = hand_bench();
    struct hand hand;
    hand_open(bench, &hand, lease_of(0));
    RUN_UNTIL(bench, hand.is_open);
    hand_send(&hand, &join);
    RUN_UNTIL(bench, hand.offers == 1);
    pthread_mutex_lock(&bench->gate);
    exchange_server_stop(bench->server, "cancelled", 200);
    RUN_UNTIL(bench, bench->has_ended);
    pthread_mutex_unlock(&bench->gate);
    assert_string_equal(exchange_end_name(bench->outcome.end), "stopped");
    assert_string_equal(bench->reason, "cancelled");
    assert_false(bench->outcome.has_accuracy);
    link_free(hand.link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_lease_key_is_refused),
        cmocka_unit_test(who_breaks_the_protocol_is_dropped),
        cmocka_unit_test(a_worker_of_a_later_server_is_refused_and_ends_nothing),
        cmocka_unit_test(a_server_that_names_a_false_term_keeps_no_worker_from_its_successor),
        cmocka_unit_test(a_successor_goes_on_from_what_was_done_before),
        cmocka_unit_test(a_stream_cut_within_a_push_changes_nothing),
        cmocka_unit_test(a_push_that_is_far_too_long_is_shortened),
        cmocka_unit_test(the_first_model_is_sent_to_who_wants_it_and_a_later_one_to_everybody),
        cmocka_unit_test(a_worker_may_come_back_before_its_old_link_is_seen_to_be_dead),
        cmocka_unit_test(one_of_three_that_diverged_before_the_others_came_ends_nothing),
        cmocka_unit_test(nobody_begins_before_every_shard_has_a_worker),
        cmocka_unit_test(who_waited_long_enough_begins_and_others_come_later),
        cmocka_unit_test(who_is_woken_again_while_it_leaves_leaves_in_good_order),
        cmocka_unit_test(a_silent_worker_is_dropped),
        cmocka_unit_test(a_stop_does_not_wait_for_a_slow_measurement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
