"""TTGIR to LLVM text: one module, one `ptx_kernel` per public function.

    ; tilework: {"fp_contract": "explicit", "shared": 16384}
    define ptx_kernel void @NAME(ARGUMENTS, ptr addrspace(1) %scratch, ptr addrspace(1) %profile)

A tensor descriptor of the host is a parameter of 128 bytes by value. Shared memory is one dynamic array, planned by
`analysis/allocation.py`; barriers are where `analysis/membar.py` wants them. Functions that are not inlined get their frames
of shared memory and of the program's scratch memory as further arguments, for each call its own.
"""

import json
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Attribute

from tilework.analysis.allocation import module_allocation
from tilework.analysis.axis_info import axis_info
from tilework.analysis.global_order import global_order
from tilework.analysis.global_scratch import global_scratch, public_functions
from tilework.analysis.membar import barriers, ordered_by_mbarrier
from tilework.analysis.proxy_fences import proxy_fences
from tilework.ir import tt
from tilework.ir.module_facts import SANITIZER_FACTS, num_ctas, num_warps
from tilework.ir.types import TensorDescType
from tilework.targets.gpu import (
    arithmetic,
    casts,
    convert,
    debug,
    foreign,
    fp4,
    gather,
    map_elementwise,
    mbarrier,
    scan,
    views,
)
from tilework.targets.gpu import async_copy_rules as async_copy
from tilework.targets.gpu import atomic_rules as atomics
from tilework.targets.gpu import control_rules as control
from tilework.targets.gpu import dot_rules as dot
from tilework.targets.gpu import global_access as memory
from tilework.targets.gpu import program_rules as program
from tilework.targets.gpu import reduce_rules as reduce
from tilework.targets.gpu import shared_access as shared
from tilework.targets.gpu import tensormap_rules as tensormap
from tilework.targets.gpu import tma_rules as tma
from tilework.targets.gpu import wgmma_rules as wgmma
from tilework.targets.gpu.lowering import SHARED_SPACE, SMEM, Facts, Lowering
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.debug import LineTable
from tilework.targets.llvm.module import Module, plain_symbol
from tilework.targets.llvm.sweep import sweep
from tilework.targets.llvm.types import Type, array, i8, i64, pointer, ptr, void
from tilework.targets.llvm.values import Value

# importing these fills the table of rules
RULE_FILES = (
    arithmetic, async_copy, atomics, casts, control, convert, debug, dot, foreign, fp4, gather, map_elementwise,
    mbarrier, memory, program, reduce, scan, shared, tensormap, tma, views, wgmma,
)  # fmt: skip
SMEM_ALIGNMENT = 1024
MAP_BYTES = 128
BY_VALUE = f'byval([{MAP_BYTES} x i8]) align {MAP_BYTES} "nvvm.grid_constant"'


def emit_module(
    module: ModuleOp, capability: int, *, fuses: bool = True, lines: bool = True, options: Any = None
) -> str:
    """LLVM text of every function of a module of TTGIR."""
    facts = Facts(capability, num_warps(module), num_ctas(module), fuses, options)
    return Emitter(module, facts, lines).text()


class Emitter:
    """The module being written."""

    def __init__(self, source: ModuleOp, facts: Facts, lines: bool) -> None:
        self.source, self.facts = source, facts
        self.module = Module("tilework")
        self.lines = LineTable(self.module, "DebugDirectivesOnly") if lines else None
        self.allocation = module_allocation(source, facts.capability)
        self.barriers = barriers(source, facts.capability, ordered_by_mbarrier)
        self.order = global_order(source)
        self.fences = set(proxy_fences(source, facts.capability)) if facts.capability >= 90 else set()
        self.axis = axis_info(source)
        self.scratch = global_scratch(source)
        self.program = self.scratch.whole(public_functions(source))  # the scratch memory of a program
        self.descriptors: list[dict[str, Any]] = []  # what the launcher must know about those among the arguments
        self.smem = self.module.global_variable(SMEM, array(i8, 0), None, space=SHARED_SPACE, align=SMEM_ALIGNMENT)

    def text(self) -> str:
        for op in self.source.body.block.ops:
            if isinstance(op, tt.FuncOp) and op.regions[0].blocks:
                self.function(op)
        told: dict[str, Any] = {"fp_contract": "explicit", "shared": self.shared_bytes()}
        if self.program.size:
            told |= {"global_scratch_size": self.program.size, "global_scratch_align": self.program.alignment}
        if self.descriptors:
            told["tensordesc_meta"] = self.descriptors
        if isinstance(facts := self.source.attributes.get(SANITIZER_FACTS), StringAttr):
            told["sanitizer"] = json.loads(facts.data)
        return f"; tilework: {json.dumps(told)}\n{self.module.text()}"

    def shared_bytes(self) -> int:
        """The shared memory of the kernel, those of the functions it calls included."""
        return max((allocation.size for allocation in self.allocation.values()), default=0)

    def function(self, op: tt.FuncOp) -> None:
        name, visibility = op.properties["sym_name"], op.properties.get("sym_visibility")
        type = op.properties["function_type"]
        assert isinstance(name, StringAttr) and isinstance(type, FunctionType)
        is_kernel = not (isinstance(visibility, StringAttr) and visibility.data == "private")
        low = self.kernel(name.data, op) if is_kernel else self.internal(name.data, op, type)
        low.allocation, low.barriers, low.axis = self.allocation[name.data], self.barriers, self.axis
        low.order, low.fences = self.order, self.fences
        low.scratch_offsets = self.scratch.offsets
        if self.lines is not None:
            low.describe(self.lines, op)
        control.lower_body(low, op.regions[0])
        sweep(low.builder.function)

    def kernel(self, name: str, op: tt.FuncOp) -> Lowering:
        args = op.regions[0].blocks[0].args
        params: list[tuple[Type, str]] = []
        by_value: dict[int, str] = {}
        for position, arg in enumerate(args):
            if isinstance(arg.type, TensorDescType):
                by_value[position] = BY_VALUE
                self.descriptors.append(tensormap.describe(arg.type))
                params.append((ptr, f"a{position}"))
            else:
                params.append((parameter_type(arg.type), f"a{position}"))
        params += [(pointer(1), "scratch"), (pointer(1), "profile")]
        threads = 32 * self.facts.num_warps
        attributes = ["nounwind", f'"nvvm.reqntid"="{threads}"']
        if self.facts.num_ctas > 1:
            attributes.append(f'"nvvm.cluster_dim"="{self.facts.num_ctas},1,1"')
        if (least := getattr(self.facts.options, "minctasm", None)) is not None:
            attributes.append(f'"nvvm.minctasm"="{least}"')
        function = self.module.function(
            name, void, params, convention="ptx_kernel", attributes=attributes, param_attributes=by_value
        )
        low = Lowering(self.module, Builder(function), self.facts)
        flat = [from_parameter(low, arg.type, value) for arg, value in zip(args, function.args, strict=False)]
        control.bind(low, list(args), flat)
        low.smem = self.smem
        low.scratch = self.program_scratch(low, function.args[len(args)])
        return low

    def program_scratch(self, low: Lowering, whole: Value) -> Value:
        """The part of the scratch memory that belongs to this block."""
        if not self.program.size:
            return whole
        b = low.builder
        x, y, z = (low.special(f"ctaid.{axis}") for axis in "xyz")
        width, height = (low.special(f"nctaid.{axis}") for axis in "xy")
        number = b.add(b.mul(b.add(b.mul(z, height), y), width), x)
        return b.gep(whole, b.mul(b.zext(number, i64), self.program.size))

    def internal(self, name: str, op: tt.FuncOp, type: FunctionType) -> Lowering:
        inputs = [param for input in type.inputs for param in control.types_of(input)]
        params = [*((param, f"a{position}") for position, param in enumerate(inputs)), *FRAME]
        function = self.module.function(
            plain_symbol(name), control.result_type(list(type.outputs)), params, linkage="internal",
            attributes=("nounwind", "noinline", "convergent"),
        )  # fmt: skip
        low = Lowering(self.module, Builder(function), self.facts)
        *flat, low.smem, low.scratch = function.args
        control.bind(low, list(op.regions[0].blocks[0].args), flat)
        return low


FRAME: Sequence[tuple[Type, str]] = ((pointer(SHARED_SPACE), "smem"), (pointer(1), "scratch"))


def parameter_type(type: Attribute) -> Type:
    """How a scalar is passed: an i1 as a byte."""
    (made,) = control.types_of(type)
    return i8 if made.bits == 1 else made


def from_parameter(low: Lowering, type: Attribute, value: Value) -> Value:
    """A parameter as the register that the rules expect."""
    if isinstance(type, TensorDescType):
        return value
    (wanted,) = control.types_of(type)
    return value if value.type is wanted else low.builder.icmp("ne", value, 0)
