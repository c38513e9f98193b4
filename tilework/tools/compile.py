"""`tilework compile FILE.py:KERNEL --signature "..." --target cuda:90 --emit ttir -o DIR`.

KERNEL can be omitted if the file has only one. Compilation can also continue from the file of a later stage: `tilework
compile FILE.llir --target cuda:90 --emit ptx,cubin,sass -o DIR`.

The signature has one entry per parameter, in order: a type code (``*fp32``, ``i32``, ``tensordesc<fp16[64, 64]>``),
with ``:16`` if the value or address is a multiple of 16, ``:S`` (``:16S``) if the array has less than 2 GiB, and ``:1``
if the value is 1; or a constant (``1024``, ``True``, ``"row"``, ``fp16``) for a compile-time parameter. Entries omitted
at the end take their defaults. Without a signature, the first entry of the file's `CASES` for this kernel is used (its
`types`, `constexprs` and `attrs`), as in `examples/`.

With `--aot`, the kernel is compiled for C programs to call; see docs/aot.md. `python -m tilework.tools.compile` does
the same with the options of Triton's `triton.tools.compile`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilework.errors import StageError, TritonError, UsageError
from tilework.language.function import JITFunction
from tilework.tools.cli import read_text

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
    parser.add_argument("-w", "--num-warps", type=int, help="default: 4; with --aot, 1, as in Triton")
    parser.add_argument("--num-ctas", type=int, default=1, help="the number of blocks in a cluster; default: 1")
    parser.add_argument("-ns", "--num-stages", type=int, help="default: the target's; with --aot, 3")
    parser.add_argument("--debug", action="store_true", help="keep device asserts and overflow checks")
    parser.add_argument("--emit", default="ttir", help="stages to write, separated by commas (default: %(default)s)")
    parser.add_argument(
        "-o",
        "--output",
        "--out-path",
        metavar="DIR",
        help="the folder for KERNEL.STAGE files; default: print text, and write other files to the "
        "current folder; with --aot, a folder or the prefix of the files",
    )
    add = parser.add_argument_group(
        "ahead of time", "for C programs: a header, and a C source or an object (docs/aot.md)"
    ).add_argument
    add(
        "--aot",
        action="store_true",
        help="write C sources, headers and objects instead of stages; -s can be given several times",
    )
    add("-n", "--kernel-name", help="the kernel, if the source is only FILE.py")
    add("-g", "--grid", help='three C expressions, for example "(n + 1023) / 1024, 1, 1"')
    add("-on", "--out-name", help="the prefix of the C functions; default: the kernel's name")


def run(args: argparse.Namespace) -> int:
    """Find the source, lower it, write the stages."""
    # lazily: the compiler loads when something is compiled
    from tilework.aot.find_kernels import load_kernel
    from tilework.compiler import ASTSource, IRSource, lower
    from tilework.targets.base import GPUTarget

    num_warps = args.num_warps if args.num_warps is not None else 1 if args.aot else 4
    for option, value in (("--num-warps", num_warps), ("--num-ctas", args.num_ctas)):
        if value < 1 or value & (value - 1):
            raise UsageError(f"{option} must be a power of 2, got {value}")
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
        source: ASTSource | IRSource = ASTSource(fn, *called_as(fn, signature))
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
    for stage, output in texts.items():
        if args.output is None and isinstance(output, str):
            print(output, end="")
            continue
        folder = Path(args.output or ".")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.{stage}").write_bytes(output if isinstance(output, bytes) else output.encode())
        print(folder / f"{name}.{stage}", file=sys.stdout if args.output else sys.stderr)
    for error, which in reasons(missing).items():
        note = f"note: no {', '.join(which)}: " if texts else ""
        print(f"tilework compile: {note}{error}", file=sys.stderr)
    return int(bool(missing))


def compile_ahead(kernel: JITFunction, signatures: Sequence[str], args: argparse.Namespace) -> list[Path]:
    """Write the files; those of several signatures are linked."""
    # lazily: the compiler loads when something is compiled
    from tilework.aot.c_files import CompileArgs, write_kernel
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
    options = {"num_warps": args.num_warps or 1, "num_stages": 3 if args.num_stages is None else args.num_stages}
    made: list[Path] = []
    variants = dict.fromkeys(signatures)
    for signature in variants:
        wanted = CompileArgs("", name, signature, args.grid, args.target, out_name=name, out_path=base, **options)
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


def case_of(fn: JITFunction) -> Any:
    """Return the kernel's entry in the `CASES` of its file; None if there is none."""
    return next((case for case in fn.__globals__.get("CASES", ()) if getattr(case, "kernel", None) is fn), None)


def called_as(fn: JITFunction, signature: str) -> tuple[dict[str, str], dict[str, Any], dict[tuple[int, ...], Any]]:
    """Types, constants and facts of a kernel: by a signature, or else by its case."""
    case = None if signature else case_of(fn)
    return parse_signature(fn, signature) if case is None else (case.types, dict(case.constexprs), case.attrs)


def parse_signature(fn: JITFunction, text: str) -> tuple[dict[str, str], dict[str, Any], dict[tuple[int, ...], Any]]:
    """Types, constants and facts from the text of a signature; see the module docstring."""
    from tilework.aot import signature  # lazily: the compiler loads when something is compiled

    return signature.called_with(signature.parse_signature(fn, text, HINTS))


if __name__ == "__main__":
    from tilework.aot.c_files import main  # lazily: Triton's program, which `tilework compile` does not need

    main()
