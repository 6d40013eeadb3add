/*
 * EC2: Amazon's instances by its Query API over HTTPS, signed (SigV4). One attempt a call, which
 * blocks: when to ask again is the fleet's to decide. One thread.
 *
 * Keys are in memory alone: no call writes or logs them, and messages do not hold them.
 */
#pragma once

#include "base/buffer.h"
#include "cloud/ec2_answer.h"
#include "source/remote.h"

struct ec2_options {
    const struct remote_credentials *credentials; /* copied; with keys and region */
    const char *endpoint_url;                     /* NULL: Amazon's of the region */
    const char *market;                           /* EC2_TAG_MARKET of all that is ours */
    /* Asked about once a second while a call lasts; true ends it. May be NULL. */
    bool (*is_stopped)(void *context);
    void *context;
};

struct ec2;

struct ec2 *ec2_new(const struct ec2_options *options);
void ec2_free(struct ec2 *ec2); /* wipes its keys; NULL is fine */
DEFINE_AUTO(ec2);

/* Of a failed call: what it means. The error has the reason, in words. */
enum fleet_failure ec2_failure(const struct ec2 *ec2);

struct ec2_launch {
    const char *image;
    const char *group; /* of ec2_find_group */
    const char *token; /* the same is started once */
    const char *run;
    uint64_t member;
    uint64_t job; /* 0: none */
    struct fleet_candidate candidate;
    bool is_spot;
    struct text user_data; /* plain; at most EC2_USER_DATA_MAX bytes */
};
enum { EC2_USER_DATA_MAX = 12 << 10 };

/* The instance ends, rather than stops, when it is shut down from inside. */
MUST_CHECK int ec2_run(struct ec2 *ec2, const struct ec2_launch *launch,
                       struct ec2_instance *out_instance, struct error *error);
MUST_CHECK int ec2_terminate(struct ec2 *ec2, const char *instance, struct error *error);

/* All with the market's tag, page by page, those that ended lately included: struct ec2_instance
 * each. */
MUST_CHECK int ec2_list(struct ec2 *ec2, struct buffer *out_instances, struct error *error);

/* The market's security group, made where it is not there: nothing comes in. REFUSED when somebody
 * let it. */
MUST_CHECK int ec2_find_group(struct ec2 *ec2, char out_group[FLEET_NAME_SIZE],
                              struct error *error);
