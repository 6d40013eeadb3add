"""The wizard "Train a model" by the keyboard alone: a job for the cheapest slot of a market that has seen one end."""
import bisect
import contextlib

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market
from test_prices import SLOT_MS, market_over_a_slot, wait_for_slot_after
from test_train_wizard import needs_fashion

SPENDER = {"name": "all", "runtime": "command", "run": "true", "resources": {"cpus": "1"}}


@contextlib.contextmanager
def market_after_a_slot(tmp_path):
    """Nobody wanted what was lent in it: the same hours of tomorrow are cheaper than the others."""
    market, first = market_over_a_slot(tmp_path)
    try:
        wait_for_slot_after(market, first["slot"])
        yield market
    finally:
        market.stop()


def spend_all(market, token):
    """A job that waits holds what the account has, but for what a minute costs."""
    def asked(minutes):
        return {**SPENDER, "market": {"max_run_time": f"{minutes}m", "start": "cheapest before 2d"}}

    def is_dear(minutes):
        checked = market.post("/v1/jobs/check", asked(minutes), token).json
        return checked["held_microcredits"] > checked["quote"]["available_microcredits"]

    minutes = bisect.bisect_left(range(1, 30 * 24 * 60), True, key=is_dear)
    answer = market.post("/v1/jobs", asked(minutes), token)
    assert answer.status == 201, answer
    return answer.json["id"]


@needs_fashion
def test_a_job_is_booked_for_the_cheapest_slot_by_the_keyboard(tmp_path):
    with market_after_a_slot(tmp_path) as market:
        token = market.sign_up("borrower")
        code = market.post("/v1/account/page-codes", {}, token).json
        prices = market.get("/v1/prices").json["slots"]
        with Walk("train_cheapest.mjs", code["url"], tmp_path) as walk:
            walk.expect("spend")
            spender = spend_all(market, token)
            walk.answer()
            walk.expect("give")
            assert market.post(f"/v1/jobs/{spender}/cancel", {}, token).status == 200
            walk.answer()
            seen = walk.end()
        jobs = {job["id"]: job for job in market.get("/v1/jobs", token).json["items"]}
    to_come = [slot for slot in prices if slot["state"] != "ended"]
    cheapest = min(to_come[:4], key=lambda slot: slot["core_hour_microcredits"])
    # The same hours as those of the slot that ended, in 18 hours; and until then what is dearer.
    assert cheapest["start_ms"] == to_come[0]["start_ms"] + 3 * SLOT_MS
    assert [at for at, slot in enumerate(seen["slots"]) if slot["isCheapest"]] == [3], seen["slots"]
    assert float(seen["slots"][3]["cost"]) < float(seen["slots"][0]["cost"])
    assert "cheapest before" in seen["file"] and 'min_time: "2s"' in seen["file"]
    assert "in the slot from" in seen["waits"] and f"{seen['slots'][3]['cost']} credits" in seen["waits"]
    assert "credits are available" in seen["refused"]
    assert set(jobs) == {spender, seen["job"]}, "a refusal and two keys are one job"
    job = jobs[seen["job"]]
    assert (job["state"], job["not_before_ms"]) == ("pending", cheapest["start_ms"])
    assert 0 < job["held_microcredits"] == job["quoted_microcredits"]
    assert_clean(seen)
