"""Run passes on a file of TTIR and print the result.

    tilework opt kernel.ttir -p 'canonicalize,triton-loop-unroll,cse'
    tilework opt kernel.ttir -canonicalize --triton-combine --print-after-all
    tilework opt kernel.ttir -p canonicalize,cse --check-each --seed 7 --given K=256

Passes run in the order in which they are named: by `-p`, by `-pass-pipeline=builtin.module(...)`, or as separate
options (one or two dashes, `--name="option=value"`). An error prints one line to stderr, with file, line and column,
and sets exit code 1. With MLIR_ENABLE_DIAGNOSTICS=remarks, the remarks of passes are printed in the same way. If the
passes include `convert-triton-gpu-to-llvm{compute-capability=90}` or `convert-triton-amdgpu-to-llvm{arch=gfx942}`, as
in reproducers of that stage (including Triton's), LLVM IR is printed; writing it includes the other steps of that
stage.

With `--verify-diagnostics`, the `expected-error` comments of a test file must match the diagnostics:

    // expected-error @below {{only matching widths}}
    %0 = tt.bitcast %a : tensor<128xf32> -> tensor<128xi16>

The comment contains a substring of the message. `@below`, `@above`, `@+2` and `@-1` select another line; without them,
the diagnostic is on the line of the comment. `expected-remark`, `expected-warning` and `expected-note` work in the same
way.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp, UnregisteredOp
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import DiagnosticException

from tilework.errors import PassError, StageError, UsageError
from tilework.inspect.check_each import check_each
from tilework.ir.legacy.spellings import OPS, modern_name
from tilework.ir.locations import file_loc, location_text, unknown
from tilework.ir.module_facts import chosen_target
from tilework.ir.parser import IRParser, IRSyntaxError, parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import first_problem
from tilework.process.plugins import find
from tilework.targets.observe import wanted
from tilework.tools.cli import read_text
from tilework.transforms.passes import Pass
from tilework.transforms.registry import PASSES, BadPassOption, UnknownPass, get_pass, make_pass, pipeline_items
from tilework.transforms.ttg.passes_for_tests import alignment_remarks

EXPECTATION = re.compile(
    r"//\s*expected-(error|remark|warning|note)(-re)?\s*(?:@(below|above|unknown|[+-]\d+))?\s*\{\{(.*?)\}\}"
)


@dataclass(frozen=True)
class Position:
    """A position in a text: `line` and `column` count from 1, 0 if unknown."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True)
class Diagnostic:
    """One message about one position."""

    severity: str
    position: Position
    message: str

    def __str__(self) -> str:
        return f"{self.position}: {self.severity}: {self.message}"


@dataclass(frozen=True)
class Expectation:
    """An expectation in a comment of a test file; `line` 0 is an unknown position."""

    severity: str
    line: int
    text: str
    is_regex: bool
    anywhere: bool

    def accepts(self, diagnostic: Diagnostic) -> bool:
        if self.severity != diagnostic.severity or not (self.anywhere or self.line == diagnostic.position.line):
            return False
        if self.is_regex:
            return re.search(self.text, diagnostic.message) is not None
        return self.text in diagnostic.message


def expectations(text: str) -> list[Expectation]:
    """Every expectation in the comments of `text`; consecutive comment lines above an op have one target line."""
    lines = text.split("\n")
    found: list[Expectation] = []
    for index, line in enumerate(lines, start=1):
        for severity, is_regex, offset, text in EXPECTATION.findall(line):
            found.append(Expectation(severity, target(lines, index, offset), text, bool(is_regex), offset == "unknown"))
    return found


def target(lines: Sequence[str], line: int, offset: str) -> int:
    """The target line of an expectation on line `line`; `@below` skips further expectations."""
    if offset == "below":
        line += 1
        while line < len(lines) and EXPECTATION.search(lines[line - 1]):
            line += 1
        return line
    if offset == "above":
        return line - 1
    return line + int(offset) if offset and offset != "unknown" else line


def unmet(text: str, file: str, diagnostics: Sequence[Diagnostic], only_expected: bool = False) -> list[Diagnostic]:
    """Return the mismatches: expected and not produced, or produced and not expected (errors only, with
    `only_expected`)."""
    open_ends = expectations(text)
    wrong: list[Diagnostic] = []
    for diagnostic in diagnostics:
        matching = next((e for e in open_ends if e.accepts(diagnostic)), None)
        if matching is not None:
            open_ends.remove(matching)
        elif not only_expected or diagnostic.severity == "error":
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            wrong.append(Diagnostic("error", diagnostic.position, message))
    for missing in open_ends:
        message = f'expected {missing.severity} "{missing.text}" was not produced'
        wrong.append(Diagnostic("error", Position(file, missing.line, 1), message))
    return wrong


SPLIT = re.compile(r"^// -----.*$", re.MULTILINE)
REPRODUCED = re.compile(r'^ *pipeline: "([^"]*)"', re.MULTILINE)
TO_LLVM = {"convert-triton-gpu-to-llvm": "cuda", "convert-triton-amdgpu-to-llvm": "hip"}  # by vendor
TO_LLVM_OPTIONS = ("ptx-version", "ftz")  # beside the target; decided when LLVM text is assembled, and by function
LLVM_STEPS = frozenset({  # what `emit_module` of a target does at once
    "convert-arith-to-llvm",
    "convert-builtin-func-to-llvm",
    "convert-cf-to-llvm",
    "convert-index-to-llvm",
    "convert-nv-gpu-to-llvm",
    "convert-nvvm-to-llvm",
    "convert-scf-to-cf",
    "convert-warp-specialize-to-llvm",
    "enable-line-info",
    "gluon-inline",
    "triton-amdgpu-convert-warp-specialize-to-llvm",
    "triton-amdgpu-lower-insert-instruction-sched-hints",
    *TO_LLVM,
})  # fmt: skip
MISTAKES = (OSError,)
IGNORED = ("--mlir-disable-threading", "-mlir-disable-threading", "-reconcile-unrealized-casts")


def normalise(argv: Sequence[str]) -> list[str]:
    """Options argparse cannot describe, in a form it can: passes named as options become `-p` where they are."""
    result: list[str] = []
    for arg in argv:
        name, has_value, value = arg.lstrip("-").partition("=")
        is_option = arg.startswith("-") and len(arg) > 1
        if is_option and (name in PASSES or name in LLVM_STEPS):
            result += ["-p", f"{name}{{{value}}}" if value else name]
        elif is_option and name == "pass-pipeline":
            result += ["-p", value] if has_value else ["-p"]
        elif is_option and f"-{name}" in IGNORED:
            continue
        elif is_option and name == "verify-diagnostics":
            result.append(f"--verify-diagnostics={value or 'all'}")
        elif is_option and arg.startswith("-") and not arg.startswith("--") and len(name) > 1 and arg[1] not in "po":
            result.append(f"-{arg}")
        else:
            result.append(arg)
    return result


def more_options() -> list[str]:
    """The passes, as options."""
    return [f"--{name}" for name in PASSES]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework opt`."""
    add = parser.add_argument
    add("file", nargs="?", default="-", help="the file to read, or - for standard input")
    add("-p", dest="pipeline", action="append", default=[], metavar="PASS,PASS{o=v}", help="passes to run")
    add("--run-reproducer", action="store_true", help="run the passes that a reproducer lists after its module")
    add("-o", dest="output", default="-", metavar="FILE", help="the file to write; default: standard output")
    add("--list-passes", action="store_true", help="list the passes and exit")
    add("--print-before-all", action="store_true", help="print the module to stderr before each pass")
    add("--print-after-all", action="store_true", help="print the module to stderr after each pass")
    add("--verify-each", action="store_true", help="verify the module after each pass")
    add("--check-each", action="store_true", help="evaluate each function before and after each pass, and compare")
    add("--seed", type=int, default=0, metavar="N", help="the seed for the inputs of --check-each")
    add(
        "--given",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of an argument for --check-each, by name",
    )
    add("--split-input-file", action="store_true", help="treat the sections between `// -----` lines as separate files")
    add(
        "--verify-diagnostics",
        default="",
        metavar="all|only-expected",
        help="compare diagnostics with expected-error comments",
    )
    add("--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--mlir-use-nameloc-as-prefix", action="store_true", help="name values after their source names")
    add("--allow-unregistered-dialect", action="store_true", help="accept unknown ops in the generic form")


@dataclass
class Job:
    """One section of the input on its way through the passes."""

    args: argparse.Namespace
    file: str
    passes: Sequence[Pass]
    given: dict[str, int | float] = field(default_factory=dict)
    target: str | None = None  # of the LLVM text that is wanted; "": that of the module
    diagnostics: list[Diagnostic] = field(default_factory=list)
    lines: dict[Operation, int] = field(default_factory=dict)

    def error(self, position: Position, message: str) -> None:
        self.diagnostics.append(Diagnostic("error", position, message))


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code."""
    if args.list_passes:
        print("\n".join(f"{name:<45} {summary(name)}" for name in sorted(PASSES)))
        return 0
    try:
        text = sys.stdin.read() if args.file == "-" else read_text(args.file)
        pipelines = [*args.pipeline, *(REPRODUCED.findall(text) if args.run_reproducer else ())]
        items = [item for pipeline in pipelines for item in pipeline_items(pipeline)]
        passes, target = passes_and_target(items)
        given = dict(given_value(entry) for entry in args.given)
        if args.seed < 0:
            raise ValueError(f"--seed {args.seed}: expected an integer of at least 0")
    except (ValueError, KeyError, DiagnosticException) as error:
        raise UsageError(first_line(error)) from None
    file = "<stdin>" if args.file == "-" else args.file
    outputs: list[str] = []
    failed = False
    for section in sections(text) if args.split_input_file else [text]:
        job = Job(args, file, passes, given, target)
        output = process(job, section)
        problems = job.diagnostics
        if args.verify_diagnostics:
            problems = unmet(section, file, problems, args.verify_diagnostics == "only-expected")
        for problem in problems:
            print(problem, file=sys.stderr)
            failed = failed or problem.severity == "error"
        if output is not None:
            outputs.append(output)
    emit("// -----\n".join(outputs), args.output)
    return int(failed)


def passes_and_target(items: Sequence[tuple[str, str]]) -> tuple[list[Pass], str | None]:
    """Return the passes before the one that makes LLVM, and its target; without such a pass all passes, and None."""
    last = next((index for index, (name, _) in enumerate(items) if name in TO_LLVM), None)
    if last is None:
        return [make_pass(*item) for item in items], None
    name, options = items[last]
    target = ""
    for option in options.split():
        key, _, value = option.partition("=")
        if (spelling := find("tilework.target_options", key)) is not None:
            target = spelling.load()(value)
        elif key not in TO_LLVM_OPTIONS:
            raise BadPassOption(name, key, "a target")
    for other, _ in items[last:]:
        if other not in LLVM_STEPS and other not in PASSES:
            raise UnknownPass(other)
    return [make_pass(*item) for item in items[:last] if item[0] not in LLVM_STEPS], target


def emit(text: str, path: str) -> None:
    if path == "-":
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="utf-8")


def sections(text: str) -> list[str]:
    """The parts between `// -----` lines, each preceded by empty lines so that line numbers are those of the file."""
    parts: list[str] = []
    start = 0
    for mark in [*SPLIT.finditer(text), None]:
        end = len(text) if mark is None else mark.start()
        parts.append("\n" * text.count("\n", 0, start) + text[start:end])
        start = end if mark is None else mark.end()
    return parts


def process(job: Job, text: str) -> str | None:
    """Parse, verify and transform one section; its text, or None after an error."""
    module = parse(job, text)
    if module is None:
        return None
    job.lines = op_lines(module, text)
    if job.args.verify_diagnostics:
        locate(job)
    if not verify(job, module):
        return None
    if job.args.check_each and not check(job, module):
        return None
    diagnostics = wanted()
    with diagnostics.listening() if diagnostics is not None else nullcontext([]) as heard:
        is_done = all(apply(job, module, one) for one in job.passes)
    for remark in diagnostics.shown(heard) if diagnostics is not None else ():
        where = named_position(job, remark.location)
        job.diagnostics.append(Diagnostic(remark.severity, where, remark.text))
        job.diagnostics += [Diagnostic("note", where, note) for note in remark.notes]
    if not is_done:
        return None
    return print_text(job, module) if job.target is None else llvm_text(job, module, job.target)


def llvm_text(job: Job, module: ModuleOp, name: str) -> str | None:
    """Return the LLVM text for the target `name`, or that of the module."""
    try:
        target = chosen_target(module, name)
        if target.backend == "hip":
            from tilework.targets.amd.lower.emit import emit_module as emit_amd  # lazily: only for LLVM text

            return emit_amd(module, target)
        from tilework.targets.nvidia.lower.emit import emit_module  # lazily: only for LLVM text

        return emit_module(module, int(target.arch))
    except (PassError, StageError, DiagnosticException) as error:
        report_failure(job, error)
    return None


def locate(job: Job) -> None:
    """Give ops without a location that of the text, so that passes can name it."""
    for op, line in job.lines.items():
        if op.location == unknown:
            op.location = file_loc(job.file, line, 1)


def parse(job: Job, text: str) -> ModuleOp | None:
    try:
        return parse_module(text, job.file, LenientParser if job.args.allow_unregistered_dialect else IRParser)
    except IRSyntaxError as error:
        job.error(Position(job.file, error.line, error.column), first_line(error.message))
    return None


class LenientParser(IRParser):
    """A parser that keeps ops it does not know, written in the generic form."""

    def _get_op_by_name(self, name: str) -> type[Operation]:
        stack = self._parser_state.dialect_stack
        spellings = (name, modern_name(name), OPS.get(name, name))
        if any(self.ctx.get_optional_op(spelling, dialect_stack=stack) for spelling in spellings):
            return super()._get_op_by_name(name)
        position = max(self.source.rfind(name, 0, self.pos), 0)
        if self.source[position - 1 : position] != '"':
            known = f"the operation '{name}' is not known"
            self.raise_error(f'{known}: only its generic form, "{name}"(...) : (...) -> ..., can be read', position)
        return UnregisteredOp.with_name(name)


def verify(job: Job, module: ModuleOp) -> bool:
    if (problem := first_problem(module)) is None:
        return True
    op, message = problem
    job.error(position_of(job, op), f"'{op.name}' op {first_line(message)}")
    return False


def check(job: Job, module: ModuleOp) -> bool:
    try:
        report = check_each(module, job.passes, job.args.seed, given=job.given)
    except (PassError, DiagnosticException) as error:
        report_failure(job, error)
        return False
    if str(report):
        print(report, file=sys.stderr)
    if report.mismatch is not None:
        job.error(Position(job.file), str(report.mismatch))
    return report.ok


def given_value(text: str) -> tuple[str, int | float]:
    """``K=256`` -> ("K", 256)."""
    name, _, value = text.partition("=")
    try:
        return name, int(value, 0)
    except ValueError:
        pass
    try:
        return name, float(value)
    except ValueError:
        raise ValueError(f"--given {text}: expected NAME=NUMBER") from None


def apply(job: Job, module: ModuleOp, one: Pass) -> bool:
    """Run one pass, with the requested printing and verifying."""
    if job.args.print_before_all:
        print(f"// -----// IR Dump Before {one.name} //----- //\n{print_text(job, module)}", file=sys.stderr)
    if job.args.verify_diagnostics and one.name == "test-print-alignment":
        for op, message in alignment_remarks(module):
            job.diagnostics.append(Diagnostic("remark", position_of(job, op), message))
        return True
    try:
        one.run(module)
    except (PassError, DiagnosticException) as error:
        report_failure(job, error)
        return False
    if job.args.print_after_all:
        print(f"// -----// IR Dump After {one.name} //----- //\n{print_text(job, module)}", file=sys.stderr)
    return verify(job, module) if job.args.verify_each else True


def report_failure(job: Job, error: PassError | StageError | DiagnosticException) -> None:
    """Report the failure of a pass, at the op that it names."""
    if isinstance(error, PassError):
        job.error(named_position(job, error.loc), error.message)
    else:
        job.error(Position(job.file), first_line(error))


def print_text(job: Job, module: ModuleOp) -> str:
    text = print_module(
        module, debuginfo=job.args.mlir_print_debuginfo, nameloc_prefix=job.args.mlir_use_nameloc_as_prefix
    )
    return text if text.endswith("\n") else text + "\n"


def position_of(job: Job, op: Operation) -> Position:
    """The position of `op` in the file; of an op that a pass created, that of its source, if known."""
    line = job.lines.get(op)
    return named_position(job, op.location) if line is None else Position(job.file, line, 1)


def named_position(job: Job, location: object) -> Position:
    """The position that a location attribute names; the whole file when it names none."""
    text = location_text(location, innermost=True) if isinstance(location, Attribute) else None
    file, line, column = (text or f"{job.file}:0:0").rsplit(":", 2)
    return Position(file, int(line), int(column))


def op_lines(module: ModuleOp, text: str) -> dict[Operation, int]:
    """The line of each op: its n-th appearance in the module is the n-th appearance of its name in the text."""
    code = re.sub(r"//[^\n]*", "", text)
    mentions: dict[str, list[int]] = {}
    line, last = 1, 0
    for match in re.finditer(r'(?<![\w.%#!@"])"?([A-Za-z_][\w]*\.[\w.]+)', code):
        line += code.count("\n", last, match.start())
        last = match.start()
        mentions.setdefault(match[1], []).append(line)
    seen: dict[str, int] = {}
    lines: dict[Operation, int] = {}
    for op in module.walk():
        index = seen.get(op.name, 0)
        seen[op.name] = index + 1
        if index < len(found := mentions.get(op.name, [])):
            lines[op] = found[index]
    return lines


def summary(name: str) -> str:
    """The first line of the module docstring of a pass."""
    module = sys.modules[get_pass(name).__module__]
    return first_line(module.__doc__ or "")


def first_line(message: object) -> str:
    """A message without the IR that xDSL appends to it."""
    lines = [line.strip() for line in str(message).strip().splitlines() if line.strip()]
    return lines[0].removeprefix("Operation does not verify: ") if lines else ""
