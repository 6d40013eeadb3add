"""Gymnasium's own checks of souk.gym, then a run: python gym_check.py PROGRAM."""
import sys
import warnings

import gymnasium.utils.env_checker
import numpy

import souk
import souk.gym

program = sys.argv[1]
warnings.simplefilter("error")  # what the checker only warns of fails here

with_noise = souk.gym.SirenEnv(world=7, noise=True, program=program)
gymnasium.utils.env_checker.check_env(with_noise, skip_render_check=True)
with_noise.close()


def run(env, seed):
    observation, info = env.reset(seed=seed)
    rewards, terminated, truncated = 0.0, False, False
    while not (terminated or truncated):
        assert env.observation_space.contains(observation), observation
        many = observation[1] > 0.4  # early, by the way that is left
        observation, reward, terminated, truncated, info = env.step(numpy.array([0.75 if many else 0.4, 0.1]))
        rewards += reward
    return rewards, info


env = souk.gym.SirenEnv(world=7, budget=300, noise=True, program=program)
first, again, other = run(env, 3), run(env, 3), run(env, 4)
assert first == again and first != other
assert first[1]["spent"] <= 300
assert first[0] > 50 and first[1]["loss"] <= 1 / 30, first  # the target was reached: 100, less the time
try:
    env.step(numpy.array([0.0, 0.0]))
    raise SystemExit("a step after the end was taken")
except souk.Invalid as reason:
    assert "reset first" in str(reason)
env.close()
try:
    env.reset()
    raise SystemExit("a closed environment answered")
except souk.Unavailable:
    pass
trained = souk.gym.SirenEnv(world=7, mode="sgd", program=program)
gymnasium.utils.env_checker.check_env(trained, skip_render_check=True)
trained.reset(seed=1)
losses = [trained.step(numpy.array([-0.6, 0.0]))[4]["loss"] for _ in range(3)]
assert losses[2] < losses[0] < 2, losses
trained.close()
print("gymnasium is content")
