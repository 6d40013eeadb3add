"""A worker whose machine dies under a job gets a successor on a spare machine; the bill says so.
Leases that either side ends early, and jobs that get more time.

covers cli/command_lease.c
covers server/dispatch.c, server/order.c, peer/tenancy.c, worker/role_server.c
"""
import os
import pathlib
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market, audit
from training import Lender, cancel, submit_endless, wait_for

# Half a minute by default, counted from the end of a machine's link; shorter here to save time.
LOST_MS = 500


@pytest.fixture
def place(tmp_path):
    market = Market(tmp_path / "market")
    assert market.call("PUT", "/v1/settings", {"lost_ms": LOST_MS}, market.operator_token()).status == 200
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = {}

    def add(name):
        lenders[name] = Lender(market, lender_token, tmp_path / name, name)
        wait_for(f"{name} to be online", lambda: name in online(market, token))
        return lenders[name]

    try:
        yield market, token, lenders, add, lender_token
    finally:
        for lender in lenders.values():
            lender.stop()
        market.stop()


def online(market, token):
    return [m["name"] for m in market.get("/v1/machines", token).json["items"] if m["state"] == "online"]


def job_of(market, token, job):
    return market.get(f"/v1/jobs/{job}", token).json


def workers(market, token, job):
    return [lease for lease in job_of(market, token, job)["leases"] if lease["role"] == "worker"]


def wait_until_all_are_paid(market, token, job, count):
    wait_for("workers with verified ticks", lambda: count == sum(
        lease["posted_microcredits"] > 0 for lease in workers(market, token, job)))


def assert_books(market, token, job):
    bill = market.get(f"/v1/jobs/{job}/bill", token).json
    assert bill["held_microcredits"] == 0 and bill["ledger_sum_microcredits"] == 0
    assert bill["spent_microcredits"] == sum(line["posted_microcredits"] for line in bill["lines"])
    account = market.get("/v1/account", token).json
    assert account["available_microcredits"] == 10_000_000 - bill["spent_microcredits"]
    return bill


def test_workers_that_die_or_leave_are_replaced_and_the_job_goes_on(place, tmp_path):
    market, token, lenders, add, _ = place
    for name in ("first", "second"):
        add(name)
    job = submit_endless(market, token, 2)
    wait_until_all_are_paid(market, token, job, 2)
    gone = {}
    for name, spare, outcome in (("second", "spare", "lost"), ("first", "other", "reclaimed")):
        add(spare)
        victim = next(lease for lease in workers(market, token, job) if lease["machine_name"] == name)
        if outcome == "lost":
            lenders[name].die()
        else:
            lenders[name].stop()
        successor = wait_for("a successor that is paid", lambda: next(
            (lease for lease in workers(market, token, job)
             if lease["machine_name"] == spare and lease["posted_microcredits"] > 0), None))
        assert successor["rank"] == victim["rank"] and successor["id"] > victim["id"]
        ended = next(lease for lease in workers(market, token, job) if lease["id"] == victim["id"])
        assert (ended["state"], ended["outcome"]) == ("ended", outcome), ended
        gone[name] = ended["posted_microcredits"]

    cancel(market, token, job)
    bill = assert_books(market, token, job)
    posted = {line["machine_name"]: line["posted_microcredits"] for line in bill["lines"]}
    assert {name: posted[name] for name in gone} == gone  # paid up to the last verified tick
    assert posted.keys() == {"first", "market", "second", "spare", "other"} and min(posted.values()) > 0, bill
    lenders["second"].start()  # clears its old leases
    wait_for("the lender's return", lambda: "second" in online(market, token))
    assert not [line for line in open("/proc/self/mountinfo") if f"{tmp_path}/second/" in line]
    market.stop()
    status, text = audit(market.folder)
    assert status == 0, text


def souk(market, token, folder, *arguments):
    return subprocess.run([PROGRAM, *arguments, "--server", market.url, "--config-dir", str(folder)],
                          capture_output=True, text=True, timeout=HUNG_S,
                          env={**os.environ, "SOUK_TOKEN": token})


def test_an_own_program_whose_only_machine_dies_waits_for_another(place, tmp_path):
    market, token, lenders, add, _ = place
    add("only")
    (tmp_path / "job.yaml").write_text("""\
name: alone
resources: {cpus: 0.1, memory: 0.1}
run: echo up; sleep 600
market: {max_run_time: 900s}
""")
    submitted = souk(market, token, tmp_path, "job", "submit", "-y", "--detach", str(tmp_path / "job.yaml"))
    assert submitted.returncode == 0, submitted
    job = market.get("/v1/jobs", token).json["items"][0]["id"]
    wait_for("its rank to run", lambda: [lease["state"] for lease in workers(market, token, job)] == ["running"])
    lenders["only"].die()
    wait_for("the loss to be told", lambda: job_of(market, token, job)["reason"].startswith(
        "rank 0 is gone and has no successor yet: "))
    told = job_of(market, token, job)
    assert told["state"] == "running" and [lease["outcome"] for lease in told["leases"]] == ["lost"], told
    for verb in ("explain", "show"):
        said = souk(market, token, tmp_path, "job", verb, str(job))
        assert "rank 0 is gone and has no successor yet: no other machine has room for it" in said.stdout, said
    add("other")
    wait_for("a successor that runs", lambda: any(
        lease["machine_name"] == "other" and lease["state"] == "running"
        for lease in workers(market, token, job)))
    assert job_of(market, token, job)["reason"] == ""
    assert souk(market, token, tmp_path, "job", "cancel", "-y", str(job)).returncode == 0
    wait_for("its end", lambda: job_of(market, token, job)["state"] == "cancelled")
    assert_books(market, token, job)
    lenders["only"].start()  # clears its old leases
    wait_for("the lender's return", lambda: "only" in online(market, token))
    market.stop()
    status, text = audit(market.folder)
    assert status == 0, text


def renewed(tmp_path, lease):
    """The lease's keeper has set its end anew. The market logs its own part as lease_renewed."""
    log = pathlib.Path(f"{tmp_path}/{lease['machine_name']}.log")
    return f" lease_end_renewed lease={lease['id']}\n" in log.read_text()


def test_a_machine_is_taken_back_a_job_gets_more_time_and_a_worker_is_let_go(place, tmp_path):
    market, token, _, add, lender_token = place
    for name in ("first", "second", "third"):
        add(name)
    job = submit_endless(market, token, 3)
    wait_for("all leases to run", lambda: (
        lambda leases: len(leases) == 4 and all(lease["state"] == "running" for lease in leases))(
            job_of(market, token, job)["leases"]))

    # Only the borrower may extend the job. The daemons get the new end, which includes ten minutes to start in.
    assert market.post(f"/v1/jobs/{job}/extend", {"by_ms": 3600000}, lender_token).status == 404
    assert market.post(f"/v1/jobs/{job}/extend", {}, token).status == 400
    assert market.post(f"/v1/jobs/{job}/extend", {"by_ms": 10**15}, token).status == 400
    before = job_of(market, token, job)
    shown = souk(market, token, tmp_path / "config", "job", "extend", str(job), "--by", "1h")
    assert shown.returncode == 2 and "add -y" in shown.stderr, shown
    assert "credits" in shown.stderr and job_of(market, token, job)["quoted_microcredits"] == before[
        "quoted_microcredits"]
    shown = souk(market, token, tmp_path / "config", "job", "extend", str(job), "--by", "1h", "-y")
    assert shown.returncode == 0 and "may run 1h longer" in shown.stdout, shown
    after = job_of(market, token, job)
    assert after["quoted_microcredits"] > before["quoted_microcredits"]
    assert all(new["expires_ms"] == old["expires_ms"] + 3600000
               for old, new in zip(before["leases"], after["leases"]))
    wait_for("all keepers to hear of it", lambda: all(renewed(tmp_path, lease) for lease in after["leases"]))
    wait_until_all_are_paid(market, token, job, 3)

    # The borrower lets one go, the owner takes one back.
    leases = {lease["machine_name"]: lease for lease in workers(market, token, job)}
    assert market.post(f"/v1/leases/{leases['third']['id']}/release", {}, lender_token).status == 403
    assert market.post(f"/v1/leases/{leases['third']['id']}/release", {}, token).status == 200
    assert market.post(f"/v1/leases/{leases['second']['id']}/end", {}, token).status == 403
    taken = souk(market, lender_token, tmp_path / "config", "machines", "reclaim", "second", "-y")
    assert taken.returncode == 0, taken

    outcomes = wait_for("both to end", lambda: (lambda found: found if "none" not in found else None)(
        [lease["outcome"] for lease in workers(market, token, job)
         if lease["id"] in (leases["second"]["id"], leases["third"]["id"])]))
    assert sorted(outcomes) == ["reclaimed", "stopped"]
    # The machine that was let go may follow the one taken back, under its rank.
    cancel(market, token, job)
    assert_books(market, token, job)
    shown = souk(market, token, tmp_path / "config", "machines", "show", "second")
    assert "0 completed, 0 lost, 1 ended by the owner, 0 failed" in shown.stdout, shown
    assert "Reliability: 0.4 = (0 + 1) / (0 + 2 + 2 x 0 + 1 / 2)" in shown.stdout, shown
    reputation = next(m for m in market.get("/v1/machines", token).json["items"] if m["name"] == "first")["reputation"]
    assert reputation["completed"] == 1 and reputation["reliability_milli"] == 666
    assert 0 < reputation["delivered_ms"] <= reputation["leased_ms"] and reputation["ticks"] > 0
