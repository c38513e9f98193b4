"""Check that passes keep the results of a program: run it before and after each, on generated inputs, and compare.

    report = check_each(module, "canonicalize,triton-combine,cse", seed=7)
    assert report.ok, report

Inputs follow from the signature: arrays for pointers (a size with room for several tiles, 64-byte aligned, with guard
space around each), small positive integers (multiples of 16 where `tt.divisibility` says so), normal floats. Inputs
that the original program cannot run with (an index out of bounds, a failed assertion) are replaced by others, with
larger arrays; if none work the function is reported as not checked, with the reason.

`given` fixes arguments by name, to reach code that small sizes do not: a scalar, an array, or (array, shape, strides):

    check_each(module, "tritongpu-pipeline{num-stages=3}", given={"K": 256, "a": a, "b": b}, grid=(1, 1, 1))

Asynchronous copies, dots and barriers are checked on the way: see `oracles/evaluator/shared_memory.py`. After the pass
that inserts fences a missing one is a mistake, and after the pass that inserts barriers a missing one.

Integers and pointers must agree in every bit. Floats may differ by rounding, since passes reorder sums.

`gap_of` compares two results of one kernel:

    gap = gap_of(expected, got, Tolerance("f32", 2e-4))
    gap.is_rounding, gap.describe()     False, "out[17] is 2.5, not 3.0; 3 of 64 written elements of `out` differ, ..."

Floats may differ by rounding: by `RTOL` of the largest magnitude among the elements that were written, for the coarsest
floats that the kernel computes with. Other elements of an array may hold anything. Everything else must be equal; NaNs
equal each other.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation

from tilework.ir import tt
from tilework.ir.create import clone_op
from tilework.ir.enums import InputPrecision
from tilework.ir.functions import functions, is_private, symbol_of
from tilework.ir.tt.function_ops import function_type_of
from tilework.ir.ttg.memory_types import is_memdesc
from tilework.ir.types import (
    PointerType,
    TensorDescType,
    axis_of,
    bit_width,
    element_type,
    i32,
    i64,
    is_float,
    is_pointer,
    shape_of,
)
from tilework.numerics.rounding import FORMAT_OF
from tilework.oracles.evaluator import EvaluationError, evaluate
from tilework.oracles.evaluator.values import memory_bytes, storage
from tilework.transforms.passes import Pass
from tilework.transforms.registry import parse_pipeline

Array = np.ndarray[Any, Any]
RTOL = {1: 0.13, 2: 2e-2, 4: 2e-4, 8: 1e-9}  # by bytes of the float
TF32 = ("tf32", 2e-3)  # 11 bits, and sums of some of them
COMPUTING = ("arith.", "math.", "tt.dot", "tt.reduce", "tt.scan", "tt.fp_to_fp", "tt.precise", "tt.extern")


@dataclass(frozen=True)
class Tolerance:
    """The allowed error of floats, relative to the largest one; `because` names the format that decides."""

    because: str
    part: float


EXACT = Tolerance("integers", 0.0)


def tolerance_of(module: ModuleOp) -> Tolerance:
    """Return the tolerance of a kernel, from its module before any pass: its coarsest floats decide."""
    found = Tolerance("f64", RTOL[8])
    for op in module.walk():
        if not op.name.startswith(COMPUTING) or op.name == "arith.constant":
            continue
        for value in op.results:
            if is_float(element_type(value.type)):
                size = max(bit_width(value.type) // 8, 1)
                found = max(
                    found, Tolerance(str(element_type(value.type)), RTOL[size]), key=lambda tolerance: tolerance.part
                )
        if op.name == "tt.dot" and str(element_type(op.operands[0].type)) == "f32" and rounds_operands(op):
            found = max(found, Tolerance(*TF32), key=lambda tolerance: tolerance.part)
    return found


def rounds_operands(op: Operation) -> bool:
    """Return True if a dot of f32 may round its operands to fewer bits."""
    precision = op.properties.get("inputPrecision")
    return isinstance(precision, IntegerAttr) and InputPrecision(precision.value.data) is not InputPrecision.IEEE


@dataclass(frozen=True)
class Gap:
    """The first wrong element of an array, and the size of the errors."""

    name: str
    differing: int
    size: int  # elements that are compared
    index: tuple[int, ...]  # of the first one beyond the tolerance, or of the largest error
    expected: str
    got: str
    largest: float
    relative: float  # to the largest magnitude that is compared
    is_rounding: bool

    def describe(self, tolerance: Tolerance) -> str:
        element = f"{self.name}[{', '.join(map(str, self.index))}]"
        size = f"the largest error is {self.largest:.3g}, {self.relative:.1e} of the largest value"
        differing = f"{self.differing} of {self.size} written elements of `{self.name}` differ"
        if self.is_rounding:
            return f"{differing} by rounding: {size} ({tolerance.because} allows {tolerance.part:.0e})"
        return f"{element} is {self.got}, not {self.expected}; {differing}, {size}"


@dataclass(frozen=True)
class Expected:
    """The expected results of a launch, the previous contents of its arrays, and the written elements as far as
    known."""

    arrays: Mapping[str, Array]
    before: Mapping[str, Array]
    written: Mapping[str, Array] = field(default_factory=dict)

    def compared(self, name: str, got: Array) -> Array:
        """The elements of an array that are written: known ones, and what a launch has changed."""
        before = self.before[name]
        found = changed(before, self.arrays[name]) | changed(before, got)
        return found | self.written[name] if name in self.written else found

    def gaps(self, got: Mapping[str, Array], tolerance: Tolerance) -> list[Gap]:
        """The arrays that differ, those beyond rounding first."""
        pairs = ((name, self.arrays[name], got[name]) for name in self.arrays)
        found = [gap_of(name, right, one, tolerance, self.compared(name, one)) for name, right, one in pairs]
        return sorted((gap for gap in found if gap is not None), key=lambda gap: gap.is_rounding)

    def largest_move(self, name: str, got: Array) -> float:
        """Return the largest error of an array; infinities and NaNs do not count."""
        if self.arrays[name].dtype not in FORMAT_OF:
            return 0.0
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(self.arrays[name].astype(np.float64) - got.astype(np.float64))
        return float(np.max(error, where=np.isfinite(error), initial=0.0))


def changed(before: Array, after: Array) -> Array:
    """The elements of two contiguous arrays that have not the same bits."""
    shape = (*before.shape, before.dtype.itemsize)
    old, new = (np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(shape) for array in (before, after))
    return np.any(old != new, axis=-1)


def gap_of(
    name: str, expected: Array, got: Array, tolerance: Tolerance = EXACT, compared: Array | None = None
) -> Gap | None:
    """Return the gap between two arrays; None if they are equal bit by bit, NaNs aside. `compared` elements (by default
    all)
    set the scale of the allowed errors."""
    if expected.tobytes() == got.tobytes():
        return None
    compared = np.ones(expected.shape, np.bool_) if compared is None else compared
    if expected.dtype in FORMAT_OF:
        return float_gap(name, expected, got, tolerance, compared)
    differs = expected != got
    if not differs.any():
        return None
    a, b = (array.astype(np.float64) for array in (expected, got))
    scale = np.max(np.abs(a), where=compared, initial=0.0)
    return made(name, expected, got, differs, differs, np.abs(a - b), scale, compared)


def float_gap(name: str, expected: Array, got: Array, tolerance: Tolerance, compared: Array) -> Gap | None:
    a, b = expected.astype(np.float64), got.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        differs = ~((a == b) | (np.isnan(a) & np.isnan(b)))
        if not differs.any():
            return None
        scale = np.max(np.abs(a), where=np.isfinite(a) & compared, initial=0.0)
        error = np.abs(a - b)
        part = max(tolerance.part, RTOL[expected.dtype.itemsize])
        is_wrong = differs & ~(error <= part * scale)
    return made(name, expected, got, differs, is_wrong, error, scale, compared)


def made(
    name: str,
    expected: Array,
    got: Array,
    differs: Array,
    is_wrong: Array,
    error: Array,
    scale: float,
    compared: Array,
) -> Gap:
    finite = np.where(np.isfinite(error), error, np.inf)
    largest = float(np.max(finite, where=differs, initial=0.0))
    first = np.argwhere(is_wrong)[0] if is_wrong.any() else np.argwhere(differs & (finite == largest))[0]
    index = tuple(int(position) for position in first)
    return Gap(
        name=name,
        differing=int(np.count_nonzero(differs)),
        size=int(np.count_nonzero(compared)),
        index=index,
        expected=str(expected[index]),
        got=str(got[index]),
        largest=largest,
        relative=largest / scale if scale else float("inf"),
        is_rounding=not is_wrong.any(),
    )


ATTEMPTS = 8
FIRST_SIZE = 1 << 13
GUARD = 1 << 12
MAX_STEPS = 300_000
# What a module has all of, after these passes.
PROMISES: dict[str, set[str]] = {
    "triton-nvidia-gpu-fence-insertion": {"fences"},
    "test-print-membar": {"barriers"},
}


@dataclass(frozen=True)
class Mismatch:
    """The first pass that changed a result, and the first element that differs."""

    function: str
    pass_name: str
    what: str

    def __str__(self) -> str:
        return f"pass '{self.pass_name}' changed the result of '{self.function}': {self.what}"


@dataclass(frozen=True)
class Report:
    """The functions that were compared, those that could not be (with the reason), and the mismatch, if any."""

    seed: int
    checked: tuple[str, ...] = ()
    unchecked: tuple[tuple[str, str], ...] = ()
    mismatch: Mismatch | None = None

    @property
    def ok(self) -> bool:
        return self.mismatch is None

    def __str__(self) -> str:
        lines = [f"checked '{name}'" for name in self.checked]
        lines += [f"not checked '{name}': {reason}" for name, reason in self.unchecked]
        if self.mismatch is not None:
            lines.append(f"error: {self.mismatch}")
        return "\n".join(f"{line} (seed {self.seed})" for line in lines)


@dataclass
class Inputs:
    """Generated arguments. All arrays are in one arena, so that every run starts from the same bytes at the same
    addresses."""

    arena: np.ndarray[Any, Any]
    args: list[Any] = field(default_factory=list)
    arrays: list[tuple[str, np.ndarray[Any, Any]]] = field(default_factory=list)
    used: int = 0

    def reserve(self, name: str, count: int, element: Attribute) -> np.ndarray[Any, Any]:
        """An array of `count` elements with guard space on both sides."""
        start = self.used + GUARD
        end = start + count * memory_bytes(element)
        self.used = (end + 63) // 64 * 64
        array = self.arena[start:end].view(array_dtype(element))
        self.arrays.append((name, array))
        return array


@dataclass(frozen=True)
class Outcome:
    """The results of one run."""

    arrays: tuple[tuple[str, np.ndarray[Any, Any]], ...]
    returned: tuple[Any, ...]
    printed: int
    written: tuple[np.ndarray[Any, Any], ...]  # the elements of each array that it changed


@dataclass(frozen=True)
class Trial:
    """Inputs on which the original program runs: their bytes at the start, what came out, and whether that was
    anything:
    a value returned, a line printed, a changed byte."""

    inputs: Inputs
    start: bytes
    outcome: Outcome
    has_effect: bool


def check_each(
    module: ModuleOp,
    passes: str | Sequence[Pass],
    seed: int = 0,
    *,
    programs: int = 2,
    attempts: int = ATTEMPTS,
    max_steps: int = MAX_STEPS,
    given: Mapping[str, Any] | None = None,
    grid: tuple[int, ...] | None = None,
) -> Report:
    """Run `passes` on a copy of `module`, comparing every public function after each of them with the original.

    The grid has `programs` programs along each axis that the module reads, unless one is given.
    """
    passes = parse_pipeline(passes) if isinstance(passes, str) else passes
    grid = grid or tuple(programs if axis in used_axes(module) else 1 for axis in range(3))
    expected: dict[str, Trial] = {}
    unchecked: list[tuple[str, str]] = []
    for position, function in enumerate(public_functions(module)):
        trial = first_trial(module, function, [seed, position], grid, attempts, max_steps, given or {})
        if isinstance(trial, Trial):
            expected[symbol_of(function)] = trial
        if isinstance(trial, str) or not trial.has_effect:
            reason = (
                trial if isinstance(trial, str) else "it ran, but returned and wrote nothing on any generated input"
            )
            unchecked.append((symbol_of(function), reason))
    mismatch = first_mismatch(clone_op(module, {}), passes, expected, grid, max_steps)
    checked = tuple(name for name, trial in expected.items() if trial.has_effect)
    return Report(seed, checked, tuple(unchecked), mismatch)


def first_trial(
    module: ModuleOp,
    function: tt.FuncOp,
    seed: list[int],
    grid: tuple[int, ...],
    attempts: int,
    max_steps: int,
    given: Mapping[str, Any],
) -> Trial | str:
    """Return the first generated inputs on which `function` runs and has an effect, or at least runs; or the reason
    that none does."""
    found: Trial | str = "no inputs were generated"
    for attempt in range(attempts):
        inputs = generate_inputs(function, np.random.default_rng([*seed, attempt]), attempt, given)
        if isinstance(inputs, str):
            return inputs
        start = inputs.arena.tobytes()
        try:
            outcome = run(module, symbol_of(function), inputs, grid, max_steps)
        except EvaluationError as error:
            found = found if isinstance(found, Trial) else str(error)
            continue
        has_effect = bool(outcome.returned or outcome.printed) or inputs.arena.tobytes() != start
        found = Trial(inputs, start, outcome, has_effect)
        if has_effect or not inputs.args:
            return found
    return found


def first_mismatch(
    module: ModuleOp,
    passes: Sequence[Pass],
    expected: dict[str, Trial],
    grid: tuple[int, ...],
    max_steps: int,
) -> Mismatch | None:
    """Apply the passes to `module` one by one, until one of them changes an outcome."""
    has: set[str] = set()
    before = parts(module)
    for one in passes:
        one.run(module)
        after, promised = parts(module), has | PROMISES.get(one.name, set())
        if after == before and promised == has:
            continue
        before, has = after, promised
        remaining = {symbol_of(function) for function in public_functions(module)}
        for name, trial in expected.items():
            if name not in remaining:
                return Mismatch(name, one.name, "the function is gone")
            trial.inputs.arena[:] = np.frombuffer(trial.start, np.uint8)
            try:
                outcome = run(module, name, trial.inputs, grid, max_steps * 4, has)
            except EvaluationError as error:
                return Mismatch(name, one.name, f"it now fails: {error}")
            if (what := difference(trial.outcome, outcome)) is not None:
                return Mismatch(name, one.name, what)
    return None


def parts(module: ModuleOp) -> list[Hashable]:
    """The objects that a module consists of: equal if nothing was modified."""
    found: list[Hashable] = []
    for op in module.walk():
        results = tuple(result.type for result in op.results)
        found += (op, op.parent, tuple(op.successors), tuple(op.operands), results)
        found += (tuple(op.properties.items()), tuple(op.attributes.items()))
        for block in (block for region in op.regions for block in region.blocks):
            found += (block, tuple(argument.type for argument in block.args))
    return found


def run(
    module: ModuleOp,
    name: str,
    inputs: Inputs,
    grid: tuple[int, ...],
    max_steps: int,
    has: Collection[str] = (),
) -> Outcome:
    """One evaluation of a module that `has` all its fences or barriers, or neither; the arrays are copied out."""
    lines: list[str] = []
    initial = [array.copy() for _, array in inputs.arrays]
    (function,) = (one for one in public_functions(module) if symbol_of(one) == name)
    returned = evaluate(
        module,
        name,
        padded(inputs.args, function),
        grid,
        memory=[array for _, array in inputs.arrays],
        max_steps=max_steps,
        on_print=lines.append,
        barriers="barriers" in has,
        fences="fences" in has,
    )
    arrays = tuple((label, array.copy()) for label, array in inputs.arrays)
    written = tuple(changed(old, new) for old, (_, new) in zip(initial, arrays, strict=True))
    return Outcome(arrays, tuple(returned), len(lines), written)


def padded(args: Sequence[Any], function: tt.FuncOp) -> list[Any]:
    """Arguments, where a pass has padded tiles of the signature with anything behind."""
    types = function_type_of(function).inputs
    if len(args) != len(types):
        return list(args)
    return [
        np.pad(arg, [(0, size - have) for have, size in zip(arg.shape, shape_of(type), strict=True)], mode="wrap")
        if isinstance(arg, np.ndarray) and isinstance(type, TensorType) and arg.shape != shape_of(type)
        else arg
        for arg, type in zip(args, types, strict=True)
    ]


def difference(before: Outcome, after: Outcome) -> str | None:
    """Return a text about the first difference of two outcomes; None if they agree."""
    written = [one | other for one, other in zip(before.written, after.written, strict=True)]
    for (name, old), (_, new), compared in zip(before.arrays, after.arrays, written, strict=True):
        if (where := array_difference(old, new, compared)) is not None:
            return f"argument '{name}' at {where}"
    for index, (old, new) in enumerate(zip(before.returned, after.returned, strict=True)):
        if isinstance(old, np.ndarray) and (where := array_difference(old, cropped(new, old.shape))) is not None:
            return f"returned value {index} at {where}"
    if before.printed != after.printed:
        return f"it printed {before.printed} lines before and {after.printed} after"
    return None


def cropped(value: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """The original elements of a tile that a pass has padded."""
    array = np.asarray(value)
    return array[tuple(map(slice, shape))] if array.ndim == len(shape) else array


def array_difference(
    old: np.ndarray[Any, Any], new: np.ndarray[Any, Any], compared: np.ndarray[Any, Any] | None = None
) -> str | None:
    """The first element that differs: index, value before and value after; errors are relative to elements that are
    `compared`."""
    if old.shape != new.shape or old.dtype != new.dtype:
        return f"shape {old.shape} of {old.dtype} before, {new.shape} of {new.dtype} after"
    gap = gap_of("", old, new, compared=compared)
    if gap is None or gap.is_rounding:
        return None
    index = gap.index
    return f"index {index[0] if len(index) == 1 else index}: {old[index]} before, {new[index]} after"


def generate_inputs(
    function: tt.FuncOp, rng: np.random.Generator, attempt: int, given: Mapping[str, Any] | None = None
) -> Inputs | str:
    """Return arguments for `function`, larger with each attempt, or the reason why none can be generated."""
    given = given or {}
    size = FIRST_SIZE << attempt
    parameters = list(function.regions[0].blocks[0].args)
    attributes = argument_attributes(function, len(parameters))
    fixed = sum(np.asarray(value[0] if isinstance(value, tuple) else value).nbytes for value in given.values())
    capacity = len(parameters) * 2 * (size * 8 + GUARD + 64) + GUARD + fixed
    inputs = Inputs(np.zeros(capacity, np.uint8))
    position = 0
    while position < len(parameters):
        type_, name = parameters[position].type, parameters[position].name_hint or str(position)
        if isinstance(type_, TensorDescType):
            if name in given:
                base, *rest = given[name]
                inputs.args.append((copied(inputs, name, element_type(type_.block), base), *rest))
            else:
                inputs.args.append(generate_descriptor(inputs, name, type_, rng, attempt))
            rank = len(shape_of(type_.block))
            following = [p.type for p in parameters[position + 1 : position + 1 + 2 * rank]]
            position += 1 + (2 * rank if following == [i32] * rank + [i64] * rank else 0)
            continue
        if is_pointer(type_) and isinstance(type_, PointerType) and isinstance(type_.pointee, TensorType):
            return f"argument '{name}' is a block pointer"
        if is_memdesc(type_):
            return f"argument '{name}' is shared memory"
        step = attributes[position].get("tt.divisibility")
        multiple = step.value.data if isinstance(step, IntegerAttr) else 1
        if name in given:
            inputs.args.append(given_argument(inputs, name, type_, given[name]))
        else:
            inputs.args.append(generate_argument(inputs, name, type_, rng, attempt, multiple))
        position += 1
    return inputs


def given_argument(inputs: Inputs, name: str, type: Attribute, value: Any) -> Any:
    """An argument that the caller chose; an array is copied."""
    if not isinstance(value, np.ndarray) or not isinstance(type, PointerType):
        return value
    return copied(inputs, name, type.pointee, value)


def copied(inputs: Inputs, name: str, element: Attribute, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array = inputs.reserve(name, value.size, element)
    array[:] = value.reshape(-1).view(array.dtype)
    return array


def generate_argument(
    inputs: Inputs, name: str, type: Attribute, rng: np.random.Generator, attempt: int, multiple: int
) -> Any:
    """One argument of a scalar, pointer or tensor type."""
    shape, element, size = shape_of(type), element_type(type), FIRST_SIZE << attempt
    if isinstance(element, PointerType):
        array = inputs.reserve(name, size, element.pointee)
        fill(inputs, array, name, element.pointee, rng, attempt)
        if not shape:
            return array
        lanes = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape) * memory_bytes(element.pointee)
        return lanes + array.__array_interface__["data"][0]
    if is_float(element):
        return rng.normal(size=shape)
    if shape or storage(element) == np.bool_:
        return random_integers(rng, element, shape, attempt)
    top = max(1, 64 >> (attempt // 4))
    return int(rng.integers(1, max(1, top // multiple) + 1)) * multiple


def fill(
    inputs: Inputs, array: np.ndarray[Any, Any], name: str, element: Attribute, rng: np.random.Generator, attempt: int
) -> None:
    """Random contents; a pointer to pointers gets the addresses of one more array."""
    if isinstance(element, PointerType):
        target = inputs.reserve(f"*{name}", len(array), element.pointee)
        fill(inputs, target, f"*{name}", element.pointee, rng, attempt)
        array[:] = target.__array_interface__["data"][0]
    elif is_float(element):
        array[:] = rng.normal(size=array.shape).astype(array.dtype)
    else:
        array[:] = random_integers(rng, element, array.shape, attempt).astype(array.dtype)


def random_integers(rng: np.random.Generator, element: Attribute, shape: Sequence[int], attempt: int) -> Any:
    """Small integers; every second attempt generates no negative ones, in case they are indices."""
    if storage(element) == np.bool_:
        return rng.integers(0, 2, size=shape).astype(np.bool_)
    return rng.integers(0 if attempt % 2 else -100, 64 if attempt % 2 else 100, size=shape)


def generate_descriptor(
    inputs: Inputs, name: str, type: TensorDescType, rng: np.random.Generator, attempt: int
) -> tuple[Any, ...]:
    """A contiguous array of about the block's size, some blocks only partly inside."""
    block = shape_of(type.block)
    element = element_type(type.block)
    limit = FIRST_SIZE << attempt
    shape = [max(1, int(rng.integers(1, 4)) * max(1, size // 2)) for size in block]
    while np.prod(shape) > limit:
        shape[shape.index(max(shape))] //= 2
    array = inputs.reserve(name, int(np.prod(shape)), element)
    fill(inputs, array, name, element, rng, attempt)
    strides = [int(np.prod(shape[dim + 1 :])) for dim in range(len(shape))]
    return array, tuple(shape), tuple(strides)


def argument_attributes(function: tt.FuncOp, count: int) -> list[dict[str, Attribute]]:
    """The attributes of each parameter."""
    listed = function.properties.get("arg_attrs")
    if not isinstance(listed, ArrayAttr):
        return [{}] * count
    return [dict(entry.data) if isinstance(entry, DictionaryAttr) else {} for entry in listed.data]


def array_dtype(element: Attribute) -> np.dtype[Any]:
    """The NumPy dtype of memory with elements of type `element`; `i1` is a byte."""
    dtype = storage(element)
    return np.dtype(np.uint8) if dtype == np.bool_ else dtype


def public_functions(module: ModuleOp) -> list[tt.FuncOp]:
    """The functions of a module that a caller may launch."""
    return [op for op in functions(module) if isinstance(op, tt.FuncOp) and not is_private(op)]


def used_axes(module: ModuleOp) -> set[int]:
    """The grid axes whose program ids or counts the module reads."""
    return {axis_of(op) for op in module.walk() if isinstance(op, tt.GetProgramIdOp | tt.GetNumProgramsOp)}
