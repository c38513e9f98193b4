"""Program ids, hints, prints and assertions."""

import pytest
from xdsl.ir import Block

from tilework.frontend.semantic import hint_attr, print_prefix
from tilework.language import core as tl


def test_program_ids(kernel) -> None:
    k = kernel()
    assert k.sem.program_id(0).type == tl.int32
    k.sem.num_programs(2)
    with pytest.raises(ValueError, match=r"^program_id axis must be 0, 1, or 2 but got 20$"):
        k.sem.program_id(20)
    with pytest.raises(ValueError, match=r"^num_programs axis must be 0, 1, or 2 but got -1$"):
        k.sem.num_programs(-1)
    lines = k.lines()
    assert "tt.get_program_id x : i32" in lines
    assert "tt.get_num_programs z : i32" in lines


def test_barrier_and_assume(kernel) -> None:
    k = kernel(n=tl.int32)
    k.sem.debug_barrier()
    k.sem.assume(k.sem.greater_than(k.n, 3))
    with pytest.raises(ValueError, match="int1, got int32"):
        k.sem.assume(k.n)
    lines = k.lines()
    assert "ttg.barrier all" in lines
    assert "llvm.intr.assume % : i1" in lines


def test_hints_are_attributes_of_the_defining_op(kernel) -> None:
    k = kernel()
    x = k.sem.arange(0, 64)
    assert k.sem.multiple_of(x, [16]) is x
    k.sem.max_contiguous(x, [64])
    k.sem.max_constancy(k.block(tl.int32, 8, 4), [tl.constexpr(8), 1])
    k.sem.multiple_of(k.sem.program_id(0), [8])
    lines = k.lines()
    hints = "tt.contiguity = dense<64> : tensor<1xi32>, tt.divisibility = dense<16> : tensor<1xi32>"
    assert f"tt.make_range {{end = 64 : i32, start = 0 : i32, {hints}}} : tensor<64xi32>" in lines
    assert "tt.splat % {tt.constancy = dense<[8, 1]> : tensor<2xi32>} : i32 -> tensor<8x4xi32>" in lines
    assert "tt.get_program_id x {tt.divisibility = dense<8> : tensor<1xi32>} : i32" in lines


def test_hints_on_arguments_are_dropped(kernel) -> None:
    k = kernel(n=tl.int32)
    assert k.sem.multiple_of(k.n, [16]) is k.n
    assert not [line for line in k.lines() if "divisibility" in line]


def test_hints_on_loop_arguments_wait_for_the_loop(kernel) -> None:
    k = kernel(n=tl.int32)
    body = Block(arg_types=[k.n.handle.type, k.n.handle.type])
    k.sem.multiple_of(tl.tensor(body.args[1], tl.int32), [16])
    assert k.sem.loop_hints(body) == {"tt.divisibility_arg1": hint_attr((16,))}
    assert k.sem.loop_hints(body) == {}


def test_hints_on_one_of_several_results_are_dropped(kernel) -> None:
    k = kernel()
    x = k.sem.arange(0, 16)
    k.sem.multiple_of(k.sem.split(k.sem.join(x, x))[0], [4])
    assert not [line for line in k.lines() if "divisibility" in line]


def test_hints_reject(kernel) -> None:
    k = kernel(n=tl.int32)
    x = k.sem.arange(0, 16)
    with pytest.raises(ValueError, match="Shape of input to multiple_of does not match the length of values"):
        k.sem.multiple_of(x, [1, 2])
    with pytest.raises(ValueError, match="max_contiguous"):
        k.sem.max_contiguous(k.n, [4])
    with pytest.raises(TypeError, match="values element 0"):
        k.sem.multiple_of(x, [k.n])


@pytest.mark.parametrize(
    "prefix, has_args, printed",
    [
        ("x", True, " x: "),
        ("x:", True, " x: "),
        ("x ", True, " x: "),
        (" x: ", True, " x: "),
        ("", True, ": "),
        ("none", False, " none"),
        ("", False, ""),
    ],
)
def test_print_prefix(prefix, has_args, printed) -> None:
    assert print_prefix(prefix, has_args) == printed


def test_device_print(kernel) -> None:
    k = kernel(u=tl.uint8)
    k.sem.device_print("x", [k.u, 3, 2.5, k.sem.arange(0, 4)], True)
    k.sem.device_print("none", [], False)
    with pytest.raises(AssertionError, match="is not an ascii string"):
        k.sem.device_print("café", [], False)
    lines = k.lines()
    head = 'tt.print " x: " {hex = true, isSigned = array<i32: 0, 1, 0, 1>}'
    assert f"{head} : %, %, %, % : i8, i32, f32, tensor<4xi32>" in lines
    assert 'tt.print " none" {hex = false, isSigned = array<i32>}' in lines


def test_device_assert(kernel) -> None:
    k = kernel({"debug": True})
    cond, mask = k.block(tl.int1, 8), k.block(tl.int1, 8)
    k.sem.device_assert(cond, "bad", None)
    k.sem.device_assert(cond, "masked", mask)
    k.sem.device_assert(k.sem.program_id(0), "number", None)
    lines = k.lines()
    assert 'tt.assert %, "bad" : tensor<8xi1>' in lines
    assert 'tt.assert %, "masked" : tensor<8xi1>' in lines
    assert "arith.xori %, % : tensor<8xi1>" in lines
    assert "arith.ori %, % : tensor<8xi1>" in lines
    assert 'tt.assert %, "number" : i1' in lines


def test_device_assert_without_debug(kernel) -> None:
    k = kernel()
    k.sem.device_assert(k.block(tl.int1, 8), "bad", None)
    assert not [line for line in k.lines() if "tt.assert" in line]
