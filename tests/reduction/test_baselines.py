"""Every method of the benchmark cuts to the same bytes, and ours loses least by its own measure."""

import pytest
import torch
from benchmarks.bench_reduce import numbers_cached, query_moments
from benchmarks.reduce_baselines import METHODS, curves_of, cuts_of

from headwise.reduction.calibration import calibrate
from headwise.reduction.families import attention_parts
from headwise.reduction.smaller_model import cut_model


@pytest.fixture(scope="module")
def measured(tiny):
    generator = torch.Generator().manual_seed(4)
    batches = [{"input_ids": torch.randint(3, 61, (2, 20), generator=generator)} for _ in range(3)]
    model = tiny("llama")
    return model, calibrate(model, batches), query_moments(model, batches), batches


@pytest.mark.parametrize("method", METHODS)
def test_methods_meet_the_bytes(measured, method):
    model, moments, queries, batches = measured
    parts = attention_parts(model)
    share = 0.75 if method == "thin_keys" else 0.5
    curves = curves_of(method, parts, moments, queries)
    cuts = cuts_of(method, curves, share, step=2)
    size = numbers_cached(cuts, parts[0])
    assert size <= share * 2 * 2 * 16
    assert size >= 0.8 * share * 2 * 2 * 16
    made = cut_model(model, curves, cuts)
    assert made(**batches[0]).logits.isfinite().all()


@pytest.mark.parametrize("method", [each for each in METHODS if each != "ours_pairs"])
@torch.no_grad()
def test_methods_change_nothing_at_the_full_size(measured, method):
    model, moments, queries, batches = measured
    curves = curves_of(method, attention_parts(model), moments, queries)
    made = cut_model(model, curves, cuts_of(method, curves, 1.0, step=2))
    expected = model(**batches[0]).logits
    torch.testing.assert_close(made(**batches[0]).logits, expected, rtol=1e-3, atol=1e-4)
