"""Heat maps and the names of layers beside them."""

import pytest
import torch

from headwise.attention import HeadGeometry
from headwise.models import EncoderStack
from headwise.probing import scan, short_names
from headwise.probing.heat_map import Scale

TOKENS = torch.randn(1, 9, 12, generator=torch.Generator().manual_seed(0))


def found(**more):
    torch.manual_seed(0)
    model = EncoderStack(HeadGeometry.standard(12, heads=3), depth=2, mlp_width=16)
    return scan(model, TOKENS, **more)


def colours(figure):
    (image,) = figure.axes[0].images
    return image.get_clim()


def test_colours_begin_at_zero_and_end_at_what_the_number_could_reach():
    """A map from 26 to 32 of 32 looked as different as one from 0 to 32."""
    result = found()
    assert colours(result.plot("coarse_rank")) == (0, 9)
    assert colours(result.plot("output_rank")) == (0, 4)
    assert colours(result.plot("query_key_rank")) == (0, 4)
    assert result.scale("rank") == Scale(9.0, "of 9 tokens")
    largest = max(row.effective_rank for row in result.rows)
    assert colours(result.plot("effective_rank")) == (0, largest)


def test_numbers_of_new_weights_count_for_the_colours_too():
    sharp = EncoderStack(HeadGeometry.standard(12, heads=3), depth=2, mlp_width=16)
    with torch.no_grad():
        sharp.blocks[0].attention.projection.query.weight.mul_(50)
    result = found(against=sharp)
    here = max(row.logit_scale for row in result.rows)
    assert result.scale("logit_scale").top > 2 * here


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["encoder.layer.3.attention.self"], ["3"]),
        (["attention"], ["attention"]),
        (["a.attn", "a.attn@2"], ["attn", "attn@2"]),
        (
            ["vision_model.encoder.layers.0.self_attn", "text_model.encoder.layers.0.self_attn"],
            ["vision_model", "text_model"],
        ),
        (
            [
                "encoder.block.0.layer.0.SelfAttention",
                "decoder.block.0.layer.0.SelfAttention",
                "decoder.block.0.layer.1.EncDecAttention",
            ],
            [
                "encoder.0.0.SelfAttention",
                "decoder.0.0.SelfAttention",
                "decoder.0.1.EncDecAttention",
            ],
        ),
    ],
)
def test_names_lose_what_most_layers_share_and_stay_different(names, short):
    assert short_names(names) == short


class Named(torch.nn.Module):
    """One attention layer with a name of its own."""

    def __init__(self, name):
        super().__init__()
        self.add_module(name, torch.nn.MultiheadAttention(8, 2, batch_first=True))

    def forward(self, x):
        (layer,) = self.children()
        return layer(x, x, x)[0]


@pytest.mark.parametrize("name", [r"$\frac{$", "$x$", "</svg><script>1</script>"])
def test_a_layer_may_be_called_anything(name, tmp_path):
    result = scan(Named(name), torch.randn(1, 5, 8))
    result.plot("coarse_rank", file=tmp_path / "map.svg")
    result.report(tmp_path / "scan.html")
    assert "<script>1" not in (tmp_path / "scan.html").read_text()
