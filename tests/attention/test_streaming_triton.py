"""The kernels for long sequences against dense float64 and the chunked arg-max.

They run on a GPU where there is one, and with TRITON_INTERPRET=1 on any machine with Triton.
"""

import os

import pytest
import torch

from headwise.attention import softmax_matrix, streaming_argmax

pytest.importorskip("triton")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        not (INTERPRETED or torch.cuda.is_available()),
        reason="needs a CUDA device, or TRITON_INTERPRET=1",
    ),
]
DEVICE = "cpu" if INTERPRETED else "cuda"
#: The interpreter multiplies the bits of bfloat16 as if they were whole numbers.
SHORT = torch.float16 if INTERPRETED else torch.bfloat16


def kernels():
    from headwise.attention import streaming_triton

    return streaming_triton


def drawn(n, m, d, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(2, size, d, generator=generator).to(dtype) for size in (n, m))
    return q.to(DEVICE), k.to(DEVICE)


SIZES = [(1, 1, 1), (37, 37, 16), (131, 131, 64), (257, 300, 24), (300, 300, 96)]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "m", "d"), SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, SHORT])
def test_arg_max_is_that_of_the_chunks(n, m, d, dtype, causal):
    q, k = drawn(n, m, d, dtype)
    found = kernels().argmax(q, k, causal=causal, offset=m - n)
    mask = f"causal:{m - n}" if causal and m > n else "causal" if causal else "none"
    wanted = streaming_argmax(q.double(), k.double(), mask=mask)
    differ = found != wanted
    scores = q.double() @ k.double().mT
    gap = scores.gather(-1, wanted[..., None]) - scores.gather(-1, found[..., None])
    assert float(gap.max()) <= 1e-5 * float(scores.abs().max())
    assert differ.float().mean() < 0.02


def test_the_first_of_equal_keys_wins():
    q, k = drawn(40, 300, 16, SHORT)
    k[:, 200:] = k[:, :100]
    assert int(kernels().argmax(q, k, causal=False).max()) < 200


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "m", "d"), SIZES)
@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-5), (SHORT, 2e-2)])
def test_products_are_those_of_the_matrix(n, m, d, dtype, atol, causal):
    q, k = drawn(n, m, d, dtype)
    mask = f"causal:{m - n}" if causal and m > n else "causal" if causal else "none"
    matrix = softmax_matrix(q.double(), k.double(), temperature=2.0, mask=mask)
    x, y = (torch.randn(2, size, 20, device=DEVICE).to(dtype) for size in (m, n))
    given = {"scale": 0.5, "causal": causal, "offset": m - n}
    out, logsum = kernels().attend(q, k, x, **given)
    torch.testing.assert_close(
        out.double(), matrix @ x.double(), atol=atol, rtol=1e-2 * (atol > 1e-3)
    )
    back = kernels().attend_transposed(q, k, y, logsum, **given)
    wanted = matrix.mT @ y.double()
    torch.testing.assert_close(
        back.double(), wanted, atol=atol * max(1.0, float(wanted.abs().max())), rtol=0
    )
