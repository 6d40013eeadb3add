"""Whose chunks are whose, how long they stay, and what they count.

covers server/holdings.c, server/holdings_adopt.c, server/holdings_expire.c, server/handle_blob.c, server/upkeep.c
"""
import json
import sqlite3

import pytest

from serving import Market
from test_server import assert_problem, chunk_name, job_spec, upload
from training import wait_for


@pytest.fixture
def made(tmp_path):
    markets = []

    def make(*options):
        markets.append(Market(tmp_path / "market", "--no-local-lender", *options))
        return markets[-1]
    yield make
    for market in markets:
        market.stop()


def is_stored(market, name):
    return any((market.folder / "blobs" / name[:2]).glob(name[2:] + "*"))


def test_a_hash_is_no_permission(made):
    market = made()
    owner, other = market.sign_up("owner"), market.sign_up("other")
    data = b"nobody else's business" * 100
    name = upload(market, owner, data)
    path = f"/v1/chunks/{name}"
    assert market.get(path, owner).body == data
    assert_problem(market.get(path, other), 404, "not_found")
    assert_problem(market.get(path, market.operator_token()), 404)
    # Who does not have the bytes is told to send them, and naming them is not sending them.
    assert market.post("/v1/chunks/missing", {"hashes": [name]}, owner).json == {"hashes": []}
    assert market.post("/v1/chunks/missing", {"hashes": [name]}, other).json == {"hashes": [name]}
    assert_problem(market.call("PUT", path, b"something else", other), 400)
    assert_problem(market.get(path, other), 404)
    assert market.call("PUT", path, data, other).status == 201
    assert market.get(path, other).body == data
    market.kill()
    market.start()
    assert market.get(path, owner).body == data and market.get(path, other).body == data


def test_a_job_cannot_name_what_another_account_sent(made):
    market = made()
    owner, thief = market.sign_up("owner"), market.sign_up("thief")
    spec = job_spec(market, owner)
    answer = market.post("/v1/jobs", spec, thief)
    assert_problem(answer, 404, words="upload it first")
    # Nor by a manifest of its own.
    secret = upload(market, owner, b"s" * 784)
    manifest = json.dumps({"media_type": "application/x-idx", "size": 784, "header_bytes": 0, "record_bytes": 784,
                           "record_count": 1, "header": "", "chunks": [{"hash": secret, "size": 784}]},
                          separators=(",", ":")).encode()
    spec["inputs"][0].update(manifest=upload(market, thief, manifest), records=1)
    assert_problem(market.post("/v1/jobs", spec, thief), 404, words="upload it first")


def test_what_nobody_uses_goes_and_no_longer_counts(made):
    market = made("--keep", "3s", "--account-quota", "100000")
    token, second = market.sign_up("hoarder"), market.sign_up("second")
    old = upload(market, token, b"x" * 60000)
    more = b"y" * 60000
    path = f"/v1/chunks/{chunk_name(more)}"
    assert_problem(market.call("PUT", path, more, token), 507, "storage_full", "this account")
    assert upload(market, second, b"x" * 60000) == old  # counts for both, is there once
    assert_problem(market.call("PUT", path, more, second), 507)
    wait_for("the chunk's end", lambda: not is_stored(market, old))
    wait_for("room for another", lambda: market.call("PUT", path, more, token).status == 201)
    assert_problem(market.get(f"/v1/chunks/{old}", token), 404)
    wait_for("room for the second", lambda: market.call("PUT", path, more, second).status in (200, 201))


def test_a_chunk_that_is_sent_again_counts_once(made):
    market = made("--account-quota", "100000")
    token = market.sign_up("unlucky")
    data = b"x" * 60000
    name = upload(market, token, data)
    market.stop()
    for stored in (market.folder / "blobs" / name[:2]).glob(name[2:] + "*"):
        stored.unlink()  # its row is still there
    market.start()
    assert upload(market, token, data) == name
    upload(market, token, b"y" * 30000)
    more = b"z" * 30000
    assert_problem(market.call("PUT", f"/v1/chunks/{chunk_name(more)}", more, token), 507, "storage_full")


def test_data_from_before_there_were_owners_is_its_jobs_accounts(made):
    market = made("--account-quota", "200000")
    token, other = market.sign_up("early"), market.sign_up("other")
    spec = job_spec(market, token)
    assert market.post("/v1/jobs", spec, token).status == 201
    stray = upload(market, token, b"stray")
    hashes = [i["manifest"] for i in spec["inputs"]]
    market.stop()
    with sqlite3.connect(market.folder / "market.db") as database:
        database.execute("DELETE FROM holdings")
        database.execute("UPDATE usage SET bytes = 200000")  # every chunk that was ever sent first
    market.start()
    assert market.post("/v1/chunks/missing", {"hashes": [*hashes, stray]}, token).json == {"hashes": [stray]}
    assert_problem(market.get(f"/v1/chunks/{hashes[0]}", other), 404)
    assert market.post("/v1/jobs", spec, token).status == 201
    upload(market, token, b"z" * 100000)
    more = b"y" * 60000
    assert_problem(market.call("PUT", f"/v1/chunks/{chunk_name(more)}", more, token), 507, "storage_full")
    assert "chunks_adopted" in market.folder.with_suffix(".log").read_text()


def test_a_job_that_waits_keeps_its_data(made):
    market = made("--keep", "2s")
    token = market.sign_up("patient")
    stray = upload(market, token, b"stray")
    job = market.post("/v1/jobs", job_spec(market, token), token)
    assert job.status == 201, job
    wait_for("the stray chunk's end", lambda: not is_stored(market, stray))
    wait_for("two more rounds", lambda: market.folder.with_suffix(".log").read_text().count("chunks_expired") >= 1)
    hashes = [i["manifest"] for i in market.get(f"/v1/jobs/{job.json['id']}", token).json["spec"]["inputs"]]
    assert all(is_stored(market, name) for name in hashes)
    market.post(f"/v1/jobs/{job.json['id']}/cancel", {}, token)
    wait_for("the end of its data", lambda: not any(is_stored(market, name) for name in hashes))
