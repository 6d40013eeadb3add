"""Jobs whose workers change from epoch to epoch: they grow, they shrink, and go on with fewer where there is no room.

covers core/decide_resize.c, exchange/server_epoch.c, worker/epoch_schedule.c, server/tick.c
"""
import json
import os
import re
import subprocess

import pytest

from functions import few_records
from serving import HUNG_S, PROGRAM, Market, audit
from training import Lender, job_spec, wait_for


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A market with four machines for workers, each of half a core."""
    folder = tmp_path_factory.mktemp("place")
    market = Market(folder / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = [Lender(market, lender_token, folder / f"lender-{i}", f"lender-{i}") for i in range(4)]
    try:
        wait_for("the machines and the market's own", lambda: 5 == sum(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token
    finally:
        for lender in lenders:
            lender.stop()
        stopped = market.stop()
    assert stopped == 0
    status, text = audit(market.folder)
    assert status == 0, text


def souk(market, token, folder, *arguments):
    done = subprocess.run([PROGRAM, *arguments, "--server", market.url, "--config-dir", str(folder)],
                          capture_output=True, text=True, timeout=HUNG_S,
                          env={**os.environ, "SOUK_TOKEN": token})
    assert done.returncode == 0, done
    return done.stdout


def submit_steps(market, token, schedule, epochs=4, steps=1000, most=4):
    """Digits; an epoch is so many steps, long enough for a worker to come in it."""
    spec = job_spec(market, token, 1, max_run_time="600s")
    spec["num_nodes_max"] = most
    spec["resources"] = {"cpus": "0.1", "memory": "0.1"}
    spec["train"]["epochs"] = epochs * steps * spec["train"]["batch"] // 512
    del spec["train"]["target"]
    spec["sync"] = {"policy": "hsp", "schedule": schedule, "epoch_steps": steps, "gamma": "1s", "tick": "1s"}
    answer = market.post("/v1/jobs", spec, token)
    assert answer.status == 201, answer
    return answer.json["id"]


def job_of(market, token, job):
    return market.get(f"/v1/jobs/{job}", token).json


def end_of(market, token, job):
    return wait_for("the job's end", lambda: (
        lambda found: found if found["state"] in ("succeeded", "failed", "cancelled") else None)(
            job_of(market, token, job)))


def epochs_of(market, token, folder, job):
    """(workers, wanted) at the end of each, as the parameter server logged."""
    log = souk(market, token, folder, "job", "logs", str(job), "--rank", "server")
    return [tuple(map(int, found)) for found in re.findall(r"epoch_over.* workers=(\d+) wanted=(\d+)", log)]


def workers_of(job):
    return [lease for lease in job["leases"] if lease["role"] == "worker"]


def assert_books(market, token, job):
    """Nothing is held, and what was paid is what the leases' ticks say."""
    bill = market.get(f"/v1/jobs/{job}/bill", token).json
    leases = {lease["id"]: lease["posted_microcredits"] for lease in job_of(market, token, job)["leases"]}
    assert bill["held_microcredits"] == 0 and bill["ledger_sum_microcredits"] == 0
    assert bill["spent_microcredits"] == sum(leases.values()) == sum(line["posted_microcredits"] for line in bill["lines"])
    account = market.get("/v1/account", token).json
    spent = sum(each["spent_microcredits"] for each in market.get("/v1/jobs", token).json["items"])
    assert account["available_microcredits"] == 10_000_000 - spent


def test_a_job_grows_from_one_worker_to_four(place, tmp_path):
    """The job has enough epochs for all workers to join; the test then cancels it."""
    (tmp_path / "job.yaml").write_text("""\
name: growing
num_nodes: 1..4
resources: {cpus: 0.1, memory: 0.25}
train: {model: logistic, data: fashion-mnist, batch: 8, epochs: 1000000, optimizer: {lr: 0.05}}
sync: {policy: hsp, schedule: grow, tick: 1s, gamma: 1s}
market: {max_run_time: 600s, max_total_cost: 5}
""")
    market, token = place
    souk(market, token, tmp_path, "job", "submit", "-y", "--detach", str(tmp_path / "job.yaml"), "--dataset-dir",
         few_records().name)
    job = market.get("/v1/jobs", token).json["items"][0]["id"]
    first = wait_for("its first worker", lambda: (lambda j: j if j["state"] == "running" else None)(job_of(market, token, job)))
    assert first["num_nodes_max"] == 4 and sorted({lease["rank"] for lease in workers_of(first)})[0] == 0
    done = wait_for("work of four", lambda: (
        lambda j: j if sum(lease["commits"] > 0 for lease in workers_of(j)) == 4 else None)(job_of(market, token, job)), step=0.05)
    assert (done["worker_count"], done["workers_wanted"]) == (4, 4)
    assert "4 of 4 wanted (1 to 4) workers" in souk(market, token, tmp_path, "job", "show", str(job))
    assert "4 of 4 workers wanted now (1 to 4)" in souk(market, token, tmp_path, "job", "explain", str(job))
    assert done["policy_reason"].startswith("grow: 4 of 1 to 4 workers wanted in epoch "), done
    epochs = epochs_of(market, token, tmp_path, job)
    assert epochs[0] == (1, 2) and {wanted for _, wanted in epochs[1:]} == {4}, epochs
    assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
    done = end_of(market, token, job)
    assert done["state"] == "cancelled", done
    assert sorted(lease["rank"] for lease in workers_of(done)) == [0, 1, 2, 3]
    assert_books(market, token, job)


def test_a_job_shrinks_and_gives_machines_and_credits_back(place, tmp_path):
    market, token = place
    job = submit_steps(market, token, "decay", epochs=5)
    wait_for("four workers", lambda: job_of(market, token, job)["worker_count"] == 4, step=0.02)
    held = job_of(market, token, job)["held_microcredits"]
    let_go = wait_for("one that is let go", lambda: next(
        (lease for lease in workers_of(job_of(market, token, job)) if lease["state"] == "ended"), None))
    assert let_go["rank"] == 3 and let_go["outcome"] == "succeeded", let_go
    now = job_of(market, token, job)
    if now["state"] == "running":
        assert now["held_microcredits"] + now["spent_microcredits"] < held
    done = end_of(market, token, job)
    assert done["state"] == "succeeded", done
    epochs = epochs_of(market, token, tmp_path, job)
    assert [wanted for _, wanted in epochs[:4]] == [3, 3, 2, 1] and epochs[3][0] <= 2, epochs
    leases = workers_of(done)
    assert sorted(lease["rank"] for lease in leases) == [0, 1, 2, 3]  # no worker was replaced
    assert {lease["outcome"] for lease in leases} == {"succeeded"}, leases
    # A worker that came after the first epoch did no work and gets no pay.
    assert all((lease["billed_ms"] > 0) == (lease["commits"] > 0) for lease in leases), leases
    assert_books(market, token, job)


def test_a_job_goes_on_with_those_there_are_where_more_cannot_be_had(place, tmp_path):
    market, token = place
    job = submit_steps(market, token, "grow", epochs=10000, most=8)
    now = wait_for("more to be wanted than there are, and work of those", lambda: (
        lambda j: j if j["workers_wanted"] == 8 and sum(lease["commits"] > 0 for lease in workers_of(j)) == 4 else None)(
            job_of(market, token, job)))
    assert (now["state"], now["worker_count"]) == ("running", 4)
    told = souk(market, token, tmp_path, "job", "explain", str(job))
    assert "the others as soon as there is room for them" in told, told
    count = len(epochs_of(market, token, tmp_path, job))
    wait_for("another epoch", lambda: len(epochs_of(market, token, tmp_path, job)) > count + 1)
    assert epochs_of(market, token, tmp_path, job)[-1] == (4, 8)
    assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
    assert len(workers_of(end_of(market, token, job))) == 4
    assert_books(market, token, job)


def test_a_schedule_needs_a_range_and_epochs(tmp_path):
    for text, words in ((
            "num_nodes: 3\nsync: {policy: hsp, schedule: grow}", "sync.schedule: needs a range of workers"), (
            "num_nodes: 1..3\nsync: {policy: pace, schedule: grow}", "sync.schedule: policy pace has no such setting")):
        (tmp_path / "job.yaml").write_text(f"name: bad\ntrain: {{model: logistic, data: mnist}}\n{text}\n")
        done = subprocess.run([PROGRAM, "job", "validate", str(tmp_path / "job.yaml")], capture_output=True, text=True,
                              timeout=HUNG_S)
        assert done.returncode == 2 and words in done.stderr, done
    (tmp_path / "job.yaml").write_text(
        "name: good\nnum_nodes: 1..3\ntrain: {model: logistic, data: mnist}\nsync: {policy: hsp, schedule: decay, staleness: 4}\n")
    done = subprocess.run([PROGRAM, "job", "validate", "--json", str(tmp_path / "job.yaml")], capture_output=True, text=True,
                          timeout=HUNG_S)
    sync = json.loads(done.stdout)["sync"]
    assert (sync["schedule"], sync["staleness"]) == ("decay", 4)
