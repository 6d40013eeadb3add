#include "market/job.h"

#include "base/assert.h"

#include <inttypes.h>
#include <string.h>

enum { TICK_MS_MIN = 100 };

static const char *const state_names[JOB_STATE_COUNT] = {
    [JOB_STATE_PENDING] = "pending",     [JOB_STATE_STARTING] = "starting",
    [JOB_STATE_RUNNING] = "running",     [JOB_STATE_STOPPING] = "stopping",
    [JOB_STATE_SUCCEEDED] = "succeeded", [JOB_STATE_FAILED] = "failed",
    [JOB_STATE_CANCELLED] = "cancelled",
};

static const char *const start_names[JOB_START_COUNT] = {"now", "deadline", "cheapest"};

const char *job_start_name(enum job_start start)
{
    ASSERT(start < JOB_START_COUNT);
    return start_names[start];
}

const char *job_state_name(enum job_state state)
{
    ASSERT(state < JOB_STATE_COUNT);
    return state_names[state];
}

bool job_state_is_final(enum job_state state)
{
    return state == JOB_STATE_SUCCEEDED || state == JOB_STATE_FAILED ||
           state == JOB_STATE_CANCELLED;
}

bool job_state_has_leases(enum job_state state)
{
    return state == JOB_STATE_STARTING || state == JOB_STATE_RUNNING || state == JOB_STATE_STOPPING;
}

static int check_range(const char *field, int64_t value, int64_t minimum, int64_t maximum,
                       struct error *error)
{
    if (value < minimum || value > maximum)
        return error_set(error, ERROR_INVALID, "%s must be from %" PRId64 " to %" PRId64, field,
                         minimum, maximum);
    return 0;
}

static bool is_ended(const char *field, size_t size)
{
    return strnlen(field, size) < size;
}

static int check_wishes(const struct job_wishes *wishes, struct error *error)
{
    if (!is_ended(wishes->gpu_model, sizeof(wishes->gpu_model)) ||
        !is_ended(wishes->labels, sizeof(wishes->labels)))
        return error_set(error, ERROR_INVALID, "gpu_model or labels are too long");
    if (name_check_text(text_of(wishes->gpu_model), "gpu_model", MACHINE_GPU_MODEL_SIZE - 1,
                        error) < 0 ||
        name_check_text(text_of(wishes->labels), "labels", MACHINE_LABELS_SIZE - 1, error) < 0)
        return -1;
    if (!offer_are_labels(text_of(wishes->labels)))
        return error_set(error, ERROR_INVALID, "labels must be words with one comma between");
    if (wishes->network >= OFFER_NETWORK_COUNT || wishes->install >= OFFER_INSTALL_COUNT)
        return error_set(error, ERROR_INVALID, "network or install is none that exists");
    if (check_range("gpu_ram_bytes", wishes->gpu_ram_bytes, 0, RESOURCES_BYTES_MAX, error) < 0 ||
        check_range("max_rtt_us", wishes->max_rtt_us, 0, MACHINE_RTT_US_MAX, error) < 0 ||
        check_range("min_reliability_milli", wishes->min_reliability_milli, 0, 1000, error) < 0)
        return -1;
    return check_range("min_speed_milli", wishes->min_speed_milli, 0, PRICE_SPEED_MILLI_MAX, error);
}

/* Whether the deadline has passed is for whoever knows the time. */
static int check_start(const struct job_request *request, struct error *error)
{
    if (request->is_spare && (request->start != JOB_START_NOW || request->is_rush))
        return error_set(error, ERROR_INVALID,
                         "spare time comes when it comes: it goes with neither a deadline, the "
                         "cheapest slot nor rush");
    if (request->start >= JOB_START_COUNT)
        return error_set(error, ERROR_INVALID, "start is none that exists");
    if (request->deadline_ms < 0 || request->deadline_ms > MARKET_TIME_MS_MAX ||
        (request->start == JOB_START_NOW) != (request->deadline_ms == 0))
        return error_set(error, ERROR_INVALID,
                         "a deadline belongs to the starts `deadline` and `cheapest`, and to no "
                         "other");
    return 0;
}

int64_t job_request_nodes_max(const struct job_request *request)
{
    return request->num_nodes_max ? request->num_nodes_max : request->num_nodes;
}

int64_t job_request_nodes_first(const struct job_request *request)
{
    return request->workers_first ? request->workers_first : job_request_nodes_max(request);
}

size_t job_workers_wanted(const struct job *job)
{
    return (size_t)(job->workers_wanted ? job->workers_wanted
                                        : job_request_nodes_max(&job->request));
}

int job_request_check(const struct job_request *request, struct error *error)
{
    if (strnlen(request->name, JOB_NAME_SIZE) == JOB_NAME_SIZE || !request->name[0])
        return error_set(error, ERROR_INVALID, "a job's name has 1 to %d bytes", JOB_NAME_SIZE - 1);
    if (name_check_text(text_of(request->name), "the job's name", JOB_NAME_SIZE - 1, error) < 0 ||
        name_check_text(request->spec, "the job's spec", JOB_SPEC_MAX, error) < 0 ||
        check_range("num_nodes", request->num_nodes, 1, JOB_NODES_MAX, error) < 0 ||
        check_range("num_nodes_max", job_request_nodes_max(request), request->num_nodes,
                    JOB_NODES_MAX, error) < 0 ||
        (request->workers_first != 0 &&
         check_range("workers_first", request->workers_first, request->num_nodes,
                     job_request_nodes_max(request), error) < 0) ||
        check_wishes(&request->wishes, error) < 0 || check_start(request, error) < 0)
        return -1;
    if (!resources_are_valid(request->worker) || request->worker.cores_milli == 0)
        return error_set(error, ERROR_INVALID, "a worker's resources are out of range");
    if (!resources_are_valid(request->server) ||
        (request->server.cores_milli == 0 &&
         !resources_equal(request->server, (struct resources){0})))
        return error_set(error, ERROR_INVALID, "the server's resources are out of range");
    if (check_range("server_count", request->server_count, 0, JOB_SERVERS_MAX, error) < 0)
        return -1;
    if (request->server.cores_milli == 0 && (request->server_count > 0 || request->has_replica))
        return error_set(error, ERROR_INVALID, "servers and a replica need resources");
    if (request->server.cores_milli == 0 && request->workers_first > 0)
        return error_set(error, ERROR_INVALID, "a schedule of workers needs a parameter server");
    if (check_range("max_total_micro", request->max_total_micro, 0, PRICE_MICRO_MAX, error) < 0 ||
        check_range("max_hourly_micro", request->max_hourly_micro, 0, PRICE_MICRO_MAX, error) < 0 ||
        check_range("max_run_ms", request->max_run_ms, 1000, PRICE_RUN_MS_MAX, error) < 0 ||
        check_range("expected_run_ms", request->expected_run_ms, 0, PRICE_RUN_MS_MAX, error) < 0)
        return -1;
    return check_range("tick_ms", request->tick_ms, TICK_MS_MIN, PRICE_RUN_MS_MAX, error);
}

bool job_has_server(const struct job *job)
{
    return job->request.server.cores_milli > 0;
}

size_t job_request_servers(const struct job_request *request)
{
    if (request->server.cores_milli == 0)
        return 0;
    return request->server_count > 1 ? (size_t)request->server_count : 1;
}

size_t job_request_server_ranks(const struct job_request *request)
{
    return job_request_servers(request) + request->has_replica;
}

bool job_is_replica(const struct job *job, const struct lease *lease)
{
    return lease->role == LEASE_ROLE_SERVER && lease->rank == job_request_servers(&job->request);
}

static void say(char out_reason[JOB_REASON_SIZE], const char *what, const struct lease *lease)
{
    const char *reason = lease->reason ? lease->reason : lease_outcome_name(lease->outcome);
    snprintf(out_reason, JOB_REASON_SIZE, "%s: %.*s", what, LEASE_REASON_SIZE - 1, reason);
}

/* Why it failed comes first: advice that does not fit behind it is left out. */
static void advise(char reason[JOB_REASON_SIZE], const char *advice)
{
    const size_t size = strlen(reason);
    if (size + strlen(advice) < JOB_REASON_SIZE)
        snprintf(reason + size, JOB_REASON_SIZE - size, "%s", advice);
}

/* Machines that owners take back are given again: the parameter server has the model meanwhile, and
 * waits for a worker as long as it thinks right. */
static bool waits_for_owners(const struct job *job)
{
    if (!job_has_server(job) || !job->request.replaces_lost)
        return false;
    for (size_t i = 0; i < job->worker_count; i++)
        if (job->workers[i]->outcome == LEASE_OUTCOME_RECLAIMED &&
            lease_wants_successor(job->workers[i]))
            return true;
    return false;
}

static bool has_open_worker(const struct job *job)
{
    for (size_t i = 0; i < job->worker_count; i++)
        if (lease_is_open(job->workers[i]))
            return true;
    return false;
}

static bool has_diverged(const struct lease *server)
{
    return server->outcome == LEASE_OUTCOME_FAILED && server->reason &&
           strncmp(server->reason, LEASE_REASON_DIVERGED, strlen(LEASE_REASON_DIVERGED)) == 0;
}

/* Of a server that ended. Workers wait for its successor as long as they think right. */
static enum job_verdict judge_server(const struct job *job, const struct lease *server,
                                     char out_reason[JOB_REASON_SIZE])
{
    if (server->outcome == LEASE_OUTCOME_SUCCEEDED)
        return JOB_VERDICT_SUCCEEDED;
    if (server->outcome == LEASE_OUTCOME_PREEMPTED) {
        say(out_reason, "waits again", server);
        return JOB_VERDICT_WAITS;
    }
    if (job_lost_server(job, server->rank) == server->rank && has_open_worker(job))
        return JOB_VERDICT_GOES_ON;
    const bool is_gone = lease_wants_successor(server) && server->outcome != LEASE_OUTCOME_FAILED;
    const char *what = server->outcome == LEASE_OUTCOME_LOST ? "the parameter server was lost"
                       : is_gone                             ? "the parameter server was taken back"
                       : has_diverged(server)                ? "training diverged"
                                                             : "the parameter server failed";
    say(out_reason, what, server);
    if (is_gone)
        advise(out_reason, "; submit it again: what was not used was given back");
    return JOB_VERDICT_FAILED;
}

/* NULL: none, or the lead has ended well before. */
static const struct lease *preempted_server(const struct job *job)
{
    const struct lease *lead = job->servers[0];
    if (lead && lead->outcome == LEASE_OUTCOME_SUCCEEDED)
        return NULL;
    for (size_t i = 0; i < job_request_servers(&job->request); i++)
        if (job->servers[i] && job->servers[i]->outcome == LEASE_OUTCOME_PREEMPTED)
            return job->servers[i];
    return NULL;
}

/* False: all that it needs are open. One that was preempted counts before others that are lost:
 * these are waited for only while workers are, and its job's end with it. One besides the lead that
 * ended well has been told so by the lead, whose own end follows. */
static bool judge_servers(const struct job *job, enum job_verdict *out_verdict,
                          char out_reason[JOB_REASON_SIZE])
{
    const struct lease *preempted = preempted_server(job);
    if (preempted) {
        *out_verdict = judge_server(job, preempted, out_reason);
        return true;
    }
    bool has_ended = false;
    *out_verdict = JOB_VERDICT_GOES_ON;
    for (size_t i = 0; i < job_request_servers(&job->request); i++) {
        const struct lease *server = job->servers[i];
        if (!server || lease_is_open(server) ||
            (i > 0 && server->outcome == LEASE_OUTCOME_SUCCEEDED))
            continue;
        has_ended = true;
        *out_verdict = judge_server(job, server, out_reason);
        if (*out_verdict != JOB_VERDICT_GOES_ON)
            break;
    }
    return has_ended;
}

/* The others have been told so by their rank 0, whoever of them is missing. */
static bool has_lead_succeeded(const struct job *job)
{
    return job->request.is_gathered && job->worker_count > 0 &&
           job->workers[0]->outcome == LEASE_OUTCOME_SUCCEEDED;
}

bool job_waits_for_machine(const struct job *job)
{
    return !job_has_server(job) && job_lost_rank(job, 0) < job->worker_count;
}

enum job_verdict job_judge(const struct job *job, char out_reason[JOB_REASON_SIZE])
{
    const bool has_server = job_has_server(job);
    enum job_verdict of_servers;
    out_reason[0] = '\0';
    if (judge_servers(job, &of_servers, out_reason))
        return of_servers;
    if (has_lead_succeeded(job))
        return JOB_VERDICT_SUCCEEDED;
    size_t open = 0, succeeded = 0;
    const struct lease *last_bad = NULL, *failed = NULL, *preempted = NULL;
    for (size_t i = 0; i < job->worker_count; i++) {
        const struct lease *lease = job->workers[i];
        if (lease->is_surplus && !lease_is_open(lease))
            continue; /* let go: it says nothing of how the others fare */
        open += lease_is_open(lease);
        succeeded += lease->outcome == LEASE_OUTCOME_SUCCEEDED;
        const bool is_bad = !lease_is_open(lease) && lease->outcome != LEASE_OUTCOME_SUCCEEDED;
        if (is_bad && (!last_bad || lease->ended_ms >= last_bad->ended_ms))
            last_bad = lease;
        if (!failed && !lease_is_open(lease) && lease->outcome == LEASE_OUTCOME_FAILED)
            failed = lease;
        if (lease->outcome == LEASE_OUTCOME_PREEMPTED)
            preempted = lease;
    }
    if (!has_server && failed) {
        char what[32];
        snprintf(what, sizeof(what), "rank %" PRIu64 " failed", failed->rank);
        say(out_reason, what, failed);
        return JOB_VERDICT_FAILED;
    }
    const bool can_go_on = open > 0 && (has_server || job->request.replaces_lost);
    if (preempted && !can_go_on && !(has_server && succeeded > 0)) {
        say(out_reason, "waits again", preempted);
        return JOB_VERDICT_WAITS;
    }
    if (open > 0 || job->worker_count == 0 || (has_server && succeeded > 0) ||
        waits_for_owners(job) || job_waits_for_machine(job))
        return JOB_VERDICT_GOES_ON;
    if (!last_bad)
        return JOB_VERDICT_SUCCEEDED;
    say(out_reason, has_server ? "no worker is left" : "a worker did not finish", last_bad);
    return JOB_VERDICT_FAILED;
}

int64_t job_committed_micro(const struct job *job)
{
    int64_t committed = 0;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        committed = price_add_micro(committed, lease_is_open(lease) ? lease->quote_micro
                                                                    : lease->posted_micro);
    }
    return committed;
}

int64_t job_hourly_micro(const struct job *job)
{
    int64_t hourly = 0;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (lease_is_open(lease))
            hourly = price_add_micro(hourly, price_hourly_lock_micro(lease->units, lease->lock));
    }
    return hourly;
}

int64_t job_run_left_ms(const struct job *job, int64_t now_ms)
{
    const int64_t max_run_ms = job->request.max_run_ms;
    return job->started_ms ? job->started_ms + max_run_ms - now_ms : max_run_ms;
}

static bool may_get_leases(const struct job *job)
{
    return (job->state == JOB_STATE_STARTING || job->state == JOB_STATE_RUNNING) &&
           job->lease_count > 0 && job->lease_count < JOB_LEASES_MAX;
}

static bool may_get_workers(const struct job *job)
{
    return may_get_leases(job) && (!job_has_server(job) || lease_is_open(job_lead(job))) &&
           !has_lead_succeeded(job);
}

static size_t count_failures(const struct job *job, enum lease_role role, uint64_t rank)
{
    size_t failures = 0;
    for (size_t i = 0; i < job->lease_count; i++)
        failures += job->leases[i]->role == role && job->leases[i]->rank == rank &&
                    job->leases[i]->outcome == LEASE_OUTCOME_FAILED;
    return failures;
}

/* It did not fail by a status of its own, nor too often. */
static bool may_follow(const struct job *job, const struct lease *server)
{
    return server->outcome != LEASE_OUTCOME_FAILED ||
           ((server->exit_code == 0 || server->exit_code >= JOB_KILLED_CODE) &&
            count_failures(job, LEASE_ROLE_SERVER, server->rank) < JOB_FAILURES_MAX);
}

/* It ended as its lead had told it, but that lead came to no good end itself: whoever leads then
 * goes on from what there is, and needs it again. */
static bool ended_too_early(const struct job *job, const struct lease *server)
{
    if (server->outcome != LEASE_OUTCOME_SUCCEEDED)
        return false;
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lead = job->leases[i];
        if (lead->role == LEASE_ROLE_SERVER && lead->rank == 0 && !lease_is_open(lead) &&
            lead->outcome != LEASE_OUTCOME_SUCCEEDED && lead->ended_ms >= server->ended_ms)
            return true;
    }
    return false;
}

/* Behind a lead that stays, for one that is not its junior can never follow it. One that the market
 * let go is replaced too: that was for want of a lead, or of credits. */
static bool wants_replica(const struct job *job, const struct lease *replica)
{
    const struct lease *lead = job_lead(job);
    if (!lead || !lease_is_open(lead) || lead->stop_wanted_ms > 0)
        return false;
    if (!replica)
        return true;
    if (lease_is_open(replica) || !job->request.replaces_lost)
        return false;
    return replica->outcome == LEASE_OUTCOME_SUCCEEDED ? ended_too_early(job, replica)
                                                       : may_follow(job, replica);
}

static bool wants_server(const struct job *job, size_t rank)
{
    const struct lease *server = job->servers[rank];
    if (rank == job_request_servers(&job->request))
        return wants_replica(job, server);
    if (!job->request.replaces_lost || !server || lease_is_open(server))
        return false;
    return (rank > 0 && ended_too_early(job, server)) ||
           (lease_wants_successor(server) && server->outcome != LEASE_OUTCOME_PREEMPTED &&
            may_follow(job, server));
}

size_t job_lost_server(const struct job *job, size_t from)
{
    const size_t ranks = job_request_server_ranks(&job->request);
    if (!may_get_leases(job))
        return ranks;
    for (size_t rank = from; rank < ranks; rank++)
        if (wants_server(job, rank))
            return rank;
    return ranks;
}

struct lease *job_orphan(const struct job *job)
{
    const struct lease *lead = job_lead(job);
    struct lease *replica =
        job->request.has_replica ? job->servers[job_request_servers(&job->request)] : NULL;
    return lead && !lease_is_open(lead) && replica && lease_is_open(replica) ? replica : NULL;
}

bool job_can_promote(const struct job *job)
{
    const struct lease *lead = job_lead(job), *orphan = job_orphan(job);
    return orphan && (job->state == JOB_STATE_STARTING || job->state == JOB_STATE_RUNNING) &&
           orphan->state == LEASE_STATE_RUNNING && orphan->stop_wanted_ms == 0 &&
           orphan->fence > lead->fence && lease_wants_successor(lead) && may_follow(job, lead);
}

size_t job_lost_rank(const struct job *job, size_t from)
{
    if (!job->request.replaces_lost || !may_get_workers(job))
        return job->worker_count;
    for (size_t rank = from; rank < job->worker_count && rank < job_workers_wanted(job); rank++)
        if (lease_wants_successor(job->workers[rank]) &&
            count_failures(job, LEASE_ROLE_WORKER, rank) <
                (job_has_server(job) ? JOB_FAILURES_MAX : 1))
            return rank;
    return job->worker_count;
}

size_t job_growth_rank(const struct job *job)
{
    for (size_t i = 0; i < job->worker_count && i < job_workers_wanted(job); i++)
        if (job->workers[i]->is_surplus && !lease_is_open(job->workers[i]))
            return i;
    return job->worker_count;
}

bool job_can_grow(const struct job *job)
{
    if (!may_get_workers(job) || job_growth_rank(job) >= job_workers_wanted(job))
        return false;
    for (size_t i = 0; i < job->worker_count; i++) {
        const struct lease *lease = job->workers[i];
        if (lease->is_surplus)
            continue;
        const bool is_let_go = lease->outcome == LEASE_OUTCOME_STOPPED ||
                               (lease->stop_wanted_ms > 0 && !lease->is_reclaimed);
        if (is_let_go || lease->outcome == LEASE_OUTCOME_SUCCEEDED)
            return false;
    }
    return true;
}

/* It left with its owner's consent, or its owner needed it, and is here again. */
static bool has_come_back(const struct machine *machine, const struct lease *lease)
{
    return machine->state == MACHINE_STATE_ONLINE && (machine->state_changed_ms > lease->ended_ms ||
                                                      machine->lent_again_ms > lease->ended_ms);
}

/* That one more lease of the role should not go where this one was. */
static bool speaks_against(const struct lease *lease, const struct machine *machine)
{
    const bool is_server = lease->role == LEASE_ROLE_SERVER;
    return (lease_is_open(lease) && !is_server) ||
           (lease->outcome == LEASE_OUTCOME_FAILED && (!is_server || lease->exit_code == 0)) ||
           (lease->outcome == LEASE_OUTCOME_RECLAIMED && !has_come_back(machine, lease));
}

bool job_avoids(const struct job *job, enum lease_role role, const struct machine *machine)
{
    for (size_t i = 0; i < job->lease_count; i++) {
        const struct lease *lease = job->leases[i];
        if (lease->outcome == LEASE_OUTCOME_FAULTY && lease->payee == machine->owner)
            return true; /* no machine of that lender */
        if (lease->role == role && lease->machine == machine->id && speaks_against(lease, machine))
            return true;
    }
    return false;
}

bool job_has_server_at(const struct job *job, const struct machine *machine)
{
    for (size_t i = 0; i < job_request_server_ranks(&job->request); i++)
        if (job->servers[i] && lease_is_open(job->servers[i]) &&
            job->servers[i]->machine == machine->id)
            return true;
    return false;
}

bool job_is_under_way(const struct job *job)
{
    bool has_worker = false;
    for (size_t i = 0; i < job->worker_count; i++)
        has_worker |= job->workers[i]->state == LEASE_STATE_RUNNING;
    for (size_t i = 0; i < job_request_servers(&job->request); i++)
        if (job->servers[i]->state != LEASE_STATE_RUNNING)
            return false;
    return has_worker;
}

bool job_all_leases_ended(const struct job *job)
{
    for (size_t i = 0; i < job->lease_count; i++)
        if (lease_is_open(job->leases[i]))
            return false;
    return true;
}
