/*
 * EC2 answer: what Amazon EC2's XML says, as far as it is needed: instances with their state and
 * our tags, security groups, and why it refuses.
 *
 *     <DescribeInstancesResponse><reservationSet><item>
 *         <instancesSet><item><instanceId>i-1</instanceId>
 *             <instanceState><name>running</name></instanceState>
 *             <tagSet><item><key>souk-member</key><value>7</value></item></tagSet>...
 *         </item></instancesSet></item></reservationSet><nextToken>...
 *     <Response><Errors><Error><Code>AuthFailure</Code><Message>...
 *
 * Strangers wrote it: nothing is read outside the text; an instance without an id or a state is
 * none.
 */
#pragma once

#include "base/text.h"
#include "cloud/fleet.h"

#include <stdbool.h>
#include <stdint.h>

/* Tags of our instances. */
#define EC2_TAG_MARKET "souk-market"
#define EC2_TAG_RUN    "souk-run"
#define EC2_TAG_MEMBER "souk-member"
#define EC2_TAG_JOB    "souk-job"

struct ec2_instance {
    struct fleet_listed listed;
    char type[FLEET_NAME_SIZE];
    char zone[FLEET_NAME_SIZE];
    int64_t launched_ms; /* 0: not said */
};

/* Those of an answer, of all reservations: begin with {.rest = xml}. */
struct ec2_instances {
    struct text set, rest; /* what is left of a reservation, and what comes after it */
};
/* False: there are no more. */
bool ec2_answer_next(struct ec2_instances *instances, struct ec2_instance *out_instance);

/* Whether the answer is whole, as far as its outermost element's end. */
bool ec2_answer_is_whole(struct text xml, const char *action);

/* Of a refusal. `failure` is what it means for what was asked. */
struct ec2_refusal {
    char code[64];
    char message[160];
    enum fleet_failure failure;
};
/* False: the body is no refusal. */
bool ec2_answer_refusal(struct text xml, struct ec2_refusal *out_refusal);

/* A security group of a list. */
struct ec2_group {
    char id[FLEET_NAME_SIZE];
    bool lets_in; /* it has a rule for what comes from outside */
};
bool ec2_answer_group(struct text xml, struct ec2_group *out_group);
