"""A token goes only to the market it was made for.

covers client/markets.c, client/settings.c, cli/sign_in.c
"""
import json
import stat

import pytest
from scripted_market import ScriptedMarket
from test_client import ACCOUNT

CONFIG_SIZE_MAX = 1 << 16  # options_file.c


def open_market(name):
    market = ScriptedMarket()
    market.token = f"token-of-{name}"
    market.on("POST", "/v1/accounts", {"account": {**ACCOUNT, "name": name}, "token": market.token}, 201)
    market.on("POST", "/v1/sessions", {"account": {**ACCOUNT, "name": name}, "token": market.token,
                                       "expires_ms": 1900000000000}, 201)
    market.on("POST", "/v1/account/page-codes", {"code": "c", "expires_ms": 1, "url": market.url + "/#code=c"}, 201)
    market.on("GET", "/v1/account", {**ACCOUNT, "name": name})
    market.on("GET", "/v1/tokens?limit=500", {"items": [], "next": None})
    market.on("DELETE", "/v1/sessions", b"", 204)
    return market


@pytest.fixture
def markets():
    both = open_market("first"), open_market("second")
    yield both
    for market in both:
        market.stop()


def tokens_heard(market):
    return {headers["Authorization"] for _, _, headers, *_ in market.requests if "Authorization" in headers}


def folder(souk):
    return souk.home / ".config" / "souk"


def test_another_market_does_not_get_the_token_and_the_command_says_how_to_sign_in(souk, markets):
    first, second = markets
    souk("account", "open", "--name", "ada", "--server", first.url)
    for way in ("flag", "variable"):
        if way == "variable":
            souk.variables["SOUK_SERVER"] = second.url
        refused = souk("account", *(["--server", second.url] if way == "flag" else []), code=5)
        words = " ".join(refused.stderr.split())
        assert f"not signed in at {second.url}, but at {first.url}; sign in: souk account login --server " \
            f"{second.url} --name NAME" in words, words
    assert tokens_heard(second) == set(), second.requests
    del souk.variables["SOUK_SERVER"]
    assert "first (3)" in souk("account", "--server", first.url + "/").stdout
    assert tokens_heard(first) == {"Bearer token-of-first"}


def test_each_market_keeps_its_own(souk, markets):
    first, second = markets
    souk("account", "open", "--name", "ada", "--server", first.url)
    # Neither --replace nor a copy of the token is needed: it stays the first market's.
    souk("account", "login", "--name", "ada", "--server", second.url, stdin="a long password\n")
    assert not (folder(souk) / "secrets.before").exists()
    kept = folder(souk) / "markets"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text())["markets"][0]["server"] == first.url
    assert "second (3)" in souk("account").stdout
    assert "first (3)" in souk("account", "--server", first.url).stdout
    assert "second (3)" in souk("account", "--server", second.url).stdout
    assert tokens_heard(first) == {"Bearer token-of-first"} and tokens_heard(second) == {"Bearer token-of-second"}
    # Out of the first, and still in at the second.
    souk("account", "logout", "--server", first.url)
    assert "not signed in" in souk("account", "--server", first.url, code=5).stderr
    assert "second (3)" in souk("account").stdout
    # In at the first again makes it the one that is meant.
    souk("account", "login", "--name", "ada", "--server", first.url, stdin="a long password\n")
    assert "first (3)" in souk("account").stdout and "second (3)" in souk("account", "--server", second.url).stdout
    assert tokens_heard(first) == {"Bearer token-of-first"} and tokens_heard(second) == {"Bearer token-of-second"}


def test_a_login_keeps_the_token_that_the_market_had_from_before(souk, markets):
    first, second = markets
    souk("account", "open", "--name", "ada", "--server", first.url)
    souk("account", "login", "--name", "ada", "--server", second.url, stdin="a long password\n")
    first.on("POST", "/v1/sessions", {"account": {**ACCOUNT, "name": "other"}, "token": "token-of-other",
                                      "expires_ms": 1900000000000}, 201)
    said = souk("account", "login", "--name", "other", "--server", first.url, stdin="a long password\n").stderr
    before = folder(souk) / "secrets.before"
    assert str(before) in said and "token-of-first" not in said, said
    assert before.read_text() == "token = token-of-first\n" and stat.S_IMODE(before.stat().st_mode) == 0o600
    assert "token-of-other" in (folder(souk) / "secrets").read_text()
    assert [market["token"] for market in json.loads((folder(souk) / "markets").read_text())["markets"]] == [
        "token-of-second"]


def test_a_login_that_breaks_off_leaves_no_token_beside_another_markets_address(souk, markets):
    """There is no room in `config` for a longer address."""
    first, second = markets
    souk("account", "open", "--name", "ada", "--server", first.url)
    config = folder(souk) / "config"
    config.write_text(config.read_text().ljust(CONFIG_SIZE_MAX - 9, "#") + "\n")
    longer = second.url + "/" * 16
    failed = souk("account", "login", "--name", "ada", "--server", longer, stdin="a long password\n", code=6)
    assert "token-of-second" in failed.stderr, failed.stderr
    assert first.url in config.read_text() and "token" not in (folder(souk) / "secrets").read_text()
    assert "first (3)" in souk("account").stdout
    assert tokens_heard(first) == {"Bearer token-of-first"}


def test_files_of_before_work_for_their_market(souk, markets):
    first, second = markets
    folder(souk).mkdir(parents=True)
    (folder(souk) / "config").write_text(f"server = {first.url}\n")
    (folder(souk) / "secrets").touch(0o600)
    (folder(souk) / "secrets").write_text("token = token-of-first\n")
    assert "first (3)" in souk("account").stdout
    assert "not signed in" in souk("account", "--server", second.url, code=5).stderr
    assert tokens_heard(second) == set()


def test_what_is_said_with_the_command_counts(souk, markets):
    first, second = markets
    souk("account", "open", "--name", "ada", "--server", first.url)
    # A token on the command line is for the market that is named there.
    souk("account", "--server", second.url, "--token", "told")
    assert tokens_heard(second) == {"Bearer told"}
    # One of the environment for the environment's market, or for any if it names none.
    souk.variables["SOUK_TOKEN"] = "of-here"
    souk("account", "--server", second.url)
    assert tokens_heard(second) == {"Bearer told", "Bearer of-here"}
    souk.variables |= {"SOUK_TOKEN": "of-the-first", "SOUK_SERVER": first.url}
    assert "not signed in" in souk("account", "--server", second.url, code=5).stderr
    assert "Bearer of-the-first" not in tokens_heard(second)
    souk("account")
    assert "Bearer of-the-first" in tokens_heard(first)
    # One told to have another key than the one signed in to is not that one.
    for name in ("SOUK_TOKEN", "SOUK_SERVER"):
        del souk.variables[name]
    with open(folder(souk) / "config", "a") as config:
        config.write(f"fingerprint = {'ab' * 32}\n")
    heard = len(first.requests)
    assert "not signed in" in souk("account", "--fingerprint", "cd" * 32, code=5).stderr
    assert len(first.requests) == heard
