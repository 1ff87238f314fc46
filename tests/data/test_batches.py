"""What loaders yield: tuples, mappings, single sequences, and what cannot be joined."""

from collections import UserDict

import pytest
import torch

from headwise.advice.tokens.source import Reading, read_tokens
from headwise.data.batches import joined_batches
from headwise.errors import BadInputError

IDS = torch.arange(12).reshape(2, 6)
VECTORS = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("batch", "wanted"),
    [
        (IDS, IDS),
        ((VECTORS, "labels"), VECTORS),
        ({"labels": 1, "attention_mask": IDS * 0, "input_ids": IDS}, IDS),
        (UserDict(pixel_values=IMAGES), IMAGES),
        ({"x": VECTORS, "y": 0}, VECTORS),
        ({"inputs": VECTORS, "x": IDS}, VECTORS),
        (({"input_ids": IDS}, "labels"), IDS),
        # One sequence or image alone, as a dataset without batches gives them.
        ({"input_ids": IDS[0].tolist()}, IDS[:1]),
        (IDS[0], IDS[:1]),
        (IDS[0].tolist(), IDS[:1]),
        (VECTORS[0], VECTORS[:1]),
        ({"pixel_values": IMAGES[0]}, IMAGES[:1]),
    ],
)
def test_the_inputs_of_a_batch_are_found(batch, wanted):
    found, _ = joined_batches(iter([batch, batch]), "a:b", most=256)
    torch.testing.assert_close(found, torch.cat([wanted, wanted]))


def test_a_mapping_alone_is_one_batch_and_an_array_is_taken_as_it_is():
    assert joined_batches({"input_ids": IDS}, "a:b", 256)[0].tolist() == IDS.tolist()
    assert joined_batches(IDS.numpy(), "a:b", 256)[0].tolist() == IDS.tolist()


def test_an_endless_loader_is_read_as_far_as_is_needed():
    def endless():
        while True:
            yield {"input_ids": IDS}

    assert len(joined_batches(endless(), "a:b", most=17)[0]) == 17


@pytest.mark.parametrize(
    ("batches", "words"),
    [
        ([[]], "gave an empty batch; give batches of tokens"),
        ([([], 1)], "gave an empty batch"),
        ([{"tokens": IDS, "mask": IDS}], "got tokens, mask; rename the inputs"),
        ([{}], "got no keys"),
        ([IDS, IDS[:, :4]], "one length, got 4 to 6 tokens; cut them"),
        ([VECTORS, VECTORS[:, :5]], "one length, got 5 to 6 tokens"),
        ([{"input_ids": [[1, 2, 3], [4]]}], "one length, got 1 to 3 tokens"),
        ([{"input_ids": [1, 2, 3]}, {"input_ids": [4, 5]}], "one length, got 2 to 3 tokens"),
        ([IMAGES, IMAGES[..., :4]], "one shape, got (3, 8, 4) and (3, 8, 8)"),
        ([VECTORS, IDS], "one shape, got (6,) and (6, 3)"),
        ([{"x": "words"}], "got a batch of type str"),
        ([torch.tensor(3)], "one number"),
        ([], "gave no batches"),
    ],
)
def test_what_cannot_be_joined_gets_one_clear_line(batches, words):
    with pytest.raises(BadInputError) as raised:
        joined_batches(batches, "a:b", most=256)
    assert words in str(raised.value)
    assert str(raised.value).startswith("a:b")
    assert "\n" not in str(raised.value)


def test_a_loader_of_mappings_is_a_source(tmp_path, monkeypatch):
    (tmp_path / "mapping_loader.py").write_text(
        "import torch\n"
        "def text():\n    yield {'input_ids': torch.arange(20).reshape(2, 10), 'labels': None}\n"
        "def images():\n    yield {'pixel_values': torch.randn(3, 3, 8, 8)}\n"
    )
    monkeypatch.chdir(tmp_path)
    assert read_tokens("mapping_loader:text", Reading(width=8)).embedding == "table"
    assert read_tokens("mapping_loader:images", Reading()).values.shape == (3, 4, 48)


def test_labels_may_be_classes_or_numbers_to_predict():
    """Numbers to predict were dropped."""
    values = torch.zeros(4, 3, 2)
    classes = joined_batches([(values, [0, 1, 2, 1])], "loader", most=9)[1]
    numbers = joined_batches([(values, [0.5, 1, 2, -1])], "loader", most=9)[1]
    assert classes.tolist() == [0, 1, 2, 1] and not classes.is_floating_point()
    assert numbers.tolist() == [0.5, 1, 2, -1]
    assert joined_batches([(values, torch.zeros(4, 2))], "loader", most=9)[1] is None
