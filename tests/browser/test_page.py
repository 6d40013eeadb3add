"""The page in a real browser, over a real market with two lenders and a job that trains."""
import datetime

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from training import job_spec, running, wait_for


def submit(market, token, nodes, name, min_time):
    """Submits a job; min_time decides how long it runs."""
    spec = job_spec(market, token, nodes, min_time=min_time, max_run_time="20m")
    spec["resources"]["cpus"] = "0.1"  # speed does not matter here
    answer = market.post("/v1/jobs", {**spec, "name": name}, token)
    assert answer.status == 201, answer
    return answer.json["id"]


def cancel(market, token, job):
    assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200


def close_offer(market, token, name):
    offer = next(offer["id"] for offer in market.get("/v1/offers", token).json["items"]
                 if offer["machine_name"] == name)
    day = datetime.datetime.now(datetime.timezone.utc).date() + datetime.timedelta(days=2)
    answer = market.call("PATCH", f"/v1/offers/{offer}",
                         {"when": f"{day} 10:00 - {day} 12:00", "zone": "UTC"}, token)
    assert answer.status == 200, answer


def test_the_page_follows_a_job_live(tmp_path):
    with running(tmp_path) as (market, token, lender_token, _):
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("page.mjs", code["url"], tmp_path) as walk:
            walk.expect("ready")
            job = submit(market, token, 2, "digits", "1h")
            walk.answer()
            walk.expect("brief")
            wait_for("the lender to earn", lambda: market.get("/v1/account", lender_token).json["earned_microcredits"])
            cancel(market, token, job)
            submit(market, token, 2, "brief", "1s")
            walk.answer()
            walk.expect("succeeded")
            wait_for("the last bill", lambda: market.get("/v1/account", token).json["held_microcredits"] == 0)
            close_offer(market, lender_token, "lender-0")
            walk.answer()
            walk.expect("lender")
            earned = market.get("/v1/account", lender_token).json["earned_microcredits"]
            walk.answer(market.post("/v1/account/page-codes", {}, lender_token).json["url"])
            walk.expect("own job")
            own = submit(market, lender_token, 1, "own", "1h")
            walk.answer()
            walk.expect("enough")
            cancel(market, lender_token, own)
            walk.answer()
            seen = walk.end()
        entries = market.get("/v1/account/entries?limit=200", token).json["items"]
    assert seen["title"] == "Souk" and "code=" not in seen["address"]
    assert seen["state"] == "succeeded"
    assert "loss" in seen["curve"] and seen["curvePixels"] > 1000
    assert seen["machines"] == 3
    assert len(seen["closed"]) == 1 and seen["closed"][0].startswith("lender-0closed until ")
    assert seen["entries"] == min(25, len(entries))
    assert any("available" in figure for figure in seen["wallet"])
    assert any("succeeded" in event for event in seen["events"])
    assert any("welcome grant" in event for event in seen["events"])
    hour = next(figure for figure in seen["lender"] if "in the last hour" in figure)
    assert earned > 0 and f"{earned / 1e6:.6f}".rstrip("0") in hour, (hour, earned)
    assert_clean(seen)
