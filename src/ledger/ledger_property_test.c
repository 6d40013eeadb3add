/*
 * Random operations on the ledger alone, most of them sensible: what is refused changes nothing,
 * the rest is what a second, much simpler set of books says, and everything always sums to zero.
 *
 * covers plan.c, commit.c
 */
#include "base/random.h"
#include "ledger/ledger.h"
#include "testing/testing.h"

enum {
    MINT = 1,
    OPERATOR = 2,
    MEMBER_FIRST = 3,
    MEMBER_COUNT = 5,
    ACCOUNT_END = MEMBER_FIRST + MEMBER_COUNT,
    JOB_FIRST = 50,
    JOB_COUNT = 6,
    SEED_COUNT = 20,
    STEP_COUNT = 10000,
};

/* What the books should say: whole balances, from nothing but who asked for what. */
struct books {
    int64_t balance_micro[ACCOUNT_END];
    int64_t held_micro[JOB_COUNT];
    uint64_t payer[JOB_COUNT];
};

struct trial {
    struct random random;
    struct ledger *ledger;
    struct books books;
    uint64_t done, refused, own_pays;
};

static uint64_t below(struct trial *trial, uint64_t bound)
{
    return random_below(&trial->random, bound);
}

static int64_t random_amount(struct trial *trial)
{
    if (below(trial, 50) == 0)
        return (int64_t[]){INT64_MAX, INT64_MIN, -1, 0}[below(trial, 4)];
    return 1 + (int64_t)below(trial, 1000);
}

/* Any account, mint and one that does not exist among them now and then. */
static uint64_t random_account(struct trial *trial)
{
    return below(trial, 20) ? MEMBER_FIRST + below(trial, MEMBER_COUNT)
                            : below(trial, ACCOUNT_END + 1);
}

static int grant(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    const uint64_t account = random_account(trial);
    const int64_t amount = random_amount(trial);
    if (ledger_plan_grant(trial->ledger, account, amount, plan, error) < 0)
        return -1;
    trial->books.balance_micro[MINT] -= amount;
    trial->books.balance_micro[account] += amount;
    return 0;
}

static int hold(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    const size_t job = below(trial, JOB_COUNT);
    const bool is_raised = trial->books.held_micro[job] > 0 && below(trial, 10);
    const uint64_t account = is_raised ? trial->books.payer[job] : random_account(trial);
    const int64_t amount = random_amount(trial);
    if (ledger_plan_hold(trial->ledger, account, JOB_FIRST + job, amount, plan, error) < 0)
        return -1;
    assert_true(trial->books.held_micro[job] == 0 || trial->books.payer[job] == account);
    trial->books.held_micro[job] += amount;
    trial->books.payer[job] = account;
    return 0;
}

static int64_t share_of(int64_t amount_micro, size_t basis_points)
{
    return (int64_t)((__int128)amount_micro * (int64_t)basis_points / 10000);
}

static int post(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    const size_t job = below(trial, JOB_COUNT);
    struct ledger_post post = {.job = JOB_FIRST + job,
                               .payee = random_account(trial),
                               .amount_micro = random_amount(trial)};
    post.fee_micro = share_of(post.amount_micro, below(trial, 501));
    post.withheld_micro = share_of(post.amount_micro - post.fee_micro, 2500 * below(trial, 3));
    if (below(trial, 50) == 0 && post.amount_micro < INT64_MAX)
        post.withheld_micro = post.amount_micro + 1; /* more than there is */
    if (ledger_plan_post(trial->ledger, &post, plan, error) < 0)
        return -1;
    const int64_t fee_micro = post.fee_micro;
    trial->books.held_micro[job] -= post.amount_micro;
    trial->books.balance_micro[trial->books.payer[job]] -= post.amount_micro;
    trial->books.balance_micro[post.payee] += post.amount_micro - fee_micro;
    trial->books.balance_micro[OPERATOR] += fee_micro;
    return 0;
}

static int void_some(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    const size_t job = below(trial, JOB_COUNT);
    const int64_t amount = random_amount(trial);
    if (ledger_plan_void(trial->ledger, JOB_FIRST + job, amount, plan, error) < 0)
        return -1;
    trial->books.held_micro[job] -= amount;
    return 0;
}

static int release(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    return ledger_plan_release(trial->ledger, random_account(trial), random_amount(trial), plan,
                               error);
}

static int transfer(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    const uint64_t from = random_account(trial), to = random_account(trial);
    const int64_t amount = random_amount(trial);
    if (ledger_plan_transfer(trial->ledger, from, to, amount, plan, error) < 0)
        return -1;
    trial->books.balance_micro[from] -= amount;
    trial->books.balance_micro[to] += amount;
    return 0;
}

static int reclaim(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    const uint64_t account = random_account(trial);
    if (ledger_plan_reclaim(trial->ledger, account, random_amount(trial), plan, error) < 0)
        return -1;
    const int64_t amount = plan->entry_count ? plan->entries[0].amount_micro : 0;
    trial->books.balance_micro[account] -= amount;
    trial->books.balance_micro[MINT] += amount;
    return 0;
}

static int freeze(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    *plan = (struct ledger_plan){0};
    return ledger_set_frozen(trial->ledger, random_account(trial), below(trial, 4) == 0, error);
}

static int cost(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    return ledger_plan_cost(trial->ledger, random_account(trial), random_amount(trial), plan,
                            error);
}

/* To add an operation: its function above, and how often it is tried. */
static const struct operation {
    uint64_t weight;
    int (*run)(struct trial *trial, struct ledger_plan *plan, struct error *error);
} operations[] = {
    {20, grant},    {30, hold},   {30, post},  {15, void_some}, {10, release},
    {20, transfer}, {2, reclaim}, {3, freeze}, {5, cost},
};

static int run_random(struct trial *trial, struct ledger_plan *plan, struct error *error)
{
    uint64_t total = 0;
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
        total += operations[i].weight;
    uint64_t dice = below(trial, total);
    const struct operation *operation = operations;
    while (dice >= operation->weight)
        dice -= operation++->weight;
    return operation->run(trial, plan, error);
}

static void assert_as_in_books(const struct trial *trial)
{
    struct error error = {0};
    const struct ledger *ledger = trial->ledger;
    assert_int_equal(ledger_sum_micro(ledger), 0);
    ASSERT_OK(ledger_check(ledger, &error));
    int64_t held_micro[ACCOUNT_END] = {0};
    for (size_t job = 0; job < JOB_COUNT; job++) {
        assert_int_equal(ledger_hold_micro(ledger_hold(ledger, JOB_FIRST + job)),
                         trial->books.held_micro[job]);
        held_micro[trial->books.payer[job]] += trial->books.held_micro[job];
    }
    for (uint64_t id = MINT; id < ACCOUNT_END; id++) {
        const struct ledger_account *account = ledger_account(ledger, id);
        assert_int_equal(ledger_balance_micro(account), trial->books.balance_micro[id]);
        assert_int_equal(account->held_micro, held_micro[id]);
        assert_true(id == MINT || account->granted_micro >= 0);
        assert_true(account->earned_micro >= account->withheld_micro &&
                    account->withheld_micro >= 0);
    }
}

static void copy_ledger(const struct ledger *ledger, struct ledger **out_copy)
{
    struct error error = {0};
    AUTO(ledger) struct ledger *copy = ledger_new(MINT, OPERATOR);
    for (size_t i = 0; i < ledger_account_count(ledger); i++)
        ASSERT_OK(ledger_restore_account(copy, ledger_account_at(ledger, i), &error));
    for (size_t i = 0; i < ledger_hold_count(ledger); i++)
        ASSERT_OK(ledger_restore_hold(copy, ledger_hold_at(ledger, i), &error));
    ledger_restore_entry_count(copy, ledger_entry_count(ledger));
    if (ledger_returns_own(ledger))
        ledger_return_own(copy);
    ASSERT_OK(ledger_check(copy, &error));
    *out_copy = TAKE(copy);
}

static int64_t all_granted_micro(const struct ledger *ledger, uint64_t account)
{
    int64_t granted_micro = ledger_account(ledger, account)->granted_micro;
    for (size_t i = 0; i < ledger_hold_count(ledger); i++)
        if (ledger_hold_at(ledger, i)->account == account)
            granted_micro += ledger_hold_at(ledger, i)->granted_micro;
    return granted_micro;
}

/* Who pays itself makes nothing of it that could be given away. */
static void commit_own_pay(struct trial *trial, const struct ledger_entry *entry)
{
    struct error error = {0};
    const uint64_t account = entry->from_account;
    const int64_t granted_micro = all_granted_micro(trial->ledger, account);
    ASSERT_OK(ledger_commit(trial->ledger, entry, &error));
    assert_int_equal(all_granted_micro(trial->ledger, account), granted_micro);
    trial->own_pays++;
}

static bool is_own_pay(const struct ledger *ledger, const struct ledger_entry *entry)
{
    return ledger_returns_own(ledger) && entry->from_account == entry->to_account &&
           (entry->kind == LEDGER_ENTRY_POST || entry->kind == LEDGER_ENTRY_FEE);
}

static void step(struct trial *trial)
{
    struct error error = {0};
    struct ledger_plan plan;
    const uint64_t entry_count = ledger_entry_count(trial->ledger);
    if (run_random(trial, &plan, &error) < 0) {
        trial->refused++;
        assert_true(error.code != ERROR_NONE && error.code != ERROR_CORRUPT);
        assert_int_equal(ledger_entry_count(trial->ledger), entry_count);
        return;
    }
    trial->done++;
    for (size_t i = 0; i < plan.entry_count; i++)
        if (is_own_pay(trial->ledger, &plan.entries[i]))
            commit_own_pay(trial, &plan.entries[i]);
        else
            ASSERT_OK(ledger_commit(trial->ledger, &plan.entries[i], &error));
    assert_int_equal(ledger_entry_count(trial->ledger), entry_count + plan.entry_count);
}

static void run_seed(uint64_t seed)
{
    struct error error = {0};
    struct trial trial = {.ledger = ledger_new(MINT, OPERATOR)};
    random_init(&trial.random, seed);
    for (uint64_t id = MEMBER_FIRST; id < ACCOUNT_END; id++)
        ASSERT_OK(ledger_open_account(trial.ledger, id, &error));
    for (int i = 0; i < STEP_COUNT; i++) {
        if (i == STEP_COUNT / 2)
            ledger_return_own(trial.ledger);
        step(&trial);
        assert_as_in_books(&trial);
        if (i % 1000 == 0) { /* as after a restart from a snapshot */
            struct ledger *copy = NULL;
            copy_ledger(trial.ledger, &copy);
            ledger_free(trial.ledger);
            trial.ledger = copy;
        }
    }
    print_message("%d done, %d refused\n", (int)trial.done, (int)trial.refused);
    assert_true(trial.done > STEP_COUNT / 3 && trial.refused > STEP_COUNT / 50);
    ledger_free(trial.ledger);
}

TEST(any_sequence_of_operations_keeps_the_books)
{
    for (uint64_t seed = 1; seed <= SEED_COUNT; seed++) {
        print_message("seed %d\n", (int)seed);
        run_seed(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_sequence_of_operations_keeps_the_books),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
