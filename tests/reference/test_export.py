"""Exported models in other people's programs: ONNX computed by onnxruntime gives what our forward pass
gives, for every built-in model and every kind of layer; safetensors opened by its own package holds the
tensors. Skipped where they are not installed; `make reference` installs them.
"""
import json
import os
import pathlib
import subprocess
import sys
import urllib.request

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "system"))
from serving import HUNG_S  # noqa: E402 -- found through the line above

numpy = pytest.importorskip("numpy")

BUILD = pathlib.Path(os.environ["SOUK_BUILD"])
MODELS = ["linear", "logistic", "svm", "mlp", "lenet5", "cifar-cnn", "resnet", "text-cnn", "lstm", "gru",
          "lstm-forecast", "gru-forecast", "char-lstm"]


def network(layers, channels=2, height=9, width=8, classes=3, loss="cross_entropy", **more):
    return {"kind": "layers", "loss": loss, "channels": channels, "height": height, "width": width,
            "classes": classes, "layers": layers, **more}


DENSE = {"type": "dense"}
LAYERS = {
    "conv": network([{"type": "conv", "outputs": 4, "kernel": 3, "stride": 2, "pad": 1}, DENSE]),
    "max_pool": network([{"type": "max_pool", "kernel": 3, "stride": 2}, DENSE]),
    "max_pool_partial": network([{"type": "max_pool", "kernel": 2, "stride": 2, "partial": True}, DENSE]),
    "average_pool": network([{"type": "average_pool", "kernel": 3, "stride": 2}, DENSE]),
    "average_pool_partial": network([{"type": "average_pool", "kernel": 4, "stride": 3, "partial": True}, DENSE]),
    "pool_whole": network([{"type": "max_pool"}, DENSE]),
    "average_whole": network([{"type": "average_pool"}, DENSE]),
    "batch_norm_image": network([{"type": "batch_norm"}, DENSE]),
    "batch_norm_row": network([{"type": "dense", "outputs": 5}, {"type": "batch_norm"}, DENSE]),
    "batch_norm_table": network([{"type": "batch_norm"}, DENSE], channels=1, height=1),
    "layer_norm_image": network([{"type": "layer_norm"}, {"type": "conv", "outputs": 2, "kernel": 3}, DENSE]),
    "layer_norm_row": network([{"type": "dense", "outputs": 5}, {"type": "layer_norm"}, DENSE]),
    "local_norm": network([{"type": "conv", "outputs": 12, "kernel": 3}, {"type": "local_norm"}, DENSE]),
    "activations": network([{"type": "dense", "outputs": 8}, {"type": "tanh"}, {"type": "dense", "outputs": 8},
                            {"type": "sigmoid"}, {"type": "dense", "outputs": 8}, {"type": "gelu"},
                            {"type": "dense", "outputs": 8}, {"type": "relu"}, {"type": "dropout"}, DENSE]),
    "residual": network([{"type": "conv", "outputs": 2, "kernel": 3, "pad": 1}, {"type": "relu"},
                         {"type": "residual", "back": 2}, DENSE]),
    "residual_projected": network([{"type": "conv", "outputs": 6, "kernel": 3, "pad": 1, "stride": 2},
                                   {"type": "residual", "back": 1}, DENSE]),
    "residual_rows": network([{"type": "dense", "outputs": 6}, {"type": "dense", "outputs": 6}, {"type": "tanh"},
                              {"type": "residual", "back": 2}, DENSE]),
    "lstm_steps": network([{"type": "lstm", "outputs": 5, "steps": True}, {"type": "batch_norm"},
                           {"type": "layer_norm"}, {"type": "gru", "outputs": 4, "steps": True},
                           {"type": "tanh"}, {"type": "residual", "back": 1}, {"type": "lstm", "outputs": 4}, DENSE], channels=1),
    "sequence_conv": network([{"type": "embedding", "outputs": 6}, {"type": "conv", "outputs": 5, "kernel": 3, "pad": 1},
                              {"type": "max_pool", "kernel": 2}, {"type": "average_pool"}, DENSE],
                             channels=1, height=1, width=11, vocabulary=9),
    "sequence_flat": network([{"type": "embedding", "outputs": 3}, {"type": "dense", "outputs": 4}, {"type": "relu"},
                              {"type": "flatten"}, DENSE], channels=1, height=1, width=7, vocabulary=9),
    "sparse": network([{"type": "dense", "outputs": 5}, {"type": "relu"}, DENSE], channels=1, height=2, width=6,
                      vocabulary=20),
    "logistic_loss": network([DENSE], classes=2, loss="logistic"),
    "numbers": network([{"type": "dense", "outputs": 4}, {"type": "relu"}, DENSE], classes=0, loss="mse", values=2),
}


@pytest.fixture
def reader(request):
    """The other program's package that the case names; skips the case where it is not installed."""
    return pytest.importorskip(request.param)


@pytest.fixture(params=MODELS + sorted(LAYERS))
def exported(reader, request, tmp_path):
    name = request.param
    if name in LAYERS:
        path = tmp_path / "spec.json"
        path.write_text(json.dumps({key: value for key, value in LAYERS[name].items() if value != 0}))
        name = path
    done = subprocess.run([BUILD / "export_reference", name, tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.parametrize("reader", ["onnxruntime"], indirect=True)
def test_onnxruntime_computes_what_we_do(reader, exported):
    session = reader.InferenceSession(str(exported / "model.onnx"), providers=["CPUExecutionProvider"])
    spec = json.loads((exported / "card.json").read_text())["model"]
    wanted = session.get_inputs()[0]
    inputs = numpy.fromfile(exported / "inputs.f32", dtype="<f4").reshape([-1] + wanted.shape[1:])
    if wanted.type == "tensor(int64)":
        inputs = inputs.astype("int64")
    given = session.run(None, {"input": inputs})
    expected = numpy.fromfile(exported / "outputs.f32", dtype="<f4").reshape(given[0].shape)
    assert list(given[0].shape[1:]) == session.get_outputs()[0].shape[1:]
    numpy.testing.assert_allclose(given[0], expected, rtol=2e-4, atol=2e-4 * abs(expected).max())
    assert abs(expected).max() > 1e-3
    if spec["loss"] == "cross_entropy":
        numpy.testing.assert_allclose(given[1].sum(axis=-1), 1, rtol=1e-5)
        assert (given[1].argmax(axis=-1) == given[0].argmax(axis=-1)).all()


@pytest.mark.parametrize("reader", ["onnx"], indirect=True)
def test_onnx_finds_nothing_wrong(reader, exported):
    model = reader.load(str(exported / "model.onnx"))
    reader.checker.check_model(model, full_check=True)


@pytest.mark.parametrize("reader", ["safetensors.numpy"], indirect=True)
def test_safetensors_opens_the_tensors(reader, exported):
    raw = (exported / "model.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    tensors = reader.load_file(exported / "model.safetensors")
    assert set(tensors) == set(header) - {"__metadata__"}
    for name, tensor in tensors.items():
        begin, end = header[name]["data_offsets"]
        assert tensor.tobytes() == raw[8 + size + begin:8 + size + end]
        assert list(tensor.shape) == header[name]["shape"]


def test_tensorboard_reads_the_metrics(tmp_path):
    loading = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    (tmp_path / "rows.csv").write_text("a,b,kind\n" + "".join(f"{i % 7},{i % 5},{'xy'[i % 2]}\n" for i in range(200)))
    (tmp_path / "job.yaml").write_text("name: j\ntrain: {model: logistic, data: rows.csv, epochs: 3, optimizer: {lr: 0.05}}\n")
    done = subprocess.run([BUILD / "souk", "train", tmp_path / "job.yaml", "--dataset-dir", tmp_path, "-o", tmp_path,
                           "--tensorboard", tmp_path / "runs", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    read = loading.EventAccumulator(str(tmp_path / "runs" / "j")).Reload()
    last = read.Scalars("test/loss")[-1]
    told = json.loads(done.stdout)
    assert last.step == told["samples"] and last.value == pytest.approx(told["test_loss"], rel=1e-5)
    assert {"train/loss", "test/accuracy"} <= set(read.Tags()["scalars"])


def test_a_served_model_answers_as_onnxruntime_does(tmp_path):
    """Trained on pictures, exported and served: the same bytes get the same logits and classes from both."""
    onnxruntime = pytest.importorskip("onnxruntime")
    job = tmp_path / "job.yaml"
    job.write_text("name: clothes\ntrain: {model: lenet5, data: fashion-mnist, epochs: 1, batch: 64, "
                   "optimizer: {lr: 0.05, momentum: 0.9}}\n")
    for command in (["train", job, "-o", tmp_path, "--json"],
                    ["model", "export", tmp_path, "-o", tmp_path / "model.onnx"]):
        done = subprocess.run([BUILD / "souk", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    card = json.loads((tmp_path / "card.json").read_text())
    pixels = numpy.random.default_rng(3).integers(0, 256, (40, 1, 28, 28))
    scaled = ((pixels / 255 - card["mean"]) / card["deviation"]).astype("float32")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    logits, probabilities = session.run(None, {"input": scaled})[:2]
    server = subprocess.Popen([BUILD / "souk", "model", "serve", tmp_path, "--name", "clothes", "--listen", "127.0.0.1:0",
                               "--json"], stdout=subprocess.PIPE, text=True)
    try:
        port = json.loads(server.stdout.readline())["port"]
        asked = urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models/clothes:predict",
                                       json.dumps({"instances": pixels.tolist()}).encode(), timeout=HUNG_S)
        told = json.loads(asked.read())["predictions"]
    finally:
        server.terminate()
        server.wait()
    numpy.testing.assert_allclose([one["output"] for one in told], logits, rtol=2e-4, atol=2e-4 * abs(logits).max())
    numpy.testing.assert_allclose([one["probabilities"] for one in told], probabilities, rtol=2e-3, atol=1e-5)
    assert [one["classes"] for one in told] == logits.argmax(axis=1).tolist()
    assert abs(logits).max() > 1 and card["test_accuracy"] > 0.5
