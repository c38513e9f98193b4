"""Matmul-like kernels with odd pieces, drawn from a seed, as sm_90 code beside an oracle: partitions, blocks that stay, copies by TMA.

    python -m tests.drawn.products --cases 100                  no GPU: the emulator with all its checks, beside the interpreter
    python -m tests.drawn.products --cases 400 --workers 12     a GPU: beside the same kernel without any of the three
    python -m tests.drawn.products --seed 17                    one case: its source, its launches, and what is wrong

(needs torch.) Numbers are small integers, so that sums of products are exact and all must be equal. What is drawn: how programs are
numbered, how tiles are addressed, bounded and padded, what else is in front of the loop, in it and behind it, layouts of the arrays
(padded, overlapping, turned, broadcast, off by one element), dtypes, options. Each case launches the same function with several
shapes, and the first one again. Only failures are printed, and the counts of what was exercised.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import torch

import tilework
from tilework import knobs
from tilework.errors import PerformanceWarning
from tilework.oracles.interpreter import InterpretedFunction
from tilework.tools.tensor_descriptor import TensorDescriptor

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "fp8": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "i8": torch.int8,
}
TILES = [
    (128, 256, 64), (128, 128, 64), (256, 128, 64), (64, 256, 64), (128, 256, 32), (128, 128, 128), (64, 64, 64),
    (64, 128, 32), (128, 64, 64), (16, 64, 32), (32, 32, 32),
]  # fmt: skip
SMALLEST_ARRAY = 4096
GUARD = 64  # elements on both sides of an array


@dataclass(frozen=True)
class Layout:
    """Where the elements of a matrix are: from `offset` on, `row` and `column` elements apart."""

    offset: int
    row: int
    column: int


@dataclass
class Launch:
    m: int
    n: int
    k: int
    batch: int
    layouts: dict[str, Layout]


@dataclass
class Case:
    seed: int
    source: str
    tile: tuple[int, int, int]
    dtype: str
    way: str
    grid: str
    options: dict[str, Any]
    launches: list[Launch] = field(default_factory=list)
    alias: str = ""


NUMBERS = {
    "line": "pid = tl.program_id(0)\nnum_n = tl.cdiv(N, BN)\npm = pid // num_n\npn = pid % num_n",
    "columns": "pid = tl.program_id(0)\nnum_m = tl.cdiv(M, BM)\npm = pid % num_m\npn = pid // num_m",
    "plane": "pm = tl.program_id(0)\npn = tl.program_id(1)",
    "turned plane": "pm = tl.program_id(1)\npn = tl.program_id(0)",
    "far planes": "pm = tl.program_id(1)\npn = tl.program_id(2)",
    "programs": "pid = tl.num_programs(0) - 1 - tl.program_id(0)\nnum_n = tl.cdiv(N, BN)\npm = pid // num_n\npn = pid % num_n",
    "groups": """pid = tl.program_id(0)
num_m = tl.cdiv(M, BM)
num_n = tl.cdiv(N, BN)
group = pid // (GROUP * num_n)
size = min(num_m - group * GROUP, GROUP)
pm = group * GROUP + (pid % (GROUP * num_n)) % size
pn = (pid % (GROUP * num_n)) // size""",
}


def grid_of(case: Case, launch: Launch) -> tuple[int, ...]:
    rows, columns = -(-launch.m // case.tile[0]), -(-launch.n // case.tile[1])
    plane = {"plane": (rows, columns), "turned plane": (columns, rows), "far planes": (1, rows, columns)}
    return plane.get(case.grid, (rows * columns, 1, 1))


class Drawer:
    """Draws one case; `lines` is the body of the kernel."""

    def __init__(self, seed: int, large: bool) -> None:
        self.random, self.seed, self.large = Random(f"products {seed}"), seed, large
        self.lines: list[str] = []

    def one(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def add(self, text: str, depth: int = 1) -> None:
        self.lines += ["    " * depth + line for line in text.splitlines()]

    def case(self) -> Case:
        self.dtype = self.one("f16", "f16", "f16", "bf16", "f32", "fp8", "fp8e5", "i8")
        self.tile = self.random.choice(TILES[: 7 if self.chance(0.7) else None])
        self.large_one = self.chance(0.4)  # such that blocks stay
        if self.large_one:
            self.dtype, self.tile = self.one("f16", "bf16"), self.one((128, 256, 64), (256, 128, 64))
        if DTYPES[self.dtype].itemsize == 4:
            self.tile = (*self.tile[:2], 32)
        self.way = self.one("pointers", "pointers", "carried", "carried", "descriptors", "descriptors", "made")
        self.asked = self.chance(0.4)
        self.in_place = self.way in ("pointers", "carried") and self.chance(0.06)
        self.grid = "plane" if self.in_place else self.one(*NUMBERS)
        self.rows = "mask" if self.in_place else self.one("wrap", "wrap", "mask", "none", "where")
        self.inner = self.one("left", "place", "none") if self.way in ("pointers", "carried") else "none"
        self.other = self.one("0.0", "0.0", "0.0", "", "1.0", "-0.0", "float('nan')")
        if self.dtype in ("i8", "fp8", "fp8e5"):
            self.other = self.one("0", "0", "", "1")
        self.unit = {name: self.chance(0.7) for name in "ab"}  # the contiguous stride is not an argument
        self.turned = {name: self.chance(0.3) for name in "ab"} if self.way in ("pointers", "carried") else {"a": False, "b": self.chance(0.3)}  # fmt: skip
        self.body()
        stages = self.one(1, 2, 3, 3, 3, 4, 5)
        options: dict[str, Any] = {"num_warps": self.one(4, 4, 8, 8, 8, 1, 2, 16), "num_stages": stages}
        if self.tile[0] * self.tile[1] > 128 * 128:
            options["num_warps"] = 8
        if self.large_one:
            options["num_stages"] = self.one(3, 3, 4, 2)
        if self.chance(0.3):
            options["auto_tma"] = True
        if self.chance(0.04):
            options["launch_cooperative_grid"] = True
        if self.chance(0.04) and self.large:
            options["num_ctas"] = 2
        source = "\n".join([*self.head(), *self.lines, ""])
        case = Case(self.seed, source, self.tile, self.dtype, self.way, self.grid, options)
        case.alias = "c" if self.in_place else "b" if self.chance(0.08) and self.way in ("pointers", "carried") else ""
        case.launches = [self.launch(case, first=number == 0) for number in range(3 if self.large else 2)]
        case.launches += [case.launches[0]] if self.large else []
        return case

    def head(self) -> list[str]:
        return [
            "import tilework.language as tl",
            "from tilework import jit",
            "",
            "",
            "@jit",
            "def kernel(a, b, c, d, e, M, N, K, sam, sak, sbk, sbn, scm, scn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):",
        ]

    def body(self) -> None:
        self.add(NUMBERS[self.grid])
        acc_type = "tl.int32" if self.dtype == "i8" else "tl.float32"
        if self.chance(0.05):
            self.add("if pm * BM >= M + 7:\n    return")
        if self.chance(0.05):
            self.add("tl.store(e + pm, pm)")
        if self.chance(0.05):
            self.add("tl.device_assert(pm >= 0)")
        self.add(
            "om = pm * BM\non = pn * BN\nrm = om + tl.arange(0, BM)\nrn = on + tl.arange(0, BN)\nrk = tl.arange(0, BK)"
        )
        self.places()
        self.add(f"acc = tl.zeros((BM, BN), dtype={acc_type})")
        if self.chance(0.08):
            self.add(f"acc = acc + tl.load(d + tl.arange(0, BN))[None, :].to({acc_type})")
        self.loop(acc_type)
        self.end()

    def places(self) -> None:
        if self.way == "descriptors":
            return
        if self.way == "made":
            self.add("da = tl.make_tensor_descriptor(a, [M, K], [sam, 1], [BM, BK])")
            b = "[N, K], [sbn, 1], [BN, BK]" if self.turned["b"] else "[K, N], [sbk, 1], [BK, BN]"
            self.add(f"db = tl.make_tensor_descriptor(b, {b})")
            return
        kept = {
            "wrap": "{r} % {L}",
            "where": "tl.where({r} < {L}, {r}, 0)",
            "mask": "{r}",
            "none": "{r}",
        }[self.rows]
        for name, limit in (("rm", "M"), ("rn", "N")):
            self.add(f"q{name[1]} = {kept.format(r=name, L=limit)}")
        strides = {"a": ("sam", "sak"), "b": ("sbk", "sbn")}
        for name in "ab":
            if self.unit[name]:
                first, second = strides[name]
                strides[name] = ("1", second) if self.turned[name] else (first, "1")
        rest = [f"{where} * {stride}" if stride != "1" else where for where, stride in zip(
            ("qm[:, None]", "rk[None, :]", "rk[:, None]", "qn[None, :]"), (*strides["a"], *strides["b"]), strict=True)]  # fmt: skip
        wide = self.chance(0.15)
        start = "om.to(tl.int64) * 0 + " if wide else ""
        self.add(f"pa = a + ({start}{rest[0]} + {rest[1]})\npb = b + ({start}{rest[2]} + {rest[3]})")
        self.steps = [f"BK * {strides['a'][1]}", f"BK * {strides['b'][0]}"]

    def mask(self, row: str, limit: str, is_first: bool) -> str:
        outer, inner = ("[:, None]", "[None, :]") if is_first else ("[None, :]", "[:, None]")
        parts = [f"({row}{outer} < {limit})"] if self.rows == "mask" else []
        if self.inner == "left":
            parts.append(f"(rk{inner} < K - k * BK)")
        elif self.inner == "place":
            parts.append(f"(k * BK + rk{inner} < K)")
        if not parts:
            return ""
        return f", mask={' & '.join(parts)}" + (f", other={self.other}" if self.other else "")

    def loop(self, acc_type: str) -> None:
        carried: list[str] = []
        kind = self.one("range", "range", "short", "late", "while") if self.chance(0.3) else "range"
        extra = [name for name in ("sum", "if", "where", "max", "count", "atomic", "scalar", "second", "turn", "scale") if self.chance(0.03 if self.large_one else 0.07)]  # fmt: skip
        if self.dtype in ("i8", "fp8", "fp8e5"):
            extra = [name for name in extra if name not in ("sum", "second", "scale")]
        if "sum" in extra:
            self.add("sums = tl.zeros((BM,), dtype=tl.float32)")
        if "max" in extra:
            self.add(f"top = tl.full((BM,), -1000, {acc_type})")
        if "count" in extra:
            self.add("count = 0\nother = pm")
        if "second" in extra:
            self.add(f"acc2 = tl.zeros((BM, BN), dtype={acc_type})")
        self.extra, depth = extra, 1
        asked = ", warp_specialize=True" if self.asked else ""
        if self.chance(0.3):
            asked += f", num_stages={self.one(1, 2, 3, 4, 5)}"
        if kind == "while":
            self.add("done = 0\nwhile done < 2:\n    done += 1")
            depth = 2
        bounds = {"short": "0, tl.cdiv(K, BK) - 1", "late": "1, tl.cdiv(K, BK)"}.get(kind, "0, tl.cdiv(K, BK)")
        outer = kind == "range" and self.chance(0.07)
        if outer:
            self.add(f"for turn in range({self.one('2', 'M // M + 1', '0', '1')}):", depth)
            depth += 1
        if self.way == "carried" and depth > 1:
            self.add("fa = pa\nfb = pb", depth)
        header = f"tl.range({bounds}{asked})" if asked or self.chance(0.3) else f"range({bounds})"
        self.add(f"for k in {header}:", depth)
        depth += 1
        self.loads(depth, first=kind == "late")
        if "turn" in extra:
            self.add("y = y + (k - k).to(y.dtype)" if self.dtype not in ("fp8", "fp8e5") else "k2 = k", depth)
        if "sum" in extra:
            self.add("sums += tl.sum(x.to(tl.float32), 1)", depth)
        if "scale" in extra:
            self.add("acc = acc * 1.0", depth)
        if "if" in extra:
            self.add(f"if k % 2 == 1:\n    acc = acc + {self.one('1', 'pm')}", depth)
        precise = ", input_precision='tf32'" if self.dtype == "f32" else ""
        out = ", out_dtype=tl.int32" if self.dtype == "i8" else ""
        form = self.one("acc = tl.dot(x, y, acc{})", "acc += tl.dot(x, y{})", "acc = acc + tl.dot(x, y{})")
        self.add(form.format(precise + out), depth)
        if "second" in extra:
            self.add(f"acc2 = tl.dot(x, y, acc2{precise}{out})", depth)
        if "where" in extra:
            self.add("acc = tl.where(rm[:, None] >= 0, acc, 7)", depth)
        if "max" in extra:
            self.add("top = tl.maximum(top, tl.max(acc, 1))", depth)
        if "count" in extra:
            self.add("count, other = other, count + 1", depth)
        if "atomic" in extra:
            self.add("tl.atomic_add(e + 100, 1)", depth)
        if "scalar" in extra:
            self.add(f"acc += tl.load(d + k).to({acc_type})", depth)
        if self.way == "carried":
            names = ("fa", "fb") if depth > 2 else ("pa", "pb")
            self.add("\n".join(f"{name} += {step}" for name, step in zip(names, self.steps, strict=True)), depth)
        del carried

    def loads(self, depth: int, first: bool) -> None:
        if self.way in ("descriptors", "made"):
            da, db = ("a", "b") if self.way == "descriptors" else ("da", "db")
            turned = f"{db}.load([on, k * BK]).T" if self.turned["b"] else f"{db}.load([k * BK, on])"
            self.add(f"x = {da}.load([om, k * BK])\ny = {turned}", depth)
            return
        names = ["pa", "pb"]
        if self.way == "carried":
            names = ["fa", "fb"] if depth > 2 else names
        else:
            names = [f"{name} + k * {step}" for name, step in zip(names, self.steps, strict=True)]
        del first
        self.add(f"x = tl.load({names[0]}{self.mask('rm', 'M', True)})", depth)
        self.add(f"y = tl.load({names[1]}{self.mask('rn', 'N', False)})", depth)

    def end(self) -> None:
        if "sum" in self.extra:
            self.add("acc += sums[:, None]")
        if "max" in self.extra:
            self.add("acc += top[:, None]")
        if "count" in self.extra:
            self.add("acc += count + other * 2")
        if "second" in self.extra:
            self.add("acc += acc2")
        if self.chance(0.07):
            self.add("acc += tl.num_programs(0) % 5")
        if self.chance(0.07):
            self.add("acc += tl.load(d + on + tl.arange(0, BN), mask=rn < N, other=0)[None, :].to(acc.dtype)")
        if self.chance(0.05):
            self.add("acc += tl.program_id(2) + tl.program_id(1) % 2")
        self.add("mask = (rm[:, None] < M) & (rn[None, :] < N)")
        where = (
            "c + (rm[:, None] * scm + rn[None, :] * scn)" if self.chance(0.5) else "c + rm[:, None] * scm + rn[None, :]"
        )
        if self.chance(0.07) and not self.in_place:
            self.add(f"acc += tl.load({where}, mask=mask, other=0).to(acc.dtype)")
        if self.chance(0.06) and not self.in_place and self.dtype in ("f16", "f32"):
            self.add(f"tl.atomic_add({where}, acc.to(c.dtype.element_ty), mask=mask)")
        else:
            self.add(f"tl.store({where}, acc.to(c.dtype.element_ty), mask=mask)")
        if self.chance(0.1):
            self.add("tl.store(e + 200 + pm * 7 % 50, pm * 7 % 50)")

    def launch(self, case: Case, first: bool) -> Launch:
        bm, bn, bk = self.tile
        most = 3 if not self.large else self.one(4, 4, 40, 200)
        tiles_m = self.random.randint(1, min(most, 24))
        tiles_n = max(1, most // tiles_m)
        if self.in_place:
            tiles_n = 1
        exact = first and self.chance(0.5)
        m, n = tiles_m * bm, tiles_n * bn
        most = 5 if self.large else 2
        k = self.random.choice(
            [bk * self.random.randint(1, most), bk * most + 16, bk + 8, bk + 1, bk * 2 - 3, 16, 1, 0]
        )
        if exact:
            k = bk * self.random.randint(2, most + 1)
        else:
            m -= self.one(0, 0, 8, 16, 1, bm // 2)
            n -= self.one(0, 0, 8, 16, 1, bn // 2)
        m, n = max(m, 1), max(n, 1)
        if self.rows == "none" or self.inner == "none":
            k = -(-k // bk) * bk if self.way in ("pointers", "carried") else max(k, 1)
        if self.way in ("descriptors", "made"):
            k = max(k, 1)
        layouts = {
            "a": self.layout(m, k, self.turned["a"], "a", exact),
            "b": self.layout(k, n, self.turned["b"], "b", exact),
        }
        layouts["c"] = layouts["a"] if case.alias == "c" else Layout(0, n + self.one(0, 0, 3, 8), 1)
        if case.alias == "c" and (layouts["a"].column != 1 or layouts["a"].row < max(n, k)):
            layouts["a"] = layouts["c"] = Layout(0, max(n, k) + 8, 1)
        return Launch(m, n, k, 1, layouts)

    def layout(self, rows: int, columns: int, turned: bool, name: str, exact: bool) -> Layout:
        """A layout that the kernel can read: a stride that is not an argument is 1."""
        if turned:
            found = self.layout(columns, rows, False, name, exact)
            return Layout(found.offset, found.column, found.row)
        size = DTYPES[self.dtype].itemsize
        align = 16 // size
        if self.way in ("descriptors", "made"):
            return Layout(0, -(-columns // align) * align + self.one(0, 0, align), 1)
        row, column, offset = max(columns, 1), 1, 0
        if exact:
            return Layout(0, -(-row // align) * align, 1)
        kind = self.one(
            "plain", "plain", "padded", "odd", "offset", "aligned offset", "overlap", "zero", "negative", "wide"
        )
        if kind == "padded":
            row = -(-row // align) * align + align
        elif kind == "odd":
            row += 3
        elif kind == "offset":
            offset = self.one(1, 3)
        elif kind == "aligned offset":
            row, offset = -(-row // align) * align, align
        elif kind == "overlap":
            row = align * max(1, row // align // 2)
        elif kind == "zero":
            row = 0
        elif kind == "negative":
            row, offset = -(-(-row // align) * align), -1
        elif kind == "wide" and not self.unit[name]:
            column, row = 2, 2 * row
        return Layout(offset, row, column)


def array(layout: Layout, rows: int, columns: int, dtype: torch.dtype, seed: int) -> tuple[torch.Tensor, int]:
    """(memory of a matrix with room around it, where its first element is)."""
    row, column = layout.row, layout.column
    spans = [(max(rows, 1) + 300) * row, (max(columns, 1) + 300) * column]
    low = -min(0, *spans) + GUARD
    size = low + sum(max(span, 0) for span in spans) + GUARD + layout.offset + SMALLEST_ARRAY
    made = torch.randint(-2, 3, (size,), generator=torch.Generator().manual_seed(seed)).to(torch.float32).to(dtype)
    return made, -(-low // 16) * 16 + max(layout.offset, 0)


def arguments(case: Case, launch: Launch, number: int) -> tuple[dict[str, torch.Tensor], Callable[..., list[Any]]]:
    """The memory of a launch, and a function from this memory on some device to the arguments."""
    dtype, out = DTYPES[case.dtype], torch.float32
    if case.dtype in ("f16", "bf16"):
        out = DTYPES[case.dtype] if case.dtype == "f16" else torch.float32
    if case.dtype == "i8":
        out = torch.int32
    if case.alias == "c":
        out = dtype
    shapes = {"a": (launch.m, launch.k), "b": (launch.k, launch.n), "c": (launch.m, launch.n)}
    made, starts = {}, {}
    for name, shape in shapes.items():
        made[name], starts[name] = array(
            launch.layouts[name], *shape, out if name == "c" else dtype, case.seed * 10 + number + ord(name)
        )
    if case.alias == "b" and made["a"].numel() < made["b"].numel():
        made["a"] = array(launch.layouts["b"], *shapes["b"], dtype, case.seed)[0]
    made["d"] = torch.randint(-2, 3, (4096 + launch.n,)).to(torch.float16)
    made["e"] = torch.zeros(4096, dtype=torch.int32)

    def given(memory: dict[str, torch.Tensor]) -> list[Any]:
        if case.alias == "b":
            memory["b"] = memory["a"]
        if case.alias == "c":
            memory["c"] = memory["a"]
        args: list[Any] = [memory[name][starts["a" if name == "c" and case.alias == "c" else name] :] for name in "abc"]
        l = launch.layouts
        if case.way == "descriptors":
            bm, bn, bk = case.tile
            a = torch.as_strided(args[0], (launch.m, launch.k), (l["a"].row, 1))
            args[0] = TensorDescriptor.from_tensor(a, [bm, bk])
            if l["b"].row == 1 and l["b"].column != 1:
                b = torch.as_strided(args[1], (launch.n, launch.k), (l["b"].column, 1))
                args[1] = TensorDescriptor.from_tensor(b, [bn, bk])
            else:
                b = torch.as_strided(args[1], (launch.k, launch.n), (l["b"].row, 1))
                args[1] = TensorDescriptor.from_tensor(b, [bk, bn])
        strides = (l["a"].row, l["a"].column, l["b"].row, l["b"].column, l["c"].row, l["c"].column)
        return [*args, memory["d"], memory["e"], launch.m, launch.n, launch.k, *strides]

    return made, given


def load(case: Case, folder: Path) -> Any:
    path = folder / f"products_{case.seed}.py"
    path.write_text(case.source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def plain_launcher(kernel: Any) -> Callable[..., Any]:
    own = tilework.jit(kernel.fn)

    def launch(grid: tuple[int, ...], args: list[Any], constants: dict[str, Any]) -> None:
        with knobs.nvidia.scope():
            knobs.nvidia.warp_specialize, knobs.nvidia.persistent_programs = "0", False
            own[grid](*args, **{**constants, "auto_tma": False})

    return launch


def interpreted(kernel: Any) -> Callable[..., Any]:
    own = InterpretedFunction(kernel.fn)
    return lambda grid, args, constants: own[grid](*args, **constants)


def check(case: Case, folder: Path, seen: Counter[str]) -> list[str]:
    """What is wrong with a case."""
    kernel = load(case, folder)
    oracle = (plain_launcher if ON_GPU else interpreted)(kernel)
    problems: list[str] = []
    bm, bn, bk = case.tile
    constants = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 3 + case.seed % 6, **case.options}
    for number, launch in enumerate(case.launches):
        memory, given = arguments(case, launch, number)
        ours = {name: value.to(DEVICE) for name, value in memory.items()}
        wanted = {name: value.to(DEVICE) for name, value in memory.items()} if ON_GPU else {name: value.clone() for name, value in memory.items()}  # fmt: skip
        grid = grid_of(case, launch)
        try:
            oracle(grid, given(wanted), constants)
        except Exception as error:  # noqa: BLE001 - what the oracle does not run proves nothing
            seen[f"oracle: {type(error).__name__}"] += 1
            if os.environ.get("SHOW"):
                problems.append(f"launch {number}: oracle {type(error).__name__}: {str(error)[:1500]}")
            continue
        try:
            made = kernel[grid](*given(ours), **constants)
            if ON_GPU:
                torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001 - it is the result
            text = f"{type(error).__name__}: {error}"
            if "OutOfResources" in text or "DoesNotFit" in text:
                seen["does not fit"] += 1
                return problems
            problems.append(f"launch {number}: {text[:3000]}")
            if os.environ.get("SHOW"):
                problems.append(traceback.format_exc()[-1500:])
            continue
        count(made, seen)
        for name in memory:
            x, y = ours[name].cpu().float(), wanted[name].cpu().float()
            if not torch.equal(x.nan_to_num(7e4), y.nan_to_num(7e4)):
                wrong = (x.nan_to_num(7e4) != y.nan_to_num(7e4)).nonzero().flatten()
                start = wrong[0].item()
                problems.append(f"launch {number}: {name}: {len(wrong)} of {x.numel()} wrong, first at {start}: {x[start].item()} for {y[start].item()}")  # fmt: skip
    return problems


def count(made: Any, seen: Counter[str]) -> None:
    seen["launches"] += 1
    text = made.asm["ttgir"]
    seen["copies"] += bool(made.has_copies)
    seen["partitions"] += "ttg.warp_specialize" in text
    seen["staying"] += "%nsmid" in text
    seen["products of groups"] += "warp_group_dot" in text


def run(seeds: list[int], large: bool, verbose: bool, seconds: float) -> int:
    seen: Counter[str] = Counter()
    failures, done, end = 0, 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        for seed in seeds:
            if time.monotonic() > end:
                break
            done += 1
            case = Drawer(seed, large).case()
            if verbose:
                print(case.source, case.options, case.way, case.tile, case.dtype, case.alias, *case.launches, sep="\n")
            try:
                problems = check(case, Path(name), seen)
            except Exception:  # noqa: BLE001 - the script's own
                problems = ["script: " + traceback.format_exc()[-1500:]]
            if problems:
                failures += 1
                print(f"seed {seed}: {case.way} {case.dtype} {case.tile} {case.grid} {case.options} {case.alias}", *problems, sep="\n    ", flush=True)  # fmt: skip
    print(
        f"{failures} of {done} failed;",
        ", ".join(f"{name} {count}" for name, count in sorted(seen.items())),
        flush=True,
    )
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seconds", type=float, default=1e9, help="no new case after so long")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    warnings.simplefilter("ignore", PerformanceWarning)
    if not ON_GPU:
        os.environ["TILEWORK_DEVICE"] = "emulator:sm_90"
    if ON_GPU:
        tilework.set_allocator(lambda size, alignment, stream: torch.empty(size, device=DEVICE, dtype=torch.int8))
    if given.seed is not None:
        return run([given.seed], ON_GPU, True, given.seconds)
    if given.workers == 1:
        return run(list(range(given.first, given.first + given.cases)), ON_GPU, False, given.seconds)
    each = -(-given.cases // given.workers)
    started = [
        subprocess.Popen([sys.executable, "-m", "tests.drawn.products", "--first", str(given.first + number * each), "--cases", str(each)])
        for number in range(given.workers)
    ]  # fmt: skip
    return sum(process.wait() != 0 for process in started)


if __name__ == "__main__":
    sys.exit(min(main(), 99))
