"""Statements: what they add up to, whose they are, in which order they come.

covers server/handle_statement.c, server/view_entry.c, cli/command_statement.c
"""
import csv
import io
import json
import os
import pathlib
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market, audit

JOBS, MACHINES = 130, 30


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A market whose jobs have ended, and the token of who owns them."""
    folder = tmp_path_factory.mktemp("statements") / "data"
    folder.mkdir(mode=0o700)
    fill = pathlib.Path(PROGRAM).resolve().with_name("api_fill")
    done = subprocess.run([fill, folder, str(JOBS), str(MACHINES)], capture_output=True, text=True,
                          timeout=HUNG_S, check=True)
    market = Market(folder, "--no-local-lender", "--reads-per-minute", "0")
    yield market, json.loads(done.stdout)["token"]
    assert market.stop() == 0
    assert audit(folder)[0] == 0


def pages(market, path, token, limit):
    cursor, mark = "", "&" if "?" in path else "?"
    while True:
        answer = market.get(f"{path}{mark}limit={limit}{cursor}", token)
        assert answer.status == 200, answer
        yield answer.json
        if not answer.json["next_cursor"]:
            return
        cursor = "&cursor=" + answer.json["next_cursor"]


def entries(market, path, token, limit=500):
    return [entry for page in pages(market, path, token, limit) for entry in page["items"]]


def change(entry):
    return 0 if entry["direction"] == "inside" else entry["amount_microcredits"]


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("kind", ["", "&kind=post", "&kind=hold,void"])
def test_pages_of_an_account_join_at_their_balances(filled, order, kind):
    market, token = filled
    account = market.get("/v1/account", token).json
    balance = account["available_microcredits"] + account["held_microcredits"]
    everything = entries(market, "/v1/account/entries", token)
    path = f"/v1/account/entries?order={order}{kind}"
    for limit in (7, 50, 500):
        before = None
        for page in pages(market, path, token, limit):
            begin, end = page["opening_microcredits"], page["closing_microcredits"]
            if kind:  # entries left out would stand between them
                assert begin is None and end is None
                continue
            if order == "newest":
                begin, end = end, begin
            assert begin == (before if before is not None else balance if order == "newest" else 0)
            assert (page["closing_microcredits"] - page["opening_microcredits"]
                    == sum(map(change, page["items"])))
            before = end
        assert kind or before == (0 if order == "newest" else balance)
    wanted = [e for e in everything if not kind or e["kind"] in kind.partition("=")[2].split(",")]
    assert wanted
    assert entries(market, path, token, 7) == (wanted if order == "newest" else wanted[::-1])


def test_a_jobs_sums_are_those_of_its_entries(filled):
    market, token = filled
    for job in market.get("/v1/jobs?limit=20", token).json["items"]:
        path = f"/v1/jobs/{job['id']}/entries"
        sums = market.get(path, token).json["sums"]
        listed = entries(market, path, token)
        for kind, name in (("hold", "held"), ("post", "posted"), ("fee", "fee"), ("void", "voided")):
            assert sums[f"{name}_microcredits"] == sum(
                abs(e["amount_microcredits"]) for e in listed if e["kind"] == kind), (name, job)
        assert sums["held_microcredits"] > 0
        assert (sums["held_microcredits"] - sums["posted_microcredits"] - sums["fee_microcredits"]
                - sums["voided_microcredits"] == job["held_microcredits"])
        assert {e["job_name"] for e in listed} == {job["name"]}
        assert market.get(path, token).json["opening_microcredits"] is None


def test_entries_carry_names(filled):
    market, token = filled
    machines = {m["id"]: m for m in entries(market, "/v1/machines", token)}
    posts = entries(market, "/v1/account/entries?kind=post", token)
    assert posts
    for entry in posts:
        machine = machines[entry["machine"]]
        assert entry["machine_name"] == machine["name"]
        assert entry["other_account"] == machine["account"]
        assert entry["other_account_name"] == machine["account_name"]
        assert entry["job_name"].startswith("fashion-mnist-")
    grant = entries(market, "/v1/account/entries?kind=grant", token)[-1]
    assert grant["other_account_name"] == "mint" and not grant["machine_name"]


def test_what_is_anothers_or_nobodys_is_not_found(filled):
    market, token = filled
    stranger = market.sign_up("stranger")
    job = market.get("/v1/jobs?limit=1", token).json["items"][0]["id"]
    machine = entries(market, "/v1/account/entries?kind=post", token)[0]["machine"]
    for path in (f"/v1/jobs/{job}/entries", f"/v1/account/entries?job={job}",
                 f"/v1/machines/{machine}/entries", f"/v1/account/entries?machine={machine}"):
        assert market.get(path, token).status == 200
        assert market.get(path, stranger).status == 404, path
        assert market.get(path + ("&" if "?" in path else "?") + "format=csv", stranger).status == 404
    for path in ("/v1/jobs/99999999/entries", "/v1/machines/99999999/entries", "/v1/jobs/0/entries",
                 f"/v1/jobs/{machine}/entries", f"/v1/machines/{job}/entries",
                 "/v1/account/entries?job=99999999", "/v1/jobs/18446744073709551615/entries"):
        answer = market.get(path, token)
        assert answer.status == 404 and answer.json["code"] == "not_found", answer
    # A borrower sees what it paid for a machine, and no sums of another's.
    paid = market.get(f"/v1/machines/{machine}/entries", token).json
    assert paid["items"] and paid["sums"] is None


@pytest.mark.parametrize("query, field", [
    ("kind=gift", "kind"), ("kind=", "kind"), ("kind=post,", "kind"), ("order=up", "order"),
    ("format=xml", "format"), ("cursor=7", "cursor"), ("cursor=0.5", "cursor"),
    ("cursor=7.x", "cursor"), ("cursor=9.99999999999999999999", "cursor"), ("limit=0", "limit"),
    ("job=1&machine=2", "job")])
def test_what_is_asked_wrongly_is_named(filled, query, field):
    market, token = filled
    answer = market.get("/v1/account/entries?" + query, token)
    assert answer.status == 400 and field in answer.json["detail"], answer


def run_statement(market, token, *options):
    done = subprocess.run([PROGRAM, "wallet", "statement", *options], capture_output=True,
                          timeout=HUNG_S, env={**os.environ, "SOUK_SERVER": market.url,
                                           "SOUK_TOKEN": token})
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def test_the_cli_prints_all_as_csv(filled):
    market, token = filled
    wanted = entries(market, "/v1/account/entries", token)
    assert len(wanted) > 500  # more than a page
    rows = list(csv.DictReader(io.StringIO(run_statement(market, token, "--csv"), newline="")))
    assert [int(row["id"]) for row in rows] == [entry["id"] for entry in wanted]
    for row, entry in zip(rows, wanted):
        assert row["machine_name"] == entry["machine_name"]
        assert row["other_account_name"] == entry["other_account_name"]
        assert row["job_name"] == entry["job_name"]
    oldest = run_statement(market, token, "--csv", "--oldest-first", "--kind", "hold", "--limit", "3")
    holds = [entry for entry in wanted[::-1] if entry["kind"] == "hold"][:3]
    assert [int(row["id"]) for row in csv.DictReader(io.StringIO(oldest))] == [e["id"] for e in holds]


def test_the_cli_shows_balances_and_sums(filled):
    market, token = filled
    page = market.get("/v1/account/entries?limit=50", token).json
    shown = json.loads(run_statement(market, token, "--json"))
    assert shown["items"] == page["items"]
    assert shown["opening_microcredits"] == page["opening_microcredits"]
    assert shown["closing_microcredits"] == page["closing_microcredits"]
    assert "Balance:" in run_statement(market, token)
    assert "Balance:" not in run_statement(market, token, "--kind", "hold")
    assert set(json.loads(run_statement(market, token, "--json", "--kind", "hold"))) == {"items"}
    job = market.get("/v1/jobs?limit=1", token).json["items"][0]["id"]
    sums = market.get(f"/v1/jobs/{job}/entries", token).json["sums"]
    assert json.loads(run_statement(market, token, "--json", "--job", str(job)))["sums"] == sums
    assert "In all: held" in run_statement(market, token, "--job", str(job))
