"""The plateau of your data: the rank that any head of your inputs tends to, without a sweep."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from headwise.attention.masks import EVERYTHING, Mask
from headwise.errors import BadInputError
from headwise.randomness import stream
from headwise.shapes import Float, Int
from headwise.spectra import Estimate, count
from headwise.theory.ensembles import Ensemble, PlateauHead, WideHead
from headwise.theory.montecarlo import hardmax_choices, simulate_ratio
from headwise.theory.sizes import Whole, whole


def plateau_ratio(
    inputs: Float[Tensor, "n d"],
    draws: Whole = 32,
    seed: int = 0,
    *,
    rows: Literal["independent", "joint"] = "independent",
    mask: Mask = EVERYTHING,
) -> Estimate:
    """Hardmax rank over n when every row of scores is N(0, X·Xᵀ), on the device of the inputs X.

    ``independent`` rows are equations 66–72 of the rank paper. Rows of one head share its weights,
    so those of similar inputs pick alike: ``joint`` rows are X·G·Xᵀ with one Gaussian G, what
    d_h → ∞ leaves of a head. For orthonormal inputs both are the barrier, and (n + 1) / 2n under a
    causal mask.

    >>> found = plateau_ratio(torch.eye(100).double(), draws=100)
    >>> abs(found.mean - 0.634) < 4 * found.stderr
    True
    """
    if not bool(torch.isfinite(inputs).all()) or inputs.numel() == 0:
        raise BadInputError(
            f"the inputs of shape {tuple(inputs.shape)} are empty or not finite",
            hint="pass one row of finite numbers per token",
        )
    head = PlateauHead(inputs) if rows == "independent" else WideHead(inputs)
    return simulate_ratio(head, draws, seed, mask=mask)


def concatenated_rank(choices: Int[Tensor, "heads n"]) -> int:
    """The rank of the hardmax matrices of several heads set side by side."""
    heads, n = choices.shape
    columns = choices + torch.arange(heads, device=choices.device).unsqueeze(-1) * n
    used, place = torch.unique(columns, return_inverse=True)
    matrix = torch.zeros(n, len(used), dtype=torch.float64, device=choices.device)
    matrix.scatter_(1, place.mT, 1.0)
    return int(count(matrix))


def concatenated_ratio(
    ensemble: Ensemble, heads: Whole, draws: Whole = 16, seed: int = 0
) -> Estimate:
    """Rank over n of several independent hardmax heads set side by side.

    At most min(1, heads · barrier), less a shared all-ones direction per extra head.

    >>> from headwise.theory.ensembles import IndependentHead
    >>> concatenated_ratio(IndependentHead(40, 8), heads=2, draws=8).mean > 0.6
    True
    """
    h, times = whole("the number of heads", heads), whole("the number of draws", draws, 2)
    generator, n = stream(seed, "concatenated", device=ensemble.device), ensemble.length
    found = []
    for _ in range(times):
        queries, keys = ensemble.draw(h, generator)
        found.append(concatenated_rank(hardmax_choices(queries[:, :n], keys)) / n)
    return Estimate.of(torch.tensor(found, dtype=torch.float64))
