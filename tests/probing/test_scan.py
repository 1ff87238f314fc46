"""A scan against a dense float64 oracle, head by head."""

import math
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from headwise.attention import Causal, HeadGeometry, mha
from headwise.attention.masks import EVERYTHING, Allowed, SlidingWindow
from headwise.errors import BadInputError, ParameterError
from headwise.models import EncoderStack
from headwise.probing import LEGEND, scan, sentences, summary
from headwise.probing.numbers import COARSE, head_numbers, without_masked_rows

TOKENS = torch.randn(2, 9, 12, generator=torch.Generator().manual_seed(0))


def model():
    return EncoderStack(HeadGeometry.standard(12, heads=3), depth=2, mlp_width=16)


def test_every_number_is_that_of_the_matrix():
    layer = mha(HeadGeometry.standard(12, heads=3), temperature=0.05)
    found = scan(layer, TOKENS)
    matrices = layer.view(TOKENS).matrix().detach()
    assert [row.head for row in found.rows] == [0, 1, 2]
    for row in found.rows:
        values = torch.linalg.svdvals(matrices[:, row.head])
        energy = values.square() / values.square().sum(-1, keepdim=True)
        shares = values / values.sum(-1, keepdim=True)
        logits = layer.view(TOKENS).logits().values[:, row.head]
        wanted = {
            "rank_low": (values >= 1e-8).sum(-1),
            "rank_high": (values >= 1e-8).sum(-1),
            "coarse_rank": (values >= COARSE).sum(-1),
            "effective_rank": torch.special.entr(shares).sum(-1).exp(),
            "stable_rank": values.square().sum(-1) / values[:, 0].square(),
            "energy_90": (energy.cumsum(-1) < 0.9).sum(-1) + 1,
            "logit_scale": torch.stack([each.std() for each in logits]),
            "hardmax_rank": torch.tensor([len(each.argmax(-1).unique()) for each in logits]),
        }
        for name, each in wanted.items():
            assert getattr(row, name) == pytest.approx(float(each.double().mean()), rel=1e-9), name
        assert (row.tokens, row.head_dim, row.mask, row.dtype) == (9.0, 4, "none", "float32")
        assert row.sequences == 2


def test_planted_ranks_are_found():
    """Equal queries make equal rows: rank one; sharp causal heads on themselves: full rank."""
    layer = mha(HeadGeometry.standard(12, heads=3))
    with torch.no_grad():
        layer.projection.query.weight.zero_()
    for row in scan(layer, TOKENS).rows:
        assert (row.rank, row.coarse_rank, row.energy_90) == (1.0, 1.0, 1.0)
        assert (row.query_key_rank, row.form_rank, row.output_rank) == (0.0, 0, 1.0)
        assert row.effective_rank == pytest.approx(1.0, abs=1e-6)
        assert row.logit_scale == 0.0


def test_padding_is_left_out_and_the_mode_is_restored():
    encoder = nn.TransformerEncoderLayer(12, 3, dim_feedforward=16, batch_first=True).train()
    padded = torch.tensor([[False] * 9, [False] * 5 + [True] * 4])
    found = scan(encoder, {"src": TOKENS, "src_key_padding_mask": padded})
    assert {row.tokens for row in found.rows} == {7.0}
    assert encoder.training
    alone = [scan(encoder, TOKENS[:1]).rows[0], scan(encoder, TOKENS[1:, :5]).rows[0]]
    mean = sum(row.effective_rank for row in alone) / 2
    assert found.rows[0].effective_rank == pytest.approx(mean, rel=1e-5)


def test_rows_become_a_table_and_a_picture(tmp_path):
    found = scan(model(), (TOKENS, Causal()))
    assert found.layers == ["blocks.0.attention", "blocks.1.attention"]
    assert {row.mask for row in found.rows} == {"causal"}
    table = found.table("rank")
    assert [len(heads) for heads in table] == [3, 3]
    assert all(math.isfinite(value) for heads in table for value in heads)
    found.plot(file=tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 0
    assert len(repr(found)) < 300


def test_rows_become_a_frame():
    found = scan(model(), TOKENS)
    frame = found.to_frame()
    assert len(frame) == 6
    assert frame.coarse_rank.tolist() == [row.coarse_rank for row in found.rows]


def test_bad_activations_are_refused_with_the_layer():
    broken = model()
    with torch.no_grad():
        broken.blocks[1].attention.projection.key.weight.fill_(torch.nan)
    with pytest.raises(BadInputError, match=r"NaN or infinity in layer 'blocks\.1\.attention'"):
        scan(broken, TOKENS)


def test_planted_query_key_and_output_ranks_are_found():
    """Two of four query dimensions are silent, one value dimension alone speaks."""
    layer = mha(HeadGeometry.standard(12, heads=3), temperature=0.5)
    with torch.no_grad():
        layer.projection.query.weight.unflatten(0, (3, 4))[:, 2:] = 0
        layer.projection.value.weight.unflatten(0, (3, 4))[:, 1:] = 0
    for row in scan(layer, TOKENS).rows:
        assert (row.query_key_rank, row.logit_rank, row.form_rank) == (2.0, 2.0, 2)
        assert row.output_rank == 1.0
        assert (row.head_dim, row.value_dim) == (4, 4)


def test_the_ranks_that_suffice_suffice():
    """The head's own logits and output, cut to the reported ranks, stay as close as stated."""
    layer = mha(HeadGeometry.standard(12, heads=3), temperature=0.3)
    view, found = layer.view(TOKENS[:1]), scan(layer, TOKENS[:1])
    for row in found.rows:
        logits = view.logits().values[0, row.head]
        centred = logits - logits.mean(-1, keepdim=True)
        mixed = (view.matrix() @ view.values.double())[0, row.head]
        for matrix, rank, limit in (
            (centred, int(row.query_key_rank), 0.1 * centred.numel() ** 0.5),
            (mixed, int(row.output_rank), 0.01 * mixed.norm()),
        ):
            values = torch.linalg.svdvals(matrix)
            assert values[rank:].norm() <= limit * (1 + 1e-6)
            assert rank == 0 or values[rank - 1 :].norm() > limit * (1 - 1e-6)


def test_the_law_is_shown_only_for_masks_that_it_covers():
    from headwise import expected_rank

    rows = scan(model(), TOKENS).rows
    wanted = 9 * expected_rank(9, 4, method="instant").ratio
    assert {row.law for row in rows} == {wanted}
    assert {row.law for row in scan(model(), (TOKENS, Causal() & SlidingWindow(3))).rows} == {None}


def test_layers_and_heads_can_be_chosen():
    whole, built = None, model()
    whole = scan(built, TOKENS)
    some = scan(built, TOKENS, layers=[1], heads=[0, 2])
    assert some.rows == (whole.rows[3], whole.rows[5])
    assert scan(built, TOKENS, layers=["blocks.1.attention"], heads=[0, 2]).rows == some.rows
    assert scan(built, TOKENS, layers="blocks.1.attention", heads="0,2-2").rows == some.rows
    assert scan(built, TOKENS, layers="0-1").rows == whole.rows
    with pytest.raises(BadInputError, match=r"expected layers from 0 to 1"):
        scan(built, TOKENS, layers=[7])
    for asked in ({"heads": "2-0"}, {"layers": ""}, {"heads": "one"}):
        with pytest.raises(ParameterError, match=r"^expected .*; pass "):
            scan(built, TOKENS, **asked)


def test_another_initialisation_is_shown_next_to_it():
    one, other = model(), model()
    with torch.no_grad():
        other.blocks[0].attention.projection.query.weight.zero_()
    found = scan(one, TOKENS, against=other)
    assert found.rows == scan(one, TOKENS).rows
    assert found.initial.rows[0].coarse_rank == 1.0


def test_rows_that_attend_to_nothing_are_left_out_and_counted():
    layer = mha(HeadGeometry.standard(12, heads=3))
    allowed = torch.ones(9, 9, dtype=torch.bool).tril()
    allowed[4] = False
    view = layer.view(TOKENS[:1], mask=Allowed(allowed)).detached()
    seen = without_masked_rows(view.head(0, 1))
    assert seen[1] == 1
    rows = [i for i in range(9) if i != 4]
    logits = layer.view(TOKENS[:1], mask=Causal()).detached().logits().values[0, 1][rows]
    torch.testing.assert_close(seen[0].logits().values[0, 0], logits)
    numbers = head_numbers(view.head(0, 1))
    values = torch.linalg.svdvals(torch.softmax(logits, -1))
    assert numbers.values["rank_low"] == int((values >= 1e-8).sum())
    assert numbers.excluded == 1


def test_csv_has_every_row_and_the_start(tmp_path):
    found = scan(model(), TOKENS, against=model())
    lines = found.write_csv(tmp_path / "rows.csv").read_text().splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("layer,head,coarse_rank")
    assert "initial_coarse_rank" in lines[0]


def test_the_summary_counts_what_it_says():
    found = scan(model(), TOKENS)
    facts = summary(found)
    assert (facts.heads, facts.tokens) == (6, 9.0)
    shares = [row.coarse_rank / row.tokens for row in found.rows]
    assert facts.coarse_share == pytest.approx(sum(shares) / 6)
    slack = {
        layer: max(0, 4 - max(math.ceil(row.query_key_rank) for row in found.of_layer(layer)))
        + max(0, 4 - max(math.ceil(row.output_rank) for row in found.of_layer(layer)))
        for layer in found.layers
    }
    assert facts.saved_kv_bytes == sum(3 * 4 * each for each in slack.values())
    assert facts.kv_bytes == 2 * 3 * 4 * 8
    assert all("None" not in line for line in sentences(facts))


def test_the_page_needs_no_other_host_and_names_every_layer(tmp_path):
    found = scan(model(), TOKENS, against=model())
    text = found.report(tmp_path / "page.html").read_text()
    assert f"Ranks of {found.model}" in text
    assert text.count("<svg") == 12
    assert "blocks.1.attention" in text
    assert "src=" not in text


@pytest.mark.parametrize("mask", [EVERYTHING, Causal()])
def test_long_sequences_are_measured_without_the_matrix(mask):
    tokens = torch.randn(1, 300, 12, generator=torch.Generator().manual_seed(5))
    built = EncoderStack(HeadGeometry.standard(12, heads=2), depth=1, mlp_width=16)
    with torch.no_grad():
        built.blocks[0].attention.projection.query.weight.mul_(8)
    dense = scan(built, (tokens, mask))
    free = scan(built, (tokens, mask), longest_dense=200)
    assert "matrix" in free.notes[0]
    for one, other in zip(dense.rows, free.rows, strict=True):
        assert (one.method, other.method) == ("dense", "matrix-free")
        for name in ("hardmax_rank", "output_rank", "query_key_rank", "logit_rank", "law"):
            assert getattr(one, name) == getattr(other, name), name
        assert other.stable_rank == pytest.approx(one.stable_rank, rel=1e-4)
        assert other.logit_scale == pytest.approx(one.logit_scale, rel=1e-9)
        error = other.effective_rank_error
        assert abs(other.effective_rank - one.effective_rank) < 4 * error + 1e-3
        assert (other.rank_low, other.rank) == (None, None)
        assert other.energy_90 in (None, one.energy_90)
        assert other.coarse_rank in (None, one.coarse_rank)


def test_a_layer_called_twice_saves_its_parameters_once():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = mha(HeadGeometry.standard(12, heads=3))
            with torch.no_grad():
                self.layer.projection.query.weight.unflatten(0, (3, 4))[:, 2:] = 0

        def forward(self, tokens):
            return self.layer(self.layer(tokens))

    found = replace(scan(Shared(), TOKENS), width=12)
    once = replace(found, rows=tuple(row for row in found.rows if "@" not in row.layer))
    both, one = summary(found), summary(once)
    assert one.saved_parameters >= 12 * 6 * 2
    assert both.saved_parameters <= one.saved_parameters


def test_no_saving_is_derived_from_heads_that_need_no_query_key_rank():
    built = model()
    with torch.no_grad():
        for block in built.blocks:
            block.attention.projection.query.weight.zero_()
    facts = summary(scan(built, TOKENS))
    assert facts.uniform_heads == facts.heads == 6
    assert facts.saved_parameters is facts.saved_kv_bytes is None
    told = " ".join(sentences(facts))
    assert "The logits of 6 of 6 heads vary by less than 0.1" in told
    assert "The model looks untrained, so no saving is stated." in told
    assert "would save" not in told


def test_a_layer_of_uniform_heads_adds_nothing_to_the_saving():
    built = model()
    found = scan(built, TOKENS)
    first = found.layers[0]
    rows = tuple(
        replace(row, query_key_rank=0.0, output_rank=1.0) if row.layer == first else row
        for row in found.rows
    )
    three = [row for row in found.rows if row.layer != first]
    third = tuple(replace(row, layer=f"{row.layer}.copy") for row in three)
    sizes = found.kv_heads | {f"{row.layer}.copy": 3 for row in three}
    facts = summary(replace(found, rows=rows + third, kv_heads=sizes))
    alone = summary(replace(found, rows=tuple(three) + third, kv_heads=sizes))
    assert facts.uniform_heads == 3
    assert facts.saved_kv_bytes == alone.saved_kv_bytes
    assert "No saving is derived from a layer of such heads alone." in " ".join(sentences(facts))


def test_the_accuracy_of_logits_is_named_alike_everywhere(tmp_path):
    found = scan(model(), TOKENS)
    page = found.report(tmp_path / "page.html").read_text()
    told = " ".join([*sentences(summary(found)), *LEGEND, page])
    assert told.count("in root mean square") >= 4
    assert "0.1 nat" not in told


def test_a_column_is_called_alike_in_the_terminal_and_on_the_page(tmp_path):
    """ "logits" was the rank of the logits on the page, and their deviation in the terminal."""
    page = scan(model(), TOKENS).report(tmp_path / "page.html").read_text()
    head = re.search("<thead>.*?</thead>", page, re.DOTALL)
    assert head is not None
    columns = re.findall("<th[^>]*>(.*?)</th>", head[0])
    assert {"logit rank", "logit scale", "energy 90%"} < set(columns) and "logits" not in columns
    after = page[page.index("</table>") :]
    assert all(f"{name}: " in after for name in ("law", "energy 90%", "logit rank", "W_QᵀW_K"))
    assert "logit scale: standard deviation of the logits" in after
    assert "logit scale: standard deviation of the logits" in " ".join(LEGEND)


def test_whole_numbers_are_whole_in_csv(tmp_path):
    lines = scan(model(), TOKENS).write_csv(tmp_path / "rows.csv").read_text().splitlines()
    first = dict(zip(lines[0].split(","), lines[1].split(","), strict=True))
    assert first["rank_low"].isdecimal() and first["head_dim"].isdecimal()
    assert all(not cell.endswith(".0") for line in lines for cell in line.split(","))


def test_sentences_say_what_few_and_many_layers_do():
    facts = summary(scan(mha(HeadGeometry.standard(12, heads=3)), TOKENS))
    few = replace(facts, heads=8, layers=3, full_heads=0, using_layers=())
    told = " ".join(sentences(few))
    assert "0 of 8 heads have (almost) full rank at 1e-8." in told
    assert "No layer uses half of its rank; " in told
    told = " ".join(sentences(replace(few, full_heads=5, using_layers=("a",))))
    assert (
        "5 of 8 heads have (almost) full rank at 1e-8: at that tolerance rank hardly tells" in told
    )
    assert "1 layer uses at least half of its rank; " in told
    assert "2 layers use at" in " ".join(sentences(replace(few, using_layers=("a", "b"))))
