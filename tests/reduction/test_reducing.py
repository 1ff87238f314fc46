"""The whole way: text in, folder out, loaded again by headwise and by plain transformers."""

import json

import pytest
import torch
from benchmarks.reduce_refit import refit_outputs

import headwise
from headwise.errors import BadInputError, ParameterError
from headwise.reduction import reduce_model
from headwise.reduction.evaluation import measure_speed, similarity_agreement
from headwise.reduction.healing import heal_model
from headwise.reduction.saving import load

TEXT = " ".join(f"word{number * number % 53}" for number in range(900))
SMALL = {"kv_bytes": "50%", "step": 2, "length": 24, "context": 30}


@pytest.fixture(scope="module")
def tokenizer():
    """One token for each word, with the special tokens of BERT."""
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    words = {word: i for i, word in enumerate([*special, *(f"word{n}" for n in range(53))])}
    model = tokenizers.models.WordLevel(words, unk_token="[UNK]")
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    names = {f"{name.strip('[]').lower()}_token": name for name in special}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)


@pytest.fixture(scope="module")
def saved(tiny, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "cut"
    model = tiny("llama")
    found = reduce_model(model, TEXT, tokenizer=tokenizer, out=folder, curve=[0.75], **SMALL)
    return model, found, folder


def test_the_result_says_what_was_cut(saved):
    _, found, folder = saved
    assert found.kv_bytes[1] <= found.kv_bytes[0] / 2
    assert found.parameters[1] < found.parameters[0]
    assert found.speed[1].cache_bytes == found.kv_bytes[1]
    assert found.speed[0].cache_bytes == found.kv_bytes[0]
    assert found.curve[0].kv_bytes > found.kv_bytes[1]
    assert json.loads(json.dumps(found.as_dict()))["folder"] == str(folder)


@torch.no_grad()
def test_the_folder_loads_in_one_line(saved):
    _, found, folder = saved
    ids = torch.arange(4, 30).unsqueeze(0)
    again = headwise.load(folder)
    torch.testing.assert_close(again(input_ids=ids).logits, found.model(input_ids=ids).logits)
    assert not list(folder.glob("*.bin"))
    assert not list(folder.parent.glob(".cut.*"))


@torch.no_grad()
def test_plain_transformers_loads_it_with_its_own_code(saved, monkeypatch, tmp_path):
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path))
    _, found, folder = saved
    ids = torch.arange(4, 30).unsqueeze(0)
    again = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
    torch.testing.assert_close(again(input_ids=ids).logits, found.model(input_ids=ids).logits)
    assert len(transformers.AutoTokenizer.from_pretrained(folder)) == 57


def test_an_encoder_is_judged_by_similarities(tiny, tokenizer, tmp_path):
    model = tiny("bert")
    found = reduce_model(
        model, TEXT, tokenizer=tokenizer, rank=4, step=2, length=12, out=tmp_path / "cut"
    )
    assert found.after.name == "similarity"
    assert 0.5 < found.after.value <= 1
    assert all(cut.rank == cut.value_rank == 4 for cut in found.cuts)
    ids = torch.arange(4, 14).unsqueeze(0)
    again = load(tmp_path / "cut")(input_ids=ids).last_hidden_state
    torch.testing.assert_close(again, found.model(input_ids=ids).last_hidden_state)


def test_a_stopped_run_resumes(tiny, tokenizer, tmp_path, monkeypatch):
    model, calls = tiny("llama"), []
    from headwise.reduction import reducing

    real = reducing.calibrate
    monkeypatch.setattr(
        reducing, "calibrate", lambda *given, **named: calls.append(1) or real(*given, **named)
    )
    cut = reducing.cut_model
    monkeypatch.setattr(reducing, "cut_model", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        reduce_model(model, TEXT, tokenizer=tokenizer, out=tmp_path / "cut", **SMALL)
    monkeypatch.setattr(reducing, "cut_model", cut)
    reduce_model(model, TEXT, tokenizer=tokenizer, out=tmp_path / "cut", **SMALL)
    assert len(calls) == 1
    assert [place.name for place in tmp_path.iterdir()] == ["cut"]


@torch.no_grad()
def test_fitting_changes_nothing_that_is_not_cut(tiny, batches):
    import copy

    for family in ("llama", "bert"):
        model = tiny(family)
        made = refit_outputs(model, copy.deepcopy(model), batches)
        for old, new in zip(model.parameters(), made.parameters(), strict=True):
            torch.testing.assert_close(new, old)


def test_healing_lowers_the_divergence(tiny, tokenizer):
    model = tiny("llama")
    found = reduce_model(
        model, TEXT, tokenizer=tokenizer, rank=2, step=2, length=24, context=0, heal=0
    )
    generator = torch.Generator().manual_seed(3)
    batches = [{"input_ids": torch.randint(4, 57, (4, 24), generator=generator)} for _ in range(2)]
    losses = heal_model(model, found.model, batches, steps=30, rate=3e-3)
    assert sum(losses[-4:]) < 0.8 * sum(losses[:4])
    assert all(each.grad is None for each in model.parameters())


def test_bad_input_is_one_line(tiny, tokenizer, tmp_path):
    model = tiny("llama")
    (tmp_path / "there").mkdir()
    with pytest.raises(BadInputError, match=r"folder that does not exist, got .*there"):
        reduce_model(model, TEXT, tokenizer=tokenizer, out=tmp_path / "there", rank=2)
    with pytest.raises(BadInputError, match=r"at least 96 tokens for these ranks, got 20"):
        reduce_model(model, " ".join(["word1"] * 20), tokenizer=tokenizer, **SMALL)
    with pytest.raises(ParameterError, match="keys=latent or pairs for llama, got factors"):
        reduce_model(model, TEXT, tokenizer=tokenizer, keys="factors", **SMALL)
    with pytest.raises(ParameterError, match="expected a tokenizer"):
        reduce_model(model, TEXT, **SMALL)
    with pytest.raises(BadInputError, match="`kv_bytes` of at least"):
        reduce_model(model, TEXT, tokenizer=tokenizer, **SMALL | {"kv_bytes": "1%"})
    with pytest.raises(BadInputError, match="headwise reduce wrote"):
        headwise.load(tmp_path / "there")


def test_models_that_were_cut_are_refused(saved, tokenizer):
    with pytest.raises(BadInputError, match="not cut before"):
        reduce_model(saved[1].model, TEXT, tokenizer=tokenizer, **SMALL)


def test_equal_embeddings_agree_fully():
    drawn = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
    found = similarity_agreement(drawn, drawn)
    assert (found.value, found.error) == (pytest.approx(1), pytest.approx(0))


def test_speed_counts_the_bytes_that_the_cache_holds(tiny):
    found = measure_speed(tiny("llama"), context=10, steps=2)
    assert found.cache_bytes == 2 * 2 * 16 * 4
    assert found.decode > 0
