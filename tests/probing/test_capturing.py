"""Models that torch attends in: its own layers, hand-written blocks, timm."""

import importlib.util
import sys
import types

import pytest
import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from headwise.attention import HeadGeometry, mha
from headwise.errors import BadInputError
from headwise.probing import RankMonitor, capture, views
from hugging_face.tiny_models import inputs, tiny

TOKENS = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(0))
PADDED = torch.tensor([[False] * 7, [False] * 5 + [True] * 2])


class Block(nn.Module):
    """A hand-written block; the function is called by a name imported beforehand."""

    def __init__(self, heads=3, **options):
        super().__init__()
        self.qkv, self.heads, self.options = nn.Linear(12, 36), heads, options

    def parts(self, x):
        return [t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1)]

    def forward(self, x):
        return x + scaled_dot_product_attention(*self.parts(x), **self.options).transpose(
            1, 2
        ).flatten(2)

    def matrix(self, x):
        """The matrix of the block, in the plainest way."""
        q, k, _ = self.parts(x)
        logits = q.double() @ k.double().mT * self.options.get("scale", q.shape[-1] ** -0.5)
        if self.options.get("is_causal"):
            logits = logits.masked_fill(~torch.ones(7, 7).tril().bool(), -torch.inf)
        mask = self.options.get("attn_mask")
        if mask is not None:
            mask = torch.where(mask, 0.0, -torch.inf) if mask.dtype == torch.bool else mask
            logits = logits + mask
        return logits.softmax(-1)


OPTIONS = {
    "plain": ({}, "none"),
    "causal": ({"is_causal": True}, "causal"),
    "scaled": ({"scale": 0.7}, "none"),
    "boolean": ({"attn_mask": torch.ones(7, 7).tril().bool()}, "causal"),
    "boolean per sequence": ({"attn_mask": ~PADDED[:, None, None]}, "[padding]"),
    "bias": ({"attn_mask": torch.randn(7, 7)}, "[bias]"),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_call_of_fused_attention_is_read(name):
    options, mask = OPTIONS[name]
    model = nn.Sequential(Block(**options), Block(**options))
    with torch.no_grad():
        alone = model(TOKENS)
        found = views(model, TOKENS)
        assert list(found) == ["0", "1"]
        torch.testing.assert_close(found["0"].matrix(), model[0].matrix(TOKENS))
        assert found["0"].mask.name == mask
        with capture(model, lambda *seen: None):
            assert torch.equal(model(TOKENS), alone)


def test_the_monitor_measures_a_hand_written_block():
    block = Block()
    (row,) = RankMonitor(TOKENS)(block)
    values = torch.linalg.svdvals(block.matrix(TOKENS))
    expected = float((values >= 1e-8).sum(-1).double().mean()) / 7
    assert row.rank_ratio == pytest.approx(expected)


def test_one_head_of_three_dimensions_is_read():
    class Plain(nn.Module):
        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, x)

    assert views(Plain(), TOKENS)[""].shape == (2, 1, 7, 7)


def test_what_a_receiver_computes_is_not_read():
    names = []

    def receive(name, view):
        names.append(name)
        scaled_dot_product_attention(view.queries, view.keys, view.keys)

    model = Block()
    with capture(model, receive):
        model(TOKENS)
    assert names == [""]


def test_calls_outside_the_model_are_not_read():
    model, seen = Block(), []
    with capture(model, lambda name, view: seen.append(name)):
        scaled_dot_product_attention(*Block().parts(TOKENS))
        model(TOKENS)
    assert seen == [""]


def test_each_layer_is_read_once_whatever_its_kind():
    """Torch's layers and ours call fused attention within."""
    encoder = nn.TransformerEncoderLayer(12, 3, dim_feedforward=16, batch_first=True)
    model = nn.Sequential(encoder, mha(HeadGeometry.standard(12, heads=3)), Block()).eval()
    assert list(views(model, TOKENS)) == ["0.self_attn", "1", "2"]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_torchs_encoder_is_read_under_padding():
    layer = nn.TransformerEncoderLayer(12, 4, dim_feedforward=16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    with torch.no_grad():
        alone = encoder(TOKENS, src_key_padding_mask=PADDED)
        seen = {}
        with capture(encoder, seen.__setitem__):
            within = encoder(TOKENS, src_key_padding_mask=PADDED)
    torch.testing.assert_close(within[~PADDED], alone[~PADDED])
    assert list(seen) == ["layers.0.self_attn", "layers.1.self_attn"]
    assert [part.shape[-1] for part in seen["layers.0.self_attn"].unpadded()] == [7, 5]
    attention = encoder.layers[0].self_attn
    with torch.no_grad():
        given = {"key_padding_mask": PADDED, "average_attn_weights": False}
        weights = attention(TOKENS, TOKENS, TOKENS, **given)[1]
    wanted = weights[1, :, :5, :5].double()
    found = list(seen["layers.0.self_attn"].unpadded())[1].matrix()[0]
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


def test_a_model_without_attention_is_refused_by_all_readers():
    model = nn.Linear(12, 12)
    with pytest.raises(BadInputError, match="no attention could be read"):
        views(model, TOKENS)
    with pytest.raises(BadInputError, match="no attention could be read"), capture(model, print):
        model(TOKENS)
    with capture(model, print):
        pass  # the model was not called


#: The ways to resize that timm lists when it is imported.
MODES = ("NEAREST", "BILINEAR", "BICUBIC", "BOX", "HAMMING", "LANCZOS")


class Anything(types.ModuleType):
    """A module that has every name: timm imports torchvision for image files alone."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        part = sys.modules.get(f"{self.__name__}.{name}")
        return part or type(name, (nn.Module,), {mode: mode for mode in MODES})


TORCHVISION = ["torchvision", "torchvision.datasets", "torchvision.models"]
TORCHVISION += ["torchvision.models.feature_extraction", "torchvision.ops", "torchvision.ops.misc"]
TORCHVISION += ["torchvision.transforms", "torchvision.transforms.functional"]


@pytest.fixture
def timm(monkeypatch):
    """The library timm; without torchvision, which does not load beside the CPU's torch."""
    if importlib.util.find_spec("timm") is None:
        pytest.skip("needs timm")
    if importlib.util.find_spec("torchvision") is None:
        for name in TORCHVISION:
            monkeypatch.setitem(sys.modules, name, Anything(name))
    yield importlib.import_module("timm")
    for name in [each for each in sys.modules if each.partition(".")[0] == "timm"]:
        monkeypatch.delitem(sys.modules, name)


def test_timm_blocks_are_read(timm):
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2, num_classes=3).eval()
    images, maps = torch.randn(1, 3, 32, 32), []
    found = views(model, images)
    assert list(found) == ["blocks.0.attn", "blocks.1.attn"]
    assert len(RankMonitor(images)(model)) == 2
    for block in model.blocks:  # the oracle: timm's own softmax, which its plain path forms
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_hook(lambda _, given, __: maps.append(given[0]))
    model(images)
    for own, view in zip(maps, found.values(), strict=True):
        assert view.shape == own.shape == (1, 3, 5, 5)
        assert torch.allclose(view.matrix().to(own), own, atol=1e-6)


@pytest.mark.parametrize("given", [{"add_bias_kv": True}, {"add_zero_attn": True}])
def test_keys_that_a_layer_adds_itself_are_read(given):
    """The maps that torch returns have a column for each of them; the views lacked it."""
    layer = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64, **given)
    tokens = torch.randn(2, 6, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    hidden = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    causal = torch.ones(6, 6, dtype=torch.bool).triu(1)
    for named in ({}, {"key_padding_mask": hidden}, {"attn_mask": causal}):
        _, maps = layer(tokens, tokens, tokens, average_attn_weights=False, **named)
        (view,) = views(layer, tokens, tokens, tokens, **named).values()
        assert view.shape == maps.shape == (2, 3, 6, 7)
        assert torch.allclose(view.matrix(), maps, atol=1e-12)
        assert view.values.shape[2] == 7


def test_masks_of_torch_layers_are_named_by_their_rule():
    """A padded encoder was said to have a bias, because torch turns its masks into floats."""
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 2, 8, batch_first=True), 1)
    tokens = torch.randn(2, 6, 12)
    hidden = torch.tensor([[False] * 6, [False] * 4 + [True] * 2])
    causal = nn.Transformer.generate_square_subsequent_mask(6)
    for named, name in (
        ({"src_key_padding_mask": hidden}, "none"),
        ({"mask": causal}, "causal"),
        ({"mask": causal, "src_key_padding_mask": hidden.float() * -1e9}, "causal+[bias]"),
    ):
        (view,) = views(encoder.eval(), tokens, **named).values()
        assert next(view.unpadded()).mask.name == name


def test_a_name_that_no_layer_has_is_refused_for_hugging_face_models_too():
    transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")
    model = tiny(transformers, "bert")
    names = [f"bert.encoder.layer.{number}.attention.self" for number in (0, 1)]
    with (
        pytest.raises(BadInputError, match=f"got 'nonsense'; choose from '{names[0]}', '"),
        capture(model, lambda *_: None, layers=["nonsense"]),
    ):
        model(**inputs("bert"))
    heard = []
    with capture(model, lambda name, _: heard.append(name), layers=names[1:]):
        model(**inputs("bert"))
    assert heard == names[1:]
