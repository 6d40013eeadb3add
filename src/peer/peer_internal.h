/*
 * Peer, inside: what running and examining share.
 */
#pragma once

#include "peer/peer.h"
#include "peer/probe.h"

/* Each missing part of the path, so that a first start needs no preparation. */
MUST_CHECK int peer_make_path(const char *path, struct error *error);

const char *peer_root(const struct peer_options *options);
/* Points into the options. */
struct probe_options peer_probe_options(const struct peer_options *options);
