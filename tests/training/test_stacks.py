"""The written-out models give what the models themselves give, and the same gradients."""

import pytest
import torch
from benchmarks.advice.datasets import IMDB_LENGTH
from benchmarks.advice.tasks import BENCHES
from benchmarks.advice.text_sets import VOCABULARY

from headwise.attention import HeadGeometry, LearnedAdditive, Rotary
from headwise.models import Decoder, EncoderStack, Style
from headwise.training import linear_maps
from headwise.training.linear_maps import linear_map, weight_gradient
from headwise.training.stacking import stack
from headwise.training.stacks import written_out

#: Inputs of two sequences for two members.
INPUTS = {
    "imdb": lambda g: (torch.randint(VOCABULARY, (2, 2, IMDB_LENGTH), generator=g),),
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
    forward = written_out(models, [(0, 2)])
    assert forward is not None
    found = forward(leaves, inputs)
    found.square().sum().backward()
    for member, model in enumerate(models):
        expected = model(*(t[member] for t in inputs))
        torch.testing.assert_close(found[member], expected, rtol=1e-9, atol=1e-10)
        expected.square().sum().backward()
        for key, parameter in model.named_parameters():
            own = leaves[key].grad
            assert own is not None
            torch.testing.assert_close(own[member], parameter.grad, rtol=1e-7, atol=1e-8, msg=key)


def test_a_decoder_is_written_out_too():
    geometries = [HeadGeometry.free(8, heads, 8 // heads) for heads in (1, 2)]
    models = [
        Decoder(EncoderStack(g, LearnedAdditive(5, 8), depth=2, mlp_width=16), 11, seed).double()
        for g in geometries
        for seed in (0, 1)
    ]
    ids = torch.randint(11, (4, 3, 5), generator=torch.Generator().manual_seed(0))
    forward = written_out(models, [(0, 2), (2, 4)])
    assert forward is not None
    found = forward(stack(models), (ids,))
    for member, model in enumerate(models):
        torch.testing.assert_close(found[member], model(ids[member]), rtol=1e-9, atol=1e-10)


def encoder(**more):
    return EncoderStack(HeadGeometry.standard(8, heads=2), depth=1, mlp_width=16, **more)


@pytest.mark.parametrize(
    "other",
    [
        lambda: torch.nn.Linear(2, 2),
        lambda: encoder(position=Rotary(4)),
        lambda: encoder(style=Style(biases="none")),
        lambda: encoder(norm="rms"),
        lambda: EncoderStack(HeadGeometry(8, 2, 1, 4, 4), depth=1, mlp_width=16),
    ],
)
def test_models_of_another_kind_have_no_such_form(other):
    assert written_out([encoder()], [(0, 1)]) is not None
    assert written_out([other()], [(0, 1)]) is None


@pytest.mark.parametrize("pieces", [1, 2, 3, 12])
def test_a_weight_gradient_in_pieces_is_the_whole(pieces):
    g = torch.Generator().manual_seed(pieces)
    given, rows = (torch.randn(2, 12, k, generator=g, dtype=torch.float64) for k in (3, 5))
    torch.testing.assert_close(weight_gradient(given, rows, pieces), given.mT @ rows)


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_a_map_cut_into_pieces_has_the_gradients_of_the_whole(monkeypatch, factor):
    g = torch.Generator().manual_seed(0)
    sizes = ((2, 12, 5), (2, 3, 5), (2, 3))
    leaves = [torch.randn(s, generator=g, dtype=torch.float64, requires_grad=True) for s in sizes]

    def gradients():
        mapped = linear_map(leaves[0], leaves[1], leaves[2], factor)
        return torch.autograd.grad(mapped.square().sum(), leaves)

    whole = gradients()
    monkeypatch.setattr(linear_maps, "_pieces", lambda rows, weight: 4)
    for cut, expected in zip(gradients(), whole, strict=True):
        torch.testing.assert_close(cut, expected)
