"""Every kernel of other people's programs, compiled with guessed arguments by both compilers, without a GPU and without
running them.

    python -m tests.device.check_programs guess FILE FOLDER ...         what Triton's frontend accepts (a Python with
                                                                        Triton and torch)
    python -m tests.device.check_programs compile FILE OUT [--triton] [--target hip:gfx942]
    python -m tests.device.check_programs compare OURS TRITON           exit status 1 where only ours refuses, or takes
                                                                        more shared memory

A FOLDER holds packages as `pip download --no-deps` and `unzip` leave them. Their modules are executed statement by
statement, and what cannot be imported is a mock, so that no program has to be installed. A parameter is a pointer if
something is loaded from it or stored to it, and types and constants follow from names; guesses that Triton's frontend
refuses are dropped. Sizes may be silly: a kernel that neither compiler finishes in time says nothing.
"""

import argparse
import ast
import importlib.abc
import importlib.util
import json
import os
import pickle
import re
import signal
import sys
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, cast
from unittest.mock import MagicMock

SECONDS = 45
POINTERS = ("load", "store", "make_block_ptr", "make_tensor_descriptor", "advance")
FLAGS = re.compile(r"(is|has|use|do|enable|store|save|with|apply|need|return|even|causal|reverse|mask|skip|fp8|int8)")
INTEGERS = re.compile(r"idx|index|indices|ids?(_|$)|seqlen|cu_|offset|loc(_|s|$)|table|lens?(_|$)|start|count|slot|pos")
FLOATS = re.compile(r"eps|scale|alpha|cap$|theta|factor|temperature|slope|limit|lr$|(^|_)p$")
Record = tuple[str, str, str, dict[str, str], dict[tuple[int, ...], Any], dict[tuple[int, ...], Any]]


class Mock(ModuleType):
    """A module that is not there."""

    def __init__(self, name: str):
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__.setdefault(name, MagicMock(name=f"{self.__name__}.{name}"))


class Lenient(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules below `root` without the statements that fail; other modules that cannot be found are mocks."""

    def __init__(self, root: str):
        self.root = Path(root)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        top = fullname.partition(".")[0]
        if top in sys.stdlib_module_names or top.startswith("_") or top in ("triton", "torch", "numpy", "tilework"):
            return None
        position = self.root.joinpath(*fullname.split("."))
        for file, inner in ((position / "__init__.py", [str(position)]), (position.with_suffix(".py"), None)):
            if file.exists() and "triton" in file.read_text(errors="replace"):
                return importlib.util.spec_from_file_location(
                    fullname, file, loader=self, submodule_search_locations=inner
                )
        spec = ModuleSpec(fullname, self, is_package=True)
        spec.submodule_search_locations = [str(position)]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None if spec.origin else Mock(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is None or not module.__spec__.origin:
            return
        file = module.__spec__.origin
        for statement in ast.parse(Path(file).read_text(errors="replace")).body:
            try:
                exec(compile(ast.Module([statement], []), file, "exec"), module.__dict__)
            except Exception:  # it needs what is not here
                continue


def kernels(module: ModuleType) -> dict[str, Any]:
    """Functions of a module that may be launched: compiled ones that return nothing."""
    from triton.runtime.jit import JITFunction

    found: dict[str, Any] = {}
    for name, value in list(vars(module).items()):
        for _ in range(5):
            if isinstance(value, JITFunction | MagicMock | type):
                break
            value = cast(Any, getattr(value, "fn", None))
        if isinstance(value, JITFunction) and value.fn.__module__ == module.__name__:
            returns = [node.value for node in ast.walk(ast.parse(value.src)) if isinstance(node, ast.Return)]
            if not any(returns):
                found[name] = value
    return found


def leftmost(node: ast.AST | None) -> str:
    """The name that an address begins with: `x` of ``x + i * 4`` and of ``tl.advance(x, 1)``."""
    while node is not None and not isinstance(node, ast.Name):
        if isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            node = node.func.value
        elif isinstance(node, ast.Call):
            node = node.args[0] if node.args else next((k.value for k in node.keywords), None)
        else:
            node = getattr(node, "value", None) if isinstance(node, ast.Subscript) else None
    return node.id if isinstance(node, ast.Name) else ""


def pointers(kernel: Any) -> set[str]:
    """Names that hold addresses, here or in the functions that get them."""
    nodes = list(ast.walk(ast.parse(kernel.src)))
    found: set[str] = set()
    for call in (node for node in nodes if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute):
            if call.func.attr in POINTERS or call.func.attr.startswith("atomic_"):
                found.add(leftmost(call))
        elif isinstance(call.func, ast.Name) and hasattr(callee := kernel.fn.__globals__.get(call.func.id), "src"):
            inner = pointers(callee)
            found |= {leftmost(arg) for arg, name in zip(call.args, callee.arg_names, strict=False) if name in inner}
    assigned = [
        (node.targets[0].id, node.value)
        for node in nodes
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ]
    for _ in range(4):
        found |= {leftmost(value) for name, value in assigned if name in found}
    return found


def constant(name: str, turn: int) -> Any:
    """A value for a constexpr parameter of that name."""
    import triton.language as tl

    name = name.lower()
    if "dtype" in name or name.endswith("_type"):
        return (tl.bfloat16, tl.float32)[turn % 2]
    if FLAGS.match(name):
        return bool(turn % 2)
    if "stage" in name or "split" in name:
        return 1
    if name.startswith(("num", "n_", "top", "group")) or len(name) == 1:
        return (4, 8, 2, 1)[turn % 4]
    return (32, 16, 64, 128)[turn % 4]


def guesses(kernel: Any) -> Iterator[tuple[dict[str, str], dict[tuple[int, ...], Any], dict[tuple[int, ...], Any]]]:
    """Signature, constants and attributes; later ones are bolder."""
    addresses = pointers(kernel)
    for turn in range(8):
        signature: dict[str, str] = {}
        constants: dict[tuple[int, ...], Any] = {}
        attributes: dict[tuple[int, ...], Any] = {}
        for index, parameter in enumerate(kernel.params):
            name, low = parameter.name, parameter.name.lower()
            if parameter.is_constexpr or (parameter.has_default and parameter.default is None and turn < 4):
                default = parameter.default if parameter.has_default and turn % 2 == 0 else constant(name, turn)
                signature[name], constants[index,] = "constexpr", default
            elif name in addresses or low.endswith("ptr"):
                values = ("*bf16", "*fp16", "*fp32", "*fp32", "*fp8e4nv", "*i32", "*u8", "*bf16")
                signature[name] = ("*i32", "*i64")[turn % 2] if INTEGERS.search(low) else values[turn]
                attributes[index,] = [["tt.divisibility", 16]]
            else:
                signature[name] = "fp32" if FLOATS.search(low) else "i32"
        yield signature, constants, attributes


def guess(path: str, folders: list[str]) -> None:
    """Write two specialisations of each kernel that Triton's frontend accepts."""
    import triton
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    assert not str(triton.__file__).startswith(str(Path(__file__).parents[2])), "needs Triton itself"
    target = GPUTarget("cuda", 90, 32)
    backend = make_backend(target)
    options = backend.parse_options({})
    records: list[Record] = []
    for folder in folders:
        finder = Lenient(folder)
        sys.meta_path.append(finder)
        for file in sorted(Path(folder).rglob("*.py")):
            if "triton.jit" not in file.read_text(errors="replace"):
                continue
            module = ".".join(file.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
            for name, kernel in kernels(importlib.import_module(module)).items():
                taken = 0
                for signature, constants, attributes in guesses(kernel):
                    context = ir.context()
                    ir.load_dialects(context)
                    backend.load_dialects(context)
                    source = ASTSource(kernel, signature, constants, attributes)
                    helpers = backend.get_codegen_implementation(options), backend.get_module_map()
                    try:
                        source.make_ir(target, options, *helpers, context)
                    except Exception:
                        continue
                    plain = {
                        key: str(value) if "dtype" in type(value).__name__ else value
                        for key, value in constants.items()
                    }
                    records.append((folder, module, name, signature, plain, attributes))
                    if (taken := taken + 1) == 2:
                        break
        sys.meta_path.remove(finder)
    with open(path, "wb") as out:
        pickle.dump(records, out)
    print(f"{len(records)} specialisations of {len({r[:3] for r in records})} kernels")


def compile_all(path: str, out: str, is_triton: bool, where: str) -> None:
    """One line of JSON for each record: shared memory or the error, and seconds; each in a process of its own."""
    if not is_triton:
        from tilework.as_triton import as_triton

        os.environ["TILEWORK_DEVICE"] = "emulator"
        as_triton()
    with open(path, "rb") as file:
        records: list[Record] = pickle.load(file)
    for number, record in enumerate(records):
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            line = {"id": number, "name": ".".join(record[1:3]), **compiled(record, where)}
            with open(out, "a") as file:
                file.write(json.dumps(line) + "\n")
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            with open(out, "a") as file:
                file.write(json.dumps({"id": number, "name": ".".join(record[1:3]), "error": "no time"}) + "\n")


def compiled(record: Record, where: str) -> dict[str, Any]:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    folder, module, name, signature, constants, attributes = record
    sys.meta_path.append(Lenient(folder))
    vendor, _, arch = where.partition(":")
    target = GPUTarget(vendor, int(arch) if arch.isdigit() else arch, 32 if vendor == "cuda" else 64)
    start = time.process_time()
    try:
        kernel = kernels(importlib.import_module(module))[name]
        types = {"fp32": tl.float32, "bf16": tl.bfloat16}
        known = {k: types.get(v, v) if isinstance(v, str) else v for k, v in constants.items()}
        start = time.process_time()
        source = ASTSource(kernel, signature, known, attributes)
        made = triton.compile(source, target=target)  # pyright: ignore[reportAttributeAccessIssue]  not tests/triton
        return {"shared": made.metadata.shared, "seconds": time.process_time() - start}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[-400:]}


def compare(ours: str, theirs: str) -> int:
    """List what only ours refuses, and what needs more shared memory."""
    with open(ours) as one, open(theirs) as other:
        mine, known = ({row["id"]: row for row in map(json.loads, file)} for file in (one, other))
    bad = 0
    for number, row in mine.items():
        there = known.get(number, {"error": "missing"})
        if "error" not in there and ("error" in row or row["shared"] > there["shared"]):
            bad += 1
            print(f"{number} {row['name']}: {row.get('error', row.get('shared'))}, Triton {there['shared']}")
    both = [number for number in mine if number in known and not {"error"} & {*mine[number], *known[number]}]
    spent = [sum(table[number]["seconds"] for number in both) for table in (mine, known)]
    print(
        f"{len(mine)} specialisations, {len(both)} compiled by both in {spent[0]:.0f} s and {spent[1]:.0f} s; "
        f"{bad} to look at"
    )
    return int(bad > 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("guess", "compile", "compare"))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--triton", action="store_true")
    parser.add_argument("--target", default="cuda:90")
    options = parser.parse_args()
    if options.what == "guess":
        guess(options.files[0], options.files[1:])
    elif options.what == "compile":
        compile_all(*options.files, is_triton=options.triton, where=options.target)
    else:
        sys.exit(compare(*options.files))


if __name__ == "__main__":
    main()
