"""The code on the training page runs."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_the_example_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 1
    names = {}
    exec(compile(blocks[0], str(PAGE), "exec"), names)
    losses = {(row.variant, row.seed): row.test_loss for row in names["done"].last}
    assert len(losses) == 4
    for seed in (0, 1):
        # What the page says of it: full rank learns the task, half of it hardly.
        assert losses["r=16", seed] < 0.35
        assert 0.5 < losses["r=8", seed] < 0.7
    assert "without attention:" in capsys.readouterr().out
