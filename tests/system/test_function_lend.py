"""Functions as lenders: `souk lend --functions`, a job across them and an ordinary machine, by the market's ordinary ways.

covers cli/lend_functions.c, peer/tenancy_function.c
"""
import glob
import os
import pathlib
import signal

import pytest
from functions import FunctionLender, job_of, log_of_rank, running_lease, submit, wait_for_end
from serving import Market, audit
from training import Lender, wait_for


ENDLESS = {"target": {"accuracy": 1, "min_time": "1h"}}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("place")
    market = Market(tmp_path / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = []
    try:
        lenders.append(Lender(market, lender_token, tmp_path / "machine", "machine"))
        lenders.append(FunctionLender(market, lender_token, tmp_path / "functions"))
        wait_for("three machines", lambda: 3 == sum(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token, lenders[1]
    finally:
        for lender in lenders:
            lender.stop()
        stopped = market.stop()
    assert stopped == 0
    status, text = audit(market.folder)
    assert status == 0, text
    assert not (tmp_path / "functions" / "leases").exists() or not os.listdir(tmp_path / "functions" / "leases")


def assert_nothing_is_left(lender):
    wait_for("the end of all keepers", lambda: not lender.keepers())
    assert not lender.functions()
    assert not glob.glob(f"{lender.folder}/sandboxes/lease-*")


def test_a_job_trains_on_a_machine_and_on_functions(place):
    market, token, lender = place
    offered = next(m for m in market.get("/v1/machines", token).json["items"] if m["name"] == "functions")
    assert "function" in offered["probe"]["labels"].split(",")
    # Two of 256 MB, and a quarter for the process that calls them.
    assert (offered["probe"]["cores_milli"], offered["probe"]["ram_bytes"]) == (387, 683 << 20)
    job = submit(market, token, train={"target": {"accuracy": 0.5, "min_time": "3s"}})
    wait_for("two functions", lambda: len(lender.functions()) == 2, step=0.05)
    done = wait_for_end(market, token, job)
    workers = {lease["machine_name"]: lease for lease in done["leases"] if lease["role"] == "worker"}
    assert set(workers) == {"machine", "functions"} and len(done["leases"]) == 3
    called = workers["functions"]
    assert called["outcome"] == "succeeded" and called["samples"] > 0 and called["commits"] > 0

    # Paid are its calls: less than the time it was leased, and what the bill says.
    assert 0 < called["billed_ms"] < called["ended_ms"] - called["started_ms"]
    bill = market.get(f"/v1/jobs/{job}/bill", token).json
    line = next(line for line in bill["lines"] if line["machine_name"] == "functions")
    assert line["billed_ms"] == called["billed_ms"] and line["posted_microcredits"] > 0
    assert bill["ledger_sum_microcredits"] == 0 and bill["held_microcredits"] == 0
    assert bill["spent_microcredits"] == sum(one["posted_microcredits"] for one in bill["lines"])
    assert bill["spent_microcredits"] <= bill["quoted_microcredits"]
    assert_nothing_is_left(lender)


def test_a_function_that_is_killed_is_called_again(place):
    market, token, lender = place
    job = submit(market, token, 1, resources={"labels": "function"}, train=ENDLESS)
    wait_for("its functions", lender.functions)

    def kill():
        """Between two calls, too; until one was under way."""
        for pid in lender.functions():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        lease = running_lease(market, token, job)
        return lease and "call_again" in log_of_rank(market, token, job, 0)

    wait_for("a call that was made again", kill, step=0.05)
    before = running_lease(market, token, job)["commits"]
    wait_for("work that goes on", lambda: running_lease(market, token, job)["commits"] > before + 3)
    assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
    workers = [lease for lease in job_of(market, token, job)["leases"] if lease["role"] == "worker"]
    assert len(workers) == 1  # it is the same lease, and no successor was needed
    assert_nothing_is_left(lender)


def test_functions_make_way_for_the_owner_and_go_on(place):
    market, token, lender = place
    job = submit(market, token, 1, resources={"labels": "function"}, train=ENDLESS)
    wait_for("its functions", lender.functions)
    lender.say("pause", "1h")
    wait_for("no function", lambda: not lender.functions())
    billed = wait_for("the last tick before", lambda: running_lease(market, token, job))["billed_ms"]
    lender.say("resume")
    wait_for("its functions again", lender.functions)
    wait_for("a tick that is paid", lambda: running_lease(market, token, job)["billed_ms"] > billed)
    assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
    assert_nothing_is_left(lender)


def test_functions_go_on_while_their_daemon_starts_again(place):
    market, token, lender = place
    job = submit(market, token, 1, resources={"labels": "function"}, train=ENDLESS)
    before = set(wait_for("two functions", lambda: (lambda found: found if len(found) == 2 else None)(lender.functions())))
    lender.process.send_signal(signal.SIGUSR2)
    wait_for("the daemon's word", lambda: "lease_taken_up" in pathlib.Path(lender.log_path).read_text())
    commits = running_lease(market, token, job)["commits"]
    wait_for("work that goes on", lambda: running_lease(market, token, job)["commits"] > commits + 3)
    assert set(lender.functions()) == before
    assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
    assert_nothing_is_left(lender)


def test_a_program_does_not_run_on_functions(place):
    market, token, _ = place
    answer = market.post("/v1/jobs", {
        "name": "program", "num_nodes": 1, "resources": {"cpus": "0.1", "memory": "0.1", "labels": "function"},
        "run": "true", "market": {"max_run_time": "60s"}}, token)
    assert answer.status == 201, answer
    told = market.get(f"/v1/jobs/{answer.json['id']}/explain", token).json
    assert job_of(market, token, answer.json["id"])["state"] == "pending"
    assert {"role": "worker", "wish": "program", "machines_left": 0} in told["wishes"], told
    assert market.post(f"/v1/jobs/{answer.json['id']}/cancel", {}, token).status == 200
