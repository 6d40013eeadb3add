"""The owner runs a real program: the leases get less CPU weight first, and then freeze.

covers peer/daemon_owner.c, sandbox/keepers.c, peer/tenancy_yield.c
"""
import contextlib
import glob
import os
import pathlib
import subprocess
import threading
import time

import pytest

from serving import is_built_with
from test_owner import assert_used, owned, wait_for_level, wait_for_work, worker_of
from training import cancel, cgroups, needs_cgroups, submit_endless, wait_for

pytestmark = pytest.mark.skipif(is_built_with("libtsan"), reason="TSan cannot run in a sandbox")

# A busy machine delays the thread that shows the owner's use: a short gap is not quiet.
LATE = ("--resume-after", "3s")


@contextlib.contextmanager
def showing_use(machine, ticks):
    """Shows `ticks` as the machine's CPU time, in hundredths of a second, during the block."""
    is_over = threading.Event()

    def show():
        while not is_over.wait(0.1):  # clock: poll interval
            machine.put("proc/stat", f"cpu {ticks()} 0 0 0 0 0 0 0 0 0\n")

    thread = threading.Thread(target=show)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@contextlib.contextmanager
def busy_owner(machine):
    """Runs a busy loop as the owner's program and yields its count of ticks. The machine's CPU time shows only this loop:
    tests beside us are not the owner."""
    loop = subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"])

    def ticks():
        fields = pathlib.Path(f"/proc/{loop.pid}/stat").read_text().split()
        return int(fields[13]) + int(fields[14])

    try:
        with showing_use(machine, ticks):
            yield ticks
    finally:
        loop.kill()
        loop.wait()


def used_ms(keeper):
    """CPU time of a keeper's sandbox so far."""
    for group in cgroups(keeper):
        with contextlib.suppress(OSError):
            return int(pathlib.Path(group, "cpuacct.usage").read_text()) / 1e6
        with contextlib.suppress(OSError, StopIteration):
            return next(int(line.split()[1]) / 1e3 for line in pathlib.Path(group, "cpu.stat").read_text()
                        .splitlines() if line.startswith("usage_usec"))
    raise AssertionError("the lease has no cgroup that counts its time")


def keeper_weight(keeper):
    """CPU weight of the keeper's group. The usual weight is 1024, or 100 in cgroup v2."""
    name = next(line.split("/")[-1] for line in pathlib.Path(f"/proc/{keeper}/cgroup").read_text().splitlines()
                if "souk-keepers-" in line)
    (folder,) = {os.path.realpath(path) for path in glob.glob(f"/sys/fs/cgroup/**/{name}", recursive=True)}
    file = next(file for file in ("cpu.shares", "cpu.weight") if os.path.exists(f"{folder}/{file}"))
    return int(pathlib.Path(folder, file).read_text())


@needs_cgroups
def test_a_real_program_of_the_owners_gets_priority_first_and_then_the_processors(tmp_path):
    # Other tests leave a busy loop little CPU time.
    limits = ("--yield-cpu", "1%", "--freeze-cpu", "2%")
    with owned(tmp_path, *limits, *LATE) as (market, token, _, lender):
        job = submit_endless(market, token, 1)
        wait_for_work(market, token, job)
        lease = worker_of(market, token, job)
        (keeper,) = lender.keepers().values()
        before = used_ms(keeper)
        wait_for("work at full speed", lambda: used_ms(keeper) - before > 100)
        with busy_owner(lender.machine) as ticks:
            wait_for_level(lender, "frozen")
            status = lender.status()
            changes = status["changes"][:2]  # quiet moments may follow on a busy machine
            assert [change["level"] for change in changes] == ["low", "frozen"], status
            assert status["cause"] == "cpu" and all("cores" in change["reason"] for change in changes), status
            # The keeper has a low weight now, and is never frozen.
            assert keeper_weight(keeper) in (20, 2)
            wait_for("the lease to be held", lambda: f"lease_yields lease={lease['id']} level=frozen" in
                     pathlib.Path(lender.log_path).read_text())
            steps, begun, used = worker_of(market, token, job)["steps"], time.monotonic(), used_ms(keeper)
            until = ticks() + 100
            wait_for("a second of the owner's program", lambda: ticks() > until)
            assert used_ms(keeper) - used < 0.05 * 1000 * (time.monotonic() - begun) + 20
            held = worker_of(market, token, job)
            assert held["state"] == "running" and held["yield"] == "frozen" and not held["unreachable"], held
            slow_steps = held["steps"] - steps
        wait_for_level(lender, "full")
        assert keeper_weight(keeper) in (1024, 100)
        steps = worker_of(market, token, job)["steps"]
        wait_for("steps at full speed", lambda: worker_of(market, token, job)["steps"] > steps + 4 * slow_steps + 20)
        done = cancel(market, token, job)
        workers = [x for x in done["leases"] if x["role"] == "worker"]
        assert_used(done)
        assert [(x["id"], x["outcome"]) for x in workers] == [(lease["id"], "stopped")], workers
        assert " yield_failed " not in pathlib.Path(lender.log_path).read_text()
