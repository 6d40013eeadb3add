"""The page over a market with thousands of entries and more accounts than fit a page, made by the real engine."""
import json
import pathlib
import subprocess

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import PROGRAM, Market, audit
from training import submit

JOBS, MACHINES = 700, 200


def count_entries(market, token):
    count, cursor = 0, ""
    while cursor is not None:
        page = market.get(f"/v1/account/entries?limit=500{cursor and '&cursor=' + cursor}", token).json
        count, cursor = count + len(page["items"]), page["next_cursor"]
    return count


def test_thousands_of_entries_and_many_accounts(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    fill = pathlib.Path(PROGRAM).resolve().with_name("api_fill")
    done = subprocess.run([fill, folder, str(JOBS), str(MACHINES)], capture_output=True, text=True, check=True)
    token = json.loads(done.stdout)["token"]
    market = Market(folder, "--no-local-lender")
    try:
        operator = market.operator_token()
        entries = count_entries(market, token)
        pages = [market.post("/v1/account/page-codes", {}, whose).json["url"] for whose in (token, operator)]
        with Walk("many.mjs", pages[0], tmp_path, pages[1]) as walk:
            walk.expect("job")
            submit(market, token, 1)
            walk.answer()
            seen = walk.end()
    finally:
        stopped = market.stop()
    assert stopped == 0 and audit(folder)[0] == 0
    assert seen["first"] == 25 and 3000 <= seen["shown"] <= seen["shownAfter"] and seen["drawn"] < 80
    assert seen["readAgain"] == 25 and seen["lines"] >= entries > 3000
    assert seen["accounts"] == 50 and seen["moreAccounts"] == 100 and seen["newest"] == "borrower"
    assert seen["found"] == ["lender-9", *(f"lender-9{digit}" for digit in range(10))]
    assert_clean(seen)
