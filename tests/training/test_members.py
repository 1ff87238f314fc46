"""A member of an ensemble is the model it would be alone: answers, gradients, updates."""

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.func import functional_call

from headwise.attention import HeadGeometry, LearnedAdditive
from headwise.data import Batch, FarthestNeighbour, InContext, Samples
from headwise.models import (
    EncoderStack,
    Images,
    InContextRegressor,
    NeighbourShape,
    TextClassifier,
    ViTClassifier,
)
from headwise.randomness import stream
from headwise.training import AdamW, Ensemble, Fixed, Settings
from headwise.training.optimiser import rate_share
from headwise.training.stacking import StackedModules

EXACT = {"rtol": 1e-11, "atol": 1e-13}


def shape(rank, **more):
    given = {"width": 12, "tokens": 5, "layers": 2, "mlp_width": 7, "copies": 2}
    return NeighbourShape(rank=rank, **(given | more))


def stack_of(heads=3, rank=2, **more):
    return EncoderStack(HeadGeometry.free(12, heads, rank), depth=2, mlp_width=7, **more)


def vit(seed):
    images = Images(size=8, patch=4, channels=3)
    stack = stack_of(position=LearnedAdditive(images.tokens, 12, seed))
    return ViTClassifier(stack, images, classes=4, seed=seed)


def text(seed, heads=3):
    return TextClassifier(stack_of(heads, 12 // heads), vocabulary=9, classes=3, seed=seed)


def scalar_heads(seed):
    """Enough heads of rank one for their own kernel."""
    return TextClassifier(stack_of(20, 1, norm="rms"), vocabulary=9, classes=3, seed=seed)


def regressor(seed, heads=3):
    stack = stack_of(heads, 12 // heads, position=LearnedAdditive(14, 12, seed))
    return InContextRegressor(stack, dimensions=4, seed=seed)


def labelled(*inputs):
    numbers = torch.arange(len(inputs[0])) % 3
    return Samples(Batch(inputs, (numbers,)), Batch(inputs, (numbers,)))


def normal(*sizes):
    return torch.randn(sizes, generator=stream(3, "images"), dtype=torch.float64)


def words(lengths):
    numbers = torch.randint(9, (11, 6), generator=stream(3, "words"))
    return labelled(numbers, torch.arange(11) % 6 + 1) if lengths else labelled(numbers)


FARTHEST = FarthestNeighbour(12, 5)
CASES = {
    "rank 12": ({"": shape(12).build}, FARTHEST),
    "rank 1": ({"": shape(1).build}, FARTHEST),
    "many scalar heads": ({"": shape(1, copies=4).build}, FARTHEST),
    "three ranks": ({f"{r}": shape(r).build for r in (1, 3, 4)}, FARTHEST),
    "additive": ({"": shape(3, positions="additive").build}, FARTHEST),
    "concatenated": (
        {"": shape(3, positions="concatenated", position_width=5).build},
        FARTHEST,
    ),
    "images": ({"": vit}, labelled(normal(11, 3, 8, 8))),
    "words": ({"": text}, words(lengths=False)),
    "padded words": ({"": text}, words(lengths=True)),
    "scalar heads of words": ({"": scalar_heads}, words(lengths=False)),
    "in context": ({"": regressor}, InContext(4, 7)),
    "in context, three numbers of heads": (
        {f"{heads}": partial(regressor, heads=heads) for heads in (1, 3, 4)},
        InContext(4, 7),
    ),
    "padded words, two numbers of heads": (
        {f"{heads}": partial(text, heads=heads) for heads in (2, 4)},
        words(lengths=True),
    ),
}


def ensemble(case, **more):
    variants, task = CASES[case]
    given = {"steps": 4, "batch": 6, "seeds": (0, 1), "learning_rates": (0.01, 0.003)}
    return Ensemble(variants, task, Settings(precision="float64", **(given | more)))


def alone(group, index, noise):
    """Loss and gradient of one member by its own module, nothing stacked."""
    member = group.members[index]
    model = group.variants[member.variant](member.seed).double()
    own = group.layout.cut(group.state.flat)
    own = {name: value[index].clone().requires_grad_() for name, value in own.items()}
    batch = group.task.batch(noise[index], group.state.step)
    inputs = tuple(t.double() if t.is_floating_point() else t for t in batch.inputs)
    targets = tuple(t.double() if t.is_floating_point() else t for t in batch.targets)
    loss = group.task.loss(functional_call(model, own, inputs), *targets)
    return loss.detach(), torch.autograd.grad(loss, list(own.values()))


@pytest.mark.parametrize("case", CASES)
def test_losses_and_gradients_are_those_of_the_single_model(case):
    group = ensemble(case)
    group.advance()
    noise = group.noise.draw(group.state.step)
    losses, gradient = group.gradient(noise)
    for index in range(len(group.members)):
        loss, gradients = alone(group, index, noise)
        torch.testing.assert_close(losses[index], loss, **EXACT)
        for found, wanted in zip(group.layout.cut(gradient).values(), gradients, strict=True):
            torch.testing.assert_close(found[index], wanted, **EXACT)


@pytest.mark.parametrize("case", CASES)
def test_members_differ(case):
    """Else the test above would pass with members mixed up."""
    flat = ensemble(case).state.flat
    assert not torch.equal(flat[0], flat[2])
    assert torch.equal(flat[0], flat[1])  # the same seed with another rate


def test_known_kinds_have_a_written_out_form_and_others_are_vectorised():
    for known in ("three ranks", "concatenated", "images", "in context, three numbers of heads"):
        assert not isinstance(ensemble(known).forward, StackedModules)
    assert isinstance(ensemble("scalar heads of words").forward, StackedModules)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_updates_are_those_of_torchs_adamw_and_its_scheduler(decay):
    optimiser = AdamW(weight_decay=decay)
    group = ensemble("three ranks", steps=30, optimiser=optimiser)
    index = 6
    member = group.members[index]
    model = group.variants[member.variant](member.seed).double()
    torch_optimiser = torch.optim.AdamW(
        model.parameters(), member.learning_rate, (0.9, 0.95), weight_decay=decay
    )
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        torch_optimiser, lambda step: rate_share(step, 30, member.warm_up)
    )
    generator = stream(member.seed, "training data")
    for _ in range(30):
        group.advance()
        batch = group.task.batch(group.task.noise(6, generator), None)
        torch_optimiser.zero_grad()
        group.task.loss(model(batch.inputs[0].double()), batch.targets[0].double()).backward()
        torch_optimiser.step()
        scheduler.step()
    for name, value in model.named_parameters():
        found = group.layout.cut(group.state.flat)[name][index]
        torch.testing.assert_close(found, value.detach(), rtol=1e-8, atol=1e-10)


shares = st.floats(0, 1, allow_nan=False)


@settings(max_examples=12, deadline=None)
@given(warm_ups=st.tuples(shares, shares), decay=st.sampled_from([0.0, 0.1]))
def test_a_member_with_its_own_warm_up_trains_as_if_it_were_alone(warm_ups, decay):
    told = {"steps": 9, "seeds": (0,), "optimiser": AdamW(weight_decay=decay)}
    both = ensemble("rank 12", warm_up=warm_ups, **told)
    assert [m.warm_up for m in both.members] == list(warm_ups)
    single = [
        ensemble("rank 12", warm_up=share, learning_rates=(rate,), **told)
        for share, rate in zip(warm_ups, (0.01, 0.003), strict=True)
    ]
    for group in (both, *single):
        for _ in range(9):
            group.advance()
    wanted = torch.cat([group.state.flat for group in single])
    torch.testing.assert_close(both.state.flat, wanted, rtol=1e-7, atol=1e-9)


def test_the_warm_up_of_one_changes_no_bit_of_another():
    told = {"steps": 9, "learning_rates": (0.01, 0.01)}
    groups = [ensemble("rank 12", warm_up=w, **told) for w in (0.4, (0.4, 0.4), (0.4, 0.9))]
    for group in groups:
        for _ in range(9):
            group.advance()
    same, equal, other = (group.state.flat for group in groups)
    assert torch.equal(same, equal)
    assert torch.equal(other[[0, 2]], same[[0, 2]])
    assert not torch.equal(other[1], same[1]) and not torch.equal(other[3], same[3])


@pytest.mark.parametrize("case", ["three ranks", "in context"])
def test_micro_batches_change_nothing_but_rounding(case):
    # The examination takes a micro-batch at a time: of two examples each, it takes half a minute.
    whole, parts = ensemble(case, batch=96), ensemble(case, batch=96, micro_batches=3)
    for _ in range(4):
        whole.advance()
        parts.advance()
    torch.testing.assert_close(whole.state.flat, parts.state.flat, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(whole.state.last_loss, parts.state.last_loss, **EXACT)
    torch.testing.assert_close(whole.examine(), parts.examine(), **EXACT)


def test_float32_and_bfloat16_are_near_float64():
    losses = {}
    for precision in ("float64", "float32", "bf16"):
        group = Ensemble(
            CASES["three ranks"][0],
            FARTHEST,
            Settings(steps=4, batch=6, precision=precision),
        )
        group.advance()
        losses[precision] = group.state.last_loss.double()
    torch.testing.assert_close(losses["float32"], losses["float64"], rtol=1e-5, atol=0)
    torch.testing.assert_close(losses["bf16"], losses["float64"], rtol=0.05, atol=0)
    assert not torch.equal(losses["bf16"], losses["float32"])


def test_precision_is_as_before_afterwards():
    torch.set_float32_matmul_precision("high")
    try:
        ensemble("rank 12").advance()
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_linear_map_of_one_vector_is_served_too():
    class Readout(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x):
            return torch.stack([self.linear(row) for row in x])

    models = [Readout() for _ in range(2)]
    forward = StackedModules(models, [(0, 2)])
    stacked = {n: torch.stack([m.state_dict()[n] for m in models]) for n in models[0].state_dict()}
    x = torch.ones(2, 4, 3)
    wanted = torch.stack([m(x[0]) for m in models])
    torch.testing.assert_close(forward(stacked, (x,)), wanted)


def test_fixed_sets_serve_other_models():
    group = ensemble("images", protocol=Fixed(12, "shuffled"))
    group.noise.prepare(0)
    group.advance()
    assert torch.isfinite(group.state.last_loss).all()
