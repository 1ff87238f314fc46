"""What the README and the documentation say, run and compared."""

import csv
import io
import json
import re
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PAGE_IDS = [str(page.relative_to(ROOT)) for page in PAGES]

#: The config.json that an example reads.
GPT2 = '{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_positions": 1024}'


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def commands(text: str) -> list[str]:
    """Every command line in the shell blocks, without its comment."""
    lines = "".join(blocks(text, "sh")).splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.strip()]


def headwise(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "headwise", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(("number", "prints"), [(0, 5), (1, 3), (2, 1)])
def test_the_python_examples_print_what_their_comments_say(number, prints, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text(GPT2)
    monkeypatch.chdir(tmp_path)
    example = blocks(README, "python")[number]
    promised = re.findall(r"^print\(.*\)  # (.*)$", example, re.M)
    assert len(promised) == example.count("print(") == prints
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == promised


def test_the_python_examples_are_short():
    lengths = [len(block.splitlines()) for block in blocks(README, "python")]
    assert len(lengths) == 3
    assert max(lengths) <= 25


@pytest.fixture(scope="module")
def demo_table() -> dict[str, list[str]]:
    """The rows of the table in the printed copy of the demo."""
    page = (ROOT / "docs/how-to/measure-a-rank.md").read_text()
    (shown,) = (block for block in blocks(page, "text") if "What is the rank" in block)
    rows = re.findall(
        r"^ (\S.*?A(?:, atol=1e-8)?\)?) {2,}(\S.*?) {2,}(\S.*?) {2,}(\S.*)$", shown, re.M
    )
    return {name: answers for name, *answers in rows}


def test_the_demo_printed_in_the_documentation_is_the_demo(demo_table):
    found = json.loads(headwise("demo", "--json"))
    certified = [
        str(i["low"]) if i["low"] == i["high"] else f"{i['low']} to {i['high']}"
        for i in found["headwise"].values()
    ]
    assert demo_table.pop("headwise rank A") == certified
    assert len(demo_table) == 3
    for asked, printed in demo_table.items():
        # Noise of single precision: a few counts more or less on another machine.
        assert list(map(int, printed)) == pytest.approx(list(found[asked].values()), abs=8)


def test_the_advice_printed_in_the_readme_is_what_make_demo_says():
    """The question, the answer and the table of geometries."""
    (shown,) = (block for block in blocks(README, "text") if "digits: 1,797 sequences" in block)
    said = [line.rstrip() for line in headwise("advise").splitlines()]
    assert len(shown.splitlines()) > 10
    assert not [line for line in shown.splitlines() if line.rstrip() not in said]


def test_the_advice_in_the_how_to_runs():
    page = (ROOT / "docs/how-to/advise.md").read_text()
    examples = blocks(page, "python")
    assert len(examples) == 2
    for example in examples:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compile(example, "advise.md", "exec"), {})
        assert printed.getvalue().splitlines() == re.findall(
            r"^print\(.*\)  # (.*)$", example, re.M
        )


@pytest.fixture(scope="module")
def known() -> dict[str, str]:
    """The help of each verb."""
    verbs = (
        "advise",
        "trial",
        "rank",
        "scan",
        "reduce",
        "serve",
        "law",
        "bound",
        "reproduce",
        "report",
        "data",
        "demo",
    )
    return {verb: headwise(verb, "--help") for verb in verbs}


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_headwise_commands_and_their_options_exist(page, known):
    for command in commands(page.read_text()):
        program, verb, *rest = command.split()
        if program != "headwise":
            continue
        assert verb in known
        for option in (word for word in rest if word.startswith("--")):
            assert re.search(rf"{option}\b", known[verb]), f"{verb} has no {option}"


def test_the_readme_is_short():
    assert README.count("\n") <= 150
    assert README.index("## The map") > README.rindex("\n## Read on")


def test_make_targets_in_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"\bmake (\w[\w-]*)", README))
    assert {"demo", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_two_commands_stand_first():
    assert commands(README)[:2] == ["make demo", "make test"]


@pytest.mark.parametrize("page", PAGES, ids=PAGE_IDS)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_the_map_names_what_is_there():
    (tree,) = (block for block in blocks(README, "text") if "src/headwise/" in block)
    for name in re.findall(r"^  ([\w/.]+)  ", tree, re.M):
        assert (ROOT / "src" / "headwise" / name).exists(), name
    packages = {path.parent.name for path in (ROOT / "src" / "headwise").glob("*/__init__.py")}
    assert packages == {name.rstrip("/") for name in re.findall(r"^  (\w+/)  ", tree, re.M)}


def test_the_figure_shows_the_numbers_beside_it():
    """The table in the log is the file the figure was drawn from."""
    with (ROOT / "docs/figures/float32_trap.csv").open() as file:
        rows = list(csv.DictReader(file))
    log = (ROOT / "docs/log.md").read_text()
    lines = {
        "float64": "float64, from",
        "float32": "everything in",
        "bfloat16": "attention rounded",
    }
    for precision, opening in lines.items():
        means = [float(row["low"]) for row in rows if row["precision"] == precision]
        (line,) = re.findall(rf"^\| {opening}[^|]*\|(.*)\|$", log, re.M)
        assert [float(cell) for cell in line.split("|")] == pytest.approx(means, abs=6e-4)
