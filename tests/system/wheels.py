"""Small wheels, and a market with a lender that installs them."""
import base64
import contextlib
import functools
import hashlib
import http.server
import json
import os
import re
import subprocess
import threading
import zipfile

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for


def wheel(folder, name, files=None, tag="py3-none-any", version="1.0", requires=()):
    """A wheel as any build tool makes it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {**(files or {f"{name}.py": f"WHERE = __file__\nNAME = '{name}'\n"}),
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" +
             "".join(f"Requires-Dist: {one}\n" for one in requires),
             f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n"}
    digests = [(path, base64.urlsafe_b64encode(hashlib.sha256(as_bytes(text)).digest()).rstrip(b"=").decode(),
                len(as_bytes(text))) for path, text in files.items()]
    record = "".join(f"{path},sha256={digest},{size}\n" for path, digest, size in digests)
    files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for inside, text in files.items():
            archive.writestr(inside, as_bytes(text))
    return path


def as_bytes(text):
    return text.encode() if isinstance(text, str) else text


def write_index(folder, wheels):
    """A package index as PEP 503 has it, of files with their hashes."""
    for path in wheels:
        name = path.name.split("-")[0]
        place = folder / "simple" / name
        place.mkdir(parents=True, exist_ok=True)
        (place / path.name).write_bytes(path.read_bytes())
        links = "".join(f'<a href="{file.name}#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}">{file.name}</a>'
                        for file in sorted(place.glob("*.whl")))
        (place / "index.html").write_text(f"<!DOCTYPE html><html><body>{links}</body></html>")


class Index:
    """Serves such a folder on loopback, and remembers what was asked for."""

    def __init__(self, folder):
        asked = self.asked = []

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_request(self, code="-", size="-"):
                asked.append(self.path)

            def log_error(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/simple"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@contextlib.contextmanager
def open_place(folder, *options):
    market = Market(folder / "market", "--no-local-lender")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lender = Lender(market, lender_token, folder / "first", "first",
                    options=("--cores", "2", "--cache", "64MiB", *(options or ("--install", "wheels"))))
    try:
        wait_for("the machine", lambda: any(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token, folder, lender
    finally:
        lender.stop()
        market.stop()


def souk(place, *arguments):
    market, token, home, _ = place
    return subprocess.Popen(
        [PROGRAM, *arguments, "--server", market.url, "--config-dir", str(home / "config")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL,
        env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1", "PATH": "/usr/bin:/bin"})


def start(place, folder, **job):
    folder.mkdir(parents=True, exist_ok=True)
    job = {"name": "install", "resources": {"cpus": 0.8, "memory": 0.2}, "run": "true",
           "market": {"max_run_time": "10m", "start": "by 9m"}, **job}
    (folder / "job.yaml").write_text(json.dumps(job))
    return souk(place, "job", "submit", "-y", str(folder / "job.yaml"))


def end(place, process):
    """With what its rank has logged."""
    process.out, process.err = process.communicate(timeout=HUNG_S)
    process.words = " ".join((process.out + process.err).split())
    job = re.search(r"Submitted job (\d+)", process.err)
    process.log = souk(place, "job", "logs", job.group(1)).communicate(timeout=HUNG_S)[0] if job else ""
    return process


def run(place, folder, **job):
    return end(place, start(place, folder, **job))


def log_of(place):
    return open(place[3].log_path).read()
