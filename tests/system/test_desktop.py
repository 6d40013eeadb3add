"""What desktops say of their owners on the system's bus, heard by a lender.

covers peer/watch_bus.c, peer/watch_desktop.c, peer/watch_x11.c

The bus is Debian's own dbus-daemon; behind it stand the few properties of logind and NetworkManager
that are asked for, since neither runs where tests do.
"""
import contextlib
import os
import pathlib
import socket
import subprocess
import time

import pytest

from serving import HUNG_S, PROGRAM, is_built_with
from test_owner import owned, wait_for_level, worker_of
from training import submit, wait_for

pytestmark = [
    pytest.mark.skipif(is_built_with("libtsan"), reason="TSan cannot run in a sandbox"),
    pytest.mark.skipif(not pathlib.Path("/usr/bin/dbus-daemon").exists(), reason="no dbus-daemon"),
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
            process.wait(10)


@contextlib.contextmanager
def desktop_of(lender):
    desktop = Desktop(lender.machine.root)
    try:
        yield desktop
    finally:
        desktop.leave()


def readings(lender):
    return lender.status()["readings"]


def test_it_is_heard(tmp_path):  # a short name: the bus's socket lies below a folder of it
    with owned(tmp_path, "--input-quiet", "5s") as (market, token, _, lender):
        assert lender.status()["desktop"] == "none"
        with desktop_of(lender) as desktop:
            doctor = subprocess.run([PROGRAM, "lend", "--doctor", "--state-dir", str(tmp_path / "doctor"),
                                     "--system-root", str(lender.machine.root)],
                                    capture_output=True, text=True, timeout=HUNG_S).stdout
            assert "watch desktop: logind, NetworkManager" in doctor, doctor
            job = submit(market, token, 1, min_time="60s", max_run_time="180s")
            wait_for("the worker", lambda: (worker_of(market, token, job) or {}).get("commits"))
            wait_for("the bus", lambda: lender.status()["desktop"] == "logind, NetworkManager")
            wait_for("the lid", lambda: readings(lender)["lid_closed"] == 0)
            # A desktop that never set the hint says nothing by it.
            assert readings(lender)["input_idle_ms"] is None
            assert readings(lender)["metered"] is None

            desktop.say("Metered", 4)
            wait_for("a free network", lambda: readings(lender)["metered"] == 0)
            assert lender.status()["level"] == "full"
            desktop.say("Metered", 3)
            wait_for_level(lender, "frozen")
            assert lender.status()["reason"] == "the network is metered"
            desktop.say("Metered", 2)
            wait_for_level(lender, "full")

            desktop.say("LidClosed", 1)
            wait_for_level(lender, "low")
            assert lender.status()["cause"] == "lid"
            desktop.say("LidClosed", 0)
            wait_for_level(lender, "full")

            # Idle since a minute, then somebody is back; and the hint is set again.
            desktop.say("IdleSinceHint", int((time.time() - 60) * 1e6))
            desktop.say("IdleHint", 1)
            wait_for("the hint", lambda: (readings(lender)["input_idle_ms"] or 0) > 50000)
            desktop.say("IdleHint", 0)
            wait_for_level(lender, "low")
            assert lender.status()["cause"] == "input"
            desktop.say("IdleHint", 1)
            wait_for_level(lender, "full")
        # A bus that goes away is not waited for.
        wait_for("its end", lambda: lender.status()["desktop"] == "none")
        wait_for("no word of the network", lambda: readings(lender)["metered"] is None)
        assert worker_of(market, token, job)["state"] == "running"


@pytest.mark.skipif(not pathlib.Path("/usr/bin/Xvfb").exists(), reason="no Xvfb")
def test_a_lender_sees_who_is_at_an_x_display(tmp_path):
    read_end, write_end = os.pipe()
    server = subprocess.Popen(["/usr/bin/Xvfb", "-displayfd", str(write_end), "-nolisten", "tcp",
                               "-noreset"],
                              pass_fds=[write_end], stderr=subprocess.DEVNULL)
    os.close(write_end)
    with os.fdopen(read_end) as ready:
        display = f":{ready.readline().strip()}"
    try:
        with owned(tmp_path, "--input-quiet", "5s", "--display", display) as (market, token, _, lender):
            job = submit(market, token, 1, min_time="60s", max_run_time="180s")
            wait_for("the worker", lambda: (worker_of(market, token, job) or {}).get("commits"))
            wait_for("the display", lambda: lender.status()["desktop"] == "X display")
            wait_for("nobody there", lambda: (readings(lender)["input_idle_ms"] or 0) > 6000)
            wait_for_level(lender, "full")
            # As a remote desktop does it: no device of this machine moves.
            subprocess.run(["/usr/bin/xdotool", "mousemove_relative", "5", "5"], check=True, timeout=HUNG_S,
                           env={**os.environ, "DISPLAY": display})
            wait_for_level(lender, "low")
            assert lender.status()["reason"] == "somebody is at the machine"
            wait_for_level(lender, "full")
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
        silent.settimeout(60)
        with silent.accept()[0]:  # it has asked, and gets no answer
            said, _ = doctor.communicate(timeout=HUNG_S)
    assert doctor.returncode == 0 and "watch desktop: none" in said, said
