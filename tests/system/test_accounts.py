"""Accounts over HTTP, against the real program: passwords, sessions, limits, groups, freezing.

covers server/handle_session.c, server/handle_group.c, server/handle_operator.c
covers server/call_password.c, server/gate.c, server/token_use.c, server/live_listen.c
"""
import concurrent.futures
import contextlib
import hashlib
import http.client
import json
import pathlib
import re
import sqlite3
import time
import urllib.parse

import pytest

from serving import HUNG_S, Follower, Market, audit

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    running = Market(tmp_path_factory.mktemp("accounts") / "data", "--no-local-lender",
                     "--sign-ins-per-10-minutes", "4")
    yield running
    assert running.stop() == 0
    status, words = audit(running.folder)
    assert status == 0, words


@pytest.fixture
def name(request):
    return re.sub("[^a-z0-9]+", "-", request.node.name.lower())[5:36].strip("-")


@pytest.fixture
def operator(market):
    return market.operator_token()


def assert_problem(answer, status, words=""):
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert words in answer.json["detail"], answer


def sign_up(market, name, **more):
    answer = market.post("/v1/accounts", {"name": name, "password": PASSWORD}, **more)
    assert answer.status == 201, answer
    return answer.json["token"]


def sign_in(market, name, password=PASSWORD, **more):
    return market.post("/v1/sessions", {"name": name, "password": password}, **more)


def cookie_of(answer):
    return answer.headers["Set-Cookie"].split(";")[0]


# ---- Passwords and sessions ----------------------------------------------------------------------


def test_signing_in_by_name_and_password(market, name):
    sign_up(market, name)
    answer = sign_in(market, name)
    assert answer.status == 201 and answer.json["account"]["name"] == name
    assert "token" not in answer.json
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Secure" not in cookie
    headers = {"Cookie": cookie_of(answer)}
    account = market.get("/v1/account", headers=headers).json
    assert account["name"] == name and account["has_password"]
    assert_problem(sign_in(market, name, "correct horse batterz"), 401, "name or the password")

    own = {**headers, "Origin": market.url}
    assert market.call("DELETE", "/v1/sessions", headers=own).status == 204
    assert market.get("/v1/account", headers=headers).status == 401


def test_a_page_signs_up_with_a_cookie_and_no_token(market, name):
    body = {"name": name, "password": PASSWORD, "session": True}
    assert_problem(market.post("/v1/accounts", body, headers={"Origin": "https://evil.example"}), 403)
    assert_problem(market.post("/v1/accounts", {"name": name, "session": True}), 400, "password")
    answer = market.post("/v1/accounts", body, headers={"Origin": market.url})
    assert answer.status == 201 and "token" not in answer.json
    headers = {"Cookie": cookie_of(answer)}
    assert market.get("/v1/account", headers=headers).json["name"] == name
    assert market.get("/v1/tokens", headers=headers).json["items"] == []


def test_a_program_signs_in_for_a_token(market, name):
    sign_up(market, name)
    answer = market.post("/v1/sessions", {"name": name, "password": PASSWORD, "cookie": False})
    assert answer.status == 201 and "Set-Cookie" not in answer.headers
    token = answer.json["token"]
    assert market.get("/v1/account", token).status == 200
    sessions = market.get("/v1/sessions", token).json["items"]
    assert [(s["name"], s["is_current"]) for s in sessions] == [("login", True)]
    assert market.call("DELETE", "/v1/sessions", token=token).status == 204
    assert market.get("/v1/account", token).status == 401


def test_a_bad_password_is_refused_with_words(market, name):
    for password, words in (("short", "10 to 256 bytes"), ("x" * 257, "10 to 256"),
                            ("Password123", "tried first"), ("aaaaaaaaaaaa", "tried first"),
                            ("member-of-souk", "account's name")):
        answer = market.post("/v1/accounts", {"name": "member-of-souk", "password": password})
        assert_problem(answer, 400, words)
    assert_problem(market.post("/v1/accounts", {"name": name, "password": 7}), 400, "password")
    assert_problem(market.post("/v1/accounts", {"name": name, "pasword": PASSWORD}), 400, "pasword")
    for body in ({}, {"name": name}, {"password": PASSWORD}, {"code": "x", "name": name,
                                                               "password": PASSWORD}):
        assert_problem(market.post("/v1/sessions", body), 400)


def test_changing_the_password_ends_other_sessions_and_keeps_tokens(market, name):
    token = sign_up(market, name)
    other = {"Cookie": cookie_of(sign_in(market, name))}
    own = {"Cookie": cookie_of(sign_in(market, name)), "Origin": market.url}

    def change(body):
        return market.call("PUT", "/v1/account/password", body, headers=own)

    assert_problem(change({"password": "another good one"}), 400, "old_password")
    assert_problem(change({"password": "another good one", "old_password": "wrong one, sorry"}), 403)
    assert_problem(change({"password": "short", "old_password": PASSWORD}), 400)
    assert change({"password": "another good one", "old_password": PASSWORD}).status == 204
    assert market.get("/v1/account", headers=own).status == 200
    assert market.get("/v1/account", headers=other).status == 401
    assert market.get("/v1/account", token).status == 200
    assert sign_in(market, name).status == 401
    assert sign_in(market, name, "another good one").status == 201


def test_an_account_known_by_its_token_gets_a_password_later(market, name):
    token = market.sign_up(name)
    assert sign_in(market, name).status == 401
    assert market.call("PUT", "/v1/account/password", {"password": PASSWORD}, token).status == 204
    assert sign_in(market, name).status == 201


def test_only_a_token_with_every_scope_sets_the_first_password(market, name):
    token = market.sign_up(name)
    scopes = market.get("/v1/tokens", token).json["items"][0]["scopes"]
    assert "operate" in scopes and len(scopes) > 1
    for some in (["operate"], ["operate", "read"]):
        limited = market.post("/v1/tokens", {"name": "ci", "scopes": some}, token).json["token"]
        answer = market.call("PUT", "/v1/account/password", {"password": PASSWORD}, limited)
        assert_problem(answer, 403, "scope")
    assert sign_in(market, name).status == 401


def test_the_store_keeps_no_fast_hash_of_a_password(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender")
    body = {"name": "ada", "password": PASSWORD}
    headers = {"Idempotency-Key": "k" * 40}
    first = market.post("/v1/accounts", body, headers=headers)
    assert first.status == 201
    assert market.post("/v1/accounts", body, headers=headers).json == first.json
    assert market.post("/v1/accounts", {**body, "name": "bob"}, headers=headers).status == 409
    assert market.stop() == 0
    kept = b"".join(p.read_bytes() for p in tmp_path.glob("data/market.db*"))
    for separators in ((",", ":"), (", ", ": ")):
        sent = json.dumps(body, separators=separators).encode()
        assert hashlib.blake2b(sent, digest_size=32).digest() not in kept


def test_what_has_expired_is_not_listed_and_opens_nothing(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender")
    token = sign_up(market, "ada")
    assert [sign_in(market, "ada").status for _ in range(2)] == [201, 201]
    short = market.post("/v1/tokens", {"name": "ci", "scopes": ["read"], "expires_ms": later_ms()}, token).json
    sessions = market.get("/v1/sessions", token).json["items"]
    assert len(sessions) == 2 and market.get("/v1/account", short["token"]).status == 200
    assert market.stop() == 0
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "market.db")) as store, store:
        store.execute("UPDATE tokens SET expires_ms = 1000 WHERE id IN (?, ?)", (sessions[0]["id"], short["id"]))
    market.start()
    assert [s["id"] for s in market.get("/v1/sessions", token).json["items"]] == [sessions[1]["id"]]
    assert_problem(market.get("/v1/account", short["token"]), 401, "expired")
    assert market.stop() == 0


def test_another_session_can_be_ended(market, name):
    token = sign_up(market, name)
    lost = {"Cookie": cookie_of(sign_in(market, name))}
    sessions = market.get("/v1/sessions", token).json["items"]
    assert len(sessions) == 1 and not sessions[0]["is_current"]
    stranger = sign_up(market, name + "-2")
    where = f"/v1/sessions/{sessions[0]['id']}"
    assert market.call("DELETE", where, token=stranger).status == 404
    assert market.get("/v1/account", headers=lost).status == 200
    assert market.call("DELETE", where, token=token).status == 204
    assert market.get("/v1/account", headers=lost).status == 401
    own = market.get("/v1/tokens", token).json["items"][0]["id"]
    assert market.call("DELETE", f"/v1/sessions/{own}", token=token).status == 404


def later_ms():
    return int(time.time() * 1000) + 3600_000


def test_tokens_may_end_and_tell_when_they_were_used(market, name):
    token = market.sign_up(name)
    now_ms = int(time.time() * 1000)

    def make(**more):
        return market.post("/v1/tokens", {"name": "ci", "scopes": ["read"], **more}, token)

    assert_problem(make(expires_ms=now_ms - 1), 400, "expires_ms")
    assert_problem(make(expires_ms=-1), 400, "expires_ms")
    lasting, end_ms = make().json, later_ms()
    short = make(expires_ms=end_ms).json
    assert lasting["expires_ms"] == 0 and short["expires_ms"] == end_ms
    assert market.get("/v1/account", short["token"]).status == 200
    assert_problem(market.post("/v1/tokens", {"name": "x", "scopes": ["read"]}, short["token"]), 403)
    listed = {t["id"]: t for t in market.get("/v1/tokens", token).json["items"]}
    assert listed[short["id"]]["last_used_ms"] >= now_ms
    assert listed[lasting["id"]]["last_used_ms"] == 0


def test_the_last_use_of_a_token_outlives_the_market(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender")
    token = market.sign_up("ada")
    used = market.post("/v1/tokens", {"name": "ci", "scopes": ["read"]}, token).json
    market.get("/v1/account", used["token"])
    assert market.stop() == 0
    market.start()
    listed = {t["id"]: t for t in market.get("/v1/tokens", token).json["items"]}
    assert listed[used["id"]]["last_used_ms"] > 0
    assert market.stop() == 0


# ---- Limits --------------------------------------------------------------------------------------


def test_passwords_cannot_be_tried_without_end(market, name):
    sign_up(market, name)
    answers = [sign_in(market, name, f"wrong password {i}") for i in range(6)]
    statuses = [a.status for a in answers]
    assert statuses == [401] * 4 + [429] * 2
    refused = answers[-1]
    assert refused.json["code"] == "rate_limited" and int(refused.headers["Retry-After"]) in range(1, 601)
    assert refused.headers["RateLimit-Policy"] == '"sign-in-name";q=4;w=600'
    assert refused.headers["RateLimit"].startswith('"sign-in-name";r=0;t=')
    assert sign_in(market, name).status == 429  # even the right password: it could be the 5th guess
    sign_up(market, name + "-2")
    for _ in range(5):  # successful sign-ins do not count
        assert sign_in(market, name + "-2").status == 201


def test_an_unknown_name_is_answered_no_faster_than_a_known_one(market, name):
    sign_up(market, name)

    def used_ticks():
        """The market's CPU time: what it computes, however busy the machine."""
        fields = pathlib.Path(f"/proc/{market.process.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def cost(who):
        before = used_ticks()
        for _ in range(2):
            assert sign_in(market, who, "certainly not it").status == 401
        return used_ticks() - before

    known, unknown = cost(name), cost("nobody-at-all")
    assert unknown > known / 3 and known > unknown / 3, (known, unknown)


def test_a_flood_of_sign_ins_does_not_stall_the_market(market, name):
    token = market.sign_up(name)
    with concurrent.futures.ThreadPoolExecutor(28) as pool:
        flood = [pool.submit(sign_in, market, f"{name}-{i}", "certainly not it") for i in range(28)]
        concurrent.futures.wait(flood, return_when=concurrent.futures.FIRST_COMPLETED)
        answered = 0
        while answered < 100 and not all(f.done() for f in flood):
            assert market.get("/v1/account", token).status == 200
            answered += 1
        statuses = {f.result().status for f in flood}
        refused = [f.result() for f in flood if f.result().status == 503]
    assert statuses <= {401, 503} and refused
    assert refused[0].headers["Retry-After"] == "5"
    assert answered > 1, "others were answered only after the flood"


def test_an_account_has_a_rate_of_its_own(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender", "--reads-per-minute", "30",
                    "--writes-per-minute", "5")
    ada, bob = market.sign_up("ada"), market.sign_up("bob")
    statuses = [market.get("/v1/account", ada).status for _ in range(40)]
    assert statuses[:30] == [200] * 30 and statuses[-1] == 429
    assert market.get("/v1/account", bob).status == 200
    answers = [market.post("/v1/tokens", {"name": "x", "scopes": ["read"]}, bob) for _ in range(6)]
    assert [a.status for a in answers] == [201] * 5 + [429]
    assert answers[0].headers["RateLimit"].startswith('"write";r=4;')
    assert market.get("/healthz").status == 200
    assert b"souk_http_rate_limited_total" in market.get("/metrics").body
    assert market.stop() == 0


def from_address(address):
    return {"X-Forwarded-For": address}


def test_one_grant_a_day_comes_to_an_address_block(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender", "--behind-proxy")

    def opened(name, address, **more):
        answer = market.post("/v1/accounts", {"name": name, **more}, headers=from_address(address))
        assert answer.status == 201, answer
        return answer.json["account"]

    first = opened("first", "203.0.113.5")
    second = opened("second", "203.0.113.77")
    assert (first["available_microcredits"], first["grant"]) == (10_000_000, "given")
    assert (second["available_microcredits"], second["grant"]) == (0, "waiting")
    assert first["to_earn_microcredits"] == 40_000_000
    # Only the proxy's own entry is believed.
    assert opened("third", "8.8.8.8, 203.0.113.9")["grant"] == "waiting"
    assert opened("fourth", "198.51.100.1")["grant"] == "given"
    assert opened("fifth", "2001:db8:1:2::1")["grant"] == "given"
    assert opened("sixth", "[2001:db8:1:2:9::1]:4711")["grant"] == "waiting"
    invite = market.post("/v1/invites", {}, market.operator_token(),
                         headers=from_address("10.0.0.1")).json["invite"]
    assert opened("guest", "203.0.113.8", invite=invite)["grant"] == "given"
    assert_problem(market.post("/v1/accounts", {"name": "again", "invite": invite},
                               headers=from_address("198.51.100.9")), 403, "invite")
    assert market.stop() == 0
    log = (tmp_path / "data" / "market.db").read_bytes() + b"".join(
        p.read_bytes() for p in tmp_path.glob("data/market.db-*"))
    assert b"203.0.113" not in log
    assert audit(tmp_path / "data")[0] == 0


def test_sign_ups_and_sign_ins_are_limited_by_address(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender", "--behind-proxy", "--sign-ups-per-hour",
                    "3", "--sign-ins-per-10-minutes", "4")
    statuses = [market.post("/v1/accounts", {"name": f"sybil-{i}"},
                            headers=from_address(f"203.0.113.{i}")).status for i in range(5)]
    assert statuses == [201, 201, 201, 429, 429]
    assert market.post("/v1/accounts", {"name": "neighbour"},
                       headers=from_address("203.0.114.1")).status == 201
    statuses = [sign_in(market, f"name-{i}", "certainly not it",
                        headers=from_address("198.51.100.7")).status for i in range(6)]
    assert statuses == [401] * 4 + [429] * 2
    secure = sign_up(market, "careful", headers=from_address("192.0.2.1")) and sign_in(
        market, "careful", headers=from_address("192.0.2.1"))
    assert "; Secure" in secure.headers["Set-Cookie"]
    assert market.stop() == 0


def test_no_header_of_a_client_lifts_the_limits(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender", "--behind-proxy", "--sign-ups-per-hour", "3")

    def opened(name, headers):
        return market.post("/v1/accounts", {"name": name}, headers=headers).status

    # The client's own line comes first, the proxy's after it.
    assert [opened(f"lines-{i}", {"X-Forwarded-For": f"203.0.{i}.1", "x-forwarded-for": "198.51.100.7"})
            for i in range(5)] == [201] * 3 + [429] * 2
    assert [opened(f"local-{i}", from_address("127.0.0.1")) for i in range(5)] == [201] * 3 + [429] * 2
    assert market.stop() == 0


def test_page_codes_used_rightly_are_limited_as_writes_only(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender", "--behind-proxy",
                    "--sign-ins-per-10-minutes", "4")
    token = market.sign_up("ada")

    def use_code(address, code=None):
        code = code or market.post("/v1/account/page-codes", {}, token).json["code"]
        return market.post("/v1/sessions", {"code": code}, headers=from_address(address)).status

    assert [use_code("203.0.113.1") for _ in range(8)] == [201] * 8
    assert [use_code("198.51.100.1", "souk_page_0") for _ in range(6)] == [401] * 4 + [429] * 2
    statuses = []
    while len(statuses) < 600 and 429 not in statuses:  # 120 at once, 2 more each second
        statuses.append(use_code("203.0.113.1"))
    assert statuses[-1] == 429 and set(statuses[:-1]) == {201}
    assert market.stop() == 0


# ---- Groups --------------------------------------------------------------------------------------


def test_a_group_is_joined_by_a_code(market, name):
    owner, member = market.sign_up(name), market.sign_up(name + "-2")
    assert_problem(market.get("/v1/account/group", owner), 404)
    made = market.post("/v1/groups", {"name": name}, owner)
    assert made.status == 201 and [m["name"] for m in made.json["members"]] == [name]
    assert_problem(market.post("/v1/groups", {"name": name}, member), 409, "taken")
    assert_problem(market.post("/v1/account/group/codes", {}, member), 409)
    code = market.post("/v1/account/group/codes", {}, owner).json["code"]
    assert_problem(market.post("/v1/account/group", {"code": "souk_group_" + "0" * 64}, member), 403)
    joined = market.post("/v1/account/group", {"code": code}, member)
    assert joined.status == 201 and len(joined.json["members"]) == 2
    assert market.get("/v1/account", member).json["group"] == made.json["id"]
    assert_problem(market.post("/v1/account/group", {"code": code}, member), 403)
    assert market.call("DELETE", "/v1/account/group", token=owner).status == 204
    assert market.get("/v1/account/group", member).json["owner"] == market.get(
        "/v1/account", member).json["id"]


# ---- The operator --------------------------------------------------------------------------------


def test_a_frozen_account_keeps_its_credits(market, name, operator):
    token = sign_up(market, name)
    account = market.get("/v1/account", token).json
    where = f"/v1/accounts/{account['id']}"
    assert_problem(market.post(f"{where}/freeze", {"reason": "mine"}, token), 403, "operator")
    assert_problem(market.post(f"{where}/freeze", {}, operator), 400, "reason")
    frozen = market.post(f"{where}/freeze", {"reason": "a stolen laptop"}, operator)
    assert frozen.status == 200 and frozen.json["frozen"] == "a stolen laptop"
    assert_problem(market.post(f"{where}/freeze", {"reason": "again"}, operator), 409)

    seen = market.get("/v1/account", token).json
    assert seen["frozen"] == "a stolen laptop"
    assert seen["available_microcredits"] == account["available_microcredits"]
    assert_problem(market.post("/v1/machines/codes", {}, token), 403, "stolen laptop")
    assert_problem(market.post("/v1/tokens", {"name": "x", "scopes": ["read"]}, token), 403)
    given = {"to": "operator", "amount_microcredits": 1}
    assert_problem(market.post("/v1/transfers", given, token), 403, f'"{name}" is frozen: a stolen laptop')
    gone = market.call("DELETE", "/v1/account", {"name": name, "password": PASSWORD}, token)
    assert_problem(gone, 403, "frozen")
    assert sign_in(market, name).status == 201

    assert market.post(f"{where}/unfreeze", {}, operator).json["frozen"] == ""
    assert market.post("/v1/machines/codes", {}, token).status == 201
    after = market.get("/v1/account", token).json
    assert after["available_microcredits"] == account["available_microcredits"]
    assert_problem(market.post(f"{where}/unfreeze", {}, operator), 409)
    assert market.post("/v1/accounts/1/freeze", {"reason": "mint"}, operator).status == 404
    assert market.post("/v1/accounts/x/freeze", {"reason": "none"}, operator).status == 404


def test_the_operator_gives_a_grant_before_its_turn(market, name, operator):
    daily = market.get("/v1/settings", operator).json["grant_daily_microcredits"]
    assert market.sign_up(f"{name}-first")  # the day's first, under any limit
    assert market.call("PUT", "/v1/settings", {"grant_daily_microcredits": 1}, operator).status == 200
    try:
        token = market.sign_up(name)
        account = market.get("/v1/account", token).json
        assert account["grant"] == "waiting" and account["available_microcredits"] == 0
        where = f"/v1/accounts/{account['id']}/grant"
        assert_problem(market.post(where, {}, token), 403, "operator")
        given = market.post(where, {}, operator, key=f"grant-{name}")
        assert given.status == 200 and given.json["grant"] == "given"
        assert given.json["available_microcredits"] == given.json["granted_microcredits"] == 10_000_000
        assert market.post(where, {}, operator, key=f"grant-{name}").json == given.json
        assert_problem(market.post(where, {}, operator), 409, "has had its grant")
    finally:
        assert market.call("PUT", "/v1/settings", {"grant_daily_microcredits": daily}, operator).status == 200
    (entry,) = market.get("/v1/account/entries", token).json["items"]
    assert (entry["kind"], entry["amount_microcredits"]) == ("grant", 10_000_000)
    for nobody in (1, 987654321, "x"):
        assert market.post(f"/v1/accounts/{nobody}/grant", {}, operator).status == 404


def test_the_operator_changes_settings(market, name, operator):
    token = market.sign_up(name)
    assert_problem(market.get("/v1/settings", token), 403, "operator")
    before = market.get("/v1/settings", operator).json
    assert before["grant_earned_microcredits"] == 40_000_000

    def put(body):
        return market.call("PUT", "/v1/settings", body, operator)

    changed = put({"grant_microcredits": 3_000_000})
    assert changed.status == 200
    assert market.get("/v1/server").json["grant_microcredits"] == 3_000_000
    assert changed.json == {**before, "grant_microcredits": 3_000_000}
    newcomer = market.sign_up(name + "-2")
    assert market.get("/v1/account", newcomer).json["available_microcredits"] == 3_000_000
    for bad in ({"grant_microcredits": -1}, {"fee_basis_points": 501}, {"grants": 1},
                {"grant_microcredits": "3"}, {"grant_microcredits": 1e30}, {"dormant_ms": 5}):
        assert_problem(put(bad), 400)
    assert put({"grant_microcredits": before["grant_microcredits"]}).json == before
    listed = market.get(f"/v1/accounts?name={name}", operator).json["items"]
    assert [a["name"] for a in listed] == [name]
    assert market.get("/v1/accounts", token).status == 403


def test_accounts_are_found_by_how_their_name_begins(market, name, operator):
    for ending in ("", "-b", "-a", "0"):
        market.sign_up(name + ending)

    def pages(query):
        cursor = ""
        while cursor is not None:
            page = market.get(f"/v1/accounts?limit=2&{query}{cursor and '&cursor=' + cursor}", operator).json
            yield [account["name"] for account in page["items"]]
            cursor = page["next_cursor"]

    assert list(pages(f"q={name}")) == [[name, name + "-a"], [name + "-b", name + "0"]]
    assert list(pages(f"q={name}-")) == [[name + "-a", name + "-b"]]
    assert list(pages(f"q={name}-c")) == [[]]
    newest = market.get("/v1/accounts?sort=newest&limit=4", operator).json["items"]
    assert [account["name"] for account in newest] == [name + ending for ending in ("0", "-a", "-b", "")]
    for bad in ("q=", "q=Ada", "q=a%7B", "q=" + "a" * 41, "sort=oldest"):
        assert_problem(market.get(f"/v1/accounts?{bad}", operator), 400, bad[0])


def test_an_invitation_is_made_once_under_its_key(market, name, operator):
    headers = {"Idempotency-Key": "invite " + name}
    first = market.post("/v1/invites", {}, operator, headers=headers)
    assert first.status == 201
    assert market.post("/v1/invites", {}, operator, headers=headers).json == first.json
    assert market.post("/v1/invites", {}, operator).json["invite"] != first.json["invite"]
    assert market.post("/v1/accounts", {"name": name, "invite": first.json["invite"]}).status == 201
    assert_problem(market.post("/v1/accounts", {"name": name + "-2", "invite": first.json["invite"]}), 403, "invite")


def test_a_groups_code_is_made_once_under_its_key(market, name):
    token, other = market.sign_up(name), market.sign_up(name + "-2")
    assert market.post("/v1/groups", {"name": name}, token).status == 201
    headers = {"Idempotency-Key": "code " + name}
    first = market.post("/v1/account/group/codes", {}, token, headers=headers)
    assert first.status == 201
    assert market.post("/v1/account/group/codes", {}, token, headers=headers).json == first.json
    assert market.post("/v1/account/group", {"code": first.json["code"]}, other).status == 201


def test_an_account_hears_what_comes_and_goes(market, name, operator):
    token, other = sign_up(market, name), sign_up(market, name + "-2")
    assert market.post("/v1/groups", {"name": name}, token).status == 201
    code = market.post("/v1/account/group/codes", {}, token).json["code"]
    mine, others = Follower(market, token), Follower(market, other)
    account = market.get("/v1/account", other).json["id"]
    assert market.post("/v1/account/group", {"code": code}, other).status == 201
    assert market.post(f"/v1/accounts/{account}/freeze", {"reason": "spam"}, operator).status == 200
    assert market.post(f"/v1/accounts/{account}/unfreeze", {}, operator).status == 200
    assert market.call("DELETE", "/v1/account", {"name": name + "-2", "password": PASSWORD}, other).status == 204

    def told(follower, last):
        return [event for _, event in follower.until(lambda event: event.get("change") == last) if "change" in event]

    events = told(others, "reclaim")
    assert [event["change"] for event in events] == ["group", "frozen", "unfrozen", "reclaim"]
    assert events[-1]["amount_microcredits"] == -10_000_000 and events[-1]["at_ms"] > 0
    assert [event["change"] for event in told(mine, "group")] == ["group"]  # nothing of the other's credits


def test_settings_outlive_the_market(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender")
    token = market.operator_token()
    assert market.call("PUT", "/v1/settings", {"grant_microcredits": 0}, token).status == 200
    assert market.stop() == 0
    market.start()
    assert market.get("/v1/settings", token).json["grant_microcredits"] == 0
    assert market.stop() == 0


# ---- Deleting ------------------------------------------------------------------------------------


def test_a_deleted_account_is_gone_and_its_name_too(market, name, operator):
    token = sign_up(market, name)
    account = market.get("/v1/account", token).json

    def delete(**body):
        return market.call("DELETE", "/v1/account", body, token)

    assert_problem(delete(name="somebody-else", password=PASSWORD), 400, "name")
    assert_problem(delete(name=name), 400, "password")
    assert_problem(delete(name=name, password="not this one"), 403)
    assert delete(name=name, password=PASSWORD).status == 204
    assert market.get("/v1/account", token).status == 401
    assert sign_in(market, name).status == 401
    assert market.post("/v1/accounts", {"name": name}).status == 409
    assert market.get(f"/v1/accounts?name={name}", operator).json["items"] == []
    shown = market.get(f"/v1/accounts?name=deleted-{account['id']}", operator).json["items"]
    assert [a["available_microcredits"] for a in shown] == [0]
    assert market.post("/v1/accounts", {"name": "deleted-9"}).status == 409


def test_a_body_too_large_and_a_wrong_method_change_nothing(market, name):
    answer = market.post("/v1/accounts", {"name": name, "password": "x" * 20000})
    assert answer.status == 413
    where = urllib.parse.urlsplit(market.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=HUNG_S)
    connection.request("PATCH", "/v1/settings", "{}")
    assert connection.getresponse().status == 405
    connection.close()
    assert market.post("/v1/accounts", {"name": name}).status == 201
