"""Training on a GPU: the replayed graph is the plain step; runs go on bit for bit."""

import gc
from weakref import ref

import pytest
import torch

from headwise.data import FarthestNeighbour, InContext
from headwise.models import NeighbourShape
from headwise.training import Ensemble, Saving, Settings
from headwise.training.replay import replayed
from training.small import TASK, VARIANTS, run, settings
from training.test_checkpoint import same
from training.test_members import CASES

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize("protocol", ["fresh", "same", "shuffled"])
def test_a_replayed_run_is_the_plain_run(protocol):
    graph = run(protocol, device="cuda", execution="graph")
    plain = run(protocol, device="cuda", execution="eager")
    assert [row.step for row in graph.rows] == [row.step for row in plain.rows]
    for ours, theirs in zip(graph.rows, plain.rows, strict=True):
        assert ours.train_loss == pytest.approx(theirs.train_loss, rel=1e-4)
        assert ours.test_loss == pytest.approx(theirs.test_loss, rel=1e-4)


def test_a_replayed_graph_draws_new_noise_each_time():
    group = Ensemble(VARIANTS, TASK, settings(device="cuda", learning_rates=(1e-12,)))
    advance = replayed(group.advance, group.state, group.noise.generators)
    losses = []
    for _ in range(5):
        advance()
        losses.append(group.state.last_loss[0].item())
    assert len(set(losses)) == 5


def test_a_replayed_step_keeps_what_it_was_recorded_from():
    """A graph does not own its tensors; once freed, their memory may be reused."""

    def recorded():
        group = Ensemble(VARIANTS, TASK, settings(device="cuda"))
        return replayed(group.advance, group.state, group.noise.generators), ref(group)

    advance, group = recorded()
    gc.collect()
    advance()
    assert group() is not None
    assert int(group().state.step) == 1


def test_recording_leaves_no_trace():
    """Parameters, step and generators are as before; else a resumed run would differ."""
    group = Ensemble(VARIANTS, TASK, settings(device="cuda"))
    before = group.state.copies()
    drawn = [generator.get_state() for generator in group.noise.generators]
    replayed(group.advance, group.state, group.noise.generators)
    after = group.state.copies()
    for name, value in before.items():
        torch.testing.assert_close(after[name], value, rtol=0, atol=0, equal_nan=True)
    for generator, position in zip(group.noise.generators, drawn, strict=True):
        assert torch.equal(generator.get_state(), position)


@pytest.mark.parametrize("protocol", ["fresh", "same", "shuffled"])
@pytest.mark.parametrize("execution", ["graph", "eager"])
def test_a_stopped_run_resumes_bit_for_bit(protocol, execution, tmp_path):
    from training.test_checkpoint import stopped_at

    told = {"protocol": protocol, "device": "cuda", "execution": execution}
    saving = Saving(tmp_path / "run.pt", "small")
    stopped_at(10, saving, **told)
    same(run(saving=saving, **told), run(**told))


@pytest.mark.parametrize("execution", ["graph", "eager"])
def test_members_keep_their_own_warm_ups(execution):
    """Members with the same warm-up are the same, bit for bit, whatever that of the others."""
    told = {"device": "cuda", "execution": execution, "learning_rates": (0.01, 0.01)}
    own, same_for_all = run(warm_up=(0.1, 0.8), **told), run(warm_up=0.1, **told)
    kept = [index for index, who in enumerate(own.members) if who.warm_up == 0.1]
    for name, value in own.parameters.items():
        assert torch.equal(value[kept], same_for_all.parameters[name][kept])
    assert own.last[0].train_loss != own.last[1].train_loss


@pytest.mark.parametrize("protocol", ["fresh", "shuffled"])
def test_a_run_with_cuda_graphs_resumes_bit_for_bit(protocol, tmp_path):
    saving = Saving(tmp_path / "run.pt", "small", seconds=0.0)
    whole = run(protocol, device="cuda", steps=400)
    half_way(protocol, saving)
    resumed = run(protocol, saving, device="cuda", steps=400)
    assert len(resumed.rows) == len(whole.rows)
    same(resumed, whole)


def half_way(protocol, saving):
    """Stop, by an error in the sink, after the rows of step 100."""

    def stop(row):
        if row.step > 150:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run(protocol, saving, stop, device="cuda", steps=400)
    assert 0 < int(torch.load(saving.path, weights_only=True)["state"]["step"]) < 400


@pytest.mark.parametrize("case", [name for name in CASES if name not in ("images", "words")])
def test_losses_are_those_of_the_cpu(case):
    variants, task = CASES[case]
    if not isinstance(task, FarthestNeighbour | InContext):
        pytest.skip("its samples are on the CPU")
    groups = {
        device: Ensemble(variants, task, Settings(steps=4, batch=6, seeds=(0, 1), device=device))
        for device in ("cpu", "cuda")
    }
    noise = groups["cpu"].noise.draw(torch.tensor(0))
    (losses, gradient), (on_gpu, gpu_gradient) = (
        groups[device].gradient(noise.to(device)) for device in groups
    )
    torch.testing.assert_close(on_gpu.cpu(), losses, rtol=1e-5, atol=0)
    scale = float(gradient.abs().max())
    torch.testing.assert_close(gpu_gradient.cpu(), gradient, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("precision", ["tf32", "bf16", "float64"])
def test_other_precisions_train(precision):
    done = run(device="cuda", precision=precision)
    wanted = run(device="cuda")
    assert done.last[0].test_loss == pytest.approx(wanted.last[0].test_loss, rel=0.1)


def test_micro_batches_save_memory():
    shape = NeighbourShape(rank=1, copies=64)
    peaks = []
    for parts in (1, 8):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        # What other tests still hold is no part of what a step takes.
        before = torch.cuda.memory_allocated()
        told = Settings(steps=10, device="cuda", micro_batches=parts, execution="eager")
        Ensemble({"": shape.build}, FarthestNeighbour(), told).advance()
        peaks.append(torch.cuda.max_memory_allocated() - before)
    assert peaks[1] < 0.5 * peaks[0]


def test_thousands_of_heads_in_five_layers_fit():
    shape = NeighbourShape(rank=1, copies=64, layers=5)
    torch.cuda.reset_peak_memory_stats()
    told = Settings(steps=10, seeds=(0, 1), device="cuda", evaluation=256)
    group = Ensemble({"": shape.build}, FarthestNeighbour(), told)
    group.advance()
    assert torch.cuda.max_memory_allocated() < 40 * 2**30
    assert group.state.alive.all()
