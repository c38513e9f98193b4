"""Facts read from the PTX text of kernels."""

from typing import Any

import pytest

from tilework.targets.nvidia import ptx_text


def test_kernels_and_their_directives() -> None:
    text = """
    .version 8.0 // .entry not(.param .u64 a) { }
    .extern .shared .align 16 .b8 smem[];
    .func helper() .noreturn { ret; }
    .visible .entry one(.param .u64 a, // comment )
        .param .u32 b)
    .reqntid 128, 1, 1 .minnctapersm 2 { ret; }
    /* .entry gone() { } */
    .entry two .maxntid 64 .maxnreg 40 .reqnctapercluster 2, 1, 1 { ret; }
    """
    assert ptx_text.entries(text) == {
        "one": {"reqntid": (128, 1, 1), "minnctapersm": (2,)},
        "two": {"maxntid": (64,), "maxnreg": (40,), "reqnctapercluster": (2, 1, 1)},
    }
    assert ptx_text.has_dynamic_shared(text) and not ptx_text.has_dynamic_shared(
        ".shared .align 4 .b8 s[64]; // .extern .shared x[]"
    )


def test_what_a_comment_reports() -> None:
    assert (
        ptx_text.metadata('// tilework: {"shared": 64}\n.version 8.0')
        == {"shared": 64}
        == ptx_text.metadata('\n ; tilework: {"shared": 64}\n')
    )
    assert ptx_text.metadata(".version 8.0 // tilework\n") == {}
    with pytest.raises(ValueError, match="not JSON"):
        ptx_text.metadata("// tilework: shared 64")
    with pytest.raises(ValueError, match="'shard' is not one of shared, global_scratch_size"):
        ptx_text.metadata('// tilework: {"shard": 64}')


@pytest.mark.parametrize(
    ("directives", "requested", "facts"),
    [
        ({}, None, {}), ({}, 8, {}),
        ({"reqntid": (256,)}, None, {"num_warps": 8}), ({"reqntid": (96, 1, 1)}, 3, {"num_warps": 3}),
        ({"maxntid": (256,)}, None, {"num_warps": 8}), ({"maxntid": (256,)}, 2, {"num_warps": 2}),
        ({"maxntid": (16, 16)}, None, {"num_warps": 8}),
        ({"reqnctapercluster": (2, 2)}, None, {"num_ctas": 4, "cluster_dims": (2, 2, 1)}),
        ({"reqntid": (256,)}, 4, r"k runs in blocks of 8 warps \(\.reqntid\), but num_warps=4 was requested"),
        ({"reqntid": (100,)}, None, "tilework launches whole warps along x only"),
        ({"reqntid": (32, 2)}, None, "tilework launches whole warps along x only"),
        ({"maxntid": (128,)}, 8, r"k allows 128 threads \(\.maxntid\), but num_warps=8 was requested"),
    ],
)  # fmt: skip
def test_how_a_kernel_is_launched(directives: Any, requested: int | None, facts: Any) -> None:
    if isinstance(facts, dict):
        assert ptx_text.launch_facts("k", directives, requested) == facts
    else:
        with pytest.raises(ValueError, match=facts):
            ptx_text.launch_facts("k", directives, requested)
