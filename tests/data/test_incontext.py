"""In-context regression: the curriculum, and that leaving points out equals weighing them zero."""

import pytest
import torch

from headwise.attention import HeadGeometry, LearnedAdditive
from headwise.data import Batch, Curriculum, InContext, Samples
from headwise.errors import BadInputError
from headwise.models import EncoderStack, InContextRegressor
from headwise.randomness import stream


@pytest.mark.parametrize(
    ("step", "dimensions", "points"),
    [(0, 5, 11), (1999, 5, 11), (2000, 6, 13), (29_999, 19, 39), (30_000, 20, 41), (10**6, 20, 41)],
)
def test_the_curriculum_is_the_papers(step, dimensions, points):
    found = Curriculum().at(torch.tensor(step), dimensions=20, points=41)
    assert [int(value) for value in found] == [dimensions, points]


def test_a_shorter_run_has_a_faster_curriculum():
    task = InContext().for_steps(5000)
    assert task.curriculum.every == 20
    found = task.curriculum.at(torch.tensor(299), dimensions=20, points=41)
    assert [int(value) for value in found] == [19, 39]


@pytest.mark.parametrize(("dimensions", "points"), [(20, 41), (40, 81), (6, 41), (30, 12), (5, 11)])
def test_everything_is_in_use_after_the_share_and_not_before(dimensions, points):
    task = InContext(dimensions, points).for_steps(1000, share=0.5)
    sizes = {"dimensions": dimensions, "points": points}
    found = [task.curriculum.at(torch.tensor(step), **sizes) for step in (500, 499)]
    full = (dimensions, points)
    assert tuple(map(int, found[0])) == full
    assert tuple(map(int, found[1])) != full or full == (5, 11)


def test_answers_are_linear_and_unused_dimensions_zero():
    task = InContext()
    noise = task.noise(4, stream(0, "x"))
    x, y = task.batch(noise, torch.tensor(2000)).inputs
    assert not x[..., 6:].any() and x[..., :6].all()
    torch.testing.assert_close(y, torch.einsum("bpk,bk->bp", x, noise[:, -1]), atol=1e-5, rtol=0)
    everything = task.batch(noise, None).inputs[0]
    assert everything.all()


def test_unused_points_weigh_nothing_as_if_left_out():
    curriculum = Curriculum(first_dimensions=2, first_points=3, every=10)
    task = InContext(4, 7, curriculum)
    noise = task.noise(5, stream(0, "x"))
    (x, y), (target, weights) = task.batch(noise, torch.tensor(0))
    stack = EncoderStack(HeadGeometry.standard(8, 2), LearnedAdditive(14, 8), depth=2, mlp_width=8)
    model = InContextRegressor(stack, 4)
    whole = task.loss(model(x, y), target, weights)
    cut = (model(x[:, :3], y[:, :3]) - y[:, :3]).square().mean()
    torch.testing.assert_close(whole, cut)


def test_the_score_is_the_error_at_the_last_point():
    task = InContext(4, 7)
    _, (y, weights) = task.examine(5, stream(0, "x"))
    guess = torch.zeros_like(y)
    torch.testing.assert_close(task.score(guess, y, weights), y[:, -1].square().mean())
    torch.testing.assert_close(task.loss(guess, y, weights), y.square().mean())


def test_samples_are_drawn_and_judged():
    x, labels = torch.arange(10.0)[:, None], torch.arange(10) % 2
    task = Samples(Batch((x,), (labels,)), Batch((x[:4],), (labels[:4],)))
    batch = task.batch(task.noise(100, stream(0, "x")), None)
    assert torch.equal(batch.targets[0], batch.inputs[0][:, 0].long() % 2)
    assert batch.inputs[0].unique().numel() == 10
    right = torch.nn.functional.one_hot(labels, 2).float()
    assert task.score(right, labels) == 1 and task.score(1 - right, labels) == 0
    assert task.examine(3, stream(0, "x")).targets[0].tolist() == [0, 1, 0]


@pytest.mark.parametrize(("name", "other"), [("dimensions", "points"), ("points", "dimensions")])
def test_a_size_below_one_is_refused_and_what_the_hint_names_is_taken(name, other):
    with pytest.raises(
        BadInputError, match=f"expected {name} of at least 1, got 0; pass 1 or more"
    ):
        InContext(**{name: 0})
    task = InContext(**{name: 1, other: 3})
    x, _ = task.examine(2, stream(0, "x")).inputs
    assert x.shape == (2, task.points, task.dimensions)


def test_samples_without_as_many_labels_are_refused():
    x, labels = torch.zeros(3, 1), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(BadInputError, match=r"\[2, 3\] samples"):
        Samples(Batch((x,), (labels,)), Batch((x,), (labels,)))
