"""The text with names and locations is Triton's, number by number: its own `test_use_name_loc_as_prefix` compares such
text.

A value is called after the variable that its statement assigns, a result of a branch or a loop also after the variable
that it becomes; an op is where the part of its expression is that was read last; a constant that is there once is
there, a shared one nowhere.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.frontend import named_kernels
from tests.frontend.run import after_passes, ttir
from tilework.ir.locations import source_positions
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module

EXPECTED = dict(
    re.findall(
        r"^== (\w+)\n(.*?)\n(?=\n==|\Z)", Path(__file__).with_name("named_kernels.ttir").read_text(), re.M | re.S
    )
)
ARGUMENTS = {"src": np.zeros(4, np.float32), "x_ptr": np.zeros(4, np.float16), "N": 3, "M": 5, "BLOCK_SIZE": 16}


@pytest.mark.parametrize("name", EXPECTED)
def test_text_with_locations(name: str) -> None:
    kernel = getattr(named_kernels, name)
    module = after_passes(ttir(kernel, **{name: ARGUMENTS[name] for name in kernel.arg_names}))
    text = print_module(module, debuginfo=True).replace(named_kernels.__file__, "named_kernels.py")
    assert re.sub(r'"/[^"]*":\d+:\d+', '"library"', text).strip() == EXPECTED[name]


def test_users_are_reported_where_the_expression_starts() -> None:
    module = ttir(named_kernels.straight, np.zeros(4, np.float32), 3, BLOCK_SIZE=16)
    line = (
        Path(named_kernels.__file__)
        .read_text()
        .splitlines()
        .index("    x_plus_1 = tl.load(src + offset, mask=mask, other=0.0) + 1.0")
        + 1
    )
    (load,) = (op for op in module.walk() if op.name == "tt.load")
    assert source_positions(load.location) == [(named_kernels.__file__, line, 15)]
    (read,) = (op for op in parse_module(print_module(module, debuginfo=True)).walk() if op.name == "tt.load")
    assert source_positions(read.location) == source_positions(load.location)
    assert "x_plus_1" in str(load.location) and f"{line}:23" in str(load.location)
