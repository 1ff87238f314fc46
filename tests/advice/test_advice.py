"""The whole answer: from tokens to text, JSON, a page and exports."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import torch

import headwise
from headwise.advice import Budget, Constraints, advise, advise_numbers, exported, gathering
from headwise.advice.page import report_page
from headwise.advice.question import checked_need
from headwise.advice.result import CLOSING
from headwise.advice.sources import Reading, tokens_from
from headwise.errors import BadInputError, HeadwiseError

GENERATOR = torch.Generator().manual_seed(0)
GROUPS = "in groups of 4 that share a key-value head,"
TOKENS = torch.randn(6, 16, 12, generator=GENERATOR)


@pytest.fixture(scope="module")
def answer():
    return advise(TOKENS, width=32)


def test_the_answer_holds_together(answer):
    assert answer.evidence.statistics.effective_dimension == pytest.approx(12, abs=1.5)
    assert answer.rank.rank == max(answer.rank.mixing, answer.rank.retrieval)
    assert [choice.role for choice in answer.references] == ["habit", "largest"]
    assert answer.best.geometry.qk_rank == answer.rank.rank
    meeting = [choice.meets for choice in answer.choices]
    assert meeting == sorted(meeting, reverse=True)
    for choice in (*answer.choices, *answer.references):
        assert len(choice.reasons) == 3
        assert 0 < choice.plateau_share <= 1
        assert 0 <= choice.floor <= 0.5


def test_it_is_json_and_text_and_a_page(answer):
    stored = json.loads(json.dumps(answer.as_json(), allow_nan=False))
    assert stored["rank"]["rank"] == answer.rank.rank
    assert stored["choices"][0]["geometry"]["heads"] == answer.best.geometry.heads
    assert {curve["start"] for curve in stored["curves"]} >= {"model", "paper"}
    assert CLOSING in str(answer)
    page, shown = report_page(answer), answer._repr_html_()
    for words in ("<svg", "lookup error", "Not promised", "KV bytes"):
        assert words in page
        assert words in shown
    assert "<script" not in page
    assert "src=" not in page


@pytest.mark.parametrize(
    ("need", "words"), [("mixing", "saturate far earlier"), ("retrieval", "fill far fewer")]
)
def test_without_data_a_caveat_stands_below_the_headline_in_every_form(need, words):
    answer = advise_numbers(64, 48, need=need)
    assert answer.as_json()["caveat"] == answer.caveat
    assert words in answer.caveat
    assert str(answer).splitlines()[1] == answer.caveat
    page, shown = report_page(answer), answer._repr_html_()
    for text in (page, shown):
        assert answer.caveat in text
        assert text.index("at width 48") < text.index(answer.caveat) < text.index("<svg")


def test_with_data_there_is_none(answer):
    assert answer.caveat is answer.as_json()["caveat"] is None
    assert "No data were given" not in str(answer) + report_page(answer) + answer._repr_html_()


def test_every_form_names_one_token_that_holds_most_of_the_variance():
    tokens = torch.randn(50, 16, 8, generator=torch.Generator().manual_seed(0))
    tokens[3, 5] = 1e4
    found, without = advise(tokens), advise(tokens[10:])
    told = found.as_json()
    assert told["tokens"]["outliers"] == 1
    assert told["tokens"]["dimension_with_outliers"] == pytest.approx(1, abs=0.01)
    assert found.best.geometry == without.best.geometry
    words = "Outliers: 1 of the 800 tokens looked at holds 100% of their variance and is left out"
    page = report_page(found)
    assert any(line.startswith(words) for line in told["findings"])
    assert words in str(found) and words in page and words in found._repr_html_()
    assert "with it that would be 1.0, not 7.9" in page


def test_same_seed_same_answer_and_numpy_is_welcome(answer):
    assert advise(TOKENS.numpy(), width=32).as_json() == answer.as_json()
    assert advise(TOKENS, width=32, seed=1).as_json() != answer.as_json()


def test_tokens_of_planted_dimension_ask_for_twice_that_rank():
    """Vectors in a plane of 8 of 32 dimensions: retrieval needs 16, whatever the width."""
    plane = torch.randn(8, 32, generator=GENERATOR)
    tokens = torch.randn(20, 24, 8, generator=GENERATOR) @ plane
    answer = advise(tokens)
    # A random plane tilts the eight directions a little, so the entropy is just below.
    assert answer.rank.retrieval in (14, 15, 16)


def test_need_and_constraints_are_kept():
    looking = advise_numbers(128, 64, need="retrieval")
    assert looking.rank.rank == 64
    fixed = advise_numbers(128, 64, constraints=Constraints(heads=2, rank=8))
    assert (fixed.best.geometry.heads, fixed.best.geometry.qk_rank) == (2, 8)
    with pytest.raises(BadInputError, match="there is no need 'speed'"):
        checked_need("speed")


@pytest.mark.parametrize(
    ("width", "budget", "words"),
    [
        (64, None, "Heads: 1, as many of this rank as fill the width."),
        (768, None, "Heads: 8, as many of this rank as fill the width."),
        (1536, None, "Heads: 16, as many of this rank as fill the width."),
        (768, 300_000, "Heads: 1, as many of this rank as 300,000 parameters pay for."),
        (768, 10**7, "Heads: 16, as many of this rank as 2 widths hold; more was never tried."),
        (
            768,
            30_000,
            "Heads: 1, since a larger rank or more heads would exceed 30,000 parameters.",
        ),
    ],
)
def test_the_number_of_heads_has_its_reason(width, budget, words):
    answer = advise_numbers(512, width, budget=Budget(budget))
    assert any(line.startswith(words) for line in answer.findings)
    fixed = advise_numbers(512, width, budget=Budget(budget), constraints=Constraints(heads=2))
    assert not any(line.startswith("Heads: ") for line in fixed.findings)


def test_heads_of_small_rank_fill_the_width_and_fewer_stand_second():
    answer = advise_numbers(16, 640, constraints=Constraints(rank=4))
    found = [(choice.role, choice.geometry.heads) for choice in answer.choices]
    assert found[:2] == [("advised", 160), ("fewer heads", 10)]
    assert answer.choices[1].costs.parameters < answer.best.costs.parameters


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"budget": Budget(cache_bytes=96)}, "Heads: 6, as many of this rank as 96 cache"),
        (
            {"budget": Budget(10**6), "constraints": Constraints(kind="gqa", rank=4)},
            "Heads: 32, as many of this rank as 2 widths hold",
        ),
        # Width 64 holds 5 heads of rank 12, two widths 10.
        (
            {"constraints": Constraints(kind="gqa", rank=12)},
            f"Heads: 4, as many of this rank, {GROUPS} as fill the width.",
        ),
        (
            {"budget": Budget(10**6), "constraints": Constraints(kind="gqa", rank=12)},
            f"Heads: 8, as many of this rank, {GROUPS} as 2 widths hold;",
        ),
        # A head of rank 4 in a group of four costs 640 parameters and 4 cache bytes.
        (
            {"budget": Budget(9 * 640), "constraints": Constraints(kind="gqa", rank=4)},
            f"Heads: 8, as many of this rank, {GROUPS} as 5,760 parameters pay for.",
        ),
        (
            {"budget": Budget(9 * 640 - 1), "constraints": Constraints(kind="gqa", rank=4)},
            "Heads: 8, as many of this rank as 5,759 parameters pay for.",
        ),
        (
            {"budget": Budget(None, 8 * 4), "constraints": Constraints(kind="gqa", rank=4)},
            "Heads: 8, as many of this rank as 32 cache bytes per token hold.",
        ),
        (
            {"budget": Budget(None, 9 * 4), "constraints": Constraints(kind="gqa", rank=4)},
            f"Heads: 8, as many of this rank, {GROUPS} as 36 cache bytes per token hold.",
        ),
    ],
)
def test_the_limit_of_heads_is_the_one_that_binds(asked, words):
    asked = {"constraints": Constraints(rank=4)} | asked
    answer = advise_numbers(16, 64, **asked)
    assert any(line.startswith(words) for line in answer.findings)


def test_a_rank_that_never_saturates_meets_no_need():
    answer = advise_numbers(4096, 64)
    assert not answer.rank.reached and not answer.best.meets
    assert "mixing still gains at 64, the largest rank looked at" in str(answer)


def test_tokens_need_no_more_rank_than_they_have_numbers_and_no_more_than_the_width():
    narrow = advise(TOKENS, width=64)
    assert narrow.rank.retrieval == 12
    assert "at most the numbers of a token: rank 12" in str(narrow)
    wide = advise(TOKENS, width=4)
    assert wide.evidence.effective_dimension == 4
    assert "of which the width passes on 4" in str(wide)
    assert wide.best.floor == 0


def test_what_is_of_the_wrong_kind_is_refused():
    """In a process of its own: here types are checked at every call."""
    calls = {
        "advise(tokens, width=0)": "the width must lie between 2",
        "advise(tokens, width=10.5)": "the width must be a whole number",
        "advise(tokens, width=16, budget=1000)": "a Budget was expected, got 1000",
        "advise_numbers(16, 64, constraints=None)": "a Constraints was expected, got None",
        "advise('digits')": "tokens of type str came",
    }
    tried = [
        f"try:\n    {call}\nexcept BadInputError as error:\n    print(error)" for call in calls
    ]
    code = "import torch\nfrom headwise.advice import advise, advise_numbers\n"
    code += "from headwise.errors import BadInputError\ntokens = torch.randn(4, 8, 16)\n"
    ran = subprocess.run(
        [sys.executable, "-c", code + "\n".join(tried)], capture_output=True, text=True, check=True
    )
    for said, words in zip(ran.stdout.splitlines(), calls.values(), strict=True):
        assert words in said


def test_a_budget_is_kept():
    answer = headwise.advise(TOKENS, width=32, budget=Budget(parameters=1024))
    assert answer.best.costs.parameters <= 1024


def test_long_sequences_are_cut_and_it_is_said(monkeypatch):
    monkeypatch.setattr(gathering, "MOST_LENGTH", 20)
    found = advise(torch.randint(50, (2, 30), generator=GENERATOR), width=8)
    assert found.evidence.length == 20
    assert "the first 20 of 30" in found.evidence.words
    assert found.best.costs.flops_per_token == found.best.geometry.flops_per_token(30)
    assert found.sizes.context == 30


def test_every_form_says_at_which_length_flops_are_taken(answer):
    for text in (str(answer), report_page(answer), answer._repr_html_()):
        assert "FLOPs per token: at 16 tokens of context." in text
    assert answer.as_json()["context"] == 16


@pytest.mark.parametrize("form", ["qwen3", "mistral", "deepseek_v3"])
def test_an_exported_config_makes_that_layer(form):
    transformers = pytest.importorskip("transformers")
    kind = "mla" if form == "deepseek_v3" else "gqa"
    answer = advise_numbers(16, 64, constraints=Constraints(heads=4, multiple_of=2, kind=kind))
    fields = json.loads(exported(answer, form)) | {"num_hidden_layers": 1, "vocab_size": 50}
    config = transformers.AutoConfig.for_model(**fields)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    layer, geometry = model.model.layers[0].self_attn, answer.best.geometry
    assert layer.q_proj.weight.shape == (geometry.heads * geometry.qk_rank, 64)
    assert layer.o_proj.weight.shape == (64, geometry.heads * geometry.v_rank)


def test_the_exported_call_is_that_layer():
    answer = advise_numbers(64, 48, constraints=Constraints(heads=4, kind="gqa"))
    space: dict = {}
    exec(exported(answer, "torch"), space)
    assert space["layer"].geometry == answer.best.geometry
    assert space["layer"](torch.zeros(1, 3, 48)).shape == (1, 3, 48)


@pytest.mark.parametrize(
    ("form", "constraints", "words"),
    [
        ("qwen3", Constraints(rank=3), "ask for ranks in multiples of 2"),
        ("qwen3", Constraints(kind="mla"), "has no latent attention"),
        ("deepseek_v3", Constraints(), "ask for the kind mla"),
        ("gguf", Constraints(), "there is no form 'gguf'"),
    ],
)
def test_what_a_family_cannot_express_is_refused(form, constraints, words):
    with pytest.raises(BadInputError, match=words):
        exported(advise_numbers(64, 48, constraints=constraints), form)


def test_sources(tmp_path, monkeypatch):
    assert tokens_from("digits", Reading(patch=1)).length == 64
    numpy_file, text = tmp_path / "ids.npy", tmp_path / "note.txt"
    np.save(numpy_file, np.arange(12).reshape(3, 4))
    assert tokens_from(str(numpy_file), Reading(width=8)).embedding == "table"
    text.write_text("one two three two one " * 40)
    words = tokens_from(str(text), Reading(length=10))
    assert (words.length, words.vocabulary) == (10, 4)
    characters = tokens_from(str(text), Reading(length=10, tokenizer="character"))
    assert characters.vocabulary == len(set("one two three two one ")) + 1
    (tmp_path / "my_loader.py").write_text(
        "import torch\n"
        "def batches():\n    while True:\n        yield torch.randn(100, 5, 3), None\n"
        "def whole():\n    return torch.randn(2, 5, 3)\n"
        "def broken():\n    raise RuntimeError('no disk')\n"
        "def empty():\n    return []\n"
        "def leaving():\n    import sys\n    sys.exit(3)\n"
    )
    monkeypatch.chdir(tmp_path)
    assert tokens_from("my_loader:batches", Reading()).sequences == 256
    assert tokens_from("my_loader:whole", Reading(width=8)).embedding == "linear"
    bad_ones = ("broken", "empty", "absent", "leaving")
    for bad in (*(f"my_loader:{name}" for name in bad_ones), "absent:batches"):
        with pytest.raises(HeadwiseError) as raised:
            tokens_from(bad, Reading())
        assert bad in str(raised.value)


def test_images_from_arrays_and_folders(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for number in range(3):
        pixels = np.random.default_rng(number).integers(0, 255, (20, 30, 3), dtype=np.uint8)
        image.fromarray(pixels).save(tmp_path / f"{number}.png")
    found = tokens_from(str(tmp_path), Reading(size=16, patch=4, width=24))
    assert found.values.shape == (3, 16, 48)
    assert found.embedding == "linear"
    np.save(tmp_path / "images.npy", np.random.default_rng(0).random((2, 3, 8, 8)))
    assert tokens_from(str(tmp_path / "images.npy"), Reading()).length == 4
    (tmp_path / "bad.png").write_bytes(b"no picture")
    with pytest.raises(HeadwiseError, match="not a picture"):
        tokens_from(str(tmp_path), Reading())


@pytest.mark.parametrize("shape", [(5, 32, 32, 3), (5, 24, 32, 1), (5, 32, 24, 4)])
@pytest.mark.parametrize("patch", [None, 1])
def test_images_with_their_channels_last_are_refused(tmp_path, shape, patch):
    file = tmp_path / "images.npy"
    np.save(file, np.random.default_rng(0).random(shape))
    with pytest.raises(BadInputError, match="seem to have their channels last") as raised:
        tokens_from(str(file), Reading(patch=patch))
    assert f"({', '.join(map(str, shape))})" in str(raised.value)
    assert "pass (batch, channels, height, width)" in str(raised.value)
    assert "array.transpose(0, 3, 1, 2)" in str(raised.value)


@pytest.mark.parametrize("shape", [(5, 3, 8, 4), (5, 16, 4, 4), (5, 1, 8, 8), (5, 4, 8, 4)])
def test_images_with_their_channels_first_are_read(tmp_path, shape):
    np.save(tmp_path / "images.npy", np.random.default_rng(0).random(shape))
    found = tokens_from(str(tmp_path / "images.npy"), Reading(patch=2))
    assert found.values.shape == (5, shape[2] * shape[3] // 4, 4 * shape[1])


@pytest.mark.parametrize(
    ("values", "reading", "words"),
    [
        (np.eye(6)[None], Reading(patch=4), "a patch of 4 was given, and the tokens are vectors"),
        (np.arange(9), Reading(patch=4), "a patch of 4 was given, and the tokens are ids"),
        (
            np.random.default_rng(0).random((2, 3, 8, 8)),
            Reading(vocabulary=9),
            "a vocabulary of 9 was given, and the tokens are patches of images",
        ),
    ],
)
def test_what_has_no_use_for_these_tokens_is_refused(tmp_path, values, reading, words):
    np.save(tmp_path / "tokens.npy", values)
    with pytest.raises(BadInputError, match=words):
        tokens_from(str(tmp_path / "tokens.npy"), reading)


def test_a_single_number_a_token_needs_a_width_to_be_embedded_in(tmp_path):
    np.save(tmp_path / "series.npy", np.random.default_rng(0).random((4, 9, 1)))
    with pytest.raises(BadInputError, match="width 1"):
        tokens_from(str(tmp_path / "series.npy"), Reading())
    assert tokens_from(str(tmp_path / "series.npy"), Reading(width=8)).width == 8


def test_text_without_spaces_is_said_to_have_characters(tmp_path):
    text = tmp_path / "chinese.txt"
    text.write_text("注意力" * 700, encoding="utf-8")
    with pytest.raises(BadInputError) as raised:
        tokens_from(str(text), Reading())
    assert "has too few tokens (1, tokenizer word)" in str(raised.value)
    assert "it has 2,100 characters: choose --tokenizer character" in str(raised.value)
    assert tokens_from(str(text), Reading(tokenizer="character")).sequences == 8


@pytest.mark.parametrize("need", ["data", "mixing", "retrieval"])
def test_what_is_said_holds_in_python_too(answer, need):
    """No option of the command line is named."""
    for found in (answer, advise_numbers(16, 1024, need=need), advise_numbers(4096, 64, need=need)):
        said = [str(found), report_page(found), json.dumps(found.as_json(), ensure_ascii=False)]
        said[1] = re.sub(r"<style.*?</style>|<svg.*?</svg>|<!--.*?-->", "", said[1], flags=re.S)
        for text in said:
            assert not re.search(r"(?<![-\w])--[a-z]", text)


def test_without_data_lookup_is_not_among_these_tokens(answer):
    alone = advise_numbers(64, 48)
    assert "lookup among isotropic tokens in 48 dimensions must err by" in report_page(alone)
    assert "these tokens" not in report_page(alone)
    assert "lookup among these tokens must err by" in report_page(
        advise(TOKENS, width=32, constraints=Constraints(rank=1))
    )
