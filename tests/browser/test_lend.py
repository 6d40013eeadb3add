"""A lender's way through the page, over a real market that restarts, a real lender and a job that trains."""
import re
import shlex

from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from serving import PROGRAM, Market, audit
from training import Lender, job_spec, wait_for


class Lent(Lender):
    """By the command that the page shows."""

    def __init__(self, words, folder):
        assert words[:2] == ["souk", "lend"], words
        self.command = [PROGRAM, *words[1:], "--state-dir", str(folder), "--name", "heron", "--roles", "worker", "--cores", "1.5",
                        "--memory", "2GiB", "--disk", "4GiB", "--no-watch"]
        self.log_path = f"{folder}.log"
        self.start()


def offer_of(market, token, machine):
    return market.get(f"/v1/machines/{machine}/offers", token).json["items"][0]


def test_a_lender_adds_sets_and_pauses_a_machine(tmp_path):
    market = Market(tmp_path / "market", "--listen", f"127.0.0.1:{own_port()}")
    token, borrower = market.sign_up("lender"), market.sign_up("borrower")
    lender = None
    try:
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("lend.mjs", code["url"], tmp_path) as walk:
            words = shlex.split(walk.hear())
            lender = Lent(words, tmp_path / "heron")
            walk.answer()
            walk.restart(market)
            walk.expect("saved")
            machine = market.get("/v1/machines?mine=true", token).json["items"][0]["id"]
            saved = offer_of(market, token, machine)
            walk.answer()
            walk.expect("job")
            opened = offer_of(market, token, machine)
            spec = job_spec(market, borrower, 1, min_time="1h", max_run_time="20m")  # until the test cancels it
            spec["resources"]["cpus"] = "0.2"  # speed does not matter here
            job = market.post("/v1/jobs", spec, borrower).json["id"]
            walk.answer()
            walk.expect("done")
            assert market.post(f"/v1/jobs/{job}/cancel", {}, borrower).status == 200
            wait_for("the last bill", lambda: market.get("/v1/account", borrower).json["held_microcredits"] == 0)
            walk.answer()
            seen = walk.end()
        known = market.get(f"/v1/machines/{machine}", token).json
    finally:
        if lender:
            lender.stop()
        stopped = market.stop()
    assert stopped == 0 and audit(tmp_path / "market")[0] == 0
    assert seen["machine"] == machine and seen["mayNotSave"] and "no hour" in seen["noEstimate"]
    assert seen["typedAfterReload"] == "borrower" and seen["typedAfterRestart"] == "borrower, lender"
    assert saved["when"] == "Mon-Fri 18:00-22:00; Sat 22:00-23:00; Sun 06:00-10:00"
    assert saved["minimum"]["core_micro"] == 125 and saved["minimum"]["ram_micro"] == 0
    assert saved["audience"] == "accounts" and sorted(saved["accounts"]) == ["borrower", "lender"]
    assert 0 < saved["cores_milli"] < 1500 and saved["ram_bytes"] == 2**29
    assert opened["when"] == "always" and opened["audience"] == "anyone"
    assert opened["minimum"]["core_micro"] == 0 and opened["cores_milli"] == 1500 and opened["ram_bytes"] == 2**31
    assert f"Job {job}" in seen["lease"] and "running" in seen["lease"]
    assert 0 < float(seen["used"]) < 8  # cores
    earned = known["earned_microcredits"]
    shown = float(re.search(r"[0-9.]+", seen["earned"])[0]) * 1e6  # of a few digits
    assert earned > 0 and abs(shown - earned) <= max(1, earned / 100), (earned, seen["earned"])
    assert seen["earned"] in seen["earnings"]
    reliability = known["reputation"]["reliability_milli"]
    assert seen["reputation"].endswith(f"= {reliability / 1000:.3f}")
    assert_clean(seen)
