/*
 * Cloud configuration: what `souk serve --cloud FILE` may do at a cloud, and how: a JSON object.
 *
 *     {"region": "us-east-1", "zones": ["us-east-1a", "us-east-1b"],
 *      "image": "ami-0123456789abcdef0", "instances_max": 8, "usd_per_hour_max": 2.5}
 *
 * docs/cloud.md has every field. Keys come from AWS's variables of the environment, or from the
 * file, which must then be its owner's alone (mode 0600).
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/json_schema.h"
#include "cloud/catalogue.h"
#include "cloud/fleet.h"
#include "source/remote.h"

enum { CLOUD_ZONES_MAX = 16 };

struct cloud_config {
    struct text region;
    struct json_array zones; /* of struct text; none: wherever the cloud likes */
    struct text images[CLOUD_ARCHITECTURE_COUNT];
    struct text endpoint_url;   /* "": Amazon's */
    struct text package_url;    /* of a Debian package of this program; "": the image has it */
    struct text package_sha256; /* "": not looked at */
    int64_t instances_max;
    int64_t usd_micro_per_hour_max;
    int64_t hours_max;
    int64_t boot_ms, idle_ms, list_ms;
    int64_t catalogue_age_days_max;
    int64_t credits_micro_per_usd; /* 0: by the cold prices */
    bool is_for_jobs;              /* borrowers' jobs may have instances started */
    struct remote_credentials credentials;
};

/* Texts lie in the arena. INVALID with the field; REFUSED when others may read the file's keys, or
 * there are none. */
MUST_CHECK int cloud_config_read(struct arena *arena, const char *path,
                                 struct cloud_config *out_config, struct error *error);
