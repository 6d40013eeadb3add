/*
 * Ports: what listens at which port of a rank's address in its job's network. The network is the
 * job's own, so they are the same in all jobs; a borrower's program takes any other.
 */
#pragma once

enum ports {
    PORT_TENSORFLOW = 2222,
    PORT_MUSTER = 7077, /* of rank 0 */
    PORT_SYNC = 7078,   /* of rank 0, where its script uses libsouk's sync engine (souk/sync.h) */
    /* Of Spark; a worker that begins anew takes another of its hundred, as the master still knows
     * the one before. */
    PORT_SPARK_MASTER = 7100,
    PORT_SPARK_DRIVER = 7101,
    PORT_SPARK_DRIVER_BLOCKS = 7102,
    PORT_SPARK_EXECUTOR_BLOCKS = 7120,
    PORT_SPARK_WORKER = 7200,
    PORT_SPARK_WORKER_COUNT = 100,
    PORT_TORCH = 29500, /* the first of so many, one for each round */
    PORT_TORCH_COUNT = 1000,
};
