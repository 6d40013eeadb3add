/*
 * Bare relay: what a job network would be without anything around it: one process at each device,
 * a TCP connection between them, each packet behind its length. No encryption, no check of what
 * passes, no gathering of small packets. For benches.
 */
#pragma once

#include "base/error.h"

/* Until the connection ends or something fails. Neither descriptor is closed. */
MUST_CHECK int bench_jobnet_bare(int tun_fd, int link_fd, struct error *error);
