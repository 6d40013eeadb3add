"""A parameter server that dies under a job gets a successor, which goes on from its checkpoint; one
that comes back late is not listened to any more.

A job is resumed from what another left, on another number of workers.

covers server/checkpoints.c, server/holdings_replace.c, worker/role_server.c, exchange/server_member.c, client/upload.c
"""
import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

from serving import HUNG_S, PROGRAM
from training import Lender, cancel, descendants, job_spec, running, wait_for, wait_for_end


def job_of(market, token, job):
    return market.get(f"/v1/jobs/{job}", token).json


def servers(market, token, job):
    return [lease for lease in job_of(market, token, job)["leases"] if lease["role"] == "server"]


def trained(market, token, job, lease):
    """Steps that this parameter server has counted, of its predecessors' too."""
    return next((w["steps"] for w in market.get(f"/v1/jobs/{job}/metrics", token).json["workers"]
                 if w["lease"] == lease["id"]), 0)


def keeper_of(lender, lease):
    return next(pid for name, pid in lender.keepers().items() if name.startswith(f"{lease['id']}-"))


def wait_for_checkpoint(market, token, job, after):
    def newest():
        return next((a for a in market.get(f"/v1/jobs/{job}/artifacts", token).json["items"]
                     if a["name"] == "checkpoint" and a["manifest"] != after), None)
    return wait_for("a checkpoint", newest)["manifest"]


def wait_for_successor(market, token, job, of, steps):
    """A new server lease whose workers make further steps."""
    successor = wait_for("a successor", lambda: next(
        (lease for lease in servers(market, token, job)
         if lease["id"] > of["id"] and lease["state"] == "running"), None))
    wait_for("further steps", lambda: trained(market, token, job, successor) > steps)
    return successor


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    with running(folder, "--no-local-lender") as (market, token, lender_token, lenders):
        lenders.append(Lender(market, lender_token, folder / "other", "other", "server"))
        wait_for("four machines", lambda: 4 == sum(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token, lenders


def submit(market, token):
    """Submits a job that trains until cancelled."""
    spec = job_spec(market, token, 2, min_time="1h", max_run_time="1h")
    spec["resources"]["cpus"] = "0.1"
    spec["sync"]["checkpoint_interval"] = "1s"
    answer = market.post("/v1/jobs", spec, token)
    assert answer.status == 201, answer
    return answer.json["id"]


def assert_paid(market, token, done):
    bill = market.get(f"/v1/jobs/{done['id']}/bill", token).json
    assert bill["held_microcredits"] == 0 and bill["ledger_sum_microcredits"] == 0
    assert bill["spent_microcredits"] == sum(line["posted_microcredits"] for line in bill["lines"])
    return done


def assert_ends(market, token, job):
    return assert_paid(market, token, cancel(market, token, job))


def assert_succeeds(market, token, job):
    done = wait_for_end(market, token, job)
    assert done["state"] == "succeeded", done
    return assert_paid(market, token, done)


def test_a_parameter_server_that_is_killed_is_followed_by_one_that_goes_on_from_its_checkpoint(place):
    market, token, lenders = place
    by_name = {"server": lenders[2], "other": lenders[3]}
    job = submit(market, token)
    wait_for("a server", lambda: [lease for lease in servers(market, token, job)
                                  if lease["state"] == "running"])
    first = manifest = wait_for_checkpoint(market, token, job, "")
    assert market.get(f"/v1/chunks/{first}", token).status == 200
    workers = [lease["id"] for lease in job_of(market, token, job)["leases"] if lease["role"] == "worker"]
    for part in ("process", "keeper", "owner"):
        manifest = wait_for_checkpoint(market, token, job, manifest)
        old = servers(market, token, job)[-1]
        steps = trained(market, token, job, old)
        keeper = keeper_of(by_name[old["machine_name"]], old)
        if part == "owner":  # who takes the machine back; the server hands over what it has
            by_name[old["machine_name"]].stop()
        else:
            os.kill(descendants(keeper)[-1] if part == "process" else keeper, signal.SIGKILL)
        wait_for_successor(market, token, job, old, steps)
        ended = next(lease for lease in servers(market, token, job) if lease["id"] == old["id"])
        assert ended["outcome"] == {"process": "failed", "keeper": "lost", "owner": "reclaimed"}[part], ended
    # Two later ones have come: it does not lie there, nor count, any longer.
    wait_for("the first checkpoint to go", lambda: market.get(f"/v1/chunks/{first}", token).status == 404)
    assert market.get(f"/v1/jobs/{job}/artifacts/checkpoint", token).status == 200
    done = assert_ends(market, token, job)
    log = market.get(f"/v1/jobs/{job}/logs?rank=server", token).body.decode()
    assert "checkpoint_restored" in log
    assert [lease["id"] for lease in done["leases"] if lease["role"] == "worker"] == workers
    by_name[old["machine_name"]].start()  # for the next case


def test_a_parameter_server_that_comes_back_late_is_not_listened_to(place):
    market, token, lenders = place
    by_name = {"server": lenders[2], "other": lenders[3]}
    settings = market.call("PUT", "/v1/settings", {"silence_ms": 3000}, market.operator_token())
    assert settings.status == 200, settings
    job = submit(market, token)
    wait_for_checkpoint(market, token, job, "")
    (old,) = servers(market, token, job)
    steps = trained(market, token, job, old)
    lender = by_name[old["machine_name"]]
    keeper = keeper_of(lender, old)
    asleep = [lender.process.pid, keeper, *descendants(keeper)]
    for pid in asleep:
        os.kill(pid, signal.SIGSTOP)
    try:
        successor = wait_for_successor(market, token, job, old, steps)
    finally:
        for pid in asleep:
            with contextlib.suppress(ProcessLookupError):  # the keeper, awake, ends what is below it at once
                os.kill(pid, signal.SIGCONT)
    assert successor["machine_name"] != old["machine_name"]
    posted = next(lease for lease in servers(market, token, job) if lease["id"] == old["id"])
    assert posted["outcome"] == "lost", posted
    wait_for("the old server's end", lambda: keeper not in lender.keepers().values())
    done = assert_ends(market, token, job)
    assert next(lease for lease in done["leases"] if lease["id"] == old["id"]) == posted
    assert [lease["outcome"] for lease in done["leases"] if lease["role"] == "server"] == ["lost", "succeeded"]


def souk(market, token, folder, *arguments):
    return subprocess.run([PROGRAM, *arguments, "--server", market.url, "--config-dir", str(folder / "config")],
                          capture_output=True, text=True, timeout=HUNG_S, cwd=folder,
                          env={**os.environ, "SOUK_TOKEN": token})


def submit_file(market, token, folder, spec, *arguments):
    (folder / "job.yaml").write_text(json.dumps(spec))
    return souk(market, token, folder, "job", "submit", "job.yaml", "-y", "-d", *arguments)


def test_a_job_goes_on_from_the_checkpoint_of_another_with_fewer_workers(place, tmp_path):
    market, token, _ = place
    spec = job_spec(market, token, 2, min_time="2s")
    first = int(submit_file(market, token, tmp_path, spec).stdout)
    assert_succeeds(market, token, first)
    fetched = souk(market, token, tmp_path, "job", "fetch", str(first), "--output", "fetched")
    assert fetched.returncode == 0, fetched
    checkpoint = tmp_path / "fetched" / "checkpoint"
    assert checkpoint.exists(), fetched

    other = {**spec, "train": {**spec["train"], "model": "mlp"}}
    refused = submit_file(market, token, tmp_path, other, "--resume", str(checkpoint))
    assert refused.returncode != 0 and "resume" in refused.stderr, refused
    assert "logistic of 7850 parameters, not mlp of" in refused.stderr, refused
    torn = tmp_path / "torn"
    torn.write_bytes(checkpoint.read_bytes()[:-1])
    refused = submit_file(market, token, tmp_path, spec, "--resume", str(torn))
    assert refused.returncode != 0 and "checksum" in refused.stderr, refused

    refused = submit_file(market, token, tmp_path, spec, "--resume", str(tmp_path / "nowhere"))
    assert refused.returncode != 0 and "nowhere" in refused.stderr and "Plan for" not in refused.stderr, refused
    short = {**spec, "train": {**spec["train"], "epochs": 1}}
    refused = submit_file(market, token, tmp_path, short, "--resume", str(checkpoint))
    assert re.search(r"has learnt \d+ epochs already, and train.epochs is 1: raise that", refused.stderr), refused
    assert refused.returncode == 2 and "Plan for" not in refused.stderr, refused

    # Training time counts on, too: ask for a little more than the first job took.
    spec = {**spec, "num_nodes": 1, "sync": {"policy": "bsp", "gamma": "1s", "tick": "1s"}}
    spec["train"]["target"]["min_time"] = "5s"
    second = int(submit_file(market, token, tmp_path, spec, "--resume", str(checkpoint)).stdout)
    done = assert_succeeds(market, token, second)
    assert [lease["role"] for lease in done["leases"]] == ["server", "worker"]
    log = market.get(f"/v1/jobs/{second}/logs?rank=server", token).body.decode()
    restored = int(re.search(r"checkpoint_restored steps=(\d+)", log).group(1))
    assert restored > 0
    assert trained(market, token, second, done["leases"][0]) > restored
