#!/usr/bin/env python3
"""How long MNIST takes as TensorFlow within Spark's executors, beside DeepMarket's published runs of the same.

    bench/frameworks/mnist.py [--json] [--epochs N] [--program build/souk]

DeepMarket (ECOFEC 2019, TensorFlowOnSpark, three workers of a core): 5, 10 and 100 epochs took 14, 28 and 280 minutes in a
laboratory's network, 100 epochs 306 minutes across data centres. This runs examples/spark-tensorflow.py, 5 epochs of the same
60,000 images on three workers, from `souk job submit` to its end; the three lenders share this machine. The images are those in
SOUK_DATA, else Debian's Fashion-MNIST, which are as many and as large.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/system"))
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--program", default=str(ROOT / "build/souk"))
wanted = parser.parse_args()
os.environ["SOUK_PROGRAM"] = wanted.program

from ranks import Place  # noqa: E402 (after the path it lies on)

WORKERS, LIMIT_S = 3, 900
DEEPMARKET_MINUTES = {5: 14, 10: 28, 100: 280}  # with 2 GB each, as notes of the figures have them
MNIST = pathlib.Path(os.environ.get("SOUK_DATA") or "/nonexistent") / "mnist"
DATA = MNIST if MNIST.is_dir() else pathlib.Path("/usr/share/datasets/fashion-mnist")
JOB = {"runtime": "spark", "num_nodes": WORKERS, "run": f"spark-submit script.py . {WORKERS} {wanted.epochs}",
       "resources": {"cpus": 1, "memory": 3, "labels": ["spark"]}, "envs": {"TF_CPP_MIN_LOG_LEVEL": "1"},
       "market": {"max_run_time": f"{LIMIT_S}s"}}


class Lenders(Place):
    """Of a core and the venv."""

    venv = subprocess.run([ROOT / "tests/frameworks/venv", "spark"], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()

    def lender_of(self, name):
        return {"options": ("--network", "job", "--cores", "1", "--memory", "60%", "--software", f"spark={self.venv}")}


with tempfile.TemporaryDirectory() as name:
    place = Lenders(pathlib.Path(name), [f"lender{index}" for index in range(WORKERS)])
    try:
        (place.folder / "files").mkdir()
        for path in DATA.glob("*-ubyte.gz"):
            shutil.copy(path, place.folder / "files")
        began = time.monotonic()
        process = place.start((ROOT / "examples/spark-tensorflow.py").read_text(), JOB)
        out, err = process.communicate(timeout=LIMIT_S)
        minutes = (time.monotonic() - began) / 60
        said = place.log(0)
        assert process.returncode == 0, (out, err, said)
    finally:
        place.stop()

accuracies = [float(value) for value in re.findall(r"accuracy (\S+),", said)]
assert len(accuracies) == WORKERS, said
figures = {"mnist_minutes": round(minutes, 2), "mnist_epochs": wanted.epochs, "mnist_accuracy": min(accuracies),
           "mnist_data": DATA.name, "mnist_deepmarket_minutes": DEEPMARKET_MINUTES.get(wanted.epochs)}
if wanted.json:
    print(json.dumps(figures))
else:
    for name, value in figures.items():
        print(f"{name:28} {value!s:>14}  {'DeepMarket: 14 to 306' if name == 'mnist_minutes' else ''}")
