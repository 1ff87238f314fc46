"""The whole way: text in, folder out, loaded again by headwise and by plain transformers."""

import json
from copy import deepcopy

import pytest
import torch

import headwise
from headwise.errors import BadInputError, ParameterError
from headwise.reduction.budgets import Budget
from headwise.reduction.evaluation import measure_speed, similarity_agreement
from headwise.reduction.healing import heal_model
from headwise.reduction.saving import load

TEXT = " ".join(f"word{number * number % 53}" for number in range(900))
HALF = Budget(kv_bytes="50%")
SMALL = {"step": 2, "length": 24, "context": 30}


def reduced(model, text, budget=HALF, **asked):
    return headwise.reduce(model, text, **vars(budget), **asked)


@pytest.fixture(scope="module")
def saved(tiny, tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "cut"
    model = tiny("llama")
    found = reduced(model, TEXT, tokenizer=tokenizer, out=folder, curve=[0.75], **SMALL)
    return model, found, folder


def test_the_result_says_what_was_cut(saved):
    _, found, folder = saved
    assert found.kv_bytes[1] <= found.kv_bytes[0] / 2
    assert found.parameters[1] < found.parameters[0]
    assert found.speed[1].cache_bytes == found.kv_bytes[1]
    assert found.speed[0].cache_bytes == found.kv_bytes[0]
    assert found.curve[0].kv_bytes > found.kv_bytes[1]
    assert json.loads(json.dumps(found.as_json()))["folder"] == str(folder)


def test_the_result_is_short_and_gives_a_frame_and_a_figure(saved, tmp_path):
    _, found, _ = saved
    assert len(repr(found)) < 300
    frame = found.to_frame()
    assert len(frame) == len(found.cuts) and list(frame["rank"]) == [c.rank for c in found.cuts]
    axes = found.plot(tmp_path / "scores.png").axes[0]
    assert axes.get_xlabel() == "KV bytes, % of the original"
    assert (tmp_path / "scores.png").exists()


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
    found = reduced(
        model,
        TEXT,
        Budget(rank=4),
        tokenizer=tokenizer,
        step=2,
        length=12,
        out=tmp_path / "cut",
    )
    assert found.after.name == "similarity"
    assert 0.5 < found.after.value <= 1
    assert all(cut.rank == cut.value_rank == 4 for cut in found.cuts)
    ids = torch.arange(4, 14).unsqueeze(0)
    again = load(tmp_path / "cut")(input_ids=ids).last_hidden_state
    torch.testing.assert_close(again, found.model(input_ids=ids).last_hidden_state)


def test_an_encoder_without_special_tokens_is_refused(tiny, tokenizer):
    bare = deepcopy(tokenizer)
    bare.cls_token = None
    with pytest.raises(BadInputError, match="a tokenizer with a cls_token and a sep_token"):
        reduced(tiny("bert"), TEXT, Budget(rank=4), tokenizer=bare, step=2, length=12)


def test_a_run_stopped_while_calibrating_goes_on(tiny, tokenizer, tmp_path, monkeypatch):
    model, seen = tiny("llama"), []
    from headwise.reduction import calibration

    real = calibration._of_hugging_face

    def stopping(*given):
        seen.append(given)
        if len(seen) == 8:
            raise KeyboardInterrupt
        return real(*given)

    whole = reduced(model, TEXT, tokenizer=tokenizer, out=tmp_path / "whole", **SMALL)
    monkeypatch.setattr(calibration, "_of_hugging_face", stopping)
    with pytest.raises(KeyboardInterrupt):
        reduced(model, TEXT, tokenizer=tokenizer, out=tmp_path / "cut", **SMALL)
    assert not (tmp_path / "cut").exists()
    again = reduced(model, TEXT, tokenizer=tokenizer, out=tmp_path / "cut", **SMALL)
    passes = 900 // 24 - 900 // 24 // 3
    assert passes < len(seen) < passes + 5  # at most a tenth is done twice
    assert again.predicted == pytest.approx(whole.predicted, rel=1e-12)
    assert again.after == whole.after
    assert sorted(place.name for place in tmp_path.iterdir()) == ["cut", "whole"]


def test_keys_alone_leave_values_and_have_their_own_budget(tiny, tokenizer):
    model = tiny("bert")
    found = reduced(model, TEXT, tokenizer=tokenizer, only="keys", step=2, length=12)
    assert all(cut.value_rank == 8 for cut in found.cuts)
    assert sum(cut.rank for cut in found.cuts) == 8
    values = reduced(model, TEXT, tokenizer=tokenizer, only="values", step=2, length=12)
    assert all(cut.rank == 8 for cut in values.cuts)


def test_healing_lowers_the_divergence(tiny, tokenizer):
    model = tiny("llama")
    found = reduced(model, TEXT, Budget(rank=2), tokenizer=tokenizer, step=2, length=24, context=0)
    generator = torch.Generator().manual_seed(3)
    batches = [{"input_ids": torch.randint(4, 57, (4, 24), generator=generator)} for _ in range(2)]
    losses = heal_model(model, found.model, batches, steps=30, rate=3e-3)
    assert sum(losses[-4:]) < 0.8 * sum(losses[:4])
    assert all(each.grad is None for each in model.parameters())


def test_bad_input_is_one_line(tiny, tokenizer, tmp_path, monkeypatch):
    model = tiny("llama")
    (tmp_path / "there").mkdir()
    with pytest.raises(BadInputError, match=r"the folder .*there exists already"):
        reduced(model, TEXT, tokenizer=tokenizer, out=tmp_path / "there")
    with pytest.raises(BadInputError, match=r"at least 96 tokens for these ranks, got 20"):
        reduced(model, " ".join(["word1"] * 20), tokenizer=tokenizer, **SMALL)
    with pytest.raises(
        ParameterError, match="`keys` latent, rotated or pairs for llama, got factors"
    ):
        reduced(model, TEXT, tokenizer=tokenizer, keys="factors", **SMALL)
    with pytest.raises(ParameterError, match="expected a `tokenizer`"):
        reduced(model, TEXT, **SMALL)
    with pytest.raises(BadInputError, match="`kv_bytes` of at least"), monkeypatch.context() as m:
        m.setattr("headwise.reduction.reducing.calibrate", None)  # refused before it is called
        reduced(model, TEXT, Budget(kv_bytes="1%"), tokenizer=tokenizer, **SMALL)
    with (
        pytest.raises(ParameterError, match="rank` of at least 4 with `step=4`, got 3"),
        monkeypatch.context() as m,
    ):
        m.setattr("headwise.reduction.reducing.calibrate", None)
        reduced(model, TEXT, Budget(rank=3), tokenizer=tokenizer, **SMALL | {"step": 4})
    with pytest.raises(ParameterError, match=r"`length` of at most 64, .* got 65"):
        reduced(tiny("bert"), TEXT, tokenizer=tokenizer, length=65)
    with pytest.raises(ParameterError, match="latent or pairs for llama and a budget of param"):
        params = Budget(params="50%")
        reduced(model, TEXT, params, tokenizer=tokenizer, keys="rotated", **SMALL)
    with pytest.raises(ParameterError, match=r"expected `device` cpu, .* got 'nowhere'"):
        reduced(model, TEXT, tokenizer=tokenizer, device="nowhere", **SMALL)
    with pytest.raises(BadInputError, match="no device 'meta' on this machine") as absent:
        reduced(model, TEXT, tokenizer=tokenizer, device="meta", **SMALL)
    assert not isinstance(absent.value, ParameterError)
    with pytest.raises(BadInputError, match="headwise reduce wrote"):
        headwise.load(tmp_path / "there")


def test_models_that_were_cut_are_refused(saved, tokenizer):
    with pytest.raises(BadInputError, match="not cut before"):
        reduced(saved[1].model, TEXT, tokenizer=tokenizer, **SMALL)


def test_equal_embeddings_agree_fully():
    drawn = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
    found = similarity_agreement(drawn, drawn)
    assert (found.value, found.error) == (pytest.approx(1), pytest.approx(0))


@pytest.mark.filterwarnings("error")
def test_agreement_of_equal_similarities_is_refused():
    drawn = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))
    same = torch.ones(12, 5) / 5**0.5
    near = same + 1e-8 * drawn
    for before, after in ((drawn, same), (same, drawn), (near, near)):
        with pytest.raises(BadInputError, match="the same embedding for every held-out sequence"):
            similarity_agreement(before, after)


def test_speed_counts_the_bytes_that_the_cache_holds(tiny):
    found = measure_speed(tiny("llama"), context=10, steps=2)
    assert found.cache_bytes == 2 * 2 * 16 * 4
    assert found.decode > 0
