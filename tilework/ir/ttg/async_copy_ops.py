"""`ttg` ops that copy global memory to shared memory in the background (``cp.async``).

%a = ttg.async_copy_global_to_local %ptrs, %buffer mask %m : ...     start
%b = ttg.async_commit_group tokens %a                                all since the last commit are one group
%c = ttg.async_wait %b {num = 2 : i32}                               at most two groups are still under way
%x = ttg.local_load %buffer token %c : ...
"""

from collections.abc import Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.enums import CacheModifier, EvictionPolicy
from tilework.ir.tt.constraints import BOOL_LIKE, PTR_LIKE, TENSOR, TensorSize
from tilework.ir.tt.memory_ops import (
    cache_properties,
    loaded_type,
    mask_type,
    parse_cache_clauses,
    print_cache_clauses,
    verify_mask,
)
from tilework.ir.tt.text_parts import (
    SEGMENTS,
    Attributes,
    parse_attr_dict,
    parse_operands,
    parse_optional_operands,
    parse_type,
    print_attr_dict,
    print_operands,
    print_type,
)
from tilework.ir.ttg.memdesc_types import MEMDESC, TOKEN, async_token
from tilework.ir.ttg.shared_memory_ops import require_mutable, verify_copy
from tilework.ir.ttg.text import (
    hidden_properties,
    parse_memdesc,
    parse_optional_word,
    print_memdesc,
    print_optional_word,
)
from tilework.ir.types import i1, i32, i32_array, int_attr


@cache
def copy_properties(
    masked: bool, filled: bool, cache: CacheModifier, evict: EvictionPolicy, is_volatile: bool, contiguity: int
) -> Attributes:
    return {
        **cache_properties(cache, evict),
        "isVolatile": int_attr(is_volatile, i1),
        "contiguity": int_attr(contiguity, i32),
        SEGMENTS: i32_array(1, 1, int(masked), int(filled)),
    }


COPY_DEFAULTS = copy_properties(False, False, CacheModifier.NONE, EvictionPolicy.NORMAL, False, 1)


@irdl_op_definition
class AsyncCopyGlobalToLocalOp(IRDLOperation):
    """Start copying elements from pointers to shared memory.

    ``%t = ttg.async_copy_global_to_local %p, %m mask %k other %o {contiguity = 8 : i32} : tensor<...> -> <64x64xf16, ...>``

    `contiguity` is how many elements at least lie next to each other, in memory and in the buffer.
    """

    name = "ttg.async_copy_global_to_local"
    src = operand_def(PTR_LIKE)
    dst = operand_def(MEMDESC)
    mask = opt_operand_def(BOOL_LIKE)
    other = opt_operand_def(TENSOR)
    cache = prop_def(IntegerAttr, default_value=COPY_DEFAULTS["cache"])
    evict = prop_def(IntegerAttr, default_value=COPY_DEFAULTS["evict"])
    is_volatile = prop_def(IntegerAttr, default_value=COPY_DEFAULTS["isVolatile"], prop_name="isVolatile")
    contiguity = prop_def(IntegerAttr, default_value=COPY_DEFAULTS["contiguity"])
    token = result_def(TOKEN)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), TensorSize())

    @classmethod
    def make(
        cls,
        src: SSAValue,
        dst: SSAValue,
        mask: SSAValue | None,
        other: SSAValue | None,
        loc: LocationAttr,
        *,
        cache: CacheModifier = CacheModifier.NONE,
        evict: EvictionPolicy = EvictionPolicy.NORMAL,
        is_volatile: bool = False,
        contiguity: int = 1,
    ) -> Self:
        operands = [value for value in (src, dst, mask, other) if value is not None]
        properties = copy_properties(mask is not None, other is not None, cache, evict, is_volatile, contiguity)
        return create_op(cls, operands, (async_token,), loc, properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        src, dst = parse_operands(parser)
        mask, other = parse_optional_word(parser, "mask"), parse_optional_word(parser, "other")
        clauses = parse_cache_clauses(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        pointers = parse_type(parser)
        parser.parse_punctuation("->")
        operands = [parser.resolve_operand(src, pointers), parser.resolve_operand(dst, parse_memdesc(parser))]
        loaded = loaded_type(pointers)
        if mask is not None:
            operands.append(parser.resolve_operand(mask, mask_type(loaded)))
        if other is not None:
            operands.append(parser.resolve_operand(other, loaded))
        segments = i32_array(1, 1, int(mask is not None), int(other is not None))
        return cls.create(
            operands=operands,
            result_types=(async_token,),
            properties={**clauses, **properties, SEGMENTS: segments},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        src, dst = self.operands[:2]
        print_operands(printer, (src, dst))
        print_optional_word(printer, "mask", self.mask)
        print_optional_word(printer, "other", self.other)
        print_cache_clauses(printer, self.properties)
        print_attr_dict(self, printer, hidden_properties(self, COPY_DEFAULTS, ("cache", "evict")))
        print_type(printer, src.type)
        printer.print_string(" -> ")
        print_memdesc(printer, dst.type)

    def verify_(self) -> None:
        loaded = loaded_type(self.src.type)
        require_mutable("Cannot store into immutable memory", self.dst.type)
        verify_copy(loaded, self.dst.type)
        verify_mask(self, self.mask, loaded)
        if self.other is not None and self.other.type != loaded:
            raise VerifyException(f"{self.name} of {loaded} cannot take {self.other.type} as other")


@irdl_op_definition
class AsyncCommitGroupOp(IRDLOperation):
    """All copies since the last commit are one group: ``%g = ttg.async_commit_group tokens %a, %b``."""

    name = "ttg.async_commit_group"
    tokens = var_operand_def(TOKEN)
    token = result_def(TOKEN)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, tokens: Sequence[SSAValue], loc: LocationAttr) -> Self:
        return create_op(cls, tokens, (async_token,), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser) if parser.parse_optional_keyword("tokens") else []
        properties, attributes = parse_attr_dict(cls, parser)
        values = [parser.resolve_operand(operand, async_token) for operand in operands]
        return cls.create(operands=values, result_types=(async_token,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" tokens")
            print_operands(printer, self.operands)
        print_attr_dict(self, printer)


@cache
def num_property(num: int) -> Attributes:
    return {"num": int_attr(num, i32)}


@irdl_op_definition
class AsyncWaitOp(IRDLOperation):
    """Wait until at most `num` groups are under way: ``%t = ttg.async_wait %g {num = 2 : i32}``."""

    name = "ttg.async_wait"
    tokens = var_operand_def(TOKEN)
    num = prop_def(IntegerAttr)
    token = result_def(TOKEN)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(cls, tokens: Sequence[SSAValue], num: int, loc: LocationAttr) -> Self:
        return create_op(cls, tokens, (async_token,), loc, num_property(num))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_optional_operands(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        values = [parser.resolve_operand(operand, async_token) for operand in operands]
        return cls.create(operands=values, result_types=(async_token,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)

    def verify_(self) -> None:
        if self.num.value.data < 0:
            raise VerifyException(f"ttg.async_wait for {self.num.value.data} groups: the number is not negative")
