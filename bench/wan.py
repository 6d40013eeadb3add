#!/usr/bin/env python3
"""What workers behind slow, long lines keep of the computing that they do without any network.

    bench/wan.py [--json] [--workers 8] [--parameters N] [--mbit 100] [--rtt 100] [--step 200] [--seconds 60]
                 [--policy auto] [--compress auto] [--program build/souk]

Runs `souk bench wan` twice: with a parameter server whose line has no limit (each worker has its own
100 Mbit/s), and with one whose line is as narrow as a worker's, which all of them share. Every process
has a network namespace of its own; a relay between their TUN devices makes delay, speed and full
queues (the kernel here has no netem). `compute_kept` is the smaller of the two figures: steps with the
exchange over steps without, the link thread's CPU taken off, from the moment the workers start to dial.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOALS = {"compute_kept": ">= 0.85"}


def measure(wanted, server_mbit):
    command = [wanted.program, "bench", "wan", "--workers", str(wanted.workers), "--parameters", str(wanted.parameters),
               "--mbit", str(wanted.mbit), "--server-mbit", str(server_mbit), "--rtt", f"{wanted.rtt}ms",
               "--step", f"{wanted.step}ms", "--round", f"{wanted.seconds}s", "--policy", wanted.policy,
               "--compress", wanted.compress, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--parameters", type=int, default=10_000_000)
    parser.add_argument("--mbit", type=int, default=100)
    parser.add_argument("--rtt", type=int, default=100, help="in ms")
    parser.add_argument("--step", type=int, default=200, help="in ms")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--policy", default="auto")
    parser.add_argument("--compress", default="auto")
    parser.add_argument("--program", default=str(ROOT / "build/souk"))
    wanted = parser.parse_args()
    cases = {"own_lines": measure(wanted, 0), "shared_line": measure(wanted, wanted.mbit)}
    figures = {"compute_kept": min(case["compute_kept"] for case in cases.values()),
               "load_average": os.getloadavg()[0]}
    if wanted.json:
        print(json.dumps({**figures, **cases}))
        return
    for name, value in figures.items():
        print(f"{name:28} {value:10.3f}  {GOALS.get(name, '')}")
    print(f"\n{'':28}" + "".join(f"{name:>14}" for name in cases))
    for name in cases["own_lines"]:
        print(f"{name:28}" + "".join(f"{case[name]:14.3f}" for case in cases.values()))


if __name__ == "__main__":
    sys.exit(main())
