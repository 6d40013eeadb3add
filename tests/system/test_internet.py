"""The Internet for a job that asks for it, where the owner permits it; and nothing of the owner's.

A home with a router behind which lies an Internet of its own (internet.py): the job resolves a name and
reaches a service there by TCP and UDP. It reaches neither the LAN, nor the machine, nor the cloud's
metadata, nor a public network that the machine is attached to, now or later.

covers peer/gateway.c, peer/open_network.c, net/outside.c, net/slirp_library.c
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import uuid

import pytest

from checkpoints import processes_with
from internet import (CAMPUS_HOST, CAMPUS_OWN, CLOSED, HOME, LATER, METADATA, RESOLVER, ROUTER, SERVICE,
                      home_with_internet)
from serving import HUNG_S, PROGRAM, Market
from test_escape import PLAIN_USER, UserLender, folder_for_everyone, skip_where_it_cannot_lend
from training import Lender, needs_cgroups, needs_tun, wait_for

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for networks and another user"),
    needs_tun]

HELPERS = """
import errno, json, socket, struct, sys
def tcp(address, port=80, device=None):
    try:
        one = socket.socket()
        if device:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
        one.settimeout(5)  # clock: the fence closes a connection silently
        one.connect((address, port))
        return one.recv(100).decode().strip()
    except TimeoutError:
        return "silence"
    except OSError as error:
        return errno.errorcode[error.errno]
def udp(address, port=80, size=1):
    try:
        one = socket.socket(type=socket.SOCK_DGRAM)
        one.settimeout(1)  # clock: only time shows silence
        one.connect((address, port))
        one.send(bytes(size))
        return one.recv(100).decode()
    except TimeoutError:
        return "silence"
    except OSError as error:
        return errno.errorcode[error.errno]
def say(name, value):
    print(json.dumps([name, value]), flush=True)
"""


class Home:
    def __init__(self, tmp_path, who, folder, internet):
        self.tmp_path, self.internet = tmp_path, internet
        self.word = uuid.uuid4().hex  # identifies the job's process
        self.market = Market(tmp_path / "market", "--no-local-lender")
        self.lender_token, self.token = self.market.sign_up("lender"), self.market.sign_up("borrower")
        state = folder / "state"
        state.mkdir()
        if who == "user":
            os.chown(state, PLAIN_USER, PLAIN_USER)
        self.state = state
        self.lender = (Lender if who == "root" else UserLender)(
            self.market, self.lender_token, state, "home",
            options=("--network", "open", "--closed-networks", "45.90.0.0/16"))
        wait_for("the machine", lambda: [m for m in self.market.get("/v1/machines", self.token).json["items"]
                                         if m["state"] == "online"])

    def start(self, program, *options):
        files = self.tmp_path / "files"
        files.mkdir(exist_ok=True)
        (files / "job.py").write_text(HELPERS + program)
        return subprocess.Popen(
            [PROGRAM, "run", "--server", self.market.url, "--config-dir", str(self.tmp_path / "config"), "-y",
             "--cpus", "0.3", "--memory", "0.2", *options, "--files", str(files), "--", "python3", "job.py", self.word],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
            env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1"})

    def run(self, program, *options):
        process = self.start(program, *options)
        out, err = process.communicate(timeout=HUNG_S)
        assert process.returncode == 0, (out, err)
        return dict(json.loads(line) for line in out.splitlines())

    def used(self):
        """What passed in and out, and how many packets did not, as the log says of the one lease."""
        wait_for("the end of all keepers", lambda: not self.lender.keepers())
        [used] = re.findall(r"internet_used .*bytes_in=(\d+) bytes_out=(\d+) refused=(\d+)",
                            pathlib.Path(self.lender.log_path).read_text())
        return map(int, used)

    def close(self):
        self.lender.stop()
        self.market.stop()


def lent_by(*who):
    return pytest.mark.parametrize("home", who, indirect=True)


@pytest.fixture
def home(request, tmp_path, tmp_path_factory):
    skip_where_it_cannot_lend(request.param)
    with home_with_internet() as internet:
        folder = folder_for_everyone(tmp_path, tmp_path_factory.getbasetemp())
        made = Home(tmp_path, request.param, folder, internet)
        try:
            yield made
        finally:
            made.close()


@lent_by("root", "user")
def test_a_job_reaches_the_internet_and_nothing_of_the_owner(home):
    with socket.create_server(("", 80)):  # the machine's own
        for address in (SERVICE, CLOSED, CAMPUS_HOST, METADATA, HOME):
            socket.create_connection((address, 80), timeout=HUNG_S).close()  # the lender reaches every address
        home.internet.calls()
        found = home.run(f"""
say("name", socket.gethostbyname("service.example"))
say("tcp", tcp("{SERVICE}"))
say("udp", udp("{SERVICE}"))
say("closed", tcp("{SERVICE}", 81))
say("mail", tcp("{SERVICE}", 25))
say("fragments", udp("{SERVICE}", size=3000))
for address in {[CLOSED, CAMPUS_HOST, CAMPUS_OWN, METADATA, ROUTER, HOME, "127.0.0.1"]}:
    say("tcp " + address, tcp(address))
    say("udp " + address, udp(address))
    say("device " + address, tcp(address, device="souk1"))
try:
    socket.gethostbyname("unknown.example")
except socket.gaierror as error:
    say("unknown", error.errno == socket.EAI_NONAME or error.errno == socket.EAI_NODATA)
""", "--network", "open")
    assert found.pop("name") == SERVICE and found.pop("tcp") == SERVICE and found.pop("udp") == SERVICE
    assert found.pop("unknown") is True
    assert found.pop("closed") == "ECONNREFUSED"
    assert found.pop("fragments") == "silence"
    assert {found.pop(name) for name in list(found) if name.endswith("127.0.0.1")} <= {
        "ECONNREFUSED", "EHOSTUNREACH", "EINVAL"}
    assert set(found.values()) == {"EHOSTUNREACH"}, found
    assert len(found) == 19
    called = home.internet.calls()
    assert {address for _, address in map(str.split, called)} == {SERVICE, RESOLVER}, called


@lent_by("user")
def test_without_asking_there_is_no_internet(home):
    found = home.run(f'say("tcp", tcp("{SERVICE}"))', "--network", "job")
    assert found == {"tcp": "ENETUNREACH"}
    assert home.internet.calls() == []


@lent_by("user")
def test_a_network_that_is_attached_later_is_closed_at_once(home):
    process = home.start(f"""
say("later", tcp("{LATER}"))
while tcp("{LATER}") == "{LATER}":
    pass
say("then", tcp("{LATER}"))
say("service", tcp("{SERVICE}"))
""", "--network", "open")
    assert json.loads(process.stdout.readline()) == ["later", LATER]
    subprocess.run(["ip", "addr", "add", "141.2.3.1/24", "dev", "home"], check=True)
    out, err = process.communicate(timeout=HUNG_S)
    assert [json.loads(line) for line in out.splitlines()] == [["then", "EHOSTUNREACH"], ["service", SERVICE]], (out, err)


@pytest.mark.skipif(not shutil.which("iptables"), reason="no iptables here, to translate addresses with")
@lent_by("user")
def test_the_address_that_the_market_sees_is_closed(home):
    """As a router does: what the lender sends to the market comes from another, public address."""
    rule = f"-t nat -A POSTROUTING -o lo -p tcp -s 127.0.0.1 -j SNAT --to-source {LATER}"
    pathlib.Path("/proc/sys/net/ipv4/conf/home/route_localnet").write_text("1")  # for the way back
    subprocess.run(["iptables", *rule.split()], check=True)
    home.lender.stop()
    home.lender.start()
    wait_for("its second link", lambda: pathlib.Path(home.lender.log_path).read_text().count(" linked machine=") == 2)
    wait_for("the machine", lambda: [m for m in home.market.get("/v1/machines", home.token).json["items"]
                                     if m["state"] == "online"])
    found = home.run(f"""
say("seen", tcp("{LATER}"))
say("service", tcp("{SERVICE}"))
""", "--network", "open")
    assert found == {"seen": "EHOSTUNREACH", "service": SERVICE}


@lent_by("user")
def test_what_is_stopped_while_the_owner_pauses_it_ends_without_the_internet(home):
    process = home.start(f"""
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
say("first", udp("{SERVICE}"))
signal.sigwait([signal.SIGTERM])
say("last", udp("{SERVICE}"))
""", "--network", "open")
    assert json.loads(process.stdout.readline()) == ["first", SERVICE]
    subprocess.run([PROGRAM, "lend", "pause", "--state-dir", str(home.state)], check=True, timeout=HUNG_S)
    wait_for("the pause", lambda: re.search("lease_yields .*level=frozen", pathlib.Path(home.lender.log_path).read_text()))
    home.internet.calls()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=HUNG_S)
    assert json.loads(out) == ["last", "silence"], (out, err)
    assert home.internet.calls() == []


@lent_by("user")
def test_nobody_gets_in_who_was_not_asked(home):
    """A socket of the gateway's takes datagrams from everybody; the job hears those whom it asked."""
    process = home.start(f"""
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
one = socket.socket(type=socket.SOCK_DGRAM)
one.sendto(b"x", ("{SERVICE}", 80))
say("first", [one.recvfrom(100)[0].decode(), ""])
tcp("{SERVICE}", 80)
one.settimeout(60)  # clock: a wait this long has hung
one.sendto(b"x", ("{SERVICE}", 80))
say("second", [one.recvfrom(100)[0].decode(), ""])
signal.sigwait([signal.SIGUSR1])
one.sendto(b"x", ("{SERVICE}", 80))
say("third", [one.recvfrom(100)[0].decode(), ""])
""", "--network", "open")
    assert json.loads(process.stdout.readline()) == ["first", [SERVICE, ""]]
    assert json.loads(process.stdout.readline()) == ["second", [SERVICE, ""]]
    listing = subprocess.run(["ss", "-Huna"], capture_output=True, text=True, check=True).stdout
    ports = {line.split()[3].rsplit(":", 1)[1] for line in listing.splitlines()}
    assert ports, listing
    stranger = socket.socket(type=socket.SOCK_DGRAM)
    for port in ports:
        stranger.sendto(b"let me in", (HOME, int(port)))
    pid, = processes_with(home.word)
    os.kill(pid, signal.SIGUSR1)
    out, err = process.communicate(timeout=HUNG_S)
    assert json.loads(out) == ["third", [SERVICE, ""]], (out, err)  # a stranger's packet would have come first
    _, _, refused = home.used()
    assert refused >= 1  # the stranger was heard, and not let in


@needs_cgroups
@lent_by("root")
def test_what_passes_is_counted_and_connections_are_bounded(home):
    """Without a cgroup sockets count as memory of the job, whose bound comes first."""
    found = home.run(f"""
many = []
for i in range(400):
    one = socket.socket()
    one.settimeout(5)  # clock: the fence refuses connections silently
    try:
        one.connect(("{SERVICE}", 80))
        many.append(one)
    except OSError:
        break
say("many", len(many))
tcp("192.168.1.1")
""", "--network", "open", "--memory", "0.8")
    assert 100 < found["many"] < 272, found
    came, went, refused = home.used()
    # A handshake each way, and what the service says; the last, and one on the LAN, were refused.
    assert came >= found["many"] * (40 + 40 + 14) and went >= found["many"] * (60 + 40) and refused >= 1
    status = subprocess.run([PROGRAM, "lend", "status", "--state-dir", str(home.state)], capture_output=True,
                            timeout=HUNG_S, check=False)
    assert status.returncode == 0, status
