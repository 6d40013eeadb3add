"""Every built-in model and optimizer beside torch: the same weights, batches and steps must end at
the same parameters. The truth is torch in double precision, with steps small enough that no chaos
grows; ours may differ by 2e-4 of the largest change, by four times what torch itself does in single
precision, and by what the units do that lie so near a ReLU's kink that rounding decides their side: the
truth is computed with all of these on one side and on the other. Skipped where torch is not installed.
A quick sample runs by default; SOUK_REFERENCE=all runs every model with every optimizer and kernel set.
"""
import json
import os
import pathlib
import subprocess

import pytest

try:
    import numpy
    import torch
    from torch.nn import functional
except ImportError:
    torch = None

BUILD = pathlib.Path(os.environ["SOUK_BUILD"])
MODELS = ["linear", "logistic", "svm", "mlp", "lenet5", "cifar-cnn", "resnet", "text-cnn", "lstm", "gru",
          "lstm-forecast", "gru-forecast", "char-lstm"]
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.005),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.005, momentum=0.9, weight_decay=0.001),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.005, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.001, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.001, weight_decay=0.1),
    "clipped": lambda p: torch.optim.SGD(p, lr=0.05),
    "cosine": lambda p: torch.optim.SGD(p, lr=0.005),
}
STEPS = 4
BOUND = 2e-4
# Adam divides by the gradient's own size: a weight whose gradient is little more than rounding takes a step
# that is, too. So for these each weight may also differ by what it does when every gradient that is not zero
# is off by this share of the largest.
NUDGE_OF = {"adam": 1e-6, "adamw": 1e-6}
# Of a ResNet's million units a few lie within rounding of the kink at every step, and one on the other side
# turns a hundredth of a gradient; after that step no unit is where it was.
STEPS_OF = {"resnet": 1}


def cases():
    if os.environ.get("SOUK_REFERENCE") == "all":
        return [(m, o, k) for m in MODELS for o in OPTIMIZERS for k in ("plain", "onednn", "simd")]
    return ([(m, "momentum", "simd") for m in MODELS if m not in ("cifar-cnn", "lstm-forecast", "gru-forecast")] +
            [("mlp", o, "simd") for o in OPTIMIZERS if o != "momentum"])


def read_safetensors(path, precision="float64"):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    return {name: torch.tensor(numpy.frombuffer(data[8 + size:], dtype="<f4", offset=0)
                               [entry["data_offsets"][0] // 4:entry["data_offsets"][1] // 4]
                               .reshape(entry["shape"]).astype(precision))
            for name, entry in header.items() if name != "__metadata__"}


class Network:
    """The spec's layers by torch's functions, over the parameters by name."""

    def __init__(self, spec, parameters, near=None, side=0):
        self.spec, self.parameters = spec, parameters
        self.seen = []  # what came to each ReLU
        self.near, self.side = near, side  # units this near to zero count as on that side

    def relu(self, x):
        self.seen.append(x.detach())
        if self.side == 0:
            return torch.relu(x)
        return x * (x > -self.side * self.near[len(self.seen) - 1])

    def of(self, name):
        found = {key.split(".", 1)[1]: value for key, value in self.parameters.items()
                 if key.split(".", 1)[0] == name}
        return found

    def recurrent(self, kind, x, parts, units):
        weights = [parts[name] for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")]
        start = torch.zeros(1, len(x), units, dtype=x.dtype)
        last = (True, 1, 0.0, True, False, True)  # biases, layers, dropout, train, both ways, batch first
        if kind == "lstm":
            return torch.lstm(x, (start, start), weights, *last)[0]
        return torch.gru(x, start, weights, *last)[0]

    def __call__(self, x):
        numbers, inputs, sequence = {}, [], self.spec.get("vocabulary", 0) > 0
        for layer in self.spec["layers"]:
            inputs.append(x)
            kind = layer["type"]
            prefix = {"dense": "fc", "batch_norm": "bn"}.get(kind, kind)
            numbers[prefix] = numbers.get(prefix, 0) + 1
            parts = self.of(f"{prefix}{numbers[prefix]}")
            if kind == "dense":
                x = functional.linear(x if sequence else x.flatten(1), parts["weight"], parts["bias"])
            elif kind == "conv" and sequence:  # [out, kernel, features] to torch's [out, features, kernel]
                x = functional.conv1d(x.transpose(1, 2), parts["weight"].transpose(1, 2), parts["bias"],
                                      padding=layer.get("pad", 0)).transpose(1, 2)
            elif kind == "conv":
                x = functional.conv2d(x, parts["weight"], parts["bias"], stride=layer.get("stride", 1),
                                      padding=layer.get("pad", 0))
            elif kind == "max_pool" and sequence:
                x, sequence = x.max(dim=1).values, False
            elif kind == "max_pool":
                x = functional.max_pool2d(x, layer["kernel"], layer["stride"],
                                          ceil_mode=layer.get("partial", False))
            elif kind == "average_pool":
                x = x.mean(dim=(2, 3))
            elif kind == "local_norm":
                x = functional.local_response_norm(x, 9, alpha=0.001, beta=0.75, k=1)
            elif kind == "batch_norm":
                x = functional.batch_norm(x, parts["running_mean"], parts["running_var"], parts["weight"],
                                          parts["bias"], training=True)
            elif kind == "residual":
                skip = inputs[-1 - layer["back"]]
                if parts:
                    skip = functional.conv2d(skip, parts["weight"], parts["bias"],
                                             stride=skip.shape[2] // x.shape[2])
                x = x + skip
            elif kind == "embedding":
                x, sequence = functional.embedding(x.long().flatten(1), parts["weight"]), True
            elif kind in ("lstm", "gru"):
                x = self.recurrent(kind, x if x.dim() == 3 else x.squeeze(1), parts, layer["outputs"])
                sequence = layer.get("steps", False)
                x = x if sequence else x[:, -1]
            else:
                assert kind == "relu", kind
                x = self.relu(x)
        return x


def loss_of(spec, outputs, targets):
    if spec["loss"] == "mse":
        return functional.mse_loss(outputs, targets)
    if spec["loss"] == "hinge":
        return functional.multi_margin_loss(outputs, targets.flatten())
    return functional.cross_entropy(outputs.flatten(0, -2), targets.flatten())


def replay(run, folder, optimizer_name, precision, near=None, side=0, nudge=0):
    """The parameters afterwards, and what came to each ReLU."""
    spec = run["spec"]
    parameters = read_safetensors(folder / "before.safetensors", precision)
    learned = [value.requires_grad_() for name, value in parameters.items() if "running" not in name]
    inputs = torch.tensor(numpy.fromfile(folder / "inputs.f32", dtype="<f4").astype(precision)).reshape(
        -1, spec["channels"], spec["height"], spec["width"])
    is_value = spec["loss"] == "mse"
    targets = numpy.fromfile(folder / ("targets.f32" if is_value else "targets.i32"), dtype="<f4" if is_value else "<i4")
    targets = torch.tensor(targets.astype(precision if is_value else "int64")).reshape(len(inputs), -1)
    optimizer = OPTIMIZERS[optimizer_name](learned)
    schedule = (torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 5, eta_min=0.0005)
                if optimizer_name == "cosine" else None)
    network = Network(spec, parameters, near, side)
    for step in run["steps"]:
        optimizer.zero_grad()
        loss = loss_of(spec, network(inputs[step["records"]]), targets[step["records"]])
        assert nudge or step["loss"] == pytest.approx(loss.item(), rel=2e-3, abs=1e-5)
        loss.backward()
        for value in learned if nudge else []:
            value.grad += nudge * value.grad.abs().max() * (value.grad != 0)
        if optimizer_name == "clipped":
            torch.nn.utils.clip_grad_norm_(learned, 0.1)
        optimizer.step()
        if schedule:
            schedule.step()
    return parameters, network.seen


@pytest.mark.skipif(torch is None, reason="torch is not installed")
@pytest.mark.parametrize("model,optimizer,kernels", cases())
def test_a_model_ends_where_torch_does(model, optimizer, kernels, tmp_path):
    command = [BUILD / "model_reference", model, optimizer, kernels, str(STEPS_OF.get(model, STEPS)), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 7:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    expected, seen = replay(run, tmp_path, optimizer, "float64")
    single, seen_single = replay(run, tmp_path, optimizer, "float32")
    near = [2 * (exact - rounded.double()).abs().max() for exact, rounded in zip(seen, seen_single)]
    sides = [replay(run, tmp_path, optimizer, "float64", near, side)[0] for side in (1, -1)]
    nudges = [replay(run, tmp_path, optimizer, "float64", nudge=way * NUDGE_OF[optimizer])[0]
              for way in (1, -1) if optimizer in NUDGE_OF]
    before = read_safetensors(tmp_path / "before.safetensors")
    after = read_safetensors(tmp_path / "after.safetensors")
    for name, value in expected.items():
        value = value.detach()
        largest = (value - before[name]).abs().max().item()
        rounding = (single[name].detach().double() - value).abs().max().item()
        kinks = max((side[name].detach() - value).abs().max().item() for side in sides)
        nudged = sum((one[name].detach() - value).abs() for one in nudges)
        off = (after[name] - value).abs() - nudged
        worst = off.max().item()
        assert worst <= BOUND * largest + 4 * rounding + kinks + 1e-7, \
            f"{name}: off by {worst:g} of {largest:g}, torch by {rounding:g}, kinks by {kinks:g}"
