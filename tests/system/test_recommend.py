"""Which machines for a job: asked of a real market with real lenders, before and after a run, and what is refused.

covers server/handle_recommend.c, client/api_recommend.c
"""
import functools
import json
import pathlib

import pytest

from program import Souk
from training import job_spec, running, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = json.loads((ROOT / "docs/openapi/openapi.json").read_text())["components"]["schemas"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with running(tmp_path_factory.mktemp("place")) as made:
        yield made


@functools.cache
def first_spec(market, token):
    """Its data are sent once."""
    return job_spec(market, token, 1, min_time="2s")


def spec_of(market, token, **more):
    spec = first_spec(market, token)
    return {**spec, "sync": {"policy": "bsp", "gamma": "1s", "tick": "1s"}, **more}


def ask(market, token, **more):
    return market.post("/v1/recommendations", {"job": spec_of(market, token), **more}, token)


def merged(job, fields):
    """As a client sets the fields of a recommendation in its job."""
    out = dict(job)
    for name, value in fields.items():
        out[name] = merged(job.get(name, {}), value) if isinstance(value, dict) else value
    return out


def check_fields(value, name):
    assert set(value) == set(SCHEMAS[name]["properties"]), name


def check_figures(cluster):
    """What a cluster's time and cost are made of adds up."""
    figures = cluster["figures"]
    check_fields(figures, "RecommendedFigures")
    expected, hourly = cluster["time_s"]["expected"], cluster["cost_micro_per_hour"]
    assert abs(figures["start_s"] + figures["work_s"] - expected) <= 1e-6 * expected
    work = figures["samples"] / figures["batch"] / figures["steps_per_s"] * figures["loss_factor"] * figures["correction"]
    assert abs(max(work, figures["least_s"]) - figures["work_s"]) <= 1e-6 * figures["work_s"]
    parts = sum(part["count"] * part["price_micro_per_hour"] for part in cluster["workers"])
    assert parts + cluster["server"]["price_micro_per_hour"] == hourly
    assert abs(hourly * expected / 3600 - cluster["cost_micro"]["expected"]) <= 1
    assert 0 < figures["steps_per_s"] <= figures["compute_steps_per_s"] * (1 + 1e-9)


def check_answer(answer):
    check_fields(answer, "Recommendation")
    for cluster in [answer["chosen"], *answer["frontier"]]:
        check_fields(cluster, "RecommendedCluster")
        for workers in cluster["workers"]:
            check_fields(workers, "RecommendedWorkers")
        check_figures(cluster)
        time, cost = cluster["time_s"], cluster["cost_micro"]
        is_bound = "target-unknown" in {advice["code"] for advice in answer["advice"]}
        assert (time["low"] == 0) == is_bound and time["low"] <= time["expected"] <= time["high"]
        assert 0 <= cost["low"] <= cost["expected"] <= cost["high"]
    assert answer["frontier"][answer["chosen_index"]] == answer["chosen"]


def workers_of(cluster):
    return sum(part["count"] for part in cluster["workers"])


def run(market, token, chosen):
    """Submits the job as recommended, with what was foretold, and waits for its end."""
    answer = market.post("/v1/jobs", merged(spec_of(market, token), chosen["job"]), token)
    assert answer.status == 201, answer
    job = answer.json["id"]
    told = {"rule": "auto", "is_bound": chosen["time_s"]["low"] == 0, "cost_micro": chosen["cost_micro"],
            "time_ms": {name: round(1000 * value) for name, value in chosen["time_s"].items()}}
    assert market.call("PUT", f"/v1/jobs/{job}/prediction", told, token).status == 204
    done = wait_for("the job's end", lambda: (
        lambda j: j if j["state"] in ("succeeded", "failed", "cancelled") else None)(
            market.get(f"/v1/jobs/{job}", token).json))
    assert done["state"] == "succeeded", done
    wait_for("its profile", lambda: market.get(f"/v1/jobs/{job}/profile", token).status == 200)
    return done


def test_a_run_makes_the_next_recommendation_surer(place):
    market, token, _, _ = place
    before = ask(market, token, wish="cheapest").json
    check_answer(before)
    assert before["observations"] == 0 and before["error"] == {"count": 0, "typical": None}
    assert before["trial"]["needed"] and before["chosen"]["policy"] == "bsp"
    assert {"trial-first", "target-unknown"} <= {advice["code"] for advice in before["advice"]}

    done = run(market, token, before["chosen"])
    ranks = {lease["rank"] for lease in done["leases"] if lease["role"] == "worker"}
    assert len(ranks) == workers_of(before["chosen"])

    after = wait_for("what the run showed", lambda: (
        lambda answer: answer if answer["observations"] else None)(ask(market, token).json))
    check_answer(after)
    # What was foretold was the most it may take: nobody learns from how far that was off.
    assert after["observations"] == 1 and after["error"] == {"count": 0, "typical": None}
    assert "target-unknown" not in {advice["code"] for advice in after["advice"]}
    assert [part["runs"] for part in before["chosen"]["workers"]] == [0] * len(before["chosen"]["workers"])
    assert [part["runs"] for part in after["chosen"]["workers"]] == [1] * len(after["chosen"]["workers"])
    assert before["chosen"]["time_s"]["low"] == 0 < after["chosen"]["time_s"]["low"]
    assert after["chosen"]["time_s"]["high"] < before["chosen"]["time_s"]["high"]
    profile = market.get(f"/v1/jobs/{done['id']}/profile", token).json
    assert profile["prediction"]["is_over"] and profile["prediction"]["is_bound"] and profile["signature"] == after["signature"]


def test_a_budget_in_all_is_what_the_job_may_cost(place):
    market, token, _, _ = place
    budget = 3 * ask(market, token).json["chosen"]["cost_micro"]["high"]
    chosen = ask(market, token, budget_micro=budget, deadline_s=600).json["chosen"]
    limits = chosen["job"]["market"]
    assert round(1e6 * float(limits["max_total_cost"])) == budget
    assert 0 < int(limits["max_run_time"].removesuffix("s")) <= 600
    done = run(market, token, chosen)
    assert done["max_total_microcredits"] == budget and 0 < done["quoted_microcredits"] <= budget, done


def commands(market, token, folder):
    home = folder / "home"
    home.mkdir()
    souk = Souk(home)
    souk.variables |= {"SOUK_SERVER": market.url, "SOUK_TOKEN": token, "COLUMNS": "200"}
    return souk


def test_the_command_says_plainly_what_is_wrong(place, tmp_path):
    market, token, _, _ = place
    souk = commands(market, token, tmp_path)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(spec_of(market, token)))
    for arguments, code, words in (
            (("--wish", "fastest"), 2, "--budget"),
            (("--rule", "cost-opt"), 2, "--budget"),
            (("--budget", "0.000001/h"), 6, "an hour"),
            (("--budget", "$"), 2, "--budget"),
            (("--budget", "$0.000001/h"), 6, "an hour"),
            (("--budget", "much"), 2, "--budget"),
            (("--worker-type", "m4.large"), 2, "--worker-type"),
            (("--rule", "cheap"), 2, "cost-opt")):
        refused_ = souk("recommend", path, *arguments, code=code)
        assert words in refused_.stderr, refused_.stderr
        assert not any(field in refused_.stderr for field in ("_micro", "worker_max", "/v1/")), refused_.stderr
    path.write_text(json.dumps({"name": "own", "run": "true"}))
    refused_ = souk("recommend", path, code=2)
    assert "runtime native" in refused_.stderr and "/v1/" not in refused_.stderr, refused_.stderr


def test_machines_that_others_have_are_said_to_be_busy(place, tmp_path):
    market, token, _, _ = place
    souk = commands(market, token, tmp_path)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(spec_of(market, token)))
    spec = spec_of(market, token, num_nodes=2)
    spec["train"] = {**spec["train"], "target": {"accuracy": 0.5, "min_time": "50s"}}
    job = market.post("/v1/jobs", spec, token).json["id"]
    busy = wait_for("both machines to be taken", lambda: (
        lambda answer: answer if answer.status == 503 else None)(ask(market, token)))
    refused(busy, 503, "those that would do are busy", "more at most", "a job that is submitted waits")
    told = souk("recommend", path, code=7)
    assert "are busy" in told.stderr and "/v1/" not in told.stderr, told.stderr
    assert market.call("POST", f"/v1/jobs/{job}/cancel", {}, token).status in (200, 202)
    wait_for("both machines to be free", lambda: ask(market, token).status == 200)


def test_the_papers_rules_take_types_that_are_on_offer(place):
    market, token, _, _ = place
    for rule in ("cost-opt", "time-opt", "scala-opt"):
        answer = ask(market, token, rule=rule, worker_max=2).json
        check_answer(answer)
        assert answer["rule"] == rule and 1 <= workers_of(answer["chosen"]) <= 2
        assert answer["chosen"]["policy"] == "bsp" and answer["chosen"]["why"]
    type_ = answer["chosen"]["workers"][0]["type"]
    named = ask(market, token, rule="scala-opt-m", worker_max=2, worker_type=type_).json
    assert named["chosen"]["workers"][0]["type"] == type_
    price = answer["chosen"]["workers"][0]["price_micro_per_hour"]
    assert price > 0 and answer["chosen"]["cost_micro_per_hour"] > price


CLOUD_KINDS = ["market", "ec2", "ec2-spot", "function"]


def test_clouds_are_weighed_beside_the_markets_lenders(place):
    """Asks for each kind by its type: this machine's speed in earlier jobs decides the best one."""
    market, token, _, _ = place

    def kinds_of(answer):
        return {part["kind"] for cluster in answer["frontier"] for part in cluster["workers"]}

    def among(*kinds, **more):
        answer = ask(market, token, rule="cost-opt", worker_max=4, kinds=kinds, **more).json
        check_answer(answer)
        assert kinds_of(answer) <= set(kinds) and len(answer["frontier"]) <= 33
        return answer

    answer = among(*CLOUD_KINDS)
    assert answer["catalogue_date"] >= "2026-01-01" and answer["micro_per_usd"] > 0
    for kind in CLOUD_KINDS:
        alone = among(kind)
        beside = among(*CLOUD_KINDS, worker_type=alone["chosen"]["workers"][0]["type"])
        same = {"ec2", "ec2-spot"} if kind.startswith("ec2") else {kind}  # both offer the same types
        assert kinds_of(alone) == {kind} and kinds_of(beside) <= same, (kind, beside)
    answer = among("ec2-spot")
    spot = next(cluster for cluster in answer["frontier"] if cluster["workers"][0]["kind"] == "ec2-spot")
    assert spot["job"] is None  # no lender of the market yet
    named = ask(market, token, worker_type="m5.large", kinds=["ec2"], wish="fastest",
                budget_usd_micro_per_hour=2_000_000).json
    assert {part["type"] for part in named["chosen"]["workers"]} == {"m5.large"}
    assert named["chosen"]["cost_micro_per_hour"] <= 2 * named["micro_per_usd"]
    functions = ask(market, token, kinds=["function"]).json
    assert functions["chosen"]["workers"][0]["type"].startswith("lambda-")
    refused(ask(market, token, worker_type="m5.lerge", kinds=["ec2"]), 400, 'did you mean "m5.large"?')
    refused(ask(market, token, budget_micro=1, budget_usd_micro=1), 400, "credits or in dollars")


def test_old_prices_are_said_to_be_old_once_and_who_renews_them(place, tmp_path):
    market, token, _, _ = place
    souk = commands(market, token, tmp_path)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(spec_of(market, token)))
    own = next((ROOT / "src/cloud").glob("*.csv")).read_text().splitlines()
    own[1] = "date,2020-02-29"
    catalogue = pathlib.Path(market.folder) / "cloud-catalogue.csv"
    catalogue.write_text("\n".join(own) + "\n")
    try:
        shown = souk("recommend", path, "--from", "ec2").stdout
    finally:
        catalogue.unlink()
    assert shown.count("days old") == 1 and shown.count("2020-02-29") == 1, shown
    assert "operator renews them with \"souk cloud catalog update\"" in shown, shown
    assert "days old" not in souk("recommend", path).stdout  # no cloud was asked for
    refusal = souk("recommend", path, "--from", "ec2", "--submit", "-y", code=2).stderr
    assert "nothing was submitted" in refusal and "souk cloud start" in refusal, refusal


def refused(answer, status, *words):
    assert answer.status == status, answer
    for word in words:
        assert word in answer.json["detail"], answer
    return answer.json["detail"]


def test_what_cannot_be_is_refused_with_the_nearest_that_can(place):
    market, token, lender_token, _ = place
    refused(ask(market, token, wish="fastest"), 400, "give a budget an hour", "cheapest")
    refused(ask(market, token, rule="cost-opt"), 400, "cost-opt needs a budget an hour or a limit of workers")
    refused(ask(market, token, rule="scala-opt-m", worker_max=2), 400, "worker_type")
    refused(ask(market, token, budget_micro_per_hour=1), 402, "an hour")
    refused(ask(market, token, rule="time-opt", budget_micro_per_hour=1), 402, "an hour do")
    refused(ask(market, token, deadline_s=0.001), 402, "the fastest takes")
    refused(ask(market, token, kinds=["cloud"]), 400, "kinds")
    refused(ask(market, token, rule="best"), 400, "rule")
    refused(ask(market, token, deadline_s=-1), 400, "deadline_s")
    refused(ask(market, token, extra=1), 400, "extra")
    known = ask(market, token).json["chosen"]["workers"][0]["type"]
    refused(ask(market, token, worker_type=known + "x"), 400, f'did you mean "{known}"?')
    refused(ask(market, token, server_type="m4.large"), 400, "server_type", "m4.large")
    huge = spec_of(market, token, resources={"cpus": "512"})
    refused(market.post("/v1/recommendations", {"job": huge}, token), 503, "no machine on offer now suits", "--from ec2")
    own = {"name": "own", "run": "true"}
    refused(market.post("/v1/recommendations", {"job": own}, token), 400, "runtime native")
    assert market.post("/v1/recommendations", {"job": own}).status == 401
