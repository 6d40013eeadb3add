"""Every kind of data and its models, each as a real job on a real market.

Data are parts of the real ones in SOUK_DATA, few enough for seconds; what each job must reach is
what a model that learnt nothing cannot.

covers runtime/job_data.c, client/upload_table.c, worker/worker_main.c
"""
import gzip
import itertools
import json
import os
import pathlib
import random
import resource
import struct
import subprocess

import pytest

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for

DATA = pathlib.Path(os.environ.get("SOUK_DATA") or "/nonexistent")
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="SOUK_DATA names no folder with real data")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    market = Market(folder / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = [Lender(market, lender_token, folder / name, name, options=["--cores", cores])
               for name, cores in (("first", "0.5"), ("second", "0.4"))]
    try:
        wait_for("three machines", lambda: 3 == sum(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token, folder
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()


def souk(place, *arguments, **options):
    market, token, folder = place
    return subprocess.run([PROGRAM, *arguments, "--server", market.url, "--config-dir", str(folder / "config")],
                          capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"}, **options)


def weight_of(place, machine):
    """What its cores are worth, in thousandths: each was measured by itself, and a new one counts as one core at most."""
    market, token, _ = place
    return min(1000, market.get(f"/v1/machines/{machine}", token).json["probe"]["speed_weight_milli"])


def train(place, name, **fields):
    """Submits, waits and fetches: the job, what was said of the data, the tensors' shapes."""
    market, token, folder = place
    job = {"name": name, "num_nodes": 2, "resources": {"cpus": "0.1+", "memory": "0.25+"},
           "train": fields, "sync": {"policy": "bsp", "local_steps": 4}, "market": {"max_run_time": "10m"}}
    (folder / f"{name}.yaml").write_text(json.dumps(job))
    done = souk(place, "job", "submit", "-y", "--json", str(folder / f"{name}.yaml"))
    assert done.returncode == 0, done
    job = json.loads(done.stdout)
    assert job["state"] == "succeeded", job
    got = folder / f"{name}-got"
    assert souk(place, "job", "fetch", str(job["id"]), "-o", str(got)).returncode == 0
    model = (got / "model.safetensors").read_bytes()
    head = json.loads(model[8:8 + struct.unpack("<Q", model[:8])[0]])
    shapes = {key: value["shape"] for key, value in head.items() if key != "__metadata__"}
    shown = souk(place, "job", "show", str(job["id"])).stdout
    return job, done.stderr, shapes, shown, got


def some_lines(source, target, first, count, header=False):
    with (gzip.open(source, "rb") if source.suffix == ".gz" else open(source, "rb")) as file:
        lines = list(itertools.islice(file, first + count))
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(b"".join((lines[:1] if header else []) + lines[first:]))
    return target


def test_review_polarity_by_words(place):
    folder = place[2] / "reviews"
    for part in ("pos", "neg"):
        some_lines(DATA / "rt-polarity" / f"rt-polarity.{part}", folder / f"rt.{part}", 0, 2000)
    job, said, shapes, shown, _ = train(
        place, "reviews", data=f"{folder}/", model="text-cnn", batch=32, epochs=5,
        read={"vocabulary": 4000, "length": 24}, optimizer={"name": "adam", "lr": 0.01})
    assert "4000 texts of 24 tokens out of 4000; 2 classes." in said
    assert shapes["embedding1.weight"] == [4000, 64] and job["test_accuracy"] > 0.6 and "Accuracy:" in shown


def test_characters_one_after_the_other(place):
    text = place[2] / "plays.txt"
    text.write_bytes(gzip.open(DATA / "sequence" / "tinyshakespeare.txt.gz").read(60000))
    job, said, shapes, shown, _ = train(
        place, "plays", data=str(text), model="char-lstm", batch=16, epochs=3,
        read={"length": 32}, optimizer={"name": "adam", "lr": 0.01})
    assert "texts of 32 tokens out of" in said and "the next one of each to tell" in said
    vocabulary = job["spec"]["train"]["vocabulary"]
    # A guess by frequency alone has a perplexity of about 27.
    assert shapes["embedding1.weight"][0] == vocabulary and job["loss"] < 2.6 and "Perplexity: " in shown


def test_numbers_are_told_and_a_series_is_forecast(place):
    homes = some_lines(DATA / "tabular" / "california_housing.csv.gz", place[2] / "homes.csv", 1, 6000, header=True)
    job, said, shapes, shown, got = train(
        place, "homes", data=str(homes), model="linear", label="median_house_value", batch=64, epochs=6,
        read={"missing": "mean", "categories": "one-hot"}, optimizer={"lr": 0.05})
    assert 'a number of "median_house_value" to tell' in said
    assert job["test_accuracy"] > 0.5 and "R^2:" in shown and "root of the mean square" in shown
    assert job["predict"] == "number" and " R^2 0." in souk(place, "job", "list").stdout
    columns = json.loads((got / "columns.json").read_text())
    assert columns["target"] == "number" and columns["target_deviation"] > 10000

    series = some_lines(DATA / "sequence" / "ETTh1.csv.gz", place[2] / "hours.csv", 1, 3000, header=True)
    job, said, shapes, shown, _ = train(
        place, "hours", data=str(series), model="lstm-forecast", label="OT", batch=32, epochs=3,
        read={"skip": "date", "window": 16, "ahead": 1}, optimizer={"name": "adam", "lr": 0.005})
    assert "2984 windows of 16 rows of 7 numbers" in said
    assert shapes["lstm1.weight_ih_l0"] == [512, 7] and job["test_accuracy"] > 0.5, job


def test_sparse_rows_and_hashed_categories(place):
    rows = some_lines(DATA / "libsvm" / "a9a.gz", place[2] / "a9a.libsvm", 0, 6000)
    job, said, shapes, _, _ = train(place, "adults", data=str(rows), model="svm", batch=64, epochs=3,
                                    optimizer={"lr": 0.1})
    assert job["test_accuracy"] > 0.8, job

    clicks = some_lines(DATA / "ctr" / "avazu_train.csv.gz", place[2] / "clicks.csv", 1, 6000, header=True)
    job, said, shapes, _, _ = train(
        place, "clicks", data=str(clicks), model="logistic", label="click", batch=64, epochs=3,
        read={"categories": "hashed", "category_columns": "*", "skip": "id", "hash_bits": 18},
        optimizer={"lr": 0.1})
    assert "6000 sparse rows of at most 22 out of 262144 places; 2 classes" in said, said
    assert shapes["sparse1.weight"] == [262144, 2] and shapes["sparse1.bias"] == [2]
    # Always "no click" is right for 82.7 % of these rows; its cross entropy is 0.46.
    assert job["test_accuracy"] > 0.8 and job["loss"] < 0.46, job


def test_a_network_of_ones_own_over_each_input(place):
    digits = place[2] / "digits"
    digits.mkdir()
    for part, each, count in (("images-idx3", 784, 1500), ("labels-idx1", 1, 1500)):
        with gzip.open(DATA / "mnist" / f"t10k-{part}-ubyte.gz") as file:
            head = file.read(16 if each > 1 else 8)
            (digits / f"train-{part}-ubyte").write_bytes(
                head[:4] + struct.pack(">I", count) + head[8:] + file.read(each * count))
    layers = [{"type": "conv", "outputs": 8, "kernel": 3, "pad": 1}, {"type": "batch_norm"}, {"type": "relu"},
              {"type": "max_pool", "kernel": 4}, {"type": "dropout", "rate": 0.1}, {"type": "dense"}]
    job, said, shapes, _, _ = train(place, "digits", data=f"{digits}/", layers=layers, batch=32, epochs=6,
                                    shards="speed", augment={"crop": 1}, optimizer={"name": "adamw", "lr": 0.005})
    assert shapes["conv1.weight"] == [8, 1, 3, 3] and job["test_accuracy"] > 0.8, job
    assert job["spec"]["train"]["model"] == "layers"
    # Of the 1350 records that train, as much as the cores are worth.
    workers = {lease["rank"]: lease for lease in job["leases"] if lease["role"] == "worker"}
    assert sorted(lease["cores_milli"] for lease in workers.values()) == [400, 500]
    worth = {rank: lease["cores_milli"] * weight_of(place, lease["machine"]) // 1000 for rank, lease in workers.items()}
    records = 1350 * worth[0] // sum(worth.values())
    assert f"rank=0 records={records} " in souk(place, "job", "logs", str(job["id"])).stdout

    clicks = some_lines(DATA / "ctr" / "criteo_train.tsv.gz", place[2] / "ads.tsv", 0, 3000)
    layers = [{"type": "dense", "outputs": 16}, {"type": "relu"}, {"type": "dense"}]
    job, said, shapes, _, _ = train(
        place, "ads", data=str(clicks), layers=layers, label="1", batch=64, epochs=2,
        read={"categories": "hashed", "missing": "mean", "hash_bits": 14}, optimizer={"name": "adam", "lr": 0.002})
    assert "out of 16397 places" in said and shapes["sparse1.weight"] == [16397, 16], said
    assert job["test_accuracy"] > 0.7, job


def npy(path, shape, block, times):
    head = str({"descr": "|u1", "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head)
        for _ in range(times):
            file.write(block)


def test_data_larger_than_the_memory_of_either_end(place):
    """Sends 144 MiB through a client with at most 128 MiB of data and a worker with 80 MiB."""
    if b"__asan_init" in open(PROGRAM, "rb").read():
        pytest.skip("the sanitizer's own memory is in the way")
    folder = place[2] / "large"
    folder.mkdir()
    chance = random.Random(5)
    labels = bytes(chance.randrange(2) for _ in range(4096))
    records = b"".join(bytes([60 + 120 * label + chance.randrange(40)]) * 1024 for label in labels)
    npy(folder / "x_train.npy", (36 * 4096, 32, 32), records, 36)
    npy(folder / "y_train.npy", (36 * 4096,), labels, 36)
    job = {"name": "large", "num_nodes": 1, "resources": {"cpus": "0.1+", "memory": "80MiB", "disk_size": "0.5"},
           "train": {"data": f"{folder}/", "model": "logistic", "batch": 512, "epochs": 1, "optimizer": {"lr": 0.01}},
           "market": {"max_run_time": "10m"}}
    (folder / "job.yaml").write_text(json.dumps(job))
    done = souk(place, "job", "submit", "-y", "--json", str(folder / "job.yaml"),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (128 << 20, 128 << 20)))
    assert done.returncode == 0, done
    job = json.loads(done.stdout)
    assert job["state"] == "succeeded" and job["test_accuracy"] > 0.99, job
    assert job["samples"] > 130000, job  # training drew every record


def test_what_does_not_go_together_is_said_before_anything_is_sent(place):
    market, token, folder = place
    text = folder / "short.txt"
    text.write_text("to be or not to be that is the question\n" * 100)
    rows = folder / "rows.csv"
    rows.write_text("a,b\n" + "".join(f"{i},{i % 2}\n" for i in range(50)))
    packed = gzip.compress(b"".join(f"{i * i % 991},{i},{i % 2}\n".encode() for i in range(5000)))
    (folder / "cut.csv.gz").write_bytes(packed[:len(packed) // 2])
    (folder / "torn").mkdir()
    (folder / "torn" / "train-images-idx3-ubyte").write_bytes(struct.pack(">4I", 0x803, 20, 2, 2) + bytes(79))
    (folder / "torn" / "train-labels-idx1-ubyte").write_bytes(struct.pack(">2I", 0x801, 20) + bytes(20))
    for name, label in (("high", 10), ("low", 9)):
        (folder / name).mkdir()
        record = bytes(3072)
        (folder / name / "data_batch_1.bin").write_bytes(b"\x01" + record + b"\x02" + record + bytes([label]) + record)
    before = len(market.get("/v1/jobs", token).json["items"])
    for fields, words in (
            ({"data": str(folder / "cut.csv.gz"), "model": "logistic"}, "truncated: the gzip data ends in the middle, at byte"),
            ({"data": f"{folder}/torn/", "model": "logistic"}, "truncated: 95 of 96 bytes"),
            ({"data": f"{folder}/high/", "model": "logistic"}, "label 10 of record 2 is not below 10 (byte 6146)"),
            ({"data": str(rows), "layers": [{"type": "dense", "outputs": 60000}, {"type": "dense", "outputs": 400},
                                            {"type": "dense"}]},
             "resources.memory: 256 MiB are too little: a worker takes at least"),
            ({"data": "mnist", "layers": [{"type": "dense", "outputs": 20000}, {"type": "dense"}]},
             "resources.memory: 256 MiB are too little: a worker takes at least"),
            ({"data": str(text), "model": "text-cnn"}, "running text to be continued, which train.predict: class does not tell"),
            ({"data": str(text), "model": "mlp", "predict": "next"}, "tokens need an embedding first"),
            ({"data": str(rows), "model": "char-lstm"}, "a class for each record, which train.predict: next does not tell"),
            ({"data": str(rows), "model": "logistic", "predict": "number"}, "a number is told with loss mse"),
            ({"data": str(rows), "model": "linear", "read": {"window": 60}}, "50 rows are too few for windows of 60"),
            ({"data": str(rows), "model": "logistic", "augment": {"flip": True}}, "only images are cropped and flipped"),
            ({"data": "mnist", "model": "linear"}, "loss mse tells numbers, not classes")):
        (folder / "bad.yaml").write_text(json.dumps({"name": "bad", "train": fields}))
        done = souk(place, "job", "submit", "-y", str(folder / "bad.yaml"))
        assert done.returncode != 0 and words in done.stderr, (fields, done)
    assert len(market.get("/v1/jobs", token).json["items"]) == before
