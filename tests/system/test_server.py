"""The market's API over HTTP, against the real program.

covers server/server.c, server/startup.c, server/upkeep.c, server/routes.c, server/auth.c
covers server/call.c, server/query.c, server/view.c
covers server/handle_account.c, server/handle_token.c, server/handle_enrol.c, server/handle_machine.c, server/handle_job.c
covers server/handle_result.c, server/handle_live.c, server/handle_blob.c, server/handle_meta.c
covers server/live_stream.c, server/handle_market.c, cli/command_health.c
"""
import concurrent.futures
import hashlib
import http.client
import json
import os
import pathlib
import re
import secrets
import subprocess
import urllib.parse

import pytest

from serving import HUNG_S, PROGRAM, Market, audit

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN_FIELDS = {"model": "lenet5", "data": "fashion-mnist"}


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    running = Market(tmp_path_factory.mktemp("market") / "data", "--no-local-lender")
    yield running
    assert running.stop() == 0


@pytest.fixture
def token(market, request):
    name = re.sub("[^a-z0-9]+", "-", request.node.name.lower())[:30].strip("-")
    return market.sign_up(name)


def chunk_name(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def upload(market, token, data):
    answer = market.call("PUT", f"/v1/chunks/{chunk_name(data)}", data, token)
    assert answer.status in (200, 201), answer
    return chunk_name(data)


def upload_records(market, token, header, record_bytes, count):
    """A file of records as one chunk with its manifest, like `souk job submit` makes them."""
    data = header + bytes(record_bytes * count)
    manifest = json.dumps({
        "media_type": "application/x-idx", "size": len(data), "header_bytes": len(header),
        "record_bytes": record_bytes, "record_count": count, "header": header.hex(),
        "chunks": [{"hash": upload(market, token, data), "size": len(data)}],
    }, separators=(",", ":")).encode()
    return upload(market, token, manifest)


def job_spec(market, token, **changes):
    images = upload_records(market, token, bytes.fromhex("00000803000000400000001c0000001c"), 784, 64)
    labels = upload_records(market, token, bytes.fromhex("0000080100000040"), 1, 64)
    spec = {
        "name": "a-job", "num_nodes": 1, "resources": {"cpus": "0.25+", "memory": "0.25+"},
        "runtime": "native", "train": TRAIN_FIELDS, "sync": {"policy": "adsp"},
        "market": {"max_run_time": "3m", "max_total_cost": 1},
        "inputs": [
            {"name": f"{split}-{part}", "split": split, "manifest": hash_, "records": 64}
            for split in ("train", "test") for part, hash_ in (("images", images), ("labels", labels))
        ],
    }
    spec.update(changes)
    return spec


def assert_problem(answer, status, code=None, words=""):
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    problem = answer.json
    assert problem["status"] == status and problem["title"] and problem["type"]
    assert words in problem["detail"], problem
    if code:
        assert problem["code"] == code


# ---- Accounts ------------------------------------------------------------------------------------


def test_a_new_account_gets_a_token_and_the_grant(market):
    answer = market.post("/v1/accounts", {"name": "newcomer"})
    assert answer.status == 201
    account = market.get("/v1/account", answer.json["token"]).json
    assert account["name"] == "newcomer"
    assert account["available_microcredits"] == 10_000_000 and account["held_microcredits"] == 0
    entries = market.get("/v1/account/entries", answer.json["token"]).json["items"]
    assert [(e["kind"], e["amount_microcredits"], e["direction"]) for e in entries] == [
        ("grant", 10_000_000, "in")]


def test_a_taken_or_wrong_name_is_refused(market, token):
    assert_problem(market.post("/v1/accounts", {"name": "operator"}), 409)
    assert_problem(market.post("/v1/accounts", {"name": "No Good!"}), 400, "invalid")
    assert_problem(market.post("/v1/accounts", {}), 400, "invalid", "name: missing")
    assert_problem(market.post("/v1/accounts", "{"), 400, "invalid")


def test_a_wrong_token_is_told_what_to_do(market):
    for path in ("/v1/account", "/v1/jobs", "/v1/machines", "/v1/tokens", "/v1/events"):
        assert_problem(market.get(path), 401, "unauthorized", "souk account open")
        answer = market.get(path, "souk_account_" + "0" * 64)
        assert_problem(answer, 401, "unauthorized", "not known")
        assert "Bearer" in answer.headers["WWW-Authenticate"]
    assert_problem(market.get("/v1/account", headers={"Authorization": "Basic x"}), 401)


def test_a_repeated_request_is_done_once(market):
    key = secrets.token_hex(16)
    first = market.post("/v1/accounts", {"name": "twice"}, key=key)
    again = market.post("/v1/accounts", {"name": "twice"}, key=key)
    assert first.status == again.status == 201
    assert first.json == again.json
    assert_problem(market.post("/v1/accounts", {"name": "other"}, key=key), 409, "conflict",
                   "another request")
    assert_problem(market.post("/v1/accounts", {"name": "long"}, key="k" * 129), 400)


def test_a_key_that_can_be_guessed_opens_no_account(market):
    answer = market.post("/v1/accounts", {"name": "guessed"}, key="signup-1")
    assert_problem(answer, 400, "invalid", "32 random characters")


def test_a_key_survives_a_restart(tmp_path):
    key = secrets.token_hex(16)
    market = Market(tmp_path / "data", "--no-local-lender")
    first = market.post("/v1/accounts", {"name": "lasting"}, key=key).json
    market.kill()
    market.start()
    assert market.post("/v1/accounts", {"name": "lasting"}, key=key).json == first
    assert market.get("/v1/account", first["token"]).json["name"] == "lasting"
    assert market.stop() == 0


def test_the_same_key_at_the_same_time_makes_one_account(market):
    key = secrets.token_hex(16)

    def sign_up(_):
        return market.post("/v1/accounts", {"name": "racer"}, key=key)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(sign_up, range(16)))
    assert {a.status for a in answers} <= {201, 409}
    assert len({a.json["account"]["id"] for a in answers if a.status == 201}) == 1


def test_the_start_says_where_the_operators_token_lies_and_not_what_it_is(market):
    said = pathlib.Path(f"{market.folder}.log").read_text()
    assert f"the token in {market.folder}/keys/operator.token\n" in said
    assert market.operator_token() not in said


def test_tokens_carry_scopes_and_can_be_revoked(market, token):
    made = market.post("/v1/tokens", {"name": "look only", "scopes": ["read"]}, token)
    assert made.status == 201
    reader = made.json["token"]
    assert market.get("/v1/account", reader).status == 200
    assert_problem(market.post("/v1/machines/codes", {}, reader), 403, "refused", "souk token make LABEL --scopes lend")
    assert_problem(market.get("/v1/tokens", reader), 403)
    assert_problem(market.post("/v1/tokens", {"name": "x", "scopes": ["fly"]}, token), 400)
    listed = market.get("/v1/tokens", token).json["items"]
    assert [t["name"] for t in listed] == ["first token", "look only"]
    assert "token" not in listed[0]
    assert market.call("DELETE", f"/v1/tokens/{made.json['id']}", None, token).status == 204
    assert_problem(market.get("/v1/account", reader), 401)
    other = market.sign_up("a-stranger")
    assert market.call("DELETE", f"/v1/tokens/{listed[0]['id']}", None, other).status in (403, 404)


def test_a_token_cannot_make_a_stronger_one(market, token):
    weak = market.post("/v1/tokens", {"name": "weak", "scopes": ["operate"]}, token).json["token"]
    assert_problem(market.post("/v1/tokens", {"name": "x", "scopes": ["borrow"]}, weak), 403)
    # A signed-in page has every scope, and so would what it makes.
    assert_problem(market.post("/v1/account/page-codes", {}, weak), 403, "refused", "every scope")


# ---- Signing in ----------------------------------------------------------------------------------


def test_a_page_code_signs_in_once(market, token):
    code = market.post("/v1/account/page-codes", {}, token).json
    assert code["url"] == f"{market.url}/#code={code['code']}"
    evil = {"Origin": "http://evil"}
    assert_problem(market.post("/v1/sessions", {"code": code["code"]}, headers=evil), 403)
    signed_in = market.post("/v1/sessions", {"code": code["code"]}, headers={"Origin": market.url})
    assert signed_in.status == 201
    cookie = signed_in.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    cookie = cookie.split(";")[0]
    assert market.get("/v1/account", headers={"Cookie": cookie}).status == 200
    assert_problem(market.post("/v1/sessions", {"code": code["code"]}), 401, "unauthorized")

    tokens = "/v1/tokens"
    body = {"name": "from the page", "scopes": ["read"]}
    assert_problem(market.post(tokens, body, headers={"Cookie": cookie}), 403)
    assert_problem(market.post(tokens, body, headers={"Cookie": cookie, "Origin": "http://evil"}), 403)
    own = {"Cookie": cookie, "Origin": market.url}
    assert market.post(tokens, body, headers=own).status == 201
    assert market.call("DELETE", "/v1/sessions", None, headers=own).status == 204
    assert_problem(market.get("/v1/account", headers={"Cookie": cookie}), 401)


# ---- Pages of lists ------------------------------------------------------------------------------


def test_lists_come_in_pages(market, token):
    for i in range(7):
        market.post("/v1/tokens", {"name": f"token {i}", "scopes": ["read"]}, token)
    seen, cursor = [], ""
    while cursor is not None:
        page = market.get(f"/v1/tokens?limit=3&cursor={urllib.parse.quote(cursor)}", token).json
        assert len(page["items"]) <= 3
        seen += [t["name"] for t in page["items"]]
        cursor = page["next_cursor"]
    assert seen == ["first token"] + [f"token {i}" for i in range(7)]
    assert_problem(market.get("/v1/tokens?limit=0", token), 400)
    assert_problem(market.get("/v1/tokens?limit=999999", token), 400)
    assert_problem(market.get("/v1/tokens?cursor=nonsense", token), 400)


# ---- Chunks --------------------------------------------------------------------------------------


def test_chunks_are_named_by_their_bytes(market, token):
    data = b"some data" * 1000
    name = chunk_name(data)
    assert market.post("/v1/chunks/missing", {"hashes": [name]}, token).json == {"hashes": [name]}
    assert market.call("PUT", f"/v1/chunks/{name}", data, token).status == 201
    assert market.call("PUT", f"/v1/chunks/{name}", data, token).status == 200
    assert market.get(f"/v1/chunks/{name}", token).body == data
    assert market.call("HEAD", f"/v1/chunks/{name}", None, token).status == 200
    assert market.post("/v1/chunks/missing", {"hashes": [name]}, token).json == {"hashes": []}
    wrong = chunk_name(b"other data")
    assert_problem(market.call("PUT", f"/v1/chunks/{wrong}", data, token), 400)
    assert_problem(market.get(f"/v1/chunks/{wrong}", token), 404, "not_found")
    assert_problem(market.get("/v1/chunks/xyz", token), 400)
    assert_problem(market.get(f"/v1/chunks/{name}"), 401)


def test_an_oversized_body_is_refused(market, token):
    data = bytes((4 << 20) + 1)
    answer = market.call("PUT", f"/v1/chunks/{chunk_name(data)}", data, token)
    assert_problem(answer, 413, "too_large", "at most 4194304 bytes")
    where = urllib.parse.urlsplit(market.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=HUNG_S)
    connection.putrequest("PUT", f"/v1/chunks/{chunk_name(data)}")
    connection.putheader("Authorization", f"Bearer {token}")
    connection.putheader("Content-Length", str(100 << 30))
    connection.endheaders()
    assert connection.getresponse().status == 413  # without waiting for the body
    connection.close()
    assert_problem(market.post("/v1/accounts", {"name": "x" * 20000}), 413)


def test_a_full_store_says_so_and_loses_nothing(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender", "--blob-quota", "100000")
    token = market.sign_up("hoarder")
    kept = upload(market, token, b"x" * 50000)
    data = b"y" * 60000
    answer = market.call("PUT", f"/v1/chunks/{chunk_name(data)}", data, token)
    assert_problem(answer, 507, "storage_full")
    assert market.get(f"/v1/chunks/{kept}", token).body == b"x" * 50000
    assert market.stop() == 0


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)],
                             capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted: {mounted.stderr.strip()}")
    yield folder
    # Lazily: other programs may look at any mount of the machine just then.
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path):
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass


def test_a_full_disk_refuses_changes_until_there_is_room(small_disk):
    market = Market(small_disk / "data", "--no-local-lender")
    try:
        kept = {name: market.sign_up(name) for name in ("before-1", "before-2")}
        fill(small_disk / "filler")
        for i in range(2000):  # what the database has set aside is used up first
            refused = market.post("/v1/accounts", {"name": f"more-{i}"})
            if refused.status != 201:
                break
            kept[f"more-{i}"] = refused.json["token"]
        assert_problem(refused, 503, "unavailable", "full")
        assert str(small_disk) not in refused.body.decode()  # the path is for the log
        assert_problem(market.get("/readyz"), 503, "unavailable", "full")
        assert market.get("/healthz").status == 200
        for name, token in list(kept.items())[-5:]:
            assert market.get("/v1/account", token).json["name"] == name
        (small_disk / "filler").unlink()
        kept["after"] = market.sign_up("after")
        assert market.get("/readyz").status == 200
        for name, token in kept.items():
            assert market.get("/v1/account", token).json["name"] == name
    finally:
        stopped = market.stop()
    assert stopped == 0
    status, text = audit(market.folder)
    assert status == 0, text


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_books_can_be_proved_on_a_full_disk(small_disk, end):
    market = Market(small_disk / "data", "--no-local-lender")
    names = {market.sign_up(f"kept-{i}"): f"kept-{i}" for i in range(5)}
    getattr(market, end)()
    fill(small_disk / "filler")
    for _ in range(2):
        status, text = audit(market.folder)
        assert status == 0 and json.loads(text)["is_sound"], text
    (small_disk / "filler").unlink()
    market.start()
    for token, name in names.items():
        assert market.get("/v1/account", token).json["name"] == name
    assert market.stop() == 0


# ---- Machines ------------------------------------------------------------------------------------


def test_a_machine_needs_a_code_and_its_own_key(market, token):
    made = market.post("/v1/machines/codes", {}, token)
    assert made.status == 201 and len(made.json["fingerprint"]) == 64
    body = {
        "code": made.json["code"], "public_key": "11" * 32, "name": "forged",
        "probe": {"cores_milli": 1000, "ram_bytes": 1 << 30, "disk_bytes": 1 << 30,
                  "speed_weight_milli": 1000},
        "offer": {"cores_milli": 1000, "ram_bytes": 1 << 29, "disk_bytes": 1 << 29,
                  "roles": ["worker"]},
        "signature": "22" * 64,
    }
    assert_problem(market.post("/v1/machines", body), 403, "refused", "signature")
    assert_problem(market.get("/v1/machines/999", token), 404)
    assert_problem(market.get("/v1/machines/abc", token), 404)


# ---- Jobs ----------------------------------------------------------------------------------------


def test_a_job_without_machines_waits_and_says_why(market, token):
    answer = market.post("/v1/jobs", job_spec(market, token), token, key="job-1")
    assert answer.status == 201, answer
    job = answer.json
    assert job["state"] == "pending" and job["reason"] and job["leases"] == []
    assert job["policy"] == "adsp" and job["model"] == "lenet5" and job["loss"] is None
    assert market.post("/v1/jobs", job_spec(market, token), token, key="job-1").json["id"] == job["id"]
    held = market.get("/v1/account", token).json
    assert held["held_microcredits"] == job["held_microcredits"] > 0
    assert market.get("/v1/jobs?state=pending", token).json["items"][0]["id"] == job["id"]
    assert market.get("/v1/jobs?state=running", token).json["items"] == []
    assert "machine" in market.get(f"/v1/jobs/{job['id']}/explain", token).json["text"]
    for part in ("metrics", "artifacts", "bill"):
        assert market.get(f"/v1/jobs/{job['id']}/{part}", token).status == 200
    assert_problem(market.get(f"/v1/jobs/{job['id']}/logs", token), 404)

    stranger = market.sign_up("nosy")
    for part in ("", "/metrics", "/bill", "/logs", "/events", "/explain"):
        assert_problem(market.get(f"/v1/jobs/{job['id']}{part}", stranger), 404, "not_found")
    assert_problem(market.post(f"/v1/jobs/{job['id']}/cancel", {}, stranger), 404)

    cancelled = market.post(f"/v1/jobs/{job['id']}/cancel", {}, token)
    assert cancelled.status == 200 and cancelled.json["state"] == "cancelled"
    account = market.get("/v1/account", token).json
    assert account["held_microcredits"] == 0 and account["available_microcredits"] == 10_000_000
    bill = market.get(f"/v1/jobs/{job['id']}/bill", token).json
    assert bill["spent_microcredits"] == 0 and bill["ledger_sum_microcredits"] == 0
    kinds = [e["kind"] for e in market.get(f"/v1/account/entries?job={job['id']}", token).json["items"]]
    assert kinds == ["void", "hold"]


def test_a_job_is_refused_for_its_spec_its_data_or_its_price(market, token):
    spec = job_spec(market, token)
    assert_problem(market.post("/v1/jobs", {**spec, "nodes": 3}, token), 400, "invalid", "nodes")
    for part, fields, named in [
            ("market", {"start": "by 2020-01-01T00:00Z"}, "market.start: 2020-01-01T00:00:00Z is in the past"),
            ("market", {"start": "cheapest before noon"}, "market.start"),
            ("market", {"min_reliability": 1.5}, "market.min_reliability: must be from 0 to 1"),
            ("market", {"min_speed": -1}, "market.min_speed"),
            ("market", {"max_total_cost": "NaN"}, "market.max_total_cost"),
            ("resources", {"accelerators": "T4:many"}, "resources.accelerators"),
            ("resources", {"accelerators": "T4:1"}, "resources.accelerators: runtime native trains on CPUs only"),
            ("resources", {"bandwidth": "9" * 30}, "resources.bandwidth")]:
        wrong = {**spec, part: {**spec.get(part, {}), **fields}}
        assert_problem(market.post("/v1/jobs", wrong, token), 400, "invalid", named)
    assert_problem(market.post("/v1/jobs", {**spec, "num_nodes": "8..2"}, token), 400, "invalid",
                   "num_nodes: the least is above the most")
    missing = [{**spec["inputs"][0], "manifest": "0" * 64}, *spec["inputs"][1:]]
    assert_problem(market.post("/v1/jobs", {**spec, "inputs": missing}, token), 404, "not_found",
                   "upload")
    elsewhere = {**spec, "inputs": [], "train": {**spec["train"], "data": "cifar10"}}  # the market has it not
    assert_problem(market.post("/v1/jobs", elsewhere, token), 400, "invalid", "inputs: missing")
    dear = {**spec, "num_nodes": 30, "resources": {"cpus": "64", "memory": "64"},
            "market": {"max_run_time": "24h"}}
    assert_problem(market.post("/v1/jobs", dear, token), 402, "exhausted")


def test_a_quote_changes_nothing(market, token):
    spec = job_spec(market, token)
    quote = market.post("/v1/quotes", spec, token).json
    assert quote["wish_microcredits"] > 0 and not quote["can_start"] and quote["reason"]
    assert quote["available_microcredits"] == 10_000_000
    assert market.get("/v1/jobs", token).json["items"] == []


def follow(market, path, token):
    where = urllib.parse.urlsplit(market.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=HUNG_S)
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    return connection, connection.getresponse()


def test_the_stream_of_a_job_that_has_ended_tells_its_state_and_ends(market, token):
    job = market.post("/v1/jobs", job_spec(market, token), token).json["id"]
    assert market.post(f"/v1/jobs/{job}/cancel", {}, token).status < 300
    connection, stream = follow(market, f"/v1/jobs/{job}/events", token)
    assert stream.status == 200
    text = stream.read().decode()  # to its end
    assert "event: state" in text and '"state":"cancelled"' in text
    connection.close()


def test_streams_end_when_their_token_is_revoked(market, token):
    made = market.post("/v1/tokens", {"name": "short", "scopes": ["read"]}, token).json
    connection, stream = follow(market, "/v1/events", made["token"])
    assert stream.status == 200
    assert market.call("DELETE", f"/v1/tokens/{made['id']}", None, token).status == 204
    stream.read()  # to its end
    connection.close()


def test_events_tell_what_happens(market, token):
    where = urllib.parse.urlsplit(market.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=HUNG_S)
    connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {token}"})
    stream = connection.getresponse()
    assert stream.status == 200 and stream.headers["Content-Type"].startswith("text/event-stream")
    job = market.post("/v1/jobs", job_spec(market, token), token).json
    market.post(f"/v1/jobs/{job['id']}/cancel", {}, token)
    states = []
    while "cancelled" not in states:
        line = stream.readline().decode()
        assert line, "the stream ended"
        if line.startswith("data: "):
            event = json.loads(line[6:])
            assert event["job"] == job["id"]
            states.append(event["state"])
    assert states[0] == "pending"
    connection.close()


# ---- The server itself ---------------------------------------------------------------------------


def test_the_server_says_who_and_how_it_is(market):
    assert market.get("/healthz").body == b"ok\n"
    assert market.get("/readyz").status == 200
    server = market.get("/v1/server").json
    assert server["fingerprint"] == market.ready["fingerprint"] and len(server["public_key"]) == 64
    metrics = market.get("/metrics").body.decode()
    assert "souk_commits_total" in metrics and "souk_http_requests_total" in metrics
    for gauge in ("store_bytes", "resident_bytes", "disk_free_bytes", "start_time_seconds"):
        assert int(re.search(rf"^souk_{gauge} (\d+)$", metrics, re.M)[1]) > 1 << 16, gauge
    answer = market.get("/")
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Souk-Request"]
    again = market.get("/", headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status == 304 and again.body == b""
    assert_problem(market.get("/v1/nothing"), 404)
    assert_problem(market.get("/nothing.js"), 404)
    assert market.post("/v1/prices").status == 405


def test_routes_docs_and_openapi_agree():
    printed = subprocess.run([PROGRAM, "serve", "--print-api"], capture_output=True, text=True,
                             timeout=HUNG_S, check=True).stdout
    assert printed == (ROOT / "docs/api.md").read_text(), "run souk serve --print-api > docs/api.md"
    routes = set(re.findall(r"^\| `(\w+) (\S+)`", printed, re.M)) - {("GET", "/{path...}")}
    openapi = json.loads((ROOT / "docs/openapi/openapi.json").read_text())
    described = {(method.upper(), path) for path, methods in openapi["paths"].items()
                 for method in methods if method != "head"}
    assert {(method, path.replace("...}", "}")) for method, path in routes} == described


def test_the_markets_health_counts_credits_and_members(market, token, souk):
    health = market.get("/v1/market").json
    assert health["member_count"] >= 1
    assert health["credits_microcredits"] == 10_000_000 * health["member_count"]
    assert [one["resource"] for one in health["resources"]] == ["core", "ram", "gpu", "disk"]
    shown = souk("market", "--server", market.url).stdout
    assert "weeks of spending" in shown and "LARGEST LENDER" in shown


def test_answers_have_the_fields_the_api_describes(market, token):
    schemas = json.loads((ROOT / "docs/openapi/openapi.json").read_text())["components"]["schemas"]

    def check(value, name):
        schema = schemas[name]
        assert set(value) == set(schema["properties"]), name

    check(market.get("/v1/account", token).json, "Account")
    check(market.get("/v1/account/entries", token).json["items"][0], "Entry")
    check(market.get("/v1/tokens", token).json["items"][0], "Token")
    prices = market.get("/v1/prices").json
    check(prices, "Prices")
    check(prices["slots"][0], "PriceSlot")
    story = market.get("/v1/prices/" + prices["slot"].split("/")[1]).json
    check(story, "PriceStory")
    check(story["resources"][0], "PricePart")
    check(market.get("/v1/server").json, "Server")
    check(market.get("/v1/datasets").json["items"][0], "DatasetInfo")
    check(market.get("/v1/models").json["items"][0], "ModelInfo")
    checked = market.post("/v1/jobs/check", job_spec(market, token), token).json
    check(checked, "JobCheck")
    check(checked["quote"], "Quote")
    check(checked["slots"][0], "SlotCost")
    check(market.post("/v1/jobs/check", "name: 1\n", token).json["mistakes"][0], "JobMistake")
    check(market.get("/v1/market").json, "MarketHealth")
    check(market.post("/v1/quotes", job_spec(market, token), token).json, "Quote")
    job = market.post("/v1/jobs", job_spec(market, token), token).json
    told_when_any = {"checks", "checks_undecided"}
    assert set(job) == (set(schemas["Job"]["properties"]) | set(schemas["JobDetail"]["allOf"][1]["properties"])) - told_when_any
    check(market.get("/v1/jobs", token).json["items"][0], "Job")
    for part, name in (("metrics", "Metrics"), ("bill", "Bill"), ("explain", "Explain")):
        check(market.get(f"/v1/jobs/{job['id']}/{part}", token).json, name)
    market.post(f"/v1/jobs/{job['id']}/cancel", {}, token)


def test_one_folder_has_one_market_and_plain_http_stays_on_loopback(market):
    def serve(*options):
        return subprocess.run([PROGRAM, "serve", "--no-local-lender", *options], capture_output=True,
                              text=True, timeout=HUNG_S)

    second = serve("--data", str(market.folder), "--listen", "127.0.0.1:0", "--link-listen",
                   "127.0.0.1:0")
    assert second.returncode != 0 and "souk" in second.stderr
    other = str(market.folder) + "-other"
    taken = serve("--data", other, "--listen", f"127.0.0.1:{market.ready['http_port']}",
                  "--link-listen", "127.0.0.1:0")
    assert taken.returncode != 0 and "in use" in taken.stderr
    plain = serve("--data", other, "--listen", "0.0.0.0:0", "--link-listen", "127.0.0.1:0",
                  "--public-url", "http://market.example")
    assert plain.returncode != 0 and "https" in plain.stderr


def test_a_market_in_a_fresh_home_says_how_to_go_on(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home)}
    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        environment.pop(name, None)
    command = [PROGRAM, "serve", "--no-local-lender", "--link-listen", "0.0.0.0:0"]
    wrong = subprocess.run([*command, "--listen", "nowhere"], env=environment, capture_output=True,
                           text=True, timeout=HUNG_S)
    assert wrong.returncode != 0 and "--listen" in wrong.stderr
    assert not list(home.iterdir())  # nothing is made for a command that cannot work
    read_end, write_end = os.pipe()
    process = subprocess.Popen([*command, "--listen", "0.0.0.0:0", "--ready-fd", str(write_end)],
                               env=environment, pass_fds=[write_end], stderr=subprocess.PIPE,
                               text=True)
    os.close(write_end)
    with os.fdopen(read_end) as file:
        line = file.readline()
    process.terminate()
    said = process.communicate(timeout=HUNG_S)[1]
    assert line, said
    ready = json.loads(line)
    assert (f"souk account open --name NAME --server {ready['url']} "
            f"--fingerprint {ready['fingerprint']}") in said
    assert ready["link_address"] in said and "--public-url" in said
    assert (home / ".local").stat().st_mode & 0o777 == 0o700


def test_the_books_of_all_this_are_sound(market):
    status, text = audit(market.folder)
    assert status == 0, text
