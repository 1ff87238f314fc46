"""The tables of the judging, as Markdown, and the page they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.advice.judge import (
    Scores,
    Summary,
    Verdict,
    mean_and_error,
    of_one_device,
    summary,
)
from benchmarks.advice.rules import RULES, Regime
from benchmarks.advice.tasks import BENCHES, RANKS, SweepName
from benchmarks.recording import Row

from headwise.geometry import HeadGeometry

BEGIN, END = "<!-- tables: begin (made by benchmarks.advice.judge) -->", "<!-- tables: end -->"

REGIMES: dict[Regime, str] = {
    "heads": "Heads fixed, the rule chooses the rank",
    "width": "Heads × rank = width, the rule chooses the split (parameters are equal)",
    "half": "Half of the largest's parameters, the rule chooses the split",
    "free": "Heads and rank free",
}

SWEEPS: dict[SweepName, str] = {
    "heads": "four heads fixed, queries, keys and values of rank r",
    "width": "width / r heads of rank r",
    "half": "half of the largest's parameters: as many heads of rank r as they buy",
    "values": "four heads fixed, queries and keys of rank r, values of rank width / 4",
    "single": "one head, queries and keys of rank r, values of full width",
}


#: Where a row comes from, as the page words it.
ORIGIN = ("task", "device", "dtype", "torch", "code")


def report(verdicts: Sequence[Verdict], rows: Sequence[Row], inputs: Sequence[Row]) -> str:
    """All tables."""
    judged = [*_summaries(verdicts), *_regrets(verdicts)] if verdicts else []
    parts = [*judged, *_missing(verdicts), *_scores(rows, inputs), _origin(rows)]
    return "\n\n".join(parts)


def write_page(path: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """The tables between the marks of a page; the rest of it is left alone."""
    page = path.read_text(encoding="utf-8")
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as Markdown, the first the names of the columns."""
    ruled = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in ruled)


def _summaries(verdicts: Sequence[Verdict]) -> list[str]:
    parts = ["## Summary"]
    for title, judged in (
        ("tasks held out at first", True),
        ("the tasks a rule may learn from", False),
    ):
        for regime, words in REGIMES.items():
            chosen = [
                v for v in verdicts if v.regime == regime and BENCHES[v.task].judged == judged
            ]
            if chosen:
                tasks = ", ".join(dict.fromkeys(v.task for v in chosen))
                parts += [f"**{words}; {title}** ({tasks})", _summary_table(chosen)]
    return parts


def _summary_table(verdicts: Sequence[Verdict]) -> str:
    names = ["rule", "mean regret, points", "error / best error", "behind headwise, points"]
    names.append("attention parameters")
    return table([names, *(_summary_line(summary(verdicts, rule)) for rule in RULES)])


def _summary_line(found: Summary) -> list[str]:
    behind = "" if found.rule == "headwise" else _points(found.behind, found.behind_error, 2)
    ratio = "" if found.ratio is None else f"{found.ratio:.2f}"
    return [found.rule, _points(found.regret, found.error, 2), ratio, behind, f"{found.cost:.0%}"]


def _points(value: float, error: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f} ± {100 * error:.{digits}f}"


def _missing(verdicts: Sequence[Verdict]) -> list[str]:
    """Which sweeps have gaps, and so were not judged."""
    known = {(v.task, v.regime) for v in verdicts}
    gaps = {
        regime: [task for task in BENCHES if (task, regime) not in known]
        for regime in ("heads", "width", "half")
    }
    lines = [f"* {REGIMES[r]}: {', '.join(tasks)}" for r, tasks in gaps.items() if tasks]
    return ["**Not judged, the sweep being incomplete**\n\n" + "\n".join(lines)] if lines else []


def _regrets(verdicts: Sequence[Verdict]) -> list[str]:
    parts = ["## Regret by task"]
    for regime, words in REGIMES.items():
        chosen = [v for v in verdicts if v.regime == regime]
        if chosen:
            parts += [f"**{words}**", _regret_table(chosen)]
    return parts


def _regret_table(verdicts: Sequence[Verdict]) -> str:
    tasks = list(dict.fromkeys(v.task for v in verdicts))
    best = {v.task: v.best for v in verdicts}
    lines = [["rule", *(f"{task} (best {_named(best[task])})" for task in tasks)]]
    found = {(v.rule, v.task): v for v in verdicts}
    lines += [[rule, *(_regret(found[rule, task]) for task in tasks)] for rule in RULES]
    return table(lines)


def _regret(found: Verdict) -> str:
    chosen = _named(found.chosen[0]) if len(found.chosen) == 1 else "any"
    ratio = "" if found.ratio is None else f", {found.ratio:.2f} × the best error"
    return f"{chosen}: {_points(found.regret, found.error)}{ratio} ({found.cost:.0%})"


def _named(geometry: HeadGeometry) -> str:
    return f"{geometry.heads}×{geometry.qk_rank}"


def _scores(rows: Sequence[Row], inputs: Sequence[Row]) -> list[str]:
    parts = ["## Scores"]
    ordered = sorted(inputs, key=lambda row: list(BENCHES).index(row["task"]))
    for sweep, words in SWEEPS.items():
        lines = [line for row in ordered if (line := _score_line(rows, row, sweep))]
        if lines:
            names = ["task", "trivial", *(f"r = {rank}" for rank in RANKS)]
            parts += [f"**{words.capitalize()}**", table([names, *lines])]
    return parts


def _score_line(rows: Sequence[Row], told: Row, sweep: SweepName) -> list[str] | None:
    bench = BENCHES[told["task"]]
    accuracy = bench.measure == "accuracy"
    unit = 1.0 if accuracy else -told["trivial"]
    wanted = bench.geometries(sweep)
    scores = of_one_device(rows, bench.name, told["trivial"], wanted)
    cells = {g.qk_rank: _cell(scores, g, unit) for g in wanted}
    if not any(cells.values()):
        return None
    name = f"{bench.name}, {'accuracy' if accuracy else 'error'}"
    return [name, f"{told['trivial']:.3f}", *(cells.get(rank, "") for rank in RANKS)]


def _cell(scores: Scores, geometry: HeadGeometry, unit: float) -> str:
    if geometry not in scores:
        return ""
    mean, error = mean_and_error([unit * score for score in scores[geometry].values()])
    return f"{mean:.3f} ± {error:.3f}"


def _origin(rows: Sequence[Row]) -> str:
    made = sorted({tuple(r[name] for name in ORIGIN) for r in rows})
    seeds = {
        one: len({r["seed"] for r in rows if tuple(r[name] for name in ORIGIN) == one})
        for one in made
    }
    lines = [[*ORIGIN, "seeds"]]
    lines += [[*one, str(seeds[one])] for one in made]
    return "## Where the rows come from\n\n" + table(lines)
