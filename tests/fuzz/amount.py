"""The number of kernels that a test generates, always the same ones; ``FUZZ_KERNELS=200 pytest tests/fuzz`` generates
more.

`EXAMPLES` are chosen by what they catch. With fresh seeds these defects were noticed after about so many kernels of one
device: padded lanes that leak into sums 17 ("edges", cuda:90), a wrong neutral element of padded maxima 27 ("edges",
cuda:90), bf16 vectors of 9, 17 ... elements 30 (native), pointers of nested loops 70 (hip:gfx942). `python -m
tests.fuzz.planted` measures planted defects; what needs thousands of kernels is for `make fuzz`.
"""

import os

EXAMPLES = {"native": 32, "evaluator": 16, "cuda:80": 8, "cuda:90": 32, "hip:gfx942": 24}


def amount(few: int) -> int:
    """`few`, or what the environment asks for."""
    return int(os.environ.get("FUZZ_KERNELS", few))
