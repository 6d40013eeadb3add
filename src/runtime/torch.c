/*
 * Runtime torch: what torchrun says to the processes it starts, so that a script written for it
 * runs as it is: torch/distributed/elastic/agent/server/local_elastic_agent.py has the list.
 *
 * One process on each rank, so ranks of the world, of groups and of roles are the same.
 */
#include "runtime/launch.h"

#include <inttypes.h>

enum { MASTER_PORT = 29500, MASTER_PORTS = 1000 };

static void torch_write(struct arena *arena, const struct launch_round *round, struct launch *out)
{
    char address[LAUNCH_ADDRESS_SIZE];
    launch_add(out, arena, "MASTER_ADDR=%s", launch_address(round->members[0].address, address));
    /* Another in each round: who is late in the last one must not meet the next one's store. */
    launch_add(out, arena, "MASTER_PORT=%" PRIu64, MASTER_PORT + round->index % MASTER_PORTS);
    launch_add(out, arena, "RANK=%zu", round->own);
    launch_add(out, arena, "WORLD_SIZE=%zu", round->member_count);
    launch_add(out, arena, "LOCAL_RANK=0");
    launch_add(out, arena, "LOCAL_WORLD_SIZE=1");
    launch_add(out, arena, "GROUP_RANK=%zu", round->own);
    launch_add(out, arena, "GROUP_WORLD_SIZE=%zu", round->member_count);
    launch_add(out, arena, "ROLE_RANK=%zu", round->own);
    launch_add(out, arena, "ROLE_WORLD_SIZE=%zu", round->member_count);
    launch_add(out, arena, "ROLE_NAME=default");
    launch_add(out, arena, "TORCHELASTIC_RESTART_COUNT=%" PRIu64, round->index);
    launch_add(out, arena, "TORCHELASTIC_MAX_RESTARTS=%" PRIu64, round->max_restarts);
    launch_add(out, arena, "TORCHELASTIC_RUN_ID=souk-%" PRIu64, round->job);
    launch_add(out, arena, "TORCHELASTIC_USE_AGENT_STORE=False"); /* rank 0 serves it itself */
    launch_add(out, arena, "NCCL_ASYNC_ERROR_HANDLING=1");
    launch_add(out, arena, "TORCH_NCCL_ASYNC_ERROR_HANDLING=1"); /* since torch 2.2 */
    launch_add(out, arena, "GLOO_SOCKET_IFNAME=%s", LAUNCH_INTERFACE);
    launch_add(out, arena, "NCCL_SOCKET_IFNAME=%s", LAUNCH_INTERFACE);
    launch_add(out, arena, "TP_SOCKET_IFNAME=%s", LAUNCH_INTERFACE); /* torch.distributed.rpc */
}

const struct launch_kind launch_torch = {.name = "torch", .write = torch_write};
