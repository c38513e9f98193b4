"""Triton 3.7.1's language in one look: names, signatures, and that programs for 3.6.0 give the same ops."""

import inspect
import re
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.compiler
import tilework.language as tl
from tests.frontend.run import after_passes
from tests.golden.harness import TARGET, kernels, source, topics
from tilework import knobs
from tilework.ir.printer import print_module
from tilework.runtime.compile.sources import frontend_options
from tilework.testing import assert_close


@tilework.jit
def lettered(out, n, text: tl.constexpr):
    tl.static_assert(text == "D")
    tl.store(out, n)


def test_a_text_like_a_letter_of_the_specialization() -> None:
    for number in (16, 3):
        out = np.zeros(1, np.int32)
        lettered[(1,)](out, number, "D")
        assert out[0] == number


@pytest.mark.filterwarnings("ignore:tl.make_block_ptr")
@pytest.mark.parametrize("topic", topics("ttir"))
def test_the_same_ttir_in_both_versions(topic: str) -> None:
    """After the passes the ops are the same; the order of constants is each version's, as are names of functions."""
    for fn, signature in kernels("ttir", topic).values():
        found = []
        for version in ("3.6.0", "3.7.1"):
            with knobs.language.scope() as language:
                language.triton_version = version
                module = after_passes(source(fn, signature).module(frontend_options(TARGET, {})))
            lines = re.sub(r'@("[^"]*"|[\w.]+)', "@name", print_module(module)).splitlines()
            constants = [line for line in lines if " = arith.constant " in line]
            found.append((sorted(constants), [line for line in lines if line not in constants]))
        assert found[0] == found[1], fn.__name__


SIGNATURES = {
    tl.squeeze: "(x, dim)",
    tl.unsqueeze: "(x, dim)",
    tl.to_tensor: "(x)",
    tl.cat: "(input, other, can_reorder=False, dim=0)",
    tl.tuple_type: "(types, fields=None)",
    tl.extra.hip.libdevice.rint: "(arg0)",
    assert_close: "(x, y, atol=None, rtol=None, err_msg='')",
}


@pytest.mark.parametrize("function", SIGNATURES)
def test_signature(function: Any) -> None:
    parameters = inspect.signature(getattr(function, "fn", function)).parameters.values()
    shown = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
    assert f"({', '.join(str(p) for p in shown if not p.name.startswith('_'))})" == SIGNATURES[function]


def test_exported_names() -> None:
    assert {"squeeze", "unsqueeze", "to_tensor", "cat"} <= set(tl.__all__)
    assert not hasattr(tl.tensor, "squeeze") and not hasattr(tl.tensor, "unsqueeze")
