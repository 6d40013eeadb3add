"""A market without money."""
import pathlib
import re

import pytest
from program import Souk
from serving import Market


def check_screens(market, folder):
    """Karma is called karma, and prices that never move are one row."""
    souk = Souk(folder)
    assert "Karma: 1000.000000\n" in souk("account", "open", "--server", market.url, "--name",
                                          "kim").stdout
    assert "Available: 1000.000000 karma\n" in souk("account").stdout
    assert "KARMA\n" in souk("wallet").stdout.splitlines(keepends=True)[0]
    prices = souk("prices")
    assert prices.stdout.split() == ["CORE", "GPU", "GiB", "MEMORY", "GiB", "DISK",
                                     "1.000000", "9.000000", "0.100000", "0.003000"]
    assert "docs/karma.md" in prices.stderr
    slot = market.get("/v1/prices").json["slot"]
    explained = " ".join(souk("prices", "--explain", slot).stdout.split())
    assert "core: 1.000000 at any time: in a market of karma" in explained
    assert "level" not in explained
    assert "Karma per unit-hour." in explained
    statement = souk("wallet", "statement").stdout
    assert "KARMA" in statement.splitlines()[0] and "karma before these" in statement
    assert "credits" not in statement.lower()
    assert "KARMA" in souk("market").stdout and "weeks" not in souk("market").stdout


def check_jobs(market, folder):
    """So are what jobs hold, cost and get back, and what is given to others."""
    souk = Souk(folder)
    job = folder / "job.yaml"
    job.write_text('name: words\nnum_nodes: 1\nresources: {cpus: 1, memory: 1GiB}\nrun: "true"\n'
                   "market: {max_run_time: 1h}\n")
    submitted = souk("job", "submit", job, "-d", "-y")
    number = submitted.stdout.strip()
    said = [submitted.stderr, souk("job", "show", number).stdout]
    held = re.search(r"price +(1\.\d{6}) karma are held for 1h", said[0])[1]
    assert f"Held: {held} karma, for the least it asks for" in " ".join(said[1].split())
    assert "the 1000.000000 karma you have" in said[0]
    cancelled = souk("job", "cancel", number, "-y")
    explained = souk("job", "explain", number)
    extended = souk("job", "extend", number, "--by", "1h", "-y", code=4)
    given = souk("wallet", "transfer", "ann", "5000", "-y", code=6)
    assert f"0.000000 karma are spent, {held} held come back.\n" in cancelled.stderr
    assert "5000.000000 karma are more than the" in given.stderr
    said += [cancelled.stderr, explained.stdout, extended.stderr, given.stderr]
    assert not [words for words in said if "credits" in words.lower()]


def test_a_new_market_can_do_without_money(tmp_path):
    market = Market(tmp_path / "market", "--economy", "karma", "--no-local-lender")
    try:
        assert market.get("/v1/server").json["economy"] == "karma"
        check_screens(market, tmp_path)
        check_jobs(market, tmp_path)
        token = market.sign_up("ann")
        account = market.get("/v1/account", token).json
        assert account["available_microcredits"] == 1_000_000_000
        assert market.get("/v1/prices").json["core_hour_microcredits"] == 1_000_000
    finally:
        market.stop()
    # It stays what it is, said again or not.
    for options in ([], ["--economy", "karma"]):
        market.options = ("--no-local-lender", *options)
        market.start()
        assert market.get("/v1/server").json["economy"] == "karma"
        assert market.stop() == 0


def test_a_market_with_credits_does_not_change_its_economy(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")
    market.sign_up("ann")
    market.stop()
    market.options = ("--no-local-lender", "--economy", "karma")
    with pytest.raises(AssertionError):
        market.start()
    said = pathlib.Path(f"{tmp_path / 'market'}.log").read_text()
    assert "--economy is chosen for a new market" in said
    market.options = ("--no-local-lender",)
    market.start()
    assert market.get("/v1/server").json["economy"] == "credits"
    assert market.stop() == 0
