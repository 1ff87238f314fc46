"""Digits, patches, vocabularies and windows."""

import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from headwise.data import (
    Vocabulary,
    digits,
    patches,
    read_source,
    read_text,
    standardised,
    tokenizer_file,
    windows,
)
from headwise.errors import BadInputError, HeadwiseError


def test_the_digits_are_the_known_ones():
    found = digits()
    assert found.images.shape == (1797, 1, 8, 8)
    # What the public copies of this set have: classes, total ink, and the first image's top row.
    assert torch.bincount(found.labels).tolist() == [
        178,
        182,
        177,
        183,
        181,
        182,
        181,
        179,
        174,
        180,
    ]
    assert int((found.images * 16).sum()) == 561718
    assert (found.images[0, 0, 0] * 16).tolist() == [0, 0, 5, 13, 9, 1, 0, 0]


def test_patches_cut_row_by_row_and_lose_nothing():
    images = torch.arange(2 * 3 * 4 * 4).double().reshape(2, 3, 4, 4)
    cut = patches(images, 2)
    assert cut.shape == (2, 4, 12)
    torch.testing.assert_close(cut[1, 1], images[1, :, :2, 2:].flatten())
    torch.testing.assert_close(
        cut.sort(-1).values.flatten(1).sort(-1).values, images.flatten(1).sort(-1).values
    )


@pytest.mark.parametrize("side", [1, 2, 4])
def test_patches_are_what_unfold_cuts(side):
    images = torch.randn(3, 2, 12, 8, generator=torch.Generator().manual_seed(0))
    wanted = torch.nn.functional.unfold(images, kernel_size=side, stride=side).mT
    assert torch.equal(patches(images, side), wanted)


def test_standard_images_have_unit_variance_even_if_a_channel_is_flat():
    images = torch.rand(5, 2, 4, 4).double()
    images[:, 1] = 0.3
    found = standardised(images)
    assert float(found[:, 0].std(correction=0)) == pytest.approx(1)
    assert float(found[:, 1].abs().max()) < 1e-12


@given(st.text(max_size=200), st.sampled_from(["character", "word"]))
def test_every_symbol_of_a_text_has_an_id(text, level):
    vocabulary = Vocabulary.of(text, level)
    ids = vocabulary.encode(text)
    assert not (ids == 0).any()
    assert ids.numel() == 0 or int(ids.max()) < vocabulary.size


def test_unknown_symbols_share_the_id_zero():
    words = Vocabulary.of("a b b", "word")
    assert words.encode("b c a").tolist() == [1, 0, 2]


@given(st.integers(1, 200), st.integers(1, 20), st.integers(1, 10))
def test_windows_are_stretches_of_the_text(size, length, most):
    ids = torch.arange(size)
    if size < length:
        with pytest.raises(BadInputError, match="pass a length of at most"):
            windows(ids, length, most)
        return
    found = windows(ids, length, most)
    assert found.shape[0] <= most
    assert found.shape[0] == min(most, size // length)
    assert bool((found.diff(dim=1) == 1).all())
    assert len(set(found[:, 0].tolist())) == len(found)


def tokenizer_json(path, **changed):
    """A tokenizer of two words and two special tokens, written to ``path``."""
    vocab = {"one": 0, "two": 1, "?": 2, "[CLS]": 3, "[PAD]": 4}
    parts = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "truncation": None,
        "padding": None,
        "post_processor": None,
        "decoder": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "?"},
    }
    path.write_text(json.dumps(parts | changed))
    return path


def test_a_tokenizer_file_is_read(tmp_path):
    pytest.importorskip("tokenizers")
    path = tokenizer_json(tmp_path / "tokenizer.json")
    encode, size = tokenizer_file(path)
    assert (encode("two one three").tolist(), size) == ([1, 0, 2], 5)
    path.write_text("{}")
    with pytest.raises(HeadwiseError, match="is not a tokenizer file"):
        tokenizer_file(path)


TRUNCATION = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
PADDING = {"strategy": {"Fixed": 6}, "direction": "Right", "pad_to_multiple_of": None}
PADDING |= {"pad_id": 4, "pad_type_id": 0, "pad_token": "[PAD]"}
CLASS_FIRST = {
    "type": "TemplateProcessing",
    "single": [
        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
        {"Sequence": {"id": "A", "type_id": 0}},
    ],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [3], "tokens": ["[CLS]"]}},
}


def test_a_pattern_that_takes_too_many_steps_is_refused(tmp_path):
    """The library panics, which is no Exception: it ended in a traceback."""
    tokenizers = pytest.importorskip("tokenizers")
    slow = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
    slow.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex("(a+)+$"), "isolated")
    slow.save(str(tmp_path / "tokenizer.json"))
    encode, _ = tokenizer_file(tmp_path / "tokenizer.json")
    with pytest.raises(HeadwiseError, match="cannot encode the text") as caught:
        encode(60 * "a" + "!")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "asked", [{"truncation": TRUNCATION}, {"padding": PADDING}, {"post_processor": CLASS_FIRST}]
)
def test_a_tokenizer_file_gives_the_whole_text_and_nothing_else(tmp_path, asked):
    pytest.importorskip("tokenizers")
    encode, _ = tokenizer_file(tokenizer_json(tmp_path / "tokenizer.json", **asked))
    assert encode("one two two one").tolist() == [0, 1, 1, 0]


def test_bad_files_get_one_clear_line(tmp_path):
    (tmp_path / "latin.txt").write_bytes("größe".encode("latin-1"))
    with pytest.raises(HeadwiseError, match="is not UTF-8 text"):
        read_text(tmp_path / "latin.txt")
    with pytest.raises(HeadwiseError, match="cannot be opened"):
        read_text(tmp_path / "absent.txt")
    (tmp_path / "pictures").mkdir()
    with pytest.raises(HeadwiseError, match="expected images or texts"):
        read_source(tmp_path / "pictures")


def test_many_pictures_are_sampled_across_subfolders(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for folder, shade in (("a", 0), ("b", 255)):
        (tmp_path / folder).mkdir()
        for number in range(6):
            image.new("L", (4, 4), shade).save(tmp_path / folder / f"{number}.png")
    found = read_source(tmp_path, size=2, most=4).values
    assert found.mean((1, 2, 3)).tolist() == [0, 0, 1, 1]
