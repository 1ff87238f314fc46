"""Classify images, texts and sequences of vectors with an encoder stack."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from headwise.attention import EVERYTHING, FanIn, Padding
from headwise.attention.initialisation import empty_linear
from headwise.checks import dividing_patch
from headwise.errors import BadInputError
from headwise.models.transformer import EncoderStack
from headwise.randomness import stream
from headwise.shapes import Float, Int


@dataclass(frozen=True)
class Images:
    """Square images, cut into square patches.

    Args:
        size: The side of an image in pixels.
        patch: The side of a patch; it divides the size.
        channels: The number of channels.

    Raises:
        BadInputError: If the patch does not divide the size.

    Example:
        >>> Images(size=32, patch=4, channels=3).tokens
        65
    """

    size: int
    patch: int
    channels: int

    def __post_init__(self) -> None:
        dividing_patch(self.patch, self.size, self.size)

    @property
    def tokens(self) -> int:
        """The number of tokens of an image: its patches and the class token."""
        return (self.size // self.patch) ** 2 + 1

    @property
    def patch_width(self) -> int:
        """The number of values in a patch."""
        return self.channels * self.patch**2

    def cut(self, images: Float[Tensor, "b c s t"]) -> Float[Tensor, "b n w"]:
        """Cut images into patches, row by row."""
        # unfold gives the same numbers but starts its threads again for every image, which took
        # most of a training step on the CPU.
        return nn.functional.pixel_unshuffle(images, self.patch).flatten(2).mT


class ViTClassifier(nn.Module):
    """A vision transformer: images in, class scores out.

    Args:
        stack: The encoder.
        images: The size of the images and their patches.
        classes: The number of classes.
        seed: The seed of the weights outside the stack.

    Example:
        >>> from headwise.attention import HeadGeometry, LearnedAdditive
        >>> images = Images(size=8, patch=4, channels=3)
        >>> position = LearnedAdditive(images.tokens, width=16)
        >>> heads = HeadGeometry.standard(16, heads=4)
        >>> stack = EncoderStack(heads, position, depth=1, mlp_width=32)
        >>> ViTClassifier(stack, images, classes=10)(torch.zeros(2, 3, 8, 8)).shape
        torch.Size([2, 10])
    """

    def __init__(self, stack: EncoderStack, images: Images, classes: int, seed: int = 0) -> None:
        super().__init__()
        self.images, self.stack = images, stack
        self.embedding = empty_linear(images.patch_width, stack.token_width, biased=True)
        self.class_token = nn.Parameter(torch.zeros(stack.token_width))
        self.readout = empty_linear(stack.geometry.width, classes, biased=True)
        drawn = FanIn(seed)
        drawn.fill_input(self.embedding, "embedding")
        drawn.fill_input(self.readout, "readout")

    def tokens(self, images: Float[Tensor, "b c s t"]) -> Float[Tensor, "b n w"]:
        """Return the class token and the embedded patches, row by row."""
        wanted = (self.images.channels, self.images.size, self.images.size)
        if images.shape[1:] != wanted:
            raise BadInputError(
                f"expected images of shape {wanted}, got {tuple(images.shape[1:])}",
                hint="resize them, or make the model for Images of that size",
            )
        patches = self.images.cut(images)
        first = self.class_token.expand(len(images), 1, -1)
        return torch.cat([first, self.embedding(patches)], dim=1)

    def forward(self, images: Float[Tensor, "b c s t"]) -> Float[Tensor, "b k"]:
        """Return class scores from the class token."""
        return self.readout(self.stack(self.tokens(images))[:, 0])


class TextClassifier(nn.Module):
    """A text classifier: token ids and lengths in, class scores from the mean over real tokens out.

    Args:
        stack: The encoder.
        vocabulary: The number of token ids.
        classes: The number of classes.
        seed: The seed of the weights outside the stack.

    Example:
        >>> from headwise.attention import HeadGeometry
        >>> stack = EncoderStack(HeadGeometry.standard(16, heads=4), depth=1, mlp_width=32)
        >>> model = TextClassifier(stack, vocabulary=100, classes=2)
        >>> model(torch.zeros(3, 7, dtype=torch.int64), torch.tensor([7, 2, 1])).shape
        torch.Size([3, 2])
    """

    def __init__(self, stack: EncoderStack, vocabulary: int, classes: int, seed: int = 0) -> None:
        super().__init__()
        self.stack = stack
        drawn = torch.randn(vocabulary, stack.token_width, generator=stream(seed, "embedding"))
        self.embedding = nn.Embedding.from_pretrained(drawn, freeze=False)
        self.readout = empty_linear(stack.geometry.width, classes, biased=True)
        FanIn(seed).fill_input(self.readout, "readout")

    def forward(
        self, numbers: Int[Tensor, "b n"], lengths: Tensor | None = None
    ) -> Float[Tensor, "b k"]:
        """Return class scores; without lengths every token is real."""
        tokens = self.embedding(numbers)
        if lengths is None:
            return self.readout(self.stack(tokens, EVERYTHING).mean(1))
        padding = Padding.of_lengths(lengths, numbers.shape[1])
        encoded = self.stack(tokens, padding)
        real = padding.real.unsqueeze(-1)
        return self.readout((encoded * real).sum(1) / lengths.unsqueeze(-1))


class VectorClassifier(nn.Module):
    """A classifier of vectors: a linear embedding, and class scores from the mean over tokens.

    With one class its output is a number, for regression.

    Args:
        stack: The encoder.
        channels: The length of the vectors.
        classes: The number of classes.
        seed: The seed of the weights outside the stack.

    Example:
        >>> from headwise.attention import HeadGeometry
        >>> stack = EncoderStack(HeadGeometry.standard(16, heads=4), depth=1, mlp_width=32)
        >>> VectorClassifier(stack, channels=6, classes=3)(torch.zeros(2, 7, 6)).shape
        torch.Size([2, 3])
    """

    def __init__(self, stack: EncoderStack, channels: int, classes: int, seed: int = 0) -> None:
        super().__init__()
        self.stack = stack
        self.embedding = empty_linear(channels, stack.token_width, biased=True)
        self.readout = empty_linear(stack.geometry.width, classes, biased=True)
        drawn = FanIn(seed)
        drawn.fill_input(self.embedding, "embedding")
        drawn.fill_input(self.readout, "readout")

    def forward(self, vectors: Float[Tensor, "b n c"]) -> Float[Tensor, "b k"]:
        """Return class scores from the mean over tokens."""
        return self.readout(self.stack(self.embedding(vectors)).mean(1))
