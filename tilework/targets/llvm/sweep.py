"""Drop instructions whose values nobody needs.

    sweep(function)       # before its text is asked for

The builder writes an instruction when a rule asks for it. A rule for one register of a tile does not know that the pointer of
only every eighth will be used, nor that a loop carries the others round for nothing. LLVM would find out, but its time for such
phis and addresses grows faster than their number: without them a matrix product takes a third of the time.
"""

import re

from tilework.targets.llvm.module import Function

NAME = re.compile(r"%[-\w.$]+")
REMOVABLE = frozenset(
    """add sub mul and or xor shl lshr ashr sdiv udiv srem urem fadd fsub fmul fdiv fneg icmp fcmp select zext sext trunc fpext
    fptrunc sitofp uitofp fptosi fptoui bitcast ptrtoint inttoptr addrspacecast getelementptr extractelement insertelement
    shufflevector extractvalue insertvalue phi freeze""".split()
)


def is_removable(text: str) -> bool:
    """Whether an instruction (behind its ``%x = ``) does nothing but make its value."""
    opcode = text[: text.find(" ")]
    if opcode in REMOVABLE:
        return True
    if opcode == "load":
        return not text.startswith(("load volatile", "load atomic"))
    return opcode == "call" and ' asm "' in text


def sweep(function: Function) -> None:
    """Take away what no instruction with an effect depends on, cycles through phis included."""
    made: dict[str, str] = {}
    waiting: list[str] = []
    names: list[list[str]] = []  # of what each line of a block makes, if it may go
    for block in function.blocks:
        names.append(own := [])
        for line in block.lines:
            head, equals, text = line.partition(" = ")
            if equals and is_removable(text):
                own.append(name := head.strip())
                made[name] = text
            else:
                own.append("")
                waiting.append(text if equals else line)
    needed: set[str] = {""}
    while waiting:
        for name in NAME.findall(waiting.pop()):
            if name not in needed and (text := made.get(name)) is not None:
                needed.add(name)
                waiting.append(text)
    if len(needed) - 1 == len(made):
        return
    for block, own in zip(function.blocks, names, strict=True):
        block.lines = [line for line, name in zip(block.lines, own, strict=True) if name in needed]
