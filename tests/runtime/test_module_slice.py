"""The part of a script that a kernel needs."""

import ast
import textwrap

from tilework.runtime.workers.sent_kernel import slice_for


def kept(text: str, wanted: str) -> list[str]:
    return ast.unparse(slice_for(ast.parse(textwrap.dedent(text)), wanted)).splitlines()


def test_a_slice_has_what_the_kernel_needs_and_no_more() -> None:
    text = """
    from __future__ import annotations
    import lib
    import other
    A = lib.make(B := 2)
    x = lib.expensive()
    def helper(v): return v + A
    @lib.jit
    def kernel(p, x: lib.constexpr, n=DEFAULT):
        y = helper(x)
        for i in range(y):
            z = i
        return z
    DEFAULT = 3
    other.run(kernel, x)
    if __name__ == "__main__":
        kernel = None
    """
    assert kept(text, "kernel") == [
        "from __future__ import annotations", "import lib", "A = lib.make((B := 2))", "", "def helper(v):",
        "    return v + A",
        "", "@lib.jit", "def kernel(p, x: lib.constexpr, n=DEFAULT):", "    y = helper(x)", "    for i in range(y):",
        "        z = i", "    return z", "DEFAULT = 3",
    ]  # fmt: skip


def test_names_bound_in_branches_and_globals_are_found() -> None:
    text = """
    try:
        import fast as impl
    except ImportError:
        impl = None
    COUNT = 0
    UNUSED = 1
    def kernel():
        global COUNT
        COUNT = impl
        return (lambda UNUSED: UNUSED)(0)
    """
    assert "UNUSED = 1" not in kept(text, "kernel")
    assert {"try:", "COUNT = 0"} <= set(kept(text, "kernel"))
