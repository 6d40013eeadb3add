#!/usr/bin/env python3
"""What lending costs: the owner of a machine, an idle machine, and the market.

    bench/lender.py [--json] [--program build/souk] [--part idle --part crowd --part start --part owner]
                    [--idle-seconds 120] [--crowd 1000] [--crowd-seconds 60]
                    [--start-rounds 20] [--rounds 10] [--seconds 10]

idle   lending/idle.py: idle_rss_kib, idle_cpu_percent, idle_bytes_per_s, boinc_rss_kib,
       boinc_cpu_percent
crowd  lending/crowd.py: server_cpu_percent
start  lending/begin.py: lease_start_ms_p50, lease_start_cold_ms_p50, cold_server_cpu_ms
owner  wall-clock figures, which mean something on a machine that does nothing else:
       yield_ms_p99      from the start of the owner's program until a lease that uses every core
                         uses less than a tenth of one, over all rounds (with few: the longest)
       freeze_ms_p99     until it is held still
       owner_speed_kept  the speed of the owner's program, one busy loop for each core, beside a
                         lease that wants every core, as part of its speed alone; rounds alternate,
                         and what the program loses before the lease has yielded is in it
       lease_cores_before  what the lease used before the owner came, the least of all rounds
       load_before       what others used of the machine, in cores, before each round
"""
import argparse
import glob
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lending"))
import begin  # noqa: E402 -- found through the line above
import crowd  # noqa: E402 -- found through the line above
from process import end, start as start_program, souk as ask_program  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--program", default="build/souk")
parser.add_argument("--part", action="append", choices=["idle", "crowd", "start", "owner"])
parser.add_argument("--idle-seconds", type=float, default=120)
parser.add_argument("--crowd", type=int, default=1000)
parser.add_argument("--crowd-seconds", type=float, default=60)
parser.add_argument("--start-rounds", type=int, default=20)
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
while not is_over:
    for _ in range(1000):
        pass
    count += 1
print(count, flush=True)
"""


def start(*arguments, environment=None):
    return start_program(PROGRAM, *arguments, environment=environment)


def souk(folder, *arguments):
    return ask_program(PROGRAM, f"{folder}/config", *arguments)


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

    def wait_for_full_speed(self, folder):
        """Half a second in which it used nearly all of every core. Placing it was an owner's work here, as is any
        other program's: "souk lend resume" says that it is over."""
        end = time.monotonic() + 60
        share = 0
        while share < 0.9 * CORES:
            souk(folder, "lend", "resume", "--state-dir", f"{folder}/lender")
            if time.monotonic() > end:
                give_up(f"the lease alone uses {share:.2f} of {CORES} cores")
            (at, used) = (time.monotonic(), self.used_ms())
            time.sleep(0.5)
            share = (self.used_ms() - used) / 1000 / (time.monotonic() - at)
        return share

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
    """One busy loop for each core; its start is where its processes' are, Python's own included."""

    def __init__(self, seconds):
        self.begun = time.monotonic()
        self.processes = [subprocess.Popen(["/usr/bin/python3", "-c", OWNER, str(seconds)],
                                           stdout=subprocess.PIPE, text=True) for _ in range(CORES)]

    def counted(self):
        return sum(int(process.communicate()[0]) for process in self.processes)


def watch_yield(lease, owner, seconds):
    """When the lease's use of the processors fell below a tenth of a core, for 0.2 s; in ms."""
    samples, end = [], owner.begun + seconds
    while time.monotonic() < end:
        samples.append((time.monotonic(), lease.used_ms()))
        time.sleep(0.01)  # the grain of the measurement, not a wait
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


def give_up(reason):
    print(f"SKIPPED: this machine is not quiet, so the owner's part cannot be measured: {reason}", file=sys.stderr)
    sys.exit(77)


def wait_for_quiet(folder):
    end = time.monotonic() + 60
    while (status := souk(folder, "lend", "status", "--state-dir", f"{folder}/lender"))["level"] != "full":
        souk(folder, "lend", "resume", "--state-dir", f"{folder}/lender")
        if time.monotonic() > end:
            give_up(status["reason"])
        time.sleep(0.5)


def measure_owner(folder):
    alone, beside, lows, freezes, loads, shares = [], [], [], [], [], []
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
            shares.append(lease.wait_for_full_speed(folder))
            owner = Owner(wanted.seconds)
            low, frozen = watch_yield(lease, owner, wanted.seconds)
            beside.append(owner.counted())
            lows.append(low)
            freezes.append(frozen)
            lease.stop()
    return {"yield_ms_p50": round(statistics.median(lows)), "yield_ms_p99": round(percentile(lows, 0.99)),
            "freeze_ms_p99": round(percentile(freezes, 0.99)),
            "owner_speed_kept": round(statistics.median(b / a for a, b in zip(alone, beside)), 4),
            "lease_cores_before": round(min(shares), 2), "owner_rounds": wanted.rounds, "cores": CORES,
            "load_before": round(statistics.median(loads), 2)}


def owner_part(folder):
    market, ready = start("serve", "--data", f"{folder}/market", "--listen", "127.0.0.1:0",
                          "--link-listen", "127.0.0.1:0", "--no-local-lender")
    souk(folder, "account", "open", "--name", "lender", "--server", ready["url"])
    code = souk(folder, "machines", "add")["code"]
    lender, _ = start("lend", "--server", ready["url"], "--state-dir", f"{folder}/lender",
                      environment={"SOUK_LEND_CODE": code})
    try:
        return measure_owner(folder)
    finally:
        end(lender, market)


def idle_part(_folder):
    """In a network of its own; as root of a user namespace where we are not root."""
    apart = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--net", "--map-root-user"]
    done = subprocess.run([*apart, sys.executable, str(pathlib.Path(__file__).parent / "lending/idle.py"),
                           "--program", PROGRAM, "--seconds", str(wanted.idle_seconds)],
                          stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def crowd_part(folder):
    return crowd.measure(PROGRAM, folder, wanted.crowd, wanted.crowd_seconds)


def start_part(folder):
    return begin.measure(PROGRAM, folder, wanted.start_rounds)


PARTS = {"idle": idle_part, "crowd": crowd_part, "start": start_part, "owner": owner_part}
result = {}
for name in wanted.part or PARTS:
    with tempfile.TemporaryDirectory() as place:
        result.update(PARTS[name](place))
if wanted.json:
    print(json.dumps(result))
else:
    for name, value in result.items():
        print(f"{name:20} {value}")
