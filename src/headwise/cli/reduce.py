"""headwise reduce: cut the attention of a trained model to the rank it uses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from headwise.cli.console import UsageError, quieten_transformers
from headwise.cli.options import AsJson, Model, amount, number_above, whole_from

if TYPE_CHECKING:
    from headwise.reduction import Reduction

Text = Annotated[
    str,
    typer.Option(
        "--text",
        help="Text file to calibrate and to judge on; - reads stdin.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Folder to write the model to; must not exist.")
]
KvBytes = Annotated[
    str | None,
    typer.Option(
        "--kv-bytes",
        parser=amount,
        metavar="NUMBER",
        help="Budget: KV bytes per token, or a share such as 50%.",
    ),
]
Params = Annotated[
    str | None,
    typer.Option(
        "--params",
        parser=amount,
        metavar="NUMBER",
        help="Budget: parameters of the attention, or a share such as 50%.",
    ),
]
Keep = Annotated[
    float | None,
    typer.Option(
        "--keep",
        parser=number_above(0, 1),
        metavar="NUMBER",
        help="Budget: share of weighted energy each part keeps.",
    ),
]
Rank = Annotated[
    int | None,
    typer.Option(
        "--rank", parser=whole_from(1), metavar="NUMBER", help="Budget: one rank for all heads."
    ),
]
KeysCut = Annotated[
    Literal["latent", "pairs"] | None,
    typer.Option(
        "--keys",
        help="How a decoder's keys are cut: latent (less loss) or pairs (faster decoding).",
        show_default="latent",
    ),
]
Step = Annotated[
    int,
    typer.Option(
        "--step", parser=whole_from(1), metavar="NUMBER", help="Make ranks multiples of this."
    ),
]
Tokens = Annotated[
    int,
    typer.Option(
        "--tokens",
        parser=whole_from(1),
        metavar="NUMBER",
        help="Calibrate on at most this many tokens.",
    ),
]
HeldOut = Annotated[
    int,
    typer.Option(
        "--held-out",
        parser=whole_from(1),
        metavar="NUMBER",
        help="Judge on at most this many tokens.",
    ),
]
Length = Annotated[
    int | None,
    typer.Option(
        "--length",
        parser=whole_from(8),
        metavar="NUMBER",
        help="Tokens of a sequence.",
        show_default="512, encoders 64",
    ),
]
Heal = Annotated[
    int,
    typer.Option(
        "--heal",
        parser=whole_from(0),
        metavar="NUMBER",
        help="Train the cut layers for this many steps.",
    ),
]
WithCurve = Annotated[bool, typer.Option("--curve", help="Score the model at other budgets too.")]
Context = Annotated[
    int,
    typer.Option(
        "--context",
        parser=whole_from(0),
        metavar="NUMBER",
        help="Tokens in the cache to time decoding; 0: no times.",
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", parser=whole_from(0), metavar="NUMBER", help="Seed of the random draws."
    ),
]
ReportFile = Annotated[
    Path | None, typer.Option("--report", help="Write a report with figures: report.html.")
]


def reduce(
    model: Model,
    text: Text,
    out: Out = None,
    kv_bytes: KvBytes = None,
    params: Params = None,
    keep: Keep = None,
    rank: Rank = None,
    keys: KeysCut = None,
    step: Step = 8,
    tokens: Tokens = 8192,
    held_out: HeldOut = 4096,
    length: Length = None,
    heal: Heal = 0,
    curve: WithCurve = False,
    context: Context = 2048,
    seed: Seed = 0,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Cut the attention of a trained model to the rank that it uses, and measure the damage.

    Pass one budget: --kv-bytes, --params, --keep or --rank. Run the same command again after it was
    stopped: the calibration is kept.

    \b
    headwise reduce model_folder --text text.txt --kv-bytes 50% --out smaller
    """
    budgets = {"--kv-bytes": kv_bytes, "--params": params, "--keep": keep, "--rank": rank}
    given = [option for option, value in budgets.items() if value is not None]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise UsageError(f"expected one budget of {', '.join(budgets)}, got {got}; pass one")
    content = _content(text)
    from headwise.cli.progress_bar import progress_bar
    from headwise.reduction import CURVE, reduce_model, reduction_page

    quieten_transformers()
    found = reduce_model(
        model,
        content,
        out=out,
        kv_bytes=kv_bytes,
        params=params,
        keep=keep,
        rank=rank,
        keys=keys,
        step=step,
        tokens=tokens,
        held_out=held_out,
        length=length,
        heal=heal,
        curve=CURVE if curve else (),
        context=context,
        seed=seed,
        progress=progress_bar(),
    )
    if as_json:
        from headwise.cli.console import print_json

        print_json({"model": model, **found.as_dict()})
    else:
        _print(found)
    if report is not None:
        from headwise.cli.console import note
        from headwise.report import write_page

        write_page(reduction_page(found, model), report)
        note(f"report: {report}")


def _content(text: str) -> str:
    if text == "-":
        return sys.stdin.read()
    try:
        return Path(text).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"--text {text!r} is not a readable UTF-8 file; pass one") from None


def _print(found: Reduction) -> None:
    from rich.table import Table

    from headwise.cli.console import screen
    from headwise.reduction import reduction_rows

    out = screen()
    cuts = Table("layer", "keys", "key rank", "value rank", box=None)
    for layer, cut in enumerate(found.cuts):
        cuts.add_row(str(layer), cut.keys, str(cut.rank), str(cut.value_rank))
    out.print(cuts)
    table = Table("", "before", "after", box=None)
    for row in reduction_rows(found):
        table.add_row(*row)
    out.print(table)
    for point in found.curve:
        out.print(
            f"{point.kv_bytes:,} KV bytes per token ({point.share:.0%}): {point.score.name} "
            f"{point.score.value:.4g} ± {point.score.error:.2g}"
        )
    if found.folder is not None:
        out.print(f"written: {found.folder}; load it with headwise.load({found.folder!r})")
