"""souk train: a job file trained here, without a market.

covers cli/command_train.c, cli/train_data.c
"""
import json
import math
import random
import signal
import struct

import pytest
from serving import HUNG_S
from test_model import serving
from tfevents_file import read_scalars

JOB = """name: petals
train: {{model: {model}, data: petals.csv, batch: 8, epochs: {epochs}, seed: 7, optimizer: {{lr: {lr}{more}}}{rest}}}
"""


def write_rows(path, count=300):
    chance = random.Random(4)
    with open(path, "w") as file:
        file.write("width,height,kind\n")
        for i in range(count):
            kind = i % 3
            file.write(f"{(0, 5, 0)[kind] + chance.gauss(0, 0.5):.4f},{40000 + (0, 0, 9000)[kind] + chance.gauss(0, 800):.1f},"
                       f"{('rose', 'blue', 'red')[kind]}\n")


def write_job(folder, model="logistic", epochs=4, lr=0.1, more="", rest="", name="job.yaml"):
    write_rows(folder / "petals.csv")
    (folder / name).write_text(JOB.format(model=model, epochs=epochs, lr=lr, more=more, rest=rest))
    return folder / name


def train(souk, folder, job, *arguments, code=0):
    return souk("train", job, "--dataset-dir", folder, *arguments, code=code)


def tensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + size])
    return {name: struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
            for name, (begin, end) in ((n, e["data_offsets"]) for n, e in head.items() if n != "__metadata__")}


def test_a_job_file_is_trained_here_and_its_model_answers(souk, tmp_path):
    job = write_job(tmp_path)
    done = train(souk, tmp_path, job, "-o", tmp_path / "out", "--tensorboard", tmp_path / "runs", "--json")
    told = json.loads(done.stdout)
    assert (told["end"], told["reason"], told["samples"]) == ("epochs", "4 epochs are done", told["steps"] * 8)
    assert told["test_accuracy"] > 0.9 and told["has_model"]
    assert '300 rows of 2 numbers; 3 classes of "kind".' in done.stderr
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert (card["policy"], card["workers"], card["data"]) == ("local", 1, "petals.csv")
    scalars = read_scalars(tmp_path / "runs" / "petals")
    assert [s for s in scalars if s[0] == "test/accuracy"][-1][2] == pytest.approx(told["test_accuracy"], abs=1e-5)
    assert any(tag == "train/loss" for tag, _, _ in scalars)
    # What is served tells rows by name as Python does from the tensors and the scaling.
    columns = json.loads((tmp_path / "out" / "columns.json").read_text())
    parts = tensors(tmp_path / "out" / "model.safetensors")
    with serving(souk, tmp_path / "out") as ask:
        for row, kind in (({"width": 0, "height": 49000}, "red"), ({"width": 5, "height": 40000}, "blue")):
            _, answer = ask("POST", "/v1/models/logistic:predict", {"instances": [row]})
            scaled = [(row[f["name"]] - f["mean"]) / f["deviation"] for f in columns["features"]]
            logits = [sum(w * x for w, x in zip(parts["fc1.weight"][2 * c:2 * c + 2], scaled)) + parts["fc1.bias"][c]
                      for c in range(3)]
            prediction = answer["predictions"][0]
            assert prediction["classes"] == kind
            assert all(math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4) for a, b in zip(prediction["output"], logits))


def test_the_same_seed_gives_the_same_model_also_after_a_break(souk, tmp_path):
    whole = write_job(tmp_path, model="mlp", more=", name: adam")
    half = write_job(tmp_path, model="mlp", more=", name: adam", epochs=2, name="half.yaml")
    for folder in ("a", "b"):
        train(souk, tmp_path, whole, "-o", tmp_path / folder)
    train(souk, tmp_path, half, "-o", tmp_path / "c")
    before = tensors(tmp_path / "c" / "model.safetensors")
    resumed = train(souk, tmp_path, whole, "-o", tmp_path / "c", "--resume", tmp_path / "c" / "checkpoint")
    assert "Goes on at step " in resumed.stderr
    expected = tensors(tmp_path / "a" / "model.safetensors")
    assert tensors(tmp_path / "b" / "model.safetensors") == expected
    assert tensors(tmp_path / "c" / "model.safetensors") == expected != before
    # Of another model it is refused, and stays as it is.
    checkpoint = (tmp_path / "c" / "checkpoint").read_bytes()
    other = write_job(tmp_path, name="other.yaml")
    refused = train(souk, tmp_path, other, "-o", tmp_path / "c", "--resume", tmp_path / "c" / "checkpoint", code=2)
    assert "another model: mlp of" in refused.stderr and "not logistic of 9" in refused.stderr
    assert (tmp_path / "c" / "checkpoint").read_bytes() == checkpoint


def test_it_stops_at_a_target(souk, tmp_path):
    job = write_job(tmp_path, epochs=1000, rest=", target: {loss: 0.3}")
    told = json.loads(train(souk, tmp_path, job, "-o", tmp_path / "out", "--json", "--measure-every", 10).stdout)
    assert told["end"] == "target" and told["test_loss"] <= 0.3 and told["steps"] % 10 == 0
    never = write_job(tmp_path, epochs=1, rest=", target: {loss: 0.000001}")
    shown = train(souk, tmp_path, never, "-o", tmp_path / "out").stdout
    assert "1 epoch is done; the target is not reached" in shown
    assert told["reason"].startswith("the test loss reached 0.")


def test_a_loss_that_is_not_finite_leaves_the_last_good_model(souk, tmp_path):
    # Once the rate passes 2, the decay throws every weight further out than it was.
    job = write_job(tmp_path, epochs=100, lr=10, more=", weight_decay: 1, schedule: {warmup: 1000}")
    done = train(souk, tmp_path, job, "-o", tmp_path / "out", "--measure-every", 20, "--json", code=1)
    told = json.loads(done.stdout)
    assert told["end"] == "diverged" and told["has_model"] and told["test_loss"] < 2
    assert "the last good model is kept; try a lower optimizer.lr than 10, clip_norm: 1" in done.stderr.replace("\n", " ")
    assert all(abs(w) < 100 for part in tensors(tmp_path / "out" / "model.safetensors").values() for w in part)


def test_an_interrupted_run_can_go_on(souk, tmp_path):
    job = write_job(tmp_path, epochs=100000)
    process = souk.start("train", job, "--dataset-dir", tmp_path, "-o", tmp_path / "out")
    while "petals running" not in (line := process.stderr.readline()):
        assert line, "it ended by itself"
    process.send_signal(signal.SIGINT)
    _, notes = process.communicate(timeout=HUNG_S)
    assert process.returncode == 130
    assert (f"Go on: souk train {job} -o {tmp_path / 'out'} --dataset-dir {tmp_path} --resume {tmp_path / 'out'}/checkpoint"
            in notes.replace("\n", " "))
    shorter = write_job(tmp_path, epochs=1, name="short.yaml")
    assert "Goes on at step" in train(souk, tmp_path, shorter, "-o", tmp_path / "out", "--resume",
                                      tmp_path / "out" / "checkpoint").stderr


def test_what_cannot_be_trained_here_is_told(souk, tmp_path):
    assert "FILE" in souk("train", code=2).stderr
    (tmp_path / "command.yaml").write_text("name: x\nruntime: command\nrun: date\n")
    assert "souk train takes jobs with train:" in souk("train", tmp_path / "command.yaml", code=2).stderr.replace("\n", " ")
    (tmp_path / "peer.yaml").write_text("name: x\ntrain: {model: logistic, data: 'peer://wards', test: petals.csv}\n")
    refused = souk("train", tmp_path / "peer.yaml", "--dataset-dir", tmp_path, code=2).stderr
    assert "it lies at lenders" in refused.replace("\n", " ")
    job = write_job(tmp_path)
    (tmp_path / "petals.csv").unlink()
    assert "petals.csv" in train(souk, tmp_path, job, code=3).stderr
    job = write_job(tmp_path)
    (tmp_path / "file").write_text("")
    assert "--output" in train(souk, tmp_path, job, "-o", tmp_path / "file" / "below", code=2).stderr
    assert "--resume" in train(souk, tmp_path, job, "-o", tmp_path, "--resume", tmp_path / "petals.csv", code=8).stderr
