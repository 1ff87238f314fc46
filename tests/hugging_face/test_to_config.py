"""Export: configurations that load and run, and refusals that name the nearest."""

import pytest
import torch

from headwise.attention import HeadGeometry, LatentGeometry
from headwise.errors import BadInputError
from headwise.hugging_face import to_hf_config

transformers = pytest.importorskip("transformers")

SIZES = {"depth": 2, "mlp_width": 32, "vocabulary": 50, "context": 16}
GEOMETRIES = {
    "free rank": HeadGeometry.free(24, heads=5, rank=6),
    "grouped": HeadGeometry.free(24, heads=6, rank=4).grouped(2),
    "latent": LatentGeometry(24, 3, 3, 10, 4, kv_latent=8, q_latent=12, rope_rank=4),
    "latent, whole queries": LatentGeometry(24, 3, 3, 10, 4, 8, None, rope_rank=2),
}


@pytest.mark.parametrize("name", GEOMETRIES)
def test_the_configuration_is_written_loads_and_runs_with_the_ranks_asked_for(name, tmp_path):
    geometry = GEOMETRIES[name]
    to_hf_config(geometry, **SIZES).save_pretrained(tmp_path)
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    model = transformers.AutoModelForCausalLM.from_config(config)
    seen = {}

    def tap(module, query, key, value, *args, **options):
        seen["ranks"] = (query.shape[1], query.shape[-1], value.shape[-1])
        return sdpa(module, query, key, value, *args, **options)

    sdpa = transformers.AttentionInterface._global_mapping["sdpa"]
    transformers.AttentionInterface.register("headwise_tap", tap)
    model.set_attn_implementation("headwise_tap")
    out = model(torch.zeros(1, 7, dtype=torch.int64)).logits
    assert out.shape == (1, 7, 50)
    assert bool(out.isfinite().all())
    assert seen["ranks"] == (geometry.heads, geometry.qk_rank, geometry.v_rank)
    attention = sum(
        p.numel() for n, p in model.named_parameters() if "self_attn" in n and "norm" not in n
    )
    assert attention == 2 * geometry.parameters


@pytest.mark.parametrize(
    ("geometry", "message"),
    [
        (
            HeadGeometry(24, 4, 2, 6, 5),
            r"qk_rank 6 with v_rank 5 .*; the nearest is Qwen3 with HeadGeometry\(width=24, "
            r"heads=4, kv_heads=2, qk_rank=6, v_rank=6\)",
        ),
        (HeadGeometry.free(24, 40, 1), r"qk_rank 1 .* the nearest .* qk_rank=2, v_rank=2"),
        (
            LatentGeometry(24, 3, 3, 10, 4, 8, None, rope_rank=0),
            r"without a rotary part .* DeepSeek-V3 with rope_rank=2 and qk_rank=12",
        ),
    ],
)
def test_what_no_family_allows_names_the_nearest(geometry, message):
    with pytest.raises(BadInputError, match=message):
        to_hf_config(geometry, **SIZES)


def test_the_nearest_is_allowed():
    nearest = HeadGeometry(width=24, heads=4, kv_heads=2, qk_rank=6, v_rank=6)
    assert to_hf_config(nearest, **SIZES).head_dim == 6
