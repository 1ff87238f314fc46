"""Write docs/theorems.md from the statements: python docs/make_theorems.py."""

from __future__ import annotations

from pathlib import Path

from headwise.theory.theorems import STATEMENTS, Check, Source, Statement

_HEADER = """# Theorems

This page checks every statement of the two papers that can be checked, and those of this project.
Each has two simulations. The first satisfies the hypothesis, and the conclusion must hold. The
second, the *violator*, breaks the hypothesis, and the conclusion must fail. If the violator breaks
only a bound that implies the conclusion, the entry says so. "Tried" has the sizes. "Ours" is
published in neither paper.

This page is written by `python docs/make_theorems.py`; a test keeps it up to date. Numbers with ±
are means and standard errors of simulations. Limits in the tables that no line above them names
(0.01, 0.1, 5 standard errors) are ours.
"""

_BOUND_ONLY = (
    "* Violator: it breaks the bound that implies the conclusion; the conclusion may still hold."
)

_TITLES = {
    Source.RANK_PAPER: "The rank paper",
    Source.HEADS_PAPER: "The heads paper",
    Source.OURS: "Ours",
}


def page(seed: int = 0) -> str:
    """The page: one section per source, one entry per statement."""
    parts = [_HEADER]
    for source, title in _TITLES.items():
        parts.append(f"\n## {title}\n")
        parts += [_entry(one, seed) for one in STATEMENTS if one.source is source]
    findings = [one for one in STATEMENTS if one.finding]
    parts.append("\n## Where paper and check differ\n\n| statement | finding |\n|---|---|\n")
    parts += [f"| {one.label} | {one.finding.replace('|', chr(92) + '|')} |\n" for one in findings]
    return "".join(parts)


def _entry(statement: Statement, seed: int) -> str:
    seen, broken = statement.simulate(seed), statement.violate(seed)
    source = "ours, " if statement.source is Source.OURS else f"published: {statement.source}, "
    lines = [
        # The anchor is set by hand: renderers make different slugs of a dash.
        f'\n### {statement.label} <a id="{statement.slug}"></a>\n',
        f"*{source}{statement.where}*\n",
        f"* If: {statement.hypothesis}",
        f"* Then: {statement.conclusion}",
        f"* Tried: {' '.join((statement.evidence.__doc__ or '').split())}",
        *[_BOUND_ONLY] * statement.bound_only,
        "",
        "| | simulation | violator |",
        "|---|---|---|",
        *_rows("if", seen.hypothesis, broken.hypothesis),
        *_rows("then", seen.conclusion, broken.conclusion),
    ]
    lines += [f"\n**Proof.** {statement.proof}"] * bool(statement.proof)
    return "\n".join(lines) + "\n"


def _rows(kind: str, seen: tuple[Check, ...], broken: tuple[Check, ...]) -> list[str]:
    return [
        f"| {kind}: {one.name.replace('|', chr(92) + '|')} | {_shown(one)} | {_shown(two)} |"
        for one, two in zip(seen, broken, strict=True)
    ]


def _shown(check: Check) -> str:
    seen = check.observed
    # Rounding dust differs from machine to machine; the page must not.
    mean = 0.0 if abs(seen.mean) < 1e-8 else seen.mean
    value = f"{mean:.4g}" if seen.stderr < 1e-12 else f"{mean:.4g} ± {seen.stderr:.2g}"
    bound = 0.0 if abs(check.bound) < 1e-12 else check.bound
    return f"{value} {check.sense.value} {bound:.4g}: {'holds' if check.holds else '**broken**'}"


if __name__ == "__main__":
    Path(__file__).with_name("theorems.md").write_text(page(), encoding="utf-8")
