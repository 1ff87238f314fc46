"""The attention layer: a projection (with its geometry), a position rule and a weighting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from headwise.attention.mask_arguments import MaskLike, as_mask, torch_mask
from headwise.attention.masks import EVERYTHING, Causal, Padding
from headwise.attention.positions import NoPosition, PositionRule
from headwise.attention.projections import Projection
from headwise.attention.scores import checked_temperature
from headwise.attention.view import AttentionView
from headwise.attention.weighting import Heads, Softmax, Weighting
from headwise.checks import of_type
from headwise.errors import BadInputError
from headwise.geometry import HeadGeometry
from headwise.shapes import Float


@dataclass(frozen=True)
class HeadSum:
    """Sum the heads: the default of ``Attention``.

    Example:
        >>> HeadSum().factor(heads=8)
        1.0
    """

    def factor(self, heads: int) -> float:
        """Return what the sum over heads is multiplied by."""
        return 1.0


@dataclass(frozen=True)
class HeadMean:
    """The output is the mean over ``copies`` equal groups of heads, each summed.

    The heads paper widens layers this way: 64 averaged copies of a layer are one layer with 64
    times the heads and ``HeadMean(64)``.

    Args:
        copies: Number of groups; it divides the number of heads.

    Example:
        >>> HeadMean(copies=4).factor(heads=8)
        0.25
    """

    copies: int

    def factor(self, heads: int) -> float:
        """Return what the sum over heads is multiplied by."""
        if self.copies < 1 or heads % self.copies:
            raise BadInputError(
                f"expected copies to divide {heads} heads, got {self.copies}",
                hint=f"pass a divisor of {heads}",
            )
        return 1 / self.copies


def _refuse_wrong_parts(position: Any, weighting: Any, combination: Any) -> None:
    """Refuse names, which other libraries take, where a layer takes the parts themselves."""
    kinds: dict[str, tuple[Any, Any, str]] = {
        "position": (position, PositionRule, "a position rule such as Rotary(8)"),
        "weighting": (weighting, Weighting, "a weighting such as Softmax() or Hardmax()"),
        "combination": (combination, (HeadSum, HeadMean), "HeadSum() or HeadMean()"),
    }
    for name, (given, kind, wanted) in kinds.items():
        if given is not None:
            of_type(f"`{name}`", given, kind, wanted)


class Attention(nn.Module):
    """Attention with any number of heads of any rank: Σ_h W_O,h W_V,h X · weights(q_h, k_h).

    The layer replaces ``torch.nn.MultiheadAttention``. Call it with query, key and value, as torch
    does, and it takes torch's arguments and returns torch's pair (output, weights). Call it with
    one tensor (self-attention) or two (query, and the tokens to attend to) and it returns the
    output alone.

    Args:
        projection: Maps tokens to queries, keys and values; holds the geometry.
        position: Position rule; none by default.
        weighting: Maps logits to weights; softmax by default.
        temperature: Divisor of the logits; √qk_rank by default.
        combination: Sum over heads (default) or mean over copies.
        dropout: Probability of dropping an attention weight in training.
        batch_first: Tokens are (batch, sequence, width) if True, (sequence, batch, width) if
            False. Use the value of the ``nn.TransformerEncoderLayer`` that holds the layer.

    Raises:
        BadInputError: The temperature, the dropout or the number of copies is out of range.
        ParameterError: The position, the weighting or the combination is of another type.

    Example:
        >>> from headwise.attention import FullProjection
        >>> layer = Attention(FullProjection(HeadGeometry.free(64, heads=100, rank=3)))
        >>> x = torch.zeros(2, 5, 64)
        >>> layer(x).shape
        torch.Size([2, 5, 64])
        >>> output, weights = layer(x, x, x, key_padding_mask=torch.zeros(2, 5).bool())
        >>> weights.shape
        torch.Size([2, 5, 5])
    """

    # nn.TransformerEncoderLayer reads this and then calls the layer instead of its fused kernel.
    _qkv_same_embed_dim = False

    def __init__(
        self,
        projection: Projection,
        *,
        position: PositionRule | None = None,
        weighting: Weighting | None = None,
        temperature: float | None = None,
        combination: HeadSum | HeadMean | None = None,
        dropout: float = 0.0,
        batch_first: bool = True,
    ) -> None:
        super().__init__()
        _refuse_wrong_parts(position, weighting, combination)
        if not 0 <= dropout < 1:
            raise BadInputError(
                f"expected dropout in [0, 1), got {dropout}", hint="pass for example 0.1"
            )
        self.projection = projection
        self.position = position or NoPosition()
        self.weighting = weighting or Softmax()
        self.temperature = checked_temperature(temperature, projection.geometry.qk_rank)
        self.combination = combination or HeadSum()
        self.factor = self.combination.factor(projection.geometry.heads)
        self.dropout, self.batch_first = dropout, batch_first
        self.observer: Callable[[AttentionView], None] | None = None

    @property
    def geometry(self) -> HeadGeometry:
        """Width, heads and ranks."""
        return self.projection.geometry

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        mask: MaskLike = EVERYTHING,
    ) -> Tensor | tuple[Tensor, Tensor | None]:
        """Attend from the query tokens to the key tokens, or to themselves without ``key``.

        The arguments after ``query`` are those of ``torch.nn.MultiheadAttention``, in its order.
        Tokens are (batch, sequence, width), or (sequence, width) for one sequence. A nested tensor
        (self-attention only) gives a nested tensor.

        Args:
            query: The tokens that attend.
            key: The tokens attended to; the query tokens by default.
            value: The tokens whose values are mixed; the key tokens by default. If given, the
                layer returns torch's pair.
            key_padding_mask: (batch, keys); True (or −∞) for padding.
            need_weights: Return the weights too. Only read if ``value`` is given.
            attn_mask: (queries, keys) or (batch · heads, queries, keys); True forbids attending,
                floats are added to the logits.
            average_attn_weights: Average the returned weights over heads.
            is_causal: Apply a causal mask in place of ``attn_mask``.
            mask: A mask in headwise's convention (True allows), for example "causal". It applies
                in addition to torch's masks.

        Returns:
            The output, or (output, weights) if ``value`` is given. The weights are None unless
            needed.

        Raises:
            BadInputError: A shape does not fit, or a query may attend to no key.
        """
        if query.is_nested:
            return self._nested(query, value, mask)
        batch = query.shape[0 if self.batch_first else 1] if query.ndim == 3 else 1
        attn_mask = None if is_causal else attn_mask
        given = torch_mask(attn_mask, key_padding_mask, batch=batch, heads=self.num_heads)
        causal = Causal() if is_causal else EVERYTHING
        heads = self.heads(query, key, value, mask=as_mask(mask) & causal & given)
        if self.observer is not None:
            self.observer(self._view(heads))
        if value is not None and need_weights:
            return self._with_weights(heads, query, average_attn_weights)
        output = self._output(self.weighting.mix(heads), query)
        return output if value is None else (output, None)

    def matrix(
        self, query: Tensor, key: Tensor | None = None, *, mask: MaskLike = EVERYTHING
    ) -> Float[Tensor, "b h n m"]:
        """Return the attention matrices in the layer's dtype, without dropout."""
        return self.weighting.weights(self.heads(query, key, mask=mask))

    def view(
        self, query: Tensor, key: Tensor | None = None, *, mask: MaskLike = EVERYTHING
    ) -> AttentionView:
        """Return queries, keys, mask, temperature and weights for these tokens."""
        return self._view(self.heads(query, key, mask=mask))

    def heads(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        mask: MaskLike = EVERYTHING,
    ) -> Heads:
        """Return queries, keys and values of every head, with positions."""
        tokens = self._embedded("query", query)
        context = tokens if key is None or key is query else self._embedded("key", key)
        queries, keys, values = self.projection(tokens, context)
        if value is not None and value is not (query if key is None else key):
            values = self.projection(tokens, self._embedded("value", value))[2]
        queries, keys = self.position.turn(queries, keys)
        dropout = self.dropout if self.training else 0.0
        return Heads(queries, keys, values, as_mask(mask), self.temperature, dropout)

    @property
    def embed_dim(self) -> int:
        """The width, by torch's name."""
        return self.geometry.width

    @property
    def num_heads(self) -> int:
        """The number of heads, by torch's name."""
        return self.geometry.heads

    @property
    def out_proj(self) -> nn.Linear:
        """The output projection, by torch's name."""
        return self.projection.output

    @property
    def in_proj_weight(self) -> Tensor:
        """A parameter in which ``nn.TransformerEncoder`` looks for gradients and a device."""
        return self.projection.output.weight

    in_proj_bias = in_proj_weight

    def _embedded(self, name: str, tokens: Tensor) -> Tensor:
        """Return the tokens as (batch, sequence, width), with positions."""
        if tokens.ndim not in (2, 3):
            raise BadInputError(
                f"expected {name} of shape (batch, sequence, width), got {tuple(tokens.shape)}",
                hint="pass (sequence, width) for one sequence",
            )
        if tokens.ndim == 2:
            tokens = tokens.unsqueeze(0)
        elif not self.batch_first:
            tokens = tokens.transpose(0, 1)
        tokens = self.position.embed(tokens)
        if tokens.shape[-1] != self.geometry.width:
            width, added = self.geometry.width, self.position.added_width
            raise BadInputError(
                f"expected {name} of width {width - added}, got {tokens.shape[-1] - added}",
                hint=f"the layer was built for width {width}",
            )
        return tokens

    def _output(self, mixed: Tensor, query: Tensor) -> Tensor:
        """Combine the heads and give the output the shape of the query."""
        output = self.projection.combine(mixed, self.factor)
        if query.ndim == 2:
            return output.squeeze(0)
        return output if self.batch_first else output.transpose(0, 1)

    def _with_weights(self, heads: Heads, query: Tensor, average: bool) -> tuple[Tensor, Tensor]:
        weights = heads.dropped(self.weighting.weights(heads))
        output = self._output(self.weighting.mixed(weights, heads), query)
        weights = weights.mean(1) if average else weights
        return output, weights.squeeze(0) if query.ndim == 2 else weights

    def _nested(
        self, query: Tensor, value: Tensor | None, mask: MaskLike
    ) -> Tensor | tuple[Tensor, Tensor | None]:
        """Pad, attend and cut again: ``nn.TransformerEncoder`` passes padded batches this way."""
        lengths = torch.tensor([len(tokens) for tokens in query.unbind()], device=query.device)
        padded = query.to_padded_tensor(0.0)
        real = Padding.of_lengths(lengths, padded.shape[1])
        heads = self.heads(padded, mask=as_mask(mask) & real)
        if self.observer is not None:
            self.observer(self._view(heads))
        output = self.projection.combine(self.weighting.mix(heads), self.factor)
        rows = [row[:length] for row, length in zip(output, lengths.tolist(), strict=True)]
        nested = torch.nested.as_nested_tensor(rows)
        return nested if value is None else (nested, None)

    def _view(self, heads: Heads) -> AttentionView:
        return AttentionView(
            queries=heads.queries,
            keys=heads.keys,
            mask=heads.mask,
            temperature=heads.temperature,
            weights=self.projection.head_weights(),
            turned_rank=self.position.turned_rank,
            values=heads.values,
        )
