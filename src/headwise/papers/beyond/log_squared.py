"""How the head dimension grows with the length: (log n)² for a share, log n for a gain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headwise.papers.beyond.growth import FITS, Crossing, Fit, crossings, fitted
from headwise.papers.beyond.random_heads import FEW_KEYS, GPU_KEYS, Point, asked, points_of
from headwise.papers.exhibit import Answers, Claim, Exhibit, Presentation, Scale
from headwise.report import Curve, Line, Panel, Table
from headwise.runs import Spec
from headwise.theory.law_formula import critical_head_dim
from headwise.theory.scaling import SHARES, gain_head_dim, quantile, saturation_constant

#: Head dimensions that may be simulated: two to an octave.
HALF_OCTAVES = (4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128, 181, 256, 362, 512, 724, 1024, 1448, 2048)

#: Lengths that must reach a share for a fit of two constants to leave anything.
FEWEST_LENGTHS = 3

#: The rank paper's rule on the law: a gain of about 0.01 from one row of Table 1 to the next.
GAIN, STEP = 0.01, 16

#: The lengths at which the rule is drawn.
RULE_LENGTHS = tuple(2**power for power in range(5, 21))

#: What the share is compared at with the rule.
SHOWN = 0.9

#: Head dimensions on either side of where a share is expected.
AROUND = 2


def head_dims(tokens: int, shares: Sequence[float] = SHARES) -> list[int]:
    """The head dimensions to simulate at a length: around where each share is expected."""
    found: set[int] = set()
    for share in shares:
        expected = saturation_constant(share) * quantile(tokens) ** 4 / 4
        below = [r for r in HALF_OCTAVES if r <= expected]
        found |= {*below[-AROUND:], *[r for r in HALF_OCTAVES if r > expected][:AROUND]}
    return sorted(found)


def _cells(powers: Sequence[int], shares: Sequence[float] = SHARES) -> list[tuple[int, int]]:
    return [(2**power, r) for power in powers for r in head_dims(2**power, shares)]


def _miniature() -> list[Spec]:
    return asked(_cells((6, 7, 8), shares=[0.9]), keys=FEW_KEYS)


def _laptop() -> list[Spec]:
    return asked(_cells(range(7, 14)))


def _gpu() -> list[Spec]:
    return asked(_cells(range(7, 21)), keys=GPU_KEYS)


def _present(answers: Answers) -> Presentation:
    points = points_of(answers)
    found = {share: crossings(points, share) for share in SHARES}
    found = {share: crossed for share, crossed in found.items() if len(crossed) >= FEWEST_LENGTHS}
    fits = {share: [fitted(form, crossed) for form in FITS] for share, crossed in found.items()}
    rule = _rule()
    return Presentation(
        panels=(
            _growth(found),
            _residuals(found[SHOWN], fits[SHOWN], SHOWN),
            _two_questions(found[SHOWN], rule),
        ),
        tables=(_fit_table(fits), _crossing_table(found), _rule_table(rule)),
        claims=(*_claims(found, fits), *rule_claims(rule)),
        remarks=_remarks(fits[SHOWN], points),
    )


def _rule() -> list[Crossing]:
    """Where a step of 16 stops gaining 0.01, by the law."""
    answers = {n: gain_head_dim(n, GAIN, STEP) for n in RULE_LENGTHS}
    return [Crossing(n, float(d), 0.0, float(d)) for n, d in answers.items()]


def _two_questions(crossed: Sequence[Crossing], rule: Sequence[Crossing]) -> Panel:
    return Panel(
        "log n for a gain, (log n)² for a share",
        "length (tokens)",
        "head dimension",
        (
            Curve(
                f"{SHOWN:.0%} of the barrier",
                _line(crossed),
                law=Line.of({n: critical_head_dim(n, SHOWN) for n in RULE_LENGTHS}),
            ),
            Curve(
                f"a step of {STEP}\ngains {GAIN} (rule of\nthe rank paper,\non the law)",
                _line(rule),
            ),
        ),
        x_scale="log",
    )


def _rule_table(rule: Sequence[Crossing]) -> Table:
    rows = (
        {
            "tokens": one.tokens,
            f"a step of {STEP} gains {GAIN}": round(one.head_dim),
            f"{SHOWN:.0%} of the barrier": critical_head_dim(one.tokens, SHOWN),
        }
        for one in rule
    )
    return Table.of(rows, title="Two questions on the law: head dimensions")


def rule_claims(rule: Sequence[Crossing]) -> tuple[Claim, ...]:
    """Whether the rule's answers grow like log n."""
    line, square = (
        fitted(next(form for form in FITS if form.name == name), rule)
        for name in ("a ln n + b", "a (ln n)² + b")
    )
    return (
        Claim(
            f"where a step of {STEP} gains {GAIN}, on the law from {rule[0].tokens} to "
            f"{rule[-1].tokens} tokens, is a·ln n + b to within 5 %",
            line.largest <= 0.05,
            "rank paper, §3.2, log-dependence; law and 5 % are ours",
        ),
        Claim(
            f"on the law a·ln n + b leaves less of them than a·(ln n)² + b ({line.rms:.1%}, "
            f"{square.rms:.1%})",
            line.rms < square.rms,
        ),
    )


def _growth(found: dict[float, list[Crossing]]) -> Panel:
    return Panel(
        "Head dimension at a share of the barrier",
        "length (tokens)",
        "head dimension",
        tuple(
            Curve(
                f"{share:.0%} of the barrier",
                _line(crossed),
                spread=tuple(2 * one.stderr for one in crossed),
                law=Line.of({one.tokens: one.by_law for one in crossed}),
            )
            for share, crossed in reversed(found.items())
        ),
        x_scale="log",
        y_scale="log",
    )


def _residuals(crossed: Sequence[Crossing], fits: Sequence[Fit], share: float) -> Panel:
    return Panel(
        f"Relative residual of four fits, at {share:.0%}",
        "length (tokens)",
        "fit minus simulation, percent",
        tuple(_left(fit, crossed) for fit in fits),
        x_scale="log",
        levels=(("", 0.0),),
    )


def _left(fit: Fit, crossed: Sequence[Crossing]) -> Curve:
    lengths = tuple(one.tokens for one in crossed)
    line = Line(lengths, tuple(100 * left for left in fit.residuals))
    # The noise of the points is the same for every fit: it is drawn around the last.
    noise = tuple(200 * one.stderr / one.head_dim for one in crossed)
    return Curve(_named(fit), line, spread=noise if fit.form is FITS[-1] else ())


def _line(crossed: Sequence[Crossing]) -> Line:
    return Line.of({one.tokens: one.head_dim for one in crossed})


def _named(fit: Fit) -> str:
    return f"{fit.form.name}\n({fit.rms:.1%})"


def _fit_table(fits: dict[float, list[Fit]]) -> Table:
    rows = (
        {
            "share of the barrier": f"{share:.0%}",
            "fit": fit.form.name,
            "constants": ", ".join(f"{constant:.4g}" for constant in fit.constants),
            "root mean square residual": f"{fit.rms:.1%}",
            "largest residual": f"{fit.largest:.1%}",
        }
        for share, own in fits.items()
        for fit in own
    )
    return Table.of(rows, title="Fits to the simulated head dimensions, by relative error")


def _crossing_table(found: dict[float, list[Crossing]]) -> Table:
    rows = (
        {
            "share": f"{share:.0%}",
            "tokens": one.tokens,
            "head dimension": round(one.head_dim, 2),
            "± standard error": round(one.stderr, 2),
            "by L": round(one.by_law, 2),
            "t⁴/4": round(quantile(one.tokens) ** 4 / 4, 1),
        }
        for share, crossed in found.items()
        for one in crossed
    )
    return Table.of(rows, title="Head dimension at a share of the barrier, interpolated")


def _claims(found: dict[float, list[Crossing]], fits: dict[float, list[Fit]]) -> tuple[Claim, ...]:
    linear, quartic = (
        {share: next(fit for fit in own if fit.form.name == name) for share, own in fits.items()}
        for name in ("a ln n + b", "a t⁴/4")
    )
    high = [share for share in fits if share >= 0.9]
    return (
        Claim(
            "a·t⁴/4 with one constant leaves less than a·ln n + b with two, at every share",
            all(quartic[share].rms < linear[share].rms for share in fits),
        ),
        Claim(
            "a·t⁴/4 leaves at most 5 % at the shares of 90 % and more",
            all(quartic[share].rms <= 0.05 for share in high),
        ),
        Claim(
            "its constant is that of the log-normal limit, to within max(0.1, 4 standard errors) "
            "of it, at the shares of 90 % and more",
            all(
                abs(quartic[share].constants[0] / saturation_constant(share) - 1)
                <= max(0.1, 4 * _constant_stderr(found[share]))
                for share in high
            ),
        ),
    )


def _constant_stderr(crossed: Sequence[Crossing]) -> float:
    """The relative standard error of the one constant that is fitted to these points."""
    return math.hypot(*(one.stderr / one.head_dim for one in crossed)) / len(crossed)


def _remarks(fits: Sequence[Fit], points: dict[int, list[Point]]) -> tuple[str, ...]:
    left = {fit.form.name: f"{fit.rms:.1%}" for fit in fits}
    return (
        f"At 90 % of the barrier, from {min(points)} to {max(points)} tokens: a·ln n + b leaves "
        f"{left['a ln n + b']}, a·t⁴/4 {left['a t⁴/4']}. The head dimension grows like t⁴/4, with "
        "t = Φ⁻¹(1 − 1/n); a straight line in log n does not fit.",
        f"t⁴/4 tends to (ln n)², but slowly: a·(ln n)² alone leaves {left['a (ln n)²']}, and with "
        f"a second constant {left['a (ln n)² + b']}. Use t, not 2 ln n, at practical lengths.",
        "The rank paper states d_h = Ω(log n). For a share of the barrier that is too slow. For "
        "the paper's own rule, a fixed gain per step of d_h, it is right at practical lengths: "
        "each doubling adds 12 at 100 tokens and 9 at 2²⁰. The increments go on falling. From "
        "2²⁷ tokens on, the step from d_h = 2 gains less than 0.01, so the rule would stop at its "
        "first row, and near 10¹⁷ no step of 16 gains that much anywhere.",
        "At 50 % and short lengths the head dimension is below 16, where L is only an upper bound "
        "of the rank: there the thin line lies too low.",
    )


LOG_SQUARED = Exhibit(
    caption="First: the head dimension at which hardmax attention of random heads uses 50, 90 and "
    "95 % of what the barrier allows, interpolated between simulated head dimensions; thin lines "
    "by the law L. Bands: two standard errors. Second: relative residuals of four fits to the "
    "points at 90 %. Third: the head dimension at 90 % beside the rank paper's rule, where a step "
    "of 16 gains 0.01 on the law. Scores are float64; beyond 2¹⁴ tokens float32, of queries and "
    "keys rounded to TensorFloat-32.",
    questions={Scale.MINIATURE: _miniature, Scale.LAPTOP: _laptop, Scale.GPU: _gpu},
    present=_present,
)
