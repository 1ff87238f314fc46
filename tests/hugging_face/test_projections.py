"""W_Q and W_K are found where, and only where, they make the queries and keys."""

import pytest
import torch

from headwise.probing import scan, views
from hugging_face.tiny_models import inputs, tiny

transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")

ONE_FORM = ["bert", "roberta", "albert", "distilbert", "gpt2", "opt", "t5", "vit", "dinov2"]
ONE_FORM += ["siglip_image", "clip_image", "clip_text"]
TURNED = ["llama", "qwen3", "gpt_neox", "modernbert", "gemma2", "deepseek_v3"]


@pytest.mark.parametrize("family", ONE_FORM)
def test_the_form_makes_the_logits(family):
    model, given = tiny(transformers, family).double(), inputs(family)
    given = {n: v.double() if v.is_floating_point() else v for n, v in given.items()}
    states = {}
    for name, module in model.named_modules():
        module.register_forward_pre_hook(
            lambda _, args, kwargs, name=name: states.setdefault(name, (args, kwargs)),
            with_kwargs=True,
        )
    for name, view in views(model, **given).items():
        if name.startswith("head."):  # the pooling layer of SigLIP
            continue
        assert view.has_one_form, name
        if "@" in name:  # ALBERT calls one layer several times
            continue
        args, kwargs = states[name]
        tokens = (args[0] if args else kwargs["hidden_states"]).detach()
        form, tokens = view.query_key_form().detach(), tokens.unsqueeze(1)
        made, own = tokens @ form @ tokens.mT, view.queries @ view.shared_keys.mT
        torch.testing.assert_close(mixed(made), mixed(own), atol=1e-8, rtol=1e-6)


def mixed(logits):
    """Second differences: biases add terms that depend on one token alone, which these cancel."""
    return logits.diff(dim=-1).diff(dim=-2)


@pytest.mark.parametrize("family", TURNED)
def test_positions_and_norms_leave_no_one_form(family):
    given = inputs(family)
    for view in views(tiny(transformers, family), **given).values():
        assert not view.has_one_form
    assert {row.form_rank for row in scan(tiny(transformers, family), given).rows} == {None}


@pytest.mark.parametrize("family", ["llama", "mistral", "bert", "gemma2", "gpt_oss", "vit", "t5"])
def test_fused_reading_gives_the_same_views(family):
    from headwise.probing import capture

    model, given, seen = tiny(transformers, family), inputs(family), {}
    with torch.no_grad():
        wanted = model(**given)[0]
        with capture(model, seen.__setitem__, attends="fused"):
            output = model(**given)[0]
    torch.testing.assert_close(output, wanted, atol=1e-5, rtol=1e-4)
    eager = views(model, **given)
    assert list(seen) == list(eager)
    for name, view in eager.items():
        torch.testing.assert_close(seen[name].matrix(), view.matrix(), atol=1e-5, rtol=1e-4)
