"""The error without attention: the best prediction that is linear in the token and the mean."""

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
    """Return the least mean squared error of a·x_i + b·mean(x) for the farthest neighbour.

    a and b are fitted by least squares on the same sequences that are tested; with two unknowns
    this makes no difference.

    Args:
        width: The dimension of the points.
        tokens: The number of points in a sequence.
        points: Where the points lie.
        sequences: The number of sequences.
        seed: The seed of the sequences.

    Returns:
        The squared length of the error, averaged over all points.

    Example:
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
