/*
 * Host: which machine this is, so that a copied disk is noticed.
 *
 * Marks of the machine that a copy does not have: the id of its installation (/etc/machine-id), of
 * its board (DMI's product UUID, which root alone can read) and the addresses of its network cards.
 * They are kept beside the key, in host.json, each hashed under the machine's key: the file tells
 * nobody what they are.
 */
#pragma once

#include "base/error.h"
#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HOST_MARK_SIZE = 33, HOST_CARDS_MAX = 8 };

/* Each is 32 hex digits; empty: not known. */
struct host {
    char installation[HOST_MARK_SIZE];
    char board[HOST_MARK_SIZE];
    char cards[HOST_CARDS_MAX][HOST_MARK_SIZE]; /* in order */
    size_t card_count;
};

/* Of this machine, below `root` ("" on a machine), hashed under `key`, 32 bytes. */
void host_read(const char *root, const uint8_t *key, struct host *out_host);

/*
 * CONFLICT, saying what differs, when `now` is not the machine that `known` was read on. Another
 * network card or an unreadable mark alone proves nothing as long as something else agrees.
 */
MUST_CHECK int host_compare(const struct host *known, const struct host *now, struct error *error);

bool host_equal(const struct host *left, const struct host *right);

/* host.json in the state folder, mode 0600. NOT_FOUND when there is none. */
MUST_CHECK int host_load(const char *state_dir, struct host *out_host, struct error *error);
MUST_CHECK int host_store(const char *state_dir, const struct host *host, struct error *error);
