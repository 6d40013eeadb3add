"""The wizard "Train a model" in a real browser, for a program of one's own: wheels that a lender installs, sealed secrets, and
mounted files."""
import hashlib
import http.server
import tarfile
import threading

import pytest

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market
from training import Lender, wait_for, wait_for_end
from wheels import wheel

MAIN = """
import os, pathlib
import one, two
pathlib.Path(os.environ["SOUK_OUTPUT_DIR"], "said").write_text(f"{one.NAME} {two.NAME} {one.WHERE}")
"""
SECRET = "hush-7f1c0d9a"
FILES = {"images/a.txt": b"a", "images/deep/b.txt": b"bb", "rows.csv": b"".join(b"row %d\n" % index for index in range(9)),
         "one.csv": b"just one line\n", "list.txt": b"from afar\n"}


class Far(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = FILES["list.txt"] if self.path == "/list.txt" else None
        self.send_response(200 if data else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def far():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Far)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def write(folder):
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def sha(data):
    return hashlib.sha256(data).hexdigest()


def write_project(folder):
    folder.mkdir()
    (folder / "main.py").write_text(MAIN)
    (folder / "requirements.txt").write_text("one\ntwo\n")
    return folder


def pack(path, project, wheels):
    """As who has all of it in one folder packs it."""
    with tarfile.open(path, "w:gz") as archive:
        archive.add(project, ".")
        for each in wheels:
            archive.add(each, f"./vendor/{each.name}")
    return path


def are_online(market, token, count):
    return count == sum(one["state"] == "online" for one in market.get("/v1/machines", token).json["items"])


def assert_mounted(seen, job, left, folder):
    assert job["state"] == "succeeded", job["reason"]
    lines = FILES["rows.csv"].splitlines(keepends=True)
    for rank, part in enumerate((lines[:4], lines[4:])):
        assert left[rank]["said"] == "".join(f"{sha(bytes_)} {name}\n" for name, bytes_ in (
            ("images/a.txt", b"a"), ("images/deep/b.txt", b"bb"), ("rows.csv", b"".join(part)), ("far/list.txt", FILES["list.txt"]))), left
        assert left[rank]["token"].strip() == sha(SECRET.encode()) and left[rank]["lines"].strip() == "3"
    assert job["spec"]["secret_names"] == ["MY_KEY", "MY_TOKEN"] and job["spec"]["file_mounts"]["rows.csv"] == {"shard": True}
    # The secret is only in the page's memory and sealed in the market.
    assert "MY_TOKEN" in seen["mountsFile"] and SECRET not in seen["mountsFile"] and SECRET not in seen["stored"] and "BEGIN" not in seen["stored"]
    for path in folder.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert seen["masked"] == "password" and seen["countedBefore"].endswith("1")
    assert any("Name a place" in alert for alert in seen["emptyMount"]) and any("Choose the files" in alert for alert in seen["emptyMount"])
    assert (seen["forgotten"], seen["canSubmit"]) == (2, 0)
    assert seen["secretsAgain"] == ["MY_KEY", ""] and seen["placesAgain"] == ["far/list.txt", "images", "rows.csv"]


def test_wheels_secrets_and_data_reach_the_program(tmp_path, far):
    data = write(tmp_path / "data")
    project = write_project(tmp_path / "project")
    odd = tmp_path / "mine.whl"
    odd.write_bytes(b"no wheel")
    made = [wheel(tmp_path / "wheels", name) for name in ("one", "two")]
    archive = pack(tmp_path / "project.tar.gz", project, made)
    market = Market(tmp_path / "market", "--no-local-lender", "--import-private")
    lenders = []
    try:
        lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
        for name, options in (("heron", ()), ("wren", ("--install", "wheels", "--cache", "64MiB"))):
            lenders.append(Lender(market, lender_token, tmp_path / name, name, options=options))
        wait_for("both lenders", lambda: are_online(market, token, 2))
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("train_wheels.mjs", code["url"], tmp_path, data, far, SECRET, project, odd, archive, *made) as walk:
            seen = walk.end()
        job, packed, mounted = (wait_for_end(market, token, seen[name]) for name in ("first", "second", "mounted"))
        said = market.call("GET", f"/v1/jobs/{seen['first']}/artifacts/rank0-said", None, token).body
        left = [{name: market.call("GET", f"/v1/jobs/{seen['mounted']}/artifacts/rank{rank}-{name}", None, token).body.decode()
                 for name in ("said", "token", "lines")} for rank in (0, 1)]
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()
    assert job["state"] == "succeeded", job["reason"]
    assert said.startswith(b"one two /packages/lib/python3"), said
    # The files and the packages, each in an archive of its own; the machine is the one that installs.
    assert sorted(each["split"] for each in job["spec"]["inputs"]) == ["files", "wheels"]
    assert job["spec"]["resources"]["install"] == "wheels"
    assert {lease["machine_name"] for lease in job["leases"]} == {"wren"}
    assert seen["fetch"].startswith("python3 -m pip download") and seen["main"] == "main.py"
    # The packages from inside an archive are the same ones.
    assert packed["state"] == "succeeded", packed["reason"]
    first, second = ({each["split"]: each["manifest"] for each in one["spec"]["inputs"]} for one in (job, packed))
    assert first["wheels"] == second["wheels"] and first["files"] != second["files"]
    assert "wheels" not in seen["before"] and "wheels" not in seen["without"]
    assert "name: wheels, split: wheels" in seen["yaml"] and "name: wheels, split: wheels" in seen["again"]
    assert seen["listed"] == [path.name for path in made]
    assert "install" in seen["lacking"], seen["lacking"]
    assert_mounted(seen, mounted, left, tmp_path / "market")
    assert_clean(seen)
