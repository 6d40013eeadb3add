"""What desktops say of their owners on the system's bus, heard by a lender.

covers peer/watch_bus.c, peer/watch_desktop.c, peer/watch_x11.c

The bus is Debian's own dbus-daemon; behind it stand the few properties of logind and NetworkManager
that are asked for, since neither runs where tests do.
"""
import contextlib
import importlib.util
import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

import pytest

from serving import HUNG_S, PROGRAM, is_built_with
from test_owner import owned, wait_for_level, worker_of
from training import wait_for

pytestmark = [
    pytest.mark.skipif(is_built_with("libtsan"), reason="TSan cannot run in a sandbox"),
    pytest.mark.skipif(not pathlib.Path("/usr/bin/dbus-daemon").exists(), reason="no dbus-daemon"),
    pytest.mark.skipif(not all(map(importlib.util.find_spec, ("dbus", "gi"))), reason="no python3-dbus or no python3-gi"),
]

CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


class Desktop:
    """A system bus below a machine's root, with what answers on it."""

    def __init__(self, root):
        self.socket = root / "run/dbus/system_bus_socket"
        self.socket.parent.mkdir(parents=True)
        config = root / "bus.conf"
        config.write_text(CONFIG.format(socket=self.socket))
        self.bus = subprocess.Popen(["/usr/bin/dbus-daemon", f"--config-file={config}", "--nofork",
                                     "--print-address"], stdout=subprocess.PIPE, text=True)
        assert self.bus.stdout.readline()
        self.services = subprocess.Popen(
            ["/usr/bin/python3", str(pathlib.Path(__file__).with_name("desktop_services.py")),
             f"unix:path={self.socket}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.services.stdout.readline() == "ready\n"

    def say(self, name, value):
        self.services.stdin.write(f"{name} {value}\n")
        self.services.stdin.flush()
        assert self.services.stdout.readline() == "ready\n"

    def leave(self):
        for process in (self.services, self.bus):
            process.terminate()
            process.wait(HUNG_S)


@contextlib.contextmanager
def desktop_of(lender):
    desktop = Desktop(lender.machine.root)
    try:
        yield desktop
    finally:
        desktop.leave()


def readings(lender):
    return lender.status()["readings"]


class Levels:
    """The lender's next levels with their reasons, in turn, from its log: polling would miss some."""

    def __init__(self, lender):
        self.path, self.taken = lender.log_path, 0
        self.taken = len(self.logged())

    def logged(self):
        return re.findall(r' owner level=(\w+) was=\w+ reason="([^"]*)"', pathlib.Path(self.path).read_text())

    def has_next(self):
        return len(self.logged()) > self.taken

    def next(self):
        wait_for("the next level", self.has_next, step=0.05)
        self.taken += 1
        return self.logged()[self.taken - 1]


def submit_sleep(market, token):
    """Submits a job that sleeps until cancelled; returns its id once it runs."""
    answer = market.post("/v1/jobs", {
        "name": "sleep", "num_nodes": 1, "runtime": "command", "run": "exec sleep 3600",
        "resources": {"cpus": "0.1", "memory": "0.1"}, "market": {"max_run_time": "1h"}}, token)
    assert answer.status == 201, answer
    job = answer.json["id"]
    wait_for("the lease", lambda: (worker_of(market, token, job) or {}).get("state") == "running", step=0.05)
    return job


def test_it_is_heard(tmp_path):  # a short name: the bus's socket lies below a folder of it
    with owned(tmp_path, "--input-quiet", "1s") as (market, token, _, lender):
        assert lender.status()["desktop"] == "none"
        with desktop_of(lender) as desktop:
            doctor = subprocess.run([PROGRAM, "lend", "--doctor", "--state-dir", str(tmp_path / "doctor"),
                                     "--system-root", str(lender.machine.root)],
                                    capture_output=True, text=True, timeout=HUNG_S).stdout
            assert "watch desktop: logind, NetworkManager" in doctor, doctor
            job = submit_sleep(market, token)
            wait_for("the bus", lambda: lender.status()["desktop"] == "logind, NetworkManager")
            wait_for("the lid", lambda: readings(lender)["lid_closed"] == 0)
            # A desktop that never set the hint says nothing by it.
            assert readings(lender)["input_idle_ms"] is None
            assert readings(lender)["metered"] is None

            levels = Levels(lender)
            desktop.say("Metered", 4)
            wait_for("a free network", lambda: readings(lender)["metered"] == 0)
            assert lender.status()["level"] == "full"
            desktop.say("Metered", 3)
            assert levels.next() == ("frozen", "the network is metered")
            desktop.say("Metered", 2)
            assert levels.next()[0] == "full"

            desktop.say("LidClosed", 1)
            assert levels.next()[0] == "low"
            assert lender.status()["cause"] == "lid"
            desktop.say("LidClosed", 0)
            assert levels.next()[0] == "full"

            # Idle since a minute, then somebody is back; and the hint is set again.
            desktop.say("IdleSinceHint", int((time.time() - 60) * 1e6))
            desktop.say("IdleHint", 1)
            wait_for("the hint", lambda: (readings(lender)["input_idle_ms"] or 0) > 50000)
            desktop.say("IdleHint", 0)
            assert levels.next()[0] == "low"
            assert lender.status()["cause"] == "input"
            desktop.say("IdleHint", 1)
            assert levels.next()[0] == "full"
        # A bus that goes away is not waited for.
        wait_for("its end", lambda: lender.status()["desktop"] == "none")
        wait_for("no word of the network", lambda: readings(lender)["metered"] is None)
        assert worker_of(market, token, job)["state"] == "running"


@pytest.mark.skipif(not all(map(shutil.which, ("Xvfb", "xdotool"))), reason="no Xvfb or no xdotool")
def test_a_lender_sees_who_is_at_an_x_display(tmp_path):
    read_end, write_end = os.pipe()
    server = subprocess.Popen(["/usr/bin/Xvfb", "-displayfd", str(write_end), "-nolisten", "tcp",
                               "-noreset"],
                              pass_fds=[write_end], stderr=subprocess.DEVNULL)
    os.close(write_end)
    with os.fdopen(read_end) as ready:
        display = f":{ready.readline().strip()}"
    try:
        with owned(tmp_path, "--input-quiet", "3s", "--display", display) as (market, token, _, lender):
            submit_sleep(market, token)
            wait_for("the display", lambda: lender.status()["desktop"] == "X display")
            wait_for("nobody there", lambda: (readings(lender)["input_idle_ms"] or 0) > 3000)
            wait_for_level(lender, "full")
            levels = Levels(lender)
            # Move the pointer like a remote desktop, without a device, until the lender notices.
            while not levels.has_next():
                subprocess.run(["/usr/bin/xdotool", "mousemove_relative", "5", "5"], check=True, timeout=HUNG_S,
                               env={**os.environ, "DISPLAY": display})
            assert levels.next() == ("low", "somebody is at the machine")
            assert levels.next()[0] == "full"
    finally:
        server.terminate()
        server.wait(HUNG_S)
    # And one that is gone is not waited for.
    assert "watch desktop: none" in subprocess.run(
        [PROGRAM, "lend", "--doctor", "--state-dir", str(tmp_path / "doctor"), "--display", display,
         "--system-root", str(tmp_path)], capture_output=True, text=True, timeout=HUNG_S).stdout


def test_the_doctor_does_not_wait_for_a_display_that_says_nothing(tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        display = f"127.0.0.1:{silent.getsockname()[1] - 6000}"
        doctor = subprocess.Popen(
            [PROGRAM, "lend", "--doctor", "--state-dir", str(tmp_path / "doctor"), "--display", display,
             "--system-root", str(tmp_path)], stdout=subprocess.PIPE, text=True)
        silent.settimeout(HUNG_S)
        with silent.accept()[0]:  # it has asked, and gets no answer
            said, _ = doctor.communicate(timeout=HUNG_S)
    assert doctor.returncode == 0 and "watch desktop: none" in said, said
