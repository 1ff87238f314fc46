"""Views of layers, and recording them in a forward pass."""

import weakref

import pytest
import torch
from torch import nn

from attention.copies import close, random_, tokens
from headwise.attention import (
    Causal,
    HeadGeometry,
    LatentGeometry,
    LearnedAdditive,
    Rotary,
    generalized,
    gqa,
    mha,
    mla,
)
from headwise.errors import BadInputError, TooLargeError
from headwise.models import EncoderStack
from headwise.probing import Keep, attention_layers, capture, views
from headwise.spectra import count

GEOMETRY = HeadGeometry.standard(12, 4).grouped(2)


def stack(depth=3, position=None):
    return random_(EncoderStack(GEOMETRY, position, depth=depth, mlp_width=8).double())


class TestView:
    layer = random_(gqa(GEOMETRY, temperature=0.3).double())
    x = tokens(2, 7, 12)

    def test_it_remakes_the_matrix_of_the_layer(self):
        view = self.layer.view(self.x, mask=Causal())
        made = torch.softmax(view.logits().values, -1)
        close(made, self.layer.matrix(self.x, mask=Causal()).detach())
        block = tokens(2, 4, 7, 3)
        close(view.operator().matmat(block), made @ block)

    def test_the_rank_of_every_head_can_be_counted(self):
        ranks = count(self.layer.view(self.x).logits())
        assert ranks.low.shape == (2, 4)

    def test_the_query_key_form_gives_the_logits(self):
        view = self.layer.view(self.x)
        assert view.has_one_form
        logits = self.x.unsqueeze(1) @ view.query_key_form() @ self.x.unsqueeze(1).mT * view.scale
        close(logits.detach(), view.logits().values)

    def test_rotary_has_no_single_form(self):
        view = random_(gqa(GEOMETRY, position=Rotary(2)).double()).view(self.x)
        assert not view.has_one_form
        with pytest.raises(BadInputError, match=r"2 dimensions .* turn with position"):
            view.query_key_form()

    def test_additive_positions_keep_the_form(self):
        assert gqa(GEOMETRY, position=LearnedAdditive(9, 12)).view(self.x.float()).has_one_form

    def test_a_normalised_latent_has_no_form(self):
        latent = LatentGeometry(12, 2, 2, 4, 4, 6, None, rope_rank=0)
        view = mla(latent).double().view(self.x)
        with pytest.raises(BadInputError, match="not linear maps of its tokens"):
            view.query_key_form()

    def test_a_latent_without_norm_has_one(self):
        latent = LatentGeometry(12, 2, 2, 4, 4, 6, 5, rope_rank=0)
        view = random_(mla(latent, norm="none").double()).view(self.x)
        logits = self.x.unsqueeze(1) @ view.query_key_form() @ self.x.unsqueeze(1).mT * view.scale
        close(logits.detach(), view.logits().values)

    def test_a_generalized_head_refuses_to_call_its_products_logits(self):
        layer = generalized(HeadGeometry.free(12, 2, 3), nn.Identity()).double()
        with pytest.raises(BadInputError, match="of one width, got 12 and 3"):
            layer.view(self.x).logits()


class TestCapture:
    def test_every_layer_reports_once_in_order_with_what_the_layer_saw(self):
        model, seen = stack(), []
        with capture(model, lambda name, view: seen.append((name, view))):
            model(tokens(2, 5, 12), Causal())
        assert [name for name, _ in seen] == [f"blocks.{i}.attention" for i in range(3)]
        first = model.blocks[0]
        wanted = first.attention.view(first.attention_norm(tokens(2, 5, 12)), mask=Causal())
        assert torch.equal(seen[0][1].queries, wanted.queries)
        assert seen[0][1].mask == Causal()

    def test_the_output_is_untouched(self):
        model = stack()
        with capture(model, lambda name, view: None):
            during = model(tokens(2, 5, 12))
        assert torch.equal(during, model(tokens(2, 5, 12)))

    def test_only_chosen_layers_report(self):
        model, seen = stack(), []
        with capture(model, lambda name, view: seen.append(name), ["blocks.1.attention"]):
            model(tokens(2, 5, 12))
        assert seen == ["blocks.1.attention"]

    def test_afterwards_nothing_reports_even_after_an_error(self):
        model, seen = stack(), []
        with pytest.raises(RuntimeError), capture(model, lambda name, view: seen.append(name)):
            raise RuntimeError
        model(tokens(2, 5, 12))
        assert seen == []

    def test_nothing_is_kept_unless_asked(self):
        model, alive = stack(), []

        def note(name, view):
            alive.append(weakref.ref(view.queries))

        with torch.no_grad(), capture(model, note):
            model(tokens(2, 5, 12))
        assert [ref() for ref in alive] == [None] * 3

    def test_keeping_stops_before_its_limit(self):
        model = stack()
        size = 2 * 5 * (12 + 6 + 6) * 8
        kept = Keep(limit_bytes=2 * size)
        with (
            pytest.raises(
                TooLargeError,
                match=r"at most 3,840 bytes of views, got 5,760 .*'blocks.2.attention'; raise",
            ),
            capture(model, kept),
        ):
            model(tokens(2, 5, 12))
        assert kept.bytes == 2 * size

    def test_an_unknown_layer_is_refused_with_the_known_ones(self):
        asked = capture(stack(), lambda name, view: None, ["first"])
        with (
            pytest.raises(BadInputError, match=r"an attention layer, got 'first'; .*blocks.0.att"),
            asked,
        ):
            pass

    def test_models_hand_out_views(self):
        found = views(stack(), tokens(2, 5, 12))
        assert list(found) == list(attention_layers(stack()))
        assert not found["blocks.0.attention"].queries.requires_grad

    def test_layers_have_names(self):
        assert list(attention_layers(nn.ModuleDict({"a": mha(HeadGeometry.standard(4, 2))}))) == [
            "a"
        ]
