/*
 * Log link: how what a lease prints is read from its keeper, over a TLS link under a key that the
 * market gave to the keeper and to one reader of the lease's own account.
 *
 *     type      from      payload
 *     WANT      client    u64 offset of the first byte wanted; once, and nothing else
 *     DATA      keeper    u64 offset, then bytes
 *     END       keeper    u64 offset: the process is gone, and this is all it printed
 *
 * The client's identity is "logs:LEASE:READER". The keeper has only what the market has not on its
 * disk yet: the first DATA begins there, if that is later than what was wanted. A reader that falls
 * behind what the keeper still has is let go, as is one that says anything else: the market has it
 * all. Integers are little-endian (wire/wire.h).
 */
#pragma once

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

enum log_link_type { LOG_LINK_WANT = 1, LOG_LINK_DATA = 2, LOG_LINK_END = 3 };

enum {
    LOG_LINK_IDENTITY_SIZE = 64,
    LOG_LINK_OFFSET_SIZE = 8,
    LOG_LINK_DATA_BYTES = 16 << 10,
    LOG_LINK_PAYLOAD_MAX = LOG_LINK_OFFSET_SIZE + LOG_LINK_DATA_BYTES,
};

static inline void log_link_identity(uint64_t lease, uint64_t reader,
                                     char out[LOG_LINK_IDENTITY_SIZE])
{
    snprintf(out, LOG_LINK_IDENTITY_SIZE, "logs:%" PRIu64 ":%" PRIu64, lease, reader);
}
