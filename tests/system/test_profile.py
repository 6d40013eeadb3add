"""What a real run leaves behind of itself: its profile, kept across a restart, shown to its account alone, deleted
at its wish and with it.

covers server/handle_profile.c, client/api_profile.c, cli/profile_view.c, cli/command_profiles.c, server/upkeep.c
"""
import json
import pathlib
import sqlite3

import pytest

from program import Souk
from training import running, submit, wait_for

SCHEMAS = json.loads((pathlib.Path(__file__).resolve().parents[2] / "docs/openapi/openapi.json")
                     .read_text())["components"]["schemas"]
ENDED = ("succeeded", "failed", "cancelled")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with running(tmp_path_factory.mktemp("place")) as made:
        yield made


def wait_for_end(market, token, job):
    def ended():
        found = market.get(f"/v1/jobs/{job}", token).json
        return found if found["state"] in ENDED else None
    return wait_for("the job's end", ended)


def profile_of(market, token, job):
    return market.get(f"/v1/jobs/{job}/profile", token)


def kept_profile(market, token, job):
    """Once the end is in it."""
    def final():
        found = profile_of(market, token, job)
        return found.json if found.status == 200 and found.json["ended_ms"] else None
    return wait_for("the profile", final)


def shown_of(market, token, job):
    """But for when it was written, and for the machines' links, which are measured when nothing runs there."""
    profile = profile_of(market, token, job).json
    links = {"bandwidth_kbit": 0, "rtt_us": 0}
    return {**profile, "updated_ms": 0, "workers": [{**worker, **links} for worker in profile["workers"]]}


def put(market, path, body, token):
    return market.call("PUT", path, body, token)


def commands(market, token, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    souk = Souk(home)
    souk.variables |= {"SOUK_SERVER": market.url, "SOUK_TOKEN": token}
    return souk


def foretell(market, token, job, **more):
    told = {"rule": "cost-opt", "time_ms": {"low": 5000, "expected": 10000, "high": 20000},
            "cost_micro": {"low": 1, "expected": 2, "high": 3}, **more}
    return put(market, f"/v1/jobs/{job}/prediction", told, token)


def check_fields(profile):
    assert set(profile) == set(SCHEMAS["Profile"]["properties"])
    for worker in profile["workers"]:
        assert set(worker) == set(SCHEMAS["ProfileWorker"]["properties"])
    assert set(profile["prediction"]) == set(SCHEMAS["PredictionOutcome"]["properties"])


def check_figures(profile, job):
    workers = [w for w in profile["workers"] if w["role"] == "worker"]
    assert len(workers) == 2 and profile["lease_count"] == 3
    for worker in workers:
        assert worker["steps"] > 0 and worker["step_ms"] > 0 and worker["compute_ms"] > 0
        assert worker["step_ms"] == pytest.approx(worker["compute_ms"] / worker["steps"], rel=0.05)
        # A logistic model of 7850 numbers, both ways with each push.
        assert worker["sent_bytes"] > 1000 and worker["received_bytes"] > 1000
        seconds = (worker["compute_ms"] + worker["transfer_ms"] + worker["wait_ms"]) / 1000
        assert worker["sent_bytes_per_s"] == pytest.approx(worker["sent_bytes"] / seconds, rel=0.05)
        assert worker["cpu_ms"] > 0 and worker["cores_used"] > 0 and worker["memory_peak_bytes"] > 1 << 20
        assert worker["speed_weight_milli"] > 0 and worker["loss"] > 0
    assert profile["steps"] == sum(w["steps"] for w in workers)
    assert profile["parameter_count"] == 7850 and profile["batch"] == 16
    assert profile["loss_per_second"] < 0 and profile["loss_per_step"] < 0
    assert profile["spent_microcredits"] == job["spent_microcredits"]


def check_prediction(profile, job):
    outcome = profile["prediction"]
    assert outcome["is_over"] and outcome["rule"] == "cost-opt"
    assert outcome["actual_time_ms"] == job["ended_ms"] - job["started_ms"]
    assert outcome["time_error"] == pytest.approx(outcome["actual_time_ms"] / 10000 - 1)
    assert outcome["actual_cost_micro"] == job["spent_microcredits"]


def test_profiles_go_at_their_accounts_wish_and_with_it(place, tmp_path):
    market, _, _, _ = place
    token = market.sign_up("leaver")
    account = market.get("/v1/account", token).json["id"]
    job = submit(market, token, 1, min_time="1s")
    assert wait_for_end(market, token, job)["state"] == "succeeded"
    kept_profile(market, token, job)
    assert put(market, "/v1/account/profiles", {"shared": True}, token).json["shared"]

    def rows():
        """As the store has them: nobody may ask any more."""
        with sqlite3.connect(f"file:{market.folder}/market.db?mode=ro", uri=True) as store:
            return sum(store.execute(f"SELECT count(*) FROM {table} WHERE account = {account}").fetchone()[0]
                       for table in ("profiles", "predictions", "profile_choices"))
    assert rows() == 2
    souk = commands(market, token, tmp_path)
    souk("account", "profiles", "--delete", code=2)  # nobody there to say yes
    assert rows() == 2
    souk("account", "profiles", "--delete", "-y")
    assert "has no profile" in souk("job", "show", job, "--profile", code=3).stderr
    assert rows() == 1  # what it said of sharing stays
    assert market.call("DELETE", "/v1/account", {"name": "leaver"}, token).status == 204
    wait_for("the end of all it left", lambda: rows() == 0)


def test_a_run_leaves_a_profile_that_outlives_the_market(place, tmp_path):
    market, token, lender_token, _ = place
    job = submit(market, token, 2, min_time="3s")
    assert foretell(market, token, job).status == 204
    assert foretell(market, token, job, time_ms={"low": 3, "expected": 2, "high": 4}).status == 400
    assert foretell(market, lender_token, job).status == 404
    live = wait_for("figures of the run", lambda: (
        lambda answer: answer.json if answer.status == 200 and answer.json["steps"] else None)(
            profile_of(market, token, job)))
    assert live["state"] != "pending" and live["prediction"]["is_over"] == (live["state"] == "succeeded")

    done = wait_for_end(market, token, job)
    assert done["state"] == "succeeded", done
    profile = kept_profile(market, token, job)
    check_fields(profile)
    check_figures(profile, done)
    check_prediction(profile, done)
    assert foretell(market, token, job).status == 409
    assert profile_of(market, lender_token, job).status == 404  # another's

    profile = shown_of(market, token, job)
    market.stop()
    market.start()  # at another address: it is nobody's any more but this test's
    assert shown_of(market, token, job) == profile
    check_commands(market, token, job, tmp_path)
    check_retention(market, token, job)


def check_commands(market, token, job, tmp_path):
    souk = commands(market, token, tmp_path)
    shown = souk("job", "show", job, "--profile").stdout
    for word in ("logistic on fashion-mnist, batch 16", "STEP", "COMPUTES", "SENDS", "lender-0",
                 "Foretold:", "by cost-opt", "It was:", "than foretold"):
        assert word in shown, shown
    assert json.loads(souk("job", "show", job, "--profile", "--json").stdout)["job"] == job
    assert "runs alone" in souk("account", "profiles").stdout
    assert "operator has not allowed it" in souk("account", "profiles", "--share").stdout
    assert "give one of them" in souk("account", "profiles", "--share", "--own", code=2).stderr
    assert "runs alone" in souk("account", "profiles", "--own").stdout


def check_retention(market, token, job):
    market.stop()
    market.options += ("--profile-keep", "1s")
    market.start()
    wait_for("the end of its retention", lambda: profile_of(market, token, job).status == 404)
