#!/usr/bin/env python3
"""What a read of the API costs the server, beside nginx serving a static file of the same size.

    bench/api.py [--json] [--jobs N] [--machines N] [--rounds N] [--seconds S] [--store DIR]
                 [--program build/souk] [--fill build/release/api_fill]

A store with JOBS jobs and MACHINES machines is made by commands to the real engine (api_fill), and
the real `souk serve` runs on it. wrk asks both servers over keep-alive connections on loopback,
turn by turn; what counts is the CPU time (user and system) of the server's process per answer.
Each kind of read is compared with a file of its answers' mean size, with the same headers asked.

Every path is asked for once before, as nginx's file is in the page cache: what is compared is a
market that has run for a while. The first reads are measured apart, on a market just started: every
answer is a page or a job that nobody has read before, asked for one after the other over one
connection, and nginx likewise.

--store keeps the store in DIR, or uses the one there.
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--json", action="store_true")
parser.add_argument("--jobs", type=int, default=100_000)
parser.add_argument("--machines", type=int, default=10_000)
parser.add_argument("--rounds", type=int, default=5)
parser.add_argument("--seconds", type=float, default=1)
parser.add_argument("--store")
parser.add_argument("--program", default=str(ROOT / "build/souk"))
parser.add_argument("--fill", default=str(ROOT / "build/release/api_fill"))
wanted = parser.parse_args()

CONNECTIONS = 16
PAGE = 50
PAGES_MAX = 2000
FIRST_READS = 2000
PATHS_PER_KIND = 100_000
HERTZ = os.sysconf("SC_CLK_TCK")

# Walks through its own file of paths, so that every request of a run is a different one.
WRK_SCRIPT = """
local requests, at = {}, 0
function init(arguments)
    for path in io.lines(arguments[1]) do
        requests[#requests + 1] = wrk.format("GET", path)
    end
    at = tonumber(arguments[2]) or 0
end
function request()
    at = at % #requests + 1
    return requests[at]
end
function done(summary, latency)
    io.write(string.format("DONE %d %d %d %d\\n", summary.requests, summary.bytes,
        summary.errors.status, summary.errors.connect + summary.errors.read +
        summary.errors.write + summary.errors.timeout))
end
"""

NGINX_CONFIG = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000000;
    default_type application/json;
    client_body_temp_path {folder}/temp;
    proxy_temp_path {folder}/temp;
    fastcgi_temp_path {folder}/temp;
    uwsgi_temp_path {folder}/temp;
    scgi_temp_path {folder}/temp;
    server {{ listen 127.0.0.1:{port}; root {folder}/www; }}
}}
"""


def need(program, package):
    path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if not path:
        raise SystemExit(f"bench/api.py needs {program}: tools/install-deps --bench, or "
                         f"apt-get install {package}")
    return path


NGINX, WRK = need("nginx", "nginx-light"), need("wrk", "wrk")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / HERTZ


def resident_mib(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


class Market:
    def __init__(self, folder, token):
        read_end, write_end = os.pipe()
        self.process = subprocess.Popen(
            [wanted.program, "serve", "--data", folder, "--listen", "127.0.0.1:0", "--link-listen",
             "127.0.0.1:0", "--no-local-lender", "--reads-per-minute", "0", "--ready-fd",
             str(write_end)],
            pass_fds=[write_end], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            self.url = json.loads(ready.readline())["url"]
        self.token = token
        self.pid = self.process.pid

    def get(self, path):
        request = urllib.request.Request(self.url + path,
                                         headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(request) as answer:
            return answer.read()

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Nginx:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "www").mkdir()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        config = self.folder / "nginx.conf"
        config.write_text(NGINX_CONFIG.format(folder=folder, port=port))
        self.process = subprocess.Popen([NGINX, "-c", str(config), "-p", folder])
        self.url = f"http://127.0.0.1:{port}"
        self.pid = self.worker()

    def worker(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for _ in range(200):
            found = children.read_text().split()
            if found:
                return int(found[0])
            time.sleep(0.02)  # nginx says nothing when its worker is there
        raise SystemExit("nginx did not start")

    def put(self, name, size):
        (self.folder / "www" / name).write_bytes(b"x" * size)

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Load:
    """Runs wrk and says what the server spent on each answer."""

    def __init__(self, folder, token):
        self.folder = pathlib.Path(folder)
        self.script = self.folder / "paths.lua"
        self.script.write_text(WRK_SCRIPT)
        self.token = token
        self.generator = random.Random(4)

    def paths(self, name, paths):
        file = self.folder / f"{name}.paths"
        file.write_text("\n".join(paths) + "\n")
        return file

    def microseconds(self, server, file):
        """From anywhere in the file, so that no run asks for just what the one before it asked."""
        start = self.generator.randrange(PATHS_PER_KIND)
        before = cpu_seconds(server.pid)
        done = subprocess.run(
            [WRK, "-t1", f"-c{CONNECTIONS}", f"-d{max(1, round(wanted.seconds))}s", "-H",
             "Authorization: Bearer " + self.token, "-s", str(self.script), server.url, "--",
             str(file), str(start)], capture_output=True, text=True, check=True).stdout
        spent = cpu_seconds(server.pid) - before
        requests, size, refused, broken = map(
            int, re.search(r"DONE (\d+) (\d+) (\d+) (\d+)", done).groups())
        if refused or broken or not requests:
            raise SystemExit(f"{file.name} at {server.url}: {requests} answers, {refused} refused, "
                             f"{broken} broken")
        return spent * 1e6 / requests, size / requests, requests


def all_pages(market, path):
    """The pages' paths, from the first on, and their ids."""
    pages, ids = [f"{path}?limit={PAGE}"], []
    while True:
        page = json.loads(market.get(pages[-1]))
        ids += [item["id"] for item in page["items"]]
        if not page["next_cursor"] or len(pages) == PAGES_MAX:
            return pages, ids
        pages.append(f"{path}?limit={PAGE}&cursor={page['next_cursor']}")


def choose(items, generator):
    return [generator.choice(items) for _ in range(PATHS_PER_KIND)]


def mean_size(market, paths):
    return round(statistics.mean(len(market.get(path)) for path in paths[:200]))


def make_kinds(job_pages, jobs, machine_pages, machines, entry_pages):
    generator = random.Random(1)
    return {
        "a job": choose([f"/v1/jobs/{job}" for job in jobs], generator),
        "a machine": choose([f"/v1/machines/{machine}" for machine in machines], generator),
        "jobs, first page": job_pages[:1],
        "jobs, any page": choose(job_pages, generator),
        "machines, any page": choose(machine_pages, generator),
        "the account": ["/v1/account"],
        "entries, first page": entry_pages[:1],
        "entries, any page": choose(entry_pages, generator),
        "prices": ["/v1/prices"],
    }


def ask_once(market, token, kinds):
    for paths in kinds.values():
        first_reads(market, list(dict.fromkeys(paths)), token)


def measure(load, market, nginx, files):
    """CPU per answer in microseconds of both servers, in turns; the median round."""
    ours, theirs = {kind: [] for kind in files}, {kind: [] for kind in files}
    for _ in range(wanted.rounds):
        for kind, (file, static) in files.items():
            ours[kind].append(load.microseconds(market, file)[0])
            theirs[kind].append(load.microseconds(nginx, static)[0])
    return ({kind: statistics.median(values) for kind, values in ours.items()},
            {kind: statistics.median(values) for kind, values in theirs.items()})


def depth_cost(load, market, pages):
    """What the page at a depth costs, the depths in turns."""
    depths = [depth for depth in (1, 10, 100, 1000, len(pages) - 1) if depth < len(pages)]
    files = {depth: load.paths(f"depth-{depth}", [pages[depth]]) for depth in depths}
    seen = {depth: [] for depth in depths}
    for _ in range(wanted.rounds):
        for depth, file in files.items():
            seen[depth].append(load.microseconds(market, file)[0])
    return {depth: statistics.median(values) for depth, values in seen.items()}


def first_reads(server, paths, token):
    """CPU per answer, each path asked for once, in turn over one connection."""
    where = urllib.parse.urlsplit(server.url)
    connection = http.client.HTTPConnection(where.hostname, where.port)
    before = cpu_seconds(server.pid)
    for path in paths:
        connection.request("GET", path, headers={"Authorization": "Bearer " + token})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path} at {server.url}: {answer.status}")
    spent = cpu_seconds(server.pid) - before
    connection.close()
    return spent * 1e6 / len(paths)


def measure_first(store, token, nginx, kinds, sizes):
    market = Market(store, token)
    market.get("/v1/account")
    try:
        result = {}
        for kind in ("a job", "jobs, any page", "machines, any page", "entries, any page"):
            paths = list(dict.fromkeys(kinds[kind]))[:FIRST_READS]
            ours = first_reads(market, paths, token)
            theirs = first_reads(nginx, [f"/{sizes[kind]}.json"] * FIRST_READS, token)
            result[kind] = {"reads": len(paths), "souk_cpu_us": ours, "nginx_cpu_us": theirs,
                            "ratio": ours / theirs}
        return result
    finally:
        market.stop()


def bench(folder, store, token):
    load = Load(folder, token)
    market = Market(store, token)
    nginx = Nginx(folder)
    try:
        job_pages, jobs = all_pages(market, "/v1/jobs")
        machine_pages, machines = all_pages(market, "/v1/machines")
        if len(jobs) < wanted.jobs or len(machines) < wanted.machines:
            raise SystemExit(f"the store has {len(jobs)} jobs and {len(machines)} machines")
        entry_pages, entries = all_pages(market, "/v1/account/entries")
        kinds = make_kinds(job_pages, jobs, machine_pages, machines, entry_pages)
        mix = [path for paths in kinds.values() for path in choose(paths, random.Random(2))]
        random.Random(3).shuffle(mix)
        sizes = {kind: mean_size(market, paths) for kind, paths in kinds.items()}
        for kind, size in sizes.items():
            nginx.put(f"{size}.json", size)
        files = {kind: (load.paths(kind.replace(" ", "-"), paths),
                        load.paths("static-" + kind.replace(" ", "-"), [f"/{sizes[kind]}.json"]))
                 for kind, paths in kinds.items()}
        files["the mix"] = (load.paths("mix", mix),
                            load.paths("static-mix", [f"/{size}.json" for size in sizes.values()]))
        ask_once(market, token, kinds)
        ours, theirs = measure(load, market, nginx, files)
        depths = depth_cost(load, market, job_pages)
        resident = resident_mib(market.pid)
        market.stop()
        first = measure_first(store, token, nginx, kinds, sizes)
        return {
            "cpu_ratio_to_nginx": ours["the mix"] / theirs["the mix"],
            "jobs": len(jobs), "machines": len(machines), "entries_read": len(entries),
            "reads": {kind: {"bytes": sizes.get(kind), "souk_cpu_us": ours[kind],
                             "nginx_cpu_us": theirs[kind], "ratio": ours[kind] / theirs[kind]}
                      for kind in files},
            "worst_ratio": max(ours[kind] / theirs[kind] for kind in kinds),
            "page_cpu_us_at_depth": depths,
            "depth_ratio": max(depths.values()) / min(depths.values()),
            "first_reads": first,
            "market_rss_mib": resident,
            "load_average": os.getloadavg()[0],
        }
    finally:
        nginx.stop()
        market.stop()


def print_table(result):
    print(f"{result['jobs']} jobs, {result['machines']} machines, {result['entries_read']} entries; "
          f"{CONNECTIONS} keep-alive connections; load average {result['load_average']:.1f}")
    print(f"{'read':<22}{'bytes':>8}{'souk µs':>10}{'nginx µs':>10}{'ratio':>8}   goal 2")
    for kind, read in result["reads"].items():
        print(f"{kind:<22}{read['bytes'] or '':>8}{read['souk_cpu_us']:>10.1f}"
              f"{read['nginx_cpu_us']:>10.1f}{read['ratio']:>8.2f}")
    for kind, read in result["first_reads"].items():
        print(f"{'first read: ' + kind:<30}{read['souk_cpu_us']:>10.1f}{read['nginx_cpu_us']:>10.1f}"
              f"{read['ratio']:>8.2f}")
    print("a page of jobs at depth: " + ", ".join(
        f"{depth}: {cost:.1f} µs" for depth, cost in result["page_cpu_us_at_depth"].items())
        + f"; dearest over cheapest {result['depth_ratio']:.2f}")
    print(f"market's memory: {result['market_rss_mib']:.0f} MiB resident")


def main():
    with tempfile.TemporaryDirectory(prefix="souk-bench-api-") as folder:
        os.chmod(folder, 0o755)  # nginx reads its files as another user
        store = wanted.store or f"{folder}/market"
        made = pathlib.Path(store) / "made.json"
        if not made.exists():
            pathlib.Path(store).mkdir(mode=0o700, parents=True, exist_ok=True)
            made.write_bytes(subprocess.run([wanted.fill, store, str(wanted.jobs),
                                             str(wanted.machines)], stdout=subprocess.PIPE,
                                            check=True).stdout)
        result = bench(folder, store, json.loads(made.read_text())["token"])
    print(json.dumps(result)) if wanted.json else print_table(result)


main()
