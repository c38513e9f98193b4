"""The host's functions; `libdevice` is the neutral one, whose functions every target has its own code for."""

from tilework.language.extra import libdevice

__all__ = ["libdevice"]
