#!/usr/bin/env python3
"""How much of what scheduling can save of elastic training our schedulers do save.

    bench/siren.py [--json] [--program build/souk] [--seeds 101,102,103,104,105,106,107]
                   [--episodes 200] [--evaluations 20]

In the world `floor`, whose constants each seed draws and hides. For every budget the first five seeds count
for which any constant reaches the target (100 credits are too few in some worlds). Shares are of the time
that the dynamic program's bound saves beside the best constant. With noise, on fresh runs only, the
gain is the mean over runs in which both reached the target; `noisy_share` is the mean gain over the mean
without noise, over the three budgets.
"""
import argparse
import json
import os
import statistics
import subprocess

BUDGETS = [300, 200, 100]
COUNTED = 5
GOALS = {"auto_share_of_bound_300": 0.90, "auto_share_of_bound_200": 0.90, "auto_share_of_bound_100": 0.90,
         "agent_share_of_bound_300": 0.85, "agent_share_of_bound_200": 0.70, "noisy_share": 0.60,
         "noisy_least_gain": 0.0, "noisy_fewer_reached": 0}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--program", default="build/souk")
parser.add_argument("--seeds", default="101,102,103,104,105,106,107")
parser.add_argument("--episodes", type=int, default=200)
parser.add_argument("--evaluations", type=int, default=20)
wanted = parser.parse_args()


def sim(*arguments):
    done = subprocess.run([os.path.abspath(wanted.program), "sim", "siren", "--json", "--quiet", "--seed", wanted.seeds,
                           "--budget", ",".join(map(str, BUDGETS)), *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)["results"]


def of(cell, scheduler):
    return next(row for row in cell["schedulers"] if row["scheduler"] == scheduler)


def counted(results, budget):
    cells = [cell for cell in results if cell["budget"] == budget and cell["reachable"]][:COUNTED]
    if len(cells) < COUNTED:
        raise SystemExit(f"siren: budget {budget} is reachable with {len(cells)} of these seeds: name more")
    return cells


def mean(cells, scheduler, field):
    """A run that did not reach the target saved nothing."""
    return statistics.mean(of(cell, scheduler)[field] or 0.0 for cell in cells)


quiet = sim("--episodes", str(wanted.episodes))
# The same worlds, with noise.
noisy = sim("--noise", "--evaluations", str(wanted.evaluations), "--scheduler", "planner,auto")
result, gains, noisy_gains, least, fewer = {}, [], [], [], 0
for budget in BUDGETS:
    cells = counted(quiet, budget)
    for scheduler in ("auto", "agent", "planner", "decay"):
        result[f"{scheduler}_share_of_bound_{budget}"] = mean(cells, scheduler, "share_of_bound")
    seeds = [cell["seed"] for cell in cells]
    with_noise = [cell for cell in noisy if cell["budget"] == budget and cell["seed"] in seeds]
    gains.append(mean(cells, "auto", "reduction"))
    noisy_gains.append(mean(with_noise, "auto", "reduction"))
    result[f"noisy_gain_{budget}"] = noisy_gains[-1]
    result[f"noisy_planner_gain_{budget}"] = mean(with_noise, "planner", "reduction")
    result[f"gain_{budget}"] = gains[-1]
    least += [of(cell, "auto")["reduction"] for cell in with_noise]
    reached = [sum(of(cell, name)["reached"] for cell in with_noise) for name in ("auto", "constant")]
    result[f"noisy_reached_{budget}"] = reached[0]
    result[f"noisy_constant_reached_{budget}"] = reached[1]
    fewer += max(0, reached[1] - reached[0])
result["noisy_share"] = statistics.mean(noisy_gains) / statistics.mean(gains)
result["noisy_least_gain"] = min(least)  # of any seed and budget
result["noisy_fewer_reached"] = fewer    # runs, below the constant's, over all budgets
result["passed_budget"] = sum(row.get("passed_budget", False) for cell in quiet + noisy for row in cell["schedulers"])
result["episodes"] = wanted.episodes
result["runs_with_noise"] = COUNTED * wanted.evaluations
result["missed"] = [name for name, goal in GOALS.items()
                    if (result[name] > goal if name == "noisy_fewer_reached" else result[name] < goal)]
if result["passed_budget"]:
    result["missed"].append("passed_budget")

if wanted.json:
    print(json.dumps(result))
else:
    for name, value in result.items():
        goal = f"   goal {GOALS[name]:g}" if name in GOALS else ""
        print(f"{name:28} {value:8.3f}{goal}" if isinstance(value, float) else f"{name:28} {value!s:>8}{goal}")
