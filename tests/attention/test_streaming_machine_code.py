"""The machine code of the kernels for long sequences, compiled for a GPU that need not be there.

On Hopper, uniform registers say where in shared memory the matrices of a product begin. For one
row, ptxas 12.8 (in Triton 3.6) read a register that nothing had written.
"""

# Triton is optional.
# pyright: reportMissingImports=false
import os
import re

import pytest
import torch

triton = pytest.importorskip("triton")
if os.environ.get("TRITON_INTERPRET") == "1":
    pytest.skip("the interpreter compiles nothing", allow_module_level=True)
pytestmark = pytest.mark.skipif(
    not triton.knobs.nvidia.cuobjdump.path, reason="needs the disassembler that Triton brings"
)
REGISTER = re.compile(r"\bUR(\d+)\b")


class Hopper:
    """A driver that says for which GPU to compile, and launches nothing."""

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return -90  # kernels are kept by device: none of a real one is replaced

    def get_current_stream(self, device):
        return 0


class OnlyCompiled:
    def __init__(self, kernel, compiled):
        self.kernel, self.compiled = kernel, compiled

    def __getitem__(self, grid):
        return lambda *args, **given: self.compiled.append(
            self.kernel.run(*args, grid=grid, warmup=True, **given)
        )


@pytest.fixture
def compiled(monkeypatch):
    from headwise.attention import streaming_triton

    found = []
    monkeypatch.setattr(triton.runtime.driver, "_active", Hopper())
    for name in ("_forward", "_transposed"):
        kernel = getattr(streaming_triton, name)
        monkeypatch.setattr(streaming_triton, name, OnlyCompiled(kernel, found))
    return found


def touched(instruction):
    """Return which uniform registers an instruction reads and writes."""
    name, _, rest = re.sub(r"^@!?U?P\w+\s+", "", instruction).partition(" ")
    operands = [operand.strip() for operand in rest.split(",")]
    pair = ".64" in name or "WIDE" in name
    read, written = set(), set()
    for place, operand in enumerate(operands):
        for register in map(int, REGISTER.findall(operand)):
            if "gdesc" in operand:
                # Two pairs; that of the first matrix is idle if it comes in registers.
                idle = re.match(r"R\d", operands[1])
                read.update(range(register + 2 * bool(idle), register + 4))
            elif place == 0 and name.startswith(("U", "R2UR", "S2UR", "REDUX")):
                written.update(range(register, register + 1 + pair))
            else:
                read.add(register)
    return read, written


def never_written(listing):
    """Return the instructions that read a uniform register before any other wrote it."""
    known, found = set(), []
    for line in listing.splitlines():
        instruction = line.rpartition("\t")[2].strip().rstrip(";")
        read, written = touched(instruction)
        if read - known:
            found.append(instruction)
        known |= written
    return found


def test_a_register_that_nothing_wrote_is_found():
    right = "\tUMOV UR4, 0x400;\n\tUIADD3 UR5, UP0, UR4, 0x40, URZ;"
    assert never_written(right) == []
    assert never_written(right + "\n\tHGMMA.64x32x16.F32 R40, R84, gdesc[UR2], R40;") == []
    wrong = "\tHGMMA.64x32x16.F32 R40, gdesc[UR2], R40;"
    assert never_written(right + "\n" + wrong) == [wrong.strip().rstrip(";")]
    assert never_written("\tUIADD3 UR4, UP0, UR7, 0x40, URZ;") != []


def compile_products(n, m, d, causal, dtype=torch.bfloat16):
    from headwise.attention import streaming_triton as kernels

    q, y = (torch.zeros(2, n, size, dtype=dtype) for size in (d, 20))
    k, x = (torch.zeros(2, m, size, dtype=dtype) for size in (d, 20))
    given = {"scale": 0.5, "causal": causal, "offset": m - n}
    _, logsum = kernels.attend(q, k, x, **given)
    kernels.attend_transposed(q, k, y, logsum, **given)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (1, 300, 64)])
def test_one_row_runs_the_machine_code_of_many(compiled, n, m, d, causal, dtype):
    """The code for 257 rows and 300 keys is tested on GPUs, so that for one row is as well."""
    compile_products(n, m, d, causal, dtype)
    compile_products(257, 300, d, causal, dtype)
    one, one_back, many, many_back = (kernel.asm["cubin"] for kernel in compiled)
    assert one == many
    assert one_back == many_back


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (1, 300, 64), (37, 1, 16)])
def test_products_read_no_register_that_nothing_wrote(compiled, n, m, d, causal):
    compile_products(n, m, d, causal)
    assert len(compiled) == 2
    for kernel in compiled:
        listing = kernel.asm["sass"]
        assert "HGMMA" in listing
        assert never_written(listing) == []
