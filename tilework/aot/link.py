"""One C interface for kernels that were compiled ahead of time: `python -m tilework.tools.link HEADERS... -o OUT`.

    python -m tilework.tools.link add.*.h -o add            # writes add.h and add.c

Headers of `tilework compile --aot` say in a comment which kernel a function is and what it wants of its arguments.
Those with the same constants and settings are one algorithm; its function tries them, those that want the most first:

    TT_ResultTy add_1024_warps4xstages3(TT_StreamTy stream, CUdeviceptr x, CUdeviceptr out, int32_t n) {
      if (((uintptr_t)x % 16 == 0) && ((uintptr_t)out % 16 == 0)) return add_2b1a5c0e_0d1d(stream, x, out, n);
      if (1) return add_77f0d1aa_(stream, x, out, n);
      return TT_ERROR_INVALID_VALUE;
    }

and `add(stream, ..., algo_id)` takes the index of the algorithm, `add_default` the first one. `PRELUDES` declares the
types of each backend. `add_error_string` of CPUs finds the message of a code among all variants.
"""

import argparse
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilework.aot.c_files import HIP_INCLUDES, includes, source_extension
from tilework.process.triton_version import message

desc = "Make one C interface of kernels that were compiled ahead of time: a function that chooses among them."
HINTS = {"c": 1, "d": 16}
LETTERS = {hint: letter for letter, hint in HINTS.items()}
ADDRESSES = ("TTptr", "hipDeviceptr_t")  # pointers in C: integers only after a cast
PRELUDE = """#ifndef TT_LINK_INCLUDES
#define TT_LINK_INCLUDES

{includes}
#include <stdint.h>

typedef {stream} TT_StreamTy;
typedef {result} TT_ResultTy;
{more}
#endif
"""
GPU_PRELUDES = {
    "cuda": PRELUDE.format(
        includes="#include <cuda.h>",
        stream="CUstream",
        result="CUresult",
        more="#define TT_ERROR_INVALID_VALUE CUDA_ERROR_INVALID_VALUE\n",
    ),
    "hip": PRELUDE.format(
        includes=HIP_INCLUDES,
        stream="hipStream_t",
        result="hipError_t",
        more="#define TT_ERROR_INVALID_VALUE hipErrorInvalidValue\n",
    ),
}


def prelude(backend: str) -> str:
    """Return what the linked files of a backend begin with: its types under the names that they have in all."""
    if backend == "cpu":
        return PRELUDE.format(includes=includes(), stream="TTstream", result="TTresult", more="")
    return GPU_PRELUDES[backend]


class LinkerError(RuntimeError):
    """A header that cannot be linked."""


@dataclass
class KernelLinkerMeta:
    """The metadata of a kernel in a header; `sizes` has the hint of each parameter, None without one."""

    orig_kernel_name: str
    arg_names: Sequence[str]
    arg_ctypes: Sequence[str]
    sizes: Sequence[int | None]
    sig_hash: str
    triton_suffix: str
    suffix: str
    num_specs: int


class HeaderParser:
    """Collects the kernels of headers: `kernels` maps ``name_ALGORITHM`` to its variants, in the order of the
    headers."""

    def __init__(self) -> None:
        self.linker_directives = re.compile(r"//[\s]*tt-linker:[\s]*([\w]+):(.+):(.+)")
        self.kernel_name = re.compile(r"^([\w]+)_([\w]+)_([\w]*)$")
        self.c_sig = re.compile(r"[\s]*(\w+)\s(\w+)[,]?")
        self.hint_directives = re.compile(r"//[\s]*tt-linker-hints:[\s]*([\w]+):([\d,]*)")
        self.backend_directive = re.compile(r"//[\s]*tt-linker-(?:backend|target):[\s]*(\w+)")
        self.kernels: dict[str, list[KernelLinkerMeta]] = defaultdict(list)
        self.backend_name: str | None = None

    def extract_linker_meta(self, header: str) -> None:
        """Read the lines for the linker."""
        lines = header.splitlines()
        hints_text = {found[1]: found[2] for line in lines if (found := self.hint_directives.match(line))}
        named = next((found[1] for line in lines if (found := self.backend_directive.match(line))), None)
        for line in lines:
            if line.startswith("//") and (found := self.linker_directives.match(line)) is not None:
                self.check_backend(named or "cuda")
                self.add(found[1], found[2], found[3], hints_text.get(found[1]), named is None)

    def check_backend(self, name: str) -> None:
        """Refuse a header for another backend than the headers before."""
        if self.backend_name not in (None, name):
            raise LinkerError(
                f"differing backend {self.backend_name} vs. {name}: one function launches kernels of one backend"
            )
        if name not in (*GPU_PRELUDES, "cpu"):
            raise LinkerError(f"there is no backend {name}: headers are for {', '.join(GPU_PRELUDES)} or cpu")
        self.backend_name = name

    def add(
        self, full_name: str, signature: str, algorithm: str, hints_text: str | None = None, is_old: bool = False
    ) -> None:
        """Add a kernel by the three parts of its line; `hints_text` has the hints by parameter, if the header lists
        them, and `is_old` is true for a header that does not name its backend."""
        name, digest, suffix = self.parts_of_name(full_name)
        types, names = self.parts_of_signature(signature)
        if hints_text is not None:  # the suffix also counts parameters that are constants, wherever they are
            hints = [int(hint) or None for hint in hints_text.split(",") if hint]
        else:
            hints = self.hints_of(suffix, len(names), is_old)
        count = sum(hint is not None for hint in hints)
        meta = KernelLinkerMeta(name, names, types, hints, digest, suffix, algorithm, count)
        key = f"{name}_{algorithm}"
        if self.kernels[key]:
            self.check_same(self.kernels[key][-1], meta)
        self.kernels[key].append(meta)

    def parts_of_name(self, text: str) -> tuple[str, str, str]:
        if (found := self.kernel_name.match(text)) is None:
            raise LinkerError(f"{text} is not a valid kernel name")
        return found[1], found[2], found[3]

    def parts_of_signature(self, text: str) -> tuple[list[str], list[str]]:
        if not (found := self.c_sig.findall(text)):
            raise LinkerError(f"{text} is not a valid argument signature")
        return [type for type, _ in found], [name for _, name in found]

    @staticmethod
    def hints_of(suffix: str, count: int, is_old: bool) -> list[int | None]:
        """Return the hints of `count` parameters.

        ``0d12c`` of an old header lists all parameters: 12c is parameter 1 without a hint, and parameter 2 with one. In
        another one, which lists those with hints only, it is parameter 12.
        """
        readings = (listed_hints, sparse_hints) if is_old else (sparse_hints, listed_hints)
        for read in readings:
            if (hints := read(suffix, count)) is not None:
                return hints
        rest: str = suffix
        for index in range(count):  # what is left behind the longest beginning that makes sense
            rest = re.sub(rf"^{index}[cd]?", "", rest)
        raise LinkerError(message("link-suffix", suffix=suffix, rest=rest))

    @staticmethod
    def check_same(existing: KernelLinkerMeta, new: KernelLinkerMeta) -> None:
        if list(existing.arg_ctypes) != list(new.arg_ctypes):
            raise LinkerError(
                f"Mismatched signature for kernel {new.orig_kernel_name}: \n\texisting sig is:"
                f" {','.join(existing.arg_ctypes)}\n\tcurrent is: {','.join(new.arg_ctypes)}"
            )


def sparse_hints(suffix: str, count: int) -> list[int | None] | None:
    """Return the hints of a suffix that lists parameters with hints, in order: ``0d2c``; None if it does not."""
    found = {int(index): HINTS[letter] for index, letter in re.findall(r"(\d+)([cd])", suffix)}
    is_whole = "".join(f"{index}{LETTERS[hint]}" for index, hint in sorted(found.items())) == suffix
    return [found.get(index) for index in range(count)] if is_whole and max(found, default=0) < count else None


def listed_hints(suffix: str, count: int) -> list[int | None] | None:
    """Return the hints of a suffix that lists every parameter: ``0d12c``, and constants behind; None if it does not."""
    rest, hints = suffix, list[int | None]()
    while rest and (found := re.match(rf"{len(hints)}([cd]?)", rest)) is not None:
        rest = rest[found.end() :]
        hints.append(HINTS.get(found[1]))
    is_whole = not rest and not any(hints[count:])
    return [*hints, *[None] * count][:count] if is_whole else None


def gen_signature_with_full_args(m: KernelLinkerMeta) -> str:
    """The parameters of the C function that chooses."""
    return ", ".join(f"{type} {name}" for type, name in zip(m.arg_ctypes, m.arg_names, strict=True))


def gen_signature(m: KernelLinkerMeta) -> str:
    """The parameters of one variant: those that are 1 are part of its code."""
    return ", ".join(f"{type} {name}" for type, name, hint in arguments(m) if hint != 1)


def arguments(m: KernelLinkerMeta) -> list[tuple[str, str, int | None]]:
    """Type, name and hint of each parameter."""
    return list(zip(m.arg_ctypes, m.arg_names, m.sizes, strict=False))


def make_algo_decls(name: str, metas: Sequence[KernelLinkerMeta]) -> str:
    """The declarations of one algorithm."""
    return f"""
TT_ResultTy {name}(TT_StreamTy stream, {gen_signature_with_full_args(metas[-1])});
void load_{name}();
void unload_{name}();
"""


def make_global_decl(meta: KernelLinkerMeta) -> str:
    """The declarations of the functions for all algorithms."""
    name, parameters = meta.orig_kernel_name, gen_signature_with_full_args(meta)
    return f"""
TT_ResultTy {name}_default(TT_StreamTy stream, {parameters});
TT_ResultTy {name}(TT_StreamTy stream, {parameters}, int algo_id);
void load_{name}();
void unload_{name}();
"""


def make_default_algo_kernel(meta: KernelLinkerMeta) -> str:
    """The function that takes the first algorithm."""
    name, names = meta.orig_kernel_name, ", ".join(meta.arg_names)
    return f"""TT_ResultTy {name}_default(TT_StreamTy stream, {gen_signature_with_full_args(meta)}) {{
  return {name}(stream, {names}, 0);
}}
"""


def make_kernel_hints_dispatcher(name: str, metas: Sequence[KernelLinkerMeta]) -> str:
    """The function of one algorithm: the first variant that the arguments fit, those with the most hints first."""
    lines = [f"// launcher for: {name}"]
    ordered = sorted(metas, key=lambda m: -m.num_specs)
    for m in ordered:
        lines.append(f"TT_ResultTy {variant(m)}(TT_StreamTy stream, {gen_signature(m)});")
    lines += ["", f"TT_ResultTy {name}(TT_StreamTy stream, {gen_signature_with_full_args(metas[-1])}) {{"]
    for m in ordered:
        conditions = [condition(*each) for each in arguments(m) if each[2]]
        passed = ", ".join(arg for _, arg, hint in arguments(m) if hint != 1)
        lines += [f"  if ({' && '.join(conditions) or 1})", f"    return {variant(m)}(stream, {passed});"]
    lines += ["  return TT_ERROR_INVALID_VALUE;", "}", ""]
    for mode in ("load", "unload"):
        lines += [
            f"// {mode} for: {name}",
            *(f"void {mode}_{variant(m)}();" for m in ordered),
            f"void {mode}_{name}() {{",
        ]
        lines += [*(f"  {mode}_{variant(m)}();" for m in ordered), "}", ""]
    return "\n".join(lines)


def condition(type: str, name: str, hint: int | None) -> str:
    """The C condition of a hint on an argument."""
    value = f"(uintptr_t){name}" if hint == 16 or type in ADDRESSES else name
    return f"({value} % 16 == 0)" if hint == 16 else f"({value} == 1)"


def variant(m: KernelLinkerMeta) -> str:
    """The C function of one variant."""
    return f"{m.orig_kernel_name}_{m.sig_hash}_{m.triton_suffix}"


def make_kernel_meta_const_dispatcher(meta: KernelLinkerMeta) -> str:
    """The function that takes the index of the algorithm."""
    name, names = meta.orig_kernel_name, ", ".join(meta.arg_names)
    return f"""TT_ResultTy {name}(TT_StreamTy stream, {gen_signature_with_full_args(meta)}, int algo_id) {{
  if (algo_id < 0 || algo_id >= {name}_get_num_algos())
    return TT_ERROR_INVALID_VALUE;
  return {name}_kernels[algo_id](stream, {names});
}}
"""


def make_func_pointers(names: Sequence[str], meta: KernelLinkerMeta) -> str:
    """The table of algorithms."""
    types = ", ".join(["TT_StreamTy stream", gen_signature_with_full_args(meta)])
    entries = "".join(f"  {name},\n" for name in names)
    name = meta.orig_kernel_name
    table = f"{name}_func_t {name}_kernels[] = {{\n{entries}}};\n"
    return f"typedef TT_ResultTy (*{name}_func_t)({types});\n{table}"


def make_kernel_load_def(names: Sequence[str], meta: KernelLinkerMeta) -> str:
    """The functions that load and unload everything."""
    text = ""
    for mode in ("load", "unload"):
        calls = "".join(f"  {mode}_{name}();\n" for name in names)
        text += f"void {mode}_{meta.orig_kernel_name}(void) {{\n{calls}}}\n\n"
    return text


def make_get_num_algos_decl(meta: KernelLinkerMeta) -> str:
    return f"int {meta.orig_kernel_name}_get_num_algos(void);\n"


def make_get_num_algos_def(meta: KernelLinkerMeta) -> str:
    name = meta.orig_kernel_name
    return (
        f"int {name}_get_num_algos(void) {{\n  return (int)(sizeof({name}_kernels) / sizeof({name}_kernels[0]));\n}}\n"
    )


def make_error_string(kernels: Mapping[str, Sequence[KernelLinkerMeta]], meta: KernelLinkerMeta) -> str:
    """The function that returns the error text of a code, for CPUs."""
    found = [f"{variant(m)}_error_string" for metas in kernels.values() for m in metas]
    tries = "".join(f"  if (text == NULL)\n    text = {name}(code);\n" for name in found)
    declared = "".join(f"const char *{name}(TTresult code);\n" for name in found)
    return f"""{declared}
const char *{meta.orig_kernel_name}_error_string(TTresult code) {{
  const char *text = NULL;
{tries}  return text;
}}
"""


def texts(kernels: Mapping[str, Sequence[KernelLinkerMeta]], backend: str = "cuda") -> tuple[str, str]:
    """Header and source for all algorithms of all kernels."""
    begin = prelude(backend)
    header, source = f"#pragma once\n{begin}", f"{begin}#include <assert.h>\n\n"
    header += '#ifdef __cplusplus\nextern "C" {\n#endif\n'
    for name in dict.fromkeys(metas[0].orig_kernel_name for metas in kernels.values()):
        own = {key: metas for key, metas in kernels.items() if metas[0].orig_kernel_name == name}
        declared, defined = kernel_texts(own, backend)
        header, source = header + declared, source + defined
    return header + "#ifdef __cplusplus\n}\n#endif\n", source


def kernel_texts(kernels: Mapping[str, Sequence[KernelLinkerMeta]], backend: str) -> tuple[str, str]:
    """Declarations and definitions for all algorithms of one kernel."""
    names, first = list(kernels), next(iter(kernels.values()))[0]
    for metas in kernels.values():
        HeaderParser.check_same(first, metas[0])
    header = "\n".join(make_algo_decls(name, metas) for name, metas in kernels.items())
    header += "\n" + make_get_num_algos_decl(first) + make_global_decl(first)
    source = "\n".join(make_kernel_hints_dispatcher(name, metas) for name, metas in kernels.items()) + "\n"
    source += make_func_pointers(names, first) + "\n" + make_get_num_algos_def(first) + "\n"
    source += make_kernel_meta_const_dispatcher(first) + "\n" + make_kernel_load_def(names, first)
    source += make_default_algo_kernel(first) + "\n"
    if backend == "cpu":
        header += f"const char *{first.orig_kernel_name}_error_string(TTresult code);\n"
        source += make_error_string(kernels, first)
    return header, source


def link_headers(headers: Sequence[str | Path], out: Path) -> list[Path]:
    """Write the two files and return their paths."""
    reader = HeaderParser()
    for header in headers:
        reader.extract_linker_meta(Path(header).read_text(encoding="utf-8"))
    if not reader.kernels:
        raise LinkerError(f"no kernel in {', '.join(map(str, headers))}: they have no line for the linker")
    backend = str(reader.backend_name)
    written = []
    for extension, text in zip((".h", source_extension(backend)), texts(reader.kernels, backend), strict=True):
        written.append(out.with_suffix(extension))
        written[-1].write_text(text, encoding="utf-8")
    return written


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the linker to a parser."""
    parser.add_argument("headers", nargs="+", help="the headers of the kernels")
    parser.add_argument("--out", "-o", type=Path, required=True, help="the path of the two files, without .h and .c")
    parser.add_argument("--prefix", type=str, default="", help="accepted, but has no effect")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command; what is wrong is said on stderr, and the exit code is 1."""
    parser = argparse.ArgumentParser(prog="link.py", description=desc)
    add_arguments(parser)
    args = parser.parse_args(arguments)
    try:
        link_headers(args.headers, args.out)
    except (LinkerError, OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"link.py: error: {error}") from None


if __name__ == "__main__":
    main()
