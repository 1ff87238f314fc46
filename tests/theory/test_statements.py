"""Each statement has a test of its name: a plain check, apart from its own simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, kl_divergence

from headwise.attention.constructions import BiasedNeighbours, TwoLayerVote, nearest_neighbour
from headwise.spectra import Estimate
from headwise.theory import barrier, separation
from headwise.theory.harmonic_bound import Values, energies, error_at, error_lower_bound
from headwise.theory.law_formula import column_share
from headwise.theory.nearest import (
    majority_vote_error,
    mean_rank_one_success,
    neighbours,
)
from headwise.theory.numerics import crossing
from headwise.theory.scaling import quantile
from headwise.theory.statements.heads_expansion import legendre, tail_energy
from headwise.theory.statements.rank_theorems import simplex
from headwise.theory.theorems import STATEMENTS


def test_every_statement_has_a_test_of_its_name():
    assert {f"test_{one.slug}" for one in STATEMENTS} <= set(globals())


def test_lemma_1():
    """All runners-up tie: the exact distance is 2(n−1)e/(1+(n−1)e), below 2(n−1)e."""
    small = math.exp(-1 / 0.3)
    exact = 2 * 9 * small / (1 + 9 * small)
    assert exact < barrier.softmax_to_hardmax(10, 1.0, 0.3) == pytest.approx(18 * small)


@pytest.mark.parametrize(("n", "from_p"), [(3, 1.54), (25, 1.32)])
def test_lemma_2(n, from_p):
    def excess(p):
        return barrier.exponential_excess(n, p) - barrier.exponential_excess_bounds(n, p)[0]

    assert excess(1.0) < 0 < excess(2.0)
    assert crossing(excess, 1.01, 2.0) == pytest.approx(from_p, abs=0.01)
    # Even n have no such failure: (1−p)^n is positive there.
    assert barrier.exponential_excess(4, 2.0) < barrier.exponential_excess_bounds(4, 2.0)[0]


def test_lemma_3():
    """Two rows by hand; and a tie, where the published formula fails."""
    chances = torch.tensor([[0.5, 0.5], [0.25, 0.75]]).double()
    assert barrier.empty_columns(chances) == pytest.approx(0.5 * 0.75 + 0.5 * 0.25)
    tied = torch.zeros(4, 4)
    assert barrier.empty_columns(torch.ones(4, 4)) == 0
    assert len(torch.unique(tied.argmax(-1))) == 1


def test_lemma_4():
    """Signs instead of Gaussian entries: uncorrelated all the same, but dependent."""
    signs = torch.randint(0, 2, (20000, 2), generator=torch.Generator().manual_seed(0)) * 2.0 - 1
    u, v = signs @ torch.tensor([0.6, 0.8]), signs @ torch.tensor([0.8, -0.6])
    assert abs(float((u * v).mean())) < 0.03
    assert abs(float((u**2 * v**2).mean()) - 1) > 0.5


def test_theorem_2():
    for n in (2, 3, 10, 1000):
        exact = n * (1 - (1 - 1 / n) ** n)
        assert exact < barrier.rank_barrier(n) < exact + 1


def test_theorem_1_barrier():
    """Gaussian inputs of width 384 are five orders of magnitude outside the hypothesis."""
    assert barrier.orthonormality_scale(100, 384, 64, 0.2) > 8e4
    gram = simplex(20) @ simplex(20).mT
    assert float((gram + 1 / 19 - 20 / 19 * torch.eye(20).double()).abs().max()) < 1e-12


def test_the_excess_of_a_simplex_grows_with_the_length():
    """Scores of a very wide head less their column means; the excess is about (ln n)/e."""
    generator, excess = torch.Generator().manual_seed(0), []
    for n, draws in ((10, 4000), (160, 1000)):
        scores = torch.randn(draws, n, n, generator=generator)
        used = [
            torch.zeros(draws, n).scatter_(1, one.argmax(-1), 1.0).sum(1)
            for one in (scores, scores - scores.mean(1, keepdim=True))
        ]
        excess.append(float((used[1] - used[0]).mean()))
    assert excess[0] == pytest.approx(0.60, abs=0.1)
    assert excess[1] == pytest.approx(1.29, abs=0.4)
    assert excess[1] > excess[0] + 0.25


def test_theorem_1_saturation():
    """With d_h = 10·ln n the share of columns falls with n; with 10·(ln n)² it does not."""
    lengths = [2**8, 2**14, 2**20, 2**30]
    log = [float(column_share(n, round(10 * math.log(n)))) for n in lengths]
    squared = [float(column_share(n, round(10 * math.log(n) ** 2))) for n in lengths]
    assert log == sorted(log, reverse=True)
    assert log[-1] < 0.35
    assert min(squared) > 0.58


def test_remark_1():
    """Logits of N(0, 1) inputs and weights at T = √d_h have standard deviation d."""
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(200, 384, generator=generator) @ torch.randn(384, 64) for _ in range(2))
    assert float((q @ k.mT).std()) / 8 == pytest.approx(384, rel=0.2)


def test_remark_2():
    """The largest of n(n−1)/2 cosines is about √(2 ln(n²)/d)."""
    assert math.sqrt(2 * math.log(100**2 / 2) / 384) == pytest.approx(0.21, abs=0.01)


def test_remark_3():
    """Also: orthogonal inputs of different norms stay below Theorem 2's bound."""
    norms = torch.logspace(-1, 1, 12, dtype=torch.float64)
    weights = torch.randn(2, 500, 12, 64, generator=torch.Generator().manual_seed(0)).double()
    query, key = torch.diag(norms) @ weights
    assert float(_ranks(query, key).mean()) < barrier.rank_barrier(12)
    # Almost orthonormal directions: the divergence of a column from E = 0 has no norms in it.
    nearly = torch.eye(12, dtype=torch.float64) + simplex(12) @ simplex(12).mT / 50
    scaled, plain = (
        kl_divergence(*(MultivariateNormal(torch.zeros(12).double(), one) for one in pair))
        for pair in (
            (torch.diag(norms) @ nearly @ torch.diag(norms), torch.diag(norms**2)),
            (nearly, torch.eye(12, dtype=torch.float64)),
        )
    )
    assert float(scaled) == pytest.approx(float(plain))
    scores = torch.tensor([[0.1, 0.3, 0.2]])
    assert torch.equal((7 * scores).argmax(-1), scores.argmax(-1))
    # Factors of its own for each column are not covered: key norms matter.
    assert not torch.equal((scores * torch.tensor([9, 1, 1])).argmax(-1), scores.argmax(-1))


def test_equations_66_69():
    d = math.ceil(2 * math.log(2 * 50**2 / 0.05) / (0.2**2 / 2 - 0.2**3 / 3))
    assert barrier.coherence_probability(50, d, 0.2) <= 0.05
    assert barrier.coherence_probability(50, d - 1, 0.2) > 0.05


def test_equations_70_72():
    """Two equal tokens always pick alike, while independent rows of N(0, XXᵀ) may not."""
    inputs = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    weights = torch.randn(100, 2, 2, generator=torch.Generator().manual_seed(0))
    choices = (inputs @ weights @ inputs.mT).argmax(-1)
    assert torch.equal(choices[:, 0], choices[:, 1])


def test_remark_5():
    assert barrier.log_constant(1e-4) * 1e-8 == pytest.approx(8, rel=1e-3)


def test_lemma_5_closed_form():
    """By hand in one dimension more than rows: a scaled rotation comes back as the rotation."""
    turn = torch.tensor([[0.6, 0.8, 0.0], [-0.8, 0.6, 0.0]]).double()
    stretched = torch.diag(torch.tensor([3.0, 0.5]).double()) @ turn
    torch.testing.assert_close(barrier.nearest_orthonormal(stretched), turn)


def test_lemma_5_distance():
    """E = ε·J, the worst case: σ₁² = 1 + εn, so the distance is about εn/2."""
    n, epsilon = 20, 1e-4
    gram = torch.eye(n, dtype=torch.float64) + epsilon
    inputs = torch.linalg.cholesky(gram)
    distance = float((inputs - barrier.nearest_orthonormal(inputs)).norm())
    assert distance == pytest.approx(epsilon * n / 2, rel=0.01)
    assert distance <= barrier.orthonormal_distance(n, epsilon)


def test_lemma_6():
    """The published probability at small t is near one; read as max(0, ·)² it is zero."""
    t = 0.01
    assert (1 - 2 * math.exp(-(t**2))) ** 2 > 0.999
    assert barrier.score_shift_probability(t) == 0
    assert barrier.score_shift_probability(2.0) == pytest.approx(0.928, abs=0.001)


def test_proposition_1():
    """The interval is open on the left: at δ = σ/3 a zero raised to σ/3 is counted."""
    low, high = barrier.stable_tolerances(0.75)
    assert (low, high) == (0.25, 0.5)
    raised = np.array([0.75, 0.25])
    assert (raised >= low).sum() == 2
    assert (raised >= np.nextafter(low, 1)).sum() == 1


def test_low_rank_bottleneck():
    target = torch.diag(torch.tensor([3.0, 2.0, 1.0]).double())
    assert [barrier.bottleneck(target, k) for k in range(4)] == pytest.approx([14, 5, 1, 0])


def test_upper_bound():
    """Two points on the axes and a third direction between them."""
    layer, points = nearest_neighbour(2), torch.eye(2, dtype=torch.float64)[None]
    y = torch.tensor([[[0.8, 0.6]]], dtype=torch.float64)
    assert torch.equal(layer(y, points)[0, 0], points[0, 0])


def test_reduction_to_sgn():
    """f·x = sgn(xᵀy)/√2 for an orthonormal pair."""
    pair, y = torch.eye(3).double()[:2], torch.tensor([0.2, -0.5, 0.1]).double()
    x = (pair[0] - pair[1]) / math.sqrt(2)
    f = pair[int((pair @ y).argmax())]
    assert float(f @ x) == pytest.approx(float(torch.sign(x @ y)) / math.sqrt(2))


def test_lemma_sgn_tu():
    """What is left of sgn vanishes with the degree while the norm of u grows without limit."""
    left = [1 - energies(8, count).sum() for count in (1, 10, 100, 1000)]
    assert left == sorted(left, reverse=True)
    assert left[-1] < 0.002
    sizes = energies(8, 50)
    squares = [float(math.comb(2 * k + 8, 7)) ** 2 / e for k, e in enumerate(sizes)]
    assert squares[-1] > 1e6 * squares[0]


def test_lemma_orthogonality():
    """Legendre polynomials of odd degrees are orthogonal under the sphere's weight, d = 5."""
    t, w = np.polynomial.legendre.leggauss(50)
    one, three = legendre(5, 1, t), legendre(5, 3, t)
    assert abs((w * (1 - t**2) * one * three).sum()) < 1e-12


def test_spectrum_tail():
    """√d·ℓ⁻² far beyond d, ℓ^(−3/2) far below it."""
    assert tail_energy(64, 1) == pytest.approx(
        4 * math.sqrt(2 * math.pi * 64) / math.pi**2, rel=0.02
    )
    low = energies(10**6, 20)
    slope = math.log(low[19] / low[9]) / math.log(39 / 19)
    assert slope == pytest.approx(-1.5, abs=0.05)


def test_lemma_reach():
    """r = 1 sees one harmonic per degree when V = I: its zonal one."""
    assert error_lower_bound(8, 1, 10**9, Values.IDENTITY) < error_lower_bound(
        8, 1, 10**3, Values.IDENTITY
    )


def test_theorem_2_high_accuracy():
    """Every width and rank with room for one head: the computable bound exceeds 1/(d+1)."""
    for d in (10, 12, 40):
        for r in range(1, d - 2):
            limit = separation.high_accuracy_regime(d, r)
            if limit.log_heads >= 0:
                assert error_at(d, r, limit.log_heads) >= limit.error
    below_one = [
        next(r for r in range(1, d - 2) if separation.high_accuracy_regime(d, r).log_heads < 0)
        for d in (8, 16, 32, 64, 1024)
    ]
    assert below_one == [2, 5, 13, 29, 509]


def test_theorem_2_high_dimension():
    limit = separation.high_dimensional_regime(4096, 1, 0.05, exponent=0.2)
    assert error_at(4096, 1, limit.log_heads) >= 0.05
    assert limit.log_heads == pytest.approx(math.log(0.5) + 4 * math.log(4096 / (2 * math.e * 5)))
    # At ε = ½ one head is allowed, and one that leans towards a rank-one choice has less error.
    assert separation.high_dimensional_regime(64, 1, 0.5, exponent=0.2).log_heads > 0
    pairs, y = neighbours(64, 10**5, torch.Generator().manual_seed(0))
    lean = 2 * mean_rank_one_success(64) - 1
    first = (pairs[:, 0, 0] > pairs[:, 1, 0]) == (y[:, 0] > 0)
    weights = 0.5 + lean / 2 * torch.where(first, 1, -1)
    nearer = (pairs[:, 0] * y).sum(-1) > (pairs[:, 1] * y).sum(-1)
    error = Estimate.of(2 * (weights - nearer.double()).square())
    assert error.mean == pytest.approx((1 - lean**2) / 2, abs=4 * error.stderr)
    assert error.mean + 4 * error.stderr < 0.5


@pytest.mark.slow
def test_theorem_on_biased_neighbours():
    """Energies add up, and the number of heads grows exponentially in d − r."""
    assert separation.wave_energies(8).sum() == pytest.approx(1, abs=0.01)
    heads = [separation.log_heads_for_biased_error(d, 2) for d in (8, 12, 16, 20)]
    steps = np.diff(heads) / 4
    assert steps.min() > 2
    assert steps.max() < 1.2 * steps.min()
    layer = BiasedNeighbours(8, separation.square_wave(8).tolist())
    assert layer.layer.geometry.qk_rank == 9


def test_wave_energies_against_sampling():
    """The mean product of two waves at correlated x is Σ energy·P_ℓ(cosine)."""
    d, draws = 6, 400_000
    random = np.random.default_rng(0)
    x, other, y = random.normal(size=(3, draws, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    other -= (other * x).sum(1, keepdims=True) * x
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    near, biases = 0.9 * x + math.sqrt(1 - 0.81) * other, separation.square_wave(d)
    signs = np.where(np.arange(len(biases)) % 2, -1.0, 1.0)

    def wave(point):
        along = math.sqrt(2) * (point * y).sum(1, keepdims=True) * d**-0.25
        return (np.sign(along + biases) * signs).sum(1)

    found = wave(x) * wave(near)
    energy = separation.wave_energies(d)
    expected = sum(e * legendre(d, ell, np.array(0.9)) for ell, e in enumerate(energy))
    assert found.mean() == pytest.approx(float(expected), abs=0.015)


def test_random_rank_one_head():
    assert mean_rank_one_success(2) == pytest.approx(0.75)
    assert mean_rank_one_success(100) - 0.5 == pytest.approx(0.0254, rel=0.01)


def test_majority_vote():
    """One head: the error is twice the chance to be wrong."""
    assert majority_vote_error(16, 1) == pytest.approx(2 * (1 - mean_rank_one_success(16)))


def test_two_layer_construction():
    model = TwoLayerVote(6, heads=3)
    ranks = model.vote.geometry.qk_rank, model.look_up.geometry.qk_rank
    assert ranks == (1, 1)
    assert model.look_up.geometry.v_rank == 6


def test_gap_lemma():
    """Hardmax is not continuous: a change of 1e-12 moves it by √2."""
    scores = torch.tensor([1.0, 1.0 + 1e-12], dtype=torch.float64)
    moved = scores + torch.tensor([2e-12, 0.0], dtype=torch.float64)
    assert int(scores.argmax()) != int(moved.argmax())


def test_row_gaps():
    """Two scores: their difference is N(0, 2)."""
    assert barrier.gap_below(2, 1.0) == pytest.approx(math.erf(0.5), abs=1e-9)


def test_total_variation():
    """Under Theorem 1's hypothesis the excess is at most ε·n^(3/2)(d + d_h)/(2√2)."""
    for n, d, d_h in ((10, 10, 1), (100, 200, 64), (50, 50, 50)):
        epsilon = 1e-3 / (n**1.5 * (d + d_h))
        excess = barrier.variation_excess(n, d_h, epsilon * n)
        scale = barrier.orthonormality_scale(n, d, d_h, epsilon)
        assert excess <= scale / (2 * math.sqrt(2)) * (1 + 1e-12)
    # The inequality behind step 1, and where it ends.
    value = np.linspace(-0.5, 20, 2000)
    assert (value - np.log1p(value) <= value**2 + 1e-15).all()
    assert -0.7 - math.log(0.3) > 0.49


def _ranks(queries, keys):
    choices = (queries @ keys.mT).argmax(-1)
    return torch.nn.functional.one_hot(choices, choices.shape[-1]).amax(1).sum(-1).double()


@pytest.mark.parametrize(("n", "head_dim"), [(2, 1), (2, 2), (3, 2)])
def test_no_gram_matrix_changes_the_rank_by_more_than_total_variation_allows(n, head_dim):
    """A search for I + E whose gain in E rank comes nearest to (n−1)·‖E‖_F·√(d_h/2).

    A longer search, 150 steps of 4,000 draws at n to 8 and d_h to 16, came to 0.66 of it.
    """
    generator = torch.Generator().manual_seed(1)
    shape = (2, 2000, n, head_dim)
    query, key = torch.randn(shape, generator=generator, dtype=torch.float64)
    before, best, gram = _ranks(query, key), 0.0, torch.eye(n, dtype=torch.float64)
    for step in range(60):
        noise = torch.randn(n, n, generator=generator, dtype=torch.float64)
        tried = gram + (0.2 if step < 20 else 0.05) * (noise + noise.T)
        if torch.linalg.eigvalsh(tried).min() < 1e-3:
            continue
        inputs = torch.linalg.cholesky(tried)
        gained = float((_ranks(inputs @ query, inputs @ key) - before).mean())
        distance = float((tried - torch.eye(n, dtype=torch.float64)).norm())
        share = gained / barrier.variation_excess(n, head_dim, distance)
        if share > best:
            best, gram = share, tried
    assert 0.1 < best < 1


@pytest.mark.parametrize("token", ["zero", "repeated"])
def test_ties_at_head_dimension_one_stay_below_total_variation(token):
    """A zero token ties all scores of its row and may choose a third column: see step 3."""
    n = 5
    inputs = torch.eye(n, dtype=torch.float64)
    inputs[0] = 0 if token == "zero" else inputs[1]
    distance = float((inputs @ inputs.mT - torch.eye(n, dtype=torch.float64)).norm())
    assert distance >= 1
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn((2, 500, n, 1), generator=generator, dtype=torch.float64)
    scores = (inputs @ query) @ (inputs @ key).mT
    tied = scores >= scores.amax(-1, keepdim=True) - 1e-12
    any_tied = tied * torch.rand(scores.shape, generator=generator, dtype=torch.float64)
    used = torch.nn.functional.one_hot(any_tied.argmax(-1), n).amax(1).sum(-1)
    assert int(used.max()) > 2
    assert n <= barrier.rank_barrier(n) + barrier.variation_excess(n, 1, distance)


def test_stable_range():
    values = torch.tensor([3.0, 0.25]).double()
    found = barrier.stable_range(values, 1.0)
    assert (found.rank, found.limit, found.closed) == (1, 0.75, False)


def test_finite_law():
    """Far end: 1 − (1 − 1/n)^n."""
    assert float(column_share(50, 10**5)) == pytest.approx(1 - (1 - 1 / 50) ** 50, abs=2e-4)
    assert quantile(2**20) == pytest.approx(4.763, abs=1e-3)


def test_lower_bound_any_values():
    assert error_lower_bound(64, 32, 12) <= 0.1 < error_lower_bound(64, 32, 11)


def test_lower_bound_values_a_i():
    assert error_lower_bound(64, 1, 64, Values.IDENTITY) == pytest.approx(0.1791, abs=5e-5)
