"""Sums over all singular values from random probes: spectral density and effective rank.

The mean of zᵀ f(AᵀA) z over random z with E zzᵀ = I is the trace of f(AᵀA), that is the sum of
f(σ²). Lanczos started at z gives nodes and weights of a quadrature for each probe (Golub and
Meurant; Ubaru, Chen and Saad, SIMAX 38, 2017). Leading singular values that are known exactly are
taken out of the probes, which removes most of the variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from headwise.report.results import short_repr
from headwise.shapes import Float
from headwise.spectra.certificate import Estimate
from headwise.spectra.krylov import LeadingSpectrum
from headwise.spectra.operators import Operator, own_precision


@dataclass(frozen=True, eq=False)
class SpectralDensity:
    """Singular values as a density: the leading ones, and nodes with weights for each probe.

    Args:
        leading: The values that are known one by one.
        nodes: (probes, steps), singular values.
        weights: (probes, steps); those of one probe sum to the number of values, on average.
        coarser: Nodes and weights after half of the steps, to see what more steps change.

    Example:
        >>> from headwise.spectra import DenseOperator
        >>> density = spectral_density(DenseOperator(torch.eye(8, dtype=torch.float64)))
        >>> round(density.effective_rank().mean, 6)
        8.0
    """

    leading: Float[Tensor, " k"]
    nodes: Float[Tensor, "p s"]
    weights: Float[Tensor, "p s"]
    coarser: tuple[Tensor, Tensor]

    __repr__ = short_repr

    def effective_rank(self) -> Estimate:
        """Return exp of the entropy of the normalised singular values, with its error.

        The standard error joins the spread over probes (jackknife) and what the second half of
        the steps changed.
        """
        mean, spread = _jackknifed(self._sums(self.nodes, self.weights))
        before, _ = _jackknifed(self._sums(*self.coarser))
        error = (spread**2 + (mean - before) ** 2) ** 0.5
        return Estimate(mean, error, len(self.nodes))

    def counts(self, edges: Tensor) -> tuple[Tensor, Tensor]:
        """Return how many singular values lie between the edges, with standard errors."""
        bins = torch.bucketize(self.nodes.contiguous(), edges) - 1
        shares = torch.zeros(len(self.nodes), len(edges) - 1, dtype=torch.float64)
        inside = (bins >= 0) & (bins < len(edges) - 1)
        shares.scatter_add_(1, bins.clamp(0, len(edges) - 2), self.weights * inside)
        known = torch.histogram(self.leading.contiguous(), edges).hist
        return known + shares.mean(0), shares.std(0) / len(shares) ** 0.5

    def _sums(self, nodes: Tensor, weights: Tensor) -> Tensor:
        """Return Σσ and Σσ·log σ for each probe, (probes, 2), leading values included."""
        known = torch.stack([self.leading.sum(), -torch.special.entr(self.leading).sum()])
        each = [(weights * nodes).sum(1), -(weights * torch.special.entr(nodes)).sum(1)]
        return known + torch.stack(each, dim=1)


@own_precision()
def spectral_density(
    operator: Operator,
    leading: LeadingSpectrum | None = None,
    *,
    probes: int = 16,
    steps: int = 24,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
    device: torch.device | None = None,
) -> SpectralDensity:
    """Estimate the density of the singular values from products with random vectors.

    Memory is O(m·probes·steps).

    Args:
        operator: A matrix known by its products, (n, m).
        leading: Singular values that are known, with their vectors.
        probes: Number of random vectors.
        steps: Lanczos steps of each.
        seed: Seed of the vectors.
        dtype: The precision in which vectors are kept.
        device: Where to compute.

    Returns:
        The leading singular values, and nodes with weights (probes, steps) for the others.

    Example:
        >>> from headwise.spectra import DenseOperator
        >>> spectral_density(DenseOperator(torch.eye(8, dtype=torch.float64)), probes=4).nodes.shape
        torch.Size([4, 8])
    """
    m = operator.shape[-1]
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(2, (m, probes), generator=generator).to(dtype).mul_(2).sub_(1)
    start = signs.to(device) if device else signs
    known = start.new_empty(m, 0) if leading is None else leading.right.to(start)
    start = start - known @ (known.mT @ start)
    diagonal, beside = _lanczos(operator, start, known, max(1, min(steps, m - known.shape[1])))
    energy = start.square().sum(0).double().cpu()
    half = max(1, len(diagonal) // 2)
    nodes, weights = _quadrature(diagonal, beside, energy)
    values = start.new_empty(0).double() if leading is None else leading.values.double()
    coarser = _quadrature(diagonal[:half], beside[:half], energy)
    return SpectralDensity(values.cpu(), nodes, weights, coarser)


def _lanczos(operator: Operator, start: Tensor, known: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Run Lanczos on AᵀA for each column by itself; return diagonals and what lies beside them."""
    size = torch.linalg.vector_norm(start, dim=0)
    vector = start / size.clamp(min=torch.finfo(start.dtype).tiny)
    basis, diagonal, beside = [vector], [], []
    for _ in range(steps):
        image = operator.rmatmat(operator.matmat(vector)).to(vector)
        diagonal.append((vector * image).sum(0))
        kept = torch.stack(basis)  # (steps so far, m, probes)
        for _ in range(2):
            image = image - known @ (known.mT @ image)
            image = image - torch.einsum(
                "smp,sp->mp", kept, torch.einsum("smp,mp->sp", kept, image)
            )
        size = torch.linalg.vector_norm(image, dim=0)
        beside.append(size)
        vector = image / size.clamp(min=torch.finfo(start.dtype).tiny)
        basis.append(vector)
    return torch.stack(diagonal).double().cpu(), torch.stack(beside).double().cpu()


def _quadrature(diagonal: Tensor, beside: Tensor, energy: Tensor) -> tuple[Tensor, Tensor]:
    """Return singular values as nodes, and weights, (probes, steps)."""
    off = torch.diag_embed(beside[:-1].mT, 1)
    values, vectors = torch.linalg.eigh(torch.diag_embed(diagonal.mT) + off + off.mT)
    return values.clamp(min=0).sqrt(), vectors[:, 0].square() * energy.unsqueeze(-1)


def _jackknifed(sums: Tensor) -> tuple[float, float]:
    """Return exp(log S − T/S) of the mean sums S and T, and its standard error."""

    def rank(mean: Tensor) -> Tensor:
        total, weighted = mean[..., 0], mean[..., 1]
        return torch.exp(total.log() - weighted / total)

    count = len(sums)
    whole = rank(sums.mean(0))
    if count < 2:
        return float(whole), float("nan")
    without = rank((sums.sum(0) - sums) / (count - 1))
    spread = ((count - 1) / count * (without - without.mean()).square().sum()).sqrt()
    return float(whole), float(spread)
