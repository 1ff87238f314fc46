"""Compute logits from queries and keys, and the softmax or hardmax matrix from logits.

Queries are (..., n, r), keys (..., m, r) with the same leading dimensions; results are
(..., n, m) in float64. The logits come with a bound on their rounding, row by row, so that a
rank counted from them can be certified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.attention.grid import Grid
from headwise.attention.mask_arguments import MaskLike, given_mask
from headwise.attention.masks import EVERYTHING, Additive, Both, Everything, Mask
from headwise.checks import positive
from headwise.errors import BadInputError, ParameterError
from headwise.shapes import Float, Int
from headwise.spectra import LogWeights
from headwise.spectra.measuring import first_within
from headwise.spectra.sources import as_matrices, is_flushing, refuse_not_finite, unit_roundoff

#: Half covers the rounding of two inner products, half the rounding of the keys.
_SAFETY = 4


#: Norms above this and below its inverse are far from where squares underflow or overflow.
_PLAIN = 1e-140


@dataclass(frozen=True, eq=False)
class Ties:
    """How far below a winning score another may be and still be a tie.

    Equal keys have equal norms, so the winner's norm is enough. In 16 bits the rounding would cover
    much that is not equal: there only equal scores are ties.
    """

    slack: Float[Tensor, "*batch n"]
    sizes: Float[Tensor, "*batch m"]
    dtype: torch.dtype

    @classmethod
    def of(cls, queries: Tensor, keys: Tensor) -> Ties:
        """Make the ties of the scores q·k, computed in the dtype of queries and keys."""
        sizes, dtype = _sizes(keys), queries.dtype
        if dtype not in (torch.float64, torch.float32):
            return cls(queries.new_zeros(queries.shape[:-1]), sizes, dtype)
        relative = (queries.shape[-1] + 4) * unit_roundoff(dtype)
        return cls(_SAFETY * relative * _sizes(queries), sizes, dtype)

    def allowance(self, rows: slice, winners: Int[Tensor, "*batch r"]) -> Float[Tensor, "*batch r"]:
        """Return the tolerance of these rows; ``winners`` are the keys with the largest scores."""
        return (self.slack[..., rows] * self.sizes.gather(-1, winners)).to(self.dtype)


def first_best(queries: Tensor, keys: Tensor, scores: Tensor) -> Int[Tensor, "*batch n"]:
    """Return the column of each row's largest score, the first of ties; scores may be masked."""
    top, winner = scores.max(-1)
    whole = slice(0, scores.shape[-2])
    return first_within(scores, top, Ties.of(queries, keys).allowance(whole, winner))


def default_temperature(rank: int) -> float:
    """Return √d_h, the usual divisor of the logits.

    Args:
        rank: The head dimension d_h.

    Returns:
        The number that logits q·k are divided by.

    Example:
        >>> default_temperature(64)
        8.0
    """
    return math.sqrt(rank)


def logits(
    queries: Tensor,
    keys: Tensor,
    *,
    temperature: float | None = None,
    mask: MaskLike = EVERYTHING,
    softcap: float | None = None,
) -> LogWeights:
    """Return q·k / T with the mask applied, in float64.

    Args:
        queries: (..., n, d_h).
        keys: (..., m, d_h).
        temperature: T, the whole divisor; √d_h by default.
        mask: A mask, its name or a tensor; see ``as_mask``.
        softcap: If given, logits l become c·tanh(l/c) before the mask, as in Gemma 2.

    Returns:
        The logits. Their error bounds the float64 rounding of each row and, for queries or keys
        in another dtype, what rounding them to that dtype can hide.

    Raises:
        BadInputError: Shapes do not fit, or a row masks every key.
        ParameterError: The temperature or the softcap is not a positive number.

    Example:
        >>> logits(torch.ones(1, 4), torch.ones(2, 4), temperature=2.0).values
        tensor([[2., 2.]], dtype=torch.float64)
    """
    queries, keys = checked_pair(queries, keys)
    temperature = checked_temperature(temperature, queries.shape[-1])
    scaled = _divided(queries.double() @ keys.double().mT, temperature)
    mask = given_mask(mask)
    if isinstance(mask, Everything) and softcap is None:
        # Without mask and bias this saves three passes over the logits.
        return LogWeights(scaled, error=product_error(queries, keys, temperature))
    bend = 0.0
    if softcap is not None:
        softcap = positive("`softcap`", softcap, example=50.0)
        scaled = softcap * torch.tanh(scaled / softcap)
        # tanh has slope at most one; division, tanh and product round four times at most.
        bend = 4 * unit_roundoff(torch.float64) * softcap
    grid = Grid.whole(scaled.shape, scaled.device)
    values = mask.apply(scaled, grid)
    refuse_masked_rows(values.amax(-1))
    rounded = unit_roundoff(torch.float64) * _added(mask, scaled, grid)
    error = product_error(queries, keys, temperature) + rounded + bend
    return LogWeights(values, error=error)


def masked(weights: LogWeights, mask: MaskLike) -> LogWeights:
    """Apply a mask to logits, with a bound on the rounding of what it adds."""
    exact, rule = weights.values.double(), given_mask(mask)
    grid = Grid.whole(exact.shape, exact.device)
    values = rule.apply(exact, grid)
    refuse_masked_rows(values.amax(-1))
    if not _adds(rule):
        return LogWeights(values.to(weights.dtype), weights.error)
    u, tiny = _storage(weights.dtype)
    stored = u / (1 - u) * _reach(exact, exact.isfinite()) + tiny
    rounded = unit_roundoff(torch.float64) * _added(rule, exact, grid)
    return LogWeights(values, weights.row_error + stored + rounded)


def _reach(values: Tensor, meant: Tensor) -> Tensor:
    """Return the largest of the numbers of each row that are meant, without its sign."""
    return torch.where(meant, values.abs(), 0.0).amax(-1)


def _adds(mask: Mask) -> bool:
    """Whether a mask adds other numbers than zero and minus infinity, or may do so."""
    if isinstance(mask, Both):
        return _adds(mask.first) or _adds(mask.second)
    if isinstance(mask, Additive):
        return bool(((mask.bias != 0) & (mask.bias > torch.finfo(mask.bias.dtype).min)).any())
    # A mask of the caller's own may add once.
    return type(mask).apply not in (Mask.apply, Everything.apply)


def _added(mask: Mask, values: Tensor, grid: Grid) -> Tensor:
    """Return, for each row, the sum of the largest numbers that adding each bias rounds."""
    if isinstance(mask, Both):
        between = mask.first.apply(values, grid)
        return _added(mask.first, values, grid) + _added(mask.second, between, grid)
    if not _adds(mask):
        return values.new_zeros(values.shape[:-1])
    # A sum that overflows is meant to be a number, so the bound becomes infinite.
    return _reach(mask.apply(values, grid), values.isfinite() & mask.allowed(grid))


def softmax_matrix(
    queries: Tensor,
    keys: Tensor,
    *,
    temperature: float | None = None,
    mask: MaskLike = EVERYTHING,
) -> Float[Tensor, "*batch n m"]:
    """Compute the attention matrix: the softmax of each row of logits, in float64.

    Args:
        queries: (..., n, d_h).
        keys: (..., m, d_h).
        temperature: T, the divisor of the logits; √d_h by default.
        mask: A mask, its name or a tensor; see ``as_mask``.

    Returns:
        The matrices, (..., n, m).

    Example:
        >>> softmax_matrix(torch.zeros(1, 3), torch.ones(2, 3))
        tensor([[0.5000, 0.5000]], dtype=torch.float64)
    """
    found = logits(queries, keys, temperature=temperature, mask=mask)
    return torch.softmax(found.values, dim=-1)


def hardmax_matrix(
    queries: Tensor,
    keys: Tensor,
    *,
    mask: MaskLike = EVERYTHING,
) -> Float[Tensor, "*batch n m"]:
    """Compute the attention matrix at zero temperature: a one at the largest logit of each row.

    Logits that rounding does not separate are ties; the first column wins.

    Args:
        queries: (..., n, d_h).
        keys: (..., m, d_h).
        mask: A mask, its name or a tensor; see ``as_mask``.

    Returns:
        The matrices, (..., n, m).

    Example:
        >>> hardmax_matrix(torch.ones(1, 2), torch.tensor([[0.0, 1.0], [2.0, 2.0]]))
        tensor([[0., 1.]], dtype=torch.float64)
    """
    found = logits(queries, keys, temperature=1.0, mask=mask).values
    refuse_overflow(found.amax(-1), found.dtype)
    chosen = first_best(queries.double(), keys.double(), found).unsqueeze(-1)
    return torch.zeros_like(found).scatter_(-1, chosen, 1.0)


def product_error(queries: Tensor, keys: Tensor, temperature: float) -> Tensor:
    """Return a bound on the error of each row of q·k/T: γ_{d+4} ‖q_i‖ max_j ‖k_j‖ / T.

    It covers the inner product, the division and the norms themselves, and for each of them the
    numbers below the smallest normal one, which lose their digits or become zero. It is infinite
    where a product or its quotient may overflow: −∞ would look like a masked key.
    """
    size, tiny = queries.shape[-1] + 4, torch.finfo(torch.float64).smallest_normal
    q_norm, k_norm = _norms(queries), _norms(keys).amax(-1, keepdim=True)
    relative = size * unit_roundoff(torch.float64)
    # No sum of a product is larger, with its rounding.
    largest = (1 + 2 * relative) * q_norm * k_norm
    # Where tiny numbers are flushed, each product and each sum may lose one.
    absolute = _hidden(queries, keys, q_norm, k_norm) + 2 * size * tiny
    rounding = relative / (1 - relative) * _divided(largest, temperature)
    return rounding + _divided(absolute, temperature)


def _divided(values: Tensor, temperature: float) -> Tensor:
    """Return the values divided in place by the temperature, with one rounding on every device.

    A GPU multiplies by the inverse of a Python number, and that of 2^-1074 is infinite.
    """
    return values.div_(torch.full((), temperature, dtype=values.dtype, device=values.device))


def _norms(rows: Tensor) -> Tensor:
    """Return a bound on the norm of each row that squares beyond either end do not spoil."""
    exact, tiny = rows.double(), torch.finfo(torch.float64).smallest_normal
    norms = torch.linalg.vector_norm(exact, dim=-1)
    # Asking a GPU would mean waiting for it, and there a second pass costs next to nothing.
    if norms.device.type == "cpu" and bool(((norms > _PLAIN) & (norms < 1 / _PLAIN)).all()):
        return norms
    return _sizes(exact) + tiny


def _sizes(rows: Tensor) -> Tensor:
    """Return the norm of each row in float64, also of numbers whose squares leave its range."""
    if rows.dtype != torch.float64:
        return torch.linalg.vector_norm(rows, dim=-1, dtype=torch.float64)
    # Divided by the largest number of its row, no square overflows, and squares that underflow are
    # far below the rounding of the sum.
    largest = rows.abs().amax(-1, keepdim=True).clamp(min=torch.finfo(rows.dtype).smallest_normal)
    return largest.squeeze(-1) * torch.linalg.vector_norm(rows / largest, dim=-1)


def _hidden(queries: Tensor, keys: Tensor, q_norm: Tensor, k_norm: Tensor) -> Tensor:
    """Bound what the dtypes of q and k can hide of q·k: a stored x̂ = x(1+e) with |e| ≤ u."""
    q_u, q_tiny = _storage(queries.dtype)
    k_u, k_tiny = _storage(keys.dtype)
    relative = 1 / ((1 - q_u) * (1 - k_u)) - 1
    root = math.sqrt(queries.shape[-1])
    return relative * q_norm * k_norm + 2 * root * (
        q_tiny * k_norm + k_tiny * q_norm + root * q_tiny * k_tiny
    )


def _storage(dtype: torch.dtype) -> tuple[float, float]:
    """Return the unit roundoff and the largest number lost to underflow; float64 is exact."""
    tiny = torch.finfo(dtype).smallest_normal
    if dtype == torch.float64:
        return 0.0, tiny if is_flushing() else 0.0
    return unit_roundoff(dtype), tiny


def checked_pair(queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """Return queries and keys, or raise if they do not fit each other or are not finite."""
    queries, keys = as_matrices(queries, "the query tensor"), as_matrices(keys, "the key tensor")
    if queries.shape[-1] != keys.shape[-1]:
        raise BadInputError(
            f"queries have {queries.shape[-1]} dimensions per head, keys {keys.shape[-1]}",
            hint="both need the same last dimension: (..., tokens, head dimension)",
        )
    if queries.shape[:-2] != keys.shape[:-2]:
        raise BadInputError(
            f"queries have batch shape {tuple(queries.shape[:-2])}, keys {tuple(keys.shape[:-2])}",
            hint="make them equal; keys of grouped heads: keys.repeat_interleave(group, dim=-3)",
        )
    for name, tensor in (("the query tensor", queries), ("the key tensor", keys)):
        # A number that is not finite makes the sum so; but a finite sum can also overflow.
        if not torch.isfinite(tensor.sum(dtype=torch.float64)):
            refuse_not_finite(name, int((~tensor.isfinite().all(-1)).sum()))
    return queries, keys


def checked_temperature(temperature: float | None, rank: int) -> float:
    """Return the temperature, √d_h if None; raise if it is not positive."""
    if temperature is None:
        return default_temperature(rank)
    try:
        sound = math.isfinite(temperature) and temperature > 0
    except (TypeError, OverflowError):  # a text, or a whole number above every float
        sound = False
    if not sound:
        raise ParameterError(
            f"expected `temperature` above zero, got {temperature!r}",
            hint=f"pass for example {default_temperature(rank):.4g}, the root of the head "
            "dimension; for the limit of zero use hardmax",
        )
    return temperature


def refuse_overflow(row_maximum: Tensor, dtype: torch.dtype) -> None:
    """Raise if the largest score of some row is no number: then several may have overflowed."""
    lost = row_maximum.isnan() | (row_maximum == math.inf)
    if bool(lost.any()):
        wider = "" if dtype == torch.float64 else ", or pass float64"
        raise BadInputError(
            f"the scores q·k of {int(lost.sum())} queries overflow {str(dtype)[6:]}",
            hint=f"divide the queries by their largest number{wider}",
        )


def refuse_masked_rows(row_maximum: Tensor) -> None:
    """Raise if a whole row of logits, given by its maximum, is minus infinity."""
    masked = row_maximum == -math.inf
    if not bool(masked.any()):
        return
    *matrix, row = masked.nonzero()[0].tolist()
    where = f" of matrix {tuple(matrix)}" if matrix else ""
    raise BadInputError(
        f"row {row}{where} masks every key ({int(masked.sum())} such rows in all)",
        hint="drop those rows (padding), or let each attend to at least one key",
    )
