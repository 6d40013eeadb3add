#!/usr/bin/env python3
"""What lending costs the owner of a machine.

    bench/lender.py [--json] [--program build/souk] [--rounds 10] [--seconds 10]

yield_ms_p99      from the start of the owner's program until a lease that uses every core uses less
                  than a tenth of one, over all rounds (with few rounds: the longest)
freeze_ms_p99     until it is held still
owner_speed_kept  the speed of the owner's program, one busy loop for each core, beside a lease that
                  wants every core, as part of its speed alone; rounds alternate, and what the
                  program loses before the lease has yielded is in it

Wall-clock figures: they mean something on a machine that does nothing else. `load_before` is what
others used of it, in cores, before each round.
"""
import argparse
import glob
import json
import os
import pathlib
import signal
import statistics
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--program", default="build/souk")
parser.add_argument("--rounds", type=int, default=10)
parser.add_argument("--seconds", type=float, default=10)
wanted = parser.parse_args()
PROGRAM = os.path.abspath(wanted.program)
CORES = len(os.sched_getaffinity(0))
LEASE = "for i in $(seq %d); do (while :; do :; done) & done; wait" % CORES

# Counts rounds of a loop until told to stop; a C program would say the same.
OWNER = """
import signal, sys, time
count, is_over = 0, False
def over(*_):
    global is_over
    is_over = True
signal.signal(signal.SIGALRM, over)
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
print("go", flush=True)
while not is_over:
    for _ in range(1000):
        pass
    count += 1
print(count, flush=True)
"""


def start(*arguments, environment=None):
    read_end, write_end = os.pipe()
    process = subprocess.Popen([PROGRAM, *arguments, "--ready-fd", str(write_end)],
                               pass_fds=[write_end], stderr=subprocess.DEVNULL,
                               env={**os.environ, **(environment or {})})
    os.close(write_end)
    with os.fdopen(read_end) as ready:
        return process, json.loads(ready.readline())


def souk(folder, *arguments):
    done = subprocess.run([PROGRAM, *arguments, "--config-dir", f"{folder}/config", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


class Lease:
    """A command that keeps every core busy, on the machine that is lent."""

    def __init__(self, folder):
        self.before = set(self.groups())
        self.process = subprocess.Popen(
            [PROGRAM, "run", "-y", "--wait", "-n", "1", "--cpus", str(CORES), "--memory", "0.1",
             "--max-run-time", "1h", "--config-dir", f"{folder}/config", "--", LEASE],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (fresh := set(self.groups()) - self.before):
            time.sleep(0.02)
            assert self.process.poll() is None, "the lease did not start"
        self.group = fresh.pop()
        while self.used_ms() < 200 * CORES:
            time.sleep(0.02)

    @staticmethod
    def groups():
        return glob.glob("/sys/fs/cgroup/**/cpuacct/**/souk-lease-*", recursive=True) + \
            glob.glob("/sys/fs/cgroup/cpuacct/**/souk-lease-*", recursive=True) + \
            [path for path in glob.glob("/sys/fs/cgroup/**/souk-lease-*", recursive=True)
             if os.path.exists(f"{path}/cpu.stat") and "usage_usec" in pathlib.Path(path, "cpu.stat").read_text()]

    def used_ms(self):
        usage = pathlib.Path(self.group, "cpuacct.usage")
        if usage.exists():
            return int(usage.read_text()) / 1e6
        for line in pathlib.Path(self.group, "cpu.stat").read_text().splitlines():
            if line.startswith("usage_usec"):
                return int(line.split()[1]) / 1000

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


class Owner:
    def __init__(self, seconds):
        self.processes = [subprocess.Popen(["/usr/bin/python3", "-c", OWNER, str(seconds)],
                                           stdout=subprocess.PIPE, text=True) for _ in range(CORES)]
        for process in self.processes:
            assert process.stdout.readline() == "go\n"
        self.begun = time.monotonic()

    def counted(self):
        return sum(int(process.communicate()[0]) for process in self.processes)


def watch_yield(lease, owner, seconds):
    """When the lease's use of the processors fell below a tenth of a core, for good; in ms."""
    samples, end = [], owner.begun + seconds
    while time.monotonic() < end:
        samples.append((time.monotonic(), lease.used_ms()))
        time.sleep(0.01)
    low = frozen = None
    for i in range(len(samples) - 20):
        (at, used), (later, after) = samples[i], samples[i + 20]
        share = (after - used) / 1000 / (later - at)
        if low is None and share < 0.1:
            low = (at - owner.begun) * 1000
        if frozen is None and share < 0.02:
            frozen = (at - owner.begun) * 1000
    return (low if low is not None else seconds * 1000,
            frozen if frozen is not None else seconds * 1000)


def others_cores(seconds=0.5):
    def busy():
        fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:8]]
        return sum(fields) - fields[3] - fields[4]
    before = busy()
    time.sleep(seconds)
    return (busy() - before) / os.sysconf("SC_CLK_TCK") / seconds


def percentile(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def wait_for_quiet(folder):
    end = time.monotonic() + 60
    while (status := souk(folder, "lend", "status", "--state-dir", f"{folder}/lender"))["level"] != "full":
        if time.monotonic() > end:
            raise SystemExit(f"this machine is not quiet, nothing can be measured: {status['reason']}")
        time.sleep(0.1)


def measure_owner(folder):
    alone, beside, lows, freezes, loads = [], [], [], [], []
    for index in range(wanted.rounds):
        for is_alone in ((True, False), (False, True))[index % 2]:
            # A round begins with a lender that has seen nobody for a while.
            souk(folder, "lend", "resume", "--state-dir", f"{folder}/lender")
            loads.append(others_cores())
            if is_alone:
                owner = Owner(wanted.seconds)
                alone.append(owner.counted())
                continue
            wait_for_quiet(folder)
            lease = Lease(folder)
            owner = Owner(wanted.seconds)
            low, frozen = watch_yield(lease, owner, wanted.seconds)
            beside.append(owner.counted())
            lows.append(low)
            freezes.append(frozen)
            lease.stop()
    return {"yield_ms_p50": round(statistics.median(lows)), "yield_ms_p99": round(percentile(lows, 0.99)),
            "freeze_ms_p99": round(percentile(freezes, 0.99)),
            "owner_speed_kept": round(statistics.median(b / a for a, b in zip(alone, beside)), 4),
            "owner_rounds": wanted.rounds, "cores": CORES,
            "load_before": round(statistics.median(loads), 2)}


def run():
    with tempfile.TemporaryDirectory() as folder:
        market, ready = start("serve", "--data", f"{folder}/market", "--listen", "127.0.0.1:0",
                              "--link-listen", "127.0.0.1:0", "--no-local-lender")
        souk(folder, "account", "open", "--name", "lender", "--server", ready["url"])
        code = souk(folder, "machines", "add")["code"]
        lender, _ = start("lend", "--server", ready["url"], "--state-dir", f"{folder}/lender",
                          environment={"SOUK_LEND_CODE": code})
        try:
            return measure_owner(folder)
        finally:
            for process in (lender, market):
                process.terminate()
                process.wait(30)


result = run()
if wanted.json:
    print(json.dumps(result))
else:
    for name, value in result.items():
        print(f"{name:20} {value}")
