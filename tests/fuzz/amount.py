"""How many kernels a test generates, always the same ones; ``DRAWN_KERNELS=200 pytest tests/fuzz`` generates more.

`EXAMPLES` are chosen by what they catch. With fresh seeds these were noticed after about so many kernels on a device:
padded lanes that leak into sums 17 (generator "edges", cuda:90), pointers of nested loops 70 (hip:gfx942), bf16 vectors of 9, 17 ...
elements 30 (native). `python -m tests.fuzz.planted` measures it for planted defects. Tests of `differential/settings.py` and the property
tests draw single operations, of which few examples do; `make fuzz` is for what needs thousands.
"""

import os

EXAMPLES = {"native": 32, "evaluator": 16, "cuda:80": 8, "cuda:90": 32, "hip:gfx942": 24}


def amount(few: int) -> int:
    """`few`, or what the environment asks for."""
    return int(os.environ.get("DRAWN_KERNELS", few))
