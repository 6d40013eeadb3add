"""Prices of a week in a real browser: a market whose jobs lie over the last eight days, made by the real engine."""
import json
import pathlib
import subprocess

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import PROGRAM, Market, audit

DAYS, JOBS, MACHINES = 8, 480, 6


def test_a_week_of_prices(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    fill = pathlib.Path(PROGRAM).resolve().with_name("api_fill")
    done = subprocess.run([fill, folder, str(JOBS), str(MACHINES), str(DAYS)], capture_output=True, text=True, check=True)
    token = json.loads(done.stdout)["token"]
    market = Market(folder, "--no-local-lender")
    try:
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("market_week.mjs", code["url"], tmp_path) as walk:
            seen = walk.end()
    finally:
        stopped = market.stop()
    assert stopped == 0 and audit(folder)[0] == 0
    week, today = seen["prices"]["last_7_days"], {slot["slot"] for slot in seen["prices"]["slots"]}
    # All of the week, but for a slot that ended before the market was there to see it.
    assert 27 <= len(week) <= 28 and len({slot["core_hour_microcredits"] for slot in week}) > 20
    assert len(seen["past"]) == len([slot for slot in week if slot["slot"] not in today]) > 20
    assert str(len(week)) in seen["chart"] and "wanted" in seen["story"]
    assert_clean(seen)
