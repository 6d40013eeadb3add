/*
 * Catalogue: what machines and functions can be had from a cloud, with their prices, on a day.
 *
 * A catalogue is a CSV file of at most CATALOGUE_SIZE_MAX bytes. Empty fields are figures that are
 * not known; prices are dollars with up to six digits behind the point.
 *
 *     catalogue,1
 *     date,2026-08-22
 *     source,"who published the figures"
 *     instance_type,region,architecture,vcpus,memory_mib,gpu,gpus,bandwidth_mbps,usd_per_hour,
 *         spot_usd_per_hour_min,spot_usd_per_hour_max,interruption_percent
 *     m5.large,us-east-1,x86_64,2,8192,,,750,0.096,0.0341,0.0436,5-10
 *     function,region,architecture,usd_per_million_gib_s,usd_per_million_calls,memory_mib_min,
 *         memory_mib_max,memory_mib_per_vcpu
 *     lambda,us-east-1,x86_64,16.6667,0.20,128,10240,1769
 *
 * (each heading is one line). Errors of a file name its line. The program has a small catalogue of
 * its own; `souk cloud catalog update` puts a fuller one beside the market's data.
 */
#pragma once

#include "base/buffer.h"
#include "base/error.h"
#include "base/scope.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CATALOGUE_SIZE_MAX = 16 << 20,
    CATALOGUE_TYPES_MAX = 50000, /* over all regions */
    CATALOGUE_FUNCTIONS_MAX = 1000,
    CATALOGUE_NAME_MAX = 47, /* bytes of a type's, region's or GPU's name */
    CATALOGUE_AGE_DAYS_DEFAULT = 90,
};

enum cloud_architecture { CLOUD_X86_64, CLOUD_ARM64, CLOUD_ARCHITECTURE_COUNT };
const char *cloud_architecture_name(enum cloud_architecture architecture);

/* Of all figures 0 is "not known". Texts are the catalogue's. */
struct catalogue_type {
    const char *name;   /* "m5.large" */
    const char *region; /* "us-east-1" */
    const char *gpu;    /* "T4"; "": none */
    enum cloud_architecture architecture;
    int64_t vcpus;
    int64_t memory_mib;
    int64_t gpu_milli;      /* thousandths of a GPU: some types have a part of one */
    int64_t bandwidth_mbps; /* what the network holds for long */
    int64_t usd_micro_per_hour;
    int64_t spot_usd_micro_per_hour_min, spot_usd_micro_per_hour_max; /* over the zones */
    /* How many of a hundred spot instances were taken back within a month: a band. */
    int64_t interruption_percent_min, interruption_percent_max;
};

struct catalogue_function {
    const char *name;
    const char *region;
    enum cloud_architecture architecture;
    int64_t usd_micro_per_million_gib_s;
    int64_t usd_micro_per_million_calls;
    int64_t memory_mib_min, memory_mib_max;
    int64_t memory_mib_per_vcpu;
};

struct catalogue;

/* INVALID with the line of what is wrong; EXHAUSTED past a maximum. */
MUST_CHECK int catalogue_read(struct text csv, struct catalogue **out_catalogue,
                              struct error *error);
/* gzip and zstd, too. NOT_FOUND when there is no such file. */
MUST_CHECK int catalogue_read_file(const char *path, struct catalogue **out_catalogue,
                                   struct error *error);
/* The one that comes with the program. */
struct catalogue *catalogue_built_in(void);
/* The one at `path` if there is a file, else the program's own. */
MUST_CHECK int catalogue_open(const char *path, struct catalogue **out_catalogue,
                              struct error *error);
void catalogue_free(struct catalogue *catalogue); /* NULL is fine */
DEFINE_AUTO(catalogue);

/* Whole, as catalogue_read takes it. */
void catalogue_write(const struct catalogue *catalogue, struct buffer *out);

/* In the file's order. */
size_t catalogue_type_count(const struct catalogue *catalogue);
const struct catalogue_type *catalogue_type_at(const struct catalogue *catalogue, size_t index);
size_t catalogue_function_count(const struct catalogue *catalogue);
const struct catalogue_function *catalogue_function_at(const struct catalogue *catalogue,
                                                       size_t index);

/* `region` NULL: the first that has it. NOT_FOUND, with the nearest name there is. */
MUST_CHECK int catalogue_find(const struct catalogue *catalogue, struct text name,
                              const char *region, const struct catalogue_type **out_type,
                              struct error *error);

/* Of that region, else the first that another region has; NULL: none of that architecture. */
const struct catalogue_function *catalogue_find_function(const struct catalogue *catalogue,
                                                         const char *name, const char *region,
                                                         enum cloud_architecture architecture);

const char *catalogue_source(const struct catalogue *catalogue);
const char *catalogue_date(const struct catalogue *catalogue); /* "2026-08-22" */
int64_t catalogue_age_days(const struct catalogue *catalogue, int64_t now_ms);

/* "prices are of 2026-08-22, 120 days old: ..." when it is older than that, else "". Every use of
 * a catalogue says it. */
enum { CATALOGUE_NOTICE_SIZE = 160 };
const char *catalogue_notice(const struct catalogue *catalogue, int64_t now_ms,
                             int64_t age_days_max, char out[CATALOGUE_NOTICE_SIZE]);

/* catalogue_aws.c: a table of AWS's instance types of one region, and of how often spot ones are
 * interrupted. */
struct catalogue_aws {
    struct text csv;          /* instance_type,vcpus,memory_gib,accelerator,accelerator_count,
                                 baseline_bandwidth_mbps,on_demand_usd_per_hour,
                                 spot_min_usd_per_hour,spot_max_usd_per_hour,... */
    struct text spot_advisor; /* the Spot Advisor's JSON; "": bands are not known */
    const char *region;
    const char *date;
    const char *source;
};
/* What the program knows of functions in that region is kept. */
MUST_CHECK int catalogue_read_aws(const struct catalogue_aws *aws, struct catalogue **out_catalogue,
                                  struct error *error);
