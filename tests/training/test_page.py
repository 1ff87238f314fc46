"""The code on the training page runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_the_example_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 1
    names = {}
    exec(compile(blocks[0], str(PAGE), "exec"), names)
    assert len(names["done"].last) == 4
    assert "without attention:" in capsys.readouterr().out
