"""Every dtype is one object: kernels may ask `x.dtype is tl.float32`, in every process and however the type was
made."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.language.dtypes import ALL_NAMES, user_name
from tilework.language.parameters import DTYPE_OF_CODE, str_to_ty
from tilework.language.typing.promotion import DTYPES, promote

SCALARS = [getattr(tl, user_name(name)) for name in sorted(ALL_NAMES)]
TYPES = [*SCALARS, tl.pointer_type(tl.float32), tl.pointer_type(tl.int8, 3, True), tl.block_type(tl.bfloat16, [4, 8])]


@pytest.mark.parametrize("type", TYPES, ids=repr)
def test_copies_and_pickles_are_the_same_object(type: Any) -> None:
    made = [copy.copy(type), copy.deepcopy(type), *(pickle.loads(pickle.dumps(type, n)) for n in range(6))]
    assert all(other is type for other in made)
    assert copy.deepcopy([{type: type}])[0][type] is type


def test_however_it_is_made() -> None:
    for type in SCALARS:
        assert tl.dtype(type.name) is type and tl.dtype(tl.constexpr(type.name)) is type
        assert all(found is type for found in (*DTYPE_OF_CODE.values(), *DTYPES.values()) if found.name == type.name)
    assert (
        str_to_ty("*kfp32")
        is tl.pointer_type(tl.float32, const=True)
        is tl.pointer_type(tl.float32, tl.constexpr(1), 1)
    )
    assert str_to_ty("*fp32").element_ty is tl.float32
    assert tl.block_type(tl.constexpr(tl.float32), (tl.constexpr(1), True)) is tl.block_type(tl.float32, [1, 1])
    assert tl.pointer_type(tl.float32) is not tl.pointer_type(tl.float32, const=True)
    assert promote("fp16", "bf16", 0, "+") is tl.float16 and tl.core.get_int_dtype(32, False) is tl.uint32
    assert tl.float32 == tl.constexpr(tl.float32) and tl.float32 != tl.float64 and tl.float32 != "fp32"


def own_types(types: list[Any]) -> list[bool]:
    """In another process: are the types that arrived those of this process?"""
    return [pickle.loads(pickle.dumps(type)) is type for type in types] + [
        tl.float32 in types and types[-1].element_ty is tl.bfloat16
    ]


def test_in_worker_processes() -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert all(pool.submit(own_types, TYPES).result(60))
    code = "import pickle, sys, tilework.language as tl; assert pickle.load(sys.stdin.buffer) is tl.float32"
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(tl.float32), check=True, timeout=60)


def branches(x_ptr, h_ptr, out, T: tl.constexpr):
    x, h = tl.load(x_ptr), tl.load(h_ptr)
    i = tl.arange(0, 4)
    tl.store(out + 0, 1 if x.dtype is tl.float32 else 0)
    tl.store(out + 1, 1 if x_ptr.dtype.element_ty is tl.float32 else 0)
    tl.store(out + 2, 1 if (x + h).dtype is tl.float32 else 0)
    tl.store(out + 3, 1 if (h * 2.0).dtype is tl.float16 else 0)
    tl.store(out + 4, 1 if (i * 1.5).dtype is tl.float32 else 0)
    tl.store(out + 5, 1 if tl.zeros((4,), T).dtype is T else 0)
    tl.store(out + 6, 1 if x.to(tl.int16).dtype is tl.int16 else 0)
    tl.store(out + 7, 1 if (h_ptr + i).dtype.element_ty is tl.float16 else 0)
    tl.store(out + 8, 1 if tl.sum(i, 0).dtype is tl.int32 else 0)
    tl.store(out + 9, 1 if (i < 2).dtype is tl.int1 else 0)
    tl.store(out + 10, 1 if tl.program_id(0).dtype is tl.int32 else 0)
    tl.store(out + 11, 1 if x.dtype is not tl.float64 else 0)


@pytest.mark.parametrize("interpret", [False, True])
def test_in_kernels(interpret: bool) -> None:
    kernel = tilework.jit(branches, interpret=interpret)
    out = np.zeros(12, np.int32)
    for type in (tl.float32, pickle.loads(pickle.dumps(tl.bfloat16))):
        out[:] = -1
        kernel[(1,)](np.ones(1, np.float32), np.ones(1, np.float16), out, type)
        assert out.tolist() == [1] * 12
