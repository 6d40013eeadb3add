"""Trained models as files: exported and refused.

covers cli/command_model.c
"""
import json
import struct

SPEC = {"kind": "logistic", "loss": "cross_entropy", "channels": 1, "height": 1, "width": 3, "classes": 2,
        "layers": [{"type": "dense", "outputs": 2}]}
WEIGHTS = [1.0, 0.0, -1.0, -2.0, 0.5, 0.0]
BIAS = [0.25, -0.25]


def write_model(path, spec=SPEC, weights=WEIGHTS, bias=BIAS, metadata=None):
    header = {"fc1.weight": {"dtype": "F32", "shape": [len(bias), len(weights) // len(bias)],
                             "data_offsets": [0, 4 * len(weights)]},
              "fc1.bias": {"dtype": "F32", "shape": [len(bias)],
                           "data_offsets": [4 * len(weights), 4 * (len(weights) + len(bias))]}}
    if spec:
        header["__metadata__"] = {"spec": json.dumps(spec), **(metadata or {})}
    text = json.dumps(header)
    text += " " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text.encode() +
                     struct.pack(f"<{len(weights) + len(bias)}f", *weights, *bias))
    return path


def test_a_model_is_exported(souk, tmp_path):
    model = write_model(tmp_path / "model.safetensors", metadata={"data": "rows.csv"})
    told = json.loads(souk("model", "export", tmp_path, "-o", tmp_path / "m.onnx", "--json").stdout)
    assert told == {"file": str(tmp_path / "m.onnx"), "format": "onnx", "model": "logistic", "parameters": 8}
    bytes_ = (tmp_path / "m.onnx").read_bytes()
    for part in (b"souk", b"Gemm", b"fc1.weight", b"probabilities", b"rows.csv", struct.pack("<6f", *WEIGHTS)):
        assert part in bytes_
    done = souk("model", "export", model, "--format", "safetensors", "-o", tmp_path / "copy.safetensors")
    assert "logistic with 8 parameters as safetensors" in done.stderr
    assert (tmp_path / "copy.safetensors").read_bytes()[-32:] == model.read_bytes()[-32:]
    assert "spec" not in souk("model", "inspect", model).stdout


def test_what_cannot_be_exported_is_told(souk, tmp_path):
    nameless = write_model(tmp_path / "nameless.safetensors", spec=None)
    assert "does not say what model it is" in souk("model", "export", nameless, code=2).stderr
    other = write_model(tmp_path / "other.safetensors", spec={**SPEC, "width": 4})
    assert "its tensor fc1.weight has another shape than in logistic" in souk("model", "export", other, code=2).stderr
    assert '"absent"' in souk("model", "export", tmp_path / "absent", code=3).stderr.replace(str(tmp_path) + "/", "")
    assert '"tflite" is not one of onnx, safetensors' in souk("model", "export", nameless, "--format", "tflite", code=2).stderr
    assert "MODEL" in souk("model", "export", code=2).stderr
    (tmp_path / "letter").write_text("this is a letter, not a model")
    assert "neither a model (safetensors) nor a checkpoint" in souk("model", "export", tmp_path / "letter", code=8).stderr
