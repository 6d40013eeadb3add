"""Objects by name in the market's store: who may what, what is lost, and how long they stay.

covers server/objects.c, server/objects_expire.c, server/handle_object.c, server/handle_object_token.c
"""
import multiprocessing
import random
import sqlite3
import time

import pytest

from serving import Market
from test_server import assert_problem
from training import wait_for

ONCE = {"If-None-Match": "*"}
PART = 4000000


@pytest.fixture
def made(tmp_path):
    markets = []

    def make(*options):
        markets.append(Market(tmp_path / "market", "--no-local-lender", *options))
        return markets[-1]
    yield make
    for market in markets:
        market.stop()


def put(market, token, name, data, **more):
    return market.call("PUT", f"/v1/objects/{name}", data, token, **more)


def names(market, token, prefix=""):
    found, cursor = [], ""
    while cursor is not None:
        page = market.get(f"/v1/objects?limit=3&prefix={prefix}" + (f"&cursor={cursor}" if cursor else ""), token).json
        found += [item["name"] for item in page["items"]]
        cursor = page["next_cursor"]
    return found


def blob_count(market):
    return sum(1 for path in (market.folder / "blobs").glob("??/*"))


def test_an_object_is_put_read_replaced_and_deleted(made):
    market = made()
    token, other = market.sign_up("lead"), market.sign_up("other")
    path = "/v1/objects/models/digits-1/7"
    assert_problem(market.get(path, token), 404, "not_found")
    assert put(market, token, "models/digits-1/7", b"hello", headers=ONCE).status == 201
    assert_problem(put(market, token, "models/digits-1/7", b"other", headers=ONCE), 412, "exists")
    assert market.get(path, token).body == b"hello"
    assert_problem(market.get(path, other), 404)
    part = market.get(path, token, headers={"Range": "bytes=1-3"})
    assert (part.status, part.body, part.headers["Content-Range"]) == (206, b"ell", "bytes 1-3/5")
    assert_problem(market.get(path, token, headers={"Range": "bytes=5-"}), 416)
    assert put(market, token, "models/digits-1/7", b"more").status == 200
    assert market.get(path, token).body == b"more"
    assert put(market, token, "models/digits-1/empty", b"").status == 201
    assert market.get("/v1/objects/models/digits-1/empty", token).body == b""
    market.kill()
    market.start()
    assert market.get(path, token).body == b"more" and names(market, token) == ["models/digits-1/7",
                                                                                 "models/digits-1/empty"]
    for _ in range(2):
        assert market.call("DELETE", path, token=token).status == 204
    assert market.call("DELETE", "/v1/objects/models/digits-1/empty", token=token).status == 204
    assert_problem(market.get(path, token), 404)
    assert blob_count(market) == 0  # nothing is left of what was replaced or deleted


def test_what_is_no_name_and_too_long_is_refused(made):
    market = made()
    token = market.sign_up("lead")
    for name in ("..%2Fa", ".a", "a/.b", "a//b", "a%20b", "a%0Ab", "a/", "x" * 256):
        assert_problem(put(market, token, name, b"x"), 400, "invalid")
    assert_problem(put(market, token, "a", bytes(PART + 1)), 413)
    assert_problem(put(market, token, "a", b"x", headers={"If-None-Match": '"tag"'}), 400)
    assert_problem(put(market, None, "a", b"x"), 401)
    assert names(market, token) == []


def test_a_large_object_is_put_in_parts_and_is_one(made):
    market = made()
    token = market.sign_up("lead")
    data = random.Random(1).randbytes(2 * PART + 12345)
    for i in range(3):
        assert put(market, token, f"data/digits-1/images.a1.{i}", data[i * PART:(i + 1) * PART]).status == 201
    whole = "/v1/objects/data/digits-1/images"
    assert_problem(market.call("PUT", whole + "?parts=4&of=a1", b"", token, headers=ONCE), 404)
    assert_problem(market.call("PUT", whole + "?parts=3", b"", token, headers=ONCE), 400)
    assert_problem(market.call("PUT", whole + "?parts=513&of=a1", b"", token, headers=ONCE), 400)
    assert market.call("PUT", whole + "?parts=3&of=a1", b"", token, headers=ONCE).status == 201
    assert_problem(market.call("PUT", whole + "?parts=3&of=a1", b"", token, headers=ONCE), 412)
    assert names(market, token) == ["data/digits-1/images"]
    assert market.get(whole, token).body == data
    for first, last in ((0, 0), (PART - 1, PART), (PART, 2 * PART), (2 * PART + 5, 2 * PART + 12344)):
        part = market.get(whole, token, headers={"Range": f"bytes={first}-{last}"})
        assert part.status == 206 and part.body == data[first:last + 1]
    assert market.call("DELETE", whole, token=token).status == 204
    assert blob_count(market) == 0


def test_functions_of_one_job_have_nothing_else(made):
    market = made()
    token, other = market.sign_up("lead"), market.sign_up("other")
    for name in ("jobs/one", "jobs/two", "data/one/images", "models/one/0", "models/two/0", "updates/two/0-1-0"):
        assert put(market, token, name, name.encode()).status == 201
    assert_problem(market.post("/v1/objects/tokens", {"job": "a/b"}, token), 400)
    assert_problem(market.post("/v1/objects/tokens", {}, token), 400)
    answer = market.post("/v1/objects/tokens", {"job": "one"}, token)
    assert answer.status == 201 and answer.json["job"] == "one" and answer.json["expires_ms"] > 0
    function = answer.json["token"]
    for name in ("jobs/one", "data/one/images", "models/one/0"):
        assert market.get(f"/v1/objects/{name}", function).body == name.encode()
        assert_problem(put(market, function, name, b"x", headers=ONCE), 403)
        assert_problem(market.call("DELETE", f"/v1/objects/{name}", token=function), 403)
    for name in ("jobs/two", "models/two/0", "updates/two/0-1-0", "jobs/one-more", "jobs", "other/one/x"):
        assert_problem(market.get(f"/v1/objects/{name}", function), 403)
        assert_problem(put(market, function, name, b"x", headers=ONCE), 403)
    # An update is put once, and by no function taken away again.
    assert_problem(put(market, function, "updates/one/0-1-0", b"x"), 403)
    assert put(market, function, "updates/one/0-1-0", b"x", headers=ONCE).status == 201
    assert_problem(put(market, function, "updates/one/0-1-0", b"y", headers=ONCE), 412)
    assert market.get("/v1/objects/updates/one/0-1-0", function).body == b"x"
    assert_problem(market.call("DELETE", "/v1/objects/updates/one/0-1-0", token=function), 403)
    # And of all else there is nothing to be had by it.
    for path in ("/v1/objects", "/v1/account", "/v1/jobs", "/v1/tokens", "/v1/machines", "/v1/chunks/" + 64 * "0"):
        assert_problem(market.get(path, function), 403)
    assert_problem(market.post("/v1/objects/tokens", {"job": "two"}, function), 403)
    listed = [item for item in market.get("/v1/tokens", token).json["items"] if item["name"] == "one"]
    assert [item["scopes"] for item in listed] == [["objects"]]
    # Who may borrow makes and ends such tokens, and no others.
    path = f"/v1/objects/tokens/{answer.json['id']}"
    assert_problem(market.call("DELETE", path, token=other), 404)
    assert_problem(market.call("DELETE", path, token=function), 403)
    borrower = market.post("/v1/tokens", {"name": "b", "scopes": ["borrow"]}, token).json
    assert_problem(market.call("DELETE", f"/v1/objects/tokens/{borrower['id']}", token=borrower["token"]), 404)
    assert market.post("/v1/objects/tokens", {"job": "two"}, borrower["token"]).status == 201
    market.kill()
    market.start()
    assert market.get("/v1/objects/jobs/one", function).status == 200
    assert market.call("DELETE", path, token=borrower["token"]).status == 204
    assert_problem(market.get("/v1/objects/jobs/one", function), 401)
    assert_problem(market.post("/v1/tokens", {"name": "one", "scopes": ["objects"]}, token), 400)


def test_a_token_of_functions_outlives_neither_its_maker_nor_a_day(made):
    market = made()
    token = market.sign_up("lead")
    day = market.post("/v1/objects/tokens", {"job": "one"}, token).json["expires_ms"]
    now_ms = time.time() * 1000
    assert abs(day - now_ms - 86400000) < 600000
    short = market.post("/v1/tokens", {"name": "s", "scopes": ["borrow"], "expires_ms": day - 80000000}, token).json
    assert market.post("/v1/objects/tokens", {"job": "one"}, short["token"]).json["expires_ms"] == day - 80000000


def test_objects_count_with_chunks_against_the_quota(made):
    market = made("--account-quota", "100000")
    token = market.sign_up("lead")
    assert put(market, token, "a", bytes(60000)).status == 201
    assert_problem(put(market, token, "b", bytes(60000)), 507, "storage_full", "this account")
    assert_problem(market.call("POST", "/v1/chunks", b"c" * 60000, token), 507)
    assert put(market, token, "a", bytes(90000)).status == 200
    assert market.call("DELETE", "/v1/objects/a", token=token).status == 204
    assert market.call("POST", "/v1/chunks", b"c" * 60000, token).status == 201
    assert_problem(put(market, token, "b", bytes(60000)), 507)
    assert put(market, token, "b", bytes(40000)).status == 201
    market.kill()
    market.start()
    assert_problem(put(market, token, "c", b"x"), 507)


def test_what_nobody_reads_goes(made):
    market = made("--keep", "3s", "--account-quota", "100000")
    token = market.sign_up("lead")
    assert put(market, token, "old", bytes(60000)).status == 201
    assert put(market, token, "used", bytes(30000)).status == 201

    def is_gone():
        assert market.get("/v1/objects/used", token).status == 200
        return names(market, token) == ["used"]
    wait_for("the end of what nobody reads", is_gone)
    assert_problem(market.get("/v1/objects/old", token), 404)
    assert put(market, token, "new", bytes(60000)).status == 201


WRITERS, KEYS, ROUNDS = 150, 40, 6


class Writers:
    """Processes that put objects, and note what each was told in a file of its own: who is killed holds up nobody."""

    def __init__(self, market, token, folder, count):
        self.folder = folder
        folder.mkdir()
        self.processes = [multiprocessing.Process(target=write, args=(market, token, number, folder / str(number)))
                          for number in range(count)]
        for process in self.processes:
            process.start()

    def told(self):
        """Name, bytes and status of each put that was answered."""
        found = []
        for path in self.folder.iterdir():
            for line in path.read_text().split("\n")[:-1]:  # the last may be cut
                number, round_number, name, status = line.split()
                found.append((name, data_of(number, round_number, name), int(status)))
        return found

    def wait_for_some(self):
        wait_for("some that were answered", lambda: len(self.told()) > 100)

    def join(self):
        for process in self.processes:
            process.join()


def data_of(number, round_number, name):
    return f"{number} {round_number} {name} ".encode() * 200


def write(market, token, number, path):
    """Puts objects of its own, and races for those of all."""
    chance = random.Random(number)
    with open(path, "w", buffering=1) as notes:
        for round_number in range(ROUNDS):
            for name in (f"updates/own/{number}-{round_number}", f"updates/race/{chance.randrange(KEYS)}"):
                status = put(market, token, name, data_of(number, round_number, name), headers=ONCE).status
                assert status in (201, 412), status
                notes.write(f"{number} {round_number} {name} {status}\n")


def test_of_150_writers_none_loses_a_write_and_one_wins_each_race(made, tmp_path):
    market = made()
    token = market.sign_up("lead")
    writers = Writers(market, token, tmp_path / "told", WRITERS)
    writers.wait_for_some()
    doomed = writers.processes[::10]
    for process in doomed:
        process.kill()  # half-way through something
    writers.join()
    assert all(process.exitcode == 0 for process in writers.processes if process not in doomed)
    told, won = writers.told(), {}
    for name, data, status in told:
        if status == 201:
            assert won.setdefault(name, data) == data  # nobody else was told so
    for name in {name for name, _, _ in told}:
        found = market.get(f"/v1/objects/{name}", token).body
        # Who was killed may have won without hearing of it; what is there is whole in any case.
        assert found == won.get(name, data_of(*found.decode().split()[:3]))
    assert len(names(market, token, "updates/own/")) >= (WRITERS - len(doomed)) * ROUNDS
    with sqlite3.connect(market.folder / "market.db") as rows:
        assert rows.execute("select count(*) from objects").fetchone()[0] == blob_count(market)


def test_what_was_told_to_be_there_is_there_after_a_kill(made, tmp_path):
    market = made()
    token = market.sign_up("lead")
    writers = Writers(market, token, tmp_path / "told", 40)
    writers.wait_for_some()
    market.kill()
    writers.join()
    market.start()
    for name, data, status in writers.told():
        if status == 201:
            assert market.get(f"/v1/objects/{name}", token).body == data
