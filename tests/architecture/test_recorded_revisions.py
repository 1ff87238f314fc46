"""Recorded rows name the commit that computed them: one that this repository has."""

import csv
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from headwise.papers.catalogue import RECORDS

ROOT = Path(__file__).parents[2]

#: Rows of an uncommitted or lost state, which need hours or a GPU: this list may only shrink.
TO_BE_COMPUTED_AGAIN = {
    "heads2024/figure_in_context_laptop.csv": {"321d11b67847-dirty"},
    "heads2024/figure_what_it_learns_gpu.csv": {"c13365310ed6-dirty"},
}


#: Revisions of rows that are not commits: benchmarks/records/README.md says where their code is.
COMBINED = {
    *("09e8b91bbab9", "1f0d5d7", "236aea138b", "333b2b4", "54941087ab"),
    *("5ac17d9", "5b9ab3ab44", "ddb41f45d6", "f4b09369c7", "f97072ede4"),
}
LOST = {"0cc21dc246", "ef8e5b7e20"}
UNCOMMITTED = {"1efa8fc343-dirty", "cbf225eddd-dirty"}


def _git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)


@pytest.fixture(scope="module")
def commits():
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs the history of the repository")
    if _git("rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        pytest.skip("needs the whole history of the repository")
    return _git("rev-list", "HEAD").stdout.split()


def _lost(path, commits):
    with path.open(newline="", encoding="utf-8") as file:
        codes = {row["provenance.code"] for row in csv.DictReader(file)}
    return _no_commits({code.partition("+")[2] for code in codes}, commits) - COMBINED


def _no_commits(revisions, commits):
    return {one for one in revisions if not any(commit.startswith(one) for commit in commits)}


def test_every_recorded_revision_is_a_commit_or_explained(commits):
    lost = {
        path.relative_to(RECORDS).as_posix(): found
        for path in sorted(RECORDS.rglob("*.csv"))
        if (found := _lost(path, commits))
    }
    assert lost == TO_BE_COMPUTED_AGAIN


def test_every_revision_in_a_benchmark_is_a_commit_or_explained(commits):
    rows = [path for path in (ROOT / "benchmarks").rglob("records/**/*.json*") if path.is_file()]
    text = "".join(path.read_text(encoding="utf-8") for path in rows)
    found = set(re.findall(r"\b\d\.\d\.\d\+([0-9a-f]{7,12}(?:-dirty)?)", text))
    assert _no_commits(found, commits) == COMBINED | LOST | UNCOMMITTED


def test_the_page_of_records_names_every_revision_that_is_no_commit():
    page = (ROOT / "benchmarks" / "records" / "README.md").read_text(encoding="utf-8")
    assert {one for one in COMBINED | LOST | UNCOMMITTED if f"`{one}`" not in page} == set()
