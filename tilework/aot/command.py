"""What `tilework compile --aot` does: the files of each signature, and with several of them the function that chooses.

tilework compile --aot add.py:add -s "*fp32:16, i32:16, 1024" -s "*fp32, i32, 1024" -g "(n + 1023) / 1024, 1, 1" --target cpu -o build/
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from tilework.language.function import JITFunction


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options that only `--aot` has."""
    group = parser.add_argument_group(
        "ahead of time", "for C programs: a header, and a C source or an object (docs/aot.md)"
    )
    group.add_argument(
        "--aot", action="store_true", help="write these instead of stages; -s may be given several times"
    )
    group.add_argument("-n", "--kernel-name", help="the kernel, if the source is only FILE.py")
    group.add_argument("-g", "--grid", help='three C expressions, for example "(n + 1023) / 1024, 1, 1"')
    group.add_argument("-on", "--out-name", help="how the C functions begin; default: the kernel's name")


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
