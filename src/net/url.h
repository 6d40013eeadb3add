/*
 * URL: what of an address says where it leads, before anything is sent there.
 */
#pragma once

#include "base/text.h"

#include <stdbool.h>

/* "127.0.0.1:8080" of "http://127.0.0.1:8080/simple"; empty where there is no "://". */
struct text url_host(struct text url);
/* Whether its host is this machine's own: loopback by number, or localhost. */
bool url_is_own(struct text url);
/* Whether what is sent there cannot be read on the way: https, or this machine. */
bool url_is_private(struct text url);
