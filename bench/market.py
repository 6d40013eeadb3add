#!/usr/bin/env python3
"""How fast jobs with mixed wishes are matched, and how that grows with the market.

    bench/market.py [--json] [--offers N] [--jobs N] [--rounds N] [--program build/souk]

Runs `souk bench market` ROUNDS times and takes the median of each figure. Times are CPU time of
one thread; a machine that shares its caches with others shows more.
"""
import argparse
import json
import pathlib
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOALS = {"placements_per_s": ">= 50000", "decision_p99_us": "<= 1000", "bytes_per_offer": "<= 400",
         "growth": "<= 1"}
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--offers", type=int, default=1_000_000)
parser.add_argument("--jobs", type=int, default=100_000)
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--program", default=str(ROOT / "build/souk"))
wanted = parser.parse_args()

command = [wanted.program, "bench", "market", "--offers", str(wanted.offers), "--jobs",
           str(wanted.jobs), "--json"]
rounds = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
          for _ in range(wanted.rounds)]
figures = {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}
if wanted.json:
    print(json.dumps(figures))
else:
    for name, value in figures.items():
        print(f"{name:20} {value:12.2f}  {GOALS.get(name, '')}")
