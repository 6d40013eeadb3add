"""The wizard "Train a model" in a real browser, with a program's secrets and data: sealed, and mounted at two lenders."""
import hashlib
import http.server
import threading

import pytest

from browsing import Walk, assert_clean, pytestmark  # noqa: F401 -- skips what cannot run
from serving import Market
from training import Lender, wait_for

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


def test_secrets_and_data_reach_the_program_and_nobody_else(tmp_path, far):
    data = write(tmp_path / "data")
    market = Market(tmp_path / "market", "--no-local-lender", "--import-private")
    lenders = []
    try:
        lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
        lenders = [Lender(market, lender_token, tmp_path / name, name) for name in ("heron", "wren")]
        wait_for("both lenders", lambda: 2 == sum(
            one["state"] == "online" for one in market.get("/v1/machines", token).json["items"]))
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("train_mounts.mjs", code["url"], tmp_path, data, far, SECRET) as walk:
            seen = walk.end()
        job = market.get(f"/v1/jobs/{seen['job']}", token).json
        left = [{name: market.call("GET", f"/v1/jobs/{seen['job']}/artifacts/rank{rank}-{name}", None, token).body.decode()
                 for name in ("said", "token", "lines")} for rank in (0, 1)]
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()
    assert job["state"] == "succeeded", job["reason"]
    lines = FILES["rows.csv"].splitlines(keepends=True)
    for rank, part in enumerate((lines[:4], lines[4:])):
        assert left[rank]["said"] == "".join(f"{sha(bytes_)} {name}\n" for name, bytes_ in (
            ("images/a.txt", b"a"), ("images/deep/b.txt", b"bb"), ("rows.csv", b"".join(part)), ("far/list.txt", FILES["list.txt"]))), left
        assert left[rank]["token"].strip() == sha(SECRET.encode()) and left[rank]["lines"].strip() == "3"
    assert job["spec"]["secret_names"] == ["MY_KEY", "MY_TOKEN"] and job["spec"]["file_mounts"]["rows.csv"] == {"shard": True}
    # Nowhere but in the page's memory, and sealed.
    assert "MY_TOKEN" in seen["yaml"] and SECRET not in seen["yaml"] and SECRET not in seen["stored"] and "BEGIN" not in seen["stored"]
    for path in (tmp_path / "market").rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert seen["masked"] == "password" and seen["countedBefore"].endswith("1")
    assert any("Name a place" in alert for alert in seen["emptyMount"]) and any("Choose the files" in alert for alert in seen["emptyMount"])
    assert (seen["forgotten"], seen["canSubmit"]) == (2, 0)
    assert seen["again"] == ["MY_KEY", ""] and seen["placesAgain"] == ["far/list.txt", "images", "rows.csv"]
    assert_clean(seen)
