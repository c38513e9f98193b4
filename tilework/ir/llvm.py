"""The ops and the attributes of MLIR's `llvm` dialect that kernels use: an assumption and loop annotations. Functions
of that dialect stay as they are.

llvm.intr.assume %c : i1
llvm.func @f(%a: i32) -> i32 { ... }
scf.for ... {llvm.loop_annotation = #llvm.loop_annotation<licm = <disable = true>>}
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import DictionaryAttr, StringAttr
from xdsl.ir import Attribute, Dialect, Operation, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.utils.mlir_lexer import MLIRTokenKind

from tilework.ir.constraints import I1
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.fields import operand_def, prop_def
from tilework.ir.types import i1, int_attr

if TYPE_CHECKING:
    from xdsl.parser import AttrParser, Parser
    from xdsl.printer import Printer

    from tilework.ir.attr_text import OpPrinter


class AssumeOp(Op):
    """The compiler may rely on the condition: ``llvm.intr.assume %c : i1``."""

    name = "llvm.intr.assume"
    cond = operand_def(I1)
    form = "$cond {} : type($cond)"


class LLVMFuncOp(Op):
    """A function of LLVM's dialect, as its text: no pass looks into it, and nothing is compiled for it."""

    name = "llvm.func"
    source = prop_def(StringAttr)

    @classmethod
    def parse(cls, parser: "Parser") -> "LLVMFuncOp":
        return cls.create(properties={"source": StringAttr(parser.read_verbatim())})  # pyright: ignore

    def text(self, printer: "OpPrinter") -> str:
        return f" {self.source.data}"


class OptionsText:
    """The text of an attribute that is a dictionary of options: ``#llvm.name<key = value>``."""

    options: DictionaryAttr

    @classmethod
    def parse_parameters(cls, parser: "AttrParser") -> Sequence[Attribute]:
        return (parse_options(parser),)

    def print_parameters(self, printer: "Printer") -> None:
        print_options(printer, self.options)


@irdl_attr_definition
class LoopLicmAttr(OptionsText, ParametrizedAttribute):
    """LLVM's options for moving code out of a loop: ``#llvm.loop_licm<disable = true, versioningDisable = true>``."""

    name = "llvm.loop_licm"
    ALIAS_STEM: ClassVar[str] = "loop_licm"
    options: DictionaryAttr


@irdl_attr_definition
class LoopAnnotationAttr(OptionsText, ParametrizedAttribute):
    """LLVM's options of a loop: ``#llvm.loop_annotation<licm = <disable = true>>``."""

    name = "llvm.loop_annotation"
    ALIAS_STEM: ClassVar[str] = "loop_annotation"
    options: DictionaryAttr


OPTION_GROUPS = {"licm": LoopLicmAttr}


def parse_options(parser: "AttrParser") -> DictionaryAttr:
    """``<key = value, group = <...>>``; a group may be written without its name."""

    def parse_option() -> tuple[str, Attribute]:
        key = parser.parse_identifier()
        parser.parse_punctuation("=")
        if (group := OPTION_GROUPS.get(key)) is not None and (short := parse_optional_options(parser)) is not None:
            return key, group(short)
        return key, parser.parse_attribute()

    return DictionaryAttr(dict(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_option)))


def parse_optional_options(parser: "AttrParser") -> DictionaryAttr | None:
    """``<key = value>``, unless an attribute with a name comes."""
    return parse_options(parser) if parser._current_token.kind is MLIRTokenKind.LESS else None


def print_options(printer: "Printer", options: DictionaryAttr) -> None:
    """The inverse of `parse_options`, with the names of groups."""

    def print_option(option: tuple[str, Attribute]) -> None:
        key, value = option
        printer.print_string(f"{key} = ")
        printer.print_attribute(value)

    with printer.in_angle_brackets():
        printer.print_list(options.data.items(), print_option)


LICM_HINTS = {"disable": "llvm.licm.disable", "versioningDisable": "llvm.loop.licm_versioning.disable"}
LICM_DISABLED = LoopAnnotationAttr(
    DictionaryAttr({"licm": LoopLicmAttr(DictionaryAttr(dict.fromkeys(LICM_HINTS, int_attr(1, i1))))})
)


def licm_hints(loop: Operation) -> tuple[str, ...]:
    """Return the names in LLVM's metadata of the options for moving code out of a loop."""
    if not isinstance(annotation := loop.attributes.get("llvm.loop_annotation"), LoopAnnotationAttr):
        return ()
    licm = annotation.options.data.get("licm")
    return tuple(LICM_HINTS[key] for key in licm.options.data) if isinstance(licm, LoopLicmAttr) else ()


LLVM = Dialect("llvm", dialect_ops("llvm"), [LoopAnnotationAttr, LoopLicmAttr])
