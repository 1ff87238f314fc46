"""Every number of one head on one sequence, from its queries, keys and values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from headwise.attention.grid import Grid
from headwise.attention.masks import Additive
from headwise.attention.view import AttentionMaps, AttentionView
from headwise.probing.pictures import head_picture
from headwise.spectra import LogWeights, measure
from headwise.spectra.measuring import hardmax_rank
from headwise.spectra.ranks import numerical_rank
from headwise.spectra.sources import neglected_couplings, softmax_matrix

#: A trained head is nearly always full at 1e-8. Dropping every singular value below 1e-2 changes
#: the output A·V by at most 1 % of ‖V‖₂, about what bfloat16 (2⁻⁸) rounds away.
COARSE = 1e-2

#: How far a matrix of lower rank may be from the output A·V, as a share of its Frobenius norm.
OUTPUT_SHARE = 1e-2

#: How far logits of lower rank may be from the logits, in root mean square. A row of weights then
#: moves by about half the square of this in nats.
LOGIT_CHANGE = 0.1

Numbers = dict[str, float | None]


@dataclass(frozen=True)
class HeadNumbers:
    """The numbers of one head on one sequence, by the names of ``HeadRow``'s fields.

    ``picture`` is empty for sequences so long that the matrix is not formed.
    """

    values: Numbers
    excluded: int = 0
    method: str = "dense"
    picture: dict[str, Any] = field(default_factory=dict)


def head_numbers(view: AttentionView | AttentionMaps) -> HeadNumbers:
    """Measure one head on one sequence; the view holds one matrix.

    Args:
        view: A view without padding, (1, 1, n, m).

    Returns:
        The numbers, and how many query rows that attend to nothing were left out.
    """
    if isinstance(view, AttentionMaps):
        return _of_maps(view)
    view, excluded = without_masked_rows(view)
    exact = replace(view, queries=view.queries.double(), keys=view.keys.double())
    logits = replace(exact, sinks=None).logits()
    matrix = softmax_matrix(logits) if view.sinks is None else exact.matrix()
    numbers, spectrum = (
        _of_spectrum(logits, view)
        if view.sinks is None
        else _of_spectrum(matrix, view, exact.matrix_error())
    )
    numbers |= {
        "hardmax_rank": float(hardmax_rank(logits)),
        "logit_scale": _deviation(logits.values),
        "output_rank": output_rank(matrix[0, 0], view.values),
    }
    picture = head_picture(matrix[0, 0].cpu(), spectrum)
    return HeadNumbers(numbers | pair_numbers(view), excluded, picture=picture)


def without_masked_rows(view: AttentionView) -> tuple[AttentionView, int]:
    """Return the view without query rows that may attend to nothing, and how many those are."""
    if not view.mask.has_tensor:  # rules by position leave every query a key
        return view, 0
    grid = Grid.whole(view.shape, view.queries.device)
    rows = view.mask.allowed(grid).expand(grid.shape)[0, 0].any(-1)
    if bool(rows.all()):
        return view, 0
    zeros = torch.zeros(grid.shape[-2:], dtype=torch.float64, device=grid.device)
    kept = view.mask.apply(zeros.expand(grid.shape), grid)[:, :, rows]
    return replace(view, queries=view.queries[:, :, rows], mask=Additive(kept)), int((~rows).sum())


def pair_numbers(view: AttentionView) -> Numbers:
    """Return what queries and keys say without the matrix: n·d² operations.

    The singular values of Q Kᵀ / T are those of the small R_Q R_Kᵀ / T. A constant vector added to
    all keys adds a constant to each row of logits, so the keys are centred where softmax follows.
    """
    queries, keys = view.queries[0, 0].double(), view.keys[0, 0].double()
    left = _triangle(queries) / view.temperature
    whole = torch.linalg.svdvals(left @ _triangle(keys).mT)
    centred = torch.linalg.svdvals(left @ _triangle(keys - keys.mean(0)).mT)
    pairs = len(queries) * len(keys)
    dropped = centred.square().flip(0).cumsum(0).flip(0) / pairs
    needed = int((dropped > LOGIT_CHANGE**2).sum())
    return {"logit_rank": float(rank_in(whole, view.dtype, pairs)), "query_key_rank": float(needed)}


def rank_in(values: Tensor, dtype: torch.dtype, pairs: int) -> int:
    """Count the singular values that a product in this dtype can tell from zero."""
    floor = math.sqrt(pairs) * torch.finfo(dtype).eps * float(values[0])
    return int((values > floor).sum())


def output_rank(matrix: Tensor, values: Tensor | None) -> float | None:
    """Return the least k for which a matrix of rank k is within 1 % of A·V."""
    if values is None:
        return None
    return output_rank_of(matrix @ values[0, 0].double())


def output_rank_of(mixed: Tensor) -> float:
    """Return the least k for which a matrix of rank k is within 1 % of this one."""
    return float(_rank_to_share(torch.linalg.eigvalsh(mixed.mT @ mixed)))


def form_ranks(view: AttentionView) -> list[int | None]:
    """Return the numerical rank of each head's W_QᵀW_K, where that is one matrix."""
    heads = view.shape[1]
    if not view.has_one_form or view.weights is None:
        return [None] * heads
    group = heads // view.weights.key.shape[0]
    found: list[int | None] = []
    for head in range(heads):
        query, key = view.weights.query[head], view.weights.key[head // group]
        triangles = _triangle(query.mT.double()), _triangle(key.mT.double())
        values = torch.linalg.svdvals(triangles[0] @ triangles[1].mT)
        found.append(rank_in(values, view.dtype, query.shape[-1] ** 2))
    return found


@lru_cache(maxsize=64)
def law_rank(tokens: int, head_dim: int, mask: str) -> float | None:
    """Return the expected hardmax rank of a random head of this size; None for other masks."""
    from headwise.theory import expected_rank

    if mask not in ("none", "causal") or tokens < 2:
        return None
    return tokens * expected_rank(tokens, head_dim, mask, method="instant").ratio  # type: ignore[arg-type]


def _of_spectrum(
    source: LogWeights | Tensor, view: Any, error: Tensor | None = None
) -> tuple[Numbers, Tensor]:
    """Return the numbers that singular values give, and these values.

    ``error`` bounds the distance of the matrix from the one that is meant.
    """
    found = measure(source, tolerance=view.tolerance)
    rank = found.rank
    off = torch.as_tensor(found.spectrum.error).to(found.epsilon)
    if error is not None:
        off = off + error.to(off)
        rank = numerical_rank(
            found.spectrum, found.epsilon, off + neglected_couplings(found.epsilon)
        )
    level = torch.full_like(found.epsilon, COARSE)
    coarse = numerical_rank(found.spectrum, level, off + neglected_couplings(level))
    numbers: Numbers = {
        "coarse_rank": float((coarse.low + coarse.high).sum()) / 2,
        "rank_low": float(rank.low.sum()),
        "rank_high": float(rank.high.sum()),
        "effective_rank": float(found.effective_rank.sum()),
        "effective_rank_error": 0.0,
        "stable_rank": float(found.stable_rank.sum()),
        "energy_90": float(found.energy_rank(0.9).sum()),
        "tokens": float(min(view.shape[-2:])),
    }
    return numbers, found.spectrum.values.flatten().cpu()


def _of_maps(view: AttentionMaps) -> HeadNumbers:
    winners = view.maps[0, 0].argmax(-1)
    unknown = ("logit_scale", "output_rank", "logit_rank", "query_key_rank")
    numbers, spectrum = _of_spectrum(view.source(), view)
    numbers |= {"hardmax_rank": float(len(winners.unique())), **dict.fromkeys(unknown)}
    picture = head_picture(view.maps[0, 0].double().cpu(), spectrum)
    return HeadNumbers(numbers, picture=picture)


def _triangle(tall: Tensor) -> Tensor:
    """Return R of QR: R_Q R_Kᵀ has the singular values of Q Kᵀ."""
    return torch.linalg.qr(tall, mode="r").R


def _rank_to_share(squares: Tensor) -> int:
    """Return the least k for which all but the k largest squares sum to 1 % squared of all."""
    behind = squares.clamp(min=0).cumsum(0)
    return int((behind > OUTPUT_SHARE**2 * behind[-1]).sum())


def _deviation(logits: Tensor) -> float:
    """Return the standard deviation of the logits that are not masked."""
    seen = logits.isfinite()
    several = int(seen.sum())
    if several < 2:
        return 0.0
    shown = torch.where(seen, logits, 0.0)
    shown = torch.where(seen, shown - shown.sum() / several, 0.0)
    return math.sqrt(float(shown.square().sum()) / (several - 1))
