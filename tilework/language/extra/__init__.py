"""Functions that exist only on some devices: ``tl.extra.cuda``, and the neutral ``tl.extra.libdevice``."""

from tilework.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]
