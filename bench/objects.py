#!/usr/bin/env python3
"""Objects in a market's store: how many are put in a second, and what one costs the market in CPU time.

    bench/objects.py [--json] [--writers 16] [--seconds 5] [--program build/souk]

Starts `souk serve` and puts objects once, under names of their own, from processes that keep a connection each: as
functions put updates of a logistic model (31 kB), of LeNet-5 (246 kB), and parts of larger ones (4 MB). Each is on
disk before it is answered. Beside it chunks of the same sizes, which are stored the same way but for their name, and a
small account's reading, which changes nothing. CPU time is the market's own, whatever else the machine does.
"""
import argparse
import http.client
import json
import multiprocessing
import os
import pathlib
import subprocess
import tempfile
import time
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parent.parent
SIZES = {"31 kB": 31440, "246 kB": 246824, "4 MB": 4000000}
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--writers", type=int, default=16)
parser.add_argument("--seconds", type=float, default=5)
parser.add_argument("--program", default=str(ROOT / "build/souk"))
wanted = parser.parse_args()


class Market:
    def __init__(self, folder):
        read_end, write_end = os.pipe()
        self.process = subprocess.Popen(
            [wanted.program, "serve", "--data", f"{folder}/market", "--listen", "127.0.0.1:0", "--link-listen",
             "127.0.0.1:0", "--no-local-lender", "--ready-fd", str(write_end)], pass_fds=[write_end],
            stderr=subprocess.DEVNULL)
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            self.where = urllib.parse.urlsplit(json.loads(ready.readline())["url"])
        answer = ask(self.connect(), "POST", "/v1/accounts", b'{"name":"bench"}',
                     {"Content-Type": "application/json"})
        self.headers = {"Authorization": "Bearer " + json.loads(answer)["token"]}

    def connect(self):
        return http.client.HTTPConnection(self.where.hostname, self.where.port, timeout=60)

    def cpu_s(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ask(connection, method, path, body, headers):
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    data = answer.read()
    assert answer.status in (200, 201, 204), (answer.status, data)
    return data


def write(market, kind, size, number, counts):
    connection, data, count = market.connect(), bytearray(os.urandom(size)), 0
    end = time.monotonic() + wanted.seconds
    while time.monotonic() < end:
        data[:8] = number.to_bytes(4, "little") + count.to_bytes(4, "little")
        if kind == "objects":
            ask(connection, "PUT", f"/v1/objects/updates/bench-{size}/{number}-{count}", bytes(data),
                {**market.headers, "If-None-Match": "*"})
        elif kind == "chunks":
            ask(connection, "POST", "/v1/chunks", bytes(data), market.headers)
        else:
            ask(connection, "GET", f"/v1/objects/updates/bench-{size}/{number}-0", None, market.headers)
        count += 1
    counts.put(count)


def measure(market, kind, size):
    counts, cpu_s, started = multiprocessing.SimpleQueue(), market.cpu_s(), time.monotonic()
    writers = [multiprocessing.Process(target=write, args=(market, kind, size, number, counts))
               for number in range(wanted.writers)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert all(writer.exitcode == 0 for writer in writers)
    done = sum(counts.get() for _ in writers)
    return {"per_second": round(done / (time.monotonic() - started), 1),
            "cpu_us": round(1e6 * (market.cpu_s() - cpu_s) / done, 1)}


def main():
    results = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        market = Market(folder)
        try:
            for name, size in SIZES.items():
                results[name] = {kind: measure(market, kind, size) for kind in ("objects", "chunks", "read")}
        finally:
            market.process.terminate()
            market.process.wait()
    if wanted.json:
        print(json.dumps({"writers": wanted.writers, "sizes": results}))
        return
    print(f"{wanted.writers} writers            put an object         store a chunk         read an object")
    for name, kinds in results.items():
        print(f"{name:>10}  " + "".join(f"{one['per_second']:>10.0f}/s {one['cpu_us']:>7.0f} us" for one in kinds.values()))


main()
