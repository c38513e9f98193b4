"""Lines that a kernel prints: the HIP runtime lends it a buffer and prints what is there when the kernel is over.

    !llvm.printf.fmts = !{!3}
    !3 = !{!"1:2:4:8:x[%u] is %f\\5Cn"}      the number of the format, how many values, the bytes of each, C's format

The address of the buffer lies behind the arguments of a kernel whose metadata have such formats (LLVM puts them there); no device library takes part. It begins
with two words, the bytes that are taken and the size of all; a record is the number of its format and the values. What has no room is left out.
"""

import re
from collections.abc import Callable, Sequence
from itertools import accumulate

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.module import escaped
from tilework.targets.llvm.types import i1, i32, pointer
from tilework.targets.llvm.values import Value, constant

FORMATS = "llvm.printf.fmts"
BUFFER_PLACE = 72  # among the hidden arguments of code objects of version 5
FORM = re.compile(r"%%|%p|%\d*ll")
HEADER = 8
NUMBER = 4


def printer(b: Builder, hidden: Value) -> Callable[[str, Sequence[Value]], None]:
    """A function that emits printf; the hidden arguments lead to the buffer."""
    buffer = b.load(pointer(1), b.gep(hidden, BUFFER_PLACE), align=8)

    room = b.load(i32, b.gep(buffer, 4), align=4)

    def show(text: str, values: Sequence[Value]) -> None:
        sizes = [value.type.bits // 8 for value in values]
        *offsets, total = accumulate(sizes, initial=NUMBER)

        def fits(taken: Value) -> Value:
            return b.icmp("ule", b.add(taken, HEADER + total), room)

        def take(taken: Value) -> tuple[Value, Value]:
            def exchange() -> Sequence[Value]:
                return b.compare_exchange(buffer, taken, b.add(taken, total), scope="agent", align=4)

            following, is_over = b.if_else(fits(taken), exchange, lambda: [taken, constant(i1, 1)])
            return following, is_over

        place = b.until(b.load(i32, buffer, align=4, ordering="monotonic", scope="agent"), take)
        with b.if_(fits(place)):
            record = b.gep(b.gep(buffer, place), HEADER)
            b.store(constant(i32, number_of(b, text, sizes)), record, align=4)
            for value, offset in zip(values, offsets, strict=True):
                b.store(value, b.gep(record, offset), align=4)

    return show


def number_of(b: Builder, text: str, sizes: Sequence[int]) -> int:
    """The number of a format. The runtime takes a colon for the end of a field, makes ``%lli`` of ``%li``, and knows no pointers."""
    c_text = FORM.sub(lambda found: {"%p": "%#lx"}.get(found[0], found[0].replace("ll", "l")), text)
    told = ":".join([str(len(sizes)), *map(str, sizes), c_text.replace(":", r"\72").replace("\n", r"\n")])
    formats = b.module.lists.setdefault(FORMATS, {})
    b.module.list_node(FORMATS, told, f'!{{!"{len(formats) + 1}:{escaped(told)}"}}')
    return list(formats).index(told) + 1
