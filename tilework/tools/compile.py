"""`tilework compile FILE.py:KERNEL --signature "..." --target cuda:90 --emit ttir -o DIR`.

A file of a later stage goes on from there: `tilework compile FILE.llir --target cuda:90 --emit ptx,cubin,sass -o DIR`.

The signature has one entry per parameter, in order: a type code (``*fp32``, ``i32``, ``tensordesc<fp16[64, 64]>``), with
``:16`` if the value or address is a multiple of 16, ``:S`` (``:16S``) if the array has less than 2 GiB, and ``:1`` if the value is 1; or a constant (``1024``, ``True``,
``"row"``, ``fp16``) for a compile-time parameter. Entries left out at the end take their defaults. Without a signature, the first of the
file's `CASES` with this kernel says how it is called, as in `examples/`: its `types`, `constexprs` and `attrs`.
"""

import argparse
import ast
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from tilework.errors import CompilationError, PassError, TritonError
from tilework.language import core as tl
from tilework.language.function import JITFunction
from tilework.runtime.launch.specialize import parse_attr

FACTS = {"": "", "16": "D", "S": "S", "16S": "DS"}


class UsageError(Exception):
    """The command line does not fit the kernel; shown without a traceback."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework compile`."""
    parser.add_argument(
        "source",
        metavar="FILE.py:KERNEL|FILE.STAGE",
        help="a kernel in a Python file, or the file of a stage (.ttir, .ttgir, .ttcir, .llir, .ptx)",
    )
    parser.add_argument("--signature", default="", help='types and constants, for example "*fp32:16, i32:16, 1024"')
    parser.add_argument("--target", default="cuda:90", help="cuda:80, cuda:90, hip:gfx942, cpu (default: %(default)s)")
    parser.add_argument("--num-warps", type=int, default=4)
    parser.add_argument("--num-ctas", type=int, default=1)
    parser.add_argument("--num-stages", type=int, help="default: that of the target")
    parser.add_argument("--debug", action="store_true", help="keep device asserts and overflow checks")
    parser.add_argument("--emit", default="ttir", help="stages to write, separated by commas (default: %(default)s)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="write KERNEL.STAGE files there; default: print, what is no text goes to .",
    )


def run(args: argparse.Namespace) -> int:
    """Carry out `tilework compile`; mistakes are told on stderr, and the result is 1."""
    from tilework.ir.parser import IRSyntaxError  # lazily: the compiler loads when something is compiled

    try:
        return compile_and_write(args)
    except CompilationError as error:
        print(error.diagnostic().render(), file=sys.stderr)
    except (UsageError, PassError, TritonError, IRSyntaxError, ValueError, TypeError, OSError, RuntimeError) as error:
        print(f"tilework compile: {error}", file=sys.stderr)
    return 1


def compile_and_write(args: argparse.Namespace) -> int:
    """Find the source, lower it, write the stages."""
    from tilework.compiler import ASTSource, IRSource, lower  # lazily: the compiler loads when something is compiled
    from tilework.targets.base import GPUTarget

    target = GPUTarget.parse(args.target)
    if args.num_warps < 1 or args.num_warps & (args.num_warps - 1):
        raise UsageError(f"--num-warps must be a power of 2, got {args.num_warps}")
    path, _, kernel = args.source.rpartition(":") if ".py:" in args.source else (args.source, "", "")
    if kernel:
        fn = load_kernel(Path(path), kernel)
        case = None if args.signature else case_of(fn)
        called = parse_signature(fn, args.signature) if case is None else (case.types, case.constexprs, case.attrs)
        source: ASTSource | IRSource = ASTSource(fn, *called)
        name = kernel
    elif path.endswith(".py"):
        raise UsageError(f"say which kernel: {path}:KERNEL")
    else:
        source, name = IRSource(Path(path)), Path(path).stem
    stages = [stage.strip() for stage in args.emit.split(",") if stage.strip()]
    settings = {
        "num_warps": args.num_warps,
        "num_ctas": args.num_ctas,
        "debug": args.debug or None,
        **({} if args.num_stages is None else {"num_stages": args.num_stages}),
    }
    texts = lower(source, target, stages, **settings)
    for stage in stages:
        product = texts[stage]
        if args.output is None and isinstance(product, str):
            print(product, end="")
            continue
        folder = Path(args.output or ".")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.{stage}").write_bytes(product if isinstance(product, bytes) else product.encode())
        print(folder / f"{name}.{stage}", file=sys.stdout if args.output else sys.stderr)
    return 0


def load_kernel(path: Path, name: str) -> JITFunction:
    """Import the file and take the kernel out of it; decorators around the jit function are looked through."""
    if not path.is_file():
        raise UsageError(f"no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    # what `python FILE` and what `python -m` would see: a file of a package may import the package
    folder = path.resolve().parent
    outside = next(above for above in (folder, *folder.parents) if not (above / "__init__.py").exists())
    sys.path[:0] = [str(folder), str(outside), str(Path.cwd())]
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    kernel: Any = module
    for part in name.split("."):
        kernel = getattr(kernel, part, None)
    while kernel is not None and not isinstance(kernel, JITFunction) and hasattr(kernel, "fn"):
        kernel = kernel.fn
    if not isinstance(kernel, JITFunction):
        found = [key for key, value in vars(module).items() if isinstance(value, JITFunction)]
        raise UsageError(f"{path} has no kernel {name!r}; it has {', '.join(found) or 'none'}")
    return kernel


def case_of(fn: JITFunction) -> Any:
    """How the file that has the kernel calls it; None if it does not say."""
    return next((case for case in fn.__globals__.get("CASES", ()) if getattr(case, "kernel", None) is fn), None)


def parse_signature(fn: JITFunction, text: str) -> tuple[dict[str, str], dict[str, Any], dict[tuple[int, ...], Any]]:
    """Types, constants and facts from the text of a signature; see the module docstring."""
    entries = split_entries(text)
    if len(entries) > len(fn.arg_names):
        raise UsageError(f"{fn.__name__} has {len(fn.arg_names)} parameters, the signature has {len(entries)} entries")
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    attrs: dict[tuple[int, ...], Any] = {}
    for index, (param, entry) in enumerate(zip(fn.params, entries, strict=False)):
        found = re.fullmatch(r"(.*):\s*(\d*S?)\s*", entry)
        code, fact = (found[1].strip(), found[2]) if found is not None and found[2] else (entry, "")
        if param.is_constexpr or not is_type_code(code):
            signature[param.name] = "constexpr"
            constants[param.name] = parse_constant(param.name, entry)
        elif fact == "1":
            signature[param.name] = "constexpr"
            constants[param.name] = 1
        elif fact in FACTS:
            signature[param.name] = code
            if known := parse_attr(FACTS[fact]):
                attrs[(index,)] = known
        else:
            words = ":16 (divisible by 16), :1 (equal to 1) and :S (an array of less than 2 GiB)"
            raise UsageError(f"{param.name}: {entry!r}: only {words} are known")
    missing = [param.name for param in fn.params[len(entries) :] if not param.has_default]
    if missing:
        raise UsageError(f"the signature has no entry for {', '.join(missing)}")
    for param in fn.params[len(entries) :]:
        signature[param.name] = "constexpr"
        constants[param.name] = param.default
    return signature, constants, attrs


def split_entries(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    entries, depth, start, quote = [], 0, 0, ""
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in "<[(":
            depth += 1
        elif char in ">])":
            depth -= 1
        elif char == "," and depth == 0:
            entries.append(text[start:position].strip())
            start = position + 1
    if text[start:].strip():
        entries.append(text[start:].strip())
    return entries


def is_type_code(code: str) -> bool:
    """``*fp32``, ``i32``, ``tensordesc<...>``."""
    try:
        tl.str_to_ty(code, None)
    except (KeyError, ValueError, AssertionError, TypeError, AttributeError, IndexError):
        return False
    return True


def parse_constant(name: str, text: str) -> Any:
    """A Python literal, or the name of a dtype."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        pass
    if is_type_code(text):
        return tl.str_to_ty(text, None)
    raise UsageError(f"{name}: {text!r} is neither a type nor a constant")
