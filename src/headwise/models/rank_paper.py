"""The rank paper's classifiers, with every choice that the paper leaves open in one place.

The paper gives the vision model depth 7, an MLP of 384, batches of 128 and a learning rate of 1e-3,
with label smoothing, AutoAugment, CutMix and MixUp. These are the settings of a public recipe for
small vision transformers on CIFAR-10 (omihub777/ViT-CIFAR: 200 epochs, 91.0 %), so what the paper
leaves open follows that recipe:

| open | choice | reason |
|---|---|---|
| patch size | 4, so 64 patches and a class token | the recipe |
| placement of norms | before attention and MLP | the recipe; trains without tuning |
| optimiser | AdamW, betas .9 and .999, decay 5e-5 | the recipe's Adam, decay decoupled |
| schedule | 5 epochs of linear warm-up, then a cosine to 0 | the recipe |
| epochs | 200 at scale paper, 58 at gpu (CIFAR-10); `papers.rank2026.recipes` | recipe; time |
| precision | bfloat16, `torch.compile` at scale gpu | 1.3 times a graph that is not compiled |
| label smoothing | 0.1 | the recipe |
| initialisation | U(±1/√fan-in), zero biases, positions N(0, 0.02²) | PyTorch's ``nn.Linear`` |
| text: words, length | 20,000 words, 128 from each end | three in five fit whole |
| text: width, depth, heads | 128, 2, 8 | 8 · 16 = 128: the largest d_h is the usual one |
| text: augmentation | a tenth of the words unknown | against memorising reviews |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from headwise.attention import (
    Everything,
    HeadGeometry,
    Initialisation,
    LearnedAdditive,
    Weighting,
    mha,
)
from headwise.attention.weighting import Heads
from headwise.models.classifiers import Images, TextClassifier, ViTClassifier
from headwise.models.transformer import EncoderStack, Style

#: Images of 32 × 32 in patches of 4: 64 of them, and the class token.
CIFAR_IMAGES = Images(size=32, patch=4, channels=3)

#: Fused kernels need head dimensions in multiples of this; zeros fill the rest.
LANES = 8


@dataclass(frozen=True)
class AsLinear(Initialisation):
    """Draw weights from U(±1/√fan-in), as ``torch.nn.Linear`` does."""

    def draw_input(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw from U(±1/√d)."""
        bound = weight.shape[1] ** -0.5
        weight.uniform_(-bound, bound, generator=generator)

    def draw_output(self, weight: Tensor, generator: torch.Generator) -> None:
        """Draw from U(±1/√(H·v))."""
        self.draw_input(weight, generator)


class FusedSoftmax(Weighting):
    """Softmax attention by one call of torch's fused kernels, for any head dimension."""

    def weights(self, heads: Heads) -> Tensor:
        """Return the softmax of the logits."""
        return torch.softmax(heads.logits(), dim=-1)

    def mix(self, heads: Heads) -> Tensor:
        """Return the weighted sums of values; no row may be fully masked."""
        whole = isinstance(heads.mask, Everything)
        triple = (heads.queries, heads.keys, heads.values)
        mixed = scaled_dot_product_attention(
            *map(_filled, triple),
            attn_mask=None if whole else heads.mask.allowed(heads.grid),
            scale=1 / heads.temperature,
        )
        return mixed[..., : heads.values.shape[-1]]


def _filled(part: Tensor) -> Tensor:
    missing = -part.shape[-1] % LANES
    return pad(part, (0, missing)) if missing else part


@dataclass(frozen=True)
class VisionModel:
    """The rank paper's vision transformer for images of 32 × 32."""

    width: int = 192
    depth: int = 7
    mlp_width: int = 384
    classes: int = 10
    images: Images = CIFAR_IMAGES

    def build(self, geometry: HeadGeometry, seed: int) -> ViTClassifier:
        """Build a model with these heads from this seed."""
        stack = _stack(geometry, self.images.tokens, self.depth, self.mlp_width, seed)
        return ViTClassifier(stack, self.images, self.classes, seed)


@dataclass(frozen=True)
class TextModel:
    """The text classifier: word embeddings, two blocks, the mean over real words."""

    width: int = 128
    depth: int = 2
    mlp_width: int = 512
    words: int = 20_001
    length: int = 256
    classes: int = 2

    def build(self, geometry: HeadGeometry, seed: int) -> TextClassifier:
        """Build a model with these heads from this seed."""
        stack = _stack(geometry, self.length, self.depth, self.mlp_width, seed)
        return TextClassifier(stack, self.words, self.classes, seed)


def _stack(
    geometry: HeadGeometry, tokens: int, depth: int, mlp_width: int, seed: int
) -> EncoderStack:
    style = Style(initialisation=AsLinear(seed), attention=partial(mha, weighting=FusedSoftmax()))
    position = LearnedAdditive(tokens, geometry.width, seed)
    return EncoderStack(geometry, position, depth=depth, mlp_width=mlp_width, style=style)


def fixed_width(width: int, heads: tuple[int, ...] = (1, 2, 4, 8, 16)) -> list[HeadGeometry]:
    """Return geometries with heads × head dimension = width, as in Table 3."""
    return [HeadGeometry.standard(width, heads=own) for own in heads]


def fixed_heads(
    width: int, heads: int, dims: tuple[int, ...] = (2, 4, 8, 16, 32)
) -> list[HeadGeometry]:
    """Return geometries with a fixed number of heads, as in Figures 3, 10 and 11."""
    return [HeadGeometry.free(width, heads, own) for own in dims]
