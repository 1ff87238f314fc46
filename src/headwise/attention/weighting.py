"""Turn logits into weights and mix values: softmax, hardmax, or any map to the simplex."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, scaled_dot_product_attention

from headwise.attention.grid import Grid
from headwise.attention.masks import Causal, Everything, Mask
from headwise.attention.rank_one import rank_one_attention
from headwise.attention.scores import first_best, refuse_masked_rows
from headwise.attention.short import served, short_attention
from headwise.errors import BadInputError


@dataclass(frozen=True, eq=False)
class Heads:
    """Queries (b, H, n, r), keys and values (b, H_kv, m, ·), mask, temperature and dropout."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    mask: Mask
    temperature: float
    dropout: float = 0.0

    @property
    def grid(self) -> Grid:
        """The shape of the attention matrices, (b, H, n, m)."""
        heads = max(self.queries.shape[1], self.keys.shape[1])
        shape = (self.keys.shape[0], heads, self.queries.shape[2], self.keys.shape[2])
        return Grid.whole(torch.Size(shape), self.queries.device)

    def shared(self, tensor: Tensor) -> Tensor:
        """Return keys or values repeated so that every query head has its own."""
        group = self.queries.shape[1] // self.keys.shape[1]
        return tensor if group == 1 else tensor.repeat_interleave(group, dim=1)

    def logits(self) -> Tensor:
        """Return q·k / T, masked, in the dtype of the layer."""
        scaled = (self.queries @ self.shared(self.keys).mT) / self.temperature
        if isinstance(self.mask, Everything):
            return scaled
        return _with_something_left(self.mask.apply(scaled, self.grid))

    def dropped(self, weights: Tensor) -> Tensor:
        """Return the weights with dropout applied."""
        return dropout(weights, self.dropout) if self.dropout else weights

    def bias(self) -> Tensor | None:
        """Return what the mask adds to the logits, in the smallest shape that broadcasts."""
        if isinstance(self.mask, Everything):
            return None
        grid = self.grid
        zeros = self.queries.new_zeros(grid.shape[-2:])
        return _with_something_left(self.mask.apply(zeros, grid))


class Weighting(nn.Module, ABC):
    """A map from logits to weights; ``mix`` applies the weights to the values.

    Example:
        >>> isinstance(Softmax(), Weighting)
        True
    """

    @abstractmethod
    def weights(self, heads: Heads) -> Tensor:
        """Return the attention matrices (b, H, n, m)."""

    def mix(self, heads: Heads) -> Tensor:
        """Return the weighted sums of values (b, H, n, v), with dropout."""
        return self.mixed(heads.dropped(self.weights(heads)), heads)

    def mixed(self, weights: Tensor, heads: Heads) -> Tensor:
        """Return the values mixed by these weights (b, H, n, v)."""
        return weights @ heads.shared(heads.values)


class Softmax(Weighting):
    """Weights exp(logit) / Σ exp(logit), by fused kernels that never store the matrix.

    Example:
        >>> from headwise.attention import HeadGeometry, mha
        >>> mha(HeadGeometry.standard(8, heads=2)).weighting
        Softmax()
    """

    def weights(self, heads: Heads) -> Tensor:
        """Return the softmax of the logits."""
        return torch.softmax(heads.logits(), dim=-1)

    def mix(self, heads: Heads) -> Tensor:
        """Mix all heads in one call of a fused kernel."""
        if not heads.dropout:
            short = short_mix(heads)
            if short is not None:
                return short
            if _rank_one(heads):
                return _mix_rank_one(heads)
        rows, columns = heads.grid.shape[-2:]
        causal = heads.mask == Causal() and rows == columns
        return scaled_dot_product_attention(
            heads.queries,
            heads.keys,
            heads.values,
            attn_mask=None if causal else heads.bias(),
            dropout_p=heads.dropout,
            is_causal=causal,
            scale=1 / heads.temperature,
            enable_gqa=heads.queries.shape[1] != heads.keys.shape[1],
        )


class Hardmax(Weighting):
    """Put all weight on the largest logit, the first of ties; q and k get no gradient.

    Example:
        >>> from headwise.attention import Hardmax, HeadGeometry, mha
        >>> layer = mha(HeadGeometry.standard(8, heads=2), weighting=Hardmax()).eval()
        >>> layer.matrix(torch.zeros(1, 3, 8))[0, 0, :, 0]
        tensor([1., 1., 1.])
    """

    def weights(self, heads: Heads) -> Tensor:
        """Return one where the logit is largest."""
        self._refuse_training(heads)
        return _one_hot(heads, heads.logits())

    def mix(self, heads: Heads) -> Tensor:
        """Look up the value of the largest logit."""
        if heads.dropout:
            return super().mix(heads)
        self._refuse_training(heads)
        chosen = _chosen(heads, heads.logits())
        values = heads.shared(heads.values)
        return values.gather(-2, chosen.expand(*chosen.shape[:-1], values.shape[-1]))

    def _refuse_training(self, heads: Heads) -> None:
        asked = heads.queries.requires_grad or heads.keys.requires_grad
        if self.training and asked and torch.is_grad_enabled():
            raise BadInputError(
                "hardmax gives queries and keys no gradient, so training would not change them",
                hint="use weighting=StraightThroughHardmax(), or call eval() or torch.no_grad()",
            )


class StraightThroughHardmax(Weighting):
    """Hardmax in the forward pass, the gradient of softmax in the backward pass.

    Example:
        >>> from headwise.attention import HeadGeometry, StraightThroughHardmax, mha
        >>> layer = mha(HeadGeometry.standard(8, heads=2), weighting=StraightThroughHardmax())
        >>> layer.matrix(torch.zeros(1, 3, 8)).requires_grad
        True
    """

    def weights(self, heads: Heads) -> Tensor:
        """Return one-hot rows that carry the gradient of the softmax."""
        logits = heads.logits()
        soft = torch.softmax(logits, dim=-1)
        return _one_hot(heads, logits) + soft - soft.detach()


class AnyMap(Weighting):
    """Weights φ(K_hᵀX, y) computed by a module.

    Masked entries are set to zero and the rest is scaled up.

    Args:
        phi: The module: takes keys (b, H, m, r) and tokens (b, n, d), returns weights (b, H, n, m)
            whose rows are non-negative and sum to one.

    Example:
        >>> isinstance(AnyMap(nn.Identity()), Weighting)
        True
    """

    def __init__(self, phi: nn.Module) -> None:
        super().__init__()
        self.phi = phi

    def weights(self, heads: Heads) -> Tensor:
        """Return the weights of the module, masked."""
        found = self.phi(heads.keys, heads.queries.squeeze(1))
        grid = heads.grid
        if found.shape != grid.shape:
            raise BadInputError(
                f"expected weights of shape {tuple(grid.shape)} from the map, got "
                f"{tuple(found.shape)}",
                hint="return (batch, heads, queries, keys)",
            )
        if isinstance(heads.mask, Everything):
            return found
        heads.bias()  # refuses rows that mask everything
        kept = torch.where(heads.mask.allowed(grid), found, 0.0)
        return kept / kept.sum(-1, keepdim=True)

    def mixed(self, weights: Tensor, heads: Heads) -> Tensor:
        """Mix the values; every head has its own."""
        return weights @ heads.values


_TRUSTED: ContextVar[bool] = ContextVar("trusted masks", default=False)


@contextmanager
def trusted_masks() -> Iterator[None]:
    """Skip the check that every query may attend to some key.

    Use it where mask values cannot be read (a vectorised call, a recorded graph). A query that
    may attend to no key then gets NaN.
    """
    token = _TRUSTED.set(True)
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def _with_something_left(logits: Tensor) -> Tensor:
    """Return the logits, or raise if a row is fully masked.

    A compiled graph or a vectorised call cannot raise on values, so they are not checked there.
    """
    if not (torch.compiler.is_compiling() or _TRUSTED.get()):
        refuse_masked_rows(logits.amax(-1))
    return logits


def _rank_one(heads: Heads) -> bool:
    """Whether the heads are scalar, many and unmasked, so that the rank-one kernel is faster.

    It works on sixteen heads at a time, and off the CPU on one key at a time: few heads or very
    many keys run faster in the general kernels.

    Returns:
        True for the rank-one kernel.
    """
    scalar = heads.queries.shape[-1] == 1 and heads.values.shape[-1] == 1
    many = heads.queries.shape[1] >= 16 and heads.keys.shape[2] <= 1024
    return scalar and many and isinstance(heads.mask, Everything)


def short_mix(heads: Heads) -> Tensor | None:
    """Mix values with the GPU kernels for small heads, or return None if they do not apply."""
    causal = heads.mask == Causal()
    if not (causal or isinstance(heads.mask, Everything)):
        return None
    q, k, v = (t.transpose(1, 2) for t in (heads.queries, heads.keys, heads.values))
    if not served(q, k, v):
        return None
    return short_attention(q, k, v, 1 / heads.temperature, causal).transpose(1, 2)


def _mix_rank_one(heads: Heads) -> Tensor:
    q = heads.queries if heads.temperature == 1 else heads.queries / heads.temperature
    triple = (q, heads.shared(heads.keys), heads.shared(heads.values))
    mixed = rank_one_attention(*(t.squeeze(-1).transpose(1, 2) for t in triple))
    return mixed.transpose(1, 2).unsqueeze(-1)


@torch.no_grad()
def _chosen(heads: Heads, logits: Tensor) -> Tensor:
    """Return the key of each query's largest logit, (b, H, n, 1)."""
    scaled = heads.queries / heads.temperature
    return first_best(scaled, heads.shared(heads.keys), logits).unsqueeze(-1)


def _one_hot(heads: Heads, logits: Tensor) -> Tensor:
    return torch.zeros_like(logits).scatter(-1, _chosen(heads, logits), 1.0)
