"""Abbreviations for text with shared memory, old and new.

S<16x16xf16>            tensor<16x16xf16, #shared>, a tensor in shared memory
M<16x16xf16, mutable>   !ttg.memdesc<16x16xf16, #shared, #smem, mutable>, what it is today
"""

import re

P = "%p: tensor<16x64x!tt.ptr<f16>, #blocked>, %k: tensor<16x64xi1, #blocked>, %o: tensor<16x64xf16, #blocked>, %i: i32"
COPY = "tensor<16x64x!tt.ptr<f16>, #blocked>"
ALLOC = "%b = triton_gpu.alloc_tensor : S<3x16x64xf16>\n"


def spelled(text: str) -> str:
    """`text` with its abbreviations written out."""
    text = re.sub(r"S<(\w+)>", r"tensor<\1, #shared>", text)
    return re.sub(r"M<(\w+)(, [^>]*)?>", r"!ttg.memdesc<\1, #shared, #smem\2>", text)
