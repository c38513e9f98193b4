"""Functions for AMD GPUs: the clock, and `libdevice`."""

from typing import Any

from tilework.language import core
from tilework.language.extra.hip import libdevice

__all__ = ["libdevice", "memrealtime"]

CLOCK = "s_memrealtime $0", "s_waitcnt vmcnt(0)"
LATER_CLOCK = "s_sendmsg_rtn_b64 $0, sendmsg(MSG_RTN_GET_REALTIME)", "s_waitcnt lgkmcnt(0)"


@core.extern
def memrealtime(_semantic: Any = None) -> Any:
    """The ticks of a clock of 100 MHz that all programs share, an int64; every call reads it anew."""
    lines = LATER_CLOCK if str(_semantic.options.arch).startswith(("gfx11", "gfx12")) else CLOCK
    text = "".join(f"\n            {line}" for line in (*lines, ""))
    return core.inline_asm_elementwise(text, "=r", [], core.int64, False, 1, _semantic=_semantic)
