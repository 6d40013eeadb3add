"""Whether samples taken over time grow: Theil and Sen's line, the median of the slopes of all pairs, which a few samples
that lie apart do not turn."""
import itertools
import statistics


def slope(samples):
    """Of (seconds, value) pairs, in values a second; 0 where there is no pair to tell."""
    slopes = [(later - earlier) / (at - before) for (before, earlier), (at, later) in itertools.combinations(samples, 2)
              if at > before]
    return statistics.median(slopes) if slopes else 0.0


def growth(samples):
    """By that line, from the first sample to the last."""
    return slope(samples) * (samples[-1][0] - samples[0][0]) if samples else 0.0


def noise(samples):
    """How far a sample lies from the line, as a rule: a growth below that is none."""
    line = slope(samples)
    rests = [value - line * at for at, value in samples]
    middle = statistics.median(rests)
    return statistics.median(abs(rest - middle) for rest in rests)
