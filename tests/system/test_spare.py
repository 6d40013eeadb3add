"""Spare time: a member with nothing trains for nothing until somebody pays, and again after that.

covers server/dispatch.c, server/order.c, server/offer_body.c, cli/offer_terms.c, cli/offer_view.c
"""
import os
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market, audit
from training import Lender, job_spec, wait_for


class WideLender(Lender):
    """Has room for a worker and a parameter server."""

    def start(self, environment=None):
        self.command[self.command.index("--cores") + 1] = "0.8"
        super().start(environment)


@pytest.fixture
def place(tmp_path):
    market = Market(tmp_path / "market")
    operator = market.operator_token()
    lender_token, payer = market.sign_up("lender"), market.sign_up("payer")
    no_grant = market.call("PUT", "/v1/settings", {"grant_microcredits": 0}, operator)
    assert no_grant.status == 200, no_grant
    poor = market.sign_up("poor")
    lender = WideLender(market, lender_token, tmp_path / "wren", "wren", "worker,server")
    try:
        offer = wait_for("the lender's offer", lambda: next(
            (o for o in market.get("/v1/offers", lender_token).json["items"]
             if o["machine_name"] == "wren" and o["state"] == "open"), None))
        yield market, lender_token, payer, poor, offer["id"], tmp_path
    finally:
        lender.stop()
        market.stop()


def souk(market, token, folder, *arguments):
    return subprocess.run([PROGRAM, *arguments, "--server", market.url, "--config-dir", str(folder)],
                          capture_output=True, text=True, timeout=HUNG_S,
                          env={**os.environ, "SOUK_TOKEN": token})


def job_of(market, token, job):
    return market.get(f"/v1/jobs/{job}", token).json


def wait_for_state(market, token, job, states, seconds=HUNG_S):
    return wait_for(f"job {job} to be {states}", lambda: (
        lambda found: found if found["state"] in states else None)(job_of(market, token, job)), seconds)


def test_a_poor_member_has_spare_time_until_somebody_pays_and_again_after(place):
    market, lender_token, payer, poor, offer, folder = place
    spec = job_spec(market, poor, 1, min_time="8s", max_run_time="120s", spare=True)
    paid = job_spec(market, payer, 1, min_time="3s")

    # Who can pay is not given it; who cannot waits until a lender gives some away.
    assert market.post("/v1/jobs", {**paid, "market": {**paid["market"], "spare": True}}, payer).status == 403
    spare = market.post("/v1/jobs", spec, poor)
    assert spare.status == 201, spare
    spare = spare.json["id"]
    why = souk(market, poor, folder / "config", "job", "explain", str(spare))
    assert "spare" in why.stdout and job_of(market, poor, spare)["state"] == "pending", why
    shown = souk(market, poor, folder / "config", "job", "show", str(spare))
    assert "nothing: spare time, until somebody pays" in shown.stdout and "Held" not in shown.stdout, shown
    idle = folder / "idle.yaml"
    idle.write_text('name: idle\nresources: {cpus: 1}\nrun: "true"\nmarket: {max_run_time: 10m, spare: true}\n')
    plan = souk(market, poor, folder / "config", "job", "submit", str(idle))
    assert "nothing: spare time is free" in plan.stderr and "at most" not in plan.stderr, plan
    changed = souk(market, lender_token, folder / "config", "offer", "change", str(offer), "--spare", "on", "-y")
    assert changed.returncode == 0, changed
    shown = souk(market, lender_token, folder / "config", "offer", "show", str(offer))
    assert "free for members with less than 1 credit" in shown.stdout, shown
    listed = souk(market, lender_token, folder / "config", "offer", "list", "--wide")
    assert "auto; unsold free" in listed.stdout, listed
    first = wait_for_state(market, poor, spare, ["running"])["leases"]

    # Somebody pays: the machine is theirs at once, and the lease before says why it ended.
    job = market.post("/v1/jobs", paid, payer)
    assert job.status == 201, job
    waiting = job_of(market, poor, spare)
    assert waiting["state"] == "pending" and "a paying job needs the machine" in waiting["reason"], waiting
    ended = {lease["id"]: lease for lease in waiting["leases"]}
    assert {ended[lease["id"]]["outcome"] for lease in first} == {"preempted"}, waiting
    done = wait_for_state(market, payer, job.json["id"], ["succeeded", "failed", "cancelled"])
    assert done["state"] == "succeeded" and done["spent_microcredits"] > 0, done

    # When they have gone it starts anew, and costs nothing.
    done = wait_for_state(market, poor, spare, ["succeeded", "failed", "cancelled"])
    assert done["state"] == "succeeded" and done["spent_microcredits"] == 0, done
    assert len(done["leases"]) == 2 * len(first)
    account = market.get("/v1/account", poor).json
    assert account["available_microcredits"] == 0 and account["held_microcredits"] == 0
    market.stop()
    status, text = audit(market.folder)
    assert status == 0, text
