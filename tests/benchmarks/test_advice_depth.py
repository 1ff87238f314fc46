"""What a layer uses of its rank, where the answer is planted."""

import json
from dataclasses import replace

import pytest
import torch
from benchmarks.advice import depth
from benchmarks.advice.tasks import BENCHES

from headwise.attention import HeadGeometry
from headwise.probing import views
from headwise.randomness import stream

BENCH = BENCHES["in-context"]
GEOMETRY = HeadGeometry(64, 2, 2, 8, 6)
PLANTED = 3


@pytest.fixture(scope="module")
def loaded():
    found = BENCH.load(None, "cpu")
    return replace(found, examples=tuple(t[:8].double() for t in found.examples))


def model(planted=None):
    """A model at its start whose heads have biases, and forms of a planted rank."""
    found = BENCH.build(GEOMETRY, 0).double()
    generator = stream(0, "planted")
    with torch.no_grad():
        for name, parameter in found.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(generator=generator)
        for part in (p for p in found.modules() if isinstance(p, depth.FullProjection)):
            for one, rank in ((part.query, 8), (part.value, 6)):
                if planted is not None:
                    mix = torch.randn(2, rank, planted, generator=generator).double()
                    onto = mix @ torch.linalg.pinv(mix)
                    one.weight.copy_((onto @ one.weight.unflatten(0, (2, rank))).flatten(0, 1))
                    one.bias.copy_((onto @ one.bias.unflatten(0, (2, rank, 1))).flatten())
    return found


def cut(given, loaded, form, rank, which=slice(None)):
    for layer in depth.layers(given, *loaded.examples)[which]:
        depth.cut_layer(layer, form, rank)
    return given(*loaded.examples).detach()


def test_singular_values_are_those_of_the_weights_and_of_the_logits(loaded):
    found = model()
    layer = depth.layers(found, *loaded.examples)[2]
    view = list(views(found, *loaded.examples).values())[2]
    wanted = torch.linalg.svdvals(view.query_key_form())[:, :8]
    torch.testing.assert_close(layer.over_weights()["query-key"].spectrum().values, wanted)
    queries = view.queries.transpose(0, 1).flatten(1, 2)
    keys = (view.keys - view.keys.mean(-2, keepdim=True)).transpose(0, 1).flatten(1, 2)
    wanted = torch.linalg.svdvals(queries @ keys.mT)[:, :8] / queries.shape[1]
    spectrum = layer.over_tokens()["query-key"].spectrum()
    torch.testing.assert_close(spectrum.values, wanted)
    # The best of rank 3 leaves what the singular values beyond leave.
    kept = layer.over_tokens()["query-key"].cut(PLANTED)
    error = (queries @ (torch.eye(8) - kept).mT @ keys.mT).square().sum((-2, -1))
    left = spectrum.values[:, PLANTED:].square().sum(-1) * queries.shape[1] ** 2
    torch.testing.assert_close(error, left)


def test_equal_singular_values_participate_equally():
    squares = torch.diag(torch.tensor([4.0, 4.0, 4.0, 0.0])).double().unsqueeze(0)
    spectrum = depth.Form(squares, torch.eye(4).double().unsqueeze(0)).spectrum()
    assert depth.participation(spectrum).tolist() == pytest.approx([3.0])


@pytest.mark.parametrize("form", ["query-key", "value-output"])
def test_a_cut_to_full_rank_changes_nothing(loaded, form):
    torch.testing.assert_close(cut(model(), loaded, form, 8), model()(*loaded.examples).detach())


@pytest.mark.parametrize("form", ["query-key", "value-output"])
def test_a_cut_to_the_planted_rank_changes_nothing_and_one_below_it_does(loaded, form):
    whole = model(PLANTED)(*loaded.examples).detach()
    seen = depth.layers(model(PLANTED), *loaded.examples)
    for forms in (seen[0].over_weights(), seen[0].over_tokens()):
        values = forms[form].spectrum().values
        assert (values[:, PLANTED - 1] > 1e-6).all() and (values[:, PLANTED:] < 1e-6).all()
    torch.testing.assert_close(cut(model(PLANTED), loaded, form, PLANTED), whole)
    for which in (slice(None), slice(0, 1)):
        changed = cut(model(PLANTED), loaded, form, PLANTED - 1, which)
        assert float((changed - whole).abs().max()) > 1e-3


def test_a_run_writes_rows_of_every_layer_and_cut(tmp_path, capsys):
    words = ["--task", "digits-patches", "--heads", "2", "--rank", "4", "--v-rank", "2"]
    more = ["--steps", "2", "--batch", "4", "--evaluation", "16", "--seeds", "0,1", "--cuts", "2"]
    depth.main(depth.arguments([*words, *more, "--out", str(tmp_path / "rows.jsonl")]))
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    kept = [(r["seed"], r["moment"], r["layer"]) for r in rows if r["kind"] == "layer"]
    assert kept == [(s, m, n) for s in (0, 1) for m in ("start", "trained") for n in (1, 2)]
    cuts = [(r["form"], r["layer"], r["rank"]) for r in rows if r["kind"] == "cut"]
    assert cuts == 2 * [("query-key", n, 2) for n in (0, 1, 2)]
    for row in rows:
        assert {"command", "code", "torch", "device", "dtype", "seed", "model_score"} <= set(row)
        assert 0 <= row["model_score"] <= 1
    assert "digits-patches 2 × 4" in capsys.readouterr().out
