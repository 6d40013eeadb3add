"""Jobs that fail, diverge, lose machines, let workers go and are cancelled, in a real browser."""
import signal

from browsing import Walk, assert_clean, credits, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from training import Lender, job_spec, running, wait_for

FAILING = "echo reading; echo 'cannot <b>open</b> it' >&2; exit 3"


def submit(market, token, spec):
    answer = market.post("/v1/jobs", spec, token)
    assert answer.status == 201, answer
    return answer.json["id"]


def ended(market, token, job):
    return wait_for("the job's end", lambda: (lambda one: one["state"] in ("succeeded", "failed") and one)(
        market.get(f"/v1/jobs/{job}", token).json))


def diverging(market, token):
    """Once the rate passes 2, the decay throws every weight further out than it was."""
    spec = job_spec(market, token, 2)
    spec["train"].update(epochs=1000000, optimizer={"name": "sgd", "lr": 50, "weight_decay": 1, "schedule": {"warmup": 100000}})
    del spec["train"]["target"]
    spec["sync"] = {"policy": "bsp", "local_steps": 4, "gamma": "200ms", "tick": "1s"}
    return {**spec, "name": "diverges"}


def lose_after(market, milliseconds):
    """Sets how long the market waits for a silent machine before it replaces its leases."""
    answer = market.call("PUT", "/v1/settings", {"lost_ms": milliseconds}, market.operator_token())
    assert answer.status == 200, answer


def lose_a_machine(market, token, job, lenders):
    """The machine of worker 1, as in a power cut: its name, and its daemon."""
    name = next(lease["machine_name"] for lease in market.get(f"/v1/jobs/{job}", token).json["leases"]
                if lease["role"] == "worker" and lease["rank"] == 1)
    lender = lenders[int(name.removeprefix("lender-"))]
    lender.die()
    return name, lender


def test_jobs_that_do_not_end_well(tmp_path):
    places = ["--no-local-lender", "--listen", f"127.0.0.1:{own_port()}", "--link-listen", f"127.0.0.1:{own_port()}"]
    with running(tmp_path, *places) as (market, token, lender_token, lenders):
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("jobs_ends.mjs", code["url"], tmp_path) as walk:
            walk.expect("fail")
            job = submit(market, token, {"name": "fails", "resources": {"cpus": "0.1+", "memory": "0.1+"}, "run": FAILING,
                                         "market": {"max_run_time": "60s"}})
            failed = ended(market, token, job)
            walk.answer(job)
            walk.expect("diverge")
            diverged = ended(market, token, submit(market, token, diverging(market, token)))
            walk.answer(diverged["id"])
            walk.restart(market, signal.SIGTERM)
            walk.expect("run")
            spec = job_spec(market, token, 2, min_time="500s", max_run_time="600s", expected_run_time="300s")
            spec["sync"].update(policy="bsp", local_steps=20)
            spec["resources"]["cpus"] = "0.1"
            lose_after(market, 1000)
            job = submit(market, token, spec)
            wait_for("the first step", lambda: market.get(f"/v1/jobs/{job}", token).json["first_step_ms"])
            lenders.append(Lender(market, lender_token, tmp_path / "spare", "spare"))
            walk.answer(job)
            walk.expect("lose")
            name, lost = lose_a_machine(market, token, job, lenders)
            walk.answer(name)
            walk.expect("lost")
            lost.start()
            walk.answer()
            seen = walk.end()
        cancelled = market.get(f"/v1/jobs/{job}", token).json
    assert failed["state"] == "failed" and failed["reason"] in seen["wrong"].replace("\n", " "), seen["wrong"]
    assert "exit status 3" in seen["wrong"] and credits(failed["spent_microcredits"]) in seen["wrong"], seen["wrong"]
    assert seen["failedLog"].startswith("reading\ncannot <b>open</b> it"), seen["failedLog"]
    assert credits(failed["spent_microcredits"]) in seen["failedBill"]
    assert "training diverged" in diverged["reason"] and "optimizer.lr" in seen["diverged"], seen["diverged"]
    assert seen["wasClean"] == {"console": [], "failed": []}
    assert "worker 1 on lender-" in seen["earlier"] and "rank=1" in seen["lostLog"]
    assert len(seen["logChoices"]) == 4, seen["logChoices"]
    assert seen["notReleased"] == 0 and seen["released"] == 1 and seen["afterRelease"] == "running"
    assert seen["again"] == "digits"
    assert seen["cancels"] == 1 and cancelled["state"] == "cancelled"
    assert credits(cancelled["spent_microcredits"]) in seen["cancelledBill"]
    assert cancelled["held_microcredits"] == 0
    assert_clean(seen)
