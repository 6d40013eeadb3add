"""The wizard "Train a model" in a real browser, with data of one's own in the forms that people have them in."""
import array
import contextlib
import functools
import hashlib
import http.server
import random
import struct
import threading
import zipfile
import zlib

from browsing import Walk, assert_clean, own_port, pytestmark  # noqa: F401 -- skips what cannot run
from training import running, wait_for, wait_for_end

KINDS = ("low", "middle", "high")


def png(rows):
    """A picture of grey bytes."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    lines = b"".join(b"\0" + bytes(row) for row in rows)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def write_images(folder):
    chance = random.Random(4)
    for number, kind in enumerate(KINDS):
        (folder / kind).mkdir(parents=True)
        for index in range(40):
            rows = [[chance.randrange(200, 256) if line // 4 == number else chance.randrange(60) for _ in range(12)]
                    for line in range(12)]
            (folder / kind / f"{index}.png").write_bytes(png(rows))
    with zipfile.ZipFile(folder.with_suffix(".zip"), "w") as archive:
        for path in sorted(folder.rglob("*.png")):
            archive.write(path, path.relative_to(folder.parent))


def write_sparse(path):
    chance = random.Random(5)
    lines = []
    for _ in range(400):
        is_first = chance.random() < 0.5
        places = sorted(chance.sample(range(1, 11) if is_first else range(8, 21), 4))
        lines.append(" ".join(["+1" if is_first else "-1", *(f"{place}:1" for place in places)]))
    path.write_text("\n".join(lines) + "\n")


def npy(kind, shape, values):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + values.tobytes()


def write_arrays(path):
    chance = random.Random(6)
    labels = array.array("q", (chance.randrange(3) for _ in range(300)))
    values = array.array("f", (chance.gauss(2 * (label == place % 3), 0.5) for label in labels for place in range(6)))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x_train.npy", npy("<f4", (300, 6), values))
        archive.writestr("y_train.npy", npy("<i8", (300,), labels))


def write_text(path):
    path.write_text("the rain in spain stays mainly in the plain\n" * 400)


@contextlib.contextmanager
def web(folder):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_data_of_many_forms_are_read_by_the_market_and_trained(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    write_images(data / "shapes")
    write_sparse(data / "rows.libsvm")
    write_arrays(data / "arrays.npz")
    write_text(data / "plays.txt")
    (data / "noise.bin").write_bytes(random.Random(7).randbytes(5000))
    sha256 = hashlib.sha256((data / "rows.libsvm").read_bytes()).hexdigest()
    options = ("--no-local-lender", "--import-private", "--listen", f"127.0.0.1:{own_port()}")
    with running(tmp_path, *options) as (market, token, _, _), web(data) as address:
        code = market.post("/v1/account/page-codes", {}, token).json
        with Walk("train_formats.mjs", code["url"], tmp_path, data, address, sha256) as walk:
            walk.expect("restart")
            market.stop()
            market.start()
            wait_for("the lenders again", lambda: 3 == sum(
                one["state"] == "online" for one in market.get("/v1/machines", token).json["items"]))
            walk.answer()
            seen = walk.end()
        jobs = {name: wait_for_end(market, token, seen[name]) for name in ("sparse", "arrays", "images", "fetched")}
    for name, job in jobs.items():
        assert job["state"] == "succeeded" and job["test_accuracy"] > 0.9, (name, job["reason"], job["test_accuracy"])
    assert "rows.libsvm is at the market and read: 400 records" in seen["sparseRead"]
    assert seen["askedOfSparse"] == 2, "a market that forgot is asked once more"
    assert "300 records" in seen["arraysRead"] and (seen["askedAfterReload"], seen["askedAgain"]) == (0, 1)
    assert jobs["arrays"]["spec"]["train"]["read"]["label_skew"] == 0.5
    # A chunk and a manifest; then the chunk is still there, and the manifest is what says so.
    assert seen["chunksAgain"] == 3, seen["chunksAgain"]
    assert "120 records" in seen["imagesRead"] and "120 records" in seen["zipRead"]
    assert seen["imageClasses"] == seen["zipClasses"] == [f"{kind} 40" for kind in sorted(KINDS)]
    assert jobs["images"]["spec"]["train"]["classes"] == 3 and jobs["images"]["spec"]["train"]["height"] == 12
    assert "records" in seen["textRead"] and "noise.bin" in seen["noise"]
    assert "Begin with" in seen["noAddress"] and "no such file" in seen["address"] and not seen["kept"]
    assert "400 records" in seen["fetchedRead"]
    assert jobs["fetched"]["spec"]["inputs"] == jobs["sparse"]["spec"]["inputs"], "the same bytes are the same inputs"
    assert_clean(seen)
