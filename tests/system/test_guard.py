"""The market's door, against the real program: what a stranger, a thief or a member may not do.

covers server/auth.c, server/call.c, server/routes.c, server/live_stream.c
"""
import concurrent.futures
import http.client
import json
import re
import threading
import time
import urllib.parse

import pytest

from serving import HUNG_S, Market, audit

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def market(tmp_path_factory):
    running = Market(tmp_path_factory.mktemp("guard") / "data", "--no-local-lender")
    yield running
    assert running.stop() == 0
    status, words = audit(running.folder)
    assert status == 0, words


@pytest.fixture
def name(request):
    return re.sub("[^a-z0-9]+", "-", request.node.name.lower())[5:36].strip("-")


def sign_up(market, name):
    answer = market.post("/v1/accounts", {"name": name, "password": PASSWORD})
    assert answer.status == 201, answer
    return answer.json["token"]


def new_token(market, token, *scopes, **more):
    answer = market.post("/v1/tokens", {"name": "made", "scopes": list(scopes), **more}, token)
    assert answer.status == 201, answer
    return answer.json


def revoke(market, made, token):
    assert market.call("DELETE", f"/v1/tokens/{made['id']}", None, token).status == 204


def token_names(market, token):
    return sorted(t["name"] for t in market.get("/v1/tokens", token).json["items"])


class SlowRequest:
    """Sends its headers, and its body when told to."""

    def __init__(self, market, method, path, token, body=None):
        where = urllib.parse.urlsplit(market.url)
        self.connection = http.client.HTTPConnection(where.hostname, where.port, timeout=HUNG_S)
        self.connection.putrequest(method, path)
        self.connection.putheader("Authorization", f"Bearer {token}")
        self.body = json.dumps(body).encode() if body is not None else b"0\r\n\r\n"
        if body is not None:
            self.connection.putheader("Content-Length", str(len(self.body)))
        else:
            self.connection.putheader("Transfer-Encoding", "chunked")
        self.connection.endheaders()
        self.connection.send(self.body[:1])

    def finish(self):
        self.connection.send(self.body[1:])
        self.answer = self.connection.getresponse()
        return self.answer.status


def wait_until_read(market):
    """What was sent before this on other connections has been read: the market has one loop."""
    for _ in range(3):
        assert market.get("/healthz").status == 200


# ---- Tokens that are none any more ---------------------------------------------------------------


def test_a_slow_body_does_not_outlive_its_token(market, name):
    owner = market.sign_up(name)
    stolen = new_token(market, owner, "read", "operate")
    slow = SlowRequest(market, "POST", "/v1/tokens", stolen["token"],
                       {"name": "kept by the thief", "scopes": ["read", "operate"]})
    wait_until_read(market)
    revoke(market, stolen, owner)
    assert slow.finish() == 401
    assert token_names(market, owner) == ["first token"]


def test_a_slow_body_does_not_outlive_the_account(market, name):
    owner = sign_up(market, name)
    slow = SlowRequest(market, "POST", "/v1/account/page-codes", owner, {})
    wait_until_read(market)
    body = {"name": name, "password": PASSWORD}
    assert market.call("DELETE", "/v1/account", body, owner).status == 204
    assert slow.finish() == 401


def test_a_stream_is_not_opened_by_a_token_that_was_revoked_meanwhile(market, name):
    owner = market.sign_up(name)
    stolen = new_token(market, owner, "read")
    slow = SlowRequest(market, "GET", "/v1/events", stolen["token"])
    wait_until_read(market)
    revoke(market, stolen, owner)
    assert slow.finish() == 401


def open_stream(market, token):
    where = urllib.parse.urlsplit(market.url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=HUNG_S)
    connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {token}"})
    return connection, connection.getresponse()


def stream_of_a_short_token(market, owner):
    """A stream that is open while its token still is valid, and that token's end. A busy machine needs longer tokens."""
    lifetime_ms = 1000
    while lifetime_ms < HUNG_S * 1000:
        end_ms = int(time.time() * 1000) + lifetime_ms  # clock: the end itself is what is waited for
        made = market.post("/v1/tokens", {"name": "made", "scopes": ["read"], "expires_ms": end_ms}, owner)
        if made.status == 201:
            connection, stream = open_stream(market, made.json["token"])
            if stream.status == 200:
                return connection, stream, end_ms
            connection.close()
        assert time.time() * 1000 >= end_ms, "refused before the token's end"
        lifetime_ms *= 2
    pytest.fail("every token ended before its stream was open")


def test_a_stream_ends_when_its_token_expires(market, name):
    connection, stream, end_ms = stream_of_a_short_token(market, market.sign_up(name))
    while stream.read(1):  # a sign of life every ten seconds
        assert time.time() * 1000 < end_ms + HUNG_S * 1000
    assert time.time() * 1000 >= end_ms
    connection.close()


def test_one_account_cannot_take_every_stream(market, name):
    greedy, other = market.sign_up(name), market.sign_up(name + "-2")
    held = []

    def follow(token):
        connection, stream = open_stream(market, token)
        held.append(connection)
        return stream.status

    statuses = [follow(greedy) for _ in range(102)]
    assert statuses == [200] * 100 + [503] * 2
    assert follow(other) == 200
    for connection in held:
        connection.close()


def test_a_token_that_ends_makes_nothing_that_outlives_it(market, name):
    owner = market.sign_up(name)
    end_ms = int(time.time() * 1000) + 3600_000
    every = ["read", "lend", "borrow", "operate"]
    ending = new_token(market, owner, *every, expires_ms=end_ms)["token"]

    def make(**more):
        return market.post("/v1/tokens", {"name": "made", "scopes": every, **more}, ending).status

    assert make() == 403 and make(expires_ms=end_ms + 1) == 403
    assert make(expires_ms=end_ms) == 201
    assert market.post("/v1/account/page-codes", {}, ending).status == 403
    change = {"password": PASSWORD}
    assert market.call("PUT", "/v1/account/password", change, ending).status == 403
    assert market.call("PUT", "/v1/account/password", change, owner).status == 204
    session = market.post("/v1/sessions", {"name": name, "password": PASSWORD, "cookie": False})
    assert new_token(market, session.json["token"], "read")["expires_ms"] == 0


# ---- Cookies -------------------------------------------------------------------------------------


def test_a_neighbouring_host_plants_no_session(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender", "--behind-proxy")
    sign_up(market, "ada")
    answer = market.post("/v1/sessions", {"name": "ada", "password": PASSWORD})
    name, value = answer.headers["Set-Cookie"].split(";")[0].split("=")
    parts = {part.strip() for part in answer.headers["Set-Cookie"].split(";")[1:]}
    # What browsers ask of the prefix: no Domain, the whole host, HTTPS.
    assert name == "__Host-souk_session" and {"Path=/", "Secure"} <= parts
    assert not [part for part in parts if part.startswith("Domain")]
    own = {"Cookie": f"{name}={value}", "Origin": market.url.replace("http:", "https:")}
    assert market.get("/v1/account", headers=own).json["name"] == "ada"
    assert market.get("/v1/account", headers={"Cookie": f"souk_session={value}"}).status == 401
    gone = market.call("DELETE", "/v1/sessions", headers=own)
    assert gone.status == 204 and gone.headers["Set-Cookie"].startswith("__Host-souk_session=;")
    assert "Secure" in gone.headers["Set-Cookie"]
    assert market.stop() == 0


# ---- Answers -------------------------------------------------------------------------------------


def test_nothing_private_is_kept_on_the_way(market, name):
    owner = market.sign_up(name)
    for path in ("/v1/account", "/v1/tokens", "/v1/account/entries", "/v1/account/entries?format=csv",
                 "/v1/jobs", "/v1/machines", "/v1/account/group", "/v1/nothing", "/v1/jobs/1/logs"):
        kept = market.get(path, owner).headers.get_all("Cache-Control")
        assert kept in (["no-store"], ["private, no-cache"]), (path, kept)
    assert market.get("/v1/account").headers.get_all("Cache-Control") == ["no-store"]
    assert market.get("/").headers.get_all("Cache-Control") == ["no-cache"]


# ---- Addresses -----------------------------------------------------------------------------------


def test_a_site_of_many_blocks_signs_up_as_one(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender", "--behind-proxy", "--sign-ups-per-hour",
                    "3", "--sign-ins-per-10-minutes", "3")

    def opened(name, address):
        return market.post("/v1/accounts", {"name": name}, headers={"X-Forwarded-For": address}).status

    def guessed(address):
        body = {"name": "nobody-" + address.split(":")[3], "password": "certainly not it"}
        return market.post("/v1/sessions", body, headers={"X-Forwarded-For": address}).status

    assert [opened(f"six-{i}", f"2001:db8:7:{i}::1") for i in range(5)] == [201] * 3 + [429] * 2
    assert opened("seven", "2001:db8:8:1::1") == 201
    assert [guessed(f"2001:db8:9:{i}::1") for i in range(5)] == [401] * 3 + [429] * 2
    assert market.stop() == 0


@pytest.mark.parametrize("headers", [{}, {"X-Forwarded-For": "unix:"}])
def test_a_proxy_that_names_nobody_lifts_no_limit(tmp_path, headers):
    market = Market(tmp_path / "data", "--no-local-lender", "--behind-proxy", "--sign-ups-per-hour", "3")
    statuses = [market.post("/v1/accounts", {"name": f"name-{i}"}, headers=headers).status
                for i in range(5)]
    assert statuses == [201] * 3 + [429] * 2
    assert market.stop() == 0


# ---- Words of others -----------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["two\nlines", "back\rover", "\x1b[2J", "csi \u009b2J", "\u202etxt.exe"])
def test_labels_and_memos_are_one_line_that_is_shown_as_it_stands(market, words):
    who = "words-" + words.encode().hex()
    owner = market.sign_up(who)
    for path, body in (("/v1/tokens", {"name": words, "scopes": ["read"]}),
                       ("/v1/transfers", {"to": who, "amount_microcredits": 1, "memo": words})):
        answer = market.post(path, body, owner)
        assert answer.status == 400, answer
    account = market.get("/v1/account", owner).json["id"]
    answer = market.post(f"/v1/accounts/{account}/freeze", {"reason": words}, market.operator_token())
    assert answer.status == 400, answer
    assert token_names(market, owner) == ["first token"]


# ---- Passwords that are none any more ------------------------------------------------------------


def test_an_old_password_opens_no_session_after_its_change(market, name):
    """Sign-ins that were being checked while the password changed."""
    owner = sign_up(market, name)
    has_begun, has_changed = threading.Event(), threading.Event()

    def keep_signing_in():
        tokens = []
        while True:
            is_last = has_changed.is_set()
            answer = market.post("/v1/sessions", {"name": name, "password": PASSWORD, "cookie": False})
            assert answer.status in (201, 401, 429), answer
            if answer.status == 201:
                tokens.append(answer.json["token"])
                has_begun.set()
            if is_last or answer.status == 429:
                return tokens

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        thieves = [pool.submit(keep_signing_in) for _ in range(3)]
        assert has_begun.wait(HUNG_S)
        body = {"password": "another good one", "old_password": PASSWORD}
        assert market.call("PUT", "/v1/account/password", body, owner).status == 204
        has_changed.set()
        stolen = [token for thief in thieves for token in thief.result()]
    assert {market.get("/v1/account", token).status for token in stolen} == {401}
    assert market.get("/v1/sessions", owner).json["items"] == []
