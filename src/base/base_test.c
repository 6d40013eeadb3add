/* covers arena.c, assert.c, buffer.c, clock.c, error.c, log.c, random.c */
#include "base/arena.h"
#include "base/assert.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/random.h"
#include "testing/testing.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(an_error_keeps_its_code_and_gains_context)
{
    struct error error = {0};
    assert_int_equal(error_set(&error, ERROR_CONFLICT, "name \"%s\" is taken", "heron"), -1);
    assert_int_equal(error_wrap(&error, "enrol"), -1);
    assert_string_equal(error.message, "enrol: name \"heron\" is taken");
    assert_int_equal(error.code, ERROR_CONFLICT);
    assert_int_equal(error_http_status(error.code), 409);
    assert_int_equal(error_set_errno(&error, ENOSPC, "write \"x\""), -1);
    assert_int_equal(error.code, ERROR_EXHAUSTED);
    assert_string_equal(error.message, "write \"x\": No space left on device");
}

TEST(a_failed_assertion_ends_the_program_in_every_build)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        ASSERT(1 + 1 == 3);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(an_arena_gives_zeroed_memory_up_to_its_maximum)
{
    struct error error = {0};
    AUTO(arena) struct arena *arena = arena_new(100000);
    char *first = arena_alloc(arena, 30000);
    assert_int_equal(first[29999], 0);
    void *memory;
    ASSERT_OK(arena_try_alloc(arena, 60000, &memory, &error));
    ASSERT_FAILS(arena_try_alloc(arena, 60000, &memory, &error), ERROR_EXHAUSTED);
    ASSERT_FAILS(arena_try_alloc(arena, SIZE_MAX, &memory, &error), ERROR_EXHAUSTED);
    assert_string_equal(arena_format(arena, "%s-%d", "lease", 7), "lease-7");
    arena_clear(arena);
    assert_int_equal(arena_size(arena), 0);
    first = arena_alloc(arena, 64);
    assert_int_equal(first[0], 0);
}

static bool is_zero(const void *memory, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (((const uint8_t *)memory)[i])
            return false;
    return true;
}

TEST(what_is_secret_is_wiped_when_it_is_cleared)
{
    struct buffer buffer AUTO_BUFFER;
    buffer_init_secret(&buffer, 1000);
    for (int i = 0; i < 90; i++) /* it grows on the way */
        buffer_append_string(&buffer, "password");
    assert_int_equal(buffer.size, 720);
    assert_memory_equal(buffer.data + 712, "password", 8);
    buffer_clear(&buffer);
    assert_true(is_zero(buffer.data, buffer.capacity));
    AUTO(arena) struct arena *arena = arena_new_secret(0);
    const char *copy = arena_copy_string(arena, TEXT("password"));
    arena_clear(arena);
    assert_true(is_zero(copy, 8)); /* the first block is kept */
}

TEST(a_buffer_stops_at_its_maximum_and_says_so)
{
    struct error error = {0};
    struct buffer buffer AUTO_BUFFER;
    buffer_init(&buffer, 8);
    buffer_append_string(&buffer, "12345");
    ASSERT_OK(buffer_check(&buffer, &error));
    buffer_append_string(&buffer, "6789");
    ASSERT_FAILS(buffer_check(&buffer, &error), ERROR_EXHAUSTED);
    buffer_append_string(&buffer, "6");
    assert_int_equal(buffer.size, 5);
    buffer_clear(&buffer);
    buffer_append_format(&buffer, "%d", 12345678);
    ASSERT_OK(buffer_check(&buffer, &error));
    buffer_consume(&buffer, 6);
    assert_true(text_equal(buffer_text(&buffer), TEXT("78")));
    assert_string_equal(buffer_string(&buffer), "78");
}

TEST(virtual_time_passes_only_when_told)
{
    struct virtual_clock time;
    virtual_clock_init(&time, 1000);
    assert_int_equal(clock_utc_ms(&time.clock), 1000);
    virtual_clock_advance(&time, 2500000000);
    assert_int_equal(clock_utc_ms(&time.clock), 3500);
    assert_int_equal(clock_monotonic_ns(&time.clock), 2500000000);
    char text[CLOCK_TEXT_SIZE];
    clock_format_utc(1700000000123, text);
    assert_string_equal(text, "2023-11-14T22:13:20.123Z");
    clock_format_utc(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999Z");
}

TEST(the_same_seed_gives_the_same_numbers)
{
    struct random left, right;
    random_init(&left, 42);
    random_init(&right, 42);
    double sum = 0, squares = 0;
    for (int i = 0; i < 100000; i++) {
        assert_true(random_u64(&left) == random_u64(&right));
        const double normal = random_normal(&left);
        assert_true(normal == random_normal(&right));
        sum += normal;
        squares += normal * normal;
        assert_true(random_below(&left, 10) < 10);
        random_below(&right, 10);
    }
    assert_true(sum / 100000 < 0.02 && sum / 100000 > -0.02);
    assert_true(squares / 100000 < 1.03 && squares / 100000 > 0.97);
}

TEST(a_shuffle_keeps_every_index)
{
    struct random random;
    random_init(&random, 3);
    uint32_t indices[100], seen[100] = {0};
    for (uint32_t i = 0; i < 100; i++)
        indices[i] = i;
    random_shuffle(&random, indices, 100);
    for (int i = 0; i < 100; i++)
        seen[indices[i]]++;
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
}

struct item {
    int value;
    struct list_node node;
};

TEST(a_list_keeps_order_and_allows_removal_while_walking)
{
    struct list list;
    list_init(&list);
    struct item items[3] = {{1, {0}}, {2, {0}}, {3, {0}}};
    for (int i = 0; i < 3; i++)
        list_append(&list, &items[i].node);
    int sum = 0;
    LIST_EACH(&list, node)
    {
        struct item *item = LIST_ITEM(node, struct item, node);
        sum = sum * 10 + item->value;
        if (item->value == 2)
            list_remove(node);
    }
    assert_int_equal(sum, 123);
    assert_false(list_contains(&items[1].node));
    assert_ptr_equal(list_take_first(&list), &items[0].node);
    assert_ptr_equal(list_take_first(&list), &items[2].node);
    assert_null(list_take_first(&list));
}

TEST(no_value_can_forge_a_log_line)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    log_event(LOG_INFO, "enrolled", "name=%s", "x\n2026 error forged");
    log_event(LOG_DEBUG, "hidden", "a=%d", 1);
    log_event(LOG_WARN, "failed", "error=\"%s\" code=%d", "a \"b\\\1\2", 7);
    dup2(kept, STDERR_FILENO);
    close(kept);
    char line[256];
    const ssize_t size = read(ends[0], line, sizeof(line) - 1);
    close(ends[0]);
    close(ends[1]);
    assert_true(size > 0);
    line[size] = '\0';
    assert_non_null(strstr(line, " info enrolled name=x?2026 error forged\n"));
    assert_null(strstr(line, "hidden"));
    assert_non_null(strstr(line, " warn failed error=\"a \\\"b\\\\??\" code=7\n"));

    struct error error = {0};
    enum log_level level;
    ASSERT_OK(log_level_parse(TEXT("debug"), &level, &error));
    assert_int_equal(level, LOG_DEBUG);
    ASSERT_FAILS(log_level_parse(TEXT("loud"), &level, &error), ERROR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_keeps_its_code_and_gains_context),
        cmocka_unit_test(a_failed_assertion_ends_the_program_in_every_build),
        cmocka_unit_test(an_arena_gives_zeroed_memory_up_to_its_maximum),
        cmocka_unit_test(what_is_secret_is_wiped_when_it_is_cleared),
        cmocka_unit_test(a_buffer_stops_at_its_maximum_and_says_so),
        cmocka_unit_test(virtual_time_passes_only_when_told),
        cmocka_unit_test(the_same_seed_gives_the_same_numbers),
        cmocka_unit_test(a_shuffle_keeps_every_index),
        cmocka_unit_test(a_list_keeps_order_and_allows_removal_while_walking),
        cmocka_unit_test(no_value_can_forge_a_log_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
