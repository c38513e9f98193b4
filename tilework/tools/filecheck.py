"""FileCheck tests of kernels: the expected IR is in comments of the kernel itself.

    @filecheck_test
    @triton.jit
    def test_add():
        # CHECK-LABEL: test_add
        # CHECK: tt.make_range {end = 8 : i32, start = 0 : i32}
        tl.arange(0, 8) + 1

`run_parser` stops after the frontend, so a test sees the IR that the user's code means, before any pass. It needs the
package `filecheck` (``pip install tilework[test]``).
"""

import functools
import inspect
import io
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilework.frontend.generator import compile_to_ttir
from tilework.ir.printer import print_module
from tilework.language import core as tl
from tilework.runtime.compile.sources import frontend_options
from tilework.runtime.launch.python.specialization import Specialization
from tilework.runtime.launch.python.specialize import make_binder
from tilework.targets.base import GPUTarget, find_backend

STUB_TARGET = stub_target = GPUTarget("cuda", 100, 32)


class MatchError(ValueError):
    """The output does not match a CHECK line."""

    def __init__(self, message: str, module_str: str) -> None:
        super().__init__(message)
        self.module_str = module_str

    def __str__(self) -> str:
        return f"{super().__str__()}\n\nmodule:\n{self.module_str}"


@dataclass(frozen=True)
class ParsedKernel:
    """The IR of a kernel before any pass."""

    module: Any

    def __str__(self) -> str:
        return print_module(self.module, debuginfo=True)

    def str_nodebug(self) -> str:
        """The text without locations, with numbered values."""
        return print_module(self.module, nameloc_prefix=False)


def run_parser(
    kernel_fn: Any,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    target: GPUTarget = STUB_TARGET,
) -> ParsedKernel:
    """The IR of a kernel for these arguments and options, as the frontend makes it; overflow checks are off."""
    bind = make_binder(kernel_fn, option_names=find_backend(target).option_names())
    values, specs, _, options = bind(*args, **(kwargs or {}))
    found = Specialization.of(kernel_fn, values, specs, {**options, "sanitize_overflow": False})
    constants = {path: tl._unwrap_if_constexpr(value) for path, value in found.constants.items()}
    settings = frontend_options(target, found.options)
    return ParsedKernel(compile_to_ttir(kernel_fn, found.signature, constants, found.attrs, settings))


def run_filecheck(name: str, module_str: str, check_template: str) -> None:
    """Compare a text with the CHECK lines of another; `MatchError` if they disagree."""
    from filecheck.finput import FInput  # lazily: an optional dependency
    from filecheck.matcher import Matcher
    from filecheck.options import Options
    from filecheck.parser import Parser

    report = io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder, f"{name}.checks")
        template.write_text(check_template)
        with redirect_stdout(report), redirect_stderr(report):
            options = Options(str(template))
            matcher = Matcher(options, FInput(name, module_str), Parser.from_opts(options))
            matcher.stderr = report
            failed = matcher.run()
    if failed:
        raise MatchError(report.getvalue(), module_str)


def run_filecheck_test(kernel_fn: Any) -> None:
    """Compile a kernel without parameters and compare it with the CHECK comments in its source."""
    if not hasattr(kernel_fn, "raw_src"):
        raise TypeError(f"filecheck tests are @jit functions, not {type(kernel_fn).__name__}")
    checks = "".join(kernel_fn.raw_src)
    if "CHECK" not in checks:
        raise ValueError(f"{kernel_fn.__name__} has no CHECK line")
    run_filecheck("placeholder", run_parser(kernel_fn).str_nodebug(), checks)


def filecheck_test(fn: Any) -> Callable[..., None]:
    """A decorator that makes a pytest function of a kernel with CHECK comments."""

    @functools.wraps(fn.fn)
    def test_fn(*args: Any, **kwargs: Any) -> None:
        run_filecheck_test(fn)

    test_fn.__signature__ = inspect.Signature()  # pyright: ignore[reportAttributeAccessIssue]  # no fixtures
    return test_fn
