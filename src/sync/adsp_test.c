/*
 * ADSP in virtual time: unequal workers train a seeded logistic regression with real gradients
 * under the real policies; the driver below is what the parameter server is in real time.
 */
#include "base/random.h"
#include "base/scope.h"
#include "sync/policy.h"
#include "testing/testing.h"

#include <math.h>

enum { WORKER_MAX = 8, FEATURES = 12, SAMPLES = 512, BATCH = 8 };
#define SECOND INT64_C(1000000000)

struct sim_worker {
    int64_t step_ns;   /* duration of one step */
    int64_t commit_ns; /* O: half to the server, half back */
    bool is_alive;
    int64_t step_end_ns; /* INT64_MAX while it waits */
    int64_t push_at_ns;  /* arrival at the server; INT64_MAX: none under way */
    int64_t reply_at_ns; /* arrival of the answer */
    int64_t sent_ns;
    int64_t due_ns; /* of the next push, by period */
    uint32_t steps_wanted;
    int64_t period_ns;
    uint32_t steps; /* since the last push */
    int64_t last_commit_ns;
    uint32_t commits;
    int64_t waited_ns, waiting_since_ns;
    double local[FEATURES], base[FEATURES], update[FEATURES], answer[FEATURES];
};

struct sim {
    struct sync_policy *policy;
    struct random random;
    int64_t now_ns;
    uint32_t worker_count;
    struct sim_worker workers[WORKER_MAX];
    double model[FEATURES], gathered[FEATURES];
    uint32_t gathered_count;
    double x[SAMPLES][FEATURES], y[SAMPLES];
    bool is_loss_due;
    struct sync_loss loss;
    uint32_t hold_count;
};

static double margin_of(const struct sim *sim, const double *w, uint32_t sample)
{
    double sum = 0;
    for (uint32_t k = 0; k < FEATURES; k++)
        sum += w[k] * sim->x[sample][k];
    return sum * sim->y[sample];
}

static double loss_of(const struct sim *sim, const double *w)
{
    double sum = 0;
    for (uint32_t i = 0; i < SAMPLES; i++)
        sum += log1p(exp(-margin_of(sim, w, i)));
    return sum / SAMPLES;
}

static void step(struct sim *sim, struct sim_worker *worker)
{
    double gradient[FEATURES] = {0};
    for (uint32_t b = 0; b < BATCH; b++) {
        const uint32_t i = (uint32_t)random_below(&sim->random, SAMPLES);
        const double slope = -sim->y[i] / (1 + exp(margin_of(sim, worker->local, i)));
        for (uint32_t k = 0; k < FEATURES; k++)
            gradient[k] += slope * sim->x[i][k] / BATCH;
    }
    for (uint32_t k = 0; k < FEATURES; k++)
        worker->local[k] -= 0.05 * gradient[k];
    worker->steps++;
}

static void carry_out(struct sim *sim, const struct sync_actions *actions)
{
    for (uint32_t i = 0; i < actions->count; i++) {
        const struct sync_action *action = &actions->items[i];
        struct sim_worker *worker = &sim->workers[action->worker];
        switch (action->kind) {
        case SYNC_APPLY:
            for (uint32_t k = 0; k < FEATURES; k++)
                sim->model[k] += action->weight * worker->update[k];
            break;
        case SYNC_GATHER:
            for (uint32_t k = 0; k < FEATURES; k++)
                sim->gathered[k] += worker->update[k];
            sim->gathered_count++;
            break;
        case SYNC_FOLD:
            for (uint32_t k = 0; k < FEATURES; k++) {
                sim->model[k] += sim->gathered[k] / sim->gathered_count;
                sim->gathered[k] = 0;
            }
            sim->gathered_count = 0;
            break;
        case SYNC_REPLY:
        case SYNC_RELEASE:
            assert_true(worker->is_alive);
            memcpy(worker->answer, sim->model, sizeof worker->answer);
            worker->reply_at_ns = sim->now_ns + worker->commit_ns / 2;
            break;
        case SYNC_HOLD:
            sim->hold_count++;
            break;
        case SYNC_SET_STEPS:
            worker->steps_wanted = action->steps;
            break;
        case SYNC_SET_PERIOD:
            worker->period_ns = action->period_ns;
            worker->due_ns = sim->now_ns + action->period_ns < worker->due_ns || !worker->due_ns
                                 ? sim->now_ns + action->period_ns
                                 : worker->due_ns;
            break;
        case SYNC_EVALUATE:
            sim->is_loss_due = true;
            sim->loss = (struct sync_loss){sim->now_ns, loss_of(sim, sim->model)};
            break;
        case SYNC_SET_BATCH:
        case SYNC_KEEP:
        case SYNC_RETURN:
        case SYNC_BARRIER:
        case SYNC_STOP:
        case SYNC_ACTION_KIND_COUNT:
            fail();
        }
    }
}

static void join(struct sim *sim, uint32_t index)
{
    struct sim_worker *worker = &sim->workers[index];
    const int64_t step_ns = worker->step_ns, commit_ns = worker->commit_ns;
    *worker = (struct sim_worker){.step_ns = step_ns, .commit_ns = commit_ns, .is_alive = true};
    worker->push_at_ns = worker->reply_at_ns = INT64_MAX;
    worker->step_end_ns = sim->now_ns + step_ns;
    memcpy(worker->local, sim->model, sizeof worker->local);
    memcpy(worker->base, sim->model, sizeof worker->base);
    struct sync_actions actions = {0};
    sync_policy_join(sim->policy, sim->now_ns, index, &actions);
    carry_out(sim, &actions);
}

static void leave(struct sim *sim, uint32_t index)
{
    sim->workers[index].is_alive = false;
    struct sync_actions actions = {0};
    sync_policy_leave(sim->policy, sim->now_ns, index, &actions);
    carry_out(sim, &actions);
}

static void send_push(struct sim *sim, struct sim_worker *worker)
{
    for (uint32_t k = 0; k < FEATURES; k++) {
        worker->update[k] = worker->local[k] - worker->base[k];
        worker->base[k] = worker->local[k];
    }
    worker->sent_ns = sim->now_ns;
    worker->push_at_ns = sim->now_ns + worker->commit_ns / 2;
    if (worker->steps_wanted) {
        worker->waiting_since_ns = sim->now_ns;
        worker->step_end_ns = INT64_MAX;
    }
}

static void end_step(struct sim *sim, struct sim_worker *worker)
{
    step(sim, worker);
    worker->step_end_ns = sim->now_ns + worker->step_ns;
    const bool is_in_flight = worker->push_at_ns != INT64_MAX || worker->reply_at_ns != INT64_MAX;
    if (is_in_flight)
        return;
    if (worker->steps_wanted ? worker->steps >= worker->steps_wanted
                             : sim->now_ns >= worker->due_ns)
        send_push(sim, worker);
}

static void arrive_push(struct sim *sim, uint32_t index)
{
    struct sim_worker *worker = &sim->workers[index];
    worker->push_at_ns = INT64_MAX;
    worker->commits++;
    const struct sync_push push = {.worker = index,
                                   .steps = worker->steps,
                                   .compute_ns = worker->steps * worker->step_ns,
                                   .commit_ns = worker->last_commit_ns};
    worker->steps = 0;
    struct sync_actions actions = {0};
    sync_policy_push(sim->policy, sim->now_ns, &push, &actions);
    carry_out(sim, &actions);
}

static void arrive_reply(struct sim *sim, struct sim_worker *worker)
{
    worker->reply_at_ns = INT64_MAX;
    worker->last_commit_ns = sim->now_ns - worker->sent_ns;
    for (uint32_t k = 0; k < FEATURES; k++) {
        worker->local[k] += worker->answer[k] - worker->base[k];
        worker->base[k] = worker->answer[k];
    }
    if (worker->steps_wanted) {
        worker->waited_ns += sim->now_ns - worker->waiting_since_ns;
        worker->step_end_ns = sim->now_ns + worker->step_ns;
    } else {
        /* What the last push was late by, waiting for a step to end, comes off this period. */
        int64_t late_ns = worker->sent_ns - worker->due_ns;
        late_ns = late_ns < worker->period_ns ? late_ns : worker->period_ns;
        worker->due_ns = sim->now_ns + worker->period_ns - late_ns;
    }
}

/* Runs the earliest event before `until_ns`; false when there is none. */
static bool advance(struct sim *sim, int64_t until_ns)
{
    int64_t at_ns = sync_policy_wake_ns(sim->policy);
    if (sim->is_loss_due)
        at_ns = sim->now_ns;
    uint32_t who = WORKER_MAX;
    for (uint32_t i = 0; i < sim->worker_count; i++) {
        const struct sim_worker *worker = &sim->workers[i];
        int64_t next = worker->step_end_ns;
        next = worker->push_at_ns < next ? worker->push_at_ns : next;
        next = worker->reply_at_ns < next ? worker->reply_at_ns : next;
        if (worker->is_alive && next < at_ns) {
            at_ns = next;
            who = i;
        }
    }
    if (at_ns > until_ns) {
        sim->now_ns = until_ns;
        return false;
    }
    sim->now_ns = at_ns > sim->now_ns ? at_ns : sim->now_ns;
    if (who == WORKER_MAX) {
        struct sync_actions actions = {0};
        const struct sync_loss loss = sim->loss;
        const bool has_loss = sim->is_loss_due;
        sim->is_loss_due = false;
        sync_policy_tick(sim->policy, sim->now_ns, has_loss ? &loss : NULL, &actions);
        carry_out(sim, &actions);
        return true;
    }
    struct sim_worker *worker = &sim->workers[who];
    if (worker->reply_at_ns == at_ns)
        arrive_reply(sim, worker);
    else if (worker->push_at_ns == at_ns)
        arrive_push(sim, who);
    else
        end_step(sim, worker);
    return true;
}

static void run_until(struct sim *sim, int64_t until_ns)
{
    while (advance(sim, until_ns))
        continue;
}

struct sim_options {
    const char *policy;
    enum sync_search search;
    int64_t gamma_ms;
    uint64_t seed;
    uint32_t worker_count;
    int64_t step_ns[WORKER_MAX];
    int64_t commit_ns;
};

static const struct sim_options unequal = {
    .gamma_ms = 10000,
    .seed = 7,
    .worker_count = 3,
    .step_ns = {SECOND / 40, SECOND / 20, SECOND / 10},
    .commit_ns = SECOND / 20,
};

static struct sim *sim_begin(struct sim_options options)
{
    struct error error;
    struct sim *sim = calloc(1, sizeof *sim);
    assert_non_null(sim);
    const struct sync_settings settings = {.gamma_ms = options.gamma_ms, .search = options.search};
    ASSERT_OK(sync_policy_new(text_of(options.policy), &settings, &sim->policy, &error));
    random_init(&sim->random, options.seed);
    double truth[FEATURES];
    for (uint32_t k = 0; k < FEATURES; k++)
        truth[k] = 2 * random_normal(&sim->random);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        sim->y[i] = 1;
        for (uint32_t k = 0; k < FEATURES; k++)
            sim->x[i][k] = random_normal(&sim->random);
        sim->y[i] = margin_of(sim, truth, i) + random_normal(&sim->random) > 0 ? 1 : -1;
    }
    sim->now_ns = 1;
    sim->worker_count = options.worker_count;
    for (uint32_t i = 0; i < options.worker_count; i++) {
        sim->workers[i].step_ns = options.step_ns[i];
        sim->workers[i].commit_ns = options.commit_ns;
        join(sim, i);
    }
    return sim;
}

static void sim_free(struct sim *sim)
{
    if (sim)
        sync_policy_free(sim->policy);
    free(sim);
}
DEFINE_AUTO(sim);

static struct sim_options with(struct sim_options options, const char *policy,
                               enum sync_search search)
{
    options.policy = policy;
    options.search = search;
    return options;
}

static void commit_spread(const struct sim *sim, uint32_t *out_least, uint32_t *out_most)
{
    *out_least = UINT32_MAX;
    *out_most = 0;
    for (uint32_t i = 0; i < sim->worker_count; i++) {
        const uint32_t commits = sim->workers[i].commits;
        *out_least = commits < *out_least ? commits : *out_least;
        *out_most = commits > *out_most ? commits : *out_most;
    }
}

TEST(workers_of_unequal_speed_commit_equally_often_and_never_wait)
{
    for (enum sync_search search = 0; search < SYNC_SEARCH_COUNT; search++) {
        AUTO(sim) struct sim *sim = sim_begin(with(unequal, "adsp", search));
        run_until(sim, 5 * SECOND); /* past the probing */
        uint32_t before[WORKER_MAX] = {0};
        for (int period = 0; period < 30; period++) {
            for (uint32_t i = 0; i < sim->worker_count; i++)
                before[i] = sim->workers[i].commits;
            run_until(sim, sim->now_ns + 10 * SECOND);
            for (uint32_t i = 1; i < sim->worker_count; i++) {
                const int a = (int)(sim->workers[i].commits - before[i]);
                const int b = (int)(sim->workers[0].commits - before[0]);
                assert_in_range(a - b + 1, 0, 2);
            }
        }
        uint32_t least, most;
        commit_spread(sim, &least, &most);
        assert_in_range(most - least, 0, 2); /* the probing may have cost one */
        assert_int_equal(sim->hold_count, 0);
        for (uint32_t i = 0; i < sim->worker_count; i++)
            assert_int_equal(sim->workers[i].waited_ns, 0);
    }
}

TEST(commits_are_under_way_a_third_of_the_time_at_most)
{
    AUTO(sim) struct sim *sim = sim_begin(with(unequal, "adsp", SYNC_SEARCH_AUTO));
    run_until(sim, 20 * SECOND);
    assert_true(sync_policy_status(sim->policy).is_searching);
    run_until(sim, 300 * SECOND);
    for (uint32_t i = 0; i < sim->worker_count; i++)
        assert_true(sim->workers[i].commits * sim->workers[i].commit_ns <= 300 * SECOND / 3);
    assert_true(sim->workers[0].commits > 100);
    assert_true(sync_policy_status(sim->policy).commit_rate >= 1);
}

TEST(the_paper_search_starts_at_one_commit_a_period)
{
    AUTO(sim) struct sim *sim = sim_begin(with(unequal, "adsp", SYNC_SEARCH_PAPER));
    run_until(sim, 5 * SECOND);
    assert_true(sync_policy_status(sim->policy).is_searching);
    assert_true(sync_policy_status(sim->policy).commit_rate == 1);
}

/* Workers come and go: the rest go on, and who returns keeps the common pace from then on. */
static void adsp_churn(uint64_t seed)
{
    struct sim_options options = with(unequal, "adsp", SYNC_SEARCH_AUTO);
    options.seed = seed;
    AUTO(sim) struct sim *sim = sim_begin(options);
    struct random random;
    random_init(&random, seed);
    for (int event = 0; event < 40; event++) {
        run_until(sim, sim->now_ns + (int64_t)random_below(&random, 8 * SECOND));
        const uint32_t index = (uint32_t)random_below(&random, sim->worker_count);
        if (sim->workers[index].is_alive)
            leave(sim, index);
        else
            join(sim, index);
    }
    for (uint32_t i = 0; i < sim->worker_count; i++)
        if (!sim->workers[i].is_alive)
            join(sim, i);
    run_until(sim, sim->now_ns + 40 * SECOND);
    const uint32_t first = sim->workers[0].commits;
    const uint32_t second = sim->workers[1].commits, third = sim->workers[2].commits;
    run_until(sim, sim->now_ns + 20 * SECOND);
    const uint32_t a = sim->workers[0].commits - first;
    assert_true(a > 0);
    assert_in_range(sim->workers[1].commits - second + 2 - a, 0, 4);
    assert_in_range(sim->workers[2].commits - third + 2 - a, 0, 4);
    assert_int_equal(sim->hold_count, 0);
}

TEST(adsp_survives_churn)
{
    for (uint64_t seed = 1; seed <= 20; seed++)
        adsp_churn(seed);
}

static int64_t time_to_loss(struct sim_options options, double target)
{
    AUTO(sim) struct sim *sim = sim_begin(options);
    while (loss_of(sim, sim->model) > target) {
        run_until(sim, sim->now_ns + SECOND / 10);
        assert_true(sim->now_ns < 2000 * SECOND);
    }
    return sim->now_ns;
}

TEST(adsp_reaches_the_target_sooner_than_bsp_on_unequal_speeds)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct sim_options options = unequal;
        options.seed = seed;
        options.commit_ns = SECOND / 10;
        const double target = 0.3;
        const int64_t bsp_ns = time_to_loss(with(options, "bsp", SYNC_SEARCH_AUTO), target);
        const int64_t adsp_ns = time_to_loss(with(options, "adsp", SYNC_SEARCH_AUTO), target);
        print_message("seed %d: bsp %.1f s, adsp %.1f s\n", (int)seed, 1e-9 * (double)bsp_ns,
                      1e-9 * (double)adsp_ns);
        assert_true(adsp_ns * 10 < bsp_ns * 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_of_unequal_speed_commit_equally_often_and_never_wait),
        cmocka_unit_test(commits_are_under_way_a_third_of_the_time_at_most),
        cmocka_unit_test(the_paper_search_starts_at_one_commit_a_period),
        cmocka_unit_test(adsp_survives_churn),
        cmocka_unit_test(adsp_reaches_the_target_sooner_than_bsp_on_unequal_speeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
