"""Run a kernel from a PTX file, or from LLVM IR for AMD GPUs, without a GPU; check it, and count what it does.

    tilework emulate add.ptx --grid 4 --block 128 --arg f32:512:random --arg f32:512 --arg i32=512 --dump 1
    tilework emulate gemm.ptx --kernel gemm --block 128 --shared 32768 --arg f16:64x64:random --counters
    tilework emulate gemm.ptx --block 128 --arg f32:64 --check --seed 3
    tilework emulate add.llir --grid 4 --arg f32:512:range --arg f32:512 --arg i32=512 --dump 1 --check

An argument is an array TYPE:SHAPE[:FILL] (FILL is zeros, ones, range, random, a number, or a .npy file), a number
TYPE=VALUE, or bytes HEX as hex=0011ff. The pointers to scratch memory that compiled kernels have after their own
parameters are supplied automatically. The numbers of threads and of bytes of shared memory are those that the file
declares (`.reqntid`, `.maxntid`, tilework's first line). Arrays are far apart, so that an access past the end of one is
reported with its index. `--dump N` prints argument N (counted from 0) after the launch, or writes it: `--dump
2=out.npy`. With `--check`, warps run one at a time in an order determined by the seed, and races, uninitialised reads,
bad accesses and missing waits are reported. An error prints one line to stderr and sets exit code 1; so do the findings
of --check, all of which are printed.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilework.errors import UsageError
from tilework.numerics.rounding import BF16, E4M3FN, E5M2
from tilework.oracles.emulator.device import Device, LoadedFunction
from tilework.oracles.emulator.findings import CheckFailed
from tilework.oracles.emulator.memory import Memory
from tilework.oracles.emulator.syntax import EmulatorError, Function
from tilework.targets.nvidia.ptx_text import metadata

MISTAKES = (OSError, ValueError)

TYPES: dict[str, Any] = {
    **{
        f"{kind}{bits}": np.dtype(f"{sign}{bits // 8}")
        for kind, sign in (("i", "i"), ("s", "i"), ("u", "u"))
        for bits in (8, 16, 32, 64)
    },
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    **{"bf16": BF16, "fp8e4m3": E4M3FN, "fp8e5m2": E5M2},
}
PROCESSOR = re.compile(r'"target-cpu"="(gfx\w+)"')
COMPILED = "LLVM NVPTX Back-End"  # says the PTX of Triton and of tilework
HIDDEN = ("global scratch", "profile scratch")
SCRATCH = 1 << 24  # bytes where the file does not say how many a kernel needs
SHOWN = 64  # elements that --dump prints
LARGEST = 1 << 32  # bytes of an argument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="the PTX file, or LLVM IR for AMD GPUs")
    parser.add_argument("--kernel", help="the kernel; not needed if the file has only one")
    parser.add_argument("--grid", default="1", help="the number of blocks: 2,1,1")
    parser.add_argument(
        "--block", help="the number of threads of a block: 128 or 16,8; default: the number in the file, or 32"
    )
    parser.add_argument(
        "--arg",
        dest="args",
        action="append",
        default=[],
        metavar="ARG",
        help="an argument: f32:1024:random, i32=5 or hex=00ff; one option for each, in order",
    )
    parser.add_argument(
        "--shared",
        type=int,
        default=None,
        help="the bytes of dynamic shared memory; default: the number in the file, or 0",
    )
    parser.add_argument(
        "--counters", action="store_true", help="count instructions, sectors and bank conflicts by source line"
    )
    parser.add_argument("--check", action="store_true", help="look for races, uninitialised reads and missing waits")
    parser.add_argument("--seed", type=int, default=0, help="the seed for random arrays and for the order of warps")
    parser.add_argument(
        "--dump", action="append", default=[], metavar="N[=FILE]", help="print argument N after the launch, or save it"
    )
    parser.add_argument(
        "--max-instructions", type=int, help="the number of instructions of a block after which it counts as endless"
    )


def run(args: argparse.Namespace) -> int:
    try:
        emulate(args)
    except CheckFailed as failed:
        print(failed, file=sys.stderr)
        return 1
    except EmulatorError as error:
        raise UsageError(" ".join(line.strip() for line in str(error).splitlines())) from None
    return 0


def emulate(args: argparse.Namespace) -> None:
    if args.seed < 0:
        raise UsageError(f"--seed {args.seed}: a number from 0 on is needed")
    random = np.random.default_rng(args.seed)
    limit = {"max_instructions": args.max_instructions} if args.max_instructions is not None else {}
    device = Device(
        check=args.check, seed=args.seed, counters=args.counters, output=lambda text: print(text, end=""), **limit
    )
    given = [argument(text, random) for text in args.args]
    dumps = [dump(text, given) for text in args.dump]
    try:
        text = Path(args.file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{args.file} is not text; PTX is needed, not a cubin") from None
    if (processor := PROCESSOR.search(text)) is not None:
        return emulate_llvm(args, text, processor[1], given, dumps)
    kernel = choose(device, args.file, text, args.kernel)
    facts, limits, grid = metadata(text), kernel.function.limits, sizes(args.grid, "--grid")
    block = sizes(args.block, "--block") if args.block else limits.get("reqntid") or limits.get("maxntid") or [32]
    shared = facts.get("shared", 0) if args.shared is None else args.shared
    addresses = upload(device.memory, args.args, given)
    hidden = scratch(device.memory, kernel.function, len(given), facts, grid) if facts or COMPILED in text else []
    if hidden:
        missing = " and ".join(f"{index}" for index in range(len(given), len(kernel.function.params)))
        print(f"tilework emulate: note: scratch memory is filled in for argument {missing}", file=sys.stderr)
    elif len(given) < len(kernel.function.params):
        counts = f"{kernel.name} takes {len(kernel.function.params)} arguments and is given {len(given)}"
        raise UsageError(f"{counts}; of compiled kernels the last two are scratch memory and can be left out")
    device.launch(kernel, grid, block, [*(addresses.get(n, value) for n, value in enumerate(given)), *hidden], shared)
    for index, file in dumps:
        show(index, device.download(addresses[index], given[index]), file)
    if device.counters is not None:
        print(device.counters.table())
    if args.check:
        print(f"{kernel.name}: nothing found")


def emulate_llvm(
    args: argparse.Namespace, text: str, arch: str, given: list[Any], dumps: list[tuple[int, str]]
) -> None:
    """Launch LLVM text; findings are reported with or without --check."""
    from tilework.oracles.emulator.llvm.ir import Pointer  # lazily: each emulator for itself
    from tilework.oracles.emulator.llvm.run_llvm import load_kernel, wave_size
    from tilework.oracles.emulator.llvm.wave_counters import WaveCounters

    memory = Memory()
    kernel = load_kernel(text, arch, args.kernel, memory)
    block = sizes(args.block, "--block") if args.block else [kernel.threads]
    limit = {"max_instructions": args.max_instructions} if args.max_instructions is not None else {}
    addresses = upload(memory, args.args, given)
    for index in addresses:
        if index < len(kernel.function.params) and not isinstance(kernel.function.params[index][0], Pointer):
            raise UsageError(f"argument {index} is an array, and the kernel takes a scalar there")
    values = [addresses.get(n, value) for n, value in enumerate(given)]
    counters = WaveCounters(arch, wave_size(arch), memory) if args.counters else None
    kernel.launch(sizes(args.grid, "--grid"), block, values, args.shared or 0, counters=counters, **limit)
    for index, file in dumps:
        array = given[index]
        show(index, np.frombuffer(memory.read(addresses[index], array.nbytes), array.dtype).reshape(array.shape), file)
    if counters is not None:
        print(counters.table())
    if args.check:
        print(f"{kernel.function.name}: nothing found")


def choose(device: Device, file: str, text: str, name: str | None) -> LoadedFunction:
    module = device.load(text)
    kernels = module.ptx.kernels
    if name is None and len(kernels) != 1:
        raise UsageError(
            f"{file} has {len(kernels)} kernels; choose one with --kernel"
            + (f": {', '.join(kernels)}" if kernels else "")
        )
    return module.function(name if name is not None else kernels[0])


def upload(memory: Memory, texts: Sequence[str], given: Sequence[Any]) -> dict[int, int]:
    """The addresses of the arrays among the arguments, by index."""
    addresses: dict[int, int] = {}
    for index, value in enumerate(given):
        if is_array(value):
            addresses[index] = memory.allocate_named(value.nbytes, f"argument {index} ({texts[index]})", value.itemsize)
            memory.write(addresses[index], np.ascontiguousarray(value))
    return addresses


def scratch(
    memory: Memory, function: Function, count: int, facts: dict[str, Any], grid: Sequence[int]
) -> list[np.uint64]:
    """Memory for the pointers that the compiler has added behind the `count` arguments that are given."""
    rest = function.params[count:]
    if not 0 < len(rest) <= len(HIDDEN) or any(variable.size != 8 for variable in rest):
        return []
    sizes = [facts.get(f"{name.replace(' ', '_')}_size", 0) * int(np.prod(grid)) or SCRATCH for name in HIDDEN]
    named = list(zip(HIDDEN, sizes, strict=True))[-len(rest) :]
    return [np.uint64(memory.allocate_named(size, f"the {name} of all blocks")) for name, size in named]


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0


def sizes(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(f"{option} {text}: numbers separated by commas are needed, as 2,1,1") from None


def argument(text: str, random: np.random.Generator) -> Any:
    """Parse an --arg: an array, a NumPy scalar, or bytes."""
    kind, equals, value = text.partition("=")
    if equals and ":" not in kind:
        if kind == "hex":
            try:
                return bytes.fromhex(value)
            except ValueError:
                raise UsageError(f"--arg {text}: {value!r} is not hexadecimal, as 0011ff") from None
        return scalar(text, kind, value)
    kind, _, rest = text.partition(":")
    shape, _, fill = rest.partition(":")
    dtype = type_of(text, kind)
    try:
        lengths = [int(part) for part in shape.split("x")]
    except ValueError:
        raise UsageError(f"--arg {text}: {shape!r} is no shape, as 1024 or 64x64") from None
    if min(lengths) < 1 or np.prod(lengths, dtype=float) * dtype.itemsize > LARGEST:
        raise UsageError(f"--arg {text}: an array of {shape} elements is not possible")
    return filled(text, lengths, dtype, fill or "zeros", random)


def type_of(text: str, kind: str) -> Any:
    if kind not in TYPES:
        raise UsageError(f"--arg {text}: {kind!r} is no type; known are {', '.join(TYPES)}")
    return TYPES[kind]


def scalar(text: str, kind: str, value: str) -> Any:
    dtype = type_of(text, kind)
    try:
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            if not limits.min <= int(value, 0) <= limits.max:
                raise OverflowError(value)
            return dtype.type(int(value, 0))
        return np.array(float(value)).astype(dtype)[()]
    except (ValueError, OverflowError):
        raise UsageError(f"--arg {text}: {value!r} is no value of type {kind}") from None


def filled(text: str, shape: Sequence[int], dtype: Any, fill: str, random: np.random.Generator) -> Any:
    count = int(np.prod(shape))
    integral = dtype.kind in "iu"
    if fill == "random":
        limits = np.iinfo(dtype) if integral else None
        values = (
            random.standard_normal(count)
            if limits is None
            else random.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        )
    elif fill in ("zeros", "ones", "range"):
        values = {"zeros": np.zeros, "ones": np.ones, "range": np.arange}[fill](count)
    elif fill.endswith(".npy"):
        values = np.load(fill)
        if values.size != count or values.dtype.itemsize != dtype.itemsize:
            raise UsageError(f"--arg {text}: {fill} holds {values.size} elements of {values.dtype}")
        return np.ascontiguousarray(values.reshape(shape))
    else:
        try:
            values = np.full(count, int(fill, 0) if integral else float(fill))
        except ValueError:
            raise UsageError(
                f"--arg {text}: {fill!r} is not zeros, ones, range, random, a number or a .npy file"
            ) from None
    with np.errstate(all="ignore"):
        return values.astype(dtype).reshape(shape)


def dump(text: str, given: list[Any]) -> tuple[int, str]:
    index, _, file = text.partition("=")
    if not index.isdecimal() or int(index) >= len(given) or not is_array(given[int(index)]):
        raise UsageError(
            f"--dump {text}: argument {index} is not an array; there are {len(given)} arguments, counted from 0"
        )
    return int(index), file


def show(index: int, array: Any, file: str) -> None:
    if file:
        np.save(file, array)
        return
    print(f"argument {index}: {array.dtype} {'x'.join(map(str, array.shape))}")
    print(
        np.array2string(
            array.astype(np.float64) if array.dtype.kind == "V" else array, threshold=SHOWN, max_line_width=120
        )
    )
