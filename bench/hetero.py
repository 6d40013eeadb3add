#!/usr/bin/env python3
"""Synchronisation policies on unequal machines: real gradients in virtual time (`souk sim sync`).

    bench/hetero.py [--json] [--cells all] [--resume FILE] [--program build/souk] [--folder DIR]
                    [--policies a,b] [--seeds 1,2,3] [--jobs 2] [--minutes M] [--near] [--quick] [--list]

The 18 machines of the ADSP paper's testbed, spread to H, a push and its answer taking O mean steps.
In each cell every policy trains at each of four rates on one seed; at its own best rate it then runs
on the other seeds. One target for all. Runs are kept in FILE one by one: what is there is not run
again; of a policy whose code has changed remove the lines. A run is given up when it can no longer be
its policy's best, or takes half as long again as bsp at its best; with --near also when it takes longer
than adsp at its best, which is enough to know the best policy of a cell.

Cells are named by group (grid, disturbed, lenet5, momentum, cifar-cnn), by number from 1 as --list
gives them, or by numbers 3-9; "ci" are two that CI runs. With --quick a rate is not searched for, and
the MLP's target is nearer: that tells which policy leads, not by how much. With --minutes no run begins later than that; --resume goes on.
--folder holds Fashion-MNIST's four files, or folders fashion-mnist and cifar10.
"""
import argparse
import concurrent.futures
import functools
import gzip
import itertools
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The likeliest first: it bounds the others.
RATES = {"mlp": ["0.1", "0.2", "0.05", "0.4"], "lenet5": ["0.1", "0.05", "0.2", "0.4"],
         "cifar-cnn": ["0.02", "0.01", "0.04", "0.005"]}
MOMENTUM_RATES = ["0.01", "0.02", "0.005", "0.04"]
POLICIES = ["bsp", "ssp", "tap", "fixed-adacomm:8", "fixed-adacomm:40", "adacomm", "adsp", "hsp",
            "batchtune", "batchtune-fixed", "backup", "diloco", "async-local", "pace", "auto"]
TARGETS = {"mlp": 0.45, "lenet5": 0.50, "cifar-cnn": 1.6}
QUICK_TARGETS = {**TARGETS, "mlp": 0.7}
CI_CELLS = ["mlp H=3.2 O=5", "mlp H=3.2 O=1 momentum"]
DATA_FOLDER = "/usr/share/datasets/fashion-mnist"
LAST_TIME = 20000  # virtual seconds, where nothing else bounds a run
OVERSHOOT = 1.15  # a run must go on this much past its target for the mean of five to cross it


def cell(group, heterogeneity, delay, model="mlp", momentum=False, policies=None, **more):
    name = f"{model} H={heterogeneity} O={delay:g}" + (" momentum" if momentum else "")
    name += "".join(f" {key}={value}" for key, value in more.items())
    return {"name": name, "group": group, "model": model, "heterogeneity": heterogeneity, "delay": delay,
            "momentum": momentum, "more": more, "policies": policies or POLICIES}


def all_cells():
    levels = list(itertools.product([3.2, 2.0, 2.6, 1.45], [5, 1, 0.2]))
    cells = [cell("grid", heterogeneity, delay) for heterogeneity, delay in levels]
    disturbed = [{"jitter": "0.5"}, {"stay": "300s", "absence": "60s"}, {"skew": "0.5"}]
    cells += [cell("disturbed", 3.2, delay, **more) for more in disturbed for delay in (5, 1)]
    cells += [cell("lenet5", heterogeneity, delay, model="lenet5")
              for heterogeneity in (3.2, 2.0) for delay in (5, 1)]
    cells += [cell("momentum", heterogeneity, delay, momentum=True) for heterogeneity, delay in levels]
    cells.append(cell("cifar-cnn", 3.2, 5, model="cifar-cnn", policies=["bsp", "adsp", "auto"]))
    return cells


def cells_named(words):
    """Of "grid,14,20-22" or "all", in the order of the whole list."""
    cells, wanted = all_cells(), set()
    for word in words.split(","):
        first, _, last = word.partition("-")
        if first.isdigit() and (last or first).isdigit():
            wanted |= set(range(int(first), int(last or first) + 1))
            continue
        found = {number for number, place in enumerate(cells, 1) if word in ("all", place["group"]) or
                 word == "ci" and place["name"] in CI_CELLS}
        if not found:
            raise SystemExit(f"no cells \"{word}\": name a group, numbers or all")
        wanted |= found
    return [place for number, place in enumerate(cells, 1) if number in wanted]


def unpack_data(given, scratch):
    """A run reads Fashion-MNIST faster than it could unpack it: that is done once for all."""
    folder = pathlib.Path(given or DATA_FOLDER)
    if (folder / "fashion-mnist").is_dir():
        folder = folder / "fashion-mnist"
    for path in folder.glob("*-ubyte.gz"):
        with gzip.open(path) as packed, open(scratch / path.stem, "wb") as file:
            shutil.copyfileobj(packed, file)
    return scratch if any(scratch.iterdir()) else folder


class Runs:
    """Every run that is done, by its key; written down as it ends."""

    def __init__(self, wanted, scratch):
        self.wanted, self.scratch, self.lock, self.done = wanted, scratch, threading.Lock(), {}
        self.places = threading.Semaphore(wanted.jobs)
        self.end = time.monotonic() + 60 * wanted.minutes if wanted.minutes else math.inf
        if wanted.resume and os.path.exists(wanted.resume):
            for line in pathlib.Path(wanted.resume).read_text().splitlines():
                run = json.loads(line)
                self.done[run["key"]] = run

    @functools.cached_property
    def data(self):
        return unpack_data(self.wanted.folder, self.scratch)

    def find(self, key, limit):
        """One that was given up counts as long as its limit was not lower."""
        run = self.done.get(key)
        if run and (run["target_s"] is not None or run["end"] == "diverged" or run["limit"] >= limit):
            return run
        return None

    def get(self, place, policy, rate, seed, limit):
        key = f"{place['name']} | {policy} | {rate} | {seed}" + (" | quick" if self.wanted.quick else "")
        run = self.find(key, limit)
        if run:
            return run
        arguments = [os.path.abspath(self.wanted.program), "sim", "sync", "--json", "--quiet",
                     "--profile", "testbed-h3.2", "--heterogeneity", str(place["heterogeneity"]),
                     "--delay", f"{round(1000 * place['delay'])}ms", "--model", place["model"],
                     "--policy", policy, "--rate", rate, "--seed", str(seed),
                     "--target-loss", str(self.wanted.targets[place["model"]]), "--max-time", f"{math.ceil(limit)}s"]
        if place["model"] == "cifar-cnn":
            folder = pathlib.Path(self.wanted.folder or ".") / "cifar10"
            arguments += ["--data", "cifar10", "--folder", str(folder)]
        else:
            with self.lock:
                arguments += ["--folder", str(self.data)]
        if place["momentum"]:
            arguments += ["--momentum", "0.9"]
        for name, value in place["more"].items():
            arguments += [f"--{name}", value]
        with self.places:
            if time.monotonic() > self.end:
                raise RuntimeError("no time left")
            begin = time.monotonic()
            done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "no reason")
        run = json.loads(done.stdout)["runs"][0]
        run = {"key": key, "limit": limit, "wall_s": round(time.monotonic() - begin, 2), **run}
        with self.lock:
            self.done[key] = run
            if self.wanted.resume:
                with open(self.wanted.resume, "a", encoding="utf-8") as file:
                    file.write(json.dumps(run) + "\n")
            reached = "given up" if run["target_s"] is None else f"{run['target_s']:.0f} s"
            print(f"{key}: {reached}", file=sys.stderr)
        return run


def tune(runs, place, policy, limit):
    """(rate, run) of the rate that reaches the target first on the first seed; None: none does."""
    best = None
    rates = MOMENTUM_RATES if place["momentum"] else RATES[place["model"]]
    for rate in rates[:1] if runs.wanted.quick else rates:
        run = runs.get(place, policy, rate, runs.wanted.seeds[0], limit)
        if run["target_s"] is not None and (best is None or run["target_s"] < best[1]["target_s"]):
            best = rate, run
            limit = min(limit, OVERSHOOT * run["target_s"])
    return best


def measure(runs, place, policy, limit):
    best = tune(runs, place, policy, limit)
    if best is None:
        return {"policy": policy, "seconds": None, "rate": None}
    rate, first = best
    chosen = [first] + [runs.get(place, policy, rate, seed, limit) for seed in runs.wanted.seeds[1:]]
    times = [run["target_s"] for run in chosen]
    mean = None if None in times else sum(times) / len(times)
    return {"policy": policy, "seconds": mean, "rate": float(rate), "all_seconds": times,
            "waiting_share": sum(run["waiting_share"] for run in chosen) / len(chosen),
            "commits": sum(run["commits"] for run in chosen) / len(chosen),
            "chosen": first["chosen"]}


def run_cell(runs, place):
    policies = [name for name in place["policies"] if not runs.wanted.policies or
                name in runs.wanted.policies or name.split(":")[0] in runs.wanted.policies]
    try:
        # Momentum and skew may make even bsp slow: it alone is bounded by nothing else.
        bsp = measure(runs, place, "bsp", LAST_TIME)
        limit = 1.5 * OVERSHOOT * max(bsp["all_seconds"]) if bsp["seconds"] else LAST_TIME
        known = {"bsp": bsp}
        if runs.wanted.near:
            known["adsp"] = adsp = measure(runs, place, "adsp", limit)
            limit = OVERSHOOT * max(adsp["all_seconds"]) if adsp["seconds"] else limit
        with concurrent.futures.ThreadPoolExecutor(len(policies)) as pool:
            rows = list(pool.map(lambda name: known.get(name) or measure(runs, place, name, limit), policies))
    except RuntimeError as reason:
        return {"cell": place["name"], "not_run": str(reason)}
    return {"cell": place["name"], "rows": rows, "target_loss": runs.wanted.targets[place["model"]]}


def seconds(answer, *names):
    found = [row["seconds"] for row in answer.get("rows", [])
             if row["policy"].split(":")[0] in names and row["seconds"]]
    return min(found) if found else None


def saved(faster, slower):
    return None if not faster or not slower else 1 - faster / slower


def figures_of(answer):
    singles = {row["policy"].split(":")[0] for row in answer.get("rows", [])} - {"auto"}
    automatic, adsp = seconds(answer, "auto"), seconds(answer, "adsp")
    best = seconds(answer, *singles)
    waiting = [row.get("waiting_share") for row in answer.get("rows", []) if row["policy"] == "adsp"]
    return {"adsp_vs_bsp": saved(adsp, seconds(answer, "bsp")),
            "adsp_vs_ssp": saved(adsp, seconds(answer, "ssp")),
            "adsp_vs_fixed": saved(adsp, seconds(answer, "fixed-adacomm")),
            "adsp_waiting_share": waiting[0] if waiting else None,
            "auto_vs_adsp": saved(automatic, adsp),
            "auto_regret": automatic / best - 1 if automatic and best else None}


def show(answer):
    print(f"\n{answer['cell']}")
    if "not_run" in answer:
        print(f"  not run: {answer['not_run']}")
        return
    for row in sorted(answer["rows"], key=lambda row: row["seconds"] or math.inf):
        if row["seconds"] is None:
            print(f"  {row['policy']:18} not reached")
            continue
        spread = " ".join("-" if each is None else f"{each:.0f}" for each in row["all_seconds"])
        print(f"  {row['policy']:18} {row['seconds']:8.0f} s  rate {row['rate']:<6g} waiting "
              f"{100 * row['waiting_share']:5.1f} %  seeds {spread}")
    print("  " + "  ".join(f"{name} {value:.3f}" for name, value in figures_of(answer).items()
                           if value is not None))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--program", default="build/souk")
    parser.add_argument("--cells", default="1", help="groups and numbers, or all")
    parser.add_argument("--folder", help="where the data lie")
    parser.add_argument("--minutes", type=float, help="begin no run later")
    parser.add_argument("--resume", help="where runs are kept")
    parser.add_argument("--policies", default="", help="only these")
    parser.add_argument("--seeds", default="1,2,3", help="the first tunes the rates")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--near", action="store_true", help="give up what is later than adsp")
    parser.add_argument("--quick", action="store_true", help="one rate, a nearer target")
    parser.add_argument("--list", action="store_true", help="name the cells and end")
    wanted = parser.parse_args()
    wanted.seeds = [int(seed) for seed in wanted.seeds.split(",")]
    wanted.targets = QUICK_TARGETS if wanted.quick else TARGETS
    wanted.policies = [name for name in wanted.policies.split(",") if name]
    cells = cells_named(wanted.cells)
    if wanted.list:
        print("\n".join(f"{number:3} {place['group']:10} {place['name']}"
                        for number, place in enumerate(all_cells(), 1) if place in cells))
        return
    with tempfile.TemporaryDirectory() as scratch:
        runs = Runs(wanted, pathlib.Path(scratch))
        # More cells than one at a time: each begins with bsp, which the others wait for.
        with concurrent.futures.ThreadPoolExecutor((wanted.jobs + 3) // 4) as pool:
            answers = []
            for answer in pool.map(lambda place: run_cell(runs, place), cells):
                answers.append(answer)
                if not wanted.json:
                    show(answer)
    result = figures_of(answers[0])  # H = 3.2, O = 5, MLP where all are run
    regrets = [figures_of(answer)["auto_regret"] for answer in answers]
    result["auto_regret_worst"] = max((regret for regret in regrets if regret is not None), default=None)
    result["cells"] = len(answers)
    result["not_run"] = [answer["cell"] for answer in answers if "not_run" in answer]
    if wanted.json:
        print(json.dumps({**result, "results": answers}))
    else:
        print("\n" + "\n".join(f"{name:20} {value if value is None else round(value, 4)}"
                               for name, value in result.items() if name != "not_run"))
        print("not run: " + (", ".join(result["not_run"]) or "nothing"))


if __name__ == "__main__":
    main()
