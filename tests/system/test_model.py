"""Trained models as files and as a service: exported, asked, refused.

covers cli/command_model.c, cli/command_model_serve.c
"""
import concurrent.futures
import contextlib
import http.client
import json
import math
import signal
import ssl
import struct
import subprocess
import urllib.request

from serving import HUNG_S

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
    assert souk("model", "inspect", model.parent).stdout == souk("model", "inspect", model).stdout


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


@contextlib.contextmanager
def serving(souk, *arguments):
    """A served model, as a function that asks it."""
    process = souk.start("model", "serve", *arguments, "--listen", "127.0.0.1:0", "--json")
    try:
        ready = json.loads(process.stdout.readline() or process.stderr.read())

        def ask(method, path, body=None, raw=None):
            connection = http.client.HTTPConnection("127.0.0.1", ready["port"], timeout=HUNG_S)
            connection.request(method, path, body=raw if raw is not None else json.dumps(body) if body else None)
            answer = connection.getresponse()
            text = answer.read()
            connection.close()
            return answer.status, json.loads(text)

        ask.ready = ready
        yield ask
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=HUNG_S) == 0
    finally:
        process.kill()
        process.communicate()


def softmax(logits):
    powers = [math.exp(x - max(logits)) for x in logits]
    return [x / sum(powers) for x in powers]


def test_a_model_answers_over_http(souk, tmp_path):
    with serving(souk, write_model(tmp_path / "model.safetensors"), "--name", "pets") as ask:
        assert ask.ready["url"].endswith("/v1/models/pets")
        status, told = ask("GET", "/v1/models/pets")
        assert (status, told["model_version_status"][0]["state"]) == (200, "AVAILABLE")
        status, told = ask("GET", "/v1/models/pets/metadata")
        assert told["model_spec"] == {"name": "pets", "signature_name": "", "version": "1"}
        signature = told["metadata"]["signature_def"]["signature_def"]["serving_default"]
        assert [d["size"] for d in signature["inputs"]["input"]["tensor_shape"]["dim"]] == ["-1", "3"]
        rows = [[0.5, 2, 1], [1, -1, 0.25], [3, 0, 0]] * 20  # more than one batch of the model's
        expected = [[sum(w * x for w, x in zip(WEIGHTS[3 * k:3 * k + 3], row)) + BIAS[k] for k in range(2)] for row in rows]
        status, told = ask("POST", "/v1/models/pets:predict", {"instances": rows})
        assert status == 200 and len(told["predictions"]) == len(rows)
        for prediction, logits in zip(told["predictions"], expected):
            assert all(math.isclose(a, b, abs_tol=1e-5) for a, b in zip(prediction["output"], logits))
            assert all(math.isclose(a, b, abs_tol=1e-5) for a, b in zip(prediction["probabilities"], softmax(logits)))
            assert prediction["classes"] == logits.index(max(logits))
        status, columns = ask("POST", "/v1/models/pets/versions/1:predict", {"inputs": {"input": rows}})
        assert columns["outputs"]["classes"] == [p["classes"] for p in told["predictions"]]
        status, told = ask("POST", "/v1/models/pets:classify", {"examples": rows[:1]})
        assert [name for name, _ in told["result"][0]] == ["0", "1"]


def test_large_and_small_requests_are_answered_side_by_side(souk, tmp_path):
    """covers cli/model_batch.c"""
    large = {"instances": [[0.5, 2.25, 1.125]] * 60000}  # parsing, and writing the answer, takes a while
    with serving(souk, write_model(tmp_path / "model.safetensors"), "--batch-max", "65536") as ask:
        _, told = ask("POST", "/v1/models/logistic:predict", {"instances": large["instances"][:1]})

        def ask_large():
            status, all_told = ask("POST", "/v1/models/logistic:predict", large)
            assert status == 200 and len(all_told["predictions"]) == 60000
            assert all(x == told["predictions"][0] for x in all_told["predictions"])

        with concurrent.futures.ThreadPoolExecutor() as pool:
            several = [pool.submit(ask_large) for _ in range(4)]
            while not all(x.done() for x in several):
                assert ask("POST", "/v1/models/logistic:predict", {"instances": [[1, 2, 3]]})[0] == 200
            for x in several:
                x.result()
        answered, why = ask("POST", "/v1/models/logistic:predict", {"instances": [[1, 2]] * 30000})
        assert answered == 400 and "instances[0]: 2 values where the model takes 3" in why["error"]


def test_bad_requests_are_told(souk, tmp_path):
    with serving(souk, write_model(tmp_path / "model.safetensors"), "--batch-max", "2") as ask:
        for status, path, body, why in [
                (400, "/v1/models/logistic:predict", {"instances": [[1, 2]]}, "instances[0]: 2 values where the model takes 3"),
                (400, "/v1/models/logistic:predict", {"instances": [[1, 2, 3]] * 3}, "3 inputs are not from 1 to 2"),
                (404, "/v1/models/other:predict", {"instances": [[1, 2, 3]]}, '"logistic", version 1'),
                (404, "/v1/models/logistic/versions/2:predict", {"instances": [[1, 2, 3]]}, '"logistic", version 1'),
                (404, "/v1/models/logistic:explain", {"instances": [[1, 2, 3]]}, ":predict, :classify or :regress"),
                (404, "/v2/health", {"x": 1}, "/v1/models/logistic"),
                (413, "/v1/models/logistic:predict", {"instances": [[1] * 9000]}, "send fewer inputs at once")]:
            answered, told = ask("POST", path, body)
            assert (answered, told["status"], told["detail"]) == (status, status, told["error"])
            assert why in told["error"]
        answered, told = ask("POST", "/v1/models/logistic:predict", raw="{")
        assert answered == 400 and "no JSON" in told["error"]
        assert ask("POST", "/v1/models/logistic:predict", raw=iter([b"{}"]))[0] == 411  # in chunks
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS"):  # by the model, and by the server itself
            answered, told = ask(method, "/v1/models/logistic:predict")
            assert (answered, told["status"], told["title"]) == (405, 405, "Method Not Allowed")
        assert ask("POST", "/v1/models/logistic:predict", {"instances": [[1, 2, 3]]})[0] == 200


def test_a_table_is_asked_by_its_columns(souk, tmp_path):
    write_model(tmp_path / "model.safetensors")
    (tmp_path / "columns.json").write_text(json.dumps({
        "classes": ["cat", "dog"], "features": [{"name": name, "mean": 1, "deviation": 2} for name in ("tail", "ears", "paws")]}))
    with serving(souk, tmp_path) as ask:
        _, told = ask("POST", "/v1/models/logistic:predict", {"instances": [{"ears": 1, "tail": 3, "paws": 1}]})
        assert told["predictions"][0]["output"] == [1.25, -2.25] and told["predictions"][0]["classes"] == "cat"
    with serving(souk, tmp_path, "--raw") as ask:
        _, told = ask("POST", "/v1/models/logistic:predict", {"instances": [[1, 0, 0]]})
        assert told["predictions"][0]["output"] == [1.25, -2.25]


def test_how_it_may_not_be_served(souk, tmp_path):
    model = write_model(tmp_path / "model.safetensors")
    assert "--tls-cert" in souk("model", "serve", model, "--listen", "0.0.0.0:0", code=2).stderr
    assert "belong together" in souk("model", "serve", model, "--tls-cert", "x", code=2).stderr
    assert "--name" in souk("model", "serve", model, "--name", "a/b", code=2).stderr
    assert "absent" in souk("model", "serve", tmp_path / "absent", code=3).stderr
    with serving(souk, model) as ask:
        port = str(ask.ready["port"])
        assert "in use" in souk("model", "serve", model, "--listen", "127.0.0.1:" + port, code=4).stderr


def test_it_can_be_served_by_https(souk, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-keyout", key, "-out", certificate], check=True, capture_output=True)
    process = souk.start("model", "serve", write_model(tmp_path / "model.safetensors"), "--listen", "127.0.0.1:0",
                         "--tls-cert", certificate, "--tls-key", key, "--json")
    try:
        ready = json.loads(process.stdout.readline())
        assert ready["url"].startswith("https://127.0.0.1:")
        trust = ssl.create_default_context(cafile=certificate)
        trust.check_hostname = False  # the certificate is for a name
        with urllib.request.urlopen(ready["url"], context=trust, timeout=HUNG_S) as answer:
            assert "AVAILABLE" in answer.read().decode()
    finally:
        process.terminate()
        process.communicate()


def test_a_model_of_texts_is_asked_by_texts(souk, tmp_path):
    """Trained on words, it tells them when it is asked; the same tokens as numbers are told the same."""
    good, bad = ["a fine film", "fine and warm", "a warm film"], ["a dull film", "dull and cold", "a cold film"]
    (tmp_path / "films.txt").write_text("".join(f"good\t{text}\n" for text in good * 30) +
                                        "".join(f"bad\t{text}\n" for text in bad * 30))
    (tmp_path / "job.yaml").write_text(
        "name: films\ntrain:\n  data: films.txt\n  read: {length: 6}\n  epochs: 20\n  batch: 10\n"
        "  optimizer: {lr: 0.2}\n  layers:\n    - {type: embedding, outputs: 8}\n    - {type: average_pool}\n"
        "    - {type: dense}\n")
    souk("train", tmp_path / "job.yaml", "--dataset-dir", tmp_path, "-o", tmp_path)
    words = json.loads((tmp_path / "columns.json").read_text())["words"]
    with serving(souk, tmp_path, "--name", "films") as ask:
        status, told = ask("POST", "/v1/models/films:predict", {"instances": ["A FINE, warm film!", "so cold and dull"]})
        assert status == 200, told
        assert [one["classes"] for one in told["predictions"]] == ["good", "bad"]
        tokens = [words.index(word) + 2 for word in ("a", "fine", "warm", "film")] + [0, 0]
        assert ask("POST", "/v1/models/films:predict", {"instances": [tokens]})[1]["predictions"] == told["predictions"][:1]
        status, told = ask("POST", "/v1/models/films:classify", {"examples": ["a dull film"]})
        assert max(told["result"][0], key=lambda pair: pair[1])[0] == "bad"
