"""A machine that is lost while it tells its part: another one tells it.

covers cli/predict_job.c
"""
from predicting import LEAST, open_market, souk, start, train, write_rows
from serving import HUNG_S
from training import wait_for


def leases(market):
    jobs = market.get("/v1/jobs", market.token).json["items"]
    return market.get(f"/v1/jobs/{jobs[0]['id']}", market.token).json["leases"] if jobs else []


def test_a_lost_machines_part_is_told_by_another(tmp_path):
    with open_market(tmp_path, "first", "second", "third") as market:
        model, rows = train(market, tmp_path), write_rows(tmp_path / "rows.csv", 100000)
        here = souk(market, "model", "predict", model, "--data", rows).out
        process = start(market, "model", "predict", model, "--data", rows, "-n", 2, "-y", *LEAST, "-o", tmp_path / "told.csv")
        wait_for("both ranks to run", lambda: sum(lease["state"] == "running" for lease in leases(market)) == 2, step=0.02)
        lost = leases(market)[0]
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
