"""How many functions in every epoch: schedules beside constant numbers on real jobs, for bench/functions.py.

LeNet-5 on MNIST, a text CNN on review polarity and hashed rows of Avazu, each to a test loss, on functions of 0.1 core, 16 at
most, of this machine. A round has a seed of its own and runs every constant of a small grid and every schedule once, one after
the other; `at_once` jobs and rounds go side by side. `auto` and `agent` begin with nothing known; `auto_earlier` has the
constants of its round as --earlier, `agent_kept` goes on with what `agent` kept. Their budget is what the soonest constant cost,
and what 16 calls hold.

A schedule is compared with the constants that cost no more than it did, by the medians over rounds: that is its time saved at
equal cost. Where all constants cost more, the cheapest is what it is compared with. Beside it stand its time and cost as parts
of those of the soonest constant.
"""
import concurrent.futures
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
EQUAL = 1.02  # costs that differ by less are the same
JOBS = {
    "lenet": ("lenet5", "mnist/", "", "name: sgd, lr: 0.02, momentum: 0.5", 0.05),
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


def write_job(data_folder, path, job, seed, epochs):
    model, data, more, optimizer, target = JOBS[job]
    path.write_text(
        f"name: {job}\nruntime: native\ntrain:\n  model: {model}\n  data: {data_folder / data}\n{more}  batch: 32\n"
        f"  optimizer: {{{optimizer}}}\n  epochs: {epochs}\n  seed: {seed}\n  target: {{loss: {target}}}\n")
    return path


class Trials:
    """One round of one job."""

    def __init__(self, program, data_folder, folder, job, index):
        folder.mkdir()
        self.program, self.folder, self.runs = program, folder, {}
        self.job = write_job(data_folder, folder / "job.yaml", job, 3 + index, EPOCHS)
        self.short = write_job(data_folder, folder / "short.yaml", job, 3 + index, DECAY_EPOCHS)

    def run(self, schedule, *options, job=None):
        done = subprocess.run(
            [self.program, "function", "train", job or self.job, "-o", self.folder / "model", "--json", "--quiet", "--memory",
             str(MEMORY_MB), "--cpus", "0.1", "--timeout", f"{TIMEOUT_S}s", "--core-price", str(CORE_PRICE), "--ram-price",
             str(RAM_PRICE), *map(str, options)],
            env={"HOME": str(self.folder), "PATH": os.environ["PATH"]}, check=True, stdout=subprocess.PIPE, text=True).stdout
        result = json.loads(done)
        self.runs[schedule] = {
            "seconds": sum(epoch["seconds"] for epoch in result["epochs"]) if result["end"] == "target" else float("inf"),
            "cost": result["spent_micro"], "functions": [epoch["functions"] for epoch in result["epochs"]]}
        return done

    def round(self):
        earlier = []
        for count in GRID:
            path = self.folder / f"{count}.json"
            path.write_text(self.run(f"constant_{count}", "--schedule", "constant", "--functions", count))
            earlier += ["--earlier", path]
        for schedule, first in DECAYS.items():
            self.run(schedule, "--schedule", "decay", "--functions", first, "--functions-last", 1, job=self.short)
        self.run("grow", "--schedule", "grow", "--functions", MOST)
        held = MEMORY_MB / 1769 * CORE_PRICE + MEMORY_MB / 1024 * RAM_PRICE
        held *= MOST * (TIMEOUT_S + START_S) / 3600
        soonest = min((self.runs[f"constant_{count}"] for count in GRID), key=lambda run: run["seconds"])
        planned = ("--functions", MOST, "--budget", f"{1e-6 * soonest['cost'] + held:.6f}")
        self.run("auto", *planned)
        self.run("auto_earlier", *planned, *earlier)
        agent = self.folder / "agent"
        self.run("agent", "--schedule", "agent", *planned, "--save-agent", agent)
        self.run("agent_kept", "--schedule", "agent", *planned, "--agent", agent)
        return self.runs


def figures_of(job, rounds):
    """Of the medians over rounds; one that did not get there is later than all."""
    names = list(rounds[0])
    seconds = {name: statistics.median(runs[name]["seconds"] for runs in rounds) for name in names}
    cost = {name: statistics.median(runs[name]["cost"] for runs in rounds) for name in names}
    constants = [name for name in names if name.startswith("constant_")]
    soonest = min(constants, key=seconds.get)
    figures = {f"{job}_soonest_constant": int(soonest.rpartition("_")[2])}
    for name in names:
        reached = sum(runs[name]["seconds"] < float("inf") for runs in rounds)
        figures |= {f"{job}_{name}_reached": reached, f"{job}_{name}_cost": cost[name],
                    f"{job}_{name}_s": seconds[name] if seconds[name] < float("inf") else None}
        if name in constants or seconds[name] == float("inf"):
            continue
        equal = [other for other in constants if cost[other] <= EQUAL * cost[name] and seconds[other] < float("inf")]
        reachers = [other for other in constants if seconds[other] < float("inf")]
        other = min(equal, key=seconds.get) if equal else min(reachers, key=cost.get)
        figures |= {f"{job}_{name}_saved_at_equal_cost": 1 - seconds[name] / seconds[other],
                    f"{job}_{name}_beside": int(other.rpartition("_")[2]),
                    f"{job}_{name}_of_soonest_s": seconds[name] / seconds[soonest],
                    f"{job}_{name}_of_soonest_cost": cost[name] / cost[soonest],
                    f"{job}_{name}_functions": rounds[-1][name]["functions"]}
    return figures


def measure_schedules(program, data, folder, jobs, round_count, at_once, tell):
    data = pathlib.Path(data).resolve()
    if not (data / "rt-polarity").is_dir():
        raise SystemExit(f"functions: there is no folder {data} with the data; --data or SOUK_DATA names it")
    lay_out(data, folder)
    begun, done = time.monotonic(), {}
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        tasks = {pool.submit(Trials(program, folder, folder / f"{job}-{index}", job, index).round): (job, index)
                 for index in range(round_count) for job in jobs}
        for task in concurrent.futures.as_completed(tasks):
            done[tasks[task]] = task.result()
            tell("%s, round %d: after %.0f s, load %.1f" % (*tasks[task], time.monotonic() - begun, os.getloadavg()[0]))
            tell(json.dumps(task.result()))
    figures = {"schedule_rounds": round_count, "schedules_at_once": at_once}
    for job in jobs:
        figures |= figures_of(job, [done[job, index] for index in range(round_count)])
    return figures
