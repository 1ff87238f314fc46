"""The layer in place of ``torch.nn.MultiheadAttention``, alone and inside torch's encoder."""

import copy

import pytest
import torch
from torch import nn

from attention.copies import close, ours_from_stock, random_, stock, tokens
from headwise.attention import (
    Attention,
    FullProjection,
    Hardmax,
    HeadGeometry,
    LatentGeometry,
    Rotary,
    gqa,
    mha,
    mla,
)
from headwise.errors import BadInputError

X, MEMORY = tokens(3, 7, 12), tokens(3, 5, 12, seed=2)
LENGTHS = torch.tensor([7, 4, 2])
PADDED = torch.arange(7) >= LENGTHS[:, None]
FORBIDDEN = ~torch.ones(7, 7).tril().bool()
BIAS = tokens(7, 7, seed=4)

#: Arguments by name, for self-attention over X.
MASKS = {
    "none": {},
    "padding": {"key_padding_mask": PADDED},
    "boolean": {"attn_mask": FORBIDDEN},
    "bias": {"attn_mask": BIAS},
    "per head": {"attn_mask": tokens(3 * 4, 7, 7, seed=3)},
    "boolean and padding": {"attn_mask": FORBIDDEN, "key_padding_mask": PADDED},
    "float padding": {
        "key_padding_mask": torch.zeros(3, 7).double().masked_fill(PADDED, -torch.inf)
    },
    "causal hint": {"attn_mask": FORBIDDEN, "is_causal": True},
}


def pair(dropout=0.0, batch_first=True, bias=True):
    """A stock layer, and ours with the same weights."""
    theirs = nn.MultiheadAttention(
        12, 4, dropout=dropout, bias=bias, batch_first=batch_first, dtype=torch.float64
    )
    return random_(theirs), ours_from_stock(theirs, dropout=dropout, batch_first=batch_first)


def same(one, other):
    """Outputs and weights agree."""
    close(one[0], other[0])
    assert (one[1] is None) == (other[1] is None)
    if one[1] is not None:
        close(one[1], other[1])


@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("weights", ["none", "mean", "per head"])
def test_the_same_call_gives_the_same_pair(masks, weights):
    theirs, ours = pair()
    given = MASKS[masks] | {
        "need_weights": weights != "none",
        "average_attn_weights": weights == "mean",
    }
    if masks == "causal hint" and weights != "none":
        given["is_causal"] = False  # torch then wants the hint without weights
    same(ours(X, X, X, **given), theirs(X, X, X, **given))


def test_the_arguments_have_torchs_order():
    theirs, ours = pair()
    given = (PADDED, True, FORBIDDEN, False)
    same(ours(X, X, X, *given), theirs(X, X, X, *given))


def test_key_and_value_may_differ():
    theirs, ours = pair()
    values = tokens(3, 5, 12, seed=9)
    same(ours(X, MEMORY, values), theirs(X, MEMORY, values))


def test_one_sequence_without_a_batch():
    theirs, ours = pair()
    x, padded = X[0], PADDED[1]
    same(ours(x, x, x, padded), theirs(x, x, x, padded))
    close(ours(x), ours(x.unsqueeze(0)).squeeze(0))


def test_sequence_first():
    theirs, ours = pair(batch_first=False)
    x, memory = X.transpose(0, 1), MEMORY.transpose(0, 1)
    same(ours(x, memory, memory), theirs(x, memory, memory))
    close(ours(x), ours_from_stock(theirs)(X).transpose(0, 1))


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_in_training_drops_what_torch_drops(need_weights):
    theirs, ours = pair(dropout=0.4)
    outputs = []
    for layer in (theirs.train(), ours.train()):
        torch.manual_seed(0)
        outputs.append(layer(X, X, X, need_weights=need_weights))
    same(*outputs)
    assert not torch.equal(outputs[1][0], ours.eval()(X, X, X)[0])
    same(ours(X, X, X), theirs.eval()(X, X, X))


def test_dropout_reaches_every_weighting_and_kernel():
    x = tokens(2, 6, 16)
    rank_one = mha(HeadGeometry.free(16, heads=16, rank=1), dropout=0.5).double()
    hard = mha(HeadGeometry.standard(16, heads=4), weighting=Hardmax(), dropout=0.5).double()
    for layer in (rank_one, hard.requires_grad_(False)):
        assert not torch.equal(layer.train()(x), layer(x))
        assert torch.equal(layer.eval()(x), layer(x))


def encoder_pair(**options):
    """Torch's encoder of two layers, and the same with our attention."""
    settings = {"dim_feedforward": 16, "batch_first": True, "dtype": torch.float64} | options
    layer = nn.TransformerEncoderLayer(12, 4, **settings)
    theirs = random_(nn.TransformerEncoder(layer, 2))
    ours = copy.deepcopy(theirs)
    for block in ours.layers:
        dropout, first = settings.get("dropout", 0.1), settings["batch_first"]
        block.self_attn = ours_from_stock(block.self_attn, dropout=dropout, batch_first=first)
    return theirs, ours


ENCODER_MASKS = {
    "none": {},
    "padding": {"src_key_padding_mask": PADDED},
    "causal": {"mask": nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)},
    "causal hint": {
        "mask": nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64),
        "is_causal": True,
    },
}
filter_warnings = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


@filter_warnings
@pytest.mark.parametrize("masks", ENCODER_MASKS)
@pytest.mark.parametrize("gradients", ["gradients", "none", "frozen"])
def test_inside_torchs_encoder_in_evaluation(masks, gradients):
    """Without gradients torch takes its fused path, with padding on nested tensors."""
    theirs, ours = encoder_pair()
    theirs.eval(), ours.eval()
    if gradients == "frozen":
        theirs.requires_grad_(False), ours.requires_grad_(False)
    with torch.set_grad_enabled(gradients != "none"):
        found, wanted = ours(X, **ENCODER_MASKS[masks]), theirs(X, **ENCODER_MASKS[masks])
    # Torch's fused path leaves zeros (its nested tensors) where tokens are padding.
    real = ~PADDED if masks == "padding" else torch.ones_like(PADDED)
    close(found[real], wanted[real])


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but")
@pytest.mark.parametrize("options", [{}, {"norm_first": True}, {"batch_first": False}])
@pytest.mark.parametrize("masks", ENCODER_MASKS)
def test_inside_torchs_encoder_in_training_with_gradients(options, masks):
    theirs, ours = encoder_pair(dropout=0.3, **options)
    # Dropout outside attention draws in the memory order of its input, which is (sequence, batch)
    # after torch's attention; only attention's own draws can be compared.
    for module in (*theirs.modules(), *ours.modules()):
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    x = X if options.get("batch_first", True) else X.transpose(0, 1)
    found = []
    for model in (theirs.train(), ours.train()):
        torch.manual_seed(1)
        output = model(x, **ENCODER_MASKS[masks])
        output.square().sum().backward()
        found.append((output, model.layers[0].linear1.weight.grad))
    close(found[1][0], found[0][0])
    close(found[1][1], found[0][1])
    packed = [layer.self_attn.projection for layer in ours.layers]
    stock_gradient = theirs.layers[1].self_attn.in_proj_weight.grad.chunk(3)[1]
    close(packed[1].key.weight.grad, stock_gradient)


def test_inside_torchs_decoder():
    decoder = random_(nn.TransformerDecoderLayer(12, 4, 16, 0.0, batch_first=True).double())
    ours = copy.deepcopy(decoder)
    ours.self_attn = ours_from_stock(decoder.self_attn)
    ours.multihead_attn = ours_from_stock(decoder.multihead_attn)
    close(ours(X, MEMORY), decoder(X, MEMORY))


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True, but")
def test_an_encoder_can_be_built_around_any_preset():
    latent = LatentGeometry(12, 4, 4, 5, 3, kv_latent=8, q_latent=None, rope_rank=2)
    layers = {
        "free rank": mha(HeadGeometry.free(12, heads=5, rank=7), "all"),
        "grouped": gqa(HeadGeometry.standard(12, heads=4).grouped(2), position=Rotary(2)),
        "latent": mla(latent),
    }
    for attention in layers.values():
        block = nn.TransformerEncoderLayer(12, 4, dim_feedforward=16, batch_first=True).double()
        block.self_attn = attention.double()
        encoder = nn.TransformerEncoder(block, 2).eval()
        padded = encoder(X, src_key_padding_mask=PADDED)
        for index, length in enumerate(LENGTHS):
            close(padded[index, :length], encoder(X[index : index + 1, :length])[0])


@filter_warnings
def test_nested_tensors_come_back_nested():
    layer = random_(mha(HeadGeometry.standard(12, heads=4), "all").double())
    rows = [X[i, :length] for i, length in enumerate(LENGTHS)]
    found = layer(torch.nested.nested_tensor(rows))
    assert found.is_nested
    for one, row in zip(found.unbind(), rows, strict=True):
        close(one, layer(row))


REFUSALS = {
    "dropout of one": (
        lambda: Attention(FullProjection(HeadGeometry.standard(8, 2)), dropout=1.0),
        r"expected dropout in \[0, 1\), got 1.0",
    ),
    "padding of another batch": (
        lambda: pair()[1](X, key_padding_mask=PADDED[:2]),
        r"key_padding_mask of shape \(3, keys\), got \(2, 7\); .*True for padding",
    ),
    "mask of another number of heads": (
        lambda: pair()[1](X, attn_mask=torch.zeros(5, 7, 7)),
        r"\(queries, keys\) or \(12, queries, keys\), got \(5, 7, 7\)",
    ),
    "a sequence that is all padding": (
        lambda: pair()[1](X, key_padding_mask=torch.ones(3, 7).bool()),
        r"row 0 of matrix \(0, 0, 0\)|row 0 .*masks every key",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_is_refused(name):
    call, message = REFUSALS[name]
    with pytest.raises(BadInputError, match=message):
        call()


def test_stock_differs_when_weights_differ():
    """The comparison can fail."""
    theirs, ours = pair()
    with torch.no_grad():
        ours.projection.value.bias.add_(0.1)
    with pytest.raises(AssertionError):
        same(ours(X, X, X), theirs(X, X, X))
    assert stock(12, 4).num_heads == ours.num_heads
