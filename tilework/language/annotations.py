"""Annotations as they were written, on every Python.

Since Python 3.14 an annotation is evaluated when somebody asks for it, and asking fails if it names something that does
not exist (yet). Kernels are decorated while their module is being read, so such names are kept as text:

    @jit
    def kernel(x: Later, N: tl.constexpr): ...      # `Later` stays "Later", N is compile-time
"""

import inspect
import sys
from collections.abc import Callable
from typing import Any


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    """`inspect.signature`; an annotation whose names are unknown is its text."""
    if sys.version_info < (3, 14):
        return inspect.signature(fn)
    from annotationlib import Format  # lazily: from Python 3.14 on

    signature = inspect.signature(fn, annotation_format=Format.FORWARDREF)
    parameters = [p.replace(annotation=as_text(p.annotation)) for p in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=as_text(signature.return_annotation))


def annotations_of(cls: type) -> dict[str, Any]:
    """The annotations in the body of a class itself, not of its bases."""
    if sys.version_info < (3, 14):
        return dict(vars(cls).get("__annotations__", {}))
    from annotationlib import Format, get_annotations  # lazily: from Python 3.14 on

    return {name: as_text(note) for name, note in get_annotations(cls, format=Format.FORWARDREF).items()}


def as_text(note: Any) -> Any:
    """A forward reference as the text it was written as; anything else unchanged."""
    return note.__forward_arg__ if hasattr(note, "__forward_arg__") else note


class FunctionSignature:
    """What `inspect.signature` finds at a kernel: the parameters of its Python function. Classes keep their own."""

    def __get__(self, instance: Any, owner: type | None = None) -> inspect.Signature:
        if instance is None:
            raise AttributeError("__signature__")
        return instance.signature
