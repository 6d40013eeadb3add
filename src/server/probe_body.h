/*
 * Probe body: what a daemon found on its machine, as it sends it: with the enrolment, and over the
 * link when something has changed. What the market measures itself (rtt_us) is not in it.
 */
#pragma once

#include "base/json_schema.h"
#include "market/machine.h"

extern const struct json_schema probe_body_schema; /* of struct probe */
