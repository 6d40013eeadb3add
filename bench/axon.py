#!/usr/bin/env python3
"""The runs of Axon's paper on Souk: logistic regression, and MNIST.

    bench/axon.py [--json] [--program build/souk] [--data DIR] [--repeats 3] [--epochs 2]
                  [--rows 322 ...] [--nodes 1 2 4 8] [--workers 2 6 8] [--part rows --part mnist]
                  [--node-cores 1]

rows   logistic regression by SGD on tables of ten columns, 322 to 780,000 rows (axon/rows.py), on 1,
       2, 4 and 8 nodes: `souk lend` daemons of one core each and a market on this machine, a parameter
       server beside them. Each size and number of nodes is run with data the market has never seen
       (cold) and with the same again (warm), when every node that had a part of it still has it.
mnist  a network of two hidden layers (256 and 128) on MNIST, on 2, 6 and 8 workers, after 1 and 3 epochs

overhead_ms  discovery and transfer: from starting `souk job submit` until the last worker steps, less
             the reading of the CSV file, which has to be done without a market too (axon/runs.py).
             `median` and `max` over all sizes and nodes, with warm data; `by_rows` and `by_nodes` the
             medians; `cold` the same with data the market had to be sent. The paper's runs without
             Axon had their machines and data in place; it does not say whether what was sent with
             Axon is in its second. Both are given.
best_nodes   by number of rows the number of nodes with the least time from submission to end, with
             warm data. Nodes here share the cores of one machine (`cores`): beyond those, more of them
             compute no more and start one after the other, as the paper's eight machines do not.
"""
import argparse
import gzip
import json
import os
import pathlib
import statistics
import sys
import tempfile

BENCH = pathlib.Path(__file__).parent
sys.path[:0] = [str(BENCH / "lending"), str(BENCH / "axon")]
import rows as row_files  # noqa: E402 -- found through the line above
import runs  # noqa: E402 -- likewise
from process import end, souk, start  # noqa: E402 -- likewise

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--program", default="build/souk")
parser.add_argument("--data", default=os.environ.get("SOUK_DATA", "../shared/data"))
parser.add_argument("--part", action="append", choices=["rows", "mnist"])
parser.add_argument("--rows", type=int, nargs="+", default=[322, 10000, 100000, 520000, 780000])
parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4, 8])
parser.add_argument("--workers", type=int, nargs="+", default=[2, 6, 8])
parser.add_argument("--repeats", type=int, default=3)
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--node-cores", type=float, default=1)
wanted = parser.parse_args()
PROGRAM = os.path.abspath(wanted.program)

JOB = """\
name: axon
num_nodes: {nodes}
resources: {{cpus: {cpus}, memory: 0.2}}
train: {{model: {model}, data: {data}, batch: {batch}, epochs: {epochs}, seed: {seed}, optimizer: {{lr: {lr}}}}}
sync: {{policy: bsp, local_steps: {local_steps}}}
market: {{max_run_time: 5m, expected_run_time: 20s}}
"""


class Place:
    """A market, and as many lenders as are ever needed."""

    def __init__(self, folder, lenders):
        self.folder = pathlib.Path(folder)
        self.config = self.folder / "config"
        self.processes = []
        with open(self.folder / "market.log", "wb") as log:
            market, ready = start(PROGRAM, "serve", "--data", f"{folder}/market", "--listen", "127.0.0.1:0",
                                  "--link-listen", "127.0.0.1:0", "--writes-per-minute", "0",
                                  "--reads-per-minute", "0", "--grant", "1000000", stderr=log)
        self.processes.append(market)
        souk(PROGRAM, self.config, "account", "open", "--name", "borrower", "--server", ready["url"])
        for index in range(lenders):
            code = souk(PROGRAM, self.config, "machines", "add")["code"]
            lender, _ = start(PROGRAM, "lend", "--server", ready["url"], "--state-dir",
                              f"{folder}/lender{index}", "--name", f"node{index}", "--no-watch", "--roles",
                              "worker", "--cores", str(wanted.node_cores), environment={"SOUK_LEND_CODE": code})
            self.processes.append(lender)

    def run(self, arguments=(), **terms):
        job = self.folder / "job.yaml"
        job.write_text(JOB.format(cpus=wanted.node_cores, **terms))
        return runs.measure(PROGRAM, self.config, job, *arguments)

    def close(self):
        end(*reversed(self.processes))


def middle(values):
    return round(statistics.median(values))


def rows_part(folder):
    paths = row_files.write(wanted.data, wanted.rows, folder)
    place = Place(folder, max(wanted.nodes))
    cold, warm, seed = [], [], 0
    try:
        for _ in range(wanted.repeats):
            for size in wanted.rows:
                for nodes in wanted.nodes:
                    seed += 1  # rows in another order are other bytes
                    terms = {"nodes": nodes, "model": "logistic", "data": paths[size], "batch": 32, "lr": 0.05,
                             "epochs": wanted.epochs, "local_steps": 100, "seed": seed}
                    for runs_of, is_cold in ((cold, True), (warm, False)):
                        runs_of.append({"rows": size, **place.run(**terms)})
                        show(runs_of[-1], "cold" if is_cold else "warm")
    finally:
        place.close()
    return summary(cold, warm)


def show(run, kind):
    if not wanted.json:
        print(f"{run['rows']:>8} rows {run['nodes']} nodes {kind}: overhead {run['overhead_ms']:6.0f} ms "
              f"(discovery {run['discovery_ms']:.0f}, upload {run['upload_ms']:.0f}, begin {run['begin_ms']:.0f}), "
              f"reading {run['reading_ms']:.0f}, training {run['training_ms']:.0f}, "
              f"total {run['total_ms']:.0f} ms, accuracy {run['accuracy']:.3f}", flush=True)


def pick(runs_of, **wish):
    return [run for run in runs_of if all(run[name] == value for name, value in wish.items())]


def best_nodes(runs_of, size):
    return min(wanted.nodes, key=lambda nodes: statistics.median(
        run["total_ms"] for run in pick(runs_of, rows=size, nodes=nodes)))


def overhead(runs_of):
    values = [run["overhead_ms"] for run in runs_of]
    return {"median": middle(values), "max": round(max(values)),
            "by_rows": {size: middle([run["overhead_ms"] for run in pick(runs_of, rows=size)])
                        for size in wanted.rows},
            "by_nodes": {nodes: middle([run["overhead_ms"] for run in pick(runs_of, nodes=nodes)])
                         for nodes in wanted.nodes}}


def summary(cold, warm):
    return {"overhead_ms": {**overhead(warm), "cold": overhead(cold)},
            "best_nodes": {size: best_nodes(warm, size) for size in wanted.rows},
            "total_ms": {size: {nodes: middle([run["total_ms"] for run in pick(warm, rows=size, nodes=nodes)])
                                for nodes in wanted.nodes} for size in wanted.rows},
            "accuracy": {size: round(statistics.median(run["accuracy"] for run in pick(warm, rows=size)), 4)
                         for size in wanted.rows}}


def unpack_mnist(folder):
    """Unpacking is no part of what is measured."""
    for path in (pathlib.Path(wanted.data) / "mnist").glob("*.gz"):
        (pathlib.Path(folder) / path.stem).write_bytes(gzip.decompress(path.read_bytes()))


def mnist_part(folder):
    unpack_mnist(folder)
    place = Place(folder, max(wanted.workers))
    result = {}
    try:
        for nodes in wanted.workers:
            for epochs in (1, 3):
                run = place.run(("--dataset-dir", folder), nodes=nodes, model="mlp",
                                data="mnist", batch=32, lr=0.05, epochs=epochs, local_steps=20, seed=1)
                show({"rows": 60000, **run}, "mnist")
                result[f"{nodes} workers, {epochs} epochs"] = {
                    "accuracy": round(run["accuracy"], 4), "training_ms": round(run["training_ms"]),
                    "total_ms": round(run["total_ms"]), "overhead_ms": round(run["overhead_ms"])}
    finally:
        place.close()
    return {"mnist": result}


if not pathlib.Path(wanted.data).is_dir():
    print(f"SKIPPED: there is no folder {wanted.data} with the data; --data or SOUK_DATA names it", file=sys.stderr)
    raise SystemExit(77)
PARTS = {"rows": rows_part, "mnist": mnist_part}
result = {"cores": os.cpu_count(), "load_before": os.getloadavg()[0]}
for name in wanted.part or PARTS:
    with tempfile.TemporaryDirectory() as place_of_part:
        result.update(PARTS[name](place_of_part))
result["load_after"] = os.getloadavg()[0]
if wanted.json:
    print(json.dumps(result))
else:
    for name, value in result.items():
        print(f"{name:14} {value}")
