"""Leases outlive the daemon that started them, and the market's own: killed, restarted, upgraded.

src/peer/keeper_test.c shows that a lease without a daemon ends when it expires.

covers peer/keeper.c, peer/holding.c, peer/daemon_lease.c, peer/peer.c, server/local_lender.c
covers cli/main.c
"""
import os
import pathlib
import signal
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market, own_addresses
from training import Lender, cancel, cgroups, keepers, needs_tun, running, submit_endless, wait_for


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with running(tmp_path_factory.mktemp("place"), *own_addresses()) as made:
        yield made


def leases_of(market, token, job, role="worker"):
    leases = market.get(f"/v1/jobs/{job}", token).json["leases"]
    return [lease for lease in leases if lease["role"] == role]


@pytest.fixture
def job(place):
    """A job with two workers that have pushed and been paid. It trains until cancelled."""
    market, token, _, _ = place
    job = submit_endless(market, token, 2)
    wait_for("both workers' ticks", lambda: 2 == sum(
        lease["commits"] > 0 and lease["posted_microcredits"] > 0 for lease in leases_of(market, token, job)))
    return job


def lease_on(market, token, job, name):
    return next(lease for lease in leases_of(market, token, job) if lease["machine_name"] == name)


def assert_paid_on(market, token, job, before):
    """The same lease, which runs on and goes on being paid."""
    def is_paid_more():
        now = next(l for l in leases_of(market, token, job) if l["id"] == before["id"])
        assert now["state"] != "ended", now
        return now["ticks"] > before["ticks"] + 1
    wait_for("more ticks of the same lease", is_paid_more)


def assert_ends(market, token, job, lease_count=3):
    """Expects two workers and one parameter server by default: no lease was replaced."""
    done = cancel(market, token, job)
    assert len(done["leases"]) == lease_count, done["leases"]


def test_a_killed_daemon_takes_its_lease_up_again(place, job):
    market, token, _, lenders = place
    before = lease_on(market, token, job, "lender-0")
    kept = lenders[0].keepers()
    assert len(kept) == 1
    lenders[0].stop(signal.SIGKILL)
    assert lenders[0].keepers() == kept
    lenders[0].start()
    assert_paid_on(market, token, job, before)
    assert lenders[0].keepers() == kept
    assert_ends(market, token, job)
    wait_for("the keeper's end", lambda: not lenders[0].keepers())
    assert not cgroups(*kept.values())


def test_a_daemon_restarts_itself_under_its_lease(place, job):
    market, token, _, lenders = place
    before = lease_on(market, token, job, "lender-0")
    kept, pid = lenders[0].keepers(), lenders[0].process.pid
    started = os.stat(f"/proc/{pid}/exe")
    log = pathlib.Path(lenders[0].log_path)
    said = len(log.read_text())
    lenders[0].process.send_signal(signal.SIGUSR2)
    wait_for("the lease to be taken up", lambda: " linked " in log.read_text()[said:])
    text = log.read_text()[said:]
    assert " leaving " in text and " starting_again " in text and " lease_taken_up " in text
    assert lenders[0].process.poll() is None and lenders[0].keepers() == kept
    assert os.stat(f"/proc/{pid}/exe").st_ino == started.st_ino
    assert_paid_on(market, token, job, before)
    assert_ends(market, token, job)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_job_outlives_a_market_with_its_parameter_server(place, job, how):
    market, token, _, _ = place
    kept = keepers(f"{market.folder}.log")
    assert len(kept) == 1
    market.stop(how)
    assert keepers(f"{market.folder}.log") == kept
    market.start()
    ticks = max(lease["ticks"] for lease in leases_of(market, token, job))
    wait_for("ticks under the new market", lambda: all(
        lease["ticks"] > ticks + 1 for lease in leases_of(market, token, job)))
    assert keepers(f"{market.folder}.log") == kept
    assert_ends(market, token, job)
    wait_for("the keeper's end", lambda: not keepers(f"{market.folder}.log"))


def test_a_lease_is_lost_with_its_keeper_and_replaced(place, job):
    market, token, _, lenders = place
    lost = lease_on(market, token, job, "lender-0")
    (pid,) = lenders[0].keepers().values()
    left = cgroups(pid)
    os.kill(pid, signal.SIGKILL)
    wait_for("a successor", lambda: 3 == len(leases_of(market, token, job)))
    ended = next(l for l in leases_of(market, token, job) if l["id"] == lost["id"])
    assert ended["outcome"] == "lost", ended
    assert not [path for path in left if os.path.exists(path)]
    assert_ends(market, token, job, lease_count=4)


@needs_tun
@pytest.mark.skipif(os.path.exists(f"{PROGRAM}.plain"),
                    reason="a daemon with the thread sanitizer may not enter the user namespace of a lease with a network")
def test_a_lease_ends_that_the_owner_no_longer_permits(tmp_path):
    """Started while leases had a network, it does not keep it under a daemon that allows none."""
    market = Market(tmp_path / "market", "--no-local-lender")
    lender = Lender(market, market.sign_up("lender"), tmp_path / "lender", "lender")
    token = market.sign_up("borrower")
    try:
        wait_for("the machine", lambda: [m for m in market.get("/v1/machines", token).json["items"]
                                         if m["state"] == "online"])
        subprocess.run([PROGRAM, "run", "-y", "-d", "--server", market.url, "--config-dir", str(tmp_path / "config"),
                        "--network", "job", "--cpus", "0.1", "--memory", "0.1", "--", "sleep 3600"],
                       check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=HUNG_S,
                       env={**os.environ, "SOUK_TOKEN": token})
        job = market.get("/v1/jobs", token).json["items"][0]["id"]
        wait_for("the lease", lambda: any(l["state"] == "running" for l in leases_of(market, token, job)))
        [before] = leases_of(market, token, job)
        lender.stop(signal.SIGKILL)
        assert lender.keepers()
        lender.command += ["--network", "none"]
        lender.start()
        wait_for("the keeper's end", lambda: not lender.keepers())
        wait_for("the lease's end", lambda: leases_of(market, token, job)[0]["state"] == "ended")
        ended = leases_of(market, token, job)[0]
        assert ended["id"] == before["id"] and ended["outcome"] == "reclaimed", ended
        assert "lease_not_permitted" in pathlib.Path(lender.log_path).read_text()
    finally:
        lender.stop()
        market.stop()
