"""A lender that sends garbage is found by the other workers of the job, paid back and kept out of it.

covers core/decide_fault.c, worker/recompute.c, server/tick.c
"""
import pathlib

import pytest

from serving import PROGRAM, Market, audit
from training import Lender, job_spec, wait_for

LIAR = pathlib.Path(PROGRAM).with_name("souk-liar")


def leases_of(market, token, job):
    return [lease for lease in market.get(f"/v1/jobs/{job}", token).json["leases"] if lease["role"] == "worker"]


@pytest.mark.skipif(not LIAR.exists(), reason="souk-liar is built with the tests")
def test_a_lender_that_sends_garbage_is_found_unpaid_and_excluded(tmp_path):
    market = Market(tmp_path / "market")
    honest, other, mallory, token = (market.sign_up(name) for name in ("honest", "other", "mallory", "borrower"))
    lenders = []

    def add(name, owner, program=PROGRAM):
        lenders.append(Lender(market, owner, tmp_path / name, name, program=program))
        wait_for(f"{name} to be online", lambda: name in [
            m["name"] for m in market.get("/v1/machines", token).json["items"] if m["state"] == "online"])

    try:
        add("first", honest)
        add("second", other)
        add("liar", mallory, str(LIAR))
        spec = job_spec(market, token, 3, min_time="1h", max_run_time="1h", expected_run_time="1h")  # until the test cancels it
        spec["sync"] = {"policy": "bsp", "local_steps": 4, "gamma": "1s", "tick": "1s", "verify": 1}
        answer = market.post("/v1/jobs", spec, token)
        assert answer.status == 201, answer
        job = answer.json["id"]
        faulty = wait_for("the liar to be found", lambda: next(
            (lease for lease in leases_of(market, token, job) if lease["outcome"] == "faulty"), None))
        assert faulty["machine_name"] == "liar"
        assert "agree" in faulty["reason"], faulty
        # Whatever it was paid before went back, and none of its lender's machines is taken again.
        account = market.get("/v1/account", mallory).json
        assert account["available_microcredits"] == account["granted_microcredits"], account
        assert account["withheld_microcredits"] == account["held_microcredits"] == 0, account
        add("more-of-mallory", mallory)
        add("spare", honest)
        successor = wait_for("a successor that is paid", lambda: next(
            (lease for lease in leases_of(market, token, job)
             if lease["machine_name"] == "spare" and lease["posted_microcredits"] > 0), None))
        assert successor["rank"] == faulty["rank"]
        assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
        done = wait_for("the job's end", lambda: (
            lambda j: j if j["state"] in ("succeeded", "failed", "cancelled") else None)(
                market.get(f"/v1/jobs/{job}", token).json))
        assert done["state"] == "cancelled", done
        assert done["checks"] > 0, done
        ends = {lease["machine_name"]: lease["outcome"] for lease in leases_of(market, token, job)}
        assert ends == {"first": "stopped", "second": "stopped", "liar": "faulty", "spare": "stopped"}
        machines = market.get("/v1/machines", token).json["items"]
        reliability = {m["name"]: m["reputation"]["reliability_milli"] for m in machines}
        assert reliability["liar"] < min(reliability["first"], reliability["more-of-mallory"])
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()
    status, text = audit(market.folder)
    assert status == 0, text
