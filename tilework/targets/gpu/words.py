"""Small elements in 32-bit words, as tensor cores take them and `ldmatrix` gives them.

    elements = unpack_word(low, word, f16)      # two halves, the first in the lowest bits
    pack_word(low, elements)                    # `word` again: nothing is built

A tensor is a tuple of elements, so a word that is loaded is taken apart and put together again where it is used. `Lowering.words`
remembers it by the names of its elements; it is known wherever they are.
"""

from collections.abc import Sequence

from tilework.targets.gpu.lowering import Lowering
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import Type, i8, i32, vector
from tilework.targets.llvm.values import Value, constant

WORD = 32


def pack_word(low: Lowering, elements: Sequence[Value]) -> Value:
    """Elements in one register, the first in the lowest bits; a single one of 64 bits as it is."""
    b = low.builder
    if len(elements) == 1:
        return b.bitcast(elements[0], i32) if elements[0].type.bits == WORD else elements[0]
    if (word := low.words.get(tuple([element.text for element in elements]))) is not None:
        return word
    if len(elements) == 4:
        first, second, third, fourth = (b.zext(b.bitcast(element, i8), i32) for element in elements)
        return chosen_bytes(b, chosen_bytes(b, first, second, 0x0040), chosen_bytes(b, third, fourth, 0x0040), 0x5410)
    return b.bitcast(b.build_vector(elements), i32)


def chosen_bytes(b: Builder, low: Value, high: Value, selector: int) -> Value:
    """Four bytes of two words: each digit of the selector is one, from the lowest; 4 is the first of `high`."""
    return b.call("llvm.nvvm.prmt", i32, [low, high, constant(i32, selector)], is_pure=True)


def pack_words(low: Lowering, elements: Sequence[Value]) -> list[Value]:
    """Elements of less than 32 bits in words; the last word is filled up with zeros."""
    each = WORD // elements[0].type.bits
    filled = [*elements, *[constant(elements[0].type, 0)] * (-len(elements) % each)]
    return [pack_word(low, filled[start : start + each]) for start in range(0, len(filled), each)]


def unpack_word(low: Lowering, word: Value, element: Type) -> list[Value]:
    """The elements of a word."""
    b = low.builder
    if element.bits == WORD:
        return [b.bitcast(word, element)]
    elements = b.lanes(b.bitcast(word, vector(element, WORD // element.bits)))
    low.words[tuple([found.text for found in elements])] = word
    return elements
