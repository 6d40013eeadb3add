/* Any text may come as a cursor: it is refused, or gives values that encode to an equal cursor. */
#include "base/assert.h"
#include "store/store_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct store_column columns[] = {
        {"name", STORE_TEXT, .is_key = true},
        {"rank", STORE_INTEGER, .is_key = true},
        {"loss", STORE_REAL, .is_optional = true},
    };
    static const struct store_table table = {"things", columns, 3};
    struct store_plan plan = {.table = &table, .has_order = true, .order_index = 2};
    struct error error;
    struct arena *arena = arena_new(0);
    if (store_cursor_decode(arena, (struct text){(const char *)data, size}, &plan, &error) == 0) {
        const struct store_value values[] = {plan.key_values[0], plan.key_values[1],
                                             plan.order_value};
        const struct store_row row = {&table, values};
        struct buffer again AUTO_BUFFER;
        buffer_init(&again, 1 << 20);
        const int result = store_cursor_encode(&plan, &row, &again, &error);
        ASSERT(result == 0);
        ASSERT(again.size == size && memcmp(again.data, data, size) == 0);
    }
    arena_free(arena);
    return 0;
}
