/*
 * Inside of crew: one of the two sides; rank 0 leads, the others follow.
 */
#pragma once

#include "net/address.h"
#include "worker/crew.h"
#include "worker/line_link.h"

enum { CREW_ALIVE_MS = 1000 };

struct crew_lead;
struct crew_follow;

MUST_CHECK int crew_lead_open(const struct crew_options *options, struct crew_lead **out_lead,
                              struct error *error);
void crew_lead_free(struct crew_lead *lead); /* NULL is fine */
void crew_lead_exit(struct crew_lead *lead, int status);
const uint8_t *crew_lead_secret(const struct crew_lead *lead);

struct crew_follow *crew_follow_new(const struct crew_options *options);
void crew_follow_free(struct crew_follow *follow); /* NULL is fine */
void crew_follow_exit(struct crew_follow *follow, int status);
void crew_follow_launched(struct crew_follow *follow, uint64_t id, int status);

/* For whoever reads this rank's log. */
void crew_say(const char *text);

static inline int64_t crew_now_ms(const struct crew_options *options)
{
    return clock_monotonic_ns(loop_clock(options->loop)) / 1000000;
}
