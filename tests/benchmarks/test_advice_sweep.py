"""The machinery of the advice sweeps, at the smallest scale."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.advice import sweep
from benchmarks.advice.datasets import read_set, write_set
from benchmarks.advice.inputs import inputs_of, stored_evidence
from benchmarks.advice.models import KernelSoftmax
from benchmarks.advice.tasks import BENCHES, RANKS, Batch, Shifted
from torch.nn.functional import pad

from headwise.attention import Everything
from headwise.attention.weighting import Heads
from headwise.errors import UnreadableFileError
from headwise.probing import views
from headwise.training import Saving
from headwise.training.ensemble import Ensemble

SMALL = BENCHES["farthest-planted-4"]


@pytest.fixture
def tiny(monkeypatch):
    """The smallest task, trained for three steps."""
    bench = SMALL.shortened(3)
    monkeypatch.setitem(sweep.BENCHES, bench.name, bench)
    return bench


def given(tmp_path, *more):
    words = ["--tasks", SMALL.name, "--seeds", "0,1", "--rows", str(tmp_path / "rows.jsonl")]
    return sweep.arguments([*words, *more])


@pytest.mark.parametrize("name", BENCHES)
def test_heads_keep_exactly_the_rank_and_width_the_sweep_names(name):
    bench = BENCHES[name]
    fixed, split = bench.geometries("heads"), bench.geometries("width")
    assert {g.heads for g in fixed} == {bench.shape.heads}
    assert {g.heads * g.qk_rank for g in split} == {bench.shape.width}
    half = max(g.parameters for g in fixed) / 2
    assert {g.parameters for g in bench.geometries("half")} == {half}
    assert [g.qk_rank for g in fixed] == list(bench.ranks)
    assert all(g.qk_rank == g.v_rank for g in (*fixed, *split))
    assert all(g.v_rank == bench.shape.width for g in bench.geometries("single"))


@pytest.mark.parametrize("rank", [1, 4])
def test_the_models_query_key_form_has_that_rank(rank):
    geometry = SMALL.geometries("heads")[RANKS.index(rank)]
    loaded = SMALL.load(None, "cpu")
    model, points = SMALL.build(geometry, 0).double(), loaded.examples[0][:2].double()
    view = next(iter(views(model, points).values()))
    assert torch.linalg.matrix_rank(view.query_key_form()).tolist() == [rank] * 4


def test_a_cpu_computes_attention_in_float32_inside_bfloat16_training():
    drawn = torch.randn(3, 2, 4, 40, 8, generator=torch.Generator().manual_seed(0))
    heads = Heads(*drawn.bfloat16(), Everything(), 2.0)
    wide = [part.float() for part in (heads.queries, heads.keys, heads.values)]
    exact = torch.softmax(wide[0] @ wide[1].mT / 2, -1) @ wide[2]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = KernelSoftmax().mix(heads)
    assert mixed.dtype == torch.float32
    torch.testing.assert_close(mixed, exact)


def test_a_row_says_which_precision_a_cpu_trained_with(tiny, tmp_path):
    assert sweep.sweep(given(tmp_path, "--precision", "bf16", "--ranks", "1")) == 0
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert {row["dtype"] for row in rows} == {"bf16, attention float32"}


def test_only_the_judged_tasks_are_marked_so():
    assert {name for name, bench in BENCHES.items() if bench.judged} == {
        "imdb",
        "package-sections",
        "code-libraries",
        "digits-denoised",
        "in-context",
        "next-window",
        "svhn",
    }


def test_other_steps_and_another_rate_are_trained_and_told(tiny, tmp_path):
    words = ("--sweeps", "heads", "--ranks", "1", "--steps", "2", "--rate", "0.5")
    assert sweep.sweep(given(tmp_path, *words)) == 0
    rows = sweep.read_rows([tmp_path / "rows.jsonl"])
    assert [(row["steps"], row["rate"]) for row in rows] == [(2, 0.5)] * 2
    assert (tiny.training.steps, tiny.training.rate) == (3, 0.01)


def test_a_sweep_writes_a_row_for_each_seed_and_skips_what_is_there(tiny, tmp_path, capsys):
    assert sweep.sweep(given(tmp_path, "--sweeps", "heads", "--ranks", "2")) == 0
    rows = sweep.read_rows([tmp_path / "rows.jsonl"])
    assert [(row["qk_rank"], row["seed"]) for row in rows] == [(8, 0), (8, 1), (1, 0), (1, 1)]
    for row in rows:
        assert np.isfinite(row["score"])
        assert {"command", "code", "torch", "device", "dtype", "seed"} <= set(row)
        assert row["attention_parameters"] == 4 * 32 * 4 * row["qk_rank"]
    capsys.readouterr()
    assert sweep.sweep(given(tmp_path, "--sweeps", "heads", "--ranks", "3")) == 0
    assert [key[1:3] for key in map(sweep.key_of, sweep.read_rows([tmp_path / "rows.jsonl"]))] == [
        (4, 8), (4, 8), (4, 1), (4, 1), (4, 16), (4, 16)
    ]  # fmt: skip
    assert capsys.readouterr().out.count("(4, ") == 0 and len(tiny.ranks) == 6


def test_a_stopped_sweep_resumes_from_its_checkpoint(tiny, tmp_path, monkeypatch):
    more = ("--sweeps", "heads", "--ranks", "2", "--together", "2")
    sweep.sweep(given(tmp_path / "whole", *more))
    kept, steps = tmp_path / "kept", []
    advance = Ensemble.advance

    def stopped(ensemble):
        if len(steps) == 4:  # the first cell is done, the second has taken one step of three
            raise KeyboardInterrupt
        steps.append(ensemble)
        advance(ensemble)

    usual = Saving.in_folder
    monkeypatch.setattr(Saving, "in_folder", lambda *place: replace(usual(*place), seconds=-1))
    with monkeypatch.context() as patched:
        patched.setattr(Ensemble, "advance", stopped)
        with pytest.raises(KeyboardInterrupt):
            sweep.sweep(given(tmp_path / "parts", *more, "--checkpoints", str(kept)))
    assert len(list(kept.glob("*.pt"))) == 2
    sweep.sweep(given(tmp_path / "parts", *more, "--checkpoints", str(kept)))
    one, other = (sweep.read_rows([tmp_path / name / "rows.jsonl"]) for name in ("whole", "parts"))
    assert [row["score"] for row in one] == [row["score"] for row in other]
    assert not list(kept.iterdir())


def test_the_same_seed_gives_the_same_row_alone_and_with_others(tiny, tmp_path):
    for name, together in (("a", "1"), ("b", "2")):
        more = ("--sweeps", "heads", "--ranks", "2", "--together", together)
        sweep.sweep(given(tmp_path / name, *more))
    one, other = (sweep.read_rows([tmp_path / name / "rows.jsonl"]) for name in ("a", "b"))
    assert [row["score"] for row in one] == [row["score"] for row in other]


def test_splits_of_one_width_train_as_one_ensemble_with_the_same_rows(tiny, tmp_path):
    cells = sweep.cells([tiny], ["width"], set())
    assert [len(stack) for stack in sweep.stackable(cells)] == [len(cells)]
    for words, file in ((("--together", "9"), "one"), ((), "each")):
        (tmp_path / file).mkdir()
        assert sweep.sweep(given(tmp_path / file, "--sweeps", "width", *words)) == 0
    one, each = (
        {(*sweep.key_of(r), r["seed"]): r["score"] for r in sweep.read_rows([path])}
        for path in (tmp_path / "one" / "rows.jsonl", tmp_path / "each" / "rows.jsonl")
    )
    assert one == pytest.approx(each, rel=1e-5)
    assert len(set(one.values())) > len(cells)


def test_groups_have_one_task_and_similar_cost():
    left = sweep.cells([BENCHES["farthest-64"], SMALL], ["width"], set())
    found = sweep.groups(left, most=4)
    assert [[cell.geometry.qk_rank for cell in group] for group in found] == [
        [8, 64, 16, 4], [2, 32], [1], [8, 1, 16, 4], [2, 32]
    ]  # fmt: skip
    assert all(len({cell.task for cell in group}) == 1 for group in found)


def test_no_cell_starts_after_its_time(tiny, tmp_path, capsys):
    assert sweep.sweep(given(tmp_path, "--seconds", "0")) == 0
    assert "time is up" in capsys.readouterr().out
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_failed_cell_is_reported_and_the_others_continue(tiny, tmp_path, monkeypatch, capsys):
    def build(geometry, seed):
        if geometry.qk_rank == 8:
            raise RuntimeError("no memory for this one")
        return tiny.build(geometry, seed)

    monkeypatch.setitem(sweep.BENCHES, tiny.name, replace(tiny, build=build))
    assert sweep.sweep(given(tmp_path, "--sweeps", "heads", "--ranks", "2")) == 1
    assert "no memory for this one" in capsys.readouterr().out
    assert {row["qk_rank"] for row in sweep.read_rows([tmp_path / "rows.jsonl"])} == {1}


def test_an_unknown_task_is_refused_with_the_names_there_are(capsys):
    with pytest.raises(SystemExit):
        sweep.arguments(["--tasks", "mnist", "--rows", "x"])
    assert "digits-patches" in capsys.readouterr().err


def test_shifted_images_are_windows_of_the_padded_ones():
    images = torch.arange(2 * 3 * 4 * 4, dtype=torch.float32).reshape(2, 3, 4, 4)
    margins = Batch((pad(images, (1, 1, 1, 1)),), (torch.tensor([5, 7]),))
    task = Shifted(margins, margins, reach=1)
    noise = torch.tensor([[[1, 0, 1, 1], [0, 1, 1, 1]], [[1, 0, 0, 2], [0, 0, 2, 0]]])
    (found,), (labels,) = task.batch(noise)
    assert torch.equal(found[0, 0], images[1])
    assert torch.equal(found[0, 1], images[0].flip(-1))
    assert torch.equal(found[1, 0], pad(images, (1, 1, 1, 1))[1, :, 0:4, 2:6])
    assert torch.equal(found[1, 1], pad(images, (1, 1, 1, 1))[0, :, 2:6, 0:4])
    assert labels.tolist() == [[7, 5], [7, 5]]
    drawn = task.noise(500, torch.Generator().manual_seed(0))
    assert drawn.amax(0).tolist() == [1, 1, 2, 2]
    assert drawn.amin(0).tolist() == [0, 0, 0, 0]


def test_compact_files_give_back_what_was_stored(tmp_path):
    generator = np.random.default_rng(0)
    images = generator.integers(0, 256, (3, 3, 5, 5), dtype=np.uint8)
    words = generator.integers(0, 8000, (4, 7), dtype=np.uint16)
    write_set(tmp_path, "both", {"images": images, "words": words})
    found = read_set(tmp_path, "both")
    assert np.array_equal(found["images"], images) and found["images"].dtype == np.uint8
    assert np.array_equal(found["words"], words)
    with pytest.raises(UnreadableFileError, match="not there"):
        read_set(tmp_path, "absent")


def test_recorded_inputs_are_read_back_unchanged(tmp_path):
    loaded = SMALL.load(tmp_path, "cpu")
    few = replace(loaded, tokens=loaded.tokens[:64])
    row = inputs_of(replace(SMALL, load=lambda folder, device: few), tmp_path)
    again = stored_evidence(json.loads(json.dumps(row)))
    assert again.width == 32 and {curve.start for curve in again.curves} >= {"model", "paper"}
    assert 3.5 < again.effective_dimension < 5.5
    assert [one["rank"] for one in row["own_start"]] == list(SMALL.ranks)
    assert row["own_start"][0]["rank_ratio"] < row["own_start"][-1]["rank_ratio"] <= 1


def test_digits_are_never_mirrored():
    images = torch.arange(2 * 10 * 10.0).reshape(2, 1, 10, 10)
    kept = Batch((images,), (torch.arange(2),))
    drawn = Shifted(kept, kept, orientations=1).noise(64, torch.Generator().manual_seed(0))
    assert not drawn[:, 1].any()
    assert Shifted(kept, kept).noise(64, torch.Generator().manual_seed(0))[:, 1].any()
