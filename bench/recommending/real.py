"""Twelve cases trained for real, each on some clusters, beside the same in virtual time.

Six of them run jobs on real `souk lend` daemons whose cores are capped (all shares together at most
1.6), each behind a cable of a given speed in a network namespace of its own, under a market with its
own parameter server. What a step takes each kind is measured by one worker of it that pushes seldom.
The other six run `souk bench wan`: real parameter server and workers over shaped lines, also where
all share the server's; steps take a given time there. The simulator gets speeds, lines and sizes, and
says how long each cluster takes; the error is how far that is from what it took.
"""
import ctypes
import json
import multiprocessing
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(BENCH / "lending"), str(BENCH / "axon")]
import runs  # noqa: E402 -- found through the line above
from process import end, souk, start  # noqa: E402 -- likewise

MARKET = "192.0.2.1"
CLONE_NEWNET = 0x40000000
STAND_IN_PARAMETERS = 7850  # of the logistic model that stands for those of any size
OVERHEAD_BYTES = 1.06  # frames, TLS records and TCP's headers on each byte
SCALE = 100  # virtual seconds for a real one
LENDING_RTT_MS = 2
QUOTA_MS = 100  # in which a lender may use up its share of the cores
WAN_SECONDS = 12

# cores of each lender: a cluster takes the first so many of them.
LENDING = [
    {"model": "lenet5", "batch": 64, "policy": "bsp", "local_steps": 20, "mbit": 50, "cores": [0.4, 0.4, 0.4, 0.4]},
    {"model": "lenet5", "batch": 128, "policy": "tap", "local_steps": 10, "mbit": 20, "cores": [0.4, 0.4, 0.4, 0.4]},
    {"model": "lenet5", "batch": 32, "policy": "bsp", "local_steps": 20, "mbit": 50, "cores": [0.8, 0.2, 0.2, 0.2]},
    {"model": "lenet5", "batch": 128, "policy": "ssp", "local_steps": 10, "mbit": 50, "cores": [0.5, 0.5, 0.25]},
    {"model": "mlp", "batch": 32, "policy": "tap", "local_steps": 50, "mbit": 100, "cores": [0.5, 0.5, 0.5]},
    {"model": "mlp", "batch": 128, "policy": "bsp", "local_steps": 40, "mbit": 100, "cores": [0.6, 0.3, 0.3]},
]
WAN = [
    {"policy": "bsp", "parameters": 100_000, "step_ms": 50, "rtt_ms": 20, "mbit": 100, "server_mbit": 0},
    {"policy": "bsp", "parameters": 500_000, "step_ms": 100, "rtt_ms": 10, "mbit": 200, "server_mbit": 200},
    {"policy": "tap", "parameters": 200_000, "step_ms": 50, "rtt_ms": 10, "mbit": 100, "server_mbit": 100},
    {"policy": "tap", "parameters": 500_000, "step_ms": 200, "rtt_ms": 40, "mbit": 50, "server_mbit": 0},
    {"policy": "ssp", "parameters": 200_000, "step_ms": 100, "rtt_ms": 20, "mbit": 100, "server_mbit": 100},
    {"policy": "adsp", "parameters": 500_000, "step_ms": 100, "rtt_ms": 20, "mbit": 100, "server_mbit": 100},
]
WAN_WORKERS = [1, 2, 4, 8]
SAMPLES = {"mlp": 240_000, "lenet5": 120_000}  # whole epochs: seconds of a core

JOB = """\
name: recommend
num_nodes: {nodes}
resources: {{cpus: {cpus}, memory: 0.2}}
train: {{model: {model}, data: fashion-mnist, batch: {batch}, epochs: {epochs}, optimizer: {{lr: 0.01}}}}
sync: {{policy: {policy}, local_steps: {local_steps}}}
market: {{max_run_time: 5m, expected_run_time: 20s}}
"""


# --- lenders behind cables ---


class Cable:
    """A network namespace at the end of a cable that carries so much each way."""

    def __init__(self, index, mbit):
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec sleep infinity"],
                                       stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "up\n":
            raise SystemExit("no network namespace: run as root")
        self.enter = ["nsenter", f"--net=/proc/{self.holder.pid}/ns/net", "--"]
        prefix = f"198.51.100.{4 * index}".rsplit(".", 1)
        first = int(prefix[1])
        ip(f"link add wan{index} type veth peer name wan netns {self.holder.pid}")
        ip(f"addr add {prefix[0]}.{first + 1}/30 dev wan{index}")
        ip(f"link set wan{index} up")
        for words in ("link set lo up", f"addr add {prefix[0]}.{first + 2}/30 dev wan", "link set wan up",
                      f"route add default via {prefix[0]}.{first + 1}"):
            subprocess.run([*self.enter, "ip", *words.split()], check=True)
        shape = f"root tbf rate {mbit}mbit burst 64kb latency 200ms".split()
        subprocess.run(["tc", "qdisc", "add", "dev", f"wan{index}", *shape], check=True)
        subprocess.run([*self.enter, "tc", "qdisc", "add", "dev", "wan", *shape], check=True)

    def close(self):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


def leave_network():
    """This process and what it starts get a network of their own, with the market's address."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise SystemExit("no network namespace: run as root")
    ip("link set lo up")
    ip(f"addr add {MARKET}/32 dev lo")
    pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


class Place:
    """A market with its own parameter server, and the lenders of one case, started one by one."""

    def __init__(self, program, folder, case):
        self.program, self.folder, self.case = program, pathlib.Path(folder), case
        self.config, self.processes, self.cables = self.folder / "config", [], []
        os.environ.pop("SOUK_FINGERPRINT", None)  # of the market before
        with open(self.folder / "market.log", "wb") as log:
            market, self.ready = start(program, "serve", "--data", f"{folder}/market", "--listen", f"{MARKET}:0",
                                       "--link-listen", f"{MARKET}:0", "--writes-per-minute", "0",
                                       "--reads-per-minute", "0", "--grant", "1000000", stderr=log)
        self.processes.append(market)
        os.environ["SOUK_FINGERPRINT"] = self.ready["fingerprint"]
        souk(program, self.config, "account", "open", "--name", "borrower", "--server", self.ready["url"])

    def add_lender(self, cores):
        index = len(self.cables) + 1
        cable = Cable(index, self.case["mbit"])
        self.cables.append(cable)
        code = souk(self.program, self.config, "machines", "add")["code"]
        lender, _ = start(cable.enter[0], *cable.enter[1:], self.program, "lend", "--server", self.ready["url"],
                          "--state-dir", f"{self.folder}/lender{index}", "--name", f"node{index}", "--no-watch",
                          "--roles", "worker", "--cores", str(cores), environment={"SOUK_LEND_CODE": code})
        self.processes.append(lender)
        return lender

    def train(self, nodes, cores, **changes):
        """How long it takes once the data are there: an epoch before has the lenders fetch their shards. Else
        those that have theirs would begin while others wait for it."""
        case = {**self.case, **changes}
        path = self.folder / "job.yaml"
        for epochs in (1, SAMPLES[case["model"]] // 60_000):
            path.write_text(JOB.format(nodes=nodes, cpus=cores, model=case["model"], batch=case["batch"], epochs=epochs,
                                       policy=case["policy"], local_steps=case["local_steps"]))
            took_s = runs.measure(self.program, self.config, path)["training_ms"] / 1000
        return took_s

    def close(self):
        end(*reversed(self.processes))
        for cable in self.cables:
            cable.close()


# --- the same in virtual time ---


def simulate(program, machines, options):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"name": "real", "machines": machines}, file)
        file.flush()
        done = subprocess.run([program, "sim", "sync", "--profile", file.name, "--json", "--quiet", "--target-loss",
                               "0", "--rate", "0.01", "--jitter", "0.1", "--measure", "24h", "--max-time", "365d",
                               *map(str, options)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return json.loads(done.stdout)["runs"][0]["elapsed_s"] / SCALE


def machines_of(kinds, case, size, cores=()):
    """Whole milliseconds and kilobits are too coarse for what is short: virtual time is SCALE times as
    long, and lines as much slower; `size` times slower again where a larger model is stood for."""
    return [{"kind": str(index), "step_ms": max(1, round(1000 * SCALE * step_s)), "commit_ms": round(SCALE * rtt_ms),
             "kbit": kbit(case["mbit"], size), "quota_ms": QUOTA_MS * SCALE, "cores": cores[index] if cores else 1}
            for index, (step_s, rtt_ms) in enumerate(kinds)]


def kbit(mbit, size):
    return max(1, round(1000 * mbit / SCALE / size / OVERHEAD_BYTES))


# --- cases ---


def lending_simulated(program, case, cores, step_s):
    machines = machines_of([(step_s[share], LENDING_RTT_MS) for share in cores], case, 1, cores)
    return simulate(program, machines, [
        "--policy", f"{case['policy']}:{case['local_steps']}", "--model", case["model"], "--batch", case["batch"],
        "--samples", SAMPLES[case["model"]], "--gamma", f"{60 * SCALE}s"])


def lending_case(program, case):
    """Clusters of the first 1, 2, ... lenders, and what one of each kind takes for a step."""
    steps = SAMPLES[case["model"]] / case["batch"]
    least = min(case["cores"])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        place = Place(program, folder, case)
        try:
            step_s = {}
            for share in sorted(set(case["cores"])):
                lender = place.add_lender(share)
                step_s[share] = place.train(1, share, local_steps=500) / steps
                place.processes.remove(lender)
                end(lender)
            for count in range(1, len(case["cores"]) + 1):
                place.add_lender(case["cores"][count - 1])
                cores = case["cores"][:count]
                took_s = place.train(count, min(least, *cores) if count > 1 else cores[0])
                rows.append({"cores": cores, "real_s": took_s,
                             "simulated_s": lending_simulated(program, case, cores, step_s)})
        finally:
            place.close()
    return rows


def wan_simulated(program, case, workers, steps, push_share):
    """A logistic model stands for one of the case's size."""
    size = case["parameters"] / STAND_IN_PARAMETERS
    machines = machines_of(workers * [(case["step_ms"] / 1000, case["rtt_ms"])], case, size)
    options = ["--policy", case["policy"], "--model", "logistic", "--batch", 1, "--samples", steps,
               "--gamma", f"{60 * SCALE}s", "--push-share", push_share]
    if case["server_mbit"]:
        options += ["--server-rate", f"{kbit(case['server_mbit'], size)}kbit"]
    return simulate(program, machines, options)


def wan_case(program, case):
    """What so many steps of all workers take, and what the simulator makes of it."""
    rows = []
    for workers in WAN_WORKERS:
        done = subprocess.run(
            [program, "bench", "wan", "--workers", str(workers), "--parameters", str(case["parameters"]),
             "--mbit", str(case["mbit"]), "--server-mbit", str(case["server_mbit"]), "--rtt", f"{case['rtt_ms']}ms",
             "--step", f"{case['step_ms']}ms", "--alone", "2s", "--round", f"{WAN_SECONDS}s", "--policy",
             case["policy"], "--compress", "f32", "--json"], capture_output=True, text=True, check=False, timeout=300)
        if done.returncode:
            raise SystemExit(done.stderr.strip())
        seen = json.loads(done.stdout)
        steps = round(1000 * WAN_SECONDS / case["step_ms"])
        # By what the server was sent, and half a push under way: computing alone is slow as well where
        # the machine is busy. What did not change since the last push is not sent; answers are whole.
        made = seen["steps_per_push"] * (seen["pushes_per_worker"] + 0.5)
        push_share = seen["bytes_per_parameter"] / 4
        rows.append({"workers": workers, "real_s": WAN_SECONDS * steps / made,
                     "simulated_s": wan_simulated(program, case, workers, steps * workers, push_share)})
    return rows


def run_case(task):
    """One case, in a process of its own: it leaves this network for another."""
    program, kind, case = task
    if kind == "lending":
        leave_network()
    rows = (wan_case if kind == "wan" else lending_case)(program, case)
    for row in rows:
        print(f"{kind} {case['policy']} {row.get('workers') or row['cores']}: real {row['real_s']:.2f} s, "
              f"simulated {row['simulated_s']:.2f} s", file=sys.stderr)
    return {"kind": kind, "case": case, "rows": rows}


def measure(program, count, at_once):
    program = os.path.abspath(program)
    wan = [(program, "wan", case) for case in WAN]
    lending = [(program, "lending", case) for case in LENDING]
    tasks = [task for both in zip(wan, lending) for task in both][:count]
    with multiprocessing.Pool(at_once, maxtasksperchild=1) as pool:
        results = pool.map(run_case, tasks, chunksize=1)
    errors = [abs(row["simulated_s"] / row["real_s"] - 1) for result in results for row in result["rows"]]
    return {"real_cases": len(results), "real_median_error": statistics.median(errors),
            "real_worst_error": max(errors), "load_average": os.getloadavg()[0], "results": results}
