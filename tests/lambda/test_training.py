"""`souk function train --lambda` and `souk lend --function-lambda` from end to end: the function is created from the
zip of `make lambda`, configured at moto, and its calls are answered by AWS's own Runtime Interface Emulator.

covers function/invoker_http.c, cli/command_function_train.c, cli/lend_functions.c, peer/carrier.c
"""
import base64
import hashlib
import json
import platform

from test_runtime import STORE, archive, deaf_store, lambda_api, pytestmark, souk  # noqa: F401
from emulated import NAME  # noqa: E402
from functions import FunctionLender, write_job  # noqa: E402
from serving import Market, audit  # noqa: E402
from training import job_spec, wait_for  # noqa: E402


def test_a_job_is_trained_on_functions_of_the_zip(souk, lambda_api, tmp_path):  # noqa: F811
    options = [write_job(tmp_path, batch=500, epochs=2), "--lambda", "--url", lambda_api.url, "--store", STORE,
               "--functions", 3, "--memory", 512, "--schedule", "decay", "--functions-last", 2, "--memory-last", 256,
               "--timeout", "20s", "--span", 20, "--keep-updates", "--json", "-o", tmp_path / "model"]
    before = lambda_api.configuration()
    digest = hashlib.sha256(archive(platform.machine()).read_bytes()).digest()
    assert (before["State"], before["MemorySize"], before["Timeout"]) == ("Active", 128, 3)
    assert base64.b64decode(before["CodeSha256"]) == digest
    result = json.loads(souk("function", "train", *options).stdout)
    assert result["end"] == "epochs" and result["samples"] == 2 * 60000 and result["failures"] == 0, result
    # Each size has instances of its own; what is billed is what the emulator reported.
    assert lambda_api.puts[0] == {"MemorySize": 512, "Timeout": 20}
    assert [put["MemorySize"] for put in lambda_api.puts] == [512, 256]
    assert lambda_api.sizes == {(put["MemorySize"], put["Timeout"]) for put in lambda_api.puts}
    assert result["cold_starts"] == lambda_api.started and result["billed_ms"] > 0 and lambda_api.most == 3
    after = lambda_api.configuration()
    assert {name: after[name] for name in ("MemorySize", "Timeout")} == lambda_api.puts[-1]
    assert after["LastUpdateStatus"] == "Successful"
    updates = [key for key in lambda_api.objects() if key.startswith(f"souk/updates/{result['job']}/")]
    assert len(updates) == result["calls"] and lambda_api.refused == 0


def test_one_size_keeps_its_instances_warm(souk, lambda_api, tmp_path):  # noqa: F811
    result = json.loads(souk("function", "train", write_job(tmp_path, batch=2000, epochs=4), "--lambda", "--url",
                             lambda_api.url, "--store", STORE, "--functions", 2, "--memory", 512, "--json", "-o",
                             tmp_path / "model").stdout)
    assert result["end"] == "epochs" and result["samples"] == 4 * 60000
    # The time limit follows the first epoch's calls, so that little is held. It rises when calls come near it;
    # function/driver_test.c counts how often.
    assert lambda_api.started <= 2 * len(lambda_api.puts) == 2 * len(lambda_api.sizes)


def test_more_calls_than_lambda_takes_are_made_again(souk, lambda_api, tmp_path):  # noqa: F811
    lambda_api.concurrency = 1
    result = json.loads(souk("function", "train", write_job(tmp_path, batch=2000, epochs=1), "--lambda", "--url",
                             lambda_api.url, "--store", STORE, "--functions", 3, "--memory", 512, "--json", "-o",
                             tmp_path / "model").stdout)
    assert result["end"] == "epochs" and result["samples"] == 60000
    assert lambda_api.throttled > 0 and lambda_api.most == 1


def test_functions_that_hang_are_ended_and_the_job_says_so(souk, lambda_api, tmp_path):  # noqa: F811
    with deaf_store() as url:
        lambda_api.give_variables(AWS_ENDPOINT_URL=url)
        result = json.loads(souk("function", "train", write_job(tmp_path, batch=2000, epochs=1), "--lambda", "--url",
                                 lambda_api.url, "--store", STORE, "--functions", 2, "--memory", 512, "--timeout", "1s",
                                 "--json", "-o", tmp_path / "model", code=1).stdout)
    assert result["end"] == "failed" and "timed out" in result["reason"], result
    assert result["failures"] >= 5 and result["samples"] == 0 and result["billed_ms"] >= 1000 * result["failures"]
    assert (tmp_path / "model/model.safetensors").exists()


def test_another_function_or_key_is_refused(souk, lambda_api, tmp_path):  # noqa: F811
    options = [write_job(tmp_path, batch=2000, epochs=1), "--lambda", "--url", lambda_api.url, "--store", STORE, "-o",
               tmp_path / "model"]
    done = souk("function", "train", *options, "--name", "another", code=3)
    assert "404" in done.stderr and "another" in done.stderr, done.stderr
    # The store's keys come from the same variables: refused there first.
    souk.variables["AWS_SECRET_ACCESS_KEY"] = "wrong"
    done = souk("function", "train", *options, code=5)
    assert "AWS_SECRET_ACCESS_KEY" in done.stderr and not lambda_api.puts


def test_functions_of_the_zip_are_lent(souk, lambda_api, tmp_path):  # noqa: F811
    market = Market(tmp_path / "market")
    token = market.sign_up("borrower")
    lender = FunctionLender(market, market.sign_up("lender"), tmp_path / "lender", "--function-memory", "512",
                            "--function-lambda", "--function-url", lambda_api.url, "--function-store", STORE,
                            "--function-timeout", "30s", variables=lambda_api.keys())
    try:
        wait_for("the machine", lambda: any(
            m["name"] == "functions" and m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        spec = job_spec(market, token, 1, max_hourly_cost=1)  # more than is posted, as Lambda takes more
        spec["resources"] = {"cpus": "0.2+", "memory": "1", "labels": "function"}
        job = market.post("/v1/jobs", spec, token).json["id"]
        done = wait_for("the job's end", lambda: (lambda j: j if j["ended_ms"] else None)(
            market.get(f"/v1/jobs/{job}", token).json))
    finally:
        lender.stop()
        market.stop()
    assert done["state"] == "succeeded" and lambda_api.refused == 0, done
    assert lambda_api.puts == [{"MemorySize": 512, "Timeout": 30}] and lambda_api.sizes == {(512, 30)}
    called = next(lease for lease in done["leases"] if lease["role"] == "worker")
    assert called["samples"] > 0 and 0 < called["billed_ms"] < called["ended_ms"] - called["started_ms"]
    assert audit(market.folder)[0] == 0
    # It took all of it away but what calls left that nobody waited for.
    assert [key for key in lambda_api.objects() if not key.startswith("souk/updates/")] == []
    assert lambda_api.configuration()["FunctionName"] == NAME
