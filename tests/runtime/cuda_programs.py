"""PTX written by hand for the tests of the CUDA driver, in the emulator and on a GPU; and compiled kernels built
from it."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from tilework.compiler import IRSource
from tilework.runtime.compile.compiled import CompiledKernel
from tilework.runtime.devices.emulated.emulated_libcuda import ELF
from tilework.targets.base import GPUTarget
from tilework.targets.options import CompileOptions

TARGET = GPUTarget("cuda", 90, 32)

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
HIDDEN = ("", ", .param .u64 scratch", ", .param .u64 scratch, .param .u64 profile")

INDEX = "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x; mad.lo.u32 %r5, %r2, %r3, %r4;"


def scale(hidden: int = 2, limits: str = "") -> str:
    """scale(p: f32*, n: u32, a: f32): p[:n] *= a."""
    return f"""{HEADER}
.visible .entry scale(.param .u64 .ptr .global .align 1 p, .param .u32 n, .param .f32 a{HIDDEN[hidden]})
{limits}
{{
    .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<3>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; ld.param.f32 %f1, [a];
    {INDEX}
    setp.ge.u32 %p1, %r5, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd2, %r5, 4; add.u64 %rd3, %rd1, %rd2;
    ld.global.f32 %f2, [%rd3]; mul.f32 %f2, %f2, %f1; st.global.f32 [%rd3], %f2;
DONE:
    ret;
}}
"""


def pointers() -> str:
    """pointers(out: u64*, scratch, profile): the values of the two hidden pointers."""
    return f"""{HEADER}
.visible .entry pointers(.param .u64 out, .param .u64 scratch, .param .u64 profile) {{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [scratch]; ld.param.u64 %rd3, [profile];
    st.global.u64 [%rd1], %rd2; st.global.u64 [%rd1+8], %rd3;
    ret;
}}
"""


def copy_parameters(declared: str, sizes: list[int], hidden: int = 2) -> str:
    """all(out: u8*, a, b, ...): the bytes of every parameter, one after the other, each in 8 bytes of `out`."""
    copies = []
    for number, size in enumerate(sizes):
        for byte in range(size):
            copies.append(f"ld.param.u8 %r1, [a{number}+{byte}]; st.global.u8 [%rd1+{8 * number + byte}], %r1;")
    body = "\n    ".join(copies)
    return f"""{HEADER}
.visible .entry all(.param .u64 out, {declared}{HIDDEN[hidden]}) {{
    .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    {body}
    ret;
}}
"""


def shared_sum(static: int = 0) -> str:
    """shared_sum(out: u32*, words: u32): the last thread of a block writes word `words` - 1 of dynamic shared memory,
    and reads it."""
    block = f".shared .align 4 .b8 room[{static}];" if static else ""
    return f"""{HEADER}
.extern .shared .align 16 .b8 dynamic[];
.visible .entry shared_sum(.param .u64 out, .param .u32 words) {{
    {block}
    .reg .b32 %r<6>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [words];
    mov.u32 %r2, dynamic; sub.u32 %r3, %r1, 1; mad.lo.u32 %r4, %r3, 4, %r2;
    st.shared.u32 [%r4], %r1; ld.shared.u32 %r5, [%r4];
    st.global.u32 [%rd1], %r5;
    ret;
}}
"""


def with_local(bytes: int) -> str:
    """with_local(out: u32*): uses so many bytes of local memory per thread."""
    return f"""{HEADER}
.visible .entry with_local(.param .u64 out) {{
    .local .align 4 .b8 room[{bytes}];
    .reg .b32 %r<4>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [out]; mov.u64 %rd2, room; cvta.local.u64 %rd3, %rd2;
    ld.global.u32 %r1, [%rd1]; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd3, %rd3, %rd4;
    st.u32 [%rd3], 7; ld.u32 %r2, [%rd3];
    st.global.u32 [%rd1], %r2;
    ret;
}}
"""


def cluster_ids() -> str:
    """cluster_ids(out: u32*): each block writes the size of its cluster, then the number of clusters."""
    return f"""{HEADER}
.visible .entry cluster_ids(.param .u64 out) {{
    .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 8; add.u64 %rd3, %rd1, %rd2;
    mov.u32 %r2, %cluster_nctaid.x; mov.u32 %r3, %nclusterid.x;
    st.global.u32 [%rd3], %r2; st.global.u32 [%rd3+4], %r3;
    ret;
}}
"""


def tensor_copy(box_bytes: int, rank: int = 2, more: str = "") -> str:
    """tensor_copy(map, {more}out: u8*): the box at the origin, copied by the copy engine to shared memory and stored to
    `out`."""
    at = ", ".join(["0"] * rank)
    return f"""{HEADER.replace("sm_90", "sm_90a")}
.shared .align 1024 .b8 tile[{box_bytes}];
.shared .align 8 .b64 bar;
.visible .entry tensor_copy(.param .align 128 .b8 map[128], {more}.param .u64 out{HIDDEN[2]}) {{
    .reg .b32 %t, %s, %b, %w, %at, %zero; .reg .b64 %m, %out, %to; .reg .pred %first, %q;
    ld.param.u64 %out, [out]; mov.b64 %m, map; cvta.param.u64 %m, %m;
    mov.u32 %t, %tid.x; mov.u32 %s, tile; mov.u32 %b, bar; setp.eq.u32 %first, %t, 0; mov.u32 %zero, 0;
    @%first mbarrier.init.shared::cta.b64 [%b], 1;
    @%first fence.mbarrier_init.release.cluster;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], {box_bytes};
    @%first cp.async.bulk.tensor.{rank}d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%m,
    {{{at.replace("0", "%zero")}}}], [%b];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%b], 0;
    @!%q bra WAIT;
    shl.b32 %at, %t, 2;
STORE:
    setp.ge.u32 %q, %at, {box_bytes};
    @%q bra DONE;
    add.u32 %w, %at, %s; ld.shared.b32 %w, [%w]; cvt.u64.u32 %to, %at; add.u64 %to, %to, %out; st.global.b32 [%to], %w;
    add.u32 %at, %at, 128;
    bra STORE;
DONE:
    ret;
}}
"""


def wait_for_host() -> str:
    """wait_for_host(flag: u32*, out: u32*): waits until the host sets the flag, 2 s at most; out[0] is the flag
    then."""
    return f"""{HEADER}
.visible .entry wait_for_host(.param .u64 flag, .param .u64 out) {{
    .reg .b32 %r<2>; .reg .b64 %rd<5>; .reg .pred %p<3>;
    ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out];
    mov.u64 %rd3, %globaltimer; add.u64 %rd3, %rd3, 2000000000;
AGAIN:
    ld.volatile.global.u32 %r1, [%rd1];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    mov.u64 %rd4, %globaltimer;
    setp.lt.u64 %p2, %rd4, %rd3;
    @%p2 bra AGAIN;
DONE:
    st.global.u32 [%rd2], %r1;
    ret;
}}
"""


def kernel_of(
    ptx: str,
    name: str,
    signature: Mapping[str, Any] | None = None,
    folder: Any = None,
    cubin: bool = False,
    **facts: Any,
) -> CompiledKernel:
    """A compiled kernel from its PTX: with the types of its arguments, or as a file that is its own source."""
    options = CompileOptions(backend_name="cuda", warp_size=32)
    binary = ELF + ptx.encode() if cubin else ptx.encode()
    known = {
        **vars(options), "name": name, "target": vars(TARGET), "shared": 0, "tmem_size": 0, "hash": "0",
        "tensordesc_meta": [],
        "global_scratch_size": 0, "global_scratch_align": 1, "profile_scratch_size": 0, "profile_scratch_align": 1,
        "binary_ext": "cubin" if cubin else "ptx",
    }  # fmt: skip
    if folder is not None:
        (folder / f"{name}.ptx").write_text(ptx)
        source: Any = IRSource(folder / f"{name}.ptx")
    else:
        source = SimpleNamespace(signature=dict(signature or {}))
    files = {"json": json.dumps(known | facts).encode(), known["binary_ext"]: binary}
    return CompiledKernel(source, {}, "0", files)
