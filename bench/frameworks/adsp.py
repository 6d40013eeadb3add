#!/usr/bin/env python3
"""souk.torch with adsp beside torch's DistributedDataParallel on three workers at speeds 1 : 1/2 : 1/4.

Prints JSON: how long each takes to the loss that DDP has at its end, and their ratio, `adsp_vs_ddp`. Speeds are made
unequal by the same means for both: a step of a worker takes at least 40, 80 or 160 ms, its waiting for others not
counted. `ddp_floor_s` is what the slowest worker's steps take at least: DDP cannot be sooner. Ranks are processes here, over loopback.

    bench/frameworks/adsp.py [--json] [--rounds N] [--steps N] [--hivemind PYTHON] [--program build/souk]

With --hivemind, a Python that has the package hivemind and torch, Hivemind's optimizer takes turns with both, all of them under that
Python: `adsp_vs_hivemind`. Its clock starts when all of its workers have found one another; it gives up after two minutes.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORLD, STEP_S, BATCH, FEATURES = 3, 0.040, 16, 20
LIMIT_S = 1800
EVALUATE_S = 0.25
HIVEMIND_LIMIT_S = 120


def hivemind_optimizer(rank, store, parameters):
    """Averages gradients whenever all workers together have as many samples as a step of DDP's."""
    import time

    import hivemind
    import torch

    address = pathlib.Path(store + ".address")
    while rank > 0 and not address.exists():
        time.sleep(0.05)
    dht = hivemind.DHT(host_maddrs=["/ip4/127.0.0.1/tcp/0"], initial_peers=address.read_text().split() if rank > 0 else [],
                       use_relay=False, use_auto_relay=False, start=True)
    if rank == 0:
        found = pathlib.Path(store + ".finding")
        found.write_text(" ".join(map(str, dht.get_visible_maddrs())))
        found.rename(address)
    optimizer = hivemind.Optimizer(dht=dht, run_id="bench", target_batch_size=WORLD * BATCH, batch_size_per_step=BATCH,
                                   params=parameters, optimizer=lambda own: torch.optim.SGD(own, lr=0.05),
                                   matchmaking_time=1.0, averaging_timeout=10.0)
    pathlib.Path(f"{store}.ready{rank}").touch()
    while not all(pathlib.Path(f"{store}.ready{other}").exists() for other in range(WORLD)):
        time.sleep(0.05)
    return dht, optimizer


def train(how, steps, store, target):
    """One rank: rank 0 prints a line `seconds loss` of its model from time to time."""
    import time

    import torch

    rank = int(os.environ["SOUK_RANK"])
    torch.set_num_threads(1)
    torch.manual_seed(5)
    truth = torch.randn(FEATURES, 1)
    test_x = torch.randn(512, FEATURES)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(100 + rank)
    trained = model

    def loss_of(network, x):
        return ((network(x) - torch.tanh(x @ truth)) ** 2).mean()

    if how == "ddp":
        torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=WORLD)
        trained = torch.nn.parallel.DistributedDataParallel(model)
    elif how == "hivemind":
        dht, optimizer = hivemind_optimizer(rank, store, list(model.parameters()))
    else:
        import souk.torch
        souk.torch.init()
        optimizer = souk.torch.DistributedOptimizer(optimizer, model, sync=how, batch_size=BATCH, check_period=2)
    began = time.monotonic()
    told = 0.0
    stop = pathlib.Path(store + ".stop")
    for step in range(10 ** 9 if target else steps):
        step_began = time.monotonic()
        x = torch.randn(BATCH, FEATURES, generator=generator)
        loss = loss_of(model, x) if how != "ddp" else loss_of(trained, x)
        optimizer.zero_grad()
        time.sleep(max(0.0, STEP_S * 2 ** rank - (time.monotonic() - step_began)))
        loss.backward()  # DDP waits for the others here
        optimizer.step()
        now = time.monotonic() - began
        if rank == 0 and now - told >= EVALUATE_S:
            told = now
            with torch.no_grad():
                reached = float(loss_of(model, test_x))
            print(f"{now:.3f} {reached:.6f}", flush=True)
            if target and reached <= target:
                stop.touch()
        if target and stop.exists() or how == "hivemind" and now > HIVEMIND_LIMIT_S:
            break
    if how == "hivemind":
        optimizer.shutdown()
        dht.shutdown()
    elif how != "ddp":
        optimizer.finish()


def run(how, steps, folder, build, target=0.0, python="/usr/bin/python3"):
    """The lines of rank 0."""
    environment = {**os.environ, "SOUK_WORLD_SIZE": str(WORLD), "SOUK_SYNC_KEY": "bench",
                   "SOUK_PEERS": f"127.{2 + (os.getpid() >> 16) % 250}.{os.getpid() >> 8 & 255}.{1 + os.getpid() % 254}",
                   "SOUK_LIBRARY": str(build / "libsouk.so.0"),
                   "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [python, __file__, "--rank-of", how, "--steps", str(steps), "--store", f"{folder}/{how}",
               "--target", str(target)]
    ranks = [subprocess.Popen(command, env={**environment, "SOUK_RANK": str(rank)}, stdout=subprocess.PIPE, text=True)
             for rank in range(WORLD)]
    try:
        says = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    finally:
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
    if any(rank.returncode != 0 for rank in ranks):
        raise SystemExit(f"{how}: a rank failed")
    return [tuple(map(float, line.split())) for line in says[0].splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100, help="of DDP's ranks")
    parser.add_argument("--rounds", type=int, default=3, help="DDP and adsp take turns; the middle ratio counts")
    parser.add_argument("--json", action="store_true", help="it always is")
    parser.add_argument("--program", default=str(ROOT / "build" / "souk"), help="libsouk lies beside it")
    parser.add_argument("--hivemind", metavar="PYTHON", help="beside Hivemind's optimizer, under this Python")
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    parser.add_argument("--target", type=float, default=0.0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank_of:
        train(arguments.rank_of, arguments.steps, arguments.store, arguments.target)
        return
    build = pathlib.Path(arguments.program).resolve().parent
    rounds, hivemind, python = [], [], arguments.hivemind or "/usr/bin/python3"
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as folder:
            ddp = run("ddp", arguments.steps, folder, build, python=python)
            target = ddp[-1][1]
            ddp_s = next(seconds for seconds, loss in ddp if loss <= target)
            adsp = run("adsp", arguments.steps, folder, build, target, python)
            adsp_s = next(seconds for seconds, loss in adsp if loss <= target)
            rounds.append((adsp_s / ddp_s, adsp_s, ddp_s, target))
            if arguments.hivemind:
                said = run("hivemind", arguments.steps, folder, build, target, python)
                reached_s = next((seconds for seconds, loss in said if loss <= target), None)
                hivemind.append((adsp_s / (reached_s or HIVEMIND_LIMIT_S), reached_s, min(loss for _, loss in said)))
    ratio, adsp_s, ddp_s, target = sorted(rounds)[len(rounds) // 2]
    beside = {}
    if hivemind:
        middle = sorted(hivemind, key=lambda found: found[0])[len(hivemind) // 2]
        beside = {"adsp_vs_hivemind": round(middle[0], 3), "hivemind_s": middle[1], "hivemind_loss": middle[2]}
    print(json.dumps({**beside, "adsp_target_loss": target, "ddp_s": ddp_s,
                      "ddp_floor_s": arguments.steps * STEP_S * 2 ** (WORLD - 1), "adsp_s": adsp_s,
                      "adsp_vs_ddp": round(ratio, 3), "adsp_vs_ddp_worst": round(max(rounds)[0], 3)}))


if __name__ == "__main__":
    main()
