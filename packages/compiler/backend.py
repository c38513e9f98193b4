"""The build backend of `tilework-compiler`: setuptools, without the optional hooks (`packages/backend.py`)."""

from setuptools.build_meta import build_editable as build_editable
from setuptools.build_meta import build_sdist as build_sdist
from setuptools.build_meta import build_wheel as build_wheel
