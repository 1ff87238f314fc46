"""What can be had without attention: the best answer linear in the token and the token mean."""

from __future__ import annotations

import torch

from headwise.data.neighbours import FarthestNeighbour
from headwise.data.points import UNIFORM, Points
from headwise.randomness import stream


def trivial_error(
    width: int,
    tokens: int,
    points: Points = UNIFORM,
    *,
    sequences: int = 4096,
    seed: int = 0,
) -> float:
    """The least mean squared error of a·x_i + b·mean(x) for the farthest neighbour.

    Both numbers a and b are fitted by least squares on the same sequences; with two unknowns and
    tokens·width·sequences equations nothing is gained by that.

    >>> round(trivial_error(64, 4), 2)
    0.66
    """
    task = FarthestNeighbour(width, tokens, points)
    batch = task.examine(sequences, stream(seed, "trivial baseline"))
    x, label = (t.double() for t in (*batch.inputs, *batch.targets))
    mean = x.mean(-2, keepdim=True).expand_as(x)
    features = torch.stack([x.flatten(), mean.flatten()])
    gram, against = features @ features.T, features @ label.flatten()
    explained = against @ torch.linalg.solve(gram, against)
    return float((label.flatten() @ label.flatten() - explained) / x.shape[:-1].numel())
