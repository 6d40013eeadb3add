#!/usr/bin/env python3
"""Frameworks' programs on the market: how soon they begin, and how fast they run beside their own launchers.

    bench/frameworks.py [--json] [--only start|ddp|adsp|spark|mnist] [--program build/souk]

Each part is a program of its own, frameworks/PART.py, with options of its own. This runs them in turn and joins their
output. If a part fails, this names it and exits with 1.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PARTS = ("start", "ddp", "adsp", "spark", "mnist")
GOALS = {"start_overhead_ms": "<= 1000", "ddp_ratio": ">= 0.8", "adsp_vs_ddp": "<= 0.5", "spark_start_s": "<= 10",
         "mnist_minutes": "DeepMarket: 14 to 306"}
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--only", choices=PARTS)
parser.add_argument("--program", default=str(HERE.parent / "build/souk"))
wanted = parser.parse_args()

figures, missing = {}, []
for part in [wanted.only] if wanted.only else PARTS:
    done = subprocess.run([HERE / "frameworks" / f"{part}.py", "--json", "--program", wanted.program], stdout=subprocess.PIPE, text=True)
    if done.returncode == 0:
        figures |= json.loads(done.stdout)
    else:
        missing.append(f"{part}: exit status {done.returncode}")
figures["load_average"] = os.getloadavg()[0]

if wanted.json:
    print(json.dumps(figures))
else:
    for name, value in figures.items():
        print(f"{name:28} {value!s:>14}  {GOALS.get(name, '')}")
for line in missing:
    print(f"NOT MEASURED: {line}", file=sys.stderr)
sys.exit(1 if missing else 0)
