"""Four definitions of rank, computed from a spectrum."""

from __future__ import annotations

import torch
from torch import Tensor

from headwise.errors import BadInputError
from headwise.shapes import Float, Int
from headwise.spectra.certificate import Counts
from headwise.spectra.spectrum import Spectrum


def numerical_rank(
    spectrum: Spectrum, epsilon: Float[Tensor, "*batch"], delta: Float[Tensor, "*batch"]
) -> Counts:
    """Count the singular values of at least ε, given that each is known to within δ.

    Args:
        spectrum: The singular values.
        epsilon: ε for each matrix.
        delta: The bound δ on their error, for each matrix.

    Returns:
        One certificate per matrix.

    Example:
        >>> s = Spectrum(torch.tensor([1.0, 0.5, 0.1], dtype=torch.float64))
        >>> eps, delta = torch.tensor(0.2).double(), torch.tensor(1e-12).double()
        >>> int(numerical_rank(s, eps, delta))
        2
    """
    values = spectrum.whole()
    # After an overflow nothing is known: no σ is certain, and each may count.
    delta = torch.where(delta.isfinite(), delta, torch.inf)
    low = (values >= (epsilon + delta).unsqueeze(-1)).sum(-1)
    high = (~(values < (epsilon - delta).unsqueeze(-1))).sum(-1)
    low = torch.where(delta.isfinite(), low, 0)
    methods = spectrum.methods or ("given",) * low.numel()
    return Counts(low.cpu(), high.cpu(), delta.cpu(), methods)


def stable_rank(spectrum: Spectrum) -> Float[Tensor, "*batch"]:
    """Compute ‖A‖_F² / ‖A‖₂²: at most the rank, and insensitive to small singular values.

    Args:
        spectrum: The singular values.

    Returns:
        One number per matrix; 0 for a zero matrix.

    Example:
        >>> float(stable_rank(Spectrum(torch.tensor([2.0, 2.0, 0.0], dtype=torch.float64))))
        2.0
    """
    top = spectrum.largest
    # Scale first: squares of values below 1e-154 would underflow.
    shares = spectrum.values / torch.where(top > 0, top, 1.0).unsqueeze(-1)
    rank = shares.square().sum(-1)
    if spectrum.unseen_energy is not None:
        rank = rank + spectrum.unseen_energy / torch.where(top > 0, top, 1.0).square()
    return rank


def effective_rank(spectrum: Spectrum) -> Float[Tensor, "*batch"]:
    """Compute exp of the entropy of the singular values, normalised to sum to one.

    Args:
        spectrum: The singular values.

    Returns:
        One number per matrix; 0 for a zero matrix.

    Example:
        >>> round(float(effective_rank(Spectrum(torch.ones(5, dtype=torch.float64)))), 12)
        5.0
    """
    values = spectrum.whole()
    total = values.sum(-1, keepdim=True)
    shares = values / torch.where(total > 0, total, 1.0)
    entropy = torch.special.entr(shares).sum(-1)
    return torch.where(total.squeeze(-1) > 0, entropy.exp(), 0.0)


def energy_rank(spectrum: Spectrum, share: float) -> Int[Tensor, "*batch"]:
    """Count the leading singular values that hold ``share`` of the squared Frobenius norm.

    Args:
        spectrum: The singular values.
        share: A share between 0 and 1.

    Returns:
        One count per matrix.

    Raises:
        BadInputError: If the share is out of range.

    Example:
        >>> int(energy_rank(Spectrum(torch.tensor([3.0, 1.0, 0.0], dtype=torch.float64)), 0.9))
        1
    """
    if not 0 < share < 1:
        raise BadInputError(
            f"an energy share must lie between 0 and 1, got {share!r}",
            hint="pass for example 0.9 or 0.99",
        )
    values = spectrum.whole()
    held = (values / torch.where(values[..., :1] > 0, values[..., :1], 1.0)).square().cumsum(-1)
    reached = held >= share * held[..., -1:]
    return torch.where(values[..., 0] > 0, (~reached).sum(-1) + 1, 0)
