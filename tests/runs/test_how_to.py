"""The examples of the documentation, run as the scripts they are."""

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-and-resume.md"


def test_the_examples_print_what_they_say(tmp_path):
    ask, retry, export = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    printed = []
    for name, script in (("ask.py", ask + retry), ("export.py", export)):
        (tmp_path / name).write_text(script)
        done = subprocess.run(
            [sys.executable, name], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        printed += done.stdout.splitlines()
    assert printed == re.findall(r"# (?:prints: )?(\d.*)$", ask + retry + export, re.M)
    assert len(printed) == 3
