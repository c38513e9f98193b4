"""An invented GPU with 64 lanes in a warp: plain LLVM, and calls of functions where threads meet.

    outs = run_toy("%y = arith.addi %x, %x : ...", [("x", tile, x)], [("y", tile, np.int32)], warps=2)

Its code runs on the host, each thread of the block as a thread of Python. So the neutral rules are shown to assume
neither the 32 lanes nor the intrinsics of one vendor.
"""

import ctypes
import json
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tests.targets.gpu_tiles import Array, Tile, module_text
from tilework.ir.enums import MemSyncScope, RMWOp
from tilework.ir.parser import parse_module
from tilework.ir.verify import verify
from tilework.target import Target
from tilework.targets.gpu.codegen import emit_module
from tilework.targets.gpu.device import Access, Atomic, Emission, Gpu, Warps
from tilework.targets.gpu.lowering import NEUTRAL
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.rules import Rules
from tilework.targets.llvm.types import Type, i32, integer, void
from tilework.targets.llvm.values import Value, constant

LANES = 64
CHANGES = {RMWOp.FADD: "fadd", RMWOp.EXCH: "xchg"}


class ToyGpu(Gpu):
    rules = Rules(NEUTRAL)
    kernel_convention = ""

    def kernel_attributes(self, threads: int, blocks: int, registers: int | None) -> Sequence[str]:
        return [f'"toy.threads"="{threads}"']

    def thread_id(self, b: Builder) -> Value:
        return b.call("toy_thread", i32, [], is_pure=True)

    def program_id(self, b: Builder, axis: int, clusters: bool) -> Value:
        return constant(i32, 0)

    def num_programs(self, b: Builder, axis: int, clusters: bool) -> Value:
        return constant(i32, 1)

    def barrier(self, b: Builder, warps: Warps, all_memory: bool = False) -> None:
        b.call("toy_barrier", void, [])

    def warp_barrier(self, b: Builder) -> None:
        b.call("toy_barrier", void, [])

    def shuffle(self, b: Builder, value: Value, lane: Value) -> Value:
        return b.call("toy_shuffle", i32, [value, lane])

    def load(self, b: Builder, at: Access, other: Sequence[Value] | None) -> Sequence[Value]:
        type, count, size = at.shape

        def read() -> list[Value]:
            addresses = [b.gep(at.address, pointer * size // 8) for pointer in range(count)]
            return [b.zext(b.load(integer(size), pointer, align=1), type) for pointer in addresses]

        if at.predicate is None:
            return read()
        return b.if_else(at.predicate, read, lambda: list(other or [constant(type, 0)] * count))

    def store(self, b: Builder, at: Access, given: Sequence[Value]) -> None:
        size = at.shape.size
        with b.if_(at.predicate or constant(integer(1), 1)):
            for pointer, value in enumerate(given):
                b.store(b.trunc(value, integer(size)), b.gep(at.address, pointer * size // 8), align=1)

    store_shared = store

    def change_shared(self, b: Builder, address: Value, may: Value | None, kind: RMWOp, value: Value) -> None:
        with b.if_(may or constant(integer(1), 1)):
            b.atomic_rmw(CHANGES.get(kind, kind.name.lower()), address, value)

    def fence(self, b: Builder, scope: MemSyncScope) -> None:
        b.fence("seq_cst")

    def has_atomic(self, kind: RMWOp | None, held: Type) -> bool:
        return True

    def atomic_rmw(self, low: Emission, at: Atomic, kind: RMWOp, values: Sequence[Value]) -> Sequence[Value]:
        b, (value,), name = low.builder, values, CHANGES.get(kind, kind.name.lower())
        return alone(b, at, value.type, lambda: b.atomic_rmw(name, at.address, value, ordering="seq_cst"))

    def atomic_cas(self, low: Emission, at: Atomic, compared: Value, value: Value) -> Sequence[Value]:
        b = low.builder
        return alone(b, at, value.type, lambda: b.compare_exchange(at.address, compared, value)[0])

    def atomic_load(self, low: Emission, at: Atomic, held: Type) -> Sequence[Value]:
        return alone(low.builder, at, held, lambda: low.builder.load(held, at.address, align=4, volatile=True))

    def printer(self, b: Builder) -> Callable[[str, Sequence[Value]], None]:
        return lambda text, values: None

    def fail(self, b: Builder, message: str, file: str, line: int, function: str) -> None:
        b.trap()


def alone(b: Builder, at: Atomic, held: Type, change: Callable[[], Value]) -> Sequence[Value]:
    return [change()] if at.may is None else b.if_else(at.may, lambda: [change()], lambda: [constant(held, 0)])


TOY = Target("toy", 1, warp_size=LANES)


def toy_text(text: str) -> str:
    """LLVM text of a module of TTGIR."""
    module = parse_module(re.sub(r'"ttg.threads-per-warp" = \d+', f'"ttg.threads-per-warp" = {LANES}', text))
    verify(module)
    return emit_module(module, ToyGpu(TOY), lines=False)


class Block:
    """The threads of one block, and what they do together."""

    def __init__(self, threads: int) -> None:
        self.threads, self.own = threads, threading.local()
        self.words, self.meeting = [0] * threads, threading.Barrier(threads, timeout=60)
        signed, nothing = ctypes.c_int32, None
        self.functions = {
            "toy_thread": ctypes.CFUNCTYPE(signed)(lambda: self.own.number),
            "toy_barrier": ctypes.CFUNCTYPE(nothing)(self.wait),
            "toy_shuffle": ctypes.CFUNCTYPE(signed, signed, signed)(self.shuffle),
        }

    def wait(self) -> None:
        self.meeting.wait()

    def shuffle(self, word: int, lane: int) -> int:
        number = self.own.number
        self.words[number] = word
        self.wait()
        found = self.words[number // LANES * LANES + lane % LANES]
        self.wait()
        return found

    def run(self, text: str, args: Sequence[int]) -> None:
        """Every thread executes the kernel."""
        reported = json.loads(text.split("\n", 1)[0].removeprefix("; tilework: "))
        shared = (ctypes.c_char * (reported["shared"] + 64))()
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.add_symbol("global_smem", (ctypes.addressof(shared) + 63) // 64 * 64)
        for name, function in self.functions.items():
            llvm.add_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
        machine = llvm.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
        parsed = llvm.parse_assembly(text)
        parsed.verify()
        with llvm.create_mcjit_compiler(parsed, machine) as engine:
            engine.finalize_object()
            kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(args))(engine.get_function_address("kernel"))

            def execute(number: int) -> None:
                self.own.number = number
                kernel(*args)

            running = [threading.Thread(target=execute, args=(number,)) for number in range(self.threads)]
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()


def run_toy(
    body: str, inputs: Sequence[tuple[str, Tile, Array]], outputs: Sequence[tuple[str, Tile, Any]], warps: int = 2
) -> list[Array]:
    """The arrays that a kernel around `body` stores."""
    results = [np.zeros(tile.shape, dtype) for _, tile, dtype in outputs]
    arrays = [*(array for _, _, array in inputs), *results]
    Block(LANES * warps).run(
        toy_text(module_text(body, inputs, outputs, warps, 80)), [*(array.ctypes.data for array in arrays), 0, 0]
    )
    return arrays[len(inputs) :]
