"""What can be measured: a matrix, or rows of log-weights whose softmax is the matrix.

Here are also all bounds on how far finite precision can move a singular value. It moves by at
most the spectral norm of the change (Weyl), which the Frobenius norm bounds. Rounding errors
that differ in sign add up like the square root of the size (Higham and Mary, SIAM J. Sci.
Comput. 41, 2019). Sums of equal terms round the same way each time and add up like the size
itself: on constant matrices LAPACK was seen to lose up to 0.72·n·u. The bound takes the larger
of 8√n·u and n·u; the tests check it against arithmetic with more digits.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.arrays import plain
from headwise.errors import BadInputError
from headwise.report.results import short_repr
from headwise.shapes import Float

#: The factor in front of √size · u.
SAFETY = 8.0

#: On a GPU the error of a decomposition counts this many times. cuSOLVER exceeds LAPACK's bound
#: on repeated singular values, and its own is not documented. What this leaves open is decomposed
#: again by LAPACK.
DEVICE_FACTOR = 1000.0

#: Without vectors LAPACK's dqds (dlasq2) neglects a coupling of up to 200 units of u, relative to
#: the singular values that it couples. Values were seen to move by 197; the factor of four is a
#: margin, not a proof.
NEGLECTED = 4 * 200.0

#: The smallest float64: rounding can add this however small the numbers are.
SMALLEST = 2.0**-1074

#: The smallest float64 with all its digits.
SMALLEST_NORMAL = 2.0**-1022

#: Where smaller numbers are turned into zero, the smallest ε that 10^10 of them cannot matter at.
SMALLEST_IF_FLUSHING = 1e-280


def unit_roundoff(dtype: torch.dtype) -> float:
    """Return half the distance from 1 to the next number of this dtype."""
    return torch.finfo(dtype).eps / 2


def roundings(size: int) -> float:
    """Return how many units of u a float64 factorisation of this size may lose."""
    return max(SAFETY * math.sqrt(size), float(size))


def factorisation_error(norm: Float[Tensor, "*batch"], size: int) -> Float[Tensor, "*batch"]:
    """Bound the effect of a float64 orthogonal factorisation of this size on singular values."""
    return roundings(size) * (unit_roundoff(torch.float64) * norm + SMALLEST)


def decomposition_error(
    norm: Float[Tensor, "*batch"], size: int, device: torch.device
) -> Float[Tensor, "*batch"]:
    """Bound the error of float64 singular values or eigenvalues as this device computes them."""
    factor = 1.0 if device.type == "cpu" else DEVICE_FACTOR
    return factor * factorisation_error(norm, size)


def neglected_couplings(epsilon: Float[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
    """Bound what the iteration of a decomposition adds to the error of values near ε."""
    return NEGLECTED * unit_roundoff(torch.float64) * epsilon


def is_flushing() -> bool:
    """Whether this thread turns float64 numbers below the smallest normal one into zero."""
    # torch.set_flush_denormal(True) does so, and so does some code compiled with -ffast-math.
    return SMALLEST_NORMAL * 0.5 == 0.0


def refuse_flushed(epsilon: float) -> None:
    """Raise if so many numbers are turned into zero that they could matter at ε."""
    if epsilon < SMALLEST_IF_FLUSHING and is_flushing():
        raise BadInputError(
            f"expected a tolerance of at least {SMALLEST_IF_FLUSHING:.0e} while the processor "
            f"turns numbers below {SMALLEST_NORMAL:.0e} into zero, got {epsilon:.3g}",
            hint="call torch.set_flush_denormal(False)",
        )


def storage_error(matrix: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch"]:
    """Bound what rounding each entry to the dtype of ``matrix`` can have hidden.

    A float64 matrix is taken as exact, unless tiny numbers are flushed. Any other dtype stands for
    every matrix that rounds to it, so the bound is u‖A‖_F plus what underflow can have removed.

    Returns:
        One bound per matrix, zero for float64 as it is.
    """
    if matrix.dtype == torch.float64 and not is_flushing():
        return torch.zeros(matrix.shape[:-2], dtype=torch.float64, device=matrix.device)
    info = torch.finfo(matrix.dtype)
    # Flush-to-zero hardware hides anything below the smallest normal number.
    underflow = info.smallest_normal * math.sqrt(matrix.shape[-2] * matrix.shape[-1])
    if matrix.dtype == torch.float64:
        return torch.full(matrix.shape[:-2], underflow, dtype=torch.float64, device=matrix.device)
    norm = torch.linalg.matrix_norm(matrix.double())
    return unit_roundoff(matrix.dtype) * norm + underflow


_AS_SET: AbstractContextManager[object] = nullcontext()


def made_on_cpu() -> AbstractContextManager[object]:
    """Let tensors that are made without a device be on the CPU, where counts and facts belong."""
    # Not torch.get_default_device, which takes four times as long.
    return _AS_SET if torch.empty(0).is_cpu else torch.device("cpu")


FLOATING = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True, eq=False)
class LogWeights:
    """Rows of log-weights. The matrix to measure is their row-wise softmax, taken in float64.

    Pass logits rather than a softmax: a softmax that was already rounded cannot be repaired.

    Args:
        values: The log-weights (..., n, m). Minus infinity stands for a masked entry.
        error: A bound on the error of each log-weight, for example because q·k was rounded: a
            number, or one per row.

    Raises:
        BadInputError: If the shapes do not fit, or an error is negative or NaN.

    Example:
        >>> LogWeights(torch.zeros(4, 4)).shape
        torch.Size([4, 4])
    """

    values: Tensor
    error: Tensor | float = 0.0

    __repr__ = short_repr

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", as_matrices(self.values, "the log-weights"))
        # Check a plain number on the CPU: a tensor on a GPU would have to be waited for.
        plain = not isinstance(self.error, Tensor)
        try:
            sound = bool(self.error >= 0 if plain else (self.row_error >= 0).all())  # type: ignore[operator]
        except (TypeError, ValueError, RuntimeError):  # a text, an array, another shape
            raise BadInputError(
                "expected the error of the log-weights to be a number, or a tensor with one per "
                f"row, {tuple(self.shape[:-1])}, got {_described(self.error)}",
                hint="pass 0.0 if the log-weights are exact",
            ) from None
        if not sound:
            raise BadInputError(
                "the error of the log-weights must not be negative or NaN",
                hint="pass a bound of zero or more",
            )
        if isinstance(self.error, Tensor) and self.error.requires_grad:
            object.__setattr__(self, "error", self.error.detach())

    @property
    def row_error(self) -> Tensor:
        """``error`` as one number per row."""
        error = torch.as_tensor(self.error, dtype=torch.float64, device=self.values.device)
        return error.expand(self.values.shape[:-1])

    @property
    def is_exact(self) -> bool:
        """Whether the log-weights are exact."""
        if self.dtype != torch.float64:
            return False
        return not (self.error.any() if isinstance(self.error, Tensor) else self.error)

    @property
    def shape(self) -> torch.Size:
        """The shape of the matrices, batch dimensions first."""
        return self.values.shape

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the log-weights."""
        return self.values.dtype


def _described(value: object) -> str:
    shape = getattr(value, "shape", None)
    return type(value).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")


Source = Tensor | np.ndarray | LogWeights


def as_matrices(values: Tensor | np.ndarray, name: str = "the matrix") -> Tensor:
    """Return ``values`` as floating matrices; whole numbers that float64 represents become it."""
    tensor = _from_whole(plain(values, name), name)
    if tensor.dtype not in FLOATING:
        raise BadInputError(
            f"{name} has dtype {_dtype_name(tensor.dtype)}",
            hint="pass float64 (or float32, bfloat16, float16)",
        )
    if tensor.ndim < 2:
        raise BadInputError(
            f"{name} has shape {tuple(tensor.shape)}",
            hint="pass at least two dimensions: (..., rows, columns)",
        )
    if tensor.numel() == 0:
        raise BadInputError(
            f"{name} is empty, shape {tuple(tensor.shape)}",
            hint="pass at least one row, one column and one matrix",
        )
    return tensor


def as_source(source: Source) -> Tensor | LogWeights:
    """Check the shape and dtype of a source."""
    return source if isinstance(source, LogWeights) else as_matrices(source)


def refuse_not_finite(name: str, bad: int) -> None:
    """Raise if ``bad`` rows hold NaN or an infinity."""
    if bad:
        raise BadInputError(
            f"{name} has NaN or infinity in {bad} row{'s' if bad > 1 else ''}",
            hint="look where they come from: a rank of such a matrix means nothing",
        )


def refuse_fully_masked(rows: int) -> None:
    """Raise if ``rows`` rows of log-weights are minus infinity throughout."""
    if rows:
        raise BadInputError(
            f"{rows} row{'s' if rows > 1 else ''} of the log-weights mask everything",
            hint="drop those rows (padding), or leave each row at least one finite entry",
        )


def _from_whole(tensor: Tensor, name: str) -> Tensor:
    """Return whole numbers and booleans as float64, anything else as it is."""
    if tensor.is_floating_point() or tensor.is_complex():
        return tensor
    found = tensor.double()
    # The largest float64 below 2⁶³, since larger ones have no int64 to compare with.
    back = found.clamp(max=float(2**63 - 1024)).to(tensor.dtype)
    if not torch.equal(back, tensor):
        raise BadInputError(
            f"{name} holds whole numbers above 2⁵³ that float64 would round",
            hint="pass float64 if the rounding does not matter",
        )
    return found


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


#: Relative error of one softmax weight in float64: difference, exponential and division, in units
#: of u. The rounding of the row's sum comes on top: see ``sum_rounding``.
WEIGHT_ROUNDINGS = 8.0


def softmax_matrix(source: LogWeights) -> Float[Tensor, "*batch n m"]:
    """Return the row-wise softmax in float64."""
    top = source.values.amax(-1, keepdim=True)
    refuse_bad_rows(top)
    return torch.softmax(source.values.double(), dim=-1)


def refuse_bad_rows(row_maximum: Tensor) -> None:
    """Raise on bad log-weights; NaN, +∞ and fully masked rows all show in the row maxima."""
    total = row_maximum.sum()
    if torch.isfinite(total):
        return
    refuse_not_finite(
        "the log-weights", int((row_maximum.isnan() | (row_maximum == math.inf)).sum())
    )
    refuse_fully_masked(int((row_maximum == -math.inf).sum()))


def softmax_rounding() -> float:
    """Return the error of each row of the float64 softmax, relative to its norm, without its sum.

    Differences of log-weights are rounded in proportion to their size, but a weight falls faster
    than that: 8u suffice for rows of a million columns.
    """
    return WEIGHT_ROUNDINGS * unit_roundoff(torch.float64)


def sum_rounding(columns: int) -> float:
    """Return by which share the rounding of its sum can scale a row of softmax weights.

    Equal weights round the same way each time, so this grows with their number. Scaling the rows of
    a matrix by 1 ± r moves each singular value by that share of itself (Ostrowski).
    """
    return (WEIGHT_ROUNDINGS + columns) * unit_roundoff(torch.float64)


def log_doubt(log_weights: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch n"]:
    """Return log Σ exp(x_j − max) without the largest entry: at least log(1 − its weight).

    It stays in logarithms, since a row may be one-hot to within e^{-1000}.
    """
    top, at = log_weights.max(-1, keepdim=True)
    others = log_weights.scatter(-1, at, -math.inf)
    return others.logsumexp(-1) - top.squeeze(-1)


def weights_error(
    source: LogWeights,
    row_norm: Float[Tensor, "*batch n"],
    row_log_doubt: Float[Tensor, "*batch n"],
    eta: Float[Tensor, "*batch n"],
) -> Float[Tensor, "*batch"]:
    """Return a bound on the distance of the softmax from the exact one, without ``sum_rounding``.

    ``row_norm`` is the Euclidean norm of each row of weights, ``row_log_doubt`` at least the
    logarithm of one minus its largest weight, and ``eta`` (η) the error of its log-weights. A
    weight w then moves by at most min(w, 1−w)(e^{2η}−1): nearly one-hot rows hardly change.
    """
    growth = torch.where(eta < 1, torch.expm1(2 * eta.clamp(max=1)).log(), 2 * eta)
    one_hot = (row_log_doubt + growth).exp() * math.sqrt(2)
    soft = growth.exp() * row_norm
    # Two rows of weights are never further apart than √2.
    moved = torch.minimum(one_hot, soft).clamp(max=math.sqrt(2))
    return torch.linalg.vector_norm(moved + softmax_rounding() * row_norm, dim=-1)


def logit_error(
    source: LogWeights, row_reach: Float[Tensor, "*batch n"]
) -> Float[Tensor, "*batch n"]:
    """Return η: the stated error of the log-weights plus that of storing them."""
    eta = source.row_error.to(row_reach.device)
    if source.dtype != torch.float64:
        # Half precision loses up to 3e-8 of a small log-weight, and some hardware all of it.
        lost = torch.finfo(source.dtype).smallest_normal
        eta = eta + unit_roundoff(source.dtype) * row_reach + lost
    return eta
