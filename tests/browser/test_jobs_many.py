"""More jobs than a page of the list has, and more leases than are drawn at once, in a real browser."""
import subprocess
import sys

from browsing import HERE, Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import PROGRAM, Market
from training import job_spec, wait_for

sys.path.append(str(HERE.parent.parent / "bench/lending"))
from process import end, start  # noqa: E402 -- found through the line above

JOBS = 60
WORKERS = 205


def wait_for_leases(market, token, job):
    return wait_for("the workers' leases", lambda: (lambda leases: leases if WORKERS == sum(
        lease["role"] == "worker" and lease["state"] == "running" for lease in leases) else None)(
        market.get(f"/v1/jobs/{job}", token).json["leases"]))


def test_pages_of_jobs_and_hundreds_of_leases(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", "--grant", "1000000", "--writes-per-minute", "0")
    lenders = None
    try:
        token, owner = market.sign_up("borrower"), market.sign_up("owner")
        command = {"resources": {"cpus": "64"}, "run": "true", "market": {"max_run_time": "60s"}}
        for number in range(JOBS):
            assert market.post("/v1/jobs", {**command, "name": f"many-{number}"}, token).status == 201
        lenders, _ = start(PROGRAM, "bench", "lenders", "--lenders", str(WORKERS + 2), "--reports", "1", "--json",
                           "--server", market.url, "--config-dir", str(tmp_path / "config"),
                           environment={"SOUK_TOKEN": owner}, stdout=subprocess.DEVNULL)
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("jobs_many.mjs", code["url"], tmp_path, JOBS) as walk:
            walk.expect("big")
            spec = job_spec(market, token, WORKERS, min_time="1d", max_run_time="20m", expected_run_time="20m")
            made = market.post("/v1/jobs", {**spec, "name": "big", "resources": {"cpus": "1", "memory": "0.1+"}}, token)
            assert made.status == 201, made
            walk.answer(made.json["id"])
            walk.expect("leased")
            leases = wait_for_leases(market, token, made.json["id"])
            walk.answer(len(leases))
            walk.expect("cancel")
            assert market.post(f"/v1/jobs/{made.json['id']}/cancel", {}, token).status == 200
            walk.answer()
            seen = walk.end()
    finally:
        if lenders:
            end(lenders)
        market.stop()
    assert set(seen["jobs"]) == {f"many-{number}" for number in range(JOBS)}
    assert seen["pages"] == (JOBS + 24) // 25 and "many-0" in seen["oldest"]
    assert sorted(seen["found"]) == sorted(f"many-{number}" for number in (1, *range(10, 20)))
    assert seen["workerRows"] < 100 and seen["billRows"] < 100, "all rows are in the document"
    assert set(seen["billed"]) == {lease["machine_name"] for lease in leases}
    assert_clean(seen)
