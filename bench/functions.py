#!/usr/bin/env python3
"""The local function host: how long a cold start takes, what a warm call costs, and many at once.

    bench/functions.py [--json] [--concurrent 150] [--rounds N] [--program build/souk]
    bench/functions.py --schedules [--json] [--schedule-rounds 3] [--at-once 1] [--jobs lenet,reviews,clicks] [--data DIR]

Starts `souk function host` and calls it by its API. A warm call is one that the function refuses at
once: what it takes is overhead alone. A cold one is the same to an instance that is started for it;
the cold start is what it takes beyond a warm one, and cold_start_cpu_ms the CPU time that goes into
it, whatever else the machine does. Then a job of as many functions at a time is
trained for one epoch: every call, and that each batch is in the model once.

--schedules measures something else: real jobs to a loss, by schedules and by constant numbers of functions
(functions/schedules.py says how).
"""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/functions"))
from schedules import measure_schedules  # noqa: E402 -- found through the line above

GOALS = {"cold_start_ms": "<= 60", "warm_overhead_ms": "<= 5", "concurrent_errors": "0"}
JOB = """
name: many
runtime: native
train:
  model: logistic
  data: fashion-mnist
  batch: 32
  optimizer: {name: sgd, lr: 0.01, momentum: 0}
  epochs: 1
  seed: 3
"""
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--concurrent", type=int, default=150)
parser.add_argument("--rounds", type=int, default=30)
parser.add_argument("--program", default=str(ROOT / "build/souk"))
parser.add_argument("--schedules", action="store_true")
parser.add_argument("--schedule-rounds", type=int, default=3)
parser.add_argument("--at-once", type=int, default=1)
parser.add_argument("--jobs", default="lenet,reviews,clicks")
parser.add_argument("--data", default=os.environ.get("SOUK_DATA", str(ROOT.parent / "shared" / "data")))
wanted = parser.parse_args()


class Host:
    def __init__(self, home):
        self.variables = {"HOME": home, "PATH": os.environ["PATH"]}
        self.process = subprocess.Popen(
            [wanted.program, "function", "host", "--listen", "127.0.0.1:0", "--json", "--memory", "128",
             "--concurrency", str(wanted.concurrent)], env=self.variables, stdout=subprocess.PIPE, text=True)
        self.ready = json.loads(self.process.stdout.readline())
        token = pathlib.Path(self.ready["token_file"]).read_text().strip()
        self.headers = {"Authorization": f"Bearer {token}"}
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.ready["url"]).netloc)

    def ask(self, method, call, body):
        begun = time.perf_counter()
        self.connection.request(method, f"/2015-03-31/functions/souk-train/{call}", body, self.headers)
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        return 1e3 * (time.perf_counter() - begun)

    def cpu_ms(self):
        """Of the host and of those it has started that have ended."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return 1e3 * sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def measure_starts(host):
    host.ask("POST", "invocations", "{}")
    warm = [host.ask("POST", "invocations", "{}") for _ in range(10 * wanted.rounds)]
    cold = []
    cpu_ms = host.cpu_ms()
    for i in range(wanted.rounds):
        host.ask("PUT", "configuration", json.dumps({"MemorySize": 129 + i % 2}))  # another size: none is warm
        cold.append(host.ask("POST", "invocations", "{}"))
    host.ask("PUT", "configuration", json.dumps({"MemorySize": 128}))
    cpu_ms = host.cpu_ms() - cpu_ms
    overhead = statistics.median(warm)
    return {"cold_start_ms": statistics.median(cold) - overhead, "cold_start_worst_ms": max(cold) - overhead,
            "cold_start_cpu_ms": cpu_ms / wanted.rounds,
            "warm_overhead_ms": overhead, "warm_overhead_p99_ms": sorted(warm)[int(0.99 * len(warm))]}


def measure_many(host, folder):
    job = folder / "many.yaml"
    job.write_text(JOB)
    batches = 60000 // 32
    span = max(1, batches // (2 * wanted.concurrent))  # two calls for each
    result = json.loads(subprocess.run(
        [wanted.program, "function", "train", job, "--url", host.ready["url"], "--store", host.ready["store"],
         "--functions", str(wanted.concurrent), "--memory", "128", "--span", str(span), "--json", "-o",
         folder / "model"], env=host.variables, check=True, capture_output=True).stdout)
    return {"concurrent": wanted.concurrent, "concurrent_calls": result["calls"],
            "concurrent_errors": result["failures"] + result["throttled"],
            "concurrent_seconds": result["epochs"][0]["seconds"],
            "batches_lost_or_twice": abs(batches * 32 - result["samples"]) // 32}


def measure_host(folder):
    host = Host(folder)
    try:
        return measure_starts(host) | measure_many(host, pathlib.Path(folder))
    finally:
        host.stop()


with tempfile.TemporaryDirectory() as folder:
    if wanted.schedules:
        figures = measure_schedules(wanted.program, wanted.data, pathlib.Path(folder), wanted.jobs.split(","),
                                    wanted.schedule_rounds, wanted.at_once, lambda words: print(words, file=sys.stderr, flush=True))
    else:
        figures = measure_host(folder)
figures["load_average"] = os.getloadavg()[0]
if wanted.json:
    print(json.dumps(figures))
else:
    for name, value in figures.items():
        shown = f"{value:12.2f}" if isinstance(value, (int, float)) else " ".join(f"{part:g}" for part in value or ())
        print(f"{name:34} {shown}  {GOALS.get(name, '')}".rstrip())
