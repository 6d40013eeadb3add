#include "base/assert.h"
#include "store/store.h"

const char *store_type_name(enum store_type type)
{
    static const char *const names[STORE_TYPE_COUNT] = {
        [STORE_INTEGER] = "integer",
        [STORE_REAL] = "real",
        [STORE_TEXT] = "text",
        [STORE_BLOB] = "blob",
    };
    return type < STORE_TYPE_COUNT ? names[type] : "unknown";
}

static const struct store_value *row_value(const struct store_row *row, size_t column_index,
                                           enum store_type type)
{
    ASSERT(column_index < row->table->column_count);
    ASSERT(row->table->columns[column_index].type == type);
    return &row->values[column_index];
}

bool store_row_is_null(const struct store_row *row, size_t column_index)
{
    ASSERT(column_index < row->table->column_count);
    return row->values[column_index].is_null;
}

int64_t store_row_integer(const struct store_row *row, size_t column_index)
{
    const struct store_value *value = row_value(row, column_index, STORE_INTEGER);
    return value->is_null ? 0 : value->integer;
}

double store_row_real(const struct store_row *row, size_t column_index)
{
    const struct store_value *value = row_value(row, column_index, STORE_REAL);
    return value->is_null ? 0.0 : value->real;
}

struct text store_row_text(const struct store_row *row, size_t column_index)
{
    const struct store_value *value = row_value(row, column_index, STORE_TEXT);
    return value->is_null ? TEXT("") : value->bytes;
}

struct text store_row_blob(const struct store_row *row, size_t column_index)
{
    const struct store_value *value = row_value(row, column_index, STORE_BLOB);
    return value->is_null ? TEXT("") : value->bytes;
}
