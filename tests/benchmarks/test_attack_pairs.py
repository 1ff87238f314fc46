"""Attacks on counts from queries and keys, and on compiled code: short runs, and planted faults."""

import random
import shutil
from collections import Counter

import mpmath
import numpy as np
import pytest
import torch
from benchmarks.attack import compiled
from benchmarks.attack.certificates import attack, target
from benchmarks.attack.oracle import exact_count_of_weights, exact_softmax_count
from benchmarks.attack.pairs import PAIRS, Pair

from headwise.attention import logits, scores, view


def wrong_counts(seeds):
    return [
        wrong for seed in seeds for wrong in attack(target(seed, 12, "pairs"), "cpu", Counter())
    ]


def test_a_short_attack_on_queries_and_keys_finds_nothing():
    assert wrong_counts(range(2 * len(PAIRS))) == []


def test_logits_that_pass_for_exact_are_found(monkeypatch):
    nothing = torch.zeros(())
    monkeypatch.setattr(scores, "product_error", lambda q, k, t: nothing.expand(q.shape[:-1]))
    assert wrong_counts(range(1, 80, len(PAIRS)))  # products that underflow


def test_biases_that_pass_for_exact_are_found(monkeypatch):
    monkeypatch.setattr(
        scores, "_added", lambda mask, values, grid: values.new_zeros(values.shape[:-1])
    )
    assert wrong_counts([28_000_540])


def test_numbers_that_storage_hides_are_found(monkeypatch):
    monkeypatch.setattr(scores, "_hidden", lambda q, k, q_norm, k_norm: torch.zeros(()))
    assert wrong_counts([37])


def test_products_that_overflow_unseen_are_found(monkeypatch):
    before = scores.product_error
    monkeypatch.setattr(
        scores,
        "product_error",
        lambda q, k, t: before(q, k, t).nan_to_num(posinf=1e-14),
    )
    assert wrong_counts([10])


def test_matrices_with_sinks_that_pass_for_exact_are_found(monkeypatch):
    monkeypatch.setattr(
        view, "doubt", lambda flat: torch.zeros(flat.shape[:1], dtype=torch.float64)
    )
    monkeypatch.setattr(view, "scaling", lambda flat: 0.0)
    assert wrong_counts([12_655])


def test_the_exact_logits_are_those_of_rational_arithmetic():
    pair = Pair(
        "plain", 0, np.array([[0.1, 3.0]]), np.array([[0.3, 7.0]]), 2.0, False, torch.float64
    )
    with mpmath.workprec(300):
        wanted = (mpmath.mpf(0.1) * mpmath.mpf(0.3) + 21) / 2
        assert abs(pair.exact_logits[0, 0] - wanted) < mpmath.mpf(2) ** -250


def test_both_forms_of_the_exact_count_agree():
    given = np.where(np.tri(6, dtype=bool), np.random.default_rng(0).normal(size=(6, 6)), -np.inf)
    exact = np.array([[None if x == -np.inf else mpmath.mpf(x) for x in row] for row in given])
    for epsilon in (1e-3, 0.3, 1.0):
        assert exact_count_of_weights(exact, epsilon) == exact_softmax_count(given, epsilon)


def test_products_of_huge_and_tiny_numbers_have_a_finite_error():
    """The squares of such queries overflow; the bound was infinity times zero."""
    queries, keys = torch.ones(2, 3, 2, dtype=torch.float64)
    found = logits(queries * 2.0**1000, keys * 2.0**-1000, temperature=1.0)
    assert found.values.tolist() == [[2.0] * 3] * 3
    assert 0 < float(found.row_error.max()) < 1e-12


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_short_attack_on_compiled_code_finds_nothing():
    assert compiled.attack(seed=0, minutes=0, fewest=4)["faults"] == 0


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_library_that_is_loaded_on_trust_is_found(monkeypatch, tmp_path):
    trusting = compiled.PROGRAM.replace(
        "found =", "native._is_intact = Path.exists; native._is_sound = lambda *_: True; found ="
    )
    place = compiled.Place(tmp_path, random.Random(0))
    place.prepare()
    monkeypatch.setattr(compiled, "PROGRAM", trusting)
    assert "20" in str(compiled.cached(place, "replace"))
