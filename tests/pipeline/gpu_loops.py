"""Kernels whose loops are hard to pipeline: indirect and conditional loads, odd trip counts, dots that depend on
dots."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tilework
import tilework.language as tl
from examples.case import Arrays, Case

ROWS, DEPTH, WIDTH = 64, 16, 64


@tilework.jit
def short_loops(a_ptr, b_ptr, c_ptr, ROWS: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    """Program k multiplies k tiles: loops of 0, 1, 2, ... iterations, shorter and longer than the pipeline."""
    count = tl.program_id(0)
    rows, inner, columns = tl.arange(0, ROWS), tl.arange(0, DEPTH), tl.arange(0, WIDTH)
    a_ptrs = a_ptr + rows[:, None] * DEPTH * 8 + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * WIDTH + columns[None, :]
    acc = tl.zeros((ROWS, WIDTH), tl.float32)
    for k in range(0, count):
        acc = tl.dot(tl.load(a_ptrs + k * DEPTH), tl.load(b_ptrs + k * DEPTH * WIDTH), acc)
    tl.store(c_ptr + count * ROWS * WIDTH + rows[:, None] * WIDTH + columns[None, :], acc)


@tilework.jit
def indirect(index_ptr, a_ptr, b_ptr, c_ptr, n, ROWS: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    """The tile to multiply comes from a table: a load that waits for a load."""
    rows, inner, columns = tl.arange(0, ROWS), tl.arange(0, DEPTH), tl.arange(0, WIDTH)
    acc = tl.zeros((ROWS, WIDTH), tl.float32)
    for k in range(0, n):
        tile = tl.load(index_ptr + k)
        a = tl.load(a_ptr + tile * ROWS * DEPTH + rows[:, None] * DEPTH + inner[None, :])
        b = tl.load(b_ptr + k * DEPTH * WIDTH + inner[:, None] * WIDTH + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * WIDTH + columns[None, :], acc)


@tilework.jit
def conditional(a_ptr, b_ptr, c_ptr, n, ROWS: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    """Every third product is left out, every second one is added twice; the last row of a counts as ones."""
    rows, inner, columns = tl.arange(0, ROWS), tl.arange(0, DEPTH), tl.arange(0, WIDTH)
    acc = tl.zeros((ROWS, WIDTH), tl.float32)
    for k in range(0, n):
        mask = (rows[:, None] < ROWS - 1) & (inner[None, :] < DEPTH)
        a = tl.load(a_ptr + k * ROWS * DEPTH + rows[:, None] * DEPTH + inner[None, :], mask=mask, other=1.0)
        b = tl.load(b_ptr + k * DEPTH * WIDTH + inner[:, None] * WIDTH + columns[None, :])
        if k % 3 != 0:
            acc = tl.dot(a, b, acc)
            if k % 2 == 0:
                acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * WIDTH + columns[None, :], acc)


@tilework.jit
def chained(a_ptr, b_ptr, c_ptr, n, ROWS: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    """The product of a product; b is used transposed, and also added."""
    rows, inner, columns = tl.arange(0, ROWS), tl.arange(0, DEPTH), tl.arange(0, WIDTH)
    total = tl.zeros((ROWS, DEPTH), tl.float32)
    bias = tl.zeros((DEPTH, WIDTH), tl.float32)
    for k in range(0, n):
        a = tl.load(a_ptr + k * ROWS * DEPTH + rows[:, None] * DEPTH + inner[None, :])
        b = tl.load(b_ptr + k * DEPTH * WIDTH + inner[:, None] * WIDTH + columns[None, :])
        scores = tl.dot(a, b)
        total = tl.dot(tl.maximum(scores, 0.0).to(b.dtype), tl.trans(b), total)
        bias += b.to(tl.float32)
    tl.store(c_ptr + rows[:, None] * DEPTH + inner[None, :], total)
    tl.store(c_ptr + ROWS * DEPTH + inner[:, None] * WIDTH + columns[None, :], bias)


@tilework.jit
def nested(a_ptr, b_ptr, c_ptr, n, ROWS: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    """A loop over tiles around a loop over k, flattened if the compiler can."""
    rows, inner, columns = tl.arange(0, ROWS), tl.arange(0, DEPTH), tl.arange(0, WIDTH)
    for tile in tl.range(0, 3, flatten=True):
        acc = tl.zeros((ROWS, WIDTH), tl.float32)
        for k in range(0, n - tile):
            a = tl.load(a_ptr + k * ROWS * DEPTH + rows[:, None] * DEPTH + inner[None, :])
            b = tl.load(b_ptr + k * DEPTH * WIDTH + inner[:, None] * WIDTH + columns[None, :])
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + tile * ROWS * WIDTH + rows[:, None] * WIDTH + columns[None, :], acc)


@tilework.jit
def until(a_ptr, b_ptr, c_ptr, n, ROWS: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    """A while loop with a dot, and a delay of one iteration between load and use."""
    rows, inner, columns = tl.arange(0, ROWS), tl.arange(0, DEPTH), tl.arange(0, WIDTH)
    acc = tl.zeros((ROWS, WIDTH), tl.float32)
    a = tl.load(a_ptr + rows[:, None] * DEPTH + inner[None, :])
    k = 0
    while k < n:
        b = tl.load(b_ptr + k * DEPTH * WIDTH + inner[:, None] * WIDTH + columns[None, :])
        acc = tl.dot(a, b, acc)
        k += 1
        if k < n:
            a = tl.load(a_ptr + k * ROWS * DEPTH + rows[:, None] * DEPTH + inner[None, :])
    tl.store(c_ptr + rows[:, None] * WIDTH + columns[None, :], acc)


@tilework.jit
def delayed(a_ptr, b_ptr, c_ptr, n, ROWS: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    """A value loaded in one iteration is multiplied two iterations later."""
    rows, inner, columns = tl.arange(0, ROWS), tl.arange(0, DEPTH), tl.arange(0, WIDTH)
    acc = tl.zeros((ROWS, WIDTH), tl.float32)
    older = tl.zeros((ROWS, DEPTH), tl.float16)
    old = tl.zeros((ROWS, DEPTH), tl.float16)
    for k in range(0, n):
        b = tl.load(b_ptr + k * DEPTH * WIDTH + inner[:, None] * WIDTH + columns[None, :])
        acc = tl.dot(older, b, acc)
        older = old
        old = tl.load(a_ptr + k * ROWS * DEPTH + rows[:, None] * DEPTH + inner[None, :])
    tl.store(c_ptr + rows[:, None] * WIDTH + columns[None, :], acc)


@tilework.jit
def batched(a_ptr, b_ptr, c_ptr, n, ROWS: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    """Dots of three dimensions."""
    batch = tl.arange(0, 4)[:, None, None]
    rows, columns = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    inner = tl.arange(0, DEPTH)
    a = tl.load(a_ptr + batch * ROWS * DEPTH + rows[None, :, None] * DEPTH + inner[None, None, :])
    b = tl.load(b_ptr + batch * DEPTH * WIDTH + inner[None, :, None] * WIDTH + columns[None, None, :])
    tl.store(c_ptr + batch * ROWS * WIDTH + rows[None, :, None] * WIDTH + columns[None, None, :], tl.dot(a, b))


@tilework.jit
def updated_in_place(a_ptr, b_ptr, c_ptr, n, ROWS: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr):
    """Each iteration reads what the one before wrote: loads must not move over the store."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    inner = tl.arange(0, DEPTH)
    index = c_ptr + rows[:, None] * WIDTH + columns[None, :]
    for k in range(0, n):
        a = tl.load(a_ptr + k * ROWS * DEPTH + rows[:, None] * DEPTH + inner[None, :])
        b = tl.load(b_ptr + k * DEPTH * WIDTH + inner[:, None] * WIDTH + columns[None, :])
        tl.store(index, tl.dot(a, b) + tl.load(index) * 0.5)


COUNT = 8


def operands(rng: np.random.Generator) -> Arrays:
    return {
        "a_ptr": rng.standard_normal((COUNT, ROWS, DEPTH)).astype("f2"),
        "b_ptr": rng.standard_normal((COUNT, DEPTH, WIDTH)).astype("f2"),
        "c_ptr": np.zeros((COUNT + 1, ROWS, WIDTH), np.float32),
        "n": 7,
    }


def products(arrays: Arrays) -> np.ndarray[Any, Any]:
    return arrays["a_ptr"].astype("f4") @ arrays["b_ptr"].astype("f4")


def filled(compute: Callable[[Arrays], np.ndarray[Any, Any]]) -> Callable[[Arrays], Arrays]:
    """`compute` gives the beginning of c; the rest stays zero."""

    def expected(arrays: Arrays) -> Arrays:
        out = arrays["c_ptr"].copy().reshape(-1)
        found = compute(arrays).reshape(-1)
        out[: found.size] = found
        return {"c_ptr": out.reshape(arrays["c_ptr"].shape)}

    return expected


def short_reference(arrays: Arrays) -> np.ndarray[Any, Any]:
    a = arrays["a_ptr"].astype("f4").reshape(ROWS, COUNT, DEPTH).transpose(1, 0, 2)
    each = a @ arrays["b_ptr"].astype("f4")
    return np.concatenate([np.zeros((1, ROWS, WIDTH), "f4"), np.cumsum(each, 0)])


def conditional_reference(arrays: Arrays) -> np.ndarray[Any, Any]:
    a = arrays["a_ptr"].copy()
    a[:, -1] = 1
    each = a.astype("f4") @ arrays["b_ptr"].astype("f4")
    return np.sum([each[k] * (2 if k % 2 == 0 else 1) for k in range(7) if k % 3], axis=0)


def chained_reference(arrays: Arrays) -> np.ndarray[Any, Any]:
    b = arrays["b_ptr"][:7].astype("f4")
    scores = np.maximum(products(arrays)[:7], 0).astype("f2").astype("f4")
    return np.concatenate([(scores @ b.transpose(0, 2, 1)).sum(0).reshape(-1), b.sum(0).reshape(-1)])


def delayed_reference(arrays: Arrays) -> np.ndarray[Any, Any]:
    a, b = arrays["a_ptr"].astype("f4"), arrays["b_ptr"].astype("f4")
    return sum((a[k - 2] @ b[k] for k in range(2, 7)), np.zeros((ROWS, WIDTH), "f4"))


def in_place_reference(arrays: Arrays) -> np.ndarray[Any, Any]:
    out = np.zeros((ROWS, WIDTH), "f4")
    for product in products(arrays)[:7]:
        out = product + out * 0.5
    return out


INDEX = np.array([5, 0, 3, 3, 7, 1, 2, 6], np.int32)
POINTERS = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
SIZES = {"ROWS": ROWS, "DEPTH": DEPTH, "WIDTH": WIDTH}


def loop_case(kernel: Any, compute: Callable[[Arrays], np.ndarray[Any, Any]], grid: int = 1, **changes: Any) -> Case:
    """A case on the common operands."""
    signature = {**POINTERS, **({} if kernel is short_loops else {"n": "i32"})}
    settings: dict[str, Any] = {
        "signature": signature,
        "constexprs": SIZES,
        "arguments": lambda rng: {name: value for name, value in operands(rng).items() if name in signature},
        "atol": 0.5,
        "divisible": tuple(POINTERS),
        **changes,
    }
    return Case(name=kernel.__name__, kernel=kernel, grid=(grid,), expected=filled(compute), **settings)


LOOPS = [
    loop_case(short_loops, short_reference, grid=COUNT + 1),
    loop_case(
        indirect,
        lambda arrays: np.matmul(
            arrays["a_ptr"].astype("f4")[INDEX][:7], arrays["b_ptr"].astype("f4")[:7]
        ).sum(0),
        signature={"index_ptr": "*i32", **POINTERS, "n": "i32"},
        arguments=lambda rng: {"index_ptr": INDEX.copy(), **operands(rng)},
    ),
    loop_case(conditional, conditional_reference),
    loop_case(chained, chained_reference),
    loop_case(nested, lambda arrays: np.stack([products(arrays)[: 7 - tile].sum(0) for tile in range(3)])),
    loop_case(until, lambda arrays: products(arrays)[:7].sum(0)),
    loop_case(delayed, delayed_reference),
    loop_case(batched, lambda arrays: products(arrays)[:4]),
    loop_case(updated_in_place, in_place_reference),
]  # fmt: skip
