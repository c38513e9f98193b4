"""Small functions, executed on NumPy: what the ops of each family compute."""

import numpy as np
import pytest

from tilework.language import core as tl

F32, I32, I1 = (tl.pointer_type(dtype) for dtype in (tl.float32, tl.int32, tl.int1))


def grid(k, base, rows, columns):
    """Pointers to a row-major array of shape (rows, columns)."""
    row = k.sem.mul(k.sem.expand_dims(k.sem.arange(0, rows), 1), columns)
    return k.sem.add(base, k.sem.add(row, k.sem.arange(0, columns)))


def load(k, ptr, mask=None, other=None):
    return k.sem.load(ptr, mask, other, (), "", "", "", False)


def store(k, ptr, value, mask=None):
    k.sem.store(ptr, value, mask, (), "", "")


def test_masked_load_and_store(kernel) -> None:
    k = kernel(x=F32, y=F32, n=tl.int32)
    offsets = k.sem.arange(0, 8)
    mask = k.sem.less_than(offsets, k.n)
    store(k, k.sem.add(k.y, offsets), load(k, k.sem.add(k.x, offsets), mask, 7))
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    k.run(x=x, y=y, n=5)
    assert y.tolist() == [0, 1, 2, 3, 4, 7, 7, 7]


def test_bools_are_bytes(kernel) -> None:
    k = kernel(x=I1, y=I1)
    offsets = k.sem.arange(0, 4)
    store(k, k.sem.add(k.y, offsets), k.sem.not_(load(k, k.sem.add(k.x, offsets))))
    x, y = np.array([0, 1, 2, 255], np.uint8), np.zeros(4, np.uint8)
    k.run(x=x, y=y)
    assert y.tolist() == [1, 0, 0, 0]


def test_block_pointers_check_bounds(kernel) -> None:
    k = kernel(x=F32, y=F32)
    bp = k.sem.make_block_ptr(k.x, [3, 4], [4, 1], [1, 1], [4, 4], [1, 0])
    value = k.sem.load(k.sem.advance(bp, [1, -1]), None, None, (0, 1), "zero", "", "", False)
    store(k, grid(k, k.y, 4, 4), value)
    x, y = np.arange(12, dtype=np.float32), np.full(16, -1, np.float32)
    k.run(x=x, y=y)
    assert y.reshape(4, 4).tolist() == [[8, 9, 10, 11], [0] * 4, [0] * 4, [0] * 4]


def test_descriptors_clip(kernel) -> None:
    k = kernel(x=F32, y=F32)
    source = k.sem.make_tensor_descriptor(k.x, [3, 4], [4, 1], [4, 4])
    target = k.sem.make_tensor_descriptor(k.y, [4, 4], [4, 1], [4, 4])
    value = k.sem.descriptor_load(source, [2, 0])
    k.sem.descriptor_store(target, value, [2, 0])
    k.sem.descriptor_atomic("add", target, [0, 0], k.sem.full([4, 4], 1, tl.float32))
    x, y = np.arange(12, dtype=np.float32), np.zeros(16, np.float32)
    k.run(x=x, y=y)
    assert y.reshape(4, 4).tolist() == [[1] * 4, [1] * 4, [9, 10, 11, 12], [1] * 4]


@pytest.mark.parametrize("kind, numpy", [("max", np.maximum), ("min", np.minimum)])
@pytest.mark.parametrize("pointer, dtype", [(F32, np.float32), (tl.pointer_type(tl.float64), np.float64)])
def test_float_extrema(kernel, kind, numpy, pointer, dtype) -> None:
    numbers = np.array([-np.inf, -2, -1, -0.5, 0.5, 1, 2, np.inf], dtype)
    memory, values = (array.ravel().copy() for array in np.meshgrid(numbers, numbers))
    k = kernel(x=pointer, y=pointer, old=pointer)
    offsets = k.sem.arange(0, 64)
    value = load(k, k.sem.add(k.y, offsets))
    store(k, k.sem.add(k.old, offsets), k.sem.atomic_rmw(kind, k.sem.add(k.x, offsets), value, None, None, None))
    x, old = memory.copy(), np.zeros_like(memory)
    k.run(x=x, y=values, old=old)
    assert np.array_equal(x, numpy(memory, values))
    assert np.array_equal(old, memory)


def test_minus_zero_is_below_zero(kernel) -> None:
    k = kernel(x=F32, y=F32)
    k.sem.atomic_rmw("max", k.x, load(k, k.y), None, None, None)
    x, y = np.array([-1], np.float32), np.array([-0.0], np.float32)
    k.run(x=x, y=y)
    assert x[0] == 0 and np.signbit(x[0])


def test_atomics_respect_the_mask(kernel) -> None:
    k = kernel(x=I32)
    offsets = k.sem.arange(0, 4)
    k.sem.atomic_rmw("add", k.sem.add(k.x, offsets), 10, k.sem.less_than(offsets, 2), None, None)
    k.sem.atomic_cas(k.x, 10, 99, None, None)
    x = np.arange(4, dtype=np.int32)
    k.run(x=x)
    assert x.tolist() == [99, 11, 2, 3]


def test_shapes(kernel) -> None:
    k = kernel(x=I32, y=I32)
    x = load(k, grid(k, k.x, 4, 8))
    left, right = k.sem.split(k.sem.reshape(k.sem.permute(x, (1, 0)), (4, 4, 2)))
    store(k, grid(k, k.y, 8, 4), k.sem.reshape(k.sem.join(right, left), (8, 4)))
    data = np.arange(32, dtype=np.int32)
    out = np.zeros(32, np.int32)
    k.run(x=data, y=out)
    pairs = data.reshape(4, 8).T.reshape(4, 4, 2)
    assert np.array_equal(out, pairs[:, :, ::-1].ravel())


def test_gather_and_histogram(kernel) -> None:
    k = kernel(x=I32, y=I32, h=I32)
    offsets = k.sem.arange(0, 8)
    x = load(k, k.sem.add(k.x, offsets))
    store(k, k.sem.add(k.y, offsets), k.sem.gather(x, k.sem.sub(7, offsets), 0))
    store(k, k.sem.add(k.h, k.sem.arange(0, 4)), k.sem.histogram(x, 4, k.sem.less_than(offsets, 6)))
    x, y, h = np.array([0, 1, 1, 3, 3, 3, 2, 2], np.int32), np.zeros(8, np.int32), np.zeros(4, np.int32)
    k.run(x=x, y=y, h=h)
    assert y.tolist() == x[::-1].tolist()
    assert h.tolist() == [1, 2, 0, 3]


def test_dot(kernel) -> None:
    k = kernel(a=F32, b=F32, c=F32)
    a = k.sem.reshape(load(k, grid(k, k.a, 64, 16)), (2, 2, 16, 16))
    b = k.sem.reshape(load(k, grid(k, k.b, 64, 16)), (2, 2, 16, 16))
    c = k.sem.dot(a, b, None, "ieee", None, None, tl.float32)
    store(k, grid(k, k.c, 64, 16), k.sem.reshape(c, (64, 16)))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 4, 1024).astype(np.float32) for _ in range(2))
    c = np.zeros(1024, np.float32)
    k.run(a=a, b=b, c=c)
    assert np.array_equal(c, np.matmul(a.reshape(4, 16, 16), b.reshape(4, 16, 16)).ravel())


def test_reductions(kernel) -> None:
    k = kernel(x=F32, y=F32, z=F32)
    x = load(k, grid(k, k.x, 4, 8))

    def add(args):
        return [k.sem.add(args[0], args[1])]

    (rows,) = k.sem.reduce([x], 1, add)
    (total,) = k.sem.reduce([x], None, add)
    (scanned,) = k.sem.scan([x], 1, add, True)
    store(k, k.sem.add(k.y, k.sem.arange(0, 4)), k.sem.add(rows, total))
    store(k, grid(k, k.z, 4, 8), scanned)
    x, y, z = np.arange(32, dtype=np.float32), np.zeros(4, np.float32), np.zeros(32, np.float32)
    k.run(x=x, y=y, z=z)
    table = x.reshape(4, 8)
    assert np.array_equal(y, table.sum(1) + x.sum())
    assert np.array_equal(z.reshape(4, 8), table[:, ::-1].cumsum(1)[:, ::-1])


def test_map_elementwise(kernel) -> None:
    k = kernel(x=I32)
    pointers = k.sem.add(k.x, k.sem.arange(0, 8))
    (y,) = k.sem.map_elementwise([load(k, pointers)], 2, lambda args: [args[1], args[0]])
    store(k, pointers, y)
    x = np.arange(8, dtype=np.int32)
    k.run(x=x)
    assert sorted(x.tolist()) == list(range(8))
