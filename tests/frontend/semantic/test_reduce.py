"""Reductions, scans and elementwise maps."""

import pytest

from tilework.language import core as tl


def adder(k):
    return lambda args: [k.sem.add(args[0], args[1], False)]


def test_reduce_along_an_axis(kernel) -> None:
    k = kernel()
    (total,) = k.sem.reduce([k.block(tl.float32, 16, 32)], -1, adder(k))
    assert total.type == tl.block_type(tl.float32, [16])
    lines = k.lines()
    start = lines.index('"tt.reduce"(%) <{axis = 1 : i32}> ({')
    assert lines[start + 1 : start + 5] == [
        "^bb0(%: f32, %: f32):",
        "arith.addf %, % : f32",
        "tt.reduce.return % : f32",
        "}) : (tensor<16x32xf32>) -> tensor<16xf32>",
    ]


def test_reduce_everything(kernel) -> None:
    k = kernel()
    (total,) = k.sem.reduce([k.block(tl.float32, 4, 8)], None, adder(k))
    assert total.type == tl.float32
    lines = k.lines()
    assert "tt.reshape % allow_reorder : tensor<4x8xf32> -> tensor<32xf32>" in lines
    assert "}) : (tensor<32xf32>) -> f32" in lines


def test_reduce_several_inputs(kernel) -> None:
    k = kernel()

    def larger(args):
        a, i, b, j = args
        first = k.sem.greater_than(a, b)
        return [k.sem.where(first, a, b), k.sem.where(first, i, j)]

    best, at = k.sem.reduce([k.block(tl.float32, 8, 4), k.block(tl.int32, 8, 4)], 0, larger)
    assert (best.dtype, at.dtype) == (tl.float32, tl.int32)
    lines = k.lines()
    assert "^bb0(%: f32, %: i32, %: f32, %: i32):" in lines
    assert "tt.reduce.return %, % : f32, i32" in lines
    assert "}) : (tensor<8x4xf32>, tensor<8x4xi32>) -> (tensor<4xf32>, tensor<4xi32>)" in lines


def test_insertion_continues_after_the_reduction(kernel) -> None:
    k = kernel()
    k.sem.reduce([k.block(tl.float32, 8)], 0, adder(k))
    k.sem.program_id(1)
    lines = k.lines()
    assert lines.index("tt.get_program_id y : i32") > lines.index("}) : (tensor<8xf32>) -> f32")


def test_scan(kernel) -> None:
    k = kernel()
    (sums,) = k.sem.scan([k.block(tl.uint8, 8, 4)], -2, adder(k), True)
    assert sums.type == tl.block_type(tl.uint8, [8, 4])
    lines = k.lines()
    assert '"tt.scan"(%) <{axis = 0 : i32, reverse = true}> ({' in lines
    assert "tt.scan.return % : i8" in lines


def test_rejects(kernel) -> None:
    k = kernel(n=tl.int32)
    x = k.block(tl.float32, 16)
    with pytest.raises(ValueError, match=r"invalid axis 3. Expected -1 <= axis < 1"):
        k.sem.reduce([x], 3, adder(k))
    with pytest.raises(ValueError, match="got a scalar"):
        k.sem.reduce([k.n], 0, adder(k))
    with pytest.raises(ValueError, match=r"must have the same shape, scan got \[16\] and \[8\]"):
        k.sem.scan([x, k.block(tl.float32, 8)], 0, adder(k), False)
    with pytest.raises(TypeError, match=r"expected \(fp32\), got \(int1\)"):
        k.sem.reduce([x], 0, lambda args: [k.sem.less_than(*args)])
    with pytest.raises(TypeError, match=r"expected \(fp32, fp32\), got \(fp32\)"):
        k.sem.reduce([x, x], 0, lambda args: args[:1])


def test_map_elementwise(kernel) -> None:
    k = kernel(n=tl.int32)
    results = k.sem.map_elementwise(
        [k.block(tl.float32, 16), k.n], 2, lambda args: [args[2], args[3], args[0], args[1]]
    )
    assert [value.type for value in results] == [tl.block_type(tl.int32, [16]), tl.block_type(tl.float32, [16])]
    lines = k.lines()
    assert '"tt.map_elementwise"(%, %) <{pack = 2 : i32}> ({' in lines
    assert "^bb0(%: f32, %: f32, %: i32, %: i32):" in lines
    assert "tt.map_elementwise.return %, %, %, % : i32, i32, f32, f32" in lines


def test_map_elementwise_rejects(kernel) -> None:
    k = kernel()
    x, y = k.block(tl.float32, 16), k.block(tl.int32, 16)
    with pytest.raises(ValueError, match="2 values per output, got 3"):
        k.sem.map_elementwise([x, x], 2, lambda args: args[:3])
    with pytest.raises(TypeError, match=r"one type, got \(fp32, int32\)"):
        k.sem.map_elementwise([x, y], 2, lambda args: args[1:3])
    with pytest.raises(ValueError, match="power of 2"):
        k.sem.map_elementwise([x], 3, lambda args: args)
