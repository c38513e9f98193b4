"""The functions of `tl`: rules, defaults and errors of each function.

A case is named after its row; `rows.py` says what a body and an expectation are. The tables of dtypes that atomics and
descriptor reductions accept are checked whole. Values of mathematics, reductions and random numbers on all dtypes are
in `tests/frontend/semantic`, `tests/language` and `tests/differential`.
"""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import tilework.language as tl
from tests.frontend.rows import Refused, arguments, check, kernel
from tests.frontend.run import error, text, ttir
from tilework.errors import CompilationError, CompileTimeAssertionFailure

HEADER = """
import tilework.language.extra.cuda as cuda
from tilework.language.extra import libdevice
from tilework.language.extra.libdevice import rsqrt as reciprocal_root

SYMBOLS = tl.constexpr({(tl.float32,): ("__nv_fabsf", tl.float32)})

@tilework.jit
def add(a, b):
    return a + b

@tilework.jit
def less(a, b):
    return a < b

@tilework.jit
def add_and_multiply(a, b, c, d):
    return a + c, b * d

@tilework.jit
def asserting(a, b):
    tl.device_assert(a >= 0, "negative")
    return a + b

@tilework.jit
def larger(a, b):
    if a > b:
        return a
    else:
        return b

@tilework.jit
def two_of_four(a0, a1, b0, b1):
    return a0 - b0, a1 + b1

Y = tl.constexpr(8)
"""
Y = "y = tl.arange(0, 8)\n"
DESCRIPTOR = "d = tl.make_tensor_descriptor(p, [n, 8], [8, 1], [4, 8])\n"
WINDOW = "b = tl.make_block_ptr(p, (8, 8), (8, 1), (n, 0), (4, 8), (1, 0))\n"
FAILED = CompileTimeAssertionFailure

PROGRAM = {
    "num_programs": ("tl.store(out, tl.num_programs(0) * 100 + tl.num_programs(2) + tl.program_id(1))", [101]),
    "program_id axis": ("tl.program_id(20)", Refused(ValueError, "program_id axis must be 0, 1, or 2 but got 20",
                                                     True)),
    "num_programs axis": ("tl.num_programs(3)",
                          Refused(ValueError, "num_programs axis must be 0, 1, or 2 but got 3", True)),
    "debug_barrier": ("tl.debug_barrier()", "ttg.barrier all"),
    "target_info": ("""
        tl.static_assert(tl.target_info.is_cuda() and not tl.target_info.is_hip() and not tl.target_info.is_hip_cdna3())
        tl.static_assert(tl.target_info.cuda_capability_geq(9) and not tl.target_info.cuda_capability_geq(9, 1))
        tl.static_assert(tl.target_info.current_target().arch == 90 and not tl.target_info.is_hip_cdna4())
        tl.static_assert(not tl.target_info.is_hip_gfx1250())
        """, []),
    "reduce, run-time axis": (Y + "tl.sum(y, n)", Refused(ValueError, "axis")),
    "arange": ("tl.store(out + tl.arange(0, 4), tl.arange(3, 7))", [3, 4, 5, 6]),
    "arange, run time": ("tl.arange(0, n)", Refused(ValueError, "constexpr")),
    "arange, empty": ("tl.arange(4, 4)", Refused(ValueError, "greater than the start")),
    "arange, negative": ("tl.arange(-4, 4)", Refused(ValueError, "int32")),
    "arange, large": ("tl.arange(4294967296, 4294967300)", Refused(ValueError, "int32")),
    "full, one element": ("tl.store(out + tl.arange(0, 4), tl.full((4,), tl.full((1,), x, tl.float32), tl.int32))",
                          [1] * 4),
    "full, block": ("tl.full((4,), tl.arange(0, 4), tl.int32)", Refused(AssertionError, "only accepts size-1")),
    "full, scalar": (("tl.static_assert(tl.full([], n, tl.int8).shape == () and tl.full((), 1, "
                      "tl.int8).dtype == tl.int8)"), []),
    "full, float as int": ("tl.full((4,), 2.0, tl.int32)", Refused(TypeError, "2.0 is a float")),
    "full, 0.0 as int": ("tl.store(out, tl.full((), 0.0, tl.int32))", [0]),
    **{f"full, {t}": (f"tl.store(out, (tl.full((), 1.5, tl.{t}).to(tl.float32) * 2).to(tl.int32))", [3])
       for t in ("float8e5", "float8e4nv", "float8e4b15")},
    "zeros": (("tl.static_assert(tl.zeros((), tl.int8).shape == () and tl.zeros_like(tl.zeros((2,), "
               "tl.int1)).dtype == tl.int1)"), []),
    "isinstance": ("tl.static_assert(isinstance(n, tl.tensor) and isinstance(tl.tuple((1, n)), tl.tuple))", []),
}  # fmt: skip

MEMORY = {
    "load, masked": (Y + "tl.store(out + y, tl.load(p + y + 1, y < n).to(tl.int32))", [1, 2, 3, 0, 0, 0, 0, 0]),
    "load, other": (Y + "tl.store(out + y, tl.load(p + y + 1, y < n, other=n * 3).to(tl.int32))", [1, 2, 3] + [9] * 5),
    "load, True and False": (
        "tl.store(out, (tl.load(p + 4, mask=True) + 10 * tl.load(p + 4, mask=False, other=2)).to(tl.int32))", [24]),
    "load, scalar pointer, block mask": ("tl.load(p, tl.arange(0, 4) < n)", Refused(ValueError, "Mask argument")),
    "load, scalar pointer, block other": ("tl.load(p, True, tl.zeros((4,), tl.float32))",
                                          Refused(ValueError, "Other argument")),
    "load, mask type": (Y + "tl.load(p + y, mask=y)", Refused(ValueError, "boolean")),
    "load, no pointer": ("tl.load(n)", Refused(ValueError, "Unsupported ptr type")),
    **{f"load, {m}": (f"tl.load(p, cache_modifier='.{m}')", f"cacheModifier = {m}") for m in ("ca", "cg", "cv")},
    "load, no modifier": ("tl.load(p, cache_modifier=None, eviction_policy='')", "tt.load %p : !tt.ptr<f32>"),
    "load, modifier": ("tl.load(p, cache_modifier='.wb')", Refused(ValueError, "Cache modifier .wb")),
    **{f"load, {e}": (f"tl.load(p, eviction_policy='{e}')", f"evictionPolicy = {e}") for e in ("evict_first",
        "evict_last")},
    "load, policy": ("tl.load(p, eviction_policy='evict_normally')", Refused(ValueError, "Eviction policy")),
    "load, volatile": ("tl.load(p, volatile=True)", "isVolatile = true"),
    "load, block pointer": (WINDOW + "tl.store(out + tl.arange(0, 8), tl.max(tl.load(b), 0).to(tl.int32))",
                            [*range(48, 56)]),
    "load, block pointer, mask": (WINDOW + "tl.load(b, mask=True)", Refused(ValueError, "cannot be specified")),
    "load, block pointer, other": (WINDOW + "tl.load(b, other=0.0)", Refused(ValueError, "")),
    "load, zero padding": ("b = tl.make_block_ptr(p + 1, 4, 1, 2, 4, 0)\n"
                           "v = tl.load(b, boundary_check=(0,), padding_option='zero')\n"
                               "tl.store(out + tl.arange(0, 4), v.to(tl.int32))", [3, 4, 0, 0]),
    "load, nan padding": ("b = tl.make_block_ptr(p, 4, 1, 2, 4, 0)\n"
                          "v = tl.load(b, boundary_check=(0,), padding_option='nan')\n"
                              "tl.store(out + tl.arange(0, 4), (v != v).to(tl.int32))", [0, 0, 1, 1]),
    "load, nan padding of ints": (("b = tl.make_block_ptr(out, 4, 1, 2, 4, 0)\n"
                                   "tl.load(b, boundary_check=(0,), padding_option='nan')"),
                                      Refused(ValueError, "nan")),
    "load, unknown padding": (WINDOW + "tl.load(b, padding_option='one')", Refused(ValueError, "Padding option one")),
    "load, dims twice": (WINDOW + "tl.load(b, boundary_check=(0, 0))", Refused(AssertionError, "boundary_check")),
    "load, dims out of range": (WINDOW + "tl.load(b, boundary_check=(2,))", Refused(AssertionError, "boundary_check")),
    "store, constant": ("tl.store(out + tl.arange(0, 2), 2.75)", [2, 2]),
    "store, method": ("out.store(n)\n(out + tl.arange(1, 3)).store(x)", [3, 1, 1]),
    "store, larger value": ("tl.store(out + tl.arange(0, 2), tl.zeros((2, 2), tl.int32))",
                            Refused(ValueError, "[2, 2]")),
    "store, larger mask": ("tl.store(out + tl.arange(0, 2), 1, tl.zeros((2, 2), tl.int1))",
                           Refused(ValueError, "[2, 2]")),
    "store, dims": ("tl.store(out + tl.arange(0, 2), tl.arange(0, 4))", Refused(ValueError, "4")),
    "store, mask type": ("tl.store(out, 1, mask=n)", Refused(ValueError, "boolean")),
    "store, bool": ("q = out.to(tl.pointer_type(tl.int1), bitcast=True)\ntl.store(out, 0)\ntl.store(q, 2)\n"
                        "tl.store(q + 1, n > 2)", [258]),
    **{f"store, {m}": (f"tl.store(out, 1, cache_modifier='.{m}')", f"cacheModifier = {m}") for m in ("wb", "cg", "cs",
        "wt")},
    "store, modifier": ("tl.store(out, 1, cache_modifier='.ca')", Refused(ValueError, "Cache modifier .ca")),
    "store, block pointer": ("b = tl.make_block_ptr(out, 8, 1, 2, 4, 0)\ntl.store(b, n)", [-1, -1, 3, 3, 3, 3, -1]),
    "store, block pointer, shape": (WINDOW + "tl.store(b, tl.zeros((8,), tl.float32))",
                                    Refused(AssertionError, "Block shape")),
    "store, block pointer, type": (WINDOW + "tl.store(b, tl.zeros((4, 8), tl.int32))",
                                   Refused(AssertionError, "element type")),
    "store, block pointer, scalar of another type": (WINDOW + "tl.store(b, n)",
                                                     Refused(AssertionError, "element type")),
    "make_block_ptr, wide offset": ("tl.make_block_ptr(p, [8], [1], [n.to(tl.int64)], [4], [0])",
                                    Refused(ValueError, "tl.int32")),
    "make_block_ptr, lengths": ("tl.make_block_ptr(p, [8], [8, 1], [0, 0], [4, 4], [1, 0])",
                                Refused(AssertionError, "length")),
    "make_block_ptr, order": ("tl.make_block_ptr(p, [8, 8], [8, 1], [0, 0], [4, 4], [1, 1])",
                              Refused(AssertionError, "permutation")),
    "make_block_ptr, base": ("tl.make_block_ptr(n, 8, 1, 0, 4, 0)", Refused(ValueError, "pointer")),
    "make_block_ptr, base of blocks": ("tl.make_block_ptr(p + tl.arange(0, 4), 8, 1, 0, 4, 0)",
                                       Refused(ValueError, "pointer")),
    "advance": ("b = tl.make_block_ptr(p, 64, 1, 8, 4, 0)\nb = tl.advance(b, (-4,)).advance([n])\n"
                    "tl.store(out + tl.arange(0, 4), tl.load(b).to(tl.int32))", [7, 8, 9, 10]),
    "advance, unused": (WINDOW + "tl.advance(b, (1, 0))", Refused(CompilationError, ("The result of tl.advance is "
                                                                                     "not being used."))),
}  # fmt: skip

DESCRIPTORS = {
    "descriptor, one dimension": ("d = tl.make_tensor_descriptor(p, [64], [1], [8])\n"
                                      "tl.store(out + tl.arange(0, 8), d.load([n]).to(tl.int32))", [*range(3, 11)]),
    "descriptor, five dimensions": ("d = tl.make_tensor_descriptor(p, [1, 2, 2, 2, 8], [64, 32, 16, 8, 1], [1, 1, "
                                    "1, 1, 8])\n"
                                        "tl.store(out + tl.arange(0, 8), d.load([0, 1, 0, 1, "
                                        "0]).reshape(8).to(tl.int32))",
                                        [*range(40, 48)]),
    "descriptor, six dimensions": ("tl.make_tensor_descriptor(p, [8] * 6, [8] * 5 + [1], [1] * 5 + [8])",
                                       Refused(ValueError, "1 <= ndim <= 5")),
    "descriptor, lengths": ("tl.make_tensor_descriptor(p, [8], [8, 1], [1, 8])", Refused(ValueError, "")),
    "descriptor, 16 bytes": ("tl.make_tensor_descriptor(p, [8, 8], [8, 1], [8, 2])",
                                 Refused(ValueError, "Descriptor block shape must have at least 16 bytes")),
    "descriptor, stride": ("tl.make_tensor_descriptor(p, [8, 8], [8, n], [8, 8])",
                           Refused(ValueError, "last dim must be 1")),
    "descriptor, stride 2": ("tl.make_tensor_descriptor(p, [8, 8], [8, 2], [8, 8])",
                           Refused(ValueError, "last dim must be 1")),
    "descriptor, nan of ints": ("tl.make_tensor_descriptor(out, [8], [1], [8], padding_option='nan')",
                                Refused(ValueError, "nan")),
    "descriptor, padding": ("tl.make_tensor_descriptor(p, [8], [1], [8], padding_option='one')",
                            Refused(ValueError, "one")),
    "descriptor, list": ("s = tl.tuple((n, C))\nd = tl.make_tensor_descriptor(p, s, [C, 1], [1, 4])\n"
                             "tl.static_assert(isinstance(s[1], tl.constexpr) or s[1].dtype == tl.int32)", []),
    "descriptor, members": (DESCRIPTOR + """
tl.static_assert(isinstance(d, tl.tensor_descriptor) and d.dtype == tl.float32 and d.block_shape == [4, 8])
tl.static_assert(d.block_type == tl.block_type(tl.float32, [4, 8]))
tl.static_assert(d.shape[0].dtype == tl.int32 and d.strides[0].dtype == tl.int64)
tl.store(out, d.shape[0] * 10 + d.strides[0])
""", [38]),
    "descriptor, outside": (DESCRIPTOR + "tl.store(out + tl.arange(0, 8), tl.sum(d.load([2, 4]), 0).to(tl.int32))",
                                [20, 21, 22, 23, 0, 0, 0, 0]),
    "descriptor, store": (("d = tl.make_tensor_descriptor(out, [1, 5], [8, 1], [1, 8])\n"
                           "d.store([0, 0], tl.full((1, 8), x, tl.float32))"),
                              [1, 1, 1, 1, 1, -1, -1, -1]),
    "descriptor, store shape": (DESCRIPTOR + "d.store([0, 0], tl.zeros((8, 4), tl.float32))",
                                Refused(AssertionError, "[4, 8]")),
    "descriptor, offsets": (DESCRIPTOR + "d.load([0])", Refused(AssertionError, "offset")),
    "descriptor, wide offsets": (DESCRIPTOR + "d.load([0, n.to(tl.int64)])", Refused(ValueError, "int32")),
    "descriptor, free functions": ("""
        a = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8])
        b = tl.make_tensor_descriptor(out, [1, 8], [8, 1], [1, 8])
        tl.store_tensor_descriptor(b, (0, 0), tl.load_tensor_descriptor(a, (2, 0)))
        """, [*range(16, 24)]),
    "descriptor, gather": ("d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8])\n"
                           "v = d.gather(7 - tl.arange(0, 8), 0)\n"
                               "tl.store(out + tl.arange(0, 8), tl.sum(tl.where(tl.arange(0, 8)[None, :] == 1, v, "
                               "0.0), 1).to(tl.int32))",
                               [57, 49, 41, 33, 25, 17, 9, 1]),
    "descriptor, gather of few rows": (("d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8])\n"
                                        "d.gather(tl.arange(0, 4), 0)"),
                                           Refused(AssertionError, "8 rows")),
    "descriptor, gather of a tile": (DESCRIPTOR + "d.gather(tl.arange(0, 8), 0)", Refused(AssertionError, "one row")),
    "descriptor, scatter": ("d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8])\n"
                                "d.scatter(tl.full((8, 8), x, tl.float32), 7 - tl.arange(0, 8), 0)\n"
                                "tl.store(out, tl.load(p + 9).to(tl.int32))", [1]),
}  # fmt: skip

ATOMICS = {
    "atomic, result": ("tl.store(out + tl.arange(0, 4), 5)\nv = tl.atomic_max(out + tl.arange(0, 4), tl.arange(3, 7))\n"
                   "tl.store(out + 4 + tl.arange(0, 4), v)", [5, 5, 5, 6, 5, 5, 5, 5]),
    **{f"atomic, {sem} {scope}": (f"tl.atomic_add(out, 1, sem='{sem}', scope='{scope}')",
                                  f"tt.atomic_rmw add, {sem}, {scope}")
       for sem, scope in product(("acquire", "release", "acq_rel", "relaxed"), ("gpu", "cta", "sys"))},
    "atomic, defaults": ("tl.atomic_cas(out, 1, n)", "tt.atomic_cas acq_rel, gpu"),
    "atomic, sem": ("tl.atomic_add(out, 1, sem='seq_cst')", Refused(ValueError, "seq_cst")),
    "atomic, scope": ("tl.atomic_add(out, 1, scope='cluster')", Refused(ValueError, "cluster")),
    "atomic, cast and broadcast": ("tl.store(out + tl.arange(0, 2), 1)\n(out + tl.arange(0, 2)).atomic_add(x)", [2, 2]),
    "atomic, mask": ("tl.atomic_xchg(out + tl.arange(0, 4), 7, mask=tl.arange(0, 4) > 1)", [-1, -1, 7, 7]),
    "atomic, mask of one": ("tl.atomic_xchg(out + tl.arange(0, 2), 7, mask=n > 5)", [-1, -1]),
    "atomic, constant mask": ("tl.atomic_add(out, 2, mask=True)\ntl.atomic_add(out, 2, mask=False)", [1]),
    "atomic, same address": ("tl.store(out, 0)\ntl.atomic_add(out + tl.zeros((8,), tl.int32), tl.arange(0, 8))", [28]),
    "atomic, cas": ("v = out.atomic_cas(-1, 5)\ntl.store(out + 1, v)\ntl.store(out + 2, tl.atomic_cas(out, 4, 9))",
                    [5, -1, 5]),
    "atomic, cas does not cast": ("tl.atomic_cas(out, n, x)", Refused(ValueError, "cast")),
    "atomic, cas does not broadcast": ("tl.atomic_cas(out + tl.arange(0, 4), n, n)", Refused(ValueError, "broadcast")),
    "atomic, no pointer": ("tl.atomic_add(n, 1)", Refused(ValueError, "Unsupported ptr type")),
    "atomic, and, or, xor": (("tl.store(out, 12)\nout.atomic_and(10)\nout.atomic_or(1)\nout.atomic_xor(3)\n"
                              "out.atomic_min(9)"), [9]),
    "atomic, float max": ("q = p.to(tl.pointer_type(tl.float32))\nq.atomic_max(-1.0)\n(q + 1).atomic_max(7.5)\n"
                          "tl.atomic_min(q + 2, -0.0)\n"
                      "tl.store(out + tl.arange(0, 4), (tl.load(p + tl.arange(0, 4)) * 2).to(tl.int32))",
                      [0, 15, 0, 6]),
}  # fmt: skip

REST = {
    "dot, rank": ("a = tl.zeros((16,), tl.float16)\ntl.dot(a, a)", Refused(AssertionError, "rank")),
    "dot, batch": ("tl.dot(tl.zeros((2, 16, 16), tl.float16), tl.zeros((4, 16, 16), tl.float16))",
                   Refused(AssertionError, "batch")),
    "dot, K >= 16": ("tl.dot(tl.zeros((8, 8), tl.float16), tl.zeros((8, 8), tl.float16))",
                    Refused(AssertionError, "Input shapes should have M >= 1, N >= 1 and K >= 16")),
    "dot, K >= 32": ("tl.dot(tl.zeros((8, 16), tl.float8e5), tl.zeros((16, 8), tl.float8e5))",
                    Refused(AssertionError, "Input shapes should have M >= 1, N >= 1 and K >= 32")),
    "dot, M and N of 1": (("tl.static_assert(tl.dot(tl.zeros((1, 16), tl.float16), tl.zeros((16, 1), "
                           "tl.float16)).shape == (1, 1))"), []),
    "dot, int8 acc": ("a = tl.zeros((32, 32), tl.int8)\ntl.dot(a, a, tl.zeros((32, 32), tl.int32))",
                      Refused(AssertionError, "out_dtype")),
    "dot, int8 acc and out_dtype": (("a = tl.zeros((32, 32), tl.int8)\n"
                                     "tl.dot(a, a, tl.zeros((32, 32), tl.int32), out_dtype=tl.int32)"), "tt.dot"),
    "dot, fp64 acc": ("a = tl.zeros((16, 16), tl.float64)\ntl.dot(a, a, a)", Refused(AssertionError, "out_dtype")),
    "dot, fp64 acc and out_dtype": (("a = tl.zeros((16, 16), tl.float64)\n"
                                     "tl.static_assert(tl.dot(a, a, a, out_dtype=tl.float64).dtype == tl.float64)"),
                                     []),
    "dot, bf16 is fp32": (("a = tl.zeros((16, 16), tl.bfloat16)\n"
                           "tl.static_assert(tl.dot(a, a, out_dtype=tl.float16).dtype == tl.float32)"), []),
    "dot, both precisions": (("a = tl.zeros((16, 16), tl.float32)\n"
                              "tl.dot(a, a, input_precision='ieee', allow_tf32=True)"),
                              Refused(AssertionError, "Only one")),
    "dot, precision": ("a = tl.zeros((16, 16), tl.float32)\ntl.dot(a, a, input_precision='fp32')",
                       Refused(AssertionError, "must be one of")),
    **{f"dot, {q}": (f"a = tl.zeros((16, 16), tl.float32)\ntl.dot(a, a, input_precision='{q.upper()}')",
                     f"inputPrecision = {q}")
       for q in ("tf32", "tf32x3", "bf16x3", "bf16x6")},
    "dot, max_num_imprecise_acc": ("a = tl.zeros((64, 64), tl.float8e5)\ntl.dot(a, a, max_num_imprecise_acc=128)",
                                  Refused(ValueError, "max_num_imprecise_acc (128) must be <= K (64)", True)),
    "dot_scaled scale": ("""
        a, b = tl.zeros((32, 64), tl.uint8), tl.zeros((64, 32), tl.uint8)
        tl.dot_scaled(a, tl.zeros((32, 4), tl.uint8), "e4m3", b, None, "e4m3")
        """, Refused(AssertionError, "lhs_scale must be a tensor of shape [..., 32, 2]. Got ['32', '4']", True)),
    "dot_scaled uint16": ("""
        a, s = tl.zeros((32, 64), tl.uint16), tl.zeros((32, 2), tl.uint8)
        c = tl.dot_scaled(a, s, "bf16", tl.zeros((2, 64, 32), tl.float16).reshape(64, 64)[:, :], None, "fp16")
        tl.static_assert(c.shape == (32, 64) and c.dtype == tl.float32)
        """, []),
    "dot_scaled rank 3": ("""
        a, s = tl.zeros((2, 32, 64), tl.float8e5), tl.zeros((2, 32, 2), tl.uint8)
        tl.static_assert(tl.dot_scaled(a, s, "e5m2", a.trans(), s, "e5m2").shape == (2, 32, 32))
        """, []),
    "dot_scaled out_dtype": (("a = tl.zeros((32, 32), tl.float8e5)\n"
                              "tl.dot_scaled(a, None, 'e5m2', a, None, 'e5m2', out_dtype=tl.float16)"),
                                 Refused(AssertionError, "")),
    "dot_scaled acc": (("a = tl.zeros((32, 32), tl.float8e5)\n"
                        "tl.dot_scaled(a, None, 'e5m2', a, None, 'e5m2', tl.zeros((32, 32), tl.float16))"),
                           Refused(AssertionError, "acc")),
    "math, cdiv of constants": ("v = tl.cdiv(7, 2)\ntl.static_assert(isinstance(v, tl.tensor))\ntl.store(out, v)", [4]),
    "math, cdiv truncates": ("tl.store(out, tl.cdiv(n - 10, 2))\ntl.store(out + 1, n.cdiv(2))", [-3, 2]),
    "math, constant argument": (("tl.static_assert(tl.exp(1.0).dtype == tl.float32 and tl.math.sqrt(4.0).dtype == "
                                 "tl.float32)"), []),
    "math, fp16 argument": ("tl.exp(x.to(tl.float16))", Refused(ValueError, ("Expected dtype ['fp32', "
                                                                             "'fp64'] but got fp16"))),
    "math, softmax without keep_dims": ("tl.softmax(tl.zeros((2, 4), tl.float32), dim=1)",
                                        Refused(ValueError, "index 1")),
    "reduce, tuple": (Y + ("a, b = tl.reduce((y, y * 0 + 2), 0, add_and_multiply)\ntl.store(out, a)\n"
                           "tl.store(out + 1, b)"), [28, 256]),
    "reduce, tuple of one": (Y + ("t = tl.reduce((y,), 0, add)\ntl.static_assert(isinstance(t, tl.tuple))\n"
                                  "tl.store(out, t[0])"), [28]),
    "reduce, axis None": (Y + ("t = tl.reduce(y.reshape(2, 4), None, add, keep_dims=True)\n"
                               "tl.static_assert(t.shape == (1, 1))"), []),
    "reduce, negative axis": (Y + ("t = y.reshape(2, 4).reduce(-2, add, keep_dims=True)\n"
                                   "tl.store(out + tl.arange(0, 4), t.reshape(4))"), [4, 6, 8, 10]),
    "reduce, axis out of range": (Y + "tl.reduce(y, -2, add)", Refused(ValueError, "invalid axis -2")),
    "reduce, types": (Y + "tl.reduce(y, 0, less)", Refused(TypeError, "expected (int32), got (int1)")),
    "reduce, shapes": (Y + "tl.reduce((y, tl.arange(0, 4)), 0, add_and_multiply)",
                       Refused(ValueError, "the same shape")),
    "reduce, scalar": ("tl.reduce(n, 0, add)", Refused(ValueError, "axis")),
    "reduce, indices without axis": (Y + "tl.max(y, return_indices=True)", Refused(FAILED, "axis")),
    "reduce, xor_sum of floats": ("tl.xor_sum(tl.zeros((4,), tl.float32), 0)", Refused(FAILED, "integers")),
    "scan, tuple": (Y + "a, b = tl.associative_scan((y, y * 0 + 2), 0, add_and_multiply)\ntl.store(out + y, a + b)",
                  [2, 5, 11, 22, 42, 79, 149, 284]),
    "scan, reverse": (Y + "tl.store(out + y, y.associative_scan(-1, add, reverse=True))",
                      [28, 28, 27, 25, 22, 18, 13, 7]),
    "scan, axis": (Y + "tl.associative_scan(y, 1, add)", Refused(ValueError, "invalid axis 1")),
    "sort, dim": (Y + "tl.sort(y.reshape(2, 4), dim=0)", Refused(FAILED, "only minor dimension")),
    "sort, last dim": (Y + "tl.store(out + y, tl.sort(y.reshape(2, 4), dim=1, descending=True).reshape(8))",
                       [3, 2, 1, 0, 7, 6, 5, 4]),
    "topk, k": (Y + "tl.topk(y, 3)", Refused(ValueError, "power of 2")),
    "topk, large k": (Y + "tl.topk(y, 16)", Refused(FAILED, "size of the dimension")),
    "topk, dim": (Y + "tl.topk(y.reshape(2, 4), 2, dim=0)", Refused(FAILED, "only minor dimension")),
    "bitonic_merge, dim": (Y + "tl.bitonic_merge(y.reshape(2, 4), dim=0)", Refused(FAILED, "only minor dimension")),
    "random, float seed": (Y + "tl.rand(x, y)", Refused(FAILED, "integer")),
    "random, pointer seed": (Y + "tl.randint(p, y)", Refused(FAILED, "integer")),
    "random, counters": ("tl.random.philox_impl(n, n, n, n, n, n)", Refused(FAILED, "uint32 or uint64")),
    "random, seeds": (Y + ("a = tl.randint(5, y)\nb = tl.randint(n.to(tl.int64) + 2, y)\n"
                           "tl.store(out + y, (a == b).to(tl.int32))"), [1] * 8),
    "random, types": ("tl.static_assert(tl.rand(n, n).dtype == tl.float32 and tl.randint(n, n).dtype == tl.uint32)",
                      []),
    "range, options": ("for i in tl.range(0, n, 1, num_stages=3, loop_unroll_factor=2, "
                       "disallow_acc_multi_buffer=True, flatten=True,"
                     " warp_specialize=True):\n    tl.store(out + i, i)",
                     ("{tt.disallow_acc_multi_buffer, tt.flatten, tt.loop_unroll_factor = 2 : i32, "
                      "tt.num_stages = 3 : i32, tt.warp_specialize}")),
    "range, disable_licm": ("for i in tl.range(n, disable_licm=True):\n    tl.store(out, i)", "llvm.loop_annotation"),
    "range, no options": (("for i in tl.range(n, None, None, num_stages=None, loop_unroll_factor=None):\n"
                           "    tl.store(out + i, i)"), [0, 1, 2]),
    "range, no options in the text": (("for i in tl.range(n, num_stages=None, loop_unroll_factor=None):\n"
                                       "    tl.store(out, i)"), "    }\n"),
    "range, keyword": ("for i in tl.range(n, stages=1):\n    pass", Refused(TypeError, "stages")),
    "range, static_range": ("for i in tl.static_range(5, 0, -2):\n    tl.store(out + i, i)", [-1, 1, -1, 3, -1, 5]),
    "range, static_range, run time": ("for i in tl.static_range(n):\n    pass",
                                      Refused(AssertionError, "is not a constexpr")),
    "hint, multiple_of": (Y + "tl.multiple_of(y + n, 8)", "tt.divisibility = dense<8>"),
    "hint, multiple_of, scalar": ("tl.store(out, tl.multiple_of(n * 2, 2))", [6]),
    "hint, max_contiguous, scalar": ("tl.max_contiguous(n, 8)", Refused(ValueError, "length")),
    "hint, max_constancy, length": (Y + "tl.max_constancy(y, (4, 4))", Refused(ValueError, "length")),
    "hint, float": (Y + "tl.multiple_of(y, 4.0)", Refused(TypeError, "constexpr[int]")),
    "hint, run time": (Y + "tl.multiple_of(y, n)", Refused(TypeError, "constexpr[int]")),
    "hint, assume": ("tl.assume(n > 2)", "llvm.intr.assume"),
    "static_assert, none": ("tl.static_assert()", Refused(TypeError, "one or two")),
    "static_assert, three": ("tl.static_assert(True, 'a', 'b')", Refused(TypeError, "one or two")),
    "static_assert, message": ("tl.static_assert(C == 3, f'C is {C}')", Refused(FAILED, "C is 4")),
    "static_assert, run time": ("tl.static_assert(n == 3)", Refused(CompilationError, ("could not be determined at "
                                                                                       "compile-time"))),
    "device_print, prefix": ("tl.device_print(n)", Refused(AssertionError, "is not string")),
    "device_print, letters": ("tl.device_print('é', n)", Refused(AssertionError, "é is not an ascii string")),
    "device_print": ("tl.device_print('a', n, 2, x, hex=True)", 'tt.print " a: " {hex = true'),
    "asm without arguments": ("v = tl.inline_asm_elementwise('mov.u32 $0, 1;', '=r', [], tl.int32, True, 1)\n"
                                   "tl.static_assert(v.shape == ())", "-> i32"),
    "asm, two results": ("a, b = tl.inline_asm_elementwise('x', '=r,=r,r,r', [tl.arange(0, 8), n], (tl.int32, "
                         "tl.float32), True, 1)\n"
                              "tl.static_assert(b.dtype == tl.float32 and b.shape == [8])",
                              "-> tensor<8xi32>, tensor<8xf32>"),
    "asm, pointers": ("tl.inline_asm_elementwise('x', '=l,l', [p], tl.int64, False, 1)", "pure = false"),
    "asm, no result": ("tl.inline_asm_elementwise('x', '', [n], (), False, 1)", Refused(TypeError, "dtype")),
    "map": (Y + "tl.store(out + y, tl.map_elementwise(larger, y, n))", [3, 3, 3, 3, 4, 5, 6, 7]),
    "map, pack": (Y + "tl.store(out + y, tl.map_elementwise(two_of_four, y, y, pack=2))", [0, 2, 0, 6, 0, 10, 0, 14]),
    "extern": ("tl.store(out, tl.core.extern_elementwise('', '', [-x], SYMBOLS, True).to(tl.int32))", [1]),
    "extern, types": ("tl.core.extern_elementwise('', '', [n], SYMBOLS, True)", Refused(ValueError, "int32")),
    "globaltimer": ("a = cuda.globaltimer()\nb = cuda.globaltimer()\ntl.static_assert(a.dtype == tl.int64)",
                    "pure = false"),
    "smid": ("tl.static_assert(cuda.smid().dtype == tl.int32)", "pure = true"),
    "num_threads": ("tl.static_assert(cuda.num_threads() == 128 and cuda.num_warps() == 4)", []),
    "gdc_wait": ("cuda.gdc_wait()", "griddepcontrol.wait"),
    "gdc_launch_dependents": ("cuda.gdc_launch_dependents()", "griddepcontrol.launch_dependents"),
    "libdevice, another name": ("tl.store(out, reciprocal_root(x * 0 + 0.25).to(tl.int32))", [2]),
    "libdevice, getattr": ("tl.store(out, getattr(libdevice, 'floor')(x).to(tl.int32))", [1]),
}  # fmt: skip

ROWS = PROGRAM | MEMORY | DESCRIPTORS | ATOMICS | REST


@pytest.mark.parametrize("row", ROWS)
def test_row(tmp_path: Path, row: str) -> None:
    check(tmp_path, *ROWS[row], header=HEADER)


SMALL = ("int8", "int16", "uint8", "uint16", "float8e5")
WIDE = ("int32", "uint32", "int64", "uint64")
ATOMIC = {  # the table of types
    "add": {*WIDE, "float16", "bfloat16", "float32", "float64"},
    **{name: {*WIDE, "float32", "float64"} for name in ("max", "min", "and", "or", "xor", "xchg")},
    "cas": {"int16", "uint16", *WIDE, "float16", "bfloat16", "float32", "float64"},
}
REDUCTION = {  # methods of a descriptor
    "add": {"uint32", "int32", "uint64", "float32", "float16", "bfloat16"},
    **{name: {*WIDE, "float16", "bfloat16"} for name in ("min", "max")},
    **{name: {*WIDE} for name in ("and", "or", "xor")},
}
TYPES = (*SMALL, *WIDE, "float16", "bfloat16", "float32", "float64")


def compiles(folder: Path, body: str) -> bool:
    """Return True if a kernel is accepted; otherwise its error must be a CompilationError with a cause."""
    fn = kernel(folder, body, parameters="out")
    try:
        ttir(fn, np.zeros(8, np.int64))
    except CompilationError as problem:
        assert isinstance(problem.__cause__, ValueError | AssertionError)
        return False
    return True


@pytest.mark.parametrize("name", ATOMIC)
def test_types_of_atomics(tmp_path: Path, name: str) -> None:
    call = (
        "tl.atomic_cas(q, tl.full((), 0, tl.{0}), tl.full((), 0, tl.{0}))"
        if name == "cas"
        else f"tl.atomic_{name}(q, 1)"
    )
    body = "q = out.to(tl.pointer_type(tl.{0}), bitcast=True)\n" + call
    assert {t for t in TYPES if compiles(tmp_path, body.format(t))} == ATOMIC[name]


@pytest.mark.parametrize("name", REDUCTION)
def test_types_of_descriptor_reductions(tmp_path: Path, name: str) -> None:
    body = (
        "d = tl.make_tensor_descriptor(out.to(tl.pointer_type(tl.{0}), bitcast=True), [8], [1], [16])\n"
        f"d.atomic_{name}([0], tl.zeros((16,), tl.{{0}}))"
    )
    assert {t for t in TYPES if compiles(tmp_path, body.format(t))} == REDUCTION[name]


def test_a_constant_pointer(tmp_path: Path) -> None:
    """Nothing writes through it: neither `store` nor atomics."""
    for call in ("tl.store(q, 1)", "tl.atomic_add(q, 1)"):
        fn = kernel(tmp_path, f"q = out.to(tl.pointer_type(tl.int32, 1, True))\n{call}", parameters="out")
        problem = error(fn, np.zeros(8, np.int32))
        assert isinstance(problem.__cause__, ValueError) and "constant pointer" in str(problem)


def test_asserts_in_a_combine_function(tmp_path: Path) -> None:
    """They are executed."""
    fn = kernel(tmp_path, "tl.store(out, tl.reduce(tl.arange(0, 4), 0, asserting))", HEADER, "out")
    assert "tt.assert" in text(fn, np.zeros(1, np.int32), options={"debug": True})


def test_ranges_on_the_host() -> None:
    """Iterating outside a kernel."""
    for iterator in (tl.range(4), tl.static_range(4)):
        with pytest.raises(RuntimeError):
            iter(iterator)
        with pytest.raises(RuntimeError):
            next(iterator)


def test_static_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Python's print, with sep and end"""
    fn = kernel(tmp_path, "tl.static_print('a', C, n, tl.arange(0, 8), sep='|', end='!')")
    ttir(fn, np.zeros(8, np.int32), *arguments(), C=4)
    assert capsys.readouterr().out == "a|4|int32[]|int32[constexpr[8]]!"


def test_a_builtin_as_a_constexpr_argument(tmp_path: Path) -> None:
    fn = kernel(tmp_path, "tl.store(out, F(n, 5))", parameters="out, n, F: tl.constexpr")
    assert "arith.maxsi" in text(fn, np.zeros(1, np.int32), 3, F=tl.maximum)


@pytest.mark.parametrize(("limit", "arch"), [(2**30, 90), (0, 80)])
def test_the_default_of_max_num_imprecise_acc(tmp_path: Path, limit: int, arch: int) -> None:
    """2^30 on sm_90, else 0"""
    from tilework.runtime.compile.sources import frontend_options
    from tilework.targets.base import GPUTarget

    assert frontend_options(GPUTarget("cuda", arch, 32), {}).max_num_imprecise_acc_default == limit
