"""The layout of variables: module variables in the arena, shared variables in the block's window, local variables and
parameters per thread.

>>> from tilework.oracles.emulator.parser import parse_ptx
>>> text = ".version 8.0\\n.target sm_80\\n.shared .align 4 .b8 a[6];\\n.extern .shared .align 16 .b8 d[];"
>>> shared_layout(parse_ptx(text + ".entry k() { ret; }"), dynamic=64)
({'a': 0, 'd': 16}, 80)
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tilework.oracles.emulator.memory import Array, Memory
from tilework.oracles.emulator.syntax import EmulatorError, Function, PtxModule, Symbol, Variable

LARGEST_FRAMES = 512 << 10
LARGEST_PARAMETER = 32 << 10


def assign_offsets(variables: Iterable[Variable], start: int = 0) -> tuple[dict[str, int], int]:
    """Lay out variables one after the other, aligned; return their offsets and the end."""
    offsets = {}
    for variable in variables:
        start = (start + variable.align - 1) // variable.align * variable.align
        offsets[variable.name] = start
        start += variable.size
    return offsets, start


def variables_in(module: PtxModule, *spaces: str) -> list[Variable]:
    """Return the variables of the module and of all function bodies. The latter are renamed (``k buffer``), because two
    bodies may use the same name."""
    found = [variable for variable in module.variables.values() if variable.space in spaces]
    for function in module.functions.values():
        found += [
            replace(variable, name=inside(function, name))
            for name, variable in function.variables.items()
            if variable.space in spaces
        ]
    return found


def inside(function: Function, name: str) -> str:
    """Return the module-wide name of a variable of a function body."""
    return f"{function.name} {name}"


def names_in(function: Function, symbols: dict[str, int]) -> dict[str, int]:
    """Return the addresses of the names that a function body can use."""
    return symbols | {
        name: symbols[inside(function, name)] for name in function.variables if inside(function, name) in symbols
    }


def shared_layout(module: PtxModule, dynamic: int) -> tuple[dict[str, int], int]:
    """Return the offsets of shared variables and the bytes a block needs; variables without a size share the `dynamic`
    bytes at the end."""
    shared = variables_in(module, "shared")
    offsets, end = assign_offsets(variable for variable in shared if variable.count is not None)
    open_ended = [variable for variable in shared if variable.count is None]
    align = max((variable.align for variable in open_ended), default=16)
    start = (end + align - 1) // align * align if open_ended or dynamic else end
    offsets |= {variable.name: start for variable in open_ended}
    return offsets, (start + dynamic + 3) // 4 * 4  # narrow atomics access the whole 32-bit word around their bytes


def local_layout(module: PtxModule) -> tuple[dict[str, int], int]:
    """Return the offsets of the module's own local variables, and their size. Those of functions are in a frame for
    each call."""
    offsets, end = assign_offsets(variable for variable in module.variables.values() if variable.space == "local")
    return offsets, (end + 15) // 16 * 16


def frame_layout(function: Function, start: int) -> tuple[dict[str, int], int]:
    """Return the offsets in the local window of the frame of one call: the function's local variables, and copies of
    the parameters whose address it takes."""
    kept = [variable for variable in function.variables.values() if variable.space == "local"]
    if not function.is_kernel:
        taken = {
            operand.name for ins in function.instructions for operand in ins.operands if isinstance(operand, Symbol)
        }
        kept += [variable for variable in function.params if variable.name in taken]
    offsets, end = assign_offsets(kept, start)
    if end > LARGEST_FRAMES:
        raise EmulatorError(
            f"{function.name} needs {end} bytes of local memory in a thread; {LARGEST_FRAMES} are possible"
        )
    return offsets, (end + 15) // 16 * 16


def module_variables(module: PtxModule, memory: Memory, functions: dict[str, int] | None = None) -> dict[str, int]:
    """Allocate and initialise the global and constant variables of a module; return their addresses. Initial values may
    contain addresses of `functions`."""
    variables = variables_in(module, "global", "const")
    symbols = {
        variable.name: memory.allocate(max(1, variable.size), max(256, variable.align)) for variable in variables
    }
    known = {**(functions or {}), **symbols}
    for variable in variables:
        data = bytearray(variable.size)
        data[: len(variable.initial)] = variable.initial
        for offset, symbol, _ in variable.pointers:
            if symbol.name not in known:
                raise EmulatorError(
                    f"{variable.name} is initialised with the address of {symbol.name}, which is not in the module"
                )
            size = 8
            data[offset : offset + size] = (known[symbol.name] + symbol.offset).to_bytes(size, "little")
        if data:
            memory.write(symbols[variable.name], bytes(data))
    return symbols


def local_variables(function: Function, threads: int) -> dict[str, Array]:
    """Return an array (threads, bytes) for each parameter variable that a body declares for its calls."""
    found = {}
    for variable in function.variables.values():
        if variable.space == "param":
            if variable.size > LARGEST_PARAMETER:
                raise EmulatorError(
                    f"the parameter {variable.name} has {variable.size} bytes; {LARGEST_PARAMETER} are possible"
                )
            found[variable.name] = np.zeros((threads, (variable.size + 15) // 16 * 16), np.uint8)
    return found


def parameter_layout(function: Function) -> tuple[dict[str, int], int]:
    """Return the offsets of a kernel's parameters, as the driver lays them out, and their size."""
    return assign_offsets(function.params)
