"""A machine that is lost while it tells its part: another one tells it.

covers cli/predict_job.c
"""
import os
import signal

from predicting import LEAST, open_market, souk, start, train, write_rows
from serving import HUNG_S
from training import wait_for


def leases(market):
    jobs = market.get("/v1/jobs", market.token).json["items"]
    return market.get(f"/v1/jobs/{jobs[0]['id']}", market.token).json["leases"] if jobs else []


def running(market):
    return [lease for lease in leases(market) if lease["state"] == "running"]


def test_a_lost_machines_part_is_told_by_another(tmp_path):
    with open_market(tmp_path, "first", "second", "third") as market:
        assert market.call("PUT", "/v1/settings", {"lost_ms": 500}, market.operator_token()).status == 200
        model, rows = train(market, tmp_path), write_rows(tmp_path / "rows.csv", 100000)
        here = souk(market, "model", "predict", model, "--data", rows).out
        process = start(market, "model", "predict", model, "--data", rows, "-n", 2, "-y", *LEAST, "-o", tmp_path / "told.csv")
        lost = wait_for("a rank to run", lambda: running(market), step=0.02)[0]
        # Held still, it does not end before the other rank has begun.
        for pid in market.lenders[lost["machine_name"]].keepers().values():
            os.kill(pid, signal.SIGSTOP)
        wait_for("the other rank", lambda: any(
            lease["rank"] != lost["rank"] and lease["state"] in ("running", "ended") for lease in leases(market)), step=0.02)
        assert lost["id"] in [lease["id"] for lease in running(market)], leases(market)
        market.lenders[lost["machine_name"]].die()
        out, err = process.communicate(timeout=HUNG_S)
        assert process.returncode == 0 and out == "", (out, err)
        words = " ".join(err.split())
        assert f'rank {lost["rank"]} on "{lost["machine_name"]}" was' in words and "it starts again on" in words, err
        assert (tmp_path / "told.csv").read_text() == here
        assert len(leases(market)) == 3
        # Back again, it clears away what the power cut left.
        market.lenders[lost["machine_name"]].start()
        folder = tmp_path / lost["machine_name"] / "leases"
        wait_for("its folders to go", lambda: not list(folder.iterdir()))
