#include "server/cloud_job.h"

#include "base/units.h"

#define HOUR_MS INT64_C(3600000)

/* An hour of them, or as long as the job runs at most. */
static int64_t least_total(const struct job_market *market, int64_t hourly_micro)
{
    const int64_t run_ms = market->max_run_time_ms < HOUR_MS ? market->max_run_time_ms : HOUR_MS;
    return (int64_t)(((__int128)hourly_micro * run_ms + HOUR_MS - 1) / HOUR_MS);
}

static int check_pay(const char *field, int64_t given, int64_t least, int64_t hourly_micro,
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

int cloud_job_check(const struct job_market *market, int64_t hourly_micro, struct error *error)
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
    if (check_pay("market.max_hourly_cost", market->max_hourly_cost_micro, hourly_micro,
                  hourly_micro, error) < 0)
        return -1;
    return check_pay("market.max_total_cost", market->max_total_cost_micro,
                     least_total(market, hourly_micro), hourly_micro, error);
}
