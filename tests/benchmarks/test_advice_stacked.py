"""The written-out models give what the models themselves give, and the same gradients."""

import pytest
import torch
from benchmarks.advice.datasets import IMDB_LENGTH, IMDB_VOCABULARY
from benchmarks.advice.stacked import stacked
from benchmarks.advice.tasks import BENCHES

from headwise.training.stacking import stack

#: Inputs of two sequences for two members.
INPUTS = {
    "imdb": lambda g: (torch.randint(IMDB_VOCABULARY, (2, 2, IMDB_LENGTH), generator=g),),
    "in-context": lambda g: (
        torch.randn(2, 2, 20, 6, generator=g).double(),
        torch.randn(2, 2, 20, generator=g).double(),
    ),
    "cifar10": lambda g: (torch.randn(2, 2, 3, 32, 32, generator=g).double(),),
    "digits-pixels": lambda g: (torch.randn(2, 2, 1, 8, 8, generator=g).double(),),
    "farthest-32": lambda g: (torch.randn(2, 2, 16, 32, generator=g).double(),),
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("sweep", ["heads", "width", "single"])
def test_outputs_and_gradients_are_those_of_the_models(name, sweep):
    bench = BENCHES[name]
    geometry = bench.geometries(sweep)[1]
    models = [bench.build(geometry, seed).double() for seed in (0, 1)]
    inputs = INPUTS[name](torch.Generator().manual_seed(0))
    leaves = {key: value.requires_grad_() for key, value in stack(models).items()}
    found = stacked(models[0])(leaves, inputs)
    found.square().sum().backward()
    for member, model in enumerate(models):
        expected = model(*(t[member] for t in inputs))
        torch.testing.assert_close(found[member], expected, rtol=1e-9, atol=1e-10)
        expected.square().sum().backward()
        for key, parameter in model.named_parameters():
            torch.testing.assert_close(
                leaves[key].grad[member], parameter.grad, rtol=1e-7, atol=1e-8, msg=key
            )


def test_other_models_are_refused():
    with pytest.raises(TypeError, match="Linear has no stacked form"):
        stacked(torch.nn.Linear(2, 2))
