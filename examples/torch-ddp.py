"""Trains a small network by torch's DistributedDataParallel; written for torchrun, and knows nothing of Souk.

Each rank draws its own points of one function; the gradients are averaged over all ranks.
"""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("STEPS", 200))

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)).to(device)
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
points = torch.Generator().manual_seed(100 + rank)

for step in range(STEPS):
    x = torch.randn(64, 8, generator=points).to(device)
    y = torch.sin(x.sum(1, keepdim=True))
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0 or step == STEPS - 1:
        dist.all_reduce(loss.detach())
        if rank == 0:
            print(f"step {step} of {size} ranks: loss {loss.item() / size:.4f}", flush=True)

weights = torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).cpu()
print(f"rank {rank}: weights {weights.double().norm().item():.6f}", flush=True)
if rank == 0:
    torch.save(model.module.state_dict(), os.path.join(os.environ.get("SOUK_OUTPUT_DIR", "."), "model.pt"))
del model  # it holds the group; a thread of gloo's that outlives Python would abort
dist.destroy_process_group()
