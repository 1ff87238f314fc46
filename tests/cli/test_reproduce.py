"""headwise reproduce and report: everything in miniature end to end, and every wrong turn."""

import io
import json
import os
import sqlite3
import subprocess
import sys
import time

import pytest
import torch
from rich.console import Console

from headwise.cli import reproduce_report
from headwise.papers.catalogue import CATALOGUE, chosen
from headwise.papers.exhibit import Scale
from headwise.papers.heads2024.figure_role_of_d import FIGURE_ROLE_OF_D
from headwise.papers.reproduce import reproduce as reproduction
from headwise.runs import Store
from headwise.runs.attempt import stamp
from headwise.runs.outcome import Failure

QUICK = "rank2026/figure_6"

#: One worker runs this file, so that the exhibits are made once.
pytestmark = pytest.mark.xdist_group("every exhibit in miniature")


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """All exhibits in miniature, once, as a person would run them."""
    folder = tmp_path_factory.mktemp("everything")
    command = [sys.executable, "-m", "headwise", "reproduce", "all", "--scale", "miniature"]
    places = ["--store", folder / "results.db", "--out", folder / "out", "--workers", "2"]
    start = time.monotonic()
    done = subprocess.run(
        [*command, *map(str, places), "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    print(f"every exhibit in miniature: {time.monotonic() - start:.1f} s")
    return folder, done


def test_everything_in_miniature(everything):
    folder, done = everything
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    names = {e.name for e in CATALOGUE if Scale.MINIATURE in e.scales}
    assert {one["exhibit"] for one in shown["exhibits"]} == names
    assert {one["state"] for one in shown["exhibits"]} == {"drawn"}
    for file in shown["files"]:
        assert os.path.getsize(file) > 1000  # noqa: PTH202
    text = (folder / "out" / "report.html").read_text()
    # Not by title: a title may count what the rows hold.
    assert all(f"({exhibit.name}, miniature)" in text for exhibit in CATALOGUE)


def test_a_second_run_computes_nothing_and_draws_the_same(everything, headwise):
    folder, _ = everything
    before = (folder / "out" / "rank2026_figure_6.svg").read_bytes()
    arguments = ("--store", folder / "results.db", "--out", folder / "again")
    ran = headwise("reproduce", QUICK, *arguments)
    assert ran.code == 0
    assert "left" not in ran.err
    assert (folder / "again" / "rank2026_figure_6.svg").read_bytes() == before


def test_the_report_is_rebuilt_from_the_store(everything, headwise):
    folder, _ = everything
    ran = headwise("report", QUICK, "--store", folder / "results.db", "--out", folder / "report")
    assert ran.code == 0
    assert QUICK in ran.out
    assert (folder / "report" / "report.html").stat().st_size > 1000


def test_a_claim_that_does_not_hold_is_named(headwise, tmp_path):
    name = "heads2024/figure_large_n"
    ran = headwise("reproduce", name, "--from-records", "--out", tmp_path)
    row = next(line for line in ran.out.splitlines() if line.startswith(f"{name} "))
    assert row.rstrip().endswith("0 of 1 hold       1 of 1 hold")
    assert f"{name}: does not hold: the error of the lowest rank rises with N (" in ran.out
    assert "as a share of the trivial error" not in ran.out


def test_many_claims_that_do_not_hold_are_counted(headwise, tmp_path, monkeypatch):
    monkeypatch.setattr("headwise.cli.reproduce_report.MOST_CLAIMS", 0)
    names = ("heads2024/figure_large_n", "rank2026/figure_5a")
    ran = headwise("reproduce", *names, "--from-records", "--out", tmp_path)
    assert "does not hold: " not in ran.out
    assert "Published values that differ: 0. Claims that do not hold: 1." in ran.out


def test_a_report_in_the_same_folder_is_replaced(everything, headwise, tmp_path):
    """As the help says: the report holds the exhibits of the last run alone."""
    folder, _ = everything
    given = ("--store", folder / "results.db", "--out", tmp_path)
    for name, other in ((QUICK, "rank2026/figure_1"), ("rank2026/figure_1", QUICK)):
        assert headwise("reproduce", name, *given).code == 0
        text = (tmp_path / "report.html").read_text()
        assert f"({name}, miniature)" in text
        assert f"({other}, miniature)" not in text


def test_the_list_says_what_is_stored(everything, headwise):
    folder, _ = everything
    ran = headwise("reproduce", "--list", "--json", "--store", folder / "results.db")
    states = {row["exhibit"]: row["stored"] for row in json.loads(ran.out)}
    assert states[QUICK]["miniature"] == "stored"
    assert states[QUICK]["paper"] == "missing"


def test_a_plain_list_has_one_short_line_for_each_exhibit(headwise):
    lines = headwise("reproduce", "--list").out.splitlines()
    listed = json.loads(headwise("reproduce", "--list", "--json").out)
    assert len(lines) <= len(listed) + 7
    for row in listed:
        folder, name = row["exhibit"].split("/")
        (line,) = (line for line in lines if line.startswith(f"{name} "))
        scales, recorded, title = line[len(name) :].split(None, 2)
        assert [scale for scale in row["scales"] if scale[0] in scales] == row["scales"]
        assert len(scales.replace(".", "")) == len(row["scales"])
        assert recorded == (row["recorded"] or ["-"])[-1]
        assert title == row["title"]  # whole: only a terminal cuts it
        assert sum(line.startswith(f"{folder}/ ") for line in lines) == 1


def test_a_plain_list_is_quick_and_loads_nothing_heavy():
    code = (
        "import sys; from headwise.cli.app import main\n"
        "try: main(['reproduce', '--list'])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'sqlalchemy', 'matplotlib'} & set(sys.modules)"
    )
    start = os.times()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    spent = [after - before for before, after in zip(start, os.times(), strict=True)]
    assert "table_1 " in done.stdout
    assert spent[2] + spent[3] < 1  # processor time of the child


def test_the_summary_of_several_exhibits_comes_first(headwise, tmp_path):
    names = ("heads2024/figure_rank_depth", "heads2024/figure_positions")
    ran = headwise("reproduce", *names, "--from-records", "--out", tmp_path / "out")
    assert ran.out.startswith("exhibit ")
    assert "differs*" not in ran.out
    assert (tmp_path / "out" / "report.html").read_text().index('id="summary"') < 3000


def test_a_table_with_printed_values_mentions_them_at_every_scale(everything, headwise, tmp_path):
    folder, _ = everything
    given = ("--store", folder / "results.db", "--out", tmp_path)
    ran = headwise("reproduce", "rank2026/table_1", *given)
    assert "published for other sizes" in ran.out


def test_a_failed_spec_is_reported_and_the_rest_is_drawn(everything, headwise, tmp_path):
    folder, _ = everything
    copy = tmp_path / "copy.db"
    with sqlite3.connect(folder / "results.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
        (key,) = target.execute(
            "select key from headwise_results where kind = 'orthonormality' limit 1"
        ).fetchone()
        target.execute(
            "update headwise_results set rows = NULL, failure = 'ValueError: no' where key = ?",
            (key,),
        )
    ran = headwise("reproduce", QUICK, "rank2026/figure_5a", "--store", copy, "--out", tmp_path)
    assert ran.code == 1
    (exhibit,) = chosen([QUICK])
    assert f"1 failed of {len(exhibit.specs(Scale.MINIATURE))}" in ran.out
    assert (tmp_path / "rank2026_figure_5a.png").exists()
    assert not (tmp_path / "rank2026_figure_6.png").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rank2026/figure_6b"], "did you mean rank2026/figure_6"),
        (["tabel_1"], "did you mean rank2026/table_1"),
        (["zebra"], "headwise reproduce --list lists them all"),
        ([], "name an exhibit, or all"),
        ([QUICK, "--scale", "gpu"], "has no scale gpu; pass --scale miniature or paper"),
        ([QUICK, "--scale", "gpu", "--from-records"], "come with headwise"),
        ([QUICK, "--workers", "0", "--from-records"], "'--workers': expected a number of at least"),
    ],
)
def test_wrong_requests_get_one_line(headwise, tmp_path, arguments, words):
    places = ("--store", tmp_path / "s.db", "--out", tmp_path / "out")
    assert words in headwise("reproduce", *arguments, *places).one_line(2)
    assert not (tmp_path / "out").exists()


def test_the_star_of_what_differs_is_explained_once(headwise, tmp_path):
    ran = headwise(
        "reproduce", "heads2024/figure_rank_depth", "--from-records", "--out", tmp_path / "out"
    )
    assert "differs*" in ran.out
    for scale in ("gpu", "paper"):
        assert f"figure_rank_depth at scale {scale} differs from the paper in:" in ran.out
    (line,) = [line for line in ran.out.splitlines() if line.startswith("*")]
    assert all(words in line for words in ("0.015", "a fifth", "3 combined standard errors"))
    assert "• The schedule is shortened" in ran.out
    assert "1 layer, d³ parameters, r 1 " in ran.out
    assert "1 layers" not in ran.out


def test_runs_that_need_a_gpu_are_refused_before_the_first(headwise, tmp_path):
    store = tmp_path / "runs.db"
    ran = headwise("reproduce", "heads2024/figure_role_of_d", "--scale", "gpu", "--store", store)
    line = ran.one_line(1)
    assert (
        "40 of 40 runs take products in tf32, which 'cpu' does not have; use the device cuda"
        in line
    )
    with Store.open(str(store)) as known:
        assert not known.plan(FIGURE_ROLE_OF_D.specs(Scale.GPU)).failed


def test_earlier_failures_are_listed_with_the_option_to_retry(headwise, tmp_path):
    store = tmp_path / "runs.db"
    specs = FIGURE_ROLE_OF_D.specs(Scale.MINIATURE)
    with Store.open(str(store)) as known:
        known.put(specs[0], Failure(specs[0].key, "no room", stamp(specs[0], "cpu", 0.1, "test")))
    named = ("reproduce", "heads2024/figure_role_of_d", "--store", store, "--out", tmp_path / "o")
    assert "1 failed before and are not asked again" in headwise(*named).err
    assert "failed before" not in headwise(*named, "--retry").err


def test_a_figure_without_printed_values_still_has_its_remarks(headwise, tmp_path):
    ran = headwise(
        "reproduce", "heads2024/figure_role_of_d", "--from-records", "--out", tmp_path / "out"
    )
    assert "width 256 in all 20 runs" in " ".join(ran.out.split())


def test_of_several_exhibits_remarks_on_what_is_not_printed_are_left_to_the_report(
    headwise, tmp_path
):
    names = ("heads2024/figure_role_of_d", "heads2024/figure_large_n")
    ran = headwise("reproduce", *names, "--from-records", "--out", tmp_path / "out")
    assert "width 256 in all" not in ran.out
    assert "width 256 in all 20 runs" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_a_device_that_is_not_there(headwise, tmp_path):
    ran = headwise("reproduce", QUICK, "--device", "cuda", "--store", tmp_path / "s.db")
    assert "there is no device 'cuda' on this machine; pass cpu" in ran.one_line(1)


def test_a_store_that_is_no_database(headwise, tmp_path):
    place = tmp_path / "notes.txt"
    place.write_text("these are my notes, and they stay\n" * 100)
    for verb in ("reproduce", "report"):
        ran = headwise(verb, QUICK, "--store", place, "--out", tmp_path / "out")
        assert "is not a database; pass another store" in ran.one_line(1)
    ran = headwise("serve", "--store", place, "--port", "0", "--no-browser")
    assert "is not a database; pass another store" in ran.one_line(1)
    assert place.read_text().startswith("these are my notes")


def test_a_missing_store_asks_for_a_run_that_fills_it(headwise, tmp_path):
    """Drawing recorded rows fills no store."""
    place = ("--store", tmp_path / "none.db", "--out", tmp_path / "out")
    assert headwise("reproduce", QUICK, "--from-records", *place).code == 0
    refusal = headwise("report", *place).one_line(1)
    assert "run headwise reproduce without --from-records first" in refusal


def test_a_store_of_a_newer_version(headwise, everything, tmp_path):
    folder, _ = everything
    copy = tmp_path / "newer.db"
    with sqlite3.connect(folder / "results.db") as source, sqlite3.connect(copy) as target:
        source.backup(target)
        target.execute("update headwise_schema set version = 99")
        before = target.execute("select count(*) from headwise_results").fetchone()
    ran = headwise("reproduce", QUICK, "--store", copy, "--out", tmp_path / "out")
    assert "version 99" in ran.one_line(1)
    with sqlite3.connect(copy) as left:
        assert left.execute("select count(*) from headwise_results").fetchone() == before


def test_places_that_cannot_be_written(headwise, everything, tmp_path):
    folder, _ = everything
    (tmp_path / "file").touch()
    inside = tmp_path / "file" / "x"
    ran = headwise("reproduce", QUICK, "--store", inside / "s.db", "--out", tmp_path / "out")
    assert "pass a store in a folder that can be written" in ran.one_line(1)
    ran = headwise("reproduce", QUICK, "--store", folder / "results.db", "--out", inside)
    assert "cannot write into the folder" in ran.one_line(1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_read_only(headwise, everything, tmp_path):
    folder, _ = everything
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    ran = headwise("reproduce", QUICK, "--store", locked / "s.db", "--out", tmp_path / "out")
    assert "cannot be opened; pass the path of a file in a folder you may write" in ran.one_line(1)
    ran = headwise("reproduce", QUICK, "--store", folder / "results.db", "--out", locked / "out")
    assert "cannot write into the folder" in ran.one_line(1)


def test_an_unreachable_cluster_is_refused_in_one_line(headwise, tmp_path):
    pytest.importorskip("distributed")
    places = ("--store", tmp_path / "s.db", "--out", tmp_path / "out")
    ran = headwise("reproduce", QUICK, "--cluster", "tcp://127.0.0.1:1", *places)
    assert ran.code == 1
    assert "no cluster answers at tcp://127.0.0.1:1" in ran.err.splitlines()[-1]


@pytest.mark.parametrize("width", [80, 300])
def test_the_summary_fits_the_terminal(width):
    """A narrow terminal leaves two columns to the report and wraps cells; names stay whole."""
    names = ["rank2026/table_1", "rank2026/figure_2b", "heads2024/figure_what_it_learns"]
    found = reproduction(names, from_records=True)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, color_system=None, width=width, markup=False)
    reproduce_report._print_table(found.summary(), console)
    lines = out.getvalue().splitlines()
    assert all(len(line) <= width for line in lines)
    if width == 80:
        assert all(any(line.startswith(name) for line in lines) for name in names)
        assert "published as" not in out.getvalue()


def test_a_report_of_nothing(headwise, tmp_path):
    ran = headwise("report", "--store", tmp_path / "absent.db", "--out", tmp_path / "out")
    assert "there is no store" in ran.one_line(1)
    Store.open(tmp_path / "empty.db").close()
    ran = headwise("report", "--store", tmp_path / "empty.db", "--out", tmp_path / "out")
    assert "contains no complete exhibit; headwise reproduce --list" in ran.one_line(1)
    ran = headwise("report", "tabel_1", "--store", tmp_path / "absent.db")
    assert "did you mean rank2026/table_1" in ran.one_line(2)
