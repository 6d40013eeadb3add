"""The wallet in a real browser: a lender that earned by a real job reads its statement and gives some of it away."""
import csv
import io

from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from training import job_spec, running, wait_for

HTML = "<img src=x onerror=alert(1)><b>bold</b>"


def test_statement_csv_and_a_gift(tmp_path):
    options = ("--no-local-lender", "--listen", f"127.0.0.1:{own_port()}", "--link-listen", f"127.0.0.1:{own_port()}")
    with running(tmp_path, *options) as (market, token, lender_token, _):
        answer = market.call("PUT", "/v1/settings", {"proving_microcredits": 0}, market.operator_token())
        assert answer.status == 200, answer
        spec = job_spec(market, token, 2)
        spec["resources"]["cpus"] = "0.1"  # pays by the second, not by work
        job = market.post("/v1/jobs", spec, token).json["id"]
        wait_for("the job's end", lambda: market.get(f"/v1/jobs/{job}", token).json["state"] == "succeeded")
        wait_for("the last bill", lambda: market.get("/v1/account", token).json["held_microcredits"] == 0)
        before = market.get("/v1/account", token).json["available_microcredits"]
        entries = market.get("/v1/account/entries?limit=500", lender_token).json["items"]
        paid = [entry for entry in entries if entry["kind"] == "post"]
        code = market.post("/v1/account/page-codes", {}, lender_token).json
        with Walk("wallet.mjs", code["url"], tmp_path, job) as walk:
            walk.restart(market)
            seen = walk.end()
        after = market.get("/v1/account", token).json["available_microcredits"]
        given = market.get("/v1/account/entries?kind=transfer", token).json["items"]
    assert len(paid) > 2
    assert len(seen["all"]) == min(25, len(entries))
    assert len(seen["grants"]) == len([entry for entry in entries if entry["kind"] == "grant"]) > 0
    assert len([row for row in seen["grants"] if "welcome grant" in row]) == 1
    assert len([row for row in seen["grants"] if "matched grant" in row]) == len(seen["grants"]) - 1 > 0
    assert seen["kindAfterReload"] == "grant"
    assert 0 < len(seen["machine"]) < len(paid)
    assert len(seen["job"]) == min(25, len([entry for entry in entries if entry["job"] == job]))
    read = list(csv.DictReader(io.StringIO(seen["csv"])))
    assert seen["csvName"] == "statement.csv"
    assert [int(row["id"]) for row in read] == [entry["id"] for entry in entries]
    assert seen["sentWrong"] == 0 and seen["sentOnce"] == 1
    assert seen["asked"] == "Give 0.000002 credits to borrower?"
    assert seen["typed"] == ["borrower", "0.000002", HTML] and seen["typedWhileAway"] == "0.000003"
    assert seen["memo"] == HTML and seen["images"] == 0
    assert [entry["amount_microcredits"] for entry in given] == [3, 2] and after - before == 5
    assert_clean(seen)
