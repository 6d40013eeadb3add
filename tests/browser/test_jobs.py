"""Jobs in a real browser: a list of them, one that waits, one that runs on while the market restarts, and its end."""
import json
import os
import re
import shlex
import signal
import subprocess
import urllib.request

from browsing import Walk, assert_clean, credits, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from serving import HUNG_S, PROGRAM
from training import job_spec, running, wait_for

WAITING = 27
NAME = "w" * 64


def ask_for_too_much(market, token):
    """Jobs of more workers than there are machines: they wait."""
    spec = job_spec(market, token, 5)
    jobs = []
    for i in range(WAITING):
        name = NAME if i == WAITING - 1 else f"waits-{i}"
        answer = market.post("/v1/jobs", {**spec, "name": name}, token)
        assert answer.status == 201, answer
        jobs.append(answer.json["id"])
    return jobs


def cancel_all(market, token, jobs):
    for job in jobs:
        if market.get(f"/v1/jobs/{job}", token).json["state"] == "pending":
            assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200


def whole_log(market, token, job, rank):
    text, offset = "", 0
    while (part := market.get(f"/v1/jobs/{job}/logs?rank={rank}&offset={offset}", token).json)["next_offset"] > offset:
        text, offset = text + part["text"], part["next_offset"]
    return text


def submit(market, token, min_time):
    """Submits a job of two workers; min_time decides how long it runs."""
    spec = job_spec(market, token, 2, min_time=min_time, max_run_time="20m", expected_run_time="30s")
    spec["resources"]["cpus"] = "0.1"  # speed does not matter here
    answer = market.post("/v1/jobs", spec, token)
    assert answer.status == 201, answer
    return answer.json["id"]


def ends_ms(market, token, job):
    return max(lease["expires_ms"] for lease in market.get(f"/v1/jobs/{job}", token).json["leases"])


def serve_as_told(market, token, folder, commands):
    """Runs what the page says one should, at another port: what the model answers when it is asked what it takes."""
    serve, describe, predict = commands
    environment = {**os.environ, "SOUK_TOKEN": token, "SOUK_SERVER": market.url, "SOUK_CONFIG_DIR": str(folder / "config"),
                   "SOUK_MODEL_SERVE_LISTEN": "127.0.0.1:0", "SOUK_JSON": "true",
                   "PATH": f"{os.path.dirname(os.path.abspath(PROGRAM))}:{os.environ['PATH']}"}

    def ask(command, body=None):
        url = shlex.split(command)[-1].replace(":8501", f":{port}")
        with urllib.request.urlopen(url, body, timeout=HUNG_S) as answer:
            return json.load(answer)

    with subprocess.Popen(["sh", "-c", serve], cwd=folder, env=environment, stdout=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            ready = next(line for line in process.stdout if b'"port"' in line)  # after what was fetched
            port = json.loads(ready)["port"]
            shape = ask(describe)["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]
            return shape, ask(predict, json.dumps({"instances": [[0] * 784]}).encode())
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def test_jobs_from_waiting_to_the_bill(tmp_path):
    places = ["--no-local-lender", "--listen", f"127.0.0.1:{own_port()}", "--link-listen", f"127.0.0.1:{own_port()}"]
    with running(tmp_path, *places) as (market, token, _, _):
        waiting = ask_for_too_much(market, token)
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("jobs.mjs", code["url"], tmp_path) as walk:
            walk.expect("run")
            cancel_all(market, token, waiting)
            job = submit(market, token, "1h")
            wait_for("the first step", lambda: market.get(f"/v1/jobs/{job}", token).json["first_step_ms"])
            wait_for("the start of all three", lambda: all(  # a starting lease may still get a later end
                lease["state"] == "running" for lease in market.get(f"/v1/jobs/{job}", token).json["leases"]))
            before_ms = ends_ms(market, token, job)
            walk.answer(job)
            walk.restart(market, signal.SIGTERM)
            walk.expect("extended")
            until_ms = ends_ms(market, token, job)
            walk.answer()
            walk.expect("end")
            log = whole_log(market, token, job, 1)
            assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status == 200
            walk.answer()
            walk.expect("brief")
            brief = submit(market, token, "1s")
            wait_for("the brief one's end", lambda: market.get(f"/v1/jobs/{brief}", token).json["state"] == "succeeded")
            walk.answer(brief)
            seen = walk.end()
        bill = market.get(f"/v1/jobs/{brief}/bill", token).json
        entries = market.get(f"/v1/jobs/{brief}/entries?limit=500", token).json["items"]
        shape, told = serve_as_told(market, token, tmp_path, seen["commands"])
    assert seen["name"].startswith(NAME), seen["name"]
    assert "asks for 5 machines" in seen["explain"] and "2 machines are left" in seen["explain"]
    assert seen["afterNo"] == "pending"
    assert seen["wasClean"] == {"console": [], "failed": []}
    assert seen["isRefusedBefore"] and seen["typed"] == "7"
    assert until_ms - before_ms == 7 * 60_000, "it was not extended"
    assert len(seen["lanes"]) == 2 and all(lane.startswith("computes ") for lane in seen["lanes"])
    assert seen["log"]["name"] == f"job-{job}-1.log" and log.startswith(seen["log"]["text"]) and "worker_ready" in seen["log"]["text"]
    assert len(seen["working"]) == len(seen["worked"]) == 3
    assert all("succeeded" in row for row in seen["worked"])
    for line in bill["lines"]:
        assert any(credits(line["earned_microcredits"]) in row for row in seen["worked"]), (line, seen["worked"])
    rows = seen["csv"]["text"].strip().split("\n")
    assert rows[0].startswith("id,at,") and len(rows) == len(entries) + 1
    assert seen["serve"] == seen["commands"][0]
    assert seen["serve"] == f"souk job fetch {brief} -o job-{brief} && souk model serve job-{brief}/model.safetensors --name job-{brief}"
    assert shape and len(told["predictions"]) == 1 and told["predictions"][0]["classes"] in range(10), told
    assert seen["model"]["name"] == "model.safetensors" and seen["model"]["size"] > 10_000
    assert re.fullmatch(rf"events\.out\.tfevents\.\d+\.job-{brief}", seen["curves"]["name"]), seen["curves"]["name"]
    assert "test/loss" in seen["curves"]["text"]
    assert seen["file"]["name"].endswith(".yaml") and "runtime: native" in seen["file"]["text"]
    assert_clean(seen)
