"""Whatever data a person has is read in one place, and advise and trial accept the same."""

import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from headwise.advice.tokens.source import Reading, read_tokens
from headwise.data.named_functions import function_named
from headwise.data.sources import read_source
from headwise.data.text import encode_all
from headwise.endings import TEXTS
from headwise.errors import HeadwiseError, ParameterError, UnreadableFileError
from headwise.trials.sources import Frame, read_problem

TEXT = "the cat sat on the mat.\n" * 40
IDS = torch.arange(96).reshape(12, 8) % 7
IMAGES = torch.randn(12, 3, 8, 8, generator=torch.Generator().manual_seed(0))
CLASSES = torch.arange(12) % 2


def pictures(folder, names=("dark", "light")):
    image = pytest.importorskip("PIL.Image")
    for level, name in enumerate(names):
        (folder / name).mkdir(parents=True)
        for number in range(6):
            pixels = np.random.default_rng(number).integers(0, 99, (9, 9, 3)) + 100 * level
            image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{number}.png")
    return folder


@pytest.mark.parametrize("ending", TEXTS)
def test_both_read_every_text_file(tmp_path, ending):
    (tmp_path / f"a{ending}").write_text(TEXT)
    assert read_tokens(tmp_path / f"a{ending}", Reading()).learned
    assert read_problem(tmp_path / f"a{ending}", None, Frame()).kind == "next-token"


def test_both_read_a_folder_of_texts(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for number in range(6):
            (tmp_path / name / f"{number}.txt").write_text(f"{name} words {number}")
    assert read_tokens(tmp_path, Reading(length=9)).vocabulary == 10
    assert read_problem(tmp_path, None, Frame()).labels.tolist() == [0] * 6 + [1] * 6
    assert read_source(tmp_path, most=4).labels == ["one", "one", "two", "two"]


def test_both_read_pictures(tmp_path):
    pictures(tmp_path)
    assert read_tokens(tmp_path, Reading(size=8)).images
    assert read_tokens(tmp_path / "dark" / "0.png", Reading(size=8)).values.shape == (1, 4, 48)
    assert read_problem(tmp_path, None, Frame(size=8)).labels.tolist() == [0] * 6 + [1] * 6
    (tmp_path / "dark" / "0.png").rename(tmp_path / "0.png")
    assert read_tokens(tmp_path, Reading(size=8)).sequences == 12
    with pytest.raises(HeadwiseError, match="expected every file in a subfolder"):
        read_problem(tmp_path, None, Frame(size=8))


def test_a_folder_of_images_and_texts_is_refused_unless_one_kind_is_rare(tmp_path):
    pictures(tmp_path)
    (tmp_path / "readme.txt").write_text("what is here")
    assert read_source(tmp_path).kind == "pictures"
    (tmp_path / "license.md").write_text("may be used")
    expected = "expected images or texts in .*, got 12 images and 2 texts; pass a folder that holds"
    with pytest.raises(UnreadableFileError, match=expected):
        read_source(tmp_path)
    for number in range(130):
        (tmp_path / f"{number}.txt").write_text(f"{number}")
    assert read_source(tmp_path).kind == "text"


def test_pictures_without_subfolders_take_labels_in_the_order_of_their_names(tmp_path):
    folder = pictures(tmp_path, names=("one",)) / "one"
    for number in range(6):
        (folder / f"a{number}.png").write_bytes((folder / f"{number}.png").read_bytes())
    assert read_problem(folder, CLASSES, Frame()).labels.tolist() == CLASSES.tolist()
    with pytest.raises(HeadwiseError, match="expected 12 class numbers, got none"):
        read_problem(folder, None, Frame())


class Pairs(Dataset):
    """Images one by one, as torchvision gives them."""

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, index):
        return IMAGES[index], int(CLASSES[index])


@pytest.mark.parametrize(
    "source",
    [
        DataLoader(TensorDataset(IMAGES, CLASSES), batch_size=5),
        Pairs(),
        [{"pixel_values": IMAGES[:7], "label": CLASSES[:7]}, (IMAGES[7:], CLASSES[7:])],
    ],
    ids=["loader", "dataset", "batches"],
)
def test_both_read_batches_and_a_trial_takes_their_labels(source):
    assert read_tokens(source, Reading()).sequences == 12
    found = read_problem(source, None, Frame())
    assert found.labels.tolist() == CLASSES.tolist()
    torch.testing.assert_close(found.inputs, IMAGES.double())
    with pytest.raises(ParameterError, match="expected no labels beside tokens"):
        read_problem(source, CLASSES, Frame())


@pytest.mark.parametrize("labels", [IDS, torch.rand(12, 2), "words", None])
def test_what_is_no_number_for_each_sample_is_no_label(labels):
    found = read_source([{"input_ids": IDS, "labels": labels}], most=256)
    assert found.labels is None and found.values.tolist() == IDS.tolist()
    assert read_source(iter([[1, 2], [3, 4]]), most=256).labels is None


def test_both_call_a_function_and_leave_the_path_as_it_was(tmp_path, monkeypatch):
    (tmp_path / "named_source.py").write_text(
        "import torch\n"
        "def ids():\n    import named_later\n    return named_later.IDS\n"
        "def lines():\n    return ['some words here', 'and more words there'] * 20\n"
        "def wrong():\n    return 3\n"
    )
    (tmp_path / "named_later.py").write_text("import torch\nIDS = torch.arange(96).view(12, 8)\n")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert read_tokens("named_source:ids", Reading(width=8)).name == "named_source:ids"
    assert read_problem("named_source:ids", None, Frame()).length == 7
    assert read_problem("named_source:ids", [0, 1] * 6, Frame()).kind == "ids"
    assert read_tokens("named_source:lines", Reading(tokenizer="word", length=8)).learned
    assert function_named("named_source:lines")()[0] == "some words here"
    for name, words in {
        "named_source:none": "AttributeError",
        "absent_source:a": "ModuleNot",
    }.items():
        with pytest.raises(UnreadableFileError, match=f"{name} failed .{words}"):
            read_source(name, most=256)
    with pytest.raises(HeadwiseError, match="named_source:wrong holds no tokens; pass an array"):
        read_source("named_source:wrong", most=256)
    assert sys.path == before


@pytest.mark.parametrize(
    "read", [lambda s: read_tokens(s, Reading()), lambda s: read_problem(s, None, Frame())]
)
@pytest.mark.parametrize(
    "source",
    [
        3,
        "word " * 100,
        [object()],
        "no/such/file.txt",
        ["a", 3],
        torch.empty(4, 5, 6, device="meta"),
        torch.eye(3).expand(2, 3, 3).to_sparse(),
        np.array([["a"]]),
    ],
)
def test_what_cannot_be_read_gets_one_clear_line(read, source):
    with pytest.raises(HeadwiseError) as raised:
        read(source)
    assert "\n" not in str(raised.value)


def test_labels_beside_a_text_or_the_digits_are_refused():
    for source in (TEXT, "digits"):
        with pytest.raises(ParameterError, match="expected no labels beside"):
            read_problem(source, [0, 1], Frame())


def test_long_texts_keep_their_first_and_last_tokens():
    rows, lengths = encode_all(lambda text: torch.arange(len(text)), ["a" * 9, "b"], 4)
    assert rows.tolist() == [[0, 1, 7, 8], [0, 0, 0, 0]] and lengths.tolist() == [4, 1]
    assert encode_all(lambda text: torch.arange(len(text)), ["a" * 9], 1)[0].tolist() == [[0]]
