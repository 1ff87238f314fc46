"""Every result is short, becomes a frame, and refuses a file it cannot draw into in one line."""

import json

import pytest
import torch

from headwise import RankMonitor, advise, bound, law, measure, rank
from headwise.attention import HeadGeometry, mha
from headwise.errors import BadInputError
from headwise.probing import scan
from headwise.reduction import Cut, Reduction, Score
from headwise.spectra import count
from headwise.trials import Trial
from headwise.trials.result import Entrant

EYE = torch.eye(3, dtype=torch.float64)
ENTRANT = Entrant(HeadGeometry.free(8, 1, 8), 9, 0.2, 0.1, 0.01, 1.0, 256, 32, True)
CURVE = ((0.3, 0.3), (0.2, 0.2))
SCORE, CUT = Score("perplexity", 20.0, 0.5), Cut("latent", rank=8, value_rank=8)


def monitored():
    monitor = RankMonitor(torch.randn(2, 6, 8), every=1)
    for _ in range(3):
        monitor(mha(HeadGeometry.standard(8, heads=2)))
    return monitor


RESULTS = {
    "Advice": lambda: advise(length=64, width=32),
    "Counts": lambda: count(EYE),
    "Measurement": lambda: measure(EYE),
    "Ranks": lambda: rank(EYE),
    "Scan": lambda: scan(mha(HeadGeometry.free(width=4, heads=1, rank=2)), torch.randn(1, 3, 4)),
    "Law": lambda: law(64, [16]),
    "Bound": lambda: bound(64, 8, heads=8),
    "RankMonitor": monitored,
    "Reduction": lambda: Reduction(None, (CUT,), CUT, 0.1, SCORE, SCORE, (256, 128), (900, 700)),
    "Trial": lambda: Trial((ENTRANT, ENTRANT), "loss", 9, (3, 9), (CURVE, CURVE), True),
}


@pytest.mark.parametrize("made", RESULTS.values(), ids=RESULTS)
def test_a_figure_makes_its_folder_like_a_page(made, tmp_path):
    made().plot(file=tmp_path / "deep" / "figure.png")
    assert (tmp_path / "deep" / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("made", RESULTS.values(), ids=RESULTS)
def test_a_figure_in_a_file_s_place_is_refused_in_one_line(made, tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(BadInputError, match="file") as refused:
        made().plot(file=tmp_path / "file" / "figure.png")
    assert "\n" not in str(refused.value)
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("made", RESULTS.values(), ids=RESULTS)
def test_a_result_becomes_json(made):
    assert json.loads(json.dumps(made().as_json(), allow_nan=False))


@pytest.mark.parametrize("name", ["Advice", "Reduction", "Scan", "Trial"])
def test_results_with_a_page_write_it(name, tmp_path):
    file = RESULTS[name]().report(tmp_path / "deep" / "page.html")
    assert file == tmp_path / "deep" / "page.html"
    assert "<svg" in file.read_text()


@pytest.mark.parametrize("made", RESULTS.values(), ids=RESULTS)
def test_a_result_is_short_and_becomes_a_frame(made):
    pytest.importorskip("pandas", reason="needs headwise[frames]")
    found = made()
    assert len(repr(found)) < 300
    assert len(found.to_frame()) >= 1


@pytest.mark.parametrize(
    "command",
    [
        ("law", "--length", "64", "--plot", "text.txt/a.png"),
        ("scan", "model", "--random", "--plot", "text.txt/a.png"),
        ("scan", "model", "--random", "--csv", "text.txt/rows.csv"),
        ("scan", "model", "--random", "--html", "folder"),
        ("trial", "digits", "--plot", "text.txt/a.png"),
        ("trial", "digits", "--html", "folder"),
        ("advise", "--html", "text.txt/report.html"),
        ("reduce", "model", "--text", "text.txt", "--rank", "2", "--html", "folder"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    command, tmp_path, monkeypatch, capsys
):
    from headwise.cli.app import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").touch()
    with pytest.raises(SystemExit) as stopped:
        main(list(command))
    out, err = capsys.readouterr()
    # There is no model: the file is refused before the model is looked for.
    assert (stopped.value.code, out) == (1, "")
    assert err.startswith("headwise: cannot write")
    assert err.count("\n") == 1
