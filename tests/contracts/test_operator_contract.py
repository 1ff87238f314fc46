"""Dense and functional operators keep the operator contract, and the contract can fail."""

import pytest
import torch

from contracts.operator_contract import OperatorContract
from headwise.spectra import DenseOperator, FunctionalOperator


def planted(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class TestDenseOperator(OperatorContract):
    def make(self):
        matrix = planted(2, 5, 7)
        return DenseOperator(matrix), matrix


class TestFunctionalOperator(OperatorContract):
    def make(self):
        left, right = planted(7, 2), planted(2, 5, seed=1)
        operator = FunctionalOperator(
            torch.Size([7, 5]), lambda x: left @ (right @ x), lambda y: right.mT @ (left.mT @ y)
        )
        return operator, left @ right


class TestTheContractCanFail:
    @pytest.fixture
    def suite(self):
        return TestFunctionalOperator()

    def test_a_wrong_adjoint_is_caught(self, suite):
        matrix = planted(7, 5)
        wrong = FunctionalOperator(
            torch.Size([7, 5]), lambda x: matrix @ x, lambda y: 2 * matrix.mT @ y
        )
        with pytest.raises(AssertionError):
            suite.test_the_two_products_are_adjoint((wrong, matrix))

    def test_a_nonlinear_product_is_caught(self, suite):
        matrix = planted(7, 5)
        wrong = FunctionalOperator(
            torch.Size([7, 5]), lambda x: (matrix @ x).abs(), lambda y: matrix.mT @ y
        )
        with pytest.raises(AssertionError):
            suite.test_products_are_linear((wrong, matrix))
