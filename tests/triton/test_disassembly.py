"""The text that disassemblers of NVIDIA print, as Triton shows it."""

import pytest

SASS = """
	code for sm_90
		Function : loop
	.headerflags	@"EF_CUDA_TEXMODE_UNIFIED"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                        /* 0x00000a00ff017b82 */
                                                                                 /* 0x000fe20000000800 */
        /*0010*/                   IADD3 R2, R2, 0x1, RZ ;                       /* 0x0000000102027810 */
                                                                                 /* 0x004fc80007ffe0ff */
        /*0020*/              @P0  BRA 0x10 ;                                    /* 0xfffffffc00f80947 */
                                                                                 /* 0x000fea000383ffff */
        /*0030*/                   EXIT ;                                        /* 0x000000000000794d */
                                                                                 /* 0x000fea0003800000 */
		Function : other
        /*0000*/                   EXIT ;                                        /* 0x000000000000794d */
                                                                                 /* 0x000fea0003800000 */
"""


def test_disassembly_shows_the_first_function_with_labels() -> None:
    from tilework import knobs
    from tilework.triton import disasm

    assert disasm.shown(SASS) == (
        "Function:loop\n--:-:-:-:1\tLDC R1, c[0x0][0x28];\nLBB0:\n04:-:-:Y:4\tIADD3 R2, R2, 0x1, RZ;\n"
        "--:-:-:-:5\t@P0  BRA LBB0;\n--:-:-:-:5\tEXIT;\n"
    )
    assert disasm.shown("no kernels\n") == ""
    if knobs.nvidia.find_tool("cuobjdump") is None:
        with pytest.raises(RuntimeError, match="Cannot find cuobjdump"):
            disasm.path_to_cuobjdump()
