#!/usr/bin/env python3
"""torch's DistributedDataParallel over the job network beside plain processes on loopback, on this machine.

    bench/frameworks/ddp.py [--json] [--rounds N] [--steps N] [--program build/souk]

Two ranks of one thread each train a model of a million parameters over gloo. In every round the job and two processes
started as torchrun starts them take turns; the ratio of their steps per second is taken within a round, and the median
of the rounds is the figure. It means something on a quiet machine only: a lease has a share of the cores of its own.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/system"))
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--program", default=str(ROOT / "build/souk"))
wanted = parser.parse_args()
os.environ["SOUK_PROGRAM"] = wanted.program

from ranks import Place  # noqa: E402 (after the path it lies on)

SCRIPT = """
import os, resource, time
import torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512))
size = sum(parameter.numel() for parameter in model.parameters())
model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.randn(128, 512), torch.randn(128, 512)
for step in range(-20, STEPS):
    if step == 0:
        dist.barrier()
        start = time.monotonic()
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
dist.barrier()
if dist.get_rank() == 0:
    print("speed", STEPS / (time.monotonic() - start), size, flush=True)
dist.destroy_process_group()
""".replace("STEPS", str(wanted.steps))
JOB = {"runtime": "torch", "num_nodes": 2,
       "resources": {"cpus": 1, "memory": 0.8, "labels": ["python3-torch"]}}


class Lenders(Place):
    """Of a whole core each, as the plain processes have."""

    def lender_of(self, name):
        return {"options": ("--network", "job", "--cores", "1")}


def speed(text):
    return float(text.split("speed ")[1].split()[0])


def by_job(place):
    done = place.run(SCRIPT, JOB)
    assert done.returncode == 0, (done.out, done.err)
    newest = max(job["id"] for job in place.market.get("/v1/jobs", place.token).json["items"])
    return speed(place.market.get(f"/v1/jobs/{newest}/logs?rank=0&offset=0", place.token).json["text"])


def by_hand(folder):
    """As torchrun starts them; Debian 12's own does not run with its Python 3.11."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ranks = [subprocess.Popen(["/usr/bin/python3", "script.py"], cwd=folder / "files", stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "RANK": str(rank),
                                   "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                   "MASTER_PORT": str(port)}) for rank in range(2)]
    said = [rank.communicate()[0] for rank in ranks]
    assert all(rank.returncode == 0 for rank in ranks), said
    return speed(said[0])


with tempfile.TemporaryDirectory() as name:
    place = Lenders(pathlib.Path(name), ("first", "second"))
    try:
        pairs = [(by_job(place), by_hand(place.folder)) for _ in range(wanted.rounds)]
    finally:
        place.stop()

figures = {
    "ddp_ratio": round(statistics.median(job / plain for job, plain in pairs), 3),
    "ddp_job_steps_per_s": round(statistics.median(job for job, _ in pairs), 1),
    "ddp_plain_steps_per_s": round(statistics.median(plain for _, plain in pairs), 1),
}
if wanted.json:
    print(json.dumps(figures))
else:
    for name, value in figures.items():
        print(f"{name:28} {value:12}  {'>= 0.8' if name == 'ddp_ratio' else ''}")
