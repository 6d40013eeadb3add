/* A worker whose server is played by hand: its session ends while the training thread makes an
 * update, for which that gives the lock up. */
#include "exchange/client_stage_internal.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 1 << 16 }; /* a whole number of pages on any machine */

/* It computes on while a push is under way. */
static const struct exchange_settings overlapped = {.local_steps = 1, .overlap = 8, .density = 1};
static const struct exchange_step one_step = {.samples = 1, .loss = 1};

/* The parameters, in a page of their own: the training thread stands still where it reads them. */
static float *page;
static int reached[2], released[2]; /* pipes */

static void on_fault(int number)
{
    (void)number;
    char word = 0;
    if (write(reached[1], &word, 1) != 1 || read(released[0], &word, 1) != 1 ||
        mprotect(page, PAGE, PROT_READ | PROT_WRITE) < 0)
        _exit(1);
}

static void *step(void *context)
{
    const struct stage *stage = context;
    exchange_client_step(stage->client, &one_step, page);
    return NULL;
}

/* The worker's first step, whose update is being made. */
static void update_begin(struct stage *stage)
{
    char word;
    const struct sigaction action = {.sa_handler = on_fault}; /* in the place of cmocka's */
    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
    stage_open(stage, &overlapped);
    assert_true(exchange_client_exchange(stage->client, page)); /* takes the model */
    assert_int_equal(mprotect(page, PAGE, PROT_NONE), 0);
    assert_int_equal(pthread_create(&stage->training, NULL, step, stage), 0);
    assert_int_equal(read(reached[0], &word, 1), 1);
}

static void update_end(struct stage *stage)
{
    const char word = 0;
    assert_int_equal(write(released[1], &word, 1), 1);
    assert_int_equal(pthread_join(stage->training, NULL), 0);
}

/* The next step is pushed, and the server has had so many pushes then. */
static void assert_pushes(struct stage *stage, uint32_t pushes)
{
    const uint32_t runs = stage->runs;
    assert_true(exchange_client_exchange(stage->client, page)); /* takes the model */
    assert_true(exchange_client_count(stage->client, &one_step));
    assert_true(exchange_client_exchange(stage->client, page));
    RUN_UNTIL(stage, stage->runs > runs);
    assert_int_equal(stage->pushes, pushes);
}

static void send_again(struct stage *stage)
{
    send_message(stage, &(struct exchange_message){.type = EXCHANGE_AGAIN, .again_session = 1});
}

TEST(a_worker_whose_link_breaks_while_it_makes_an_update_pushes_on_the_next)
{
    struct stage stage;
    update_begin(&stage);
    link_free(TAKE(stage.link));
    RUN_UNTIL(&stage, status_of(&stage).state == EXCHANGE_CLIENT_CONNECTING);
    update_end(&stage);
    stage_dial(&stage);
    stage_join(&stage, 2);
    assert_pushes(&stage, 1);
    stage_close(&stage);
}

TEST(an_update_made_while_a_session_begins_anew_is_not_pushed_before_the_model_comes)
{
    struct stage stage;
    update_begin(&stage);
    send_again(&stage);
    RUN_UNTIL(&stage, stage.joins == 2);
    update_end(&stage);
    stage_join(&stage, 2);
    assert_pushes(&stage, 1);
    stage_close(&stage);
}

TEST(an_update_that_is_made_once_the_next_session_stands_is_pushed_in_that)
{
    struct stage stage;
    update_begin(&stage);
    send_again(&stage);
    stage_join(&stage, 2);
    update_end(&stage);
    RUN_UNTIL(&stage, stage.runs == 1);
    send_model(&stage, 1, 0);
    send_data(&stage);
    RUN_UNTIL(&stage, status_of(&stage).commits == 1);
    assert_pushes(&stage, 2);
    stage_close(&stage);
}

static int prepare(void **state)
{
    (void)state;
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page != MAP_FAILED && pipe(reached) == 0 && pipe(released) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_whose_link_breaks_while_it_makes_an_update_pushes_on_the_next),
        cmocka_unit_test(
            an_update_made_while_a_session_begins_anew_is_not_pushed_before_the_model_comes),
        cmocka_unit_test(an_update_that_is_made_once_the_next_session_stands_is_pushed_in_that),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
