"""The client's commands against a market that answers by script.

covers client/client.c, client/artifact.c, cli/connect.c, client/follow.c, cli/job_view.c, client/upload.c
covers cli/command_account.c, cli/command_market.c, cli/command_fetch.c, cli/command_submit.c
covers cli/command_transfer.c, client/tensorboard.c
"""
import gzip
import json
import os
import pty
import signal
import stat
import subprocess

import pytest
from program import ROOT
from scripted_market import ScriptedMarket, idx, write_data_set
from serving import HUNG_S
from tfevents_file import read_scalars
from training import wait_for

ACCOUNT = {"id": 3, "name": "ada", "created_ms": 1, "available_microcredits": 10000000,
           "held_microcredits": 0, "granted_microcredits": 10000000, "earned_microcredits": 0,
           "spent_microcredits": 0}
QUOTE = {"wish_microcredits": 5000, "wish_hourly_microcredits": 100000, "can_start": True,
         "reason": "", "placed_microcredits": 4000, "placed_hourly_microcredits": 80000,
         "expected_microcredits": 1500, "max_run_ms": 180000, "expected_run_ms": 60000,
         "available_microcredits": 10000000}


def lease(number, name, role, steps, **more):
    return {"id": number, "fence": 1, "machine_name": name, "role": role, "rank": 0,
            "state": "running", "outcome": "none", "reason": "", "unreachable": False,
            "cores_milli": 250, "ticks": 2, "posted_microcredits": 100,
            "earned_microcredits": 95, "steps": steps, "commits": 3, "samples": steps * 32,
            "steps_per_second": 12.5, "loss": None, **more}


def job(state="running", **more):
    return {"id": 7, "name": "fashion-mnist", "account": 3, "state": state, "reason": "",
            "num_nodes": 3, "runtime": "native", "policy": "adsp", "model": "lenet5",
            "created_ms": 1700000000000, "started_ms": 1700000001000,
            "first_step_ms": 1700000001500, "ended_ms": 0, "held_microcredits": 3000,
            "spent_microcredits": 1000, "quoted_microcredits": 4000, "ticks": 4, "loss": 0.5,
            "test_accuracy": None, "samples": 100, "gamma_ms": 3000,
            "leases": [lease(1, "market", "server", 0), lease(2, "fast", "worker", 30),
                       lease(3, "slow", "worker", 10)], **more}


BILL = {"job": 7, "state": "succeeded", "quoted_microcredits": 4000, "spent_microcredits": 1200,
        "held_microcredits": 0, "fee_microcredits": 60, "ticks": 12, "ledger_sum_microcredits": 0,
        "lines": [{"lease": 2, "machine": 1, "machine_name": "fast", "role": "worker", "rank": 0,
                   "ticks": 6, "billed_ms": 18000, "posted_microcredits": 800,
                   "earned_microcredits": 760, "fee_microcredits": 40}]}
ENDED = job("succeeded", ended_ms=1700000041000, test_accuracy=0.8871, spent_microcredits=1200)


def read_all(terminal):
    """What programs printed to a terminal that nobody has open any more."""
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            return shown
        if not piece:
            return shown
        shown += piece


@pytest.fixture
def market():
    market = ScriptedMarket()
    yield market
    market.stop()


@pytest.fixture
def user(souk, market):
    """Somebody whose account is known."""
    souk.variables.update(SOUK_SERVER=market.url, SOUK_TOKEN="t0ken")
    return souk


def script_job(market, *states):
    market.on("POST", "/v1/quotes", QUOTE)
    market.on("GET", "/v1/jobs?limit=4", {"items": [], "next": None})
    market.on("POST", "/v1/jobs", job("pending"), 201)
    market.on("GET", "/v1/jobs/7", list(states))
    market.on("GET", "/v1/jobs/7/bill", BILL)


def test_opening_an_account_keeps_address_and_token_private(souk, market):
    market.on("POST", "/v1/accounts", {"account": ACCOUNT, "token": "s3cret"}, 201)
    market.on("POST", "/v1/account/page-codes",
              {"code": "c0de", "expires_ms": 1, "url": market.url + "/#code=c0de"}, 201)
    market.on("GET", "/v1/account", ACCOUNT)
    result = souk("account", "open", "--name", "ada", "--server", market.url)
    assert f"Page: {market.url}/#code=c0de\n" in result.stdout
    assert "10.000000" in result.stdout and "s3cret" not in result.stdout + result.stderr
    secrets = souk.home / ".config" / "souk" / "secrets"
    assert secrets.read_text() == "token = s3cret\n"
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    # From now on neither address nor token is needed.
    assert "Account:   ada (3)" in souk("account").stdout
    assert market.requests[-1][2]["Authorization"] == "Bearer s3cret"
    assert json.loads(souk("wallet", "--json").stdout) == ACCOUNT
    refusal = souk("account", "open", "--name", "bob", code=4)
    assert "add --replace" in refusal.stderr
    # Without a name it signs in to the page again.
    assert json.loads(souk("account", "open", "--json").stdout)["url"].endswith("#code=c0de")


def test_problems_become_their_own_sentence_and_exit_code(user, market):
    for status, code, exit_code in ((400, "invalid", 2), (401, "unauthorized", 5),
                                    (403, "refused", 5), (404, "not_found", 3),
                                    (409, "conflict", 4), (402, "exhausted", 6),
                                    (503, "unavailable", 7), (500, "corrupt", 8)):
        market.problem("GET", "/v1/account", status, code, "the sky is green")
        assert "the sky is green" in user("wallet", code=exit_code).stderr
    market.on("GET", "/v1/account", b"<html>", 502)
    assert "the market answered with status 502" in user("wallet", code=7).stderr
    market.on("GET", "/v1/account", b"{\"id\":")
    assert "the market's answer" in user("wallet", code=8).stderr


def test_lists_follow_their_pages(user, market):
    def machine(number):
        return {"id": number, "name": f"m{number}", "account_name": "bob", "is_mine": False,
                "state": "online", "availability": "free", "fresh_s": 4,
                "probe": {"speed_weight_milli": 1500, "rtt_us": 12300},
                "offer": {"cores_milli": 500, "ram_bytes": 1 << 30, "disk_bytes": 0,
                          "roles": ["worker"], "paused": False},
                "free": {"cores_milli": 250, "ram_bytes": 1 << 29, "gpus_milli": 0},
                "reputation": {"reliability_milli": 750},
                "leased_cores_milli": 250, "lease_count": 1, "earned_microcredits": 12}
    market.on("GET", "/v1/machines?limit=500", {"items": [machine(1)], "next_cursor": "a/b"})
    market.on("GET", "/v1/machines?limit=500&cursor=a%2Fb",
              {"items": [machine(2)], "next_cursor": None})
    table = user("machines").stdout.splitlines()
    assert len(table) == 3 and table[0].split() == [
        "ID", "NAME", "LENDER", "STATE", "CORES", "FREE", "MEMORY", "GPUS", "RTT", "SPEED",
        "RELIABLE", "FRESH", "EARNED"]
    assert table[2].split()[:-1] == ["2", "m2", "bob", "free", "0.5", "0.25", "512", "MiB", "0",
                                     "12.3", "ms", "1.5", "0.75", "4", "s"]
    items = json.loads(user("machines", "--json").stdout)["items"]
    assert [item["id"] for item in items] == [1, 2]


def test_adding_a_machine_prints_the_command_to_run_there(user, market):
    market.on("POST", "/v1/machines/codes", {"code": "abc-def", "expires_ms": 1700000000000,
                                             "fingerprint": "0" * 64, "link_address": "x:1"}, 201)
    assert user("machines", "add").stdout == f"souk lend --server {market.url} --code abc-def\n"


def test_statement_and_prices_are_tables(user, market):
    entry = {"id": 9, "at_ms": 1700000000000, "kind": "post", "amount_microcredits": -583,
             "direction": "out", "job": 7, "job_name": "digits", "lease": 2, "machine": 5,
             "machine_name": "heron", "other_account": 4, "other_account_name": "bob",
             "memo": "tick 3"}
    sums = {"held_microcredits": 900, "posted_microcredits": 583, "fee_microcredits": 17,
            "voided_microcredits": 300}
    for limit in (50, 500):
        market.on("GET", f"/v1/jobs/7/entries?order=newest&limit={limit}",
                  {"opening_microcredits": None, "closing_microcredits": None, "sums": sums,
                   "items": [entry], "next_cursor": None})
    shown = user("wallet", "statement", "--job", 7).stdout
    assert "post  -0.000583  out  bob   7 digits  5 heron      2         -  tick 3" in shown
    assert "held 0.000900, posted 0.000583, fee 0.000017, voided 0.000300" in shown
    lines = user("wallet", "statement", "--job", 7, "--csv").stdout.splitlines()
    assert lines[0].startswith("id,at,at_ms,kind,amount_microcredits,amount_credits,direction,job")
    assert lines[1] == ("9,2023-11-14T22:13:20.000Z,1700000000000,post,-583,-0.000583,out,7,digits,"
                        "2,5,heron,4,bob,0,tick 3")
    assert "not both" in user("wallet", "statement", "--csv", "--json", code=2).stderr
    market.on("GET", "/v1/prices", {"core_hour_microcredits": 20000,
                                    "ram_gib_hour_microcredits": 2000,
                                    "gpu_hour_microcredits": 180000,
                                    "disk_gib_hour_microcredits": 60, "fee_basis_points": 500})
    assert "now      0.020000  0.180000    0.002000  0.000060" in user("prices").stdout


def test_a_plan_without_a_terminal_and_without_yes_spends_nothing(user, market, tmp_path):
    script_job(market, job())
    data = write_data_set(tmp_path / "data")
    result = user("job", "submit", ROOT / "examples" / "fashion-mnist.yaml", "--dataset-dir", data,
                  code=2)
    assert result.stdout == ""
    assert "0.004000 credits for 3m" in result.stderr and "$1" not in result.stderr
    assert "add -y to go ahead" in result.stderr
    assert not market.bodies("POST", "/v1/jobs") and not market.chunks


def test_submitting_uploads_what_is_missing_and_follows_to_the_end(user, market, tmp_path):
    script_job(market, job("pending"), job(), ENDED)
    market.events = [("metric", {"job": 7, "lease": 2, "role": "worker", "rank": 0, "at_ms": 1,
                                 "elapsed_ms": 1, "steps": 40, "samples": 1280, "commits": 4,
                                 "loss": 0.4, "steps_per_second": 99.5, "test_accuracy": None}),
                     ("bill", {"job": 7, "lease": 2, "at_ms": 1, "amount_microcredits": 5,
                               "spent_microcredits": 1005, "held_microcredits": 2995}),
                     ("state", {"job": 7, "lease": 0, "machine": 0, "state": "succeeded",
                                "reason": "", "at_ms": 1})]
    data = write_data_set(tmp_path / "data")
    example = ROOT / "examples" / "fashion-mnist.yaml"
    result = user("job", "submit", example, "-y", "--dataset-dir", data)
    spec = market.bodies("POST", "/v1/jobs")[0]
    assert [(i["name"], i["split"], i["records"]) for i in spec["inputs"]] == [
        ("train-images", "train", 60), ("train-labels", "train", 60),
        ("test-images", "test", 10), ("test-labels", "test", 10)]
    for part in spec["inputs"]:
        manifest = json.loads(market.chunks[part["manifest"]])
        assert manifest["record_count"] == part["records"]
        assert all(chunk["hash"] in market.chunks for chunk in manifest["chunks"])
    keys = [r[2].get("Idempotency-Key") for r in market.requests if r[:2] == ("POST", "/v1/jobs")]
    assert len(keys[0]) == 32
    assert "Accuracy: 88.71 %" in result.stdout
    assert "The market's books balance." in result.stdout
    assert "fast" in result.stdout and "0.000760" in result.stdout
    assert "fashion-mnist succeeded" in result.stderr and "Submitted job 7." in result.stderr
    # The second time nothing is sent again.
    script_job(market, ENDED)
    puts = len([r for r in market.requests if r[0] == "PUT"])
    again = user("job", "submit", example, "-y", "--dataset-dir", data, "--json")
    assert json.loads(again.stdout)["test_accuracy"] == 0.8871
    assert len([r for r in market.requests if r[0] == "PUT"]) == puts


def test_metrics_become_tensorboards_files(user, market, tmp_path):
    script_job(market, job(), job(), ENDED)

    def metric(lease, role, samples, loss, accuracy=None, speed=0):
        return ("metric", {"job": 7, "lease": lease, "role": role, "rank": 0, "at_ms": 1700000000000 + samples,
                           "elapsed_ms": 1, "steps": samples // 32, "samples": samples, "commits": 4, "loss": loss,
                           "steps_per_second": speed, "test_accuracy": accuracy})

    point = {"at_ms": 1700000000000, "elapsed_ms": 1, "samples": 320, "loss": 2.25, "test_accuracy": None}
    market.on("GET", "/v1/jobs/7/metrics", {"job": 7, "curve": [point]})
    market.events = [metric(1, "server", 320, 2.25), metric(2, "worker", 640, 0.5, speed=99.5),
                     metric(1, "server", 640, 0.25, 0.75), metric(2, "worker", 640, 0.5, speed=99.5),
                     ("state", {"job": 7, "lease": 0, "machine": 0, "state": "succeeded", "reason": "", "at_ms": 1})]
    result = user("job", "wait", 7, "--tensorboard", tmp_path / "runs")
    assert f"tensorboard --logdir {tmp_path / 'runs'}" in result.stderr
    # What was measured before comes first, and nothing twice.
    assert read_scalars(tmp_path / "runs" / "job-7") == [
        ("test/loss", 320, 2.25), ("lease-2/loss", 640, 0.5), ("lease-2/steps_per_second", 640, 99.5),
        ("test/loss", 640, 0.25), ("test/accuracy", 640, 0.75)]
    (tmp_path / "file").write_text("")
    assert "--tensorboard" in user("job", "wait", 7, "--tensorboard", tmp_path / "file", code=2).stderr


def test_detached_and_quiet_only_the_number_is_printed(user, market, tmp_path):
    script_job(market, job())
    data = write_data_set(tmp_path / "data")
    result = user("job", "submit", "-dqy", ROOT / "examples" / "fashion-mnist.yaml",
                  "--dataset-dir", data)
    assert (result.stdout, result.stderr) == ("7\n", "")


def test_absent_data_is_told_before_anything_is_sent(user, market, tmp_path):
    result = user("job", "submit", "-y", ROOT / "examples" / "fashion-mnist.yaml", "--dataset-dir",
                  tmp_path, code=3)
    assert "train.data" in result.stderr and not market.requests


def test_wrong_labels_and_images_are_told_before_anything_is_sent(user, market, tmp_path):
    script_job(market, job())
    example = ROOT / "examples" / "fashion-mnist.yaml"
    data = write_data_set(tmp_path / "data")
    labels = data / "train-labels-idx1-ubyte.gz"
    good = labels.read_bytes()
    wrong = bytearray(gzip.decompress(good))
    wrong[8 + 5] = 77
    labels.write_bytes(gzip.compress(bytes(wrong)))
    told = user("job", "submit", example, "-y", "--dataset-dir", data, code=2).stderr.replace("\n", " ")
    assert "label 77 of record 5 is not below 10 (byte 13)" in told
    labels.write_bytes(good)
    (data / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx((10, 20, 28))))
    told = user("job", "submit", example, "-y", "--dataset-dir", data, code=2).stderr.replace("\n", " ")
    assert "does not hold fashion-mnist: images of 1 x 20 x 28, not 1 x 28 x 28" in told
    assert {path for method, path, *_ in market.requests if method != "GET"} == {"/v1/quotes"}
    (tmp_path / "mnist.yaml").write_text("name: digits\ntrain: {model: mlp, data: mnist}\n")
    assert "--dataset-dir" in user("job", "submit", tmp_path / "mnist.yaml", "-y", code=3).stderr


def test_a_target_is_shown_beside_what_was_reached(user, market):
    spec = {"name": "j", "train": {"model": "mlp", "data": "mnist", "target": {"accuracy": 0.995, "loss": 0.01}}}
    script_job(market, {**ENDED, "spec": spec})
    shown = user("job", "show", 7).stdout
    assert "Accuracy: 88.71 %; the target is 99.5 %" in shown and "0.5000; the target is 0.01" in shown


def test_waiting_ends_with_the_jobs_state(user, market):
    script_job(market, job("failed", reason="no worker is left"))
    assert "failed: no worker is left" in user("job", "wait", 7, code=1).stdout
    script_job(market, job("pending"))
    assert "is still pending" in user("job", "wait", 7, "--timeout", "400ms", code=7).stderr
    market.problem("GET", "/v1/jobs/8", 404, "not_found", "job 8 does not exist")
    assert "job 8 does not exist" in user("job", "wait", 8, code=3).stderr


def test_waiting_survives_a_market_that_is_away_for_a_moment(user, market):
    script_job(market, job(), job())
    market.on("GET", "/v1/jobs/7/events", b"", 503)
    process = user.start("job", "wait", 7)
    wait_for("another try", lambda: len([r for r in market.requests if r[1].endswith("/events")]) >= 2, step=0.02)
    script_job(market, ENDED)
    assert process.wait(timeout=HUNG_S) == 0
    process.communicate()


def test_interrupting_the_wait_leaves_the_job_alone(user, market):
    script_job(market, job())
    process = user.start("job", "wait", 7)
    wait_for("the events to be asked for", lambda: any(r[1].endswith("/events") for r in market.requests), step=0.02)
    process.send_signal(signal.SIGINT)
    output, notes = process.communicate(timeout=HUNG_S)
    assert process.returncode == 130 and output == ""
    assert "The job goes on." in notes
    assert not any(r[0] == "POST" for r in market.requests)


def test_on_a_terminal_progress_is_redrawn_and_asked_for(user, market, tmp_path):
    script_job(market, job("pending"), job(), ENDED)
    market.events = [("state", {"job": 7, "lease": 0, "state": "running"})]
    data = write_data_set(tmp_path / "data")
    main, other = pty.openpty()
    variables = dict(user.variables, TERM="xterm", COLUMNS="100")
    process = subprocess.Popen(
        [user.program, "job", "submit", str(ROOT / "examples" / "fashion-mnist.yaml"),
         "--dataset-dir", str(data)], env=variables, stdin=other, stdout=subprocess.DEVNULL,
        stderr=other)
    os.close(other)
    os.write(main, b"y\n")
    shown = read_all(main)
    os.close(main)
    assert process.wait(timeout=HUNG_S) == 0
    text = shown.decode()
    assert "Submit this job? [y/N]" in text
    assert "█" in text and "parameter server" in text and "\033[" in text


def test_saying_no_has_an_exit_code_of_its_own(user, market):
    market.on("GET", "/v1/jobs/7", job())
    main, other = pty.openpty()
    process = subprocess.Popen([user.program, "job", "cancel", "7"], env=user.variables,
                               stdin=other, stdout=subprocess.DEVNULL, stderr=other)
    os.write(main, b"n\n")
    assert process.wait(timeout=HUNG_S) == 9
    os.close(other)
    assert b"Nothing was done." in read_all(main)
    os.close(main)
    assert not any(r[0] == "POST" for r in market.requests)


def test_listing_explaining_and_cancelling(user, market):
    market.on("GET", "/v1/jobs?state=running&limit=50", {"items": [job()], "next_cursor": None})
    assert "fashion-mnist  running" in user("job", "list", "--state", "running").stdout
    market.on("GET", "/v1/jobs/7/explain", {"job": 7, "state": "pending", "reason": "few machines",
                                            "text": "needs 3 machines\n2 are online"})
    assert user("job", "explain", 7).stdout == (
        "Job 7 is pending: few machines\nneeds 3 machines\n2 are online\n")
    market.on("GET", "/v1/jobs/7", job())
    market.on("POST", "/v1/jobs/7/cancel", job("cancelled"))
    assert "add -y" in user("job", "cancel", 7, code=2).stderr
    assert not any(r[0] == "POST" for r in market.requests)
    assert user("job", "cancel", 7, "-y").stdout == "Job 7 is cancelled\n"
    assert "0.25" in user("job", "show", 7).stdout


def test_a_transfer_shows_the_plan_and_asks(user, market):
    market.on("GET", "/v1/account", {**ACCOUNT, "transferable_microcredits": 3000000})
    market.on("POST", "/v1/transfers", {
        "id": 12, "at_ms": 1, "kind": "transfer", "amount_microcredits": -2500000,
        "direction": "out", "job": 0, "lease": 0, "other_account": 4, "memo": "thanks"}, 201)
    shown = user("wallet", "transfer", "bob", "2.5", "--memo", "thanks", code=2).stderr
    assert 'Transfer:  2.500000 credits from "ada" to "bob"' in shown and "add -y" in shown
    assert "Left:      0.500000 credits" in shown
    assert "more than the 3.000000" in user("wallet", "transfer", "bob", "3.1", "-y", code=6).stderr
    assert "more than 0" in user("wallet", "transfer", "bob", "0", "-y", code=2).stderr
    assert not any(r[0] == "POST" for r in market.requests)
    done = user("wallet", "transfer", "bob", "2.5", "--memo", "thanks", "-y")
    assert done.stdout == 'Entry 12: 2.500000 credits to "bob"\n'
    assert market.bodies("POST", "/v1/transfers") == [
        {"to": "bob", "amount_microcredits": 2500000, "memo": "thanks"}]


def test_an_ended_job_is_explained_and_not_cancelled(user, market):
    market.on("GET", "/v1/jobs/7/explain", {"job": 7, "state": "succeeded", "reason": "",
                                            "text": ""})
    market.on("GET", "/v1/jobs/7", ENDED)
    told = user("job", "explain", 7).stdout
    assert told.startswith("Job 7 has succeeded\nIt ran for 40.0 s and cost 0.001200 credits.\n")
    assert "market with 0.25 cores was the parameter server" in told
    refused = user("job", "cancel", 7, "-y", code=4)
    assert refused.stderr == "souk: job 7 has succeeded already\n"
    market.on("GET", "/v1/jobs/7", job("cancelled"))
    assert "job 7 has been cancelled already" in user("job", "cancel", 7, "-y", code=4).stderr


@pytest.mark.parametrize("change, words", [
    ({"available_microcredits": 3999}, "it may cost 0.004000 credits"),
    ({"placed_microcredits": 1000001, "available_microcredits": 2000000}, "max_total_cost of 1."),
    ({"can_start": False, "placed_microcredits": 0, "available_microcredits": 100},
     "you have 0.000100"),
])
def test_what_cannot_be_paid_is_refused_before_data_is_sent(user, market, tmp_path, change, words):
    script_job(market, job())
    market.on("POST", "/v1/quotes", {**QUOTE, **change})
    data = write_data_set(tmp_path / "data")
    refused = user("job", "submit", ROOT / "examples" / "fashion-mnist.yaml", "--dataset-dir", data,
                   "-y", code=6)
    assert words in refused.stderr and "nothing was sent" in refused.stderr
    assert not market.bodies("POST", "/v1/jobs") and not market.chunks


def test_a_token_is_never_lost(souk, market, tmp_path):
    """A folder that cannot be written is told before the account is opened."""
    (tmp_path / "file").write_text("")
    souk("account", "open", "--name", "ada", "--server", market.url, "--config-dir",
         tmp_path / "file" / "souk", code=2)
    assert not market.requests


def log_part(lease, offset, text, is_end):
    return {"job": 7, "rank": "server", "lease": lease, "offset": offset, "next_offset": offset + len(text), "text": text,
            "is_end": is_end}


def test_logs_are_read_to_their_end_and_then_those_of_the_successor(user, market):
    first, second = lease(1, "market", "server", 0), lease(4, "slow", "server", 0)
    worker, lost = lease(2, "fast", "worker", 30), {"state": "ended", "outcome": "lost", "reason": "its machine is gone"}
    market.on("GET", "/v1/jobs/7", [job(leases=[first, worker]),
                                    job(leases=[{**first, **lost}, worker]),
                                    job(leases=[{**first, **lost}, worker, second]),
                                    job("succeeded", leases=[{**first, **lost}, worker, second])])
    market.on("GET", "/v1/jobs/7/logs?lease=1&offset=0", log_part(1, 0, "hello\n", False))
    market.on("GET", "/v1/jobs/7/logs?lease=1&offset=6", [log_part(1, 6, "", False), log_part(1, 6, "bye\n", True)])
    market.on("GET", "/v1/jobs/7/logs?lease=4&offset=0", log_part(4, 0, "again\n", True))
    done = user("job", "logs", 7, "--rank", "server", "-f")
    assert done.stdout == "hello\nbye\nagain\n"
    assert "Lease 4 on slow, running:" in done.stderr
    assert user("job", "logs", 7, "--lease", 4).stdout == "again\n"
    assert "no such rank" in user("job", "logs", 7, "--rank", "server-1", code=3).stderr


def test_fetching_writes_whole_files_and_never_outside(user, market, tmp_path):
    market.on("GET", "/v1/jobs/7/artifacts?limit=500", {"items": [
        {"name": "model.safetensors", "size": 5, "manifest": "0" * 64, "created_ms": 1},
        {"name": "card.json", "size": 2, "manifest": "0" * 64, "created_ms": 1}],
        "next_cursor": None})
    market.on("GET", "/v1/jobs/7/artifacts/model.safetensors", b"model")
    market.on("GET", "/v1/jobs/7/artifacts/card.json", b"{}")
    out = tmp_path / "out"
    user("job", "fetch", 7, "-o", out)
    assert sorted(p.name for p in out.iterdir()) == ["card.json", "model.safetensors"]
    assert (out / "model.safetensors").read_bytes() == b"model"
    assert "left no file of that name" in user("job", "fetch", 7, "other", "-o", out, code=3).stderr
    market.on("GET", "/v1/jobs/7/artifacts/card.json", b"{\"cut\":")
    assert "came with 7 of 2 bytes" in user("job", "fetch", 7, "card.json", "-o", out,
                                            code=8).stderr
    market.on("GET", "/v1/jobs/7/artifacts?limit=500", {"items": [
        {"name": "../evil", "size": 5, "manifest": "0" * 64, "created_ms": 1}],
        "next_cursor": None})
    assert "is not fetched" in user("job", "fetch", 7, "-o", out, code=8).stderr
    assert not (tmp_path / "evil").exists()


def test_what_the_market_sends_cannot_steer_the_terminal(user, market):
    market.on("GET", "/v1/account", dict(ACCOUNT, name="\033[31mred\n"))
    assert "Account:   ?[31mred? (3)" in user("account").stdout
