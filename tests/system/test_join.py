"""Joining a market: what it learns of the machine, copied disks, markets that move or are others.

covers peer/peer.c, peer/doctor.c, peer/servers.c, peer/standing.c
covers server/presence.c, server/probe_body.c, cli/command_lend.c
"""
import http.server
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import threading
import time

import pytest
from serving import HUNG_S, PROGRAM, Market, is_built_with, own_addresses
from terminal import Terminal
from training import Lender, wait_for

pytestmark = pytest.mark.skipif(is_built_with("libtsan"), reason="sandboxes cannot run it")


class Daemon:
    """`souk lend` in the background, its log in a file."""

    def __init__(self, folder, *options, env=None):
        self.folder = pathlib.Path(folder)
        self.log_path = pathlib.Path(f"{folder}.log")
        self.log = open(self.log_path, "ab")
        self.process = subprocess.Popen(
            [PROGRAM, "lend", "--no-watch", "--state-dir", str(folder), "--cores", "0.25", "--memory", "256MiB",
             *map(str, options)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=self.log, env=env)

    def text(self):
        return self.log_path.read_text()

    def wait_for(self, words, count=1):
        """Until the log has the words so often."""
        deadline = time.monotonic() + HUNG_S
        while self.text().count(words) < count:
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < deadline, f"no {words!r} in: {self.text()}"
            time.sleep(0.02)  # clock: poll interval

    def end(self):
        """Its exit code, once it has ended by itself."""
        code = self.process.wait(HUNG_S)
        self.log.close()
        return code

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.end()


@pytest.fixture
def daemons():
    started = []

    def start(folder, *options, **more):
        started.append(Daemon(folder, *options, **more))
        return started[-1]

    yield start
    for daemon in started:
        if daemon.process.poll() is None:
            daemon.stop()


@pytest.fixture
def market(tmp_path):
    market = Market(tmp_path / "data", "--no-local-lender", *own_addresses())
    yield market
    assert market.stop() == 0


@pytest.fixture
def ada(market):
    return market.sign_up("ada")


def code_of(market, token):
    answer = market.post("/v1/machines/codes", token=token)
    assert answer.status == 201, answer
    return answer.json["code"]


def enlisting(market, token):
    return ["--server", market.url, "--code", code_of(market, token)]


def the_machine(market, token, **wanted):
    """The account's machine, once its probe has what is wanted of it: a value, or a check."""
    deadline = time.monotonic() + HUNG_S
    while True:
        items = market.get("/v1/machines?mine=true", token).json["items"]
        if items:
            probe = items[0]["probe"]
            if all(want(probe[name]) if callable(want) else probe[name] == want
                   for name, want in wanted.items()):
                return market.get(f"/v1/machines/{items[0]['id']}", token).json
        assert time.monotonic() < deadline, items
        time.sleep(0.05)  # clock: poll interval


def system_root(folder):
    """Files of a system with a processor, a package, and nothing else."""
    root = pathlib.Path(folder)
    files = {
        "proc/cpuinfo": "model name : A quiet one\nflags : avx2 fma\n",
        "etc/machine-id": "0123456789abcdef\n",
        "sys/class/thermal/thermal_zone0/temp": "48000\n",
        "sys/class/power_supply/BAT0/type": "Battery\n",
        "sys/class/power_supply/BAT0/capacity": "77\n",
        "sys/class/power_supply/BAT0/status": "Discharging\n",
        "var/lib/dpkg/status": "Package: python3-torch\nStatus: install ok installed\n",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


def test_the_market_learns_what_the_machine_is(market, ada, daemons, tmp_path):
    root = system_root(tmp_path / "root")
    daemon = daemons(tmp_path / "lend", *enlisting(market, ada), "--system-root", root,
                     "--labels", "quiet-room", "--hide-labels", "fma", "--look-every", "200ms",
                     "--when", "Mon-Fri 18:00-08:00", "--zone", "Europe/Berlin")
    daemon.wait_for("info linked ")
    shown = the_machine(market, ada, rtt_us=lambda us: us > 0, bandwidth_kbit=lambda kbit: kbit > 0)
    probe, live = shown["probe"], shown["live"]
    assert probe["cpu_model"] == "A quiet one" and probe["ram_bytes_per_s"] > 0
    labels = probe["labels"].split(",")
    assert {"quiet-room", "avx2", "python3-torch"} <= set(labels) and "fma" not in labels
    assert live["power"] == "battery" and live["battery_percent"] == 77
    assert live["temperature_c"] == 48 and 0 < live["rtt_us"] < 10_000_000
    stranger = market.sign_up("stranger")
    seen = market.get(f"/v1/machines/{shown['id']}", stranger).json
    assert seen["probe"] == probe and set(seen["live"]) == {"heard_ms", "rtt_us", "near"}, seen
    for asker, is_told in ((ada, True), (stranger, False)):
        words = subprocess.run([PROGRAM, "machines", "show", str(shown["id"]), "--server", market.url],
                               env={**os.environ, "SOUK_TOKEN": asker}, capture_output=True, text=True,
                               timeout=HUNG_S)
        assert words.returncode == 0 and ("on battery (77 %)" in words.stdout) == is_told, words
        assert "avx2, " in words.stdout
    offer = market.get("/v1/offers?mine=true", ada).json["items"][0]
    assert (offer["when"], offer["zone"]) == ("Mon-Fri 18:00-08:00", "Europe/Berlin")
    # Something is installed while it runs.
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/mpirun.openmpi").write_text("")
    (root / "var/lib/dpkg/status").unlink()
    the_machine(market, ada, labels=lambda text: "openmpi" in text and "torch" not in text)
    assert daemon.stop() == 0


def copy_disk(daemon, folder, copy):
    """Its files as they are at one moment, not its sockets: it is stopped, since it writes them anew. It stays stopped."""
    daemon.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, daemon.process.pid, os.WSTOPPED)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.socket"))


def test_a_copied_disk_is_refused_while_the_first_is_there(market, ada, daemons, tmp_path):
    first = daemons(tmp_path / "first", *enlisting(market, ada))
    first.wait_for("info linked ")
    copy_disk(first, tmp_path / "first", tmp_path / "copy")
    first.process.send_signal(signal.SIGCONT)
    copy = daemons(tmp_path / "copy")
    assert copy.end() == 4, copy.text()
    assert "one is a copy of the other's disk" in copy.text()
    assert "--new-identity --code CODE" in copy.text()
    assert first.process.poll() is None and first.text().count("info linked ") == 1
    # It does as it was told.
    anew = daemons(tmp_path / "copy", *enlisting(market, ada), "--new-identity", "--name", "copy")
    anew.wait_for("info linked ")
    deadline = time.monotonic() + HUNG_S  # a link is up before the market has written so
    while [machine["state"] for machine in market.get("/v1/machines?mine=true", ada).json["items"]] != ["online"] * 2:
        assert time.monotonic() < deadline, "not both are online"
        time.sleep(0.05)  # clock: poll interval


def test_a_machine_that_lost_its_power_takes_its_place_again(market, ada, daemons, tmp_path):
    first = daemons(tmp_path / "first", *enlisting(market, ada))
    first.wait_for("info linked ")
    # Stopped, it holds its connection and says nothing: as a machine without power.
    copy_disk(first, tmp_path / "first", tmp_path / "again")
    again = daemons(tmp_path / "again")
    again.wait_for("info linked ")
    assert "machine_returned" in pathlib.Path(f"{market.folder}.log").read_text()
    first.process.send_signal(signal.SIGKILL)
    first.end()


def test_a_disk_in_another_machine_is_noticed_without_the_market(market, ada, daemons, tmp_path):
    root = system_root(tmp_path / "root")
    first = daemons(tmp_path / "lend", *enlisting(market, ada), "--system-root", root)
    first.wait_for("info linked ")
    assert first.stop() == 0
    (root / "etc/machine-id").write_text("fedcba9876543210\n")
    elsewhere = daemons(tmp_path / "lend", "--system-root", root)
    assert elsewhere.end() == 4
    assert "another installation (/etc/machine-id)" in elsewhere.text()
    same = daemons(tmp_path / "lend", "--system-root", root, "--same-machine")
    same.wait_for("info linked ", 2)


def test_a_market_that_moves_is_followed_and_back(ada, daemons, tmp_path, market):
    """Two addresses of one market; it is at one, then at the other, then at the first again."""
    def move(listen, link):
        assert market.stop() == 0
        market.options = ("--no-local-lender", "--listen", listen, "--link-listen", link)
        market.start()

    def ports():
        where = market.ready["url"].split("//")[1], market.ready["link_address"]
        return where

    home = ports()
    enlisted = enlisting(market, ada)
    daemon = daemons(tmp_path / "lend", *enlisted, "--return-after", "200ms")
    daemon.wait_for("info linked ")
    assert daemon.stop() == 0
    move("127.0.0.2:0", "127.0.0.2:0")
    away = ports()
    servers = ["--server", f"http://{home[0]}", "--server", f"http://{away[0]}"]
    daemon = daemons(tmp_path / "lend", *servers, "--return-after", "200ms")
    daemon.wait_for(f"market={away[1]}")
    move(*home)
    daemon.wait_for("info linked ", 3)
    assert daemon.text().count(f"market={home[1]}") == 2
    kept = json.loads((tmp_path / "lend/enrolment.json").read_text())
    assert kept["server_url"] == f"http://{home[0]}" and kept["link_address"] == home[1]


def test_it_goes_back_to_the_first_server_while_the_second_still_is_there(
        ada, daemons, tmp_path, market):
    """The first address is a relay that comes later; the second is the market's own."""
    first = http.server.ThreadingHTTPServer(("127.0.0.3", 0), Relay)
    first.market, first.is_away = market, True
    threading.Thread(target=first.serve_forever, daemon=True).start()
    front = f"http://127.0.0.3:{first.server_port}"
    daemon = daemons(tmp_path / "lend", *enlisting(market, ada))
    daemon.wait_for("info linked ")
    assert daemon.stop() == 0
    daemon = daemons(tmp_path / "lend", "--server", front, "--server", market.url,
                     "--return-after", "200ms")
    daemon.wait_for("info linked ", 2)
    first.is_away = False
    daemon.wait_for(" returning ")
    daemon.wait_for("info linked ", 3)
    assert f"market_moved market={front}" in daemon.text()
    wait_for("the machine to be online", lambda: ["online"] == [
        machine["state"] for machine in market.get("/v1/machines?mine=true", ada).json["items"]])
    first.shutdown()
    first.server_close()


class Relay(http.server.BaseHTTPRequestHandler):
    """Answers as the market does at GET /v1/server, unless it is away."""

    def do_GET(self):
        body = self.server.market.get(self.path).body
        self.send_response(503 if self.server.is_away else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def test_another_market_at_the_same_address_is_refused(ada, daemons, tmp_path, market):
    daemon = daemons(tmp_path / "lend", *enlisting(market, ada))
    daemon.wait_for("info linked ")
    assert market.stop() == 0
    shutil.rmtree(market.folder)
    market.start()
    daemon.wait_for("is another market than the one this machine is enlisted at")
    assert daemon.stop() == 0
    # Nor does a code of it change anybody's mind by accident.
    other = market.sign_up("eve")
    again = daemons(tmp_path / "lend", *enlisting(market, other))
    assert again.end() == 4
    assert "has another key than when this machine was enlisted" in again.text()


class Liar(http.server.BaseHTTPRequestHandler):
    """A market that answers enrolments with whatever `server.lie` does."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.lie(self)

    def log_message(self, *arguments):
        pass


def flood(handler):
    """10 GB, as far as anybody takes them."""
    handler.send_response(201)
    handler.send_header("Content-Length", str(10 * 1000 ** 3))
    handler.end_headers()
    try:
        for _ in range(10 * 1000):
            handler.wfile.write(b" " * 1000 ** 2)
            handler.server.sent += 1000 ** 2
    except OSError:
        pass


def nonsense(handler):
    body = json.dumps({"machine": 1, "generation": 1, "link_key": "00", "server_public_key": "zz",
                       "link_address": "nowhere"}).encode()
    handler.send_response(201)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def half(handler):
    handler.send_response(201)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"machine": 1,')


@pytest.mark.parametrize("lie, words", [
    (flood, "65536"), (nonsense, "the market's answer"), (half, "enlist at")])
def test_a_market_that_lies_is_refused(lie, words, daemons, tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    server.lie, server.sent = lie, 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    daemon = daemons(tmp_path / "lend", "--server", f"http://127.0.0.1:{server.server_port}",
                     "--code", "abc")
    assert daemon.end() != 0
    server.shutdown()
    server.server_close()
    assert words in daemon.text()
    assert not (tmp_path / "lend/enrolment.json").exists()
    assert server.sent < 100 * 1000 ** 2


def test_the_doctor_says_what_the_machine_is(souk, tmp_path):
    root = system_root(tmp_path / "root")
    shown = json.loads(souk("lend", "--doctor", "--json", "--state-dir", tmp_path / "lend",
                            "--system-root", root).stdout)
    assert shown["machine"].startswith("A quiet one")
    assert "python3-torch" in shown["labels"] and "GB/s" in shown["memory_speed"]
    assert shown["power"] == "battery, battery at 77 %" and shown["temperature"] == "48 °C"
    assert shown["gpus"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to hide a device")
def test_without_tun_a_machine_is_lent_to_jobs_without_a_network(market, ada, tmp_path):
    nowhere = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/net && exec "$@"', "-")
    doctor = subprocess.run([*nowhere, PROGRAM, "lend", "--doctor", "--json", "--state-dir", tmp_path / "doctor"],
                            capture_output=True, text=True, timeout=HUNG_S, check=True)
    assert json.loads(doctor.stdout)["job_network"].startswith("missing: ")
    lender = Lender(market, ada, tmp_path / "lend", "tunless", within=nowhere)
    try:
        machine = wait_for("the machine", lambda: [machine for machine in market.get("/v1/machines?mine=true", ada).json["items"]
                                                   if machine["state"] == "online"])[0]
    finally:
        lender.stop()
    assert machine["probe"]["network"] == "none"
    assert "no_job_network" in pathlib.Path(lender.log_path).read_text()


# ---- The three questions --------------------------------------------------------------------------


class Person:
    """Somebody at a terminal who runs `souk lend` and reads what it says."""

    def __init__(self, home, *options, server=None, token=None):
        self.terminal = Terminal(100)
        self.home = home
        variables = {"HOME": str(home), "PATH": os.environ["PATH"], "TZ": "Europe/Berlin"}
        if server:
            variables |= {"SOUK_SERVER": server}
        if token:
            variables |= {"SOUK_TOKEN": token}
        self.process = subprocess.Popen(
            [PROGRAM, "lend", *map(str, options)], stdin=self.terminal.theirs,
            stdout=self.terminal.theirs, stderr=self.terminal.theirs, env=variables,
            start_new_session=True, preexec_fn=self.take_terminal)
        self.shown = ""

    def take_terminal(self):
        """Ctrl-C is of the terminal that controls the session."""
        import fcntl
        import termios
        fcntl.ioctl(self.terminal.theirs, termios.TIOCSCTTY, 0)

    def read_until(self, words):
        deadline = time.monotonic() + HUNG_S
        while words not in self.shown:
            assert select.select([self.terminal.ours], [], [], deadline - time.monotonic())[0], \
                f"no {words!r} in: {self.shown}"
            self.shown += os.read(self.terminal.ours, 4096).decode(errors="replace")
        before, _, self.shown = self.shown.partition(words)
        return before

    def type(self, text):
        os.write(self.terminal.ours, text.encode())

    def end(self):
        code = self.process.wait(HUNG_S)
        self.terminal.close()
        return code

    def files(self):
        return sorted(str(path.relative_to(self.home)) for path in self.home.rglob("*")
                      if path.is_file())


def test_three_questions_make_a_lender(market, ada, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    person = Person(home, server=market.url, token=ada)
    person.read_until("Ctrl-C leaves everything as it was")
    person.read_until(f"[{market.url}] > ")
    person.type("127.0.0.1:1\n")
    person.read_until("nobody answers there")
    person.read_until(" > ")
    person.type("\n")
    person.read_until("That is the market")
    person.read_until("[50%] > ")
    person.type("a lot\n")
    person.read_until("say a part of it")
    person.read_until("[50%] > ")
    person.type("25\n")
    person.read_until("[always] > ")
    person.type("off-hours\n")
    person.read_until("info linked ")
    config = (home / ".config/souk/config").read_text()
    assert config == (f"[lend]\nserver = {market.url}\ncores = 25%\nmemory = 25%\n"
                      "when = Mon-Fri 18:00-08:00; Sat-Sun 0-24\nzone = Europe/Berlin\n")
    offer = market.get("/v1/offers?mine=true", ada).json["items"][0]
    assert (offer["when"], offer["zone"]) == (
        "Mon-Fri 18:00-08:00; Sat-Sun 00:00-24:00", "Europe/Berlin")
    assert offer["cores_milli"] == len(os.sched_getaffinity(0)) * 250
    assert (home / ".local/state/souk/lend/machine.key").stat().st_mode & 0o777 == 0o600
    person.type("\x03")
    assert person.end() == 0
    # From now on nothing is asked.
    again = Person(home)
    before = again.read_until("info linked ")
    assert " > " not in before
    again.type("\x03")
    assert again.end() == 0


def test_a_whole_command_can_be_pasted(market, ada, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    person = Person(home)
    person.read_until("[http://127.0.0.1:7600] > ")
    person.type("souk lend " + " ".join(enlisting(market, ada)) + "\n")
    person.read_until("[50%] > ")
    person.type("\n")
    person.read_until("[always] > ")
    person.type("\n")
    person.read_until("info linked ")
    person.type("\x03")
    assert person.end() == 0


@pytest.mark.parametrize("key, code", [("\x03", -signal.SIGINT), ("\x04", 9)])
def test_going_away_leaves_nothing_behind(key, code, market, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    person = Person(home)
    person.read_until(" > ")
    person.type(f"{market.url}\n")
    person.read_until("one-time code")
    person.read_until(" > ")
    person.type(key)
    assert person.end() == code
    assert person.files() == []


def test_a_wrong_code_is_told_before_the_next_question(market, ada, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    person = Person(home)
    person.read_until(" > ")
    person.type(f"{market.url}\n")
    person.read_until("one-time code")
    person.type("not-a-code\n")
    assert "How much of this machine" not in person.read_until("the code is wrong, used or expired")
    person.read_until("one-time code")
    person.type(code_of(market, ada) + "\n")
    person.read_until("[50%] > ")
    person.type("\x03")
    assert person.end() == -signal.SIGINT
    assert not (home / ".config/souk/config").exists()


def test_a_code_can_be_checked_and_is_not_used_up_by_it(market, ada, daemons, tmp_path):
    code = code_of(market, ada)
    for _ in range(2):
        answer = market.post("/v1/machines/codes/check", {"code": code})
        assert answer.status == 200 and answer.json["expires_ms"] > time.time() * 1000, answer
    daemons(tmp_path / "lend", "--server", market.url, "--code", code).wait_for("info linked ")
    for wrong in (code, "souk_enrol_" + "0" * 40):
        answer = market.post("/v1/machines/codes/check", {"code": wrong})
        assert answer.status == 403 and "wrong, used or expired" in answer.json["detail"], answer


def test_a_name_that_is_taken_costs_no_code(market, ada, daemons, tmp_path):
    daemons(tmp_path / "first", *enlisting(market, ada), "--name", "heron").wait_for("info linked ")
    words = enlisting(market, ada)
    refused = daemons(tmp_path / "second", *words, "--name", "heron")
    assert refused.end() == 5, refused.text()
    assert "choose another with --name" in refused.text() and "new code" not in refused.text()
    daemons(tmp_path / "second", *words, "--name", "wren").wait_for("info linked ")


def test_a_name_that_is_taken_is_asked_for_again(market, ada, daemons, tmp_path):
    host = os.uname().nodename
    for name in (host, f"{host}-2"):
        daemons(tmp_path / name, *enlisting(market, ada), "--name", name).wait_for("info linked ")
    home = tmp_path / "home"
    home.mkdir()
    person = Person(home, "--network", "none", server=market.url, token=ada)
    person.read_until(f"[{market.url}] > ")
    person.type("\n")
    person.read_until("[50%] > ")
    person.type("1\n")
    person.read_until("1 core or 1%?")
    person.read_until("[50%] > ")
    person.type("1 core\n")
    person.read_until("[always] > ")
    person.type("\n")
    person.read_until("Lending up to 1 core, ")
    plan = person.read_until("Another machine there is called")
    assert "disk (20 GiB at most), always" in plan and "a job reaches nothing" in plan, plan
    person.read_until(f"[{host}-2] > ")
    person.type("not / a name\n")
    person.read_until(f"[{host}-2] > ")
    person.type("\n")
    person.read_until(f"[{host}-3] > ")
    person.type("\n")
    person.read_until("info linked ")
    person.type("\x03")
    assert person.end() == 0
    config = (home / ".config/souk/config").read_text()
    assert "cores = 1\n" in config and config.endswith(f"name = {host}-3\n"), config


def test_always_needs_no_zone(market, ada, daemons, tmp_path):
    daemons(tmp_path / "lend", *enlisting(market, ada), "--when", "always", "--zone",
            "Etc/UTC").wait_for("info linked ")
    offer = market.get("/v1/offers?mine=true", ada).json["items"][0]
    assert offer["when"] == "always"


def test_without_a_terminal_it_says_what_to_give(souk, tmp_path):
    refused = souk("lend", "--state-dir", tmp_path / "lend", code=2)
    assert "--server URL --code CODE" in refused.stderr and "souk machines add" in refused.stderr
