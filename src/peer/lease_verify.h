/*
 * Lease verify: whether a lease that came over the link is one this machine should run, decided
 * from the market's public key alone, without asking anybody.
 */
#pragma once

#include "base/arena.h"
#include "peer/identity.h"
#include "runtime/lease_message.h"
#include "runtime/native.h"

#include <stdint.h>

/* Who it is for and from: REFUSED for a signature that is not the market's or a lease for another
 * machine; CORRUPT for a document that cannot be read. The document lives in the arena. */
MUST_CHECK int lease_verify(struct arena *arena, const struct start_message *start,
                            const struct enrolment *enrolment, struct lease_document *out_document,
                            struct error *error);

/* REFUSED when it has expired, CORRUPT when it makes no sense; whether there is room for it is
 * lent.h's matter. `now_ms` is UTC by the market's clock as far as it is known. */
MUST_CHECK int lease_check(const struct lease_document *document, int64_t now_ms,
                           struct error *error);
