"""Reads that are answered from memory: never an answer that is no longer true.

covers server/answers.c, server/api_fill.c, server/list_view.c
"""
import concurrent.futures
import csv
import decimal
import io
import json
import pathlib
import re
import subprocess
import threading

import pytest

from serving import HUNG_S, PROGRAM, Market, audit

JOBS, MACHINES = 130, 30


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A market with jobs and machines made by api_fill, and the token of who owns the jobs."""
    folder = tmp_path_factory.mktemp("answers") / "data"
    folder.mkdir(mode=0o700)
    fill = pathlib.Path(PROGRAM).resolve().with_name("api_fill")
    done = subprocess.run([fill, folder, str(JOBS), str(MACHINES)], capture_output=True, text=True,
                          timeout=HUNG_S, check=True)
    market = Market(folder, "--no-local-lender", "--reads-per-minute", "0")
    yield market, json.loads(done.stdout)["token"]
    assert market.stop() == 0
    assert audit(folder)[0] == 0


def pages(market, path, token, limit):
    items, cursor = [], ""
    while True:
        answer = market.get(f"{path}?limit={limit}{cursor}", token)
        assert answer.status == 200, answer
        items += answer.json["items"]
        if not answer.json["next_cursor"]:
            return items
        cursor = "&cursor=" + answer.json["next_cursor"]


@pytest.mark.parametrize("path, count", [("/v1/jobs", JOBS), ("/v1/machines", MACHINES)])
def test_pages_add_up_whether_kept_or_not(filled, path, count):
    market, token = filled
    first = pages(market, path, token, 7)
    assert len({item["id"] for item in first}) == count
    assert pages(market, path, token, 7) == first
    assert pages(market, path, token, 500) == first


def filtered(market, path, token, parameter, limit):
    """All pages of a list with a filter: a page may be short, the cursor says whether it goes on."""
    items, cursor = [], ""
    while True:
        answer = market.get(f"{path}?limit={limit}&{parameter}{cursor}", token)
        assert answer.status == 200, answer
        assert len(answer.json["items"]) <= limit
        items += answer.json["items"]
        if not answer.json["next_cursor"]:
            return items
        cursor = "&cursor=" + answer.json["next_cursor"]


def test_lists_can_be_filtered(filled):
    market, token = filled
    jobs, machines = pages(market, "/v1/jobs", token, 500), pages(market, "/v1/machines", token, 500)
    failed = [job for job in jobs if job["state"] == "failed"]
    assert failed and filtered(market, "/v1/jobs", token, "state=failed", 1) == failed
    assert filtered(market, "/v1/jobs", token, "state=running", 5) == []
    offline = [machine for machine in machines if machine["state"] == "offline"]
    assert offline and filtered(market, "/v1/machines", token, "state=offline", 3) == offline
    assert filtered(market, "/v1/machines", token, "state=online", 3) == [
        machine for machine in machines if machine["state"] == "online"]
    assert filtered(market, "/v1/machines", token, "mine=true", 3) == []
    assert filtered(market, "/v1/machines", token, "mine=false", 7) == machines
    for wrong in ("/v1/jobs?state=lost", "/v1/machines?state=", "/v1/machines?mine=yes"):
        answer = market.get(wrong, token)
        assert answer.status == 400 and "must be" in answer.json["detail"], answer


@pytest.mark.parametrize("sort, key", [
    ("price", lambda m: m["offer"]["minimum"]["core_micro"]),
    ("speed", lambda m: -m["probe"]["speed_weight_milli"]),
    ("reliability", lambda m: -m["reputation"]["reliability_milli"]),
    ("free", lambda m: -m["free"]["cores_milli"])])
def test_machines_come_in_the_order_asked_for(filled, sort, key):
    market, token = filled
    machines = pages(market, "/v1/machines", token, 500)
    found = filtered(market, "/v1/machines", token, f"sort={sort}", 7)
    assert sorted(m["id"] for m in found) == sorted(m["id"] for m in machines)
    assert [key(m) for m in found] == sorted(key(m) for m in machines)
    assert filtered(market, "/v1/machines", token, f"sort={sort}&availability=offline", 7) == [
        m for m in found if m["availability"] == "offline"]
    first = market.get(f"/v1/machines?sort={sort}&limit=3", token).json
    answer = market.get(f"/v1/machines?limit=3&cursor={first['next_cursor']}", token)
    assert answer.status == 400 and "cursor" in answer.json["detail"], answer


def test_statements_come_as_json_and_csv(filled):
    market, token = filled
    job = market.get("/v1/jobs?limit=1", token).json["items"][0]["id"]
    for path in ("/v1/account/entries", f"/v1/jobs/{job}/entries"):
        wanted = pages(market, path, token, 500)
        text, at = "", path + "?format=csv&limit=3"
        for _ in range(40):
            answer = market.get(at, token)
            assert answer.status == 200, answer
            assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
            text += answer.body.decode()
            link = answer.headers["Link"]
            if not link:
                break
            at = re.fullmatch(r'<(.*)>; rel="next"', link)[1]
        assert text.count("\r\n") == text.count("\n")
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert rows and len(rows) == min(len(wanted), 120)
        for row, entry in zip(rows, wanted):
            assert int(row["id"]) == entry["id"] and row["kind"] == entry["kind"]
            assert int(row["amount_microcredits"]) == entry["amount_microcredits"]
            assert decimal.Decimal(row["amount_credits"]) * 10**6 == entry["amount_microcredits"]
            assert int(row["job"]) == entry["job"] and row["memo"] == entry["memo"]
    assert {entry["job"] for entry in pages(market, f"/v1/jobs/{job}/entries", token, 5)} == {job}
    assert market.get("/v1/account/entries?format=xml", token).status == 400


def test_who_has_an_answer_is_told_that_it_still_holds(filled):
    market, token = filled
    first = market.get("/v1/jobs?limit=5", token)
    tag = first.headers["ETag"]
    assert first.headers["Cache-Control"] == "private, no-cache"
    same = market.get("/v1/jobs?limit=5", token, headers={"If-None-Match": tag})
    assert (same.status, same.body) == (304, b"") and same.headers["ETag"] == tag
    other = market.get("/v1/jobs?limit=6", token, headers={"If-None-Match": tag})
    assert other.status == 200 and len(other.json["items"]) == 6


def test_each_account_has_its_own_answer(filled):
    market, token = filled
    stranger = market.sign_up("stranger")
    assert market.get("/v1/jobs", token).json["items"]
    answer = market.get("/v1/jobs", stranger)
    assert answer.status == 200 and answer.json["items"] == []
    job = market.get("/v1/jobs?limit=1", token).json["items"][0]["id"]
    assert market.get(f"/v1/jobs/{job}", token).status == 200
    assert market.get(f"/v1/jobs/{job}", stranger).status == 404


def test_a_change_is_read_as_soon_as_it_is_acknowledged(filled):
    """Readers keep the answers in memory all the while."""
    market, token = filled
    done = threading.Event()

    def read():
        count = 0
        while not done.is_set():
            assert market.get("/v1/tokens", token).status == 200
            assert market.get("/v1/account", token).status == 200
            count += 1
        return count

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            for number in range(40):
                made = market.post("/v1/tokens", {"name": f"n-{number}", "scopes": ["read"]}, token)
                assert made.status == 201, made
                fresh, number = made.json["token"], made.json["id"]
                assert market.get("/v1/account", fresh).status == 200
                assert market.get("/v1/account", fresh).status == 200
                assert number in [item["id"] for item in pages(market, "/v1/tokens", token, 500)]
                assert market.call("DELETE", f"/v1/tokens/{number}", None, token).status == 204
                assert market.get("/v1/account", fresh).status == 401
        finally:
            done.set()
        assert all(reader.result() > 0 for reader in readers)


def counter(market, name):
    text = market.get("/metrics").body.decode()
    return int(re.search(rf"^souk_{name} (\d+)$", text, re.MULTILINE)[1])


def test_each_job_comes_the_same_from_memory(filled):
    market, token = filled
    jobs = [f"/v1/jobs/{job['id']}" for job in pages(market, "/v1/jobs", token, 500)]
    first = [market.get(path, token) for path in jobs]
    before = counter(market, "answers_hits_total")
    again = [market.get(path, token) for path in jobs]
    assert counter(market, "answers_hits_total") == before + len(jobs)
    assert [answer.body for answer in again] == [answer.body for answer in first]
    assert [answer.headers["ETag"] for answer in again] == [a.headers["ETag"] for a in first]
    held = market.get(jobs[0], token, headers={"If-None-Match": f'"other", W/{first[0].headers["ETag"]}'})
    assert (held.status, held.body) == (304, b"")


def test_prices_are_kept_until_what_they_show_changes(filled):
    market, token = filled
    operator = market.operator_token()
    first = market.get("/v1/prices")
    again = market.get("/v1/prices", headers={"If-None-Match": first.headers["ETag"]})
    assert again.status == 304
    for fee in (200, 300, 0):
        changed = market.call("PUT", "/v1/settings", {"fee_basis_points": fee}, operator)
        assert changed.status == 200, changed
        after = market.get("/v1/prices", headers={"If-None-Match": first.headers["ETag"]})
        assert after.status == 200 and after.json["fee_basis_points"] == fee
        assert market.get("/v1/prices").json == after.json


@pytest.mark.parametrize("memory", ["0", "64KiB"])
def test_kept_answers_never_pass_their_limit(filled, tmp_path, memory):
    """A market that keeps no answers, or hardly any, says the same."""
    market, token = filled
    folder = tmp_path / "data"
    assert market.stop() == 0
    subprocess.run(["cp", "-r", market.folder, folder], check=True)
    market.start()
    small = Market(folder, "--no-local-lender", "--reads-per-minute", "0", "--answers-memory", memory)
    limit = counter(small, "answers_bytes_max")
    assert limit == (65536 if memory == "64KiB" else 0)
    for _ in range(2):
        for job in pages(small, "/v1/jobs", token, 3):
            path = f"/v1/jobs/{job['id']}"
            assert small.get(path, token).body == market.get(path, token).body
            assert counter(small, "answers_bytes") <= limit
    assert small.get("/v1/prices").status == 200
    assert (counter(small, "answers") > 0) == (limit > 0)
    assert small.stop() == 0
