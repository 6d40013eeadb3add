"""The market's table of machines, with real lenders: state, freshness, room, filters, orders.

covers cli/command_machines.c, server/handle_machine.c, server/handle_machine_word.c, server/handle_report.c, server/presence.c
covers server/suspect.c
"""
import os
import pathlib
import signal
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market, audit, is_built_with
from training import Lender, submit, submit_endless, wait_for

pytestmark = pytest.mark.skipif(is_built_with("libtsan"), reason="sandboxes cannot run it")

SILENCE_MS = 4000


class Table:
    """A market with two lenders' machines, one of which bears a label of its owner's."""

    def __init__(self, folder):
        self.folder = folder
        self.market = Market(folder / "market", "--reads-per-minute", "0")
        self.market.call("PUT", "/v1/settings", {"silence_ms": SILENCE_MS},
                         self.market.operator_token())
        self.owner, self.token = self.market.sign_up("owner"), self.market.sign_up("borrower")
        self.lenders = {}
        for name in ("heron", "wren"):  # one after the other: lists go by id
            self.lenders[name] = Lender(self.market, self.owner, folder / name, name)
            wait_for(name, lambda: name in self.names("state=online"))
        wait_for("both machines and their round trips", lambda: 2 == len(
            [m for m in self.find("availability=free") if m["name"] != "market" and m["probe"]["rtt_us"]]))
        [offer] = self.offers("heron")
        assert self.market.call("PATCH", f"/v1/offers/{offer['id']}",
                                {"labels": "quiet", "minimum": {"core_micro": 2}},
                                self.owner).status == 200

    def find(self, question="", token=None):
        answer = self.market.get(f"/v1/machines?{question}", token or self.token)
        assert answer.status == 200, answer
        return answer.json["items"]

    def names(self, question):
        return [machine["name"] for machine in self.find(question) if machine["name"] != "market"]

    def row(self, name):
        [machine] = self.find(f"name={name}")
        return machine

    def offers(self, name):
        return self.market.get(f"/v1/machines/{self.row(name)['id']}/offers", self.owner).json["items"]

    def souk(self, *words):
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=HUNG_S, env={
            **os.environ, "SOUK_SERVER": self.market.url, "SOUK_TOKEN": self.token,
            "XDG_CONFIG_HOME": str(self.folder / "config")})


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    made = Table(tmp_path_factory.mktemp("table"))
    yield made
    for lender in made.lenders.values():
        lender.stop()
    assert made.market.stop() == 0
    status, text = audit(made.market.folder)
    assert status == 0, text


def test_a_row_says_what_is_free(table):
    row = table.row("wren")
    assert (row["state"], row["availability"]) == ("online", "free")
    assert row["free"]["cores_milli"] == row["offer"]["cores_milli"] == 500
    assert row["free"]["ram_bytes"] == row["offer"]["ram_bytes"] > 0
    assert 0 <= row["fresh_s"] <= 2
    assert table.row("heron")["offer_labels"] == "quiet"


@pytest.mark.parametrize("question, names", [
    ("availability=free", ["heron", "wren"]),
    ("availability=busy", []),
    ("state=online&availability=free", ["heron", "wren"]),
    ("min_cores_milli=500", ["heron", "wren"]),
    ("min_cores_milli=501", []),
    ("min_ram_bytes=1&min_disk_bytes=1", ["heron", "wren"]),
    ("min_ram_bytes=4503599627370496", []),
    ("labels=quiet", ["heron"]),
    ("labels=quiet,no-such-label", []),
    ("max_rtt_us=60000000", ["heron", "wren"]),
    ("max_rtt_us=1", []),
    ("min_reliability_milli=1000", []),
    ("min_reliability_milli=1", ["heron", "wren"]),
    ("min_speed_milli=20000", []),
    ("max_core_micro=1", ["wren"]),
    ("max_core_micro=2", ["heron", "wren"]),
    ("sort=price", ["wren", "heron"]),
    ("name=heron&sort=speed", ["heron"]),
    ("mine=true", []),
])
def test_filters_find_what_they_say(table, question, names):
    assert table.names(question) == names


def test_machines_without_a_gpu_have_none_free(table):
    assert all(m["free"]["gpus_milli"] >= 1000 for m in table.find("min_gpus_milli=1000"))


def test_the_command_asks_what_its_options_say(table):
    done = table.souk("machines", "--free", "--cpus", "0.5", "--memory", "1MiB", "--label", "quiet",
                      "--max-rtt", "60s", "--min-reliability", "0.1", "--max-price", "0.000002",
                      "--sort", "price")
    assert done.returncode == 0, done.stderr
    [_, line] = done.stdout.splitlines()
    assert line.split()[1:5] == ["heron", "owner", "free", "0.5"]
    nothing = table.souk("machines", "--cpus", "900")
    assert (nothing.stdout, nothing.stderr) == ("", "No machine is like that.\n")
    for words, sentence in ((["--state", "sleepy"], "--state must be one of: offline,"),
                            (["--sort", "size"], "--sort must be one of: free,"),
                            (["--min-speed", "fast"], '--min-speed: "fast" is not a factor'),
                            (["--free", "--state", "busy"], "give one of the two")):
        refused = table.souk("machines", *words)
        assert refused.returncode == 2 and sentence in refused.stderr, refused.stderr
    shown = table.souk("machines", "show", "heron").stdout
    assert "lent by owner, free" in shown and " s ago" in shown and "quiet" in shown


def test_a_machine_that_a_job_fills_is_busy_until_it_ends(table):
    job = submit(table.market, table.token, 2, min_time="1h", max_run_time="1h")
    wait_for("both to be busy", lambda: table.names("availability=busy") == ["heron", "wren"])
    assert table.row("wren")["free"]["cores_milli"] == 0
    assert table.names("min_cores_milli=1") == []
    table.market.post(f"/v1/jobs/{job}/cancel", {}, table.token)
    wait_for("both to be free", lambda: table.names("availability=free") == ["heron", "wren"])


def test_an_owner_pauses_a_machine(table):
    [offer] = table.offers("wren")
    table.market.post(f"/v1/offers/{offer['id']}/pause", {}, table.owner)
    assert table.row("wren")["availability"] == "paused"
    assert table.names("availability=paused") == ["wren"]
    assert table.names("min_cores_milli=1") == ["heron"]
    table.market.post(f"/v1/offers/{offer['id']}/resume", {}, table.owner)
    assert table.row("wren")["availability"] == "free"


def test_freshness_is_live(table):
    """src/server/hub_test.c shows that the market misses an idle machine later than a leased one."""
    process = table.lenders["wren"].process
    process.send_signal(signal.SIGSTOP)
    try:
        first = table.row("wren")["fresh_s"]
        for seconds in (1, 2):  # no event came meanwhile, and the answer is cached
            wait_for(f"{seconds} s", lambda: table.row("wren")["fresh_s"] >= first + seconds)
        assert table.row("wren")["availability"] == "free"
    finally:
        process.send_signal(signal.SIGCONT)
    wait_for("freshness", lambda: table.row("wren")["fresh_s"] <= 1)


REPORT_SILENCE_MS = 10000


@pytest.fixture
def working(table):
    """A job that runs on both machines, in a market that waits longer before it minds silence."""
    def put(silence_ms):
        table.market.call("PUT", "/v1/settings", {"silence_ms": silence_ms},
                          table.market.operator_token())
    put(REPORT_SILENCE_MS)
    job = submit_endless(table.market, table.token, 2)
    wait_for("its workers", lambda: 2 == sum(
        lease["role"] == "worker" and lease["ticks"] > 0
        for lease in table.market.get(f"/v1/jobs/{job}", table.token).json["leases"]))
    yield job
    table.market.post(f"/v1/jobs/{job}/cancel", {}, table.token)
    put(SILENCE_MS)
    wait_for("both to be free", lambda: table.names("availability=free") == ["heron", "wren"])


def log_of(table):
    return pathlib.Path(f"{table.market.folder}.log").read_text()


def test_only_who_has_a_lease_there_reports_a_machine(table, working):
    path = f"/v1/machines/{table.row('heron')['id']}/reports"
    refused = table.market.post(path, {}, table.owner)
    assert refused.status == 403 and "only who has a lease" in refused.json["detail"], refused
    assert table.market.post("/v1/machines/999999/reports", {}, table.token).status == 404
    assert "machine_reported" not in log_of(table)


def test_a_false_report_changes_nothing(table, working):
    before = table.row("heron")
    report = table.souk("machines", "report", "heron")
    assert report.returncode == 0 and "asks it at once" in report.stderr, report.stderr
    wait_for("the market's look", lambda: f"report_refuted machine={before['id']}" in log_of(table))
    after = table.row("heron")
    for field in ("state", "availability", "state_changed_ms"):
        assert after[field] == before[field], field
    assert after["reputation"]["reliability_milli"] >= before["reputation"]["reliability_milli"]
    assert after["reputation"]["lost"] == before["reputation"]["lost"]
    assert "machine_silent" not in log_of(table).partition("machine_reported")[2]


def test_a_true_report_finds_silence_sooner_than_the_market_does(table, working):
    machine = table.row("wren")
    process = table.lenders["wren"].process
    process.send_signal(signal.SIGSTOP)
    try:
        assert table.market.post(f"/v1/machines/{machine['id']}/reports", {}, table.token).status == 200
        missed = wait_for("silence", lambda: [m for m in table.find("availability=unreachable")
                                              if m["name"] == "wren"])
        # A report halves the wait (src/market/suspicion_test.c).
        assert f"report_confirmed machine={machine['id']}" in log_of(table)
        assert missed[0]["free"]["cores_milli"] == 0
        assert missed[0]["reputation"]["lost"] == machine["reputation"]["lost"]
    finally:
        process.send_signal(signal.SIGCONT)
    wait_for("its return", lambda: table.row("wren")["state"] == "online")


def test_a_machine_that_left_is_offline(table):
    table.lenders["wren"].stop()
    wait_for("its leaving", lambda: table.row("wren")["availability"] == "offline")
    assert table.names("availability=offline") == ["wren"]
    table.lenders["wren"].start()
    wait_for("its return", lambda: table.row("wren")["availability"] == "free")
