/* Any bytes as a CSV file: refused, or a table whose numbers are finite and labels within. */
#include "base/assert.h"
#include "train/csv_parts.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct csv_table_options options = {.label = size % 2 ? "y" : NULL, .size_max = 1 << 20};
    struct error error;
    AUTO(csv_table) struct csv_table *table = NULL;
    if (csv_table_parse((struct text){(const char *)data, size}, &options, &table, &error) < 0)
        return 0;
    for (uint32_t i = 0; i < table->row_count; i++) {
        ASSERT(table->labels[i] < table->class_count);
        for (uint32_t k = 0; k < table->feature_count; k++)
            ASSERT(isfinite(table->values[(size_t)i * table->feature_count + k]));
    }
    struct csv_parts parts;
    if (csv_parts_init(&parts, table, size, &error) == 0)
        csv_parts_done(&parts);
    return 0;
}
