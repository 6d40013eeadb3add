"""The world of Siren's scheduling as an environment of Gymnasium:

    import souk.gym

    env = souk.gym.SirenEnv(world=7, budget=300)
    observation, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

A step is an epoch. The action has two numbers from -1 to 1: the logarithm of the number of functions, from 1 to the
most there are, and the memory of each, from the least to the most. The observation is Siren's state: the epoch, the
way left, the times of the last epoch and of its parts, the use of memory and CPU, what is left of the budget. The
world's constants, which `world` draws, stay hidden; `seed` draws the noise. With `mode="sgd"` an epoch trains a small
model, of which `seed` draws the first one and the order of records. `souk sim siren --serve` does the work.
"""
# Types are checked where the framework is not installed, too, and all that is its own is Any then.
# mypy: disable-error-code="import-not-found,import-untyped,misc,no-any-return,unused-ignore"
from __future__ import annotations

import json
import math
import subprocess
from typing import Any

import gymnasium
import numpy

from .errors import Invalid, Unavailable

__all__ = ["SirenEnv"]

INPUTS = 9


class SirenEnv(gymnasium.Env):
    """One run is one episode; see the module's words."""

    metadata = {"render_modes": []}

    def __init__(self, world: int = 1, budget: float = 300, mode: str = "floor", noise: bool = False,
                 typical: bool = False, program: str = "souk") -> None:
        asked = [program, "sim", "siren", "--serve", "--mode", mode, "--budget", f"{budget:g}"]
        asked += ["--noise"] if noise else []
        asked += ["--typical"] if typical else []
        self._world = world
        self._space: dict[str, int] = {}
        self._process = subprocess.Popen(asked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.action_space = gymnasium.spaces.Box(-1, 1, (2,), numpy.float32)
        self.observation_space = gymnasium.spaces.Box(-1, 20, (INPUTS,), numpy.float64)

    def _ask(self, **request: Any) -> dict[str, Any]:
        if self._process.stdin is None or self._process.stdout is None:
            raise Unavailable("the simulator was closed")
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as reason:
            raise Unavailable("the simulator has ended") from reason
        line = self._process.stdout.readline()
        if not line:
            raise Unavailable("the simulator has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise Invalid(answer["error"])
        return answer

    @staticmethod
    def _seen(answer: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        observation = numpy.clip(numpy.array(answer["observation"], numpy.float64), -1, 20)
        return observation, {name: answer[name] for name in ("epoch", "loss", "elapsed_s", "spent")}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        answer = self._ask(command="reset", seed=self._world, episode=int(self.np_random.integers(1 << 32)))
        self._space = {name: answer[name] for name in ("functions_max", "memory_min_mb", "memory_step_mb",
                                                       "memory_max_mb")}
        return self._seen(answer)

    def choice(self, action: Any) -> dict[str, int]:
        """Functions and memory that an action means; after the first reset."""
        space = self._space
        share = (numpy.clip(numpy.asarray(action, numpy.float64), -1, 1) + 1) / 2
        levels = (space["memory_max_mb"] - space["memory_min_mb"]) // space["memory_step_mb"]
        return {"functions": round(math.exp(float(share[0]) * math.log(space["functions_max"]))),
                "memory_mb": space["memory_min_mb"] + round(float(share[1]) * levels) * space["memory_step_mb"]}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        if not self._space:
            raise Invalid("reset first")
        answer = self._ask(command="step", **self.choice(action))
        observation, info = self._seen(answer)
        return observation, float(answer["reward"]), answer["terminated"], answer["truncated"], info

    def close(self) -> None:
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
