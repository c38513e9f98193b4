"""The sources of compilations: a kernel with the types of its arguments, or an IR file.

    source = ASTSource(add, {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, {"BLOCK": 64})

The frontend and the IR are imported where a compilation first needs them: a kernel that is found in the cache needs
neither.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.errors import LIBRARY
from tilework.language.constant_text import Writer, has_twins
from tilework.language.function import JITCallable, JITFunction, functions_among
from tilework.runtime.launch.python.specialize import python_scalar
from tilework.target import GPUTarget
from tilework.targets.base import IR_STAGES, TEXT_STAGES, find_backend

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from tilework.frontend.kernel import FrontendOptions
    from tilework.targets.options import CompileOptions


Locations = dict[str, Any]


def locations_of(functions: Iterable[JITCallable]) -> Locations:
    """Return the locations of functions; `locations.py` explains them."""
    files: dict[str, int] = {}
    found = [
        [files.setdefault(where.file, len(files)), where.first_line, function.src.count("\n"), where.indent]
        for function in functions
        for where in (function.where,)
    ]
    return {"library": LIBRARY, "files": [*files], "functions": found}


def location_record(own: Locations) -> bytes:
    """Return the locations in the form of the metadata."""
    return f'"locations": {json.dumps(own)}'.encode()


def metadata_of(files: Mapping[str, bytes]) -> str:
    """The name of the file of an entry that has the metadata."""
    return next(file for file in files if file.endswith("json"))


class Source:
    """The input of a compilation: a kernel with types, or an IR file."""

    def module(self, options: "FrontendOptions") -> "ModuleOp":
        """Return the module before any pass. Every source overrides this."""
        raise NotImplementedError

    def stage_input(self, options: "FrontendOptions") -> "ModuleOp | str":
        """Return the input of the first stage: a module, or text."""
        return self.module(options)

    def parse_options(self) -> dict[str, Any]:
        """Return the compile options that the source implies."""
        return {}

    def is_here(self, files: Mapping[str, bytes]) -> bool:
        """Return True if the files of an entry have the locations of this process."""
        return True

    def make_ir(
        self,
        target: GPUTarget,
        options: "CompileOptions | Mapping[str, Any]",
        codegen_fns: object,
        module_map: object,
        context: Any,
    ) -> Any:
        """As `stage_input`, called as Triton's sources are: a module is returned as `context` shows it."""
        made = self.stage_input(frontend_options(target, options))
        return made if isinstance(made, str) else context.adopt(made)


class ASTSource(Source):
    """A kernel with the types of its arguments. Parameters that are not in `signature` must be constants.

    Types are strings: ``"*fp32"`` (``"*kfp32"`` if the kernel only reads through it), ``"i32"``, ``"fp16"``,
    ``"constexpr"``, ``"tensordesc<fp16[64, 32]>"``. `constexprs` maps names or index paths to values, `attrs` index
    paths to [[attribute, value]], such as ``{(0,): [["tt.divisibility", 16]]}`` for an aligned pointer. Triton 3.0's
    forms are accepted too: `constants=` for `constexprs=` and with it types by parameter index, and types in one string
    (``"*fp32,*fp32,i32"``, for the parameters that are no constants).

    Example:
        @tilework.jit
        def kernel(out, N: tl.constexpr):
            tl.store(out + tl.arange(0, N), 7.0)

        source = tilework.compiler.ASTSource(kernel, {"out": "*fp32", "N": "constexpr"}, {"N": 16})
        compiled = tilework.compile(source, tilework.compiler.GPUTarget.parse("cpu"))
        assert "tensor<16x" in compiled.asm["ttir"]
    """

    ext = "ttir"

    def __init__(
        self,
        fn: JITFunction,
        signature: Mapping[Any, object] | str,
        constexprs: Mapping[Any, object] | None = None,
        attrs: Mapping[tuple[int, ...], Sequence[Sequence[object]]] | None = None,
        *,
        constants: Mapping[Any, object] | None = None,
    ) -> None:
        if isinstance(signature, str):
            signature = named_types(fn, signature, constexprs or constants or {})
        elif constants is not None:
            signature = {fn.arg_names[key] if isinstance(key, int) else key: type for key, type in signature.items()}
        for key in signature:
            if not isinstance(key, str):
                raise TypeError("Signature keys must be string")
        self.fn = fn
        self.name = fn.__name__
        order = {name: index for index, name in enumerate(fn.arg_names)}
        self.signature = dict(sorted(signature.items(), key=lambda item: order.get(item[0], len(order))))
        given = constexprs if constexprs is not None else constants or {}
        self.constants = {
            (order.get(key, key),)
            if isinstance(key, str)
            else key
            if isinstance(key, tuple)
            else (key,): python_scalar(value)
            for key, value in given.items()
        }
        self.attrs = dict(attrs or {})
        self._locations: Locations | None = None  # known with the hash

    @property
    def constexprs(self) -> dict[Any, Any]:
        """The constants by index path."""
        return self.constants

    def hash(self) -> str:
        """SHA-256 of the function, the types, the constants and the facts; the same wherever the function's file is."""
        writer = Writer()
        text = self.text(writer)
        others = (each for each in functions_among(writer.seen) if each is not self.fn)
        self._locations = locations_of((self.fn, *others))
        if has_twins(writer.seen):
            text = self.text(Writer(is_whole=True))
        return hashlib.sha256(text.encode()).hexdigest()

    def text(self, writer: Writer) -> str:
        """Return the text that `hash` is computed from."""
        constants = [(path, writer.text(value)) for path, value in sorted(self.constants.items(), key=str)]
        return f"{writer.text(self.fn)}-{self.attrs}-{sorted(self.signature.items(), key=str)}-{constants}"

    def is_here(self, files: Mapping[str, bytes]) -> bool:
        return location_record(self.locations()) in files[metadata_of(files)]

    def locations(self) -> Locations:
        """The locations of the kernel and the functions that it refers to; see `locations.py`."""
        if self._locations is None:
            self.hash()
        assert self._locations is not None
        return self._locations

    def module(self, options: "FrontendOptions") -> "ModuleOp":
        from tilework.frontend.generator import compile_to_ttir  # lazily: the compiler loads when something is compiled

        constants = {path: value for path, value in self.constants.items() if isinstance(path[0], int)}
        return compile_to_ttir(self.fn, self.signature, constants, self.attrs, options)


ENTRY = r"""tt\.func public @"?(?P<ir>[\w.$]+)|\.visible \.entry (?P<ptx>\w+)"""  # compiled when a file is read


class IRSource(Source):
    """An IR file, whose extension names the stage that wrote it.

    Example:
        import pathlib, tempfile

        text = '''
            tt.func public @seven(%out: !tt.ptr<i32>) {
              %c = arith.constant 7 : i32
              tt.store %out, %c : !tt.ptr<i32>
              tt.return
            }'''
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "seven.ttir")
            file.write_text(text)
            compiled = tilework.compile(file, tilework.compiler.GPUTarget.parse("cpu"))
        out = np.zeros(1, np.int32)
        compiled[(1, 1, 1)](out)
        assert out[0] == 7
    """

    is_declared = False  # no Python function says what its parameters are

    def __init__(self, path: str | Path, context: object = None, backend: object = None) -> None:
        self.path = Path(path)
        self.ext = self.path.suffix.lstrip(".")
        if self.ext not in (*IR_STAGES, *TEXT_STAGES):
            raise ValueError(f"{self.path.name}: a source is a .{' or .'.join((*IR_STAGES, *TEXT_STAGES))} file")
        self.text = self.path.read_text(encoding="utf-8")
        found = re.search(ENTRY, self.text)
        self.name = self.path.stem if found is None else f"@{found['ir']}" if found["ir"] else found["ptx"]

    @property
    def src(self) -> str:
        """The text, under Triton's name."""
        return self.text

    def hash(self) -> str:
        """SHA-256 of the text, and of the path if locations name it."""
        where = str(self.path) if knobs.compilation.use_ir_loc else ""
        return hashlib.sha256((self.text + where).encode()).hexdigest()

    def stage_input(self, options: "FrontendOptions") -> "ModuleOp | str":
        """Return the content of the file: a module, or text."""
        return self.module(options) if self.ext in IR_STAGES else self.text

    def parse_options(self) -> dict[str, Any]:
        """Return the options that the text implies: warps and CTAs of TTGIR, and whether it is reproducible."""
        sizes = dict(re.findall(r'"ttg\.(num-warps|num-ctas)" = (\d+) : i32', self.text))
        marked = re.search(r"^module attributes \{.*tilework\.reproducible", self.text, re.MULTILINE)
        found: dict[str, Any] = {name.replace("-", "_"): int(size) for name, size in sizes.items()}
        return found | ({"reproducible": True} if marked else {})

    def module(self, options: "FrontendOptions") -> "ModuleOp":
        """Parse the file; ops without a location, and all with USE_IR_LOC, get their location in it."""
        # lazily: the compiler loads when something is compiled
        from tilework.ir.module_facts import mark_reproducible
        from tilework.ir.parser import parse_with_locations

        module = parse_with_locations(self.text, str(self.path), only_missing=knobs.compilation.use_ir_loc is None)
        if options.reproducible:
            mark_reproducible(module)
        return module


def named_types(fn: JITFunction, text: str, constants: Mapping[Any, object]) -> dict[str, str]:
    """``"*fp32,i32"`` by the names of the parameters that are no constants."""
    fixed = {
        key if isinstance(key, str) else fn.arg_names[key[0] if isinstance(key, tuple) else key] for key in constants
    }
    names = [name for name in fn.arg_names if name not in fixed]
    types = [type.strip() for type in text.split(",")]
    if len(types) != len(names):
        raise TypeError(
            f"{fn.__name__} has {len(names)} parameters that are no constants and is given {len(types)} types: {text}"
        )
    return {**dict(zip(names, types, strict=True)), **dict.fromkeys(sorted(fixed), "constexpr")}


def frontend_options(target: GPUTarget, options: "CompileOptions | Mapping[str, Any]") -> "FrontendOptions":
    """Return the options of the frontend: the compile options it shares, the target, and the knobs."""
    backend = find_backend(target)
    # lazily: the compiler loads when something is compiled
    from tilework.frontend.kernel import FrontendOptions
    from tilework.targets.options import NAMES, CompileOptions

    if not isinstance(options, CompileOptions):
        options = backend.parse_options(options)
    shared = {option.name for option in fields(FrontendOptions)} & {*NAMES}
    settings = {name: getattr(options, name) for name in shared}
    meant = backend.target_for(options)
    settings |= {
        "arch": meant.arch,
        "features": meant.features,
        "min_dot_size": meant.min_dot_size,
        "allow_non_constexpr_globals": knobs.compilation.allow_non_constexpr_globals,
        "front_end_debugging": knobs.compilation.front_end_debugging,
        "f32_default": knobs.language.fp32_default,
        "beyond_triton": "error" if knobs.language.strict_triton else "warn" if knobs.language.is_triton else "allow",
    }
    return FrontendOptions(**settings)
