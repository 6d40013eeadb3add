#include "client/sse.h"
#include "testing/testing.h"

#include <stdio.h>
#include <string.h>

struct seen {
    char text[4096];
    int count;
};

static void on_event(void *context, const char *name, struct text data)
{
    struct seen *seen = context;
    const size_t used = strlen(seen->text);
    snprintf(seen->text + used, sizeof(seen->text) - used, "[%s:%.*s]", name,
             (int)(data.size < 200 ? data.size : 200), data.data);
    seen->count++;
}

/* Feeds the stream in pieces of `step` bytes. */
static void assert_events(const char *stream, size_t step, const char *expected)
{
    struct seen seen = {0};
    struct sse_reader reader;
    sse_reader_init(&reader, on_event, &seen);
    const size_t size = strlen(stream);
    for (size_t at = 0; at < size; at += step)
        sse_reader_feed(&reader, (struct text){stream + at, size - at < step ? size - at : step});
    sse_reader_done(&reader);
    assert_string_equal(seen.text, expected);
}

TEST(events_are_found_however_the_bytes_are_cut)
{
    const char *stream = ": hello\n\nevent: metric\nid: 4\ndata: {\"a\":1}\n\ndata:x\ndata: y\n\n"
                         "event: bill\r\ndata: 2\r\n\r\nretry: 5\n\ndata\n\ndata: unfinished\n";
    for (size_t step = 1; step < 40; step++)
        assert_events(stream, step, "[metric:{\"a\":1}][message:x\ny][bill:2][message:]");
}

TEST(an_event_that_is_too_long_is_skipped_whole)
{
    struct seen seen = {0};
    struct sse_reader reader;
    sse_reader_init(&reader, on_event, &seen);
    static char block[4096];
    memset(block, 'x', sizeof(block));
    sse_reader_feed(&reader, TEXT("data: "));
    for (int i = 0; i < 2 * SSE_DATA_MAX / 4096; i++)
        sse_reader_feed(&reader, (struct text){block, sizeof(block)});
    sse_reader_feed(&reader, TEXT("\ndata: rest\n\ndata: next\n\n"));
    sse_reader_done(&reader);
    assert_string_equal(seen.text, "[message:next]");
}

TEST(an_event_of_many_lines_keeps_to_the_maximum)
{
    struct seen seen = {0};
    struct sse_reader reader;
    sse_reader_init(&reader, on_event, &seen);
    for (int i = 0; i < SSE_DATA_MAX; i++)
        sse_reader_feed(&reader, TEXT("data: xy\n"));
    sse_reader_feed(&reader,
                    TEXT("\nevent: a_name_longer_than_thirty_two_characters\ndata: z\n\n"));
    sse_reader_done(&reader);
    assert_string_equal(seen.text, "[message:z]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_found_however_the_bytes_are_cut),
        cmocka_unit_test(an_event_that_is_too_long_is_skipped_whole),
        cmocka_unit_test(an_event_of_many_lines_keeps_to_the_maximum),
    };
    return cmocka_run_group_tests_name("sse", tests, NULL, NULL);
}
