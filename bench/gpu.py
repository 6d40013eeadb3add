#!/usr/bin/env python3
"""A torch program on a lent GPU beside the same program started by hand, on a machine with an NVIDIA GPU.

    bench/gpu.py --torch VENV [--json] [--rounds 5] [--steps 600] [--program build/souk]

A real market and a real lender on this machine, which lends the virtual environment that holds torch
(`souk lend --software`) and one GPU. In each round the program (bench/gpu/gpu_step.py) runs once by hand
and once as a job, the first of the two in turn: six layers of 4096, batches of 1024 rows sent from pinned memory, bf16.
Without an NVIDIA GPU, this bench says so and ends with 77.

gpu_overhead     how much longer a step takes as a job, as a share; the median of the rounds
gpu_start_ms     from `souk run` until the program's first line, less the same by hand; the median
gpus_seen        GPUs that torch sees in a job that leased one
gpus_unleased    GPUs that torch sees in a job that leased none: 0
"""
import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOALS = {"gpu_overhead": "<= 0.02", "gpu_start_ms": "<= 1000", "gpus_seen": "1", "gpus_unleased": "0"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch", metavar="VENV", help="a virtual environment with torch for CUDA")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--program", default=str(ROOT / "build/souk"))
    wanted = parser.parse_args()
    if not list(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        print("SKIPPED: this machine has no NVIDIA GPU", file=sys.stderr)
        sys.exit(77)
    if not wanted.torch:
        parser.error("--torch is missing: it names a virtual environment with torch for CUDA")
    return wanted


WANTED = arguments()
os.environ["SOUK_PROGRAM"] = WANTED.program
sys.path.insert(0, str(ROOT / "tests/system"))
from serving import Market  # noqa: E402 -- found through the line above

HUNG_S = 300


def said(done, where):
    """The program's one line of JSON, wherever the line that a rank's name stands before it."""
    if done.returncode:
        raise SystemExit(f"{where}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(done.stdout[done.stdout.index("{"):])


class Place:
    def __init__(self, folder):
        self.folder = folder
        self.files = folder / "files"
        self.files.mkdir()
        shutil.copy(ROOT / "bench/gpu/gpu_step.py", self.files)
        self.market = Market(folder / "market", "--no-local-lender")
        self.token, lender_token = self.market.sign_up("borrower"), self.market.sign_up("lender")
        code = self.market.post("/v1/machines/codes", {}, lender_token).json["code"]
        self.log = open(folder / "lender.log", "wb")
        self.lender = subprocess.Popen(
            [WANTED.program, "lend", "--state-dir", str(folder / "lender"), "--server", self.market.url, "--name", "lender",
             "--software", f"torch={WANTED.torch}", "--no-watch"],
            env={**os.environ, "SOUK_LEND_CODE": code}, stdin=subprocess.DEVNULL, stderr=self.log)
        self.wait_for("the lender", lambda: self.machine().get("state") == "online")
        (offer,) = self.market.get("/v1/offers?mine=true", lender_token).json["items"]
        self.souk(lender_token, "offer", "change", str(offer["id"]), "--gpus", "1", "-y")
        self.wait_for("its GPU", lambda: self.machine()["free"]["gpus_milli"] == 1000)

    def machine(self):
        found = self.market.get("/v1/machines", self.token).json["items"]
        return found[0] if found else {}

    def wait_for(self, what, condition):
        end = time.monotonic() + HUNG_S
        while not condition():
            if self.lender.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"waited for {what}\n{(self.folder / 'lender.log').read_text()}")
            time.sleep(0.1)

    def souk(self, token, *words):
        return subprocess.run([WANTED.program, *words, "--server", self.market.url, "--config-dir", str(self.folder / "config")],
                              capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL,
                              env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"}, check=False)

    def by_hand(self):
        at = time.time()
        done = subprocess.run([f"{WANTED.torch}/bin/python3", "gpu_step.py", str(WANTED.steps)], cwd=self.files, text=True,
                              capture_output=True, timeout=HUNG_S, check=False)
        told = said(done, "by hand")
        return {**told, "start_ms": (told["began"] - at) * 1e3}

    def as_job(self, *more):
        """The server's name comes before what is run."""
        at = time.time()
        done = subprocess.run(
            [WANTED.program, "run", "-y", "--server", self.market.url, "--config-dir", str(self.folder / "config"), "--cpus", "4",
             "--memory", "24", "--labels", "torch", "--max-run-time", "10m", "--files", str(self.files), *more, "--",
             "python3", "gpu_step.py", str(WANTED.steps)], capture_output=True, text=True, timeout=HUNG_S,
            stdin=subprocess.DEVNULL, env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1"}, check=False)
        told = said(done, "as a job")
        return {**told, "start_ms": (told["began"] - at) * 1e3}

    def stop(self):
        self.lender.terminate()
        self.lender.wait(HUNG_S)
        self.log.close()
        self.market.stop()


def measure(place):
    rounds = []
    place.as_job("--gpus", "1")  # the first brings the files and warms the caches
    for i in range(WANTED.rounds):
        ways = [place.by_hand, lambda: place.as_job("--gpus", "1")]
        told = [way() for way in (ways if i % 2 == 0 else reversed(ways))]
        hand, job = told if i % 2 == 0 else reversed(told)
        rounds.append({"overhead": hand["steps_per_s"] / job["steps_per_s"] - 1, "start_ms": job["start_ms"] - hand["start_ms"],
                       "steps_per_s": job["steps_per_s"], "gpus": job["gpus"]})
    return {"gpu_overhead": statistics.median(one["overhead"] for one in rounds),
            "gpu_start_ms": statistics.median(one["start_ms"] for one in rounds),
            "gpus_seen": max(one["gpus"] for one in rounds), "gpus_unleased": place.as_job()["gpus"],
            "gpu": job["gpu"], "torch": job["torch"], "rounds": rounds}


def main():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        place = Place(pathlib.Path(folder))
        try:
            seen = measure(place)
        finally:
            place.stop()
    if WANTED.json:
        print(json.dumps(seen))
        return
    print(f"{seen['gpu']}, torch {seen['torch']}, {WANTED.rounds} rounds of {WANTED.steps} steps")
    for name, goal in GOALS.items():
        print(f"{name:16} {seen[name]:10.3f}  {goal}")
    for one in seen["rounds"]:
        print(f"  {one['steps_per_s']:8.1f} steps/s, overhead {one['overhead']:+.3f}, start {one['start_ms']:+.0f} ms")


main()
