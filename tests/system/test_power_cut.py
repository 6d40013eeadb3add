"""After a power cut nothing is left: everything of a lender is killed at once, the next start clears away.

Harsher than a real one: mounts, loop devices, cgroups and network devices stay until somebody takes
them away.

covers peer/daemon_lease.c, sandbox/sandbox_host.c, sandbox/disk.c
"""
import contextlib
import glob
import json
import os
import pathlib
import signal
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market
from training import Lender, cgroups, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for disks of their own")


def processes_below(pid):
    """All that descend from it, deepest last."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            for child in pathlib.Path(path).read_text().split():
                found += [int(child), *processes_below(int(child))]
        except OSError:
            pass  # it has just ended
    return found


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def mounts_below(folder):
    return [line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()
            if line.split()[1].startswith(str(folder))]


def loop_devices_of(folder):
    listed = subprocess.run(["losetup", "--json", "--list"], capture_output=True, text=True, check=True).stdout
    return [device["name"] for device in json.loads(listed or '{"loopdevices": []}')["loopdevices"]
            if (device["back-file"] or "").startswith(str(folder))]


def left_in(folder):
    """What lies in the daemon's folders of leases and sandboxes."""
    return [str(path) for name in ("leases", "sandboxes") for path in (folder / name).glob("*")]


def run(market, token, tmp_path, *arguments):
    return subprocess.Popen(
        [PROGRAM, "run", "--server", market.url, "--config-dir", str(tmp_path / "config"), "-y", "--cpus", "0.2",
         "--memory", "0.1", "--disk", "64MiB", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})


@pytest.fixture
def place(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    state = tmp_path / "lend"
    lender = Lender(market, lender_token, state, "home", options=("--network", "job"))
    try:
        wait_for("the machine", lambda: [m for m in market.get("/v1/machines", token).json["items"]
                                         if m["state"] == "online"])
        for offer in market.get("/v1/offers", lender_token).json["items"]:
            assert market.call("PATCH", f"/v1/offers/{offer['id']}", {"network": "job"}, lender_token).status == 200
        yield market, token, lender, state, tmp_path
    finally:
        lender.stop()
        market.stop()


def test_the_next_start_clears_everything_away(place):
    market, token, lender, state, tmp_path = place
    network = ["--network", "job"] if os.access("/dev/net/tun", os.R_OK | os.W_OK) else []
    jobs = [run(market, token, tmp_path, *network, "--", "echo up; echo kept > file; sleep 600") for _ in range(2)]
    for job in jobs:
        assert job.stdout.readline() == "up\n", job.communicate(timeout=HUNG_S)
    kept, mounts, devices, files = lender.keepers(), mounts_below(state), loop_devices_of(state), left_in(state)
    assert len(kept) == 2 and len(mounts) == 2 and len(devices) == 2 and len(files) >= 4
    groups = [path for pid in kept.values() for path in cgroups(pid)]
    below = [pid for keeper in kept.values() for pid in processes_below(keeper)]
    assert len(below) >= 4, below
    # All at once: nobody has the time to see another one go.
    for pid in (lender.process.pid, *kept.values(), *below):
        os.kill(pid, signal.SIGSTOP)
    for pid in (lender.process.pid, *kept.values(), *below):
        with contextlib.suppress(ProcessLookupError):  # those inside go with the first of their namespace
            os.kill(pid, signal.SIGKILL)
    lender.process.wait(HUNG_S)
    lender.log.close()
    wait_for("the end of all processes", lambda: not any(is_alive(pid) for pid in (*kept.values(), *below)), step=0.02)
    assert (mounts_below(state), loop_devices_of(state), left_in(state)) == (mounts, devices, files)
    assert all(os.path.isdir(path) for path in groups)

    lender.start()
    log = pathlib.Path(lender.log_path)
    wait_for("the leases to be lost", lambda: log.read_text().count(" lease_lost ") == 2)
    for job in jobs:  # the job goes on, with a successor on what is a new machine to it
        assert job.stdout.readline() == "up\n", job.communicate(timeout=HUNG_S)
    assert not set(mounts) & set(mounts_below(state)) and not set(files) & set(left_in(state))
    assert not [path for path in groups if os.path.isdir(path)]
    for job in jobs:
        job.send_signal(signal.SIGINT)
        job.communicate(timeout=HUNG_S)
    wait_for("nothing to be left", lambda: not (
        lender.keepers() or mounts_below(state) or loop_devices_of(state) or left_in(state)))
