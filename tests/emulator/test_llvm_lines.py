"""Line information as LLVM 22 prints it: instructions and faults name the line of the source."""

from typing import Any

import numpy as np
import pytest

from tests.emulator.llvm import TARGETS, launch, ptx_of
from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.memory import MemoryFault
from tilework.oracles.emulator.parser import parse_ptx

N = np.arange(64, dtype=np.int32)
TID = "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n"
DEBUG = (
    TID
    + """
define internal i32 @inner(ptr addrspace(1) %p) alwaysinline !dbg !7 {
  %v = load i32, ptr addrspace(1) %p, !dbg !9
  ret i32 %v, !dbg !9
}
define ptx_kernel void @k(ptr addrspace(1) %x) !dbg !3 {
  %i = call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !6
  %p = getelementptr i32, ptr addrspace(1) %x, i32 %i, !dbg !6
  %v = load i32, ptr addrspace(1) %p, !dbg !10
  %w = add i32 %v, 1, !dbg !8
  store i32 %w, ptr addrspace(1) %p, !dbg !8
  ret void, !dbg !8
}
!llvm.module.flags = !{!0}
!llvm.dbg.cu = !{!1}
!0 = !{i32 2, !"Debug Info Version", i32 3}
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, producer: "tilework", isOptimized: true, runtimeVersion: 0, emissionKind: KIND)
!2 = !DIFile(filename: "kernel.py", directory: "/sources")
!3 = distinct !DISubprogram(name: "k", linkageName: "k", scope: !2, file: !2, line: 10, type: !4, scopeLine: 10, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1)
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DILocation(line: 11, column: 5, scope: !3)
!7 = distinct !DISubprogram(name: "inner", linkageName: "inner", scope: !2, file: !2, line: 20, type: !4, scopeLine: 20, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !1)
!8 = !DILocation(line: 12, column: 5, scope: !3)
!9 = !DILocation(line: 21, column: 5, scope: !7)
!10 = distinct !DILocation(line: 21, column: 9, scope: !7, inlinedAt: !6)
"""  # noqa: E501
)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: "-".join(map(str, target)))
@pytest.mark.parametrize("kind", ("DebugDirectivesOnly", "LineTablesOnly", "FullDebug"))
def test_line_information(target: Any, kind: str) -> None:
    text = DEBUG.replace("KIND", kind)
    np.testing.assert_array_equal(launch(text, N, target=target)[0], N + 1)
    function = parse_ptx(ptx_of(text, target)).functions["k"]
    lines = {".".join((ins.opcode, *ins.modifiers[:1])): ins.source[1] for ins in function.instructions if ins.source}
    assert lines["ld.global"] == 21 and lines["st.global"] == 12
    with pytest.raises(MemoryFault, match=r"(?s)thread \(32, 0, 0\).*at .*kernel\.py:21\n  PTX line \d+: ld\.global"):
        device = Device(1 << 22)
        device.launch(device.load(ptx_of(text, target)).function("k"), 1, 64, [device.upload(N[:32])])
