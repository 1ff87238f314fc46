"""Attention as an operator, and the streaming arg-max."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import headwise.attention.operator as operator_module
from contracts.operator_contract import OperatorContract
from headwise.attention import (
    EVERYTHING,
    AttentionOperator,
    Causal,
    Padding,
    SlidingWindow,
    hardmax_matrix,
    hardmax_rank,
    softmax_matrix,
    streaming_argmax,
)
from headwise.errors import BadInputError


def pair(*shape, m=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(shape, generator=generator, dtype=torch.float64)
    keys = torch.randn(
        (*shape[:-2], m or shape[-2], shape[-1]), generator=generator, dtype=torch.float64
    )
    return queries, keys


class AttentionContract(OperatorContract):
    mask = EVERYTHING
    shape = (2, 3, 11, 5)
    keys = 13

    @pytest.fixture(autouse=True)
    def _several_chunks(self, monkeypatch):
        monkeypatch.setattr(operator_module, "LOGITS_AT_ONCE", 2 * 3 * 13 * 4)

    def make(self):
        q, k = pair(*self.shape, m=self.keys)
        operator = AttentionOperator(q, k, temperature=0.7, mask=self.mask, dtype=self.dtype)
        return operator, softmax_matrix(q, k, temperature=0.7, mask=self.mask)


class TestUnmasked(AttentionContract):
    pass


class TestCausal(AttentionContract):
    mask = Causal()


class TestWindowAndPadding(AttentionContract):
    mask = SlidingWindow(4) & Padding.of_lengths(torch.tensor([9, 13]), size=13)


class TestArbitraryBias(AttentionContract):
    mask = torch.linspace(-2, 2, 11 * 13, dtype=torch.float64).reshape(1, 1, 11, 13)


class TestSingle(AttentionContract):
    dtype = torch.float32


class TestOneToken(AttentionContract):
    shape = (1, 5)
    keys = 1


class TestBlockAsWideAsTheHeads(AttentionContract):
    columns = 5  # the fused kernels run only when values and keys have one width


def test_float64_is_the_default_for_any_input_dtype():
    operator = AttentionOperator(torch.zeros(2, 3), torch.zeros(5, 3))
    assert operator.matmat(torch.ones(5, 1)).dtype == torch.float64


def test_default_temperature_is_the_root_of_the_head_dimension():
    assert AttentionOperator(torch.zeros(2, 16), torch.zeros(5, 16)).temperature == 4.0


def test_the_matrix_is_never_formed(monkeypatch):
    monkeypatch.setattr(operator_module, "LOGITS_AT_ONCE", 2**12)
    largest = 0
    original = operator_module.scaled_dot_product_attention

    def watched(q, k, v, **options):
        nonlocal largest
        largest = max(largest, q.shape[-2] * k.shape[-2])
        return original(q, k, v, **options)

    monkeypatch.setattr(operator_module, "scaled_dot_product_attention", watched)
    q, k = pair(301, 4, m=307)
    operator = AttentionOperator(q, k, mask=Causal(offset=6))
    operator.matmat(torch.ones(307, 2))
    operator.rmatmat(torch.ones(301, 2))
    assert 0 < largest <= 2**12


def test_a_block_that_does_not_fit_is_refused():
    operator = AttentionOperator(*pair(4, 3))
    with pytest.raises(BadInputError, match=r"a block of shape \(5, 1\) .* shape \(4, 4\)"):
        operator.matmat(torch.ones(5, 1))


def test_rows_that_mask_everything_are_refused_before_any_product():
    q, k = pair(2, 4, 3)
    with pytest.raises(BadInputError, match=r"row 0 of matrix \(1,\) masks every key \(4 such"):
        AttentionOperator(q, k, mask=Padding.of_lengths(torch.tensor([4, 0]), size=4))


class TestHardmaxRank:
    def test_one_token_has_rank_one(self):
        assert int(hardmax_rank(*pair(1, 3))) == 1

    def test_equal_keys_have_rank_one(self):
        q, k = pair(7, 3)
        assert int(hardmax_rank(q, k[:1].expand(7, 3))) == 1

    def test_zero_queries_tie_and_the_first_key_wins(self):
        q, k = pair(7, 3)
        assert streaming_argmax(torch.zeros_like(q), k).tolist() == [0] * 7

    def test_queries_equal_to_orthogonal_keys_have_full_rank(self):
        assert int(hardmax_rank(torch.eye(9), torch.eye(9))) == 9

    def test_causal_zero_queries_stay_at_the_first_key(self):
        q, k = pair(7, 3)
        assert int(hardmax_rank(torch.zeros_like(q), k, mask=Causal())) == 1

    def test_window_of_one_is_the_identity(self):
        assert int(hardmax_rank(*pair(7, 3), mask=SlidingWindow(1))) == 7

    @settings(deadline=None, max_examples=60)
    @given(
        n=st.integers(1, 23),
        m=st.integers(1, 29),
        rank=st.integers(1, 4),
        limit=st.integers(1, 200),
        levels=st.integers(1, 5),
        seed=st.integers(0, 2**31),
    )
    def test_any_chunking_agrees_with_the_dense_matrix(self, n, m, rank, limit, levels, seed):
        # Few levels make many exact ties, which must go to the first index in every chunking.
        generator = torch.Generator().manual_seed(seed)
        q = torch.randint(-levels, levels + 1, (2, n, rank), generator=generator).double()
        k = torch.randint(-levels, levels + 1, (2, m, rank), generator=generator).double()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(operator_module, "LOGITS_AT_ONCE", limit)
            found, rank_found = streaming_argmax(q, k), hardmax_rank(q, k)
        wanted = hardmax_matrix(q, k)
        scores = (q @ k.mT).tolist()
        firsts = [[row.index(max(row)) for row in matrix] for matrix in scores]
        assert found.tolist() == firsts
        assert rank_found.tolist() == torch.linalg.matrix_rank(wanted).tolist()

    def test_memory_does_not_grow_with_the_square(self, monkeypatch):
        largest = 0
        original = torch.Tensor.argmax

        def watched(scores, *args):
            nonlocal largest
            largest = max(largest, scores.numel())
            return original(scores, *args)

        monkeypatch.setattr(torch.Tensor, "argmax", watched)
        monkeypatch.setattr(operator_module, "LOGITS_AT_ONCE", 2**14)
        q, k = pair(3, 1021, 2)
        assert (hardmax_rank(q, k) <= 1021).all()
        assert 0 < largest <= 2**14

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
    def test_every_floating_dtype_is_taken(self, dtype):
        eye = torch.eye(5, dtype=dtype)
        assert int(hardmax_rank(eye, eye)) == 5

    @pytest.mark.cuda
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
    def test_cuda_agrees_with_the_processor(self):
        q, k = pair(2, 1031, 16)
        assert hardmax_rank(q.cuda(), k.cuda()).tolist() == hardmax_rank(q, k).tolist()
