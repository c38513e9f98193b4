"""Scopes of inline assembly: their registers and labels are their own; where inlined code comes from."""

import numpy as np

from tilework.oracles.emulator.device import Device
from tilework.oracles.emulator.parser import parse_ptx

TEXT = """.version 8.0
.target sm_80
.visible .entry k(.param .u64 out) {
    .reg .b64 %rd<2>; .reg .b32 %r<3>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 0;
    { .reg.b32 f; .reg .pred p;
      mov.u32 f, 3;
    again:
      { .reg .b32 f; mov.u32 f, 100; add.u32 %r1, %r1, f; }
      .reg .b32 later;
      mov.u32 later, 1;
      sub.u32 f, f, later;
      setp.eq.u32 p, f, 0;
      @p bra done;
      bra again;
    done:
    }
    { .reg .b32 f; .reg .pred p;
      mov.u32 f, 0;
    again:
      add.u32 f, f, 1;
      setp.lt.u32 p, f, 5;
      @p bra again;
      bra done;
      mov.u32 f, 77;
    done:
      add.u32 %r1, %r1, f;
    }
    st.global.u32 [%rd1], %r1;
    ret;
}"""


def test_registers_and_labels_of_a_scope_are_its_own() -> None:
    device = Device()
    out = device.allocate(4)
    device.launch(device.load(TEXT).function("k"), 1, 1, [out])
    assert device.copy_out(out, 4).view(np.uint32)[0] == 305


def test_an_instruction_knows_where_it_was_inlined() -> None:
    text = """.version 8.0
.target sm_80
.file 1 "k.cu"
.file 2 "header.h"
.entry k() {
    .loc 1 7 3
    bar.sync 0;
    .loc 2 40 5, function_name $L__info_string0, inlined_at 1 7 3
    bar.sync 1;
    .loc 2 90 1, function_name $L__info_string1, inlined_at 2 40 5
    bar.sync 2;
    .loc 1 8 1
    ret;
}"""
    locations = [ins.location for ins in parse_ptx(text).functions["k"].instructions]
    assert locations == [
        "k.cu:7",
        "header.h:40, inlined at k.cu:7",
        "header.h:90, inlined at header.h:40, inlined at k.cu:7",
        "k.cu:8",
    ]
