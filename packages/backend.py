"""The build backend of `tilework` for a checkout: setuptools, and for an editable install the compiler's requirements
too.

A wheel of `tilework` has the runtime only, and requires NumPy only. An editable install is the whole checkout: who
works on it has the compiler, and one command installs all that it needs.

Hooks that may be left out are: nothing more is required to build, and pip takes the metadata from what it built. Each
of setuptools' own runs `setup.py` once more.
"""

import os
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import build_sdist as build_sdist
from setuptools.build_meta import build_wheel as build_wheel

WHOLE = "TILEWORK_BUILD_WHOLE"  # setup.py asks for it


def build_editable(*args: Any) -> str:
    os.environ[WHOLE] = "1"
    return build_meta.build_editable(*args)
