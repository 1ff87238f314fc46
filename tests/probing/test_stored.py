"""A scan that was killed goes on where it was."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from headwise.attention import HeadGeometry
from headwise.models import EncoderStack
from headwise.probing import scan, scanning
from headwise.probing.stored import content_of
from headwise.runs import Store

ROOT = Path(__file__).parents[2]
TOKENS = torch.randn(2, 9, 12, generator=torch.Generator().manual_seed(0))

KILLED = """
import os, signal, torch
from headwise.probing import scan
from headwise.progress import NoProgress
from probing.test_stored import TOKENS, model

class Kills(NoProgress):
    done = 0
    def advance(self, steps=1):
        self.done += steps
        if self.done == 4:
            os.kill(os.getpid(), signal.SIGKILL)

scan(model(), TOKENS, store={place!r}, progress=Kills())
"""


def model():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return EncoderStack(HeadGeometry.standard(12, heads=3), depth=2, mlp_width=16)


def measured(monkeypatch):
    """The list of heads that are measured from now on."""
    seen, plain = [], scanning.head_numbers

    def noted(view):
        seen.append(view)
        return plain(view)

    monkeypatch.setattr(scanning, "head_numbers", noted)
    return seen


def test_a_killed_scan_resumes(tmp_path, monkeypatch):
    place = str(tmp_path / "rows.db")
    done = subprocess.run(
        [sys.executable, "-c", KILLED.format(place=place)],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with Store.open(place) as store:
        kept = len(store.records_of_kind("scanned_head"))
    assert 4 <= kept < 6
    seen = measured(monkeypatch)
    found = scan(model(), TOKENS, store=place)
    assert len(seen) == 2 * (6 - kept)  # two sequences each
    assert found.rows == scan(model(), TOKENS).rows


def test_another_model_or_batch_is_measured_again(tmp_path, monkeypatch):
    place, built = tmp_path / "rows.db", model()
    scan(built, TOKENS, store=place)
    seen = measured(monkeypatch)
    scan(built, TOKENS, store=place)
    assert seen == []
    scan(built, TOKENS + 1, store=place)
    assert len(seen) == 12
    with torch.no_grad():
        built.blocks[1].attention.projection.query.weight[0, 0] += 1e-6
    scan(built, TOKENS, store=place)
    assert len(seen) == 24


def test_contents_tell_shapes_and_names_apart():
    a = torch.arange(6.0)
    names = [content_of(x) for x in ({"x": a}, {"y": a}, {"x": a.view(2, 3)}, {"x": a.double()})]
    assert len(set(names)) == 4
    assert content_of({"x": a}) == content_of({"x": a.clone()})


def test_models_with_the_same_weights_and_other_settings_do_not_share_rows(tmp_path):
    """A sliding window is no weight: the rows of another window were taken from the store."""
    transformers = pytest.importorskip("transformers", reason="needs headwise[hub]")
    from hugging_face.tiny_models import inputs, tiny

    for window in (3, 5):
        model = tiny(transformers, "mistral", sliding_window=window)
        found = scan(model, inputs("mistral"), store=tmp_path / "rows.db")
        assert {row.mask for row in found.rows} == {f"causal+window:{window}"}

    class Attends(nn.Module):
        def __init__(self, causal):
            super().__init__()
            self.causal = causal

        def forward(self, tokens):
            heads = tokens.unsqueeze(1)
            return nn.functional.scaled_dot_product_attention(
                heads, heads, heads, is_causal=self.causal
            )

    tokens = torch.randn(1, 5, 4)
    found = [scan(Attends(each), tokens, store=tmp_path / "rows.db") for each in (True, False)]
    assert [each.rows[0].mask for each in found] == ["causal", "none"]
