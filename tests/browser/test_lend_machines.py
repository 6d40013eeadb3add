"""A lender's two machines in the page: a GPU, a group, several offers, pauses and whose word they are."""
import os
import shlex
import subprocess
import time

import pytest

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import HUNG_S, PROGRAM, Market
from test_gpu import FIXTURE, can_have_devices, with_devices
from test_owner import Machine
from training import Lender, wait_for

HOUR_MS = 3600_000


class Lent(Lender):
    """By the command that the page shows."""

    def __init__(self, line, folder, name, *more, wrapped=(), environment=None):
        words = shlex.split(line)
        assert words[:2] == ["souk", "lend"], words
        self.folder = folder
        self.command = [*wrapped, PROGRAM, *words[1:], "--state-dir", str(folder), "--name", name, "--cores", "0.5",
                        "--memory", "1GiB", "--disk", "1GiB", *more]
        self.log_path = f"{folder}.log"
        self.start({**os.environ, **(environment or {})})

    def say(self, *words):
        done = subprocess.run([PROGRAM, "lend", *words, "--state-dir", str(self.folder)], capture_output=True, text=True, timeout=HUNG_S)
        assert done.returncode == 0, done


def with_gpu(line, folder, root):
    """A machine with a GPU by the fixture that stands for the driver's library, and with a sensor."""
    devices, libraries = folder.with_name("devices"), folder.with_name("libraries")
    devices.mkdir()
    libraries.mkdir()
    (libraries / "libnvidia-ml.so.1").symlink_to(FIXTURE)
    return Lent(line, folder, "osprey", "--system-root", str(root), wrapped=with_devices(devices),
                environment={"LD_LIBRARY_PATH": str(libraries), "NVML_FIXTURE_COUNT": "1"})


def warm(machine, celsius):
    machine.put("sys/class/thermal/thermal_zone0/type", "x86_pkg_temp\n")
    machine.put("sys/class/thermal/thermal_zone0/temp", f"{celsius * 1000}\n")


def test_two_machines_a_group_and_several_offers(tmp_path):
    (tmp_path / "try").mkdir()
    if not can_have_devices(tmp_path / "try"):
        pytest.skip("needs a /dev of its own, and may not have one here")
    market = Market(tmp_path / "market", "--no-local-lender")
    token = market.sign_up("lender")
    assert market.post("/v1/groups", {"name": "herons"}, token).status == 201
    sensors = Machine(tmp_path / "osprey-root")
    sensors.plug(True)
    warm(sensors, 54)
    lenders = []

    def osprey():
        return next(m for m in market.get("/v1/machines?mine=true", token).json["items"] if m["name"] == "osprey")

    def offers():
        return market.get(f"/v1/machines/{osprey()['id']}/offers", token).json["items"]

    try:
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("lend_machines.mjs", code["url"], tmp_path) as walk:
            line = walk.hear()
            lenders.append(Lent(line, tmp_path / "heron", "heron", "--no-watch"))
            walk.answer()
            walk.expect("used")
            again = Lent(line, tmp_path / "twice", "twice", "--no-watch")
            assert again.process.wait(HUNG_S) != 0
            again.stop()
            assert "code" in (tmp_path / "twice.log").read_text()
            walk.answer()
            lenders.append(with_gpu(walk.hear(), tmp_path / "osprey", sensors.root))
            walk.answer()
            walk.expect("hotter")
            warm(sensors, 71)
            walk.answer()
            walk.expect("grouped")
            grouped = offers()[0]
            walk.answer()
            walk.expect("two offers")
            two = offers()
            walk.answer()
            walk.expect("withdrawn")
            left = offers()
            begun_ms = time.time() * 1000
            walk.answer()
            walk.expect("longer")
            for_hour = osprey()["paused_until_ms"]
            seen_ms = time.time() * 1000
            assert market.post(f"/v1/machines/{osprey()['id']}/pause", {"for_ms": 5 * HOUR_MS}, token).status == 200
            walk.answer()
            walk.expect("tomorrow")
            tomorrow_ms = osprey()["paused_until_ms"]
            walk.answer()
            walk.expect("at the machine")
            lenders[1].say("pause", "30m")
            walk.answer()
            walk.expect("resumed there")
            lenders[1].say("resume")
            walk.answer()
            seen = walk.end()
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()
    assert seen["stillWaits"] == 1 and seen["isNew"]
    assert "54 °C" in seen["temperature"] and "mains" in seen["temperature"]
    assert "of 1" in seen["gpu"]
    assert grouped["gpus_milli"] == 0 and grouped["audience"] == "group" and grouped["group"] == "herons" and grouped["spare"]
    assert seen["offers"] == 2 and len(two) == 2 and int(seen["second"]) == two[-1]["id"] != grouped["id"]
    assert two[-1]["gpus_milli"] == 1000 and two[-1]["minimum"]["gpu_micro"] == 100_000 and "18:00" in two[-1]["when"]
    assert two[0] == grouped or two[0]["id"] == grouped["id"]
    estimate = seen["estimated"]
    assert estimate["terms"]["minimum"]["gpu_micro"] == 100_000, estimate
    for name in ("cores_milli", "ram_bytes", "disk_bytes", "gpus_milli", "when"):
        assert estimate["terms"][name] == two[-1][name], (name, estimate, two[-1])
    assert f"{estimate['full_microcredits'] // 10_000 / 100:,.2f}" == seen["estimate"], estimate
    assert [offer["id"] for offer in left] == [grouped["id"]]
    assert begun_ms <= for_hour - HOUR_MS <= seen_ms + 1 and seen["hour"] != seen["longer"]
    midnight = time.localtime(tomorrow_ms / 1000 + 1)
    assert (midnight.tm_hour, midnight.tm_min) == (0, 0)
    assert seen["mayResume"] == 0
    assert_clean(seen)
