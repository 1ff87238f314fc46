"""What a head looks like: its singular values, and its attention matrix made small."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

#: Blocks along each side of a pattern, and singular values of a spectrum, at most.
BLOCKS, VALUES = 48, 96


def head_picture(matrix: Tensor, values: Tensor) -> dict[str, Any]:
    """Return the spectrum and the pattern of one attention matrix, as plain numbers.

    Args:
        matrix: The attention matrix (n, m); its rows sum to one.
        values: Its singular values, the largest first.

    Returns:
        ``places`` and ``spectrum``: some singular values with their places from 1, close together
        at the start. ``pattern``: for each block of queries, the share of its attention that goes
        to each block of keys. ``tokens``: the number of queries and keys.

    Example:
        >>> found = head_picture(torch.eye(4), torch.ones(4))
        >>> found["pattern"][0], found["places"]
        ([1.0, 0.0, 0.0, 0.0], [1, 2, 3, 4])
    """
    places = _places(len(values))
    shown = values[[place - 1 for place in places]].tolist()
    return {
        "places": places,
        "spectrum": [float(f"{value:.4g}") for value in shown],
        "pattern": _blocks(matrix).double().round(decimals=3).tolist(),
        "tokens": list(matrix.shape),
    }


def _places(count: int) -> list[int]:
    steps = torch.logspace(0, torch.log10(torch.tensor(float(max(count, 1)))), VALUES)
    return sorted({min(count, round(step)) for step in steps.tolist()}) if count else []


def _blocks(matrix: Tensor) -> Tensor:
    """Sum over keys and average over queries within blocks of nearly equal size."""
    queries, keys = (_block_of(size) for size in matrix.shape)
    summed = matrix.new_zeros(int(queries[-1]) + 1, int(keys[-1]) + 1)
    cells = queries[:, None] * summed.shape[1] + keys
    summed.view(-1).scatter_add_(0, cells.flatten(), matrix.flatten())
    return summed / torch.bincount(queries)[:, None]


def _block_of(size: int) -> Tensor:
    return torch.arange(size) * min(size, BLOCKS) // size
