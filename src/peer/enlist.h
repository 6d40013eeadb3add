/*
 * Enlist: makes this machine known to a market, by a one-time code from its owner's account.
 */
#pragma once

#include "base/error.h"
#include "peer/identity.h"
#include "peer/probe.h"

#include <stdint.h>

struct enlist_request {
    const char *server_url;  /* without a slash at the end */
    const char *fingerprint; /* NULL: not pinned */
    const char *code;
    const char *name;
    const struct machine_probe *probe;
    int64_t cores_milli; /* what the owner lets out, and so the first offer */
    int64_t ram_bytes;
    int64_t disk_bytes;
    uint32_t roles; /* of enum peer_role */
    enum offer_network network;
    bool has_images;
    enum offer_install install, install_max;       /* of the first offer; of any */
    bool forbids_programs;                         /* training and nothing else */
    int64_t minimum_core_micro, minimum_ram_micro; /* an hour, of the first offer; 0: any price */
    const char *when;                              /* the first offer is open; NULL: always */
    const char *zone;                              /* of `when`; NULL: as the market takes it */
    bool *out_is_name_taken; /* set when that is why it was refused; may be NULL */
};

/* INVALID for a URL that is neither HTTPS nor plain HTTP to loopback. */
MUST_CHECK int enlist_check_url(const char *url, struct error *error);
/* INVALID for what no machine may be called. */
MUST_CHECK int enlist_check_name(struct text name, struct error *error);

/*
 * Asks the market, waiting for its answer, and keeps what it gave. REFUSED when the code is wrong
 * or used up, or the market's key is not the pinned one; UNAVAILABLE when it cannot be reached.
 */
MUST_CHECK int enlist(struct identity *identity, const struct enlist_request *request,
                      struct error *error);

/* The parts, for tests. */
struct buffer;
MUST_CHECK int enlist_write(const struct identity *identity, const struct enlist_request *request,
                            struct buffer *out_json, struct error *error);
MUST_CHECK int enlist_read(const struct enlist_request *request, struct text json,
                           struct enrolment *out_enrolment, struct error *error);
