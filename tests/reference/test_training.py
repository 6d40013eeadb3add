"""Training steps of Souk recomputed by other programs.

Logistic regression is recomputed with nothing but Python's own library, always. LeNet-5 and the
MLP are recomputed by torch where it is installed, and skipped where not. covers train/train_bench.c
"""
import gzip
import json
import math
import os
import pathlib
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from serving import HUNG_S  # noqa: E402 -- found through the line above

BUILD = pathlib.Path(os.environ["SOUK_BUILD"])


def read_idx(path):
    data = (gzip.open if path.endswith(".gz") else open)(path, "rb").read()
    rank = data[3]
    sizes = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    return sizes, data[4 + 4 * rank:]


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    assert size % 8 == 0
    header = json.loads(data[8:8 + size])
    body = data[8 + size:]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32"
        begin, end = entry["data_offsets"]
        assert end - begin == 4 * math.prod(entry["shape"])
        tensors[name] = (entry["shape"], list(struct.unpack(f"<{(end - begin) // 4}f", body[begin:end])))
    assert sum(len(values) for _, values in tensors.values()) * 4 == len(body)
    return tensors


def train(model, kernels, batch, steps, folder):
    command = [BUILD / "train_reference", model, kernels, str(batch), str(steps), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HUNG_S)
    if done.returncode == 7:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    return run, read_safetensors(folder / "before.safetensors"), read_safetensors(folder / "after.safetensors")


def batch_of(run, indices):
    (_, height, width), pixels = read_idx(run["images"])
    _, labels = read_idx(run["labels"])
    size = height * width
    images = [[(pixel / 255 - run["mean"]) / run["deviation"] for pixel in pixels[i * size:(i + 1) * size]]
              for i in indices]
    return images, [labels[i] for i in indices]


def softmax_step(weights, bias, images, labels):
    """Mean loss and gradients of one batch."""
    loss = 0.0
    d_weights = [[0.0] * len(weights[0]) for _ in weights]
    d_bias = [0.0] * len(bias)
    for image, label in zip(images, labels):
        logits = [b + sum(w * x for w, x in zip(row, image)) for row, b in zip(weights, bias)]
        top = max(logits)
        total = sum(math.exp(z - top) for z in logits)
        loss += math.log(total) - (logits[label] - top)
        for c, z in enumerate(logits):
            g = (math.exp(z - top) / total - (c == label)) / len(images)
            d_bias[c] += g
            d_weights[c] = [d + g * x for d, x in zip(d_weights[c], image)]
    return loss / len(images), d_weights, d_bias


def assert_same_update(before, after, expected):
    """Errors are held against the largest change of the same tensor."""
    for name, (_, start) in before.items():
        changes = [e - s for e, s in zip(expected[name], start)]
        largest = max(abs(c) for c in changes)
        assert largest > 0, f"{name} never changed"
        worst = max(abs(a - e) for a, e in zip(after[name][1], expected[name]))
        assert worst <= 1e-3 * largest, f"{name}: off by {worst:g} of {largest:g}"


@pytest.mark.parametrize("kernels", ["plain", "onednn", "simd"])
def test_logistic_regression_matches_python(kernels, tmp_path):
    run, before, after = train("logistic", kernels, 16, 3, tmp_path)
    weights = [before["fc1.weight"][1][c * 784:(c + 1) * 784] for c in range(10)]
    bias = list(before["fc1.bias"][1])
    v_weights = [[0.0] * 784 for _ in range(10)]
    v_bias = [0.0] * 10
    for indices, loss in zip(run["batches"], run["losses"]):
        images, labels = batch_of(run, indices)
        expected, d_weights, d_bias = softmax_step(weights, bias, images, labels)
        assert loss == pytest.approx(expected, rel=1e-5)
        for c in range(10):
            decayed = [d + run["weight_decay"] * w for d, w in zip(d_weights[c], weights[c])]
            v_weights[c] = [run["momentum"] * v + d for v, d in zip(v_weights[c], decayed)]
            weights[c] = [w - run["lr"] * v for w, v in zip(weights[c], v_weights[c])]
            v_bias[c] = run["momentum"] * v_bias[c] + d_bias[c] + run["weight_decay"] * bias[c]
            bias[c] -= run["lr"] * v_bias[c]
    expected = {"fc1.weight": [w for row in weights for w in row], "fc1.bias": bias}
    assert_same_update(before, after, expected)


def torch_forward(torch, parameters, model, images):
    x = images
    if model == "lenet5":
        for number, pad in ((1, 2), (2, 0)):
            x = torch.nn.functional.conv2d(x, parameters[f"conv{number}.weight"],
                                           parameters[f"conv{number}.bias"], padding=pad)
            x = torch.nn.functional.max_pool2d(torch.relu(x), 2)
    x = x.flatten(1)
    for number in (1, 2, 3):
        x = torch.nn.functional.linear(x, parameters[f"fc{number}.weight"], parameters[f"fc{number}.bias"])
        x = torch.relu(x) if number < 3 else x
    return x


@pytest.mark.parametrize("model", ["lenet5", "mlp"])
@pytest.mark.parametrize("kernels", ["plain", "onednn", "simd"])
def test_deep_models_match_torch(model, kernels, tmp_path):
    torch = pytest.importorskip("torch")
    run, before, after = train(model, kernels, 32, 5, tmp_path)
    parameters = {name: torch.tensor(values).reshape(shape).requires_grad_()
                  for name, (shape, values) in before.items()}
    optimizer = torch.optim.SGD(parameters.values(), lr=run["lr"], momentum=run["momentum"],
                                weight_decay=run["weight_decay"])
    for indices, loss in zip(run["batches"], run["losses"]):
        images, labels = batch_of(run, indices)
        optimizer.zero_grad()
        logits = torch_forward(torch, parameters, model, torch.tensor(images).reshape(-1, 1, 28, 28))
        expected = torch.nn.functional.cross_entropy(logits, torch.tensor(labels))
        assert loss == pytest.approx(expected.item(), rel=1e-3)
        expected.backward()
        optimizer.step()
    assert_same_update(before, after, {n: p.detach().flatten().tolist() for n, p in parameters.items()})


def test_bench_prints_every_model_as_json():
    done = subprocess.run([BUILD / "train_bench", "--json", "--steps", "1", "--batch", "8"],
                          capture_output=True, text=True, timeout=HUNG_S)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert {row["model"] for row in rows} == {"lenet5", "mlp", "logistic"}
    assert all(row["step_ms"] > 0 for row in rows)


def test_bench_refuses_unknown_flags():
    done = subprocess.run([BUILD / "train_bench", "--fast"], capture_output=True, text=True, timeout=HUNG_S)
    assert done.returncode == 2
    assert "--fast" in done.stderr
