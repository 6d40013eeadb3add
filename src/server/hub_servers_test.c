/*
 * Jobs with several parameter servers in the hub: who dials whom, and who is dialled after a death.
 * covers dispatch.c order.c stream.c
 */
#include "server/hub_fixture_internal.h"

enum { RANKS = 3 }; /* two servers and the replica */

/* A job with two servers, a replica and a worker, all of which run. */
struct crew {
    struct hub_lease *servers[RANKS];
    struct hub_lease *worker;
    uint64_t job;
};

static struct hub_lease *find(struct fixture *fixture, uint64_t job, enum lease_role role,
                              uint64_t rank)
{
    struct hub_lease *found = NULL; /* the newest */
    for (size_t i = 0; i < fixture->hub->leases.count; i++) {
        struct hub_lease *lease = fixture->hub->leases.entries[i].value;
        if (lease->job == job && lease->role == role && lease->rank == rank &&
            (!found || lease->id > found->id))
            found = lease;
    }
    assert_non_null(found);
    return found;
}

static void run(struct fixture *fixture, const struct hub_lease *lease)
{
    const struct state_message running = {
        .lease = lease->id, .fence = lease->fence, .state = LEASE_RUN_RUNNING, .reason = TEXT("")};
    dispatch_state(hub_machine(fixture->hub, lease->machine), &running);
    look(fixture, lease->id);
}

static void lose(struct fixture *fixture, const struct hub_lease *lease)
{
    command(fixture, &(struct command){.kind = COMMAND_END_LEASE,
                                       .end_lease = {.lease = lease->id,
                                                     .fence = lease->fence,
                                                     .outcome = LEASE_OUTCOME_LOST,
                                                     .reason = TEXT("gone")}});
}

static struct crew start_crew(struct fixture *fixture)
{
    const struct resources part = {.cores_milli = 100, .ram_bytes = INT64_C(128) << 20};
    enrol(fixture, 2, fixture->lender, "stork");
    const struct command submit_job = {.kind = COMMAND_SUBMIT_JOB,
                                       .submit_job = {.account = fixture->borrower,
                                                      .name = "ranges",
                                                      .spec = text_of(spec),
                                                      .num_nodes = 1,
                                                      .worker = part,
                                                      .server = part,
                                                      .server_count = 2,
                                                      .has_replica = true,
                                                      .replaces_lost = true,
                                                      .max_run_ms = 60000,
                                                      .expected_run_ms = 20000,
                                                      .tick_ms = 1000}};
    struct crew crew = {.job = command(fixture, &submit_job)};
    crew.worker = find(fixture, crew.job, LEASE_ROLE_WORKER, 0);
    for (uint64_t i = 0; i < RANKS; i++)
        crew.servers[i] = find(fixture, crew.job, LEASE_ROLE_SERVER, i);
    for (uint64_t i = 0; i < RANKS; i++)
        run(fixture, crew.servers[i]);
    run(fixture, crew.worker);
    assert_int_equal(look(fixture, crew.worker->id).job_seen.state, JOB_STATE_RUNNING);
    return crew;
}

TEST(a_worker_dials_every_server_and_servers_dial_the_lead)
{
    struct fixture *fixture = *state;
    const struct crew crew = start_crew(fixture);
    assert_int_equal(crew.worker->dial_count, 2);
    assert_int_equal(crew.worker->dials[0].server_lease, crew.servers[0]->id);
    assert_int_equal(crew.worker->dials[1].server_lease, crew.servers[1]->id);
    assert_string_not_equal(crew.worker->dials[0].ticket, crew.worker->dials[1].ticket);
    assert_int_equal(crew.servers[0]->dial_count, 0);
    for (int i = 1; i < RANKS; i++) {
        assert_int_equal(crew.servers[i]->dial_count, 1);
        assert_int_equal(crew.servers[i]->dials[0].server_lease, crew.servers[0]->id);
    }
}

/* Of the START: whether the lease is told of that one, and given its key. */
static bool is_told_of(const struct hub_lease *told, const struct hub_lease *mentioned,
                       bool *has_key)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct lease_message message;
    struct error error;
    ASSERT_OK(lease_message_decode(arena, LEASE_MESSAGE_START, buffer_text(&told->start), &message,
                                   &error));
    for (uint32_t i = 0; i < message.start.peer_count; i++) {
        const struct lease_peer *peer = &message.start.peers[i];
        if (peer->lease != mentioned->id)
            continue;
        assert_int_equal(peer->role, mentioned->role);
        assert_int_equal(peer->rank, mentioned->rank);
        *has_key = lease_peer_dials(peer);
        return true;
    }
    return false;
}

TEST(who_is_dialled_has_the_keys_of_those_who_dial)
{
    struct fixture *fixture = *state;
    const struct crew crew = start_crew(fixture);
    const struct hub_lease *lead = crew.servers[0], *range = crew.servers[1];
    const struct hub_lease *replica = crew.servers[2];
    bool has_key;
    assert_true(is_told_of(lead, crew.worker, &has_key) && has_key);
    assert_true(is_told_of(lead, range, &has_key) && has_key);
    assert_true(is_told_of(lead, replica, &has_key) && has_key);
    assert_true(is_told_of(range, crew.worker, &has_key) && has_key);
    assert_true(is_told_of(range, lead, &has_key) && !has_key);
    assert_false(is_told_of(range, replica, &has_key));
    assert_true(is_told_of(replica, lead, &has_key) && !has_key);
    assert_false(is_told_of(replica, crew.worker, &has_key));
    assert_true(is_told_of(crew.worker, lead, &has_key) && !has_key);
    assert_true(is_told_of(crew.worker, range, &has_key) && !has_key);
    assert_false(is_told_of(crew.worker, replica, &has_key));
}

static void take_stream(struct fixture *fixture, const struct hub_dial *dial, int out_end[1])
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    stream_take(fixture->hub, ends[0], dial->ticket);
    out_end[0] = ends[1];
}

TEST(each_stream_is_joined_and_cut_by_itself)
{
    struct fixture *fixture = *state;
    const struct crew crew = start_crew(fixture);
    struct hub_dial *dials = crew.worker->dials;
    int ends[4];
    for (int i = 0; i < 2; i++) {
        take_stream(fixture, &dials[i], &ends[(size_t)i * 2]);
        assert_null(dials[i].relay);
        take_stream(fixture, &dials[i], &ends[(size_t)i * 2 + 1]);
        assert_non_null(dials[i].relay);
    }
    lose(fixture, crew.servers[1]);
    assert_null(dials[1].relay);
    assert_true(dials[1].is_redial_due);
    assert_non_null(dials[0].relay);
    for (int i = 0; i < 4; i++)
        close(ends[i]);
}

TEST(the_successor_of_one_rank_is_dialled_by_the_workers_and_dials_the_lead)
{
    struct fixture *fixture = *state;
    const struct crew crew = start_crew(fixture);
    lose(fixture, crew.servers[1]);
    const struct hub_lease *next = find(fixture, crew.job, LEASE_ROLE_SERVER, 1);
    assert_int_equal(crew.worker->dials[0].server_lease, crew.servers[0]->id);
    assert_int_equal(crew.worker->dials[1].server_lease, next->id);
    assert_int_equal(next->dials[0].server_lease, crew.servers[0]->id);
}

TEST(a_replica_that_takes_the_lead_is_dialled_by_all)
{
    struct fixture *fixture = *state;
    const struct crew crew = start_crew(fixture);
    const uint64_t old = crew.servers[0]->id;
    const struct hub_lease *replica = crew.servers[2];
    assert_true(replica->verify.is_standby);
    lose(fixture, crew.servers[0]);
    assert_null(map_get(&fixture->hub->leases, old));
    assert_int_equal(replica->rank, 0);
    assert_int_equal(replica->dial_count, 0);
    assert_false(replica->verify.is_standby);
    assert_int_equal(crew.worker->dials[0].server_lease, replica->id);
    assert_true(crew.worker->dials[0].is_redial_due);
    assert_int_equal(crew.worker->dials[1].server_lease, crew.servers[1]->id);
    assert_int_equal(crew.servers[1]->dials[0].server_lease, replica->id);
    const struct hub_lease *next = find(fixture, crew.job, LEASE_ROLE_SERVER, 2);
    assert_ptr_not_equal(next, replica);
    assert_int_equal(next->dials[0].server_lease, replica->id);
}

/* What a server says of the worker's pushes. */
static void report(struct fixture *fixture, const struct hub_lease *server,
                   const struct hub_lease *worker)
{
    AUTO(arena) struct arena *arena = arena_new(0);
    struct buffer json AUTO_BUFFER;
    struct json_writer writer;
    buffer_init(&json, 4096);
    struct server_report_worker pushed = {
        .lease = worker->id, .fence = worker->fence, .is_member = true, .accepted_pushes = 1};
    const struct server_report said = {.version = 1, .workers = {&pushed, 1}};
    json_writer_init(&writer, &json);
    json_write(&writer, &server_report_schema, &said);
    const struct report_message message = {server->id, server->fence, buffer_text(&json)};
    tick_report(hub_machine(fixture->hub, server->machine), arena, &message);
    look(fixture, server->id); /* it has been passed on */
}

TEST(the_lead_alone_is_believed)
{
    struct fixture *fixture = *state;
    const struct crew crew = start_crew(fixture);
    report(fixture, crew.servers[1], crew.worker);
    report(fixture, crew.servers[2], crew.worker);
    assert_false(crew.worker->verify.has_push);
    report(fixture, crew.servers[0], crew.worker);
    assert_true(crew.worker->verify.has_push);
    crew.worker->verify.has_push = false;
    lose(fixture, crew.servers[0]);
    report(fixture, crew.servers[2], crew.worker);
    assert_true(crew.worker->verify.has_push);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_HUB(a_worker_dials_every_server_and_servers_dial_the_lead),
        WITH_HUB(who_is_dialled_has_the_keys_of_those_who_dial),
        WITH_HUB(each_stream_is_joined_and_cut_by_itself),
        WITH_HUB(the_successor_of_one_rank_is_dialled_by_the_workers_and_dials_the_lead),
        WITH_HUB(a_replica_that_takes_the_lead_is_dialled_by_all),
        WITH_HUB(the_lead_alone_is_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
