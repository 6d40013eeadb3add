/* Functions of a tenancy, inside: shared by tenancy_function.c (their life) and tenancy_call.c
 * (what is called). */
#pragma once

#include "function/work.h"
#include "peer/tenancy_internal.h"

enum { FUNCTION_STORE_PATH_SIZE = PATH_MAX - 128 };

/* One for each function: what it does now. */
struct function_call {
    struct tenancy_functions *functions;
    struct work_request request;
    struct buffer answer; /* while its update is fetched, and until the process has it */
    struct loop_timer *timer;
    uint32_t number;
    bool is_used;
    bool is_withdrawn;    /* for the machine's owner: it is made again, whatever becomes of it */
    bool is_waiting;      /* until the owner leaves something over */
    bool is_answered;     /* `answer` is for the process */
    bool is_ok;           /* that is what it was asked for */
    int lost_count;       /* how often nobody answered */
    int64_t begun_ns;     /* 0: it is not under way */
    int64_t throttled_ns; /* since when it was one too many; 0: it was not */
};

struct tenancy_functions {
    struct tenancy *tenancy;
    struct host *host;       /* NULL: they are elsewhere */
    struct invoker *invoker; /* those */
    struct carrier *carrier; /* to and from them */
    char job[WORK_JOB_SIZE], store[FUNCTION_STORE_PATH_SIZE];
    char parts[TENANCY_STORE_PARTS][PATH_MAX];
    struct function_share share;
    uint32_t count;
    int64_t billed_ms; /* of calls that have ended */
    bool is_held;      /* the machine's owner needs it: nothing is called */
    struct function_call calls[];
};

/* Of a call: it is made, or its answer offered, again. */
void function_call_on_timer(void *context);
