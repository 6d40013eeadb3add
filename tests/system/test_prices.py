"""Prices that follow demand: a real market over the end of a slot.

covers server/handle_price.c, cli/command_price.c
"""
import itertools
import math
import re
import time

import pytest

from program import Souk
from serving import HUNG_S, Market, audit

SLOT_MS = 6 * 3600 * 1000
COLD = {"core": 20000, "ram": 2000, "gpu": 180000, "disk": 60}
FIELDS = {"core": "core_hour_microcredits", "ram": "ram_gib_hour_microcredits",
          "gpu": "gpu_hour_microcredits", "disk": "disk_gib_hour_microcredits"}


def offset_that_ends_a_slot_in(ms):
    """An offset of the market's midnight with which the running slot ends that soon."""
    return f"{(-int(time.time() * 1000) - ms) % SLOT_MS}ms"


def wait_for_slot_after(market, slot):
    deadline = time.monotonic() + HUNG_S
    while True:
        prices = market.get("/v1/prices").json
        if prices["slot"] != slot:
            return prices
        assert time.monotonic() < deadline, "the slot did not end"
        time.sleep(0.05)  # clock: poll interval


def wait_until_lent(market):
    """The market's own lender is there."""
    token = market.sign_up("onlooker")
    deadline = time.monotonic() + HUNG_S
    while not any(machine["state"] == "online" for machine in market.get("/v1/machines", token).json["items"]):
        assert time.monotonic() < deadline, "nothing was lent"
        time.sleep(0.05)  # clock: poll interval


def market_over_a_slot(folder):
    """A market whose local lender lent, while nobody wanted anything, until a slot ended, and the prices before.

    How soon a market lends on a machine as busy as this is not known beforehand: where its slot ended
    first, the next market has twice the time."""
    for attempt in itertools.count():
        span_ms = 4000 << attempt
        market = Market(folder / f"market{attempt}", "--slot-offset", offset_that_ends_a_slot_in(span_ms))
        first = market.get("/v1/prices").json
        wait_until_lent(market)
        ends_ms = next(slot["end_ms"] for slot in first["slots"] if slot["slot"] == first["slot"])
        if ends_ms - time.time() * 1000 <= span_ms and market.get("/v1/prices").json["slot"] == first["slot"]:
            return market, first
        market.stop()


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    market, first = market_over_a_slot(tmp_path_factory.mktemp("prices"))
    assert [first[FIELDS[name]] for name in COLD] == list(COLD.values())
    yield market, first, wait_for_slot_after(market, first["slot"])
    if market.process.poll() is None:
        market.stop()


def by_the_rule(update):
    """docs/prices.md in floating point: the change of the level's logarithm, and of the factor's."""
    wanted, lent = update["wanted_milli_s"], update["offered_milli_s"]
    if not wanted and not lent:
        return 0, 0
    n = update["effective_q16"] / 2**16
    c = n / (n + 10)
    e = -2 if not wanted else 2 if not lent else max(-2, min(2, math.log2(wanted / (0.9 * lent))))
    bound = math.log2(1.5)
    return max(-bound, min(bound, 0.6 * c * e)), 0.1 * c * e


def test_a_slot_ends_and_prices_follow(ended):
    market, first, second = ended
    running = [slot for slot in second["slots"] if slot["state"] == "running"]
    assert [slot["slot"] for slot in running] == [second["slot"]]
    last = [slot for slot in second["slots"] if slot["slot"] == first["slot"]]
    if last:  # else it was yesterday's
        assert last[0]["state"] == "ended" and last[0][FIELDS["core"]] == COLD["core"]
    assert sum(slot["state"] == "forecast" for slot in second["slots"]) == 8
    assert first["last_7_days"] == []
    assert [(slot["slot"], slot["state"], slot[FIELDS["core"]]) for slot in second["last_7_days"]] == [
        (first["slot"], "ended", COLD["core"])]
    # Lent and not wanted: cheaper. Neither lent nor wanted: as it was.
    assert COLD["core"] / 1.1 < second[FIELDS["core"]] < COLD["core"]
    assert second[FIELDS["gpu"]] == COLD["gpu"]
    assert second["average_7_days"][FIELDS["core"]] == COLD["core"]
    assert all(slot["end_ms"] - slot["start_ms"] == SLOT_MS for slot in second["slots"])


def test_an_explanation_can_be_redone_by_hand(ended):
    market, first, second = ended
    story = market.get("/v1/prices/" + second["slot"].replace("/", "%2F")).json
    assert story["slot"] == second["slot"] and story["state"] == "running"
    assert [part["resource"] for part in story["resources"]] == list(COLD)
    for part in story["resources"]:
        update = part["level_update"]
        assert update["slot"] == first["slot"]
        level, factor = by_the_rule(update)
        assert update["level_before_q32"] / 2**32 == pytest.approx(
            math.log2(COLD[part["resource"]]), abs=1e-6)
        assert part["level_q32"] == update["level_after_q32"]
        assert (update["level_after_q32"] - update["level_before_q32"]) / 2**32 == pytest.approx(
            level, abs=1e-4)
        assert part["factor_q32"] / 2**32 == pytest.approx(-factor / 4, abs=1e-4)
        price = 2 ** ((part["level_q32"] + part["factor_q32"]) / 2**32)
        assert part["price_microcredits"] == round(price) == second[FIELDS[part["resource"]]]


def test_the_words_alone_give_the_price(ended, tmp_path):
    """With the digits shown, and nothing else, each price comes out to the microcredit."""
    market, _, second = ended
    souk = Souk(tmp_path)
    text = " ".join(souk("prices", "--server", market.url, "--explain", second["slot"])
                    .stdout.split())
    parts = re.split(r" (?=(?:core|ram|gpu|disk) \d\d-\d\d: )", text)[1:]
    assert len(parts) == 4
    for part in parts:
        price, level, factor = map(float, re.match(
            r"\w+ \S+: (\S+) = level (\S+) x \w+ (\d+\.\d+)\.", part).groups())
        assert level * factor == pytest.approx(price, abs=1.5e-6)
        if "the price stays" in part:
            continue
        n, c = map(float, re.search(r"n = (\S+) c = n / \(n \+ 10\) = (\S+)", part).groups())
        assert c == pytest.approx(n / (n + 10), abs=2e-5)
        e = float(re.search(r" e = (?:log2\(.*?\) = )?([-+]?\d+(?:\.\d+)?)", part)[1])
        step = float(re.search(r"either way, = (\S+)", part)[1])
        assert step == pytest.approx(max(-0.584963, min(0.584963, 0.6 * c * e)), abs=1e-5)
        before, after = map(float, re.search(r"(\S+) x 2\^\S+ = ([\d.]+\d)", part).groups())
        assert after == pytest.approx(before * 2 ** step, abs=1.5e-6) and after == level


def test_the_program_shows_and_explains_prices(ended, tmp_path):
    market, first, second = ended
    home = tmp_path / "home"
    home.mkdir()
    souk = Souk(home)
    shown = souk("prices", "--server", market.url).stdout
    assert all(len(line) <= 80 for line in shown.splitlines())
    now = next(line for line in shown.splitlines() if " now " in line)
    assert f"0.{second[FIELDS['core']]:06}" in now
    assert shown.count("forecast") == 8 and "average" in shown.splitlines()[-1]
    hours = second["slot"].split("/")[1]
    explained = souk("prices", "--server", market.url, "--explain", hours).stdout
    assert all(len(line) <= 80 for line in explained.splitlines())
    assert f"core {hours}: 0.{second[FIELDS['core']]:06} = level " in explained
    assert "e = -2, because nothing was wanted" in explained
    ended_slot = souk("prices", "--server", market.url, "--explain", first["slot"]).stdout
    assert ended_slot.startswith(f"{first['slot']}, ended.")
    for wrong, code in (("18-23", 2), ("2026-02-30/00-06", 2), ("1999-01-01/00-06", 3)):
        assert "slot" in souk("prices", "--server", market.url, "--explain", wrong,
                              code=code).stderr


def test_an_audit_computes_every_price_again(ended):
    market, first, second = ended
    market.stop()
    code, said = audit(market.folder)
    assert code == 0 and '"prices":4,' in said
    market.start()
    again = market.get("/v1/prices").json
    assert (again["slot"], again[FIELDS["core"]]) == (second["slot"], second[FIELDS["core"]])


def test_midnight_stays_once_a_slot_has_ended(ended):
    market, first, second = ended
    market.stop()
    with pytest.raises(AssertionError, match="--slot-offset"):
        Market(market.folder, "--slot-offset", "-1h")
