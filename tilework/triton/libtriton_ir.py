"""The IR interface of Triton's native module: handles to modules, operations, blocks, regions and values, and
enumerations.

    context = ir.context()
    module = source.make_ir(target, options, backend.get_codegen_implementation(options), {}, context)
    module.walk(lambda op: print(op.get_name(), [op.get_operand(i).id() for i in range(op.get_num_operands())]))

A handle wraps an object of xDSL (`wrapped`); handles of one object have the same `id()`. There is nothing to load into
a context: every dialect is registered. Modules come from the frontend and from files, and passes change them; there is
no builder.
"""

import builtins
import sys
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import Float16Type, IntegerAttr, IntegerType, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue
from xdsl.traits import IsTerminator

from tilework.ir import enums
from tilework.ir.attr_text import AttributeText, is_true
from tilework.ir.module_facts import TENSOR_MAP
from tilework.ir.parser import parse_module, snapshot_locations
from tilework.ir.printer import print_module
from tilework.ir.tt.function_ops import dictionaries
from tilework.ir.types import PointerType
from tilework.ir.verify import first_problem
from tilework.language.elementwise_builtins import PropagateNan as PROPAGATE_NAN
from tilework.process.plugins import extend_with
from tilework.targets.base import run_passes


class Named(IntEnum):
    """An integer that prints as its name."""

    __str__ = Enum.__str__


def named(name: str, source: builtins.type[IntEnum], names: Mapping[str, str] | None = None, prefix: str = "") -> Any:
    """Return one of tilework's enumerations with the member names of Triton."""
    members = {(names or {}).get(member.name, prefix + member.name): member.value for member in source}
    return Named(name, members, module="triton._C.libtriton.ir")  # pyright: ignore[reportCallIssue, reportArgumentType]


ATOMIC_OP = named("ATOMIC_OP", enums.RMWOp, {"EXCH": "XCHG"})
CACHE_MODIFIER = named("CACHE_MODIFIER", enums.CacheModifier)
DESCRIPTOR_REDUCE_KIND = named("DESCRIPTOR_REDUCE_KIND", enums.DescriptorReduceKind)
EVICTION_POLICY = named("EVICTION_POLICY", enums.EvictionPolicy, {"NORMAL": "NORMAL"}, "EVICT_")
INPUT_PRECISION = named(
    "INPUT_PRECISION", enums.InputPrecision, {"TF32X3": "TF32x3", "BF16X3": "BF16x3", "BF16X6": "BF16x6"}
)
MEM_SEMANTIC = named("MEM_SEMANTIC", enums.MemSemantic, {"ACQ_REL": "ACQUIRE_RELEASE"})
MEM_SYNC_SCOPE = named("MEM_SYNC_SCOPE", enums.MemSyncScope, {"SYS": "SYSTEM"})
PADDING_OPTION = named("PADDING_OPTION", enums.PaddingOption, prefix="PAD_")
ROUNDING_MODE = named("ROUNDING_MODE", enums.RoundingMode)
ScaleDotElemTypeTY = named("ScaleDotElemTypeTY", enums.ScaleDotElemType)

# members that are names of the module too; of two with one name, Triton's module has the one listed last
EXPORTED = (
    INPUT_PRECISION,
    ScaleDotElemTypeTY,
    EVICTION_POLICY,
    PADDING_OPTION,
    MEM_SEMANTIC,
    MEM_SYNC_SCOPE,
    CACHE_MODIFIER,
)
MEMBERS = {name: member for kind in EXPORTED for name, member in kind.__members__.items()}
ENUMERATIONS = {
    "ATOMIC_OP": ATOMIC_OP,
    "DESCRIPTOR_REDUCE_KIND": DESCRIPTOR_REDUCE_KIND,
    "PROPAGATE_NAN": PROPAGATE_NAN,
    "ROUNDING_MODE": ROUNDING_MODE,
    **{kind.__name__: kind for kind in EXPORTED},
}


globals().update(MEMBERS | ENUMERATIONS)


class context:
    """The context of modules. It is empty: types and attributes are values here."""

    def adopt(self, wrapped: ModuleOp) -> "module":
        """Return the handle of a module of the frontend or the parser."""
        return module(wrapped, self)

    def printOpOnDiagnostic(self, value: bool) -> None:
        """Do nothing: diagnostics always show the op's text."""

    def printStackTraceOnDiagnostic(self, value: bool) -> None:
        """Do nothing: diagnostics never show the compiler's own stack."""


def load_dialects(context: "context") -> None:
    """Do nothing: every dialect is registered."""


extend_dialects_with = extend_with


class Handle:
    """The handle of an object of xDSL."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and self.wrapped is other.wrapped

    def __hash__(self) -> int:
        return self.id()

    def id(self) -> int:
        """Return an integer that identifies the object as long as it exists."""
        return builtins.id(self.wrapped)


def text_of(thing: Attribute) -> str:
    """Return the text of an attribute, a type or a location, without aliases."""
    return AttributeText().written_out(thing)


class attribute(Handle):
    """An attribute of an operation."""

    def __str__(self) -> str:
        return text_of(self.wrapped)


class type(Handle):
    """The type of a value; equal types are equal handles."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type) and self.wrapped == other.wrapped

    def __hash__(self) -> int:
        return hash(self.wrapped)

    def __str__(self) -> str:
        return text_of(self.wrapped)

    def is_integer(self, width: int) -> bool:
        return isinstance(self.wrapped, IntegerType) and self.wrapped.width.data == width

    def is_fp16(self) -> bool:
        return isinstance(self.wrapped, Float16Type)


class location(Handle):
    """The source location of an operation."""

    def __str__(self) -> str:
        return text_of(self.wrapped)


class value(Handle):
    """An SSA value."""

    wrapped: SSAValue

    @staticmethod
    def of(wrapped: SSAValue) -> "value":
        return (op_result if isinstance(wrapped, OpResult) else block_argument)(wrapped)

    def get_type(self) -> type:
        return type(self.wrapped.type)

    def get_context(self) -> context:
        return context()

    def replace_all_uses_with(self, new: "value") -> None:
        """Let every operation that uses this value use `new`."""
        self.wrapped.replace_all_uses_with(new.wrapped)


class op_result(value):
    """A result of an operation."""

    wrapped: OpResult

    def get_loc(self) -> location:
        return location(self.wrapped.op.location)


class block_argument(value):
    """An argument of a block."""

    wrapped: BlockArgument


class region(Handle):
    """A region of an operation: blocks."""

    wrapped: Region

    def get_parent_region(self) -> "region | None":
        outer = self.wrapped.parent.parent_region() if self.wrapped.parent is not None else None
        return None if outer is None else region(outer)

    def size(self) -> int:
        return len(self.wrapped.blocks)

    def empty(self) -> bool:
        return not self.wrapped.blocks


class block(Handle):
    """A block of operations."""

    wrapped: Block

    def get_num_arguments(self) -> int:
        return len(self.wrapped.args)

    def get_argument(self, index: int) -> block_argument:
        return block_argument(self.wrapped.args[index])

    arg = get_argument

    def get_parent(self) -> region | None:
        return None if self.wrapped.parent is None else region(self.wrapped.parent)

    def has_terminator(self) -> bool:
        last = self.wrapped.last_op
        return last is not None and last.has_trait(IsTerminator)

    def has_return(self) -> bool:
        """Return True if the terminator leaves the region: `tt.return` or a yield."""
        return self.has_terminator() and not (self.wrapped.last_op and self.wrapped.last_op.successors)

    def erase(self) -> None:
        self.wrapped.erase()

    def __str__(self) -> str:
        return "".join(f"{print_module(op).rstrip()}\n" for op in self.wrapped.ops)

    def dump(self) -> None:
        sys.stderr.write(str(self))


class OpState(Handle):
    """An operation, with its text."""

    wrapped: Operation

    def get_operation(self) -> "operation":
        return operation(self.wrapped)

    def get_num_results(self) -> int:
        return len(self.wrapped.results)

    def get_result(self, index: int) -> value:
        return op_result(self.wrapped.results[index])

    def get_region(self, index: int) -> region:
        return region(self.wrapped.regions[index])

    def get_body(self, index: int = 0) -> block:
        return block(self.wrapped.regions[index].block)

    def set_attr(self, name: str, value: attribute) -> None:
        self.wrapped.attributes[name] = value.wrapped

    def verify(self) -> bool:
        """Return True if the op is well formed; print the first problem to standard error otherwise."""
        problem = first_problem(self.wrapped)
        if problem is not None:
            sys.stderr.write(f"error: '{problem[0].name}' op {problem[1]}\n{print_module(problem[0]).rstrip()}\n")
        return problem is None

    def __str__(self) -> str:
        return print_module(self.wrapped, debuginfo=True)

    def str(self) -> builtins.str:
        """Return the text with locations."""
        return str(self)

    def str_nodebug(self) -> builtins.str:
        """Return the text without locations, with numbered values."""
        return print_module(self.wrapped, nameloc_prefix=False)

    def dump(self) -> None:
        sys.stderr.write(str(self))


class operation(OpState):
    """An operation, as `module.walk` yields it."""

    def get_name(self) -> builtins.str:
        return self.wrapped.name

    def get_num_operands(self) -> int:
        return len(self.wrapped.operands)

    def get_operand(self, index: int) -> value:
        return value.of(self.wrapped.operands[index])

    def get_num_regions(self) -> int:
        return len(self.wrapped.regions)

    def get_block(self) -> block | None:
        return None if self.wrapped.parent is None else block(self.wrapped.parent)

    def found(self, name: builtins.str) -> Any:
        """Return an attribute or property by name, or None."""
        found = self.wrapped.properties.get(name)
        return self.wrapped.attributes.get(name) if found is None else found

    def get_str_attr(self, name: builtins.str) -> builtins.str | None:
        found = self.found(name)
        return found.data if isinstance(found, StringAttr) else None

    def get_bool_attr(self, name: builtins.str) -> bool | None:
        found = self.found(name)
        is_bool = isinstance(found, IntegerAttr) and found.type == IntegerType(1)
        return bool(found.value.data) if is_bool else None

    def get_int_attr(self, name: builtins.str) -> int | None:
        found = self.found(name)
        return found.value.data if isinstance(found, IntegerAttr) else None

    def get_flat_symbol_ref_attr(self, name: builtins.str) -> builtins.str | None:
        found = self.found(name)
        return found.root_reference.data if isinstance(found, SymbolRefAttr) else None


class function(OpState):
    """A function of a module."""

    def get_num_args(self) -> int:
        return len(self.wrapped.regions[0].block.args)

    def args(self, index: int) -> block_argument:
        return block_argument(self.wrapped.regions[0].block.args[index])


class module(OpState):
    """All functions of a kernel."""

    wrapped: ModuleOp

    def __init__(self, wrapped: ModuleOp, context: "context | None" = None) -> None:
        super().__init__(wrapped)
        self.context = context

    def functions(self) -> dict[builtins.str, Operation]:
        """Return the functions by name, in program order."""
        named = [(op.properties.get("sym_name"), op) for op in self.wrapped.ops]
        return {name.data: op for name, op in named if isinstance(name, StringAttr)}

    def walk(self, fn: Callable[[operation], Any]) -> None:
        """Call `fn` with every operation, in post-order."""

        def visit(op: Operation) -> None:
            for inner in [inner for region in op.regions for block in region.blocks for inner in block.ops]:
                visit(inner)
            fn(operation(op))

        visit(self.wrapped)

    def has_function(self, name: builtins.str) -> bool:
        return name in self.functions()

    def get_function(self, name: builtins.str) -> function:
        return function(self.functions()[name])

    def get_entry_func_name(self) -> builtins.str:
        """Return the name of the kernel: the public function."""
        for name, op in self.functions().items():
            visibility = op.properties.get("sym_visibility")
            if not isinstance(visibility, StringAttr) or visibility.data == "public":
                return name
        return ""

    def get_function_signature(self, fn: function) -> list[builtins.str]:
        """Return the parameter types: ``["*f32", "i32"]``; a tensor map that is passed by value is ``nvTmaDesc``."""
        args = fn.wrapped.regions[0].block.args
        given = dictionaries(fn.wrapped.properties.get("arg_attrs"), len(args))
        return [
            "nvTmaDesc" if is_true(attributes.get(TENSOR_MAP)) else signature_text(argument.type)
            for argument, attributes in zip(args, given, strict=True)
        ]

    def get_int_attr(self, name: builtins.str) -> int | None:
        found = self.wrapped.attributes.get(name)
        return found.value.data if isinstance(found, IntegerAttr) else None

    def get_tensordesc_metadata(self) -> list[Any]:
        """Return nothing: the launcher builds tensor maps from the kernel's own metadata."""
        return []

    def create_location_snapshot(self, path: builtins.str) -> None:
        """Write the text of this module to `path`, and set the location of every operation to its line there."""
        Path(path).write_text(print_module(self.wrapped), encoding="utf-8")
        self.wrapped = snapshot_locations(self.wrapped, path)


def signature_text(found: Attribute) -> str:
    """Return ``*f32`` for a pointer, else the text of the type."""
    return f"*{signature_text(found.pointee)}" if isinstance(found, PointerType) else text_of(found)


def parse_mlir_module(path: str, context: "context") -> module:
    """Return the module in a file."""
    return context.adopt(parse_module(Path(path).read_text(encoding="utf-8"), str(path)))


class pass_manager:
    """A list of passes; the functions of `passes` append to it."""

    def __init__(self, context: "context") -> None:
        self.context = context
        self.items: list[str] = []

    def enable_debug(self) -> bool:
        """Return False: MLIR_ENABLE_DUMP alone enables dumps before every pass."""
        return False

    def get_pipeline_str(self) -> builtins.str:
        """Return the passes in the syntax of `tilework opt -p`."""
        return f"builtin.module({','.join(self.items)})"

    def run(self, mod: module, name: builtins.str = "") -> None:
        """Apply the passes, in place."""
        run_passes(mod.wrapped, self.items, name or "passes")
