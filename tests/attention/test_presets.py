"""Presets against Hugging Face layers and against each other; compilation, dtypes, state."""

import inspect

import pytest
import torch
from torch import nn

from attention.copies import close, random_, tokens
from attention.every_preset import LATENT, PRESETS, BilinearMap
from headwise.attention import (
    Causal,
    HeadGeometry,
    LatentGeometry,
    Rotary,
    Softmax,
    fitting,
    generalized,
    gqa,
    mha,
    mla,
)
from headwise.errors import BadInputError

transformers = pytest.importorskip("transformers")


def llama(geometry, base):
    """A Llama attention layer in float64 and its rotary angles in float64."""
    config = transformers.LlamaConfig(
        hidden_size=geometry.width,
        num_attention_heads=geometry.heads,
        num_key_value_heads=geometry.kv_heads,
        head_dim=geometry.qk_rank,
        rope_parameters={"rope_type": "default", "rope_theta": base},
        attn_implementation="sdpa",
    )
    layer = transformers.models.llama.modeling_llama.LlamaAttention(config, layer_idx=0)
    return random_(layer.double())


def angles(rank, base, length):
    powers = torch.arange(0, rank, 2, dtype=torch.float64) / rank
    angle = torch.arange(length, dtype=torch.float64)[:, None] / base**powers
    doubled = torch.cat([angle, angle], dim=-1).unsqueeze(0)
    return doubled.cos(), doubled.sin()


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_gqa_equals_llama_with_copied_weights(kv_heads):
    geometry = HeadGeometry(24, 4, kv_heads, 6, 6)
    theirs = llama(geometry, base=500.0)
    ours = gqa(geometry, position=Rotary(6, base=500.0)).double()
    p = ours.projection
    pairs = {p.query: "q_proj", p.key: "k_proj", p.value: "v_proj", p.output: "o_proj"}
    with torch.no_grad():
        for linear, name in pairs.items():
            linear.weight.copy_(getattr(theirs, name).weight)
    x, y = tokens(2, 7, 24).requires_grad_(), tokens(2, 7, 24).requires_grad_()
    a = ours(x, mask=Causal())
    b = theirs(y, position_embeddings=angles(6, 500.0, 7), attention_mask=None)[0]
    close(a, b)
    a.square().sum().backward()
    b.square().sum().backward()
    close(x.grad, y.grad)
    for linear, name in pairs.items():
        close(linear.weight.grad, getattr(theirs, name).weight.grad)


def test_gqa_equals_llama_with_llamas_own_angles_to_their_float32():
    geometry = HeadGeometry(24, 4, 2, 6, 6)
    theirs = llama(geometry, base=10000.0)
    ours = gqa(geometry, position=Rotary(6)).double()
    p = ours.projection
    with torch.no_grad():
        for linear, name in {
            p.query: "q_proj",
            p.key: "k_proj",
            p.value: "v_proj",
            p.output: "o_proj",
        }.items():
            linear.weight.copy_(getattr(theirs, name).weight)
    rotary = transformers.models.llama.modeling_llama.LlamaRotaryEmbedding(theirs.config)
    x = tokens(2, 7, 24)
    own = rotary(x, torch.arange(7).unsqueeze(0))
    wanted = theirs(x, position_embeddings=own, attention_mask=None)[0]
    close(ours(x, mask=Causal()), wanted, limit=1e-6)


def deepseek(geometry):
    config = transformers.DeepseekV3Config(
        hidden_size=geometry.width,
        num_attention_heads=geometry.heads,
        num_key_value_heads=geometry.heads,
        qk_nope_head_dim=geometry.content_rank,
        qk_rope_head_dim=geometry.rope_rank,
        v_head_dim=geometry.v_rank,
        kv_lora_rank=geometry.kv_latent,
        q_lora_rank=geometry.q_latent,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        attn_implementation="sdpa",
    )
    module = transformers.models.deepseek_v3.modeling_deepseek_v3
    return random_(module.DeepseekV3Attention(config, layer_idx=0).double())


@pytest.mark.parametrize("q_latent", [None, 8])
def test_mla_equals_deepseek_v3_with_copied_weights(q_latent):
    geometry = LatentGeometry(16, 4, 4, 10, 6, kv_latent=12, q_latent=q_latent, rope_rank=4)
    theirs, ours = deepseek(geometry), mla(geometry).double()
    p = ours.projection
    pairs = [
        (p.key_value_down, theirs.kv_a_proj_with_mqa),
        (p.key_value_norm, theirs.kv_a_layernorm),
        (p.key_value_up, theirs.kv_b_proj),
        (p.output, theirs.o_proj),
    ]
    if q_latent is None:
        pairs.append((p.query, theirs.q_proj))
    else:
        pairs += [
            (p.query_down, theirs.q_a_proj),
            (p.query_norm, theirs.q_a_layernorm),
            (p.query, theirs.q_b_proj),
        ]
    with torch.no_grad():
        for mine, source in pairs:
            mine.weight.copy_(source.weight)
    # Their norm computes in float32 whatever the model; ours computes in the layer's dtype.
    for norm in (m for m in theirs.modules() if type(m).__name__ == "DeepseekV3RMSNorm"):
        norm.forward = nn.RMSNorm.forward.__get__(_as_rms(norm))
    x, y = tokens(2, 7, 16).requires_grad_(), tokens(2, 7, 16).requires_grad_()
    a = ours(x, mask=Causal())
    b = theirs(y, position_embeddings=angles(4, 10000.0, 7), attention_mask=None)[0]
    close(a, b)
    a.square().sum().backward()
    b.square().sum().backward()
    close(x.grad, y.grad)
    for mine, source in pairs:
        close(mine.weight.grad, source.weight.grad)


def _as_rms(norm):
    same = nn.RMSNorm(norm.weight.shape, eps=norm.variance_epsilon)
    same.weight = norm.weight
    return same


def test_latent_at_full_rank_equals_full():
    width, heads, rank = 12, 3, 4
    latent = LatentGeometry(width, heads, heads, rank, rank, width, width, rope_rank=0)
    ours = random_(mla(latent, norm="none").double())
    full = mha(HeadGeometry.free(width, heads, rank)).double()
    p, f = ours.projection, full.projection
    up = (p.key_value_up.weight @ p.key_value_down.weight).unflatten(0, (heads, -1))
    with torch.no_grad():
        f.query.weight.copy_(p.query.weight @ p.query_down.weight)
        f.key.weight.copy_(up[:, :rank].flatten(0, 1))
        f.value.weight.copy_(up[:, rank:].flatten(0, 1))
        f.output.weight.copy_(p.output.weight)
    x = tokens(2, 7, width)
    close(ours(x), full(x))
    weights, wanted = p.head_weights(), f.head_weights()
    close(weights.query, wanted.query)
    close(weights.key, wanted.key)


def test_generalized_with_a_bilinear_map_equals_softmax_attention():
    geometry = HeadGeometry.free(16, 4, 3)
    head = random_(generalized(geometry, BilinearMap()).double())
    plain = mha(geometry, temperature=1.0).double()
    with torch.no_grad():
        plain.projection.query.weight.copy_(torch.eye(16)[:3].repeat(4, 1))
        for name in ("key", "value", "output"):
            getattr(plain.projection, name).weight.copy_(getattr(head.projection, name).weight)
    x = tokens(2, 7, 16)
    close(head(x), plain(x))
    close(head(x, mask=Causal()), plain(x, mask=Causal()))


def test_generalized_refuses_weights_of_another_shape():
    class Wrong(nn.Module):
        def forward(self, keys, y):
            return torch.ones(1, 2)

    layer = generalized(HeadGeometry.free(16, 4, 3), Wrong())
    with pytest.raises(BadInputError, match=r"\(2, 4, 7, 7\) from the map, got \(1, 2\)"):
        layer(torch.zeros(2, 7, 16))


def test_mla_asks_for_a_latent_geometry():
    # Type checking in tests would stop the call before our own words; ask below it.
    unchecked = inspect.unwrap(mla)
    with pytest.raises(BadInputError, match="expected a LatentGeometry, got HeadGeometry"):
        unchecked(HeadGeometry.standard(16, 4))


@pytest.mark.parametrize(
    ("geometry", "projection"),
    [
        (HeadGeometry.standard(16, 4), "FullProjection"),
        (HeadGeometry.standard(16, 4).grouped(2), "GroupedProjection"),
        (LATENT, "LatentProjection"),
    ],
)
def test_the_geometry_finds_its_preset(geometry, projection):
    assert type(fitting(geometry).projection).__name__ == projection


@pytest.mark.parametrize("name", PRESETS)
def test_state_round_trips(name):
    first, second = random_(PRESETS[name]()), PRESETS[name]()
    x = tokens(2, 5, 16).float()
    assert not torch.equal(first(x), second(x))
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(x), second(x))


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_every_dtype_runs_and_stays_near_float64(name, dtype):
    layer = random_(PRESETS[name]()).double()
    x = tokens(2, 5, 16)
    wanted = layer(x).detach()
    low = PRESETS[name]()
    low.load_state_dict(layer.state_dict())
    found = low.to(dtype)(x.to(dtype))
    assert found.dtype == dtype
    limit = 64 * torch.finfo(dtype).eps
    close(found.double(), wanted, limit=limit)
    found.sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in low.parameters() if p.grad is not None)


def test_softmax_is_the_default_rule():
    assert isinstance(mha(HeadGeometry.standard(16, 4)).weighting, Softmax)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", PRESETS)
def test_cuda_equals_the_processor(name):
    layer = random_(PRESETS[name]()).double()
    x = tokens(2, 5, 16)
    wanted = layer(x)
    close(layer.cuda()(x.cuda()).cpu(), wanted)
