"""Show a reduction: rows for a table, and a page with the curve and a map of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwise.reduction.result import Reduction


def reduction_rows(found: Reduction) -> list[tuple[str, str, str]]:
    """Return what was before and after: score, bytes, parameters and times.

    Args:
        found: The reduction.

    Returns:
        Rows of name, before and after.

    Example:
        >>> from headwise.reduction import Cut, Reduction, Score
        >>> score, cut = Score("perplexity", 20.0, 0.5), Cut("latent", rank=8, value_rank=8)
        >>> found = Reduction(None, (cut,), cut, 0.1, score, score, (256, 128), (900, 700))
        >>> len(reduction_rows(found)) > 1
        True
    """
    rows = [
        (
            found.before.name,
            f"{found.before.value:.4g} ± {found.before.error:.2g}",
            f"{found.after.value:.4g} ± {found.after.error:.2g}",
        ),
        ("KV bytes per token", *(f"{each:,}" for each in found.kv_bytes)),
        ("parameters", *(f"{each:,}" for each in found.parameters)),
    ]
    if found.speed is not None:
        context = found.speed[0].context
        rows += [
            ("KV bytes per token, measured", *(f"{each.cache_bytes:,.0f}" for each in found.speed)),
            (f"prefill of {context:,} tokens, s", *(f"{each.prefill:.2f}" for each in found.speed)),
            (
                f"decode at {context:,} tokens, ms",
                *(f"{1000 * each.decode:.1f}" for each in found.speed),
            ),
        ]
    return [(name, before, after) for name, before, after in rows]


def reduction_page(found: Reduction) -> str:
    """Return an HTML page: the table, the curve and the ranks of every layer."""
    from headwise.report import Section, Table, inline_svg, page

    share = found.kv_bytes[1] / found.kv_bytes[0]
    table = Table(("", "before", "after"), tuple(reduction_rows(found)))
    cuts = Table(
        ("layer", "keys", "key rank", "value rank"),
        tuple(
            (str(layer), cut.keys, str(cut.rank), str(cut.value_rank))
            for layer, cut in enumerate(found.cuts)
        ),
    )
    sections = [Section("Ranks", (), (_ranks(found),), (cuts,))]
    if found.curve:
        sections.insert(0, Section("Score against size", (), (inline_svg(score_figure(found)),)))
    lead = f"{share:.0%} of the KV cache is left, with ranks chosen layer by layer."
    return page(f"Reduction of {found.name}", lead, sections, summary=table)


def score_figure(found: Reduction) -> Any:
    """Draw the score on held-out text against the share of KV bytes."""
    from headwise.report import Curve, Line, Panel, draw

    own = (found.kv_bytes[1] / found.kv_bytes[0], found.after)
    cut = [(point.kv_bytes / found.kv_bytes[0], point.score) for point in found.curve]
    lines = {"after the cut": [(1.0, found.before), *cut, *([] if found.healed else [own])]}
    if found.healed:
        lines[f"after {found.healed:,} steps of healing"] = [own]
    curves = []
    for name, points in lines.items():
        points.sort(key=lambda point: point[0])
        line = Line(tuple(100 * share for share, _ in points), tuple(s.value for _, s in points))
        curves.append(Curve(name, line, spread=tuple(score.error for _, score in points)))
    panel = Panel("held-out text", "KV bytes, % of the original", found.before.name, tuple(curves))
    return draw([panel])


def _ranks(found: Reduction) -> str:
    """Return a heat map: layers across, key and value ranks as shares of the original's."""
    from matplotlib.figure import Figure

    from headwise.report import inline_svg
    from headwise.report.figures import in_style

    with in_style():
        figure = Figure(figsize=(2.5 + 0.3 * len(found.cuts), 1.9))
        axes: Any = figure.add_subplot()
        rows = [[cut.rank for cut in found.cuts], [cut.value_rank for cut in found.cuts]]
        whole = (found.whole.rank, found.whole.value_rank)
        shares = [[each / most for each in row] for row, most in zip(rows, whole, strict=True)]
        image = axes.imshow(shares, aspect="auto", cmap="viridis", vmin=0, vmax=1)
        for row, ranks in enumerate(rows):
            for layer, rank in enumerate(ranks):
                colour = "black" if shares[row][layer] > 0.6 else "white"
                axes.text(layer, row, rank, ha="center", va="center", color=colour, fontsize=6)
        axes.set(xlabel="layer", yticks=[0, 1], title="Ranks; colour: share of the original's")
        axes.set_yticklabels([f"keys, of {whole[0]}", f"values, of {whole[1]}"])
        axes.grid(visible=False)
        figure.colorbar(image)
        figure.tight_layout()
    return inline_svg(figure)
