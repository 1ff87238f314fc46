"""Ranks and orthonormality of real mini-batches: planted sets, full decompositions, bad input."""

import math
import pickle

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from headwise.errors import BadInputError, UnreadableFileError
from headwise.experiments.image_orthonormality import ImageOrthonormality
from headwise.experiments.initial_stack import InitialLayer, StackShape
from headwise.experiments.real_batches import distinct_share, draw_images, draw_texts
from headwise.experiments.real_rank import ImageRank, TextRank

STARTS = ("normal(0,1)", "model")
IMAGES = {"dataset": "digits", "patch": 2, "width": 16, "head_dim": 4, "batch": 3, "heads": 3}
TEXTS = {"dataset": "digits", "tokens": 12, "width": 16, "head_dim": 4, "batch": 3, "heads": 3}


def full_ratios(spec, layer):
    """Every attention matrix of a layer formed in full, and its singular values counted."""
    tokens, stack, _ = spec.entered()
    with torch.no_grad():
        matrices = _own(stack, tokens, layer) if stack else _gaussian(spec, tokens, layer)
    return (torch.linalg.svdvals(matrices) >= spec.epsilon).double().mean(-1)


def _own(stack, tokens, layer):
    tokens = stack.position.embed(tokens)
    for block in stack.blocks[: layer - 1]:
        tokens = block(tokens)
    block = stack.blocks[layer - 1]
    return block.attention.matrix(block.attention_norm(tokens))


def _gaussian(spec, tokens, layer):
    shape = StackShape(spec.width, spec.head_dim, spec.heads)
    for number in range(1, layer):
        tokens = InitialLayer(shape, spec.seed, number)(tokens)
    (part,) = InitialLayer(shape, spec.seed, layer).logits(tokens)
    return torch.softmax(part.values, -1)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(("kind", "fields"), [(ImageRank, IMAGES), (TextRank, TEXTS)])
def test_ranks_are_those_of_a_full_decomposition(kind, fields, start):
    spec = kind(**fields, start=start, layers=(1, 2))
    rows = spec.ask()
    assert [row["layer"] for row in rows] == [1, 2]
    for row in rows:
        expected = full_ratios(spec, row["layer"])
        assert row["count"] == expected.numel() == 9
        assert row["undecided"] == 0
        assert row["mean"] == pytest.approx(float(expected.mean()), abs=1e-12)
        assert row["std"] == pytest.approx(float(expected.std(correction=0)), abs=1e-12)


def test_only_the_models_own_initialisation_counts_the_class_token():
    assert [ImageRank(**IMAGES, start=start).ask()[0]["tokens"] for start in STARTS] == [16, 17]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADWISE_DATA", str(tmp_path))
    return tmp_path


def plant_cifar10(folder, images):
    inside = folder / "cifar-10-batches-py"
    inside.mkdir()
    content = {"data": images.reshape(len(images), -1), "labels": [0] * len(images)}
    for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"):
        (inside / name).write_bytes(pickle.dumps(content, protocol=2))


def plant_imdb(folder, text):
    for part in ("train", "test"):
        for kind in ("neg", "pos"):
            inside = folder / "aclImdb" / part / kind
            inside.mkdir(parents=True)
            for number in range(2):
                (inside / f"{number}_0.txt").write_text(text)


def constant_images():
    """Four images of one colour each: all patches of an image are equal."""
    colours = np.array([0, 60, 120, 250], np.uint8).reshape(4, 1, 1, 1)
    return np.broadcast_to(colours, (4, 3, 32, 32)).copy()


def test_equal_patches_have_rank_one_and_positions_tell_them_apart(folder):
    plant_cifar10(folder, constant_images())
    plain, own = (
        ImageRank(dataset="cifar10", width=32, head_dim=16, batch=4, start=start).ask()[0]
        for start in STARTS
    )
    assert plain["mean"] == pytest.approx(1 / 64, abs=1e-12)
    assert plain["distinct"] == pytest.approx(1 / 64)
    assert plain["available"] == 20
    assert own["mean"] > 2 / 65


def test_equal_words_bound_the_rank(folder):
    plant_imdb(folder, "good bad " * 20)
    row = TextRank(dataset="imdb", tokens=30, width=16, head_dim=8, batch=2).ask()[0]
    assert row["distinct"] == pytest.approx(2 / 30)
    assert row["mean"] <= 2 / 30 + 1e-12
    one = TextRank(dataset="imdb", tokens=30, width=16, head_dim=8, batch=2, start="model").ask()
    assert one[0]["mean"] > row["mean"]


def test_equal_patches_are_as_far_from_orthonormal_as_can_be(folder):
    plant_cifar10(folder, constant_images())
    row = ImageOrthonormality(dataset="cifar10", head_dim=8, batch=4).ask()
    assert row["mean"] == pytest.approx(math.sqrt(64 * 63) / 64**2, rel=1e-12)
    assert row["std"] == pytest.approx(0, abs=1e-12)


def test_the_measure_is_that_of_the_cosines_one_by_one():
    spec = ImageOrthonormality(dataset="digits", patch=4, head_dim=3, batch=2)
    vectors = spec._embedding().entered().tokens
    found = []
    for own in vectors:
        squares = [
            float(torch.cosine_similarity(own[i], own[j], dim=0)) ** 2
            for i in range(4)
            for j in range(4)
            if i != j
        ]
        found.append(math.sqrt(sum(squares)) / 16)
    assert spec.ask()["mean"] == pytest.approx(sum(found) / 2, rel=1e-12)


def test_a_seed_draws_its_own_batch_without_repeats():
    assert torch.equal(draw_images("digits", 5, 0).images, draw_images("digits", 5, 0).images)
    assert not torch.equal(draw_images("digits", 5, 0).images, draw_images("digits", 5, 1).images)
    whole = draw_texts("digits", 1797, 64, 0).ids
    assert torch.equal(whole.sum(0), draw_texts("digits", 1797, 64, 1).ids.sum(0))


def test_images_are_standardised_over_the_training_part(folder):
    generator = np.random.default_rng(0)
    plant_cifar10(folder, generator.integers(0, 256, (6, 3, 32, 32), dtype=np.uint8))
    images = draw_images("cifar10", 30, 0).images
    assert images.dtype == torch.float64
    assert images.mean((0, 2, 3)).abs().max() < 1e-6
    assert (images.std((0, 2, 3), correction=0) - 1).abs().max() < 1e-6


def test_reviews_are_cut_to_both_ends(folder):
    plant_imdb(folder, "a b c d e f g")
    batch = draw_texts("imdb", 1, 4, 0)
    assert batch.ids.tolist() == [[1, 2, 6, 7]]
    assert (batch.words, batch.available) == (8, 4)


def test_distinct_tokens_are_counted_by_sequence():
    assert distinct_share(torch.tensor([[1, 1, 2, 2], [1, 2, 3, 4]])) == pytest.approx(6 / 8)
    assert distinct_share(torch.zeros(2, 5, 3)) == pytest.approx(1 / 5)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (ImageRank(**IMAGES | {"batch": 2000}), "expected a batch of at most 1797"),
        (ImageRank(**IMAGES | {"patch": 3}), "a patch that divides images of 8 × 8, got 3"),
        (TextRank(**TEXTS | {"tokens": 65}), "expected at most 64 words"),
    ],
)
def test_bad_sizes_are_refused_in_a_line(spec, words):
    with pytest.raises(BadInputError, match=words) as caught:
        spec.ask()
    assert "\n" not in str(caught.value)


def test_too_few_long_texts_are_refused(folder):
    plant_imdb(folder, "short text")
    with pytest.raises(BadInputError, match="expected 2 texts of at least 30 words in imdb, got 0"):
        TextRank(dataset="imdb", tokens=30, width=16, head_dim=8, batch=2).ask()


@pytest.mark.parametrize("changed", [{"head_dim": 32, "heads": None}, {"dataset": "mnist"}])
def test_impossible_specs_cannot_be_made(changed):
    with pytest.raises(ValidationError):
        ImageRank(**IMAGES | changed)


def test_an_absent_set_names_the_command(folder):
    with pytest.raises(UnreadableFileError, match=r"curl -LO .*cifar-10-python"):
        ImageRank(dataset="cifar10", head_dim=4).ask()
