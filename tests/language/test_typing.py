"""One table of calls, good and bad, through the compiler's frontend and through the interpreter: same types, same words.

A row is an expression. ``b("fp16", 16, 16)`` is a block of values nobody knows, ``b("fp16")`` a scalar, and ``p("fp32", 64)``
a block of pointers; everything else is the language. Its outcome is the type of the result, or the error with its text.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Block

import tilework.language as tl
from tilework.errors import CompilationError
from tilework.frontend.generator import compile_to_ttir
from tilework.frontend.options import FrontendOptions
from tilework.frontend.semantic import Semantic as Frontend
from tilework.frontend.semantic.type_mapping import ir_type
from tilework.ir.builder import Builder
from tilework.ir.locations import unknown
from tilework.language.active import ACTIVE
from tilework.language.dtypes import block_type, dtype, pointer_type
from tilework.language.function import JITFunction
from tilework.language.typing.carrier import Carrier
from tilework.oracles.interpreter import InterpretedFunction
from tilework.oracles.interpreter.allowed_memory import Memory, region_of_array
from tilework.oracles.interpreter.formats import storage
from tilework.oracles.interpreter.function import Options
from tilework.oracles.interpreter.semantic import Semantic as Interpreter

MEMORY = np.zeros(1 << 20, np.uint8)  # where every pointer of the interpreter points

PROMOTION = """
b("int32", 4) + 1
1 + b("int32", 4)
b("uint8", 4) + 300
b("uint8", 4) - 1
b("uint8", 4) + -1
b("int8", 4) + 128
b("int8", 4) + True
b("int1", 4) + 1
b("int1", 4) + True
b("fp16", 4) * 1.5
b("int32", 4) * 1.5
b("fp16") + b("bf16", 4)
b("bf16", 4) + b("int32", 4)
b("int32", 4) + b("uint32", 4)
b("int64", 4) + b("uint32", 4)
b("int32", 4) + 2**40
b("int32", 4) + 2**70
b("int32", 4) + 2**200
b("fp32", 4) + 1e300
b("fp32", 4) < 1e300
b("uint32", 4) > -1
b("fp16", 4) < 0.5
b("fp8e5", 4) + b("fp8e5", 4)
b("fp8e5", 4) + b("fp8e4nv", 4)
b("fp8e5", 4) / b("fp8e4nv", 4)
b("fp8e5", 4) + b("int32", 4)
b("fp8e5", 4) + 1
b("fp8e5", 4) < 1
b("fp8e5", 4) < b("fp8e5", 4)
b("fp8e5", 4) % b("fp8e5", 4)
b("int32", 4) + "x"
"x" + b("int32", 4)
b("int32", 4) + None
b("int32", 4) < "x"
b("int32", 4) / b("int32", 4)
b("int32", 4) / b("uint32", 4)
b("int32", 4) // b("uint32", 4)
b("int32", 4) % b("uint8", 4)
b("fp32", 4) // b("fp32", 4)
b("fp32", 4) // 2
b("fp16", 4) // 2
b("fp32", 4) % 2
b("fp16", 4) / 2
b("bf16", 4) % b("bf16", 4)
b("fp32", 4) & 1
b("int32", 4) & 1.5
b("int32", 4) & b("fp32", 4)
b("fp32", 4) | b("fp32", 4)
b("fp32", 4) << 1
b("int32", 4) << 1.0
p("fp32", 4) & 1
p("fp32", 4) << 1
b("int1", 4) ^ b("int32", 4)
b("int32", 4) >> b("uint8", 4)
1 >> b("int32", 4)
b("int32", 4) + p("fp32", 4)
p("fp32", 4) + p("fp32", 4)
p("fp32", 4) - p("fp32", 4)
p("fp32", 4) + 1.5
p("fp32", 4) + "x"
p("fp32", 4) + b("fp32", 4)
p("fp32") + b("uint8", 4)
p("fp32") - b("uint64", 4)
p("fp32", 4) + True
p("fp32", 4) + 2**40
p("fp32", 4) * 2
p("fp32", 4) == p("fp32", 4)
p("fp32", 4) < 1
-p("fp32", 4)
-b("uint8", 4)
-b("int1", 4)
+b("int32", 4)
~b("fp32", 4)
~b("int1", 4)
~p("fp32", 4)
b("int32", 4).logical_and(b("int1", 4))
b("int1", 4).logical_or(b("int1", 4))
b("int1", 4).logical_or(1)
b("int32", 4).__not__()
bp() + 1
bp() - 1
tl.add(1, 2)
tl.mul(b("int8", 4), b("int8", 4))
tl.sub(1.5, b("fp64", 4))
"""

ELEMENTWISE = """
tl.where(b("int1", 4), b("fp16", 4), 1.0)
tl.where(b("int1", 4), 1, 2)
tl.where(b("int1", 4), 1, 2.5)
tl.where(b("int32", 4), 1, 2)
tl.where(b("int1", 2, 1), b("fp16", 4), b("fp32", 1))
tl.where(True, b("fp16", 4), b("fp32"))
tl.where(b("int1", 4), p("fp32", 4), p("fp32", 4))
tl.where(b("int1", 4), p("fp32", 4), p("fp16", 4))
tl.where(b("int1", 4), p("fp32", 4), 0)
tl.where(b("int1", 4), 0, p("fp32", 4))
tl.where(b("int1", 4), p("fp32", 4), b("int64", 4))
tl.where(b("int1", 4), b("fp32", 8), 0)
tl.where(b("int1", 4), "x", 0)
tl.where(p("fp32", 4), 1, 0)
tl.minimum(b("bf16", 4), b("bf16", 4))
tl.minimum(b("fp16", 4), 1.0)
tl.minimum(b("fp8e5", 4), b("fp8e5", 4))
tl.minimum(b("int32", 4), b("uint32", 4))
tl.minimum(p("fp32", 4), p("fp32", 4))
tl.maximum(b("fp32", 4), 1, propagate_nan=3)
tl.maximum(b("int1", 4), b("int1", 4))
tl.maximum(b("fp32", 4), "x")
tl.clamp(b("fp32", 4), 0.0, 1.0)
tl.clamp(b("bf16", 4), 0.0, 1.0)
tl.clamp(b("fp16", 4), b("fp16", 4), b("fp16", 4))
tl.clamp(b("int32", 4), 0, 1)
tl.clamp(b("fp8e5", 4), b("fp8e5", 4), b("fp8e5", 4))
tl.clamp(b("fp32", 4), b("fp32", 2, 1), b("fp32", 1, 4))
tl.abs(b("int8", 4))
tl.abs(b("uint8", 4))
tl.abs(b("fp8e4b15", 4))
tl.abs(b("int1", 4))
tl.abs(p("fp32", 4))
tl.abs(-3)
tl.fma(b("fp32", 4), b("fp32", 4), b("fp32", 4))
tl.fma(b("fp32", 4), 2.0, b("fp32", 2, 1))
tl.fma(b("int32", 4), b("int32", 4), b("int32", 4))
tl.fma(b("fp16", 4), b("fp32", 4), b("fp16", 4))
tl.fma(b("fp8e5", 4), b("fp8e5", 4), b("fp8e5", 4))
tl.fma(1.0, 2.0, 3.0)
tl.umulhi(b("int32", 4), b("uint32", 4))
tl.umulhi(b("int32", 4), 5)
tl.umulhi(b("int32", 4), 1.5)
tl.umulhi(b("int16", 4), b("int32", 4))
tl.umulhi(b("int32", 4), b("int64", 4))
tl.umulhi(b("fp32", 4), b("fp32", 4))
tl.umulhi(1.5, 2.5)
tl.div_rn(b("fp32", 4), b("fp32", 4))
tl.div_rn(b("fp16", 4), b("fp32", 4))
tl.div_rn(b("fp32", 4), 2)
tl.div_rn(b("fp32", 4), 1e300)
tl.div_rn(1, 2)
tl.fdiv(b("fp32", 4), b("fp32", 4))
tl.fdiv(b("fp16", 4), b("fp16", 4))
tl.fdiv(b("fp16", 4), b("fp32", 4))
tl.fdiv(b("int32", 4), b("int32", 4))
tl.fdiv(b("fp16", 4), 2)
tl.fdiv(b("fp8e5", 4), b("fp8e5", 4))
tl.fdiv(p("fp32", 4), 2)
tl.fdiv(1, 2)
tl.exp(b("fp32", 4))
tl.exp(b("fp16", 4))
tl.exp(b("int32", 4))
tl.exp(1)
tl.exp(1.0)
tl.sqrt_rn(b("fp32", 4))
tl.sqrt_rn(b("fp64", 4))
tl.floor(b("bf16", 4))
tl.exp(p("fp32", 4))
tl.inline_asm_elementwise(1, "=r", [b("int32", 4)], tl.int32, True, 1)
tl.inline_asm_elementwise("", "=r", [b("int32", 4)], tl.int32, True, 3)
tl.inline_asm_elementwise("", "=r", [b("int32", 4)], 3, True, 1)
tl.core.extern_elementwise("", "", [b("fp32", 4)], {(tl.float32,): ("__nv_expf", tl.float32)}, True)
tl.core.extern_elementwise("", "", [b("fp16", 4)], {(tl.float32,): ("__nv_expf", tl.float32)}, True)
tl.core.extern_elementwise("", "", [b("fp32", 4), b("fp32", 8)], {(tl.float32, tl.float32): ("__nv_powf", tl.float32)}, True)
tl.core.to_tensor("x")
tl.core.to_tensor(2**40)
tl.core.to_tensor(1e-50)
tl.core.to_tensor(2**70)
tl.core.to_tensor(None)
"""

CASTS = """
b("fp32", 4).to(tl.float16)
b("fp32", 4).to(tl.float16, fp_downcast_rounding="rtz")
b("fp32", 4).to(tl.float8e4nv, fp_downcast_rounding="rtz")
b("fp64", 4).to(tl.float16, fp_downcast_rounding="rtz")
b("fp32", 4).to(tl.float16, fp_downcast_rounding="up")
b("fp16", 4).to(tl.float32, fp_downcast_rounding="rtne")
b("fp16", 4).to(tl.bfloat16, fp_downcast_rounding="rtne")
b("int32", 4).to(tl.float16, fp_downcast_rounding="rtne")
b("fp32", 4).to(tl.float32, fp_downcast_rounding="up")
b("fp64", 4).to(tl.float8e5)
b("bf16", 4).to(tl.float8e4b15)
b("int32", 4).to(tl.float8e5)
b("fp8e5", 4).to(tl.int32)
b("fp8e5", 4).to(tl.int1)
b("int1", 4).to(tl.float8e5)
b("fp8e4b15", 4).to(tl.float64)
b("fp8e4b15", 4).to(tl.float8e5)
b("fp8e5", 4).to(tl.float8e4b15)
b("fp8e5", 4).to(tl.float8e4nv)
b("fp32", 4).to(tl.float8e4b15)
b("fp16", 4).to(tl.uint8)
b("fp32", 4).to(tl.void)
b("fp32", 4).to(tl.int32, bitcast=True)
b("fp32", 4).to(tl.int16, bitcast=True)
b("int8", 4).to(tl.float8e4b15, bitcast=True)
b("fp32", 4).to(tl.pointer_type(tl.int32), bitcast=True)
p("fp32", 4).to(tl.int64)
p("fp32", 4).to(tl.uint64, bitcast=True)
p("fp32", 4).to(tl.int32)
p("fp32", 4).to(tl.int1)
p("fp32", 4).to(tl.float32)
p("fp32", 4).to(tl.pointer_type(tl.int8))
b("int64", 4).to(tl.pointer_type(tl.int8))
b("int32", 4).to(tl.pointer_type(tl.int8))
b("fp32", 4).to(tl.block_type(tl.float16, [8]))
tl.cast(1, tl.float16)
tl.cast(2**70, tl.float16)
tl.cast("x", tl.float16)
tl.full([4], 1.5, tl.int32)
tl.full([4], 0.0, tl.int32)
tl.full([4], 1.5, tl.int1)
tl.full([4], 300, tl.uint8)
tl.full([4], 1, None)
tl.full([4], b("fp32"), None)
tl.full([4], b("fp32"), tl.float16)
tl.full([4], b("fp32", 4), tl.float16)
tl.full([4], b("fp32", 1), tl.float16)
tl.full([3], 1, tl.float16)
tl.full([], 1, tl.float16)
tl.full([b("int32")], 1, tl.float16)
tl.full([4], "x", tl.float16)
tl.full([4], 1, tl.pointer_type(tl.float16))
tl.full([4], 2**70, tl.float32)
tl.full([4], 1.5, tl.float8e5)
"""

SHAPES = """
tl.arange(0, 8)
tl.arange(0, 6)
tl.arange(-4, 4)
tl.arange(8, 8)
tl.arange(0, b("int32"))
tl.arange(0, 1 << 31)
tl.arange(0, 1 << 21)
tl.arange(0, 8.0)
tl.arange(True, 9)
b("fp32", 4) + b("fp32", 8)
b("fp32", 4, 1) + b("fp32", 8)
b("fp32", 4, 2) + b("fp32", 8)
b("fp32", 4, 1, 2) * b("fp32", 8, 1)
tl.broadcast(b("fp32", 4, 1), b("fp32", 8))[0]
tl.broadcast(b("fp32"), b("fp32"))[0]
tl.broadcast(b("fp32", 4), b("fp16", 8))
tl.broadcast_to(b("fp32", 4, 1), 4, 8)
tl.broadcast_to(b("fp32", 4), 4, 8)
tl.broadcast_to(b("fp32", 4, 2), 4, 8)
tl.broadcast_to(b("fp32"), [4, 8])
tl.broadcast_to(1, [4, 8])
tl.broadcast_to(b("fp32", 4), 3)
tl.broadcast_to(b("fp32"), [])
tl.broadcast_to(b("fp32", 1), [])
tl.broadcast_to(b("fp32", 4), b("int32"))
tl.expand_dims(b("fp32", 4), 1)
tl.expand_dims(b("fp32", 4), (0, -1))
tl.expand_dims(b("fp32", 4), 2)
tl.expand_dims(b("fp32", 4), (0, 0))
tl.expand_dims(b("fp32"), 0)
tl.expand_dims(3, 0)
b("fp32", 4)[:, None]
b("fp32", 4)[None, :, None]
b("fp32", 4)[0]
b("fp32")[None]
b("fp32")[:, None]
tl.reshape(b("fp32", 4), 2, 2)
tl.reshape(b("fp32", 4), 8)
tl.reshape(b("fp32", 4), 3)
tl.reshape(b("fp32", 1), [])
tl.reshape(b("fp32"), 1)
tl.reshape(b("fp32", 4), [2.0, 2])
tl.view(b("fp32", 4), 2, 2)
tl.permute(b("fp32", 4, 2), 1, 0)
tl.permute(b("fp32", 4, 2), 1)
tl.permute(b("fp32", 4, 2), 1, 1)
tl.permute(b("fp32", 4, 2), -1, 0)
tl.trans(b("fp32", 4, 2))
tl.trans(b("fp32", 8, 4, 2))
tl.trans(b("fp32", 4))
tl.trans(b("fp32", 4, 2), 0, 1)
b("fp32", 4, 2).T
b("fp32", 4).T
tl.cat(b("fp32", 4), b("fp32", 4), can_reorder=True)
tl.cat(b("fp32", 4), b("fp32", 4))
tl.cat(b("fp32", 4), b("fp16", 4), can_reorder=True)
tl.cat(b("fp32", 2, 2), b("fp32", 2, 2), can_reorder=True)
tl.cat(b("fp32"), b("fp32"), can_reorder=True)
tl.cat(b("fp32", 1048576), b("fp32", 1048576), can_reorder=True)
tl.join(b("fp32", 4), b("fp32", 4))
tl.join(b("fp32", 4), b("fp16", 4))
tl.join(b("fp32", 4), b("fp32", 8))
tl.join(b("fp32", 4), b("fp32"))
tl.join(b("fp32"), b("fp32"))
tl.join(1, 2)
tl.join(p("fp32", 4), p("fp32", 4))
tl.join(b("int1", 1048576), b("int1", 1048576))
tl.split(b("fp32", 4, 2))[0]
tl.split(b("fp32", 2))[0]
tl.split(b("fp32", 4))
tl.split(b("fp32"))
tl.gather(b("fp32", 4), b("int32", 8), 0)
tl.gather(b("fp32", 4, 4), b("int64", 4, 8), 1)
tl.gather(b("fp32", 4, 4), b("int32", 4, 8), 0)
tl.gather(b("fp32", 4, 4), b("int32", 4, 8), -1)
tl.gather(b("fp32", 4), b("int32", 8), 1)
tl.gather(b("fp32", 4), b("int32", 8, 1), 0)
tl.gather(b("fp32", 4), b("fp32", 8), 0)
tl.gather(b("fp32"), b("int32"), 0)
tl.histogram(b("int32", 8), 4)
tl.histogram(b("int32", 8), 3)
tl.histogram(b("int32", 4, 2), 4)
tl.histogram(b("fp32", 8), 4)
tl.histogram(b("int32", 8), 4, mask=b("int1", 8))
tl.histogram(b("int32", 8), 4, mask=b("int1"))
tl.histogram(b("int32", 8), 4, mask=b("int32", 8))
tl.histogram(b("int32", 8), 4, mask=b("int1", 4))
tl.histogram(b("int32", 8), b("int32"))
tl.histogram(b("int8", 8), 256)
b("fp32", 1).item()
b("fp32", 2).item()
b("fp32").item()
tl.multiple_of(b("int32", 4), 4)
tl.multiple_of(b("int32"), 4)
tl.multiple_of(b("int32", 4), [4, 4])
tl.multiple_of(b("int32", 4), 4.0)
tl.max_contiguous(b("int32", 4, 4), [1, 4])
tl.max_contiguous(b("int32", 4, 4), 4)
tl.max_contiguous(b("int32"), 4)
tl.max_constancy(b("int32", 4), [])
tl.max_constancy(b("int32", 4), b("int32"))
tl.program_id(0)
tl.program_id(3)
tl.num_programs(-1)
tl.assume(~b("int1"))
tl.assume(b("int1", 4))
tl.assume(1)
tl.assume(True)
tl.device_print("x", b("int32", 4))
tl.device_print("ä", b("int32", 4))
tl.device_print(1)
tl.device_print("x", "y")
tl.debug_barrier()
"""

REGIONS = """
tl.reduce(b("fp32", 4, 8), 1, add)
tl.reduce(b("fp32", 4, 8), 0, add, keep_dims=True)
tl.reduce(b("fp32", 4, 8), None, add)
tl.reduce(b("fp32", 4, 8), None, add, keep_dims=True)
tl.reduce(b("fp32", 4, 8), 2, add)
tl.reduce(b("fp32", 4, 8), -3, add)
tl.reduce(b("fp32", 4, 8), b("int32"), add)
tl.reduce(b("fp32"), 0, add)
tl.reduce(b("fp32"), None, add)
tl.reduce(b("fp16", 4), 0, widen)
tl.reduce((b("fp16", 4), b("int32", 4)), 0, first)[1]
tl.reduce((b("fp16", 4), b("int32", 8)), 0, first)
tl.reduce((b("fp16", 4), b("int32", 4)), 0, swap)
tl.reduce((b("fp16", 4), b("int32", 4)), 0, one)
tl.associative_scan(b("fp32", 4, 8), 1, add)
tl.associative_scan(b("fp32", 4, 8), -1, add, reverse=True)
tl.associative_scan(b("fp32", 4, 8), 2, add)
tl.associative_scan(b("fp32", 4, 8), None, add)
tl.associative_scan(b("fp32"), 0, add)
tl.associative_scan(b("fp16", 4), 0, widen)
tl.map_elementwise(add, b("fp32", 4), b("fp32", 4))
tl.map_elementwise(add, b("fp32", 4), 1.0)
tl.map_elementwise(add, b("fp32", 4), b("fp32", 8))
tl.map_elementwise(add, b("fp32"), b("fp32"))
tl.map_elementwise(first, b("fp32", 4), b("int32", 4), pack=2)[0]
tl.map_elementwise(swap, b("fp32", 4), b("int32", 4), pack=2)
tl.map_elementwise(add, b("fp32", 4), pack=2)
tl.map_elementwise(add, b("fp32", 4), pack=3)
tl.map_elementwise(add, b("fp32", 1), pack=2)
tl.map_elementwise(add)
"""

DOTS = """
tl.dot(b("fp16", 16, 32), b("fp16", 32, 64))
tl.dot(b("fp16", 2, 16, 32), b("fp16", 2, 32, 64))
tl.dot(b("fp16", 2, 2, 16, 32), b("fp16", 2, 2, 32, 64))
tl.dot(b("fp16", 16, 32), b("fp16", 16, 32))
tl.dot(b("fp16", 2, 16, 32), b("fp16", 4, 32, 64))
tl.dot(b("fp16", 2, 16, 32), b("fp16", 32, 64))
tl.dot(b("fp16", 16), b("fp16", 16))
tl.dot(b("fp16", 16, 16), b("fp32", 16, 16))
tl.dot(b("fp16", 16, 16), b("fp8e5", 16, 16))
tl.dot(b("fp8e4nv", 16, 32), b("fp8e5", 32, 16))
tl.dot(b("fp8e4b15", 16, 32), b("fp8e5", 32, 16))
tl.dot(b("fp8e4b15", 16, 32), b("fp16", 32, 16))
tl.dot(b("int8", 16, 32), b("int8", 32, 16))
tl.dot(b("int8", 16, 32), b("int8", 32, 16), out_dtype=tl.int32)
tl.dot(b("int8", 16, 32), b("int8", 32, 16), b("int32", 16, 16), out_dtype=tl.int32)
tl.dot(b("int8", 16, 32), b("int8", 32, 16), b("int32", 16, 16))
tl.dot(b("uint8", 16, 32), b("uint8", 32, 16))
tl.dot(b("int8", 16, 32), b("uint8", 32, 16))
tl.dot(b("int32", 16, 32), b("int32", 32, 16))
tl.dot(b("fp64", 16, 32), b("fp64", 32, 16))
tl.dot(b("fp64", 16, 32), b("fp64", 32, 16), b("fp64", 16, 16), out_dtype=tl.float64)
tl.dot(b("bf16", 16, 32), b("bf16", 32, 16), out_dtype=tl.float16)
tl.dot(b("fp16", 16, 32), b("fp16", 32, 16), out_dtype=tl.float16)
tl.dot(b("fp16", 16, 32), b("fp16", 32, 16), out_dtype=tl.bfloat16)
tl.dot(b("fp16", 16, 32), b("fp16", 32, 16), out_dtype=tl.int32)
tl.dot(b("fp8e4b15", 16, 32), b("fp8e4b15", 32, 16), out_dtype=tl.int32)
tl.dot(b("fp16", 16, 32), b("fp16", 32, 16), b("fp32", 16, 16))
tl.dot(b("fp16", 16, 32), b("fp16", 32, 16), b("fp16", 16, 16))
tl.dot(b("fp16", 16, 32), b("fp16", 32, 16), b("fp32", 16, 32))
tl.dot(b("fp16", 16, 32), b("fp16", 32, 16), 0)
tl.dot(b("fp16", 16, 32), b("fp16", 32, 16), tl.constexpr(None))
tl.dot(b("fp16", 16, 32), 1)
tl.dot(b("fp32", 16, 32), b("fp32", 32, 16), input_precision="TF32x3")
tl.dot(b("fp32", 16, 32), b("fp32", 32, 16), input_precision="fp8")
tl.dot(b("fp32", 16, 32), b("fp32", 32, 16), input_precision=3)
tl.dot(b("fp32", 16, 32), b("fp32", 32, 16), allow_tf32=True, input_precision="ieee")
tl.dot(b("fp32", 16, 32), b("fp32", 32, 16), allow_tf32=False)
tl.dot(b("fp8e5", 16, 32), b("fp8e5", 32, 16), max_num_imprecise_acc=64)
tl.dot(b("fp16", 16, 32), b("fp16", 32, 16), max_num_imprecise_acc=64)
scaled(b("fp8e4nv", 16, 64), b("uint8", 16, 2), "e4m3", b("fp8e5", 64, 32), b("uint8", 32, 2), "e5m2")
scaled(b("uint8", 16, 64), b("uint8", 16, 2), "e4m3", b("bf16", 64, 32), None, "bf16")
scaled(b("uint8", 16, 32), b("uint8", 16, 2), "e2m1", b("uint8", 32, 32), b("uint8", 32, 2), "e2m1")
scaled(b("uint8", 8, 64), b("uint8", 16, 2), "e2m1", b("uint8", 64, 16), None, "e2m1", lhs_k_pack=False, rhs_k_pack=False)
scaled(b("uint8", 2, 16, 32), None, "e2m1", b("uint16", 2, 64, 32), None, "fp16")
scaled(b("uint8", 16, 32), b("fp8e4nv", 16, 4), "e2m1", b("uint8", 32, 32), b("fp8e4nv", 32, 4), "e2m1")
scaled(b("fp8e4nv", 16, 64), None, "e3m4", b("fp8e5", 64, 32), None, "e5m2")
scaled(b("fp8e5", 16, 64), None, "e4m3", b("fp8e5", 64, 32), None, "e5m2")
scaled(b("fp8e4nv", 16, 64), None, "e4m3", b("fp8e5", 32, 32), None, "e5m2")
scaled(b("fp8e4nv", 16, 64), None, "e4m3", b("fp8e5", 2, 64, 32), None, "e5m2")
scaled(b("fp8e4nv", 16, 64), b("uint8", 16, 4), "e4m3", b("fp8e5", 64, 32), None, "e5m2")
scaled(b("fp8e4nv", 16, 64), b("int8", 16, 2), "e4m3", b("fp8e5", 64, 32), None, "e5m2")
scaled(b("fp8e4nv", 16, 64), None, "e4m3", b("fp8e5", 64, 32), None, "e5m2", lhs_k_pack=False)
scaled(b("fp8e4nv", 16, 64), None, "e4m3", b("fp8e5", 64, 32), None, "e5m2", rhs_k_pack=False)
scaled(b("fp8e4nv", 16, 64), None, "e4m3", b("fp8e5", 64, 32), None, "e5m2", out_dtype=tl.float16)
scaled(b("fp8e4nv", 16, 64), None, "e4m3", b("fp8e5", 64, 32), None, "e5m2", b("fp32", 16, 32))
scaled(b("fp8e4nv", 16, 64), None, "e4m3", b("fp8e5", 64, 32), None, "e5m2", b("fp32", 16, 16))
scaled(b("fp8e4nv", 16, 64), None, "e4m3", b("fp8e5", 64, 32), None, "e5m2", b("fp16", 16, 32))
"""

ACCESS = """
tl.load(p("fp32", 8))
tl.load(p("int1", 8))
tl.load(p("fp32"))
tl.load(b("int32", 8))
tl.load(1)
tl.load(p("fp32", 8), mask=b("int1", 8), other=0)
tl.load(p("fp32", 8), mask=b("int1", 8), other=b("int32", 8))
tl.load(p("fp32", 8), mask=b("int1", 8), other=b("int32", 2, 8))
tl.load(p("fp32", 8), mask=b("int1", 2, 1))
tl.load(p("fp32", 8), mask=b("int1", 4))
tl.load(p("fp32", 8), mask=b("int32", 8))
tl.load(p("fp32", 8), mask=True)
tl.load(p("fp32", 8), other=0)
tl.load(p("fp32", 8), mask=b("int1", 8), other=b("fp32", 4))
tl.load(p("fp32", 8), mask=b("int1", 8), other="x")
tl.load(p("fp8e5", 8), mask=b("int1", 8), other=1)
tl.load(p("fp8e5", 8), mask=b("int1", 8), other=b("int32", 8))
tl.load(p("int32", 8), mask=b("int1", 8), other=float("inf"))
tl.load(p("fp32"), mask=b("int1", 8))
tl.load(p("fp32"), mask=b("int1"), other=b("fp32", 8))
tl.load(p("fp32", 8), boundary_check=(0,))
tl.load(p("fp32", 8), padding_option="zero")
tl.load(p("fp32", 8), padding_option="one")
tl.load(p("fp32", 8), cache_modifier=".cs")
tl.load(p("fp32", 8), cache_modifier=".cg", eviction_policy="evict_last", volatile=True)
tl.load(p("fp32", 8), eviction_policy="first")
tl.load(bp(), mask=b("int1", 4))
tl.load(bp(), other=0)
tl.load(bp())
tl.load(bp(), boundary_check=(0, 1), padding_option="nan")
tl.load(bp("int32"), padding_option="nan")
tl.load(bp(), boundary_check=(2,))
tl.load(bp(), boundary_check=(0, 0))
tl.load(bp(), boundary_check=(-1,))
tl.load(bp(), boundary_check=0)
tl.load(bp("int1"))
tl.store(p("fp32", 8), 1)
tl.store(p("fp32", 8), b("int32", 8))
tl.store(p("fp32", 8), b("int32", 4))
tl.store(p("fp32", 8), b("int32", 2, 8))
tl.store(p("fp32", 4, 8), b("int32", 8))
tl.store(p("fp32", 8), b("int32", 8), mask=b("int1"))
tl.store(p("fp32", 8), b("int32", 8), mask=b("int1", 4))
tl.store(p("fp32", 8), b("int32", 8), mask=b("int8", 8))
tl.store(p("fp32"), b("int32", 8))
tl.store(p("fp32"), 1, mask=b("int1", 8))
tl.store(p("fp8e5", 8), b("fp64", 8))
tl.store(p("fp8e5", 8), b("int32", 8))
tl.store(p("fp8e5", 8), 1)
tl.store(p("int1", 8), b("fp32", 8))
tl.store(p("fp32", 8), "x")
tl.store(p("fp32", 8), p("fp32", 8))
tl.store(const("fp32"), 1)
tl.store(b("int32", 8), 1)
tl.store(p("fp32", 8), 1, boundary_check=(0,))
tl.store(p("fp32", 8), 1, cache_modifier=".ca")
tl.store(p("fp32", 8), 1, cache_modifier=".wt", eviction_policy="evict_first")
tl.store(p("fp32", 8), 1, eviction_policy="never")
tl.store(bp(), 1)
tl.store(bp(), 1, mask=b("int1", 4))
tl.store(bp(), b("fp32"))
tl.store(bp(), b("fp32", 4, 8), boundary_check=(1,))
tl.store(bp(), b("fp16", 4, 8))
tl.store(bp(), b("fp32", 8, 4))
tl.store(bp(), b("int32"))
tl.atomic_add(p("fp32", 8), 1)
tl.atomic_add(p("fp32", 8), b("int32", 8), mask=b("int1", 8))
tl.atomic_add(p("fp16", 8), 1.0)
tl.atomic_add(p("bf16", 8), 1.0)
tl.atomic_add(p("int16", 8), 1)
tl.atomic_max(p("fp16", 8), 1)
tl.atomic_max(p("fp32", 8), 1)
tl.atomic_min(p("uint64", 8), 1)
tl.atomic_xchg(p("int8", 8), 1)
tl.atomic_xchg(p("fp32", 8), 1)
tl.atomic_and(p("fp32", 8), 1)
tl.atomic_or(p("int32", 8), b("fp32", 8))
tl.atomic_xor(p("int1", 8), 1)
tl.atomic_add(pp("fp32", 8), 1)
tl.atomic_add(p("fp32", 8), b("fp32", 4))
tl.atomic_add(p("fp32", 8), 1, mask=b("int1", 4))
tl.atomic_add(p("fp32", 8), 1, mask=b("int32", 8))
tl.atomic_add(p("fp32", 8), 1, sem="weak")
tl.atomic_add(p("fp32", 8), 1, scope="cluster")
tl.atomic_add(p("fp32", 8), 1, sem="relaxed", scope="cta")
tl.atomic_add(b("int32", 8), 1)
tl.atomic_add(bp(), 1)
tl.atomic_add(const("fp32"), 1)
tl.atomic_cas(p("int32"), 0, 1)
tl.atomic_cas(p("int32", 8), b("int32", 8), b("uint32", 8))
tl.atomic_cas(p("int32", 8), b("int32"), b("int32", 8))
tl.atomic_cas(p("int32", 8), b("int64", 8), b("int32", 8))
tl.atomic_cas(p("fp32", 8), 0, 1)
tl.atomic_cas(p("fp32", 8), b("int32", 8), 1)
tl.atomic_cas(p("int8", 8), 0, 1)
tl.atomic_cas(p("int16", 8), 0, 1, sem="acquire")
tl.atomic_cas(p("int16", 8), 0, 1, sem="all")
tl.atomic_cas(pp("fp32", 8), 0, 1)
"""

WINDOWS = """
bp()
bp("int1")
tl.make_block_ptr(b("int32"), (8, 8), (8, 1), (0, 0), (4, 8), (1, 0))
tl.make_block_ptr(p("fp32", 4), (8, 8), (8, 1), (0, 0), (4, 8), (1, 0))
tl.make_block_ptr(bp(), (8, 8), (8, 1), (0, 0), (4, 8), (1, 0))
tl.make_block_ptr(p("fp32"), (8,), (8, 1), (0, 0), (4, 8), (1, 0))
tl.make_block_ptr(p("fp32"), (8, 8), (8, 1), (0, 0), (4, 8), (1,))
tl.make_block_ptr(p("fp32"), (8, 8), (8, 1), (0, 0), (4, 8), (1, 1))
tl.make_block_ptr(p("fp32"), (8, 8), (8, 1), (0, 0), (4, 6), (1, 0))
tl.make_block_ptr(p("fp32"), (8, 8), (8, 1), (0, 2**40), (4, 8), (1, 0))
tl.make_block_ptr(p("fp32"), (8, 8), (8, 1), (0, b("int64")), (4, 8), (1, 0))
tl.make_block_ptr(p("fp32"), (8, 1.5), (8, 1), (0, 0), (4, 8), (1, 0))
tl.make_block_ptr(p("fp32"), (b("int64"), b("int32")), (b("int64"), 1), (0, 0), (4, 8), (1, 0))
tl.make_block_ptr(p("fp32"), (b("int32", 4), 8), (8, 1), (0, 0), (4, 8), (1, 0))
tl.make_block_ptr(p("fp32"), 8, 1, 0, 8, 0)
tl.advance(bp(), (0, 8))
tl.advance(bp(), (0,))
tl.advance(bp(), (0, b("int64")))
tl.advance(p("fp32"), (0,))
tl.advance(1, (0,))
desc()
desc("int1")
desc("int8", (4, 8))
desc("fp32", (4, 6))
tl.make_tensor_descriptor(p("fp32", 4), [8, 8], [8, 1], [4, 8])
tl.make_tensor_descriptor(1, [8, 8], [8, 1], [4, 8])
tl.make_tensor_descriptor(p("fp32"), [], [], [])
tl.make_tensor_descriptor(p("fp32"), [8] * 6, [8] * 6, [4] * 6)
tl.make_tensor_descriptor(p("fp32"), [8, 8], [8], [4, 8])
tl.make_tensor_descriptor(p("fp32"), [8, 8], [8, 2], [4, 8])
tl.make_tensor_descriptor(p("fp32"), [8, 8], [8, b("int32")], [4, 8])
tl.make_tensor_descriptor(p("fp32"), [8, b("int64")], [8, 1], [4, 8])
tl.make_tensor_descriptor(p("fp32"), [8, 8.0], [8, 1], [4, 8])
tl.make_tensor_descriptor(p("fp32"), [8, 8], [8, 1], [4, 8], padding_option="one")
tl.make_tensor_descriptor(p("fp32"), [8, 8], [8, 1], [4, 8], padding_option="nan")
tl.make_tensor_descriptor(p("int32"), [8, 8], [8, 1], [4, 8], padding_option="nan")
desc().load([0, 0])
desc().load([0])
desc().load([0, b("int64")])
desc().load([0, b("int32", 4)])
desc().store([0, 0], b("fp32", 4, 8))
desc().store([0, 0], b("fp16", 4, 8))
desc().store([0, 0], b("fp32", 8, 4))
desc().store([0, 0], 1)
desc("fp8e5", (4, 16)).store([0, 0], b("int32", 4, 16))
desc().atomic_add([0, 0], b("fp32", 4, 8))
desc().atomic_min([0, 0], b("fp32", 4, 8))
desc("int64").atomic_add([0, 0], b("int64", 4, 8))
desc("int64").atomic_xor([0, 0], b("int64", 4, 8))
desc("int32").atomic_xor([0], b("int32", 4, 8))
desc("int32").atomic_xor([0, 0], b("int32", 4))
desc("fp32", (1, 8)).gather(b("int32", 8), 0)
desc("fp32", (1, 8)).gather(b("int32", 4), 0)
desc("fp32", (1, 4)).gather(b("int32", 8), 0)
desc("fp32", (1, 8)).gather(b("int64", 8), 0)
desc("fp32", (1, 8)).gather(b("int32", 8, 1), 0)
desc("fp32", (1, 8)).gather(b("int32", 8), b("int64"))
desc("fp32", (1, 8)).gather(b("int32", 8))
desc().gather(b("int32", 8), 0)
desc("fp32", (1, 8)).scatter(b("fp32", 8, 8), b("int32", 8), 0)
desc("fp32", (1, 8)).scatter(b("fp16", 8, 8), b("int32", 8), 0)
desc("fp32", (1, 8)).scatter(b("fp32", 4, 8), b("int32", 8), 0)
"""

ROWS = [
    row.strip()
    for family in (PROMOTION, ELEMENTWISE, CASTS, SHAPES, REGIONS, DOTS, ACCESS, WINDOWS)
    for row in family.strip().splitlines()
]


def one_value(type: dtype) -> Any:
    """What the frontend knows of an argument: an SSA value."""
    return Block(arg_types=[ir_type(type)]).args[0]


def zeros(type: dtype) -> Any:
    """What the interpreter holds: an array; a pointer points into `MEMORY`."""
    shape = tuple(type.shape.values) if isinstance(type, block_type) else ()
    start = MEMORY.ctypes.data if type.scalar.is_ptr() else 0
    return np.full(shape, start, storage(type.scalar))


@contextmanager
def frontend() -> Iterator[Callable[[dtype], Any]]:
    builder, entry = Builder(), Block()
    builder.loc = unknown
    with builder.enter_function(entry):
        builder.set_to_end(entry)
        with active(Frontend(builder, FrontendOptions())):
            yield one_value


@contextmanager
def interpreter() -> Iterator[Callable[[dtype], Any]]:
    memory = Memory()
    memory.add(region_of_array("memory", MEMORY), MEMORY)
    semantic = Interpreter(Options(), memory, (1, 1, 1))
    semantic.enter_program((0, 0, 0))
    with active(semantic), np.errstate(all="ignore"):
        yield zeros


@contextmanager
def active(semantic: Any) -> Iterator[None]:
    def call(fn: Any, args: Any, kwargs: Any) -> Any:
        return fn(*args)

    token = ACTIVE.set(SimpleNamespace(semantic=semantic, call_JitFunction=call))  # pyright: ignore[reportArgumentType]
    try:
        yield
    finally:
        ACTIVE.reset(token)


def names(handle: Callable[[dtype], Any]) -> dict[str, Any]:
    """What rows may use."""

    def value(type: dtype, *shape: int) -> tl.tensor:
        type = block_type(type, shape) if shape else type
        return tl.tensor(handle(type), type)

    def b(name: str, *shape: int) -> tl.tensor:
        return value(dtype(name), *shape)

    def p(name: str, *shape: int) -> tl.tensor:
        return value(pointer_type(dtype(name)), *shape)

    def bp(name: str = "fp32") -> Any:
        return tl.make_block_ptr(p(name), (8, 8), (8, 1), (0, 0), (4, 8), (1, 0))

    def desc(name: str = "fp32", block: tuple[int, ...] = (4, 8)) -> Any:
        return tl.make_tensor_descriptor(p(name), [8, 64], [64, 1], block)

    return {
        **{"tl": tl, "b": b, "p": p, "bp": bp, "desc": desc, "scaled": tl.dot_scaled},
        "const": lambda name: value(pointer_type(dtype(name), const=True)),
        "pp": lambda name, *shape: value(pointer_type(pointer_type(dtype(name))), *shape),
        "add": lambda x, y: x + y,
        "widen": lambda x, y: (x + y).to(tl.float32),
        "first": lambda a, i, c, j: tl.tuple([a, i]),
        "swap": lambda a, i, c, j: tl.tuple([i, a]),
        "one": lambda a, i, c, j: a,
    }


def outcome(house: Any, row: str) -> str:
    """The type of a row's result, or its error."""
    with house() as handle:
        try:
            result = eval(row, names(handle))
        except (TypeError, ValueError, AssertionError, IndexError) as error:
            return f"{type(error).__name__}: {error}"
        except Exception as error:
            return f"CRASH {type(error).__name__}: {error}"
    return str(getattr(result, "type", result))


@pytest.mark.filterwarnings("ignore")
def test_the_frontend_and_the_interpreter_say_the_same() -> None:
    differing = []
    for row in ROWS:
        compiled, interpreted = outcome(frontend, row), outcome(interpreter, row)
        if compiled != interpreted or compiled.startswith("CRASH"):
            differing.append(f"{row}\n    frontend:    {compiled}\n    interpreter: {interpreted}")
    assert not differing, "\n" + "\n".join(differing)


@pytest.mark.parametrize("house", [Frontend, Interpreter])
def test_everything_that_the_rules_leave_open_is_carried_out(house: type) -> None:
    open_ends = [name for name, member in vars(Carrier).items() if callable(member) and not name.startswith("_")]
    assert len(open_ends) > 50
    assert not [name for name in open_ends if getattr(house, name) is vars(Carrier)[name]]


def origin(error: BaseException) -> str:
    """The first of a chain of errors; the compiler ends its text with it."""
    if error.__cause__ is not None:
        return origin(error.__cause__)
    return str(error).splitlines()[-1] if isinstance(error, CompilationError) else repr(error)


STATEMENTS = """
return len(x)
return int(x)
return float(x, 1)
return float(1.5, 2)
return len(x, y)
return min(x)
return max(0.0, -0.0)
return max(x, 1, key=2)
return max(x, 1)
return min(3, 2.5)
return getattr(x, 3)
return hasattr(x, y)
return hasattr(x, "shape")
return isinstance(x)
return (x, y)[x]
return x.T
y = "text"
for i in range(1.5): y = i
for i in range(x): y = i
for i in range(tl.full((), 3, tl.int8)): tl.core.to_tensor(i.type)
for i in range(tl.full((), 3, tl.uint16), 5): tl.core.to_tensor(i.type)
for i in range(tl.full((), 3, tl.uint32), tl.full((), 5, tl.int32)): tl.core.to_tensor(i.type)
for i in range(tl.full((), 3, tl.int32), tl.full((), 5, tl.int64)): tl.core.to_tensor(i.type)
""".strip().splitlines()


@pytest.mark.filterwarnings("ignore")
def test_pythons_own_names_mean_the_same(tmp_path: Path) -> None:
    """Statements of a kernel with two blocks, `x` and `y`, compiled and interpreted: what is refused, or the type returned."""
    head = "import tilework, tilework.language as tl\n"
    body = """
@tilework.jit
def function{0}(x, y):
    {1}
    return y

@tilework.jit
def kernel{0}(o):
    v = function{0}(tl.arange(0, 4), tl.arange(0, 4))
    tl.core.to_tensor(v.type)
"""
    path = tmp_path / "statements.py"
    path.write_text(head + "".join(body.format(number, row) for number, row in enumerate(STATEMENTS)))
    module: Any = ModuleType("statements")
    module.__file__ = str(path)
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    differing = []
    for number, row in enumerate(STATEMENTS):
        fn = getattr(module, f"kernel{number}").fn
        with pytest.raises(CompilationError) as compiled:
            compile_to_ttir(JITFunction(fn), {"o": "*fp32"}, {}, {}, FrontendOptions())
        with pytest.raises(CompilationError) as interpreted:
            InterpretedFunction(fn)[(1,)](np.zeros(4, np.float32))
        texts = [origin(caught.value) for caught in (compiled, interpreted)]
        if texts[0] != texts[1]:
            differing.append(f"{row}\n    frontend:    {texts[0]}\n    interpreter: {texts[1]}")
    assert not differing, "\n" + "\n".join(differing)


WORDS = """
b("uint8", 4) + 300                     | Scalar 300 is out of range for type uint8
b("int32", 4) // b("uint32", 4)         | Cannot use // with int32 and uint32 because they have different signedness
b("fp32", 4) & 1                        | invalid operands of type fp32 and int
tl.umulhi(b("int32", 4), 1.5)           | Expected dtype ['int32', 'int64', 'uint32', 'uint64'] but got fp32
tl.arange(0, 6)                         | arange's range must be a power of 2
b("fp32", 4) + b("fp32", 8)             | Cannot make_shape_compatible: incompatible dimensions at index 0: 4 and 8
tl.load(b("int32", 8))                  | Unsupported ptr type <['8'], int32> in `tl.load`
tl.store(const("fp32"), 1)              | Cannot store to a constant pointer
tl.dot(b("fp16", 16, 16), b("fp32", 16, 16))    | Both operands must be same dtype. Got fp16 and fp32
tl.dot(b("fp16", 16, 16), b("fp16", 16, 16), out_dtype=tl.bfloat16) | out_dtype=bfloat16 is unsupported. Please use
"""


@pytest.mark.parametrize("line", WORDS.strip().splitlines())
def test_words_that_programs_written_for_triton_know(line: str) -> None:
    row, words = line.split(" | ")
    assert words.strip() in outcome(frontend, row.strip())
