"""The code on the layers page runs, from top to bottom."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "layers.md"


def test_the_examples_run(capsys):
    pytest.importorskip("transformers")
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 4
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert names["y"].shape == (8, 16, 64)
    assert names["A"].shape == (8, 4096, 16, 16)
    assert names["config"].head_dim == 24
    assert len(names["found"].rows) == 16
    assert "blocks.0.attention" in capsys.readouterr().out


def test_the_first_example_fits_ten_lines():
    first = PAGE.read_text().split("```python\n")[1].split("```")[0]
    assert len([line for line in first.splitlines() if line.strip()]) <= 10
