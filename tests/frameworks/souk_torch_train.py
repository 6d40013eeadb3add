"""One rank of a small regression: by souk.torch, by torch's DistributedDataParallel, or alone with the whole batch.

souk_torch_train.py HOW STEPS STORE: HOW is ddp, alone, or a policy of Souk. Prints the loss on data nobody trained on,
before and after, and a sum of the model's weights.
"""
import os
import sys

import torch

HOW, STEPS, STORE = sys.argv[1], int(sys.argv[2]), sys.argv[3]
WORLD, BATCH, FEATURES = 3, 16, 20
rank = int(os.environ["SOUK_RANK"])

torch.set_num_threads(1)
torch.manual_seed(5)
truth = torch.randn(FEATURES, 1)
test_x = torch.randn(512, FEATURES)
model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def answers(x):
    return torch.tanh(x @ truth)


def loss_of(trained, x):
    return ((trained(x) - answers(x)) ** 2).mean()


def test_loss():
    with torch.no_grad():
        return float(loss_of(model, test_x))


trained = model
if HOW == "ddp":
    torch.distributed.init_process_group("gloo", init_method=f"file://{STORE}", rank=rank, world_size=WORLD)
    trained = torch.nn.parallel.DistributedDataParallel(model)
elif HOW != "alone":
    import souk.torch
    souk.torch.init()
    assert (souk.torch.rank(), souk.torch.size()) == (rank, WORLD)
    souk.torch.broadcast_parameters(model.state_dict())
    optimizer = souk.torch.DistributedOptimizer(optimizer, model, sync=HOW, batch_size=BATCH, check_period=0.5)
before = test_loss()
for step in range(STEPS):
    whole = torch.randn(WORLD * BATCH, FEATURES, generator=torch.Generator().manual_seed(step))
    x = whole if HOW == "alone" else whole[rank * BATCH:(rank + 1) * BATCH]
    loss = loss_of(trained, x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if HOW not in ("ddp", "alone"):
    optimizer.finish()
total = sum(float(parameter.detach().double().sum()) for parameter in model.parameters())
print(f"before {before:.6f} after {test_loss():.6f} weights {total:.6f}")
