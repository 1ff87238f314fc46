"""The one function: every source, every task, limits, shapes and forms of the answer."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import headwise
from headwise import advise
from headwise.advice import advisor
from headwise.advice.evidence import measured_evidence
from headwise.advice.export import layer_call
from headwise.advice.judged import judged_tasks
from headwise.advice.render.document import document, table_rows
from headwise.advice.render.page import page, trial_command
from headwise.advice.rule import support_for
from headwise.data.batches import joined_batches
from headwise.errors import BadInputError, HeadwiseError, ParameterError
from headwise.geometry import HeadGeometry
from headwise.trials import usual

TOKENS = torch.randn(6, 16, 12, generator=torch.Generator().manual_seed(0))
IDS = torch.randint(50, (6, 16), generator=torch.Generator().manual_seed(0))
SMALL = {"hidden_size": 64, "n_head": 4}
MIXING = {"need": "mixing", "any_shape": True}


#: Tests of measuring itself. The others ask several questions of the same tokens.
MEASURE = (
    "test_the_same_seed_gives_the_same_answer",
    "test_one_call_passes_no_more_modules_than_it_does_now",
)
MEASURED = {}


def measured_once(source, reading, sampling):
    """Measure the same source in the same way once; keeping it alive keeps its id."""
    asked = (id(source), reading, sampling.seed, sampling.mask)
    if asked not in MEASURED:
        MEASURED[asked] = (source, measured_evidence(source, reading, sampling))
    return MEASURED[asked][1]


@pytest.fixture(autouse=True)
def _measure_once(request, monkeypatch):
    if request.function.__name__ not in MEASURE:
        monkeypatch.setattr(advisor, "measured_evidence", measured_once)


@pytest.fixture(scope="module")
def answer():
    return advise(TOKENS, width=32)


class Endless(Dataset):
    """A dataset that never raises IndexError, as torch allows."""

    def __init__(self):
        self.read = []

    def __len__(self):
        return 300

    def __getitem__(self, index):
        self.read.append(index)
        return torch.randn(8, 4), 0


def test_a_dataset_is_read_up_to_its_length():
    dataset = Endless()
    assert joined_batches(dataset, "dataset", most=256)[0].shape == (256, 8, 4)
    assert max(dataset.read) < 300 and len(dataset.read) == 256


@pytest.mark.parametrize(
    "source",
    [
        TOKENS,
        TOKENS.numpy(),
        TOKENS.tolist(),
        DataLoader(TOKENS, batch_size=2),
        [TOKENS[:3], TOKENS[3:]],
    ],
    ids=["tensor", "array", "lists", "loader", "batches"],
)
def test_every_source_gives_the_same_answer(source, answer):
    found = advise(source, width=32)
    assert found.best.geometry == answer.best.geometry
    assert found.evidence.statistics.effective_dimension == pytest.approx(
        answer.evidence.statistics.effective_dimension, rel=1e-5
    )


def test_images_of_bytes_are_advised_as_the_same_images_of_floats():
    images = torch.randint(256, (20, 3, 8, 8), generator=torch.Generator().manual_seed(0)).byte()
    of_bytes = advise(images, width=16, task="classify")
    assert of_bytes.best == advise(images.float() / 255, width=16, task="classify").best


def test_text_and_images_are_read_in_python():
    text = advise(["one two three four"] * 60, width=16, length=8)
    assert text.evidence.learned and text.evidence.length == 8
    images = advise(np.random.default_rng(0).random((8, 3, 8, 8)), patch=4, width=16)
    assert images.evidence.images and images.evidence.length == 4


@pytest.mark.parametrize(
    ("asked", "task", "known"),
    [
        ({"source": TOKENS}, "unknown", "assumed"),
        ({"source": TOKENS, "task": "regress"}, "regress", "given"),
        ({"source": IDS, "mask": "causal"}, "next-token", "data"),
        ({"length": 64, "width": 64, "need": "retrieval"}, "retrieve", "need"),
        (
            {"config": {"model_type": "llama", "hidden_size": 64, "n_head": 4}},
            "next-token",
            "config",
        ),
        (
            {"config": {"architectures": ["BertForMaskedLM"], "hidden_size": 64, "n_head": 4}},
            "masked-token",
            "config",
        ),
    ],
)
def test_the_task_is_inferred_and_shown(asked, task, known):
    found = advise(asked.pop("source", None), **asked)
    assert (found.question.task, found.question.task_from) == (task, known)
    shown = "task not given" if task == "unknown" else f"task: {task}"
    assert shown in str(found)
    assert found.as_json()["task"] == {"name": task, "from": known}


@pytest.mark.parametrize(
    ("asked", "mask"),
    [
        ({"task": "next-token"}, "causal"),
        ({"task": "next-token", "mask": "none"}, "none"),
        ({"task": "masked-token"}, "none"),
        ({"task": "next-token", "config": {"model_type": "bert"}}, "none"),
    ],
)
def test_a_next_token_task_has_a_causal_mask_unless_told_otherwise(asked, mask):
    assert advise(length=64, width=768, **asked).evidence.mask == mask


@pytest.mark.parametrize("task", ["next-token", "masked-token", "unknown", "retrieve"])
def test_without_evidence_the_usual_geometry_leads(task):
    found = advise(IDS, width=128, task=task)
    assert found.kept
    assert found.best.geometry == HeadGeometry.free(128, heads=2, rank=64)
    assert found.rank.rank < 64
    assert any(choice.rank == found.rank.rank for choice in found.choices[1:])
    assert "worth a trial" in " ".join(str(found).split())


def test_with_evidence_of_that_kind_the_answer_leaves_the_usual_geometry():
    found = advise(TOKENS, width=128, task="classify")
    assert not found.kept and found.best.rank < 64
    names = [task.name for task in found.support.tasks]
    assert names == ["cifar10", "digits-patches", "digits-pixels"]
    assert "cifar10 +1.8 ± 0.5" in str(found)


def test_the_model_keeps_its_geometry_without_evidence():
    found = advise(config={"model_type": "gpt2", "n_embd": 768, "n_head": 6})
    assert (found.best.role, found.best.geometry.heads) == ("present", 6)


def test_what_a_person_fixes_is_not_overruled():
    assert advise(IDS, width=128, rank=8).best.rank == 8
    assert advise(length=512, width=768, need="mixing").best.rank == 96


def test_evidence_is_never_of_another_kind_or_of_other_tokens():
    for task in judged_tasks():
        assert task in support_for(task.kind, task.tokens).tasks
    assert support_for("masked-token", "vectors").tasks == ()
    assert not support_for("classify", "none").smaller
    assert not support_for("retrieve", "vectors").smaller  # planted-4 lost there
    assert support_for("retrieve", "vectors").larger


def test_two_judged_tasks_one_held_out_are_needed_to_leave_the_usual_geometry():
    one = next(task for task in judged_tasks() if task.name == "next-window")
    assert one.held_out and one.gain > 2 * one.gain_error
    assert not support_for("regress", "vectors", [one]).smaller
    second = replace(one, name="another", held_out=False)
    assert support_for("regress", "vectors", [one, second]).smaller
    seen = [replace(task, held_out=False) for task in (one, second)]
    assert not support_for("regress", "vectors", seen).smaller
    unsure = [replace(task, gain_error=task.gain) for task in (one, second)]
    assert not support_for("regress", "vectors", unsure).smaller


def test_a_large_gain_on_one_kind_does_not_speak_for_tasks_of_unknown_kind():
    known = support_for("unknown", "vectors").tasks
    gains = [task.gain / task.gain_error for task in known if task.gain_error > 0]
    assert sum(gains) > 2 * len(gains) ** 0.5  # together they would pass
    assert not support_for("unknown", "vectors").smaller
    kept = [task for task in known if task.kind != "retrieve"]
    assert support_for("unknown", "vectors", kept).smaller


def test_the_usual_head_dim_leads_on_language_because_no_other_rank_paid_off():
    found = advise(IDS, width=128, task="next-token")
    assert found.best.rank == 64
    said = " ".join(str(found).split())
    assert "code, width 256) another rank did not improve the score" in said
    assert "The others are worth a trial" in said


@pytest.mark.parametrize("width", [48, 64, 96, 100, 384])
def test_heads_times_rank_is_the_width_unless_freed(width):
    bound = advise(length=300, width=width, need="mixing")
    assert bound.best.geometry.heads * bound.best.rank == width
    free = advise(length=300, width=width, **MIXING)
    assert bound.best.meets >= free.best.meets
    assert bound.best.rank <= 2 * free.best.rank


def test_a_prime_width_has_no_such_shape():
    found = advise(TOKENS, width=97, task="classify")
    assert found.best.rank == 12


@pytest.mark.parametrize("width", [48, 96, 97, 160, 257, 768])
def test_the_usual_geometry_is_the_same_as_in_a_trial(width):
    found = advise(length=64, width=width)
    assert found.usual.geometry == found.best.geometry == usual(width)


def test_a_step_between_ranks_keeps_the_usual_head_dim_if_it_can():
    found = advise(length=64, width=160, multiple_of=64)
    assert found.best.geometry == HeadGeometry.free(160, 2, 64)


def test_half_the_rank_never_contradicts_itself():
    """Rank 8 could look up exactly, but training took 16; it must not read 0 and "no"."""
    plane = torch.randn(8, 32, generator=torch.Generator().manual_seed(1))
    tokens = torch.randn(40, 24, 8, generator=torch.Generator().manual_seed(2)) @ plane
    found = advise(tokens)
    table = document(found).table
    for row in table.rows:
        shown = dict(zip(table.columns, row, strict=True))
        assert not (shown["retrieval"] == "0" and shown["enough"] == "no")
    assert any("–" in row for row in table.rows)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"width": 64}, "width"),
        ({"width": 768, "params": 300_000}, "parameters"),
        ({"width": 768, "params": "10M"}, "tried"),
        ({"width": 768, "params": "30k"}, "stopped"),
        ({"width": 768, "heads": 4}, "fixed"),
    ],
)
def test_the_number_of_heads_has_its_reason(asked, why):
    assert advise(length=512, **MIXING, **asked).finding("heads").values["why"] == why


def test_budgets_and_constraints_are_kept():
    found = advise(length=128, width=64, params=4096, kv_bytes=64, kind="gqa", need="mixing")
    for choice in found.choices:
        assert choice.costs.parameters <= 4096
        assert choice.costs.cache_bytes_per_token <= 64
    fixed = advise(length=128, width=64, heads=3, rank=5).best.geometry
    assert (fixed.heads, fixed.qk_rank) == (3, 5)


def test_without_data_a_limit_leaves_the_rank_to_decide():
    found = advise(length=128, width=256, kv_bytes=128, mask="causal")
    assert not found.kept
    assert "the law for random heads decides: the usual geometry is not within" in str(found)


def test_too_few_tokens_are_named_on_the_first_screen(answer):
    assert "Only 96 tokens were given; pass" in str(answer)


@pytest.mark.parametrize(
    ("shape", "asked", "why"),
    [
        ((1, 8, 8), {"config": {"hidden_size": 256, "n_head": 4}}, "8 tokens cannot tell whether"),
        ((1, 8, 8), {"width": 128, "task": "classify"}, "8 tokens cannot tell whether rank 64"),
        ((8, 16, 8), {"config": {"hidden_size": 256, "n_head": 4}}, "your tokens have 8 numbers"),
    ],
)
def test_tokens_that_cannot_tell_leave_the_usual_geometry(shape, asked, why):
    tokens = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    found = advise(tokens, **asked)
    assert found.kept and found.best.rank == 64
    assert why in document(found).reasons[0] and "above the usual" not in str(found)
    assert found.as_json()["evidence"]["shortage"] in ("tokens", "numbers")
    # A rank that is asked for is not overruled.
    assert advise(tokens, **asked, rank=8).best.rank == 8


def test_every_form_renders_one_answer(answer):
    shown = document(answer)
    text, html, notebook = str(answer), page(answer), answer._repr_html_()
    for part in (shown.headline, *shown.reasons):
        assert part in text.replace("\n", " ") or part in text
        assert part.split(":")[0] in html and part.split(":")[0] in notebook
    assert html.count('class="advised"') == 1
    known = [one.label for one in shown.details]
    assert "Evidence" not in known and "Need" not in known and "Heads" not in known
    assert "What to type next" in html and "<script" not in html and "src=" not in html
    assert len(repr(answer)) < 300
    stored = json.loads(json.dumps(answer.as_json(), allow_nan=False))
    assert {"code", "values", "text"} == set(stored["findings"][0])
    assert [row.advised for row in table_rows(answer)].count(True) == 1
    assert answer.markdown().startswith(f"**{shown.headline}**")


def test_the_geometries_become_a_frame(answer):
    frame = answer.to_frame()
    first = frame[frame.advised]
    assert len(first) == 1 and len(frame) == len(table_rows(answer))
    assert (first.heads.item(), first["rank"].item()) == (
        answer.best.geometry.heads,
        answer.best.rank,
    )


def test_the_legend_does_not_hide_the_advised_label(answer):
    figure = answer.plot()
    figure.canvas.draw()
    axes = figure.axes[0]
    legend = axes.get_legend().get_window_extent()
    (label,) = [text for text in axes.texts if "advised" in text.get_text()]
    assert not legend.overlaps(label.get_window_extent())


def test_an_export_is_pytorchs_own_layer_where_that_is_the_geometry():
    assert "nn.MultiheadAttention(embed_dim=64, num_heads=8" in layer_call(
        HeadGeometry.standard(64, 8)
    )
    assert "fitting(geometry" in layer_call(HeadGeometry.free(64, 3, 20))
    space = {}
    exec(layer_call(HeadGeometry.standard(64, 8)), space)
    assert space["layer"](*[torch.zeros(1, 2, 64)] * 3)[0].shape == (1, 2, 64)


@pytest.mark.parametrize("form", ["bert", "vit"])
def test_encoders_are_exported(form):
    transformers = pytest.importorskip("transformers")
    fields = json.loads(advise(length=64, width=64).export(form))
    config = transformers.AutoConfig.for_model(**fields)
    assert (config.hidden_size, config.num_attention_heads) == (64, 1)
    assert "num_heads=1" in advise(length=64, width=64).export("timm")
    with pytest.raises(BadInputError, match="heads × rank = width"):
        advise(length=64, width=64, heads=3, rank=5).export(form)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"width": 768}, "a `source` or a `length` with `width=768`, got neither"),
        ({"length": 512}, "expected `width` with `length`, got none"),
        (
            {"length": 9, "width": 8, "patch": 2},
            "a `source` to read with `patch`, got none",
        ),
        ({"length": 9, "width": 8, "params": 10}, "the smallest possible is 1 head"),
        ({"length": 9, "width": 8, "rank": 99}, "expected `rank` of at most the width 8, got 99"),
        (
            {"length": 9, "width": 8, "multiple_of": 0},
            "`multiple_of` of at least 1, got 0",
        ),
        ({"length": 9, "width": 8, "params": "1.5"}, "expected a whole number for `params`"),
        ({"source": "nowhere.npy"}, "there is no file or folder nowhere.npy"),
        ({"source": IDS, "patch": 4}, "expected images with `patch=4`, got ids"),
        ({"source": TOKENS, "vocabulary": 9}, "expected token ids with `vocabulary=9`"),
        ({"source": "digits", "size": 8}, "has no use for `size`"),
    ],
)
def test_errors_name_parameters_and_never_flags(asked, words):
    with pytest.raises(HeadwiseError) as raised:
        advise(asked.pop("source", None), **asked)
    assert words in str(raised.value)
    assert "--" not in str(raised.value) and "\n" not in str(raised.value)


def test_every_number_may_be_a_text():
    words = {"heads": "4", "rank": "8", "multiple_of": "2", "width": "1k", "params": "1M"}
    numbers = {"heads": 4, "rank": 8, "multiple_of": 2, "width": 1000, "params": 10**6}
    assert advise(length="20", seed="0", **words).as_json() == (
        advise(length=20, seed=0, **numbers).as_json()
    )
    images = np.random.default_rng(0).random((8, 3, 8, 8))
    assert advise(images, patch="4", width="16").evidence.length == 4
    assert advise(IDS, width=16, vocabulary="1k").evidence.vocabulary == 1000


def test_the_name_of_an_array_goes_with_a_file():
    with pytest.raises(ParameterError, match="a file of arrays with `name`, got Tensor; leave"):
        advise(TOKENS, width=16, name="x")


def test_what_is_of_the_wrong_kind_is_refused():
    """In a separate process: here types are checked at every call."""
    code = (
        "from headwise import advise\nfrom headwise.errors import BadInputError\n"
        "for asked in ({'task': 'sing'}, {'need': 'speed'}, {'kind': 'mqa'}, {'width': [1]}):\n"
        "    try:\n        advise(length=64, **{'width': 64, **asked})\n"
        "    except BadInputError as error:\n        print(error)\n"
        "try:\n    advise(length=64, width=64).report(3)\n"
        "except BadInputError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert [line.split("`")[1] for line in said] == ["task", "need", "kind", "width", "path"]


def test_one_call_passes_no_more_modules_than_it_does_now():
    """The goal of 40 modules is still open: what is left are different ideas."""
    seen = set()

    def note(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if name.startswith("headwise."):
            seen.add(name)

    str(headwise.advise("digits"))  # the first call also imports
    sys.setprofile(note)
    try:
        found = headwise.advise("digits")
        asked = len(seen)
        str(found)
    finally:
        sys.setprofile(None)
    own = {name for name in seen if name.startswith("headwise.advice")}
    assert len(own) <= 21, sorted(own)
    assert asked <= 47 and len(seen) <= 55, (asked, sorted(seen))


def test_trained_tasks_limit_the_rank_unless_a_need_or_a_rank_is_asked_for():
    """Single pixels suggest rank 32, where ranks up to 4 trained best."""
    found = advise("digits", patch=1)
    assert (found.best.geometry.heads, found.best.rank, found.rank.binds) == (8, 8, "trained")
    assert found.best.meets and found.rank.mixing == 32
    said = str(found)
    assert "Rank 8 is enough: on the 3 trained classification tasks" in said
    assert "90% mixing would take rank 32" in said
    assert advise("digits", patch=1, need="mixing").best.rank == 32
    assert advise("digits", patch=1, rank=16).best.rank == 16
    assert advise("digits", patch=1, task="unknown").rank.ceiling is None


def test_the_report_suggests_a_trial_that_runs_and_holds_the_usual_geometry():
    """It left out the usual geometry and the patch, and passed vectors as images."""
    digits = trial_command(advise("digits"))
    assert digits == "headwise trial digits --patch 2 --width 64 --candidates 16x4,1x64,4x4"
    assert "digits --patch 1 " in trial_command(advise("digits", patch=1))
    vectors = trial_command(advise(TOKENS, width=32))
    assert vectors.startswith("headwise trial SOURCE --labels LABELS --width 32")
    assert "headwise trial SOURCE --width 64" in trial_command(advise(IDS, width=64))
    llama = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 8}
    grouped = advise(config=llama | {"num_key_value_heads": 2})
    assert trial_command(grouped) == "headwise trial SOURCE --width 256"


def test_the_same_seed_gives_the_same_answer(answer):
    assert advise(TOKENS, width=32).as_json() == answer.as_json()
    assert advise(TOKENS, width=32, seed=1).as_json() != answer.as_json()
