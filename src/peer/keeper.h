/*
 * Keeper: the process that looks after one lease, so that the lender's daemon can be restarted,
 * upgraded or killed under it.
 *
 * The daemon starts it as `souk keeper` with a channel on descriptor 3 and is its only way to the
 * market. When the daemon goes, the keeper goes on: the job runs over its own streams, what there
 * is to tell waits, and the next daemon finds the keeper by its socket, LEASES/LEASE-FENCE/channel.
 * If none comes, it ends with the lease, which it verified itself. It has the lease's key and
 * token, not the machine's: meters are signed by the daemon.
 */
#pragma once

enum { KEEPER_CHANNEL_FD = 3 };

/* The program `souk keeper`; returns its exit status. */
int keeper_main(int argc, char **argv);
