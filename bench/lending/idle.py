"""An idle lender beside Debian's boinc-client: memory, CPU, traffic.

idle_rss_kib, boinc_rss_kib          VmRSS, shared libraries counted in full
idle_cpu_percent, boinc_cpu_percent  of one core, user and system
idle_bytes_per_s                     both ways, with the headers of Ethernet, IP and TCP

Market and lender have a network of their own, whose loopback counts the bytes of every frame; run
by lender.py inside it. Each waits until what follows its start is over. BOINC is attached to no
project and looks for no GPU; its port for managers is closed and its own benchmarks are skipped.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile
import time

from process import cpu_s, end, resident_kib, souk, start

SETTLE_S = 30  # heartbeats come quickly at first, and the market measures the way there


def loopback_bytes():
    for line in pathlib.Path("/proc/self/net/dev").read_text().splitlines():
        if line.strip().startswith("lo:"):
            return int(line.split(":")[1].split()[0])  # received is what was sent
    raise SystemExit("this network has no loopback")


def start_boinc(folder):
    if not shutil.which("boinc"):
        raise SystemExit("boinc is missing: tools/install-deps --bench")
    pathlib.Path(folder).mkdir()
    return subprocess.Popen(["boinc", "--dir", folder, "--no_gui_rpc", "--no_gpus", "--no_info_fetch",
                             "--skip_cpu_benchmarks"],
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def measure(program, folder, seconds):
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    market, ready = start(program, "serve", "--data", f"{folder}/market", "--listen", "127.0.0.1:0",
                          "--link-listen", "127.0.0.1:0", "--no-local-lender")
    souk(program, f"{folder}/config", "account", "open", "--name", "lender", "--server", ready["url"])
    code = souk(program, f"{folder}/config", "machines", "add")["code"]
    lender, _ = start(program, "lend", "--server", ready["url"], "--state-dir", f"{folder}/lender",
                      environment={"SOUK_LEND_CODE": code})
    boinc = start_boinc(f"{folder}/boinc")
    try:
        time.sleep(SETTLE_S)
        begun, bytes_before = time.monotonic(), loopback_bytes()
        before = cpu_s(lender.pid), cpu_s(boinc.pid)
        time.sleep(seconds)
        passed_s = time.monotonic() - begun
        after = cpu_s(lender.pid), cpu_s(boinc.pid)
        assert lender.poll() is None and boinc.poll() is None, "one of them ended"
        return {"idle_rss_kib": resident_kib(lender.pid),
                "idle_cpu_percent": round(100 * (after[0] - before[0]) / passed_s, 4),
                "idle_bytes_per_s": round((loopback_bytes() - bytes_before) / passed_s, 1),
                "boinc_rss_kib": resident_kib(boinc.pid),
                "boinc_cpu_percent": round(100 * (after[1] - before[1]) / passed_s, 4),
                "idle_seconds": round(passed_s)}
    finally:
        end(boinc, lender, market)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(measure(wanted.program, place, wanted.seconds)))
