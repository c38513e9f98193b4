"""The interface of Triton's profiler (Proton), on CPUs and GPUs: times of kernels by scope.

    import tilework.profiler as proton               # under `as_triton`: import triton.profiler as proton

    proton.start("matmul", hook="triton")            # a session: writes matmul.hatchet when it is finalized
    with proton.scope("warm"):
        matmul[grid](a, b, c, M, N, K)
    proton.finalize()

    proton-viewer -m time/ms,tflop16/s matmul.hatchet

`tilework profile script.py` needs no change of the program, and says what to look at first: docs/profiler.md.
"""

from tilework.inspect.profiler import data, mode
from tilework.inspect.profiler import sessions as context
from tilework.inspect.profiler import viewer as specs
from tilework.inspect.profiler.profile import (
    DEFAULT_PROFILE_NAME,
    activate,
    cpu_timed_scope,
    deactivate,
    enter_scope,
    enter_state,
    exit_scope,
    exit_state,
    finalize,
    metadata_state,
    profile,
    scope,
    start,
    state,
)

__all__ = [
    "DEFAULT_PROFILE_NAME",
    "activate",
    "context",
    "cpu_timed_scope",
    "data",
    "deactivate",
    "enter_scope",
    "enter_state",
    "exit_scope",
    "exit_state",
    "finalize",
    "metadata_state",
    "mode",
    "profile",
    "scope",
    "specs",
    "start",
    "state",
]
