/*
 * Runtime torch: what torchrun says to the processes it starts, so that a script written for it
 * runs as it is: torch/distributed/elastic/agent/server/local_elastic_agent.py has the list.
 *
 * A member of the round is a group, of one process or of several; all have one role. Processes are
 * counted through the members, so ranks of the world and of roles are the same.
 */
#include "runtime/launch.h"
#include "runtime/ports.h"

#include <inttypes.h>

static size_t processes_of(const struct launch_round *round, size_t member)
{
    if (round->processes != UINT64_MAX)
        return round->processes ? (size_t)round->processes : 1;
    const int64_t gpus = round->members[member].gpus_milli / 1000;
    return gpus > 0 ? (size_t)gpus : 1;
}

static void torch_write(struct arena *arena, const struct launch_round *round, struct launch *out)
{
    char address[LAUNCH_ADDRESS_SIZE];
    size_t rank = round->local, world = 0;
    for (size_t i = 0; i < round->member_count; i++) {
        rank += i < round->own ? processes_of(round, i) : 0;
        world += processes_of(round, i);
    }
    out->process_count = processes_of(round, round->own);
    launch_add(out, arena, "MASTER_ADDR=%s", launch_address(round->members[0].address, address));
    /* Another in each round: who is late in the last one must not meet the next one's store. */
    launch_add(out, arena, "MASTER_PORT=%" PRIu64, PORT_TORCH + round->index % PORT_TORCH_COUNT);
    launch_add(out, arena, "RANK=%zu", rank);
    launch_add(out, arena, "WORLD_SIZE=%zu", world);
    launch_add(out, arena, "LOCAL_RANK=%zu", round->local);
    launch_add(out, arena, "LOCAL_WORLD_SIZE=%zu", out->process_count);
    launch_add(out, arena, "GROUP_RANK=%zu", round->own);
    launch_add(out, arena, "GROUP_WORLD_SIZE=%zu", round->member_count);
    launch_add(out, arena, "ROLE_RANK=%zu", rank);
    launch_add(out, arena, "ROLE_WORLD_SIZE=%zu", world);
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

const struct launch_kind launch_torch = {
    .name = "torch", .label = "python3-torch", .software = "torch", .write = torch_write};
