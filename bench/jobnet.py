#!/usr/bin/env python3
"""TCP between two sandboxes over the job network, beside plainer ways to carry their packets.

    bench/jobnet.py [--json] [--rounds N] [--seconds S] [--program build/souk]

Runs `souk bench jobnet`. In every round the packets are carried in turn by the job network (one
process at each end, an encrypted link), by the same two processes and connection with nothing
around them (bare), by one process that copies from device to device (copy), and by that on devices
of 1500 bytes without offload (plain). Ratios are taken within a round; each figure is the median of
the rounds.
"""
import argparse
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOALS = {"jobnet_ratio": ">= 0.6", "jobnet_rtt_added_ms": "<= 0.3"}
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--seconds", type=int, default=1)
parser.add_argument("--program", default=str(ROOT / "build/souk"))
wanted = parser.parse_args()

command = [wanted.program, "bench", "jobnet", "--rounds", str(wanted.rounds), "--round",
           f"{wanted.seconds}s", "--json"]
figures = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
figures["load_average"] = os.getloadavg()[0]
if wanted.json:
    print(json.dumps(figures))
else:
    for name, value in figures.items():
        print(f"{name:28} {value:12.3f}  {GOALS.get(name, '')}")
