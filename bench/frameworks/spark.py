#!/usr/bin/env python3
"""How soon a job of Spark's begins: from `souk job submit` to the start and the end of its cluster's first task.

    bench/frameworks/spark.py [--json] [--rounds N] [--ranks N] [--program build/souk]

A market and three lenders on this machine; the job's master, driver and two workers with an executor each start with it. One
job goes first: files and what Java maps are warm. Needs java and the venv of `tests/frameworks/venv spark`.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/system"))
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--ranks", type=int, default=3)
parser.add_argument("--program", default=str(ROOT / "build/souk"))
wanted = parser.parse_args()
os.environ["SOUK_PROGRAM"] = wanted.program

from ranks import Place  # noqa: E402 (after the path it lies on)

LIMIT_S = 180
SCRIPT = """
import time
times = [time.time()]
from pyspark.sql import SparkSession
context = SparkSession.builder.getOrCreate().sparkContext
times.append(time.time())
times += context.parallelize([0], 1).map(lambda _: time.time()).collect()
times.append(time.time())
print("times", *times, context.master, flush=True)
"""
JOB = {"runtime": "spark", "num_nodes": wanted.ranks, "run": "date +'script %s.%N'; spark-submit script.py",
       "resources": {"cpus": 1, "memory": 1, "labels": ["spark"]}}
STAGES = ("script", "python", "context", "task", "end", "cpu")


class Lenders(Place):
    """Of a core and the venv."""

    venv = subprocess.run([ROOT / "tests/frameworks/venv", "spark"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()

    def lender_of(self, name):
        return {"options": ("--network", "job", "--cores", "1", "--memory", "60%", "--software", f"spark={self.venv}")}


def by_job(place):
    """Seconds from the submission to each stage, and of CPU time of all ranks until the end."""
    submitted = time.time()
    process = place.start(SCRIPT, JOB)
    out, err = process.communicate(timeout=LIMIT_S)
    said = place.log(0)
    assert process.returncode == 0, (out, err, said)
    assert "times " in said, said
    times = said.split("times ")[1].split()
    assert times[4].startswith("spark://"), said  # a cluster, not the driver alone
    cpu_s = sum(lease["cpu_ms"] for lease in place.job()["leases"]) / 1000
    return [*(float(value) - submitted for value in (said.split("script ")[1].split()[0], *times[:4])), cpu_s]


with tempfile.TemporaryDirectory() as name:
    place = Lenders(pathlib.Path(name), [f"lender{index}" for index in range(wanted.ranks)])
    try:
        by_job(place)
        rounds = [by_job(place) for _ in range(wanted.rounds)]
    finally:
        place.stop()

middle = {stage: round(statistics.median(column), 2) for stage, column in zip(STAGES, zip(*rounds))}
figures = {"spark_start_s": middle["task"], "spark_start_s_worst": round(max(times[3] for times in rounds), 2),
           "spark_first_task_end_s": middle["end"], "spark_script_s": middle["script"],
           "spark_driver_python_s": middle["python"], "spark_context_s": middle["context"],
           "spark_cpu_s": middle["cpu"]}
if wanted.json:
    print(json.dumps(figures))
else:
    for name, value in figures.items():
        print(f"{name:28} {value:12}  {'<= 10' if name == 'spark_start_s' else ''}")
