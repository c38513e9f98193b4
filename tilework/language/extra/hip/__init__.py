"""Functions for AMD GPUs: the clock, and `libdevice`.

Example:
    @tilework.jit
    def kernel(x, out):
        tl.store(out, tl.extra.hip.libdevice.sqrt(tl.load(x)))

    source = tilework.compiler.ASTSource(kernel, {"x": "*fp32", "out": "*fp32"})
    stages = tilework.compiler.lower(source, tilework.compiler.GPUTarget("hip", "gfx942", 64), ["ttir"])
    assert "__ocml_sqrt_f32" in stages["ttir"]
"""

from typing import TYPE_CHECKING

from tilework.language import core
from tilework.language.compile_time import SUPPLIED
from tilework.language.extra.hip import libdevice

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic

__all__ = ["libdevice", "memrealtime"]

CLOCK = "s_memrealtime $0", "s_waitcnt vmcnt(0)"
MESSAGE = "s_sendmsg_rtn_b64 $0, sendmsg(MSG_RTN_GET_REALTIME)"
LATER_CLOCKS = {"gfx11": (MESSAGE, "s_waitcnt lgkmcnt(0)"), "gfx12": (MESSAGE, "s_wait_kmcnt 0")}


@core.extern
def memrealtime(_semantic: "Semantic" = SUPPLIED) -> core.tensor:
    """The ticks of a 100 MHz clock that all programs share, an int64; every call reads the clock again.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out, tl.extra.hip.memrealtime())

        source = tilework.compiler.ASTSource(kernel, {"out": "*i64"})
        stages = tilework.compiler.lower(source, tilework.compiler.GPUTarget("hip", "gfx942", 64), ["ttir"])
        assert "s_memrealtime" in stages["ttir"]
    """
    lines = LATER_CLOCKS.get(str(_semantic.options.arch)[:5], CLOCK)
    text = "".join(f"\n            {line}" for line in (*lines, ""))
    return core.inline_asm_elementwise(text, "=r", [], core.int64, False, 1, _semantic=_semantic)
