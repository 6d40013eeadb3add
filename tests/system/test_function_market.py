"""Jobs trained on functions that meet in the market's own store: here, on a host, past its quota and past its end.

covers function/object_store_market.c, cli/function_market.c, cli/command_function_forget.c, server/handle_object.c
"""
import json
import pathlib
import signal
import subprocess

import pytest

from functions import BATCHES, RECORDS, Host, wait_for, with_few_records, write_job
from serving import HUNG_S, Market, own_port


@pytest.fixture
def souk(souk):
    return with_few_records(souk)


@pytest.fixture
def made(tmp_path, souk):
    markets = []

    def make(*options):
        market = Market(tmp_path / "market", "--no-local-lender", "--listen", f"127.0.0.1:{own_port()}", "--log-level",
                        "debug", *options)
        markets.append(market)
        market.token = market.sign_up("lead")
        souk.variables.update(SOUK_SERVER=market.url, SOUK_TOKEN=market.token)
        return market
    yield make
    for market in markets:
        market.stop()


def names(market):
    return [item["name"] for item in market.get("/v1/objects?limit=500", market.token).json["items"]]


def has_learnt(market):
    """A model has updates, so that the job is under way."""
    return [name for name in names(market) if name.startswith("models/") and name.split("/")[2] not in ("newest", "0")]


def function_tokens(market):
    return [item for item in market.get("/v1/tokens", market.token).json["items"] if item["scopes"] == ["objects"]]


def train(souk, *options, code=0):
    done = souk("function", "train", *options, "--store", "market", "--json", code=code)
    return json.loads(done.stdout), done.stderr


def assert_done(result, epochs):
    assert result["end"] == "epochs", result["reason"]
    assert result["samples"] == epochs * RECORDS and result["test_accuracy"] > 0.6


def test_a_job_is_trained_in_the_markets_store_and_leaves_nothing_there(made, souk, tmp_path):
    market = made()
    result, told = train(souk, write_job(tmp_path, epochs=2), "-o", tmp_path / "model", "--functions", 3)
    assert_done(result, 2)
    assert result["failures"] == 0
    assert names(market) == [] and function_tokens(market) == []
    said = told + pathlib.Path(f"{market.folder}.log").read_text()
    assert "/v1/objects/models/" in said and "souk_function_" not in said and market.token not in said


def test_every_update_is_in_the_store_once(made, souk, tmp_path):
    market = made()
    result, _ = train(souk, write_job(tmp_path, epochs=1), "-o", tmp_path / "model", "--functions", 8, "--span", 10,
                      "--keep-updates")
    assert_done(result, 1)
    covered = []
    for name in names(market):
        if name.startswith("updates/"):
            data = market.get(f"/v1/objects/{name}", market.token).body
            head = json.loads(data[16:16 + int.from_bytes(data[12:16], "little")])
            covered += range(head["first_batch"], head["first_batch"] + head["batches"])
    assert sorted(covered) == list(range(BATCHES))
    # Who has the token of one job's functions has that job's; the job's own have ended with it.
    assert function_tokens(market) == []
    souk("function", "forget", result["job"], "--store", "market")
    assert {name.split("/")[0] for name in names(market)} == {"updates"}


def test_functions_of_a_host_meet_in_its_market(made, souk, tmp_path):
    market = made()
    with Host(souk, "--memory", "128", "--network") as host:
        result, told = train(souk, write_job(tmp_path, epochs=1), "-o", tmp_path / "model", "--functions", 3, "--memory",
                             128, "--url", host.ready["url"])
        assert_done(result, 1)
        # The host has a market of its own choice, and no token of anybody's.
        request = {"job": result["job"], "epoch": 0, "run": 1, "first_batch": 0, "batch_count": 1, "version": 0,
                   "store": "market"}
        status, headers, body = host.invoke(request)
        assert headers["X-Amz-Function-Error"] and "no token" in json.loads(body)["errorMessage"]
        status, headers, body = host.invoke({**request, "token": "souk_function_" + 64 * "0"})
        words = json.loads(body)["errorMessage"]
        assert headers["X-Amz-Function-Error"] and "not known here" in words and "souk_function" not in words
    with Host(souk, "--memory", "128") as host:
        status, headers, body = host.invoke({**request, "token": "x"})
        assert headers["X-Amz-Function-Error"] and "no market" in json.loads(body)["errorMessage"]
    assert names(market) == []


def test_the_store_keeps_to_what_every_kind_of_store_does(made, souk):
    """The unit tests of stores, on a market's."""
    market = made()
    test = pathlib.Path(souk.program).resolve().parent / "object_store_test"
    if not test.exists():
        pytest.skip("unit tests are not built")
    done = subprocess.run([test], env={**souk.variables, "SOUK_STORE": "market"}, capture_output=True, text=True,
                          timeout=HUNG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert names(market) == []


def test_without_a_market_or_a_token_a_job_does_not_begin(made, souk, tmp_path):
    job = write_job(tmp_path, epochs=1)
    assert "market" in souk("function", "train", job, "-o", tmp_path, "--store", "market", code=2).stderr
    made()
    del souk.variables["SOUK_TOKEN"]
    assert "not signed in" in souk("function", "train", job, "-o", tmp_path, "--store", "market", code=5).stderr


def test_a_full_store_ends_the_job_with_the_best_model_so_far(made, souk, tmp_path):
    # The store keeps 4.7 MB of data, and 31 kB for each model or update.
    market = made("--account-quota", "6100000")
    result, told = train(souk, write_job(tmp_path, epochs=20), "-o", tmp_path / "model", "--functions", 3, "--span", 40,
                         "--keep-updates", code=1)
    assert result["end"] == "failed" and "used up what it may store" in result["reason"]
    assert 0 < result["epochs_done"] < 20 and result["test_accuracy"] > 0.5
    assert (tmp_path / "model/model.safetensors").exists()
    assert function_tokens(market) == []


def test_a_market_that_is_killed_half_way_loses_nothing_and_the_job_goes_on(made, souk, tmp_path):
    market = made()
    process = souk.start("function", "train", write_job(tmp_path, epochs=3), "-o", tmp_path / "model", "--functions", 2,
                         "--span", 20, "--cpus", "0.1", "--store", "market", "--json")
    seen = wait_for(lambda: has_learnt(market) and names(market))
    job = next(name for name in seen if name.startswith("jobs/"))
    kept = market.get(f"/v1/objects/{job}", market.token).body
    for _ in range(2):
        market.kill()
        market.start()
        assert market.get(f"/v1/objects/{job}", market.token).body == kept
    out, told = process.communicate()
    assert process.returncode == 0, told
    assert_done(json.loads(out), 3)
    assert names(market) == []


def test_a_job_that_is_stopped_goes_on_in_the_markets_store(made, souk, tmp_path):
    market = made()
    job = write_job(tmp_path, epochs=3)
    process = souk.start("function", "train", job, "-o", tmp_path / "model", "--functions", 2, "--span", 20, "--cpus",
                         "0.1", "--store", "market", "--json")
    wait_for(lambda: has_learnt(market))
    process.send_signal(signal.SIGINT)
    out, told = process.communicate()
    name = json.loads(out)["job"]
    assert f"--store market --resume {name}" in told and f"forget {name} --store market" in told
    assert f"jobs/{name}" in names(market) and function_tokens(market) == []
    result, _ = train(souk, job, "-o", tmp_path / "model", "--functions", 2, "--resume", name)
    assert_done(result, 3)
    assert names(market) == []
