#!/usr/bin/env python3
"""The demo's figures: accuracy, time to the first step, who did how much, and whether the books
balance.

    bench/demo.py [--json] [--runs N] [--program build/souk]
"""
import argparse
import json
import os
import statistics
import subprocess

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--runs", type=int, default=3)
parser.add_argument("--program", default="build/souk")
wanted = parser.parse_args()

runs = []
for _ in range(wanted.runs):
    done = subprocess.run([wanted.program, "demo", "--json", "--quiet"], capture_output=True,
                          text=True, check=True)
    runs.append(json.loads(done.stdout))


def shares(run):
    workers = [lender for lender in run["lenders"] if lender["role"] == "worker"]
    steps = sum(worker["steps"] for worker in workers)
    return {worker["name"]: worker["steps"] / steps for worker in workers}


result = {
    "runs": len(runs),
    "load_average": os.getloadavg()[0],
    "test_accuracy": [run["test_accuracy"] for run in runs],
    "train_seconds": [run["train_seconds"] for run in runs],
    "submit_to_first_step_ms": [run["submit_to_first_step_ms"] for run in runs],
    "upload_ms": [run["upload_ms"] for run in runs],
    "ticks": [run["ticks"] for run in runs],
    "commits_min": [min(lender["commits"] for lender in run["lenders"] if lender["role"] == "worker")
                    for run in runs],
    "step_shares": [shares(run) for run in runs],
    "is_balanced": all(
        sum(lender["earned_microcredits"] for lender in run["lenders"]) + run["fee_microcredits"]
        == run["spent_microcredits"] and run["ledger_sum_microcredits"] == 0 for run in runs),
}
if wanted.json:
    print(json.dumps(result))
else:
    print(f"{'figure':<28}{'median':>10}{'worst':>10}   goal")
    for name, worst, goal, digits in (
            ("test_accuracy", min, ">= 0.88", 4), ("train_seconds", min, ">= 30", 1),
            ("submit_to_first_step_ms", max, "< 1000", 0), ("upload_ms", max, "", 0),
            ("ticks", min, ">= 5", 0), ("commits_min", min, ">= 10", 0)):
        values = result[name]
        print(f"{name:<28}{statistics.median(values):>10.{digits}f}{worst(values):>10.{digits}f}"
              f"   {goal}")
    for name in result["step_shares"][0]:
        values = [share[name] for share in result["step_shares"]]
        print(f"{'share of steps, ' + name:<28}{statistics.median(values):>10.3f}")
    print(f"books balance: {'yes' if result['is_balanced'] else 'NO'}; load average "
          f"{result['load_average']:.1f}")
