"""How many functions in every epoch: schedules beside constant numbers on real jobs, for bench/functions.py.

LeNet-5 on MNIST, a text CNN on review polarity and hashed rows of Avazu, each to a test loss, on functions of 0.1 core, 16 at
most, of this machine. A round has every constant of a small grid and every schedule once, one after the other. A schedule's time is
compared with that of the best constant, by the median over rounds, in the same round; so is its cost. `auto` begins with nothing
known, `auto_earlier` has the constants of the first round as --earlier, `agent` is new in the first round and goes on with what it
kept. Their budget is what the best constant cost in the first round, and what 16 calls hold.
"""
import gzip
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

GRID = (1, 2, 4, 8, 16)
DECAYS = {"decay_16_1": 16, "decay_8_1": 8}
MOST, MEMORY_MB, TIMEOUT_S, START_S = 16, 256, 6, 10
CORE_PRICE, RAM_PRICE = 10, 1  # high enough that microcredits tell calls apart
EPOCHS, DECAY_EPOCHS = 20, 8
JOBS = {
    "lenet": ("lenet5", "mnist/", "", "name: sgd, lr: 0.02, momentum: 0.5", 0.08),
    "reviews": ("text-cnn", "reviews/", "  read: {vocabulary: 4000, length: 32}\n", "name: adam, lr: 0.003", 0.66),
    "clicks": ("logistic", "clicks.csv",
               '  label: click\n  read: {categories: hashed, category_columns: "*", skip: id, hash_bits: 18}\n',
               "name: sgd, lr: 0.1, momentum: 0", 0.43),
}


def lay_out(data, folder):
    (folder / "mnist").mkdir()
    for path in (data / "mnist").glob("*.gz"):
        (folder / "mnist" / path.stem).write_bytes(gzip.decompress(path.read_bytes()))
    (folder / "reviews").mkdir()
    for part in ("pos", "neg"):
        shutil.copy(data / "rt-polarity" / f"rt-polarity.{part}", folder / "reviews" / f"reviews.{part}")
    (folder / "clicks.csv").write_bytes(gzip.decompress((data / "ctr" / "avazu_train.csv.gz").read_bytes()))
    for name, (model, path, more, optimizer, target) in JOBS.items():
        for kind, epochs in (("", EPOCHS), ("-decay", DECAY_EPOCHS)):
            (folder / f"{name}{kind}.yaml").write_text(
                f"name: {name}\nruntime: native\ntrain:\n  model: {model}\n  data: {folder / path}\n{more}  batch: 32\n"
                f"  optimizer: {{{optimizer}}}\n  epochs: {epochs}\n  seed: 3\n  target: {{loss: {target}}}\n")


class Trials:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.runs = {}  # (job, schedule): one for each round
        self.earlier = {job: [] for job in JOBS}

    def run(self, job, schedule, *options, kind=""):
        done = subprocess.run(
            [self.program, "function", "train", self.folder / f"{job}{kind}.yaml", "-o", self.folder / "model", "--json",
             "--quiet", "--memory", str(MEMORY_MB), "--cpus", "0.1", "--timeout", f"{TIMEOUT_S}s", "--core-price",
             str(CORE_PRICE), "--ram-price", str(RAM_PRICE), *map(str, options)],
            env={"HOME": str(self.folder), "PATH": os.environ["PATH"]}, check=True, stdout=subprocess.PIPE, text=True).stdout
        result = json.loads(done)
        run = {"seconds": sum(epoch["seconds"] for epoch in result["epochs"]), "cost": result["spent_micro"],
               "reached": result["end"] == "target", "functions": [epoch["functions"] for epoch in result["epochs"]]}
        self.runs.setdefault((job, schedule), []).append(run)
        return done

    def round(self, job, index):
        for count in GRID:
            result = self.run(job, f"constant_{count}", "--schedule", "constant", "--functions", count)
            if index == 0:
                path = self.folder / f"{job}-{count}.json"
                path.write_text(result)
                self.earlier[job] += ["--earlier", path]
        for schedule, first in DECAYS.items():
            self.run(job, schedule, "--schedule", "decay", "--functions", first, "--functions-last", 1, kind="-decay")
        held = MEMORY_MB / 1769 * CORE_PRICE + MEMORY_MB / 1024 * RAM_PRICE
        held *= MOST * (TIMEOUT_S + START_S) / 3600
        budget = 1e-6 * self.runs[job, self.best(job, 1)][0]["cost"] + held
        planned = ("--functions", MOST, "--budget", f"{budget:.6f}")
        self.run(job, "auto", *planned)
        self.run(job, "auto_earlier", *planned, *self.earlier[job])
        agent = self.folder / f"{job}.agent"
        self.run(job, "agent", "--schedule", "agent", *planned, "--save-agent", agent,
                 *(["--agent", agent] if agent.exists() else []))

    def best(self, job, rounds):
        """The constant that was at the target soonest, by the median of its first rounds."""
        def seconds(schedule):
            runs = self.runs[job, schedule][:rounds]
            return statistics.median(run["seconds"] if run["reached"] else float("inf") for run in runs)
        return min((f"constant_{count}" for count in GRID), key=seconds)


def figures_of(trials, rounds):
    figures = {}
    for job in JOBS:
        best = trials.best(job, rounds)
        base = trials.runs[job, best]
        figures[f"{job}_best_constant"] = int(best.rpartition("_")[2])
        figures[f"{job}_best_constant_s"] = statistics.median(run["seconds"] for run in base)
        figures[f"{job}_best_constant_cost_micro"] = statistics.median(run["cost"] for run in base)
        for (of, schedule), runs in trials.runs.items():
            if of != job or schedule == best:
                continue
            pairs = [(run, other) for run, other in zip(runs, base) if run["reached"] and other["reached"]]
            figures[f"{job}_{schedule}_reached"] = sum(run["reached"] for run in runs)
            if pairs:
                figures[f"{job}_{schedule}_time_saved"] = 1 - statistics.median(
                    run["seconds"] / other["seconds"] for run, other in pairs)
                figures[f"{job}_{schedule}_cost_ratio"] = statistics.median(run["cost"] / other["cost"] for run, other in pairs)
            figures[f"{job}_{schedule}_functions"] = runs[-1]["functions"]
    return figures


def measure_schedules(program, data, folder, rounds_max, seconds_max, tell):
    data = pathlib.Path(data).resolve()
    if not (data / "rt-polarity").is_dir():
        raise SystemExit(f"functions: there is no folder {data} with the data; --data or SOUK_DATA names it")
    lay_out(data, folder)
    trials, begun, loads, rounds = Trials(program, folder), time.monotonic(), [], 0
    while rounds < rounds_max and (rounds == 0 or (time.monotonic() - begun) * (rounds + 1) / rounds < seconds_max):
        for job in JOBS:
            trials.round(job, rounds)
        rounds += 1
        loads.append(os.getloadavg()[0])
        tell(f"round {rounds}: {time.monotonic() - begun:.0f} s, load {loads[-1]:.1f}")
    return {"schedule_rounds": rounds, "schedule_loads": loads} | figures_of(trials, rounds)
