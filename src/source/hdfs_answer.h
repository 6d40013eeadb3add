/*
 * HDFS answer: what WebHDFS's JSON says: a file's status, what a folder holds, why it refuses.
 *
 *     {"FileStatus":{"length":12,"type":"FILE","modificationTime":1794800000000,...}}
 *     {"FileStatuses":{"FileStatus":[{"pathSuffix":"a.csv",...},...]}}
 *     {"RemoteException":{"exception":"FileNotFoundException","message":"...",...}}
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HDFS_LIST_MAX = 100000 };

struct hdfs_status {
    uint64_t length;
    int64_t modification_time;
    bool is_folder;
    struct text name; /* in a list, its own; else empty */
};

/* CORRUPT for what is no such answer. Texts lie in the arena. */
MUST_CHECK int hdfs_answer_status(struct arena *arena, struct text json,
                                  struct hdfs_status *out_status, struct error *error);
MUST_CHECK int hdfs_answer_list(struct arena *arena, struct text json,
                                const struct hdfs_status **out_list, size_t *out_count,
                                struct error *error);

/* The exception's name; empty: it is no such answer. */
struct text hdfs_answer_exception(struct arena *arena, struct text json);
