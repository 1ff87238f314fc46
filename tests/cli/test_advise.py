import json
import time

import numpy as np
import pytest

from advice.models import T5, VIT
from headwise.advice.result import of_plateau
from headwise.geometry import HeadGeometry
from headwise.theory import ready_ratio

NUMBERS = ("advise", "--length", 128, "--width", 64)


@pytest.fixture
def ran(headwise):
    """An answer that must be well, as JSON."""

    def run(*arguments: object) -> dict:
        found = headwise("advise", *arguments, "--json")
        assert found.code == 0, found.err
        return json.loads(found.out)

    return run


def test_the_default_is_the_digits_and_repeats(ran):
    first, again = ran(), ran("--data", "digits")
    assert first == again
    assert (first["length"], first["width"]) == (16, 64)
    assert first["tokens"]["sequences"] == 1797
    assert max(first["curves"][0]["half_width"]) <= 0.03


def test_under_a_causal_mask_the_law_is_that_of_the_mask(headwise, ran):
    found = ran("--length", 128, "--width", 64, "--mask", "causal")
    (curve,) = found["curves"]
    assert (curve["mask"], curve["plateau"]) == ("causal", 129 / 256)
    assert curve["mean"][-1] == ready_ratio(128, 64, "causal").ratio
    without = ran("--length", 128, "--width", 64)
    assert found["rank"]["mixing"] < without["rank"]["mixing"]
    said = " ".join(headwise(*NUMBERS, "--mask", "causal").out.split())
    assert "finite law, causal" in said
    assert "(n + 1) / 2n = 0.50, without the mask 0.63" in said


def test_nearly_orthonormal_tokens_have_the_law_of_their_mask(headwise, ran, tmp_path):
    path = tmp_path / "tokens.npy"
    np.save(path, np.random.default_rng(0).standard_normal((4, 24, 256)))
    found = ran("--data", path, "--mask", "causal")
    names = [(curve["start"], curve["mask"]) for curve in found["curves"]]
    assert names[-2:] == [("paper", "causal"), ("law", "causal")]
    assert "finite law, causal" in headwise("advise", "--data", path, "--mask", "causal").out


def test_it_prints_what_its_json_says(headwise, ran):
    found = ran("--length", 128, "--width", 64)
    out = headwise(*NUMBERS).out
    best = found["choices"][0]
    assert f"of rank {best['geometry']['qk_rank']} at width 64" in out
    row = next(line for line in out.splitlines() if "1 advised" in line)
    assert of_plateau(best["plateau_share"]) in row
    assert "head dimension" in out
    assert found["need"] in " ".join(out.split())
    headline, caveat = (out.index(words) for words in ("at width 64:", "No data were given:"))
    assert "\n\n" not in out[headline:caveat]
    assert "Not promised" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out


@pytest.mark.parametrize("width", [32, 4096])
def test_the_most_heads_leave_the_tables_whole(headwise, width):
    out = headwise("advise", "--length", 64, "--width", width, "--heads", 65_536).out
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    assert "1 advised" in out


def test_numbers_alone_need_no_torch(headwise_process):
    from subprocess import run
    from sys import executable

    code = (
        "import sys\nfrom headwise.cli.app import main\n"
        "try:\n    main(['advise', '--length', '512', '--width', '768'])\n"
        "except SystemExit as stopped:\n    assert not stopped.code\n"
        "print('torch' in sys.modules)"
    )
    done = run([executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_numbers_and_configs_are_quick(headwise, tmp_path):
    """In a warm process; what importing costs is held by the test that torch stays out."""
    config = tmp_path / "config.json"
    config.write_text('{"n_embd": 768, "n_head": 12, "n_positions": 1024}')
    headwise("advise", "--length", 128, "--width", 64)  # warms it, whichever test came before
    for arguments in (("--length", 512, "--width", 768), ("--config", config)):
        before = time.process_time()
        assert headwise("advise", *arguments).code == 0
        assert time.process_time() - before < 0.5


def test_a_config_is_judged(ran, tmp_path):
    config = tmp_path / "config.json"
    config.write_text('{"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_positions": 1024}')
    found = ran("--config", config)
    assert found["references"][0]["role"] == "present"
    assert found["findings"][0].startswith("Present: 12 heads of rank 64")
    measured = ran("--config", config, "--data", "digits", "--patch", 4)
    assert (measured["width"], measured["length"]) == (768, 4)


@pytest.mark.parametrize(
    ("asked", "measured", "context"), [((), 16, 1024), (("--length", 8), 8, 8)]
)
def test_flops_of_a_model_are_those_at_its_context_or_at_the_length_named(
    ran, headwise, tmp_path, asked, measured, context
):
    config = tmp_path / "config.json"
    config.write_text('{"n_embd": 64, "n_head": 4, "n_positions": 1024}')
    found = ran("--config", config, "--data", "digits", *asked)
    assert (found["length"], found["context"]) == (measured, context)
    wanted = HeadGeometry.standard(64, heads=4).flops_per_token(context)
    assert found["references"][0]["costs"]["flops_per_token"] == wanted
    said = f"Length: measured at {measured} tokens, the model takes 1,024."
    assert any(line.startswith(said) for line in found["findings"])
    out = headwise("advise", "--config", config, "--data", "digits", *asked).out
    assert f"FLOPs per token: at {context:,} tokens of context." in out


def test_without_a_context_of_the_model_flops_are_those_at_the_length_of_the_data(ran, files):
    found = ran("--config", files / "small.json", "--data", "digits")
    assert (found["length"], found["context"]) == (16, 16)
    assert not any(line.startswith("Length: ") for line in found["findings"])


@pytest.mark.parametrize("group", [1, 4])
def test_a_model_is_what_costs_are_compared_with(ran, headwise, tmp_path, group):
    config, page = tmp_path / "config.json", tmp_path / "report.html"
    sizes = {"hidden_size": 128, "num_attention_heads": 8, "num_key_value_heads": 8 // group}
    config.write_text(json.dumps(sizes | {"max_position_embeddings": 4096}))
    arguments = ("--config", config, "--data", "digits")
    found = ran(*arguments)
    present = found["references"][0]
    assert present["role"] == "present"
    assert set(present["against_present"].values()) == {1.0}
    for choice in (*found["choices"], *found["references"]):
        for name, share in choice["against_present"].items():
            assert share == choice["costs"][name] / present["costs"][name]
    out = headwise("advise", *arguments, "--out", page).out
    assert out.count("present largest") == 3
    half = next(choice for choice in found["choices"] if choice["role"] == "half advised")
    row = [line for line in out.splitlines() if " half advised " in line][-1]
    assert f" {half['against_present']['parameters']:.0%} " in row
    text = page.read_text()
    assert "of present" in text and "of habit<" not in text
    assert "Against the present model: " in text and "Against habit" not in text


def test_the_costs_of_a_large_model_fit_the_terminal(headwise, tmp_path):
    config = tmp_path / "config.json"
    sizes = {"hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8}
    config.write_text(json.dumps(sizes | {"max_position_embeddings": 131_072}))
    for asked in ((), ("--rank", 2), ("--params", 200_000)):
        out = headwise("advise", "--config", config, *asked).out
        assert out.count("present largest") == 3
        assert max(map(len, out.splitlines())) <= 80
        assert "…" not in out


def test_without_a_model_costs_are_compared_with_habit(ran, headwise):
    found = ran("--length", 128, "--width", 64)
    assert found["choices"][0]["against_present"] is None
    assert headwise(*NUMBERS).out.count("habit largest") == 3


def test_the_report_and_the_export_are_written(headwise, tmp_path):
    out = tmp_path / "deep" / "report.html"
    ran = headwise(*NUMBERS, "--out", out)
    assert f"report: {out}" in " ".join(ran.out.split())
    assert "<svg" in out.read_text()
    exported = headwise(*NUMBERS, "--multiple-of", 8, "--export", "qwen3")
    assert json.loads(exported.out)["head_dim"] % 8 == 0
    assert exported.err.count("\n") == 2
    assert "vocab_size 32000" in exported.err


def test_an_export_keeps_the_vocabulary_that_was_told(headwise, files):
    arguments = ("--data", files / "ids.npy", "--multiple-of", 2, "--export", "mistral")
    told = headwise("advise", *arguments, "--vocabulary", 700)
    assert json.loads(told.out)["vocab_size"] == 700
    assert "vocab_size" not in told.err
    untold = headwise("advise", *arguments)
    assert json.loads(untold.out)["vocab_size"] == 32_000
    assert "vocab_size 32000" in untold.err


def test_budget_and_constraints_reach_the_answer(ran):
    found = ran("--length", 128, "--width", 64, "--params", 4096, "--kv-bytes", 64, "--kind", "gqa")
    for choice in found["choices"]:
        assert choice["costs"]["parameters"] <= 4096
        assert choice["costs"]["cache_bytes_per_token"] <= 64
    fixed = ran("--length", 128, "--width", 64, "--heads", 3, "--rank", 5)["choices"][0]
    assert (fixed["geometry"]["heads"], fixed["geometry"]["qk_rank"]) == (3, 5)


@pytest.mark.parametrize(("written", "plain"), [("1e4", "10000"), ("8.192e3", "8192")])
def test_limits_may_be_written_with_an_exponent(ran, written, plain):
    for option in ("--params", "--kv-bytes"):
        numbers = ("--length", 128, "--width", 64, option)
        assert ran(*numbers, written) == ran(*numbers, plain)


def test_every_form_explains_the_lookup_error_and_none_says_at_least_nothing(headwise, tmp_path):
    page = tmp_path / "report.html"
    out = headwise("advise", "--out", page).out
    for text in (" ".join(out.split()), page.read_text()):
        assert "Lookup error: the least mean squared error" in text
        assert "Need: 90% of the plateau at the lower end of the band (mixing), which " in text
        assert "Whole values: values as wide as the layer" in text
        assert "≥ 0.000" not in text


def test_what_falls_short_is_said_in_the_terminal_and_on_the_page(headwise, ran, tmp_path):
    page = tmp_path / "report.html"
    numbers = ("--length", 512, "--width", 768, "--params", 300_000, "--heads", 8)
    out = headwise("advise", *numbers, "--out", page).out
    best = ran(*numbers)["choices"][0]
    assert not best["meets"]
    for text in (" ".join(out.split()), page.read_text()):
        assert "It does not meet the need: mixing asks for 90% of the plateau, as rank 96" in text
    row = next(line for line in out.splitlines() if "1 limited rank" in line)
    assert row.split()[-3] == "no"
    assert "does not meet the need: mixing asks for 90% of the plateau" in page.read_text()


def test_a_causal_mask_is_measured_or_said_not_to_be(ran, headwise, tmp_path):
    found = ran("--mask", "causal", "--patch", 4)
    assert found["mask"] == "causal"
    assert [curve["mask"] for curve in found["curves"]] == ["none", "causal", "causal"]
    out = headwise("advise", "--mask", "causal", "--patch", 4).out
    assert max(map(len, out.splitlines())) <= 80
    numbers = ran("--length", 128, "--width", 64, "--mask", "causal")
    assert any("(n + 1) / 2n = 0.50" in line for line in numbers["findings"])
    config = tmp_path / "config.json"
    config.write_text('{"n_embd": 64, "n_head": 4, "architectures": ["GPT2LMHeadModel"]}')
    assert ran("--config", config)["mask"] == "causal"
    assert ran("--config", config, "--mask", "none")["mask"] == "none"


def test_a_text_of_five_words_is_said_to_be_little(ran, tmp_path):
    text = tmp_path / "note.txt"
    text.write_text("one two three four five")
    found = ran("--data", text)["findings"]
    assert any(line.startswith("Few tokens: 5 in all were looked at") for line in found)
    text.write_text("one two three four five " * 200)
    assert not any(line.startswith("Few tokens") for line in ran("--data", text)["findings"])


@pytest.mark.parametrize("length", [16, 512, 5000, 10**9])
def test_advise_and_law_give_the_same_numbers(headwise, ran, length):
    curve = ran("--length", length, "--width", 64)["curves"][0]
    shown = dict(zip(curve["head_dims"], curve["mean"], strict=True))
    law = json.loads(headwise("law", "--length", length, "--json").out)
    table = dict(zip(law["head_dim"], law["ratio"], strict=True))
    shared = sorted(set(shown) & set(table))
    assert {1, 2, 4, 8, 16, 32, 64} <= set(shared)
    assert [shown[dim] for dim in shared] == [table[dim] for dim in shared]
    dims = (2, 3, 12, 16) if length < 10**9 else (2, 16)
    for dim in dims:
        alone = json.loads(headwise("law", "--length", length, "--head-dim", dim, "--json").out)
        assert alone["ratio"] == shown[dim]


def test_slow_work_is_told_of_beside_json(headwise, monkeypatch):
    monkeypatch.setattr("headwise.cli.progress_bar.PATIENCE", 0.0)
    found = headwise("advise", "--patch", 4, "--json")
    assert json.loads(found.out)["length"] == 4
    assert found.err.startswith("headwise: measuring ranks: 0/")


def test_the_law_under_a_causal_mask_is_drawn(headwise, tmp_path):
    config = tmp_path / "config.json"
    config.write_text('{"n_embd": 64, "n_head": 4, "architectures": ["GPT2LMHeadModel"]}')
    for arguments in (("--config", config), ("--length", 64, "--width", 32, "--mask", "causal")):
        ran = headwise("advise", *arguments)
        assert ran.code == 0, ran.err
        assert "finite law, causal" in ran.out
        assert max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.parametrize("form", ["qwen3", "mistral", "deepseek_v3"])
@pytest.mark.parametrize("config", [VIT, T5, {"model_type": "bert", "n_embd": 768, "n_head": 12}])
def test_an_encoder_exported_as_a_decoder_is_said_to_be(headwise, tmp_path, form, config):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    kind = ("--kind", "mla") if form == "deepseek_v3" else ()
    asked = ("advise", "--config", path, "--length", 64, "--multiple-of", 2, *kind, "--export")
    words = "ForCausalLM has a causal mask, and this was judged without one"
    assert words in headwise(*asked, form).err
    assert words not in headwise(*asked, form, "--mask", "causal").err
    assert words not in headwise(*asked, "torch").err
