"""Image and text classifiers, and the in-context regressor."""

import pytest
import torch

from attention.copies import close, random_, tokens
from headwise.attention import HeadGeometry, LearnedAdditive, LearnedConcatenated
from headwise.errors import BadInputError
from headwise.models import (
    EncoderStack,
    Images,
    InContextRegressor,
    TextClassifier,
    ViTClassifier,
    parameter_counts,
)
from headwise.models.incontext import interleaved
from headwise.probing import views

GEOMETRY = HeadGeometry(12, 3, 3, 2, 5)


def stack(position=None):
    return EncoderStack(GEOMETRY, position, depth=2, mlp_width=7)


class TestViT:
    images = Images(size=8, patch=4, channels=3)

    def model(self):
        return random_(ViTClassifier(stack(LearnedAdditive(5, 12)), self.images, 10).double())

    def test_a_patch_reaches_its_token_alone(self):
        model, image = self.model(), tokens(1, 3, 8, 8)
        changed = image.clone()
        changed[:, :, 0:4, 4:8] = 0  # the upper right patch is token 2
        moved = (model.tokens(image) != model.tokens(changed)).any(-1)[0]
        assert moved.tolist() == [False, False, True, False, False]

    def test_scores_and_counts(self):
        model = self.model()
        assert model(tokens(2, 3, 8, 8)).shape == (2, 10)
        counts = parameter_counts(model)
        assert counts["attention"] == 2 * GEOMETRY.parameters
        assert counts["embedding"] == 48 * 12 + 12
        assert sum(counts.values()) == sum(p.numel() for p in model.parameters())

    def test_it_hands_out_views(self):
        found = views(self.model(), tokens(2, 3, 8, 8))
        assert [v.queries.shape for v in found.values()] == [(2, 3, 5, 2)] * 2

    def test_other_images_are_refused(self):
        with pytest.raises(
            BadInputError, match=r"expected images of shape \(3, 8, 8\), got \(3, 9, 9\)"
        ):
            self.model()(tokens(2, 3, 9, 9))

    def test_patches_must_tile(self):
        with pytest.raises(BadInputError, match=r"divides images of 8 × 8, got 3; .* 1, 2, 4"):
            Images(size=8, patch=3, channels=3)


class TestText:
    model = random_(
        TextClassifier(stack(LearnedAdditive(9, 12)), vocabulary=20, classes=3).double()
    )
    numbers = torch.randint(20, (2, 7), generator=torch.Generator().manual_seed(0))

    def test_padding_changes_nothing(self):
        lengths = torch.tensor([4, 7])
        padded = self.model(self.numbers, lengths)
        close(padded[:1], self.model(self.numbers[:1, :4]))
        close(padded[1:], self.model(self.numbers[1:]))

    def test_counts(self):
        counts = parameter_counts(self.model)
        assert counts["embedding"] == 20 * 12
        assert counts["attention"] == 2 * GEOMETRY.parameters

    def test_too_long_a_text_is_refused(self):
        with pytest.raises(BadInputError, match="10 tokens is longer than the position table"):
            self.model(torch.zeros(1, 10, dtype=torch.int64))

    def test_positions_may_be_concatenated(self):
        model = TextClassifier(stack(LearnedConcatenated(9, 4)), vocabulary=20, classes=3)
        assert model.embedding.weight.shape == (20, 8)
        assert model(self.numbers).shape == (2, 3)


class TestInContext:
    model = random_(InContextRegressor(stack(LearnedAdditive(22, 12)), dimensions=5).double())

    def test_a_prediction_sees_its_x_and_what_is_before(self):
        x, y = tokens(2, 11, 5), tokens(2, 11)
        before = self.model(x, y)
        later = y.clone()
        later[:, 4:] += 1
        after = self.model(x, later)
        close(after[:, :5], before[:, :5])
        assert (after[:, 5:] != before[:, 5:]).all()

    def test_tokens_alternate(self):
        x, y = tokens(2, 3, 5), tokens(2, 3)
        woven = interleaved(x, y)
        assert torch.equal(woven[:, 0::2], x)
        assert torch.equal(woven[:, 1::2, 0], y)
        assert woven[:, 1::2, 1:].abs().max() == 0

    def test_it_learns_a_constant(self):
        model = InContextRegressor(stack(LearnedAdditive(22, 12)), dimensions=5)
        optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
        x, y = tokens(8, 11, 5).float(), torch.full((8, 11), 0.7)
        losses = []
        for _ in range(30):
            loss = (model(x, y) - y).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        assert losses[-1] < 0.1 * losses[0]
