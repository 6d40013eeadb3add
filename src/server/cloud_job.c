#include "server/cloud_job.h"

#include "base/units.h"
#include "server/cloud_kinds.h"

#include <inttypes.h>

#define HOUR_MS INT64_C(3600000)

int cloud_job_check(const struct job_market *market, struct error *error)
{
    if (market->spare)
        return error_set(error, ERROR_INVALID,
                         "market.spare: machines that resources.infra asks for are paid for; leave "
                         "one of the two out");
    if (market->start.kind != JOB_START_NOW)
        return error_set(error, ERROR_INVALID,
                         "market.start: machines that resources.infra asks for are started, and "
                         "cost, at once: with them a job starts now");
    if (!market->max_hourly_cost_micro && !market->max_total_cost_micro)
        return error_set(error, ERROR_INVALID,
                         "resources.infra: goes with market.max_total_cost or max_hourly_cost");
    return 0;
}

/* ---- The whole machine ----------------------------------------------------------------------- */

/* Less than the boot script lends: a machine's system does not see all that its maker counts. */
static int64_t lent_bytes(const struct catalogue_type *type)
{
    return (type->memory_mib << 20) / 4 * 3;
}

static int check_gpus(const struct catalogue_type *type, const struct job_request *request,
                      int64_t gpus_milli, struct error *error)
{
    const struct text model = text_of(request->wishes.gpu_model);
    if (!request->worker.gpus_milli ||
        (request->worker.gpus_milli <= gpus_milli && cloud_kinds_is_gpu(type->gpu, model)))
        return 0;
    if (!gpus_milli)
        return error_set(error, ERROR_INVALID, "resources.accelerators: %s has no GPU", type->name);
    return error_set(error, ERROR_INVALID, "resources.accelerators: %s has %" PRId64 " × %s",
                     type->name, gpus_milli / 1000, type->gpu);
}

static int check_size(const struct catalogue_type *type, const struct job_request *request,
                      struct resources whole, struct error *error)
{
    char lent[UNITS_TEXT_SIZE], all[UNITS_TEXT_SIZE];
    if (!whole.cores_milli || !whole.ram_bytes)
        return error_set(error, ERROR_INVALID,
                         "resources.instance_type: the catalogue does not know how large %s is",
                         type->name);
    if (request->worker.cores_milli > whole.cores_milli)
        return error_set(error, ERROR_INVALID, "resources.cpus: %s has %" PRId64, type->name,
                         type->vcpus);
    if (request->worker.ram_bytes > whole.ram_bytes)
        return error_set(error, ERROR_INVALID, "resources.memory: %s lends %s of its %s",
                         type->name, units_format_bytes(whole.ram_bytes, lent),
                         units_format_bytes(type->memory_mib << 20, all));
    return check_gpus(type, request, whole.gpus_milli, error);
}

static int64_t larger(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

int cloud_job_fit(const struct catalogue_type *type, struct job_request *request,
                  struct error *error)
{
    const struct resources whole = {.cores_milli = type->vcpus * 1000,
                                    .ram_bytes = lent_bytes(type),
                                    .gpus_milli = (type->gpu_milli + 999) / 1000 * 1000};
    struct resources *worker = &request->worker;
    if (check_size(type, request, whole, error) < 0)
        return -1;
    worker->cores_milli =
        larger(worker->cores_milli, whole.cores_milli - request->server.cores_milli);
    worker->ram_bytes = larger(worker->ram_bytes, whole.ram_bytes - request->server.ram_bytes);
    worker->gpus_milli = whole.gpus_milli;
    request->takes_more_cores = true; /* those that no server of its own has */
    return 0;
}

/* ---- What it costs --------------------------------------------------------------------------- */

struct match_quote cloud_job_quote(const struct job_request *request, int64_t hourly_micro,
                                   struct match_quote servers)
{
    const __int128 total = ((__int128)hourly_micro * request->max_run_ms + HOUR_MS - 1) / HOUR_MS;
    const int64_t total_micro = total < PRICE_MICRO_MAX ? (int64_t)total : PRICE_MICRO_MAX;
    return (struct match_quote){
        .hourly_micro = price_add_micro(hourly_micro, servers.hourly_micro),
        .total_micro = price_add_micro(total_micro, servers.total_micro),
    };
}

static int check_maximum(const char *field, int64_t given, int64_t least, int64_t hourly_micro,
                         struct error *error)
{
    char hourly_text[UNITS_TEXT_SIZE], least_text[UNITS_TEXT_SIZE];
    if (!given || given >= least)
        return 0;
    return error_set(error, ERROR_INVALID,
                     "%s: the machines that resources.infra asks for cost %s an hour: give at "
                     "least %s",
                     field, units_format_credits(hourly_micro, hourly_text),
                     units_format_credits(least, least_text));
}

int cloud_job_check_pay(const struct job_request *request, int64_t hourly_micro,
                        struct match_quote servers, int64_t available_micro, struct error *error)
{
    const struct match_quote least = cloud_job_quote(request, hourly_micro, servers);
    char cost[UNITS_TEXT_SIZE], available[UNITS_TEXT_SIZE];
    if (check_maximum("market.max_hourly_cost", request->max_hourly_micro, least.hourly_micro,
                      hourly_micro, error) < 0 ||
        check_maximum("market.max_total_cost, for its longest run (max_run_time)",
                      request->max_total_micro, least.total_micro, hourly_micro, error) < 0)
        return -1;
    if (least.total_micro > available_micro)
        return error_set(error, ERROR_EXHAUSTED,
                         "with the machines that resources.infra asks for it may cost %s, and %s "
                         "are available",
                         units_format_credits(least.total_micro, cost),
                         units_format_credits(available_micro, available));
    return 0;
}
