"""Functions of a host elsewhere as lenders: `souk lend --functions --function-url`; and what of that is on this machine.

covers cli/lend_functions.c, peer/carrier.c, peer/lent.c, peer/keeper.c
"""
import json
import os
import pathlib
import signal

import pytest
from functions import FunctionLender, Host, instances, job_of, log_of_rank, running_lease, submit, wait_for_end
from serving import Market, audit
from source_servers import Bucket
from training import wait_for

ENDLESS = {"target": {"accuracy": 1, "min_time": "1h"}}


@pytest.fixture
def market(tmp_path):
    market = Market(tmp_path / "market")
    yield market
    assert market.stop() == 0
    status, text = audit(market.folder)
    assert status == 0, text


class Elsewhere(FunctionLender):
    def __init__(self, market, folder, host, *options, store=None, **others):
        self.token = market.sign_up("lender")
        super().__init__(market, self.token, folder, "--function-url", host.ready["url"], "--function-token-file",
                         host.ready["token_file"], "--function-store", store or host.ready["store"], *options,
                         name="elsewhere", **others)
        self.market = market
        wait_for("the machine", lambda: self.machine()["state"] == "online")

    def machine(self):
        return next((m for m in self.market.get("/v1/machines", self.token).json["items"] if m["name"] == "elsewhere"),
                    {"state": "offline"})

    def log_text(self):
        return pathlib.Path(self.log_path).read_text()


def test_functions_of_a_host_elsewhere_are_lent(market, souk, tmp_path):
    token = market.sign_up("borrower")
    with Host(souk, "--memory", "128", "--concurrency", "2") as host:
        store = pathlib.Path(host.ready["store"])
        lender = Elsewhere(market, tmp_path / "elsewhere", host, "--function-memory", "256", "--function-price", "0.001")
        try:
            least = lender.machine()["offer"]["minimum"]
            assert 999 <= least["core_micro"] * 1024 / 1769 + least["ram_micro"] <= 1002, least
            assert json.loads(host.ask(host.path("configuration"))[2])["MemorySize"] == 256
            job = submit(market, token, 1, resources={"labels": "function", "memory": "0.5"})  # all of it is theirs
            wait_for("two functions", lambda: len(instances(host)) == 2)
            assert not lender.functions()  # none of this machine's
            done = wait_for_end(market, token, job)
        finally:
            lender.stop()
    called = next(lease for lease in done["leases"] if lease["role"] == "worker")
    assert called["outcome"] == "succeeded" and called["samples"] > 0
    assert 0 < called["billed_ms"] < called["ended_ms"] - called["started_ms"]
    # Of the lease nothing is left in the host's store but what calls left that nobody waited for.
    assert not [path for path in store.rglob("*") if path.is_file() and "updates" not in path.parts]


def test_leases_are_no_more_than_the_daemons_machine_has_room_for(market, souk, tmp_path):
    """Two functions are lent, but of this machine there is memory for one lease's process."""
    token = market.sign_up("borrower")
    wish = {"labels": "function", "memory": "0.125", "cpus": "0.05"}
    with Host(souk, "--memory", "128", "--concurrency", "2") as host:
        lender = Elsewhere(market, tmp_path / "elsewhere", host, "--function-memory", "128", "--memory", "200MiB")
        try:
            first = submit(market, token, 1, resources=wish, train=ENDLESS)
            wait_for("its lease", lambda: running_lease(market, token, first, "elsewhere"))
            wait_for("the daemon's word", lambda: lender.machine()["yield"] == "draining")
            second = submit(market, token, 1, resources=wish, train=ENDLESS)
            told = market.get(f"/v1/jobs/{second}/explain", token).json
            assert any(one["machines_left"] == 0 for one in told["wishes"]), told
            assert not job_of(market, token, second)["leases"]
            assert len(lender.keepers()) == 1
            assert market.post(f"/v1/jobs/{first}/cancel", {}, token).status == 200
            wait_for("the other's lease", lambda: running_lease(market, token, second, "elsewhere"))
            assert market.post(f"/v1/jobs/{second}/cancel", {}, token).status == 200
            wait_for("room again", lambda: lender.machine()["yield"] == "none")
            assert "lease_refused" not in lender.log_text()
        finally:
            lender.stop()


def test_a_store_that_hangs_holds_up_neither_the_end_nor_the_keeper(market, souk, tmp_path):
    token = market.sign_up("borrower")
    with Bucket({}) as bucket:
        souk.variables.update(bucket.environment())
        bucket.is_stuck = lambda key: "/data/" in key  # which is deleted at the end alone
        with Host(souk, "--memory", "128", "--concurrency", "2", "--network") as host:
            lender = Elsewhere(market, tmp_path / "elsewhere", host, "--function-memory", "256",
                               store="s3://souk-data/run", variables=bucket.environment())
            try:
                job = submit(market, token, 1, resources={"labels": "function", "memory": "0.5"})
                done = wait_for_end(market, token, job)
                lease = next(lease for lease in done["leases"] if lease["role"] == "worker")
                assert lease["outcome"] == "succeeded"
                assert [key for key in bucket.objects if "/data/" in key]  # it has yet to say that they are gone
                assert len(lender.keepers()) == 1
                # The keeper answers the next daemon; one that did not within 3 s would be killed.
                lender.process.send_signal(signal.SIGUSR2)
                wait_for("the next daemon's word", lambda: "lease_taken_up" in lender.log_text())
                assert len(lender.keepers()) == 1 and "lease_lost" not in lender.log_text()
                bucket.unstuck.set()
                wait_for("the end of all keepers", lambda: not lender.keepers())
            finally:
                bucket.unstuck.set()
                lender.stop()
        assert not [key for key in bucket.objects if "/updates/" not in key], bucket.objects.keys()
        assert not os.listdir(tmp_path / "elsewhere" / "leases")
    assert job_of(market, token, job)["state"] == "succeeded"


def test_functions_elsewhere_meet_a_lease_in_the_markets_store(market, souk, tmp_path):
    """The host knows which market that is; what it holds is for the objects of the lease, and ends with it."""
    token = market.sign_up("borrower")
    souk.variables["SOUK_SERVER"] = market.url
    with Host(souk, "--memory", "128", "--concurrency", "2", "--network") as host:
        lender = Elsewhere(market, tmp_path / "stored", host, "--function-memory", "256", store="market")
        try:
            job = submit(market, token, 1, resources={"labels": "function", "memory": "0.5"})
            wait_for("two functions", lambda: len(instances(host)) == 2)
            wait_for("its objects", lambda: market.get("/v1/objects?prefix=models/lease-", token).json["items"])
            done = wait_for_end(market, token, job)
        finally:
            lender.stop()
    called = next(lease for lease in done["leases"] if lease["role"] == "worker")
    assert called["outcome"] == "succeeded" and called["samples"] > 0
    left = [item["name"] for item in market.get("/v1/objects?limit=500", token).json["items"]]
    assert not [name for name in left if not name.startswith("updates/")]
    said = lender.log_text() + log_of_rank(market, token, job, 0)
    assert "souk_objects_" not in said and "souk_lease_" not in said
