"""The file format of a corpus of kernel launches: kernels as self-contained modules, launches as JSON.

A corpus is a folder, or a zip file of one:

    kernels/ID.py      a module that imports only triton: a kernel, the functions it calls, the constants it uses
    launches.json      for each launch the library, the kernel, its arguments, the grid and the options
    data/ID            an integer tensor whose values matter (indices, lengths), compressed

`read` returns the launches. A module loads under Triton, under `tilework.as_triton`, or as a module of tilework beside
Triton in one process (`load`). `Launch.specialization` is what a compilation without a GPU needs; `materialize` makes
the tensors of a launch from a seed.

    for launch in read("corpus.zip"):
        kernel = launch.load("tilework")
        source = ASTSource(kernel, *launch.specialization(kernel))

`benchmarks.real_kernels` records and times a corpus, `benchmarks.static_kernels` compares machine code.
"""

import ast
import hashlib
import importlib
import importlib.util
import json
import math
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ELEMENT_SIZES = {
    "i1": 1, "u1": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "fp16": 2, "bf16": 2, "fp32": 4, "fp64": 8,
    "fp8e4nv": 1, "fp8e5": 1, "fp8e4b8": 1, "fp8e5b16": 1, "complex64": 8,
}  # fmt: skip
TORCH_NAMES = {
    "i1": "bool", "i8": "int8", "u8": "uint8", "i16": "int16", "u16": "uint16", "i32": "int32", "u32": "uint32",
    "i64": "int64", "u64": "uint64", "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64",
    "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2", "fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz",
}  # fmt: skip
DTYPE_CODES = {name: code for code, name in TORCH_NAMES.items()}  # of torch's names
ALIGNMENT = 16


@dataclass(frozen=True)
class Storage:
    """The memory behind one or several tensors, and its contents.

    `fill` is one of ``["normal", scale]``, ``["uniform", low, high]``, ``["constant", value]``,
    ``["integers", low, high]`` (both inclusive), ``["sorted", low, high]``, ``["range"]``, ``["stored", file]``.
    """

    dtype: str
    elements: int
    fill: list[Any]


@dataclass(frozen=True)
class Tensor:
    """A view of a launch's storage, in elements of `dtype`."""

    storage: int
    dtype: str
    shape: list[int]
    strides: list[int]
    offset: int = 0

    @property
    def is_aligned(self) -> bool:
        return self.offset * ELEMENT_SIZES[self.dtype] % ALIGNMENT == 0


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor that the host makes."""

    base: Tensor
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str = "zero"

    @property
    def type(self) -> str:
        return f"tensordesc<{self.base.dtype}[{', '.join(map(str, self.block_shape))}]>"


@dataclass(frozen=True)
class DType:
    """An element type as a compile-time constant; with `is_pointer` a pointer to it."""

    code: str
    is_pointer: bool = False


@dataclass(frozen=True)
class Function:
    """A function of the kernel's module as a compile-time constant."""

    name: str


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel as its decorator and annotations declare it."""

    name: str
    is_constexpr: bool = False
    is_specialized: bool = True  # on the value 1 and multiples of 16
    is_aligned: bool = True  # may be specialised on multiples of 16
    type: str = ""  # of the annotation


class Specialization(NamedTuple):
    """The arguments of `ASTSource` behind the kernel."""

    signature: dict[str, Any]
    constants: dict[Any, Any]
    attrs: dict[tuple[int, ...], list[list[Any]]]


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel. `arguments` has the values of all parameters, in order."""

    library: str
    name: str
    module: str
    function: str
    parameters: list[Parameter]
    arguments: dict[str, Any]
    storages: list[Storage]
    grid: list[int]
    options: dict[str, Any] = field(default_factory=dict)
    corpus: "Corpus | None" = field(default=None, compare=False, repr=False)

    def source(self) -> str:
        """Return the text of the kernel's module."""
        assert self.corpus is not None
        return self.corpus.read_text(f"kernels/{self.module}.py")

    def load(self, compiler: str) -> Any:
        """Return the kernel made by `compiler`, "triton" or "tilework"; "triton" is whatever `import triton` gives."""
        return getattr(load(self.module, self.source(), compiler), self.function)

    def values(self, kernel: Any, tensors: list[Any]) -> dict[str, Any]:
        """Return the arguments for a launch of a loaded kernel; `tensors` are those of `materialize`."""
        return {name: decode(value, kernel, tensors) for name, value in self.arguments.items()}

    def specialization(self, kernel: Any) -> Specialization:
        """Return the types, constants and attributes with which this launch compiles a loaded kernel."""
        made = Specialization({}, {}, {})
        for index, param in enumerate(self.parameters):
            value = self.arguments[param.name]
            if param.is_constexpr:
                made.signature[param.name] = "constexpr"
                made.constants[param.name] = decode(value, kernel, [])
            elif isinstance(value, tuple):
                made.signature[param.name] = specialize_tuple(value, param, (index,), kernel, made)
            else:
                specialize(value, param, (index,), param.name, kernel, made)
        return made

    def tensor_bytes(self) -> int:
        """Return the bytes of all storages."""
        return sum(storage.elements * ELEMENT_SIZES[storage.dtype] for storage in self.storages)


def specialize(value: Any, param: Parameter, path: tuple[int, ...], key: Any, kernel: Any, made: Specialization) -> str:
    """Enter an argument that is no tuple into a specialisation, and return its type."""
    type, is_multiple = type_of(value, param)
    if type == "constexpr":
        made.constants[key] = decode(value, kernel, [])
    elif is_multiple:
        made.attrs[path] = [["tt.divisibility", ALIGNMENT]]
    if len(path) == 1:
        made.signature[param.name] = type
    return type


def specialize_tuple(value: tuple[Any, ...], param: Parameter, path: tuple[int, ...], kernel: Any,
                     made: Specialization) -> tuple[Any, ...]:  # fmt: skip
    """Enter the items of a tuple, and return their types."""
    types = []
    for index, item in enumerate(value):
        inner = (*path, index)
        enter = isinstance(item, tuple)
        types.append(specialize_tuple(item, param, inner, kernel, made) if enter
                     else specialize(item, param, inner, inner, kernel, made))  # fmt: skip
    return tuple(types)


def type_of(value: Any, param: Parameter) -> tuple[str, bool]:
    """Return the type of an argument, "constexpr" for what is constant, and True if it is a known multiple of 16."""
    may_align = param.is_specialized and param.is_aligned
    match value:
        case None | DType() | Function() | str():
            return "constexpr", False
        case Tensor():
            return f"*{value.dtype}", may_align and value.is_aligned
        case Descriptor():
            return value.type, False
        case bool():
            return param.type or "u1", False
        case float():
            return param.type or "fp32", False
        case int() if param.type.startswith(("fp", "bf")) or param.type == "u1":
            return param.type, False
        case int() if value == 1 and param.is_specialized:
            return "constexpr", False
        case int():
            return param.type or integer_type(value), may_align and value % ALIGNMENT == 0
    raise TypeError(f"no argument of a kernel: {value!r}")


def integer_type(value: int) -> str:
    if -(2**31) <= value < 2**31:
        return "i32"
    return "i64" if value < 2**63 else "u64"


# JSON -----------------------------------------------------------------------------------------------------------------

KINDS: dict[str, type] = {"tensor": Tensor, "dtype": DType, "function": Function}


def to_json(value: Any) -> Any:
    """Return an argument as JSON: numbers and strings as they are, others as ``{kind: fields}``."""
    if isinstance(value, tuple):
        return {"tuple": [to_json(item) for item in value]}
    if isinstance(value, Descriptor):
        return {"descriptor": asdict(value)}
    for kind, made in KINDS.items():
        if isinstance(value, made):
            return {kind: asdict(value)}
    return value


def from_json(value: Any) -> Any:
    """Return the argument that `to_json` wrote."""
    if not isinstance(value, dict):
        return value
    ((kind, fields),) = value.items()
    if kind == "tuple":
        return tuple(from_json(item) for item in fields)
    if kind == "descriptor":
        return Descriptor(**{**fields, "base": Tensor(**fields["base"])})
    return KINDS[kind](**fields)


def launch_to_json(launch: Launch) -> dict[str, Any]:
    arguments = {name: to_json(value) for name, value in launch.arguments.items()}
    return {
        "library": launch.library, "name": launch.name, "module": launch.module, "function": launch.function,
        "parameters": [asdict(param) for param in launch.parameters], "arguments": arguments,
        "storages": [asdict(storage) for storage in launch.storages], "grid": launch.grid, "options": launch.options,
    }  # fmt: skip


def launch_from_json(fields: dict[str, Any], corpus: "Corpus") -> Launch:
    made = {
        "parameters": [Parameter(**param) for param in fields["parameters"]],
        "arguments": {name: from_json(value) for name, value in fields["arguments"].items()},
        "storages": [Storage(**storage) for storage in fields["storages"]],
    }
    return Launch(**{**fields, **made, "corpus": corpus})


# Folders and zip files ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corpus:
    """The files of a corpus."""

    root: Any  # a path of a folder, or of a zip file

    def read_text(self, name: str) -> str:
        return self.root.joinpath(name).read_text(encoding="utf-8")

    def read_bytes(self, name: str) -> bytes:
        return zlib.decompress(self.root.joinpath(name).read_bytes())


def read(path: str | Path) -> list[Launch]:
    """Return the launches of a corpus: a folder or a zip file."""
    corpus = Corpus(zipfile.Path(str(path)) if zipfile.is_zipfile(path) else Path(path))
    return [launch_from_json(fields, corpus) for fields in json.loads(corpus.read_text("launches.json"))]


class Writer:
    """Writes a corpus into a folder; `finish` writes the launches, and a zip file beside the folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.launches: dict[str, Launch] = {}
        for inner in ("kernels", "data"):
            (self.folder / inner).mkdir(parents=True, exist_ok=True)

    def add_module(self, function: str, text: str) -> str:
        """Keep the text of a module, and return its id."""
        name = f"{function.strip('_')}_{hashlib.sha256(text.encode()).hexdigest()[:10]}"
        (self.folder / "kernels" / f"{name}.py").write_text(text, encoding="utf-8")
        return name

    def add_data(self, data: bytes) -> str:
        """Keep the bytes of a tensor, and return the name of its file."""
        name = f"data/{hashlib.sha256(data).hexdigest()[:16]}"
        (self.folder / name).write_bytes(zlib.compress(data, 9))
        return name

    def add(self, launch: Launch) -> bool:
        """Add a launch unless there is one like it, and return True if it was added."""
        fields = {**launch_to_json(launch), "name": "", "library": ""}
        key = json.dumps(fields, sort_keys=True)
        is_new = key not in self.launches
        if is_new:
            self.launches[key] = launch
        return is_new

    def finish(self) -> None:
        """Write the launches, and a zip file; files that no launch uses any more are deleted."""
        stored = (one.fill for launch in self.launches.values() for one in launch.storages)
        used = {f"kernels/{launch.module}.py" for launch in self.launches.values()}
        used |= {fill[1] for fill in stored if fill[0] == "stored"}
        for file in (*self.folder.glob("kernels/*"), *self.folder.glob("data/*")):
            if file.is_file() and file.relative_to(self.folder).as_posix() not in used:
                file.unlink()
        records = [launch_to_json(launch) for launch in self.launches.values()]
        lines = ",\n".join(json.dumps(record) for record in records)
        (self.folder / "launches.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        with zipfile.ZipFile(self.folder.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as packed:
            for file in sorted(self.folder.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    packed.write(file, file.relative_to(self.folder).as_posix())


# Modules --------------------------------------------------------------------------------------------------------------

_loaded: dict[tuple[str, str], ModuleType] = {}
_folder: list[tempfile.TemporaryDirectory[str]] = []


def load(name: str, text: str, compiler: str) -> ModuleType:
    """Return a module of kernels made by a compiler; modules are loaded once."""
    if (name, compiler) in _loaded:
        return _loaded[name, compiler]
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory(prefix="corpus"))
    path = Path(_folder[0].name) / f"{name}_{compiler}.py"
    path.write_text(with_tilework(text) if compiler == "tilework" else text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    _loaded[name, compiler] = module
    return module


def with_tilework(text: str) -> str:
    """Return the text of a module with tilework's modules in the place of Triton's."""
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import):
            alias = node.names[0]
            lines[node.lineno - 1] = f"import {tilework_module(alias.name)} as {alias.asname or alias.name}"
        elif isinstance(node, ast.ImportFrom) and node.module:
            alias = node.names[0]
            module, name = tilework_name(node.module, alias.name)
            lines[node.lineno - 1] = f"from {module} import {name} as {alias.asname or alias.name}"
    return "\n".join(lines) + "\n"


def tilework_module(name: str) -> str:
    """Return the module of tilework that serves as one of Triton's."""
    from tilework.triton.finder import source_of

    if name.partition(".")[0] != "triton":
        return name
    return "tilework" if name == "triton" else source_of(name) or name.replace("triton", "tilework", 1)


def tilework_name(module: str, name: str) -> tuple[str, str]:
    """Return where tilework has a name of a module of Triton."""
    from tilework.triton.finder import added_names

    return added_names(module).get(name) or (tilework_module(module), name)


def language_of(kernel: Any) -> Any:
    """Return the module `language` of the compiler that made a kernel."""
    root = type(kernel).__module__.partition(".")[0]
    return importlib.import_module(f"{root}.language")


def decode(value: Any, kernel: Any, tensors: list[Any]) -> Any:
    """Return the object that an argument stands for."""
    match value:
        case tuple():
            return tuple(decode(item, kernel, tensors) for item in value)
        case DType():
            language = language_of(kernel)
            made = language.dtype(value.code)
            return language.pointer_type(made) if value.is_pointer else made
        case Function():
            return kernel.fn.__globals__[value.name]
        case Tensor():
            return view(tensors, value)
        case Descriptor():
            return descriptor(value, kernel, tensors)
        case _:
            return value


# Tensors --------------------------------------------------------------------------------------------------------------


def descriptor(value: Descriptor, kernel: Any, tensors: list[Any]) -> Any:
    """Return a tensor descriptor of the compiler that made a kernel."""
    root = type(kernel).__module__.partition(".")[0]
    where = "triton.tools.tensor_descriptor" if root == "triton" else "tilework.tools.tensor_descriptor"
    made = importlib.import_module(where).TensorDescriptor
    extra = {} if value.padding == "zero" else {"padding": value.padding}
    return made(view(tensors, value.base), list(value.shape), list(value.strides), list(value.block_shape), **extra)


def view(tensors: list[Any], tensor: Tensor) -> Any:
    """Return the tensor of torch that a launch's tensor describes."""
    import torch

    flat = tensors[tensor.storage].view(getattr(torch, TORCH_NAMES[tensor.dtype]))
    return flat.as_strided(tensor.shape, tensor.strides, tensor.offset)


def materialize(launch: Launch, device: str = "cuda", seed: int = 0) -> list[Any]:
    """Return the storages of a launch as flat tensors of torch; equal seeds make equal values."""
    import torch

    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    return [fill(storage, launch, device, generator) for storage in launch.storages]


def fill(storage: Storage, launch: Launch, device: str, generator: Any) -> Any:
    """Return one storage with its contents."""
    import torch

    dtype = getattr(torch, TORCH_NAMES[storage.dtype])
    count, (kind, *numbers) = storage.elements, storage.fill
    match kind:
        case "normal":
            made = torch.empty(count, dtype=wide(dtype), device=device).normal_(0, numbers[0], generator=generator)
        case "uniform":
            made = torch.empty(count, dtype=wide(dtype), device=device).uniform_(*numbers, generator=generator)
        case "integers" | "sorted":
            low, high = int(numbers[0]), int(numbers[1])
            made = torch.randint(low, high + 1, (count,), device=device, dtype=torch.int64, generator=generator)
            made = made.sort().values if kind == "sorted" else made
        case "range":
            made = torch.arange(count, device=device)
        case "stored":
            assert launch.corpus is not None
            data = bytearray(launch.corpus.read_bytes(numbers[0]))
            return torch.frombuffer(data, dtype=torch.uint8).to(device).view(dtype)
        case "constant":
            made = torch.full((count,), numbers[0], dtype=wide(dtype), device=device)
        case _:
            raise ValueError(f"no way to fill a tensor: {storage.fill}")
    return made.to(dtype)


def wide(dtype: Any) -> Any:
    """Return the type in which torch can draw numbers for elements of a type."""
    import torch

    if dtype.is_floating_point:
        return torch.float32 if dtype.itemsize == 1 else dtype
    return torch.int64


def geometric_mean(numbers: Iterable[float]) -> float:
    logs = [math.log(number) for number in numbers]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def by_library(launches: Iterable[Launch]) -> Mapping[str, list[Launch]]:
    """Return the launches of each library."""
    found: dict[str, list[Launch]] = {}
    for launch in launches:
        found.setdefault(launch.library, []).append(launch)
    return found
