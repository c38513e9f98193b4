"""`tilework compile FILE.py:KERNEL --signature "..." --target cuda:90 --emit ttir -o DIR`.

KERNEL may be left out where the file has one. A file of a later stage goes on from there: `tilework compile FILE.llir
--target cuda:90 --emit ptx,cubin,sass -o DIR`.

The signature has one entry per parameter, in order: a type code (``*fp32``, ``i32``, ``tensordesc<fp16[64, 64]>``),
with ``:16`` if the value or address is a multiple of 16, ``:S`` (``:16S``) if the array has less than 2 GiB, and ``:1``
if the value is 1; or a constant (``1024``, ``True``, ``"row"``, ``fp16``) for a compile-time parameter. Entries left
out at the end take their defaults. Without a signature, the first of the file's `CASES` with this kernel says how it is
called, as in `examples/`: its `types`, `constexprs` and `attrs`.

With `--aot` a kernel becomes something that C programs call, see docs/aot.md. `python -m tilework.tools.compile` is
that under the name and with the options of Triton's `triton.tools.compile`.
"""

import argparse
import importlib.util
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilework.errors import StageError, TritonError, did_you_mean
from tilework.language.function import JITFunction
from tilework.runtime.launch.python.jit import KernelInterface
from tilework.runtime.tuning.heuristics import jit_function
from tilework.tools.messages import UsageError, plain, read_text

MISTAKES, ERROR = (TritonError, AssertionError, ValueError, TypeError, OSError, RuntimeError), ""
HINTS = ("1", "16", "S", "16S")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework compile`."""
    parser.add_argument(
        "source",
        metavar="FILE.py:KERNEL|FILE.STAGE",
        help="a kernel in a Python file, or the file of a stage (.ttir, .ttgir, .ttcir, .llir, .ptx)",
    )
    parser.add_argument(
        "-s", "--signature", action="append", help='types and constants, for example "*fp32:16, i32:16, 1024"'
    )
    parser.add_argument(
        "-t", "--target", help="cuda:80, cuda:90, hip:gfx942, cpu (default: cuda:90; with --aot the current device)"
    )
    parser.add_argument("-w", "--num-warps", type=int, help="default: 4; with --aot 1, as in Triton")
    parser.add_argument("--num-ctas", type=int, default=1)
    parser.add_argument("-ns", "--num-stages", type=int, help="default: that of the target; with --aot 3")
    parser.add_argument("--debug", action="store_true", help="keep device asserts and overflow checks")
    parser.add_argument("--emit", default="ttir", help="stages to write, separated by commas (default: %(default)s)")
    parser.add_argument(
        "-o",
        "--output",
        "--out-path",
        metavar="DIR",
        help="write KERNEL.STAGE files there; default: print, what is no text goes to .; with --aot a folder, or how"
        " the files begin",
    )
    add = parser.add_argument_group(
        "ahead of time", "for C programs: a header, and a C source or an object (docs/aot.md)"
    ).add_argument
    add("--aot", action="store_true", help="write these instead of stages; -s may be given several times")
    add("-n", "--kernel-name", help="the kernel, if the source is only FILE.py")
    add("-g", "--grid", help='three C expressions, for example "(n + 1023) / 1024, 1, 1"')
    add("-on", "--out-name", help="how the C functions begin; default: the kernel's name")


def run(args: argparse.Namespace) -> int:
    """Find the source, lower it, write the stages."""
    from tilework.compiler import ASTSource, IRSource, lower  # lazily: the compiler loads when something is compiled
    from tilework.targets.base import GPUTarget

    num_warps = args.num_warps if args.num_warps is not None else 1 if args.aot else 4
    for option, number in (("--num-warps", num_warps), ("--num-ctas", args.num_ctas)):
        if number < 1 or number & (number - 1):
            raise UsageError(f"{option} must be a power of 2, got {number}")
    if args.num_stages is not None and args.num_stages < 0:
        raise UsageError(f"--num-stages must not be negative, got {args.num_stages}")
    path, _, kernel = (
        args.source.rpartition(":") if ".py:" in args.source else (args.source, "", args.kernel_name or "")
    )
    signature = (args.signature or [""])[-1]
    if args.aot:
        for made in compile_ahead(load_kernel(Path(path), kernel), args.signature or [""], args):
            print(made)
        return 0
    if args.output is not None and Path(args.output).exists() and not Path(args.output).is_dir():
        raise UsageError(f"{args.output} is no folder: -o names the folder for the files")
    target = GPUTarget.parse(args.target or "cuda:90")
    if path.endswith(".py"):
        fn = load_kernel(Path(path), kernel)
        case = None if signature else case_of(fn)
        called = parse_signature(fn, signature) if case is None else (case.types, case.constexprs, case.attrs)
        source: ASTSource | IRSource = ASTSource(fn, *called)
        name = kernel or fn.__name__
    else:
        read_text(path)
        source, name = IRSource(Path(path)), Path(path).stem
    stages = [stage.strip() for stage in args.emit.split(",") if stage.strip()]
    if not stages:
        raise UsageError("--emit names no stage; for example ttir, ptx or asm")
    settings = {
        "num_warps": num_warps,
        "num_ctas": args.num_ctas,
        "debug": args.debug or None,
        **({} if args.num_stages is None else {"num_stages": args.num_stages}),
    }
    missing: dict[str, StageError] = {}
    texts = lower(source, target, stages, _missing=missing, **settings)
    for stage, product in texts.items():
        if args.output is None and isinstance(product, str):
            print(product, end="")
            continue
        folder = Path(args.output or ".")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.{stage}").write_bytes(product if isinstance(product, bytes) else product.encode())
        print(folder / f"{name}.{stage}", file=sys.stdout if args.output else sys.stderr)
    for error, which in reasons(missing).items():
        note = f"note: no {', '.join(which)}: " if texts else ""
        print(f"tilework compile: {note}{error}", file=sys.stderr)
    return int(bool(missing))


def compile_ahead(kernel: JITFunction, signatures: Sequence[str], args: argparse.Namespace) -> list[Path]:
    """Write the files; those of several signatures are linked."""
    # lazily: the compiler loads when something is compiled
    from tilework.aot.compile_kernel import CompileArgs, write_kernel
    from tilework.aot.link import link_headers

    if not args.grid:
        raise ValueError(
            '--aot needs the launch grid: -g "(n + 1023) / 1024, 1, 1", three C expressions over the arguments'
        )
    if not any(signatures):
        raise ValueError('--aot needs a signature: -s "*fp32:16, i32, 1024", an entry for each parameter')
    if args.num_ctas != 1:
        raise ValueError("--aot makes kernels without clusters: leave --num-ctas at 1")
    name = args.out_name or kernel.__name__
    base = Path(args.output) if args.output else Path(name)
    if base.is_dir() or str(args.output or "").endswith("/"):
        base.mkdir(parents=True, exist_ok=True)
        base /= name
    settings = {"debug": True} if args.debug else {}
    numbers = {"num_warps": args.num_warps or 1, "num_stages": 3 if args.num_stages is None else args.num_stages}
    made: list[Path] = []
    variants = dict.fromkeys(signatures)
    for signature in variants:
        wanted = CompileArgs("", name, signature, args.grid, args.target, out_name=name, out_path=base, **numbers)
        made += write_kernel(kernel, wanted, settings)[1]
    if len(variants) > 1:
        made += link_headers([path for path in made if path.suffix == ".h"], base)
    return made


def reasons(missing: Mapping[str, StageError]) -> dict[str, list[str]]:
    """Group the missing stages by the reason."""
    found: dict[str, list[str]] = {}
    for stage, error in missing.items():
        found.setdefault(str(error), []).append(stage)
    return found


def load_kernel(path: Path, name: str) -> JITFunction:
    """Import the file and take the kernel out of it, or its only one; decorators around the jit function are looked
    through."""
    module = load_module(path)
    own = {
        key: fn
        for key, value in vars(module).items()
        if isinstance(value, JITFunction | KernelInterface)
        and (fn := jit_function(value)) is not None
        and fn.__module__ == module.__name__
    }
    if not name and len(own) == 1:
        (kernel,) = own.values()
        return kernel
    kernel = module
    for part in name.split(".") if name else ():
        kernel = getattr(kernel, part, None)
    if (found := jit_function(kernel)) is not None:
        return found
    if not own:
        raise UsageError(f"{path} has no kernels: those are functions under @tilework.jit")
    if not name:
        raise UsageError(f"say which kernel: {' or '.join(f'{path}:{key}' for key in own)}")
    guess = did_you_mean(name, own) or f"; it has {', '.join(own)}"
    raise UsageError(f"{path} has no kernel {name!r}{guess}")


def load_module(path: Path) -> Any:
    """Import the file; an error of its code is a UsageError with the line."""
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
    except SystemExit as error:
        text = f"{path} ends the program while it is imported (line {line_in(path, error)}: exit code {error.code})"
        raise UsageError(f'{text}; put that under `if __name__ == "__main__":`') from error
    except Exception as error:
        line = line_in(path, error)
        where = f" (line {line})" if line is not None else ""
        raise UsageError(f"{path} cannot be imported{where}: {type(error).__name__}: {plain(error)}") from error
    finally:
        sys.path.pop(0)
    return module


def line_in(path: Path, error: BaseException) -> int | None:
    """The line of the file that an exception comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if Path(frame.filename) == path.resolve()), None)


def case_of(fn: JITFunction) -> Any:
    """Return the kernel's entry in the `CASES` of its file; None if there is none."""
    return next((case for case in fn.__globals__.get("CASES", ()) if getattr(case, "kernel", None) is fn), None)


def parse_signature(fn: JITFunction, text: str) -> tuple[dict[str, str], dict[str, Any], dict[tuple[int, ...], Any]]:
    """Types, constants and facts from the text of a signature; see the module docstring."""
    from tilework.aot import signature  # lazily: the compiler loads when something is compiled

    return signature.called_with(signature.parse_signature(fn, text, HINTS))


if __name__ == "__main__":
    from tilework.aot.compile_kernel import (
        main,  # lazily: this name is Triton's program, which `tilework compile` does not need
    )

    main()
