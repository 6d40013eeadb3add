#!/usr/bin/python3
"""A training step beside torch: forward, backward and SGD with momentum, one thread each.

    bench/train.py [--json] [--program build/release/train_bench] [--rounds 5] [--python PATH]

Both sides run as processes of their own, turn by turn, on the same shapes; the best round of each
counts, by the processor's time, since the machine is shared. torch runs channels last for images.
Figures are ratios, ours over torch's, the worse of the batch sizes; below 1 is faster. torch is that
of the interpreter --python names (SOUK_TORCH_PYTHON where that is not given, else the one that runs
this): a virtual environment's, for another release than the system's.
"""
import argparse
import json
import os
import platform
import subprocess
import sys
import time

CASES = {  # field: model, batches, steps a round
    "ratio_logistic": ("logistic", (32, 128), 300),
    "ratio_mlp": ("mlp", (32, 128), 50),
    "ratio_lenet5": ("lenet5", (32, 128), 20),
    "ratio_cifar_cnn": ("cifar-cnn", (128,), 2),
    "ratio_lstm": ("lstm", (32, 128), 5),
}
# Multiply-adds of a sample's forward, of its weights' gradients, and of what goes back from every
# layer but the first: what a step cannot do without, unless it knows of zeros.
MULTIPLY_ADDS = {
    "logistic": 2 * 7840,
    "mlp": 2 * (200704 + 32768 + 1280) + 32768 + 1280,
    "lenet5": 2 * (117600 + 240000 + 58920) + 240000 + 58920,
    "cifar-cnn": 2 * (4915200 + 26214400 + 40960) + 26214400 + 40960,
    "lstm": 2 * (50 * 256 * 512 + 1280) + 49 * 128 * 512 + 1280,
}
GOALS = {"ratio_logistic": 0.15, "ratio_mlp": 0.5, "ratio_lenet5": 0.25, "ratio_cifar_cnn": 0.7, "ratio_lstm": 0.4,
         "rss_ratio": 0.3}


def torch_model(name):
    from torch import nn
    flat = nn.Flatten()
    if name == "logistic":
        return nn.Sequential(flat, nn.Linear(784, 10)), (1, 28, 28)
    if name == "mlp":
        return nn.Sequential(flat, nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(),
                             nn.Linear(128, 10)), (1, 28, 28)
    if name == "lenet5":
        return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(6, 16, 5),
                             nn.MaxPool2d(2), nn.ReLU(), flat, nn.Linear(400, 120), nn.ReLU(),
                             nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)), (1, 28, 28)
    if name == "cifar-cnn":
        pool, norm = nn.MaxPool2d(3, 2, ceil_mode=True), nn.LocalResponseNorm(9, 0.001, 0.75, 1)
        return nn.Sequential(nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(), pool, norm, nn.Conv2d(64, 64, 5, padding=2),
                             nn.ReLU(), norm, pool, flat, nn.Linear(4096, 10)), (3, 32, 32)

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = nn.LSTM(128, 128, batch_first=True), nn.Linear(128, 10)

        def forward(self, x):
            return self.out(self.lstm(x)[0][:, -1])
    return Last(), (50, 128)


def run_torch(name, batch, steps):
    """In a process of its own: milliseconds of CPU a step."""
    import torch
    torch.set_num_threads(1)
    model, shape = torch_model(name)
    inputs, labels = torch.randn(batch, *shape), torch.randint(0, 10, (batch,))
    if len(shape) == 3 and name in ("lenet5", "cifar-cnn"):
        model, inputs = model.to(memory_format=torch.channels_last), inputs.to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()

    for _ in range(2):
        step()
    best = float("inf")
    for _ in range(10):
        begun = time.process_time()
        for _ in range(steps):
            step()
        best = min(best, (time.process_time() - begun) * 1000 / steps)
    return best, torch.__version__


def measured(command):
    """What it printed, and its peak memory in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                               env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"})
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command[0]} failed")
    return json.loads(out), usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--program", default="build/release/train_bench")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=list(CASES), help="one field")
    parser.add_argument("--python", default=os.environ.get("SOUK_TORCH_PYTHON", sys.executable),
                        help="the interpreter whose torch is measured")
    parser.add_argument("--torch", nargs=3, metavar=("MODEL", "BATCH", "STEPS"), help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.torch:
        best, version = run_torch(wanted.torch[0], int(wanted.torch[1]), int(wanted.torch[2]))
        print(json.dumps({"cpu_ms": best, "version": version}))
        return
    rows, result, memory = [], {}, []
    for field, (model, batches, steps) in CASES.items():
        if wanted.only not in (None, field):
            continue
        ratios = []
        for batch in batches:
            ours, theirs = [], []
            for _ in range(wanted.rounds):
                answer, our_mib = measured([wanted.program, "--json", "--model", model, "--kernels", "simd",
                                            "--batch", str(batch), "--steps", str(steps)])
                ours.append(answer[0]["cpu_ms"])
                answer, their_mib = measured([wanted.python, __file__, "--torch", model, str(batch), str(steps)])
                theirs.append(answer["cpu_ms"])
            memory.append(our_mib / their_mib)
            ratios.append(min(ours) / min(theirs))
            rows.append({"model": model, "batch": batch, "souk_ms": round(min(ours), 4),
                         "torch_ms": round(min(theirs), 4), "ratio": round(ratios[-1], 3),
                         "souk_gflops": round(2 * MULTIPLY_ADDS[model] * batch / min(ours) / 1e6, 1),
                         "souk_mib": round(our_mib, 1), "torch_mib": round(their_mib, 1)})
            if not wanted.json:
                print("{model:10} batch {batch:4}: souk {souk_ms:9.3f} ms ({souk_gflops:.0f} GFLOP/s), torch"
                      " {torch_ms:9.3f} ms: {ratio:.3f}; peak {souk_mib:.0f} and {torch_mib:.0f} MiB"
                      .format(**rows[-1]), flush=True)
        result[field] = round(max(ratios), 3)
    result["rss_ratio"] = round(max(memory), 3)
    result.update(rows=rows, torch=answer["version"], machine=platform.machine())
    if wanted.json:
        print(json.dumps(result))
        return
    print(f"beside torch {result['torch']}, one thread each, {result['machine']}")
    for field, goal in GOALS.items():
        if field in result:
            print(f"{field:16} {result[field]:.3f}  (at most {goal}{'' if result[field] <= goal else ': MISSED'})")


if __name__ == "__main__":
    main()
