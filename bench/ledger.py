#!/usr/bin/env python3
"""Durable transfers through the market's engine, beside SQLite alone and PostgreSQL's pgbench.

    bench/ledger.py [--json] [--rounds N] [--seconds S] [--dir DIR] [--program build/souk]

A round is `souk bench ledger`, which also lets SQLite alone insert the same rows, and then pgbench
on the same disk: 64 clients, the TPC-B-like transaction with prepared statements, fsync and
synchronous_commit on, at scale 64 so that clients rarely wait for one another. The rounds of both
follow one another, so that a busy neighbour slows both; each figure is the median of its rounds.
pgbench is skipped when PostgreSQL is not there: `tools/install-deps --bench` installs it.
"""
import argparse
import contextlib
import glob
import json
import os
import pwd
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

CLIENTS = 64
GOALS = {"cpu_us_per_transfer": "<= 8", "ratio_to_raw_sqlite": ">= 0.5",
         "ratio_to_pgbench": ">= 20", "transfers_per_s": "", "p99_ms": "<= 20",
         "audit_entries_per_s": ">= 1000000", "audit_cpu_us_per_entry": "", "batch_mean": "", "raw_transfers_per_s": "",
         "raw_cpu_us_per_transfer": "", "pgbench_transactions_per_s": "", "load_average": ""}

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--rounds", type=int, default=3)
parser.add_argument("--seconds", type=int, default=4)
parser.add_argument("--dir", default="/var/tmp", help="a folder on the disk to measure")
parser.add_argument("--program", default="build/souk")
wanted = parser.parse_args()


def find_postgres():
    """Where initdb, pg_ctl and pgbench are; None without them."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)
    return next((f for f in folders if os.path.exists(f"{f}/pgbench")), None)


def as_server_user(command):
    """PostgreSQL does not run as root."""
    return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else command


def run(command):
    return subprocess.run(as_server_user(command), check=True, capture_output=True, text=True,
                          cwd="/").stdout


@contextlib.contextmanager
def postgres(programs):
    """A server of its own on a socket in a temporary folder; gives that folder."""
    folder = tempfile.mkdtemp(prefix="souk-pgbench-", dir=wanted.dir)
    data = f"{folder}/data"
    settings = (f"-c listen_addresses= -c unix_socket_directories={folder} -c max_connections=100 "
                "-c shared_buffers=256MB -c max_wal_size=4GB -c fsync=on -c synchronous_commit=on")
    try:
        if os.getuid() == 0:
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        run([f"{programs}/initdb", "-D", data, "-A", "trust", "-U", "bench", "--no-sync"])
        run([f"{programs}/pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", settings, "start"])
        try:
            run([f"{programs}/createdb", "-h", folder, "-U", "bench", "bench"])
            run([f"{programs}/pgbench", "-h", folder, "-U", "bench", "-i", "-q", "-s", str(CLIENTS),
                 "bench"])
            yield folder
        finally:
            run([f"{programs}/pg_ctl", "-D", data, "-m", "fast", "-w", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure_pgbench(programs, folder):
    output = run([f"{programs}/pgbench", "-h", folder, "-U", "bench", "-n", "-M", "prepared",
                  "-c", str(CLIENTS), "-j", "2", "-T", str(wanted.seconds), "bench"])
    return float(re.search(r"^tps = ([0-9.]+)", output, re.MULTILINE).group(1))


def measure_souk():
    done = subprocess.run(
        [wanted.program, "bench", "ledger", "--json", "--rounds", "1", "--round",
         f"{wanted.seconds}s", "--clients", str(CLIENTS), "--in-flight", "16", "--dir", wanted.dir],
        capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure(programs, folder):
    rounds = []
    for _ in range(wanted.rounds):
        figures = measure_souk()
        figures["load_average"] = os.getloadavg()[0]
        if programs:
            figures["pgbench_transactions_per_s"] = measure_pgbench(programs, folder)
            figures["ratio_to_pgbench"] = (figures["transfers_per_s"]
                                           / figures["pgbench_transactions_per_s"])
        rounds.append(figures)
    return rounds


programs = find_postgres()
if programs:
    with postgres(programs) as folder:
        rounds = measure(programs, folder)
else:
    print("no PostgreSQL: ratio_to_pgbench is not measured (tools/install-deps --bench)",
          file=sys.stderr)
    rounds = measure(None, None)

result = {name: statistics.median(figures[name] for figures in rounds) for name in rounds[0]}
result.setdefault("ratio_to_pgbench", None)
result["rounds"] = rounds
if wanted.json:
    print(json.dumps(result))
else:
    print(f"{'figure':<28}{'median':>12}{'best':>12}{'worst':>12}   goal")
    for name, goal in GOALS.items():
        values = sorted(figures[name] for figures in rounds if name in figures)
        if goal.startswith(">="):
            values.reverse()
        if values:
            print(f"{name:<28}{statistics.median(values):>12.2f}{values[0]:>12.2f}"
                  f"{values[-1]:>12.2f}   {goal}")
