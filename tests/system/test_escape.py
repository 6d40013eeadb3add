"""Out of a whole lease: a borrower's program that tries everything, on a real lender of a real market.

The attempts are those of src/sandbox/escape*.c, sent as the job's file, with targets that are really
there: a network with a host that answers as a LAN's and a cloud's metadata server do, the daemon's
folder, its process. Each is refused, and afterwards the machine takes the next lease.

covers sandbox/escape_lease.c, worker/role_command.c, peer/tenancy_child.c
"""
import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tarfile

import pytest

from internet import HOME, METADATA, ROUTER, home_apart, tun_for_everyone
from serving import HUNG_S, PROGRAM, Market, is_built_with
from training import Lender, upload, wait_for

PLAIN_USER = 65533
LAN = ROUTER
ESCAPE = pathlib.Path(PROGRAM).resolve().parent / "escape"

# Answers at every address of its network namespace, and says how often somebody called.
ANSWERING = """
import socket, sys
server = socket.create_server(("", 80))
print("up", flush=True)
while True:
    connection, address = server.accept()
    print(*address, flush=True)
    connection.close()
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for networks and another user")


@contextlib.contextmanager
def home_network():
    """This process in a network of its own, with a LAN on which one host is all that answers."""
    with tun_for_everyone(), home_apart(ANSWERING) as lan:
        for words in (f"addr add {HOME}/24 dev home", "link set home up", f"route add {METADATA} dev home"):
            subprocess.run(["ip", *words.split()], check=True)
        for words in (f"addr add {LAN}/24 dev lan", f"addr add {METADATA}/32 dev lan", "link set lan up"):
            lan.ip(words)
        yield lan.host


def folder_for_everyone(above, base):
    """Makes a folder that a plain user can reach. Opens pytest's folders above it, up to `base`: they are root's alone.
    Below `base` a failed case keeps its files (tests/conftest.py)."""
    folder = above / "lent"
    folder.mkdir()
    folder.chmod(0o755)
    for closed in (above, *above.parents):
        closed.chmod(0o711)
        if closed == base:
            break
    assert all(parent.stat().st_mode & 0o001 for parent in base.parents), f"a plain user cannot reach {base}"
    return folder


def skip_where_it_cannot_lend(who):
    """A plain user's leases have no cgroup: a limit on their address space stands in for one."""
    if who == "user" and (is_built_with("libasan") or is_built_with("libtsan")):
        pytest.skip("a sanitizer maps more than a lease without a cgroup may")


class UserLender(Lender):
    """A daemon of an ordinary user, who owns its folder. The checkout may be where only root gets to."""

    def start(self, environment=None):
        self.log = open(self.log_path, "ab")
        program = shutil.copy(PROGRAM, pathlib.Path(self.log_path).parent / "souk")
        self.process = subprocess.Popen(
            [program, *self.command[1:]], env={**(environment or os.environ), "HOME": "/nonexistent"}, stderr=self.log,
            stdin=subprocess.DEVNULL, user=PLAIN_USER, group=PLAIN_USER, extra_groups=[])


class Place:
    def __init__(self, tmp_path, who, folder, permissions=()):
        self.tmp_path, self.who = tmp_path, who
        self.market = Market(tmp_path / "market", "--no-local-lender")
        lender_token, self.token = self.market.sign_up("lender"), self.market.sign_up("borrower")
        self.state = folder / "state"
        self.secret = folder / "secret"
        self.secret.write_text("nobody's business\n")
        if who == "user":
            self.state.mkdir()
            os.chown(self.state, PLAIN_USER, PLAIN_USER)
        self.lender = (Lender if who == "root" else UserLender)(
            self.market, lender_token, self.state, "home", options=("--disk", "2GiB", *permissions))
        wait_for("the machine", lambda: [m for m in self.machines() if m["state"] == "online"])
        for offer in self.market.get("/v1/offers", lender_token).json["items"]:
            changed = self.market.call("PATCH", f"/v1/offers/{offer['id']}", {"network": "open" if permissions else "job"}, lender_token)
            assert changed.status == 200, changed
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0souk-escape-{os.getpid()}")
        self.abstract.listen()
        self.abstract.setblocking(False)
        self.files = tmp_path / "files"
        self.files.mkdir()
        shutil.copy(ESCAPE, self.files / "escape")

    def machines(self):
        return self.market.get("/v1/machines", self.token).json["items"]

    def close(self):
        self.abstract.close()
        self.lender.stop()
        self.market.stop()

    @property
    def targets(self):
        return " ".join(map(str, (self.lender.process.pid, self.market.ready["http_port"],
                                  f"souk-escape-{os.getpid()}", self.secret, self.state)))

    def start(self, *arguments):
        return subprocess.Popen(
            [PROGRAM, "run", "--server", self.market.url, "--config-dir", str(self.tmp_path / "config"), "-y",
             "--cpus", "0.3", "--memory", "0.1", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, stdin=subprocess.DEVNULL,
            env={**os.environ, "SOUK_TOKEN": self.token, "NO_COLOR": "1"})

    def run(self, *arguments, timeout=HUNG_S):
        process = self.start(*arguments)
        out, err = process.communicate(timeout=timeout)
        return process.returncode, out, err

    def ask_daemon(self):
        status = subprocess.run([PROGRAM, "lend", "status", "--state-dir", str(self.state), "--json"],
                                capture_output=True, text=True, timeout=HUNG_S)
        assert status.returncode == 0, status

    def assert_responsive(self):
        """The daemon answers its owner, the lease leaves nothing behind, and the next one runs."""
        self.ask_daemon()
        wait_for("the end of all keepers", lambda: not self.lender.keepers())
        code, out, err = self.run("--", "echo still there")
        assert code == 0 and out == "still there\n", (out, err)
        assert self.lender.process.poll() is None


@pytest.fixture(scope="module", params=["root", "user"])
def place(request, tmp_path_factory):
    skip_where_it_cannot_lend(request.param)
    with home_network() as host:
        tmp_path = tmp_path_factory.mktemp(request.param)
        folder = folder_for_everyone(tmp_path, tmp_path_factory.getbasetemp())
        # Whatever the owner permits, a job gets no more than it asks for.
        permissions = ("--network", "open") if os.access("/dev/net/tun", os.R_OK | os.W_OK) else ()
        made = Place(tmp_path, request.param, folder, permissions)
        made.host = host
        try:
            yield made
        finally:
            made.close()


def assert_refused(lines, at_least):
    assert [line for line in lines if not line.endswith(", refused")] == [], lines
    assert len(lines) >= at_least, lines


TABLES = {"files": 40, "processes": 30, "kernel": 45, "local": 6, "lease": 19}


def test_a_job_reaches_nothing_of_the_machine(place):
    """Every target exists during the attempts, the keeper too: the job waits until the test has checked."""
    attempts = "; ".join(f"echo {table}; ./escape {table} '{place.targets}' || echo failed" for table in TABLES)
    process = place.start("--files", str(place.files), "--", f"{attempts}; echo done; exec sleep 600")
    said, table = {}, None
    try:
        for line in map(str.strip, process.stdout):
            if line == "done":
                break
            if line in TABLES:
                table = said.setdefault(line, [])
            else:
                table.append(line)
        keeper, = place.lender.keepers().values()
        numbers = int(pathlib.Path("/proc/sys/kernel/pid_max").read_text())  # pids wrap around here
        assert (keeper - place.lender.process.pid) % numbers < 20000
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HUNG_S)
    assert said.keys() == TABLES.keys(), (said, err)
    for table, at_least in TABLES.items():
        assert_refused(said[table], at_least)
    with pytest.raises(BlockingIOError):
        place.abstract.accept()
    place.assert_responsive()


def test_a_job_with_a_network_reaches_its_own_ranks_alone(place):
    """Those hosts answer the lender itself, and the market listens on its loopback."""
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("no /dev/net/tun here")
    for address in (METADATA, LAN):
        socket.create_connection((address, 80), timeout=HUNG_S).close()
        assert place.host.stdout.readline().startswith("192.168.1.2 ")
    code, out, err = place.run("--network", "job", "--files", str(place.files), "--", "./escape", "network",
                               place.targets)
    assert code == 0, (out, err)
    assert_refused(out.splitlines(), 19)
    place.assert_responsive()
    # Nobody called since: this is the next.
    calls = socket.create_connection((LAN, 80), timeout=HUNG_S)
    port = calls.getsockname()[1]
    assert place.host.stdout.readline() == f"192.168.1.2 {port}\n"
    calls.close()


def test_a_job_with_the_internet_reaches_nothing_of_the_home(place):
    """What is asked for answers the lender, as above; to the job its gateway says no at once."""
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        pytest.skip("no /dev/net/tun here")
    code, out, err = place.run("--network", "open", "--files", str(place.files), "--", "./escape", "open",
                               place.targets)
    assert code == 0, (out, err)
    assert_refused(out.splitlines(), 28)
    place.assert_responsive()
    calls = socket.create_connection((LAN, 80), timeout=HUNG_S)
    assert place.host.stdout.readline() == f"192.168.1.2 {calls.getsockname()[1]}\n"
    calls.close()


# One bomb for each way a greedy lease ends. sandbox/escape_test.c has every kind, in a bare sandbox.
BOMBS = ["fork-storm", "memory", "tmp", "disk", "disk-inodes"]
ENDS = ("the job used more memory than the", "filled the disk it was given", "ended by signal")


def set_off(place, bomb):
    """The owner asks again and again while the bomb goes off, and gets each answer."""
    process = place.start("--disk", "64MiB", "--files", str(place.files), "--", f"echo lit; ./escape bomb {bomb}")
    lit = process.stdout.readline()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        said = [pool.submit(stream.read) for stream in (process.stdout, process.stderr)]
        try:
            while process.poll() is None:
                place.ask_daemon()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.2)  # clock: between two questions
        finally:
            process.kill()  # a missing answer ends the command too, or the reads would go on
        out, err = (one.result() for one in said)
    assert lit == "lit\n" and "NOT REFUSED" not in out, (bomb, out, err)
    if process.returncode == 0:
        assert out.startswith(f"{bomb}: "), (bomb, out, err)
    else:
        assert any(words in err for words in ENDS), (bomb, out, err)


def test_a_bomb_takes_no_more_than_its_lease(place):
    for bomb in BOMBS:
        # A plain user's files are counted at each tick, not bounded.
        if bomb != "disk-inodes" or place.who == "root":
            set_off(place, bomb)
    place.assert_responsive()


# ---- What is sent with a job ----------------------------------------------------------------------


def member(name, kind=tarfile.REGTYPE, target="", data=b"x"):
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    made.size = len(data) if kind == tarfile.REGTYPE else 0
    return made, data if kind == tarfile.REGTYPE else None


def archive(*members):
    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for made, data in members:
            tar.addfile(made, io.BytesIO(data) if data else None)
    return room.getvalue()


def manifest(data, chunk, **lies):
    """As `souk run --files` makes it, but for what it lies about."""
    text = {"media_type": "application/x-tar+zstd", "size": len(data), "header_bytes": 0, "record_bytes": 1,
            "record_count": len(data), "header": "", "chunks": [{"hash": chunk, "size": len(data)}], **lies}
    return json.dumps(text, separators=(",", ":")).encode()


def command_job(manifest_hash, size):
    return {"name": "trap", "num_nodes": 1, "resources": {"cpus": "0.05", "memory": "0.05"}, "runtime": "command",
            "run": "find / -name 'escaped*' 2>/dev/null; echo ran", "market": {"max_run_time": "60s"},
            "inputs": [{"name": "files", "split": "files", "manifest": manifest_hash, "records": size}]}


def run_jobs(place, jobs):
    """Runs all jobs at once. Returns each job's end or the market's refusal, with its text, by name."""
    asked = {name: place.market.post("/v1/jobs", job, place.token) for name, job in jobs.items()}
    return {name: end_of(place, answer.json["id"]) if answer.status == 201 else (answer.status, answer.body.decode())
            for name, answer in asked.items()}


def end_of(place, job):
    path = f"/v1/jobs/{job}"

    def ended():
        found = place.market.get(path, place.token).json
        return found if found["state"] in ("succeeded", "failed", "cancelled") else None
    done = wait_for("the job's end", ended)
    log = place.market.get(f"{path}/logs?rank=0", place.token).json
    return done["state"], done.get("reason", "") + json.dumps(done["leases"]) + log["text"]


# src/blob/archive_test.c covers every kind of content.
ARCHIVES = {
    "a path that walks up": [member("../escaped")],
    "a path to the results": [member("/lease/out/escaped")],
    "a hard link out": [member("hard", tarfile.LNKTYPE, "/etc/passwd")],
    "through a link": [member("door", tarfile.SYMTYPE, "/lease/out"), member("door/escaped")],
}


def test_an_archive_writes_nowhere_but_into_its_folder(place):
    jobs = {}
    for name, members in ARCHIVES.items():
        data = archive(*members)
        chunk = upload(place.market, place.token, data)
        jobs[name] = command_job(upload(place.market, place.token, manifest(data, chunk)), len(data))
    for name, (state, text) in run_jobs(place, jobs).items():
        if "through" in name:  # the folder takes the link's place, or it is refused
            assert "/escaped" not in text.replace(os.path.join("/lease", "work", "door", "escaped"), ""), (name, state, text)
        else:
            assert state == "failed" and "files of the job" in text and "ran" not in text.split(), (name, state, text)
    assert not list(place.state.glob("leases/**/escaped*"))
    place.assert_responsive()


def test_a_manifest_that_lies_is_refused(place):
    """About its size, its chunks, or by being none."""
    data = archive(member("a"))
    chunk, absent = upload(place.market, place.token, data), "00" * 32
    lies = {
        "too long": manifest(data, chunk, size=1 << 60, record_count=1 << 60),
        "too many records": manifest(data, chunk, record_count=1 << 50),
        "a chunk of another size": manifest(data, chunk, chunks=[{"hash": chunk, "size": 1}] * len(data)),
        "a chunk that is not there": manifest(data, absent),
        "a huge chunk": manifest(data, chunk, chunks=[{"hash": chunk, "size": (1 << 64) - 1}]),
        "a negative size": manifest(data, chunk, size=-1),
        "a header that is longer": manifest(data, chunk, header="00" * 4096, header_bytes=4096),
        "deep": b"[" * 100000,
        "no text": bytes(range(256)) * 8,
    }
    jobs = {name: command_job(upload(place.market, place.token, text), len(data)) for name, text in lies.items()}
    for name, (state, words) in run_jobs(place, jobs).items():
        if state == "failed":  # what the market could not see before it had a lease
            assert "is not what its manifest describes" in words and "ran" not in words.split(), (name, words)
        else:
            assert state in (400, 404) and 'input \\"files\\": ' in words, (name, state, words)
    place.assert_responsive()


def test_a_model_with_a_malicious_header_is_refused(souk, tmp_path):
    """It comes from lenders' machines, to the borrower's."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [1 << 62, 4], "data_offsets": [0, 16]}}).encode()
    for name, data in {
        "a header longer than the file": struct.pack("<Q", (1 << 64) - 1) + b"{}",
        "a shape that overflows": struct.pack("<Q", len(header)) + header + bytes(16),
        "offsets outside": (lambda h: struct.pack("<Q", len(h)) + h)(
            json.dumps({"w": {"dtype": "F32", "shape": [4], "data_offsets": [-16, 1 << 40]}}).encode()),
        "no header": b"",
    }.items():
        path = tmp_path / "model.safetensors"
        path.write_bytes(data)
        said = subprocess.run([PROGRAM, "model", "inspect", str(path)], capture_output=True, text=True, timeout=HUNG_S)
        assert 0 < said.returncode < 64 and "souk: " in said.stderr, (name, said)
