"""One run: a job submitted to a market with so many nodes, and when each thing happened.

By the instants the product shows: lines of `souk job submit` as they come, and `souk job show --json`.

    started          the command is started
    reading, read    it begins and ends reading the file (a CSV file is read anew at each submission)
    created          the market has the job: all data are sent
    offered          machines are found, the leases are on their way
    running          the last worker has its data and its model, and steps
    ended            the job is over

Discovery and transfer are everything between `started` and `running` but the reading of the file,
which who runs without a market must do as well.
"""
import os
import re
import subprocess
import time

from process import souk


def now_ms():
    return time.time() * 1000


def submit(program, config, path, *arguments):
    """Runs it to the end of the job. Returns the job's number and the instants of the lines it said."""
    process = subprocess.Popen([program, "job", "submit", "-y", *arguments, str(path)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "SOUK_CONFIG_DIR": str(config)})
    said = []
    for line in process.stderr:
        said.append((now_ms(), line.rstrip()))
    if process.wait():
        raise SystemExit(f"souk job submit {path}: {said}")
    number = next(re.match(r"Submitted job (\d+)", line)[1] for _, line in said if line.startswith("Submitted job "))
    return int(number), said


def instant(said, word):
    return next((at for at, line in said if word in line), None)


def measure(program, config, path, *arguments):
    started = now_ms()
    number, said = submit(program, config, path, *arguments)
    job = souk(program, config, "job", "show", str(number))
    if job["state"] != "succeeded":
        raise SystemExit(f"job {number} {job['state']}: {job['reason']}")
    workers = [lease for lease in job["leases"] if lease["role"] == "worker"]
    reading, read = instant(said, "Reading "), instant(said, " rows of ")
    reading_ms = read - reading if reading and read else 0.0
    running = max(lease["started_ms"] for lease in workers)
    return {
        "job": number,
        "discovery_ms": (reading - started if reading else 0.0)
                        + max(lease["offered_ms"] for lease in workers) - job["created_ms"],
        "upload_ms": job["created_ms"] - (read or started),
        "begin_ms": running - max(lease["offered_ms"] for lease in workers),
        "reading_ms": reading_ms,
        "overhead_ms": running - started - reading_ms,
        "training_ms": job["ended_ms"] - running,
        "total_ms": job["ended_ms"] - started,
        "accuracy": job["test_accuracy"],
        "nodes": len(workers),
    }
