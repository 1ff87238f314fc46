"""What is read of Hugging Face models, against the attention that they return themselves."""

import sys

import pytest
import torch
from torch import nn

from headwise.attention import AttentionMaps, AttentionView
from headwise.errors import BadInputError
from headwise.hugging_face.attention_interface import IMPLEMENTATION, hugging_face_models
from headwise.probing import capture, views
from headwise.spectra import count
from hugging_face.tiny_models import IMAGES, MAPPED, TEXT, built, inputs, tiny

transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")

PADDINGS = ("none", "right", "left")
CASES = [*((f, "none") for f in IMAGES), *((f, p) for f in TEXT for p in PADDINGS)]

#: The masks of the layers without padding.
CAUSAL = ["causal", "causal"]
MASKS = {
    "albert": ["none"] * 3,
    "modernbert": ["none", "window:3"],
    "mistral": ["causal+window:3"] * 2,
    "gemma2": ["causal+window:3", "causal"],
    "gemma3": ["causal+window:3", "causal"],
    "gpt_oss": ["causal+window:3", "causal"],
    "t5": ["[bias]", "[bias]"],
    **dict.fromkeys(["gpt2", "gpt_neox", "opt", "llama", "qwen2", "qwen3", "olmo2"], CAUSAL),
    **dict.fromkeys(["deepseek_v2", "deepseek_v3", "clip_text"], CAUSAL),
}


@torch.no_grad()
def read(model, given):
    """The output within the block, and the views."""
    seen = {}
    with capture(model, seen.__setitem__):
        output = model(**given)
    return output[0], seen


@torch.no_grad()
def eager(model, given):
    """The output and the attention maps of the model alone."""
    output = model(**given, output_attentions=True)
    return output[0], output.attentions


def attention_only(seen):
    """Without the pooling layer of SigLIP, whose maps the model does not return."""
    return {name: view for name, view in seen.items() if not name.startswith("head.")}


@pytest.mark.parametrize(("family", "padding"), CASES)
def test_views_give_the_models_own_maps_and_leave_its_output(family, padding):
    model, given = tiny(transformers, family), inputs(family, padding)
    output, maps = eager(model, given)
    within, seen = read(model, given)
    assert torch.equal(output, within)
    real = given.get("attention_mask", torch.ones(2, maps[0].shape[-1])).bool()
    for view, wanted in zip(attention_only(seen).values(), maps, strict=True):
        assert isinstance(view, AttentionView)
        parts = list(view.unpadded())
        found = list(parts[0].matrix()) if len(parts) == 1 else [p.matrix()[0] for p in parts]
        for one, own, kept in zip(found, wanted.double(), real, strict=True):
            own = own[:, kept][..., kept]
            torch.testing.assert_close(one, own, rtol=0, atol=1e-6)
            assert torch.equal(count(one).low, (torch.linalg.svdvals(one) >= 1e-8).sum(-1))


@pytest.mark.parametrize("family", [*TEXT, *IMAGES])
def test_masks_are_named(family):
    _, seen = read(tiny(transformers, family), inputs(family))
    names = [view.mask.name for view in attention_only(seen).values()]
    assert names == MASKS.get(family, ["none", "none"])


@pytest.mark.parametrize("family", ["bert", "llama", "gemma2", "t5", "gpt_oss"])
def test_a_model_in_float64_is_read_to_float64_rounding(family):
    """The layer's own formula, with the softmax in float64 that eager attention may lack."""
    model, given = tiny(transformers, family).double(), inputs(family, "right")
    _, maps = eager(model, given)
    _, seen = read(model, given)
    tight = 1e-12 if family in ("t5", "gpt_oss") else 2e-7  # the others round softmax to float32
    first = next(iter(seen.values()))
    for part, own, kept in zip(first.unpadded(), maps[0], given["attention_mask"] > 0, strict=True):
        wanted = own[:, kept][..., kept].double()
        torch.testing.assert_close(part.matrix()[0], wanted, rtol=0, atol=tight)


def test_shared_layers_report_once_for_each_depth():
    _, seen = read(tiny(transformers, "albert"), inputs("albert"))
    name = "encoder.albert_layer_groups.0.albert_layers.0.attention"
    assert list(seen) == [name, f"{name}@2", f"{name}@3"]
    queries = [view.queries for view in seen.values()]
    assert not torch.equal(queries[0], queries[1])
    again = views(tiny(transformers, "albert"), **inputs("albert"))
    assert list(again) == list(seen)


def test_an_encoder_decoder_reads_both_stacks_and_what_passes_between():
    sizes = TEXT["t5"][2] | {"decoder_start_token_id": 0}
    model = built(transformers, "T5ForConditionalGeneration", "T5Config", sizes)
    given = inputs("t5", "right") | {"decoder_input_ids": inputs("t5")["input_ids"][:, :5]}
    with torch.no_grad():
        alone = model(**given, output_attentions=True)
    within, seen = read(model, given)
    assert torch.equal(alone.logits, within)
    groups = {"encoder": [], "decoder": [], "cross": []}
    for name, view in seen.items():
        kind = "cross" if "EncDec" in name else name.partition(".")[0]
        groups[kind].append(view)
    wanted = (alone.encoder_attentions, alone.decoder_attentions, alone.cross_attentions)
    for found, own in zip(groups.values(), wanted, strict=True):
        for view, maps in zip(found, own, strict=True):
            for index, part in enumerate(view.unpadded()):
                matrices = part.matrix()
                maps_of = maps if len(matrices) > 1 else maps[index : index + 1]
                kept = maps_of[..., : matrices.shape[-2], : matrices.shape[-1]]
                torch.testing.assert_close(matrices, kept.double(), rtol=0, atol=1e-6)
    assert [view.self_attention for view in groups["cross"]] == [False, False]
    # Padding of the encoder's tokens drops columns, never the decoder's rows.
    assert [tuple(p.shape[-2:]) for p in groups["cross"][0].unpadded()] == [(5, 7), (5, 5)]


def test_both_towers_of_clip_are_read():
    text, image = TEXT["clip_text"][2], IMAGES["clip_image"][2]
    sizes = {"text_config": text, "vision_config": image, "projection_dim": 8}
    model = built(transformers, "CLIPModel", "CLIPConfig", sizes)
    given = inputs("clip_text", "right") | inputs("clip_image")
    with torch.no_grad():
        alone = model(**given)
    within, seen = read(model, given)
    assert torch.equal(alone[0], within)
    towers = {name.partition(".")[0]: view.mask.name for name, view in seen.items()}
    assert towers == {"text_model": "causal+[padding]", "vision_model": "none"}
    assert len(seen) == 4
    assert model.config._attn_implementation == "eager"
    assert model.vision_model.config._attn_implementation == "eager"


@pytest.mark.filterwarnings("ignore:.*torch.jit.script. is deprecated")
@pytest.mark.parametrize("family", MAPPED)
@pytest.mark.parametrize("padding", ["none", "right"])
def test_families_without_the_interface_give_maps_at_the_dtype_floor(family, padding):
    model, given = tiny(transformers, family), inputs(family, padding)
    with torch.no_grad():
        alone = model(**given)
        maps = model(**given, output_attentions=True).attentions
    seen = {}
    with torch.no_grad(), capture(model, seen.__setitem__):
        within = model(**given)
    assert list(within.keys()) == list(alone.keys())
    torch.testing.assert_close(within[0], alone[0], rtol=1e-5, atol=1e-5)
    assert list(seen) == [f"attentions.{depth}" for depth in range(len(maps))]
    for view, own in zip(seen.values(), maps, strict=True):
        assert isinstance(view, AttentionMaps)
        assert torch.equal(view.matrix(), own)
        assert type(view.tolerance).__name__ == "DtypeFloor"
    if padding == "right":
        assert [part.shape[-1] for part in view.unpadded()] == [7, 5]


def test_maps_come_as_a_tuple_if_the_caller_wants_one():
    model, given = tiny(transformers, "bloom"), inputs("bloom")
    with torch.no_grad(), capture(model, lambda name, view: None):
        within = model(**given, return_dict=False)
    assert isinstance(within, tuple)
    assert torch.equal(within[0], model(**given)[0])


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_the_implementation_is_restored_after_an_exception_too(implementation):
    model = tiny(transformers, "bert", implementation)
    with capture(model, lambda *seen: None):
        assert model.config._attn_implementation == IMPLEMENTATION
        model(**inputs("bert"))
    assert model.config._attn_implementation == implementation
    with pytest.raises(ZeroDivisionError), capture(model, lambda *seen: 1 / 0):
        model(**inputs("bert"))
    assert model.config._attn_implementation == implementation


def test_a_boolean_mask_for_sdpa_is_read_and_obeyed():
    allowed = torch.ones(7, 7).tril().bool().expand(2, 1, 7, 7)
    model = tiny(transformers, "bert", "sdpa")
    given = inputs("bert") | {"attention_mask": allowed}
    with torch.no_grad():
        alone = model(**given)[0]
    within, seen = read(model, given)
    torch.testing.assert_close(within, alone)
    assert [view.mask.name for view in seen.values()] == ["causal", "causal"]


def test_blocks_within_blocks_and_other_models_do_not_mix():
    one, other, seen = tiny(transformers, "bert"), tiny(transformers, "gpt2"), []
    with (
        capture(one, lambda name, view: seen.append("one")),
        capture(other, lambda name, view: seen.append("other")),
        capture(one, lambda name, view: seen.append("one again")),
    ):
        other(**inputs("gpt2"))
        one(**inputs("bert"))
    assert sorted(seen) == ["one"] * 2 + ["one again"] * 2 + ["other"] * 2


@pytest.mark.parametrize(
    ("family", "layer"),
    [
        ("bert", "bert.encoder.layer.0.attention.self"),
        ("gpt2", "transformer.h.0.attn"),
        ("llama", "model.layers.0.self_attn"),
    ],
)
def test_layers_are_named_after_their_modules(family, layer):
    model = tiny(transformers, family)
    _, seen = read(model, inputs(family))
    assert next(iter(seen)) == layer
    assert model.get_submodule(layer).config is model.config


def test_only_chosen_layers_report():
    model, seen = tiny(transformers, "llama"), []
    with capture(model, lambda name, view: seen.append(name), ["model.layers.1.self_attn"]):
        model(**inputs("llama"))
    assert seen == ["model.layers.1.self_attn"]


def test_grouped_keys_stay_grouped_and_heads_are_cut_out():
    _, seen = read(tiny(transformers, "llama"), inputs("llama", "right"))
    view = next(iter(seen.values()))
    assert (view.queries.shape[1], view.keys.shape[1]) == (4, 2)
    whole = view.matrix()
    for head in range(4):
        torch.testing.assert_close(view.head(1, head).matrix()[0, 0], whole[1, head])


class Wrapped(nn.Module):
    """As a Lightning module holds its model."""

    def __init__(self):
        super().__init__()
        self.inner = tiny(transformers, "bert")

    def forward(self, ids):
        return self.inner(input_ids=ids)


def test_a_model_within_another_is_read():
    found = views(Wrapped(), inputs("bert")["input_ids"])
    assert next(iter(found)) == "inner.bert.encoder.layer.0.attention.self"


def test_a_model_without_attention_is_refused():
    sizes = {"hidden_size": 16, "vocab_size": 31, "num_hidden_layers": 1, "state_size": 4}
    model = built(transformers, "MambaModel", "MambaConfig", sizes)
    with pytest.raises(BadInputError, match="MambaModel is a Hugging Face model in which no att"):
        views(model, **inputs("bert"))


def test_if_transformers_is_not_loaded_nothing_is_looked_for(monkeypatch):
    model = tiny(transformers, "bert")
    assert list(hugging_face_models(model)) == [""]
    monkeypatch.setitem(sys.modules, "transformers.modeling_utils", None)
    assert hugging_face_models(model) == {}


def test_sinks_make_rows_sum_to_less_than_one():
    _, seen = read(tiny(transformers, "gpt_oss"), inputs("gpt_oss"))
    view = next(iter(seen.values()))
    assert bool((view.matrix().sum(-1) < 1).all())
    with pytest.raises(BadInputError, match=r"do not sum to one.*view\.matrix"):
        view.logits()
