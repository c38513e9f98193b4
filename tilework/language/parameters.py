"""The parameters of a jit function: what their annotations say, and how they are specialised.

    def kernel(x: tl.const, n: tl.int64, BLOCK: tl.constexpr): ...

`x` points to data that is only read, `n` has 64 bits whatever is passed, and `BLOCK` is part of the code.
"""

import inspect
import re
from collections.abc import Collection
from typing import Any

from tilework.language.signature_types import type_canonicalisation_dict
from tilework.process.forks import cached_property


class KernelParam:
    """One parameter of a jit function and how it is specialised."""

    def __init__(
        self,
        num: int,
        param: inspect.Parameter,
        do_not_specialize: bool,
        do_not_specialize_on_alignment: bool,
    ) -> None:
        self.num = num
        self._param = param
        self.name = param.name
        self.do_not_specialize = do_not_specialize
        self.do_not_specialize_on_alignment = do_not_specialize_on_alignment

    @cached_property
    def _note(self) -> str:
        """The annotation as text, prefix `tl.` removed: ``constexpr``, ``*kfloat``, ``int64``; "" without one."""
        note = self._param.annotation
        if note is inspect.Parameter.empty:
            return ""
        return normalize_annotation(note)

    @cached_property
    def annotation(self) -> str:
        """The annotation as text, types under one name each: ``constexpr``, ``*kfp32``, ``i64``; "" without one."""
        return self.annotation_type or self._note

    @cached_property
    def annotation_type(self) -> str:
        """The signature code that the annotation forces (``i64``, ``*fp32``), or ""."""
        note = self._note
        stars = note[: len(note) - len(note.lstrip("*"))]
        rest = note[len(stars) :]
        const = "k" if stars and rest.startswith("k") and rest not in type_canonicalisation_dict else ""
        code = type_canonicalisation_dict.get(rest[len(const) :])
        return f"{stars}{const}{code}" if code else ""

    @cached_property
    def is_constexpr(self) -> bool:
        """A compile-time parameter."""
        return "constexpr" in self._note

    @cached_property
    def is_const(self) -> bool:
        """A pointer to read-only data."""
        return self._note == "const" or self._note.startswith("*k")

    @property
    def default(self) -> Any:
        return self._param.default

    @property
    def has_default(self) -> bool:
        return self._param.default is not inspect.Parameter.empty


def params_of(
    signature: inspect.Signature, plain: Collection[str | int], unaligned: Collection[str | int]
) -> list[KernelParam]:
    """The parameters of a function, those that are not specialised, or not on alignment, by name or number."""
    return [
        KernelParam(number, param, not {number, name}.isdisjoint(plain), not {number, name}.isdisjoint(unaligned))
        for number, (name, param) in enumerate(signature.parameters.items())
    ]


CONST = "*const "


def normalize_annotation(note: Any) -> str:
    """Text of an annotation in signature form: ``tl.int64`` -> ``int64``, ``const int*`` -> ``*kint``."""
    if isinstance(note, type):
        return note.__name__
    if isinstance(note, str):
        text = note.strip().strip("'\"").strip()
    elif hasattr(note, "is_ptr") and note.is_ptr():
        return ("*k" if note.const else "*") + normalize_annotation(note.element_ty)
    elif hasattr(note, "name") and isinstance(note.name, str):
        return note.name
    else:
        text = str(note)
    if "." in text:
        text = re.sub(r"\b(tl|triton\.language|tilework\.language)\.", "", text)
    if text.endswith("*"):
        text = "*" + text[:-1].strip()
    return f"*k{text.removeprefix(CONST)}" if text.startswith(CONST) else text
