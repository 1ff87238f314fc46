"""A decoder: token ids in, scores of the next token out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.attention import Causal, FanIn
from headwise.attention.initialisation import empty_linear
from headwise.models.transformer import EncoderStack
from headwise.randomness import stream
from headwise.shapes import Float, Int


class Decoder(nn.Module):
    """A stack under a causal mask, with an embedding and a readout of the vocabulary.

    Args:
        stack: The stack.
        vocabulary: The number of token ids.
        seed: The seed of the weights outside the stack.

    Example:
        >>> from headwise.attention import HeadGeometry, LearnedAdditive
        >>> geometry = HeadGeometry.standard(16, heads=4)
        >>> stack = EncoderStack(geometry, LearnedAdditive(7, 16), depth=1, mlp_width=32)
        >>> Decoder(stack, vocabulary=50)(torch.zeros(3, 7, dtype=torch.int64)).shape
        torch.Size([3, 7, 50])
    """

    def __init__(self, stack: EncoderStack, vocabulary: int, seed: int = 0) -> None:
        super().__init__()
        self.stack = stack
        drawn = torch.randn(vocabulary, stack.token_width, generator=stream(seed, "embedding"))
        self.embedding = nn.Embedding.from_pretrained(drawn, freeze=False)
        self.readout = empty_linear(stack.geometry.width, vocabulary, biased=True)
        FanIn(seed).fill_input(self.readout, "readout")

    def forward(self, numbers: Int[Tensor, "b n"]) -> Float[Tensor, "b n v"]:
        """Return scores of the next token at each position."""
        return self.readout(self.stack(self.embedding(numbers), Causal()))
