#include "server/entry_csv.h"

#include "base/clock.h"

#include <stddef.h>

enum column_kind {
    COLUMN_ID,
    COLUMN_NUMBER,
    COLUMN_INSTANT, /* of a number in ms, as text */
    COLUMN_CREDITS, /* of microcredits, as a decimal number */
    COLUMN_TEXT,
};

/* To add one: a row here, and a member of entry_csv that both who write it fill. */
static const struct column {
    const char *name;
    enum column_kind kind;
    size_t offset;
} columns[] = {
    {"id", COLUMN_ID, offsetof(struct entry_csv, id)},
    {"at", COLUMN_INSTANT, offsetof(struct entry_csv, at_ms)},
    {"at_ms", COLUMN_NUMBER, offsetof(struct entry_csv, at_ms)},
    {"kind", COLUMN_TEXT, offsetof(struct entry_csv, kind)},
    {"amount_microcredits", COLUMN_NUMBER, offsetof(struct entry_csv, amount_micro)},
    {"amount_credits", COLUMN_CREDITS, offsetof(struct entry_csv, amount_micro)},
    {"direction", COLUMN_TEXT, offsetof(struct entry_csv, direction)},
    {"job", COLUMN_ID, offsetof(struct entry_csv, job)},
    {"job_name", COLUMN_TEXT, offsetof(struct entry_csv, job_name)},
    {"lease", COLUMN_ID, offsetof(struct entry_csv, lease)},
    {"machine", COLUMN_ID, offsetof(struct entry_csv, machine)},
    {"machine_name", COLUMN_TEXT, offsetof(struct entry_csv, machine_name)},
    {"other_account", COLUMN_ID, offsetof(struct entry_csv, other_account)},
    {"other_account_name", COLUMN_TEXT, offsetof(struct entry_csv, other_account_name)},
    {"withheld_microcredits", COLUMN_NUMBER, offsetof(struct entry_csv, withheld_micro)},
    {"memo", COLUMN_TEXT, offsetof(struct entry_csv, memo)},
};

enum { COLUMN_COUNT = sizeof(columns) / sizeof(*columns) };

void entry_csv_head(struct csv_writer *writer)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        csv_string(writer, columns[i].name);
    csv_row_end(writer);
}

void entry_csv_row(struct csv_writer *writer, const struct entry_csv *entry)
{
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        const void *member = (const char *)entry + columns[i].offset;
        char at[CLOCK_TEXT_SIZE];
        switch (columns[i].kind) {
        case COLUMN_ID:
            csv_i64(writer, (int64_t) * (const uint64_t *)member);
            break;
        case COLUMN_NUMBER:
            csv_i64(writer, *(const int64_t *)member);
            break;
        case COLUMN_INSTANT:
            clock_format_utc(*(const int64_t *)member, at);
            csv_string(writer, at);
            break;
        case COLUMN_CREDITS:
            csv_micro(writer, *(const int64_t *)member);
            break;
        case COLUMN_TEXT:
            csv_text(writer, *(const struct text *)member);
            break;
        }
    }
    csv_row_end(writer);
}
