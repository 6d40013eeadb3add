#include "sim/economy.h"
#include "sim/experiment.h"

static const struct {
    const char *label;
    struct economy_options options;
} policies[] = {
    {"grant 2", {.grant_micro = 2000000}},
    {"grant 10", {.grant_micro = 10000000}},
    {"grant 50 at once", {.grant_micro = 50000000}},
    {"grant 200 at once", {.grant_micro = 200000000}},
    {"10 at once + 40 earned (souk)", {.grant_micro = 10000000, .earned_grant_micro = 40000000}},
    {"the last, fixed price",
     {.grant_micro = 10000000, .earned_grant_micro = 40000000, .is_price_fixed = true}},
};
enum { POLICIES = sizeof(policies) / sizeof(*policies), SOUK = 4, WEEKS = 52 };

static const struct report_column columns[] = {
    {">served", "served", REPORT_NUMBER},
    {">blocked", "blocked", REPORT_SHARE},
    {">broke", "broke", REPORT_SHARE},
    {">Gini", "gini", REPORT_NUMBER},
    {">price/cold", "price", REPORT_NUMBER},
    {">used", "utilisation", REPORT_NUMBER},
    {">lent/spent p10", "ratio_p10", REPORT_NUMBER},
    {">p50", "ratio_p50", REPORT_NUMBER},
    {">p90", "ratio_p90", REPORT_NUMBER},
    {">within x 2", "within_two", REPORT_SHARE},
};

int experiment_months(const struct experiment_options *options, struct report *report,
                      struct error *error)
{
    struct report_table *table =
        report_add_table(report, "months", columns, sizeof(columns) / sizeof(*columns),
                         "A closed economy of 240 members over %d weeks", WEEKS);
    for (int i = 0; i < POLICIES; i++) {
        experiment_say(options, "months: %s", policies[i].label);
        struct economy_options chosen = policies[i].options;
        chosen.weeks = WEEKS;
        chosen.seed = options->seed;
        const struct economy_outcome seen = economy_run(&chosen);
        if (seen.unbalanced_micro != 0)
            return error_set(error, ERROR_CORRUPT, "credits were lost or made: %lld",
                             (long long)seen.unbalanced_micro);
        struct report_row *row = report_add_row(table, "%s", policies[i].label);
        const double values[] = {seen.served,    seen.blocked,     seen.broke,     seen.gini,
                                 seen.price,     seen.utilisation, seen.ratio_p10, seen.ratio_p50,
                                 seen.ratio_p90, seen.within_two};
        for (size_t k = 0; k < sizeof(values) / sizeof(*values); k++)
            row->values[k] = values[k];
        if (i == SOUK) {
            report_add_figure(report, "months_served", seen.served);
            report_add_figure(report, "months_gini", seen.gini);
        }
    }
    return 0;
}
