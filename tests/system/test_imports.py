"""What the market reads for borrowers who have no program of ours: files and archives of every format become the
inputs of a job, in a confined process; what is wrong is said with its place.

covers server/handle_import.c, server/import_fetch.c, server/import_order.c, server/import_run.c, server/import_runner.c
covers server/imports.c, server/looks.c, worker/import_main.c
"""
import contextlib
import gzip
import hashlib
import http.server
import io
import json
import os
import pathlib
import random
import signal
import struct
import tarfile
import threading
import zipfile
import zlib

import pytest

from serving import Market, audit, is_built_with
from source_servers import Bucket, Hadoop
from training import job_spec, running, wait_for

pytestmark = pytest.mark.skipif(is_built_with("libtsan"), reason="the thread sanitizer does not run in a sandbox")

CHUNK = 4 << 20
LOGISTIC = {"model": "logistic"}


class Borrower:
    def __init__(self, market, name="ann"):
        self.market = market
        self.token = market.sign_up(name)

    def send(self, data, media_type="application/octet-stream"):
        """As the page does: chunks that the market names, then the manifest."""
        chunks = []
        for start in range(0, len(data), CHUNK):
            part = data[start:start + CHUNK]
            chunks.append({"hash": self.put(part), "size": len(part)})
        manifest = {"media_type": media_type, "size": len(data), "header_bytes": 0, "record_bytes": 0,
                    "record_count": 0, "header": "", "chunks": chunks}
        return self.put(json.dumps(manifest, separators=(",", ":")).encode())

    def put(self, part):
        answer = self.market.call("POST", "/v1/chunks", part, self.token)
        assert answer.status in (200, 201), answer
        return answer.json["hash"]

    def post(self, files, name, train=None, **more):
        return self.market.post("/v1/imports", {"files": files, "name": name, "train": train or LOGISTIC},
                                self.token, **more)

    def get(self, number):
        return self.market.get(f"/v1/imports/{number}", self.token)

    def remove(self, number):
        return self.market.call("DELETE", f"/v1/imports/{number}", None, self.token)

    def end_of(self, number):
        def ended():
            one = self.get(number).json
            return one if one["state"] in ("ready", "failed") else None
        return wait_for("the import's end", ended, step=0.02)

    def read(self, data, name, train=None, media_type="application/octet-stream"):
        answer = self.post(self.send(data, media_type), name, train)
        assert answer.status == 201, answer
        assert answer.headers["Location"] == f"/v1/imports/{answer.json['id']}"
        return self.end_of(answer.json["id"])

    def look(self, data, name):
        return self.market.call("POST", f"/v1/imports/look?name={name}", data, self.token)


def table(rows=60, seed=1):
    numbers = random.Random(seed)
    lines = ["width,height,kind"]
    for _ in range(rows):
        width, height = numbers.random(), numbers.random()
        lines.append(f"{width:.4f},{height:.4f},{'wide' if width > height else 'tall'}")
    return ("\n".join(lines) + "\n").encode()


def npz(rows=40):
    numbers = random.Random(2)
    values = [[numbers.random() for _ in range(3)] for _ in range(rows)]
    labels = [int(sum(row) > 1.5) for row in values]

    def npy(kind, shape, data):
        head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        head += b" " * (-(len(head) + 11) % 64) + b"\n"
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", npy("<f4", (rows, 3), b"".join(struct.pack("<3f", *row) for row in values)))
        archive.writestr("y.npy", npy("<i8", (rows,), struct.pack(f"<{rows}q", *labels)))
    return out.getvalue()


def png(shade, side=8):
    def part(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes([shade]) * side for _ in range(side))
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


def pictures(count=20):
    """name -> bytes, two folders of a class each."""
    return {f"shades/{kind}/{i}.png": png(shade + i) for kind, shade in (("dark", 0), ("light", 200))
            for i in range(count)}


def tar(files, mode="w", links=()):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, target in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return out.getvalue()


@pytest.fixture
def market(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender")
    yield market
    assert market.stop() == 0
    status, text = audit(market.folder)
    assert status == 0, text


@pytest.fixture
def ann(market):
    return Borrower(market)


def assert_ready(one, records, test_records, **shape):
    assert one["state"] == "ready", one
    assert (one["records"], one["test_records"]) == (records, test_records)
    assert [(each["name"], each["split"]) for each in one["inputs"]] == [
        ("train-images", "train"), ("train-labels", "train"), ("test-images", "test"), ("test-labels", "test"),
        ("columns", "test")]
    assert one["done_bytes"] == one["total_bytes"] and "problem" not in one
    for name, value in shape.items():
        assert one["train"][name] == value, one


def test_tables_plain_and_compressed_become_the_same_inputs(ann):
    plain = ann.read(table(), "rows.csv")
    assert_ready(plain, 54, 6, data="rows.csv", features=2, classes=2)
    packed = ann.read(gzip.compress(table()), "rows.csv.gz")
    assert [each["manifest"] for each in packed["inputs"]] == [each["manifest"] for each in plain["inputs"]]
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("rows.csv", table())
    single = ann.read(zipped.getvalue(), "rows.zip", media_type="application/zip")
    assert [each["manifest"] for each in single["inputs"]] == [each["manifest"] for each in plain["inputs"]]
    other = ann.read(table(), "rows.csv", {"model": "logistic", "label": "width", "predict": "number", "loss": "mse",
                                           "read": {"categories": "one-hot"}})
    assert_ready(other, 54, 6, features=3)
    assert other["train"]["target_deviation"] > 0 and "classes" not in other["train"]


def test_arrays_sparse_rows_and_texts_are_read(ann):
    assert_ready(ann.read(npz(), "points.npz"), 36, 4, features=3, classes=2)
    lines = "".join(f"{'+1' if i % 2 else '-1'} {i % 7 + 1}:1 {i % 5 + 10}:0.5\n" for i in range(50))
    assert_ready(ann.read(lines.encode(), "rows.svm"), 45, 5, classes=2)
    texts = "".join(f"{'good' if i % 2 else 'bad'}\t{'fine' if i % 2 else 'dull'} film number {i}\n" for i in range(50))
    read = ann.read(texts.encode(), "reviews.txt", {"model": "text-cnn"})
    assert_ready(read, 45, 5, classes=2)
    assert read["train"]["vocabulary"] > 2


def test_the_test_of_data_at_lenders_is_read_whole(ann):
    asked = {"files": ann.send(table()), "name": "own.csv", "train": LOGISTIC}
    answer = ann.market.post("/v1/imports", {**asked, "peer": "ward"}, ann.token)
    assert answer.status == 201, answer
    read = ann.end_of(answer.json["id"])
    assert read["state"] == "ready" and (read["records"], read["test_records"]) == (0, 60)
    assert [(each["name"], each["split"]) for each in read["inputs"]] == [
        ("test-images", "test"), ("test-labels", "test"), ("columns", "all")]
    assert read["train"]["data"] == "peer://ward" and read["train"]["classes"] == 2
    refused = ann.market.post("/v1/imports", {**asked, "peer": "no label"}, ann.token)
    assert refused.status == 400 and "train.data" in refused.json["detail"]


@pytest.mark.parametrize("pack, name, media_type", [
    (lambda files: tar(files), "shades.tar", "application/x-tar"),
    (lambda files: tar(files, "w:gz"), "shades", "application/x-tar"),
])
def test_a_folder_of_pictures_comes_as_an_archive(ann, pack, name, media_type):
    read = ann.read(pack(pictures()), name, media_type=media_type)
    assert_ready(read, 36, 4, height=8, features=8, classes=2)
    assert 0 < read["train"]["mean"] < 1 and read["train"]["deviation"] > 0


def test_what_is_wrong_is_said_with_its_place(ann):
    assert ann.read(table() + b"1,2\n", "rows.csv")["problem"] == '"rows.csv" (csv): line 62: 2 fields, not 3'
    assert "byte" in ann.read(gzip.compress(table())[:-30], "rows.csv.gz")["problem"]
    assert "nothing tells" in ann.read(b"\1\2\3", "rows.xyz")["problem"]
    assert "there is no column" in ann.read(table(), "rows.csv", {**LOGISTIC, "label": "colour"})["problem"]
    broken = pictures(3) | {"shades/dark/bad.png": b"no picture"}
    assert "shades/dark/bad.png" in ann.read(tar(broken), "shades.tar")["problem"]
    refused = ann.post(ann.send(table()), "rows.csv", {"model": "logistik"})
    assert refused.status == 400 and "train.model" in refused.json["detail"]
    assert ann.post(ann.send(table()), "../rows.csv").status == 400
    assert ann.post("0" * 64, "rows.csv").status == 404


@pytest.mark.parametrize("files, links, words", [
    ({"a/one.png": png(1)}, [("a/door", "/etc")], "link"),
    ({"../out.png": png(1)}, [], ""),
    ({"/tmp/out.png": png(1)}, [], ""),
])
def test_archives_that_leave_their_folder_are_refused(ann, files, links, words):
    read = ann.read(tar(files, links=links), "folder.tar")
    assert read["state"] == "failed" and words in read["problem"], read


def test_a_file_looks_like_something(ann):
    look = ann.look(table(), "rows.csv")
    assert look.status == 200, look
    assert look.json["format"] == "csv" and look.json["columns"] == ["width", "height", "kind"]
    assert len(look.json["rows"]) == 8 and look.json["rows"][0][2] in ("wide", "tall")
    assert ann.look(npz(), "points.npz").json == {"format": "npy", "columns": [], "rows": []}
    assert ann.look(tar(pictures()), "shades.tar").json["format"] == "folder"
    # The beginning of a file that goes on, compressed: cut anywhere.
    large = gzip.compress(table(60000))[:256 << 10]
    assert len(large) == 256 << 10 and len(ann.look(large, "rows.csv.gz").json["rows"]) == 8
    refused = ann.look(b"\1\2\3", "rows.xyz")
    assert refused.status == 422 and "nothing tells" in refused.json["detail"]
    assert ann.look(b"", "rows.csv").status == 422
    assert ann.look(b"x" * ((256 << 10) + 1), "rows.csv").status == 413


def bomb(megabytes=64):
    """A small archive of a large file."""
    return tar({"folder/zeros.txt": bytes(megabytes << 20)}, "w:gz")


def test_what_unpacks_to_too_much_is_stopped(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", "--import-max", "1MiB")
    ann = Borrower(market)
    try:
        data = bomb()
        assert len(data) < 1 << 20
        read = ann.read(data, "folder.tar.gz")
        assert read["state"] == "failed" and "the archive holds more than" in read["problem"], read
        # Rows that take far more as records than as text: the disk it may write to is the limit.
        words = "\n".join(f"{i},{i},{'x' if i % 2 else 'y'}" for i in range(900))
        read = ann.read(words.encode(), "rows.csv", {**LOGISTIC, "read": {"categories": "one-hot",
                                                                         "category_columns": "1,2"}})
        assert read["state"] == "failed" and "more than the 4 MiB of disk" in read["problem"], read
        refused = ann.post(ann.send(b"1,2\n" * (300 << 10)), "rows.csv")
        assert refused.status == 400 and "more than the 1.0 MiB" in refused.json["detail"], refused
    finally:
        assert market.stop() == 0


def test_records_beyond_the_quota_are_not_kept(tmp_path):
    data = table(4000)
    market = Market(tmp_path / "market", "--no-local-lender", "--account-quota", str(len(data) + 20000))
    ann = Borrower(market)
    try:
        read = ann.read(data, "rows.csv")
        assert read["state"] == "failed" and "used up what it may store" in read["problem"], read
        small = ann.read(table(20), "rows.csv")
        assert small["state"] == "ready", small
    finally:
        assert market.stop() == 0


def test_an_import_is_its_accounts_and_is_posted_once_for_a_key(ann):
    bob = Borrower(ann.market, "bob")
    files = ann.send(table())
    first = ann.post(files, "rows.csv", key="k" * 40)
    assert first.status == 201
    number = first.json["id"]
    assert ann.post(files, "rows.csv", key="k" * 40).json["id"] == number
    assert ann.post(files, "other.csv", key="k" * 40).status == 409
    assert bob.get(number).status == 404 and bob.remove(number).status == 404
    assert bob.post(files, "rows.csv").status == 404, "the chunks are ann's"
    read = ann.end_of(number)
    assert read["state"] == "ready"
    assert ann.market.get(f"/v1/chunks/{read['inputs'][0]['manifest']}", ann.token).status == 200
    assert ann.market.get(f"/v1/chunks/{read['inputs'][0]['manifest']}", bob.token).status == 404
    assert ann.remove(number).status == 204 and ann.get(number).status == 404 and ann.remove(number).status == 404
    assert ann.market.post("/v1/imports", {"files": files, "name": "rows.csv", "train": LOGISTIC}).status == 401


def slow():
    """Takes seconds to read: much text in lines."""
    return gzip.compress((b"word " * 12 + b"\n") * (3 << 20), 1)


def readers(market):
    """The processes that read for this market."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = pathlib.Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # the process has just ended
        if words[1:2] == [b"import-run"] and str(market.folder).encode() in words[3]:
            found.append(int(name))
    return found


def hold_reader(market):
    """Stops one of this market's readers: a child of the market that has a child itself. By then, the reader is set to end
    with the market. Its own child has the same name until it executes another program."""
    for process in readers(market):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):  # the process has just ended
            parent = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
            children = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()
            if int(parent) == market.process.pid and children:
                os.kill(process, signal.SIGSTOP)
                return process
    return None


def test_one_that_is_read_is_stopped_and_the_next_goes_on(ann):
    bob = Borrower(ann.market, "bob")
    text = {"model": "char-lstm", "predict": "next", "read": {"unit": "words"}}
    files = ann.send(slow())
    numbers = []
    for _ in range(4):
        answer = ann.post(files, "long.txt.gz", text)
        assert answer.status == 201, answer
        numbers.append(answer.json["id"])
    limited = ann.post(files, "long.txt.gz", text)
    assert limited.status == 429 and limited.headers["Retry-After"], limited
    wait_for("the reader", lambda: hold_reader(ann.market))
    states = [ann.get(number).json["state"] for number in numbers]
    assert states[states.index("reading") + 1:] == ["waiting"] * (3 - states.index("reading")), states
    assert bob.read(table(), "rows.csv")["state"] == "ready", "others do not wait for ann's"
    for number in reversed(numbers):
        assert ann.remove(number).status == 204
    wait_for("the reader's end", lambda: not readers(ann.market))
    assert ann.read(table(), "rows.csv")["state"] == "ready"
    folders = ann.market.folder / "imports"
    wait_for("the folders to go", lambda: not [name for name in os.listdir(folders) if name[0].isdigit()])


def test_after_a_restart_in_the_middle_it_is_posted_again(ann):
    market = ann.market
    files = ann.send(slow())
    small = ann.send(table())
    text = {"model": "char-lstm", "predict": "next", "read": {"unit": "words"}}
    number = ann.post(files, "long.txt.gz", text).json["id"]
    wait_for("the reader", lambda: hold_reader(market))
    market.kill()
    wait_for("the reader's end", lambda: not readers(market))
    market.start()
    assert not [name for name in os.listdir(market.folder / "imports") if name[0].isdigit()]
    assert ann.get(number).status == 404
    answer = ann.post(small, "rows.csv")
    assert answer.json["id"] > number and ann.end_of(answer.json["id"])["state"] == "ready"
    # And one that is stopped in good order while it reads.
    ann.post(files, "long.txt.gz", text)
    wait_for("the reader", lambda: hold_reader(market))
    assert market.stop(signal.SIGTERM) == 0
    wait_for("the reader's end", lambda: not readers(market))
    market.start()


def test_jobs_learn_from_what_the_market_read(tmp_path):
    with running(tmp_path) as (market, token, _, _):
        ann = Borrower.__new__(Borrower)
        ann.market, ann.token = market, token
        for data, name, train in ((table(400), "shapes.csv", {"model": "mlp"}),
                                  (tar(pictures(), "w:gz"), "shades.tar.gz", {"model": "logistic"})):
            read = ann.read(data, name, train)
            assert read["state"] == "ready", read
            job = job_spec(market, token, 1, min_time="1s")
            job["train"].update(train, **read["train"])
            job["train"]["target"] = {"accuracy": 0.75}
            job["inputs"] = read["inputs"]
            answer = market.post("/v1/jobs", job, token)
            assert answer.status == 201, answer
            number = answer.json["id"]
            done = wait_for("the job's end", lambda: next(
                (one for one in [market.get(f"/v1/jobs/{number}", token).json]
                 if one["state"] in ("succeeded", "failed", "cancelled")), None))
            assert done["state"] == "succeeded", done
            names = [one["name"] for one in market.get(f"/v1/jobs/{number}/artifacts", token).json["items"]]
            assert "model.safetensors" in names, names


class Web(http.server.BaseHTTPRequestHandler):
    """Files by their path; /to/NAME sends on to /NAME; what begins with held waits until it is let go."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path.startswith("/to/"):
            self.send_response(302)
            self.send_header("Location", self.path[len("/to"):])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        data = self.server.files.get(self.path.split("?")[0].lstrip("/"))
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        held = self.path.startswith("/held")
        self.wfile.write((data or b"")[:1000 if held else None])
        if held:
            self.wfile.flush()
            self.server.let_go.wait()
            self.close_connection = True

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def web(files):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    server.files, server.let_go, server.daemon_threads = files, threading.Event(), True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.let_go.set()
        server.shutdown()
        thread.join()
        server.server_close()


def fetched(borrower, url, **more):
    answer = borrower.market.post("/v1/imports", {"url": url, "train": LOGISTIC, **more}, borrower.token)
    assert answer.status == 201, answer
    assert answer.json["state"] in ("waiting", "fetching")
    return borrower.end_of(answer.json["id"])


def test_files_are_fetched_from_an_address(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", "--import-private", "--import-max", "1MiB")
    ann = Borrower(market)
    rows = table()
    digest = hashlib.sha256(rows).hexdigest()
    files = {"rows.csv": rows, "shades.tar.gz": tar(pictures(), "w:gz"), "empty.csv": b"", "large.csv": bytes(2 << 20),
             "held.csv": rows * 10}
    try:
        with web(files) as url:
            plain = ann.read(rows, "rows.csv")
            for read in (fetched(ann, f"{url}/rows.csv"), fetched(ann, f"{url}/to/rows.csv"),
                         fetched(ann, f"{url}/rows.csv?secret=word", sha256=digest),
                         fetched(ann, f"{url}/rows.csv#sha256={digest}", name="rows.csv")):
                assert_ready(read, 54, 6, data="rows.csv", features=2)
                assert read["inputs"] == plain["inputs"] and read["total_bytes"] == len(rows)
            assert_ready(fetched(ann, f"{url}/shades.tar.gz"), 36, 4, height=8)
            for path, more, words in (("gone.csv", {}, "no such file"), ("empty.csv", {}, "empty"), ("large.csv", {}, "1048576 are the most"),
                                      ("rows.csv", {"sha256": "0" * 64}, "SHA-256")):
                read = fetched(ann, f"{url}/{path}", **more)
                assert read["state"] == "failed" and words in read["problem"], read
            answer = market.post("/v1/imports", {"url": f"{url}/held.csv", "train": LOGISTIC}, ann.token)
            wait_for("its first bytes", lambda: ann.get(answer.json["id"]).json["done_bytes"])
            one = ann.get(answer.json["id"]).json
            assert one["state"] == "fetching" and one["total_bytes"] == len(rows) * 10, one
            assert ann.remove(answer.json["id"]).status == 204
        for body, words in (({"url": "file:///etc/passwd"}, "another machine"), ({"url": "ftp://host/x.csv"}, "url"),
                            ({"url": "https://host/folder/"}, "one file"), ({"url": "https://me:you@host/x.csv"}, "url"),
                            ({"url": "https://host/x.csv", "sha256": "0"}, "sha256"),
                            ({"url": "https://host/x.csv", "secrets": {"MY_KEY": "x"}}, "MY_KEY"),
                            ({"url": "https://host/x.csv", "files": "0" * 64}, "files"), ({}, "files")):
            refused = market.post("/v1/imports", {**body, "train": LOGISTIC}, ann.token)
            assert refused.status == 400 and words in refused.json["detail"], refused
    finally:
        assert market.stop() == 0
    assert "secret=word" not in pathlib.Path(f"{market.folder}.log").read_text()


def test_nothing_is_fetched_from_the_markets_own_network(ann):
    with web({"rows.csv": table()}) as url:
        port = url.rpartition(":")[2]
        for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "10.0.0.1", "169.254.169.254",
                     "192.168.1.1", "2130706433", "0x7f000001", "127.1"):
            answer = ann.market.post("/v1/imports", {"url": f"http://{host}:{port}/rows.csv", "train": LOGISTIC}, ann.token)
            if answer.status == 400:
                continue  # it is no address at all
            read = ann.end_of(answer.json["id"])
            assert read["state"] == "failed" and read["done_bytes"] == 0, (host, read)
            assert "only from hosts of the Internet" in read["problem"], (host, read)


def test_objects_and_files_of_hadoop_are_fetched_with_their_secrets(tmp_path):
    market = Market(tmp_path / "market", "--no-local-lender", "--import-private")
    ann = Borrower(market)
    try:
        with Bucket({"sets/rows.csv": table()}) as bucket:
            secrets = bucket.environment()
            assert_ready(fetched(ann, "s3://souk-data/sets/rows.csv", secrets=secrets), 54, 6, data="rows.csv")
            read = fetched(ann, "s3://souk-data/sets/rows.csv", secrets={**secrets, "AWS_SECRET_ACCESS_KEY": "wrong-word"})
            assert "AWS_SECRET_ACCESS_KEY is not that of" in read["problem"], read
            hidden = secrets["AWS_SECRET_ACCESS_KEY"]
        with Bucket(pictures()) as bucket:
            read = fetched(ann, "s3://souk-data/shades/", secrets=bucket.environment())
            assert_ready(read, 36, 4, data="shades/", height=8, classes=2)
            assert "no files" in fetched(ann, "s3://souk-data/other/", secrets=bucket.environment())["problem"]
        with Hadoop({"/user/me/rows.csv": table()}) as hadoop:
            address = hadoop.address("/user/me/rows.csv")
            assert_ready(fetched(ann, address, secrets={"HADOOP_USER_NAME": "me"}), 54, 6)
            assert "HADOOP_USER_NAME" in fetched(ann, address)["problem"]
    finally:
        assert market.stop() == 0
    for path in market.folder.rglob("*"):
        if path.is_file():
            assert hidden.encode() not in path.read_bytes(), path
    assert hidden not in pathlib.Path(f"{market.folder}.log").read_text()
