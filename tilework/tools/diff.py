"""Compare two compilations: which stages differ, after which pass the differences begin, and registers, memory and
limits side by side.

    tilework diff kernels.py:old kernels.py:new --signature "*fp32:16, i32, 1024"            two kernels
    tilework diff kernels.py:matmul --a-options num_warps=4 --b-options num_warps=8,BLOCK=128    two configurations
    tilework diff kernels.py:matmul --a-target cuda:80 --b-target cuda:90                    two targets
    tilework diff before.json after.json --kernel matmul                         two compilers, or yesterday and today
    tilework diff kernels.py:matmul --b-options num_stages=1 --output diff.html              a page for a browser

Each side is a kernel in a file, the file of a stage, or a page or .json file saved by `tilework explore -o`. If B is
omitted, it is A with other options. Options are compile options or constants of the kernel. `--show TTGIR` prints the
complete difference of a stage or a pass. The exit code is 0 if all stages are the same, 1 if they differ, and 2 if
something went wrong.
"""

import argparse
import ast
import json
import webbrowser
from pathlib import Path
from typing import Any

from tilework.errors import UsageError, did_you_mean
from tilework.tools.compile import MISTAKES

__all__ = ["MISTAKES", "add_arguments", "run"]
FAILURE = 2
SAVED = (".html", ".json")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework diff`."""
    add = parser.add_argument
    add("a", metavar="A", help="FILE.py:KERNEL, the file of a stage, or a file saved by `tilework explore -o`")
    add("b", metavar="B", nargs="?", help="the other side; default: A with other options")
    for side in ("", "a-", "b-"):
        of = f"for {side[0].upper()} only" if side else "for both"
        add(f"--{side}options", default="", metavar="NAME=VALUE,...", help=f"{of}: num_warps=8,BLOCK=128")
        add(f"--{side}target", help=f"{of}: cuda:90, hip:gfx942, cpu{'' if side else ' (default: cuda:90)'}")
        add(f"--{side}signature", default="", help=f"{of}: types and constants, as `tilework compile` takes them")
    add("--kernel", metavar="NAME", help="the kernel of a saved page; not needed if the page has only one")
    add(
        "--counters",
        action="store_true",
        help="run kernels of files with CASES in the emulator, and compare the counters",
    )
    add("--show", metavar="STAGE|PASS", help="print the complete difference of one stage, or after one pass")
    add("-o", "--output", metavar="FILE.html", help="also write a page")
    add("--open", action="store_true", help="open the page in a browser")


def run(args: argparse.Namespace) -> int:
    """Carry out `tilework diff`."""
    # lazily: the compiler loads when something is compiled
    from tilework.inspect.explorer.compare import compare, comparison_text, data_of, unified
    from tilework.inspect.explorer.document import build
    from tilework.inspect.page import COMPARISON, page

    common = options_of(args.options)
    a_options, b_options = common | options_of(args.a_options), common | options_of(args.b_options)
    sides = side_of(args, "a", args.a, a_options), side_of(args, "b", args.b or args.a, b_options)
    found = compare(*(side if isinstance(side, dict) else build([side]) for side in sides))
    if args.show:
        texts = {text.name.partition("{")[0].lower(): text for text in (*found.steps, *found.stages)}
        if (wanted := args.show.lower()) not in texts:
            raise UsageError(f"no stage or pass {args.show!r}{did_you_mean(wanted, texts)}")
        print(unified(texts[wanted]) or f"{args.show}: the same")
    else:
        print(comparison_text(found), end="")
    if args.output or args.open:
        path = Path(args.output or "tilework-diff.html")
        path.write_text(
            page(json.dumps(data_of(found), separators=(",", ":")), "a and b", COMPARISON), encoding="utf-8"
        )
        print(f"{path}: the page")
        if args.open:
            webbrowser.open(path.resolve().as_uri())
    return int(bool(found.only) or any(stage.edits for stage in found.stages if stage.name != "source"))


def side_of(args: argparse.Namespace, side: str, named: str, settings: dict[str, Any]) -> Any:
    """Return one side of the comparison: saved data with one kernel, or a request to compile."""
    from tilework.inspect.explorer.document import read, targets_of  # lazily: as in `run`
    from tilework.tools.explore import named_request

    if named.endswith(SAVED):
        document = read(Path(named))
        return {**document, "kernels": [chosen(document["kernels"], args.kernel, named)]}
    targets = targets_of(getattr(args, f"{side}_target") or args.target or "cuda:90")
    if len(targets) != 1:
        raise UsageError("one target for each side: --a-target and --b-target")
    signature = getattr(args, f"{side}_signature") or args.signature
    return named_request(named, signature, targets[0], settings, args.counters)


def chosen(kernels: list[dict[str, Any]], name: str | None, file: str) -> dict[str, Any]:
    some = [kernel for kernel in kernels if name in (None, kernel["name"])]
    if not some:
        raise UsageError(f"{file} has no kernel {name!r}; it has {', '.join(kernel['name'] for kernel in kernels)}")
    if len({kernel["name"] for kernel in some}) > 1:
        raise UsageError(
            f"{file} has several kernels: choose with --kernel one of {', '.join(kernel['name'] for kernel in some)}"
        )
    return some[0]


def options_of(text: str) -> dict[str, Any]:
    """``num_warps=8,BLOCK=128``; blanks separate, too."""
    found: dict[str, Any] = {}
    for part in text.replace(",", " ").split():
        name, equals, value = part.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"{part!r} is no option: write num_warps=8,BLOCK=128")
        try:
            found[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            found[name] = value
    return found
