"""Language models and recall over head geometries, at the smallest scale."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.advice import language, language_tasks, language_training
from benchmarks.advice.corpora import CLASSES, code_classes, read_corpus, write_corpus
from benchmarks.advice.language_jobs import JOBS, Job
from benchmarks.advice.language_model import (
    Geometry,
    Member,
    Shape,
    StackedModel,
    block,
    initial_parameters,
)
from benchmarks.advice.language_tasks import FIRST, TASKS, associative_recall, sorting
from benchmarks.advice.language_training import Ensemble, Progress, curve_steps, decay_start, run
from torch.nn.functional import cross_entropy, gelu, layer_norm

from headwise.errors import UnreadableFileError

SHAPE = Shape(width=16, layers=2, length=8, vocabulary=11, outputs=11, causal=True)
GEOMETRIES = (Geometry(2, 8, 8), Geometry(1, 5, 16), Geometry(3, 7, 2))


@pytest.fixture
def tiny(monkeypatch):
    """A recall task of 8 tokens, 4 sequences a step."""
    monkeypatch.setattr(language_tasks, "STEP_TOKENS", 32)
    monkeypatch.setattr(language_tasks, "VALIDATION_TOKENS", 64)
    monkeypatch.setattr(language_tasks, "SYMBOLS", 8)
    shape = replace(SHAPE, vocabulary=FIRST + 16, outputs=FIRST + 16)
    return replace(TASKS["associative-w128-n128"], shape=shape)


def members(*seeds, rates=(1e-2,)):
    return [Member(g, seed, rate) for g in GEOMETRIES for rate in rates for seed in seeds]


def plainly(shape, weights, row, group, ids):
    """One member by loops over heads, with the softmax written out."""
    heads, qk_rank, v_rank = GEOMETRIES[group]
    x = weights["embedding"][row][ids] + weights["positions"][row]
    for layer in range(shape.layers):
        own = [weights[f"{n}.{layer}.{group}"][row % 2] for n in ("query", "key", "value", "out")]
        normed, added = layer_norm(x, x.shape[-1:]), torch.zeros_like(x)
        for head in range(heads):
            qk, v = (
                slice(head * qk_rank, (head + 1) * qk_rank),
                slice(head * v_rank, (head + 1) * v_rank),
            )
            logits = (normed @ own[0][:, qk]) @ (normed @ own[1][:, qk]).mT / math.sqrt(qk_rank)
            future = torch.ones_like(logits[0]).triu(1).bool()
            attention = torch.softmax(logits.masked_fill(future, -torch.inf), dim=-1)
            added = added + attention @ (normed @ own[2][:, v]) @ own[3][v]
        x = x + added
        hidden = gelu(layer_norm(x, x.shape[-1:]) @ weights[f"up.{layer}"][row], approximate="tanh")
        x = x + hidden @ weights[f"down.{layer}"][row]
    return layer_norm(x, x.shape[-1:]) @ weights["head"][row]


def test_a_stack_gives_the_outputs_of_each_member():
    drawn = initial_parameters(SHAPE, members(0, 1))
    weights = {name: value.double() * 3 for name, value in drawn.items()}
    ids = torch.randint(11, (6, 5, 8), generator=torch.Generator().manual_seed(0))
    logits = StackedModel(SHAPE, members(0, 1))(weights, ids, None)
    for row in range(6):
        expected = plainly(SHAPE, weights, row, row // 2, ids[row]).flatten(0, 1)
        torch.testing.assert_close(logits[row], expected)


def test_parameter_counts_are_those_of_the_tensors():
    for geometry in GEOMETRIES:
        drawn = initial_parameters(SHAPE, [Member(geometry, 0, 0.1)])
        assert sum(value.numel() for value in drawn.values()) == SHAPE.parameters(geometry)
        inner = [v for n, v in drawn.items() if n.split(".")[0] in ("query", "key", "value", "out")]
        assert sum(v.numel() for v in inner) == SHAPE.attention_parameters(geometry)


def test_members_train_the_same_together_and_alone(tiny):
    whole = members(0, 1, rates=(1e-2, 3e-3))
    together, alone = Ensemble(tiny.load(None, "cpu"), whole), []
    for step in range(4):
        together.advance(step, 1.0)
    for member in whole:
        one = Ensemble(tiny.load(None, "cpu"), [member])
        for step in range(4):
            one.advance(step, 1.0)
        alone.append(one.validate()[0][0])
    assert together.validate()[0] == pytest.approx(alone, rel=1e-4)
    assert len(set(alone)) == len(alone)


def test_a_step_is_that_of_pytorchs_adamw_with_clipped_gradients(tiny):
    member = Member(Geometry(2, 8, 8), 0, 1e-2)
    ensemble = Ensemble(tiny.load(None, "cpu"), [member])
    drawn = initial_parameters(tiny.shape, [member])
    leaves = {name: value.clone().requires_grad_() for name, value in drawn.items()}
    usual = torch.optim.AdamW(leaves.values(), lr=1e-2, betas=(0.9, 0.95), weight_decay=0.1)
    model = StackedModel(tiny.shape, [member])
    for step in range(3):
        ensemble.advance(step, 0.5)
        batch = ensemble.batch(step)
        usual.param_groups[0]["lr"] = 5e-3
        usual.zero_grad()
        answers = model(leaves, batch.ids, batch.asked)[0]
        cross_entropy(answers, batch.answers[0]).backward()
        torch.nn.utils.clip_grad_norm_(leaves.values(), 1.0)
        usual.step()
    for name, value in ensemble._working().items():
        torch.testing.assert_close(value, leaves[name].detach(), rtol=1e-3, atol=1e-5)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_the_layers_can_be_traced_for_compilation(tiny):
    ensemble, traced = (Ensemble(tiny.load(None, "cpu"), members(0, 1)) for _ in range(2))
    traced.model.block = torch.compile(block, backend="aot_eager", dynamic=False, fullgraph=True)
    for one in (ensemble, traced):
        one.advance(0, 1.0)
    assert traced.validate()[0] == pytest.approx(ensemble.validate()[0], rel=1e-5)


def test_a_branch_leaves_the_trunk_as_it_was(tiny):
    def trained(lengths):
        ensemble, ended = Ensemble(tiny.load(None, "cpu"), members(0)), {}

        def sink(end, at):
            ended[end.length] = end.losses

        run(ensemble, lengths, Progress(), sink=sink, tick=lambda at: True)
        return ended

    assert trained((10, 20))[20] == trained((20,))[20]
    assert trained((10, 20))[10] == trained((10,))[10]


def test_lengths_share_a_trunk_and_decay_over_a_fifth():
    assert [decay_start(length) for length in (1000, 8000)] == [800, 6400]
    job = JOBS["prose-next-token-w256-n512:width"]
    assert job.steps == 6400 + 200 + 400 + 800 + 1600
    assert curve_steps((1000,))[-1] == 800


def command(tmp_path, *more):
    return language.arguments(
        ["--rows", str(tmp_path / "rows.jsonl"), "--checkpoints", str(tmp_path), *more]
    )


def session(tmp_path, **changes):
    given = command(tmp_path, "--seeds", "0")
    vars(given).update(changes)
    known = {language.key_of(row) for row in language.read_rows([given.rows])}
    return language.Session(given, known, language.time.monotonic(), 0.0)


def rows_in(folder):
    return language.read_rows([folder / "rows.jsonl"])


class Clock:
    """A clock that creeps, then jumps past every limit after some readings."""

    def __init__(self, readings):
        self.left = readings

    def __call__(self):
        self.left -= 1
        return 1e-6 * -self.left if self.left > 0 else 1e9


def test_an_interrupted_run_resumes_and_ends_the_same(tiny, tmp_path, monkeypatch):
    job = Job(tiny, ("width",), (10, 20))
    assert session(tmp_path / "whole").train(job)
    cut = session(tmp_path / "cut", minutes=1.0)
    with monkeypatch.context() as patch:
        patch.setattr(language.time, "monotonic", Clock(40))
        cut.start = cut.saved = -1.0
        assert not cut.train(job)
    assert list((tmp_path / "cut").glob("*.pt"))
    assert session(tmp_path / "cut").train(job)
    assert not list((tmp_path / "cut").glob("*.pt"))
    kept = ("task", "heads", "qk_rank", "steps", "score", "accuracy", "train_loss", "curve")
    whole, again = (
        [{name: row[name] for name in kept} for row in rows_in(tmp_path / part)]
        for part in ("whole", "cut")
    )
    assert whole == again


def test_known_runs_are_not_trained_again(tiny, tmp_path, capsys):
    job = Job(tiny, ("width",), (10,))
    assert session(tmp_path).train(job)
    first = rows_in(tmp_path)
    capsys.readouterr()
    assert session(tmp_path).train(job)
    assert capsys.readouterr().out == ""
    assert rows_in(tmp_path) == first
    assert {row["heads"] * row["qk_rank"] for row in first} == {16}
    assert all(json.dumps(row) for row in first)


def test_rows_tell_what_made_them(tiny, tmp_path):
    session(tmp_path).train(Job(tiny, ("width",), (10,)))
    row = rows_in(tmp_path)[0]
    for name in ("task", "kind", "held_out", "seed", "rate", "curve", "command", "code", "device"):
        assert row[name] is not None
    assert row["model_parameters"] == tiny.shape.parameters(Geometry(2, 8, 8))


def test_recall_asks_for_the_value_that_followed_the_key():
    batch = associative_recall(32)(3, torch.Generator().manual_seed(1))
    flat = batch.ids.flatten()
    for place, answer in zip(batch.asked.tolist(), batch.answers.tolist(), strict=True):
        told = batch.ids[place // 32, :16].tolist()
        assert told[told.index(int(flat[place])) + 1] == answer


def test_mixed_recall_repeats_pairs_in_training_and_not_in_validation():
    task = TASKS["associative-mixed-w128-n64"]
    loaded = task.load(None, "cpu")
    trained, validated = loaded.batch(0, 0).ids[:, :32:2], loaded.validation().ids[:, :32:2]
    distinct = [len(set(row.tolist())) for row in trained]
    assert min(distinct) == 1 and max(distinct) == 16
    assert {len(set(row.tolist())) for row in validated} == {16}
    assert int(loaded.batch(0, 0).answers.max()) < task.shape.outputs


def test_jobs_run_in_the_order_they_are_named(tmp_path):
    given = command(tmp_path, "--jobs", "sorting-w128-n128:width,copying-w128-n256:width")
    assert [job.task.source for job in language.chosen(given)] == ["sorting", "copying"]


def test_rank_moves_apart_from_the_usual_heads():
    found = {m.geometry for m in JOBS["prose-next-token-w256-n512:apart"].members()}
    assert {g for g in found if g.heads == 4} == {
        Geometry(4, 16, 64),
        Geometry(4, 32, 64),
        Geometry(4, 64, 32),
        Geometry(4, 32, 96),
    }
    costs = [SHAPE.attention_parameters(Geometry(4, *ranks)) for ranks in ((32, 96), (64, 64))]
    assert costs[0] == costs[1]


def test_sorting_shows_the_answers_so_far_and_asks_for_the_next():
    batch = sorting(16)(2, torch.Generator().manual_seed(1))
    for row in range(2):
        expected = sorted(batch.ids[row, :8].tolist())
        assert batch.answers[8 * row : 8 * row + 8].tolist() == expected
        assert batch.ids[row, 9:].tolist() == expected[:-1]
    assert (batch.asked % 16).tolist() == list(range(8, 16)) * 2


@pytest.fixture
def corpus(tmp_path):
    """Two token files of counted numbers."""
    ids = np.arange(4000, dtype=np.uint16)
    arrays = dict.fromkeys(("train", "test"), ids)
    write_corpus(tmp_path, "prose", arrays)
    classes = {f"{part}_classes": (ids % 7).astype(np.uint8) for part in arrays}
    write_corpus(tmp_path, "code", arrays | classes)
    return tmp_path


def test_the_answer_is_the_next_token_the_hidden_one_or_its_class(corpus):
    following = TASKS["prose-next-token-w128-n128"].load(corpus, "cpu").batch(0, 3)
    assert torch.equal(following.answers, following.ids.flatten() + 1)
    hidden = TASKS["prose-masked-token-w128-n128"].load(corpus, "cpu").batch(0, 3)
    flat = hidden.ids.flatten()
    assert set(flat[hidden.asked].tolist()) == {4096}
    assert int((flat == 4096).sum()) == len(hidden.answers) == 64 * 19
    shown = hidden.asked[hidden.asked % 128 > 0]
    before = flat[shown - 1]
    answers = hidden.answers[hidden.asked % 128 > 0]
    assert torch.equal(answers[before != 4096], before[before != 4096] + 1)
    tagged = TASKS["code-token-classes-w128-n128"].load(corpus, "cpu").batch(0, 3)
    assert torch.equal(tagged.answers, tagged.ids.flatten() % 7)


def test_batches_depend_only_on_seed_and_step(corpus):
    one, other = (TASKS["prose-next-token-w128-n128"].load(corpus, "cpu") for _ in range(2))
    assert torch.equal(one.batch(1, 5).ids, other.batch(1, 5).ids)
    assert not torch.equal(one.batch(1, 5).ids, one.batch(1, 6).ids)
    assert not torch.equal(one.batch(1, 5).ids, one.batch(2, 5).ids)


def test_a_missing_corpus_is_refused_with_the_way_to_make_it(tmp_path):
    with pytest.raises(UnreadableFileError, match=r"benchmarks\.advice\.corpora"):
        read_corpus(tmp_path, "prose")


def test_characters_of_code_get_their_class():
    text = "def f(x):\n    return 'a b'  # twice\n"
    names = [CLASSES[number] for number in code_classes(text)]
    assert names[:3] == ["keyword"] * 3 and names[3] == "other" and names[4] == "name"
    assert names[text.index("'")] == names[text.index("b")] == "string"
    assert names[text.index("#") + 3] == "comment"


def test_every_kind_has_a_held_out_task_where_one_was_promised():
    held = {task.kind for task in TASKS.values() if task.held_out}
    assert held == {"next-token", "recall"}
    assert language_training.DECAY == 0.2
