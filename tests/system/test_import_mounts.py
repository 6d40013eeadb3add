"""Files of a job's file_mounts that the market fetches from an address for who has no program of ours, as the page does.

covers server/handle_import.c, server/import_store.c, server/import_runner.c, worker/import_main.c, runtime/mount_pack.c
"""
import gzip
import hashlib
import http.server
import threading

import pytest

from hidden import where_it_is
from serving import Market, is_built_with
from source_servers import Bucket, Hadoop
from training import Lender, wait_for

pytestmark = pytest.mark.skipif(is_built_with("libtsan"), reason="the thread sanitizer does not run in a sandbox")

ROWS = b"".join(f"row {index}\n".encode() for index in range(50))
SCRIPT = """
import hashlib, os, pathlib
out = pathlib.Path(os.environ["SOUK_OUTPUT_DIR"], "said")
out.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path}\\n" for path in sorted(pathlib.Path("in").rglob("*")) if path.is_file()))
"""


class Files(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        data = self.server.files.get(self.path.lstrip("/"))
        self.send_response(200 if data is not None else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    server.files = {"rows.csv": ROWS, "rows.csv.gz": gzip.compress(ROWS)}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def market(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", "--import-private", "--import-max", "1MiB")
    yield market
    market.stop()


def fetched(market, token, url, **more):
    answer = market.post("/v1/imports", {"url": url, "mount": True, **more}, token)
    assert answer.status == 201, answer

    def ended():
        one = market.get(f"/v1/imports/{answer.json['id']}", token).json
        return one if one["state"] in ("ready", "failed") else None
    return wait_for("the import's end", ended, step=0.02)


def test_a_mount_is_fetched_as_it_is_and_told_how_many_can_share_it(market, web):
    token = market.sign_up("ann")
    read = fetched(market, token, f"{web}/rows.csv")
    assert read["state"] == "ready" and read["mount"] == {"files": 1, "parts": 50}, read
    (given,) = read["inputs"]
    assert given["split"] == "mount" and given["records"] > len(ROWS) and "train" not in read
    assert fetched(market, token, f"{web}/rows.csv")["inputs"] == read["inputs"], "the same bytes are the same input"
    packed = fetched(market, token, f"{web}/rows.csv.gz")
    assert packed["mount"] == {"files": 1, "parts": 0}, "of what is packed nobody knows the lines"
    with Bucket({"sets/a/one": b"1", "sets/two": b"22"}) as bucket:
        folder = fetched(market, token, "s3://souk-data/sets/", secrets=bucket.environment())
        assert folder["mount"] == {"files": 2, "parts": 2}, folder
        hidden = bucket.environment()["AWS_SECRET_ACCESS_KEY"]
    with Hadoop({"/user/me/rows.csv": ROWS}) as hadoop:
        read_there = fetched(market, token, hadoop.address("/user/me/rows.csv"), secrets={"HADOOP_USER_NAME": "me"})
        assert read_there["inputs"] == read["inputs"]
    assert "no such file" in fetched(market, token, f"{web}/gone")["problem"]
    assert where_it_is(market.folder, [hidden]) == []


def test_what_is_no_mount_is_refused_before_anything_is_fetched(market):
    token = market.sign_up("ann")
    for body, words in (({"mount": True}, "goes with url"), ({"mount": True, "files": "0" * 64, "name": "x"}, "goes with url"),
                        ({"mount": True, "url": "https://host/x", "train": {"model": "logistic"}}, "train"),
                        ({"mount": True, "url": "https://host/x", "peer": "ward"}, "peer"),
                        ({"mount": True, "url": "https://host/folder/"}, "one file"),
                        ({"mount": False, "url": "https://host/x.csv"}, "train"), ({"mount": "yes", "url": "https://host/x"}, "mount")):
        refused = market.post("/v1/imports", body, token)
        assert refused.status == 400 and words in refused.json["detail"], (body, refused)


def test_ranks_find_what_was_fetched_whole_or_each_its_part(market, web, tmp_path):
    lender_token, token = market.sign_up("lender"), market.sign_up("ann")
    lenders = [Lender(market, lender_token, tmp_path / name, name) for name in ("heron", "wren")]
    try:
        wait_for("both lenders", lambda: 2 == sum(
            one["state"] == "online" for one in market.get("/v1/machines", token).json["items"]))
        given = fetched(market, token, f"{web}/rows.csv")["inputs"][0]
        spec = {"name": "mounts", "num_nodes": 2, "runtime": "command", "run": f"python3 -c '{SCRIPT}'",
                "resources": {"cpus": "0.1", "memory": "0.2"}, "market": {"max_run_time": "2m"},
                "file_mounts": {"in/part.csv": {"shard": True}, "in/whole.csv": {}},
                "inputs": [{**given, "name": "mount-0"}, {**given, "name": "mount-1"}]}
        answer = market.post("/v1/jobs", spec, token)
        assert answer.status == 201, answer
        job = answer.json["id"]
        wait_for("its end", lambda: market.get(f"/v1/jobs/{job}", token).json["state"] in ("succeeded", "failed"))
        assert market.get(f"/v1/jobs/{job}", token).json["state"] == "succeeded", market.get(f"/v1/jobs/{job}", token).json
        said = [market.call("GET", f"/v1/jobs/{job}/artifacts/rank{rank}-said", None, token).body.decode() for rank in (0, 1)]
    finally:
        for lender in lenders:
            lender.stop()
    lines = ROWS.splitlines(keepends=True)
    for rank, part in enumerate((lines[:25], lines[25:])):
        assert dict(reversed(line.split(" ")) for line in said[rank].splitlines()) == {
            "in/part.csv": hashlib.sha256(b"".join(part)).hexdigest(), "in/whole.csv": hashlib.sha256(ROWS).hexdigest()}, said
