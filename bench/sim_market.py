#!/usr/bin/env python3
"""What the price rule makes of real traces, through the market's own core.

    bench/sim_market.py [--json] [--program build/souk] [--data DIR] [--seeds 4,1,2] [--days N]

The first seed gives the figures; further ones show how far chance moves the gain.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIELDS = ["mean_gain", "worst_gain", "settle_slots", "herding_move", "withholding_change",
          "self_rent_change"]
GOALS = {"mean_gain": "≥ 0.90", "worst_gain": "≥ 0.80", "settle_slots": "3 (200 borrowers, elasticity 1)",
         "herding_move": "≤ 0.06", "withholding_change": "< 0", "self_rent_change": "< 0"}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--program", default="build/souk")
parser.add_argument("--data", default=os.environ.get("SOUK_DATA", str(ROOT.parent / "shared" / "data")))
parser.add_argument("--seeds", default="4,1,2")
parser.add_argument("--days", help="days to take of each workload")
wanted = parser.parse_args()


def sim(*arguments):
    done = subprocess.run([os.path.abspath(wanted.program), "sim", "market", "--data", wanted.data,
                           "--json", "--quiet", *(["--days", wanted.days] if wanted.days else []), *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


if not (pathlib.Path(wanted.data) / "job-traces").is_dir():
    print(f"SKIPPED: no traces in {wanted.data}; name their folder with --data or SOUK_DATA",
          file=sys.stderr)
    sys.exit(77)

seeds = wanted.seeds.split(",")
whole = sim("--seed", seeds[0])
gains = [whole["figures"]["mean_gain"]]
gains += [sim("--seed", seed, "--experiment", "gain")["figures"]["mean_gain"] for seed in seeds[1:]]
result = {field: whole["figures"][field] for field in FIELDS}
result["mean_gain_over_seeds"] = statistics.mean(gains)
result["seeds"] = len(gains)
result["missed"] = whole["missed"]

if wanted.json:
    print(json.dumps(result))
else:
    for field in FIELDS:
        print(f"{field:24} {result[field]:8.3f}   goal {GOALS[field]}")
    print(f"{'mean gain over seeds':24} {result['mean_gain_over_seeds']:8.3f}   {len(gains)} seeds")
    print("missed: " + (", ".join(result["missed"]) or "nothing"))
