"""A real market for tests: `souk serve` on free ports in a temporary folder, and a small client."""
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import subprocess
import urllib.parse

PROGRAM = os.environ.get("SOUK_PROGRAM", "build/souk")
# What has not answered by then has hung: no measure of how soon it should, which a busy machine would miss.
HUNG_S = 120


def is_built_with(library):
    """Whether the program is linked with e.g. libtsan, which cannot run inside a sandbox; unless one that
    can lies beside it (make tsan-system)."""
    if os.path.exists(f"{PROGRAM}.plain"):
        return False
    listed = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, timeout=HUNG_S)
    return library in listed.stdout


_held = []


def own_port():
    """A port of 127.0.0.1 that stays the caller's until the tests end, also while its server is down.

    A socket stays bound to the port and never listens, so nobody else gets the port. The server binds beside that
    socket if it sets SO_REUSEADDR, as Souk's servers do. Programs that the tests start do not inherit the socket.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _held.append(holder)
    return holder.getsockname()[1]


def own_addresses():
    """Options of a market that is restarted at the same addresses."""
    return "--listen", f"127.0.0.1:{own_port()}", "--link-listen", f"127.0.0.1:{own_port()}"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body[:400]!r}"


class Market:
    def __init__(self, folder, *options):
        self.folder = pathlib.Path(folder)
        self.options = options
        self.process = None
        self.start()

    def start(self):
        read_end, write_end = os.pipe()
        self.log = open(f"{self.folder}.log", "ab")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--data", str(self.folder), "--listen", "127.0.0.1:0",
             "--link-listen", "127.0.0.1:0", "--ready-fd", str(write_end), *self.options],
            pass_fds=[write_end], stderr=self.log, stdin=subprocess.DEVNULL)
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            line = ready.readline()
        assert line, pathlib.Path(f"{self.folder}.log").read_text()
        self.ready = json.loads(line)
        self.url = self.ready["url"]

    def stop(self, by=signal.SIGINT, timeout=HUNG_S):
        """For good, the leases of its own lender too; those go on after SIGTERM."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(by)
        status = self.process.wait(timeout)
        self.log.close()
        return status

    def kill(self):
        self.stop(signal.SIGKILL)

    def operator_token(self):
        return pathlib.Path(self.ready["operator_token_file"]).read_text().strip()

    def connect(self):
        where = urllib.parse.urlsplit(self.url)
        if where.scheme == "http":
            return http.client.HTTPConnection(where.hostname, where.port, timeout=HUNG_S)
        anybody = ssl.create_default_context()  # its certificate is its own
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(where.hostname, where.port, timeout=HUNG_S, context=anybody)

    def call(self, method, path, body=None, token=None, key=None, headers=None):
        connection = self.connect()
        try:
            sent = dict(headers or {})
            if token:
                sent["Authorization"] = f"Bearer {token}"
            if key:
                sent["Idempotency-Key"] = key
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())
        finally:
            connection.close()

    def get(self, path, token=None, **more):
        return self.call("GET", path, None, token, **more)

    def post(self, path, body=None, token=None, **more):
        return self.call("POST", path, {} if body is None else body, token, **more)

    def sign_up(self, name):
        answer = self.post("/v1/accounts", {"name": name})
        assert answer.status == 201, answer
        return answer.json["token"]


class Follower:
    """Reads the events that an account is told, each as (id, data)."""

    def __init__(self, market, token):
        where = urllib.parse.urlsplit(market.url)
        self.connection = http.client.HTTPConnection(where.hostname, where.port, timeout=HUNG_S)
        self.connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {token}"})
        self.stream = self.connection.getresponse()
        assert self.stream.status == 200

    def next(self):
        fields = {}
        while True:
            line = self.stream.readline().decode().rstrip("\n")
            if not line and "data" in fields:
                return int(fields["id"]), json.loads(fields["data"])
            name, _, value = line.partition(": ")
            fields[name] = value

    def until(self, condition):
        """All up to the one that is waited for."""
        seen = []
        while True:
            seen.append(self.next())
            if condition(seen[-1][1]):
                return seen


def audit(folder):
    """The market's books, proved from the first event by `souk audit`."""
    done = subprocess.run([PROGRAM, "audit", "--data", str(folder), "--json"],
                          capture_output=True, text=True, timeout=HUNG_S)
    return done.returncode, done.stdout + done.stderr
