"""A trained model asked about whole files.

covers cli/command_model_predict.c
"""
import csv
import io
import json
import os
import random
import signal
import struct
import time
import zlib

from serving import HUNG_S

JOB = """name: small
train:
  data: {data}
  epochs: {epochs}
  batch: 20
  seed: 1
  optimizer: {{lr: {lr}}}
"""


def train(souk, folder, data, rest, epochs=20, lr=0.3):
    (folder / "job.yaml").write_text(JOB.format(data=data, epochs=epochs, lr=lr) + rest)
    souk("train", folder / "job.yaml", "--dataset-dir", folder, "-o", folder / "model")
    return folder / "model"


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def idx(path, element, sizes, values):
    path.write_bytes(bytes([0, 0, element, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes) + bytes(values))


def npy(path, descr, shape, payload):
    header = str({"descr": descr, "fortran_order": False, "shape": shape})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1") + payload)


def png(path, side, grey):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    rows = (b"\0" + bytes([grey] * side)) * side
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write_plants(path):
    """Gives the columns of each row."""
    pick = random.Random(3)
    rows = []
    for i in range(300):
        soil, tall = pick.choice(["clay", "sand"]), pick.uniform(0, 100)
        rows.append([i, f"{tall:.3f}", soil, "reed, common" if soil == "clay" and tall > 50 else "-moss"])
    with path.open("w") as file:
        csv.writer(file).writerows([["id", "height", "soil", "kind"], *rows])
    return rows


def test_a_table_is_told_as_the_served_model_would(souk, tmp_path):
    plants = write_plants(tmp_path / "plants.csv")
    model = train(souk, tmp_path, "plants.csv",
                  "  label: kind\n  read: {categories: one-hot, skip: id}\n  layers:\n    - {type: dense, outputs: 8}\n"
                  "    - {type: tanh}\n    - {type: dense}\n", epochs=30)
    done = souk("model", "predict", model, "--data", tmp_path / "plants.csv", "-o", tmp_path / "told.csv")
    assert done.stdout == "" and "300 records in" in done.stderr and "records/s" in done.stderr
    told = rows_of((tmp_path / "told.csv").read_text())
    assert [row["index"] for row in told] == [str(i) for i in range(300)]
    names = {"reed, common": "reed, common", "'-moss": "-moss"}  # a spreadsheet takes no name for a formula
    right = [names[row["prediction"]] == plant[3] for row, plant in zip(told, plants)]
    assert f"accuracy {100 * sum(right) / 300:.2f} %" in done.stderr and sum(right) > 270
    assert all(0.5 <= float(row["probability"]) <= 1 for row in told)
    # The columns in another order, and no label: the same, and all of it with --probabilities.
    (tmp_path / "asked.csv").write_text("soil;height\n" + "".join(f"{soil};{tall}\n" for _, tall, soil, _ in plants[:3]))
    done = souk("model", "predict", model, "--data", tmp_path / "asked.csv", "--probabilities")
    assert "accuracy" not in done.stderr
    again = rows_of(done.stdout)
    assert [{key: row[key] for key in told[0]} for row in again] == told[:3]
    assert all(abs(float(row["p(-moss)"]) + float(row["p(reed, common)"]) - 1) < 1e-5 for row in again)
    objects = [json.loads(line) for line in
               souk("model", "predict", model, "--data", tmp_path / "asked.csv", "--json", "--probabilities").stdout.splitlines()]
    assert [one["prediction"] for one in objects] == [names[row["prediction"]] for row in again]
    assert [one["probabilities"]["-moss"] for one in objects] == [float(row["p(-moss)"]) for row in again]
    assert objects[2]["index"] == 2


def test_what_cannot_be_told_leaves_no_file(souk, tmp_path):
    write_plants(tmp_path / "plants.csv")
    model = train(souk, tmp_path, "plants.csv", "  model: logistic\n  label: kind\n  read: {categories: one-hot, skip: id}\n",
                  epochs=1)
    asked, out = tmp_path / "asked.csv", tmp_path / "told.csv"
    for text, why in [("height,soil\n1,clay\n2,peat\n", 'record 1 (line 3): column "soil": "peat" is no word that the model has learnt'),
                      ("height,soil\n1,clay\ntall,clay\n", 'record 1 (line 3): column "height": "tall" is not a number'),
                      ("height,soil\n1,clay\n,clay\n", "is missing (--missing mean"),
                      ("height,soil\n1,clay\n2\n", "record 1 (line 3): 1 fields, not 2"),
                      ("height\n1\n", 'the model\'s column "soil" is missing in the heading')]:
        asked.write_text(text)
        assert why in souk("model", "predict", model, "--data", asked, "-o", out, code=2).stderr
        assert [path.name for path in tmp_path.glob("told.csv*")] == []
    out.write_text("as it was")
    souk("model", "predict", model, "--data", asked, "-o", out, code=2)
    assert out.read_text() == "as it was" and len(list(tmp_path.glob("told.csv*"))) == 1
    asked.write_text("height,soil\n,clay\n")
    assert len(rows_of(souk("model", "predict", model, "--data", asked, "--missing", "mean").stdout)) == 1
    (tmp_path / "a.txt").write_text("some text\n")
    assert "takes numbers, and no texts" in souk("model", "predict", model, "--data", tmp_path / "a.txt", code=2).stderr
    assert "absent" in souk("model", "predict", model, "--data", tmp_path / "absent", code=3).stderr
    (model / "columns.json").unlink()
    assert "put its columns.json there" in souk("model", "predict", model, "--data", asked, code=2).stderr


def test_what_is_interrupted_leaves_no_file(souk, tmp_path):
    (tmp_path / "line.csv").write_text("x,y\n" + "".join(f"{x},{2 * x}\n" for x in range(20)))
    model = train(souk, tmp_path, "line.csv", "  model: linear\n  predict: number\n", epochs=1, lr=0.1)
    os.mkfifo(tmp_path / "endless.csv")
    process = souk.start("model", "predict", model, "--data", tmp_path / "endless.csv", "--format", "csv", "-o", tmp_path / "told")
    try:
        with open(os.open(tmp_path / "endless.csv", os.O_RDWR), "wb", buffering=0) as rows:  # waits for no reader
            rows.write(b"x\n1\n")
            until = time.monotonic() + HUNG_S
            while not list(tmp_path.glob("told.*")) and time.monotonic() < until:
                time.sleep(0.01)  # clock: poll interval
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=HUNG_S) == -signal.SIGTERM
    finally:
        process.kill()
        process.communicate()
    assert list(tmp_path.glob("told*")) == []


def test_numbers_come_in_their_own_unit(souk, tmp_path):
    (tmp_path / "line.csv").write_text("x,y\n" + "".join(f"{x / 10},{3 * x / 10 + 1000}\n" for x in range(200)))
    model = train(souk, tmp_path, "line.csv", "  model: linear\n  predict: number\n", epochs=60, lr=0.1)
    done = souk("model", "predict", model, "--data", tmp_path / "line.csv")
    told = rows_of(done.stdout)
    assert list(told[0]) == ["index", "prediction"]
    assert all(abs(float(row["prediction"]) - (3 * i / 10 + 1000)) < 1 for i, row in enumerate(told))
    shards = [rows_of(souk("model", "predict", model, "--data", tmp_path / "line.csv", "--shard", f"{k}/3").stdout) for k in range(3)]
    assert sorted(sum(shards, []), key=lambda row: int(row["index"])) == told and len(shards[0]) == 67
    assert "K/N" in souk("model", "predict", model, "--data", tmp_path / "line.csv", "--shard", "3/3", code=2).stderr
    assert "R2 1.0000" in done.stderr or "R2 0.99" in done.stderr


def test_texts_are_told_with_and_without_labels(souk, tmp_path):
    good, bad = ["a fine film", "fine and warm"], ["a dull film", "dull and cold"]
    (tmp_path / "films.txt").write_text("".join(f"good\t{text}\n" for text in good * 30) +
                                        "".join(f"bad\t{text}\n" for text in bad * 30))
    model = train(souk, tmp_path, "films.txt", "  read: {length: 6}\n  layers:\n    - {type: embedding, outputs: 8}\n"
                  "    - {type: average_pool}\n    - {type: dense}\n")
    done = souk("model", "predict", model, "--data", tmp_path / "films.txt")
    assert "accuracy 100.00 %" in done.stderr and len(rows_of(done.stdout)) == 120
    (tmp_path / "asked.txt").write_text("A FINE, warm film!\n\nso cold and dull\n")
    told = rows_of(souk("model", "predict", model, "--data", tmp_path / "asked.txt").stdout)
    assert [row["prediction"] for row in told] == ["good", "bad"]
    (tmp_path / "odd.txt").write_text("odd\ta fine film\ngood\tfine\n")
    assert "1 labels are none that the model has learnt" in souk("model", "predict", model, "--data", tmp_path / "odd.txt").stderr


def test_images_and_arrays_are_scaled_as_in_training(souk, tmp_path):
    pick = random.Random(5)
    labels = [pick.randrange(2) for _ in range(200)]
    pixels = [pick.randrange(100) + 150 * (labels[i // 16] == 1) for i in range(200 * 16)]
    idx(tmp_path / "train-images-idx3-ubyte", 8, [200, 4, 4], pixels)
    idx(tmp_path / "train-labels-idx1-ubyte", 8, [200], labels)
    model = train(souk, tmp_path, "./train-images-idx3-ubyte", "  model: logistic\n")
    done = souk("model", "predict", model, "--data", tmp_path / "train-images-idx3-ubyte")
    assert "accuracy 100.00 %" in done.stderr
    told = [row["prediction"] for row in rows_of(done.stdout)]
    assert told == [str(label) for label in labels]
    npy(tmp_path / "asked.npy", "|u1", (200, 4, 4), bytes(pixels))  # the same, and nothing beside it
    assert souk("model", "predict", model, "--data", tmp_path / "asked.npy").stdout == done.stdout
    (tmp_path / "alone").write_bytes((tmp_path / "train-images-idx3-ubyte").read_bytes())
    alone = souk("model", "predict", model, "--data", tmp_path / "alone")
    assert alone.stdout == done.stdout and "accuracy" not in alone.stderr
    (tmp_path / "pictures").mkdir()
    png(tmp_path / "pictures" / "a.png", 9, 230)  # of another size
    png(tmp_path / "pictures" / "b.png", 4, 20)
    told = rows_of(souk("model", "predict", model, "--data", tmp_path / "pictures").stdout)
    assert [row["prediction"] for row in told] == ["1", "0"]
    npy(tmp_path / "wide.npy", "|u1", (1, 4, 8), bytes(32))
    assert "records are 1 x 4 x 8, and the model takes 1 x 4 x 4" in souk(
        "model", "predict", model, "--data", tmp_path / "wide.npy", code=2).stderr
    npy(tmp_path / "floats.npy", "<f4", (1, 4, 4), bytes(64))
    assert "the model takes bytes of images" in souk(
        "model", "predict", model, "--data", tmp_path / "floats.npy", code=2).stderr
    npy(tmp_path / "cut.npy", "|u1", (200, 4, 4), bytes(pixels[:100]))
    assert "byte" in souk("model", "predict", model, "--data", tmp_path / "cut.npy", code=8).stderr


def test_sparse_rows_are_told(souk, tmp_path):
    pick = random.Random(7)
    lines = []
    for _ in range(200):
        sign = pick.choice(["+1", "-1"])
        lines.append(f"{sign} {1 if sign == '+1' else 2}:1 {pick.randrange(3, 2000)}:0.5")
    (tmp_path / "ads.libsvm").write_text("\n".join(lines) + "\n")
    model = train(souk, tmp_path, "ads.libsvm", "  model: logistic\n")
    done = souk("model", "predict", model, "--data", tmp_path / "ads.libsvm")
    assert "accuracy 100.00 %" in done.stderr
    assert [row["prediction"] for row in rows_of(done.stdout)] == [line.split()[0].lstrip("+") for line in lines]
    (tmp_path / "more.libsvm").write_text("+1 1:1 9999:1\n")
    assert "the model takes" in souk("model", "predict", model, "--data", tmp_path / "more.libsvm", code=2).stderr
