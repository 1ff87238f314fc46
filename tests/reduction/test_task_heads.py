"""Encoders keep the head of their checkpoint, and the Auto class of the original loads the cut."""

import json

import pytest
import torch

import headwise
from headwise.errors import BadInputError
from headwise.hugging_face.reducible import ENCODERS, class_named
from headwise.reduction.reducing import _loaded

TEXT = " ".join(f"word{number * number % 53}" for number in range(400))
SIZES = {
    "hidden_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "intermediate_size": 12,
    "vocab_size": 61,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "max_position_embeddings": 32,
}
#: Answers to questions have a start and an end.
LABELS = {"BertForQuestionAnswering": 2}
INPUTS = {"BertForMultipleChoice": torch.arange(4, 24).reshape(1, 2, 10)}


@pytest.fixture
def checkpoint(tokenizer, tmp_path):
    transformers = pytest.importorskip("transformers")

    def write(name):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            made = getattr(transformers, name)(
                transformers.BertConfig(**SIZES, num_labels=LABELS.get(name, 3))
            )
            for parameter_name, parameter in made.named_parameters():
                if parameter_name.endswith("bias"):
                    torch.nn.init.normal_(parameter, std=0.3)
        made.eval().save_pretrained(tmp_path / "original")
        tokenizer.save_pretrained(tmp_path / "original")
        return tmp_path / "original", made

    return write


def tensors(output):
    return [each for each in output.to_tuple() if isinstance(each, torch.Tensor)]


@pytest.mark.parametrize("name", ENCODERS)
@torch.no_grad()
def test_at_full_rank_the_auto_class_of_the_original_gives_its_outputs(
    checkpoint, name, tmp_path, monkeypatch
):
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    folder, original = checkpoint(name)
    with torch.enable_grad():
        found = headwise.reduce(folder, TEXT, rank=8, length=12, heal=1, out=tmp_path / "cut")
    assert found.as_json()["architecture"] == name
    assert found.loaded_by == ENCODERS[name]
    ids = INPUTS.get(name, torch.arange(4, 14).unsqueeze(0))
    auto = getattr(transformers, ENCODERS[name])
    again = auto.from_pretrained(tmp_path / "cut", trust_remote_code=True)
    expected = tensors(original(input_ids=ids))
    for loaded in (again.eval(), headwise.load(tmp_path / "cut")):
        for one, other in zip(tensors(loaded(input_ids=ids)), expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_smaller_rank_keeps_the_head_and_the_bare_encoder_loads_too(
    checkpoint, tmp_path, monkeypatch
):
    transformers = pytest.importorskip("transformers")
    monkeypatch.setattr(
        "transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules")
    )
    folder, original = checkpoint("BertForSequenceClassification")
    with torch.enable_grad():
        found = headwise.reduce(
            folder, TEXT, rank=2, only="keys", step=2, length=12, out=tmp_path / "cut"
        )
    assert torch.equal(found.model.classifier.weight, original.classifier.weight)
    bare = transformers.AutoModel.from_pretrained(tmp_path / "cut", trust_remote_code=True)
    ids = torch.arange(4, 14).unsqueeze(0)
    torch.testing.assert_close(
        bare.eval()(input_ids=ids).last_hidden_state,
        found.model.bert(input_ids=ids).last_hidden_state,
    )


def test_a_model_in_memory_keeps_its_head(checkpoint, tokenizer):
    _, original = checkpoint("BertForMaskedLM")
    found = headwise.reduce(original, TEXT, rank=2, step=2, length=12, tokenizer=tokenizer)
    assert found.model.config.headwise["base"] == "BertForMaskedLM"
    assert found.after.name == "similarity"


def test_a_head_that_cannot_be_kept_is_refused(checkpoint):
    folder, _ = checkpoint("BertModel")
    config = folder / "config.json"
    fields = json.loads(config.read_text()) | {"architectures": ["BertLMHeadModel"]}
    config.write_text(json.dumps(fields))
    with pytest.raises(BadInputError, match=r"class BertModel, .*, got BertLMHeadModel; load one"):
        _loaded(folder, None)
    with pytest.raises(BadInputError, match=r"LlamaForCausalLM, got LlamaForSequenceClass"):
        class_named({"model_type": "llama", "architectures": ["LlamaForSequenceClassification"]})
    assert class_named({"model_type": "bert"}) == "BertModel"


def test_an_encoder_is_reported_without_a_cache(checkpoint, tmp_path):
    folder, _ = checkpoint("BertForMaskedLM")
    found = headwise.reduce(folder, TEXT, rank=2, only="keys", step=2, length=12, curve=[0.9])
    from headwise.reduction import rank_table, reduction_rows, reduction_words

    page = found.report(tmp_path / "report.html").read_text()
    words = " ".join(reduction_words(found))
    assert "query-key rank 2 of 8 and value rank 8 of 8" in words
    assert "BertForMaskedLM with the original's task head" in words
    columns = ("layer", "query-key rank, each head (of 8)", "value rank, each head (of 8)")
    assert rank_table(found).columns == columns
    names = [name for name, _, _ in reduction_rows(found)]
    assert names[:2] == ["rank correlation of similarities", "query-key rank, mean of layers"]
    shown = " ".join([words, repr(found), page, *names])
    assert "KV" not in shown
    assert '<p class="verdict">' in page
