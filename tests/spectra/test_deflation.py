import numpy as np
import pytest
import torch
from benchmarks.attack.oracle import exact_count

from headwise.spectra import deflation
from headwise.spectra.deflation import count_by_deflation, smallest_singular_value, triangles
from headwise.spectra.inertia import count_by_inertia, positive_eigenvalues
from oracles import causal, normal, planted, random_head_logits, singular_values, svd_rank


@pytest.mark.parametrize("shape", [(40, 40), (53, 19), (19, 53), (1, 7), (7, 1)])
def test_triangles_keep_singular_values(shape):
    matrices = normal(3, *shape, seed=0)
    triangle, error = triangles(matrices)
    moved = (singular_values(triangle) - singular_values(matrices)).abs().amax(-1)
    assert bool((moved <= error).all())


def test_the_least_singular_value_is_bounded_from_below():
    for n in (5, 48, 97):
        matrices = torch.cat((normal(4, n, n, seed=n), torch.eye(n).double()[None]))
        bound = smallest_singular_value(triangles(matrices)[0])
        truth = singular_values(matrices)[:, -1]
        assert bool((bound <= truth).all())
        assert bool((bound >= truth / n).all())


def test_singular_matrices_have_the_bound_zero():
    matrices = normal(1, 20, 20, seed=0)
    matrices[0, :, 7] = matrices[0, :, 3]
    assert float(smallest_singular_value(triangles(matrices)[0])) <= 1e-12
    assert float(smallest_singular_value(torch.zeros(1, 4, 4, dtype=torch.float64))) == 0


@pytest.mark.parametrize("decades", [1, 6, 14])
@pytest.mark.parametrize("n", [30, 120, 300])
def test_planted_spectra(n, decades):
    values = 10 ** torch.linspace(0.3, -float(decades), n, dtype=torch.float64)[None]
    matrix = planted(values, n, n, seed=decades)[0]
    found = count_by_deflation(matrix[None].clone(), 1e-8)
    assert found is not None
    assert found.low == found.high == int((values >= 1e-8).sum())
    assert found.delta <= 1e-11


def test_smooth_kernels_whose_columns_are_nearly_dependent():
    matrix = torch.softmax(random_head_logits(300, 3, 1, seed=0, scale=0.05)[0], -1)
    found = count_by_deflation(matrix[None].clone(), 1e-8)
    assert found is not None
    assert found.low == found.high == int(svd_rank(matrix))
    assert found.low < 250


def test_zero_and_rank_one():
    zero = count_by_deflation(torch.zeros(1, 50, 50, dtype=torch.float64), 1e-8)
    one = count_by_deflation(torch.ones(1, 50, 50, dtype=torch.float64), 1e-8)
    assert zero is not None
    assert one is not None
    assert (zero.low, zero.high, one.low, one.high) == (0, 0, 1, 1)


def test_a_value_at_epsilon_gives_an_interval():
    values = torch.tensor([[1.0, 1e-3, 1e-8, 1e-12]], dtype=torch.float64)
    found = count_by_deflation(planted(values, 60, 60, seed=0), 1e-8)
    assert found is not None
    assert (found.low, found.high) == (2, 3)


def test_doubt_enters_delta():
    values = torch.tensor([[1.0, 1.3e-8]], dtype=torch.float64)
    matrix = planted(values, 60, 60, seed=0)[0]
    sharp, vague = (
        count_by_deflation(matrix[None].clone(), 1e-8),
        count_by_deflation(matrix[None].clone(), 1e-8, 5e-9),
    )
    assert sharp is not None
    assert vague is not None
    assert (sharp.low, sharp.high) == (2, 2)
    assert (vague.low, vague.high) == (1, 2)


def test_a_remainder_far_above_epsilon_is_not_squared():
    values = torch.cat((torch.full((40,), 1e-2), torch.full((20,), 1e-9))).double()[None]
    matrix = planted(values, 60, 60, seed=4)[0]
    found = count_by_deflation(matrix[None].clone(), 1e-8)
    assert found is not None
    assert found.low == found.high == 40


@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_inertia_counts_positive_eigenvalues(n):
    for seed in range(5):
        half = normal(n, n, seed=seed)
        symmetric = half + half.T
        values = torch.linalg.eigvalsh(symmetric)
        found, error = positive_eigenvalues(symmetric)
        assert found == int((values > 0).sum())
        assert 0 < error < 1e-10


def test_inertia_with_two_by_two_pivots():
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    assert positive_eigenvalues(torch.block_diag(swap, swap, -torch.eye(1).double()))[0] == 2
    assert positive_eigenvalues(torch.zeros(3, 3, dtype=torch.float64))[0] == 0


@pytest.mark.parametrize("shape", [(12, 12), (17, 5), (5, 17)])
def test_inertia_counts_singular_values(shape):
    k = min(shape)
    values = 10 ** torch.linspace(0, -12, k, dtype=torch.float64)[None]
    found = count_by_inertia(planted(values, *shape, seed=1)[0], 3e-8)
    assert found.low == found.high == int((values >= 3e-8).sum())


def test_inertia_certifies_nothing_if_rounding_hides_everything():
    found = count_by_inertia(1e12 * normal(6, 6, seed=0), 1e-8)
    assert found.high == 6
    assert found.delta > 1e-8


@pytest.mark.parametrize("temperature", [16.0, 2.0, 0.5])
@pytest.mark.parametrize("n", [60, 401])
def test_triangles_are_counted_without_a_first_factorisation(n, temperature):
    """Causal attention from soft to sharp, and a triangle with zeros on its diagonal."""
    logits = random_head_logits(n, 16, 1, seed=n, scale=0.1) / temperature
    lower = torch.softmax(causal(logits), -1)[0]
    broken = lower.clone()
    broken.diagonal()[::7] = 0
    for matrix in (lower, broken):
        found = count_by_deflation(matrix[None].clone(), 1e-8)
        wanted = svd_rank(matrix[None])
        assert found is None or found.low <= int(wanted) <= found.high
    assert count_by_deflation(lower[None].clone(), 1e-8) is not None


@pytest.mark.parametrize("decades", [8.3, 9.0, 15.0])
def test_a_few_weak_directions_need_no_second_factorisation(decades, monkeypatch):
    values = torch.ones(1, 200, dtype=torch.float64)
    values[0, 170:] = 10 ** torch.linspace(-3.0, -decades, 30, dtype=torch.float64)
    matrix = planted(values, 200, 200, seed=3)[0]
    found = count_by_deflation(matrix[None].clone(), 1e-8, rounds=0)
    assert found is not None
    assert found.low == found.high == int((values >= 1e-8).sum()) < 200
    assert found.delta <= 1e-11
    monkeypatch.setattr(deflation, "LARGEST_BASIS", 0.0)
    assert count_by_deflation(matrix[None].clone(), 1e-8, rounds=0) is None


@pytest.mark.parametrize("weak", [1e-7, 1e-8, 1e-9, 1e-17])
def test_a_basis_of_the_weak_directions_keeps_small_values_apart(weak):
    # Columns of W that are large and nearly parallel: without refinement δ is too large.
    n, few = 120, 3
    strong = normal(1, n - few, n - few, seed=0)[0].triu() + 40 * torch.eye(n - few).double()
    inner = strong @ (1e5 * torch.ones(n - few, few).double() + normal(1, n - few, few, seed=1)[0])
    triangle = torch.zeros(n, n, dtype=torch.float64)
    triangle[: n - few, : n - few], triangle[: n - few, n - few :] = strong, inner
    triangle /= torch.linalg.matrix_norm(triangle)
    triangle[n - few :, n - few :] = torch.diag(torch.tensor([1.0, 1e3, 1e6])).double() * weak
    found = count_by_deflation(triangle.mT[None].clone(), 1e-8)
    assert found is not None
    assert found.low <= int(svd_rank(triangle)) <= found.high


#: Nearly dependent rows whose computed triangle ends in zeros, though the matrix has full rank.
HIDDEN = (
    ([[0.5, 0.5], [0.5, 0.49999999999999994]], 1.0765753044607595e-20),
    ([[4.000000000000001, 6.0], [6.000000000000001, 8.999999999999998]], 9.169362066936694e-19),
    (
        [[0.35774813957259866, 0.3577481395725987], [0.8319820431690634, 0.8319820431690634]],
        2.6844892574151328e-17,
    ),
)


@pytest.mark.parametrize(("rows", "epsilon"), HIDDEN)
def test_a_tolerance_below_rounding_is_not_certified(rows, epsilon):
    """Deflation once counted 1 here, with a δ far above ε; the truth is 2."""
    matrix = torch.tensor(rows, dtype=torch.float64)
    assert exact_count(matrix.numpy(), epsilon) == 2
    found = count_by_deflation(matrix[None].clone(), epsilon)
    assert found is None or found.low <= 2 <= found.high


def test_last_bits_never_mislead_deflation():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(2, 7))
        matrix = np.outer(rng.integers(1, 4, n), rng.integers(1, 4, n)).astype(float)
        for i, j in rng.integers(0, n, (3, 2)):
            matrix[i, j] = np.nextafter(matrix[i, j], rng.choice([0.0, 10.0]))
        epsilon = 10.0 ** rng.uniform(-20, -12)
        found = count_by_deflation(torch.from_numpy(matrix)[None].clone(), epsilon)
        if found is not None:
            assert found.low <= exact_count(matrix, epsilon) <= found.high


def test_whitening_answers_only_if_solving_keeps_the_values():
    """A root with small rows above large ones once moved the value 1.001 to 0.987."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        first = rng.standard_normal(5) * 10.0 ** (-rng.uniform(0, 5, 5))
        turn = np.linalg.qr(np.column_stack([first, rng.standard_normal((5, 4))]))[0]
        values = np.array([3e10, 1.001, 3e10, 3e10, 3e10])
        rest = (np.linalg.qr(rng.standard_normal((5, 5)))[0] * values) @ turn.T
        metric = np.eye(5) + 1e10 * np.outer(turn[:, 0], turn[:, 0])
        given = (torch.from_numpy(part) for part in (rest, metric))
        # The first value becomes 3e5 and the others stay.
        assert deflation._count_whitened(*given, 5e-4, 1) in (None, (5, 5))


def test_whitening_still_answers_far_above_epsilon():
    rest = torch.diag(torch.tensor([1e7, 1e7, 1.001, 0.999], dtype=torch.float64))
    metric = torch.eye(4, dtype=torch.float64)
    assert deflation._count_whitened(rest, metric, 5e-4, 4) == (3, 3)


def test_squares_are_charged_for_every_term_of_the_metric():
    """The roundings of WᵀW grow with the rows of W, not with its columns."""
    metric = torch.diag(torch.tensor([1e9, 1.0], dtype=torch.float64))
    rest = torch.diag(torch.tensor([1.0, 2.0], dtype=torch.float64))
    assert deflation._count_by_squares(rest.clone(), metric.clone(), 1e-4, 2) == (1, 1)
    assert deflation._count_by_squares(rest.clone(), metric.clone(), 1e-4, 10**4) is None


@pytest.mark.parametrize("power", [-60, 40, 60, 200])
def test_the_error_of_an_inertia_scales_with_the_matrix(power):
    """At 2⁶⁰ the squares of 2×2 pivots once hid the factor L, and the error was too small."""
    for seed in range(20):
        n = 6 + seed
        matrix = graded(seed, n)
        whole = torch.zeros(2 * n, 2 * n, dtype=torch.float64)
        whole[:n, n:], whole[n:, :n] = matrix, matrix.mT
        whole.diagonal().fill_(-float(singular_values(matrix)[n // 2]))
        plain = positive_eigenvalues(whole.clone())
        scaled = positive_eigenvalues(whole * 2.0**power)
        assert scaled == (plain[0], pytest.approx(plain[1] * 2.0**power, rel=1e-12))


def graded(seed, n):
    """Rows and columns scaled over twenty orders of magnitude."""
    rng = np.random.default_rng(seed)
    left, right = (10.0 ** rng.uniform(-10, 0, n) for _ in range(2))
    return torch.from_numpy(left[:, None] * rng.standard_normal((n, n)) * right)
