/*
 * A snapshot that was changed: what is still read hangs together and is written to the same state
 * again.
 *
 * The input is no snapshot but changes to one, so it stays good when their format moves on: a byte
 * that names a market, then any number of changes of six bytes each,
 *
 *     place u32 little-endian, change u8, value u8
 *
 * The market is played by random commands when it is first asked for. As it is it must be read.
 */
#include "base/assert.h"
#include "core/property_commands.h"

#include <stdlib.h>

enum { MARKET_COUNT = 4, COMMANDS_EACH = 200, CHANGE_SIZE = 6, CHANGES_MAX = 64 };

#define FIRST_MS     INT64_C(1800000000000)
#define SNAPSHOT_MAX ((size_t)1 << 24)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum change { CHANGE_BYTE, CHANGE_DELETE, CHANGE_INSERT, CHANGE_REPEAT, CHANGE_CUT, CHANGE_COUNT };

/* The first market is empty, each other one has seen more than the one before. */
static void play(size_t number, struct buffer *out)
{
    AUTO(core) struct core *core = core_new();
    struct property_world world = {.core = core, .now_ms = FIRST_MS};
    struct event_list events;
    struct error error;
    random_init(&world.random, number);
    event_list_init(&events);
    for (size_t i = 0; i < number * COMMANDS_EACH; i++) {
        const struct command command = property_command(&world);
        event_list_clear(&events);
        (void)!core_decide(core, &command, world.now_ms, &events, &error); /* some are wrong */
        property_pass_time(&world);
    }
    event_list_done(&events);
    buffer_init(out, SNAPSHOT_MAX);
    core_snapshot_write(core, out);
}

static struct text market_snapshot(size_t number)
{
    static struct buffer snapshots[MARKET_COUNT];
    if (snapshots[number].size == 0)
        play(number, &snapshots[number]);
    return buffer_text(&snapshots[number]);
}

/* The line that a place is in. */
static struct text line_at(struct text text, size_t at)
{
    size_t start = at, end = at;
    while (start > 0 && text.data[start - 1] != '\n')
        start--;
    while (end < text.size && text.data[end] != '\n')
        end++;
    return (struct text){text.data + start, end - start + (end < text.size)};
}

static void make_change(struct text text, const uint8_t bytes[CHANGE_SIZE], struct buffer *out)
{
    const size_t place =
        bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
    const size_t at = text.size ? place % text.size : 0;
    const struct text before = {text.data, at};
    struct text after = {text.data + at, text.size - at};
    buffer_append_text(out, before);
    switch ((enum change)(bytes[4] % CHANGE_COUNT)) {
    case CHANGE_BYTE:
        buffer_append_byte(out, bytes[5]);
        after = (struct text){after.data + (after.size > 0), after.size - (after.size > 0)};
        break;
    case CHANGE_DELETE: {
        const size_t gone = (size_t)bytes[5] + 1 < after.size ? (size_t)bytes[5] + 1 : after.size;
        after = (struct text){after.data + gone, after.size - gone};
        break;
    }
    case CHANGE_INSERT:
        buffer_append_byte(out, bytes[5]);
        break;
    case CHANGE_REPEAT:
        buffer_append_text(out, line_at(text, at));
        break;
    case CHANGE_CUT:
        return;
    case CHANGE_COUNT:
        UNREACHABLE("a change that is none");
    }
    buffer_append_text(out, after);
}

static void check_read(struct core *core)
{
    struct error error = {0};
    AUTO(core) struct core *again = NULL;
    struct buffer first AUTO_BUFFER, second AUTO_BUFFER;
    buffer_init(&first, SNAPSHOT_MAX);
    buffer_init(&second, SNAPSHOT_MAX);
    ASSERT(core_check(core, &error) == 0);
    core_snapshot_write(core, &first);
    ASSERT(core_snapshot_read(buffer_text(&first), &again, &error) == 0);
    core_snapshot_write(again, &second);
    ASSERT(text_equal(buffer_text(&first), buffer_text(&second)));
    ASSERT(core_next_wake_ms(core) == core_next_wake_ms(again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error error = {0};
    if (size == 0)
        return 0;
    struct buffer now AUTO_BUFFER, next AUTO_BUFFER;
    buffer_init(&now, SNAPSHOT_MAX);
    buffer_init(&next, SNAPSHOT_MAX);
    buffer_append_text(&now, market_snapshot(data[0] % MARKET_COUNT));
    size_t change_count = (size - 1) / CHANGE_SIZE;
    change_count = change_count < CHANGES_MAX ? change_count : CHANGES_MAX;
    for (size_t i = 0; i < change_count; i++) {
        buffer_clear(&next);
        const struct text text = now.size ? buffer_text(&now) : TEXT("");
        make_change(text, data + 1 + i * CHANGE_SIZE, &next);
        const struct buffer swapped = now;
        now = next;
        next = swapped;
    }
    ASSERT(buffer_check(&now, &error) == 0);
    /* Of the exact size, so that the sanitizer sees a read past the end. */
    char *copy = malloc(now.size + 1);
    ASSERT(copy);
    if (now.size)
        memcpy(copy, now.data, now.size);
    AUTO(core) struct core *core = NULL;
    const int result = core_snapshot_read((struct text){copy, now.size}, &core, &error);
    free(copy);
    ASSERT(result == 0 || (change_count > 0 && error.code == ERROR_CORRUPT));
    if (result == 0)
        check_read(core);
    return 0;
}
