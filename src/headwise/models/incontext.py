"""A GPT-style model for in-context regression: it predicts each y of a sequence of examples."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from headwise.attention import Causal, FanIn
from headwise.attention.initialisation import empty_linear
from headwise.models.transformer import EncoderStack
from headwise.shapes import Float


class InContextRegressor(nn.Module):
    """Read tokens x₁, y₁, x₂, y₂, … and predict y_i at x_i from the tokens before it.

    Args:
        stack: The encoder; a causal mask is applied.
        dimensions: The dimension of x.
        seed: The seed of the weights outside the stack.

    Example:
        >>> from headwise.attention import HeadGeometry, LearnedAdditive
        >>> stack = EncoderStack(
        ...     HeadGeometry.standard(16, heads=4), LearnedAdditive(22, 16), depth=1, mlp_width=32
        ... )
        >>> model = InContextRegressor(stack, dimensions=5)
        >>> model(torch.zeros(2, 11, 5), torch.zeros(2, 11)).shape
        torch.Size([2, 11])
    """

    def __init__(self, stack: EncoderStack, dimensions: int, seed: int = 0) -> None:
        super().__init__()
        self.stack, self.dimensions = stack, dimensions
        self.embedding = empty_linear(dimensions, stack.token_width, biased=True)
        self.readout = empty_linear(stack.geometry.width, 1, biased=True)
        drawn = FanIn(seed)
        drawn.fill_input(self.embedding, "embedding")
        drawn.fill_input(self.readout, "readout")

    def forward(self, x: Float[Tensor, "b p k"], y: Float[Tensor, "b p"]) -> Float[Tensor, "b p"]:
        """Predict each y from its x and all examples before it."""
        encoded = self.stack(self.embedding(interleaved(x, y)), Causal())
        return self.readout(encoded[:, 0::2]).squeeze(-1)


def interleaved(x: Float[Tensor, "b p k"], y: Float[Tensor, "b p"]) -> Float[Tensor, "b twice k"]:
    """Return the tokens x₁, y₁, x₂, y₂, …; y is the first entry of its vector, the rest is zero."""
    answers = torch.nn.functional.pad(y.unsqueeze(-1), (0, x.shape[-1] - 1))
    return torch.stack([x, answers], dim=2).flatten(1, 2)
