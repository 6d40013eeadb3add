/* Of `souk lend`: what may be installed for a job, and where it is fetched. */
#pragma once

#include "peer/peer.h"

/* INVALID for an unknown word (NULL: none was given), and for an index that is neither https nor on
 * this machine, or has a password in its address. `index_url` is borrowed;
 * NULL: the one that pip takes by itself. */
MUST_CHECK int lend_install_parse(const char *install, const char *index_url,
                                  struct peer_options *peer, struct error *error);
