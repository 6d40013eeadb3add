/*
 * Source key: how a borrower lets the leases of its job, and nobody else, fetch from it.
 *
 * The borrower makes a secret and tells it to the market; both derive from it a key for each lease,
 * and the market gives each lease its own. So the borrower knows who may come before it has heard
 * of any lease, and no lease can come as another. As the source of chunks the borrower is "lease" 0
 * of the link's identity (peer/chunk_link.h), and the market, which tries whether it can be reached
 * and stays linked to see when it leaves, is the visitor 0.
 */
#pragma once

#include <stdint.h>

enum { SOURCE_SECRET_SIZE = 32, SOURCE_KEY_SIZE = 32, SOURCE_BORROWER = 0, SOURCE_MARKET = 0 };

void source_key(const uint8_t secret[SOURCE_SECRET_SIZE], uint64_t lease,
                uint8_t out_key[SOURCE_KEY_SIZE]);
