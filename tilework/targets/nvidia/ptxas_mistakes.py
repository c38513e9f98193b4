"""PTX written in another way where ptxas (12.8 and 13.0, for sm_90) makes code of it that computes something else.

    mul.hi.u32 %r1, %r2, %r3             the carry of the difference is that of adding ``-y``: there is none where the lower half of y is 0,
    cvt.u64.u32 %rd1, %r1;               and the result is 2**32 too small
    sub.s64 %rd2, %rd1, %y

    ld.param.b32 %r1, [n]                a smallest or largest of three, for which there is one instruction, is made of n itself;
    neg.s32 %r2, %r1                     so it is of 0 - n, n * -1, the negative of a half of 64 bits, of one of a vector of parameters ...
    min.s32 %r3, %r2, %r4
    min.s32 %r5, %r3, %r6

    neg.s16 %rs2, %rs1                   is 32768 for -32768 where the 16 bits are extended, compared or shifted next, and so is abs.s16, which
    cvt.s32.s16 %r1, %rs2                besides is converted to floats as a signed number

Drawn kernels have found them on an H200 (`tests/device/check_drawn.py`); no emulator of PTX can. Cost: a search in the text of a kernel that has such instructions.
"""

import re

GUARD, NAME = r"(@!?[\w$%]+\s+)?", r"[\w$%]+"
UPPER_HALF = re.compile(rf"{GUARD}mul\.hi\.u32\s+({NAME}),\s*([^,;]+),\s*([^;]+);")
EXTENDED = re.compile(rf"cvt\.[su]64\.u32\s+{NAME},\s*({NAME});|mov\.[bsu]64\s+{NAME},\s*\{{\s*({NAME})\s*,")
MOVE = re.compile(rf"mov\.[bsu]32\s+({NAME}),\s*({NAME});")
WHOLE = "{{ .reg .b64 %whole; mul.wide.u32 %whole, {}, {}; shr.u64 %whole, %whole, 32; {}cvt.u32.u64 {}, %whole; }}"
NEGATIVES = [
    re.compile(rf"{GUARD}{form};")
    for form in (
        rf"neg\.s32\s+({NAME}),\s*({NAME})",
        rf"sub\.[su]32\s+({NAME}),\s*0,\s*({NAME})",
        rf"mul\.lo\.[su]32\s+({NAME}),\s*({NAME}),\s*-1",
        rf"mad\.lo\.[su]32\s+({NAME}),\s*({NAME}),\s*-1,\s*0",
    )
]
SHORT_NEGATIVE = re.compile(rf"{GUARD}(?:neg\.s16\s+({NAME}),|sub\.[su]16\s+({NAME}),\s*0,)\s*({NAME});")
SHORT_SIZE = re.compile(rf"{GUARD}abs\.s16\s+({NAME}),\s*({NAME});")
WIDE_SIZE = "{{ .reg .b32 %wide; cvt.s32.s16 %wide, {}; abs.s32 %wide, %wide; {}cvt.u16.u32 {}, %wide; }}"
EXTREME = re.compile(r"\b(?:min|max)\.[su]32\b")


def without_mistakes(text: str) -> str:
    """PTX that ptxas understands."""
    return with_whole_products(with_plain_negatives(with_wrapping_shorts(text)))


def with_wrapping_shorts(text: str) -> str:
    """Negatives of 16 bits are made of bits, sizes of 32 bits."""
    if ".s16" not in text and ".u16" not in text:
        return text
    text = SHORT_SIZE.sub(lambda m: WIDE_SIZE.format(m[3], m[1] or "", m[2]), text)
    return SHORT_NEGATIVE.sub(lambda m: plain_negative(m[1] or "", m[2] or m[3], m[4], 16), text)


def with_whole_products(text: str) -> str:
    """Upper halves of products are taken from whole ones, where they become numbers of 64 bits."""
    if "mul.hi.u32" not in text:
        return text
    extended, moves = {name for names in EXTENDED.findall(text) for name in names}, MOVE.findall(text)
    while more := {source for result, source in moves if result in extended} - extended:
        extended |= more
    return UPPER_HALF.sub(lambda m: whole_product(*m.groups(default="")) if m[2] in extended else m[0], text)


def whole_product(guard: str, result: str, one: str, two: str) -> str:
    return WHOLE.format(one, two, guard, result)


def with_plain_negatives(text: str) -> str:
    """Negatives are made of bits, where there are extremes: how a number comes from a parameter, ptxas sees better than a search would."""
    if EXTREME.search(text) is not None:
        for form in NEGATIVES:
            text = form.sub(lambda m: plain_negative(m[1] or "", m[2], m[3]), text)
    return text


def plain_negative(guard: str, result: str, value: str, bits: int = 32) -> str:
    return f"{guard}not.b{bits} {result}, {value}; {guard}add.s{bits} {result}, {result}, 1;"
