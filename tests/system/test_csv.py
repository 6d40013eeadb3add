"""Files of the borrower's own, trained on lent machines.

covers client/upload_table.c, worker/worker_main.c
"""
import gzip
import json
import os
import random
import struct
import subprocess
import zlib

import pytest

from serving import HUNG_S, PROGRAM, Market
from training import Lender, wait_for

JOB = """\
name: petals
num_nodes: 2
resources: {{cpus: 0.1+, memory: 0.1+}}
train: {{model: {model}, data: {data}, label: kind, batch: 16, epochs: 40, optimizer: {{lr: 0.2}}}}
sync: {{policy: bsp, local_steps: 4}}
market: {{max_run_time: 60s}}
"""


@pytest.fixture(scope="module")
def lent(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("lent")
    market = Market(tmp_path / "market")
    lender_token, token = market.sign_up("lender"), market.sign_up("borrower")
    lenders = [Lender(market, lender_token, tmp_path / name, name) for name in ("first", "second")]
    try:
        wait_for("three machines", lambda: 3 == sum(
            m["state"] == "online" for m in market.get("/v1/machines", token).json["items"]))
        yield market, token
    finally:
        for lender in lenders:
            lender.stop()
        market.stop()


@pytest.fixture
def place(lent, tmp_path):
    return *lent, tmp_path


def write_rows(path, rows=400):
    """Three kinds that lines can tell apart, in columns of very unequal size, sorted by kind."""
    chance = random.Random(3)
    with open(path, "w", encoding="utf-8") as file:
        file.write("width,kind,height\n")
        for index in range(rows):
            kind = index * 3 // rows
            file.write(f"{(0, 5, 0)[kind] + chance.gauss(0, 0.5):.4f},{('rosé', 'blue', 'red')[kind]},"
                       f"{40000 + (0, 0, 9000)[kind] + chance.gauss(0, 800):.1f}\n")


def souk(place, *arguments):
    market, token, folder = place
    return subprocess.run([PROGRAM, *arguments, "--server", market.url, "--config-dir", str(folder / "config")],
                          capture_output=True, text=True, timeout=HUNG_S, stdin=subprocess.DEVNULL,
                          env={**os.environ, "SOUK_TOKEN": token, "NO_COLOR": "1"})


def test_a_file_of_rows_is_trained_and_comes_back_with_its_columns(place):
    market, token, folder = place
    write_rows(folder / "petals.csv")
    (folder / "job.yaml").write_text(JOB.format(model="logistic", data=folder / "petals.csv"))
    done = souk(place, "job", "submit", "-y", "--json", str(folder / "job.yaml"))
    assert done.returncode == 0, done
    assert '400 rows of 2 numbers; 3 classes of "kind".' in done.stderr, done
    job = json.loads(done.stdout)
    assert job["test_accuracy"] > 0.95, job
    # The market has the file's rows and name, not where it lies.
    assert job["spec"]["train"]["data"] == "petals.csv" and str(folder) not in done.stdout
    assert (job["spec"]["train"]["features"], job["spec"]["train"]["classes"]) == (2, 3)
    assert sum(i["records"] for i in job["spec"]["inputs"] if i["name"].endswith("-images")) == 400

    assert souk(place, "job", "fetch", str(job["id"]), "-o", str(folder / "got")).returncode == 0
    columns = json.loads((folder / "got" / "columns.json").read_text())
    assert columns["label"] == "kind" and columns["classes"] == ["blue", "red", "rosé"]
    assert [f["name"] for f in columns["features"]] == ["width", "height"]
    # What came back tells a row that it never saw, by the scaling that came with it.
    data = (folder / "got" / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    def tensor(name):
        first, last = head[name]["data_offsets"]
        return struct.unpack(f"<{(last - first) // 4}f", data[8 + size + first:8 + size + last])
    weights, bias = tensor("fc1.weight"), tensor("fc1.bias")
    for row, kind in (((0.0, 49000.0), "red"), ((5.0, 40000.0), "blue"), ((0.0, 40000.0), "rosé")):
        scaled = [(x - f["mean"]) / f["deviation"] for x, f in zip(row, columns["features"])]
        scores = [sum(w * x for w, x in zip(weights[2 * c:2 * c + 2], scaled)) + bias[c] for c in range(3)]
        assert columns["classes"][scores.index(max(scores))] == kind, (row, scores)

    again = souk(place, "job", "submit", "-y", "-d", str(folder / "job.yaml"))
    assert again.returncode == 0 and again.stderr.count("in the market already") == 5, again
    assert "training inputs: " in again.stderr and "images" not in again.stderr, again


def test_a_job_that_diverges_fails_and_leaves_its_last_good_model(place):
    market, token, folder = place
    write_rows(folder / "petals.csv")
    job_file = JOB.format(model="logistic", data=folder / "petals.csv")
    # Once the rate passes 2, the decay throws every weight further out than it was.
    job_file = job_file.replace("epochs: 40, optimizer: {lr: 0.2}",
                                "epochs: 1000000, optimizer: {lr: 50, weight_decay: 1, schedule: {warmup: 400000}}")
    (folder / "job.yaml").write_text(job_file.replace("local_steps: 4", "local_steps: 4, gamma: 100ms"))
    done = souk(place, "job", "submit", "-y", "--json", str(folder / "job.yaml"))
    assert done.returncode == 1, done
    job = json.loads(done.stdout)
    assert job["state"] == "failed", job
    assert job["reason"].startswith("training diverged: the loss is not finite; the model of loss "), job
    assert "try a lower optimizer.lr than 50, clip_norm: 1" in job["reason"], job
    assert souk(place, "job", "fetch", str(job["id"]), "-o", str(folder / "got")).returncode == 0
    data = (folder / "got" / "model.safetensors").read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    assert all(abs(w) < 100 for w in struct.unpack("<9f", data[8 + size:]))
    assert (folder / "got" / "checkpoint").exists()


def test_a_job_says_which_policy_auto_chose_and_how_vectors_travel(place):
    market, token, folder = place
    write_rows(folder / "petals.csv")
    job_file = JOB.format(model="logistic", data=folder / "petals.csv")
    job_file = job_file.replace("policy: bsp, local_steps: 4", "policy: auto, compress: f16").replace("epochs: 40", "epochs: 1000000")
    (folder / "job.yaml").write_text(job_file)
    done = souk(place, "job", "submit", "-y", "-d", "--json", str(folder / "job.yaml"))
    assert done.returncode == 0, done
    number = json.loads(done.stdout)["id"]

    def told():
        """The job, once its server has said which policy is in force and a worker how its vectors travel."""
        one = market.get(f"/v1/jobs/{number}", token).json
        workers = market.get(f"/v1/jobs/{number}/metrics", token).json.get("workers", [])
        return one if one["policy_in_force"] and any(each["codec"] for each in one["leases"]) and any(
            each["codec"] for each in workers) else None

    job = wait_for("the policy", told)
    assert job["policy"] == "auto" and job["policy_in_force"] in ("pace", "tap"), job
    assert job["policy_reason"].startswith(job["policy_in_force"]), job
    codecs = {lease["codec"] for lease in job["leases"]}  # empty: the server's, and a worker's that others outran
    assert codecs == {"f16", ""}, job
    metrics = market.get(f"/v1/jobs/{job['id']}/metrics", token).json
    assert metrics["policy_reason"] == job["policy_reason"] and "f16" in {w["codec"] for w in metrics["workers"]}, metrics
    shown = souk(place, "job", "show", str(job["id"]), "--wide").stdout
    assert f"Policy:   {job['policy_reason']}\n" in shown and " f16 " in shown, shown
    assert souk(place, "job", "cancel", "-y", str(number)).returncode == 0


def test_what_is_wrong_with_the_file_is_said_before_anything_is_sent(place):
    market, token, folder = place
    before = [job["id"] for job in market.get("/v1/jobs", token).json["items"]]
    write_rows(folder / "petals.csv")
    with open(folder / "petals.csv", "a", encoding="utf-8") as file:
        file.write("1.5,blue,n/a\n")
    for model, data, said in (("logistic", folder / "petals.csv", 'line 402: column "height": the value is missing, it is not a number'),
                              ("logistic", folder / "none.csv", "No such file"),
                              ("lenet5", folder / "petals.csv", "lenet5 takes images"),
                              ("logistic", "petals", "must be a file like rows.csv, a folder like ./images or one of")):
        (folder / "job.yaml").write_text(JOB.format(model=model, data=data))
        done = souk(place, "job", "submit", "-y", str(folder / "job.yaml"))
        assert done.returncode != 0 and said in done.stderr, (data, done)
    assert [job["id"] for job in market.get("/v1/jobs", token).json["items"]] == before


def png(path, side, shade):
    """A grey picture of one shade, as PNG."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
                     + chunk(b"IDAT", zlib.compress((b"\0" + bytes([shade]) * side) * side)) + chunk(b"IEND", b""))


def test_other_formats_train_too(place):
    market, token, folder = place
    with gzip.open(folder / "rows.libsvm.gz", "wt") as file:
        file.writelines(f"{'+1' if i % 2 else '-1'} {1 + i % 2}:1 7:0.{i % 10}\n" for i in range(400))
    (folder / "towns.csv").write_text("size,town,kind\n" + "".join(
        f"{'NA' if i % 50 == 0 else i % 7},{'Rome' if i % 2 else 'Oslo'},{i % 2}\n" for i in range(400)))
    for i in range(100):
        png(folder / "shades" / ("dark" if i % 2 else "light") / f"{i}.png", 6 if i % 3 else 12, i if i % 2 else 255 - i)
    for data, read, shape in (("rows.libsvm.gz", "", (None, None, 7)),
                              ("towns.csv", ", read: {missing: mean, categories: one-hot}", (None, None, 3)),
                              ("shades/", ", read: {image_height: 4, image_width: 4}", (1, 4, 4))):
        (folder / "job.yaml").write_text(
            JOB.format(model="logistic", data=f"{folder}/{data}").replace(", label: kind", read))
        done = souk(place, "job", "submit", "-y", "--json", str(folder / "job.yaml"))
        assert done.returncode == 0, done
        job = json.loads(done.stdout)
        train = job["spec"]["train"]
        assert (train.get("channels"), train.get("height"), train["features"]) == shape, train
        assert train["data"] == data and train["classes"] == 2 and job["test_accuracy"] > 0.95, job
