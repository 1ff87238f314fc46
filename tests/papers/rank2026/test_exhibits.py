"""Every exhibit: its specs hold together, and its verdicts and claims can fail."""

import json
import math

import pytest

from headwise.experiments.kinds import Kinds
from headwise.papers.catalogue import CATALOGUE, ENTRIES, chosen
from headwise.papers.comparison import FLOOR, Cell, verdict, within_noise
from headwise.papers.exhibit import Claim, Scale
from headwise.papers.kinds.rank_rows import Pooled, falls, grows
from headwise.papers.rank2026.table_1 import HEAD_DIMS
from headwise.runs import Provenance, Record, Records, parsed_spec
from headwise.theory.barrier import rank_barrier

FOUND = Provenance("0.1.0", "2.13.0", "cpu", "float64", 0.1, "headwise reproduce", 0)
OFFERED = [(exhibit, scale) for exhibit in CATALOGUE for scale in exhibit.scales]
IDS = [f"{exhibit.name}-{scale.value}" for exhibit, scale in OFFERED]
RANK2026 = {exhibit.name.partition("/")[2]: exhibit for exhibit in chosen(["rank2026"])}


@pytest.mark.parametrize(("exhibit", "scale"), OFFERED, ids=IDS)
def test_specs_are_known_kinds_and_all_different(exhibit, scale):
    specs = exhibit.specs(scale)
    assert specs
    assert len({spec.key for spec in specs}) == len(specs)
    for spec in specs:
        again = parsed_spec(Kinds, json.loads(spec.model_dump_json()))
        assert again.key == spec.key


def test_the_catalogue_says_what_the_exhibits_say():
    for entry, exhibit in zip(ENTRIES, CATALOGUE, strict=True):
        assert (entry.name, entry.title, entry.scales) == (
            exhibit.name,
            exhibit.title,
            tuple(exhibit.scales),
        )


def test_every_exhibit_has_a_name_a_caption_and_a_miniature():
    assert len({exhibit.name for exhibit in CATALOGUE}) == len(CATALOGUE)
    for exhibit in CATALOGUE:
        assert exhibit.caption.endswith(".")
        assert Scale.MINIATURE in exhibit.scales


def test_paper_scale_is_what_is_printed():
    table = RANK2026["table_1"].specs(Scale.PAPER)
    measured = [spec for spec in table if spec.kind == "measure_rank"]
    assert {spec.batch for spec in measured} == {32}
    assert {spec.heads for spec in measured} == {None}
    assert {spec.tokens for spec in measured} == {25, 50, 100, 200}
    heats = {
        s.temperature
        for s in RANK2026["figure_5b"].specs(Scale.PAPER)
        if "temperature" in s.content
    }
    assert heats == {1e-5, 1e-3, 1e-1, 1.0}


def law_row(spec, level=0.6):
    soft = {"softmax_ratio": level, "softmax_error": 0.01, "softmax_valid": True}
    return {"barrier": 0.634, "law": level, "ratio": level, "error": 0.0, "method": "law", **soft}


def measured_row(mean):
    return {
        "layer": 1,
        "mean": mean,
        "std": 0.03,
        "count": 32,
        "stderr": 0.001,
        "undecided": 0,
        "methods": {"near-hardmax": 32},
        "logit_size": 10.0,
        "input_mean": 0.0,
        "input_spread": 1.0,
        "collapse": 0.9,
    }


def planted(exhibit, mean):
    """The exhibit at paper scale as if every measured mean were ``mean(spec)``."""
    records = []
    for spec in exhibit.specs(Scale.PAPER):
        row = law_row(spec) if spec.kind == "predict_rank" else measured_row(mean(spec))
        records.append(Record(spec.key, spec.content, (row,), FOUND))
    return exhibit.presented(Records(records), Scale.PAPER)


def saturating(spec):
    return 0.63 * (1 - math.exp(-((spec.head_dim / 12) ** 0.8)))


def flat(spec):
    return 0.3


@pytest.mark.parametrize(("name", "key"), [("table_1", "tokens"), ("table_2", "inputs")])
def test_a_planted_wrong_value_differs_and_all_others_agree(name, key):
    exhibit = RANK2026[name]
    from headwise.papers.printed import printed_table

    lines = printed_table(f"rank2026_{name}")
    printed = {(line[key], int(line["head_dim"])): float(line["mean"]) for line in lines}

    def as_printed(spec):
        return printed[(str(getattr(spec, key)), spec.head_dim)]

    def means(mean):
        return planted(exhibit, mean).cells[: len(lines)]

    assert verdict(means(as_printed)) == f"all {len(lines)} agree"
    wrong = (lines[9][key], int(lines[9]["head_dim"]))

    def one_wrong(spec):
        there = (str(getattr(spec, key)), spec.head_dim) == wrong
        return as_printed(spec) + 1.2 * FLOOR * there

    assert [cell.agrees for cell in means(one_wrong)] == [
        number != 9 for number in range(len(lines))
    ]


@pytest.mark.parametrize("name", ["figure_1", "table_1", "table_2", "figure_2c"])
def test_claims_of_saturation_hold_where_they_should_and_fail_where_not(name):
    exhibit = RANK2026[name]
    if name != "table_1":  # its last claim compares lengths
        assert all(claim.holds for claim in planted(exhibit, saturating).claims)
    level = [c for c in planted(exhibit, flat).claims if "hardly matters" not in c.words]
    assert not any(claim.holds for claim in level)


def test_widths_and_temperatures_that_matter_are_noticed():
    narrow = planted(RANK2026["table_2"], lambda s: 0.5 + 0.06 * (s.inputs == "uniform(-1,1)"))
    assert [c.holds for c in narrow.claims if "hardly matters" in c.words] == [False]
    for name, field in (("figure_5a", "width"), ("figure_5b", "temperature")):
        first, *_ = planted(RANK2026[name], saturating).claims
        assert first.holds
        changed, *_ = planted(
            RANK2026[name], lambda spec, field=field: 0.1 + 0.05 * math.log(getattr(spec, field))
        ).claims
        assert "hardly matters" in changed.words
        assert not changed.holds


def stack_records(mean, collapse):
    exhibit = RANK2026["figure_5c"]
    records = []
    for spec in exhibit.specs(Scale.PAPER):
        rows = tuple(
            measured_row(mean(spec, layer)) | {"layer": layer, "collapse": collapse(spec, layer)}
            for layer in spec.layers
        )
        records.append(Record(spec.key, spec.content, rows, FOUND))
    return exhibit.presented(Records(records), Scale.PAPER)


def test_depth_and_skip_connections_are_judged_from_rows():
    falling = stack_records(
        lambda spec, layer: 0.6 / layer,
        lambda spec, layer: 0.9 if spec.skip else 0.9 / layer,
    )
    # The second claim: every layer levels off near 0.63.
    assert [claim.holds for claim in falling.claims] == [True, False, True, True, True, True]
    level = stack_records(lambda spec, layer: 0.63, lambda spec, layer: 0.9)
    assert [claim.holds for claim in level.claims][:2] == [False, True]
    rising = stack_records(lambda spec, layer: 0.05 * layer, lambda spec, layer: 0.9)
    assert [claim.holds for claim in rising.claims] == [False] * 6
    assert "at d_h = no head dimension." in rising.remarks[0]
    assert "at d_h = 2, 4, 8, 16, 32, 64, 96, 192." in falling.remarks[0]
    bumpy = stack_records(
        lambda spec, layer: 0.6 / layer + 0.1 * (layer == 8), lambda spec, layer: 0.9
    )
    assert [claim.holds for claim in bumpy.claims][:4] == [True, False, True, False]


def test_the_right_reading_of_the_mixtures_is_named():
    def centred(spec):
        return saturating(spec) * (0.7 if "(0,1), half" in spec.inputs else 1.0)

    shown = planted(RANK2026["figure_2c"], centred)
    assert "Only where rand is U(−1, 1) does rank level off" in shown.remarks[-1]
    assert "None of the two" in planted(RANK2026["figure_2c"], flat).remarks[-1]
    assert "Both of the two" in planted(RANK2026["figure_2c"], saturating).remarks[-1]


def test_undecided_counts_are_stressed():
    exhibit = RANK2026["figure_5b"]
    records = []
    for spec in exhibit.specs(Scale.PAPER):
        row = law_row(spec) if spec.kind == "predict_rank" else measured_row(0.5)
        if spec.content.get("temperature") == 1e-5:
            row = row | {"undecided": 2}
        records.append(Record(spec.key, spec.content, (row,), FOUND))
    (table,) = exhibit.presented(Records(records), Scale.PAPER).tables
    assert table.stressed == frozenset({(0, 2)})
    assert table.rows[0][2] > 0


def test_a_choice_that_rests_on_a_mean_not_found_again_is_named():
    def lower(spec):
        return 0.58 if (spec.tokens, spec.head_dim) == (25, 16) else saturating(spec)

    shown = planted(RANK2026["table_1"], lower)
    named = [words for words in shown.remarks if "rests on a published mean" in words]
    assert any("of 25 tokens, 16, rests on a published mean of 0.606" in words for words in named)


def test_critical_head_dimensions_are_compared_and_can_agree_or_differ():
    """Every row gains 0.05 up to a planted one, and nothing after it."""
    printed = {25: 16, 50: 32, 100: 48, 200: 64}

    def stopping_at(critical):
        def mean(spec):
            rows = [r for r in HEAD_DIMS if r <= min(spec.head_dim, critical[spec.tokens])]
            return 0.05 * len(rows)

        return planted(RANK2026["table_1"], mean).cells[36:]

    assert [cell.verdict for cell in stopping_at(printed)] == ["agrees"] * 4
    late = stopping_at(printed | {50: 48})
    assert [(cell.measured, cell.verdict) for cell in late] == [
        *((16, "agrees"), (48, "differs"), (48, "agrees"), (64, "agrees")),
    ]


def test_names_on_the_axis_have_room():
    panels = planted(RANK2026["table_1"], saturating).panels
    assert panels[0].x_ticks == (2, 4, 8, 16, 32, 48, 64, 96)


def test_a_rank_above_the_bound_breaks_the_claim():
    exhibit = RANK2026["theorem_1"]

    def shown(factor, holds=True):
        records = []
        for spec in exhibit.specs(Scale.PAPER):
            if spec.kind == "simulate_rank":
                mean = factor * rank_barrier(spec.tokens) / spec.tokens
                row = {"mean": mean, "stderr": 0.0005, "draws": spec.draws}
            else:
                row = {"says": "", "observed": 0.0, "stderr": 0.0, "sense": "≤", "bound": 1.0}
                row |= {"holds": holds, "violator": 2.0, "violator_rejected": holds}
                row |= {"place": "", "hypothesis": "", "finding": "", "hypothesis_met": holds}
            records.append(Record(spec.key, spec.content, (row,), FOUND))
        claims = exhibit.presented(Records(records), Scale.PAPER).claims
        return {claim.words: claim.holds for claim in claims}

    assert all(shown(0.99).values())
    too_high = shown(1.01)
    assert [holds for words, holds in too_high.items() if "≤" in words] == [False] * 5
    too_low = shown(0.9)
    assert [holds for words, holds in too_low.items() if "reach" in words] == [False] * 3
    broken = shown(0.99, holds=False)
    assert [holds for words, holds in broken.items() if words.startswith("Every")] == [False] * 2


def test_orthonormality_that_is_not_as_expected_is_noticed():
    exhibit = RANK2026["figure_6"]

    def shown(factor, images=1.0):
        records = []
        for spec in exhibit.specs(Scale.PAPER):
            real = spec.kind == "image_orthonormality"
            square = (images if real else 1.0) / spec.head_dim / 1e4
            row = {"mean": math.sqrt(square), "std": 1e-6, "count": 128, "stderr": 1e-7}
            row |= {"mean_square": square * (1.0 if real else factor)}
            row |= {"square_stderr": square / 1e3}
            row |= {"tokens": 100, "available": 50_000} if real else {"expected_square": square}
            records.append(Record(spec.key, spec.content, (row,), FOUND))
        return [claim.holds for claim in exhibit.presented(Records(records), Scale.PAPER).claims]

    assert shown(1.0) == [True] * 10
    assert shown(1.01) == [True, True, False, *[True] * 7]
    assert shown(4.0) == [True, True, False, True, False, False, *[True] * 4]
    assert shown(1.0, images=50.0) == [True, True, True, False, True, True, *[False] * 4]


def test_the_rule_of_agreement():
    assert Cell("a", 0.5, 0.5149, 0.001).agrees
    assert not Cell("a", 0.5, 0.5151, 0.001).agrees
    assert Cell("a", 0.5, 0.52, 0.006, printed_stderr=0.004).agrees
    assert not Cell("a", 0.5, 0.48, 0.004, printed_stderr=0.004).agrees


def test_noise_is_no_rise():
    def points(*means):
        return {place: Pooled(mean, 0.1, 10, 0.01) for place, mean in enumerate(means)}

    assert grows(points(0.1, 0.5, 0.47, 0.6))
    assert not grows(points(0.1, 0.5, 0.4, 0.6))
    assert not grows(points(0.10, 0.11, 0.12))
    assert falls(points(0.6, 0.5, 0.1))
    assert not falls(points(0.1, 0.5, 0.6))


def test_numbers_of_the_text_are_compared_and_can_differ():
    def as_said(spec):
        levels = {2: 0.1, 4: 0.2, 8: 0.4, 16: 0.5, 32: 0.55, 64: 0.6, 96: 0.62, 192: 0.63}
        return levels[spec.head_dim]

    said = planted(RANK2026["figure_1"], as_said)
    assert [cell.printed for cell in said.cells] == [0.10, 0.01, 0.63]
    assert all(cell.agrees for cell in said.cells)
    assert not any(cell.agrees for cell in planted(RANK2026["figure_1"], flat).cells[::2])


def test_printed_claims_and_ours_are_counted_separately():
    shown = planted(RANK2026["figure_1"], saturating)
    assert len(shown.claims_by(printed=True)) == len(shown.claims) == 3
    assert Claim("it is so", True).source == "ours"
    assert Claim("it is so", True, "§2.1").source == "published, §2.1"


def test_exhibits_of_no_paper_are_listed_as_ours():
    ours = {exhibit.name for exhibit in CATALOGUE if not exhibit.printed}
    assert {name for name in ours if name.startswith("beyond/")} == {
        exhibit.name for exhibit in CATALOGUE if exhibit.name.startswith("beyond/")
    }
    assert "heads2024/figure_saturation" in ours
    assert "rank2026/table_1" not in ours


def test_agreement_within_standard_errors_is_counted_separately():
    cells = [Cell("a", 0.5, 0.51, 0.001), Cell("b", 0.5, 0.502, 0.001)]
    assert (verdict(cells), within_noise(cells)) == ("all 2 agree", "1 of 2")


def real_ranks(name, mean, scale=Scale.LAPTOP):
    """An exhibit on real data as if every measured mean were ``mean(spec)``."""
    exhibit, records = RANK2026[name], []
    for spec in exhibit.specs(scale):
        tokens = spec.content.get("tokens", 64)
        facts = {"tokens": tokens, "distinct": 0.6, "available": 10_000}
        rows = (law_row(spec),)
        if spec.kind != "predict_rank":
            rows = tuple(measured_row(mean(spec)) | facts | {"layer": n} for n in spec.layers)
        records.append(Record(spec.key, spec.content, rows, FOUND))
    return exhibit.presented(Records(records), scale)


def full_or_low(spec):
    """What was found: full at default initialisation, low with N(0, 1) weights."""
    level = 1.0 if spec.start == "model" else 0.38
    return level * (1 - math.exp(-((spec.head_dim / 2) ** 1.5)))


@pytest.mark.parametrize("name", ["figure_2b", "figure_3c", "figure_3d"])
def test_claims_on_real_data_can_hold_and_fail(name):
    shown = real_ranks(name, full_or_low)
    failing = [claim.words for claim in shown.claims if not claim.holds]
    near = [words for words in failing if "near 0.63" in words]
    capped = [words for words in failing if words not in near]
    assert all("stays below 0.63" in words and "own" in words for words in capped)
    assert (len(capped), len(near)) == ((3, 6) if name == "figure_2b" else (0, 0))
    there = real_ranks(name, lambda spec: 0.63)
    assert all(claim.holds for claim in there.claims if "near 0.63, within" in claim.words)
    rising = real_ranks(name, lambda spec: 0.01 * math.log2(spec.head_dim))
    claims = [claim for claim in rising.claims if "stays below" not in claim.words]
    claims = [claim for claim in claims if "similar curves" not in claim.words]
    assert claims
    assert not any(claim.holds for claim in claims)


def test_sets_that_differ_are_noticed():
    def apart(spec):
        return full_or_low(spec) * (0.5 if spec.dataset == "svhn" else 1.0)

    claims = real_ranks("figure_2b", apart).claims
    assert [claim.holds for claim in claims if "similar curves" in claim.words] == [False, False]


def test_subsets_are_named_with_their_size():
    remark = real_ranks("figure_2b", full_or_low).remarks[0]
    assert "SVHN (10,000 training samples of 73,257)" in remark


def test_miniatures_on_digits_claim_nothing():
    for name in ("figure_2b", "figure_3c", "figure_3d"):
        assert real_ranks(name, full_or_low, Scale.MINIATURE).claims == ()
