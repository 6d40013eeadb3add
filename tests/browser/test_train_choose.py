"""The wizard's "Let Souk choose" in a real browser: asked of a real market with real lenders, before and after a trial."""
import contextlib

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market
from test_train_wizard import needs_fashion
from training import Lender, wait_for


@contextlib.contextmanager
def unequal(tmp_path):
    """Machines of two sizes, and one for parameter servers."""
    market = Market(tmp_path / "market", "--no-local-lender")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = []
    try:
        for name, size, role in (("heron", "0.5", "worker"), ("wren", "0.5", "worker"), ("stork", "1", "worker"), ("owl", "0.5", "server")):
            lenders.append(Lender(market, lender_token, tmp_path / name, name, role, options=("--cores", size)))
        wait_for("four machines", lambda: 4 == sum(
            one["state"] == "online" for one in market.get("/v1/machines", token).json["items"]))
        yield market, token
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()


@needs_fashion
def test_souk_chooses_the_machines_and_the_run_shows_how_well(tmp_path):
    with unequal(tmp_path) as (market, token):
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("train_choose.mjs", code["url"], tmp_path) as walk:
            seen = walk.end()
        job = market.get(f"/v1/jobs/{seen['job']}", token).json
        jobs = market.get("/v1/jobs", token).json["items"]
        profile = market.get(f"/v1/jobs/{seen['job']}/profile", token).json
    before, after, chosen = seen["before"], seen["after"], seen["fastest"]["chosen"]
    assert before["observations"] == 0 and before["trial"]["needed"] and after["observations"] >= 1
    first = before["chosen"]["workers"][0]
    assert seen["rows"] == len(before["frontier"]) and seen["figures"][0].startswith(f"{first['count']} × {first['type']}")
    assert {workers["type"] for cluster in after["frontier"] for workers in cluster["workers"]} <= set(seen["types"])
    assert seen["timeOpt"]["rule"] == "time-opt" and len(seen["timeOpt"]["frontier"]) > 1 and seen["fastest"]["rule"] == "auto"
    # The fields have just what was recommended, and the job runs so; what was foretold is remembered with it.
    assert seen["filled"] == [str(chosen["job"]["num_nodes"]), chosen["job"]["resources"]["cpus"].rstrip("+"), chosen["policy"]]
    assert job["state"] == "succeeded" and job["spec"]["num_nodes"] == chosen["job"]["num_nodes"], job
    assert [each["name"].endswith("-trial") for each in sorted(jobs, key=lambda each: each["id"])] == [True, False]
    told = profile["prediction"]
    assert told["is_over"] and told["cost_micro"] == chosen["cost_micro"] and told["rule"] == "auto"
    assert told["time_ms"]["expected"] == round(1000 * chosen["time_s"]["expected"])
    for words in ("What was foretold, by auto", "time it took", "what it cost", "than expected", profile["workers"][0]["machine_name"]):
        assert words in seen["profile"], (words, seen["profile"])
    assert_clean(seen)
