"""The score of the best constant prediction: what no model should fall behind."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

#: The class that torch's cross-entropy leaves out.
IGNORED = -100


def constant_error(labels: Tensor) -> float:
    """Return the error rate of always naming the most frequent class.

    >>> constant_error(torch.tensor([0, 0, 0, 1]))
    0.25
    """
    counts = labels.flatten().unique(return_counts=True)[1]
    return 1.0 - float(counts.max()) / float(counts.sum())


def constant_loss(targets: Sequence[Tensor]) -> float:
    """Return the loss of the best constant answer: cross-entropy, or squared error for numbers.

    >>> constant_loss([torch.tensor([0.0, 2.0]), torch.tensor([0.0, 2.0])])
    1.0
    """
    found = torch.cat([part.detach().cpu().flatten() for part in targets])
    if found.is_floating_point():
        return float(found.double().var(correction=0))
    counts = found[found != IGNORED].unique(return_counts=True)[1].double()
    shares = counts / counts.sum()
    return float(-(shares * shares.log()).sum())
