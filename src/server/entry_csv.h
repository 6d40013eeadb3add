/*
 * A statement's entries as CSV: the columns, once for the API's answer and for the client that
 * makes the same of JSON pages.
 */
#pragma once

#include "base/csv.h"

struct entry_csv {
    uint64_t id;
    int64_t at_ms;
    struct text kind;
    int64_t amount_micro; /* signed, as the account sees it */
    struct text direction;
    uint64_t job;
    struct text job_name;
    uint64_t lease;
    uint64_t machine;
    struct text machine_name;
    uint64_t other_account;
    struct text other_account_name;
    int64_t withheld_micro;
    struct text memo;
};

void entry_csv_head(struct csv_writer *writer);
void entry_csv_row(struct csv_writer *writer, const struct entry_csv *entry);
