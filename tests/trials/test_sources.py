"""Data of every kind becomes a problem; bad data gets one clear line."""

import numpy as np
import pytest
import torch

from headwise.errors import BadInputError, HeadwiseError, ParameterError
from headwise.geometry import HeadGeometry
from headwise.trials import trial
from headwise.trials.problems import Problem
from headwise.trials.sources import Frame, read_problem

TEXT = "the cat sat on the mat.\n" * 40
PAIR = [HeadGeometry.free(8, heads, 8 // heads) for heads in (1, 2)]


def test_text_without_labels_is_predicted_token_by_token():
    found = read_problem(TEXT, None, Frame(length=8))
    assert (found.kind, found.length, found.measure) == ("next-token", 8, "loss")
    batch = found.task("cpu").examine(3, torch.Generator())
    scores = found.build(PAIR[0], 0)(batch.inputs[0])
    assert scores.shape == (3, 8, found.vocabulary)


def test_a_text_file_and_a_folder_of_texts_are_read(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        for number in range(6):
            (tmp_path / name / f"{number}.txt").write_text(f"{name} words {number}")
    found = read_problem(tmp_path, None, Frame(length=4))
    assert found.kind == "ids" and found.labels.tolist() == [0] * 6 + [1] * 6
    assert found.lengths.tolist() == [3] * 12
    joined = read_problem(tmp_path, None, Frame(task="next-token", length=4))
    assert joined.kind == "next-token"
    (tmp_path / "text.txt").write_text(TEXT)
    assert read_problem(tmp_path / "text.txt", None, Frame()).kind == "next-token"


def test_a_folder_of_images_has_its_classes_from_subfolders(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name, level in (("dark", 10), ("light", 240)):
        (tmp_path / name).mkdir()
        for number in range(6):
            pixels = np.full((9, 9, 3), level + number, dtype=np.uint8)
            image.fromarray(pixels).save(tmp_path / name / f"{number}.png")
    found = read_problem(tmp_path, None, Frame(size=8))
    assert found.inputs.shape == (12, 3, 8, 8) and found.patch == 2
    assert found.labels.tolist() == [0] * 6 + [1] * 6


def test_ids_without_labels_are_sequences_to_predict():
    rows = torch.arange(60).view(10, 6) % 7
    assert read_problem(rows, None, Frame()).length == 5
    assert read_problem(rows.flatten().repeat(5), None, Frame(length=9)).length == 9


def test_names_of_classes_become_numbers():
    texts = ["good words here", "bad words there"] * 6
    found = read_problem(texts, ["pos", "neg"] * 6, Frame(length=3))
    assert found.labels.tolist() == [1, 0] * 6


def test_a_problem_is_written_and_read_as_it_is(tmp_path):
    found = read_problem(["a b", "c d e"] * 6, [0, 1] * 6, Frame(length=3))
    found.write(tmp_path / "problem.pt")
    again = Problem.read(tmp_path / "problem.pt")
    assert again.identity == found.identity
    other = read_problem(["a b c", "c d e"] * 6, [0, 1] * 6, Frame(length=3))
    assert other.identity != found.identity


def test_a_language_model_is_tried():
    how = {"width": 8, "depth": 1, "steps": 8, "batch": 4, "seeds": (0, 1), "length": 8}
    found = trial(TEXT, candidates=PAIR, **how)
    assert found.measure == "loss" and found.best.score < np.log(20)


@pytest.mark.parametrize(
    ("inputs", "labels", "frame", "message"),
    [
        (torch.zeros(12, 3), None, Frame(), "whole-number ids"),
        (torch.tensor([[-1, 2]] * 12), None, Frame(), "ids from 0 up, got -1"),
        (torch.zeros(12, 1, 4, 5), [0, 1] * 6, Frame(), "expected images"),
        (["some text"] * 12, [0, 1, 2], Frame(), "expected 12 class numbers"),
        (["some text"] * 12, [-1, 1] * 6, Frame(), "numbered from 0"),
        ("a\nb", None, Frame(length=64), "expected at least"),
        (torch.zeros(12, 1, 4, 4), [0, 1] * 6, Frame(patch=3), "a patch that divides"),
    ],
)
def test_bad_data_gets_one_clear_line(inputs, labels, frame, message):
    with pytest.raises(BadInputError, match=message) as raised:
        read_problem(inputs, labels, frame).build(PAIR[0], 0)
    assert "\n" not in str(raised.value)


def test_odd_places_and_tasks_are_refused(tmp_path):
    with pytest.raises(HeadwiseError, match="there is no file or folder"):
        read_problem(tmp_path / "absent", None, Frame())
    with pytest.raises(HeadwiseError, match="expected images or texts"):
        read_problem(tmp_path, None, Frame())
    with pytest.raises(ParameterError, match="expected task"):
        read_problem("digits", None, Frame(task="translate"))
    with pytest.raises(ParameterError, match="got one text"):
        read_problem(TEXT, None, Frame(task="classify"))
    with pytest.raises(ParameterError, match="got images"):
        read_problem("digits", None, Frame(task="next-token"))
    (tmp_path / "a.txt").write_text(TEXT)
    with pytest.raises(ParameterError, match="expected no labels beside"):
        read_problem(tmp_path / "a.txt", [0, 1], Frame())


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [
        ("digits", {"size": 3}),
        ("digits", {"tokenizer": "word"}),
        ("digits", {"length": 5}),
        (torch.zeros(4, 3, 2), {"length": 5}),
        (torch.zeros(4, 9).long(), {"tokenizer": "word"}),
    ],
)
def test_parameters_without_use_are_refused(inputs, asked):
    """They were ignored without a word."""
    labels = None if isinstance(inputs, str) else [0, 1, 0, 1]
    with pytest.raises(ParameterError, match=f"has no use for `{next(iter(asked))}`; leave that"):
        read_problem(inputs, labels, Frame(**asked))
