"""A torch that has no GPU, whatever the machine has."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def no_gpu_for_torch() -> Iterator[None]:
    """Hide a real GPU from torch, so that torch does not choose the devices and streams of the emulated one."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None:
        yield
        return
    with patch.object(cuda, "is_available", lambda: False), patch.object(cuda, "is_initialized", lambda: False):
        yield
