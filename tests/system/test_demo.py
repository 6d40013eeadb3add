"""`souk demo`, whole: what it reports, and that Ctrl-C at any moment leaves nothing behind.

covers cli/command_demo.c, cli/demo_market.c, cli/demo_process.c
"""
import contextlib
import glob
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile

import pytest
from serving import HUNG_S

PROGRAM = os.environ.get("SOUK_PROGRAM", "build/souk")


def start(temporary, *arguments):
    # Its own folder for temporary files tells this run's traces from those of others.
    return subprocess.Popen([PROGRAM, "demo", *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True,
                            env={**os.environ, "TMPDIR": str(temporary)})


def traces(temporary):
    """Processes and mounts that name the demo's folder, and what lies in it."""
    found = [str(path) for path in pathlib.Path(temporary).iterdir()]
    for process in glob.glob("/proc/[0-9]*"):
        for name in ("cmdline", "mounts"):
            try:
                text = pathlib.Path(process, name).read_bytes()
            except OSError:
                continue  # it ended while we looked
            if str(temporary).encode() in text and str(os.getpid()) not in process:
                found.append(f"{process}/{name}")
    return found


def cgroups():
    return set(glob.glob("/sys/fs/cgroup/**/souk-lease-*", recursive=True))


def elsewhere():
    """The names of those whose processes are not seen here: of another container on this machine."""
    names = set()
    for count in map(pathlib.Path, glob.glob("/sys/fs/cgroup/**/souk-lease-*/pids.current", recursive=True)):
        with contextlib.suppress(OSError):  # it ends just now
            seen = set((count.parent / "cgroup.procs").read_text().split()) - {"0"}
            if int(count.read_text()) > 0 and not seen:
                names.add(count.parent.name)
    return names


def orphans():
    """Those whose daemon is gone: its process id is the fourth part of the name."""
    others = elsewhere()
    gone = {path for path in cgroups()
            if not pathlib.Path("/proc", os.path.basename(path).split("-")[4]).exists()}
    others |= elsewhere()  # those that began meanwhile
    return {path for path in gone if os.path.basename(path) not in others}


def test_the_demo_trains_pays_and_balances(tmp_path):
    before = cgroups()
    demo = start(tmp_path, "--json")
    out, errors = demo.communicate(timeout=240)
    assert demo.returncode == 0, errors
    result = json.loads(out)
    workers = [lender for lender in result["lenders"] if lender["role"] == "worker"]
    servers = [lender for lender in result["lenders"] if lender["role"] == "server"]

    assert result["test_accuracy"] >= 0.88
    assert result["train_seconds"] >= 30 and result["ticks"] >= 5
    assert result["submit_to_first_step_ms"] > 0
    assert [lender["name"] for lender in servers] == ["market"]
    assert sorted(lender["cpu_share"] for lender in workers) == [0.25, 0.5, 1]
    assert all(lender["commits"] >= 10 and lender["steps"] > 0 for lender in workers)
    slowest = min(workers, key=lambda lender: lender["cpu_share"])
    assert slowest["steps"] == min(lender["steps"] for lender in workers)
    earned = sum(lender["earned_microcredits"] for lender in result["lenders"])
    assert all(lender["earned_microcredits"] > 0 for lender in result["lenders"])
    assert earned + result["fee_microcredits"] == result["spent_microcredits"] > 0
    assert result["ledger_sum_microcredits"] == 0
    assert traces(tmp_path) == []
    assert orphans() <= before


@pytest.mark.parametrize("until", ["nothing", "page", "starting", "running"])
def test_ctrl_c_leaves_nothing_behind(tmp_path, until):
    before = cgroups()
    demo = start(tmp_path)
    if until != "nothing":
        words = {"page": "The live page", "starting": "starting", "running": "running"}[until]
        for line in demo.stderr:
            if words in line:
                break
        else:
            pytest.fail(f"the demo ended before it said \"{words}\"")
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=HUNG_S)
    assert demo.returncode == 130 or (until == "nothing" and demo.returncode == -signal.SIGINT)
    assert traces(tmp_path) == []
    assert orphans() <= before


def test_a_killed_demo_takes_its_programs_along():
    with tempfile.TemporaryDirectory() as temporary:
        demo = start(temporary)
        for line in demo.stderr:
            if "running" in line:
                break
        children = subprocess.run(["pgrep", "-f", temporary], capture_output=True, text=True)
        pids = [int(pid) for pid in children.stdout.split() if int(pid) != demo.pid]
        assert pids
        watches = [(pid, os.pidfd_open(pid)) for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]
        demo.kill()
        demo.wait()
        for pid, watch in watches:
            ready, _, _ = select.select([watch], [], [], 30)
            assert ready, f"process {pid} is still there"
            os.close(watch)
        demo.stderr.close()


def test_absent_data_is_told_before_anything_starts(tmp_path):
    demo = start(tmp_path, "--dataset-dir", str(tmp_path / "none"))
    out, errors = demo.communicate(timeout=HUNG_S)
    assert demo.returncode == 3 and out == ""
    assert "none" in errors and len(errors.splitlines()) == 1
