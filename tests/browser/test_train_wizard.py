"""The wizard "Train a model" in a real browser: real lenders train what it submits."""
import pathlib
import subprocess

import pytest

from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from serving import PROGRAM
from test_prices import offset_that_ends_a_slot_in
from training import running, wait_for

FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
needs_fashion = pytest.mark.skipif(not FASHION.exists(), reason="dataset-fashion-mnist is not installed")


@needs_fashion
def test_a_built_in_model_is_trained_through_the_wizard(tmp_path):
    # Begin a new slot, so that none ends during the test.
    slots = ("--slot-offset", offset_that_ends_a_slot_in(5 * 3600_000))
    with running(tmp_path, "--no-local-lender", *slots, "--listen", f"127.0.0.1:{own_port()}") as (market, token, _, _):
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("train_wizard.mjs", code["url"], tmp_path) as walk:
            walk.expect("stop")
            market.stop()
            walk.answer()
            walk.expect("start")
            market.start()
            wait_for("the lenders again", lambda: 3 == sum(
                one["state"] == "online" for one in market.get("/v1/machines", token).json["items"]))
            walk.answer()
            seen = walk.end()
        jobs = market.get("/v1/jobs", token).json["items"]
        sets = {one["name"]: one for one in market.get("/v1/datasets").json["items"]}
    assert seen["beside"].startswith("Epochs at most must be a whole number") and seen["count"].endswith("2")
    takes = {name: any(line.startswith(f"{name}tables and images") for line in seen["models"]) for name in ("mlp", "logistic", "svm", "lenet5")}
    assert takes == {"mlp": True, "logistic": True, "svm": True, "lenet5": False}
    assert any("train.epochs" in line for line in seen["mistakes"]) and len(seen["mistakes"]) == 2
    assert seen["typedAfterReload"] == ["clothes", "1", True]
    assert seen["hashes"] == [part["manifest"] for part in sets["fashion-mnist"]["parts"]]
    # Of nine slots of six hours, the first of which runs, those that begin 20 hours from now or later.
    assert seen["beyond"] in (4, 5)
    assert seen["slots"] == 9 and seen["cost"].endswith("credits")
    assert seen["costAfterRestart"] == "2"
    assert "model: logistic" in seen["file"] and "name: clothes" in seen["file"]
    # Only what was chosen, and what is no default; and it is a job file.
    assert not any(word in seen["file"] for word in ("sync:", "seed:", "shards:", "start:", "num_nodes:", "runtime:")), seen["file"]
    (tmp_path / "job.yaml").write_text(seen["file"])
    validated = subprocess.run([PROGRAM, "job", "validate", tmp_path / "job.yaml"], capture_output=True, text=True)
    assert validated.returncode == 0, validated.stderr
    # What is held is for five minutes, what is expected for one of them; a slot's price is told apart from machines'.
    cost, _, lasts = seen["expected"].partition(" ")
    assert abs(float(cost) - float(seen["held"]) / 5) <= 0.02 * float(seen["held"]) and "for 1 min" in lasts
    assert ("reference speed" in seen["apart"]) == (seen["cost"] != f"{seen['held']} credits")
    assert float(seen["held"]) > 0 and seen["draftAfter"] == ""
    assert [job["id"] for job in jobs] == [seen["job"]], "two clicks are one job"
    assert jobs[0]["state"] == "succeeded" and jobs[0]["test_accuracy"] > 0.5
    assert_clean(seen)
