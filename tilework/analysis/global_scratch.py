"""Where the scratch memory of a program lies in global memory.

    %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32}      offset 0
    tt.call @helper()                                                              offset 128: the frame of @helper
    tt.call @helper()                                                              offset 256: its frame for this call

Everything gets bytes of its own, one after the other: what one call leaves there, a descriptor say, outlives the next call. An op
in a loop uses the same bytes in every iteration. Offsets are relative to the frame of the function.
"""

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.allocation import aligned
from tilework.ir import tt, ttg
from tilework.ir.functions import callee_of, callees_first, functions_by_name, is_private, ops_in_order


@dataclass(frozen=True)
class Frame:
    """The bytes that a function needs, and what their start must be a multiple of."""

    size: int
    alignment: int


@dataclass
class GlobalScratch:
    """The frames of functions by name; the offsets of allocations and calls, of those that need memory."""

    frames: dict[str, Frame] = field(default_factory=dict)
    offsets: dict[Operation, int] = field(default_factory=dict)

    def whole(self, kernels: list[str]) -> Frame:
        """What a program of any of the `kernels` needs."""
        frames = [self.frames[name] for name in kernels]
        alignment = max((frame.alignment for frame in frames), default=1)
        return Frame(aligned(max((frame.size for frame in frames), default=0), alignment), alignment)


def global_scratch(module: ModuleOp) -> GlobalScratch:
    """Lay out the frames of all functions, callees first."""
    functions = functions_by_name(module)
    found = GlobalScratch()
    for name in callees_first(functions):
        found.frames[name] = lay_out(functions[name], found)
    return found


def lay_out(function: Operation, found: GlobalScratch) -> Frame:
    end, alignment = 0, 1
    for op in ops_in_order(*function.regions):
        if type(op) is ttg.GlobalScratchAllocOp:
            needed = Frame(number(op, "nbytes"), number(op, "alignment"))
        elif type(op) is tt.CallOp:
            needed = found.frames.get(callee_of(op), Frame(0, 1))  # a function that calls itself has no memory there
        else:
            continue
        if needed.size:
            found.offsets[op] = aligned(end, needed.alignment)
            end, alignment = found.offsets[op] + needed.size, max(alignment, needed.alignment)
    return Frame(aligned(end, alignment), alignment)


def number(op: Operation, name: str) -> int:
    return op.properties[name].value.data  # pyright: ignore[reportAttributeAccessIssue]


def public_functions(module: ModuleOp) -> list[str]:
    """The names of the kernels."""
    return [name for name, function in functions_by_name(module).items() if not is_private(function)]
