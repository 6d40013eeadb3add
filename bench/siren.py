#!/usr/bin/env python3
"""How much of what scheduling can save of elastic training our schedulers do save.

    bench/siren.py [--json] [--program build/souk] [--seeds 5001,...,5008] [--counted 5] [--episodes 200] [--rehearsals 40]
                   [--evaluations 20] [--sgd SEEDS [--sgd-evaluations 6]]

Both worlds beside each other, every scheduler in each: `paper`, where nothing can be gained, and `floor`, whose constants
each seed draws and hides. Each budget counts the first five seeds (--counted) where any constant reaches the target (100
credits are too few in some worlds). Shares are of the time that the dynamic program's bound saves beside the best
constant; a world in which that is next to nothing has no share. With noise, on fresh runs only, the gain is the mean over
runs in which both reached the target; `noisy_share` is the mean gain over the mean without noise, over the three
budgets. With --sgd the world that trains a model, too, which takes minutes for each seed: gains over fresh runs, as
with noise. Where a scheduler never reached the target there is no figure, which misses every goal.
"""
import argparse
import json
import os
import statistics
import subprocess

BUDGETS = [300, 200, 100]
SCHEDULERS = ["constant", "bound", "decay", "growth", "agent", "planner", "auto"]
GOALS = {"auto_share_of_bound_300": 0.90, "auto_share_of_bound_200": 0.90, "auto_share_of_bound_100": 0.90,
         "agent_share_of_bound_300": 0.85, "agent_share_of_bound_200": 0.70, "noisy_share": 0.60,
         "noisy_least_gain": 0.0, "noisy_fewer_reached": 0}
LESS_IS_BETTER = {"noisy_fewer_reached"}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--program", default="build/souk")
parser.add_argument("--seeds", default=",".join(str(seed) for seed in range(5001, 5009)))
parser.add_argument("--counted", type=int, default=5, help="seeds that count for each budget")
parser.add_argument("--episodes", type=int, default=200)
parser.add_argument("--rehearsals", type=int, default=40)
parser.add_argument("--evaluations", type=int, default=20)
parser.add_argument("--sgd", default="", metavar="SEEDS")
parser.add_argument("--sgd-evaluations", type=int, default=6)
wanted = parser.parse_args()


def sim(*arguments):
    done = subprocess.run([os.path.abspath(wanted.program), "sim", "siren", "--json", "--quiet",
                           "--budget", ",".join(map(str, BUDGETS)), "--episodes", str(wanted.episodes),
                           "--rehearsals", str(wanted.rehearsals), *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def of(cell, scheduler):
    return next(row for row in cell["schedulers"] if row["scheduler"] == scheduler)


def counted(results, budget):
    cells = [cell for cell in results if cell["budget"] == budget and cell["reachable"]][:wanted.counted]
    if len(cells) < wanted.counted:
        raise SystemExit(f"siren: budget {budget} is reachable with {len(cells)} of these seeds: name more")
    return cells


def mean(values):
    """Nothing where one is missing."""
    values = list(values)
    return None if not values or None in values else statistics.mean(values)


def gain(cells, scheduler):
    return mean(of(cell, scheduler)["reduction"] for cell in cells)


def share(cells, scheduler):
    """Worlds without anything to gain are left out; one that a scheduler does not get through is not."""
    return mean(of(cell, scheduler)["share_of_bound"] for cell in cells
                if of(cell, "bound")["share_of_bound"] is not None)


def is_missed(name, value):
    if value is None:
        return True
    return value > GOALS[name] if name in LESS_IS_BETTER else value < GOALS[name]


def measure(paper, quiet, noisy):
    result, gains, noisy_gains, least, fewer = {}, [], [], [], 0
    for budget in BUDGETS:
        cells = counted(quiet["results"], budget)
        seeds = [cell["seed"] for cell in cells]
        with_noise = [cell for cell in noisy["results"] if cell["budget"] == budget and cell["seed"] in seeds]
        fixed = [cell for cell in paper["results"] if cell["budget"] == budget]
        for scheduler in ("auto", "agent", "planner", "decay"):
            result[f"{scheduler}_share_of_bound_{budget}"] = share(cells, scheduler)
        for scheduler in SCHEDULERS[1:]:
            result[f"{scheduler}_gain_{budget}"] = gain(cells, scheduler)
            result[f"paper_{scheduler}_gain_{budget}"] = gain(fixed, scheduler)
        for scheduler in ("decay", "planner", "auto"):
            result[f"noisy_{scheduler}_gain_{budget}"] = gain(with_noise, scheduler)
        gains.append(result[f"auto_gain_{budget}"])
        noisy_gains.append(result[f"noisy_auto_gain_{budget}"])
        least += [of(cell, "auto")["reduction"] if cell["reachable"] else None for cell in with_noise]
        reached = [sum(of(cell, name)["reached"] for cell in with_noise if cell["reachable"])
                   for name in ("auto", "constant")]
        result[f"noisy_auto_reached_{budget}"], result[f"noisy_constant_reached_{budget}"] = reached
        fewer += max(0, reached[1] - reached[0])
    both = [mean(noisy_gains), mean(gains)]
    result["noisy_share"] = None if None in both else both[0] / both[1]
    result["noisy_least_gain"] = None if None in least else min(least)  # of any seed and budget
    result["noisy_fewer_reached"] = fewer  # runs, below the constant's, over all budgets
    cells = paper["results"] + quiet["results"] + noisy["results"]
    result["passed_budget"] = sum(row.get("passed_budget", False) for cell in cells for row in cell["schedulers"])
    result["episodes"] = wanted.episodes
    result["rehearsals"] = wanted.rehearsals
    result["runs_with_noise"] = wanted.counted * wanted.evaluations
    result["missed"] = [name for name in GOALS if is_missed(name, result[name])]
    if result["passed_budget"]:
        result["missed"].append("passed_budget")
    return result


def measure_sgd(trained):
    result = {}
    for budget in BUDGETS:
        cells = [cell for cell in trained["results"] if cell["budget"] == budget and cell["reachable"]]
        result[f"sgd_constant_reached_{budget}"] = sum(of(cell, "constant")["reached"] for cell in cells)
        for scheduler in ("decay", "growth", "planner", "auto"):
            result[f"sgd_{scheduler}_gain_{budget}"] = gain(cells, scheduler)
            result[f"sgd_{scheduler}_reached_{budget}"] = sum(of(cell, scheduler)["reached"] for cell in cells)
    return result


def shown(value, form="{:.1f} %", times=100.0):
    return "-" if value is None else form.format(times * value)


def print_world(title, cells, budget):
    """A row for each scheduler, means over the worlds."""
    print(f"\n{title}, budget {budget}, worlds: {len(cells)}\n{'scheduler':12}{'functions':>12}{'seconds':>10}{'cost':>8}"
          f"{'less time':>11}{'of the bound':>14}{'reached':>9}")
    for scheduler in SCHEDULERS:
        rows = [row for cell in cells for row in cell["schedulers"] if row["scheduler"] == scheduler]
        if not rows:
            continue
        seconds = shown(mean(row["time_s"] for row in rows), "{:.0f}", 1)
        functions = cost = reached = ""
        if scheduler != "bound":
            functions = f"{min(row['functions_min'] for row in rows)}-{max(row['functions_max'] for row in rows)}"
            cost = shown(mean(row["cost"] for row in rows), "{:.1f}", 1)
            reached = f"{sum(row['reached'] for row in rows)}/{sum(cell['runs'] for cell in cells)}"
        part = share(cells, scheduler) if scheduler not in ("constant", "bound") else None
        print(f"{scheduler:12}{functions:>12}{seconds:>10}{cost:>8}{shown(gain(cells, scheduler)):>11}"
              f"{shown(part):>14}{reached:>9}")


def print_published(table, name):
    print(f"\npublished, Table {name}")
    for row in table:
        print("   ".join(f"{field} {value}" for field, value in row.items() if value))


def print_all(paper, quiet, noisy, trained, result):
    for budget in BUDGETS:
        print_world("paper", [cell for cell in paper["results"] if cell["budget"] == budget], budget)
        cells = counted(quiet["results"], budget)
        print_world("floor", cells, budget)
        seeds = [cell["seed"] for cell in cells]
        print_world("floor with noise", [cell for cell in noisy["results"] if cell["budget"] == budget and
                                         cell["seed"] in seeds and cell["reachable"]], budget)
        if trained:
            print_world("sgd", [cell for cell in trained["results"] if cell["budget"] == budget and cell["reachable"]],
                        budget)
    print_published(paper["published_table_1"], "I")
    print_published(paper["published_table_3"], "III")
    print()
    for name, value in result.items():
        goal = f"   goal {GOALS[name]:g}" if name in GOALS else ""
        text = f"{value:.3f}" if isinstance(value, float) else str(value)
        print(f"{name:32}{text:>8}{goal}")


# The same worlds without and with noise; the paper's has nothing to draw.
paper_world = sim("--mode", "paper", "--seed", "1")
quiet_worlds = sim("--seed", wanted.seeds)
noisy_worlds = sim("--seed", wanted.seeds, "--noise", "--evaluations", str(wanted.evaluations),
                   "--scheduler", "decay,planner,auto")
trained_worlds = sim("--mode", "sgd", "--seed", wanted.sgd, "--evaluations",
                     str(wanted.sgd_evaluations)) if wanted.sgd else None
measured = measure(paper_world, quiet_worlds, noisy_worlds)
if trained_worlds:
    measured.update(measure_sgd(trained_worlds))
if wanted.json:
    print(json.dumps(measured))
else:
    print_all(paper_world, quiet_worlds, noisy_worlds, trained_worlds, measured)
