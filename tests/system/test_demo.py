"""`souk demo`, whole: what it reports, and that Ctrl-C at any moment leaves nothing behind.

covers cli/command_demo.c, cli/demo_market.c, cli/demo_process.c
"""
import glob
import json
import os
import pathlib
import select
import signal
import subprocess
import tempfile

import pytest
from functions import few_records
from program import ROOT
from serving import HUNG_S

# A shell's background jobs ignore SIGINT, and their children inherit that: restore the default.
signal.signal(signal.SIGINT, signal.default_int_handler)

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


def daemons(temporary):
    """Pids of the demo's market and lenders: their command lines name its folder."""
    return {int(trace.split("/")[2]) for trace in traces(temporary) if trace.endswith("/cmdline")}


def cgroups(pids):
    """Groups of these daemons' leases. The daemon's pid is part of the name."""
    return [path for path in glob.glob("/sys/fs/cgroup/**/souk-lease-*", recursive=True)
            if int(os.path.basename(path).split("-")[4]) in pids]


def read_until(demo, words):
    for line in demo.stderr:
        if words in line:
            return
    pytest.fail(f"the demo ended before it said \"{words}\"")


def test_the_demo_trains_pays_and_balances(tmp_path):
    # The demo's own job, with a shorter training in which every push waits for all workers: none is too late to have a part.
    text = (ROOT / "examples/fashion-mnist.yaml").read_text()
    assert "{accuracy: 0.885, min_time: 30s}" in text
    assert "policy: auto " in text
    text = text.replace("{accuracy: 0.885, min_time: 30s}", "{accuracy: 0.7, min_time: 2s}")
    (tmp_path / "job.yaml").write_text(text.replace("policy: auto ", "policy: bsp\n  local_steps: 16 "))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    demo = start(temporary, "--json", "--job", str(tmp_path / "job.yaml"), "--dataset-dir", few_records().name)
    read_until(demo, "running")
    pids = daemons(temporary)
    out, errors = demo.communicate(timeout=HUNG_S)
    assert demo.returncode == 0, errors
    result = json.loads(out)
    workers = [lender for lender in result["lenders"] if lender["role"] == "worker"]
    servers = [lender for lender in result["lenders"] if lender["role"] == "server"]

    assert result["test_accuracy"] >= 0.7
    assert result["train_seconds"] >= 2 and result["ticks"] >= 1
    assert result["submit_to_first_step_ms"] > 0
    assert [lender["name"] for lender in servers] == ["market"]
    assert sorted(lender["cpu_share"] for lender in workers) == [0.25, 0.5, 1]
    assert all(lender["commits"] > 0 and lender["steps"] > 0 for lender in workers)
    earned = sum(lender["earned_microcredits"] for lender in result["lenders"])
    assert all(lender["earned_microcredits"] > 0 for lender in result["lenders"])
    assert earned + result["fee_microcredits"] == result["spent_microcredits"] > 0
    assert result["ledger_sum_microcredits"] == 0
    assert traces(temporary) == []
    assert len(pids) >= 4 and cgroups(pids) == []


@pytest.mark.parametrize("until", ["nothing", "starting", "running"])
def test_ctrl_c_leaves_nothing_behind(tmp_path, until):
    demo = start(tmp_path, "--dataset-dir", few_records().name)
    if until != "nothing":
        read_until(demo, until)
    pids = daemons(tmp_path)
    demo.send_signal(signal.SIGINT)
    demo.communicate(timeout=HUNG_S)
    assert demo.returncode == 130 or (until == "nothing" and demo.returncode == -signal.SIGINT)
    assert traces(tmp_path) == []
    assert cgroups(pids) == []


def test_a_killed_demo_takes_its_programs_along():
    with tempfile.TemporaryDirectory() as temporary:
        demo = start(temporary, "--dataset-dir", few_records().name)
        read_until(demo, "running")
        pids = daemons(temporary)
        assert pids
        watches = [(pid, os.pidfd_open(pid)) for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]
        demo.kill()
        demo.wait()
        for pid, watch in watches:
            ready, _, _ = select.select([watch], [], [], HUNG_S)
            assert ready, f"process {pid} is still there"
            os.close(watch)
        demo.stderr.close()


def test_absent_data_is_told_before_anything_starts(tmp_path):
    demo = start(tmp_path, "--dataset-dir", str(tmp_path / "none"))
    out, errors = demo.communicate(timeout=HUNG_S)
    assert demo.returncode == 3 and out == ""
    assert "none" in errors and len(errors.splitlines()) == 1
