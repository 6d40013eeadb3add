/* Match: one change of what a job file asks for. */
#include "base/units.h"
#include "market/match_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)

int64_t *match_change_field(struct job_request *request, enum wish_test test)
{
    switch (test) {
    case WISH_TEST_RUN_TIME:
        return &request->max_run_ms;
    case WISH_TEST_CORES:
        return &request->worker.cores_milli;
    case WISH_TEST_RAM:
        return &request->worker.ram_bytes;
    case WISH_TEST_GPUS:
        return &request->worker.gpus_milli;
    case WISH_TEST_GPU_RAM:
        return &request->wishes.gpu_ram_bytes;
    case WISH_TEST_DISK:
        return &request->worker.disk_bytes;
    case WISH_TEST_BANDWIDTH:
        return &request->worker.bandwidth_kbit;
    case WISH_TEST_SPEED:
        return &request->wishes.min_speed_milli;
    case WISH_TEST_RELIABILITY:
        return &request->wishes.min_reliability_milli;
    case WISH_TEST_COUNT:
        return &request->num_nodes;
    default:
        return NULL;
    }
}

bool match_change_is_possible(enum wish_test test)
{
    struct job_request any;
    return match_change_field(&any, test) || test == WISH_TEST_GPU_MODEL ||
           test == WISH_TEST_LABELS || test == WISH_TEST_NETWORK || test == WISH_TEST_INSTALL ||
           test == WISH_TEST_IMAGE || test == WISH_TEST_RTT;
}

int64_t match_change_round(enum wish_test test, int64_t value)
{
    const bool is_bytes =
        test == WISH_TEST_RAM || test == WISH_TEST_DISK || test == WISH_TEST_GPU_RAM;
    return test == WISH_TEST_RUN_TIME ? value - value % 1000
           : is_bytes                 ? value - value % MIB
                                      : value;
}

void match_change_apply(const struct match_change *change, struct job_request *request)
{
    int64_t *field = match_change_field(request, change->test);
    if (field)
        *field = change->value;
    else if (change->test == WISH_TEST_GPU_MODEL)
        request->wishes.gpu_model[0] = '\0';
    else if (change->test == WISH_TEST_LABELS)
        request->wishes.labels[0] = '\0';
    else if (change->test == WISH_TEST_NETWORK)
        request->wishes.network = OFFER_NETWORK_NONE;
    else if (change->test == WISH_TEST_INSTALL)
        request->wishes.install = OFFER_INSTALL_NONE;
    else if (change->test == WISH_TEST_IMAGE)
        request->wishes.has_image = false;
    else if (change->test == WISH_TEST_RTT)
        request->wishes.max_rtt_us = 0;
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* Never more than it is: what is said has been tried. */
static void format_bytes(int64_t value, char *out, size_t out_size)
{
    char units[UNITS_TEXT_SIZE];
    if (value % GIB == 0)
        snprintf(out, out_size, "%" PRId64 " GiB", value / GIB);
    else if (value % MIB == 0)
        snprintf(out, out_size, "%" PRId64 " MiB", value / MIB);
    else
        snprintf(out, out_size, "%s", units_format_bytes(value, units));
}

static void format_value(enum wish_test test, int64_t value, char *out, size_t out_size)
{
    switch (test) {
    case WISH_TEST_COUNT:
        snprintf(out, out_size, "%" PRId64, value);
        return;
    case WISH_TEST_RUN_TIME:
        snprintf(out, out_size, "%" PRId64 " s", value / 1000);
        return;
    case WISH_TEST_RAM:
    case WISH_TEST_DISK:
    case WISH_TEST_GPU_RAM:
        format_bytes(value, out, out_size);
        return;
    case WISH_TEST_BANDWIDTH:
        snprintf(out, out_size, "%" PRId64 " kbit/s", value);
        return;
    default:
        snprintf(out, out_size, "%" PRId64 ".%03" PRId64, value / 1000, value % 1000);
        /* "2.500" is 2.5, "2.000" is 2. */
        for (size_t size = strlen(out); out[size - 1] == '0' || out[size - 1] == '.'; size--) {
            const bool is_point = out[size - 1] == '.';
            out[size - 1] = '\0';
            if (is_point)
                break;
        }
    }
}

static const char *noun_of(enum wish_test test, int64_t value)
{
    switch (test) {
    case WISH_TEST_RUN_TIME:
        return "of run time";
    case WISH_TEST_CORES:
        return value == 1000 ? "core" : "cores";
    case WISH_TEST_RAM:
        return "of RAM";
    case WISH_TEST_GPUS:
        return value == 1000 ? "GPU" : "GPUs";
    case WISH_TEST_GPU_RAM:
        return "of GPU memory";
    case WISH_TEST_DISK:
        return "of disk";
    case WISH_TEST_BANDWIDTH:
        return "of bandwidth";
    case WISH_TEST_SPEED:
        return "as the smallest speed";
    case WISH_TEST_RELIABILITY:
        return "as the smallest reliability";
    default:
        return wish_test_name(test);
    }
}

void match_change_words(const struct match_change *change, const struct job_request *request,
                        char out_words[MATCH_NEAREST_SIZE])
{
    struct job_request asked = *request;
    const int64_t *field = match_change_field(&asked, change->test);
    char from[48], to[48];
    if (!field) {
        snprintf(out_words, MATCH_NEAREST_SIZE, "without its wish for %s it would start now",
                 wish_test_name(change->test));
        return;
    }
    format_value(change->test, *field, from, sizeof(from));
    format_value(change->test, change->value, to, sizeof(to));
    if (change->test == WISH_TEST_COUNT)
        snprintf(out_words, MATCH_NEAREST_SIZE, "with %s %s instead of %s it would start now", to,
                 change->value == 1 ? "worker" : "workers", from);
    else
        snprintf(out_words, MATCH_NEAREST_SIZE, "with %s instead of %s %s it would start now", to,
                 from, noun_of(change->test, *field));
}
