#!/usr/bin/env python3
"""How small Souk is: time to start, and memory of an idle lender and an idle market.

    bench/footprint.py [--json] [--program build/souk]

Start is judged by CPU time, since wall-clock time is the machine's as much as the program's.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--program", default="build/souk")
wanted = parser.parse_args()
PROGRAM = os.path.abspath(wanted.program)


def start_ms():
    walls, cpus = [], []
    for _ in range(50):
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([PROGRAM, "--version"], stdout=subprocess.DEVNULL, check=True)
        walls.append((time.monotonic() - begun) * 1000)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpus.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return statistics.median(walls), statistics.median(cpus)


def start(*arguments, environment=None):
    read_end, write_end = os.pipe()
    process = subprocess.Popen([PROGRAM, *arguments, "--ready-fd", str(write_end)],
                               pass_fds=[write_end], stderr=subprocess.DEVNULL,
                               env={**os.environ, **(environment or {})})
    os.close(write_end)
    with os.fdopen(read_end) as ready:
        return process, json.loads(ready.readline())


def resident_mib(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024


def souk(folder, *arguments):
    done = subprocess.run([PROGRAM, *arguments, "--config-dir", f"{folder}/config", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def idle_mib():
    with tempfile.TemporaryDirectory() as folder:
        market, ready = start("serve", "--data", f"{folder}/market", "--listen", "127.0.0.1:0",
                              "--link-listen", "127.0.0.1:0", "--no-local-lender")
        souk(folder, "account", "open", "--name", "lender", "--server", ready["url"])
        code = souk(folder, "machines", "add")["code"]
        lender, _ = start("lend", "--server", ready["url"], "--state-dir", f"{folder}/lender",
                          environment={"SOUK_LEND_CODE": code})
        time.sleep(5)  # idle is what is measured: long enough to give back what starting took
        result = resident_mib(lender.pid), resident_mib(market.pid)
        for process in (lender, market):
            process.terminate()
            process.wait()
        return result


wall_ms, cpu_ms = start_ms()
lender_mib, market_mib = idle_mib()
result = {"version_wall_ms": wall_ms, "version_cpu_ms": cpu_ms, "idle_lender_rss_mib": lender_mib,
          "idle_market_rss_mib": market_mib,
          "program_bytes": os.path.getsize(os.path.realpath(PROGRAM))}
if wanted.json:
    print(json.dumps(result))
else:
    print(f"souk --version       {wall_ms:6.1f} ms wall, {cpu_ms:.1f} ms CPU   (goal < 10)")
    print(f"idle lender          {lender_mib:6.1f} MiB resident         (goal <= 10)")
    print(f"idle market          {market_mib:6.1f} MiB resident")
