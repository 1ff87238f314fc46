"""Trials on vectors: planted labels are learned, data are split once, wrong labels are refused."""

import numpy as np
import pytest
import torch

from headwise.data import Samples
from headwise.errors import BadInputError, ParameterError
from headwise.geometry import HeadGeometry
from headwise.models import VectorClassifier
from headwise.training.stacking import stack
from headwise.training.stacks import written_out
from headwise.trials import splits, trial
from headwise.trials.ensembles import EnsembleRunner
from headwise.trials.problems import HELD_OUT, Problem
from headwise.trials.sources import Frame, read_problem
from headwise.trials.workers import settings_of

PAIR = splits(8)
HOW = {"width": 8, "depth": 1, "steps": 300, "rate": 1e-2, "seeds": (0, 1), "candidates": PAIR}

GENERATOR = torch.Generator().manual_seed(0)
VECTORS = torch.randn(400, 6, 3, generator=GENERATOR)

#: Labels that depend on one token in many, known by its position or by a mark.
BY_PLACE = (VECTORS[:, 4, 0] > 0).long()
MARKED = VECTORS.clone()
PLACES = torch.randint(6, (400,), generator=GENERATOR)
MARKED[:, :, 2] = 3.0 * torch.nn.functional.one_hot(PLACES, 6)
BY_MARK = (MARKED[torch.arange(400), PLACES, 0] > 0).long()

#: Labels by the mean over tokens.
BY_MEAN = (VECTORS[..., 1].mean(1) > 0).long()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vectors", "labels"),
    [(VECTORS, BY_PLACE), (MARKED, BY_MARK), (VECTORS, BY_MEAN)],
    ids=["place", "mark", "mean"],
)
def test_planted_classes_are_learned(vectors, labels):
    found = trial(vectors, labels, **HOW)
    assert found.measure == "error rate" and found.constant > 0.4
    assert found.learned and found.best.predicted < 0.15


def test_planted_numbers_are_learned_and_their_error_is_relative():
    numbers = 1000.0 + 50.0 * VECTORS[..., 1].mean(1).double()
    found = trial(VECTORS, numbers, **HOW)
    assert found.measure == "relative error"
    # A constant has the whole variance as its error, up to that of the test part.
    assert 0.7 < found.constant < 1.3
    assert found.best.predicted < 0.1


def test_labels_of_chance_are_not_learned():
    labels = torch.randint(2, (400,), generator=GENERATOR)
    assert trial(VECTORS, labels, **{**HOW, "steps": 40}).best.predicted > 0.3


def test_images_and_ids_take_numbers_too():
    how = {**HOW, "steps": 8}
    images, ids = VECTORS[:, :4, :1].reshape(400, 1, 2, 2), (VECTORS[..., 0] > 0).long()
    for inputs in (images, ids):
        assert trial(inputs, VECTORS[:, 0, 0].numpy(), **how).measure == "relative error"


def test_whole_numbers_are_predicted_as_numbers_if_asked():
    counts = torch.arange(400) % 7
    assert not read_problem(VECTORS, counts, Frame()).regresses
    found = read_problem(VECTORS, counts, Frame(task="regress"))
    assert found.regresses and found.outputs == 1 and found.advised_task == "regress"


def test_the_test_part_is_apart_and_the_same_for_every_seed_and_geometry():
    numbered = torch.arange(400.0).view(400, 1, 1).expand(400, 6, 3)
    problem = read_problem(numbered, BY_MEAN, Frame(depth=1))
    samples = problem.task("cpu")
    trained, tested = (set(part.inputs[0][:, 0, 0].tolist()) for part in parts(samples))
    assert len(trained) == 280 and len(tested) == round(HELD_OUT * 400)
    assert not trained & tested
    settings = settings_of(problem, "cpu", seeds=(0, 1), steps=4, batch=8, rate=1e-3)
    runner = EnsembleRunner({"a": PAIR[0], "b": PAIR[1]}, problem.build, samples, settings)
    runner.train(["a", "b"], 1)
    (ensemble,) = runner.stacks.values()
    seen = ensemble.tested.inputs[0]
    assert seen.shape[:2] == (4, 120) and all(torch.equal(one, seen[0]) for one in seen)
    # The same seed draws the same data for both geometries, another seed others.
    noise = ensemble.noise.draw(ensemble.state.step)
    order = [(member.variant, member.seed) for member in ensemble.members]
    drawn = dict(zip(order, noise, strict=True))
    assert torch.equal(drawn["a", 0], drawn["b", 0])
    assert not torch.equal(drawn["a", 0], drawn["a", 1])


def parts(samples: Samples):
    return samples.trained, samples.held_out


def test_channels_are_standardised_by_the_training_part_alone():
    scales = torch.tensor([1e-3, 1e5, 0.0])
    problem = read_problem(VECTORS * scales + scales, BY_MEAN, Frame())
    trained, tested = (part.inputs[0] for part in parts(problem.task("cpu")))
    mean, spread = trained.mean((0, 1)), trained.std((0, 1), correction=0)
    torch.testing.assert_close(mean, torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(spread, torch.tensor([1.0, 1.0, 0.0]), atol=1e-4, rtol=0)
    assert 1e-4 < tested[..., :2].mean((0, 1)).abs().max() < 0.3


def test_the_written_out_model_is_the_model():
    problem = read_problem(VECTORS.double(), BY_MEAN, Frame(depth=2))
    geometries = [HeadGeometry.free(8, heads, 8 // heads) for heads in (1, 2)]
    models = [problem.build(g, seed).double() for g in geometries for seed in (0, 1)]
    assert all(isinstance(model, VectorClassifier) for model in models)
    inputs = torch.randn(4, 5, 6, 3, generator=GENERATOR).double()
    forward = written_out(models, [(0, 2), (2, 4)])
    assert forward is not None
    found = forward(stack(models), (inputs,))
    for member, model in enumerate(models):
        torch.testing.assert_close(found[member], model(inputs[member]), rtol=1e-9, atol=1e-10)


def test_geometries_of_equal_shapes_train_as_one_ensemble():
    problem = read_problem(VECTORS, BY_MEAN, Frame(depth=1))
    settings = settings_of(problem, "cpu", seeds=(0, 1), steps=4, batch=8, rate=1e-3)
    runner = EnsembleRunner(
        {"a": PAIR[0], "b": PAIR[1]}, problem.build, problem.task("cpu"), settings
    )
    runner.train(["a", "b"], 1)
    assert len(runner.stacks) == 1


def test_numbers_survive_the_way_to_a_worker(tmp_path):
    problem = read_problem(VECTORS, VECTORS[:, 0, 0], Frame())
    problem.write(tmp_path / "problem.pt")
    again = Problem.read(tmp_path / "problem.pt")
    assert again.identity == problem.identity and again.measure == "relative error"


@pytest.mark.parametrize(
    ("inputs", "labels", "frame", "message"),
    [
        (VECTORS, None, Frame(), "expected 400 class numbers, got none"),
        (VECTORS, None, Frame(task="regress"), "expected 400 class numbers, got none"),
        (VECTORS, BY_MEAN[:5], Frame(), r"got labels of shape \(5,\)"),
        (VECTORS, BY_MEAN.float(), Frame(), "type float32; convert them to whole numbers, or pass"),
        (VECTORS, VECTORS[:, 0, 0], Frame(task="classify"), "pass `task='regress'`"),
        (VECTORS, torch.full((400,), np.nan), Frame(task="regress"), "finite and different"),
        (VECTORS, torch.full((400,), 0.5), Frame(), "from 0.5 to 0.5"),
        (VECTORS[:, 0], VECTORS[:, 0, 0], Frame(), r"vectors \(b, n, c\) or whole-number ids"),
        (VECTORS[:, :0], BY_MEAN, Frame(), r"got shape \(400, 0, 3\)"),
    ],
)
def test_odd_vectors_and_labels_get_one_clear_line(inputs, labels, frame, message):
    with pytest.raises(BadInputError, match=message) as raised:
        read_problem(inputs, labels, frame)
    assert "\n" not in str(raised.value)


def test_tasks_and_options_that_vectors_do_not_take_are_refused():
    with pytest.raises(ParameterError, match="got vectors; pass labels"):
        read_problem(VECTORS, None, Frame(task="next-token"))
    with pytest.raises(ParameterError, match="`patch` goes with images, got vectors"):
        read_problem(VECTORS, BY_MEAN, Frame(patch=2))
    with pytest.raises(BadInputError, match="got names of classes"):
        read_problem(VECTORS, ["a", "b"] * 200, Frame(task="regress"))


def test_a_loader_may_hold_numbers_to_predict():
    """They were read as no labels at all."""
    data = torch.utils.data.TensorDataset(VECTORS, VECTORS[..., 1].mean(1))
    for source in (data, torch.utils.data.DataLoader(data, batch_size=50)):
        found = read_problem(source, None, Frame(depth=1))
        assert found.regresses and found.labels.shape == (400,)
