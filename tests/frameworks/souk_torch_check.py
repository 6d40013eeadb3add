"""What souk.torch says of mistakes; a world of one rank."""
import warnings

import torch

import souk
import souk.torch as distributed

model = torch.nn.Linear(4, 1)
x = torch.randn(8, 4)


def optimizer_of(**settings):
    return distributed.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.01), model, **settings)


def assert_told(kind, words, call, **more):
    try:
        call(**more)
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"nobody said {words!r}")


distributed.init()
assert_told(souk.SoukError, "policy auto needs the loss of each step: say reports_loss=True, and with souk.torch step(loss=loss)",
            optimizer_of, sync="auto")
optimizer = optimizer_of(sync="auto", reports_loss=True)
loss = model(x).square().mean()
loss.backward()
assert_told(ValueError, "step(loss=loss)", optimizer.step)
optimizer.step(loss=loss)
optimizer.step(lambda: loss)  # a closure tells it by itself
optimizer.finish()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    optimizer.step(loss=loss)
assert len(told) == 1 and "step() after finish()" in str(told[0].message), told
