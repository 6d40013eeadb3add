"""What the market reads for borrowers who have no program of ours: files and archives of every format become the
inputs of a job, in a confined process; what is wrong is said with its place.

covers server/handle_import.c, server/import_order.c, server/import_run.c, server/import_runner.c
covers server/imports.c, server/looks.c, worker/import_main.c
"""
import gzip
import io
import json
import os
import pathlib
import random
import signal
import struct
import tarfile
import zipfile
import zlib

import pytest

from serving import Market, audit, is_built_with
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
    url = ann.market.post("/v1/imports", {"url": "https://example.org/rows.csv", "train": LOGISTIC}, ann.token)
    assert url.status == 422, url


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
