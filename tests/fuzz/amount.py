"""How many kernels a test draws: few in each run, always the same ones; ``DRAWN_KERNELS=200 pytest tests/fuzz`` draws more."""

import os


def amount(few: int) -> int:
    """`few`, or what the environment asks for."""
    return int(os.environ.get("DRAWN_KERNELS", few))
