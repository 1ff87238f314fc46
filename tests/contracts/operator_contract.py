"""What every Operator must do; a suite that inherits this proves it for one of them."""

import pytest
import torch

from headwise.spectra import Operator

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


class OperatorContract:
    """Subclasses say how to make the operator and the dense float64 matrix it stands for."""

    dtype = torch.float64
    columns = 3

    def make(self) -> tuple[Operator, torch.Tensor]:
        raise NotImplementedError

    @pytest.fixture
    def pair(self):
        return self.make()

    def block(self, operator, side, seed):
        size = operator.shape[side]
        shape = (*operator.shape[:-2], size, self.columns)
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(self.dtype)

    def close(self, found, wanted):
        scale = max(1.0, float(wanted.abs().max()))
        limit = TOLERANCE[self.dtype] * scale
        torch.testing.assert_close(found.double(), wanted.double(), rtol=0, atol=limit)

    def test_is_an_operator(self, pair):
        assert isinstance(pair[0], Operator)

    def test_shape_is_that_of_the_dense_twin(self, pair):
        operator, twin = pair
        assert operator.shape == twin.shape

    def test_products_have_the_shape_and_dtype_promised(self, pair):
        operator, _ = pair
        right, left = self.block(operator, -1, 0), self.block(operator, -2, 1)
        assert operator.matmat(right).shape == left.shape
        assert operator.rmatmat(left).shape == right.shape
        assert operator.matmat(right).dtype == self.dtype

    def test_products_equal_those_of_the_dense_twin(self, pair):
        operator, twin = pair
        right, left = self.block(operator, -1, 2), self.block(operator, -2, 3)
        self.close(operator.matmat(right), twin @ right.double())
        self.close(operator.rmatmat(left), twin.mT @ left.double())

    def test_products_are_linear(self, pair):
        operator, _ = pair
        x, y = self.block(operator, -1, 4), self.block(operator, -1, 5)
        self.close(operator.matmat(2 * x - 3 * y), 2 * operator.matmat(x) - 3 * operator.matmat(y))

    def test_the_two_products_are_adjoint(self, pair):
        operator, _ = pair
        x, y = self.block(operator, -1, 6), self.block(operator, -2, 7)
        forward = (operator.matmat(x).double() * y.double()).sum((-1, -2))
        backward = (x.double() * operator.rmatmat(y).double()).sum((-1, -2))
        self.close(forward, backward)
