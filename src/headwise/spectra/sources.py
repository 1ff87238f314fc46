"""What can be measured: a matrix, or rows of log-weights whose softmax is the matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from headwise.errors import BadInputError

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
        BadInputError: If the shapes do not fit or the error is not a finite number of at least 0.

    Example:
        >>> LogWeights(torch.zeros(4, 4)).shape
        torch.Size([4, 4])
    """

    values: Tensor
    error: Tensor | float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", as_matrices(self.values, "the log-weights"))
        # Check a plain number on the CPU: a tensor on a GPU would have to be waited for.
        plain = not isinstance(self.error, Tensor)
        if not (self.error >= 0 if plain else bool((self.row_error >= 0).all())):
            raise BadInputError(
                "the error of the log-weights must not be negative or NaN",
                hint="pass a bound of zero or more",
            )

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


Source = Tensor | np.ndarray | LogWeights


def as_matrices(values: Tensor | np.ndarray, name: str = "the matrix") -> Tensor:
    """Return ``values`` as a floating tensor of matrices, or raise BadInputError."""
    tensor = _as_tensor(values, name)
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
    return tensor.detach()


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


def _as_tensor(values: Tensor | np.ndarray, name: str) -> Tensor:
    if isinstance(values, Tensor):
        return values
    try:
        return torch.as_tensor(np.asarray(values))
    except (TypeError, ValueError):
        raise BadInputError(
            f"{name} is not a numeric array but {type(values).__name__}",
            hint="pass a torch tensor or a numpy array of floats",
        ) from None


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
