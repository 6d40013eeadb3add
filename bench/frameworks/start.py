#!/usr/bin/env python3
"""How soon a framework's job begins: from `souk job submit` to the first line of Python on rank 0.

    bench/frameworks/start.py [--json] [--rounds N] [--program build/souk]

A market and two lenders on this machine; a job of runtime torch whose script prints the time. One job goes first: files,
sandboxes and the client's connections are warm. Python's own start is taken away: the same script, by hand, in turns.
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
parser.add_argument("--rounds", type=int, default=9)
parser.add_argument("--program", default=str(ROOT / "build/souk"))
wanted = parser.parse_args()
os.environ["SOUK_PROGRAM"] = wanted.program

from ranks import Place  # noqa: E402 (after the path it lies on)

SCRIPT = "import time\nprint('began', time.time_ns(), flush=True)\n"
JOB = {"runtime": "torch", "num_nodes": 2}


def began(text):
    return int(text.split("began ")[1].split()[0])


def by_hand(folder):
    start = time.time_ns()
    done = subprocess.run(["/usr/bin/python3", "script.py"], cwd=folder / "files", capture_output=True, text=True, check=True)
    return (began(done.stdout) - start) / 1e6


def by_job(place):
    start = time.time_ns()
    done = place.run(SCRIPT, JOB)
    assert done.returncode == 0, (done.out, done.err)
    jobs = place.market.get("/v1/jobs", place.token).json["items"]
    newest = max(job["id"] for job in jobs)
    text = place.market.get(f"/v1/jobs/{newest}/logs?rank=0&offset=0", place.token).json["text"]
    return (began(text) - start) / 1e6


with tempfile.TemporaryDirectory() as name:
    place = Place(pathlib.Path(name), ("first", "second"))
    try:
        by_job(place)
        pairs = [(by_job(place), by_hand(place.folder)) for _ in range(wanted.rounds)]
    finally:
        place.stop()

beyond = sorted(job - hand for job, hand in pairs)
figures = {
    "start_overhead_ms": round(statistics.median(beyond)),
    "start_overhead_ms_worst": round(beyond[-1]),
    "start_python_ms": round(statistics.median(hand for _, hand in pairs)),
}
if wanted.json:
    print(json.dumps(figures))
else:
    for name, value in figures.items():
        print(f"{name:28} {value:12}  {'<= 1000' if name == 'start_overhead_ms' else ''}")
