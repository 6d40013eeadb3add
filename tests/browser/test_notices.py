"""The browser's own notifications, by real events of a market with two lenders and real jobs."""
from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from training import job_spec, running, wait_for


def test_what_happens_is_told_in_the_background(tmp_path):
    with running(tmp_path) as (market, token, lender_token, lenders):
        offer = next(offer["id"] for offer in market.get("/v1/offers?mine=true", lender_token).json["items"]
                     if offer["machine_name"] == "lender-1")

        def submit(whose):
            answer = market.post("/v1/jobs", job_spec(market, whose, 1, min_time="1s"), whose)
            assert answer.status == 201, answer
            return answer.json["id"]

        def ends(job, whose):
            wait_for("the job's end", lambda: market.get(f"/v1/jobs/{job}", whose).json["state"] == "succeeded")

        acts = {
            "pause": lambda: market.post(f"/v1/offers/{offer}/pause", {}, lender_token),
            "resume": lambda: market.post(f"/v1/offers/{offer}/resume", {}, lender_token),
            "job": lambda: ends(submit(token), token),
            "own job": lambda: ends(submit(lender_token), lender_token),
            "lose": lambda: lenders[0].stop(),
        }
        code = market.post("/v1/account/page-codes", {}, lender_token).json
        with Walk("notices.mjs", code["url"], tmp_path) as walk:
            for word in ("pause", "resume", "job", "own job", "lose", "pause", "resume", "pause", "resume"):
                walk.expect(word)
                acts[word]()
                walk.answer()
            seen = walk.end()
    assert seen["disabled"] == 3 and seen["askedBefore"] == 0 and seen["on"] == 3
    titles = [title for title in seen["titles"] if title != "Souk"]
    assert len([title for title in titles if "earned" in title]) == 1, titles  # not one a tick
    assert titles.count("lender-1 is paused") == titles.count("lender-1 is back") == 1, titles
    assert titles.count("digits succeeded") == titles.count("lender-0 is lost") == 1, titles
    assert "It cost" in seen["ended"]["body"] and seen["ended"]["tag"].startswith("job-")
    assert seen["quiet"] == []
    assert seen["askedOnLoad"] == 0 and seen["askedOnClick"] == 1
    assert_clean(seen)
