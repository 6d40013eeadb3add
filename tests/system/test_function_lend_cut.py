"""Functions as lenders, what takes its time: calls that are cut short and followed by others.

covers worker/caller.c, peer/tenancy_call.c
"""
import re

from functions import FunctionLender, log_of_rank, running_lease, submit
from serving import Market
from training import wait_for


def test_calls_are_no_longer_than_their_time_and_followed_by_others(tmp_path):
    market = Market(tmp_path / "market")
    token = market.sign_up("borrower")
    lender = FunctionLender(market, market.sign_up("lender"), tmp_path / "functions", "--function-memory", "128",
                            "--function-timeout", "5s")
    try:
        job = submit(market, token, 1, resources={"memory": "0.25+", "cpus": "0.1+", "labels": "function"},
                     train={"model": "lstm", "batch": 8, "target": {"accuracy": 1, "min_time": "1h"}},
                     sync={"policy": "fixed-adacomm", "local_steps": 800})
        wait_for("a push", lambda: (running_lease(market, token, job) or {"commits": 0})["commits"] >= 1)
        assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
        counts = wait_for("the end of its log", lambda: re.search(
            r"functions_called calls=(\d+) again=\d+ cut_short=\d+", log_of_rank(market, token, job, 0)))
        assert int(counts[1]) > 4, counts[0]  # two functions, of which none can do its half in one call
        wait_for("the end of all keepers", lambda: not lender.keepers())
    finally:
        lender.stop()
        market.stop()
