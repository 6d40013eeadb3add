"""The page in a real browser, over a real market with two lenders and a job that trains."""
import datetime
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "system"))
from training import running, submit  # noqa: E402


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
        browser = subprocess.Popen(["node", str(HERE / "page.mjs"), code["url"], str(tmp_path)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # The job is over within seconds: however long the browser takes to start, it sees it run.
        job = submit(market, token, 2) if browser.stdout.readline() == "ready\n" else 0
        if browser.stdout.readline() == "succeeded\n":
            close_offer(market, lender_token, "lender-0")
        out, errors = browser.communicate(timeout=150)
        assert browser.returncode == 0, errors
        seen = json.loads(out)
        entries = market.get("/v1/account/entries?limit=200", token).json["items"]
    assert seen["title"] == "Souk" and "code=" not in seen["address"]
    assert seen["state"] == "succeeded" and job > 0
    assert "loss" in seen["curve"] and seen["curvePixels"] > 1000
    assert seen["machines"] == 3
    assert len(seen["closed"]) == 1 and seen["closed"][0].startswith("lender-0closed until ")
    assert seen["entries"] == min(25, len(entries))
    assert any("available" in figure for figure in seen["wallet"])
    assert seen["foreign"] == [] and seen["console"] == [], seen
    assert seen["failed"] == []
